//! The errors of each output field in numbers that engineers ask for: relative L2, and in the unit of the field the mean
//! absolute error, the root mean square error and the largest error; R², relative H1, and the error of the energy spectrum.
//!
//! With e = prediction − truth u, over all test samples, times, points and channels of a field:
//! MAE = mean |e|, RMSE = √mean e², R² = 1 − Σe² / Σ(u − ū)² with ū the mean of each channel. Per sample, then averaged:
//! relative L2 = ‖e‖ / ‖u‖, H1 = √(‖e‖² + ‖∇e‖²) / √(‖u‖² + ‖∇u‖²), spectrum = Σₖ |E(k) − Eᵤ(k)| / Σₖ Eᵤ(k) over the wave
//! numbers k ≥ 1, with E(k) the energy of the prediction and Eᵤ(k) that of the truth. H1 and spectrum need a regular grid.

use super::spectrum::Analyser;
use crate::data::Samples;
use crate::task::{Spread, Task};
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The errors of one output field on the test samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputErrors {
    /// Name of the field.
    pub name: String,
    /// Its unit; `1` for dimensionless fields.
    pub unit: String,
    /// Mean over the samples of ‖e‖ / ‖u‖. Samples in which the field is zero everywhere do not count; `None` if it always
    /// is.
    pub relative_l2: Option<f64>,
    /// Mean absolute error, in the unit of the field.
    pub mae: f64,
    /// Root mean square error, in the unit of the field.
    pub rmse: f64,
    /// Largest absolute error at any point, in the unit of the field.
    pub max: f64,
    /// Share of the variance that the prediction explains; `None` for a constant truth.
    pub r2: Option<f64>,
    /// Relative error of value and gradient together, on a regular grid whose longest side is 1; `None` elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub h1: Option<f64>,
    /// Relative error of the energy spectrum without the mean; `None` where there is no regular grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spectrum: Option<f64>,
    /// For time series: the root mean square error of each snapshot, in the unit of the field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<f64>,
}

/// Mean of the relative errors of the outputs that have one; `None` if no output has.
pub(super) fn mean_of_outputs(outputs: &[OutputErrors]) -> Option<f64> {
    mean(&outputs.iter().filter_map(|output| output.relative_l2).collect::<Vec<_>>())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The errors of each output field of a task. Predictions and targets are `[count, times, points, outputs]`.
pub(super) fn of(task: &Task, samples: &Samples, prediction: &[f32]) -> Vec<OutputErrors> {
    let spacing = task.spacing(samples.grid, &samples.positions);
    let fields = task.outputs.iter().zip(task.output_ranges());
    let errors = fields.map(|(field, range)| {
        // A number of the whole sample has no gradient and no waves.
        let spacing = spacing.as_deref().filter(|_| field.spread != Spread::Sample);
        let measured = Measure { samples, prediction, range, spacing };
        measured.errors(field.name.clone(), field.unit.clone())
    });
    errors.collect()
}

/// One output field: the functions `range` of the outputs.
struct Measure<'a> {
    samples: &'a Samples,
    prediction: &'a [f32],
    range: Range<usize>,
    spacing: Option<&'a [f64]>,
}

impl Measure<'_> {
    /// `[points]` of one function of one time of a sample.
    fn plane<'v>(
        &self,
        values: &'v [f32],
        (sample, time): (usize, usize),
        function: usize,
    ) -> impl Iterator<Item = f64> + Clone + use<'v> {
        let outputs = self.samples.outputs;
        let size = self.samples.points_of(sample) * outputs;
        self.samples.part_of(values, sample)[time * size..][..size]
            .iter()
            .skip(function)
            .step_by(outputs)
            .map(|&value| f64::from(value))
    }

    /// Truth and error at the points of one function of one time of a sample.
    fn pair(&self, snapshot: (usize, usize), function: usize) -> (Vec<f64>, Vec<f64>) {
        let truth: Vec<f64> = self.plane(&self.samples.targets, snapshot, function).collect();
        let found = self.plane(self.prediction, snapshot, function);
        let error = found.zip(&truth).map(|(found, truth)| found - truth).collect();
        (truth, error)
    }

    fn errors(&self, name: String, unit: String) -> OutputErrors {
        let Samples { count, times, grid, .. } = *self.samples;
        let analyser = self.spacing.and_then(|_| Analyser::of(grid));
        let mut by_time = vec![0.0; times];
        let [mut absolute, mut largest] = [0.0f64; 2];
        let [mut relative, mut h1, mut spectrum] = [Vec::new(), Vec::new(), Vec::new()];
        for sample in 0..count {
            let [mut error_square, mut truth_square, mut error_slope, mut truth_slope] = [0.0; 4];
            let mut energies: Option<[Vec<f64>; 2]> = None;
            for (time, function) in (0..times).flat_map(|time| self.range.clone().map(move |function| (time, function)))
            {
                let (truth, error) = self.pair((sample, time), function);
                let square = squares(&error);
                by_time[time] += square;
                error_square += square;
                truth_square += squares(&truth);
                absolute += error.iter().map(|error| error.abs()).sum::<f64>();
                largest = error.iter().fold(largest, |largest, error| largest.max(error.abs()));
                if let Some(spacing) = self.spacing {
                    error_slope += slopes(&error, grid, spacing);
                    truth_slope += slopes(&truth, grid, spacing);
                }
                if let Some(analyser) = &analyser {
                    let found: Vec<f64> = truth.iter().zip(&error).map(|(truth, error)| truth + error).collect();
                    let new = [found, truth].map(|field| analyser.energies(field));
                    energies = Some(match energies {
                        None => new,
                        Some([one, two]) => [add(one, &new[0]), add(two, &new[1])],
                    });
                }
            }
            if truth_square > 0.0 {
                relative.push((error_square / truth_square).sqrt());
                h1.push(((error_square + error_slope) / (truth_square + truth_slope)).sqrt());
            }
            spectrum.extend(energies.and_then(|[found, truth]| spectrum_error(&found, &truth)));
        }
        let each = (self.samples.total_points() * self.range.len()) as f64; // values at one time
        let total: f64 = by_time.iter().sum();
        OutputErrors {
            name,
            unit,
            relative_l2: mean(&relative),
            mae: absolute / (each * times as f64),
            rmse: (total / (each * times as f64)).sqrt(),
            max: largest,
            r2: self.variance().map(|variance| 1.0 - total / variance),
            h1: self.spacing.and_then(|_| mean(&h1)),
            spectrum: mean(&spectrum),
            over_time: if times > 1 { by_time.iter().map(|sum| (sum / each).sqrt()).collect() } else { Vec::new() },
        }
    }

    /// Σ (u − ū)² with ū the mean of each function over samples, times and points; `None` if it is 0.
    fn variance(&self) -> Option<f64> {
        let Samples { count, times, .. } = *self.samples;
        let of = |function: usize| {
            let snapshots = || (0..count * times).map(|place| (place / times, place % times));
            let all = || snapshots().flat_map(|snapshot| self.plane(&self.samples.targets, snapshot, function));
            let middle = all().sum::<f64>() / (times * self.samples.total_points()) as f64;
            all().map(|value| (value - middle).powi(2)).sum::<f64>()
        };
        let variance: f64 = self.range.clone().map(of).sum();
        (variance > 0.0).then_some(variance)
    }
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

fn add(mut one: Vec<f64>, two: &[f64]) -> Vec<f64> {
    one.iter_mut().zip(two).for_each(|(one, two)| *one += two);
    one
}

/// Σ over the axes of ‖Δu / h‖², with differences of neighbours.
fn slopes(field: &[f64], grid: Grid, spacing: &[f64]) -> f64 {
    let shape = grid.shape();
    let along = |axis: usize| {
        let stride: usize = shape[axis + 1..].iter().product();
        let inside = |point: &usize| point / stride % shape[axis] + 1 < shape[axis];
        let slope = |point: usize| (field[point + stride] - field[point]) / spacing[axis];
        (0..field.len()).filter(inside).map(|point| slope(point).powi(2)).sum::<f64>()
    };
    (0..shape.len()).map(along).sum()
}

/// Σ |E(k) − Eᵤ(k)| / Σ Eᵤ(k) over k ≥ 1; `None` where the truth is constant.
fn spectrum_error(found: &[f64], truth: &[f64]) -> Option<f64> {
    let rings = || found.iter().zip(truth).skip(1);
    let [whole, mean] = [truth.iter().sum::<f64>(), truth.first().copied().unwrap_or_default()];
    let energy: f64 = rings().map(|(_, truth)| truth).sum();
    // What rounding leaves of a constant field is no energy.
    let fluctuates = energy > 1e-12 * whole.max(mean);
    fluctuates.then(|| rings().map(|(found, truth)| (found - truth).abs()).sum::<f64>() / energy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Field, Positions};
    use std::f64::consts::PI;

    /// Two samples of two times on a line of three points: the fields `p` in kPa and `v` of two channels in m/s.
    fn two_fields() -> (Task, Samples) {
        let fields = vec![
            Field { unit: "kPa".into(), ..Field::plain("p", 1) },
            Field { unit: "m/s".into(), ..Field::plain("v", 2) },
        ];
        let task = Task { outputs: fields, ..Task::plain(Grid::Line { points: 3 }, 1, 1, 3).by_time(2) };
        let targets: Vec<f32> = (0..2 * 2 * 3).flat_map(|k| [100.0 + 10.0 * k as f32, 3.0, 4.0]).collect();
        let positions = vec![0.0, 0.5, 1.0];
        let inputs = vec![1.0; 6];
        let (count, grid, space, functions, times, outputs) = (2, Grid::Line { points: 3 }, 1, 1, 2, 3);
        (
            task,
            Samples { count, grid, offsets: Vec::new(), space, positions, functions, inputs, times, outputs, targets },
        )
    }

    #[test]
    fn each_field_is_measured_in_its_own_unit() {
        let (task, samples) = two_fields();
        let mut prediction = samples.targets.clone();
        prediction[1] += 0.5; // the first channel of v at the first point of the first time of the first sample
        let [p, v] = &of(&task, &samples, &prediction)[..] else { panic!("two fields") };
        assert_eq!((p.name.as_str(), p.unit.as_str(), v.name.as_str(), v.unit.as_str()), ("p", "kPa", "v", "m/s"));
        assert_eq!((p.relative_l2, p.mae, p.rmse, p.max, p.r2), (Some(0.0), 0.0, 0.0, 0.0, Some(1.0)));
        // 24 values of v, one of them wrong by 0.5; the truth of a sample has the norm 5 √6
        let relative = 0.5 / (25.0f64 * 6.0).sqrt() / 2.0;
        assert!((v.relative_l2.unwrap() - relative).abs() < 1e-15, "{v:?}");
        assert_eq!((v.mae, v.max, v.rmse), (0.5 / 24.0, 0.5, (0.25f64 / 24.0).sqrt()));
        assert_eq!(v.over_time, [(0.25f64 / 12.0).sqrt(), 0.0]);
        assert_eq!(v.r2, None, "each channel of v is constant");
        assert_eq!(mean_of_outputs(&[p.clone(), v.clone()]), v.relative_l2.map(|error| error / 2.0));
    }

    #[test]
    fn the_mean_explains_nothing_of_the_variance_and_a_field_of_zeros_has_no_relative_error() {
        let task = Task::plain(Grid::Cloud { points: 2 }, 2, 1, 1);
        let positions = vec![0.0; 4];
        let (count, grid, space, functions, times, outputs) = (2, Grid::Cloud { points: 2 }, 2, 1, 1, 1);
        let inputs = vec![0.0; 4];
        let targets = vec![1.0, 3.0, 5.0, 7.0];
        let mut samples =
            Samples { count, grid, offsets: Vec::new(), space, positions, functions, inputs, times, outputs, targets };
        let [found] = &of(&task, &samples, &[4.0; 4])[..] else { panic!("one field") };
        assert_eq!((found.r2, found.mae, found.max), (Some(0.0), 2.0, 3.0));
        assert_eq!((found.h1, found.spectrum), (None, None), "a cloud has no neighbours");
        samples.targets = vec![0.0, 0.0, 3.0, 4.0];
        let [found] = &of(&task, &samples, &[1.0, 1.0, 3.0, 5.0])[..] else { panic!("one field") };
        assert_eq!(found.relative_l2, Some(0.2), "the first sample has no relative error");
        samples.targets = vec![0.0; 4];
        let [found] = &of(&task, &samples, &[1.0; 4])[..] else { panic!("one field") };
        assert_eq!((found.relative_l2, found.r2, found.rmse), (None, None, 1.0));
        assert_eq!(mean_of_outputs(std::slice::from_ref(found)), None);
    }

    /// ∂ sin(2πx) has 2π times the norm of sin; an error of 1 % of a wave of frequency q has q times its slope.
    #[test]
    fn h1_counts_the_slope_of_the_error() {
        let points = 2000;
        let wave = |waves: f64| move |k: usize| (2.0 * PI * waves * k as f64 / (points - 1) as f64).sin();
        let (slow, fast) = (wave(1.0), wave(8.0));
        let samples = |truth: Vec<f32>| Samples::new(Grid::Line { points }, 1, vec![0.0; points], 1, truth).unwrap();
        let task = Task { positions: Positions::Lattice, ..Task::plain(Grid::Line { points }, 1, 1, 1) };
        let truth: Vec<f32> = (0..points).map(|k| slow(k) as f32).collect();
        let found: Vec<f32> = (0..points).map(|k| (slow(k) + 0.01 * fast(k)) as f32).collect();
        let [errors] = &of(&task, &samples(truth), &found)[..] else { panic!("one field") };
        let slope = |waves: f64| 1.0 + (2.0 * PI * waves).powi(2);
        let expected = 0.01 * (slope(8.0) / slope(1.0)).sqrt();
        assert!((errors.h1.unwrap() / expected - 1.0).abs() < 1e-3, "{:?} and {expected}", errors.h1);
        assert!((errors.relative_l2.unwrap() / 0.01 - 1.0).abs() < 1e-3);
    }

    /// A prediction whose waves are in another place has the right spectrum; one with twice the amplitude has four times
    /// the energy.
    #[test]
    fn the_spectrum_sees_energies_and_not_places() {
        let (rows, columns) = (24, 20);
        let grid = Grid::Plane { rows, columns };
        let cosine = |halves: usize, place: usize, points: usize| {
            (PI * halves as f64 * (place as f64 + 0.5) / points as f64).cos()
        };
        let field = |factor: f64, offset: f64| -> Vec<f32> {
            let value = |at: usize| offset + factor * cosine(4, at / columns, rows) * cosine(2, at % columns, columns);
            (0..rows * columns).map(|at| value(at) as f32).collect()
        };
        let task = Task { positions: Positions::Lattice, ..Task::plain(grid, 2, 1, 1) };
        let samples = Samples::new(grid, 1, vec![0.0; rows * columns], 1, field(1.0, 5.0)).unwrap();
        let error = |found: &[f32]| of(&task, &samples, found)[0].spectrum.unwrap();
        assert!(error(&field(-1.0, 5.0)) < 1e-6, "the other sign has the same energy");
        assert!((error(&field(2.0, 5.0)) - 3.0).abs() < 1e-5, "{}", error(&field(2.0, 5.0)));
        assert!(error(&field(1.0, 9.0)) < 1e-6, "the mean does not count");
        assert!((error(&field(0.0, 5.0)) - 1.0).abs() < 1e-6, "no fluctuations at all");
        let constant = Samples::new(grid, 1, vec![0.0; rows * columns], 1, field(0.0, 5.0)).unwrap();
        assert_eq!(of(&task, &constant, &field(1.0, 5.0))[0].spectrum, None);
    }
}
