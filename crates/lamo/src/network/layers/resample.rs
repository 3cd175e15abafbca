//! Linear interpolation between lattices of the same domain, whose outermost points coincide:
//!
//! v′(i) = (1 − f) v(j) + f v(j + 1) with j + f = i (n − 1)/(n′ − 1), along each axis.

use lamo_tensor::{Graph, Tensor};

/// `[batch, …extents, channels]` on a lattice of `to` points along each axis of a box; on its own lattice a field stays as it
/// is. A plane is `[batch, 1, rows, columns, channels]`.
pub fn resample<'g>(image: Tensor<'g>, to: [usize; 3]) -> Tensor<'g> {
    let ([batch, rows, columns, layers, channels], graph) = (image.dims(), image.graph());
    let mut extents = [rows, columns, layers];
    let mut image = image;
    for axis in 0..3 {
        let (from, wanted) = (extents[axis], to[axis]);
        if from == wanted {
            continue;
        }
        let before = batch * extents[..axis].iter().product::<usize>();
        let behind = extents[axis + 1..].iter().product::<usize>() * channels;
        let weights = weights(graph, from, wanted).broadcast_to([before, wanted, from]);
        image = weights.matmul(image.reshape([before, from, behind]));
        extents[axis] = wanted;
    }
    image.reshape([batch, to[0], to[1], to[2], channels])
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

    fn resampled(values: Vec<f64>, [rows, columns, layers]: [usize; 3], to: [usize; 3]) -> Vec<f64> {
        let graph = Graph::new();
        let out = resample(graph.input("field", [1, rows, columns, layers, 1]), to);
        reference::evaluate(&graph, &Bindings::from([("field", values)]), &[out])[0].values.clone()
    }

    #[test]
    fn a_linear_field_is_the_same_field_on_every_lattice() {
        let at = |index: usize, extent: usize| index as f64 / (extent - 1) as f64;
        let linear = |[rows, columns, layers]: [usize; 3]| -> Vec<f64> {
            let value = |n: usize| {
                let [x, y] = [at(n / (columns * layers), rows), at(n / layers % columns, columns)];
                2.0 * x - 3.0 * y + at(n % layers, layers) + 0.5
            };
            (0..rows * columns * layers).map(value).collect()
        };
        for (from, to) in
            [([4, 7, 3], [9, 5, 4]), ([3, 3, 6], [2, 8, 6]), ([5, 2, 4], [5, 3, 2]), ([6, 4, 2], [6, 4, 2])]
        {
            for (found, expected) in resampled(linear(from), from, to).iter().zip(linear(to)) {
                assert!((found - expected).abs() < 1e-6, "{from:?} to {to:?}: {found} and {expected}");
            }
        }
    }

    #[test]
    fn a_single_point_is_the_first_of_a_lattice_and_fills_one() {
        assert_eq!(resampled(vec![3.0, 4.0, 5.0], [1, 1, 3], [1, 1, 1]), [3.0]);
        assert_eq!(resampled(vec![3.0], [1, 1, 1], [1, 2, 3]), [3.0; 6]);
        assert_eq!(resampled(vec![3.0], [1, 1, 1], [2, 2, 2]), [3.0; 8]);
    }
}
