//! Softmax attention (Vaswani et al. 2017, Eq. 1): softmax(q kᵀ/√c) v, for each head of c channels by itself.

use super::{Linear, TokenMixer};
use crate::network::probe::Kernel;
use crate::network::{Pass, Scope};
use lamo_tensor::Tensor;

/// Attention among the tokens of each head, with maps to q, k and v that all heads share (Transolver, Wu et al. 2024).
pub struct Attention<'g> {
    heads: usize,
    query: Linear<'g>,
    key: Linear<'g>,
    value: Linear<'g>,
    pass: Pass<'g>,
}

impl<'g> Attention<'g> {
    /// Heads of `channels` channels each.
    pub fn new(scope: &Scope<'_, 'g>, heads: usize, channels: usize) -> Self {
        let linear = |name: &str| Linear::without_bias(&scope.enter(name), channels, channels);
        Attention { heads, query: linear("to_q"), key: linear("to_k"), value: linear("to_v"), pass: scope.pass() }
    }
}

impl<'g> TokenMixer<'g> for Attention<'g> {
    fn mix(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let by_head = split_heads(tokens, self.heads);
        let [query, key, value] = [&self.query, &self.key, &self.value].map(|linear| linear.forward(by_head));
        let mixed = attention_scores(query, key).softmax().matmul(value);
        join_heads(self.pass.show_mixing(mixed, || Kernel::Attention { query, key, value }))
    }
}

/// q kᵀ/√c: `[…, queries, c]` and `[…, keys, c]` → `[…, queries, keys]`. A bias or a mask is added before the softmax.
pub fn attention_scores<'g>(query: Tensor<'g>, key: Tensor<'g>) -> Tensor<'g> {
    let shape = query.shape();
    let channels = shape.dims()[shape.rank() - 1];
    query.matmul(key.transpose()) * (1.0 / (channels as f64).sqrt())
}

/// `[batch, tokens, heads · c]` → `[batch, heads, tokens, c]`
pub fn split_heads<'g>(tokens: Tensor<'g>, heads: usize) -> Tensor<'g> {
    let [batch, count, width] = tokens.dims();
    tokens.reshape([batch, count, heads, width / heads]).permute(&[0, 2, 1, 3])
}

/// `[batch, heads, tokens, c]` → `[batch, tokens, heads · c]`
pub fn join_heads(by_head: Tensor<'_>) -> Tensor<'_> {
    let [batch, heads, count, channels] = by_head.dims();
    by_head.permute(&[0, 2, 1, 3]).reshape([batch, count, heads * channels])
}
