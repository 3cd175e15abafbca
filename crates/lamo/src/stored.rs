//! Samples that live inside a program, which is told which of them to take.

use crate::case::Case;
use crate::models::Input;
use crate::samples::Samples;
use lamo_tensor::{Graph, Index, Program, Tensor};

/// Index input: the samples of the batch.
pub(crate) const SAMPLES: &str = "samples";
/// Index input: the rows `sample · times + time` of the targets.
pub(crate) const ROWS: &str = "rows";
/// Index input: the points in the order in which they are seen.
pub(crate) const SIDE: &str = "side";
/// Input: the time of each place.
pub(crate) const TIME: &str = "time";

const POSITIONS: &str = "stored.positions";
const FUNCTIONS: &str = "stored.functions";
const TARGETS: &str = "stored.targets";

/// Samples inside a graph and the batch that is taken of them.
pub(crate) struct Stored<'g> {
    graph: &'g Graph,
    chosen: Index<'g>,
    /// `[count, times, points, outputs]`
    shape: [usize; 4],
    batch: usize,
    side: Option<Index<'g>>,
    /// `[batch, points, space]`
    pub(crate) positions: Tensor<'g>,
}

impl<'g> Stored<'g> {
    /// Declares what [`fill`] puts in; values are seen from a side where there are `sides`.
    pub(crate) fn declare(graph: &'g Graph, samples: &Samples, batch: usize, sides: bool) -> Self {
        let Samples { count, space, times, outputs, .. } = *samples;
        let points = samples.grid.points();
        let chosen = graph.index_input(SAMPLES, batch);
        let positions = if samples.share_positions() {
            graph.input(POSITIONS, [1, points, space]).broadcast_to([batch, points, space])
        } else {
            graph.input(POSITIONS, [count, points, space]).gather(0, chosen)
        };
        let side = sides.then(|| graph.index_input(SIDE, points));
        Stored { graph, chosen, shape: [count, times, points, outputs], batch, side, positions }
    }

    fn seen(&self, values: Tensor<'g>, axis: usize) -> Tensor<'g> {
        self.side.map_or(values, |side| values.gather(axis, side))
    }

    /// `[batch, points, width]` of what is given.
    pub(crate) fn functions(&self, width: usize) -> Option<Tensor<'g>> {
        let [count, _, points, _] = self.shape;
        let given = || self.graph.input(FUNCTIONS, [count, points, width]).gather(0, self.chosen);
        (width > 0).then(|| self.seen(given(), 1))
    }

    /// `[batch, times, points, outputs]` of what is asked for.
    pub(crate) fn targets(&self) -> Tensor<'g> {
        self.seen(self.graph.input(TARGETS, self.shape).gather(0, self.chosen), 2)
    }

    /// `[batch, points, outputs]` of the rows asked for.
    pub(crate) fn targets_of_rows(&self) -> Tensor<'g> {
        let [count, times, points, outputs] = self.shape;
        let rows = self.graph.index_input(ROWS, self.batch);
        self.seen(self.graph.input(TARGETS, [count * times, points, outputs]).gather(0, rows), 1)
    }

    /// What a model sees that is asked for one time by itself, if it is.
    pub(crate) fn input(&self, functions: Option<Tensor<'g>>, timed: bool) -> Input<'g> {
        let time = timed.then(|| self.graph.input(TIME, [self.batch, 1]));
        Input { positions: self.positions, functions, time }
    }
}

/// Bytes of all the samples.
pub(crate) fn bytes(samples: &Samples) -> usize {
    let Samples { positions, inputs, targets, .. } = samples;
    [positions, inputs, targets].iter().map(|values| size_of_val(values.as_slice())).sum()
}

/// Puts the samples in; `functions` where the graph takes them from there.
pub(crate) fn fill(program: &mut Program, case: &Case, samples: &Samples, functions: bool) {
    program.write(POSITIONS, &case.encode_positions(&samples.positions));
    if functions {
        program.write(FUNCTIONS, &case.encode_inputs(&samples.inputs));
    }
    program.write(TARGETS, &samples.targets);
}
