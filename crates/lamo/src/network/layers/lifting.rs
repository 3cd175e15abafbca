//! The lifting of the Neural-Solver-Library: v₀ = preprocess([x | a]) + placeholder + time_fc(e(T)).
//!
//! x are positions or their distances to a lattice, a the input functions; the placeholder and the time are optional.

use super::embedding::{Table, lattice_points, unified_positions};
use super::{Mlp, TimeEmbedding};
use crate::network::{Initial, Input, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;

/// Names of the two maps of the library's MLP.
pub const LIBRARY_MLP: [&str; 2] = ["linear_pre.0", "linear_post"];

/// Sizes of a lifting.
#[derive(Clone, Copy, Debug)]
pub struct LiftingShape {
    /// Hidden channels of `preprocess`.
    pub hidden: usize,
    /// Channels of the lifted features.
    pub width: usize,
    /// Hidden channels of `time_fc`.
    pub time_hidden: usize,
    /// Side of the lattice of unified positions, 0 for plain positions.
    pub unified_positions: usize,
    /// How an evaluation in f64 sees the distances to that lattice.
    pub table: Table,
    /// Gives the positions a second time, as input functions, as some scripts of the library do.
    pub positions_twice: bool,
    /// Whether a learned vector is added at every point.
    pub placeholder: bool,
}

impl LiftingShape {
    /// The usual sizes: positions and functions → 2 `width` → `width`, with plain positions and no placeholder.
    pub fn usual(width: usize) -> Self {
        LiftingShape {
            hidden: 2 * width,
            width,
            time_hidden: width,
            unified_positions: 0,
            table: Table::Double,
            positions_twice: false,
            placeholder: false,
        }
    }
}

/// From positions, functions and time to the first features of all points, with the activation of the scope.
pub struct Lifting<'g> {
    grid: Grid,
    side: usize,
    table: Table,
    positions_twice: bool,
    preprocess: Mlp<'g>,
    /// `[width]`
    placeholder: Option<Tensor<'g>>,
    time: Option<TimeEmbedding<'g>>,
}

impl<'g> Lifting<'g> {
    /// `preprocess`, `time_fc` and `placeholder` inside `scope`.
    pub fn new(scope: &Scope<'_, 'g>, task: &Task, shape: LiftingShape) -> Self {
        Lifting::named(scope, "preprocess", task, shape)
    }

    /// A lifting whose MLP is called `name`.
    pub fn named(scope: &Scope<'_, 'g>, name: &str, task: &Task, shape: LiftingShape) -> Self {
        let LiftingShape { hidden, width, time_hidden, unified_positions: side, table, positions_twice, placeholder } =
            shape;
        let positions = if side == 0 { task.space } else { lattice_points(task.grid, task.space, side) };
        let functions = task.input_channels() + if positions_twice { task.space } else { 0 };
        let preprocess = Mlp::named(&scope.enter(name), LIBRARY_MLP, [positions + functions, hidden, width]);
        let time = task.time.is_input().then(|| TimeEmbedding::new(scope, width, time_hidden));
        let uniform = Initial::Uniform { low: 0.0, high: 1.0 / width as f64 };
        let placeholder = placeholder.then(|| scope.parameter("placeholder", [width], uniform));
        Lifting { grid: task.grid, side, table, positions_twice, preprocess, placeholder, time }
    }

    /// What `preprocess` sees: positions or distances, and functions.
    pub fn channels(&self, input: &Input<'g>) -> Tensor<'g> {
        let positions = match self.side {
            0 => input.positions,
            side => unified_positions(input.positions, self.grid, side, self.table),
        };
        let functions = match input.functions {
            functions if !self.positions_twice => functions,
            Some(functions) => Some(Tensor::concatenate(&[functions, input.positions], 2)),
            None => Some(input.positions),
        };
        Input { positions, functions, ..*input }.channels()
    }

    /// `[batch, points, width]`
    pub fn forward(&self, input: &Input<'g>) -> Tensor<'g> {
        let mut features = self.preprocess.forward(self.channels(input));
        if let Some(placeholder) = self.placeholder {
            features = features + placeholder;
        }
        if let (Some(embedding), Some(time)) = (&self.time, input.time) {
            let [batch, _, width] = features.dims();
            features = features + embedding.forward(time).reshape([batch, 1, width]);
        }
        features
    }
}
