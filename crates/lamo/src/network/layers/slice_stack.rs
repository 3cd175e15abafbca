//! The stack of slice models (Transolver's, which LaMO inherits): features live on the points; in every block they are
//! sliced into tokens, mixed, and spread back.
//!
//! f = preprocess([x | fx]);  f ← f + to_out(decode(mix(encode(LN₁ f))));  f ← f + mlp(LN₂ f);  y = mlp2(LN₃ f).
//!
//! [`Levers`] change a block: with z = encode(LN₁ f), decode(z + γ mix(z)), for example.

use super::embedding::{Table, lattice_points, unified_positions};
use super::{
    BlockLevers, Decoder, LIBRARY_MLP, LayerNorm, Levers, Linear, Mlp, SliceShape, Sliced, Slices, TimeEmbedding,
};
use crate::network::{InPieces, Initial, Input, Pass, Scope};
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
    /// Channels of the points.
    pub width: usize,
    /// Slices of a block; their width is [`Levers::mixed`] of the points' width.
    pub slices: SliceShape,
    /// Number of blocks.
    pub depth: usize,
    /// Hidden channels of an MLP over the width.
    pub mlp_ratio: usize,
    /// All blocks share one set of slice maps.
    pub shared: bool,
    /// How tokens become points again.
    pub decoder: Decoder,
    /// What a block has beyond the authors'.
    pub levers: Levers,
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
    levers: BlockLevers<'g>,
    pass: Pass<'g>,
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
        let width = shape.width;
        let position = match shape.unified_positions {
            0 => task.space,
            side => lattice_points(task.grid, task.space, side),
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
            shared: shape.shared.then(|| Slices::shared(scope, shape.slices, shape.decoder)),
            shape,
        }
    }

    /// `[batch, points, outputs]`
    pub fn forward(&self, input: &Input<'g>) -> Tensor<'g> {
        let mut features = self.lifted(input);
        for block in &self.blocks {
            features = block.forward(features, block.slices.as_ref().or(self.shared.as_ref()), input.mask);
        }
        self.project.forward(self.norm.forward(features))
    }

    /// `[batch, points, width]` before the first block.
    fn lifted(&self, input: &Input<'g>) -> Tensor<'g> {
        let grid = self.shape.slices.grid;
        let positions = match self.shape.unified_positions {
            0 => input.positions,
            side => unified_positions(input.positions, grid, side, Table::Single),
        };
        let mut features = self.preprocess.forward(Input { positions, ..*input }.channels());
        let is_mesh = matches!(grid, Grid::Plane { .. } | Grid::Volume { .. });
        if !is_mesh || input.functions.is_none() {
            features = features + self.placeholder; // planes and volumes have it only where no function is given
        }
        if let (Some(embedding), Some(time)) = (&self.time, input.time) {
            let [batch, _, width] = features.dims();
            features = features + embedding.forward(time).reshape([batch, 1, width]);
        }
        features
    }

    /// A block and its slice maps.
    fn block(&self, number: usize) -> (&Block<'g>, &Slices<'g>) {
        let block = &self.blocks[number];
        let slices = block.slices.as_ref().or(self.shared.as_ref());
        (block, slices.expect("a stack has slices of its blocks or for all of them"))
    }

    /// Whether the points of a piece need the sums over all points, and nothing else of the other points.
    pub fn is_pointwise(&self) -> bool {
        let plain = self.shape.levers.modes == 0 && self.shape.unified_positions == 0;
        plain && (0..self.blocks.len()).all(|number| self.block(number).1.is_pointwise())
    }
}

impl<'g> InPieces<'g> for SliceStack<'g> {
    fn blocks(&self) -> usize {
        self.blocks.len()
    }

    fn lift(&self, input: &Input<'g>) -> Tensor<'g> {
        self.lifted(input)
    }

    fn sums(&self, block: usize, features: Tensor<'g>, mask: Tensor<'g>) -> Tensor<'g> {
        let (block, slices) = self.block(block);
        slices.sums(block.norm1.forward(features), mask)
    }

    fn mix(&self, block: usize, sums: Tensor<'g>) -> Tensor<'g> {
        let (block, slices) = self.block(block);
        block.mixed(slices.tokens(sums))
    }

    fn expand(&self, block: usize, features: Tensor<'g>, tokens: Tensor<'g>) -> Tensor<'g> {
        let (block, slices) = self.block(block);
        block.left(features, slices.spread(block.norm1.forward(features), tokens))
    }

    fn project(&self, features: Tensor<'g>) -> Tensor<'g> {
        self.project.forward(self.norm.forward(features))
    }
}

impl<'g> Block<'g> {
    fn new(
        scope: &Scope<'_, 'g>,
        shape: StackShape,
        mixer: &impl Fn(&Scope<'_, 'g>) -> Box<dyn TokenMixer<'g> + 'g>,
    ) -> Self {
        let (width, ratio) = (shape.width, shape.mlp_ratio);
        let attention = scope.enter("Attn");
        let sizes = [width, ratio * width, width];
        Block {
            norm1: LayerNorm::new(&scope.enter("ln_1"), width),
            slices: (!shape.shared).then(|| Slices::own(&attention, shape.slices, shape.decoder)),
            mixer: mixer(&attention),
            out: Linear::new(&attention.enter("to_out.0"), width, width),
            norm2: LayerNorm::new(&scope.enter("ln_2"), width),
            mlp: Mlp::with_middle(&scope.enter("mlp"), LIBRARY_MLP, sizes, shape.levers.mlp),
            levers: BlockLevers::new(scope, shape.levers, extents(shape.slices.grid), width),
            pass: scope.pass(),
        }
    }

    fn forward(&self, features: Tensor<'g>, slices: Option<&Slices<'g>>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
        let slices = slices.expect("a stack has slices of its blocks or for all of them");
        self.pass.begin_block();
        let mixed =
            self.levers.mix(self.norm1.forward(features), |part| self.updated(&slices.encode_masked(part, mask)));
        self.left(features, mixed)
    }

    /// f ← f + to_out(u);  f ← f + mlp(LN₂ f), with the update u of the points.
    fn left(&self, features: Tensor<'g>, update: Tensor<'g>) -> Tensor<'g> {
        let features = features + self.out.forward(update);
        features + self.mlp.forward(self.norm2.forward(features))
    }

    /// mix(z), or z + γ mix(z).
    fn mixed(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let mixed = self.mixer.mix(tokens);
        self.levers.gain().map_or(mixed, |gain| tokens + mixed * gain)
    }

    /// decode(mix(z)), or decode(z + γ mix(z)).
    fn updated(&self, sliced: &Sliced<'g>) -> Tensor<'g> {
        let mixed = self.mixed(sliced.tokens);
        self.pass.show_tokens(sliced.tokens, mixed);
        sliced.decode(mixed)
    }
}

/// Points along each axis of a box; a line and a cloud are one row.
fn extents(grid: Grid) -> [usize; 3] {
    grid.extents().unwrap_or([1, 1, grid.points()])
}
