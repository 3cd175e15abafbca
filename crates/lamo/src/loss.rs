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

/// The training loss: a sum over the batch, not a mean. Its size against the clip and Adam's ε is part of the recipe.
pub fn relative_l2_sum<'g>(prediction: Tensor<'g>, target: Tensor<'g>) -> Tensor<'g> {
    relative_l2(prediction, target).sum_all()
}

/// The metric: the mean over the batch.
pub fn relative_l2_mean<'g>(prediction: Tensor<'g>, target: Tensor<'g>) -> Tensor<'g> {
    let errors = relative_l2(prediction, target);
    errors.sum_all() * (1.0 / errors.shape().count() as f64)
}
