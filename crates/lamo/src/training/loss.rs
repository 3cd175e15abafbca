//! Relative L2: ‖prediction − target‖₂ / ‖target‖₂ per sample, the error every benchmark of the field reports.

use lamo_tensor::Tensor;

/// One error per sample, shape `[batch]`; all axes but the first are flattened. No ε: a target of zero norm is an error
/// in the data and gives infinity.
pub fn relative_l2<'g>(prediction: Tensor<'g>, target: Tensor<'g>) -> Tensor<'g> {
    let (found, expected) = (prediction.shape(), target.shape());
    assert!(found == expected, "relative L2: the prediction has shape {found}, the target {expected}");
    let batch = found.dims()[0];
    let flat = |tensor: Tensor<'g>| tensor.reshape([batch, found.count() / batch]);
    let norm = |tensor: Tensor<'g>| tensor.square().sum(&[1]).sqrt().reshape([batch]);
    norm(flat(prediction) - flat(target)) / norm(flat(target))
}

/// The training loss: a sum over the batch. A mean would change its size relative to the clip and to Adam's ε.
pub fn relative_l2_sum<'g>(prediction: Tensor<'g>, target: Tensor<'g>) -> Tensor<'g> {
    relative_l2(prediction, target).sum_all()
}

/// The metric: the mean over the batch.
pub fn relative_l2_mean<'g>(prediction: Tensor<'g>, target: Tensor<'g>) -> Tensor<'g> {
    let errors = relative_l2(prediction, target);
    errors.sum_all() * (1.0 / errors.shape().count() as f64)
}

/// (v₊₁ − v₋₁)/(2 spacing) along `axis` of `[batch, rows, columns]`, zero outside the plane.
pub fn central_difference(field: Tensor<'_>, axis: usize, spacing: f64) -> Tensor<'_> {
    let extent = field.shape().dims()[axis];
    assert!(extent > 1, "a central difference needs two points along axis {axis} of {}", field.shape());
    let ahead = field.slice(axis, 1, extent).pad(axis, 0, 1);
    let behind = field.slice(axis, 0, extent - 1).pad(axis, 1, 0);
    (ahead - behind) * (0.5 / spacing)
}

/// The Darcy loss of the authors, [`relative_l2_sum`] + 0.1 · ([`relative_l2_sum`] of ∂ along columns and rows), for
/// `[batch, rows, columns]` in physical units. For the derivatives the outermost ring of the prediction is set to zero,
/// because the true solution vanishes there; the target stays unchanged.
pub fn relative_l2_with_gradient<'g>(prediction: Tensor<'g>, target: Tensor<'g>) -> Tensor<'g> {
    relative_l2_with_gradient_each(prediction, target).sum_all()
}

/// [`relative_l2_with_gradient`] of each sample, shape `[batch]`.
pub fn relative_l2_with_gradient_each<'g>(prediction: Tensor<'g>, target: Tensor<'g>) -> Tensor<'g> {
    let [_, rows, columns] = prediction.dims();
    let inside = prediction.slice(1, 1, rows - 1).slice(2, 1, columns - 1).pad(1, 1, 1).pad(2, 1, 1);
    let spacing = 1.0 / columns as f64; // cancels in the ratio
    let slope =
        |axis: usize| relative_l2(central_difference(inside, axis, spacing), central_difference(target, axis, spacing));
    relative_l2(prediction, target) + (slope(2) + slope(1)) * 0.1
}
