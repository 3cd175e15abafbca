//! Learns Darcy flow from scratch: makes the data with a verified solver, trains a small Latent Mamba Operator, and
//! reports the mean relative L2 error on unseen permeabilities. No files, no downloads; some minutes on two cores.
//!
//! `cargo run --release -p lamo --example darcy`
#![allow(clippy::print_stdout)]

use lamo::layers::Parameters;
use lamo::loss::{relative_l2_mean, relative_l2_with_gradient};
use lamo::models::{self, Input, Task};
use lamo::optimiser::AdamW;
use lamo::schedule::Schedule;
use lamo_physics::{Grid, problems};
use lamo_tensor::{Graph, PARAMETERS, Program};
use std::time::Instant;

const SIDE: usize = 42;
const TRAIN: usize = 1024;
const TEST: usize = 128;
const BATCH: usize = 8;
const EPOCHS: usize = 24;
const MODEL: &str = "width = 32\ndepth = 4\nmlp_ratio = 2\nstates = 16";

/// Mean and deviation of all values.
fn statistics(values: &[f32]) -> (f64, f64) {
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / values.len() as f64;
    (mean, variance.sqrt())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let points = SIDE * SIDE;
    let started = Instant::now();
    let problem = problems::find("darcy")?.problem(&[format!("resolution={SIDE}").as_str()])?;
    let (mut permeability, mut pressure) = (Vec::new(), Vec::new());
    for sample in problems::samples(problem.as_ref(), 0, 0..(TRAIN + TEST) as u64)? {
        permeability.extend(sample.fields[0].values.iter().map(|&value| value as f32));
        pressure.extend(sample.fields[1].values.iter().map(|&value| value as f32));
    }
    println!("{} samples of {SIDE} × {SIDE} in {:.1} s", TRAIN + TEST, started.elapsed().as_secs_f64());
    let (input_mean, input_deviation) = statistics(&permeability[..TRAIN * points]);
    let (mean, deviation) = statistics(&pressure[..TRAIN * points]);
    permeability.iter_mut().for_each(|a| *a = (*a - input_mean as f32) / input_deviation as f32);
    let axis = |index: usize| index as f32 / (SIDE - 1) as f32;
    let positions: Vec<f32> = (0..points).flat_map(|point| [axis(point % SIDE), axis(point / SIDE)]).collect();

    // One program for a training step, one for the error on all test samples; both share the parameters by copying.
    let compile = |batch: usize, adamw: Option<&AdamW>| -> Result<Program, models::Refusal> {
        let grid = Grid::Plane { rows: SIDE, columns: SIDE };
        let task = Task { batch, grid, space: 2, functions: 1, outputs: 1, time: false };
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let settings = MODEL.parse().map_err(|_| models::Refusal("the settings are TOML".to_owned()))?;
        let model = models::find("lamo")?.build(&parameters, &task, &settings)?;
        let field = [batch, SIDE, SIDE];
        let prediction = model.forward(&Input::declare(&graph, &task)).reshape(field) * deviation + mean;
        let target = graph.input("target", field);
        graph.output("error", relative_l2_mean(prediction, target));
        if let Some(adamw) = adamw {
            adamw.minimise(&graph, relative_l2_with_gradient(prediction, target));
        }
        let mut program = Program::compile(&graph);
        parameters.initialise(&mut program, 0);
        program.write("positions", &positions.repeat(batch));
        Ok(program)
    };
    let adamw = AdamW::default();
    let (mut train, mut test) = (compile(BATCH, Some(&adamw))?, compile(TEST, None)?);
    test.write("functions", &permeability[TRAIN * points..]);
    test.write("target", &pressure[TRAIN * points..]);
    let steps = EPOCHS * TRAIN / BATCH;
    let schedule = Schedule::OneCycle { peak: 2e-3, steps };
    let started = Instant::now();
    for step in 0..steps {
        let (functions, targets): (Vec<f32>, Vec<f32>) = (0..BATCH)
            .map(|i| (step * BATCH + i) * 2_654_435_761 % TRAIN) // a fixed shuffle: the multiplier is odd
            .flat_map(|k| (k * points..(k + 1) * points).map(|at| (permeability[at], pressure[at])))
            .unzip();
        train.write("functions", &functions);
        train.write("target", &targets);
        adamw.pace(&mut train, step, schedule.at(step));
        train.run();
        if (step + 1) % (TRAIN / BATCH) == 0 {
            test.write(PARAMETERS, train.read(PARAMETERS));
            test.run();
            let (elapsed, left) = (started.elapsed().as_secs_f64(), (steps - step - 1) as f64 / (step + 1) as f64);
            println!(
                "epoch {:2}  train {:.4}  test {:.4}  {:.0} s, {:.0} s left",
                (step + 1) * BATCH / TRAIN,
                train.read("error")[0],
                test.read("error")[0],
                elapsed,
                elapsed * left
            );
        }
    }
    Ok(())
}
