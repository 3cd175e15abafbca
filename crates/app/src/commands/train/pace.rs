//! How fast a training goes now: trainings beside it end, and other programs come and go.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The part of the time so far that counts, and the least of it.
const RECENT: f64 = 0.25;
const LEAST: Duration = Duration::from_secs(20);
/// Marks in that part, or a few more: they were set when it was shorter.
const MARKS: f64 = 64.0;

/// The steps of this process, marked from time to time.
#[derive(Default)]
pub(super) struct Pace {
    start: Option<Instant>,
    /// Seconds since the start and the step then; the first one is the last before the part that counts.
    marks: VecDeque<(Duration, usize)>,
}

impl Pace {
    /// Whether a step was seen.
    pub(super) fn has_begun(&self) -> bool {
        self.start.is_some()
    }

    /// Steps per second of late, this one included; 0 before the second step.
    pub(super) fn steps_per_second(&mut self, step: usize) -> f64 {
        let elapsed = self.start.get_or_insert_with(Instant::now).elapsed();
        self.at(elapsed, step)
    }

    fn at(&mut self, elapsed: Duration, step: usize) -> f64 {
        let part = elapsed.mul_f64(RECENT).max(LEAST);
        let is_old = |mark: &(Duration, usize)| mark.0 + part <= elapsed;
        while self.marks.get(1).is_some_and(is_old) {
            self.marks.pop_front();
        }
        let due = |last: &(Duration, usize)| elapsed - last.0 >= part.div_f64(MARKS);
        if self.marks.back().is_none_or(due) {
            self.marks.push_back((elapsed, step));
        }
        let (since, first) = self.marks[0];
        // The step falls below the first one while the trainer repeats steps to find where the loss broke.
        step.saturating_sub(first) as f64 / (elapsed - since).as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pace after a training that makes so many steps in each of these seconds.
    fn after(steps_of_seconds: impl IntoIterator<Item = usize>) -> (f64, usize) {
        let (mut pace, mut step) = (Pace::default(), 0);
        let mut rate = pace.at(Duration::ZERO, step);
        for (second, steps) in steps_of_seconds.into_iter().enumerate() {
            step += steps;
            rate = pace.at(Duration::from_secs(second as u64 + 1), step);
        }
        (rate, pace.marks.len())
    }

    #[test]
    fn a_steady_training_has_its_pace_from_the_second_step_on() {
        for seconds in [1, 2, 30, 4000] {
            assert_eq!(after(std::iter::repeat_n(7, seconds)).0, 7.0, "{seconds} seconds");
        }
        assert_eq!(Pace::default().at(Duration::ZERO, 12), 0.0);
    }

    #[test]
    fn a_pause_is_forgotten_after_a_third_of_its_length() {
        let paused = |seconds_since| after(std::iter::repeat_n(0, 300).chain(std::iter::repeat_n(8, seconds_since))).0;
        assert_eq!(paused(105), 8.0);
        assert!(paused(50) > 4.0, "{}", paused(50));
    }

    #[test]
    fn a_pause_of_every_tenth_second_counts() {
        let tested = (0..2000).map(|second| if second % 10 == 0 { 0 } else { 10 });
        let (rate, marks) = after(tested);
        assert!((rate - 9.0).abs() < 0.1, "{rate}");
        assert!(marks < 80, "{marks} marks");
    }

    #[test]
    fn steps_that_are_repeated_have_no_pace() {
        let mut pace = Pace::default();
        pace.at(Duration::ZERO, 100);
        assert_eq!(pace.at(Duration::from_secs(2), 60), 0.0);
    }
}
