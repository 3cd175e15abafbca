//! The authors' weights tell their model: settings are read off the shapes of the tensors, and the rest is asked for.

use crate::support::Folder;
use lamo::data::Samples;
use lamo::network::models::{Authored, MODELS};
use lamo::run::model_folder::ModelFolder;
use lamo_tensor::Device;
use safetensors::{Dtype, SafeTensors};
use std::path::{Path, PathBuf};

/// Every model fixture, and what its shapes do not tell.
const FIXTURES: &[(&str, &[&str])] = &[
    ("irregular_unshared_tiny", &[]),
    ("irregular_shared_tiny", &["task.space=2"]),
    ("structured_shared_tiny", &["task.grid=9x7"]),
    ("structured_unshared_tiny", &["task.grid=8x6"]),
    ("structured_unshared_official", &["task.grid=9x7"]),
    ("regular_grid_b", &["task.grid=17x15"]),
    ("regular_grid_two_outputs", &["task.grid=5x7", "model.settings.padded=[6, 8]"]),
    ("baselines/transolver_irregular", &[]),
    ("baselines/transolver_structured", &["task.grid=9x7", "model.settings.unified_positions=4"]),
    ("baselines/fno2d", &["task.grid=9x11"]),
    ("baselines/fno_line", &["task.grid=line:21"]),
    ("baselines/fno_unified", &["task.grid=9x7", "model.settings.unified_positions=3"]),
    ("baselines/fno_modes_volume", &["task.grid=3x4x5"]),
    ("baselines/ffno_a", &["task.grid=9x21"]),
    ("baselines/ffno_b", &["model.settings.lattice=[10, 14]"]),
    ("baselines/resnet_a", &["task.grid=7x9"]),
    ("baselines/resnet_b", &["model.settings.lattice=[10, 12]"]),
    ("baselines/unet_a", &["task.grid=18x37"]),
    ("baselines/unet_b", &["model.settings.lattice=[32, 48]"]),
    ("baselines/unet_line_unified", &["task.grid=line:32", "model.settings.unified_positions=4"]),
    ("baselines/lsm_a", &["task.grid=19x37"]),
    ("baselines/lsm_b", &["model.settings.lattice=[32, 48]"]),
    ("baselines/ufno_a", &["task.grid=19x22"]),
    ("baselines/ufno_b", &["task.grid=17x19"]),
    ("baselines/uno_a", &["task.grid=18x37"]),
    ("baselines/uno_b", &["model.settings.lattice=[32, 48]"]),
    ("baselines/ono_a", &["task.grid=17x17"]),
    ("baselines/ono_b", &["task.space=2", "model.settings.heads=2"]),
    ("baselines/deeponet_a", &["task.grid=7x9", "task.space=2", "task.functions=2"]),
    ("baselines/galerkin_a", &["task.grid=9x7", "model.settings.unified_positions=4", "model.settings.heads=3"]),
    ("baselines/galerkin_b", &["task.space=2", "model.settings.heads=2"]),
    (
        "baselines/galerkin_volume_unified",
        &["task.grid=4x1x5", "model.settings.unified_positions=3", "model.settings.heads=2"],
    ),
    ("baselines/gnot_a", &["task.grid=9x7", "model.settings.heads=2"]),
    ("baselines/gnot_b", &["model.settings.heads=3"]),
    ("baselines/factformer_a", &["task.grid=9x7", "model.settings.unified_positions=4"]),
    ("baselines/factformer_b", &["task.grid=4x3x5"]),
    ("baselines/oformer_a", &["model.settings.resolution=9"]),
    ("baselines/oformer_b", &["model.settings.steps=3"]),
    ("baselines/swin_a", &["task.grid=9x10"]),
    ("baselines/swin_b", &["task.grid=8x12", "model.settings.unified_positions=3"]),
    ("baselines/swin_window", &["task.grid=8x10"]),
    ("baselines/swin_wide", &["task.grid=3x12"]),
    ("baselines/htnet_one_layer", &["task.grid=8x8", "model.settings.padding=2"]),
    (
        "baselines/htnet_stride",
        &[
            "task.grid=17x17",
            "model.settings.stride=2",
            "model.settings.patch_padding=1",
            "model.settings.padding=9",
            "model.settings.zero_border=true",
        ],
    ),
    ("baselines/htnet_a", &["task.grid=21x21", "model.settings.patch_padding=0", "model.settings.zero_border=true"]),
    ("baselines/htnet_b", &["task.grid=16x16", "model.settings.padding=3"]),
    ("baselines/deeponet_b", &["task.grid=cloud:37", "task.space=2", "task.functions=0"]),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures").join(name)
}

fn infer(weights: &Path, changes: &[&str]) -> Result<(ModelFolder, Vec<String>), String> {
    let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
    ModelFolder::infer(weights, &changes).map_err(|error| {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        error.to_string()
    })
}

fn inferred(name: &str, changes: &[&str]) -> Result<(ModelFolder, Vec<String>), String> {
    infer(&fixture(name).join("params.safetensors"), changes)
}

/// A tensor of the fixture's inputs and outputs.
fn tensor(name: &str, key: &str) -> (Vec<usize>, Vec<f64>) {
    let bytes = std::fs::read(fixture(name).join("io.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let view = file.tensor(key).unwrap();
    let values = match view.dtype() {
        Dtype::F32 => view.data().as_chunks().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect(),
        _ => view.data().as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect(),
    };
    (view.shape().to_vec(), values)
}

#[test]
fn the_settings_read_off_the_shapes_are_those_of_the_authors_class() {
    for (name, changes) in FIXTURES {
        let (found, _) = inferred(name, changes).unwrap_or_else(|sentence| panic!("{name}: {sentence}"));
        let text = std::fs::read_to_string(fixture(name).join("config.json")).unwrap();
        let tables: serde_json::Value = serde_json::from_str(&text).unwrap();
        let variant = tables["variant"].as_str().unwrap();
        let points = tensor(name, if name.contains("htnet") { "in.fx" } else { "in.x" }).0[1];
        let classes = MODELS.iter().flat_map(|row| row.translate.iter().map(move |class| (row, class)));
        let (row, (_, translate)) = classes.into_iter().find(|(_, (class, _))| *class == variant).unwrap();
        let expected = translate(&Authored { tables: &tables, points }).unwrap();
        let operator = &found.operator;
        assert_eq!((operator.model.name.as_str(), &operator.model.settings), (row.name, &expected.settings), "{name}");
        let sizes =
            |task: &lamo::Task| (task.space, task.input_channels(), task.output_channels(), task.time.is_input());
        assert_eq!(sizes(&operator.task), sizes(&expected.task), "{name}");
    }
}

/// The tolerance of parity, 2·10⁻⁵ of the largest value.
#[test]
fn weights_that_were_imported_without_any_setting_predict_what_the_authors_code_did() {
    let folder = Folder::new("inferred");
    for name in ["irregular_unshared_tiny", "baselines/transolver_irregular"] {
        let (imported, assumed) = inferred(name, &[]).unwrap();
        assert!(assumed.iter().any(|sentence| sentence.contains("a cloud of any size")), "{assumed:?}");
        let place = folder.at(&name.replace('/', "-"));
        imported.write(&place).unwrap();
        let operator = ModelFolder::read(&place).unwrap().operator;
        let ((_, positions), (shape, expected)) = (tensor(name, "in.x"), tensor(name, "out_f64"));
        let positions: Vec<f32> = positions.iter().map(|&value| value as f32).collect();
        let samples = Samples::cloud(2, (2, positions), (0, Vec::new()), (shape[2], Vec::new())).unwrap();
        let found = operator.predict(&samples, Device::Cpu).unwrap();
        let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            let error = (f64::from(*found) - expected).abs();
            assert!(error <= 2e-5 * largest, "{name}: {found} and {expected}");
        }
    }
}

#[test]
fn what_the_shapes_do_not_tell_is_asked_for_or_said() {
    let cases: [(&str, &[&str], &[&str]); 12] = [
        ("irregular_shared_tiny", &[], &["4 input channels are coordinates", "--set task.space=2"]),
        ("structured_shared_tiny", &[], &["rows and columns", "--set task.grid=ROWSxCOLUMNS"]),
        ("regular_grid_b", &[], &["rows and columns", "--set task.grid=ROWSxCOLUMNS"]),
        ("regular_grid_b", &["task.grid=64x64"], &["task.grid", "at most 80 patches"]),
        ("regular_grid_b", &["task.grid=5x5"], &["80 patches", "several paddings", "model.settings.padded"]),
        ("baselines/fno2d", &[], &["--set task.grid=ROWSxCOLUMNS"]),
        ("baselines/deeponet_b", &["task.grid=cloud:37"], &["a time", "task.space=3, or 2 with a time"]),
        ("baselines/deeponet_a", &["task.grid=7x9", "task.space=2"], &["--set task.functions=0 or 2"]),
        ("irregular_unshared_tiny", &["task.space=5"], &["task.space", "2 input channels", "found 5"]),
        ("irregular_unshared_tiny", &["task.grid=9by7"], &["task.grid", "9by7"]),
        ("irregular_unshared_tiny", &["model.settings.wdith=16"], &["wdith"]),
        ("irregular_unshared_tiny", &["train.epochs=3"], &["--set", "train"]),
    ];
    for (name, changes, words) in cases {
        let sentence = inferred(name, changes).map(|_| ()).expect_err(name);
        assert!(words.iter().all(|word| sentence.contains(word)), "{name} {changes:?}: {sentence}");
    }
    let (_, assumed) = inferred("structured_unshared_tiny", &["task.grid=8x6"]).unwrap();
    for key in ["model.settings.groups", "model.settings.discretisation"] {
        assert!(assumed.iter().any(|sentence| sentence.contains(key)), "{assumed:?}");
    }
    let states = |assumed: &[String], word: &str| assumed.iter().any(|sentence| sentence.contains(word));
    assert!(states(&assumed, "the activation is gelu (model.settings.activation)"), "{assumed:?}");
    let (_, assumed) = inferred("baselines/fno2d", &["task.grid=9x11"]).unwrap();
    assert!(states(&assumed, "model.settings.padded"), "{assumed:?}");
    let said = ["task.grid=9x11", "model.settings.activation=\"tanh\""];
    let (_, other) = inferred("baselines/fno2d", &said).unwrap();
    assert!(!states(&other, "the activation"), "{other:?}");
    assert!(assumed.iter().any(|sentence| sentence.contains("2 of the 3 input channels")), "{assumed:?}");
}

#[test]
fn other_and_damaged_weights_give_one_sentence() {
    let folder = Folder::new("other-weights");
    let path = folder.at("weights.safetensors");
    let io = std::fs::read(fixture("irregular_unshared_tiny").join("io.safetensors")).unwrap();
    let params = std::fs::read(fixture("irregular_unshared_tiny").join("params.safetensors")).unwrap();
    for (bytes, word) in [(&io[..], "other names"), (&params[..params.len() - 3], "cut short"), (b"no", "safetensors")]
    {
        std::fs::write(&path, bytes).unwrap();
        let sentence = infer(&path, &[]).map(|_| ()).expect_err(word);
        assert!(sentence.contains(word) && sentence.contains("weights.safetensors"), "{sentence}");
    }
    let sentence = inferred("irregular_unshared_tiny", &["model.name=fno"]).map(|_| ()).expect_err("another model");
    assert!(sentence.contains("names of tensors of fno"), "{sentence}");
}
