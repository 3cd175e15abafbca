//! How good is an operator? Relative L2 per sample, ‖prediction − truth‖₂ / ‖truth‖₂, and where the error sits: in which
//! samples, frames, channels and wavelengths, at the border or inside.
//!
//! A [`Tally`] takes one sample after the other, in f64 and in order, so the same predictions give the same bits;
//! [`Tally::finish`] gives the [`Evaluation`]. From one's own arrays to a judged model:
//!
//! ```no_run
//! use lamo::{case::Case, evaluate::Evaluation, experiment::Request, samples::Samples, train::Trainer};
//! use lamo_geometry::Grid;
//! use lamo_tensor::Device;
//! use std::{ops::ControlFlow, time::Duration};
//! # fn load(_: &str) -> (Vec<f32>, Vec<f32>) { unreachable!() }
//!
//! let grid = Grid::Plane { rows: 64, columns: 64 };
//! let [train, test] = ["train", "test"].map(|name| {
//!     let (inputs, targets) = load(name); // [samples, points, 1] each, as Vec<f32>
//!     Samples::new(grid, 1, inputs, 1, targets)
//! });
//! let (train, test) = (train?, test?);
//! let experiment = Request { model: Some("lamo"), ..Request::default() }.resolve()?;
//! let case = Case::of(&experiment, &train)?;
//! let mut trainer = Trainer::new(&experiment, &case, &train, &test, Device::Cpu)?;
//! trainer.run(None, Duration::from_secs(60), &mut |_| ControlFlow::Continue(()))?;
//! let prediction = trainer.trained().predict(&test, Device::Cpu)?;
//! let numbers: Vec<usize> = (0..test.count).collect();
//! let evaluation = Evaluation::of(&test, &numbers, &prediction);
//! assert!(evaluation.relative_l2 < 0.05, "worst: {:?}", evaluation.worst(3));
//! # Ok::<(), lamo::error::Error>(())
//! ```

pub mod border;
pub mod distribution;
mod receipt;
pub mod spectrum;

pub use receipt::{Costs, Hashes, Machine, RECEIPT, Receipt};

use crate::data::Samples;
use border::{Border, Edge};
use distribution::Distribution;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};
use spectrum::{Analyser, Spectrum};

/// What the values of one sample are: `[frames, points, channels]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Where the points are.
    pub grid: Grid,
    /// Moments in time; 1 for a still field.
    pub frames: usize,
    /// Values at a point.
    pub channels: usize,
}

impl Layout {
    /// Values of a sample.
    pub fn count(&self) -> usize {
        self.frames * self.grid.points() * self.channels
    }

    /// One channel of one frame of a sample, `[points]`.
    fn slice<'a>(&self, values: &'a [f32], frame: usize, channel: usize) -> impl Iterator<Item = f64> + 'a {
        let (size, channels) = (self.grid.points() * self.channels, self.channels);
        values[frame * size..][..size].iter().skip(channel).step_by(channels).map(|&value| f64::from(value))
    }
}

/// The error of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its place in the data set.
    pub sample: usize,
    /// Relative L2 over all frames, points and channels.
    pub error: f64,
}

/// JSON has no infinity, which is the relative error of a frame or channel that is zero: `null` stands for it.
mod infinite {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        let finite: Vec<Option<f64>> = values.iter().map(|value| value.is_finite().then_some(*value)).collect();
        finite.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        let values = Vec::<Option<f64>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|value| value.unwrap_or(f64::INFINITY)).collect())
    }
}

/// All that was measured on the test samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// The official metric: the mean over samples of the relative L2 of the whole sample, film included.
    pub relative_l2: f64,
    /// How the errors of the samples are spread.
    pub distribution: Distribution,
    /// Of films: the mean over samples of the relative L2 of each frame.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "infinite")]
    pub frames: Vec<f64>,
    /// Of several outputs: the mean over samples of the relative L2 of each channel.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "infinite")]
    pub channels: Vec<f64>,
    /// On planes: error and truth by wave number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spectrum: Option<Spectrum>,
    /// On lines and planes: the outermost points against the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub border: Option<Border>,
    /// Every sample, in the order of the split.
    pub cases: Vec<Case>,
}

impl Evaluation {
    /// Of predictions `[count, times, points, outputs]` for samples whose truth is known; `numbers` are their places in
    /// the data set. Panics where numbers, predictions or targets are not as many as the samples.
    pub fn of(samples: &Samples, numbers: &[usize], prediction: &[f32]) -> Evaluation {
        assert_eq!(numbers.len(), samples.count, "a number for each sample");
        assert_eq!(prediction.len(), samples.targets.len(), "a prediction for each target");
        let layout = Layout { grid: samples.grid, frames: samples.times, channels: samples.outputs };
        let mut tally = Tally::new(layout);
        for (place, &number) in numbers.iter().enumerate() {
            tally.add(number, &prediction[place * layout.count()..][..layout.count()], samples.target_of(place));
        }
        tally.finish()
    }

    /// The mean over frames of the mean relative L2 of a frame, `test_step` of the authors' code; a still field has one.
    pub fn mean_frame(&self) -> f64 {
        if self.frames.is_empty() { self.relative_l2 } else { mean(&self.frames) }
    }

    /// The samples from best to worst.
    pub fn ranked(&self) -> Vec<Case> {
        let mut cases = self.cases.clone();
        cases.sort_by(|one, other| one.error.total_cmp(&other.error));
        cases
    }

    /// At most so many samples, the worst first.
    pub fn worst(&self, count: usize) -> Vec<Case> {
        self.ranked().into_iter().rev().take(count).collect()
    }
}

/// ‖prediction − truth‖₂ / ‖truth‖₂; a truth of zero norm gives infinity, as in [`crate::training::loss::relative_l2`].
pub fn relative_l2(prediction: &[f32], truth: &[f32]) -> f64 {
    assert_eq!(prediction.len(), truth.len(), "a prediction has as many values as the truth");
    Sums::of(prediction.iter().zip(truth).map(|(&found, &expected)| (f64::from(found), f64::from(expected)))).ratio()
}

/// Sums of squares of an error and of the truth.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    error: f64,
    truth: f64,
}

impl Sums {
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Sums {
        pairs.fold(Sums::default(), |sums, (found, expected)| {
            let gap = found - expected;
            Sums { error: sums.error + gap * gap, truth: sums.truth + expected * expected }
        })
    }

    fn and(self, other: Sums) -> Sums {
        Sums { error: self.error + other.error, truth: self.truth + other.truth }
    }

    fn ratio(&self) -> f64 {
        if self.truth == 0.0 { f64::INFINITY } else { (self.error / self.truth).sqrt() }
    }
}

/// Takes predictions sample by sample.
pub struct Tally {
    layout: Layout,
    cases: Vec<Case>,
    /// `[frames]` and `[channels]` sums over samples of relative errors
    frames: Vec<f64>,
    channels: Vec<f64>,
    spectrum: Option<Analyser>,
    border: Option<Edge>,
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(layout: Layout) -> Tally {
        Tally {
            layout,
            cases: Vec::new(),
            frames: vec![0.0; layout.frames],
            channels: vec![0.0; layout.channels],
            spectrum: Analyser::of(layout.grid),
            border: Edge::of(layout.grid),
        }
    }

    /// Counts one sample, `[frames, points, channels]` in physical units.
    pub fn add(&mut self, sample: usize, prediction: &[f32], truth: &[f32]) {
        let Layout { frames, channels, .. } = self.layout;
        for values in [prediction, truth] {
            assert_eq!(values.len(), self.layout.count(), "a sample holds [frames, points, channels] values");
        }
        let part = |frame, channel| {
            let of = |values| self.layout.slice(values, frame, channel);
            Sums::of(of(prediction).zip(of(truth)))
        };
        // [frames][channels]
        let parts: Vec<Vec<Sums>> = (0..frames).map(|f| (0..channels).map(|c| part(f, c)).collect()).collect();
        let total = |parts: &mut dyn Iterator<Item = Sums>| parts.fold(Sums::default(), Sums::and);
        let whole = total(&mut parts.iter().flatten().copied());
        self.cases.push(Case { sample, error: whole.ratio() });
        for (sum, frame) in self.frames.iter_mut().zip(&parts) {
            *sum += total(&mut frame.iter().copied()).ratio();
        }
        for (channel, sum) in self.channels.iter_mut().enumerate() {
            *sum += total(&mut parts.iter().map(|frame| frame[channel])).ratio();
        }
        for (frame, channel) in (0..frames).flat_map(|frame| (0..channels).map(move |channel| (frame, channel))) {
            let mut expected: Vec<f64> = self.layout.slice(truth, frame, channel).collect();
            let found = self.layout.slice(prediction, frame, channel);
            let mut error: Vec<f64> = found.zip(&expected).map(|(found, expected)| found - expected).collect();
            if let Some(border) = &mut self.border {
                border.add(&error, whole.truth / self.layout.count() as f64);
            }
            if let Some(spectrum) = &mut self.spectrum {
                spectrum.add(&mut error, &mut expected, whole.truth);
            }
        }
    }

    /// The means; panics when nothing was counted.
    pub fn finish(self) -> Evaluation {
        let errors: Vec<f64> = self.cases.iter().map(|case| case.error).collect();
        let count = errors.len() as f64;
        let means = |sums: Vec<f64>| match sums.len() {
            0 | 1 => Vec::new(),
            _ => sums.into_iter().map(|sum| sum / count).collect(),
        };
        Evaluation {
            relative_l2: mean(&errors),
            distribution: Distribution::of(&errors),
            frames: means(self.frames),
            channels: means(self.channels),
            spectrum: self.spectrum.map(|spectrum| spectrum.finish(count)),
            border: self.border.map(Edge::finish),
            cases: self.cases,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "the mean of nothing");
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOUD: Grid = Grid::Cloud { points: 3 };

    fn tally(layout: Layout, pairs: &[(&[f32], &[f32])]) -> Evaluation {
        let mut tally = Tally::new(layout);
        pairs.iter().enumerate().for_each(|(sample, (found, truth))| tally.add(sample, found, truth));
        tally.finish()
    }

    #[test]
    fn the_metric_is_the_mean_of_the_ratios_not_the_ratio_of_the_means() {
        let layout = Layout { grid: CLOUD, frames: 1, channels: 1 };
        let truth: [f32; 3] = [3.0, 0.0, 4.0]; // norm 5
        let found = tally(layout, &[(&[3.0, 1.0, 4.0], &truth), (&[0.0; 3], &truth)]);
        assert_eq!(found.cases, [Case { sample: 0, error: 0.2 }, Case { sample: 1, error: 1.0 }]);
        assert_eq!((found.relative_l2, found.mean_frame()), (0.6, 0.6));
        assert!(found.frames.is_empty() && found.channels.is_empty() && found.border.is_none());
    }

    #[test]
    fn frames_and_channels_are_judged_each_by_their_own_truth() {
        // two frames of three points of two channels; the second frame's second channel is off by a half
        let truth: [f32; 12] = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        let mut found = truth;
        [7, 9, 11].into_iter().for_each(|place| found[place] = 3.0);
        let evaluation = tally(Layout { grid: CLOUD, frames: 2, channels: 2 }, &[(&found, &truth)]);
        assert_eq!(evaluation.frames, [0.0, (3.0f64 / 15.0).sqrt()]);
        assert_eq!(evaluation.channels, [0.0, (3.0f64 / 24.0).sqrt()]);
        assert_eq!(evaluation.relative_l2, (3.0f64 / 30.0).sqrt());
        assert_eq!(evaluation.mean_frame(), (3.0f64 / 15.0).sqrt() / 2.0);
    }

    #[test]
    fn the_worst_come_first_and_no_more_than_there_are() {
        let layout = Layout { grid: Grid::Cloud { points: 1 }, frames: 1, channels: 1 };
        let evaluation = tally(layout, &[(&[1.5], &[1.0]), (&[3.0], &[1.0]), (&[1.0], &[1.0])]);
        let order = |cases: Vec<Case>| cases.iter().map(|case| case.sample).collect::<Vec<_>>();
        assert_eq!(order(evaluation.worst(2)), [1, 0]);
        assert_eq!(order(evaluation.worst(9)), [1, 0, 2]);
        assert_eq!(order(evaluation.ranked()), [2, 0, 1]);
    }

    #[test]
    fn a_truth_of_zeros_is_infinitely_wrong() {
        assert_eq!(relative_l2(&[1.0], &[0.0]), f64::INFINITY);
        assert_eq!(relative_l2(&[0.0], &[0.0]), f64::INFINITY);
        assert_eq!(relative_l2(&[2.0], &[1.0]), 1.0);
    }

    #[test]
    fn an_evaluation_survives_json_bit_for_bit() {
        let truth: Vec<f32> = (0..20).map(|k| 1.0 + (k as f32).sin()).collect();
        let found: Vec<f32> = truth.iter().map(|value| value * 1.0137).collect();
        let layout = Layout { grid: Grid::Plane { rows: 4, columns: 5 }, frames: 1, channels: 1 };
        let evaluation = tally(layout, &[(&found, &truth), (&truth, &found)]);
        let text = serde_json::to_string(&evaluation).unwrap();
        assert_eq!(serde_json::from_str::<Evaluation>(&text).unwrap(), evaluation);
    }
}
