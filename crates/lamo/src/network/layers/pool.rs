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
    let [batch, rows, columns, channels] = image.dims();
    let [to_rows, to_columns] = [if axes == 1 { rows } else { 2 * rows }, 2 * columns];
    let finer = resample(image.reshape([batch, 1, rows, columns, channels]), [1, to_rows, to_columns]);
    finer.reshape([batch, to_rows, to_columns, channels])
}

#[cfg(test)]
mod tests {
    use super::*;
    use lamo_tensor::Graph;
    use lamo_tensor::reference::{self, Bindings};

    #[test]
    fn the_first_of_equal_neighbours_gets_the_gradient() {
        let graph = Graph::new();
        let image = graph.input("image", [1, 2, 4, 1]);
        let largest = largest_of_neighbours(image, 2);
        let slope = graph.gradient(largest.sum_all(), &[image])[0].unwrap();
        // 1 5 0 3
        // 5 2 3 3
        let bindings = Bindings::from([("image", vec![1.0, 5.0, 0.0, 3.0, 5.0, 2.0, 3.0, 3.0])]);
        let found = reference::evaluate(&graph, &bindings, &[largest, slope]);
        assert_eq!(found[0].values, [5.0, 3.0]);
        assert_eq!(found[1].values, [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    }

    /// Point o of 2n lies at o (n − 1)/(2n − 1) of n.
    #[test]
    fn twice_the_points_lie_between_the_outermost_pixels_and_a_line_keeps_its_row() {
        let graph = Graph::new();
        let image = graph.input("image", [1, 1, 3, 1]);
        let bindings = Bindings::from([("image", vec![0.0, 1.0, 4.0])]);
        let pair = [twice_the_points(image, 1), twice_the_points(image, 2)];
        let [line, plane] = [0, 1].map(|number| reference::evaluate(&graph, &bindings, &pair)[number].values.clone());
        let expected = [0.0, 0.4, 0.8, 1.6, 2.8, 4.0];
        assert!(
            line.iter().zip(expected).all(|(found, expected): (&f64, f64)| (found - expected).abs() < 1e-12),
            "{line:?}"
        );
        assert_eq!(plane, [line.clone(), line].concat());
    }

    #[test]
    fn neighbours_on_a_line_are_two() {
        let graph = Graph::new();
        let image = graph.input("image", [1, 1, 4, 1]);
        let bindings = Bindings::from([("image", vec![1.0, 5.0, 4.0, 3.0])]);
        assert_eq!(reference::evaluate(&graph, &bindings, &[largest_of_neighbours(image, 1)])[0].values, [5.0, 4.0]);
    }
}
