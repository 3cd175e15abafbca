//! Damaged and edited checkpoints and model folders: every byte of a file is covered by its checksum, files of older
//! versions that are not covered say so, and no value in their metadata leads to a panic or to a giant allocation.

use crate::support::{Folder, copy};
use lamo::run::model_folder::{DESCRIPTION, ModelFolder, WEIGHTS};
use lamo::run::{self, Checkpoint, Trained};
use lamo::workflow::{Model, ResumeRequest, Session, resume};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn old(name: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests/v0_1").join(name)
}

/// The runs of 0.1: steady on a plane, steady on a cloud, a roll-out, and a series asked for by time.
const RUNS: [&str; 4] = ["darcy", "cloud", "navier-stokes", "plasticity"];

/// A checkpoint of this version, made from one of 0.1.
fn renewed(folder: &Folder, name: &str) -> PathBuf {
    let path = folder.at(&format!("{name}.safetensors"));
    Checkpoint::read(&run::checkpoint_path(&old(&format!("runs/{name}")), run::LAST)).unwrap().write(&path).unwrap();
    path
}

/// The header of a safetensors file and the bytes after it.
fn parts(bytes: &[u8]) -> (Value, &[u8]) {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (serde_json::from_slice(&bytes[8..8 + length]).unwrap(), &bytes[8 + length..])
}

fn joined(header: &Value, values: &[u8]) -> Vec<u8> {
    let text = header.to_string();
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), values].concat()
}

/// Opens a file; `Err` with the sentence, which must be one line that names the file.
fn opened(path: &Path) -> Result<Trained, String> {
    let result = catch_unwind(AssertUnwindSafe(|| Trained::open(path).map_err(|error| error.to_string())));
    let result = result.unwrap_or_else(|_| panic!("panicked"));
    if let Err(told) = &result {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(told.contains(name) && !told.contains('\n'), "{told}");
    }
    result
}

#[test]
fn a_flipped_bit_anywhere_in_a_checkpoint_is_noticed() {
    let folder = Folder::new("bits");
    for name in ["darcy", "navier-stokes"] {
        let path = renewed(&folder, name);
        let sound = std::fs::read(&path).unwrap();
        let header = sound.len() - parts(&sound).1.len();
        let damaged = folder.at("damaged.safetensors");
        for place in (0..header).chain((header..sound.len()).step_by(997)) {
            let mut bytes = sound.clone();
            bytes[place] ^= 1 << (place % 7);
            std::fs::write(&damaged, &bytes).unwrap();
            assert!(opened(&damaged).is_err(), "{name}: byte {place} changed and nothing was said");
        }
        assert_eq!(opened(&path).unwrap().note, None);
    }
}

#[test]
fn a_checkpoint_without_its_checksum_or_of_an_unknown_format_is_refused() {
    let folder = Folder::new("seal");
    let path = renewed(&folder, "darcy");
    let sound = std::fs::read(&path).unwrap();
    let (header, values) = parts(&sound);
    for format in ["3", "4", "0", "x"] {
        let mut header = header.clone();
        let metadata = header["__metadata__"].as_object_mut().unwrap();
        metadata.remove("sha256_of_file");
        metadata["format"] = json!(format);
        std::fs::write(&path, joined(&header, values)).unwrap();
        opened(&path).unwrap_err();
    }
}

#[test]
fn a_file_of_0_1_opens_with_a_note_that_its_metadata_are_not_covered() {
    let folder = Folder::new("noted");
    for name in RUNS {
        let trained = Trained::open(&old(&format!("runs/{name}"))).unwrap();
        let note = trained.note.unwrap();
        assert!(note.contains("0.1.0") && note.contains("last.safetensors") && note.contains("checksum"), "{note}");
    }
    assert!(Model::open(&old("models/cloud")).unwrap().note().is_some());
    let (run, data) = (folder.at("run"), folder.at("data"));
    copy(&old("runs/plasticity"), &run);
    copy(&old("data/plasticity"), &data);
    let request =
        ResumeRequest { run: run.clone(), data: Some(data), device: None, saving: Duration::MAX, together: 1 };
    resume(&request, &Session::default()).unwrap();
    assert_eq!(Trained::open(&run).unwrap().note, None, "a resumed run is covered from then on");
}

/// A damaged header of 0.1 may be accepted, as nothing covers it; it must not end in a panic.
#[test]
fn a_flipped_bit_in_the_header_of_0_1_is_refused_in_a_sentence_or_noted() {
    let folder = Folder::new("old-bits");
    for name in RUNS {
        let sound = std::fs::read(run::checkpoint_path(&old(&format!("runs/{name}")), run::LAST)).unwrap();
        let header = sound.len() - parts(&sound).1.len();
        let damaged = folder.at("damaged.safetensors");
        for place in 0..header {
            let mut bytes = sound.clone();
            bytes[place] ^= 1 << (place % 7);
            std::fs::write(&damaged, &bytes).unwrap();
            if let Ok(trained) = opened(&damaged) {
                assert!(trained.note.is_some(), "{name}: byte {place} changed and nothing was said");
            }
        }
    }
}

/// Every number inside a JSON value, by its path.
fn numbers(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let mut within = |key: String, inner: &Value| {
        path.push(key);
        numbers(inner, path, found);
        path.pop();
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| within(key.clone(), inner)),
        Value::Array(list) => list.iter().enumerate().for_each(|(key, inner)| within(key.to_string(), inner)),
        Value::Number(_) => found.push(path.clone()),
        _ => {}
    }
}

fn replaced(value: &Value, path: &[String], number: &Value) -> Value {
    let mut edited = value.clone();
    *edited.pointer_mut(&format!("/{}", path.join("/"))).unwrap() = number.clone();
    edited
}

/// Numbers that break arithmetic which is not checked.
fn extremes() -> Vec<Value> {
    let whole = [0_u64, 1, 7, 65_537, 1 << 31, (1 << 32) + 1, 1 << 53, 1 << 62, (1 << 63) - 1, u64::MAX];
    whole.iter().map(|number| json!(number)).chain([json!(-1), json!(0.5), json!(1e300), json!(-1e39)]).collect()
}

/// What a reader does with a model: predict one sample of ones.
fn used(trained: &Trained) {
    let task = &trained.operator.task;
    if task.grid.points() * (task.space + task.input_channels()) > 1_000_000 {
        return; // too large for a test to allocate
    }
    let values = |width: usize| vec![1.0; task.grid.points() * width];
    let samples = lamo::data::Samples {
        offsets: Vec::new(),
        count: 1,
        grid: task.grid,
        space: task.space,
        positions: values(task.space),
        functions: task.input_channels(),
        inputs: values(task.input_channels()),
        times: task.time.count().min(2),
        outputs: task.output_channels(),
        targets: Vec::new(),
    };
    let _ = trained.operator.predict(&samples, lamo_tensor::Device::Cpu);
}

/// Every number of the metadata of a checkpoint that no checksum covers, replaced by every extreme.
#[test]
fn an_edited_number_in_the_metadata_is_refused_in_a_sentence_or_harmless() {
    let folder = Folder::new("edited");
    let mut broken = Vec::new();
    for name in RUNS {
        let sound = std::fs::read(renewed(&folder, name)).unwrap();
        let (mut header, values) = parts(&sound);
        let metadata = header["__metadata__"].as_object_mut().unwrap();
        metadata.remove("sha256_of_file");
        metadata["format"] = json!("2");
        let path = folder.at("edited.safetensors");
        let mut attempt = |key: &str, text: String, what: String| {
            let mut header = header.clone();
            header["__metadata__"][key] = json!(text);
            std::fs::write(&path, joined(&header, values)).unwrap();
            let tried = catch_unwind(AssertUnwindSafe(|| opened(&path).map(|trained| used(&trained))));
            if tried.is_err() {
                broken.push(format!("{name}: {key} {what}"));
            }
        };
        for key in ["task", "states", "counters"] {
            let whole: Value = serde_json::from_str(header["__metadata__"][key].as_str().unwrap()).unwrap();
            let mut places = Vec::new();
            numbers(&whole, &mut Vec::new(), &mut places);
            for (place, number) in places.iter().flat_map(|place| extremes().into_iter().map(move |n| (place, n))) {
                attempt(key, replaced(&whole, place, &number).to_string(), format!("{place:?} = {number}"));
            }
        }
        let text = header["__metadata__"]["experiment"].as_str().unwrap().to_owned();
        for (line, stated) in text.lines().enumerate() {
            let Some((setting, _)) = stated.split_once(" = ").filter(|(_, value)| value.parse::<f64>().is_ok()) else {
                continue;
            };
            for number in extremes() {
                let edited: Vec<String> = text
                    .lines()
                    .enumerate()
                    .map(
                        |(place, stated)| {
                            if place == line { format!("{setting} = {number}") } else { stated.to_owned() }
                        },
                    )
                    .collect();
                attempt("experiment", edited.join("\n"), format!("{setting} = {number}"));
            }
        }
    }
    assert!(broken.is_empty(), "{} edits broke: {broken:#?}", broken.len());
}

#[test]
fn a_model_folder_notices_damage_to_either_of_its_files() {
    let folder = Folder::new("model");
    let path = folder.at("model");
    let imported = ModelFolder::read(&old("models/cloud")).unwrap();
    imported.write(&path).unwrap();
    assert_eq!(ModelFolder::read(&path).unwrap().note, None);
    for name in [DESCRIPTION, WEIGHTS] {
        let file = path.join(name);
        let sound = std::fs::read(&file).unwrap();
        for place in (0..sound.len()).step_by(if name == WEIGHTS { 97 } else { 1 }) {
            let mut bytes = sound.clone();
            bytes[place] ^= 1 << (place % 7);
            std::fs::write(&file, &bytes).unwrap();
            let told = ModelFolder::read(&path).map(|_| ()).expect_err(&format!("{name}: byte {place}")).to_string();
            assert!(told.contains(name) && !told.contains('\n'), "{name}, byte {place}: {told}");
        }
        std::fs::write(&file, sound).unwrap();
    }
}

#[test]
fn a_damaged_record_of_the_environment_is_named_instead_of_the_data() {
    let folder = Folder::new("environment");
    let path = folder.at("run");
    copy(&old("runs/darcy"), &path);
    copy(&old("data/darcy"), &folder.at("data"));
    let request = ResumeRequest {
        run: path.clone(),
        data: Some(folder.at("data")),
        device: None,
        saving: Duration::MAX,
        together: 1,
    };
    resume(&request, &Session::default()).unwrap();
    let file = path.join(run::ENVIRONMENT);
    let sound = std::fs::read_to_string(&file).unwrap();
    let hash = sound.find("\"pressure\": \"").unwrap() + 13;
    let mut damaged = sound.into_bytes();
    damaged[hash] = if damaged[hash] == b'0' { b'1' } else { b'0' };
    std::fs::write(&file, damaged).unwrap();
    let told = resume(&request, &Session::default()).unwrap_err().to_string();
    assert!(told.contains("environment.json is damaged") || told.contains("environment.json: is damaged"), "{told}");
}
