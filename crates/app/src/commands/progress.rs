//! The progress line of a long job.

use super::terminal::{self, Part};
use crate::text::duration;
use lamo::data::dataset::Progress;
use lamo::data::import::Transfer;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two lines of a log.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two updates of the line on a terminal.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// What is counted.
#[derive(Clone, Copy)]
enum Unit {
    Samples,
    Megabytes,
}

/// How far a job is, in samples or in bytes.
#[derive(Clone, Copy)]
pub(crate) struct State {
    complete: u64,
    /// Made by this process; the rest was there when it started.
    made: u64,
    total: u64,
}

impl From<Progress> for State {
    fn from(progress: Progress) -> State {
        let [complete, made, total] = [progress.complete, progress.made, progress.samples].map(|count| count as u64);
        State { complete, made, total }
    }
}

impl From<Transfer> for State {
    fn from(transfer: Transfer) -> State {
        State { complete: transfer.done, made: transfer.done, total: transfer.total }
    }
}

/// The progress line: redrawn in place on a terminal, a new line every ten seconds in a log.
pub(crate) struct Meter {
    title: String,
    unit: Unit,
    terminal: bool,
    start: Instant,
    last: Mutex<Option<Instant>>,
}

impl Meter {
    /// Counts samples that are made.
    pub(crate) fn of_samples(title: &str) -> Meter {
        Meter::new(title, Unit::Samples)
    }

    /// Counts bytes that are read.
    pub(crate) fn of_bytes(title: &str) -> Meter {
        Meter::new(title, Unit::Megabytes)
    }

    fn new(title: &str, unit: Unit) -> Meter {
        let terminal = std::io::stderr().is_terminal();
        let last = if terminal { None } else { Some(Instant::now()) }; // a short job leaves no line in a log
        Meter { title: title.into(), unit, terminal, start: Instant::now(), last: Mutex::new(last) }
    }

    /// Whether `interval` has passed since the last line.
    fn is_due(&self, interval: Duration) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| last.elapsed() >= interval);
        if due {
            *last = Some(Instant::now());
        }
        due
    }

    /// Prints the state as a line of JSON, every ten seconds. The job continues if the line cannot be written.
    pub(crate) fn report(&self, state: impl Into<State>) {
        if self.is_due(LOG_INTERVAL) {
            let State { complete, total, .. } = state.into();
            let line = serde_json::json!({ "event": "making", "complete": complete, "samples": total });
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }

    /// Prints the state as text. The job continues if the line cannot be written.
    pub(crate) fn show(&self, state: impl Into<State>) {
        if !self.is_due(if self.terminal { REDRAW_INTERVAL } else { LOG_INTERVAL }) {
            return;
        }
        let width = self.terminal.then(terminal::width);
        let line = line(&self.title, state.into(), self.unit, self.start.elapsed(), width);
        let _ = if self.terminal {
            write!(std::io::stderr(), "\r\x1b[K\x1b[?7l{line}\x1b[?7h")
        } else {
            writeln!(std::io::stdout(), "{line}")
        };
    }

    /// Removes the line from a terminal; how long the job took.
    pub(crate) fn clear(&self) -> String {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
        duration(self.start.elapsed().as_secs_f64())
    }
}

/// The title and the state, or as much of both as fits into a width.
fn line(title: &str, state: State, unit: Unit, elapsed: Duration, width: Option<usize>) -> String {
    let title = format!("{title} ");
    let room = width.map(|width| width.saturating_sub(title.chars().count()));
    let state = |room| status(state, unit, elapsed, room);
    match room.map(|room| (room, state(Some(room)))) {
        None => title + &state(None),
        Some((room, short)) if short.chars().count() <= room && short.contains("left") => title + &short,
        Some(_) => state(width), // the title gives way to the time left
    }
}

fn status(state: State, unit: Unit, elapsed: Duration, width: Option<usize>) -> String {
    let State { complete, made, total } = state;
    let rate = made as f64 / elapsed.as_secs_f64().max(1e-9);
    let left = match made > 0 {
        true => format!("{} left", duration((total - complete) as f64 / rate)),
        false => "time left unknown".to_owned(),
    };
    let (name, size) = match unit {
        Unit::Samples => ("samples", 1),
        Unit::Megabytes => ("MB", 1_000_000),
    };
    let rate = rate / size as f64;
    let rate = if rate < 9.95 { format!("{rate:.2}") } else { format!("{rate:.0}") };
    let percent = 100 * complete / total.max(1);
    let (complete, total) = (complete / size, total / size);
    let parts = [
        Part::essential().of(format!("{complete}/{total} {name} ({percent} %)")),
        Part::first(1).of(format!("{rate} {name}/s")),
        Part::essential().of(left),
    ];
    terminal::fit(&parts, ", ", width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_counts_only_what_this_process_made() {
        let state = State { complete: 150, made: 50, total: 1200 };
        let line = status(state, Unit::Samples, Duration::from_secs(25), None);
        assert_eq!(line, "150/1200 samples (12 %), 2.00 samples/s, 8 min 45 s left");
        let state = State { complete: 500_000_000, made: 500_000_000, total: 2_000_000_000 };
        let line = status(state, Unit::Megabytes, Duration::from_secs(5), None);
        assert_eq!(line, "500/2000 MB (25 %), 100 MB/s, 15 s left");
        let state = State { complete: 150, made: 0, total: 1200 };
        let line = status(state, Unit::Samples, Duration::from_secs(1), None);
        assert_eq!(line, "150/1200 samples (12 %), 0.00 samples/s, time left unknown");
    }

    #[test]
    fn the_line_of_a_job_fits_every_terminal_and_always_has_the_count_and_the_time_left() {
        let state = State { complete: 150, made: 50, total: 1200 };
        let said = |title: &str, columns| line(title, state, Unit::Samples, Duration::from_secs(25), Some(columns));
        for title in
            ["making darcy", "importing a/folder/with/a/very/long/name/of/its/own/permeability_of_all_samples.npy"]
        {
            for columns in [60, 80, 100, 140] {
                let line = said(title, columns);
                assert!(line.chars().count() <= columns, "{columns} columns: {line}");
                assert!(line.contains("150/1200 samples (12 %)") && line.ends_with("8 min 45 s left"), "{line}");
            }
        }
        assert_eq!(said("making darcy", 60), "making darcy 150/1200 samples (12 %), 8 min 45 s left");
        assert_eq!(said("making darcy", 80), "making darcy 150/1200 samples (12 %), 2.00 samples/s, 8 min 45 s left");
    }
}
