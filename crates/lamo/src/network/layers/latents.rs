//! Queries of slices that depend on the sample:
//!
//! q_{hm} = q⁰_{hm} + σ(g_h) Σ_n softmax_n(q¹_{hm}·x_{nh}/√c) x_{nh}.
//!
//! q⁰ and q¹ are learned, `tokens` of each for every head. g begins at 0, so that half of what q¹ finds counts.

use super::attention_scores;
use super::mask::masked_scores;
use crate::network::{Initial, Scope, Style};
use lamo_tensor::Tensor;

/// The learned latents of one set of slices.
pub(super) struct Latents<'g> {
    /// `[heads, tokens, c]` q⁰
    fixed: Tensor<'g>,
    /// `[heads, tokens, c]` q¹
    asking: Tensor<'g>,
    /// `[heads]` g
    gate: Tensor<'g>,
}

impl<'g> Latents<'g> {
    /// `tokens` latents of `channels` channels for each of `heads` heads.
    pub(super) fn new(scope: &Scope<'_, 'g>, heads: usize, tokens: usize, channels: usize) -> Self {
        let initial = match scope.style() {
            Style::FanIn => Initial::fan_in(channels),
            Style::Small => Initial::Normal { deviation: 0.02 },
        };
        Latents {
            fixed: scope.parameter("fixed", [heads, tokens, channels], initial),
            asking: scope.parameter("asking", [heads, tokens, channels], initial),
            gate: scope.parameter("gate", [heads], Initial::Constant(0.0)),
        }
    }

    /// q of points x `[batch, points, heads, c]`: `[batch, heads, tokens, c]`
    pub(super) fn forward(&self, points: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
        let [heads, tokens, channels] = self.fixed.dims();
        let [batch, ..] = points.dims::<4>();
        let keys = points.permute(&[0, 2, 1, 3]); // [batch, heads, points, c]
        let asking = self.asking.broadcast_to([batch, heads, tokens, channels]);
        let found = masked_scores(attention_scores(asking, keys), mask).softmax().matmul(keys);
        self.fixed + found * self.gate.sigmoid().reshape([heads, 1, 1])
    }
}
