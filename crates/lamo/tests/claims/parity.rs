//! Models, mixers, scans, losses and schedules equal the authors' code, number for number.

use crate::support::Folder;
use lamo::inference::parity;
use lamo::network::Activation;
use lamo::network::models::{Authored, MODELS, Translated};
use serde_json::{Value, json};
use std::path::PathBuf;

fn fixtures() -> PathBuf {
    PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/../../fixtures")
}

/// The `config.json` of all model fixtures, with their folders.
fn configs() -> Vec<(PathBuf, Value)> {
    let folders = parity::find(&fixtures()).unwrap().into_iter();
    let texts = folders.filter_map(|folder| Some((std::fs::read_to_string(folder.join("config.json")).ok()?, folder)));
    texts.map(|(text, folder)| (folder, serde_json::from_str(&text).unwrap())).collect()
}

/// The class of a `config.json` as one of our models, or the sentence that refuses it.
fn translated(config: &Value) -> Result<Translated, String> {
    let mut classes = MODELS.iter().flat_map(|row| row.translate);
    let (_, translate) = classes.find(|(class, _)| config["variant"] == *class).unwrap();
    translate(&Authored { tables: config, points: 37 }).map_err(|refusal| refusal.to_string())
}

fn config(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(fixtures().join(name).join("config.json")).unwrap()).unwrap()
}

#[test]
fn every_fixture_is_known_to_parity_and_passes_in_f32_and_f64() {
    let folder = fixtures();
    let fixtures = parity::find(&folder).unwrap();
    assert!(fixtures.len() >= 42, "{} fixtures in {} are too few to be all of them", fixtures.len(), folder.display());
    for path in fixtures {
        let outcome = parity::check(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.passed(), "{}: {:#?}", outcome.fixture, outcome.measures);
        assert!(outcome.skipped.is_none() && !outcome.measures.is_empty(), "{} is not compared", outcome.fixture);
    }
}

#[test]
fn every_class_that_a_model_translates_has_a_fixture() {
    let seen = configs();
    for (class, _) in MODELS.iter().flat_map(|row| row.translate) {
        assert!(seen.iter().any(|(_, config)| config["variant"] == *class), "{class} has no fixture");
    }
}

/// The tolerances of the fixtures' makers; no name of a folder changes them.
#[test]
fn tolerances_follow_from_the_class_and_the_grid_whatever_the_folder_is_called() {
    let folder = Folder::new("tolerances");
    for (name, other, output, gradient) in [
        ("uno_b", "resnet_z", 5e-5, 1e-3),
        ("ufno_a", "x", 5e-5, 1e-3),
        ("unet_b", "uno_z", 2e-5, 1e-3),
        ("unet_a", "lsm_b", 2e-5, 3e-4),
        ("resnet_b", "ufno_z", 2e-5, 3e-4),
    ] {
        let place = folder.at(other);
        std::fs::create_dir_all(&place).unwrap();
        for file in ["config.json", "params.safetensors", "io.safetensors"] {
            std::fs::copy(fixtures().join("baselines").join(name).join(file), place.join(file)).unwrap();
        }
        for measure in parity::check(&place).unwrap().measures {
            let allowed = match measure.subject {
                "output" | "evaluation" => output,
                "gradient" => gradient,
                "loss" | "state" => 1e-5,
                _ => 1e-7,
            };
            assert!(measure.allowed <= allowed, "{name}: {measure:?}");
            assert!(measure.allowed == allowed || allowed == 1e-7, "{name}: {measure:?}");
        }
    }
}

#[test]
fn every_class_takes_the_activations_of_the_library_and_refuses_other_names() {
    let mut classes = 0;
    for (folder, mut config) in configs() {
        if config["model"]["act"].is_null() {
            continue;
        }
        let name = folder.display();
        assert!(translated(&config).is_ok(), "{name}");
        for (act, _) in Activation::NAMED {
            config["model"]["act"] = json!(act);
            assert!(translated(&config).is_ok(), "{name}: {act}");
        }
        config["model"]["act"] = json!("leaky_relu"); // the library cannot build it
        let sentence = translated(&config).map(|_| ()).expect_err("an unknown activation");
        assert!(["act", "leaky_relu", "softplus"].iter().all(|word| sentence.contains(word)), "{name}: {sentence}");
        classes += 1;
    }
    assert!(classes > 25, "{classes} classes with an activation are too few to be all of them");
}

#[test]
fn htnet_refuses_the_classes_and_grids_that_it_does_not_have() {
    let changed = |key: &str, value: Value| {
        let mut config = config("baselines/htnet_b");
        match key {
            "class" => config["class"] = value,
            key => config["model"][key] = value,
        }
        translated(&config).map(|_| ())
    };
    assert!(changed("class", json!("hano_legacy")).is_ok() && translated(&config("baselines/htnet_a")).is_ok());
    for (key, value, words) in [
        ("class", json!("models2023"), ["models2023", "depths", "[2, 1]"]),
        ("class", json!("models2026"), ["models2026", "hano_legacy", "models2023"]),
        ("res_output", json!(11), ["res_input as 16", "res_output as 11", "one grid"]),
    ] {
        let sentence = changed(key, value).expect_err(key);
        assert!(words.iter().all(|word| sentence.contains(word)), "{key}: {sentence}");
    }
}
