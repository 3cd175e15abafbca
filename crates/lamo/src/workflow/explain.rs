//! Explain: what a model does with one of its test samples.

use super::Session;
use super::evaluate::{Opened, open};
use crate::data::{Drawn, Samples};
use crate::error::{Error, Kind, Refusal, require};
use crate::inference::evaluate::Evaluation;
use crate::inference::explain::{Explanation, Regions};
use crate::run::Trained;
use lamo_geometry::Grid;
use lamo_tensor::{Device, attempt};
use std::path::PathBuf;

/// A sample to explain.
#[derive(Clone, Debug)]
pub struct ExplainRequest {
    /// Run folder, checkpoint file, pretrained model, or a model folder, which needs `data`.
    pub model: PathBuf,
    /// A data set to use in place of the run's data.
    pub data: Option<PathBuf>,
    /// Its place among the test samples.
    pub sample: usize,
    /// The point whose output is asked about; that of the largest error unless given.
    pub point: Option<usize>,
    /// The output channel that is asked about.
    pub channel: usize,
    /// Where to compute.
    pub device: Device,
}

/// A region of the domain.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// Its points.
    pub points: usize,
    /// Root mean square of the error over that of the truth at all points.
    pub error: f64,
    /// Share of the squared error.
    pub share: f64,
    /// Share of the influence on the asked output, Σ over its points of its strength.
    pub influence: f64,
}

/// A sample that is explained.
#[derive(Debug)]
pub struct ExplainedSample {
    /// The model.
    pub trained: Trained,
    /// Name of the problem of the data.
    pub problem: String,
    /// Its number in the data set.
    pub number: usize,
    /// The sample alone.
    pub samples: Samples,
    /// The triangles as which it is drawn; none where no cells are known.
    pub triangles: Drawn,
    /// `[times, points, outputs]` its prediction in physical units
    pub prediction: Vec<f32>,
    /// The time that is explained: the first step of a roll-out, the last time of a model that is given a time.
    pub time: usize,
    /// Its errors; those by wave number on lines and planes.
    pub evaluation: Evaluation,
    /// Its errors and influences by region.
    pub regions: Vec<Region>,
    /// The region of each point.
    pub region_of: Vec<usize>,
    /// Matrices, tokens and influence.
    pub explanation: Explanation,
}

/// Opens a model, predicts one test sample and explains it.
pub fn explain(request: &ExplainRequest, session: &Session<'_>) -> Result<ExplainedSample, Error> {
    let ExplainRequest { model, data, sample, point, channel, device } = request;
    let Opened { trained, dataset, split, test, .. } = open(model, data.as_deref(), *device, session)?;
    let most = test.count.saturating_sub(1);
    require(*sample < test.count, || {
        Refusal::new("--sample", format!("one of the test samples 0 to {most}"), sample.to_string()).of(Kind::Missing)
    })?;
    let (points, outputs) = (test.points_of(*sample), test.outputs);
    for (name, found, extent) in [("--point", point.unwrap_or(0), points), ("--channel", *channel, outputs)] {
        require(found < extent, || {
            Refusal::new(name, format!("a number from 0 to {}", extent - 1), found.to_string()).of(Kind::Missing)
        })?;
    }
    let samples = alone(&test, *sample);
    drop(test);
    let operator = &trained.operator;
    attempt(
        || session.cancel.is_cancelled(),
        || {
            let prediction = operator.predict(&samples, *device)?;
            let number = split.test.get(*sample).copied().unwrap_or(*sample);
            let evaluation = Evaluation::of(&samples, &[number], &prediction);
            let mut explainer = operator.explainer(*device, samples.grid, true)?;
            let time = explainer.time();
            let size = points * outputs;
            let part = |values: &[f32]| values[time * size..][..size].to_vec();
            let point =
                point.unwrap_or_else(|| worst_point(&part(&prediction), &part(&samples.targets), outputs, *channel));
            let explanation = explainer.explain(&samples, 0, [point, *channel])?;
            let regions = Regions::new(samples.grid, samples.positions_of(0), samples.space);
            Ok(ExplainedSample {
                problem: dataset.manifest().problem.clone(),
                number,
                time,
                evaluation,
                regions: by_region(&regions, &samples, &prediction, &explanation.influence.strength),
                region_of: regions.of,
                explanation,
                prediction,
                samples,
                triangles: dataset.drawn(number)?,
                trained: trained.clone(),
            })
        },
    )?
}

/// One sample by itself, without padding.
pub(super) fn alone(samples: &Samples, index: usize) -> Samples {
    let grid = match samples.grid {
        Grid::Cloud { .. } => Grid::Cloud { points: samples.points_of(index) },
        grid => grid,
    };
    Samples {
        count: 1,
        grid,
        positions: samples.positions_of(index).to_vec(),
        inputs: if samples.functions > 0 { samples.input_of(index).to_vec() } else { Vec::new() },
        targets: samples.target_of(index).to_vec(),
        ..Samples { positions: Vec::new(), inputs: Vec::new(), targets: Vec::new(), offsets: Vec::new(), ..*samples }
    }
}

/// The point with the largest error of a channel.
fn worst_point(prediction: &[f32], truth: &[f32], outputs: usize, channel: usize) -> usize {
    let error = |point: usize| (prediction[point * outputs + channel] - truth[point * outputs + channel]).abs();
    let points = prediction.len() / outputs;
    (0..points).max_by(|one, other| error(*one).total_cmp(&error(*other))).unwrap_or(0)
}

fn by_region(regions: &Regions, samples: &Samples, prediction: &[f32], strength: &[f32]) -> Vec<Region> {
    let (points, outputs) = (samples.grid.points(), samples.outputs);
    let (mut errors, mut truth) = (vec![0.0; points], 0.0);
    for (place, (found, expected)) in prediction.iter().zip(&samples.targets).enumerate() {
        errors[place / outputs % points] += f64::from(found - expected).powi(2);
        truth += f64::from(*expected).powi(2);
    }
    let squares = regions.sums(errors.iter().copied());
    let influences = regions.sums(strength.iter().map(|strength| f64::from(*strength)));
    let counts = regions.sums(std::iter::repeat_n(1.0, points));
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let [error, influence] = [&squares, &influences].map(|sums| sums.iter().sum::<f64>());
    let rows = regions.names.iter().zip(&squares).zip(influences.iter().zip(&counts));
    let region = |((name, square), (strength, count)): ((&String, &f64), (&f64, &f64))| Region {
        name: name.clone(),
        points: *count as usize,
        error: share(square / count, truth / points as f64).sqrt(),
        share: share(*square, error),
        influence: share(*strength, influence),
    };
    rows.filter(|(_, (_, count))| **count > 0.0).map(region).collect()
}
