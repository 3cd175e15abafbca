//! Nyström attention (Xiong et al. 2021), as the package `nystrom-attention` computes it: softmax(q kᵀ) through m landmarks,
//!
//! y = A₁ Z A₃ v + conv(v),  A₁ = softmax(q k̃ᵀ),  A₂ = softmax(q̃ k̃ᵀ),  A₃ = softmax(q̃ kᵀ),  Z ≈ A₂⁻¹.
//!
//! A landmark q̃ or k̃ is the mean of consecutive tokens. Zeros in front make the number of tokens a multiple of m; they take
//! part in every softmax. Z comes from six steps of Newton's method, which start at A₂ᵀ over its largest row and column sum in
//! the whole batch: so a sample sees the others. conv is a filter along the tokens, one for each head.

use super::{Linear, split_heads};
use crate::network::layers::join_heads;
use crate::network::{Initial, Scope};
use lamo_tensor::{ConvolutionOptions, Tensor};

/// Steps of Newton's method.
pub(crate) const ITERATIONS: usize = 6;
/// The first steps, which form the inverse.
const FORMED: usize = 1;
/// Tokens that the filter sees.
pub(crate) const FILTER: usize = 33;

/// Attention among all points through landmarks.
pub struct NystromAttention<'g> {
    heads: usize,
    landmarks: usize,
    project: Linear<'g>,
    /// `[heads, 1, 33, 1]`
    filter: Tensor<'g>,
    out: Linear<'g>,
}

impl<'g> NystromAttention<'g> {
    /// `width` channels in `heads` heads.
    pub fn new(scope: &Scope<'_, 'g>, landmarks: usize, heads: usize, width: usize) -> Self {
        NystromAttention {
            heads,
            landmarks,
            project: Linear::without_bias(&scope.enter("to_qkv"), width, 3 * width),
            out: Linear::new(&scope.enter("to_out").enter("0"), width, width),
            filter: scope.enter("res_conv").parameter("weight", [heads, 1, FILTER, 1], Initial::fan_in(FILTER)),
        }
    }

    /// `[batch, points, width]` → the same
    pub fn forward(&self, features: Tensor<'g>) -> Tensor<'g> {
        let [batch, points, width] = features.dims();
        let (heads, channels) = (self.heads, width / self.heads);
        let tokens = points.next_multiple_of(self.landmarks);
        let padded = features.pad(1, tokens - points, 0); // [batch, tokens, width]
        let parts = self.project.forward(padded).split(2, [width; 3]);
        let filtered = self.filtered(parts[2]);
        let [query, key, value] = parts.map(|part| split_heads(part, heads));
        let scale = 1.0 / (channels as f64).sqrt();
        let landmarks = |tensor: Tensor<'g>| {
            let grouped = [batch, heads, self.landmarks, tokens / self.landmarks, channels];
            tensor.reshape(grouped).mean(&[3]).reshape([batch, heads, self.landmarks, channels])
        };
        let (query_marks, key_marks) = (landmarks(query), landmarks(key));
        let weights = |query: Tensor<'g>, key: Tensor<'g>| (query.matmul(key.transpose()) * scale).lean_softmax();
        let from_marks = weights(query, key_marks); // A₁ [batch, heads, tokens, landmarks]
        let among_marks = weights(query_marks, key_marks); // A₂ [batch, heads, landmarks, landmarks]
        let to_marks = weights(query_marks, key); // A₃ [batch, heads, landmarks, tokens]
        let mixed = from_marks.matmul(pseudo_inverse_times(among_marks, to_marks.matmul(value)));
        self.out.forward(join_heads(mixed) + filtered).slice(1, tokens - points, tokens)
    }

    /// Each head's filter along the tokens, the same for all its channels: `[batch, tokens, width]` → the same
    fn filtered(&self, value: Tensor<'g>) -> Tensor<'g> {
        let [batch, tokens, width] = value.dims();
        let options = ConvolutionOptions {
            groups: width,
            padding: [[FILTER / 2, FILTER / 2], [0, 0]],
            ..ConvolutionOptions::default()
        };
        let filter = self.filter.broadcast_to([self.heads, width / self.heads, FILTER, 1]);
        let image = value.reshape([batch, tokens, 1, width]);
        image.convolve(filter.reshape([width, 1, FILTER, 1]), options).reshape([batch, tokens, width])
    }
}

/// Z y with Z after six steps of Z ← Z p(W), W = A Z, p(W) = ¼ (13 − W (15 − W (7 − W))), from Z₀ = Aᵀ/c (Razavi et al. 2014).
///
/// `[batch, heads, n, n]` and `[batch, heads, n, channels]` → `[batch, heads, n, channels]`
///
/// After the first step Z is no longer formed. W moves by itself, W ← W p(W), with two products of n × n in a step instead of
/// four, and y is moved by p(W) of the last step, then of the one before it, and so on. Where W is small, a step makes it, and
/// its rounding errors, 3¼ times as large, which a new A Z would not: these products are in f32, and the first step forms Z.
fn pseudo_inverse_times<'g>(matrix: Tensor<'g>, mut moved: Tensor<'g>) -> Tensor<'g> {
    let [_, _, side, _] = matrix.dims();
    let values: Vec<f32> = (0..side * side).map(|i| f32::from(i % (side + 1) == 0)).collect();
    let one = matrix.graph().constant(&values, [side, side]);
    let largest = |axis: usize| matrix.sum(&[axis]).max(&[0, 1, 2, 3]); // [1, 1, 1, 1]
    let mut inverse = matrix.transpose() / (largest(3) * largest(2));
    for _ in 0..FORMED {
        let product = matrix.matmul(inverse);
        let inner = one * 15.0 - product.matmul(one * 7.0 - product);
        inverse = inverse.matmul(one * 13.0 - product.matmul(inner)) * 0.25;
    }
    let mut product = matrix.matmul_in_f32(inverse);
    let mut products = vec![product]; // W of the steps that are left
    for _ in FORMED + 1..ITERATIONS {
        let square = product.matmul_in_f32(product);
        product = (product * 13.0 - square * 15.0 + square.matmul_in_f32(product * 7.0 - square)) * 0.25;
        products.push(product);
    }
    for product in products.into_iter().rev() {
        let inner = moved * 15.0 - product.matmul(moved * 7.0 - product.matmul(moved));
        moved = (moved * 13.0 - product.matmul(inner)) * 0.25;
    }
    inverse.matmul(moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lamo_tensor::reference::{Bindings, evaluate};
    use lamo_tensor::{Graph, PARAMETERS};

    /// All steps as they are defined, with the inverse formed.
    fn defined<'g>(matrix: Tensor<'g>, moved: Tensor<'g>) -> Tensor<'g> {
        let side = matrix.dims::<4>()[3];
        let values: Vec<f32> = (0..side * side).map(|i| f32::from(i % (side + 1) == 0)).collect();
        let one = matrix.graph().constant(&values, [side, side]);
        let largest = |axis: usize| matrix.sum(&[axis]).max(&[0, 1, 2, 3]);
        let mut inverse = matrix.transpose() / (largest(3) * largest(2));
        for _ in 0..ITERATIONS {
            let product = matrix.matmul(inverse);
            let inner = one * 15.0 - product.matmul(one * 7.0 - product);
            inverse = inverse.matmul(one * 13.0 - product.matmul(inner)) * 0.25;
        }
        inverse.matmul(moved)
    }

    #[test]
    fn the_inverse_that_is_not_formed_moves_values_and_gradients_as_the_formed_one_does() {
        let found = [defined, pseudo_inverse_times].map(|times| {
            let graph = Graph::new();
            let matrix = graph.parameter("scores", [2, 3, 7, 7]).softmax();
            let moved = times(matrix, graph.parameter("values", [2, 3, 7, 4]));
            let gradient = graph.gradient(moved.square().sum_all(), &[graph.parameters()])[0].unwrap();
            let count = graph.parameters().shape().count();
            let theta = (0..count).map(|n| 3.0 * (1.7 + 12.9898 * n as f64).sin()).collect();
            let values = evaluate(&graph, &Bindings::from([(PARAMETERS, theta)]), &[moved, gradient]);
            [0, 1].map(|which| values[which].values.clone())
        });
        for (expected, found) in found[0].iter().zip(&found[1]) {
            let size = expected.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            let worst = expected.iter().zip(found).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
            assert!(size > 0.1 && worst < 1e-11 * size, "{worst} of {size}");
        }
    }
}
