//! A decoder that does not know the encoder: points ask the mixed tokens, head by head,
//!
//! y_n = Σ_m softmax_m(Q v_n · K z_m / √c) V z_m.

use super::sorted::Sorted;
use super::{Linear, split_heads};
use crate::network::Scope;
use lamo_tensor::Tensor;

/// The maps Q, K and V.
#[derive(Clone, Copy)]
pub(super) struct TokenDecoder<'g> {
    heads: usize,
    query: Linear<'g>,
    key: Linear<'g>,
    value: Linear<'g>,
}

impl<'g> TokenDecoder<'g> {
    /// `width` channels of points and tokens, which the heads divide.
    pub(super) fn new(scope: &Scope<'_, 'g>, heads: usize, width: usize) -> Self {
        let linear = |name: &str| Linear::without_bias(&scope.enter(name), width, width);
        TokenDecoder { heads, query: linear("to_q"), key: linear("to_k"), value: linear("to_v") }
    }

    /// Points `[batch, points, width]` and tokens `[batch, tokens, width]` to points `[batch, points, width]`.
    pub(super) fn forward(&self, points: Tensor<'g>, tokens: Tensor<'g>) -> Tensor<'g> {
        let [batch, count, width] = points.dims();
        let channels = width / self.heads;
        let queries = self.query.forward(points) * (1.0 / (channels as f64).sqrt());
        let [keys, values] = [&self.key, &self.value].map(|map| split_heads(map.forward(tokens), self.heads));
        let sorted = Sorted::by_sample(queries.reshape([batch, count, self.heads, channels]), keys);
        sorted.spread(values).reshape([batch, count, width])
    }
}
