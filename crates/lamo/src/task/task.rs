//! The task: input and output fields, points and times. Data sets are arranged for it, models are built for
//! it, checkpoints hold it, and predictions are made with it.

use super::{Field, Normaliser, Spread, Time, Trend};
use crate::error::{Refusal, require};
use lamo_geometry::Grid;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Positions of the points of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Positions {
    /// Points on [`Grid::lattice`]; a prediction does not need them as input.
    Lattice,
    /// Points on the lattice of the authors' Plasticity loader, which counts along the wrong axis.
    Scrambled,
    /// Positions from the data.
    Given,
}

/// Shift and scale of what is normalised, fitted to the training samples.
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
    /// Per output function, of the change from one snapshot to the next; where it is present, the model of a roll-out
    /// predicts this change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Normaliser>,
    /// The linear function of positions and inputs to which the model adds; absent where it predicts the outputs themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<Trend>,
}

/// The mapping to learn, without any samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The points of the training samples.
    pub grid: Grid,
    /// Coordinates of a point.
    pub space: usize,
    /// Positions of the points.
    pub positions: Positions,
    /// Fields given, beside the past snapshots of a roll-out.
    #[serde(default)]
    pub inputs: Vec<Field>,
    /// Fields asked for.
    pub outputs: Vec<Field>,
    /// How time enters.
    pub time: Time,
    /// Whether each step of a roll-out is shown its own snapshots of the inputs that have one for each of the series; if not, all
    /// steps are shown all of them, as models of earlier versions were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub driven: bool,
    /// Normalisers, fitted to the training samples.
    #[serde(default)]
    pub normalisers: Normalisers,
}

impl Task {
    /// A steady task from `functions` to `outputs` functions, without names or normalisers.
    pub fn plain(grid: Grid, space: usize, functions: usize, outputs: usize) -> Task {
        Task {
            grid,
            space,
            positions: Positions::Given,
            inputs: if functions > 0 { vec![Field::plain("inputs", functions)] } else { Vec::new() },
            outputs: vec![Field::plain("outputs", outputs)],
            time: Time::Steady,
            driven: false,
            normalisers: Normalisers::default(),
        }
    }

    /// This task with `count` times, each predicted by itself.
    #[must_use]
    pub fn by_time(self, count: usize) -> Task {
        Task { time: Time::ByTime { count, clock: Vec::new() }, ..self }
    }

    /// This task on another grid.
    #[must_use]
    pub fn on(&self, grid: Grid) -> Task {
        Task { grid, ..self.clone() }
    }

    /// Functions a model is shown at each point.
    pub fn input_channels(&self) -> usize {
        let all = self.time.input_channels(&self.inputs, &self.outputs);
        all - self.driving() * (self.time.count() - 1)
    }

    /// Functions a model is asked for at each point and time.
    pub fn output_channels(&self) -> usize {
        self.time.output_channels(&self.outputs)
    }

    /// The functions of each output field among [`Task::output_channels`].
    pub fn output_ranges(&self) -> Vec<Range<usize>> {
        let ranges = self.outputs.iter().scan(0, |first, field| {
            let start = *first;
            *first += self.time.output_channels(std::slice::from_ref(field));
            Some(start..*first)
        });
        ranges.collect()
    }

    /// True when a prediction needs the positions as input.
    pub fn needs_positions(&self) -> bool {
        self.positions == Positions::Given
    }

    /// The fields that a prediction is made from, positions first.
    pub fn given_fields(&self) -> Vec<Field> {
        let positions = Field { channels: Some(self.space), ..Field::plain(POSITIONS, 1) };
        let positions = self.needs_positions().then_some(positions);
        positions.into_iter().chain(self.time.given_fields(&self.inputs, &self.outputs)).collect()
    }

    /// The output fields as a prediction has them, with the snapshots of a series.
    pub fn predicted_fields(&self) -> Vec<Field> {
        let snapshots = |field: &Field| if self.time.is_series() { Some(self.time.count()) } else { field.snapshots };
        self.outputs.iter().map(|field| Field { snapshots: snapshots(field), ..field.clone() }).collect()
    }

    /// The lattice that the points lie on; refused where they do not.
    pub fn lattice(&self, grid: Grid) -> Result<Vec<f32>, Refusal> {
        lattice(grid, self.positions == Positions::Scrambled)
    }

    /// Sets mean 0 and deviation 1 in the normalisers of fields that are not normalised.
    pub(crate) fn leave_raw(&mut self) {
        let shown = |field: &Field| match self.is_driven_by(field) {
            true => (self.time.past() + 1) * field.width(),
            false => field.functions(),
        };
        let [inputs, outputs] = self.time.raw_channels(&self.inputs, &shown, &self.outputs);
        for (normaliser, raw) in [(&mut self.normalisers.inputs, inputs), (&mut self.normalisers.outputs, outputs)] {
            let Some(Normaliser { mean, deviation }) = normaliser else { continue };
            for ((mean, deviation), _) in mean.iter_mut().zip(deviation).zip(raw).filter(|(_, raw)| *raw) {
                (*mean, *deviation) = (0.0, 1.0);
            }
        }
    }

    /// True when training for `other` may be resumed with this task: fields and times are equal, and normalisers differ at
    /// most by rounding, as they may between two machines.
    pub(crate) fn continues(&self, other: &Task) -> bool {
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
        let pairs = [
            (&self.normalisers.positions, &other.normalisers.positions),
            (&self.normalisers.inputs, &other.normalisers.inputs),
            (&self.normalisers.outputs, &other.normalisers.outputs),
            (&self.normalisers.change, &other.normalisers.change),
        ];
        let alike = Task { normalisers: other.normalisers.clone(), time: other.time.clone(), ..self.clone() } == *other;
        let trends = match (&self.normalisers.trend, &other.normalisers.trend) {
            (Some(one), Some(two)) => one.is_near(two),
            (one, two) => one == two,
        };
        alike && trends && self.time.is_like(&other.time) && pairs.iter().all(|(one, two)| near(one, two))
    }

    /// Positions as the model sees them.
    pub fn encode_positions(&self, positions: &[f32]) -> Vec<f32> {
        encoded(self.normalisers.positions.as_ref(), positions)
    }

    /// Inputs `[..., functions]` of samples in the units that the model sees.
    pub fn encode_inputs(&self, inputs: &[f32], functions: usize) -> Vec<f32> {
        encoded(self.normaliser_of(functions).as_ref(), inputs)
    }

    /// The normalised outputs, from the result of the model and what it was given: `[batch, points, outputs]`. They are the result
    /// itself, a linear function of what was given plus the result, or the last snapshot plus the change that the model predicts.
    pub(crate) fn found<'g>(
        &self,
        result: Tensor<'g>,
        positions: Tensor<'g>,
        functions: Option<Tensor<'g>>,
    ) -> Tensor<'g> {
        if let Some(trend) = &self.normalisers.trend {
            let channels = functions.map(|functions| Tensor::concatenate(&[positions, functions], 2));
            return trend.and(channels.unwrap_or(positions), result);
        }
        let last = functions.and_then(|functions| self.time.last_snapshot(functions, self.output_channels()));
        let (Some(change), Some(last)) = (&self.normalisers.change, last) else { return result };
        let unit = self.normalisers.outputs.as_ref().map_or(&[][..], |outputs| &outputs.deviation);
        let scaled = |values: &[f32]| -> Vec<f32> {
            let units = unit.iter().copied().chain(std::iter::repeat(1.0));
            values.iter().zip(units).map(|(value, unit)| value / unit).collect()
        };
        let change = Normaliser { mean: scaled(&change.mean), deviation: scaled(&change.deviation) };
        last + change.decoded(result)
    }

    /// Normalised outputs in physical units, `[batch, points, outputs]`. The mask is 1 at real points and 0 where samples are filled
    /// up, `[batch, points]`.
    pub(crate) fn decoded<'g>(&self, outputs: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
        let outputs = self.normalisers.outputs.as_ref().map_or(outputs, |normaliser| normaliser.decoded(outputs));
        self.settled(outputs, mask)
    }

    /// An output that is a number of the whole sample is the mean over its real points, written to all of them; the other outputs
    /// stay as they are.
    fn settled<'g>(&self, outputs: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
        if self.outputs.iter().all(|field| field.spread != Spread::Sample) {
            return outputs;
        }
        let [batch, points, _] = outputs.dims();
        let mean = |part: Tensor<'g>| match mask.map(|mask| mask.reshape([batch, points, 1])) {
            Some(mask) => (part * mask).sum(&[1]) / mask.sum(&[1]),
            None => part.mean(&[1]),
        };
        let settle = |(field, range): (&Field, Range<usize>)| {
            let part = outputs.slice(2, range.start, range.end);
            match field.spread {
                Spread::Sample => mean(part).broadcast_to([batch, points, range.len()]),
                Spread::Points | Spread::Rows => part,
            }
        };
        let parts: Vec<Tensor<'g>> = self.outputs.iter().zip(self.output_ranges()).map(settle).collect();
        Tensor::concatenate(&parts, 2)
    }

    /// Refuses counts that no task has, fields and times that contradict each other, and normalisers that do not fit the
    /// fields. Everything that is read from a file passes here before anything is allocated.
    pub fn check(&self) -> Result<(), Refusal> {
        let Task { grid, space, positions, .. } = self;
        for extent in grid.shape() {
            within("grid", extent, MOST_POINTS)?;
        }
        within("grid", grid.points(), MOST_POINTS)?; // the product of two 32-bit numbers fits into 64 bits
        within("space", *space, MOST_CHANNELS)?;
        for (role, fields) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            require(fields.len() <= MOST_FIELDS, || {
                Refusal::new(role, format!("at most {MOST_FIELDS} fields"), fields.len().to_string())
            })?;
            fields.iter().try_for_each(|field| field.check(*grid))?;
        }
        self.time.check(&self.outputs)?;
        let (inputs, outputs) = (self.input_channels(), self.output_channels());
        within("outputs", outputs, MOST_CHANNELS)?;
        require(inputs <= MOST_CHANNELS, || {
            Refusal::new("inputs", format!("at most {MOST_CHANNELS} functions"), inputs.to_string())
        })?;
        let numbers = (outputs * self.time.count()).checked_add(inputs + space);
        let numbers = numbers.and_then(|numbers| numbers.checked_mul(grid.points()));
        require(numbers.is_some_and(|numbers| numbers as u64 <= MOST_NUMBERS), || {
            let found = format!("{} points and {} times", grid.points(), self.time.count());
            Refusal::new("task", format!("samples of at most {MOST_NUMBERS} numbers"), found)
        })?;
        let on_lattice = grid.axes() == Some(*space);
        require(*positions == Positions::Given || on_lattice, || {
            Refusal::new(
                "positions",
                "given, unless the points lie on a lattice",
                format!("a {grid} in {space} coordinates"),
            )
        })?;
        let normalisers = [
            ("positions", &self.normalisers.positions, *space),
            ("inputs", &self.normalisers.inputs, inputs),
            ("outputs", &self.normalisers.outputs, outputs),
            ("changes", &self.normalisers.change, outputs),
        ];
        for (name, normaliser, channels) in normalisers {
            let Some(normaliser) = normaliser else { continue };
            normaliser.check(channels).map_err(|refusal| refusal.within(format!("normaliser of {name}")))?;
        }
        self.check_driven()?;
        require(self.normalisers.change.is_none() || self.time.mode().is_roll_out(), || {
            Refusal::new("normaliser of changes", "none without a roll-out", "one")
        })?;
        let Some(trend) = &self.normalisers.trend else { return Ok(()) };
        require(!self.time.mode().is_roll_out(), || Refusal::new("trend", "none in a roll-out", "one"))?;
        trend.check(*space + inputs, outputs)?;
        Ok(())
    }
}

/// Name of the positions in a file.
pub const POSITIONS: &str = "positions";

/// Points of a grid at most: rows of a batch are chosen by 32-bit numbers.
const MOST_POINTS: usize = u32::MAX as usize;
/// Coordinates, functions and snapshots at most.
pub(super) const MOST_CHANNELS: usize = 1 << 20;
/// Fields at most.
const MOST_FIELDS: usize = 1 << 10;
/// Numbers of one sample at most, 4 TB.
const MOST_NUMBERS: u64 = 1 << 40;

/// Refuses a count of 0 and one above `most`.
pub(super) fn within(thing: &str, count: usize, most: usize) -> Result<(), Refusal> {
    require((1..=most).contains(&count), || {
        Refusal::new(thing, format!("a number from 1 to {most}"), count.to_string())
    })
}

/// Equally spaced points along each axis; a cloud has none.
pub(crate) fn lattice(grid: Grid, scrambled: bool) -> Result<Vec<f32>, Refusal> {
    grid.lattice(scrambled)
        .ok_or_else(|| Refusal::new("positions", "the coordinates of every point of a cloud", "none"))
}

fn encoded(normaliser: Option<&Normaliser>, values: &[f32]) -> Vec<f32> {
    let mut values = values.to_vec();
    if let Some(normaliser) = normaliser {
        normaliser.encode(&mut values);
    }
    values
}
