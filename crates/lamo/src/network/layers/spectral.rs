//! Spectral convolutions F⁻¹(R · F v): the channels of each low frequency are mixed by a complex matrix of its own (Li et
//! al. 2021, Eqs. 4 and 5, on a plane; Tran et al. 2023, Eq. 8, along one axis).
//!
//! On a plane F keeps the frequencies |k| ≤ modes along rows and 0 ≤ l < modes along columns. With a = 2πkr/rows and
//! b = 2πlc/columns,
//!
//! e^{−i(±a + b)} = (cos a cos b ∓ sin a sin b) − i (cos a sin b ± sin a cos b),
//!
//! so four real sums over cos a, sin a times cos b, sin b give the frequencies k and −k at once: two real matrix
//! products each way, on any grid. A field is `[rows, columns, batch, width]`, which makes the transform along rows one
//! product and puts the frequencies in front for the mixing.

use crate::network::{Initial, Scope};
use lamo_tensor::{Graph, Span, Tensor};
use std::f64::consts::TAU;

/// F⁻¹(R · F v) on a plane.
pub struct SpectralConvolution<'g> {
    /// R for 0 ≤ k < modes and for −modes ≤ k < 0: `[inputs, outputs, rows of modes, columns of modes, re and im]`
    weights: [Tensor<'g>; 2],
}

impl<'g> SpectralConvolution<'g> {
    /// `weights1` and `weights2` of Neural-Solver-Library, uniform on [0, 1/(inputs · outputs)).
    pub fn new(scope: &Scope<'_, 'g>, [inputs, outputs]: [usize; 2], [rows, columns]: [usize; 2]) -> Self {
        let initial = Initial::Uniform { low: 0.0, high: 1.0 / (inputs * outputs) as f64 };
        let weight = |name: &str| scope.parameter(name, [inputs, outputs, rows, columns, 2], initial);
        SpectralConvolution::of([weight("weights1"), weight("weights2")])
    }

    /// R for 0 ≤ k < modes and for −modes ≤ k < 0, each `[inputs, outputs, rows of modes, columns of modes, re and im]`.
    pub fn of(weights: [Tensor<'g>; 2]) -> Self {
        SpectralConvolution { weights }
    }

    /// Modes along rows and along columns.
    pub fn modes(&self) -> [usize; 2] {
        let [_, _, rows, columns, _] = self.weights[0].dims();
        [rows, columns]
    }

    /// The convolution with only its lowest `rows` and `columns` of modes.
    pub fn truncated(&self, [rows, columns]: [usize; 2]) -> Self {
        SpectralConvolution { weights: self.weights.map(|weight| weight.slice(2, 0, rows).slice(3, 0, columns)) }
    }

    /// `[rows, columns, batch, inputs]` → `[rows, columns, batch, outputs]`; the plane is one period of the waves.
    pub fn forward(&self, field: Tensor<'g>) -> Tensor<'g> {
        let [rows, columns, _, _] = field.dims();
        self.forward_padded(field, [rows, columns], [rows, columns])
    }

    /// On a plane of `periods` rows and columns that is zero beyond the edges of `field`; the result is cut to `extents`.
    pub fn forward_padded(&self, field: Tensor<'g>, periods: [usize; 2], extents: [usize; 2]) -> Tensor<'g> {
        let spectrum = self.mix(analyse(field, self.modes(), periods), periods[0]);
        synthesise(spectrum, periods, extents)
    }

    /// (R · V)ₖₗ = Rₖₗ Vₖₗ, Eq. 5, one product for all frequencies of a plane of `period` rows:
    /// `[k, l, 2 batch, inputs]` → `[k, l, 2 batch, outputs]`, laid out as [`analyse`] says.
    pub fn mix(&self, spectrum: Tensor<'g>, period: usize) -> Tensor<'g> {
        let [inputs, outputs, rows, columns, _] = self.weights[0].dims();
        let [positive, negative] = self.weights;
        let alone = period.saturating_sub(rows);
        let positive = if alone < rows {
            // The rows k and k − period are the same row: the library overwrites its product with that of `weights2`.
            let mask: Vec<f32> = (0..rows).map(|k| f32::from(k < alone)).collect();
            positive * positive.graph().constant(&mask, [rows, 1, 1])
        } else {
            positive
        };
        let matrices = [positive, negative].map(|weight| weight.permute(&[2, 3, 0, 4, 1])); // [k, l, inputs, 2, outputs]
        let matrices = Tensor::concatenate(&matrices, 0).reshape([2 * rows, columns, inputs, 2 * outputs]);
        complex_product(spectrum, matrices)
    }
}

/// F: `[rows, columns, batch, width]` → `[k, l, 2 batch, width]`, real parts before imaginary parts; the 2 modes
/// frequencies along rows are k = 0, 1, …, modes − 1, then −modes, …, −1.
pub fn analyse<'g>(field: Tensor<'g>, [row_modes, modes]: [usize; 2], periods: [usize; 2]) -> Tensor<'g> {
    let [rows, columns, batch, width] = field.dims();
    let (graph, along_rows) = (field.graph(), 2 * (row_modes + 1));
    let row_waves = waves(graph, row_modes + 1, rows, periods[0], |_| 1.0);
    let sums = row_waves.matmul(field.reshape([rows, columns * batch * width]));
    let waves = waves(graph, modes, columns, periods[1], |_| 1.0).broadcast_to([along_rows, 2 * modes, columns]);
    let sums = waves.matmul(sums.reshape([along_rows, columns, batch * width]));
    frequencies(sums.reshape([along_rows, 2 * modes, batch, width]))
}

/// The frequencies k and −k from the four real sums: `[cos a | sin a, cos b | sin b, batch, width]` → `[k, l, 2 batch, width]`.
pub(super) fn frequencies<'g>(sums: Tensor<'g>) -> Tensor<'g> {
    let [along_rows, along_columns, _, _] = sums.dims();
    let (row_modes, modes) = (along_rows / 2 - 1, along_columns / 2);
    let [[cos_cos, cos_sin], [sin_cos, sin_sin]] =
        sums.split(0, [row_modes + 1; 2]).map(|part| part.split(1, [modes; 2]));
    let plus = |sum: Tensor<'g>| sum.slice(0, 0, row_modes);
    let minus = |sum: Tensor<'g>| sum.slice(0, 1, row_modes + 1).flip(0);
    let plus = [plus(cos_cos) - plus(sin_sin), -(plus(cos_sin) + plus(sin_cos))]; // e^{−i(a + b)}
    let minus = [minus(cos_cos) + minus(sin_sin), minus(sin_cos) - minus(cos_sin)]; // e^{−i(−a + b)}
    Tensor::concatenate(&[plus, minus].map(|parts| Tensor::concatenate(&parts, 2)), 0)
}

/// F⁻¹ by the transposed sums: v = Σ Re(V e^{i(±a + b)}) · (1 or 2)/(rows · columns), computed inside `extents`. The
/// factor 2 counts the frequency −l as well. Where −l equals l the factor is 1 and sin b = 0, which drops the imaginary
/// part that is left after the sum over k, as `irfft2` does.
pub fn synthesise<'g>(spectrum: Tensor<'g>, periods: [usize; 2], [rows, columns]: [usize; 2]) -> Tensor<'g> {
    let [frequencies, modes, parts, width] = spectrum.dims();
    let row_modes = frequencies / 2;
    let (graph, along_rows, batch) = (spectrum.graph(), 2 * (row_modes + 1), parts / 2);
    let sums = inverse_sums(spectrum);
    let [row_period, period] = periods;
    let row_waves = waves(graph, row_modes + 1, rows, row_period, |_| 1.0 / row_period as f64).transpose();
    let waves = waves(graph, modes, columns, period, |l| images(l, period) / period as f64).transpose();
    let waves = waves.broadcast_to([along_rows, columns, 2 * modes]);
    let sums = waves.matmul(sums.reshape([along_rows, 2 * modes, batch * width]));
    let field = row_waves.matmul(sums.reshape([along_rows, columns * batch * width]));
    field.reshape([rows, columns, batch, width])
}

/// The four real sums from the frequencies k and −k, the transpose of [`frequencies`].
pub(super) fn inverse_sums(spectrum: Tensor<'_>) -> Tensor<'_> {
    let [frequencies, _, parts, _] = spectrum.dims();
    let (row_modes, batch) = (frequencies / 2, parts / 2);
    let [plus, minus] = spectrum.split(0, [row_modes; 2]);
    let [[re_plus, im_plus], [re_minus, im_minus]] =
        [plus.pad(0, 0, 1), minus.flip(0).pad(0, 1, 0)].map(|part| part.split(2, [batch; 2])); // |k| = 0, …, modes
    let cos = [re_minus + re_plus, -(im_minus + im_plus)]; // cos a · (cos b, sin b)
    let sin = [im_minus - im_plus, re_minus - re_plus]; // sin a · (cos b, sin b)
    Tensor::concatenate(&[cos, sin].map(|parts| Tensor::concatenate(&parts, 1)), 0)
}

/// F⁻¹(R · F v) along one axis.
pub struct LineConvolution<'g> {
    /// R: `[inputs, outputs, modes, re and im]`
    weight: Tensor<'g>,
}

impl<'g> LineConvolution<'g> {
    /// `weights1` of Neural-Solver-Library, uniform on [0, 1/(inputs · outputs)).
    pub fn new(scope: &Scope<'_, 'g>, [inputs, outputs]: [usize; 2], modes: usize) -> Self {
        let initial = Initial::Uniform { low: 0.0, high: 1.0 / (inputs * outputs) as f64 };
        LineConvolution::of(scope.parameter("weights1", [inputs, outputs, modes, 2], initial))
    }

    /// R for 0 ≤ l < modes, `[inputs, outputs, modes, re and im]`.
    pub fn of(weight: Tensor<'g>) -> Self {
        LineConvolution { weight }
    }

    /// Number of modes.
    pub fn modes(&self) -> usize {
        let [_, _, modes, _] = self.weight.dims();
        modes
    }

    /// The convolution with only its lowest modes.
    pub fn truncated(&self, modes: usize) -> Self {
        LineConvolution { weight: self.weight.slice(2, 0, modes) }
    }

    /// `[points, lanes, inputs]` → `[points, lanes, outputs]`: a convolution along the points, the same in every lane; the
    /// points are one period of the waves.
    pub fn forward(&self, field: Tensor<'g>) -> Tensor<'g> {
        let [points, _, _] = field.dims();
        self.forward_padded(field, points, points)
    }

    /// On a line of `period` points that is zero beyond the end of `field`; the result is cut to `extent` points.
    pub fn forward_padded(&self, field: Tensor<'g>, period: usize, extent: usize) -> Tensor<'g> {
        let ([points, lanes, width], [inputs, outputs, modes, _]) = (field.dims(), self.weight.dims());
        let graph = field.graph();
        let sums = waves(graph, modes, points, period, |_| 1.0).matmul(field.reshape([points, lanes * width]));
        let [cos, sin] = sums.reshape([2 * modes, lanes, width]).split(0, [modes; 2]);
        let spectrum = Tensor::concatenate(&[cos, -sin], 1); // e^{−ib}, [l, 2 lanes, inputs]
        let matrices = self.weight.permute(&[2, 0, 3, 1]).reshape([modes, inputs, 2 * outputs]);
        let [re, im] = complex_product(spectrum, matrices).split(1, [lanes; 2]);
        let sums = Tensor::concatenate(&[re, -im], 0).reshape([2 * modes, lanes * outputs]); // Re(V e^{ib})
        let waves = waves(graph, modes, extent, period, |l| images(l, period) / period as f64);
        waves.transpose().matmul(sums).reshape([extent, lanes, outputs])
    }
}

impl<'g> LineConvolution<'g> {
    /// `[outer, points, lanes, inputs]` → `[outer, points, lanes, outputs]` along the points, which are one period. The
    /// field stays where it is: only the few frequencies are moved to the front, where the channels are mixed.
    pub fn forward_across(&self, field: Tensor<'g>) -> Tensor<'g> {
        let ([outer, points, lanes, width], [inputs, outputs, modes, _]) = (field.dims(), self.weight.dims());
        let graph = field.graph();
        let signs = graph.constant(&[1.0, -1.0], [2, 1, 1, 1]); // e^{−ib}, and Re(V e^{ib})
        let forth = waves(graph, modes, points, points, |_| 1.0).broadcast_to([outer, 2 * modes, points]);
        let sums = forth.matmul(field.reshape([outer, points, lanes * width]));
        let sums = sums.reshape([outer, 2, modes, lanes, width]).permute(&[2, 1, 0, 3, 4]) * signs;
        let spectrum = sums.reshape([modes, 2 * outer * lanes, width]);
        let matrices = self.weight.permute(&[2, 0, 3, 1]).reshape([modes, inputs, 2 * outputs]);
        let mixed = complex_product(spectrum, matrices).reshape([modes, 2, outer, lanes, outputs]) * signs;
        let sums = mixed.permute(&[2, 1, 0, 3, 4]).reshape([outer, 2 * modes, lanes * outputs]);
        let back = waves(graph, modes, points, points, |l| images(l, points) / points as f64).transpose();
        back.broadcast_to([outer, points, 2 * modes]).matmul(sums).reshape([outer, points, lanes, outputs])
    }
}

/// V R with V `[…, 2 batch, inputs]`, real parts before imaginary parts, and R `[…, inputs, re outputs | im outputs]`.
pub(super) fn complex_product<'g>(spectrum: Tensor<'g>, matrices: Tensor<'g>) -> Tensor<'g> {
    let product = spectrum.matmul(matrices); // V · (re R | im R)
    let shape = product.shape();
    let (parts_axis, width_axis) = (shape.rank() - 2, shape.rank() - 1);
    let (parts, width) = (shape.dims()[parts_axis] / 2, shape.dims()[width_axis] / 2);
    let [re, im] = product.split(parts_axis, [parts; 2]);
    let [[re_re, re_im], [im_re, im_im]] = [re, im].map(|part| part.split(width_axis, [width; 2]));
    Tensor::concatenate(&[re_re - im_im, re_im + im_re], parts_axis)
}

/// Weight of the frequency l of a real field: 2, because l also counts for −l, or 1 where −l equals l.
pub(super) fn images(l: usize, period: usize) -> f64 {
    if (2 * l).is_multiple_of(period) { 1.0 } else { 2.0 }
}

/// cos(2πkn/period) for each frequency k, then sin(2πkn/period), at n = 0, 1, …, times a weight:
/// `[2 frequencies, points]`.
pub(super) fn waves(
    graph: &Graph,
    frequencies: usize,
    points: usize,
    period: usize,
    weight: impl Fn(usize) -> f64,
) -> Tensor<'_> {
    // Integers keep the angle exact for any k and n. The sine of half a turn is set to 0; `sin` would give 10⁻¹⁶.
    let angle = |k: usize, n: usize| TAU * ((k * n % period) as f64 / period as f64);
    let sin = |k: usize, n: usize| if (2 * k * n).is_multiple_of(period) { 0.0 } else { angle(k, n).sin() };
    let pairs = || (0..frequencies).flat_map(|k| (0..points).map(move |n| (k, n)));
    let cosines = pairs().map(|(k, n)| weight(k) * angle(k, n).cos());
    let sines = pairs().map(|(k, n)| weight(k) * sin(k, n));
    graph.constant_numbers(&cosines.chain(sines).collect::<Vec<_>>(), [2 * frequencies, points])
}

/// W v + b at every point. Weights files store it as a convolution of one tap.
pub struct Pointwise<'g> {
    /// `[outputs, inputs, 1]` on a line, `[outputs, inputs, 1, 1]` on a plane
    weight: Tensor<'g>,
    /// `[outputs]`
    bias: Tensor<'g>,
}

impl<'g> Pointwise<'g> {
    /// `inputs` channels to `outputs` on a grid of `axes` axes.
    pub fn new(scope: &Scope<'_, 'g>, axes: usize, inputs: usize, outputs: usize) -> Self {
        let initial = Initial::fan_in(inputs);
        let weight = scope.parameter("weight", [vec![outputs, inputs], vec![1; axes]].concat(), initial);
        Pointwise { weight, bias: scope.parameter("bias", [outputs], initial) }
    }

    /// `[…, inputs]` → `[…, outputs]`
    pub fn forward(&self, field: Tensor<'g>) -> Tensor<'g> {
        self.product(field) + self.bias
    }

    /// Maps `[…extents, batch, inputs]`, cropped or padded with v = 0 to the new extents.
    pub fn forward_padded(&self, field: Tensor<'g>, to: &[usize]) -> Tensor<'g> {
        let (shape, [outputs]) = (field.shape(), self.bias.dims());
        let (extents, rest) = shape.dims().split_at(to.len());
        let common: Vec<Span> = extents.iter().zip(to).map(|(from, to)| Span::all(*from.min(to))).collect();
        let spans = |width: usize| [&common[..], &[Span::all(rest[0]), Span::all(width)]].concat();
        let product = self.product(field.spans(&spans(rest[1])));
        product.embed(&spans(outputs), [to, &[rest[0], outputs]].concat()) + self.bias
    }

    fn product(&self, field: Tensor<'g>) -> Tensor<'g> {
        let shape = self.weight.shape();
        let [outputs, inputs] = [shape.dims()[0], shape.dims()[1]];
        field.matmul(self.weight.reshape([outputs, inputs]).transpose())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Parameters;
    use lamo_tensor::PARAMETERS;
    use lamo_tensor::reference::{self, Bindings};

    /// The waves are rounded to 24 bits, the sums have some hundred terms.
    const ROUNDING: f64 = 1e-5;

    /// Numbers without a pattern.
    fn values(count: usize) -> Vec<f64> {
        (0..count).map(|n| (1.0 + 12.9898 * n as f64).sin()).collect()
    }

    fn check(found: &[f64], expected: &[f64], case: &str) {
        let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < ROUNDING * largest, "{case}: {found} and {expected}");
        }
    }

    /// (re, im) of a complex product.
    fn times([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
        [a * c - b * d, a * d + b * c]
    }

    /// One channel of `irfft2(R · rfft2(v))`, sum by sum. Where both weights reach a row of the spectrum, the second counts.
    fn by_definition(field: &[f64], [rows, columns]: [usize; 2], [along, across]: [usize; 2], r: &[f64]) -> Vec<f64> {
        let turn = |r: usize, c: usize, k: usize, l: usize, sign: f64| {
            let angle = sign * TAU * ((k * r) as f64 / rows as f64 + (l * c) as f64 / columns as f64);
            [angle.cos(), angle.sin()]
        };
        let mut result = vec![0.0; rows * columns];
        for k in (0..rows).filter(|&k| k < along || k + along >= rows) {
            let (half, mode) = if k + along >= rows { (1, k + along - rows) } else { (0, k) };
            for l in 0..across {
                let terms = (0..rows * columns).map(|n| (field[n], turn(n / columns, n % columns, k, l, -1.0)));
                let sum = terms.fold([0.0; 2], |[re, im], (v, [cos, sin])| [re + v * cos, im + v * sin]);
                let place = 2 * ((half * along + mode) * across + l);
                let mixed = times(sum, [r[place], r[place + 1]]);
                for (n, value) in result.iter_mut().enumerate() {
                    let [re, _] = times(mixed, turn(n / columns, n % columns, k, l, 1.0));
                    *value += images(l, columns) * re / (rows * columns) as f64;
                }
            }
        }
        result
    }

    #[test]
    fn a_convolution_on_a_plane_is_its_definition_also_where_the_rows_of_both_weights_meet() {
        let cases = [
            ([6, 5], [2, 3]),
            ([5, 6], [2, 4]),
            ([4, 4], [2, 2]),
            ([3, 2], [2, 2]),
            ([2, 2], [2, 2]),
            ([1, 1], [1, 1]),
        ];
        for ([rows, columns], modes) in cases {
            let graph = Graph::new();
            let parameters = Parameters::new(&graph);
            let convolution = SpectralConvolution::new(&parameters.root(), [1, 1], modes);
            let out = convolution.forward(graph.input("field", [rows, columns, 1, 1]));
            let (field, weights) = (values(rows * columns), values(4 * modes[0] * modes[1]));
            let bindings = Bindings::from([("field", field.clone()), (PARAMETERS, weights.clone())]);
            let found = &reference::evaluate(&graph, &bindings, &[out])[0].values;
            let expected = by_definition(&field, [rows, columns], modes, &weights);
            check(found, &expected, &format!("{modes:?} modes on {rows} × {columns}"));
        }
    }

    #[test]
    fn the_lowest_modes_alone_are_a_convolution_whose_other_modes_are_zero() {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let convolution = SpectralConvolution::new(&parameters.root(), [1, 1], [2, 2]);
        let field = graph.input("field", [5, 6, 1, 1]);
        let mut weights = values(16);
        let bindings = |weights: &[f64]| Bindings::from([("field", values(30)), (PARAMETERS, weights.to_vec())]);
        let truncated = convolution.truncated([1, 2]).forward(field);
        let found = reference::evaluate(&graph, &bindings(&weights), &[truncated])[0].values.clone();
        // `weights2` starts at its most negative frequency, so with one row left that row is k = −1.
        weights.copy_within(8..12, 12);
        weights[4..12].fill(0.0);
        let expected =
            reference::evaluate(&graph, &bindings(&weights), &[convolution.forward(field)])[0].values.clone();
        check(&found, &expected, "one mode of two along rows");
    }

    #[test]
    fn a_convolution_across_the_lanes_is_that_along_the_moved_axis() {
        let (graph, outer, points) = (Graph::new(), 3, 6);
        let field = graph.input("field", [outer, points, 2, 2]);
        let line = LineConvolution::of(graph.input("weight", [2, 3, 4, 2]));
        let moved = line.forward(field.swap(0, 1).reshape([points, outer * 2, 2]));
        let moved = moved.reshape([points, outer, 2, 3]).swap(0, 1);
        let bindings = Bindings::from([("field", values(72)), ("weight", values(48))]);
        let [found, expected] =
            [line.forward_across(field), moved].map(|y| reference::evaluate(&graph, &bindings, &[y])[0].values.clone());
        check(&found, &expected, "four modes of six points");
    }

    #[test]
    fn a_convolution_along_a_line_is_one_on_a_plane_of_one_row_with_the_weights_of_that_row() {
        for (points, modes) in [(6, 4), (7, 3), (1, 1)] {
            let graph = Graph::new();
            let weight = graph.input("weight", [2, 3, modes, 2]);
            let field = graph.input("field", [points, 4, 2]);
            let line = LineConvolution::of(weight).forward(field);
            let weights = [weight.reshape([2, 3, 1, modes, 2]); 2];
            let plane = SpectralConvolution::of(weights).forward(field.reshape([1, points, 4, 2]));
            let bindings = Bindings::from([("field", values(8 * points)), ("weight", values(12 * modes))]);
            let [found, expected] =
                [line, plane].map(|y| reference::evaluate(&graph, &bindings, &[y])[0].values.clone());
            check(&found, &expected, &format!("{modes} modes of {points} points"));
        }
    }
}
