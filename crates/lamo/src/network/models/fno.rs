//! Fourier Neural Operator on a plane (Li et al. 2021, Eqs. 2, 4 and 5; `FNO` of Neural-Solver-Library).
//!
//! v₀ = P(positions, functions),  vₜ₊₁ = σ(F⁻¹(R · F vₜ) + W vₜ + b),  u = Q(v_T);  no σ after the last layer.
//!
//! F keeps the frequencies |k| ≤ modes along rows and 0 ≤ l < modes along columns; R mixes the channels of each with
//! a complex matrix of its own. With a = 2πkr/rows and b = 2πlc/columns,
//!
//! e^{−i(±a + b)} = (cos a cos b ∓ sin a sin b) − i (cos a sin b ± sin a cos b),
//!
//! so four real sums over cos a, sin a times cos b, sin b give the frequencies k and −k at once: two real matrix
//! products each way, on any grid. Inside the layers a field is `[rows, columns, batch, width]`, which makes the
//! transform along rows one product and puts the frequencies in front for the mixing.

use super::{Settings, read};
use crate::error::{Refusal, require};
use crate::network::layers::Linear;
use crate::network::{Initial, Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Span, Tensor};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// The plane is padded with zeros, below and right, to multiples of this, as the library does.
const PADDING: usize = 16;

/// All settings; the defaults are the library's usual ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Channels of the hidden fields.
    pub width: usize,
    /// Frequencies kept along each axis: 0 ≤ l < modes along columns, −modes ≤ k < modes along rows.
    pub modes: usize,
    /// T, number of Fourier layers.
    pub depth: usize,
    /// Side of the lattice whose distances replace the positions; only 0, which keeps the positions.
    pub unified_positions: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config { width: 64, modes: 12, depth: 4, unified_positions: 0 }
    }
}

/// Waves along each axis that the FFT of a padded plane has.
fn most_modes([rows, columns]: [usize; 2]) -> usize {
    (rows / 2).min(columns / 2 + 1)
}

fn padded(extents: [usize; 2]) -> [usize; 2] {
    extents.map(|extent| extent.next_multiple_of(PADDING))
}

/// The usual number of modes, fewer on a small plane.
pub(crate) fn fitting_modes(extents: [usize; 2]) -> usize {
    Config::default().modes.min(most_modes(padded(extents)))
}

impl Config {
    fn check(&self, task: &Task, [rows, columns]: [usize; 2]) -> Result<(), Refusal> {
        let Config { width, modes, depth, unified_positions } = *self;
        require(width > 0 && modes > 0 && depth > 0, || {
            format!("model fno: width, modes and depth are at least 1, found {width}, {modes} and {depth}")
        })?;
        let most = most_modes([rows, columns]);
        require(modes <= most, || {
            format!(
                "model fno: a padded plane of {rows} × {columns} points carries at most {most} modes, found {modes}; set modes = {most}"
            )
        })?;
        require(unified_positions == 0, || {
            format!(
                "model fno: unified positions are not available, so unified_positions is 0, found {unified_positions}"
            )
        })?;
        require(!task.time.is_input(), || {
            "model fno: the model has no input for a time, but the task brings one".to_owned()
        })
    }
}

/// Declares the parameters under the library's names, in its order.
pub(super) fn build<'g>(
    scope: &Scope<'_, 'g>,
    task: &Task,
    settings: &Settings,
) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("fno", settings)?;
    let Grid::Plane { rows, columns } = task.grid else {
        return Err(Refusal::said(format!(
            "model fno: the grid must be a plane, found points of shape {:?}",
            task.grid.shape()
        )));
    };
    let padded = padded([rows, columns]);
    config.check(task, padded)?;
    let Config { width, modes, depth, .. } = config;
    let preprocess = scope.enter("preprocess");
    let lift = Linear::new(&preprocess.enter("linear_pre").enter("0"), task.space + task.input_channels(), 2 * width);
    let settle = Linear::new(&preprocess.enter("linear_post"), 2 * width, width);
    let convolutions: Vec<_> =
        (0..depth).map(|layer| Convolution::new(&scope.enter(&format!("conv{layer}")), width, modes, padded)).collect();
    let pointwise = (0..depth).map(|layer| Pointwise::new(&scope.enter(&format!("w{layer}")), width));
    Ok(Box::new(Fno {
        extents: [rows, columns],
        padded,
        preprocess: [lift, settle],
        layers: convolutions.into_iter().zip(pointwise).collect(),
        project: [
            Linear::new(&scope.enter("fc1"), width, width),
            Linear::new(&scope.enter("fc2"), width, task.output_channels()),
        ],
    }))
}

/// The model.
struct Fno<'g> {
    /// Rows and columns of the plane.
    extents: [usize; 2],
    /// Rows and columns with the zeros.
    padded: [usize; 2],
    /// P
    preprocess: [Linear<'g>; 2],
    layers: Vec<(Convolution<'g>, Pointwise<'g>)>,
    /// Q
    project: [Linear<'g>; 2],
}

impl<'g> Model<'g> for Fno<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        let [rows, columns] = self.extents;
        let [lift, settle] = &self.preprocess;
        let points = settle.forward(lift.forward(input.channels().swap(0, 1)).gelu()); // [points, batch, width]
        let [_, batch, width] = points.dims();
        let mut field = points.reshape([rows, columns, batch, width]);
        // Padding and crop are part of the transforms: the first layer reads the bare plane, the last writes it.
        for (layer, (convolution, pointwise)) in self.layers.iter().enumerate() {
            let last = layer + 1 == self.layers.len();
            let extents = if last { self.extents } else { self.padded };
            field = convolution.forward(field, extents) + pointwise.forward(field, extents); // Eq. 2
            field = if last { field } else { field.gelu() };
        }
        let [fc1, fc2] = &self.project;
        fc2.forward(fc1.forward(field.reshape([rows * columns, batch, width])).gelu()).swap(0, 1)
    }
}

/// W v + b, in the files a convolution of one point.
struct Pointwise<'g> {
    /// `[width, width, 1, 1]`, outputs first
    weight: Tensor<'g>,
    /// `[width]`
    bias: Tensor<'g>,
}

impl<'g> Pointwise<'g> {
    fn new(scope: &Scope<'_, 'g>, width: usize) -> Self {
        let initial = Initial::fan_in(width);
        let weight = scope.parameter("weight", [width, width, 1, 1], initial);
        Pointwise { weight, bias: scope.parameter("bias", [width], initial) }
    }

    /// On a plane of other extents: cropped, or v = 0 beyond the edge.
    fn forward(&self, field: Tensor<'g>, [to_rows, to_columns]: [usize; 2]) -> Tensor<'g> {
        let [rows, columns, batch, width] = field.dims();
        let common = [rows.min(to_rows), columns.min(to_columns), batch, width].map(Span::all);
        let product = field.spans(&common).matmul(self.weight.reshape([width, width]).transpose());
        product.embed(&common, [to_rows, to_columns, batch, width]) + self.bias
    }
}

/// F⁻¹(R · F v), Eq. 4.
struct Convolution<'g> {
    modes: usize,
    /// Periods of the waves along rows and columns.
    padded: [usize; 2],
    /// R for 0 ≤ k < modes and for −modes ≤ k < 0: `[inputs, outputs, rows of modes, columns of modes, re and im]`
    weights: [Tensor<'g>; 2],
}

impl<'g> Convolution<'g> {
    fn new(scope: &Scope<'_, 'g>, width: usize, modes: usize, padded: [usize; 2]) -> Self {
        let initial = Initial::Uniform { low: 0.0, high: 1.0 / (width * width) as f64 };
        let weight = |name: &str| scope.parameter(name, [width, width, modes, modes, 2], initial);
        Convolution { modes, padded, weights: [weight("weights1"), weight("weights2")] }
    }

    /// Zero beyond the edges of `field`, and wanted inside `extents` alone.
    fn forward(&self, field: Tensor<'g>, extents: [usize; 2]) -> Tensor<'g> {
        self.synthesise(self.mix(self.analyse(field)), extents)
    }

    /// F: `[rows, columns, batch, width]` → `[k, l, 2 batch, width]`, real parts before imaginary parts; the 2 modes
    /// frequencies along rows are k = 0, 1, …, modes − 1, then −modes, …, −1.
    fn analyse(&self, field: Tensor<'g>) -> Tensor<'g> {
        let [rows, columns, batch, width] = field.dims();
        let (graph, modes, along_rows) = (field.graph(), self.modes, 2 * (self.modes + 1));
        let row_waves = waves(graph, modes + 1, rows, self.padded[0], |_| 1.0);
        let sums = row_waves.matmul(field.reshape([rows, columns * batch * width]));
        let waves =
            waves(graph, modes, columns, self.padded[1], |_| 1.0).broadcast_to([along_rows, 2 * modes, columns]);
        let sums = waves.matmul(sums.reshape([along_rows, columns, batch * width]));
        let sums = sums.reshape([along_rows, 2 * modes, batch, width]); // [cos a | sin a, cos b | sin b, batch, width]
        let [[cos_cos, cos_sin], [sin_cos, sin_sin]] =
            sums.split(0, [modes + 1; 2]).map(|part| part.split(1, [modes; 2]));
        let plus = |sum: Tensor<'g>| sum.slice(0, 0, modes);
        let minus = |sum: Tensor<'g>| sum.slice(0, 1, modes + 1).flip(0);
        let plus = [plus(cos_cos) - plus(sin_sin), -(plus(cos_sin) + plus(sin_cos))]; // e^{−i(a + b)}
        let minus = [minus(cos_cos) + minus(sin_sin), minus(sin_cos) - minus(cos_sin)]; // e^{−i(−a + b)}
        Tensor::concatenate(&[plus, minus].map(|parts| Tensor::concatenate(&parts, 2)), 0)
    }

    /// (R · V)ₖₗ = Rₖₗ Vₖₗ, Eq. 5, one product for all frequencies: `[k, l, 2 batch, width]` → the same.
    fn mix(&self, spectrum: Tensor<'g>) -> Tensor<'g> {
        let [along_rows, along_columns, parts, width] = spectrum.dims();
        let matrices = self.weights.map(|weight| weight.permute(&[2, 3, 0, 4, 1])); // [k, l, inputs, 2, outputs]
        let matrices = Tensor::concatenate(&matrices, 0).reshape([along_rows, along_columns, width, 2 * width]);
        let [re, im] = spectrum.matmul(matrices).split(2, [parts / 2; 2]); // V · (re R | im R)
        let [[re_re, re_im], [im_re, im_im]] = [re, im].map(|part| part.split(3, [width; 2]));
        Tensor::concatenate(&[re_re - im_im, re_im + im_re], 2)
    }

    /// F⁻¹ by the transposed sums: v = Σ Re(V e^{i(±a + b)}) · (1 or 2)/(rows · columns), inside `extents` alone. The 2
    /// stands for −l where that is not l itself; where it is, sin b = 0, which drops the imaginary part that is left
    /// after the sum over k, as `irfft2` does.
    fn synthesise(&self, spectrum: Tensor<'g>, [rows, columns]: [usize; 2]) -> Tensor<'g> {
        let [_, modes, parts, width] = spectrum.dims();
        let (graph, along_rows, batch) = (spectrum.graph(), 2 * (modes + 1), parts / 2);
        let [plus, minus] = spectrum.split(0, [modes; 2]);
        let [[re_plus, im_plus], [re_minus, im_minus]] =
            [plus.pad(0, 0, 1), minus.flip(0).pad(0, 1, 0)].map(|part| part.split(2, [batch; 2])); // |k| = 0, …, modes
        let cos = [re_minus + re_plus, -(im_minus + im_plus)]; // cos a · (cos b, sin b)
        let sin = [im_minus - im_plus, re_minus - re_plus]; // sin a · (cos b, sin b)
        let sums = Tensor::concatenate(&[cos, sin].map(|parts| Tensor::concatenate(&parts, 1)), 0);
        let [row_period, period] = self.padded;
        let images = |l: usize| if (2 * l).is_multiple_of(period) { 1.0 } else { 2.0 };
        let row_waves = waves(graph, modes + 1, rows, row_period, |_| 1.0 / row_period as f64).transpose();
        let waves = waves(graph, modes, columns, period, |l| images(l) / period as f64).transpose();
        let waves = waves.broadcast_to([along_rows, columns, 2 * modes]);
        let sums = waves.matmul(sums.reshape([along_rows, 2 * modes, batch * width]));
        let field = row_waves.matmul(sums.reshape([along_rows, columns * batch * width]));
        field.reshape([rows, columns, batch, width])
    }
}

/// cos(2πkn/period) for each frequency k, then sin(2πkn/period), at n = 0, 1, …, times a weight:
/// `[2 frequencies, points]`.
fn waves(graph: &Graph, frequencies: usize, points: usize, period: usize, weight: impl Fn(usize) -> f64) -> Tensor<'_> {
    // The angle as a fraction of a turn stays exact for any k and n; half a turn has no sine, not 10⁻¹⁶.
    let angle = |k: usize, n: usize| TAU * ((k * n % period) as f64 / period as f64);
    let sin = |k: usize, n: usize| if (2 * k * n).is_multiple_of(period) { 0.0 } else { angle(k, n).sin() };
    let pairs = || (0..frequencies).flat_map(|k| (0..points).map(move |n| (k, n)));
    let cosines = pairs().map(|(k, n)| weight(k) * angle(k, n).cos());
    let sines = pairs().map(|(k, n)| weight(k) * sin(k, n));
    let values: Vec<f32> = cosines.chain(sines).map(|value| value as f32).collect();
    graph.constant(&values, [2 * frequencies, points])
}
