//! Errors of an operator: relative L2 per sample, ‖prediction − truth‖₂ / ‖truth‖₂, and its parts by snapshot, channel,
//! wavelength, and at the border or inside.
//!
//! A [`Tally`] takes one sample after the other, in f64 and in order, so the same predictions give the same bits;
//! [`Tally::finish`] gives the [`Evaluation`].

pub mod border;
pub mod distribution;
mod metrics;
mod receipt;
pub mod spectrum;
mod trivial;

pub use metrics::OutputErrors;
pub use receipt::{Costs, Hashes, Machine, RECEIPT, Receipt, TrainingDevice, hash_of_weights};
pub use trivial::Trivial;

use crate::data::Samples;
use crate::experiment::Experiment;
use crate::inference::Series;
use crate::task::{Spread, Task};
use border::{Border, Edge};
use distribution::Distribution;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};
use spectrum::{Analyser, Spectrum};

/// The error of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleError {
    /// Its number in the data set.
    pub sample: usize,
    /// Relative L2 over all snapshots, points and channels.
    pub error: f64,
}

/// A snapshot or channel whose truth is zero has an infinite relative error. JSON has no infinity and stores `null`.
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
    /// The official metric: the mean over samples of the relative L2 of the whole sample, all its times together.
    pub relative_l2: f64,
    /// Distribution of the errors over the samples.
    pub distribution: Distribution,
    /// For time series: the mean over samples of the relative L2 of each snapshot.
    #[serde(rename = "frames", default, skip_serializing_if = "Vec::is_empty", with = "infinite")]
    pub snapshots: Vec<f64>,
    /// For several outputs: the mean over samples of the relative L2 of each channel.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "infinite")]
    pub channels: Vec<f64>,
    /// The errors of each output field, also in its unit; empty in receipts of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputErrors>,
    /// For several output fields, except on published benchmarks: the mean of their relative errors, which is the headline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_of_outputs: Option<f64>,
    /// The errors of predictors that learn nothing; `None` in receipts of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trivial: Option<Trivial>,
    /// On lines, planes and volumes: error and truth by wave number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spectrum: Option<Spectrum>,
    /// On lines, planes and volumes: the outermost points against the inner ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub border: Option<Border>,
    /// Every sample, in the order of the split.
    #[serde(rename = "cases")]
    pub samples: Vec<SampleError>,
}

impl Evaluation {
    /// Measures predictions `[count, times, points, outputs]` of samples whose truth is known; `numbers` are their numbers in
    /// the data set. Panics unless there is a number, a prediction and a target for each sample.
    pub fn of(samples: &Samples, numbers: &[usize], prediction: &[f32]) -> Evaluation {
        assert_eq!(numbers.len(), samples.count, "a number for each sample");
        assert_eq!(prediction.len(), samples.targets.len(), "a prediction for each target");
        let mut tally = Tally::new(samples.grid, samples.times, samples.outputs);
        for (place, &number) in numbers.iter().enumerate() {
            tally.add(number, samples.part_of(prediction, place), samples.target_of(place));
        }
        tally.finish()
    }

    /// [`Evaluation::of`], with the errors of each output field of the task and with the trivial predictors. `train` are the
    /// samples that the model was trained on, where they are known. Snapshots that are predicted all at once are measured as
    /// the time series that they are.
    pub fn of_task(
        (experiment, task): (&Experiment, &Task),
        train: Option<&Samples>,
        (test, numbers): (&Samples, &[usize]),
        prediction: &[f32],
    ) -> Evaluation {
        let series = Series::of(task, test);
        let in_snapshots = series.as_ref().map(|series| series.values(prediction));
        let (seen, measured) = series.as_ref().map_or((task, test), |series| (&series.task, &series.samples));
        let found = in_snapshots.as_deref().unwrap_or(prediction);
        let outputs = metrics::of(seen, measured, found);
        let groups = experiment.output_groups(task);
        let mean_of_outputs = if groups.len() > 1 { metrics::mean_of_outputs(&outputs) } else { None };
        let trivial = Some(Trivial::of(task, &groups, train, test));
        let mut evaluation =
            Evaluation { outputs, mean_of_outputs, trivial, ..Evaluation::of(measured, numbers, found) };
        if task.outputs.iter().any(|field| field.spread == Spread::Sample) {
            // Numbers of whole samples have no waves and no border, and would count as such beside fields.
            (evaluation.spectrum, evaluation.border) = (None, None);
        }
        evaluation
    }

    /// The error that a run is known by: the mean of the relative errors of the outputs where a user's own data have
    /// several, else the official metric.
    pub fn headline(&self) -> f64 {
        self.mean_of_outputs.unwrap_or(self.relative_l2)
    }

    /// What [`Evaluation::headline`] is, in words.
    pub fn headline_name(&self) -> &'static str {
        if self.mean_of_outputs.is_some() {
            "mean over the outputs of their relative L2 error"
        } else {
            "mean relative L2 error"
        }
    }

    /// This evaluation without what an earlier one does not state, because an older version of lamo made it.
    fn as_stated_by(&self, earlier: &Evaluation) -> Evaluation {
        let mut same = self.clone();
        if earlier.outputs.is_empty() {
            (same.outputs, same.mean_of_outputs) = (Vec::new(), None);
        }
        same.trivial = same.trivial.filter(|_| earlier.trivial.is_some());
        same.spectrum = same.spectrum.filter(|_| earlier.spectrum.is_some());
        same
    }

    /// The mean over snapshots of their mean relative L2, `test_step` of the authors' code; a steady field has one snapshot.
    pub fn mean_snapshot(&self) -> f64 {
        if self.snapshots.is_empty() { self.relative_l2 } else { mean(&self.snapshots) }
    }

    /// The samples from best to worst.
    pub fn ranked(&self) -> Vec<SampleError> {
        let mut samples = self.samples.clone();
        samples.sort_by(|one, other| one.error.total_cmp(&other.error));
        samples
    }

    /// At most `count` samples, the worst first.
    pub fn worst(&self, count: usize) -> Vec<SampleError> {
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

/// Measures predictions sample by sample.
pub struct Tally {
    grid: Grid,
    snapshots: usize,
    channels: usize,
    samples: Vec<SampleError>,
    /// `[snapshots]` and `[channels]` sums over samples of relative errors
    by_snapshot: Vec<f64>,
    by_channel: Vec<f64>,
    spectrum: Option<Analyser>,
    border: Option<Edge>,
}

impl Tally {
    /// For samples of `[snapshots, points, channels]` values; nothing is counted yet. The samples of a cloud may have any
    /// number of points.
    pub fn new(grid: Grid, snapshots: usize, channels: usize) -> Tally {
        Tally {
            grid,
            snapshots,
            channels,
            samples: Vec::new(),
            by_snapshot: vec![0.0; snapshots],
            by_channel: vec![0.0; channels],
            spectrum: Analyser::of(grid),
            border: Edge::of(grid),
        }
    }

    /// Whether a sample may have so many values.
    fn allows(&self, count: usize) -> bool {
        let of_point = self.snapshots * self.channels;
        match self.grid {
            Grid::Cloud { .. } => count > 0 && count.is_multiple_of(of_point),
            Grid::Line { .. } | Grid::Plane { .. } | Grid::Volume { .. } => count == self.grid.points() * of_point,
        }
    }

    /// One channel of one snapshot of a sample, `[points]`.
    fn slice<'a>(&self, values: &'a [f32], snapshot: usize, channel: usize) -> impl Iterator<Item = f64> + use<'a> {
        let (size, channels) = (values.len() / self.snapshots, self.channels);
        values[snapshot * size..][..size].iter().skip(channel).step_by(channels).map(|&value| f64::from(value))
    }

    /// Counts one sample, `[snapshots, points, channels]` in physical units.
    pub fn add(&mut self, sample: usize, prediction: &[f32], truth: &[f32]) {
        let (snapshots, channels, count) = (self.snapshots, self.channels, truth.len());
        let fits = self.allows(count) && prediction.len() == count;
        assert!(fits, "a sample holds [snapshots, points, channels] values");
        let part = |snapshot, channel| {
            let of = |values| self.slice(values, snapshot, channel);
            Sums::of(of(prediction).zip(of(truth)))
        };
        // [snapshots][channels]
        let parts: Vec<Vec<Sums>> = (0..snapshots).map(|s| (0..channels).map(|c| part(s, c)).collect()).collect();
        let total = |parts: &mut dyn Iterator<Item = Sums>| parts.fold(Sums::default(), Sums::and);
        let whole = total(&mut parts.iter().flatten().copied());
        self.samples.push(SampleError { sample, error: whole.ratio() });
        for (sum, snapshot) in self.by_snapshot.iter_mut().zip(&parts) {
            *sum += total(&mut snapshot.iter().copied()).ratio();
        }
        for (channel, sum) in self.by_channel.iter_mut().enumerate() {
            *sum += total(&mut parts.iter().map(|snapshot| snapshot[channel])).ratio();
        }
        for (snapshot, channel) in (0..snapshots).flat_map(|s| (0..channels).map(move |channel| (s, channel))) {
            let mut expected: Vec<f64> = self.slice(truth, snapshot, channel).collect();
            let found = self.slice(prediction, snapshot, channel);
            let mut error: Vec<f64> = found.zip(&expected).map(|(found, expected)| found - expected).collect();
            if let Some(border) = &mut self.border {
                border.add(&error, whole.truth / count as f64);
            }
            if let Some(spectrum) = &mut self.spectrum {
                spectrum.add(&mut error, &mut expected, whole.truth);
            }
        }
    }

    /// The means; panics when nothing was counted.
    pub fn finish(self) -> Evaluation {
        let errors: Vec<f64> = self.samples.iter().map(|sample| sample.error).collect();
        let count = errors.len() as f64;
        let means = |sums: Vec<f64>| match sums.len() {
            0 | 1 => Vec::new(),
            _ => sums.into_iter().map(|sum| sum / count).collect(),
        };
        Evaluation {
            relative_l2: mean(&errors),
            distribution: Distribution::of(&errors),
            snapshots: means(self.by_snapshot),
            channels: means(self.by_channel),
            outputs: Vec::new(),
            mean_of_outputs: None,
            trivial: None,
            spectrum: self.spectrum.map(|spectrum| spectrum.finish(count)),
            border: self.border.map(Edge::finish),
            samples: self.samples,
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

    fn tally((grid, snapshots, channels): (Grid, usize, usize), pairs: &[(&[f32], &[f32])]) -> Evaluation {
        let mut tally = Tally::new(grid, snapshots, channels);
        pairs.iter().enumerate().for_each(|(sample, (found, truth))| tally.add(sample, found, truth));
        tally.finish()
    }

    #[test]
    fn the_metric_is_the_mean_of_the_ratios_not_the_ratio_of_the_means() {
        let shape = (CLOUD, 1, 1);
        let truth: [f32; 3] = [3.0, 0.0, 4.0]; // norm 5
        let found = tally(shape, &[(&[3.0, 1.0, 4.0], &truth), (&[0.0; 3], &truth)]);
        assert_eq!(found.samples, [SampleError { sample: 0, error: 0.2 }, SampleError { sample: 1, error: 1.0 }]);
        assert_eq!((found.relative_l2, found.mean_snapshot()), (0.6, 0.6));
        assert!(found.snapshots.is_empty() && found.channels.is_empty() && found.border.is_none());
    }

    #[test]
    fn snapshots_and_channels_are_measured_against_their_own_truth() {
        // two snapshots of three points of two channels; the second snapshot's second channel is off by a half
        let truth: [f32; 12] = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        let mut found = truth;
        [7, 9, 11].into_iter().for_each(|place| found[place] = 3.0);
        let evaluation = tally((CLOUD, 2, 2), &[(&found, &truth)]);
        assert_eq!(evaluation.snapshots, [0.0, (3.0f64 / 15.0).sqrt()]);
        assert_eq!(evaluation.channels, [0.0, (3.0f64 / 24.0).sqrt()]);
        assert_eq!(evaluation.relative_l2, (3.0f64 / 30.0).sqrt());
        assert_eq!(evaluation.mean_snapshot(), (3.0f64 / 15.0).sqrt() / 2.0);
    }

    #[test]
    fn the_worst_come_first_and_no_more_than_there_are() {
        let shape = (Grid::Cloud { points: 1 }, 1, 1);
        let evaluation = tally(shape, &[(&[1.5], &[1.0]), (&[3.0], &[1.0]), (&[1.0], &[1.0])]);
        let order = |cases: Vec<SampleError>| cases.iter().map(|case| case.sample).collect::<Vec<_>>();
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
        let shape = (Grid::Plane { rows: 4, columns: 5 }, 1, 1);
        let evaluation = tally(shape, &[(&found, &truth), (&truth, &found)]);
        let text = serde_json::to_string(&evaluation).unwrap();
        assert_eq!(serde_json::from_str::<Evaluation>(&text).unwrap(), evaluation);
    }
}
