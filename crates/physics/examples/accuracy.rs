//! Prints the error of the last snapshot for several tolerances, relative to a run with a much smaller tolerance:
//! `cargo run --release -p lamo-physics --example accuracy -- PROBLEM INDEX REFERENCE TOLERANCE…`

use std::time::Instant;

use lamo_physics::problems;

/// The last snapshot of sample `index`.
fn last_snapshot(name: &str, index: u64, tolerance: &str) -> Result<Vec<f64>, lamo_physics::Error> {
    let problem = problems::find(name)?.problem(&[format!("tolerance={tolerance}")])?;
    let mut sample = problem.sample(0, index)?;
    let snapshots = sample.fields.remove(1).values;
    Ok(snapshots[snapshots.len() - problem.grid().points()..].to_vec())
}

#[allow(clippy::print_stdout)] // an example is a program
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, index, reference, tolerances @ ..] = arguments.as_slice() else {
        return Err("expected PROBLEM INDEX REFERENCE TOLERANCE…".into());
    };
    let index = index.parse()?;
    let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    let wanted = last_snapshot(name, index, reference)?;
    for tolerance in tolerances {
        let start = Instant::now();
        let found = last_snapshot(name, index, tolerance)?;
        let error: Vec<f64> = found.iter().zip(&wanted).map(|(a, b)| a - b).collect();
        let seconds = start.elapsed().as_secs_f64();
        println!("tolerance {tolerance}: relative error {:.2e}, {seconds:.2} s", norm(&error) / norm(&wanted));
    }
    Ok(())
}
