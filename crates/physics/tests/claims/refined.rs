//! The error of the labels: every sample against the same sample on a finer discretisation.

#![allow(clippy::print_stdout)] // the ignored test prints its measurements

use lamo_physics::problems::{FieldKind, LABELS, PROBLEMS, Role, Sample, find, label_errors};

use super::{kinds_of, mean_and_deviation, norm, problem, small};

/// Problems that cannot solve their samples finer, because they are exact.
const WITHOUT: &[&str] = &["advection-diffusion"];

/// The largest difference between two fields, relative to the largest value.
fn largest_difference(found: &[f64], wanted: &[f64]) -> f64 {
    let largest = |values: &mut dyn Iterator<Item = f64>| values.map(f64::abs).fold(0.0, f64::max);
    let gap = largest(&mut found.iter().zip(wanted).map(|(a, b)| a - b));
    if gap == 0.0 { 0.0 } else { gap / largest(&mut wanted.iter().copied()) } // water at rest is 0 everywhere
}

/// What is given to an operator agrees to round-off; what it learns does not.
#[test]
fn refined_samples_have_the_fields_inputs_and_positions_of_the_stored_ones() {
    for row in PROBLEMS {
        let problem = small(row, &[]);
        let refined = problem.refined().unwrap();
        assert_eq!(refined.is_none(), WITHOUT.contains(&row.name), "{}", row.name);
        let Some(refined) = refined else { continue };
        assert!(!refined.discretisation.is_empty());
        let (stored, fine) = (problem.sample(2, 1).unwrap(), refined.sample(2, 1).unwrap());
        assert_eq!((stored.fields.len(), stored.draws), (fine.fields.len(), fine.draws), "{}", row.name);
        for ((kind, stored), fine) in kinds_of(problem.as_ref(), 2, 1).iter().zip(&stored.fields).zip(&fine.fields) {
            assert_eq!((fine.name, &fine.shape), (kind.name, &kind.shape), "{}", row.name);
            let difference = largest_difference(&stored.values, &fine.values);
            let given = kind.role != Role::Output;
            assert!(!given || difference < 1e-12, "{} {}: inputs differ by {difference:e}", row.name, kind.name);
            assert!(given || difference > 1e-9, "{} {}: solved the same way twice", row.name, kind.name);
        }
        let again = problem.refined().unwrap().unwrap().sample(2, 1).unwrap();
        assert!(fine == again, "{}: the refined sample changes", row.name);
    }
}

/// Mean over some samples of the relative L2 difference between stored and refined fields.
fn label_error(name: &str, changes: &[&str], field: &str, samples: u64) -> f64 {
    let problem = problem(name, changes);
    let refined = problem.refined().unwrap().unwrap();
    let error = |index| {
        let [stored, fine] = [problem.sample(0, index), refined.sample(0, index)].map(Result::unwrap);
        stored.field(field).unwrap().relative_error(fine.field(field).unwrap())
    };
    (0..samples).map(error).sum::<f64>() / samples as f64
}

/// The orders are those of rough solutions: jumps of the permeability, corners of a clamp, shocks. They are far below
/// those of smooth solutions, which the claims about each problem measure; here an error must fall.
#[test]
fn label_errors_fall_with_the_resolution() {
    const CASES: [(&str, &str, [&[&str]; 2]); 4] = [
        ("darcy", "pressure", [&["resolution=24"], &["resolution=96"]]),
        (
            "navier-stokes",
            "vorticity",
            [
                &["resolution=16", "viscosity=1e-3", "frames=4"],
                &["resolution=32", "viscosity=1e-3", "frames=4", "stride=8"],
            ],
        ),
        ("elasticity", "stress", [&["around=12", "layers=1"], &["around=48", "layers=4"]]),
        (
            "airfoil",
            "mach",
            [
                &["wake_cells=8", "surface_cells=24", "normal_cells=8"],
                &["wake_cells=24", "surface_cells=72", "normal_cells=24"],
            ],
        ),
    ];
    for (name, field, [coarse, fine]) in CASES {
        let [before, after] = [coarse, fine].map(|changes| label_error(name, changes, field, 3));
        println!("{name}: {before:.2e}, then {after:.2e}");
        assert!(after < before / 1.5, "{name}: the error of the labels is {before:e}, then {after:e}");
    }
}

/// Relative L2 difference of the last snapshot.
fn last_snapshot(stored: &Sample, fine: &Sample) -> f64 {
    let [found, wanted] = [stored, fine].map(|sample| {
        let series = &sample.fields[1];
        &series.values[series.values.len() - series.shape[1] * series.shape[2]..]
    });
    let difference: Vec<f64> = found.iter().zip(wanted).map(|(a, b)| a - b).collect();
    norm(&difference) / norm(wanted)
}

/// Prints the error of the labels of a benchmark: mean ± standard error, and the largest.
fn print_label_errors(name: &str, changes: &[&str], target: &str, samples: u64) {
    let problem = problem(name, changes);
    let refined = problem.refined().unwrap().unwrap();
    let (mut errors, mut last) = (Vec::new(), Vec::new());
    for index in 0..samples {
        let [stored, fine] = [problem.sample(0, index), refined.sample(0, index)].map(Result::unwrap);
        errors.push(100.0 * stored.field(target).unwrap().relative_error(fine.field(target).unwrap()));
        if name == "navier-stokes" {
            last.push(100.0 * last_snapshot(&stored, &fine));
        }
    }
    let print = |what: &str, errors: &[f64]| {
        let (mean, deviation) = mean_and_deviation(errors);
        let most = errors.iter().copied().fold(0.0, f64::max);
        let error = deviation / (samples as f64).sqrt();
        println!("{name} {changes:?} {what}: {mean:.3} % ± {error:.3}, at most {most:.3}, {samples} samples");
    };
    print(target, &errors);
    if !last.is_empty() {
        print("last snapshot", &last);
    }
}

/// `cargo test -p lamo-physics --release --test claims -- --ignored --nocapture label_errors_of_the_pipe`
#[test]
#[ignore = "several minutes; prints measurements"]
fn label_errors_of_the_pipe() {
    print_label_errors("pipe", &["canonical=true"], "velocity_x", 6);
    print_label_errors("pipe", &[], "velocity_x", 6);
}

#[test]
fn stated_label_errors_belong_to_an_output_and_hold_for_their_settings_alone() {
    for labels in LABELS {
        let stated = problem(labels.problem, labels.changes);
        let quantity = stated.quantities().into_iter().find(|quantity| quantity.name == labels.field).unwrap();
        let is_output = |kind: &FieldKind| kind.name == quantity.field && kind.role == Role::Output;
        assert!(stated.fields().iter().any(is_output), "{labels:?}");
        assert!(label_errors(stated.as_ref()).contains(labels), "{labels:?}");
        assert!(label_errors(small(find(labels.problem).unwrap(), &[]).as_ref()).is_empty(), "{labels:?}");
    }
    let thinned = problem("darcy", &["stride=5", "canonical=true"]);
    assert_eq!(label_errors(thinned.as_ref()).len(), 1, "a stride changes no value");
}

/// `cargo test -p lamo-physics --release --test claims -- --ignored --nocapture label_errors_of_the_elliptic`
#[test]
#[ignore = "a minute; prints measurements"]
fn label_errors_of_the_elliptic_benchmarks() {
    print_label_errors("darcy", &["stride=5", "canonical=true"], "pressure", 8);
    print_label_errors("darcy", &["stride=5"], "pressure", 8);
    print_label_errors("elasticity", &[], "stress", 50);
    print_label_errors("elasticity", &["around=72", "layers=6"], "stress", 50);
}

/// `cargo test -p lamo-physics --release --test claims -- --ignored --nocapture label_errors_of_the_vorticity`
#[test]
#[ignore = "a minute; prints measurements"]
fn label_errors_of_the_vorticity() {
    print_label_errors("navier-stokes", &[], "vorticity", 4);
    print_label_errors("navier-stokes", &["resolution=128", "stride=2"], "vorticity", 4);
}

/// `cargo test -p lamo-physics --release --test claims -- --ignored --nocapture label_errors_of_the_canonical`
#[test]
#[ignore = "minutes; prints measurements"]
fn label_errors_of_the_canonical_airfoil() {
    print_label_errors("airfoil", &["canonical=true"], "mach", 4);
}

/// `cargo test -p lamo-physics --release --test claims -- --ignored --nocapture label_errors_of_the_default`
#[test]
#[ignore = "minutes; prints measurements"]
fn label_errors_of_the_default_airfoil() {
    print_label_errors("airfoil", &[], "mach", 4);
}
