//! `lamo bench step --ragged`: what a point costs in training where samples have different numbers of points, compared with
//! the same number of points in samples of equal size. Both trainings run in turns in one process.

use super::step::{Step, wave};
use super::{median, refuse};
use crate::commands::say;
use anyhow::Result;
use lamo::data::Samples;
use lamo::experiment::Experiment;
use lamo::task::Task;
use lamo::training::StepProgram;
use lamo_geometry::Grid;
use lamo_tensor::Device;
use serde::Serialize;
use std::time::Instant;

/// Full batches of an epoch.
const BATCHES: usize = 32;
/// Rounds of both trainings after one that does not count.
const ROUNDS: usize = 5;

#[derive(Serialize)]
struct Report {
    experiment: String,
    device: String,
    precision: String,
    batch: usize,
    samples: usize,
    /// Points of the smallest and of the largest sample.
    points: [usize; 2],
    /// Programs of the ragged training.
    buckets: usize,
    /// Points that the programs of an epoch compute over those of the samples.
    padded: f64,
    /// Time of an epoch over the points of its samples, in nanoseconds.
    ragged_nanoseconds: f64,
    equal_nanoseconds: f64,
    /// Cost of a point over that at equal size.
    ratio: f64,
}

/// Sizes around `points`, evenly spread from (1 − spread) to (1 + spread) times it, in an order without pattern.
fn sizes(points: usize, spread: f64, count: usize) -> Vec<usize> {
    let size = |sample: usize| {
        let place = (sample * 7919 % count) as f64 / (count - 1).max(1) as f64;
        (points as f64 * (1.0 + spread * (2.0 * place - 1.0))).round().max(2.0) as usize
    };
    (0..count).map(size).collect()
}

fn samples(task: &Task, sizes: &[usize]) -> Result<Samples> {
    let total: usize = sizes.iter().sum();
    let (space, functions, outputs) = (task.space, task.input_channels(), task.output_channels());
    let positions = (space, wave(total * space));
    let inputs = (functions, wave(total * functions));
    Ok(Samples::ragged(sizes, positions, inputs, (outputs, wave(total * outputs)))?)
}

/// One epoch of a training; seconds.
fn epoch(step: &mut StepProgram) -> Result<f64> {
    let start = Instant::now();
    for number in 0..step.epoch_steps() {
        step.run(number)?;
    }
    step.program().try_synchronise()?;
    Ok(start.elapsed().as_secs_f64())
}

pub(super) fn run(options: &Step, experiment: &Experiment, spread: f64) -> Result<()> {
    refuse(!(0.0..1.0).contains(&spread), "--ragged", "a number from 0 to below 1", &spread.to_string())?;
    let plain = experiment.benchmark()?.task();
    let steady = !plain.time.is_series();
    refuse(!steady, "--ragged", "a benchmark without time", &experiment.benchmark)?;
    let (batch, points) = (experiment.train.batch, plain.grid.points());
    let task = plain.on(Grid::Cloud { points });
    let count = BATCHES * batch;
    let trainings = [spread, 0.0].map(|spread| -> Result<(StepProgram, Samples)> {
        let samples = samples(&task, &sizes(points, spread, count))?;
        let task = experiment.task(&samples)?;
        let mut step = StepProgram::new(experiment, &task, &samples, options.device)?;
        epoch(&mut step)?; // compiles the programs and records them
        Ok((step, samples))
    });
    let [ragged, equal] = trainings;
    let [(mut ragged, uneven), (mut equal, even)] = [ragged?, equal?];
    let [mut one, mut other] = [Vec::new(), Vec::new()];
    for _ in 0..options.repeat.unwrap_or(ROUNDS) {
        one.push(epoch(&mut ragged)?);
        other.push(epoch(&mut equal)?);
    }
    let of_point = |seconds: Vec<f64>, samples: &Samples| 1e9 * median(seconds) / samples.total_points() as f64;
    let (ragged_nanoseconds, equal_nanoseconds) = (of_point(one, &uneven), of_point(other, &even));
    let sizes = uneven.sizes();
    let report = Report {
        experiment: format!("{}-{}", experiment.benchmark, experiment.model.name),
        device: options.device.to_string(),
        precision: if options.device == Device::Cpu { "f32".to_owned() } else { options.precision.to_string() },
        batch,
        samples: count,
        points: [sizes.iter().min(), sizes.iter().max()].map(|size| size.copied().unwrap_or(0)),
        buckets: ragged.programs(),
        padded: ragged.padded_points() as f64 / uneven.total_points() as f64,
        ragged_nanoseconds,
        equal_nanoseconds,
        ratio: ragged_nanoseconds / equal_nanoseconds,
    };
    if options.json {
        return say(&serde_json::to_string_pretty(&report)?);
    }
    let Report { points: [least, most], buckets, padded, ratio, .. } = report;
    say(&format!("{}, training step, batch {batch}, {} samples, {}", report.experiment, count, report.device))?;
    say(&format!("  points      {least} to {most}, in {buckets} programs that compute {padded:.3}x the points"))?;
    say(&format!(
        "  cost        {ragged_nanoseconds:.2} ns per point and epoch, {ratio:.3}x that of samples of equal size"
    ))
}
