//! `lamo paper`: the tables and figures of the paper, with ours beside the published values.

mod facts;
mod fields;
mod figures;
mod insight;
mod page;
mod run;
mod show;
mod table;
mod theory;

use super::say;
use crate::text::duration;
use anyhow::Result;
use clap::{Args, Subcommand};
use lamo::error::Refusal;
use lamo::experiment::benchmarks;
use lamo::paper::{self, Artifact, Effort, Job, Options, Results};
use lamo_tensor::Device;
use serde_json::json;
use std::path::PathBuf;

/// The folder of run folders.
const RUNS: &str = "runs/paper";
/// The folder of receipts.
const RECEIPTS: &str = "results/paper";

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Paper {
    /// List tables and figures: their cells, what is done, and what the rest takes here.
    ///
    /// Examples:
    ///   lamo paper list
    ///   lamo paper list --grid reduced --device cuda
    #[command(verbatim_doc_comment)]
    List(List),
    /// Run the trainings that are missing, in an order that fills tables early. The same command continues.
    ///
    /// A cell is one training with a run folder of its own; cells that several artifacts need are run once. A cell counts as
    /// done where its receipt is in the folder of runs, in the folder of receipts or in a folder of --known.
    ///
    /// Examples:
    ///   lamo paper run --grid quick --budget 25m
    ///   lamo paper run T2 F2 --grid reduced --device cuda
    ///   lamo paper run T2 F2 F8 T7 T8 X2 --grid reduced --benchmark darcy --benchmark elasticity --device cuda
    #[command(verbatim_doc_comment)]
    Run(run::Run),
    /// Show tables and figures with what is there; what is missing is a gap.
    ///
    /// Examples:
    ///   lamo paper show T1
    ///   lamo paper show --html paper.html
    ///   lamo paper show F2 F8 --pictures figures
    ///   lamo paper show theory
    #[command(verbatim_doc_comment)]
    Show(show::Show),
}

impl Paper {
    /// Whether a script asked for JSON on standard output.
    pub(crate) fn json(&self) -> bool {
        match self {
            Paper::List(list) => list.grid.json,
            Paper::Run(run) => run.grid.json,
            Paper::Show(show) => show.grid.json,
        }
    }
}

/// Receipts, and the folders that they come from.
struct Gathered {
    results: Results,
    folders: Vec<PathBuf>,
}

/// What the three commands share.
#[derive(Args)]
pub(crate) struct Choice {
    /// The size of the grid: full is the paper (200 hours on an H200), reduced takes two hours on an H200, quick two hours on
    /// two cores, smoke seconds. Unless given, the one with the most finished cells, else quick on a CPU and reduced on a GPU.
    #[arg(long, value_name = "GRID", value_parser = ["full", "reduced", "quick", "smoke"])]
    grid: Option<String>,
    /// Only cells of this benchmark; may be repeated.
    #[arg(long = "benchmark", value_name = "B")]
    benchmarks: Vec<String>,
    /// Runs of every cell, with seeds from 0 on; tables of deviations have more.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    seeds: u16,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: Device,
    /// The folder of run folders.
    #[arg(long, value_name = "DIR", default_value = RUNS)]
    runs: PathBuf,
    /// The folder of receipts; a run adds its receipts here.
    #[arg(long, value_name = "DIR", default_value = RECEIPTS)]
    receipts: PathBuf,
    /// A further folder of receipts or run folders that count as done; may be repeated.
    #[arg(long, value_name = "DIR", default_value = "results")]
    known: Vec<PathBuf>,
    /// Print JSON on standard output.
    #[arg(long)]
    json: bool,
}

impl Choice {
    /// What is there.
    fn gather(&self) -> Gathered {
        let folders = self.folders();
        Gathered { results: Results::gather(&folders), folders }
    }

    /// The folders in which receipts are looked for.
    fn folders(&self) -> Vec<PathBuf> {
        [&self.runs, &self.receipts].into_iter().chain(&self.known).cloned().collect()
    }

    fn options(&self, effort: Effort) -> Options {
        Options { effort, seeds: usize::from(self.seeds) }
    }

    /// The chosen grid, or the one with the most finished cells.
    fn effort(&self, results: &Results) -> Result<Effort> {
        if let Some(name) = &self.grid {
            return Ok(name.parse::<Effort>()?);
        }
        let usual = if self.device == Device::Cpu { Effort::Quick } else { Effort::Reduced };
        let mut best = (0, usual);
        for effort in Effort::ALL.into_iter().filter(|_| results.count() > 0) {
            let artifacts = paper::artifacts(&self.options(effort));
            let jobs = paper::plan(&artifacts, results, self.device)?;
            let done = jobs.iter().filter(|job| job.done).count();
            if done > best.0 {
                best = (done, effort);
            }
        }
        Ok(best.1)
    }

    /// The artifacts of these names on the chosen benchmarks.
    fn artifacts(&self, names: &[String], effort: Effort) -> Result<Vec<Artifact>> {
        for name in &self.benchmarks {
            if !benchmarks::find(name)?.published {
                return Err(Refusal::new("--benchmark", "a benchmark of the paper", name.clone()).into());
            }
        }
        let found = paper::find(names, &self.options(effort))?;
        Ok(found.into_iter().map(|artifact| artifact.on(&self.benchmarks)).collect())
    }
}

/// `lamo paper list`
#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    grid: Choice,
}

pub(crate) fn run(paper: &Paper) -> Result<()> {
    match paper {
        Paper::List(list) => show_list(&list.grid),
        Paper::Run(options) => run::run(options),
        Paper::Show(options) => show::run(options),
    }
}

/// Cells, finished cells, and seconds of the rest.
fn sums<'a>(jobs: impl Iterator<Item = &'a Job>) -> (usize, usize, f64) {
    jobs.fold((0, 0, 0.0), |(cells, done, seconds), job| match job.done {
        true => (cells + 1, done + 1, seconds),
        false => (cells + 1, done, seconds + job.seconds),
    })
}

fn show_list(choice: &Choice) -> Result<()> {
    let results = Results::gather(&choice.folders());
    let effort = choice.effort(&results)?;
    let artifacts = choice.artifacts(&[], effort)?;
    let jobs = paper::plan(&artifacts, &results, choice.device)?;
    let of = |id: &str| sums(jobs.iter().filter(|job| job.artifacts.contains(&id)));
    let all = sums(jobs.iter());
    if choice.json {
        let entry = |artifact: &Artifact| {
            let (cells, done, seconds) = of(artifact.id);
            json!({ "id": artifact.id, "name": artifact.name(), "title": artifact.title, "cells": cells, "done": done,
                    "seconds": seconds })
        };
        let cells = jobs.iter().map(|job| {
            json!({ "name": job.cell.name(), "key": job.cell.key, "artifacts": job.artifacts, "seconds": job.seconds,
                    "done": job.done, "command": job.cell.cell.command() })
        });
        let artifacts: Vec<_> = artifacts.iter().map(entry).collect();
        let report = json!({ "grid": effort.name(), "device": choice.device.to_string(), "artifacts": artifacts,
                             "cells": cells.collect::<Vec<_>>() });
        return say(&serde_json::to_string_pretty(&report)?);
    }
    say(&format!("grid {}, on {}; times are estimates", effort.name(), choice.device))?;
    say("id   cells  done      rest  what")?;
    for artifact in &artifacts {
        let (cells, done, seconds) = of(artifact.id);
        let rest = if cells == done { "-".to_owned() } else { rough(seconds) };
        say(&format!("{:<4} {cells:>5} {done:>5} {rest:>9}  {}", artifact.id, artifact.title))?;
    }
    let rest = if all.0 == all.1 { "-".to_owned() } else { rough(all.2) };
    say(&format!("all  {:>5} {:>5} {rest:>9}  each cell once, without making data", all.0, all.1))
}

/// A time of which no more than two digits are known.
fn rough(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => duration(s.ceil().max(1.0)),
        s if s < 3600.0 => format!("{:.0} min", (s / 60.0).ceil()),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A time as on the command line: `90s`, `25m`, `2h`, `1h30m`; a plain number is in minutes.
fn budget(text: &str) -> Result<std::time::Duration, Refusal> {
    let wrong = || Refusal::new("--budget", "a time such as 90s, 25m or 1h30m", text);
    let (mut seconds, mut number) = (0.0, String::new());
    for letter in text.chars() {
        let unit = match letter {
            's' => 1.0,
            'm' => 60.0,
            'h' => 3600.0,
            digit => {
                number.push(digit);
                continue;
            }
        };
        seconds += unit * number.parse::<f64>().map_err(|_| wrong())?;
        number.clear();
    }
    if !number.is_empty() {
        seconds += 60.0 * number.parse::<f64>().map_err(|_| wrong())?;
    }
    match seconds > 0.0 {
        true => std::time::Duration::try_from_secs_f64(seconds).map_err(|_| wrong()),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_time_with_its_units() {
        let seconds = |text: &str| budget(text).map(|time| time.as_secs_f64()).ok();
        assert_eq!(["90s", "25m", "1h30m", "2"].map(seconds), [Some(90.0), Some(1500.0), Some(5400.0), Some(120.0)]);
        assert_eq!(["", "h", "-3m", "soon"].map(seconds), [None; 4]);
    }
}
