//! Symmetries inside the training program: each sample of a batch is shown under a symmetry that is drawn for it.
//!
//! The program holds the samples as they are. The inputs of a step say which point each point takes its values from, and
//! how the channels change. The symmetry of a sample depends on (seed, step, place in the batch) alone, so a resumed training
//! sees what an uninterrupted one sees. [`Symmetry::apply`](crate::experiment::Symmetry::apply) computes the same on a CPU.

use crate::data::dataset::Batches;
use crate::error::Error;
use crate::experiment::{Channels, Symmetries};
use crate::random;
use crate::task::{Positions, Task};
use lamo_tensor::{Graph, Index, Program, Tensor};

/// Index input: for each point of each sample of the batch, the row `sample · points + point` that it takes.
const POINTS: &str = "symmetry.points";
/// Inputs: how the channels of positions, inputs and outputs change.
const CHANGES: [&str; 3] = ["symmetry.positions", "symmetry.inputs", "symmetry.outputs"];
/// Makes the random order of symmetries independent of the order of samples.
const STREAM: u64 = 0x7369_6465;

/// A group of symmetries, as the training program needs it.
pub(super) struct Turning {
    group: Symmetries,
    /// For each element, what the channels of normalised positions, normalised inputs and outputs become.
    changes: Vec<[Channels; 3]>,
    /// Whether the samples have positions of their own, which move.
    given: bool,
    /// Whether and how each of the three changes under some element.
    kinds: [Change; 3],
}

/// How the channels change under the elements of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Not at all.
    None,
    /// Each by a factor and a summand.
    Scaled,
    /// Channels also take values of other channels.
    Exchanged,
}

impl Turning {
    pub(super) fn new(group: Symmetries, task: &Task) -> Turning {
        let normalisers = &task.normalisers;
        let changes: Vec<[Channels; 3]> = group
            .elements
            .iter()
            .map(|element| {
                let positions = match task.positions {
                    Positions::Given => element.positions.normalised(normalisers.positions.as_ref()),
                    Positions::Lattice | Positions::Scrambled => Channels::kept(task.space),
                };
                [positions, element.inputs.normalised(normalisers.inputs.as_ref()), element.outputs.clone()]
            })
            .collect();
        let kind = |which: usize| match () {
            () if changes.iter().any(|change| change[which].exchanges()) => Change::Exchanged,
            () if changes.iter().any(|change| !change[which].is_kept()) => Change::Scaled,
            () => Change::None,
        };
        let kinds = [0, 1, 2].map(kind);
        Turning { group, changes, given: task.positions == Positions::Given, kinds }
    }

    /// Declares the inputs that [`Turning::write`] writes.
    pub(super) fn declare<'g>(&self, graph: &'g Graph, batch: usize) -> Turned<'g> {
        let [first, ..] = &self.changes[..] else { unreachable!("a group has its identity") };
        let input = |which: usize| {
            let (name, channels) = (CHANGES[which], first[which].0.len());
            match self.kinds[which] {
                Change::None => None,
                Change::Scaled => Some(graph.input(name, [batch, 2, channels])),
                Change::Exchanged => Some(graph.input(name, [batch, channels + 1, channels])),
            }
        };
        let points = self.group.elements[0].points.len();
        let index = graph.index_input(POINTS, batch * points);
        Turned { points: index, given: self.given, changes: [0, 1, 2].map(input) }
    }

    /// The symmetry of each sample of a step's batch.
    pub(super) fn draw(&self, batch: usize, seed: u64, step: usize) -> Vec<usize> {
        let (order, seed) = (self.group.order(), seed ^ STREAM);
        if self.group.of_samples {
            let number = |place: usize| (step as u64).wrapping_mul(batch as u64).wrapping_add(place as u64);
            return (0..batch).map(|place| random::below(order, seed, number(place))).collect();
        }
        let all: Vec<usize> = (0..order).collect();
        vec![Batches::shuffled(&all, 1, seed, step as u64).order()[0]; batch]
    }

    /// Writes the symmetries of a batch into the program.
    pub(super) fn write(&self, program: &mut Program, chosen: &[usize]) -> Result<(), Error> {
        let mut rows = Vec::new();
        for (&element, place) in chosen.iter().zip(0..) {
            let points = &self.group.elements[element].points;
            rows.extend(points.iter().map(|point| place * points.len() as u32 + point));
        }
        program.try_write_index(POINTS, &rows)?;
        for (which, kind) in self.kinds.iter().enumerate().filter(|(_, kind)| **kind != Change::None) {
            let numbers = chosen.iter().flat_map(|&element| numbers(&self.changes[element][which], *kind));
            program.try_write(CHANGES[which], &numbers.collect::<Vec<f32>>())?;
        }
        Ok(())
    }
}

/// `[2, channels]` factors and summands, or `[channels + 1, channels]` the factors of each source, then the summands.
fn numbers(Channels(channels): &Channels, kind: Change) -> Vec<f32> {
    let factors: Vec<f32> = match kind {
        Change::Exchanged => {
            let sources = 0..channels.len();
            let factor = |source: usize| {
                channels.iter().map(move |channel| if channel.source == source { channel.gain as f32 } else { 0.0 })
            };
            sources.flat_map(factor).collect()
        }
        Change::Scaled | Change::None => channels.iter().map(|channel| channel.gain as f32).collect(),
    };
    factors.into_iter().chain(channels.iter().map(|channel| channel.shift as f32)).collect()
}

/// The symmetries of a batch in the graph.
#[derive(Clone, Copy)]
pub(super) struct Turned<'g> {
    points: Index<'g>,
    given: bool,
    changes: [Option<Tensor<'g>>; 3],
}

impl<'g> Turned<'g> {
    /// `[batch, points, space]`; the points of a lattice stay where they are.
    pub(super) fn positions(&self, values: Tensor<'g>) -> Tensor<'g> {
        if self.given { self.changed(self.reordered(values), 0) } else { values }
    }

    /// `[batch, points, functions]`
    pub(super) fn functions(&self, values: Tensor<'g>) -> Tensor<'g> {
        self.changed(self.reordered(values), 1)
    }

    /// `[batch, times, points, outputs]`
    pub(super) fn outputs(&self, values: Tensor<'g>) -> Tensor<'g> {
        let [batch, times, points, outputs] = values.dims();
        let beside = values.permute(&[0, 2, 1, 3]).reshape([batch, points, times * outputs]);
        let moved = self.reordered(beside).reshape([batch, points, times, outputs]).permute(&[0, 2, 1, 3]);
        self.changed(moved.reshape([batch, times * points, outputs]), 2).reshape([batch, times, points, outputs])
    }

    /// `[batch, points, channels]`
    fn reordered(&self, values: Tensor<'g>) -> Tensor<'g> {
        let [batch, points, channels] = values.dims();
        let rows = values.reshape([batch * points, channels]).gather(0, self.points);
        rows.reshape([batch, points, channels])
    }

    /// `[batch, points, channels]`. Exchanged channels are sums of single products: a matrix product would round its factors
    /// to the precision of the GPU.
    fn changed(&self, values: Tensor<'g>, which: usize) -> Tensor<'g> {
        let Some(change) = self.changes[which] else { return values };
        let [_, rows, channels] = change.dims();
        let row = |row: usize| change.slice(1, row, row + 1); // [batch, 1, channels]
        if rows == 2 {
            return values * row(0) + row(1);
        }
        let source = |source: usize| values.slice(2, source, source + 1) * row(source);
        (1..channels).fold(source(0), |sum, next| sum + source(next)) + row(rows - 1)
    }
}

#[cfg(all(test, feature = "solvers"))]
mod tests;
