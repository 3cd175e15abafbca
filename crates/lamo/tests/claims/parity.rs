//! Models, mixers, scans, losses and schedules equal the authors' code, number for number.

use lamo::parity;
use std::path::Path;

#[test]
fn every_fixture_passes_parity_in_f32_and_f64() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
    let mut checked = 0;
    for path in parity::find(Path::new(folder)).unwrap() {
        let outcome = parity::check(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.passed(), "{}: {:#?}", outcome.fixture, outcome.measures);
        checked += usize::from(outcome.skipped.is_none());
    }
    // 9 models, 6 mixers, 6 scans, 3 optimisers, 4 schedules and the loss; the other fixtures have claims of their own.
    assert_eq!(checked, 29, "a fixture was skipped that parity should know");
}
