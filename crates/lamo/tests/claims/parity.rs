//! Models, mixers, scans, losses and schedules equal the authors' code, number for number.

use lamo::inference::parity;
use lamo::network::models::MODELS;
use std::path::Path;

#[test]
fn every_fixture_is_known_to_parity_and_passes_in_f32_and_f64() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/../../fixtures";
    let fixtures = parity::find(Path::new(&folder)).unwrap();
    assert!(fixtures.len() >= 42, "{} fixtures in {folder} are too few to be all of them", fixtures.len());
    for path in fixtures {
        let outcome = parity::check(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.passed(), "{}: {:#?}", outcome.fixture, outcome.measures);
        assert!(outcome.skipped.is_none() && !outcome.measures.is_empty(), "{} is not compared", outcome.fixture);
    }
}

#[test]
fn every_class_that_a_model_translates_has_a_fixture() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/../../fixtures";
    let fixtures = parity::find(Path::new(&folder)).unwrap();
    let configs = fixtures.iter().filter_map(|fixture| std::fs::read_to_string(fixture.join("config.json")).ok());
    let seen: Vec<serde_json::Value> = configs.map(|text| serde_json::from_str(&text).unwrap()).collect();
    for (class, _) in MODELS.iter().flat_map(|row| row.translate) {
        assert!(seen.iter().any(|config| config["variant"] == *class), "{class} has no fixture");
    }
}
