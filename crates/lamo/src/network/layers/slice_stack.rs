//! The stack of slice models (Transolver's, which LaMO inherits): features live on the points; in every block they are
//! sliced into tokens, mixed, and spread back.
//!
//! f = preprocess([x | fx]);  f ← f + to_out(decode(mix(encode(LN₁ f))));  f ← f + mlp(LN₂ f);  y = mlp2(LN₃ f).

use super::embedding::unified_positions;
use super::{LIBRARY_MLP, LayerNorm, Linear, Mlp, SliceShape, Slices, TimeEmbedding};
use crate::network::Input;
use crate::network::{Initial, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;

/// What mixes the tokens of a block.
pub trait TokenMixer<'g> {
    /// `[batch, tokens, width]` → the same
    fn mix(&self, tokens: Tensor<'g>) -> Tensor<'g>;
}

/// Sizes of a stack.
#[derive(Clone, Copy, Debug)]
pub struct StackShape {
    /// Slices of a block.
    pub slices: SliceShape,
    /// Number of blocks.
    pub depth: usize,
    /// Hidden channels of an MLP over the width.
    pub mlp_ratio: usize,
    /// All blocks share one set of slice maps.
    pub shared: bool,
    /// The decoder has weights of its own.
    pub own_decoder: bool,
    /// Side of the lattice of unified positions, 0 for plain positions.
    pub unified_positions: usize,
}

struct Block<'g> {
    norm1: LayerNorm<'g>,
    slices: Option<Slices<'g>>,
    mixer: Box<dyn TokenMixer<'g> + 'g>,
    out: Linear<'g>,
    norm2: LayerNorm<'g>,
    mlp: Mlp<'g>,
}

/// A whole slice model.
pub struct SliceStack<'g> {
    shape: StackShape,
    preprocess: Mlp<'g>,
    /// `[width]`
    placeholder: Tensor<'g>,
    time: Option<TimeEmbedding<'g>>,
    blocks: Vec<Block<'g>>,
    shared: Option<Slices<'g>>,
    norm: LayerNorm<'g>,
    project: Linear<'g>,
}

impl<'g> SliceStack<'g> {
    /// `mixer` builds what mixes the tokens of a block, in the block's scope.
    pub fn new(
        scope: &Scope<'_, 'g>,
        task: &Task,
        shape: StackShape,
        mixer: impl Fn(&Scope<'_, 'g>) -> Box<dyn TokenMixer<'g> + 'g>,
    ) -> Self {
        let width = shape.slices.width;
        let position = match shape.unified_positions {
            0 => task.space,
            side => side * side,
        };
        let uniform = Initial::Uniform { low: 0.0, high: 1.0 / width as f64 };
        let preprocess =
            Mlp::named(&scope.enter("preprocess"), LIBRARY_MLP, [position + task.input_channels(), 2 * width, width]);
        let blocks: Vec<_> =
            (0..shape.depth).map(|i| Block::new(&scope.enter("blocks").enter(&i.to_string()), shape, &mixer)).collect();
        let last = scope.enter("blocks").enter(&(shape.depth - 1).to_string());
        SliceStack {
            preprocess,
            placeholder: scope.parameter("placeholder", [width], uniform),
            time: task.time.is_input().then(|| TimeEmbedding::new(scope, width, width)),
            blocks,
            norm: LayerNorm::new(&last.enter("ln_3"), width),
            project: Linear::new(&last.enter("mlp2"), width, task.output_channels()),
            shared: shape.shared.then(|| Slices::shared(scope, shape.slices, shape.own_decoder)),
            shape,
        }
    }

    /// `[batch, points, outputs]`
    pub fn forward(&self, input: &Input<'g>) -> Tensor<'g> {
        let grid = self.shape.slices.grid;
        let positions = match self.shape.unified_positions {
            0 => input.positions,
            side => unified_positions(input.positions, grid, side),
        };
        let mut features = self.preprocess.forward(Input { positions, ..*input }.channels());
        let is_plane = matches!(grid, Grid::Plane { .. });
        if !is_plane || input.functions.is_none() {
            features = features + self.placeholder; // planes have it only where no function is given
        }
        if let (Some(embedding), Some(time)) = (&self.time, input.time) {
            let [batch, _, width] = features.dims();
            features = features + embedding.forward(time).reshape([batch, 1, width]);
        }
        for block in &self.blocks {
            features = block.forward(features, block.slices.as_ref().or(self.shared.as_ref()));
        }
        self.project.forward(self.norm.forward(features))
    }
}

impl<'g> Block<'g> {
    fn new(
        scope: &Scope<'_, 'g>,
        shape: StackShape,
        mixer: &impl Fn(&Scope<'_, 'g>) -> Box<dyn TokenMixer<'g> + 'g>,
    ) -> Self {
        let width = shape.slices.width;
        let attention = scope.enter("Attn");
        Block {
            norm1: LayerNorm::new(&scope.enter("ln_1"), width),
            slices: (!shape.shared).then(|| Slices::own(&attention, shape.slices, shape.own_decoder)),
            mixer: mixer(&attention),
            out: Linear::new(&attention.enter("to_out.0"), width, width),
            norm2: LayerNorm::new(&scope.enter("ln_2"), width),
            mlp: Mlp::named(&scope.enter("mlp"), LIBRARY_MLP, [width, shape.mlp_ratio * width, width]),
        }
    }

    fn forward(&self, features: Tensor<'g>, slices: Option<&Slices<'g>>) -> Tensor<'g> {
        let slices = slices.expect("a stack has slices of its blocks or for all of them");
        let sliced = slices.encode(self.norm1.forward(features));
        let features = features + self.out.forward(sliced.decode(self.mixer.mix(sliced.tokens)));
        features + self.mlp.forward(self.norm2.forward(features))
    }
}
