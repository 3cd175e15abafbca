//! Losses per sample. Relative L2, ‖prediction − target‖₂ / ‖target‖₂, is the error every benchmark of the field reports.

use lamo_geometry::Grid;
use lamo_tensor::Tensor;

/// One error per sample, shape `[batch]`; all axes but the first are flattened. No ε: a target of zero norm is an error
/// in the data and gives infinity.
pub fn relative_l2<'g>(prediction: Tensor<'g>, target: Tensor<'g>) -> Tensor<'g> {
    let (found, expected) = (prediction.shape(), target.shape());
    assert!(found == expected, "relative L2: the prediction has shape {found}, the target {expected}");
    let batch = found.dims()[0];
    let flat = |tensor: Tensor<'g>| tensor.reshape([batch, found.count() / batch]);
    let norm = |tensor: Tensor<'g>| tensor.square().sum(&[1]).sqrt().reshape([batch]);
    root((flat(prediction) - flat(target)).square().sum(&[1])).reshape([batch]) / norm(flat(target))
}

/// The root of the squares of a miss. Where they vanish, so does its gradient, as in PyTorch; that of the root alone is infinite.
fn root(squares: Tensor<'_>) -> Tensor<'_> {
    squares.maximum(squares.graph().fill(f64::from(f32::MIN_POSITIVE), [1])).sqrt()
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

/// Mean over the channels of the relative L2 of each, shape `[batch]`, for `[batch, points, channels]`. A channel of zero
/// norm gives infinity.
pub fn relative_l2_per_channel<'g>(prediction: Tensor<'g>, target: Tensor<'g>) -> Tensor<'g> {
    let [batch, _, channels] = prediction.dims();
    let squares = |tensor: Tensor<'g>| tensor.square().sum(&[1]).reshape([batch, channels]);
    let ratios = root(squares(prediction - target)) / squares(target).sqrt();
    (ratios.sum(&[1]) * (1.0 / channels as f64)).reshape([batch])
}

/// Mean of (prediction − target)² over all axes but the first, shape `[batch]`.
pub fn mean_square<'g>(prediction: Tensor<'g>, target: Tensor<'g>) -> Tensor<'g> {
    mean_of_each((prediction - target).square())
}

/// Mean of |prediction − target| over all axes but the first, shape `[batch]`.
pub fn mean_absolute<'g>(prediction: Tensor<'g>, target: Tensor<'g>) -> Tensor<'g> {
    let miss = prediction - target;
    mean_of_each(miss.maximum(miss * -1.0))
}

/// `[batch]` means over all axes but the first.
fn mean_of_each(values: Tensor<'_>) -> Tensor<'_> {
    let shape = values.shape();
    let batch = shape.dims()[0];
    let each = shape.count() / batch;
    (values.reshape([batch, each]).sum(&[1]) * (1.0 / each as f64)).reshape([batch])
}

/// √(‖e‖² + Σₐ ‖Δₐe / hₐ‖²) / √(‖u‖² + Σₐ ‖Δₐu / hₐ‖²) of each sample, shape `[batch]`, for `[batch, points, channels]`.
/// Δₐ is the difference of neighbours along axis a of the grid, hₐ their distance.
pub fn relative_h1<'g>(prediction: Tensor<'g>, target: Tensor<'g>, grid: Grid, spacing: &[f64]) -> Tensor<'g> {
    let [batch, _, channels] = prediction.dims();
    let extents = grid.shape();
    assert_eq!(spacing.len(), extents.len(), "a spacing for each axis of the {grid}");
    let shape: Vec<usize> = [batch].into_iter().chain(extents).chain([channels]).collect();
    let square = |tensor: Tensor<'g>| {
        let count = tensor.shape().count() / batch;
        tensor.square().reshape([batch, count]).sum(&[1]).reshape([batch])
    };
    let squares = |field: Tensor<'g>| {
        let field = field.reshape(shape.as_slice());
        let slopes =
            spacing.iter().enumerate().map(|(axis, distance)| square(difference(field, axis + 1) * (1.0 / distance)));
        slopes.fold(square(field), |sum, slope| sum + slope)
    };
    root(squares(prediction - target)) / squares(target).sqrt()
}

/// vᵢ₊₁ − vᵢ along an axis, one shorter than the field.
fn difference(field: Tensor<'_>, axis: usize) -> Tensor<'_> {
    let extent = field.shape().dims()[axis];
    field.slice(axis, 1, extent) - field.slice(axis, 0, extent - 1)
}
