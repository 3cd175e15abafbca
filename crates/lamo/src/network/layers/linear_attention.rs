//! Linear attention of the Neural-Solver-Library: with q and k softmaxed over the c channels of each head,
//!
//! y = s · q (kᵀ v) + q,  s = 1/keys (Galerkin, Cao 2021) or s = 1/(q · Σ k) at each query (L1, Hao et al. 2023).
//!
//! kᵀ v is c × c for each head, so that the cost grows with the number of points and not with its square. q is added again.

use super::mask::{over_keys, real_keys};
use super::{Linear, join_heads, split_heads};
use crate::network::Scope;
use lamo_tensor::Tensor;

/// The scale s of linear attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearScale {
    /// 1/keys.
    Galerkin,
    /// 1/(q · Σ k), so that the weights of each query add up to 1.
    L1,
}

/// Attention from some points to others at a cost that is linear in both.
pub struct LinearAttention<'g> {
    heads: usize,
    scale: LinearScale,
    key: Linear<'g>,
    query: Linear<'g>,
    value: Linear<'g>,
    project: Linear<'g>,
}

impl<'g> LinearAttention<'g> {
    /// `width` channels in `heads` heads.
    pub fn new(scope: &Scope<'_, 'g>, scale: LinearScale, heads: usize, width: usize) -> Self {
        let linear = |name: &str| Linear::new(&scope.enter(name), width, width);
        let [key, query, value, project] = ["key", "query", "value", "proj"].map(linear);
        LinearAttention { heads, scale, key, query, value, project }
    }

    /// `[batch, queries, width]` and `[batch, keys, width]` → `[batch, queries, width]`
    pub fn forward(&self, asking: Tensor<'g>, given: Tensor<'g>) -> Tensor<'g> {
        self.forward_masked(asking, given, None)
    }

    /// The same; with a mask `[batch, keys]`, only the keys where it is 1 count.
    pub fn forward_masked(&self, asking: Tensor<'g>, given: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
        let by_head = |map: &Linear<'g>, points: Tensor<'g>| split_heads(map.forward(points), self.heads);
        let query = by_head(&self.query, asking).lean_softmax(); // [batch, heads, queries, c]
        let key = real_keys(by_head(&self.key, given).lean_softmax(), mask); // [batch, heads, keys, c]
        let [_, _, keys, _] = key.dims();
        let mixed = query.matmul(key.transpose().matmul(by_head(&self.value, given)));
        let scaled = match self.scale {
            LinearScale::Galerkin => over_keys(mixed, keys, mask),
            LinearScale::L1 => mixed / (query * key.sum(&[2])).sum(&[3]), // q · Σ k: [batch, heads, queries, 1]
        };
        self.project.forward(join_heads(scaled + query))
    }
}
