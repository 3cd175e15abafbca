//! `lamo list`: what there is to choose from.

use super::say;
use anyhow::Result;
use clap::Args;
use lamo::experiment::benchmarks::BENCHMARKS;
use lamo::experiment::{EXPERIMENTS, Experiment};
use lamo::network::models::{MODELS, Settings};
use serde::Serialize;

/// `lamo list`
#[derive(Args)]
pub(crate) struct List {
    /// One JSON object on standard output, with every setting and its default.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    models: Vec<ModelEntry>,
    benchmarks: Vec<BenchmarkEntry>,
    experiments: Vec<ExperimentEntry>,
}

#[derive(Serialize)]
struct ModelEntry {
    name: &'static str,
    summary: &'static str,
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
    /// The first line of its file.
    summary: &'static str,
}

impl Report {
    fn make() -> Result<Report> {
        let model = |row: &lamo::network::models::Row| ModelEntry {
            name: row.name,
            summary: row.summary,
            settings: row.defaults(),
        };
        let benchmark = |row: &lamo::experiment::benchmarks::Benchmark| BenchmarkEntry {
            name: row.name,
            summary: row.summary,
            points: row.task().grid.points(),
        };
        let experiment = |(name, text): &(&'static str, &'static str)| -> Result<ExperimentEntry> {
            let parsed = Experiment::parse(name, text)?;
            let parameters = parsed.parameter_count()?;
            let summary = text.lines().next().unwrap_or_default().trim_start_matches("# ");
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
    }
    say("\nbenchmarks")?;
    for benchmark in &report.benchmarks {
        say(&format!("  {:14} {:>6} points  {}", benchmark.name, benchmark.points, benchmark.summary))?;
    }
    say("\nexperiments                 parameters")?;
    for experiment in &report.experiments {
        say(&format!("  {:26}{:>10}  {}", experiment.name, experiment.parameters, experiment.summary))?;
    }
    Ok(())
}
