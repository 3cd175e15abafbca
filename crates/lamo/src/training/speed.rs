//! The time of a step and of a test on this machine, and how many epochs fit into a given time.

use super::Trainer;
use crate::error::{Error, Kind, Refusal};
use std::time::{Duration, Instant};

/// Steps before the measurement: the first ones fill caches, and record the program on a GPU.
const WARM: usize = 2;
/// Fewest and most steps that are measured.
const STEPS: [usize; 2] = [3, 500];
/// Longest measurement of steps, and of tests.
const LOOK: Duration = Duration::from_secs(2);
/// Share of the given time that each of the two measurements takes at most.
const LOOKING: f64 = 0.05;
/// Share of the given time that the epochs take; the rest is for checkpoints, the evaluation and a machine that slows down.
const SHARE: f64 = 0.9;
/// Share of the time of a training that its tests take at most.
const TESTING: f64 = 0.25;
/// Most epochs that follow from a time.
const MOST: usize = 10_000;
/// Tests in a training; there may be twice as many.
const TESTS: usize = 100;

/// What a training costs, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed {
    /// One epoch without its test.
    pub(crate) epoch: f64,
    /// One test.
    pub(crate) test: f64,
}

/// Epochs that fit into a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Length {
    /// Number of epochs, 1 at least.
    pub(crate) epochs: usize,
    /// Epochs between two tests.
    pub(crate) evaluate: usize,
    /// Seconds that they take.
    pub(crate) seconds: f64,
}

impl Speed {
    /// The epochs that fit into `seconds`, with a test every `evaluate` epochs. Where that is left open, there are about a
    /// hundred tests, and they take a quarter of the time at most.
    pub(crate) fn length(&self, seconds: f64, evaluate: Option<usize>) -> Length {
        let (epoch, seconds) = (self.epoch.max(1e-9), SHARE * seconds.max(0.0));
        let whole = |number: f64| (number as usize).clamp(1, MOST);
        let evaluate = evaluate.unwrap_or_else(|| {
            let rare = self.test * (1.0 - TESTING) / (TESTING * epoch);
            whole(seconds / epoch / TESTS as f64).max(whole(rare.ceil()))
        });
        let epochs = whole(seconds / (epoch + self.test / evaluate as f64));
        Length { epochs, evaluate, seconds: self.seconds(epochs, evaluate) }
    }

    /// Seconds of so many epochs; the last one is always tested.
    fn seconds(&self, epochs: usize, evaluate: usize) -> f64 {
        epochs as f64 * self.epoch + epochs.div_ceil(evaluate) as f64 * self.test
    }
}

impl Trainer {
    /// Takes some steps and tests some batches, and times them, for a small part of the `seconds` of the training. The trainer is
    /// of no use afterwards: its parameters have moved.
    pub(crate) fn measure(&mut self, seconds: f64, cancelled: impl Fn() -> bool) -> Result<Speed, Error> {
        let look = LOOK.min(Duration::try_from_secs_f64(LOOKING * seconds).unwrap_or(LOOK));
        let steps = self.steps();
        for step in (0..WARM).chain(self.program.first_steps()) {
            self.program.run(step % steps)?;
        }
        let step = measured(look, STEPS[0], &cancelled, |step| {
            self.program.run((WARM + step) % steps)?;
            // Reading the loss waits for a GPU, so it is read only where the time decides.
            if step + 1 >= STEPS[0] { self.program.mean_loss(1).map(|_| step + 1 == STEPS[1]) } else { Ok(false) }
        })?;
        self.begin_test()?;
        let batches = self.test.batches();
        let batch = measured(look, 1, &cancelled, |_| self.test.advance().map(|error| error.is_some()))?;
        Ok(Speed { epoch: step * self.epoch_steps() as f64, test: batch * batches as f64 })
    }
}

/// Seconds of one call of `work`, the mean over at least `least` calls; it ends after `look`, or when `work` returns true.
fn measured(
    look: Duration,
    least: usize,
    cancelled: impl Fn() -> bool,
    mut work: impl FnMut(usize) -> Result<bool, Error>,
) -> Result<f64, Error> {
    let begun = Instant::now();
    for call in 0.. {
        if cancelled() {
            break;
        }
        let ended = work(call)?;
        if ended || (call + 1 >= least && begun.elapsed() >= look) {
            return Ok(begun.elapsed().as_secs_f64() / (call + 1) as f64);
        }
    }
    Err(Refusal::said("stopped before the first step").of(Kind::Cancelled).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epochs_and_their_tests_fit_into_the_time() {
        for (epoch, test) in [(1.0, 0.1), (0.01, 0.002), (0.02, 5.0), (20.0, 300.0), (3.0, 0.0)] {
            for seconds in [60.0, 300.0, 36_000.0] {
                let (speed, bound) = (Speed { epoch, test }, SHARE * seconds);
                let length = speed.length(seconds, None);
                // The test of the last epoch is extra where the tests do not divide the epochs.
                let fits = length.epochs == 1 || length.seconds <= bound + test;
                assert!(fits, "{epoch} s and {test} s in {seconds} s: {length:?}");
                let filled = length.epochs == MOST || length.seconds > bound - 2.0 * (epoch + test);
                assert!(filled || length.epochs == 1, "{epoch} s and {test} s in {seconds} s: {length:?}");
                let tests = (length.epochs / length.evaluate) as f64 * test;
                assert!(tests <= TESTING * length.seconds + test, "{length:?}");
            }
        }
    }

    #[test]
    fn a_time_that_is_too_short_gives_one_epoch_and_says_what_it_takes() {
        let speed = Speed { epoch: 100.0, test: 10.0 };
        for seconds in [-5.0, 0.0, 20.0] {
            let length = speed.length(seconds, Some(1));
            assert_eq!((length.epochs, length.seconds), (1, 110.0), "{seconds} s");
        }
    }

    #[test]
    fn an_interval_of_tests_that_was_chosen_stays() {
        let speed = Speed { epoch: 1.0, test: 1.0 };
        assert_eq!(speed.length(200.0, Some(1)).epochs, 90);
        assert_eq!(speed.length(200.0, Some(7)).evaluate, 7);
    }

    #[test]
    fn a_measurement_that_is_cancelled_ends() {
        let error = measured(LOOK, 1, || true, |_| Ok(false)).unwrap_err();
        assert_eq!(error.kind(), Kind::Cancelled);
    }
}
