//! The progress of a training: a line redrawn in place on a terminal, a line per epoch in a log.

use crate::text::duration;
use lamo::run::Line;
use lamo::training::Progress;
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Epochs of the sparkline.
const WIDTH: usize = 24;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Prints the progress of a training.
pub(super) struct View {
    json: bool,
    terminal: bool,
    history: Vec<Line>,
    /// When this process took its first step, and which one it was.
    start: Option<(Instant, usize)>,
}

impl View {
    pub(super) fn new(json: bool, history: Vec<Line>) -> View {
        View { json, terminal: std::io::stderr().is_terminal() && !json, history, start: None }
    }

    /// Prints the progress. The training continues if the line cannot be written.
    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        let (started, first) = *self.start.get_or_insert((Instant::now(), progress.step));
        // The step falls below the first one while the trainer repeats steps to find where the loss broke.
        let rate = progress.step.saturating_sub(first) as f64 / started.elapsed().as_secs_f64().max(1e-9);
        self.history.extend(progress.finished);
        if self.terminal {
            // Without ?7l a line longer than the terminal is wide would wrap and stay on the screen.
            let _ = write!(std::io::stderr(), "\r\x1b[K\x1b[?7l{}\x1b[?7h", status(progress, rate, &self.history));
        } else if let Some(line) = progress.finished {
            let text = if self.json { json(line) } else { status(progress, rate, &[*line]) };
            let _ = writeln!(std::io::stdout(), "{text}");
        }
    }

    /// Ends the line; its last state stays on the screen. The next progress begins a new one.
    pub(super) fn clear(&mut self) {
        if self.start.take().is_some() && self.terminal {
            let _ = writeln!(std::io::stderr());
        }
    }
}

fn json(line: &Line) -> String {
    let mut value = serde_json::json!(line);
    value["event"] = "epoch".into();
    value.to_string()
}

/// `epoch 3/24  ▇▄▂  train 0.1021  test 0.0893  rate 1.9e-3  24.1 steps/s  1 min 20 s left`
fn status(progress: &Progress<'_>, rate: f64, history: &[Line]) -> String {
    let mut parts = vec![format!("epoch {}/{}", progress.epoch, progress.epochs)];
    let errors: Vec<f64> = history.iter().map(|line| line.error().unwrap_or(line.train)).collect();
    if errors.len() > 1 {
        parts.push(sparkline(&errors[errors.len().saturating_sub(WIDTH)..]));
    }
    parts.push(format!("train {:.4}", progress.train));
    let last = |error: fn(&Line) -> Option<f64>| history.iter().rev().find_map(error);
    parts.extend(last(|line| line.validation).map(|error| format!("validation {error:.4}")));
    parts.extend(last(|line| line.test).map(|error| format!("test {error:.4}")));
    parts.push(format!("rate {:.1e}", progress.rate));
    if rate > 0.0 {
        parts.push(format!("{rate:.1} steps/s"));
        parts.push(format!("{} left", duration((progress.steps - progress.step) as f64 / rate)));
    }
    parts.join("  ")
}

/// A bar for each error, on a logarithmic scale.
fn sparkline(errors: &[f64]) -> String {
    let logs: Vec<f64> = errors.iter().map(|error| error.max(1e-12).ln()).collect();
    let (least, most) =
        logs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &log| (low.min(log), high.max(log)));
    let bar = |log: f64| (log - least) / (most - least).max(1e-12) * (BARS.len() - 1) as f64;
    logs.iter().map(|&log| BARS[bar(log).round() as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fall_with_the_error() {
        assert_eq!(sparkline(&[1.0, 0.1, 0.01]), "█▅▁");
        assert_eq!(sparkline(&[0.5, 0.5]), "▁▁");
    }

    #[test]
    fn the_line_has_epoch_losses_rate_and_time_left() {
        let line = |epoch: usize, test: f64| Line {
            epoch,
            step: 100 * epoch,
            train: 0.2,
            validation: None,
            test: Some(test),
            rate: 1e-3,
            seconds: 1.0,
        };
        let progress = Progress {
            step: 200,
            steps: 500,
            epoch: 3,
            epochs: 5,
            train: 0.123_44,
            rate: 1.93e-3,
            seconds: 10.0,
            finished: None,
            saved: false,
        };
        let said = status(&progress, 10.0, &[line(1, 0.5), line(2, 0.25)]);
        assert_eq!(said, "epoch 3/5  █▁  train 0.1234  test 0.2500  rate 1.9e-3  10.0 steps/s  30 s left");
        let validated = Line { validation: Some(0.125), test: None, ..line(2, 0.0) };
        assert!(status(&progress, 10.0, &[validated]).contains("train 0.1234  validation 0.1250  rate"));
    }
}
