//! What the pictures show of a run: one test sample with its prediction, and the time of a prediction of all. A small file beside
//! the receipt, so that pictures need neither the run folder nor the data.

use super::cell::Resolved;
use crate::data::Samples;
use crate::error::{Error, Refusal};
use crate::files::{self, atomic};
use crate::task::Positions;
use crate::workflow::Evaluated;
use lamo_geometry::Grid;
use lamo_tensor::Device;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Snapshots of a time series that are kept.
const SNAPSHOTS: usize = 3;
/// Significant digits of the values, enough for a colour.
const DIGITS: i32 = 4;

/// A field at one time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its number among the snapshots that are asked for, counted from 1; 0 for a steady field.
    pub number: usize,
    /// `[points, 2]` where the points lie at this time; empty on a lattice.
    pub positions: Vec<f32>,
    /// The truth.
    pub truth: Vec<f32>,
    /// The prediction.
    pub prediction: Vec<f32>,
    /// The length of the error.
    pub error: Vec<f32>,
}

/// One test sample of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct View {
    /// SHA-256 of the experiment.
    pub key: String,
    /// Name of the model.
    pub model: String,
    /// Number of the sample in its data set.
    pub sample: usize,
    /// Its relative L2 error.
    pub error: f64,
    /// Seconds of one prediction of all test samples, after the program is compiled; none where other cells shared the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_seconds: Option<f64>,
    /// The grid.
    pub grid: Grid,
    /// What is drawn of the output.
    pub output: String,
    /// The field given, or the last snapshot given; empty where the mesh is all.
    pub given: Vec<f32>,
    /// The output at some times.
    pub snapshots: Vec<Snapshot>,
}

/// The file of a view in a folder.
pub(super) fn path(folder: &Path, cell: &Resolved) -> PathBuf {
    folder.join(format!("{}.view.json", cell.name()))
}

impl View {
    /// The view of a cell, from the first of the folders that has it.
    pub fn find(folders: &[PathBuf], cell: &Resolved) -> Option<View> {
        let beside = |folder: &PathBuf| [path(folder, cell), path(&cell.folder(folder), cell)];
        let read = |path: PathBuf| serde_json::from_str::<View>(&files::read_to_string(&path).ok()?).ok();
        folders.iter().flat_map(beside).filter_map(read).find(|view| view.key == cell.key)
    }

    /// The test sample in the middle of the list, so that the choice does not depend on any error. `alone`: no other cell shares
    /// the device now.
    pub(super) fn of(cell: &Resolved, evaluated: &Evaluated, device: Device, alone: bool) -> Result<View, Error> {
        let Evaluated { test, prediction, receipt, trained, .. } = evaluated;
        let index = test.count / 2;
        let size = prediction.len() / test.count.max(1);
        let own = &prediction[index * size..][..size];
        let chosen = receipt.evaluation.samples.get(index);
        let chosen = chosen.ok_or_else(|| Refusal::said("an evaluation lists every test sample"))?;
        let numbers: Vec<usize> = match test.times {
            1 => vec![0],
            times => vec![0, (times - 1) / 2, times - 1],
        };
        let mut numbers: Vec<usize> = numbers.into_iter().take(SNAPSHOTS).collect();
        numbers.dedup();
        let deforms = test.outputs == 4;
        let output = trained.operator.task.outputs.first().map_or_else(String::new, |field| field.name.clone());
        Ok(View {
            key: cell.key.clone(),
            model: cell.cell.model.to_owned(),
            sample: chosen.sample,
            error: chosen.error,
            inference_seconds: alone.then(|| inference_seconds(evaluated, device)).transpose()?,
            grid: test.grid,
            output: if deforms { "displacement".to_owned() } else { output },
            given: given(test, index),
            snapshots: numbers
                .into_iter()
                .map(|time| snapshot(evaluated, (index, time), own, test.times > 1))
                .collect(),
        })
    }

    /// Writes the file.
    pub(super) fn write(&self, folder: &Path, cell: &Resolved) -> Result<(), Error> {
        let path = path(folder, cell);
        let text = serde_json::to_string(self).map_err(|error| Refusal::said(error.to_string()))? + "\n";
        atomic::replace(&path, text.as_bytes()).map_err(|reason| Error::writing(&path, reason))
    }
}

/// The last of the input functions: the field given, or the last snapshot of a series.
fn given(test: &Samples, index: usize) -> Vec<f32> {
    let Some(last) = test.functions.checked_sub(1) else { return Vec::new() };
    test.input_of(index).iter().skip(last).step_by(test.functions).map(|value| rounded(*value)).collect()
}

fn snapshot(evaluated: &Evaluated, (index, time): (usize, usize), own: &[f32], series: bool) -> Snapshot {
    let test = &evaluated.test;
    let (outputs, size) = (test.outputs, test.grid.points() * test.outputs);
    let part = |values: &[f32]| values[time * size..][..size].to_vec();
    let (truth, found) = (part(test.target_of(index)), part(own));
    let channel = |values: &[f32], channel: usize| -> Vec<f32> {
        values.iter().skip(channel).step_by(outputs).copied().collect()
    };
    let length = |one: Vec<f32>, other: Vec<f32>| -> Vec<f32> {
        one.iter().zip(&other).map(|(one, other)| rounded(one.hypot(*other))).collect()
    };
    let difference: Vec<f32> = truth.iter().zip(&found).map(|(truth, found)| found - truth).collect();
    let number = if series { time + 1 } else { 0 };
    if outputs == 4 {
        // A deformation: where each point has gone, and its displacement.
        let positions = channel(&truth, 0).into_iter().zip(channel(&truth, 1));
        return Snapshot {
            number,
            positions: positions.flat_map(|(x, y)| [rounded(x), rounded(y)]).collect(),
            truth: length(channel(&truth, 2), channel(&truth, 3)),
            prediction: length(channel(&found, 2), channel(&found, 3)),
            error: length(channel(&difference, 0), channel(&difference, 1)),
        };
    }
    let given = evaluated.trained.operator.task.positions == Positions::Given && test.space >= 2;
    let positions = test.positions_of(index).chunks_exact(test.space.max(1)).filter(|_| given);
    let all = |values: Vec<f32>| values.into_iter().map(rounded).collect();
    Snapshot {
        number,
        positions: positions.flat_map(|point| [rounded(point[0]), rounded(point[1])]).collect(),
        truth: all(channel(&truth, 0)),
        prediction: all(channel(&found, 0)),
        error: all(channel(&difference, 0).into_iter().map(f32::abs).collect()),
    }
}

/// One prediction of all test samples after a first one that compiles and warms up.
fn inference_seconds(evaluated: &Evaluated, device: Device) -> Result<f64, Error> {
    let Evaluated { trained, test, .. } = evaluated;
    let batch = crate::run::forward_batch(trained.operator.batch, device).min(test.count.max(1));
    let mut predictor = trained.operator.predictor(device, test.grid, batch)?;
    predictor.predict(test)?;
    let started = Instant::now();
    predictor.predict(test)?;
    Ok(started.elapsed().as_secs_f64())
}

/// A value with a few digits, which makes the file small.
pub(super) fn rounded(value: f32) -> f32 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    ((f64::from(value) * scale).round() / scale) as f32
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn values_keep_four_digits() {
        assert_eq!([0.0, 123_456.0, -0.001_234_56, 9.999_96].map(rounded), [0.0, 123_500.0, -0.001_235, 10.0]);
    }
}
