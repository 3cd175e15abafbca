//! F⁻¹(R · F v) in a volume: the frequencies |j| ≤ modes along rows, |k| ≤ modes along columns and 0 ≤ l < modes along layers (Li et
//! al. 2021, Eq. 4; `SpectralConv3d` of Neural-Solver-Library).
//!
//! With a = 2πjx/rows, two real sums over the rows, C = Σ_x v cos a and S = Σ_x v sin a, come first. They are transformed in the
//! planes of columns and layers, and give the frequencies j and −j at once:
//!
//! F_{±j} = C ∓ i S,  and back  v = Σ_j (V_j + V_{−j}) cos a + i (V_j − V_{−j}) sin a.
//!
//! A field is `[rows, columns, layers, batch, width]`.

use super::spectral::{complex_product, waves};
use super::{analyse, synthesise};
use crate::network::{Initial, Scope};
use lamo_tensor::Tensor;

/// F⁻¹(R · F v) in a volume.
pub struct VolumeConvolution<'g> {
    /// R for the signs (+, +), (−, +), (+, −) and (−, −) of j and k, each `[inputs, outputs, …modes, re and im]`; a negative
    /// frequency counts from −modes to −1.
    weights: [Tensor<'g>; 4],
}

impl<'g> VolumeConvolution<'g> {
    /// `weights1` to `weights4` of Neural-Solver-Library, uniform on [0, 1/(inputs · outputs)).
    pub fn new(scope: &Scope<'_, 'g>, [inputs, outputs]: [usize; 2], [rows, columns, layers]: [usize; 3]) -> Self {
        let initial = Initial::Uniform { low: 0.0, high: 1.0 / (inputs * outputs) as f64 };
        let weight = |name: &str| scope.parameter(name, [inputs, outputs, rows, columns, layers, 2], initial);
        VolumeConvolution { weights: ["weights1", "weights2", "weights3", "weights4"].map(weight) }
    }

    /// `weights1` to `weights4`, each `[inputs, outputs, …modes, re and im]`.
    pub fn of(weights: [Tensor<'g>; 4]) -> Self {
        VolumeConvolution { weights }
    }

    /// Modes along rows, columns and layers.
    pub fn modes(&self) -> [usize; 3] {
        let [_, _, rows, columns, layers, _] = self.weights[0].dims();
        [rows, columns, layers]
    }

    /// With the first `rows` and `columns` of each block of weights alone.
    pub fn truncated(&self, [rows, columns]: [usize; 2]) -> Self {
        VolumeConvolution { weights: self.weights.map(|weight| weight.slice(2, 0, rows).slice(3, 0, columns)) }
    }

    /// On a volume of `periods` points that is zero beyond the edges of `field`; the result is cut to `extents`.
    pub fn forward_padded(&self, field: Tensor<'g>, periods: [usize; 3], extents: [usize; 3]) -> Tensor<'g> {
        let [_, _, _, batch, _] = field.dims();
        let [_, outputs, row_modes, column_modes, modes, _] = self.weights[0].dims();
        let spectrum = analyse_volume(field, [row_modes, column_modes, modes], periods); // [j k l, 2 batch, inputs]
        let mixed = complex_product(spectrum, self.matrices(periods));
        let mixed = mixed.reshape([2 * row_modes, 2 * column_modes * modes, 2, batch, outputs]);
        synthesise_volume(mixed, column_modes, periods, extents)
    }

    /// R of all frequencies: `[j k l, inputs, re outputs | im outputs]`. Where j and j − period are the same row, the library
    /// overwrites the product of the positive frequency with that of the negative one; the same holds for k.
    fn matrices(&self, periods: [usize; 3]) -> Tensor<'g> {
        let [inputs, outputs, rows, columns, layers, _] = self.weights[0].dims();
        let alone = |axis: usize, modes: usize, weight: Tensor<'g>| {
            let alone = periods[axis].saturating_sub(modes);
            if alone >= modes {
                return weight;
            }
            let mask: Vec<f32> = (0..modes).map(|frequency| f32::from(frequency < alone)).collect();
            let shape: Vec<usize> = (0..4).map(|place| if place == axis { modes } else { 1 }).collect();
            weight * weight.graph().constant(&mask, shape)
        };
        let [plus_plus, minus_plus, plus_minus, minus_minus] = self.weights;
        let halves = [
            [alone(0, rows, alone(1, columns, plus_plus)), alone(0, rows, plus_minus)],
            [alone(1, columns, minus_plus), minus_minus],
        ];
        let half = |half: [Tensor<'g>; 2]| {
            Tensor::concatenate(&half.map(|weight| weight.permute(&[2, 3, 4, 0, 5, 1])), 1) // [j, k, l, inputs, 2, outputs]
        };
        Tensor::concatenate(&halves.map(half), 0).reshape([4 * rows * columns * layers, inputs, 2 * outputs])
    }
}

/// F: `[rows, columns, layers, batch, width]` → `[j k l, 2 batch, width]`, real parts before imaginary parts; the frequencies along
/// rows and columns are 0, 1, …, modes − 1, then −modes, …, −1.
fn analyse_volume<'g>(field: Tensor<'g>, modes: [usize; 3], periods: [usize; 3]) -> Tensor<'g> {
    let ([rows, columns, layers, batch, width], [row_modes, column_modes, layer_modes]) = (field.dims(), modes);
    let (graph, along, others) = (field.graph(), row_modes + 1, 2 * column_modes * layer_modes);
    let row_waves = waves(graph, along, rows, periods[0], |_| 1.0);
    let sums = row_waves.matmul(field.reshape([rows, columns * layers * batch * width]));
    let planes = sums.reshape([2 * along, columns, layers, batch, width]).permute(&[1, 2, 0, 3, 4]);
    let planes = planes.reshape([columns, layers, 2 * along * batch, width]);
    let spectra = analyse(planes, [column_modes, layer_modes], [periods[1], periods[2]]);
    let spectra = spectra.reshape([others, 2, 2, along, batch, width]).permute(&[3, 2, 0, 1, 4, 5]);
    let [cos, sin] = spectra.split(1, [1; 2]).map(|part| part.reshape([along, others, 2, batch, width])); // C and S
    let turned = turn(sin); // i S
    let plus = (cos - turned).slice(0, 0, row_modes);
    let minus = (cos + turned).slice(0, 1, along).flip(0);
    Tensor::concatenate(&[plus, minus], 0).reshape([2 * row_modes * others, 2 * batch, width])
}

/// F⁻¹ by the transposed sums: `[j, k l, re and im, batch, width]` → `[…extents, batch, width]`.
fn synthesise_volume<'g>(
    spectrum: Tensor<'g>,
    column_modes: usize,
    periods: [usize; 3],
    extents: [usize; 3],
) -> Tensor<'g> {
    let [frequencies, others, _, batch, width] = spectrum.dims();
    let (graph, row_modes, [rows, columns, layers]) = (spectrum.graph(), frequencies / 2, extents);
    let along = row_modes + 1;
    let [plus, minus] = spectrum.split(0, [row_modes; 2]);
    let [plus, minus] = [plus.pad(0, 0, 1), minus.flip(0).pad(0, 1, 0)]; // |j| = 0, …, modes
    let sums = Tensor::concatenate(&[plus + minus, turn(plus - minus)], 0); // [cos | sin, k l, 2, batch, width]
    let spectra = sums.permute(&[1, 2, 0, 3, 4]);
    let spectra = spectra.reshape([2 * column_modes, others / (2 * column_modes), 4 * along * batch, width]);
    let planes = synthesise(spectra, [periods[1], periods[2]], [columns, layers]);
    let planes = planes.reshape([columns, layers, 2 * along, batch, width]).permute(&[2, 0, 1, 3, 4]);
    let row_waves = waves(graph, along, rows, periods[0], |_| 1.0 / periods[0] as f64).transpose();
    let field = row_waves.matmul(planes.reshape([2 * along, columns * layers * batch * width]));
    field.reshape([rows, columns, layers, batch, width])
}

/// i V of `[…, …, re and im, …, …]`.
fn turn(spectrum: Tensor<'_>) -> Tensor<'_> {
    let [re, im] = spectrum.split(2, [1; 2]);
    Tensor::concatenate(&[-im, re], 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Parameters;
    use lamo_tensor::reference::{self, Bindings};
    use lamo_tensor::{Graph, PARAMETERS};
    use std::f64::consts::TAU;

    /// The waves are rounded to 24 bits, the sums have some hundred terms.
    const ROUNDING: f64 = 1e-5;

    fn values(count: usize) -> Vec<f64> {
        (0..count).map(|n| (1.0 + 12.9898 * n as f64).sin()).collect()
    }

    /// One channel of `irfftn(R · rfftn(v))`, sum by sum; a later block of weights overwrites an earlier one.
    fn by_definition(field: &[f64], periods: [usize; 3], modes: [usize; 3], weights: &[f64]) -> Vec<f64> {
        let [rows, columns, layers] = periods;
        let place = |n: usize| [n / (columns * layers), n / layers % columns, n % layers];
        let angle = |n: usize, frequency: [usize; 3]| {
            let turns = |axis: usize| (place(n)[axis] * frequency[axis]) as f64 / periods[axis] as f64;
            TAU * (turns(0) + turns(1) + turns(2))
        };
        let size = 2 * modes.iter().product::<usize>();
        let mut result = vec![0.0; field.len()];
        for frequency in (0..rows * columns * (layers / 2 + 1)).map(|n| {
            let half = layers / 2 + 1;
            [n / (columns * half), n / half % columns, n % half]
        }) {
            let sides = |axis: usize| {
                let (at, modes, period) = (frequency[axis], modes[axis], periods[axis]);
                let negative = (at + modes >= period).then(|| at + modes - period);
                negative.map(|mode| (1, mode)).or((at < modes).then_some((0, at)))
            };
            let (Some((first, j)), Some((second, k))) = (sides(0), sides(1)) else { continue };
            if frequency[2] >= modes[2] {
                continue;
            }
            let at = (first + 2 * second) * size + 2 * ((j * modes[1] + k) * modes[2] + frequency[2]);
            let [re, im] = field.iter().enumerate().fold([0.0; 2], |[re, im], (n, v)| {
                [re + v * angle(n, frequency).cos(), im - v * angle(n, frequency).sin()]
            });
            let [wr, wi] = [weights[at], weights[at + 1]];
            let [re, im] = [re * wr - im * wi, re * wi + im * wr];
            let images = if (2 * frequency[2]).is_multiple_of(layers) { 1.0 } else { 2.0 };
            for (n, value) in result.iter_mut().enumerate() {
                let (sin, cos) = angle(n, frequency).sin_cos();
                *value += images * (re * cos - im * sin) / field.len() as f64;
            }
        }
        result
    }

    #[test]
    fn a_convolution_in_a_volume_is_its_definition_also_where_the_blocks_of_weights_meet() {
        let cases = [
            ([6, 5, 4], [2, 2, 3]),
            ([5, 6, 7], [2, 3, 2]),
            ([3, 3, 2], [2, 2, 2]),
            ([2, 3, 4], [2, 1, 1]),
            ([1, 1, 1], [1, 1, 1]),
        ];
        for (periods, modes) in cases {
            let graph = Graph::new();
            let parameters = Parameters::new(&graph);
            let convolution = VolumeConvolution::new(&parameters.root(), [1, 1], modes);
            let [rows, columns, layers] = periods;
            let field = graph.input("field", [rows, columns, layers, 1, 1]);
            let out = convolution.forward_padded(field, periods, periods);
            let (field, weights) = (values(rows * columns * layers), values(8 * modes.iter().product::<usize>()));
            let bindings = Bindings::from([("field", field.clone()), (PARAMETERS, weights.clone())]);
            let found = &reference::evaluate(&graph, &bindings, &[out])[0].values;
            let expected = by_definition(&field, periods, modes, &weights);
            let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < ROUNDING * largest, "{modes:?} on {periods:?}: {found}, {expected}");
            }
        }
    }

    #[test]
    fn a_smaller_field_is_padded_with_zeros_and_the_result_is_cut() {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let convolution = VolumeConvolution::new(&parameters.root(), [2, 3], [2, 1, 2]);
        let field = graph.input("field", [3, 4, 2, 5, 2]);
        let padded = field.pad(0, 0, 2).pad(1, 0, 1).pad(2, 0, 3);
        let whole = convolution.forward_padded(padded, [5; 3], [5; 3]).slice(0, 0, 2).slice(1, 0, 5).slice(2, 0, 1);
        let cut = convolution.forward_padded(field, [5; 3], [2, 5, 1]);
        let bindings = Bindings::from([("field", values(240)), (PARAMETERS, values(4 * 6 * 4 * 2))]);
        let [found, expected] = [cut, whole].map(|y| reference::evaluate(&graph, &bindings, &[y])[0].values.clone());
        assert!(found.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() < 1e-6), "{found:?}");
    }
}
