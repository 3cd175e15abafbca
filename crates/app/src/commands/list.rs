//! `lamo list`: the models, benchmarks and experiments.

use super::say;
use anyhow::Result;
use clap::Args;
use lamo::experiment::benchmarks::BENCHMARKS;
use lamo::experiment::{EXPERIMENTS, Experiment, Shipped};
use lamo::network::models::{MODELS, Settings, Support};
use serde::Serialize;

/// `lamo list`
#[derive(Args)]
pub(crate) struct List {
    /// Print one JSON object on standard output, with every setting and its default.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Serialize)]
pub(crate) struct Report {
    models: Vec<ModelEntry>,
    benchmarks: Vec<BenchmarkEntry>,
    experiments: Vec<ExperimentEntry>,
}

#[derive(Serialize)]
struct ModelEntry {
    name: &'static str,
    summary: &'static str,
    paper: &'static str,
    supports: Support,
    /// Whether samples may have different numbers of points.
    ragged: bool,
    settings: Settings,
}

#[derive(Serialize)]
struct BenchmarkEntry {
    name: &'static str,
    summary: &'static str,
    points: usize,
}

#[derive(Serialize)]
struct ExperimentEntry {
    name: &'static str,
    benchmark: String,
    model: String,
    parameters: usize,
    summary: &'static str,
}

impl Report {
    pub(crate) fn make() -> Result<Report> {
        let model = |row: &lamo::network::models::Row| ModelEntry {
            name: row.name,
            summary: row.summary,
            paper: row.paper,
            supports: row.supports,
            ragged: row.ragged,
            settings: row.defaults(),
        };
        let benchmark = |row: &lamo::experiment::benchmarks::Benchmark| BenchmarkEntry {
            name: row.name,
            summary: row.summary,
            points: row.task().grid.points(),
        };
        let experiment = |Shipped { name, summary, text }: &'static Shipped| -> Result<ExperimentEntry> {
            let parsed = Experiment::parse(name, text)?;
            let parameters = parsed.parameter_count()?;
            Ok(ExperimentEntry { name, benchmark: parsed.benchmark, model: parsed.model.name, parameters, summary })
        };
        Ok(Report {
            models: MODELS.iter().map(model).collect(),
            benchmarks: BENCHMARKS.iter().map(benchmark).collect(),
            experiments: EXPERIMENTS.iter().map(experiment).collect::<Result<_>>()?,
        })
    }
}

pub(crate) fn run(options: &List) -> Result<()> {
    let report = Report::make()?;
    if options.json {
        return say(&serde_json::to_string_pretty(&report)?);
    }
    say("models")?;
    for model in &report.models {
        say(&format!("  {:14} {}", model.name, model.summary))?;
        let ragged = if model.ragged { ", also of different sizes" } else { "" };
        say(&format!("  {:14} for {}{ragged}", "", model.supports))?;
        say(&format!("  {:14} {}", "", model.paper))?;
    }
    say("\nbenchmarks")?;
    for benchmark in &report.benchmarks {
        say(&format!("  {:20} {:>6} points  {}", benchmark.name, benchmark.points, benchmark.summary))?;
    }
    say("\nexperiments                 parameters")?;
    for experiment in &report.experiments {
        say(&format!("  {:26}{:>10}  {}", experiment.name, experiment.parameters, experiment.summary))?;
    }
    Ok(())
}
