//! `lamo bench points`: how time and memory of a forward pass grow with the number of points.

use super::{median, refuse};
use crate::commands::say;
use anyhow::Result;
use clap::Args;
use lamo::experiment::Request;
use lamo::network::models;
use lamo::network::{Input, Mode, Parameters};
use lamo_geometry::Grid;
use lamo_tensor::{Device, DeviceError, Graph, Precision, Program};
use serde::Serialize;
use std::time::Instant;

/// `lamo bench points`
#[derive(Args)]
pub(crate) struct Points {
    /// The model, with its settings for elasticity.
    #[arg(long, value_name = "M", default_value = "lamo")]
    model: String,
    /// Smallest number of points.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    from: usize,
    /// Largest number of points.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    to: usize,
    /// Timed runs at each size; the result is their median.
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeat: usize,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: Device,
    /// Precision of products and scans on a GPU: f32, tf32 or bf16. With bf16, scans compute in tf32.
    #[arg(long, value_name = "P", default_value = "tf32")]
    precision: Precision,
    /// Print one JSON object on standard output.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Row {
    points: usize,
    seconds: f64,
    bytes: usize,
}

#[derive(Serialize)]
struct Report {
    rows: Vec<Row>,
    /// Slopes of log time and log memory over log points.
    time_slope: f64,
    memory_slope: f64,
}

pub(super) fn run(options: &Points) -> Result<()> {
    let Points { from, to, repeat, .. } = options;
    refuse(*repeat == 0, "--repeat", "at least 1", "0")?;
    refuse(*from == 0, "--from", "at least 1 point", "0")?;
    refuse(to <= from, "--to", &format!("more points than --from {from}"), &to.to_string())?;
    let mut report = Report { rows: Vec::new(), time_slope: 0.0, memory_slope: 0.0 };
    if !options.json {
        say(&format!("{} of the elasticity experiment on point clouds, one sample, forward pass", options.model))?;
        say("    points        time      memory")?;
    }
    let factor = *to as f64 / *from as f64;
    let steps = (factor.log10() * 2.0).ceil().max(1.0) as usize; // two sizes per power of ten
    for step in 0..=steps {
        let points = *from as f64 * factor.powf(step as f64 / steps as f64);
        let row = measure(points.round() as usize, options)?;
        if !options.json {
            say(&format!("{:>10} {:>9.3} s {:>8.1} MB", row.points, row.seconds, row.bytes as f64 * 1e-6))?;
        }
        report.rows.push(row);
    }
    report.time_slope = slope(&report.rows, |row| row.seconds);
    report.memory_slope = slope(&report.rows, |row| row.bytes as f64);
    if options.json {
        return say(&serde_json::to_string_pretty(&report)?);
    }
    say(&format!("slope of time {:.3}, of memory {:.3}", report.time_slope, report.memory_slope))
}

fn measure(points: usize, options: &Points) -> Result<Row> {
    let (benchmark, model) = (Some("elasticity"), Some(options.model.as_str()));
    let experiment = Request { benchmark, model, ..Request::default() }.resolve()?;
    let task = experiment.benchmark()?.task().on(Grid::Cloud { points });
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let model = models::find(&experiment.model.name)?.build(&parameters, &task, &experiment.model.settings)?;
    graph.output("out", model.forward(&Input::declare(&graph, &task, 1), Mode::Inference));
    let mut program = Program::compile_on(&graph, options.device, options.precision)?;
    parameters.initialise(&mut program, 0);
    let positions: Vec<f32> = (0..points * task.space).map(|i| (0.37 * i as f32).sin()).collect();
    program.try_write("positions", &positions)?;
    let mut time = || -> Result<f64, DeviceError> {
        let start = Instant::now();
        program.try_run()?;
        program.try_synchronise()?;
        Ok(start.elapsed().as_secs_f64())
    };
    time()?; // the first run does not count
    let seconds = (0..options.repeat).map(|_| time()).collect::<Result<_, _>>()?;
    Ok(Row { points, seconds: median(seconds), bytes: program.bytes() })
}

/// Least-squares slope of log value over log points.
fn slope(rows: &[Row], value: impl Fn(&Row) -> f64) -> f64 {
    let pairs: Vec<(f64, f64)> = rows.iter().map(|row| ((row.points as f64).ln(), value(row).ln())).collect();
    let count = pairs.len() as f64;
    let (mean_x, mean_y) =
        (pairs.iter().map(|pair| pair.0).sum::<f64>() / count, pairs.iter().map(|pair| pair.1).sum::<f64>() / count);
    let (above, below) = pairs
        .iter()
        .fold((0.0, 0.0), |(above, below), (x, y)| (above + (x - mean_x) * (y - mean_y), below + (x - mean_x).powi(2)));
    above / below
}
