//! Between two levels of a U-Net: the largest of the neighbours, and linear interpolation to twice the points.

use super::resample;
use lamo_tensor::{Span, Tensor};

/// The largest of each 2 × 2 pixels, `[batch, rows, columns, channels]` → `[batch, rows/2, columns/2, channels]`; on a line
/// (`axes` = 1) of each two neighbours, in a volume (3) of each 2 × 2 × 2. Of equal pixels the first in row-major order gets the
/// gradient.
pub fn largest_of_neighbours(image: Tensor<'_>, axes: usize) -> Tensor<'_> {
    let shape = image.shape();
    let (extents, behind) = (shape.dims(), shape.rank() - 1);
    let first = behind - axes;
    let every_second = |extent: usize, start: usize| Span { start, step: 2, length: extent / 2 };
    let corner = |number: usize| {
        let span = |(axis, &extent): (usize, &usize)| match axis {
            _ if axis < first || axis == behind => Span::all(extent),
            _ => every_second(extent, number >> (behind - 1 - axis) & 1),
        };
        image.spans(&extents.iter().enumerate().map(span).collect::<Vec<_>>())
    };
    let mut corners: Vec<Tensor<'_>> = (0..1 << axes).map(corner).collect();
    while corners.len() > 1 {
        corners = corners.chunks_exact(2).map(|pair| pair[0].maximum(pair[1])).collect();
    }
    corners[0]
}

/// Twice as many points along each axis, between the same outermost points (`align_corners`). On a line (`axes` = 1) the row stays.
pub fn twice_the_points(image: Tensor<'_>, axes: usize) -> Tensor<'_> {
    if axes == 3 {
        let [_, rows, columns, layers, _] = image.dims();
        return resample(image, [2 * rows, 2 * columns, 2 * layers]);
    }
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

    /// In a volume, too: of the two 5 the first one, and a field that is linear along each axis stays so.
    #[test]
    fn eight_neighbours_in_a_volume_become_one_and_one_becomes_eight() {
        let graph = Graph::new();
        let image = graph.input("image", [1, 2, 2, 2, 1]);
        let largest = largest_of_neighbours(image, 3);
        let slope = graph.gradient(largest.sum_all(), &[image])[0].unwrap();
        let finer = twice_the_points(image, 3);
        let values = |values: [f64; 8]| Bindings::from([("image", values.to_vec())]);
        let tied = values([1.0, 2.0, 0.0, 5.0, 4.0, 3.0, 5.0, 1.0]);
        let found = reference::evaluate(&graph, &tied, &[largest, slope]);
        assert_eq!(found[0].values, [5.0]);
        assert_eq!(found[1].values, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        let linear = values([0.0, 9.0, 3.0, 12.0, 1.0, 10.0, 4.0, 13.0]); // x + 3 y + 9 z
        let found = reference::evaluate(&graph, &linear, &[finer])[0].values.clone();
        for (n, found) in found.iter().enumerate() {
            let [x, y, z] = [n / 16, n / 4 % 4, n % 4].map(|index| index as f64 / 3.0);
            assert!((found - (x + 3.0 * y + 9.0 * z)).abs() < 1e-12, "{found} at {n}");
        }
    }
}
