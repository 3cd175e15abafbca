//! Compares what was written with the library's own predictions.
//!
//! The error of an output is ‖found − expected‖ / ‖expected‖ over the points of a sample. A roll-out is also stepped through all its
//! snapshots, each from the ones that the written model made.

use crate::refusal::require;
use lamo::error::{Error, Refusal};
use lamo::inference::{Physical, Role};
use lamo::tensor::reference::{self, Bindings};
use lamo::tensor::{Graph, MODEL_STATES, PARAMETERS};
use lamo::{Device, Operator, Samples};
use serde::Serialize;
use std::collections::HashMap;

/// Where the samples of a comparison come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Test samples of the data that the model was trained on.
    Test,
    /// Numbers with the mean and the deviation of the training samples.
    Drawn,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Verified {
    /// Samples compared.
    pub samples: usize,
    /// Where they come from.
    pub origin: Origin,
    /// Largest relative L2 error of an output of a sample; of a roll-out, of its first step.
    pub relative_l2: f64,
    /// Largest error of an element, relative to the largest element of the output.
    pub relative_maximum: f64,
    /// Relative L2 error of the library's own predictions in f32 beside f64, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounding: Option<f64>,
    /// The fewest and the most points of a sample that was compared, where any number is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<[usize; 2]>,
    /// Steps of a roll-out, and the relative L2 error after the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolled_out: Option<(usize, f64)>,
}

impl Verified {
    /// Two comparisons of one file as one. It counts test samples alone where there are any.
    pub(crate) fn and(self, other: Verified) -> Verified {
        let samples = match (self.origin, other.origin) {
            (Origin::Test, Origin::Drawn) => self.samples,
            (Origin::Drawn, Origin::Test) => other.samples,
            _ => self.samples + other.samples,
        };
        let larger = |one: Option<f64>, two: Option<f64>| one.into_iter().chain(two).reduce(f64::max);
        let points = self.points.into_iter().chain(other.points).flatten();
        Verified {
            samples,
            origin: if self.origin == Origin::Test { Origin::Test } else { other.origin },
            relative_l2: self.relative_l2.max(other.relative_l2),
            relative_maximum: self.relative_maximum.max(other.relative_maximum),
            rounding: larger(self.rounding, other.rounding),
            points: points.clone().min().zip(points.max()).map(|(fewest, most)| [fewest, most]),
            rolled_out: self.rolled_out.into_iter().chain(other.rolled_out).max_by(|one, two| one.1.total_cmp(&two.1)),
        }
    }
}

/// Arrays of one sample, one for each port.
pub(crate) type Arrays = Vec<Vec<f32>>;

/// What is compared: arrays of samples in, arrays of samples out.
pub(crate) trait Runs {
    fn run(&self, given: &[Arrays]) -> Result<Vec<Arrays>, Error>;
}

/// Times of a task with time as an input that are compared.
const TIMES: usize = 3;

/// The samples of a comparison and what the library predicts for them.
pub(crate) struct Expected<'a> {
    operator: &'a Operator,
    physical: &'a Physical,
    samples: &'a Samples,
    origin: Origin,
    /// `[count, times, points, outputs]`
    prediction: Vec<f32>,
}

impl<'a> Expected<'a> {
    pub(crate) fn new(
        operator: &'a Operator,
        physical: &'a Physical,
        (samples, origin): (&'a Samples, Origin),
    ) -> Result<Expected<'a>, Error> {
        let prediction = operator.predict(samples, Device::Cpu)?;
        require(prediction.iter().all(|value| value.is_finite()), || {
            Refusal::about(format!("model {}", operator.model.name), "its predictions are not finite")
        })?;
        Ok(Expected { operator, physical, samples, origin, prediction })
    }

    /// The arrays that the library predicts for a sample at a time.
    fn at(&self, sample: usize, time: usize) -> Arrays {
        let length = self.samples.grid.points() * self.samples.outputs;
        let start = (sample * self.samples.times + time) * length;
        self.physical.predicted(&self.prediction[start..start + length])
    }

    /// Runs what was written and compares.
    pub(crate) fn compare(&self, written: &dyn Runs) -> Result<Verified, Error> {
        let (count, time) = (self.samples.count, &self.physical.task.time);
        let mut verified = Verified {
            samples: count,
            origin: self.origin,
            relative_l2: 0.0,
            relative_maximum: 0.0,
            rounding: None,
            points: None,
            rolled_out: None,
        };
        let given = |time: usize| -> Vec<Arrays> {
            (0..count).map(|sample| self.physical.given(self.samples, sample, time)).collect()
        };
        let mut last: Vec<Arrays> = Vec::new();
        for time in self.times() {
            last = written.run(&given(time))?;
            let [relative_l2, relative_maximum] = self.errors(&last, time);
            verified.relative_l2 = verified.relative_l2.max(relative_l2);
            verified.relative_maximum = verified.relative_maximum.max(relative_maximum);
        }
        if time.mode().is_roll_out() {
            let mut windows: Vec<Arrays> = given(0);
            for time in 1..self.samples.times {
                let found = last.iter().zip(given(time));
                windows.iter_mut().zip(found).for_each(|(window, (found, next))| self.advance(window, found, next));
                last = written.run(&windows)?;
                verified.rolled_out = Some((time + 1, self.errors(&last, time)[0]));
            }
        }
        Ok(verified)
    }

    /// The numbers of the times that are compared.
    fn times(&self) -> Vec<usize> {
        let count = self.samples.times;
        match self.physical.task.time.is_input() {
            true => (0..TIMES.min(count)).map(|k| k * (count - 1) / (TIMES - 1)).collect(),
            false => vec![0],
        }
    }

    /// The relative error of the library's own predictions, beside the f64 that defines every operator. It is slow.
    pub(crate) fn rounding(&self) -> Result<f64, Error> {
        let graph = Graph::new();
        let physical = self.operator.physical(&graph, self.samples.grid, 1)?;
        let (walk, outputs) = (graph.walk(), graph.outputs());
        let wanted: Vec<_> = outputs.iter().map(|(_, place)| walk[*place].tensor).collect();
        let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|&value| f64::from(value)).collect() };
        let mut largest = 0.0_f64;
        for time in self.times() {
            let mut exact = Vec::new();
            for sample in 0..self.samples.count {
                let mut bindings: Bindings<'_> = HashMap::new();
                bindings.insert(PARAMETERS, wide(&physical.parameters));
                bindings.insert(MODEL_STATES, wide(&physical.states));
                for (port, values) in physical.inputs.iter().zip(physical.given(self.samples, sample, time)) {
                    bindings.insert(&port.name, wide(&values));
                }
                let found = reference::evaluate(&graph, &bindings, &wanted);
                exact
                    .push(found.iter().map(|array| array.values.iter().map(|&value| value as f32).collect()).collect());
            }
            largest = largest.max(self.errors(&exact, time)[0]);
        }
        Ok(largest)
    }

    /// The largest relative errors over samples and outputs: in L2, and of an element.
    fn errors(&self, found: &[Arrays], time: usize) -> [f64; 2] {
        let mut errors = [0.0_f64; 2];
        for (sample, found) in found.iter().enumerate() {
            for (expected, found) in self.at(sample, time).iter().zip(found) {
                let pairs = || expected.iter().zip(found).map(|(&one, &two)| (f64::from(one), f64::from(two)));
                let [square, norm] = pairs().fold([0.0, 0.0], |[square, norm], (expected, found)| {
                    [square + (found - expected).powi(2), norm + expected.powi(2)]
                });
                let largest = pairs().fold([0.0_f64; 2], |[difference, largest], (expected, found)| {
                    [difference.max((found - expected).abs()), largest.max(expected.abs())]
                });
                let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { part };
                let next = [ratio(square.sqrt(), norm.sqrt()), ratio(largest[0], largest[1])];
                // NaN is no small error.
                errors = [0, 1].map(|k| if next[k] <= errors[k] { errors[k] } else { next[k] });
            }
        }
        errors
    }

    /// Moves the window of a roll-out by the snapshot that was found; the fields beside it are given as of the next step.
    fn advance(&self, window: &mut Arrays, found: &Arrays, next: Arrays) {
        let given = self.physical.inputs.iter().zip(window).zip(next).filter(|((port, _), _)| port.role == Role::Given);
        let mut found = found.iter();
        for ((_, values), next) in given {
            match found.next() {
                Some(found) => {
                    values.drain(..found.len());
                    values.extend_from_slice(found);
                }
                None => *values = next,
            }
        }
    }
}
