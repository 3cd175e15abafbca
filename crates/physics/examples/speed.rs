//! Prints the seconds per sample on one thread:
//! `cargo run --release -p lamo-physics --example speed -- PROBLEM SAMPLES key=value…`

use std::time::Instant;

use lamo_physics::problems;

#[allow(clippy::print_stdout)] // an example is a program
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, count, settings @ ..] = arguments.as_slice() else {
        return Err("expected PROBLEM SAMPLES key=value…".into());
    };
    let start = Instant::now();
    let problem = problems::find(name)?.problem(settings)?;
    println!("{name}: preparation {:.3} s", start.elapsed().as_secs_f64());
    for index in 0..count.parse()? {
        let start = Instant::now();
        let sample = problem.sample(0, index)?;
        let seconds = start.elapsed().as_secs_f64();
        for field in &sample.fields {
            let square: f64 = field.values.iter().map(|value| value * value).sum();
            println!("  {} root mean square {:.6e}", field.name, (square / field.values.len() as f64).sqrt());
        }
        println!("sample {index}: {seconds:.3} s");
    }
    Ok(())
}
