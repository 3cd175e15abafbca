//! `lamo bench points`: is the cost linear in the number of points?

use super::{median, print};
use anyhow::{Result, bail};
use clap::Args;
use lamo::experiment::Request;
use lamo::network::models;
use lamo::network::{Input, Mode, Parameters};
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, Precision, Program};
use serde::Serialize;
use std::time::Instant;

/// `lamo bench points`
#[derive(Args)]
pub(crate) struct Points {
    /// Which model, with its settings for Elasticity.
    #[arg(long, default_value = "lamo")]
    model: String,
    /// Fewest points.
    #[arg(long, default_value_t = 10_000)]
    from: usize,
    /// Most points.
    #[arg(long, default_value_t = 1_000_000)]
    to: usize,
    /// Timed runs at each size; the median counts.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Where to compute.
    #[arg(long, default_value = "cpu")]
    device: Device,
    /// What products and scans round to on a GPU: f32, tf32 or bf16, which leaves scans in tf32.
    #[arg(long, default_value = "tf32")]
    precision: Precision,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
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
    if options.from == 0 || options.to <= options.from || options.repeat == 0 {
        bail!(
            "--from {} --to {} --repeat {}: expected 0 < from < to and a run",
            options.from,
            options.to,
            options.repeat
        );
    }
    let mut report = Report { rows: Vec::new(), time_slope: 0.0, memory_slope: 0.0 };
    if !options.json {
        print(&format!("{} of the Elasticity experiment on clouds, one sample, forward pass", options.model));
        print("    points        time      memory");
    }
    let steps = ((options.to as f64 / options.from as f64).log10() * 2.0).ceil().max(1.0) as usize;
    for step in 0..=steps {
        let ratio = (options.to as f64 / options.from as f64).powf(step as f64 / steps as f64);
        let row = measure((options.from as f64 * ratio).round() as usize, options)?;
        if !options.json {
            print(&format!("{:>10} {:>9.3} s {:>8.1} MB", row.points, row.seconds, row.bytes as f64 * 1e-6));
        }
        report.rows.push(row);
    }
    report.time_slope = slope(&report.rows, |row| row.seconds);
    report.memory_slope = slope(&report.rows, |row| row.bytes as f64);
    if options.json {
        print(&serde_json::to_string_pretty(&report)?);
    } else {
        print(&format!("slope of time {:.3}, of memory {:.3}", report.time_slope, report.memory_slope));
    }
    Ok(())
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
    program.write("positions", &positions);
    program.run();
    program.synchronise();
    let seconds = (0..options.repeat)
        .map(|_| {
            let start = Instant::now();
            program.run();
            program.synchronise();
            start.elapsed().as_secs_f64()
        })
        .collect();
    Ok(Row { points, seconds: median(seconds), bytes: program.bytes() })
}

/// Least-squares slope in log-log.
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
