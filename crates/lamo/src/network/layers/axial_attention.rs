//! Axial attention with one kernel per axis (FactFormer, Li et al. 2023, as in the Neural-Solver-Library). On a grid of
//! n₁ × … × n_D points, the features u give for each axis a
//!
//! p = FFN(LN(W mean over the other axes of u)),  A_a = softmax(q kᵀ/√c) with q, k linear in p,  `[heads, n_a, n_a]`,
//!
//! and the values v = V u are multiplied by A₁ along the first axis, then by A₂ along the second, and so on. The maps V, q and k
//! are c × c, and all heads share them.

use super::{LayerNorm, Linear, ResidualMlp, attention_scores, split_heads};
use crate::network::Scope;
use lamo_tensor::Tensor;

/// Where the reducer of an axis stands; the library permutes axes in front of the last two.
const REDUCERS: [&str; 3] = ["to_x.0", "to_y.1", "to_z.1"];
const KERNELS: [&str; 3] = ["attn_x", "attn_y", "attn_z"];

/// Attention along two or three axes.
pub struct AxialAttention<'g> {
    heads: usize,
    extents: Vec<usize>,
    axes: Vec<Axis<'g>>,
    value: Linear<'g>,
    out: Linear<'g>,
}

/// What makes the kernel of an axis.
struct Axis<'g> {
    query: Linear<'g>,
    key: Linear<'g>,
    reduce: Linear<'g>,
    norm: LayerNorm<'g>,
    mlp: ResidualMlp<'g>,
}

impl<'g> AxialAttention<'g> {
    /// `width` channels in `heads` heads, on a grid of two or three axes.
    pub fn new(scope: &Scope<'_, 'g>, extents: &[usize], heads: usize, width: usize) -> Self {
        let channels = width / heads;
        let square = |scope: &Scope<'_, 'g>, name: &str| Linear::without_bias(&scope.enter(name), channels, channels);
        let kernel = |name: &&str| ["to_q", "to_k"].map(|map| square(&scope.enter(name), map));
        let kernels: Vec<_> = KERNELS[..extents.len()].iter().map(kernel).collect();
        let value = square(scope, "to_v");
        let axis = |(place, [query, key]): (&str, [Linear<'g>; 2])| {
            let (scope, sizes) = (scope.enter(place), [width; 3]);
            Axis {
                query,
                key,
                reduce: Linear::without_bias(&scope.enter("to_in"), width, width),
                norm: LayerNorm::new(&scope.enter("out_ffn.norm"), width),
                mlp: ResidualMlp::new(&scope.enter("out_ffn.fn"), sizes),
            }
        };
        let axes = REDUCERS.into_iter().zip(kernels).map(axis).collect();
        let out = Linear::new(&scope.enter("to_out.0"), width, width);
        AxialAttention { heads, extents: extents.to_vec(), axes, value, out }
    }

    /// `[batch, points, width]` → the same
    pub fn forward(&self, features: Tensor<'g>) -> Tensor<'g> {
        let [batch, points, width] = features.dims();
        let (heads, channels, count) = (self.heads, width / self.heads, self.extents.len());
        let by_head = split_heads(features, heads); // [batch, heads, points, c]
        let mut values = self.value.forward(by_head);
        let mut extents = self.extents.clone();
        for (number, axis) in self.axes.iter().enumerate() {
            let kernel = axis.kernel(self.pooled(features, number), heads); // [batch, heads, n, n]
            let rows = values.reshape([batch, heads, extents[0], points / extents[0] * channels]);
            values = kernel.matmul(rows).reshape([&[batch, heads], &extents[..], &[channels]].concat());
            // The axis that is done goes behind the others; after the last one, all are in order again.
            extents.rotate_left(1);
            let order: Vec<usize> = [0, 1].into_iter().chain(3..2 + count).chain([2, 2 + count]).collect();
            values = values.permute(&order);
        }
        let joined = values.reshape([batch, heads, points, channels]).permute(&[0, 2, 1, 3]);
        self.out.forward(joined.reshape([batch, points, width]))
    }

    /// The mean over all other axes: `[batch, n, width]`. The reducer is linear, so that its map can come after the mean.
    fn pooled(&self, features: Tensor<'g>, axis: usize) -> Tensor<'g> {
        let [batch, _, width] = features.dims();
        let others: Vec<usize> =
            (0..self.extents.len()).filter(|&other| other != axis).map(|other| other + 1).collect();
        let on_grid = features.reshape([&[batch], &self.extents[..], &[width]].concat());
        on_grid.mean(&others).reshape([batch, self.extents[axis], width])
    }
}

impl<'g> Axis<'g> {
    /// A: `[batch, n, width]` → `[batch, heads, n, n]`
    fn kernel(&self, pooled: Tensor<'g>, heads: usize) -> Tensor<'g> {
        let reduced = self.mlp.forward(self.norm.forward(self.reduce.forward(pooled)));
        let by_head = split_heads(reduced, heads);
        attention_scores(self.query.forward(by_head), self.key.forward(by_head)).lean_softmax()
    }
}
