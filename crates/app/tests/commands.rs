//! What the `lamo` command claims: exit codes, one sentence on standard error, nothing written when something is wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A model fixture of the repository that is small and has every kind of tensor.
const FIXTURE: &str = "irregular_unshared_tiny";

const DESCRIPTION: &str = r#"
[model]
name = "lamo"

[model.settings]
latent = "slices"
encoder = "own"
tokens = 6
slice_heads = 2
mixer = "hydra"
directions = 2
width = 16
depth = 2
mlp_ratio = 2
states = 6
expand = 1
head_width = 8
groups = 2

[task]
space = 2
outputs = 2
grid = { kind = "cloud", points = 37 }
"#;

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn lamo(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lamo")).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one sentence of a failed job.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "a failed job exits with 1: {text}");
    assert_eq!(text.lines().count(), 1, "one sentence: {text}");
    text
}

/// An empty folder of this test alone, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("lamo-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A safetensors file taken apart: its header in the order written, and the bytes of each tensor.
fn take_apart(bytes: &[u8]) -> (serde_json::Value, BTreeMap<String, Vec<u8>>) {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let data = &bytes[8 + length..];
    let mut tensors = BTreeMap::new();
    for (name, entry) in header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__") {
        let offset = |index: usize| entry["data_offsets"][index].as_u64().unwrap() as usize;
        tensors.insert(name.clone(), data[offset(0)..offset(1)].to_vec());
    }
    (header, tensors)
}

/// The inverse: tensors end to end in alphabetical order, in the shapes and types of `header`.
fn put_together(header: &serde_json::Value, tensors: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let (mut entries, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, bytes) in tensors {
        let mut entry = header[name].clone();
        entry["data_offsets"] = serde_json::json!([data.len(), data.len() + bytes.len()]);
        data.extend(bytes);
        entries.insert(name.clone(), entry);
    }
    let header = serde_json::Value::Object(entries).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

fn import(folder: &Folder, weights: &Path, description: &str) -> Output {
    let config = folder.file("config.toml", description.as_bytes());
    let model = folder.0.join("model");
    lamo(&["import".as_ref(), weights, "--config".as_ref(), &config, "--out".as_ref(), &model])
}

#[test]
fn weights_come_back_bit_for_bit_under_their_names() {
    let folder = Folder::new("round-trip");
    let original = std::fs::read(fixtures().join(FIXTURE).join("params.safetensors")).unwrap();
    let (header, mut tensors) = take_apart(&original);
    let odd = [(-0.0f32).to_bits(), 1, f32::MAX.to_bits()];
    let bytes: Vec<u8> = odd.iter().flat_map(|bits| bits.to_le_bytes()).collect();
    tensors.get_mut("preprocess.linear_pre.0.weight").unwrap()[..bytes.len()].copy_from_slice(&bytes);
    let weights = folder.file("weights.safetensors", &put_together(&header, &tensors));

    let output = import(&folder, &weights, DESCRIPTION);
    assert!(output.status.success(), "{output:?}");
    let (model, exported) = (folder.0.join("model"), folder.0.join("exported.safetensors"));
    let output = lamo(&["export-weights".as_ref(), &model, "--out".as_ref(), &exported]);
    assert!(output.status.success(), "{output:?}");
    let exported = std::fs::read(exported).unwrap();
    let (found_header, found) = take_apart(&exported);
    assert!(found == tensors, "some tensor changed");
    assert!(found.keys().all(|name| found_header[name]["shape"] == header[name]["shape"]), "some shape changed");
    assert_eq!(folder.names(), ["config.toml", "exported.safetensors", "model", "weights.safetensors"]);
    assert_eq!(exported, std::fs::read(model.join("weights.safetensors")).unwrap());
}

#[test]
fn every_kind_of_wrong_weights_gives_one_sentence_and_writes_nothing() {
    let original = std::fs::read(fixtures().join(FIXTURE).join("params.safetensors")).unwrap();
    let (header, tensors) = take_apart(&original);
    let bias = "blocks.0.Attn.to_out.0.bias";
    let mut without = tensors.clone();
    without.remove(bias);
    let (mut long_header, mut longer) = (header.clone(), tensors.clone());
    longer.insert("surplus".to_owned(), vec![0; 4]);
    long_header["surplus"] = serde_json::json!({"dtype": "F32", "shape": [1]});
    let mut flat = header.clone();
    flat[bias]["shape"] = serde_json::json!([4, 4]);
    let mut whole_numbers = header.clone();
    whole_numbers[bias]["dtype"] = serde_json::json!("I32");
    let none = put_together(&header, &BTreeMap::new());
    let mut broken = tensors.clone();
    broken.get_mut(bias).unwrap()[..4].copy_from_slice(&f32::NAN.to_le_bytes());

    let cases: [(&str, Vec<u8>, &[&str]); 9] = [
        ("missing", put_together(&header, &without), &["lacks", bias]),
        ("extra", put_together(&long_header, &longer), &["in excess", "surplus"]),
        ("misshapen", put_together(&flat, &tensors), &[bias, "[4, 4]", "[16]"]),
        ("another type", put_together(&whole_numbers, &tensors), &[bias, "I32"]),
        ("all missing", none, &["lacks", "and ", " more"]),
        ("no numbers", put_together(&header, &broken), &["NaN or infinity in", bias]),
        ("cut short", original[..original.len() - 3].to_vec(), &["cut short"]),
        ("cut in the header", original[..100].to_vec(), &["cut short", "header"]),
        ("text", b"these are no weights at all".to_vec(), &["no safetensors file"]),
    ];
    for (case, bytes, words) in cases {
        let folder = Folder::new(&format!("wrong-{}", case.replace(' ', "-")));
        let weights = folder.file("weights.safetensors", &bytes);
        let sentence = complaint(&import(&folder, &weights, DESCRIPTION));
        for word in words.iter().chain(&["weights.safetensors"]) {
            assert!(sentence.contains(word), "{case}: {word:?} is not in {sentence}");
        }
        assert_eq!(folder.names(), ["config.toml", "weights.safetensors"], "{case} wrote something");
    }
}

#[test]
fn wrong_paths_and_descriptions_give_one_sentence_and_write_nothing() {
    let folder = Folder::new("descriptions");
    let weights = fixtures().join(FIXTURE).join("params.safetensors");
    let cases = [
        (DESCRIPTION.replace("width = 16", "wdith = 16"), "wdith"),
        (DESCRIPTION.replace("outputs = 2", "outputs = 0"), "without points"),
        (DESCRIPTION.replace("points = 37", "rows = 3"), "rows"),
        (DESCRIPTION.replace("\"lamo\"", "\"lama\""), "lama"),
        (DESCRIPTION.replace("[task]", "[task"), "line"),
        (DESCRIPTION.replace("width = 16", "width = 18"), "lamo"),
    ];
    for (description, word) in &cases {
        let sentence = complaint(&import(&folder, &weights, description));
        assert!(sentence.contains(word), "{word:?} is not in {sentence}");
    }
    let absent = folder.0.join("absent");
    assert!(complaint(&import(&folder, &absent, DESCRIPTION)).contains("absent"));
    let sentence =
        complaint(&lamo(&["export-weights".as_ref(), &absent, "--out".as_ref(), &folder.0.join("file.safetensors")]));
    assert!(sentence.contains("model.toml"), "{sentence}");
    assert_eq!(folder.names(), ["config.toml"]);
}

#[test]
fn a_model_folder_that_exists_is_kept_and_an_unreachable_one_is_refused() {
    let folder = Folder::new("occupied");
    let weights = fixtures().join(FIXTURE).join("params.safetensors");
    assert!(import(&folder, &weights, DESCRIPTION).status.success());
    assert!(complaint(&import(&folder, &weights, DESCRIPTION)).contains("exists already"));
    let (model, beyond) = (folder.0.join("model"), folder.0.join("no/such/folder/file"));
    assert!(complaint(&lamo(&["export-weights".as_ref(), &model, "--out".as_ref(), &beyond])).contains("no/such"));
    assert!(complaint(&lamo(&["export-weights".as_ref(), &model, "--out".as_ref(), &model])).contains("model"));
    assert_eq!(folder.names(), ["config.toml", "model"]);
}

#[test]
fn half_precision_and_double_precision_weights_become_the_nearest_float32() {
    let folder = Folder::new("types");
    let graph = lamo_tensor::Graph::new();
    for name in ["double", "half", "brain"] {
        graph.parameter(name, [3]);
    }
    let half: [u16; 3] = [0x3c01, 0x8001, 0x7bff]; // 1 + 2⁻¹⁰, −2⁻²⁴, 65504
    let brain: [u16; 3] = [0x3f81, 0x8000, 0xff80]; // 1 + 2⁻⁷, −0, −∞
    let short = |words: [u16; 3]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let header = serde_json::json!({
        "double": {"dtype": "F64", "shape": [3]}, "half": {"dtype": "F16", "shape": [3]},
        "brain": {"dtype": "BF16", "shape": [3]},
    });
    let mut tensors: BTreeMap<_, _> = [("half".to_owned(), short(half)), ("brain".to_owned(), short(brain))].into();
    let mut file = |values: [f64; 3]| {
        tensors.insert("double".to_owned(), values.iter().flat_map(|value| value.to_le_bytes()).collect());
        folder.file("weights.safetensors", &put_together(&header, &tensors))
    };
    let found = lamo::run::weights::read(&file([0.1, -2.0, 0.0]), &graph.sections()).unwrap();
    let tiny = -(2f32.powi(-24));
    assert_eq!(found[..8], [0.1f32, -2.0, 0.0, 1.0 + 2f32.powi(-10), tiny, 65504.0, 1.0 + 2f32.powi(-7), 0.0]);
    assert!(found[7].is_sign_negative() && found[8] == f32::NEG_INFINITY);
    let error = lamo::run::weights::read(&file([0.1, 1e300, 0.0]), &graph.sections()).unwrap_err().to_string();
    assert!(error.contains("too large for float32"), "{error}");
}

#[test]
fn written_weights_keep_the_order_of_the_model_and_their_metadata() {
    let folder = Folder::new("order");
    let graph = lamo_tensor::Graph::new();
    graph.parameter("z \"quoted\"", [2]);
    graph.parameter("a", [1]);
    let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
    let path = folder.0.join("weights.safetensors");
    lamo::run::weights::write(&path, &graph.sections(), &[1.0, 2.0, 3.0], &metadata).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let (header, _) = take_apart(&bytes);
    assert_eq!(header["__metadata__"]["format"], "pt");
    assert_eq!(header["z \"quoted\""]["data_offsets"], serde_json::json!([0, 8]));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(text.find("quoted") < text.find("\"a\""), "{text}");
    assert_eq!(lamo::run::weights::read(&path, &graph.sections()).unwrap(), [1.0, 2.0, 3.0]);
    assert_eq!(folder.names(), ["weights.safetensors"]);
}

#[test]
fn parity_holds_for_models_and_operators_and_skips_what_it_does_not_know() {
    let operators = fixtures().join("ops");
    let paths = [fixtures().join(FIXTURE), operators.join("mixer_ss2d_a.json"), operators.join("cross_scan.json")];
    let output = lamo(&["parity".as_ref(), &paths[0], &paths[1], &paths[2]]);
    let lines = said(&output);
    assert!(output.status.success(), "{output:?}");
    let endings = ["  pass", "  pass", "  skip: not a fixture parity knows"];
    assert!(lines.lines().zip(endings).all(|(line, ending)| line.ends_with(ending)), "{lines}");

    let output = lamo(&["parity".as_ref(), &paths[0], "--json".as_ref()]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["passed"], true);
    let subjects: Vec<_> =
        report["fixtures"][0]["measures"].as_array().unwrap().iter().map(|m| &m["subject"]).collect();
    assert_eq!(subjects, ["output", "loss", "gradient", "double"]);
}

/// A copy of the fixture with one of its files changed.
fn tampered(folder: &Folder, file: &str, change: impl Fn(Vec<u8>) -> Option<Vec<u8>>) -> PathBuf {
    let copy = folder.0.join("fixture");
    std::fs::create_dir_all(&copy).unwrap();
    for name in ["config.json", "params.safetensors", "io.safetensors"] {
        let bytes = std::fs::read(fixtures().join(FIXTURE).join(name)).unwrap();
        let bytes = if name == file { change(bytes) } else { Some(bytes) };
        match bytes {
            Some(bytes) => std::fs::write(copy.join(name), bytes).unwrap(),
            None => drop(std::fs::remove_file(copy.join(name))),
        }
    }
    copy
}

#[test]
fn parity_on_a_broken_fixture_gives_a_sentence() {
    let folder = Folder::new("broken");
    let replaced = |from: &'static str, to: &'static str| {
        move |bytes: Vec<u8>| Some(String::from_utf8(bytes).unwrap().replace(from, to).into_bytes())
    };
    let without = |name: &'static str| {
        move |bytes: Vec<u8>| {
            let (header, mut tensors) = take_apart(&bytes);
            tensors.remove(name).unwrap();
            Some(put_together(&header, &tensors))
        }
    };
    type Change = Box<dyn Fn(Vec<u8>) -> Option<Vec<u8>>>;
    let cases: [(&str, Change, &str); 9] = [
        ("config.json", Box::new(|_| None), "config.json"),
        ("config.json", Box::new(replaced("irregular_unshared", "regular_unshared")), "regular_unshared"),
        ("config.json", Box::new(replaced("n_hidden", "n_hide")), "n_hidden"),
        ("config.json", Box::new(replaced("{", "")), "config.json"),
        ("params.safetensors", Box::new(|_| None), "params.safetensors"),
        ("params.safetensors", Box::new(without("blocks.0.ln_1.bias")), "lacks blocks.0.ln_1.bias"),
        ("io.safetensors", Box::new(|bytes| Some(bytes[..bytes.len() / 2].to_vec())), "cut short"),
        ("io.safetensors", Box::new(without("target")), "target"),
        ("io.safetensors", Box::new(without("grad.param.blocks.0.ln_1.bias")), "grad.param.blocks.0.ln_1.bias"),
    ];
    for (file, change, word) in cases {
        let sentence = complaint(&lamo(&["parity".as_ref(), &tampered(&folder, file, change)]));
        assert!(sentence.contains(word), "{file}: {word:?} is not in {sentence}");
    }
    assert!(complaint(&lamo(&["parity".as_ref(), &folder.0.join("absent")])).contains("absent"));
}

#[test]
fn parity_fails_beyond_its_tolerance_and_says_where() {
    let folder = Folder::new("beyond");
    for (key, subject) in
        [("out_f64", "output"), ("loss", "loss"), ("grad.param.placeholder", "gradient"), ("grad.in.x", "gradient")]
    {
        let copy = tampered(&folder, "io.safetensors", |bytes| {
            let (header, mut tensors) = take_apart(&bytes);
            let last = tensors[key].len() - 1;
            tensors.get_mut(key).unwrap()[last] ^= 0x80; // the sign of the last element
            Some(put_together(&header, &tensors))
        });
        let output = lamo(&["parity".as_ref(), &copy]);
        assert!(complaint(&output).contains("1 of 1 fixtures fail: fixture"), "{key}: {output:?}");
        let line = said(&output);
        assert!(line.trim_end().ends_with("FAIL"), "{key}: {line}");
        let found = line.split("  ").find(|part| part.trim().starts_with(subject)).unwrap_or_default();
        assert!(found.contains(" > "), "{key}: {line}");
    }
}

#[test]
fn the_list_names_every_model_and_wrong_usage_exits_with_2() {
    let output = lamo(&["list".as_ref()]);
    assert!(lamo::network::models::MODELS.iter().all(|row| said(&output).contains(row.summary)), "{output:?}");
    let output = lamo(&["list".as_ref(), "--json".as_ref()]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["models"].as_array().unwrap().len(), lamo::network::models::MODELS.len());
    for arguments in [&["parity"][..], &["import", "file"], &["export-weights"], &["lits"], &["list", "--jsno"]] {
        let arguments: Vec<&Path> = arguments.iter().map(Path::new).collect();
        assert_eq!(lamo(&arguments).status.code(), Some(2), "{arguments:?}");
    }
}
