//! Models, mixers, scans, losses and schedules equal the authors' code, number for number.

use lamo::inference::parity;
use std::path::Path;

/// What parity leaves to claims of their own, and the module that opens it.
const ELSEWHERE: [(&str, &str); 13] = [
    ("cross_scan", "operators"),
    ("darcy_loss", "recipes"),
    ("depatchify", "layers"),
    ("elementwise", "operators"),
    ("embeddings", "layers"),
    ("patchify", "layers"),
    ("rmsnorm_gated", "operators"),
    ("slice_deslice_irregular", "layers"),
    ("slice_deslice_structured", "layers"),
    ("train_darcy", "recipes"),
    ("train_ns", "recipes"),
    ("train_plasticity", "recipes"),
    ("unit_transformer", "dataset"),
];

#[test]
fn every_fixture_passes_parity_in_f32_and_f64() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
    let (mut checked, mut skipped) = (0, Vec::new());
    for path in parity::find(Path::new(folder)).unwrap() {
        let outcome = parity::check(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.passed(), "{}: {:#?}", outcome.fixture, outcome.measures);
        match outcome.skipped {
            None => checked += 1,
            Some(_) => skipped.push(outcome.fixture),
        }
    }
    // 9 models, 6 mixers, 6 scans, 3 optimisers, 4 schedules and the loss.
    assert_eq!(checked, 29, "a fixture was skipped that parity should know");
    assert_eq!(skipped, ELSEWHERE.map(|(fixture, _)| fixture), "a fixture without a claim");
}

#[test]
fn every_fixture_parity_does_not_know_is_opened_by_the_module_that_is_said_to() {
    for (fixture, module) in ELSEWHERE {
        let path = format!("{}/tests/claims/{module}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(&format!("\"{fixture}\"")), "{fixture} is not named in {module}.rs");
    }
}
