//! Trains on arrays in memory: here 600 waves, and how they have spread a moment later.
//!
//! `cargo run --release -p lamo --example own_data`
#![allow(clippy::print_stdout)]

use lamo::{Device, Grid, Preset, Request, Samples, Trainer};
use std::f32::consts::TAU;
use std::ops::ControlFlow;
use std::time::Duration;

/// Heat on a torus: every wave of the input decays by e^(−|k|² / 10). Values are `[samples, points]`.
fn waves(samples: std::ops::Range<usize>, side: usize) -> (Vec<f32>, Vec<f32>) {
    let modes = [(1, 0), (0, 1), (1, 1), (2, 1), (1, 3)];
    let value = |sample: usize, point: usize, decays: bool| -> f32 {
        let (x, y) = ((point / side) as f32 / side as f32, (point % side) as f32 / side as f32);
        let wave = |(k, l): &(i32, i32)| {
            let phase = (sample * (7 + 3 * *k as usize + 5 * *l as usize)) as f32 * 0.618; // as good as random
            let decay = if decays { (-0.1 * (k * k + l * l) as f32).exp() } else { 1.0 };
            decay * (TAU * (*k as f32 * x + *l as f32 * y) + phase).sin()
        };
        1.0 + modes.iter().map(wave).sum::<f32>()
    };
    let field = |decays| samples.clone().flat_map(|k| (0..side * side).map(move |n| value(k, n, decays))).collect();
    (field(false), field(true))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let side = 16;
    let grid = Grid::Plane { rows: side, columns: side };
    let samples = |range| {
        let (inputs, targets) = waves(range, side);
        Samples::new(grid, 1, inputs, 1, targets)
    };
    let (train, test) = (samples(0..500)?, samples(500..600)?);

    let changes = ["train.epochs=12".to_owned()]; // any key of an experiment file
    let experiment = Request { preset: Some(Preset::Quick), changes: &changes, ..Request::default() }.resolve()?;
    let task = experiment.task(&train)?;
    let mut trainer = Trainer::new(&experiment, &task, &train, &test, Device::Cpu)?;
    trainer.run(None, Duration::MAX, &mut |progress| {
        if let Some(line) = progress.finished {
            println!("epoch {:2}  train {:.4}  test {:.4}", line.epoch, line.train, line.test.unwrap_or(f64::NAN));
        }
        ControlFlow::Continue(())
    })?;

    trainer.checkpoint()?.write(&std::env::temp_dir().join("own.safetensors"))?; // all that a prediction needs
    let operator = trainer.trained()?.operator;
    let prediction = operator.predict(&test, Device::Cpu)?; // [samples, times, points, outputs]
    let errors = test.errors(&prediction);
    println!("worst of {} test samples: {:.4}", errors.len(), errors.iter().copied().fold(0.0, f64::max));
    Ok(())
}
