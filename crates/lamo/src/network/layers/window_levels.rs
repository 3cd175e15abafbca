//! Levels of attention in windows (HT-Net, Liu, Xu, Zhang 2022): each level has half the points of the one before along each axis and
//! twice the channels. With W of [`WindowAttention`] without softmax,
//!
//! down: t ← t + W(LN t), t ← t + mlp(LN t), a_L = t, t = R LN(the four cells of each square);  up: a_{L−1} += S a_L.

use super::{Dropout, Dropped, LayerNorm, Linear, Mlp, WindowAttention, WindowWeights, Windows};
use crate::network::{Mode, Scope};
use lamo_tensor::Tensor;

/// Hidden channels of a block's MLP over its width.
const MLP_RATIO: usize = 4;

/// Sizes of all levels, the finest first.
#[derive(Clone, Debug)]
pub struct WindowLevelsShape {
    /// Channels of the finest level.
    pub width: usize,
    /// Side of the windows of each level.
    pub windows: Vec<usize>,
    /// Blocks of each level.
    pub depths: Vec<usize>,
    /// Heads of each level.
    pub heads: Vec<usize>,
    /// Rate at which a branch of the last block is left out in training; it grows from 0 at the first block.
    pub stochastic_depth: f64,
}

impl WindowLevelsShape {
    /// Channels of a level.
    pub fn level_width(&self, level: usize) -> usize {
        self.width << level
    }

    /// Rate of a block, counted over all levels, rounded to float32 as the authors' code does.
    fn rate(&self, block: usize) -> f64 {
        let last = self.depths.iter().sum::<usize>().max(2) - 1;
        f64::from((self.stochastic_depth * block as f64 / last as f64) as f32)
    }
}

/// Down through all levels and up again.
pub struct WindowLevels<'g> {
    levels: Vec<Level<'g>>,
    /// S of each level; the weights file has one of the finest level, too, which leads nowhere.
    rises: Vec<Linear<'g>>,
}

impl<'g> WindowLevels<'g> {
    /// On a plane of so many tokens, which the windows of all levels divide.
    pub fn new(scope: &Scope<'_, 'g>, shape: &WindowLevelsShape, tokens: [usize; 2]) -> Self {
        let depth = shape.windows.len();
        let levels = (0..depth).map(|level| Level::new(scope, shape, level, tokens)).collect();
        let rise = |level: usize| {
            let (scope, width) = (scope.enter("relayers").enter(&level.to_string()), shape.level_width(level));
            Linear::new(&scope.enter("rebuildnet"), width, 2 * width)
        };
        WindowLevels { levels, rises: (0..depth).map(rise).collect() }
    }

    /// `[batch, rows, columns, width]` → the same
    pub fn forward(&self, image: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        let (mut stream, mut results) = (image, Vec::with_capacity(self.levels.len()));
        for level in &self.levels {
            let result = level.forward(stream, mode);
            stream = level.down.as_ref().map_or(result, |down| down.forward(result));
            results.push(result);
        }
        let mut fine = results.pop().expect("there is a level");
        while let Some(finer) = results.pop() {
            fine = finer + raised(self.rises[results.len() + 1].forward(fine));
        }
        fine
    }
}

/// The blocks of a level, and the way to the next.
struct Level<'g> {
    windows: Windows,
    blocks: Vec<Block<'g>>,
    down: Option<Down<'g>>,
}

struct Block<'g> {
    norm1: LayerNorm<'g>,
    attention: WindowAttention<'g>,
    norm2: LayerNorm<'g>,
    mlp: Mlp<'g>,
    /// Leaves out both branches, each by itself.
    depth: Dropout<'g>,
}

impl<'g> Level<'g> {
    fn new(scope: &Scope<'_, 'g>, shape: &WindowLevelsShape, level: usize, tokens: [usize; 2]) -> Self {
        let scope = scope.enter("layers").enter(&level.to_string());
        let (width, side, heads) = (shape.level_width(level), shape.windows[level], shape.heads[level]);
        let before: usize = shape.depths[..level].iter().sum();
        let block = |number: usize| {
            let scope = scope.enter("blocks").enter(&number.to_string());
            Block {
                norm1: LayerNorm::new(&scope.enter("norm1"), width),
                attention: WindowAttention::new(&scope.enter("attn"), WindowWeights::Plain, side, heads, width),
                norm2: LayerNorm::new(&scope.enter("norm2"), width),
                mlp: Mlp::new(&scope.enter("mlp"), [width, MLP_RATIO * width, width]),
                depth: Dropout::new(&scope, shape.rate(before + number), Dropped::Samples),
            }
        };
        let blocks = (0..shape.depths[level]).map(block).collect();
        let down = (level + 1 < shape.windows.len()).then(|| Down::new(&scope.enter("downsample"), width));
        Level { windows: Windows { extents: tokens.map(|extent| extent >> level), side }, blocks, down }
    }

    /// `[batch, rows, columns, width]` → the same
    fn forward(&self, image: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        self.blocks.iter().fold(image, |image, block| {
            let windows = self.windows.cut(block.norm1.forward(image));
            let mixed = self.windows.join(block.attention.forward(windows, None));
            let image = image + block.depth.forward(mixed, mode);
            image + block.depth.forward(block.mlp.forward(block.norm2.forward(image)), mode)
        })
    }
}

/// R LN of the four cells of each square.
struct Down<'g> {
    reduce: Linear<'g>,
    norm: LayerNorm<'g>,
}

impl<'g> Down<'g> {
    fn new(scope: &Scope<'_, 'g>, width: usize) -> Self {
        Down {
            reduce: Linear::without_bias(&scope.enter("reduction"), 4 * width, 2 * width),
            norm: LayerNorm::new(&scope.enter("norm"), 4 * width),
        }
    }

    /// `[batch, rows, columns, width]` → `[batch, rows/2, columns/2, 2 width]`; the row of a cell varies before its column.
    fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let [batch, rows, columns, width] = image.dims();
        let squares = image.reshape([batch, rows / 2, 2, columns / 2, 2, width]).permute(&[0, 1, 3, 4, 2, 5]);
        self.reduce.forward(self.norm.forward(squares.reshape([batch, rows / 2, columns / 2, 4 * width])))
    }
}

/// `[batch, rows, columns, 4 width]` → `[batch, 2 rows, 2 columns, width]`: the four parts of the channels are the cells of a
/// square, in the order of [`Down`].
fn raised(image: Tensor<'_>) -> Tensor<'_> {
    let [batch, rows, columns, parts] = image.dims();
    let squares = image.reshape([batch, rows, columns, 2, 2, parts / 4]).permute(&[0, 1, 4, 2, 3, 5]);
    squares.reshape([batch, 2 * rows, 2 * columns, parts / 4])
}
