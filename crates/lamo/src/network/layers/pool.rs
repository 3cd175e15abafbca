//! Between two levels of a U-Net: the largest of four neighbours, and linear interpolation to twice the points.

use super::resample;
use lamo_tensor::{Span, Tensor};

/// The largest of each 2 × 2 pixels, `[batch, rows, columns, channels]` → `[batch, rows/2, columns/2, channels]`; on a line
/// (`axes` = 1) of each two neighbours. Of equal pixels the first in row-major order gets the gradient.
pub fn largest_of_neighbours(image: Tensor<'_>, axes: usize) -> Tensor<'_> {
    let [batch, rows, columns, channels] = image.dims();
    let every_second = |extent: usize, first: usize| Span { start: first, step: 2, length: extent / 2 };
    let corner = |row: usize, column: usize| {
        let down = if axes == 1 { Span::all(rows) } else { every_second(rows, row) };
        image.spans(&[Span::all(batch), down, every_second(columns, column), Span::all(channels)])
    };
    let pair = |row: usize| corner(row, 0).maximum(corner(row, 1));
    if axes == 1 { pair(0) } else { pair(0).maximum(pair(1)) }
}

/// Twice as many columns, and rows unless it is a line (`axes` = 1), between the same outermost pixels (`align_corners`).
pub fn twice_the_points(image: Tensor<'_>, axes: usize) -> Tensor<'_> {
    let [_, rows, columns, _] = image.dims();
    resample(image, [if axes == 1 { rows } else { 2 * rows }, 2 * columns])
}
