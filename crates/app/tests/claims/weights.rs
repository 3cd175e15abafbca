//! `lamo import` and `lamo export-weights`: weights come back bit for bit; wrong weights give one sentence and write nothing.

use crate::support::{Folder, contains, wave_npy};
use lamo::data::state_dict;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A small fixture of the repository that has every kind of tensor.
pub(crate) const FIXTURE: &str = "irregular_unshared_tiny";

/// The model of the fixture.
pub(crate) const DESCRIPTION: &str = r#"
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

pub(crate) fn fixtures() -> PathBuf {
    PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures")
}

/// The bytes of the weights of the fixture.
pub(crate) fn weights() -> Vec<u8> {
    std::fs::read(fixtures().join(FIXTURE).join("params.safetensors")).unwrap()
}

const IMPORT: &[&str] = &["import", "weights.safetensors", "--config", "config.toml", "--out", "model"];

/// The header of a safetensors file, and the bytes of each tensor.
pub(crate) fn take_apart(bytes: &[u8]) -> (Value, BTreeMap<String, Vec<u8>>) {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let data = &bytes[8 + length..];
    let mut tensors = BTreeMap::new();
    for (name, entry) in header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__") {
        let offset = |index: usize| entry["data_offsets"][index].as_u64().unwrap() as usize;
        tensors.insert(name.clone(), data[offset(0)..offset(1)].to_vec());
    }
    (header, tensors)
}

/// The inverse: tensors in alphabetical order, in the shapes and types of `header`.
pub(crate) fn put_together(header: &Value, tensors: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let (mut entries, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, bytes) in tensors {
        let mut entry = header[name].clone();
        entry["data_offsets"] = json!([data.len(), data.len() + bytes.len()]);
        data.extend(bytes);
        entries.insert(name.clone(), entry);
    }
    let header = Value::Object(entries).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

/// A folder with weights and a description.
fn folder(test: &str, weights: &[u8], description: &str) -> Folder {
    let folder = Folder::new(test);
    folder.write("weights.safetensors", weights);
    folder.write("config.toml", description);
    folder
}

#[test]
fn weights_come_back_bit_for_bit_under_their_names() {
    let (header, mut tensors) = take_apart(&weights());
    let odd = [(-0.0f32).to_bits(), 1, f32::MAX.to_bits()];
    let bytes: Vec<u8> = odd.iter().flat_map(|bits| bits.to_le_bytes()).collect();
    tensors.get_mut("preprocess.linear_pre.0.weight").unwrap()[..bytes.len()].copy_from_slice(&bytes);
    let folder = folder("round-trip", &put_together(&header, &tensors), DESCRIPTION);
    folder.ok(IMPORT);
    folder.ok(&["export-weights", "model", "--out", "exported.safetensors"]);
    let exported = folder.read("exported.safetensors");
    let (found_header, found) = take_apart(&exported);
    assert!(found == tensors, "some tensor changed");
    assert!(found.keys().all(|name| found_header[name]["shape"] == header[name]["shape"]), "some shape changed");
    assert_eq!(folder.names(), ["config.toml", "exported.safetensors", "model", "weights.safetensors"]);
    let (_, kept) = take_apart(&folder.read("model/weights.safetensors"));
    assert!(kept == tensors, "some tensor changed in the model folder");
}

#[test]
fn wrong_weights_give_one_sentence_and_write_nothing() {
    let original = weights();
    let (header, tensors) = take_apart(&original);
    let bias = "blocks.0.Attn.to_out.0.bias";
    let mut without = tensors.clone();
    without.remove(bias);
    let (mut long_header, mut longer) = (header.clone(), tensors.clone());
    longer.insert("surplus".to_owned(), vec![0; 4]);
    long_header["surplus"] = json!({"dtype": "F32", "shape": [1]});
    let mut reshaped = header.clone();
    reshaped[bias]["shape"] = json!([4, 4]);
    let mut integers = header.clone();
    integers[bias]["dtype"] = json!("I32");
    let none = put_together(&header, &BTreeMap::new());
    let mut broken = tensors.clone();
    broken.get_mut(bias).unwrap()[..4].copy_from_slice(&f32::NAN.to_le_bytes());

    let files: [(&str, Vec<u8>, &[&str]); 9] = [
        ("missing", put_together(&header, &without), &[bias]),
        ("extra", put_together(&long_header, &longer), &["surplus"]),
        ("shape", put_together(&reshaped, &tensors), &[bias, "[4, 4]", "[16]"]),
        ("type", put_together(&integers, &tensors), &[bias, "I32"]),
        ("empty", none, &["and ", " more"]),
        ("nan", put_together(&header, &broken), &["NaN", bias]),
        ("short", original[..original.len() - 3].to_vec(), &["short"]),
        ("header", original[..100].to_vec(), &["short", "header"]),
        ("text", b"this file holds no weights".to_vec(), &["safetensors"]),
    ];
    for (name, bytes, words) in files {
        let folder = folder(&format!("weights-{name}"), &bytes, DESCRIPTION);
        let sentence = folder.fails(IMPORT);
        contains(&sentence, &[words, &["weights.safetensors"]].concat());
        assert_eq!(folder.names(), ["config.toml", "weights.safetensors"], "{name} wrote something");
    }
}

#[test]
fn wrong_paths_and_descriptions_give_one_sentence_and_write_nothing() {
    let folder = folder("descriptions", &weights(), DESCRIPTION);
    let descriptions = [
        (DESCRIPTION.replace("width = 16", "wdith = 16"), "wdith"),
        (DESCRIPTION.replace("points = 37", "points = 0"), "0"),
        (DESCRIPTION.replace("points = 37", "rows = 3"), "rows"),
        (DESCRIPTION.replace("\"lamo\"", "\"lama\""), "lama"),
        (DESCRIPTION.replace("[task]", "[task"), "line"),
        (DESCRIPTION.replace("width = 16", "width = 18"), "lamo"),
    ];
    for (description, word) in &descriptions {
        folder.write("config.toml", description);
        contains(&folder.fails(IMPORT), &[word]);
    }
    folder.write("config.toml", DESCRIPTION);
    contains(&folder.fails(&["import", "absent", "--config", "config.toml", "--out", "model"]), &["absent"]);
    contains(&folder.fails(&["export-weights", "absent", "--out", "file.safetensors"]), &["absent", "model.toml"]);
    assert_eq!(folder.names(), ["config.toml", "weights.safetensors"]);
}

#[test]
fn an_existing_model_folder_is_not_overwritten() {
    let folder = folder("occupied", &weights(), DESCRIPTION);
    folder.ok(IMPORT);
    let before = folder.read("model/weights.safetensors");
    contains(&folder.fails(IMPORT), &["model", "exists already"]);
    contains(&folder.fails(&["export-weights", "model", "--out", "no/such/folder/file.safetensors"]), &["no/such"]);
    contains(&folder.fails(&["export-weights", "model", "--out", "model"]), &["--out: model", "found no extension"]);
    assert_eq!(folder.names(), ["config.toml", "model", "weights.safetensors"]);
    assert_eq!(folder.read("model/weights.safetensors"), before);
}

#[test]
fn half_and_double_precision_weights_become_the_nearest_float32() {
    let folder = Folder::new("types");
    let graph = lamo_tensor::Graph::new();
    for name in ["double", "half", "brain"] {
        graph.parameter(name, [3]);
    }
    let half: [u16; 3] = [0x3c01, 0x8001, 0x7bff]; // 1 + 2⁻¹⁰, −2⁻²⁴, 65504
    let brain: [u16; 3] = [0x3f81, 0x8000, 0xff80]; // 1 + 2⁻⁷, −0, −∞
    let short = |words: [u16; 3]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let header = json!({
        "double": {"dtype": "F64", "shape": [3]}, "half": {"dtype": "F16", "shape": [3]},
        "brain": {"dtype": "BF16", "shape": [3]},
    });
    let mut tensors: BTreeMap<_, _> = [("half".to_owned(), short(half)), ("brain".to_owned(), short(brain))].into();
    let mut read = |values: [f64; 3]| {
        tensors.insert("double".to_owned(), values.iter().flat_map(|value| value.to_le_bytes()).collect());
        folder.write("weights.safetensors", put_together(&header, &tensors));
        state_dict::read(&folder.at("weights.safetensors"), &graph.sections())
    };
    let found = read([0.1, -2.0, 0.0]).unwrap();
    let tiny = -(2f32.powi(-24));
    assert_eq!(found[..8], [0.1f32, -2.0, 0.0, 1.0 + 2f32.powi(-10), tiny, 65504.0, 1.0 + 2f32.powi(-7), 0.0]);
    assert!(found[7].is_sign_negative() && found[8] == f32::NEG_INFINITY);
    contains(&read([0.1, 1e300, 0.0]).unwrap_err().to_string(), &["1e300", "float32"]);
}

#[test]
fn written_weights_have_the_order_of_the_model_and_their_metadata() {
    let folder = Folder::new("order");
    let graph = lamo_tensor::Graph::new();
    graph.parameter("z \"quoted\"", [2]);
    graph.parameter("a", [1]);
    let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
    let path = folder.at("weights.safetensors");
    state_dict::write(&path, &graph.sections(), &[1.0, 2.0, 3.0], &metadata).unwrap();
    let bytes = folder.read("weights.safetensors");
    let (header, _) = take_apart(&bytes);
    assert_eq!(header["__metadata__"]["format"], "pt");
    assert_eq!(header["z \"quoted\""]["data_offsets"], json!([0, 8]));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(text.find("quoted") < text.find("\"a\""), "{text}");
    assert_eq!(state_dict::read(&path, &graph.sections()).unwrap(), [1.0, 2.0, 3.0]);
    assert_eq!(folder.names(), ["weights.safetensors"]);
}

#[test]
fn weights_without_a_configuration_tell_their_model_predict_are_evaluated_and_fine_tuned() {
    let folder = folder("inferred", &weights(), DESCRIPTION);
    let text = folder.ok(&["import", "weights.safetensors", "--out=model"]);
    contains(
        &text,
        &["width = 16", "mixer = \"hydra\"", "2 coordinates", "assumed: the points are a cloud of any size"],
    );
    folder.ok(&["import", "weights.safetensors", "--config=config.toml", "--out=described"]);
    wave_npy(&folder.at("xy.npy"), &[8, 37, 2]);
    wave_npy(&folder.at("u.npy"), &[8, 37, 2]);
    for model in ["model", "described"] {
        folder.ok(&["predict", model, "--input=positions=xy.npy", &format!("--output={model}.npy")]);
    }
    assert!(folder.read("model.npy") == folder.read("described.npy"), "both are the same model");

    folder.ok(&["data", "import", "--positions=xy.npy", "--output=u=u.npy", "--grid=cloud", "--test=2", "--out=set"]);
    contains(&folder.fails(&["evaluate", "model"]), &["model", "no data of its own", "--data DIR"]);
    let errors = ["model", "described"].map(|model| {
        let receipt: Value = serde_json::from_str(&folder.ok(&["evaluate", model, "--data=set", "--json"])).unwrap();
        receipt["evaluation"]["relative_l2"].as_f64().unwrap()
    });
    assert!(errors[0] > 0.0 && errors[0].to_bits() == errors[1].to_bits(), "{errors:?}");

    let tuned = ["--init=model", "--set=train={ epochs = 1, batch = 2 }", "--threads=1", "--out=run", "--json"];
    let lines = folder.ok(&[&["train", "set"], &tuned[..]].concat());
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let init = lines.iter().find(|line| line["event"] == "init").expect("an event says what was taken");
    assert_eq!(init["transfer"]["tensors"][0], init["transfer"]["tensors"][1]);
    // Values of the set are normalised, those of the imported model are not: the error differs.
    assert!(init["error"].as_f64().is_some_and(f64::is_finite), "{init}");
}
