//! Samples that live on the device inside a program; the inputs of each run choose the samples of the batch.

use super::points::{Drawing, Drawn};
use super::symmetry::{Turned, Turning};
use crate::data::Samples;
use crate::error::Error;
use crate::network::Input;
use crate::task::Task;
use lamo_tensor::{Graph, Index, Program, Tensor};
use std::borrow::Cow;

/// Index input: the samples of the batch.
pub(crate) const SAMPLES: &str = "samples";
/// Index input: the rows `sample · times + time` of the targets.
pub(crate) const ROWS: &str = "rows";
/// Input: the time of each sample of the batch.
pub(crate) const TIME: &str = "time";

const POSITIONS: &str = "stored.positions";
const FUNCTIONS: &str = "stored.functions";
const TARGETS: &str = "stored.targets";
const MASK: &str = "stored.mask";

/// Samples inside a graph, and the batch that is taken from them.
pub(crate) struct Resident<'g> {
    graph: &'g Graph,
    chosen: Index<'g>,
    /// `[count, times, points, outputs]`
    shape: [usize; 4],
    batch: usize,
    turned: Option<Turned<'g>>,
    drawn: Option<Drawn<'g>>,
    /// `[batch, points, space]`
    pub(crate) positions: Tensor<'g>,
    /// `[batch, points]` 1 at real points; `None` where all points are real.
    pub(crate) mask: Option<Tensor<'g>>,
}

impl<'g> Resident<'g> {
    /// Declares what [`fill`] writes; with `turning`, the samples are shown under symmetries.
    pub(crate) fn declare(graph: &'g Graph, stored: &Stored<'_>, batch: usize, turning: Option<&Turning>) -> Self {
        Resident::declare_some(graph, stored, batch, turning, None)
    }

    /// The same; with `drawing`, a batch has some points of each sample.
    pub(super) fn declare_some(
        graph: &'g Graph,
        stored: &Stored<'_>,
        batch: usize,
        turning: Option<&Turning>,
        drawing: Option<&Drawing>,
    ) -> Self {
        let samples = stored.samples();
        let Samples { count, space, times, outputs, .. } = *samples;
        let points = samples.grid.points();
        let chosen = graph.index_input(SAMPLES, batch);
        let drawn = drawing.map(|drawing| drawing.declare(graph));
        let positions = if let Some(drawn) = drawn {
            let owners = if samples.share_positions() { 1 } else { count };
            drawn.positions(graph.input(POSITIONS, [owners, points, space]))
        } else if samples.share_positions() {
            graph.input(POSITIONS, [1, points, space]).broadcast_to([batch, points, space])
        } else {
            graph.input(POSITIONS, [count, points, space]).gather(0, chosen)
        };
        let turned = turning.map(|turning| turning.declare(graph, batch));
        let positions = turned.map_or(positions, |turned| turned.positions(positions));
        let mask = stored.mask.as_ref().map(|_| {
            let mask = graph.input(MASK, [count, points]);
            drawn.map_or_else(|| mask.gather(0, chosen), |drawn| drawn.mask(mask))
        });
        Resident { graph, chosen, shape: [count, times, points, outputs], batch, turned, drawn, positions, mask }
    }

    /// `[batch, points, width]` functions given; `None` for a width of 0.
    pub(crate) fn functions(&self, width: usize) -> Option<Tensor<'g>> {
        let [count, _, points, _] = self.shape;
        let given = || {
            let all = self.graph.input(FUNCTIONS, [count, points, width]);
            self.drawn.map_or_else(|| all.gather(0, self.chosen), |drawn| drawn.functions(all))
        };
        (width > 0).then(|| self.turned.map_or_else(given, |turned| turned.functions(given())))
    }

    /// `[batch, times, points, outputs]` targets at all times.
    pub(crate) fn targets(&self) -> Tensor<'g> {
        let all = self.graph.input(TARGETS, self.shape);
        if let Some(drawn) = self.drawn {
            return drawn.targets(all);
        }
        let targets = all.gather(0, self.chosen);
        self.turned.map_or(targets, |turned| turned.outputs(targets))
    }

    /// `[batch, points, outputs]` targets of the rows asked for.
    pub(crate) fn targets_of_rows(&self) -> Tensor<'g> {
        let [count, times, points, outputs] = self.shape;
        if let Some(drawn) = self.drawn {
            return drawn.targets_of_rows(self.graph.input(TARGETS, [count * times, points, outputs]));
        }
        let rows = self.graph.index_input(ROWS, self.batch);
        let targets = self.graph.input(TARGETS, [count * times, points, outputs]).gather(0, rows);
        let each = |turned: Turned<'g>| turned.outputs(targets.reshape([self.batch, 1, points, outputs]));
        self.turned.map_or(targets, each).reshape([self.batch, points, outputs])
    }

    /// The program's input for the time, where the task has one.
    pub(crate) fn time(&self, task: &Task) -> Option<Tensor<'g>> {
        task.time.is_input().then(|| self.graph.input(TIME, [self.batch, 1]))
    }

    /// Input of the model at one time.
    pub(crate) fn input(&self, functions: Option<Tensor<'g>>, task: &Task) -> Input<'g> {
        Input { positions: self.positions, functions, time: self.time(task), mask: self.mask }
    }
}

/// Samples of one size, as a program holds them.
pub(crate) struct Stored<'a> {
    samples: Cow<'a, Samples>,
    /// `[count, points]` 1 at real points; `None` where all points are real.
    mask: Option<Vec<f32>>,
}

impl<'a> Stored<'a> {
    /// Samples that have all points of their grid.
    pub(crate) fn whole(samples: &'a Samples) -> Stored<'a> {
        Stored { samples: Cow::Borrowed(samples), mask: None }
    }

    /// Some samples of a ragged set, filled up to `points` points.
    pub(crate) fn padded(samples: &Samples, chosen: &[usize], points: usize) -> Stored<'static> {
        let full = chosen.iter().all(|&sample| samples.points_of(sample) == points);
        let mask = (!full).then(|| samples.mask(chosen, points));
        Stored { samples: Cow::Owned(samples.padded(chosen, points)), mask }
    }

    pub(crate) fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Bytes of all the samples.
    pub(crate) fn bytes(&self) -> usize {
        let Samples { positions, inputs, targets, .. } = self.samples();
        let arrays = [positions, inputs, targets].into_iter().chain(&self.mask);
        arrays.map(|values| size_of_val(values.as_slice())).sum()
    }
}

/// Writes the normalised samples into a program; with `functions`, also their input functions.
pub(crate) fn fill(program: &mut Program, task: &Task, stored: &Stored<'_>, functions: bool) -> Result<(), Error> {
    let samples = stored.samples();
    if let Some(mask) = &stored.mask {
        program.try_write(MASK, mask)?;
    }
    program.try_write(POSITIONS, &task.encode_positions(&samples.positions))?;
    if functions {
        program.try_write(FUNCTIONS, &task.encode_inputs(&samples.inputs, samples.functions))?;
    }
    program.try_write(TARGETS, &samples.targets)?;
    Ok(())
}
