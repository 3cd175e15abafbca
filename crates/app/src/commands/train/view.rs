//! The progress of a training: a line redrawn in place on a terminal, about [`LINES`] lines in a log, an object per epoch in JSON.

use super::pace::Pace;
use crate::commands::terminal::{self, Part};
use crate::text::duration;
use lamo::run::Line;
use lamo::training::Progress;
use std::io::{IsTerminal, Write};

/// Epochs of the sparkline.
const WIDTH: usize = 24;
/// Lines of a log; there may be two more. A training of fewer epochs has a line per epoch.
const LINES: usize = 40;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Prints the progress of a training.
pub(super) struct View {
    json: bool,
    terminal: bool,
    history: Vec<Line>,
    pace: Pace,
    /// The epoch of the last line of a log.
    logged: Option<usize>,
    /// The line of the last epoch, where the log does not have it yet.
    held: Option<String>,
}

impl View {
    pub(super) fn new(json: bool, history: Vec<Line>) -> View {
        let terminal = std::io::stderr().is_terminal() && !json;
        View { json, terminal, history, pace: Pace::default(), logged: None, held: None }
    }

    /// Prints the progress. The training continues if the line cannot be written.
    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        let rate = self.pace.steps_per_second(progress.step);
        self.history.extend(progress.finished);
        if self.terminal {
            let line = status(progress, rate, &self.history, Some(terminal::width()));
            // ?7l: a terminal that becomes narrower meanwhile must not wrap the line, or it would stay on the screen.
            let _ = write!(std::io::stderr(), "\r\x1b[K\x1b[?7l{line}\x1b[?7h");
        } else if let Some(line) = progress.finished {
            let text = if self.json { json(line) } else { status(progress, rate, &[*line], None) };
            if self.json || is_due(self.logged, line, progress.epochs) {
                (self.logged, self.held) = (Some(line.epoch), None);
                let _ = writeln!(std::io::stdout(), "{text}");
            } else {
                self.held = Some(text);
            }
        }
    }

    /// Ends the line; its last state stays on the screen, or in the log. The next progress begins a new one.
    pub(super) fn clear(&mut self) {
        if let Some(text) = self.held.take() {
            let _ = writeln!(std::io::stdout(), "{text}");
        }
        if std::mem::take(&mut self.pace).has_begun() && self.terminal {
            let _ = writeln!(std::io::stderr());
        }
    }
}

/// Whether a log gets a line for an epoch, after its line for the epoch `logged`: for the first and the last epoch, and in
/// each fortieth of the training for the first epoch that was tested.
pub(super) fn is_due(logged: Option<usize>, line: &Line, epochs: usize) -> bool {
    let share = |epoch: usize| epoch * LINES / epochs.max(1);
    let Some(logged) = logged else { return true };
    let passed = share(line.epoch).saturating_sub(share(logged));
    let wanted = if line.error().is_some() { 1 } else { 2 }; // an epoch without a test where tests are rare
    epochs <= LINES || line.epoch == epochs || passed >= wanted
}

fn json(line: &Line) -> String {
    let mut value = serde_json::json!(line);
    value["event"] = "epoch".into();
    value.to_string()
}

/// `epoch 3/24  ▇▄▂  train 0.1021  test 0.0893  rate 1.9e-3  24.1 steps/s  1 min 20 s left`, or as much of it as fits into
/// a width: the epoch, the error and the time left first.
fn status(progress: &Progress<'_>, rate: f64, history: &[Line], width: Option<usize>) -> String {
    let errors: Vec<f64> = history.iter().map(|line| line.error().unwrap_or(line.train)).collect();
    let errors = &errors[errors.len().saturating_sub(WIDTH)..];
    let bars = if errors.len() > 1 { sparkline(errors) } else { String::new() };
    let last = |error: fn(&Line) -> Option<f64>| history.iter().rev().find_map(error);
    let (validation, test) = (last(|line| line.validation), last(|line| line.test));
    let (speed, left) =
        (if rate > 0.0 { format!("{rate:.1} steps/s") } else { String::new() }, time_left(progress, rate));
    let shown = |name: &str, error: Option<f64>| error.map_or_else(String::new, |error| format!("{name} {error:.4}"));
    let test_part = if validation.is_some() { Part::first(2) } else { Part::essential() };
    let train = if validation.or(test).is_some() { Part::first(1) } else { Part::essential() };
    let parts = [
        Part::essential().of(format!("epoch {}/{}", progress.epoch, progress.epochs)),
        Part::first(2).of(bars),
        train.of(format!("train {:.4}", progress.train)),
        Part::essential().of(shown("validation", validation)),
        test_part.of(shown("test", test)),
        Part::first(4).of(format!("rate {:.1e}", progress.rate)),
        Part::first(3).of(speed),
        Part::essential().of(left),
    ];
    terminal::fit(&parts, "  ", width)
}

/// The time that the rest takes at this many steps per second.
pub(super) fn time_left(progress: &Progress<'_>, rate: f64) -> String {
    match rate > 0.0 {
        true => duration((progress.steps - progress.step) as f64 / rate) + " left",
        false => "time left unknown".to_owned(),
    }
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

    /// Step 200 of 500, in epoch 3 of 5.
    const PROGRESS: Progress<'static> = Progress {
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

    fn history(tests: &[f64]) -> Vec<Line> {
        let line = |(epoch, &test): (usize, &f64)| Line {
            epoch: epoch + 1,
            step: 100 * epoch,
            train: 0.2,
            validation: None,
            test: Some(test),
            rate: 1e-3,
            seconds: 1.0,
        };
        tests.iter().enumerate().map(line).collect()
    }

    /// The epochs that a log of so many epochs shows, with a test every `evaluate` of them.
    fn logged(epochs: usize, evaluate: usize) -> Vec<usize> {
        let mut shown: Vec<usize> = Vec::new();
        for epoch in 1..=epochs {
            let test = (epoch % evaluate == 0 || epoch == epochs).then_some(0.5);
            let line = Line { epoch, test, ..history(&[0.5])[0] };
            if is_due(shown.last().copied(), &line, epochs) {
                shown.push(epoch);
            }
        }
        shown
    }

    #[test]
    fn a_log_has_about_forty_lines_spread_over_the_training_however_many_epochs_it_has() {
        assert_eq!(logged(24, 1), (1..=24).collect::<Vec<_>>());
        for (epochs, evaluate) in [(41, 1), (60, 1), (300, 3), (500, 1), (1680, 16), (10_000, 100), (10_000, 9_999)] {
            let shown = logged(epochs, evaluate);
            assert_eq!((shown[0], shown[shown.len() - 1]), (1, epochs));
            assert!(shown.len() <= LINES + 2 && shown.len() >= LINES / 2, "{epochs} epochs: {shown:?}");
            let gap = shown.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
            assert!(gap <= 2 * epochs.div_ceil(LINES) + 1, "{epochs} epochs: {shown:?}");
            let middle = &shown[1..shown.len() - 1];
            assert!(evaluate > 100 || middle.iter().all(|epoch| epoch % evaluate == 0), "{epochs} epochs: {shown:?}");
        }
    }

    #[test]
    fn the_line_has_epoch_losses_rate_and_time_left() {
        let said = status(&PROGRESS, 10.0, &history(&[0.5, 0.25]), None);
        assert_eq!(said, "epoch 3/5  █▁  train 0.1234  test 0.2500  rate 1.9e-3  10.0 steps/s  30 s left");
        let validated = history(&[0.5]).into_iter().map(|line| Line { validation: Some(0.125), test: None, ..line });
        let said = status(&PROGRESS, 10.0, &validated.collect::<Vec<_>>(), None);
        assert!(said.contains("train 0.1234  validation 0.1250  rate"), "{said}");
    }

    #[test]
    fn the_line_fits_every_terminal_and_always_has_epoch_error_and_time_left() {
        let long = Progress { step: 1, steps: 7_000_000, epoch: 12_345, epochs: 99_999, ..PROGRESS };
        let many: Vec<f64> = (1..=40).map(|epoch| 1.0 / f64::from(epoch)).collect();
        for (progress, epoch) in [(PROGRESS, "epoch 3/5"), (long, "epoch 12345/99999")] {
            for (history, error) in [(history(&many), "test 0.0250"), (Vec::new(), "train 0.1234")] {
                let mut before = 0;
                for columns in [60, 80, 100, 140] {
                    let line = status(&progress, 23.4, &history, Some(columns));
                    assert!(line.chars().count() <= columns, "{columns} columns: {line}");
                    assert!(
                        [epoch, error, " left"].iter().all(|part| line.contains(part)),
                        "{columns} columns: {line}"
                    );
                    assert!(line.chars().count() >= before, "a wider terminal shows at least as much: {line}");
                    before = line.chars().count();
                }
            }
        }
        let line = |columns| status(&PROGRESS, 23.4, &history(&many), Some(columns));
        assert_eq!(line(60), "epoch 3/5  train 0.1234  test 0.0250  12.8 s left");
        assert!(line(80).contains("▁  train") && !line(80).contains("steps/s"), "{}", line(80));
        assert!(line(140).contains("rate 1.9e-3  23.4 steps/s"), "{}", line(140));
    }

    #[test]
    fn the_line_says_that_the_time_left_is_unknown_before_the_second_step() {
        let line = status(&PROGRESS, 0.0, &[], Some(60));
        assert_eq!(line, "epoch 3/5  train 0.1234  rate 1.9e-3  time left unknown");
    }
}
