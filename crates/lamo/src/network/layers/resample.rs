//! Linear interpolation between lattices of the same domain, whose outermost points coincide:
//!
//! v′(i) = (1 − f) v(j) + f v(j + 1) with j + f = i (n − 1)/(n′ − 1), along rows and along columns.

use lamo_tensor::{Graph, Tensor};

/// `[batch, rows, columns, channels]` on a lattice of `to` rows and columns; on its own lattice a field stays as it is.
pub fn resample<'g>(image: Tensor<'g>, to: [usize; 2]) -> Tensor<'g> {
    let ([batch, rows, columns, channels], [to_rows, to_columns], graph) = (image.dims(), to, image.graph());
    let mut image = image;
    if to_rows != rows {
        let weights = weights(graph, rows, to_rows).broadcast_to([batch, to_rows, rows]);
        image = weights.matmul(image.reshape([batch, rows, columns * channels]));
    }
    if to_columns != columns {
        let weights = weights(graph, columns, to_columns).broadcast_to([batch * to_rows, to_columns, columns]);
        image = weights.matmul(image.reshape([batch * to_rows, columns, channels]));
    }
    image.reshape([batch, to_rows, to_columns, channels])
}

/// The weight of each of `from` points at each of `to` points: `[to, from]`. A single point lies at the first.
fn weights(graph: &Graph, from: usize, to: usize) -> Tensor<'_> {
    let mut values = vec![0.0; to * from];
    for (point, row) in values.chunks_exact_mut(from).enumerate() {
        // Whole numbers: where the points of both lattices coincide, the weight is exactly 1.
        let (distance, gaps) = (point * (from - 1), (to - 1).max(1));
        let (before, fraction) = (distance / gaps, (distance % gaps) as f64 / gaps as f64);
        row[before] = 1.0 - fraction;
        if fraction > 0.0 {
            row[before + 1] = fraction;
        }
    }
    graph.constant_numbers(&values, [to, from])
}

#[cfg(test)]
mod tests {
    use super::*;
    use lamo_tensor::reference::{self, Bindings};

    fn resampled(values: Vec<f64>, [rows, columns]: [usize; 2], to: [usize; 2]) -> Vec<f64> {
        let graph = Graph::new();
        let out = resample(graph.input("field", [1, rows, columns, 1]), to);
        reference::evaluate(&graph, &Bindings::from([("field", values)]), &[out])[0].values.clone()
    }

    #[test]
    fn a_linear_field_is_the_same_field_on_every_lattice() {
        let at = |index: usize, extent: usize| index as f64 / (extent - 1) as f64;
        let linear = |[rows, columns]: [usize; 2]| -> Vec<f64> {
            let value = |n: usize| 2.0 * at(n / columns, rows) - 3.0 * at(n % columns, columns) + 0.5;
            (0..rows * columns).map(value).collect()
        };
        for (from, to) in [([4, 7], [9, 5]), ([3, 3], [2, 8]), ([5, 2], [5, 3]), ([6, 4], [6, 4])] {
            for (found, expected) in resampled(linear(from), from, to).iter().zip(linear(to)) {
                assert!((found - expected).abs() < 1e-6, "{from:?} to {to:?}: {found} and {expected}");
            }
        }
    }

    #[test]
    fn a_single_point_is_the_first_of_a_lattice_and_fills_one() {
        assert_eq!(resampled(vec![3.0, 4.0, 5.0], [1, 3], [1, 1]), [3.0]);
        assert_eq!(resampled(vec![3.0], [1, 1], [2, 3]), [3.0; 6]);
    }
}
