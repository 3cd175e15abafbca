//! `lamo data make`: computes samples on all cores, with a progress line. Ctrl-C saves the samples that are complete.

use crate::commands::progress::Meter;
use crate::commands::say;
use crate::commands::stop::stop_on_signal;
use crate::text::together;
use anyhow::Result;
use clap::Args;
use lamo::Kind;
use lamo::data::dataset::{Dataset, Manifest, Outcome, Progress};
use lamo::error::{Refusal, counted};
use lamo::workflow::{self, Event, MakeRequest, Session};
use lamo_physics::problems::PROBLEMS;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// `lamo data make`
#[derive(Args)]
pub(crate) struct Make {
    /// The problem; lamo data make --help lists them all.
    problem: String,
    /// Number of samples.
    #[arg(long, value_name = "N")]
    samples: usize,
    /// Points along each side, short for --set resolution=R.
    #[arg(long, value_name = "R")]
    resolution: Option<usize>,
    /// Seed of the sequence of samples.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Set a parameter of the problem; may be repeated, the last one wins.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder to make; until it is complete the samples are in DIR.partial.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Samples computed at the same time; one per core unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// The problems and their parameters, for the long help.
pub(crate) fn problems_and_parameters() -> String {
    let mut text = "Problems, with the defaults of their parameters:".to_owned();
    for row in PROBLEMS {
        let _ = write!(text, "\n  {}: {}", row.name, row.equation);
        let settings = row.parameters.iter();
        let settings: Vec<_> =
            settings.map(|parameter| format!("{}={}", parameter.name, parameter.kind.default_value())).collect();
        let width = settings.iter().map(String::len).max().unwrap_or(0);
        for (setting, parameter) in settings.iter().zip(row.parameters) {
            let _ = write!(text, "\n    {setting:width$}  {}", parameter.meaning);
        }
    }
    text
}

pub(crate) fn run(options: &Make) -> Result<()> {
    let resolution = options.resolution.map(|points| format!("resolution={points}"));
    let changes: Vec<String> = resolution.into_iter().chain(options.set.iter().cloned()).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let meter = Meter::of_samples(&options.problem);
    let listener = |event: Event<'_>| match event {
        Event::Making { progress, .. } => meter.show(progress),
        Event::Warning(warning) => {
            let _ = say(&format!("warning: {warning}"));
        }
        _ => {}
    };
    let cancel = stop_on_signal("the samples that are being computed")?;
    let session = Session { listener: &listener, cancel, threads: options.threads.map_or(cores, usize::from) };
    let Make { problem, seed, samples, out, .. } = options;
    let (problem, out, seed, samples) = (problem.clone(), out.clone(), *seed, *samples);
    let outcome = workflow::make(&MakeRequest { problem, changes, seed, samples, out }, &session);
    let time = meter.clear();
    report(outcome?, "made", &time, &options.out)
}

/// The last line of a job that makes a data set. A stopped job is an error that says how to continue it.
pub(super) fn report(outcome: Outcome, verb: &str, time: &str, out: &Path) -> Result<()> {
    match outcome {
        Outcome::Made(dataset) => say(&format!("{}, {verb} in {time}", summary(&dataset))),
        Outcome::AlreadyThere(dataset) => say(&format!("{}, already there", summary(&dataset))),
        Outcome::Stopped(Progress { complete, samples, .. }) => {
            let samples = counted(samples, "sample");
            let sentence = format!("stopped with {complete} of {samples} saved in {}.partial", out.display());
            let refusal = Refusal::said(sentence).advise("run the same command again to continue");
            Err(refusal.of(Kind::Cancelled).into())
        }
    }
}

fn summary(dataset: &Dataset) -> String {
    let manifest = dataset.manifest();
    let shape = |shape: &[usize]| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    let fields: Vec<_> = manifest
        .fields
        .iter()
        .map(|field| format!("{} {}", field.name, shape(&field.shape)).trim_end().to_owned())
        .collect();
    let name = dataset.folder().display();
    let Manifest { problem, samples, split, redrawn, .. } = manifest;
    let again = if *redrawn > 0 {
        format!(", {redrawn} drawn again because the solver found no solution")
    } else {
        String::new()
    };
    let samples = counted(*samples, "sample");
    format!("{name}: {problem}, {samples} of {}, {split}{again}", together(&fields))
}
