//! Transolver (Wu et al., ICML 2024): the slice stack with softmax attention over the tokens of each head,
//!
//! softmax(q kᵀ/√c) v,  q, k, v linear maps that all heads share.

use super::{Settings, check_unified, read};
use crate::error::{Refusal, require};
use crate::network::layers::{Linear, SliceShape, SliceStack, StackShape, TokenMixer};
use crate::network::{Model, Scope, Style};
use crate::task::Task;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// All settings; the defaults are the official mesh models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// C, channels of points and tokens.
    pub width: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Heads of slices and attention.
    pub slice_heads: usize,
    /// M, slices per head.
    pub tokens: usize,
    /// Hidden channels of a block's MLP over its width.
    pub mlp_ratio: usize,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions.
    pub unified_positions: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config { width: 128, depth: 8, slice_heads: 8, tokens: 64, mlp_ratio: 1, unified_positions: 0 }
    }
}

pub(super) fn build<'g>(
    scope: &Scope<'_, 'g>,
    task: &Task,
    settings: &Settings,
) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let Config { width, depth, slice_heads, tokens, mlp_ratio, unified_positions } = read("transolver", settings)?;
    for (name, value) in
        [("width", width), ("depth", depth), ("slice_heads", slice_heads), ("tokens", tokens), ("mlp_ratio", mlp_ratio)]
    {
        require(value > 0, || format!("model transolver: {name} must be at least 1, found 0"))?;
    }
    require(width.is_multiple_of(slice_heads), || {
        format!("model transolver: width {width} does not divide into {slice_heads} slice heads")
    })?;
    check_unified("transolver", unified_positions, task)?;
    require(!task.time.is_input() || width % 2 == 0, || {
        format!("model transolver: a time needs an even width, found {width}")
    })?;
    let shape = StackShape {
        slices: SliceShape { grid: task.grid, width, heads: slice_heads, tokens },
        depth,
        mlp_ratio,
        shared: false,
        own_decoder: false,
        unified_positions,
    };
    let attention = |block: &Scope<'_, 'g>| -> Box<dyn TokenMixer<'g> + 'g> {
        Box::new(Attention::new(block, slice_heads, width / slice_heads))
    };
    Ok(Box::new(SliceStack::new(&scope.with_style(Style::Small), task, shape, attention)))
}

/// Attention among the tokens of each head.
struct Attention<'g> {
    heads: usize,
    query: Linear<'g>,
    key: Linear<'g>,
    value: Linear<'g>,
}

impl<'g> Attention<'g> {
    fn new(scope: &Scope<'_, 'g>, heads: usize, channels: usize) -> Self {
        let linear = |name: &str| Linear::without_bias(&scope.enter(name), channels, channels);
        Attention { heads, query: linear("to_q"), key: linear("to_k"), value: linear("to_v") }
    }
}

impl<'g> TokenMixer<'g> for Attention<'g> {
    fn mix(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let [batch, count, width] = tokens.dims();
        let channels = width / self.heads;
        let by_head = tokens.reshape([batch, count, self.heads, channels]).permute(&[0, 2, 1, 3]);
        let [query, key, value] = [&self.query, &self.key, &self.value].map(|linear| linear.forward(by_head));
        let weights = (query.matmul(key.transpose()) * (1.0 / (channels as f64).sqrt())).softmax();
        weights.matmul(value).permute(&[0, 2, 1, 3]).reshape([batch, count, width])
    }
}
