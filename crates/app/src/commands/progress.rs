//! The progress line of a long job.

use lamo::data::dataset::Progress;
use lamo::data::import::Transfer;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two lines of a log.
const RARELY: Duration = Duration::from_secs(10);

/// What is counted.
#[derive(Clone, Copy)]
enum Unit {
    Samples,
    Megabytes,
}

/// How far a job has come, in samples or in bytes.
#[derive(Clone, Copy)]
pub(crate) struct State {
    complete: u64,
    /// By this attempt.
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

/// The progress line: redrawn in place on a terminal, a line now and then elsewhere.
pub(crate) struct Meter {
    title: String,
    unit: Unit,
    terminal: bool,
    start: Instant,
    last: Mutex<Option<Instant>>,
}

impl Meter {
    /// Of samples made.
    pub(crate) fn new(title: &str) -> Meter {
        Meter::counting(title, Unit::Samples)
    }

    /// Of bytes read.
    pub(crate) fn of_bytes(title: &str) -> Meter {
        Meter::counting(title, Unit::Megabytes)
    }

    fn counting(title: &str, unit: Unit) -> Meter {
        let terminal = std::io::stderr().is_terminal();
        let last = if terminal { None } else { Some(Instant::now()) }; // short jobs leave no lines in a log
        Meter { title: title.into(), unit, terminal, start: Instant::now(), last: Mutex::new(last) }
    }

    /// Whether it is time to say something.
    fn due(&self, pause: Duration) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| last.elapsed() >= pause);
        if due {
            *last = Some(Instant::now());
        }
        due
    }

    /// A line of JSON now and then.
    pub(crate) fn report(&self, state: impl Into<State>) {
        if self.due(RARELY) {
            let State { complete, total, .. } = state.into();
            let line = serde_json::json!({ "event": "making", "complete": complete, "samples": total });
            let _ = writeln!(std::io::stdout(), "{line}"); // nobody reading is no reason to stop
        }
    }

    pub(crate) fn show(&self, state: impl Into<State>) {
        if !self.due(if self.terminal { Duration::from_millis(100) } else { RARELY }) {
            return;
        }
        let line = format!("{} {}", self.title, status(state.into(), self.unit, self.start.elapsed()));
        // a progress line nobody reads is no reason to stop
        let _ = if self.terminal {
            write!(std::io::stderr(), "\r\x1b[K{line}")
        } else {
            writeln!(std::io::stdout(), "{line}")
        };
    }

    /// Removes the line; how long the job took.
    pub(crate) fn clear(&self) -> String {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
        duration(self.start.elapsed())
    }
}

fn status(state: State, unit: Unit, elapsed: Duration) -> String {
    let State { complete, made, total } = state;
    let rate = made as f64 / elapsed.as_secs_f64().max(1e-9);
    let left = Duration::try_from_secs_f64((total - complete) as f64 / rate).unwrap_or(Duration::MAX);
    let (name, size) = match unit {
        Unit::Samples => ("samples", 1),
        Unit::Megabytes => ("MB", 1_000_000),
    };
    let rate = rate / size as f64;
    let rate = if rate < 9.95 { format!("{rate:.2}") } else { format!("{rate:.0}") };
    let percent = 100 * complete / total.max(1);
    let (complete, total) = (complete / size, total / size);
    format!("{complete}/{total} {name} ({percent} %), {rate} {name}/s, {} left", duration(left))
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
        let state = State { complete: 150, made: 50, total: 1200 };
        let line = status(state, Unit::Samples, Duration::from_secs(25));
        assert_eq!(line, "150/1200 samples (12 %), 2.00 samples/s, 8 min 45 s left");
        let state = State { complete: 500_000_000, made: 500_000_000, total: 2_000_000_000 };
        let line = status(state, Unit::Megabytes, Duration::from_secs(5));
        assert_eq!(line, "500/2000 MB (25 %), 100 MB/s, 15.0 s left");
    }
}
