//! A case: what is learned, apart from the numbers. From samples in physical units to what a model sees, and back.

use crate::dataset::Normaliser;
use crate::error::Error;
use crate::experiment::{Experiment, Loss, Normalised};
use crate::field::Field;
use crate::models::{Refusal, Task, require};
use crate::samples::{Material, Samples, lattice};
use crate::weights::Domain;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};

/// How time enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Course {
    /// Not at all.
    Steady,
    /// A film is continued frame by frame: the model maps `past` frames to the next.
    Frames {
        /// Frames given.
        past: usize,
        /// Frames asked for.
        frames: usize,
    },
    /// The model is asked for each time by itself: `count` of them, from 0 to 1.
    Times {
        /// How many.
        count: usize,
    },
}

/// Shift and scale of what is normalised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalisers {
    /// Per coordinate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<Normaliser>,
    /// Per input function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Normaliser>,
    /// Per output function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Normaliser>,
}

/// What is learned: all that inference needs beside the model and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What the model maps, on the grid it is trained on.
    pub domain: Domain,
    /// How time enters.
    pub course: Course,
    /// What is given, in the order of the functions.
    pub inputs: Vec<Field>,
    /// What is asked for, in the order of the outputs.
    pub outputs: Vec<Field>,
    /// Whether the points are a lattice of the unit square that no one has to give.
    pub lattice: bool,
    /// Whether that lattice is the authors' for Plasticity.
    pub scrambled: bool,
    /// Where the times asked for lie between the first, 0, and the last, 1; none where their distances are equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<f32>,
    /// When the frames of the films that were learned are, where it is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clock: Vec<f64>,
    /// Fitted to the training samples.
    pub normalisers: Normalisers,
}

impl Case {
    /// The case of an experiment on its data.
    pub fn new(experiment: &Experiment, material: &Material) -> Result<Case, Error> {
        let mut case = Case::of(experiment, &material.train)?;
        case.inputs = material.inputs.clone();
        case.outputs = material.outputs.clone();
        case.leave_raw();
        if case.course != Course::Steady {
            case.clock = material.times.clone();
        }
        if case.course == (Course::Times { count: material.times.len() }) {
            case.times = between(&material.times)?;
        }
        Ok(case)
    }

    /// The case of an experiment on one's own arrays.
    pub fn of(experiment: &Experiment, train: &Samples) -> Result<Case, Error> {
        train.check()?;
        let Samples { grid, space, functions, outputs, times, .. } = *train;
        let course = match experiment.train.loss {
            Loss::RelativeL2 | Loss::RelativeL2WithGradient => Course::Steady,
            Loss::RelativeL2OfFrames => Course::Frames { past: functions / outputs, frames: times },
            Loss::RelativeL2OfTimes => Course::Times { count: times },
        };
        let whole = functions >= outputs && functions.is_multiple_of(outputs);
        require(!matches!(course, Course::Frames { .. }) || whole, || {
            format!(
                "train.loss = relative-l2-of-frames: expected inputs of whole frames of {outputs} functions, found {functions}"
            )
        })?;
        if course != Course::Steady {
            train.check_frames(|sample| sample)?;
        }
        require(functions > 0 || !train.share_positions(), || {
            "samples: expected inputs, or points that differ between samples, found neither; name an input, or continue a \
             film with train.loss = relative-l2-of-frames"
                .to_owned()
        })?;
        require(course != Course::Steady || times == 1, || {
            format!("train.loss: expected one of the losses over time for samples of {times} times")
        })?;
        let with_gradient = experiment.train.loss == Loss::RelativeL2WithGradient;
        let smooth = matches!(grid, Grid::Plane { rows, columns } if rows > 2 && columns > 2) && outputs == 1;
        require(!with_gradient || smooth, || {
            "train.loss = relative-l2-with-gradient: expected one output on a plane; use relative-l2".to_owned()
        })?;
        let time = matches!(course, Course::Times { .. });
        Ok(Case {
            domain: Domain { space, functions, outputs, time, grid },
            course,
            inputs: if functions > 0 { vec![Field::plain("inputs", functions)] } else { Vec::new() },
            outputs: vec![Field::plain("outputs", outputs)],
            lattice: lattice(grid, experiment.data.scrambled).is_ok_and(|lattice| lattice == train.positions),
            scrambled: experiment.data.scrambled,
            times: Vec::new(),
            clock: Vec::new(),
            normalisers: fit(experiment, train, course)?,
        })
    }

    /// Fields that the model is to see as they are get mean 0 and deviation 1.
    fn leave_raw(&mut self) {
        let steady = self.course == Course::Steady;
        let raw = |fields: &[Field], whole: bool| -> Vec<bool> {
            let width = |field: &Field| field.width() * if whole { field.length() } else { 1 };
            fields.iter().flat_map(|field| std::iter::repeat_n(field.raw, width(field))).collect()
        };
        let outputs = raw(&self.outputs, steady);
        let inputs = match self.course {
            Course::Frames { past, .. } => outputs.repeat(past),
            Course::Steady | Course::Times { .. } => raw(&self.inputs, true),
        };
        for (normaliser, raw) in [(&mut self.normalisers.inputs, inputs), (&mut self.normalisers.outputs, outputs)] {
            let Some(Normaliser { mean, deviation }) = normaliser else { continue };
            for ((mean, deviation), _) in mean.iter_mut().zip(deviation).zip(raw).filter(|(_, raw)| *raw) {
                (*mean, *deviation) = (0.0, 1.0);
            }
        }
    }

    /// Whether a model that learned `other` goes on learning this: the same fields and times, and normalisers that differ by
    /// rounding at most, as those of two machines may.
    pub(crate) fn continues(&self, other: &Case) -> bool {
        let near = |one: &Option<Normaliser>, two: &Option<Normaliser>| match (one, two) {
            (None, None) => true,
            (Some(one), Some(two)) => {
                let all = one.mean.iter().zip(&one.deviation).zip(two.mean.iter().zip(&two.deviation));
                one.mean.len() == two.mean.len()
                    && all.into_iter().all(|((mean, deviation), (other, spread))| {
                        (mean - other).abs().max((deviation - spread).abs()) <= 1e-3 * deviation.abs()
                    })
            }
            _ => false,
        };
        let (ours, theirs) = (&self.normalisers, &other.normalisers);
        *self == Case { normalisers: ours.clone(), clock: self.clock.clone(), ..other.clone() }
            && near(&ours.positions, &theirs.positions)
            && near(&ours.inputs, &theirs.inputs)
            && near(&ours.outputs, &theirs.outputs)
    }

    /// What the model maps, so many windows at a time.
    pub fn task(&self, batch: usize) -> Task {
        self.domain.task(batch)
    }

    /// Windows of a sample that are one batch: every frame of a teacher-forced film.
    pub fn windows(&self) -> usize {
        if let Course::Frames { frames, .. } = self.course { frames } else { 1 }
    }

    /// Optimiser steps per batch: one for each time asked for by itself.
    pub fn steps(&self) -> usize {
        if let Course::Times { count } = self.course { count } else { 1 }
    }

    /// Times of a sample at which outputs are asked for.
    pub fn times(&self) -> usize {
        self.windows().max(self.steps())
    }

    /// The time number `index`, from 0 to 1.
    pub fn time(&self, index: usize) -> f32 {
        let even = index as f32 / (self.steps().max(2) - 1) as f32;
        self.times.get(index).copied().unwrap_or(even)
    }

    /// Refuses films of other `times` than those that were learned, where they are known, or another number of them, which is
    /// `count`. Films that are continued may be of any length, not of another rhythm.
    pub fn check_times(&self, count: usize, times: &[f64]) -> Result<(), Refusal> {
        let [learned, found] = [&self.clock, times].map(|times| times.windows(2).map(|pair| pair[1] - pair[0]).next());
        match (self.course, learned.zip(found)) {
            (Course::Frames { .. }, Some((learned, found))) => {
                require((learned - found).abs() < 1e-5 * learned.abs(), || {
                    format!("times: expected frames {learned} apart, as the model learned, found them {found} apart")
                })
            }
            (Course::Times { count: learned }, _) => {
                require(count == learned, || {
                    format!("times: expected the {learned} frames that the model learned, found {count}")
                })?;
                let reach = self.clock.last().zip(self.clock.first()).map_or(0.0, |(last, first)| last - first);
                let mut pairs = self.clock.iter().zip(times).enumerate();
                let apart = pairs.find(|(_, (learned, found))| (*learned - *found).abs() > 1e-5 * reach);
                apart.map_or(Ok(()), |(frame, (learned, found))| {
                    Err(Refusal(format!(
                        "times: expected frame {frame} at {learned}, as the model learned, found it at {found}; take frames \
                         of the same times"
                    )))
                })
            }
            _ => Ok(()),
        }
    }

    /// Positions as the model sees them.
    pub fn encode_positions(&self, positions: &[f32]) -> Vec<f32> {
        encoded(self.normalisers.positions.as_ref(), positions)
    }

    /// Inputs as the model sees them.
    pub fn encode_inputs(&self, inputs: &[f32]) -> Vec<f32> {
        encoded(self.normalisers.inputs.as_ref(), inputs)
    }

    /// Refuses samples that this case cannot take; their grid may be another one.
    pub fn check(&self, samples: &Samples) -> Result<(), Refusal> {
        samples.check()?;
        let Domain { space, functions, outputs, .. } = self.domain;
        let found = [samples.space, samples.functions, samples.outputs];
        require(found == [space, functions, outputs], || {
            format!(
                "samples: expected {space} coordinates, {functions} input and {outputs} output functions, found {}, {} and {}",
                found[0], found[1], found[2]
            )
        })
    }
}

/// Times as parts of the way from the first to the last; none where their distances are equal.
fn between(times: &[f64]) -> Result<Vec<f32>, Refusal> {
    let rising = times.windows(2).position(|pair| pair[0] >= pair[1]);
    require(rising.is_none(), || {
        let place = rising.unwrap_or_default();
        format!("times: expected each after the one before, found {} before {}", times[place], times[place + 1])
    })?;
    let (first, last) = (times[0], times[times.len() - 1]);
    let parts: Vec<f64> = times.iter().map(|time| (time - first) / (last - first)).collect();
    let even = |(index, part): (usize, &f64)| (part - index as f64 / (times.len() - 1) as f64).abs() < 1e-6;
    Ok(if parts.iter().enumerate().all(even) { Vec::new() } else { parts.iter().map(|&part| part as f32).collect() })
}

fn encoded(normaliser: Option<&Normaliser>, values: &[f32]) -> Vec<f32> {
    let mut values = values.to_vec();
    if let Some(normaliser) = normaliser {
        normaliser.encode(&mut values);
    }
    values
}

/// Mean and deviation of each channel of the training samples. The frames of a film are outputs and inputs in turn, so
/// both take the outputs' normaliser.
fn fit(experiment: &Experiment, train: &Samples, course: Course) -> Result<Normalisers, Error> {
    let wanted = |what: Normalised| experiment.data.normalise.contains(&what);
    let fit_given = |what: Normalised, values: &[f32], channels: usize| {
        (wanted(what) && channels > 0).then(|| Normaliser::fit_given(values, channels)).transpose()
    };
    let mut points = train.targets.chunks(train.outputs.max(1));
    let first = points.next();
    require(train.targets.is_empty() || points.any(|point| Some(point) != first), || {
        "targets: expected values that differ, found the same at all points; there is nothing to learn".to_owned()
    })?;
    let normalised = wanted(Normalised::Outputs) && train.outputs > 0;
    let outputs = normalised.then(|| Normaliser::fit(&train.targets, train.outputs)).transpose()?;
    let inputs = match (course, &outputs) {
        (Course::Frames { past, .. }, Some(outputs)) => {
            Some(Normaliser { mean: outputs.mean.repeat(past), deviation: outputs.deviation.repeat(past) })
        }
        (Course::Frames { .. }, None) => None,
        _ => fit_given(Normalised::Inputs, &train.inputs, train.functions)?,
    };
    Ok(Normalisers { positions: fit_given(Normalised::Positions, &train.positions, train.space)?, inputs, outputs })
}
