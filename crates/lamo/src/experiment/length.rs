//! The length of a training on a user's data where the user does not choose it.
//!
//! A model needs some thousands of optimiser steps, however few samples there are: 100 samples in batches of 8 have 13 steps an
//! epoch, and the 30 epochs of the preset `quick` would be 390 steps. So the preset states the epochs E of a data set of medium
//! size, and the number of steps is E · clamp(steps of an epoch, 100, 400). It follows from sizes alone, never from the clock,
//! so that the same data give the same training on every machine.

use super::{Experiment, Preset, selection};
use crate::data::Dataset;
use crate::error::Error;

/// Steps of an epoch below which a training gets more epochs than its preset states.
const FEW: usize = 100;
/// Steps of an epoch above which it gets fewer.
const MANY: usize = 400;
/// Fewest steps that take the place of [`FEW`] on large grids.
const LEAST: usize = 25;
/// Values at the points of a sample, at all snapshots of a window, up to which a step of the preset `quick` is fast on a CPU.
const POINTS: usize = 2048;
/// Share of the training samples that a batch has at most: smaller batches make the steps of small data sets cheaper.
const QUARTER: usize = 4;
/// Tests in a training that was not told when to test; there may be twice as many.
const TESTS: usize = 100;

/// Samples of a batch: as many as the preset states, and at most a quarter of the training samples.
pub(crate) fn default_batch(preset: usize, samples: usize) -> usize {
    preset.min((samples / QUARTER).max(1))
}

/// Epochs between two tests.
pub(crate) fn default_evaluate(epochs: usize) -> usize {
    (epochs / TESTS).max(1)
}

/// Epochs of a training on `samples` samples of a user's data; `experiment` has the epochs of the preset and the final batch.
pub(crate) fn default_epochs(experiment: &Experiment, dataset: &Dataset, samples: usize) -> Result<usize, Error> {
    let (_, outputs) = selection::fields(experiment, dataset)?;
    let snapshots = outputs.iter().filter_map(|field| field.snapshots).max().unwrap_or(1);
    let (turns, windows) = experiment.time_mode().turns_and_windows(snapshots);
    let few = match experiment.preset {
        Preset::Quick => few_steps(dataset.mean_points().saturating_mul(windows)),
        Preset::Paper | Preset::Best => FEW,
    };
    let steps = samples.div_ceil(experiment.train.batch).max(1) * turns;
    Ok(epochs(experiment.train.epochs, steps, few))
}

/// The preset's epochs, more where an epoch has few steps, fewer where it has many.
fn epochs(preset: usize, steps: usize, few: usize) -> usize {
    preset.saturating_mul(steps.clamp(few, MANY)).div_ceil(steps)
}

/// [`FEW`], fewer on grids whose steps are slow on a CPU.
fn few_steps(points: usize) -> usize {
    (FEW.saturating_mul(POINTS) / points.max(POINTS)).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_get_more_epochs_and_many_samples_fewer() {
        for (steps, expected) in [(1, 3000), (13, 231), (100, 30), (250, 30), (400, 30), (1200, 10), (1_000_000, 1)] {
            assert_eq!(epochs(30, steps, FEW), expected, "{steps} steps an epoch");
        }
    }

    #[test]
    fn a_training_on_a_large_grid_is_shorter_but_has_hundreds_of_steps() {
        for (points, expected) in [(1, 100), (2048, 100), (4096, 50), (7225, 28), (1_000_000, 25), (usize::MAX, 25)] {
            assert_eq!(few_steps(points), expected, "{points} points");
        }
    }

    #[test]
    fn a_batch_has_at_most_a_quarter_of_the_samples() {
        for (samples, expected) in [(1, 1), (3, 1), (9, 2), (31, 7), (32, 8), (1000, 8)] {
            assert_eq!(default_batch(8, samples), expected, "{samples} samples");
        }
    }

    #[test]
    fn a_training_has_about_a_hundred_tests() {
        for (epochs, expected) in [(1, 1), (199, 1), (200, 2), (3000, 30)] {
            assert_eq!(default_evaluate(epochs), expected, "{epochs} epochs");
        }
    }
}
