//! The stack of the Neural-Solver-Library's transformers: features live on the points, and each block mixes them.
//!
//! f = lift(x, a, T);  f ← f + mix(f);  f ← f + mlp(LN₂ f);  y = mlp2(LN₃ f).

use super::embedding::Table;
use super::{LIBRARY_MLP, LayerNorm, Lifting, LiftingShape, Linear, Mlp};
use crate::network::{Input, Scope};
use crate::task::Task;
use lamo_tensor::Tensor;

/// The branch of a block that lets points see each other, its norms included.
pub trait PointMixer<'g> {
    /// `[batch, points, width]` → the same; with a mask `[batch, points]`, only the points where it is 1 are seen. Models
    /// whose row is not ragged have none.
    fn mix(&self, features: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g>;
}

/// Sizes of a stack.
#[derive(Clone, Copy, Debug)]
pub struct PointStackShape {
    /// Channels of the features.
    pub width: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Hidden channels of an MLP over the width.
    pub mlp_ratio: usize,
    /// Side of the lattice of unified positions, 0 for plain positions.
    pub unified_positions: usize,
    /// Gives the positions a second time, as input functions.
    pub positions_twice: bool,
}

struct Block<'g> {
    mixer: Box<dyn PointMixer<'g> + 'g>,
    norm: LayerNorm<'g>,
    mlp: Mlp<'g>,
}

/// A whole model.
pub struct PointStack<'g> {
    lifting: Lifting<'g>,
    blocks: Vec<Block<'g>>,
    norm: LayerNorm<'g>,
    project: Linear<'g>,
}

impl<'g> PointStack<'g> {
    /// `mixer` builds what mixes the points of a block, in the block's scope.
    pub fn new(
        scope: &Scope<'_, 'g>,
        task: &Task,
        shape: PointStackShape,
        mixer: impl Fn(&Scope<'_, 'g>) -> Box<dyn PointMixer<'g> + 'g>,
    ) -> Self {
        let PointStackShape { width, depth, mlp_ratio, unified_positions, positions_twice } = shape;
        let lifted = LiftingShape {
            unified_positions,
            table: Table::Single,
            positions_twice,
            placeholder: true,
            ..LiftingShape::usual(width)
        };
        let lifting = Lifting::new(scope, task, lifted);
        let block = |number: usize| scope.enter("blocks").enter(&number.to_string());
        let blocks = (0..depth).map(block).map(|scope| Block {
            mixer: mixer(&scope),
            norm: LayerNorm::new(&scope.enter("ln_2"), width),
            mlp: Mlp::named(&scope.enter("mlp"), LIBRARY_MLP, [width, mlp_ratio * width, width]),
        });
        let (blocks, last) = (blocks.collect(), block(depth - 1));
        PointStack {
            lifting,
            blocks,
            norm: LayerNorm::new(&last.enter("ln_3"), width),
            project: Linear::new(&last.enter("mlp2"), width, task.output_channels()),
        }
    }

    /// `[batch, points, outputs]`
    pub fn forward(&self, input: &Input<'g>) -> Tensor<'g> {
        let features = self.blocks.iter().fold(self.lifting.forward(input), |features, block| {
            let features = features + block.mixer.mix(features, input.mask);
            features + block.mlp.forward(block.norm.forward(features))
        });
        self.project.forward(self.norm.forward(features))
    }
}
