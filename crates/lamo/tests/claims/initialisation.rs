//! First values are drawn as the official classes draw them: the same distributions, not the same numbers.

use lamo::experiment::Experiment;
use lamo::network::Parameters;
use lamo::network::models::{self, Settings};
use lamo_tensor::Graph;
use std::collections::BTreeMap;

/// `blocks.3.mlp` → `blocks.*.mlp`: blocks are pooled.
fn pooled(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let is_block = |position: usize| position == 1 && parts[0].starts_with("block");
    let star = |(position, part): (usize, &&str)| if is_block(position) { "*".to_owned() } else { (*part).to_owned() };
    parts.iter().enumerate().map(star).collect::<Vec<_>>().join(".")
}

/// All values of three seeds by pooled name.
fn draws(experiment: &Experiment) -> BTreeMap<String, Vec<f64>> {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let task = experiment.benchmark().unwrap().task();
    models::find("lamo").unwrap().build(&parameters, &task, &experiment.model.settings).unwrap();
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for seed in 0..3 {
        let theta = parameters.draw(seed);
        for section in graph.sections() {
            let pool = values.entry(pooled(&section.name)).or_default();
            pool.extend(theta[section.range()].iter().map(|&value| f64::from(value)));
        }
    }
    values
}

#[test]
fn first_values_have_the_distributions_of_the_official_classes() {
    let path = std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/../../fixtures/init_stats.json";
    let statistics: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for (key, name, changes) in [
        ("darcy", "darcy-lamo", ""),
        ("elas", "elasticity-lamo", ""),
        ("plas", "plasticity-lamo", ""),
        ("airfoil", "airfoil-lamo", ""),
        ("irregular_unshared", "elasticity-lamo", "encoder = \"own\"\nexpand = 1"),
    ] {
        let mut experiment = Experiment::shipped(name).unwrap();
        experiment.model.settings.extend(changes.parse::<Settings>().unwrap());
        let ours = draws(&experiment);
        let theirs = statistics[key].as_object().unwrap();
        for (parameter, expected) in theirs {
            let values = ours.get(parameter).unwrap_or_else(|| panic!("{key}: no parameter {parameter}"));
            check(&format!("{key}: {parameter}"), values, expected);
        }
        assert_eq!(ours.len(), theirs.len(), "{key}: as many parameters");
    }
}

/// Mean and deviation of both samples agree within six standard errors; a constant agrees exactly.
fn check(name: &str, values: &[f64], expected: &serde_json::Value) {
    let number = |key: &str| expected[key].as_f64().unwrap();
    let (mean, deviation, lowest, highest) = (number("mean"), number("std"), number("min"), number("max"));
    if lowest == highest {
        return assert!(values.iter().all(|&value| value == mean), "{name} is {} and not {mean}", values[0]);
    }
    let count = values.len() as f64;
    let (our_count, their_count) = (count, number("count"));
    let own_mean = values.iter().sum::<f64>() / count;
    let own_deviation = (values.iter().map(|v| (v - own_mean).powi(2)).sum::<f64>() / count).sqrt();
    let standard_error = deviation * (1.0 / our_count + 1.0 / their_count).sqrt();
    assert!((own_mean - mean).abs() <= 6.0 * standard_error, "{name}: mean {own_mean} against {mean}");
    // The deviation of a sample deviation is at most σ/√(2n) for the normal and all flatter distributions.
    let error = own_deviation / deviation - 1.0;
    let allowed = 6.0 * (0.5 / our_count + 0.5 / their_count).sqrt();
    assert!(error.abs() <= allowed, "{name}: deviation {own_deviation} against {deviation}, allowed {allowed:.3}");
    // A uniform sample fills its range; a normal one has no bounds to compare.
    let own_highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let is_uniform = (highest - lowest) / deviation < 3.6 && count > 100.0;
    if is_uniform {
        assert!((own_highest - highest).abs() <= 0.1 * (highest - lowest), "{name}: up to {own_highest}, {highest}");
    }
}
