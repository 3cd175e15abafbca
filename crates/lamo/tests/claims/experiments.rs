//! Shipped experiments are what they say.

use lamo::experiment::{EXPERIMENTS, Experiment};
use lamo::models;

#[test]
fn every_shipped_experiment_builds_with_the_parameter_count_of_the_official_classes() {
    for (name, expected) in [
        ("darcy-lamo", 1_145_986),
        ("navier-stokes-lamo", 10_061_314),
        ("elasticity-lamo", 1_953_577),
        ("plasticity-lamo", 3_791_044),
        ("airfoil-lamo", 1_144_825),
        ("pipe-lamo", 4_020_545),
        ("navier-stokes-lamo-paper", 3_130_114),
        ("elasticity-lamo-paper", 1_954_597),
        ("airfoil-lamo-paper", 2_215_721),
        ("pipe-lamo-paper", 4_028_705),
        ("darcy-transolver", 2_826_945),
        ("navier-stokes-transolver", 11_232_321),
        ("elasticity-transolver", 713_665),
        ("plasticity-transolver", 2_844_484),
        ("airfoil-transolver", 2_810_817),
        ("pipe-transolver", 3_073_985),
    ] {
        let found = Experiment::shipped(name).unwrap().parameter_count().unwrap();
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(EXPERIMENTS.len(), 16, "a shipped experiment is missing above");
}

#[test]
fn every_experiment_file_is_shipped() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(EXPERIMENTS.iter().any(|(known, _)| *known == name), "{name} has no row");
    }
}

#[test]
fn other_counts_of_the_authors_classes_agree_too() {
    for (name, changes, expected) in [
        ("darcy-lamo", "width = 128", 3_242_242),
        (
            "airfoil-lamo",
            "encoder = \"own\"\nmixer = \"mamba2\"\nhead_width = 32\ngroups = 1\nstates = 64\nexpand = 2",
            3_757_377,
        ),
        ("airfoil-lamo", "states = 64", 1_741_561),
        ("pipe-lamo", "mlp_ratio = 1", 3_757_377),
        ("elasticity-lamo", "encoder = \"own\"\nexpand = 1", 1_718_257),
    ] {
        let mut experiment = Experiment::shipped(name).unwrap();
        experiment.model.settings.extend(changes.parse::<models::Settings>().unwrap());
        assert_eq!(experiment.parameter_count().unwrap(), expected, "{name} with {changes}");
    }
}

#[test]
fn illegal_settings_are_refused_in_one_sentence_that_names_them() {
    for (name, changes, sentence) in [
        ("darcy-lamo", "colour = 3", "unknown field `colour`"),
        ("darcy-lamo", "mixer = \"fourier\"", "unknown variant `fourier`"),
        ("darcy-lamo", "directions = 3", "scans in [1, 2, 4] directions, found 3"),
        ("darcy-lamo", "padded = [84, 88]", "must cover 85 × 85"),
        ("darcy-lamo", "padded = [89, 88]", "in patches of 2"),
        ("darcy-lamo", "depth = 0", "depth must be at least 1"),
        ("darcy-lamo", "convolution = 4", "its width is odd, found 4"),
        ("elasticity-lamo", "latent = \"patches\"", "patches need a plane"),
        ("elasticity-lamo", "mixer = \"cross\"", "slices have no rows and columns"),
        ("elasticity-lamo", "slice_heads = 7", "width 128 does not divide into 7 slice heads"),
        ("elasticity-lamo", "head_width = 48", "do not divide into heads of 48"),
        ("elasticity-lamo", "directions = 4", "scans in [1, 2] directions, found 4"),
        ("plasticity-lamo", "latent = \"patches\"\nmixer = \"cross\"", "neither a time nor unified positions"),
        ("pipe-transolver", "unified_positions = 1", "at least 2 points a side"),
    ] {
        let mut experiment = Experiment::shipped(name).unwrap();
        experiment.model.settings.extend(changes.parse::<models::Settings>().unwrap());
        let refusal = experiment.parameter_count().unwrap_err().to_string();
        assert!(refusal.contains(sentence) && !refusal.contains('\n'), "{name} with {changes}: {refusal:?}");
    }
    let refusal = Experiment::parse("mine", "benchmark = \"darcy\"\nspeed = 1").unwrap_err().to_string();
    assert!(refusal.starts_with("experiment mine: unknown field `speed`"), "{refusal}");
}
