//! What every model is: a function from fields on points to fields on the same points, inside a graph.

use crate::task::Task;
use lamo_tensor::{Graph, Tensor};

/// What a forward pass is for. Dropout and running statistics differ between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A gradient will be taken.
    Training,
    /// Only the prediction is needed.
    Inference,
}

/// One batch of inputs.
#[derive(Clone, Copy)]
pub struct Input<'g> {
    /// `[batch, points, space]`
    pub positions: Tensor<'g>,
    /// `[batch, points, functions]`, absent where no function is given.
    pub functions: Option<Tensor<'g>>,
    /// `[batch, 1]`, absent where time is no input.
    pub time: Option<Tensor<'g>>,
    /// `[batch, points]` 1 at the points of a sample, 0 at those that fill it up to the size of the program; absent where all
    /// points are real.
    pub mask: Option<Tensor<'g>>,
}

impl<'g> Input<'g> {
    /// The program's inputs `positions`, `functions` and `time`, as far as the task has them.
    pub fn declare(graph: &'g Graph, task: &Task, batch: usize) -> Input<'g> {
        let (points, functions) = (task.grid.points(), task.input_channels());
        let functions = (functions > 0).then(|| graph.input("functions", [batch, points, functions]));
        Input { functions, ..Input::without_functions(graph, task, batch) }
    }

    /// The program's inputs `positions` and `time`.
    pub(crate) fn without_functions(graph: &'g Graph, task: &Task, batch: usize) -> Input<'g> {
        Input {
            positions: graph.input("positions", [batch, task.grid.points(), task.space]),
            functions: None,
            time: task.time.is_input().then(|| graph.input("time", [batch, 1])),
            mask: None,
        }
    }

    /// These inputs with a mask of the points, the program's input `mask`.
    #[must_use]
    pub fn masked(self, graph: &'g Graph) -> Input<'g> {
        let [batch, points, _] = self.positions.dims();
        Input { mask: Some(graph.input("mask", [batch, points])), ..self }
    }

    /// Positions and functions side by side, `[batch, points, space + functions]`.
    pub(crate) fn channels(&self) -> Tensor<'g> {
        match self.functions {
            Some(functions) => Tensor::concatenate(&[self.positions, functions], 2),
            None => self.positions,
        }
    }
}

/// A model inside a graph.
pub trait Model<'g> {
    /// `[batch, points, outputs]`
    fn forward(&self, input: &Input<'g>, mode: Mode) -> Tensor<'g>;

    /// The outputs at other positions `[batch, queries, space]` than those of the inputs; `None` where the model has no such
    /// outputs.
    fn forward_at(&self, input: &Input<'g>, queries: Tensor<'g>, mode: Mode) -> Option<Tensor<'g>> {
        let _ = (input, queries, mode);
        None
    }

    /// The model as sums over points, for points that come in pieces; `None` where its points see each other otherwise.
    fn in_pieces(&self) -> Option<&dyn InPieces<'g>> {
        None
    }
}

/// A model in which points see each other through sums over all points alone: f = lift(x);  for each block, t = mix(Σ_n sums(f_n)),
/// f ← expand(f, t);  y = project(f). The sums of pieces of the points add up, so a prediction needs one piece in memory at a time.
pub trait InPieces<'g> {
    /// Number of blocks.
    fn blocks(&self) -> usize;

    /// `[batch, points, width]` features of points before the first block.
    fn lift(&self, input: &Input<'g>) -> Tensor<'g>;

    /// `[batch, heads, tokens, channels]` the sums of a block over the points where the mask `[batch, points]` is 1.
    fn sums(&self, block: usize, features: Tensor<'g>, mask: Tensor<'g>) -> Tensor<'g>;

    /// `[batch, tokens, width]` the mixed tokens of a block, from its sums over all points.
    fn mix(&self, block: usize, sums: Tensor<'g>) -> Tensor<'g>;

    /// `[batch, points, width]` features of points after a block.
    fn expand(&self, block: usize, features: Tensor<'g>, tokens: Tensor<'g>) -> Tensor<'g>;

    /// `[batch, points, outputs]`
    fn project(&self, features: Tensor<'g>) -> Tensor<'g>;
}
