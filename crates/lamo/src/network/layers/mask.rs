//! Masks of ragged batches: 1 at the points of a sample, 0 at those that fill it up to the size of the program.
//!
//! What a sample predicts, and its gradient, must not depend on the points that fill it up. Layers that treat each point by
//! itself need no mask; sums, means and softmaxes over points do.

use lamo_tensor::Tensor;

/// A score far below all others: its weight in a softmax is exactly 0 beside any real point.
const EXCLUDED: f64 = 1e30;

/// `[..., points]` scores of a softmax over points, with the points that fill up a sample excluded. The scores are
/// `[batch, heads, queries, points]`, the mask `[batch, points]`.
pub fn masked_scores<'g>(scores: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
    let Some(mask) = mask else { return scores };
    let [batch, points] = mask.dims();
    scores + (mask.reshape([batch, 1, 1, points]) - 1.0) * EXCLUDED
}

/// `[batch, points, channels]` with zeros at the points that fill up a sample.
pub fn real_only<'g>(values: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
    let Some(mask) = mask else { return values };
    let [batch, points] = mask.dims();
    values * mask.reshape([batch, points, 1])
}

/// `[batch, heads, keys, channels]` with zeros at the keys that fill up a sample.
pub fn real_keys<'g>(keys: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
    let Some(mask) = mask else { return keys };
    let [batch, points] = mask.dims();
    keys * mask.reshape([batch, 1, points, 1])
}

/// `[batch, heads, ..., ...]` over the number of keys, or over that of the real ones.
pub fn over_keys<'g>(values: Tensor<'g>, keys: usize, mask: Option<Tensor<'g>>) -> Tensor<'g> {
    let Some(mask) = mask else { return values * (1.0 / keys as f64) };
    let [batch, _] = mask.dims();
    values / mask.sum(&[1]).reshape([batch, 1, 1, 1])
}

/// `[batch]` numbers of real points over `points`: the factor by which a mean over all points becomes one over real points.
pub fn filled_share<'g>(mask: Tensor<'g>) -> Tensor<'g> {
    let [batch, points] = mask.dims();
    mask.sum(&[1]).reshape([batch]) * (1.0 / points as f64)
}
