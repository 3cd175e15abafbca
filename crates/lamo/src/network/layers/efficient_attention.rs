//! Efficient attention (Shen et al. 2021): y = q (kᵀ v), with q softmaxed over the c channels of each head and divided by √c, and
//! k softmaxed over the points.
//!
//! kᵀ v is c × c for each head, so that the cost grows with the number of points and not with its square.

use super::{Linear, join_heads, split_heads};
use crate::network::Scope;
use lamo_tensor::Tensor;

/// Attention among all points at a linear cost.
pub struct EfficientAttention<'g> {
    heads: usize,
    query: Linear<'g>,
    key: Linear<'g>,
    value: Linear<'g>,
    out: Linear<'g>,
}

impl<'g> EfficientAttention<'g> {
    /// `width` channels in `heads` heads.
    pub fn new(scope: &Scope<'_, 'g>, heads: usize, width: usize) -> Self {
        let linear = |name: &str| Linear::without_bias(&scope.enter(name), width, width);
        let [query, key, value] = ["to_q", "to_k", "to_v"].map(linear);
        EfficientAttention { heads, query, key, value, out: Linear::new(&scope.enter("to_out"), width, width) }
    }

    /// `[batch, points, width]` → the same
    pub fn forward(&self, features: Tensor<'g>) -> Tensor<'g> {
        let by_head = |map: &Linear<'g>| split_heads(map.forward(features), self.heads); // [batch, heads, points, c]
        let query = by_head(&self.query).lean_softmax();
        let [_, _, _, channels] = query.dims();
        let key = by_head(&self.key).transpose().lean_softmax(); // [batch, heads, c, points]
        let mixed = query.matmul(key.matmul(by_head(&self.value))) * (1.0 / (channels as f64).sqrt());
        self.out.forward(join_heads(mixed))
    }
}
