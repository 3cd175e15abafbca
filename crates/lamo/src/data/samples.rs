//! Samples in memory, in physical units: positions of the points, input functions, output functions.

mod ragged;

pub(crate) use ragged::offsets;

use crate::error::{Refusal, counted, require};
use crate::task::{Task, task};
use lamo_geometry::Grid;
use std::ops::RangeInclusive;

/// Norms whose squares fit into an f32, also when the error is far smaller or larger than the target.
const NORMS: RangeInclusive<f64> = 1e-15..=1e17;

/// Arrays of `count` samples on one grid, or on clouds of different sizes.
///
/// The arrays of a ragged set hold the points of one sample after those of the other: `[total, space]`, `[total, functions]`,
/// and for each sample in turn `[times, points, outputs]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// Number of samples.
    pub count: usize,
    /// The grid of every sample; in a ragged set, a cloud of as many points as the largest sample.
    pub grid: Grid,
    /// `[count + 1]` first point of each sample, then the number of all points; empty where every sample has all points of
    /// the grid.
    pub offsets: Vec<usize>,
    /// Coordinates per point.
    pub space: usize,
    /// `[count, points, space]`, or `[points, space]` where all samples have the same points
    pub positions: Vec<f32>,
    /// Input functions per point.
    pub functions: usize,
    /// `[count, points, functions]`
    pub inputs: Vec<f32>,
    /// Times of the outputs; 1 where the task has no time.
    pub times: usize,
    /// Output functions per point and time.
    pub outputs: usize,
    /// `[count, times, points, outputs]`, empty where the targets are unknown
    pub targets: Vec<f32>,
}

impl Samples {
    /// Arrays on a grid: `inputs` `[count, points, functions]`, `targets` `[count, points, outputs]`. The points form a
    /// lattice of the unit square (or interval).
    pub fn new(
        grid: Grid,
        functions: usize,
        inputs: Vec<f32>,
        outputs: usize,
        targets: Vec<f32>,
    ) -> Result<Samples, Refusal> {
        let count = targets.len() / (grid.points() * outputs).max(1);
        let positions = task::lattice(grid, false)?;
        let space = positions.len() / grid.points().max(1);
        let samples = Samples {
            count,
            grid,
            offsets: Vec::new(),
            space,
            positions,
            functions,
            inputs,
            times: 1,
            outputs,
            targets,
        };
        samples.check()?;
        Ok(samples)
    }

    /// Arrays on points that lie anywhere, such as a cloud: `positions` `[points, space]` for all samples or
    /// `[count, points, space]`, inputs and targets as in [`Samples::new`].
    pub fn on_points(
        grid: Grid,
        (space, positions): (usize, Vec<f32>),
        (functions, inputs): (usize, Vec<f32>),
        (outputs, targets): (usize, Vec<f32>),
    ) -> Result<Samples, Refusal> {
        let count = targets.len() / (grid.points() * outputs).max(1);
        let samples = Samples {
            count,
            grid,
            offsets: Vec::new(),
            space,
            positions,
            functions,
            inputs,
            times: 1,
            outputs,
            targets,
        };
        samples.check()?;
        Ok(samples)
    }

    /// `count` samples of a cloud, whose points lie anywhere: `positions` `[points, space]` for all samples or
    /// `[count, points, space]`, `inputs` `[count, points, functions]`, `targets` `[count, points, outputs]`, or empty where
    /// they are to be predicted. The number of points follows from the arrays.
    pub fn cloud(
        count: usize,
        (space, positions): (usize, Vec<f32>),
        (functions, inputs): (usize, Vec<f32>),
        (outputs, targets): (usize, Vec<f32>),
    ) -> Result<Samples, Refusal> {
        require(count > 0 && space > 0 && outputs > 0, || {
            let found = format!("{}, {space} and {outputs}", counted(count, "sample"));
            Refusal::new("cloud", "at least one sample, one coordinate and one output", found)
        })?;
        // Positions may belong to all samples, so they count the points only where nothing else does.
        let arrays = [("targets", &targets, count * outputs), ("inputs", &inputs, count * functions)];
        let array = arrays.into_iter().find(|(_, values, each)| !values.is_empty() && *each > 0);
        let (name, values, each) = array.unwrap_or(("positions", &positions, count * space));
        require(!values.is_empty() && values.len() % each == 0, || {
            let expected = format!("{each} values for each point of {}", counted(count, "sample"));
            Refusal::new(name, expected, format!("{} values", values.len()))
        })?;
        let grid = Grid::Cloud { points: values.len() / each };
        let samples = Samples {
            count,
            grid,
            offsets: Vec::new(),
            space,
            positions,
            functions,
            inputs,
            times: 1,
            outputs,
            targets,
        };
        samples.check()?;
        Ok(samples)
    }

    /// The same with other points: `[points, space]` for all samples or `[count, points, space]`.
    pub fn at(self, space: usize, positions: Vec<f32>) -> Result<Samples, Refusal> {
        let samples = Samples { space, positions, ..self };
        samples.check()?;
        Ok(samples)
    }

    /// Whether all samples have the same points.
    pub fn share_positions(&self) -> bool {
        !self.is_ragged() && self.positions.len() == self.grid.points() * self.space
    }

    /// `[points, space]` positions of the points of one sample.
    pub fn positions_of(&self, sample: usize) -> &[f32] {
        &self.positions[self.range_of(if self.share_positions() { 0 } else { sample }, self.space)]
    }

    /// `[times, points, outputs]` of one sample.
    pub fn target_of(&self, sample: usize) -> &[f32] {
        self.part_of(&self.targets, sample)
    }

    /// `[points, functions]` of one sample.
    pub fn input_of(&self, sample: usize) -> &[f32] {
        &self.inputs[self.range_of(sample, self.functions)]
    }

    /// Relative L2 of each sample, ‖prediction − target‖₂ / ‖target‖₂ over all its times, points and functions. Panics
    /// unless there are as many predictions as targets.
    pub fn errors(&self, prediction: &[f32]) -> Vec<f64> {
        assert_eq!(prediction.len(), self.targets.len(), "a prediction for each target");
        let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
        let error = |(found, truth): (&[f32], &[f32])| {
            let pairs = found.iter().zip(truth);
            let miss = norm(&mut pairs.map(|(found, truth)| f64::from(*found) - f64::from(*truth)));
            miss / norm(&mut truth.iter().map(|truth| f64::from(*truth)))
        };
        (0..self.count).map(|sample| error((self.part_of(prediction, sample), self.target_of(sample)))).collect()
    }

    /// The first `count` samples.
    pub fn first(mut self, count: usize) -> Samples {
        let count = count.min(self.count);
        if self.is_ragged() {
            return self.chosen(&(0..count).collect::<Vec<_>>());
        }
        let points = self.grid.points();
        if !self.share_positions() {
            self.positions.truncate(count * points * self.space);
        }
        self.inputs.truncate(count * points * self.functions);
        self.targets.truncate(count * self.times * points * self.outputs);
        Samples { count, ..self }
    }

    /// Refuses samples that do not fit a task; their grid may differ from that of the task.
    pub fn check_for(&self, task: &Task) -> Result<(), Refusal> {
        self.check()?;
        // A field that drives a roll-out may have more snapshots than the steps that are asked for.
        let steps = task.steps_of(self.functions).max(self.times);
        let expected = [task.space, task.given_channels(steps), task.output_channels()];
        let found = [self.space, self.functions, self.outputs];
        require(found == expected, || {
            let words = |[space, functions, outputs]: [usize; 3]| {
                format!("{space} coordinates, {functions} input and {outputs} output functions")
            };
            Refusal::new("samples", words(expected), words(found))
        })
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let Samples { count, space, functions, times, outputs, .. } = *self;
        let points = self.grid.points();
        require(count > 0, || Refusal::new("samples", "at least one", "none"))?;
        self.check_offsets()?;
        let total = self.total_points();
        require(points > 0 && outputs > 0 && times > 0, || {
            Refusal::new("samples", "points, outputs and times", format!("{points}, {outputs} and {times}"))
        })?;
        let finite = |name: &str, values: &[f32]| {
            let odd = values.iter().enumerate().find(|(_, value)| !value.is_finite());
            odd.map_or(Ok(()), |(index, value)| {
                let found = format!("{value} at index {index}");
                Err(Refusal::new(name, "finite numbers", found).advise("correct the values or leave the sample out"))
            })
        };
        finite("positions", &self.positions)?;
        require(self.share_positions() || self.positions.len() == total * space, || {
            let each = counted(count, "sample");
            let expected = match self.is_ragged() {
                true => format!("{total} points of {space} coordinates, those of {each}"),
                false => format!("{points} points of {space} coordinates, once or for each of {each}"),
            };
            Refusal::new("positions", expected, format!("{} values", self.positions.len()))
        })?;
        let on = if self.is_ragged() { format!("{total} points in all") } else { format!("{points} points") };
        let of = |name: &str, values: &[f32], words: String, each: usize| {
            let unknown = name == "targets" && values.is_empty();
            require(unknown || values.len() == total * each, || {
                let expected = format!("{} of {words}, {} values", counted(count, "sample"), total * each);
                Refusal::new(name, expected, values.len().to_string())
            })?;
            finite(name, values)
        };
        of("inputs", &self.inputs, format!("{on} of {functions} functions"), functions)?;
        of("targets", &self.targets, format!("{times} times {on} of {outputs} functions"), times * outputs)?;
        self.check_norms_of_samples(|sample| sample)
    }

    /// Refuses targets whose relative error is not defined; `number` maps the index of a sample to its number in the
    /// data set.
    pub(crate) fn check_norms_of_samples(&self, number: impl Fn(usize) -> usize) -> Result<(), Refusal> {
        let known = if self.targets.is_empty() { 0 } else { self.count };
        let parts = (0..known).map(|sample| (self.target_of(sample), sample));
        check_norms("fields", parts, |sample| format!("sample {}", number(sample)))
    }

    /// The same for each snapshot of a time series.
    pub(crate) fn check_norms_of_snapshots(&self, number: impl Fn(usize) -> usize) -> Result<(), Refusal> {
        let known = if self.targets.is_empty() { 0 } else { self.count };
        let parts = (0..known).flat_map(|sample| {
            let length = (self.points_of(sample) * self.outputs).max(1);
            let snapshots = self.target_of(sample).chunks(length).enumerate();
            snapshots.map(move |(time, values)| (values, (sample, time)))
        });
        check_norms("snapshots", parts, |(sample, time)| format!("snapshot {time} of sample {}", number(sample)))
    }
}

/// Refuses parts of the targets whose norm is 0 or does not fit single precision.
fn check_norms<'a, Which>(
    words: &str,
    parts: impl Iterator<Item = (&'a [f32], Which)>,
    name: impl Fn(Which) -> String,
) -> Result<(), Refusal> {
    let norm = |part: &[f32]| part.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
    let mut norms = parts.map(|(part, which)| (norm(part), which));
    let Some((norm, which)) = norms.find(|(norm, _)| !NORMS.contains(norm)) else { return Ok(()) };
    let name = name(which);
    Err(if norm == 0.0 {
        let expected = format!("{words} that are not zero everywhere, which have no relative error");
        Refusal::new("targets", expected, name).advise("leave it out, or add a constant to the field")
    } else {
        let [least, most] = [NORMS.start(), NORMS.end()];
        let expected = format!("{words} of a norm between {least:e} and {most:e}");
        Refusal::new("targets", expected, format!("{norm:.1e} in {name}")).advise("give them in another unit")
    })
}
