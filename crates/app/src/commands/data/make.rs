//! `lamo data make`: samples on all cores, a progress line, and a Ctrl-C that loses nothing.

use crate::commands::say;
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::dataset::{Dataset, Outcome, Progress, Recipe, Rule};
use lamo_physics::problems::PROBLEMS;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// `lamo data make`
#[derive(Args)]
pub(crate) struct Make {
    /// Which equation; the long help lists them.
    problem: String,
    /// How many samples.
    #[arg(long, value_name = "N")]
    samples: usize,
    /// Points along each side, short for --set resolution=R.
    #[arg(long, value_name = "R")]
    resolution: Option<usize>,
    /// Seed of the sequence of samples.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// A parameter of the problem; may be repeated, the last word counts.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder to make; meanwhile the samples are in DIR.partial.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Samples computed at a time; all cores unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// What can be made and set, for the long help.
pub(crate) fn problems_and_parameters() -> String {
    let mut text = "Problems, and their parameters with defaults:".to_owned();
    for row in PROBLEMS {
        let _ = write!(text, "\n  {}: {}", row.name, row.equation);
        for parameter in row.parameters {
            let setting = format!("{}={}", parameter.name, parameter.kind.default_value());
            let _ = write!(text, "\n    {setting:17} {}", parameter.meaning);
        }
    }
    text
}

pub(crate) fn run(options: &Make) -> Result<()> {
    let resolution = options.resolution.map(|points| format!("resolution={points}"));
    let changes: Vec<String> = resolution.into_iter().chain(options.set.iter().cloned()).collect();
    let recipe = Recipe::named(&options.problem, &changes, options.seed, options.samples)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.map_or(cores, usize::from);
    let stop = stop_on_request()?;
    let meter = Meter::new(&options.problem);
    let outcome = recipe.make(&options.out, threads, &|progress| {
        meter.show(progress);
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    meter.clear();
    match outcome? {
        Outcome::Made(dataset) => say(&format!("{}, made in {}", summary(&dataset), duration(meter.start.elapsed()))),
        Outcome::AlreadyThere(dataset) => say(&format!("{}, already there", summary(&dataset))),
        Outcome::Stopped(Progress { complete, samples, .. }) => bail!(
            "stopped with {complete} of {samples} samples saved beside {}; run the same command again to go on",
            options.out.display()
        ),
    }
}

/// Raised by the first Ctrl-C or polite kill; the second one ends the process, which loses a second of work at most.
fn stop_on_request() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let handle = stop.clone();
    ctrlc::set_handler(move || {
        if handle.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
        if std::io::stderr().is_terminal() {
            let _ = writeln!(std::io::stderr(), "\nfinishing the samples under way; once more to stop at once");
        }
    })
    .context("listening for Ctrl-C")?;
    Ok(stop)
}

fn summary(dataset: &Dataset) -> String {
    let manifest = dataset.manifest();
    let shape = |shape: &[usize]| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    let fields: Vec<_> =
        manifest.fields.iter().map(|field| format!("{} {}", field.name, shape(&field.shape))).collect();
    let split = match manifest.split {
        Rule::Ends { train, test } => format!(", first {train} to train, last {test} to test"),
        _ => String::new(),
    };
    let name = dataset.folder().display();
    format!("{name}: {}, {} samples of {}{split}", manifest.problem, manifest.samples, fields.join(" and "))
}

/// The progress line: redrawn in place on a terminal, a line now and then elsewhere.
pub(crate) struct Meter {
    problem: String,
    terminal: bool,
    start: Instant,
    last: Mutex<Option<Instant>>,
}

impl Meter {
    pub(crate) fn new(problem: &str) -> Meter {
        let terminal = std::io::stderr().is_terminal();
        let last = if terminal { None } else { Some(Instant::now()) }; // short jobs leave no lines in a log
        Meter { problem: problem.into(), terminal, start: Instant::now(), last: Mutex::new(last) }
    }

    pub(crate) fn show(&self, progress: Progress) {
        let pause = if self.terminal { Duration::from_millis(100) } else { Duration::from_secs(10) };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() < pause) {
            return;
        }
        *last = Some(Instant::now());
        let line = format!("{} {}", self.problem, status(progress, self.start.elapsed()));
        // a progress line nobody reads is no reason to stop
        let _ = if self.terminal {
            write!(std::io::stderr(), "\r\x1b[K{line}")
        } else {
            writeln!(std::io::stdout(), "{line}")
        };
    }

    pub(crate) fn clear(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn status(progress: Progress, elapsed: Duration) -> String {
    let Progress { complete, made, samples } = progress;
    let rate = made as f64 / elapsed.as_secs_f64().max(1e-9);
    let left = Duration::try_from_secs_f64((samples - complete) as f64 / rate).unwrap_or(Duration::MAX);
    let rate = if rate < 9.95 { format!("{rate:.2}") } else { format!("{rate:.0}") };
    let percent = 100 * complete / samples;
    format!("{complete}/{samples} samples ({percent} %), {rate} samples/s, {} left", duration(left))
}

pub(crate) fn duration(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_line_counts_only_what_this_attempt_made() {
        let progress = Progress { complete: 150, made: 50, samples: 1200 };
        let line = status(progress, Duration::from_secs(25));
        assert_eq!(line, "150/1200 samples (12 %), 2.00 samples/s, 8 min 45 s left");
    }
}
