//! Convolutions over a volume: a kernel of a × b × c taps is a sum over its a slabs,
//!
//! (w ∗ v)(x, y, z) = Σ_s (w_s ∗ v(x + s − ⌊a/2⌋, ·, ·))(y, z),
//!
//! each a convolution over planes of the shifted volume. There are zeros around the volume.

use lamo_tensor::{ConvolutionOptions, Tensor};

/// `[batch, rows, columns, layers, inputs]` → `[batch, rows, columns, layers, outputs]` by `[outputs, inputs / groups, a, b, c]`,
/// with odd a, b and c.
pub fn convolve_volume<'g>(field: Tensor<'g>, weight: Tensor<'g>, groups: usize) -> Tensor<'g> {
    let [batch, rows, columns, layers, inputs] = field.dims();
    let [outputs, of_group, slabs, high, long] = weight.dims();
    let padding = [[high / 2; 2], [long / 2; 2]];
    let options = ConvolutionOptions { groups, padding, ..ConvolutionOptions::default() };
    let around = field.pad(1, slabs / 2, slabs / 2);
    let slab = |number: usize| {
        let planes = around.slice(1, number, number + rows).reshape([batch * rows, columns, layers, inputs]);
        let taps = weight.slice(2, number, number + 1).reshape([outputs, of_group, high, long]);
        planes.convolve(taps, options)
    };
    let sum = (1..slabs).fold(slab(0), |sum, number| sum + slab(number));
    sum.reshape([batch, rows, columns, layers, outputs])
}

#[cfg(test)]
mod tests {
    use super::*;
    use lamo_tensor::Graph;
    use lamo_tensor::reference::{self, Bindings};

    fn values(count: usize) -> Vec<f64> {
        (0..count).map(|n| (1.0 + 12.9898 * n as f64).sin()).collect()
    }

    /// One output value, tap by tap.
    fn by_definition(
        field: &[f64],
        weight: &[f64],
        (extents, inputs): ([usize; 3], usize),
        (taps, of_group): ([usize; 3], usize),
        (point, output, first): ([usize; 3], usize, usize),
    ) -> f64 {
        let mut sum = 0.0;
        for tap in 0..taps.iter().product::<usize>() {
            let offsets = [tap / (taps[1] * taps[2]), tap / taps[2] % taps[1], tap % taps[2]];
            let place: Vec<Option<usize>> = (0..3)
                .map(|axis| (point[axis] + offsets[axis]).checked_sub(taps[axis] / 2).filter(|&at| at < extents[axis]))
                .collect();
            let [Some(x), Some(y), Some(z)] = place[..] else { continue };
            for channel in 0..of_group {
                let at = ((x * extents[1] + y) * extents[2] + z) * inputs + first + channel;
                let count = taps.iter().product::<usize>();
                sum += field[at] * weight[(output * of_group + channel) * count + tap];
            }
        }
        sum
    }

    #[test]
    fn a_convolution_over_a_volume_is_its_definition_dense_and_by_channel() {
        for (extents, taps, [inputs, outputs, groups]) in [
            ([3, 4, 5], [3, 3, 3], [2, 3, 1]),
            ([3, 4, 5], [3, 3, 3], [2, 2, 2]),
            ([1, 2, 6], [3, 1, 5], [2, 2, 1]),
            ([4, 1, 1], [5, 3, 3], [1, 1, 1]),
        ] {
            let (graph, [rows, columns, layers]) = (Graph::new(), extents);
            let of_group = inputs / groups;
            let field = graph.input("field", [1, rows, columns, layers, inputs]);
            let weight = graph.input("weight", [outputs, of_group, taps[0], taps[1], taps[2]]);
            let out = convolve_volume(field, weight, groups);
            let points = rows * columns * layers;
            let (field, weight) =
                (values(points * inputs), values(outputs * of_group * taps.iter().product::<usize>()));
            let bindings = Bindings::from([("field", field.clone()), ("weight", weight.clone())]);
            let found = &reference::evaluate(&graph, &bindings, &[out])[0].values;
            for point in 0..points {
                let place = [point / (columns * layers), point / layers % columns, point % layers];
                for output in 0..outputs {
                    let first = output / (outputs / groups) * of_group;
                    let expected =
                        by_definition(&field, &weight, (extents, inputs), (taps, of_group), (place, output, first));
                    let found = found[point * outputs + output];
                    assert!((found - expected).abs() < 1e-12, "{extents:?} {taps:?} at {place:?}: {found}, {expected}");
                }
            }
        }
    }
}
