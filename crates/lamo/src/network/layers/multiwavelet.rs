//! The multiwavelet layer (Gupta et al. 2021): an image of k coefficients per cell and axis is decomposed level by level, each level
//! is mixed, and the image is put together again.
//!
//! On a plane, with v_{pq} the cells of odd or even rows p and columns q, a level is
//!
//! s = Σ v_{pq} (H_p ⊗ H_q)ᵀ,  d = Σ v_{pq} (G_p ⊗ G_q)ᵀ,  Ud = A d + B s,  Us = C d,
//!
//! the next level decomposes s, the last one is mapped by T₀, and on the way back v ← v + Us,
//! v_{pq} = v (H_p ⊗ H_q) + Ud (G_p ⊗ G_q). H and G are the filters of the first k Legendre polynomials on [0, 1] and of
//! their wavelets; the mixed details H ⊗ G and G ⊗ H are left out, as in the Neural-Solver-Library. All levels share A, B, C.
//!
//! On a line there is one factor in place of two, and A, B and C are all F⁻¹(R · F v). In a volume the wavelets are those of rows and
//! columns, A mixes frequencies along all three axes, and the layers keep their number on all levels.

use super::{LineConvolution, Linear, SpectralConvolution, VolumeConvolution, convolve_volume, relu};
use crate::network::{Initial, Scope};
use lamo_tensor::{ConvolutionOptions, Tensor};

/// Filters of one axis: rows i are functions on [0, 1], columns j the polynomials on its halves, each k × k.
struct Filters {
    /// H₀ and H₁.
    coarse: [Vec<Vec<f64>>; 2],
    /// G₀ and G₁.
    detail: [Vec<Vec<f64>>; 2],
}

impl Filters {
    /// The library sets smaller entries to zero.
    const ROUNDING: f64 = 1e-8;

    /// φᵢ(x) = √(2i+1) Pᵢ(2x − 1) for i < k in the basis of the polynomials √2 φⱼ on the two halves, which is orthonormal, and
    /// the wavelets ψᵢ: the polynomial i of the left half, orthogonal to all φ and to the earlier ψ.
    fn legendre(order: usize) -> Filters {
        let sign = |i: usize, j: usize| if (i + j).is_multiple_of(2) { 1.0 } else { -1.0 };
        let left: Vec<Vec<f64>> = (0..order).map(|i| (0..order).map(|j| two_scale(i, j)).collect()).collect();
        let mut rows: Vec<Vec<f64>> = (0..order)
            .map(|i| left[i].iter().copied().chain((0..order).map(|j| sign(i, j) * left[i][j])).collect())
            .collect();
        for i in 0..order {
            let mut wavelet = vec![0.0; 2 * order];
            wavelet[i] = 1.0;
            for row in &rows {
                let overlap = row[i]; // with the polynomial itself, as the library projects
                wavelet.iter_mut().zip(row).for_each(|(value, row)| *value -= overlap * row);
            }
            let norm = wavelet.iter().map(|value| value * value).sum::<f64>().sqrt();
            rows.push(wavelet.into_iter().map(|value| value / norm).collect());
        }
        let clean = |value: &f64| if value.abs() < Self::ROUNDING { 0.0 } else { *value };
        let half = |rows: &[Vec<f64>], half: usize| -> Vec<Vec<f64>> {
            rows.iter().map(|row| row[half * order..(half + 1) * order].iter().map(clean).collect()).collect()
        };
        let (coarse, detail) = rows.split_at(order);
        Filters { coarse: [0, 1].map(|side| half(coarse, side)), detail: [0, 1].map(|side| half(detail, side)) }
    }
}

/// H₀ᵢⱼ = ∫ φᵢ(x/2) φⱼ(x) dx / √2 over [0, 1].
fn two_scale(i: usize, j: usize) -> f64 {
    let (first, second) = (shifted_legendre(i), shifted_legendre(j));
    let terms = first.iter().enumerate().flat_map(|(a, &first)| {
        let halves = first * 0.5_f64.powi(a as i32);
        second.iter().enumerate().map(move |(b, &second)| halves * second / (a + b + 1) as f64)
    });
    terms.sum::<f64>() * (((2 * i + 1) * (2 * j + 1)) as f64 / 2.0).sqrt()
}

/// Coefficients of Pₙ(2x − 1) = (−1)ⁿ Σ C(n, a) C(n + a, a) (−x)ᵃ, whole numbers.
fn shifted_legendre(n: usize) -> Vec<f64> {
    let mut coefficients = vec![if n.is_multiple_of(2) { 1.0 } else { -1.0 }];
    for a in 0..n {
        let ratio = ((n - a) * (n + a + 1)) as f64 / ((a + 1) * (a + 1)) as f64;
        coefficients.push(-coefficients[a] * ratio);
    }
    coefficients
}

/// Matrices of a level for its cells: 0 and 1 on a line, else (p, q) = (0, 0), (0, 1), (1, 0), (1, 1).
struct Transform<'g> {
    /// 1 on a line, else 2.
    axes: usize,
    /// `[cells · channels, 2 channels]`, cells to s and d.
    decompose: Tensor<'g>,
    /// `[2 channels, cells · channels]`, v and Ud to cells.
    reconstruct: Tensor<'g>,
}

impl<'g> Transform<'g> {
    fn new(scope: &Scope<'_, 'g>, axes: usize, order: usize) -> Self {
        let (filters, channels, cells) = (Filters::legendre(order), order.pow(axes as u32), 1 << axes);
        // One matrix for both ways: `[s and d, cells]`, orthonormal rows on each part.
        let mut values = vec![0.0; 2 * channels * cells * channels];
        let digit = |number: usize, base: usize, axis: usize| number / base.pow((axes - 1 - axis) as u32) % base;
        for (part, filter) in [&filters.coarse, &filters.detail].into_iter().enumerate() {
            for cell in 0..cells {
                for (row, column) in (0..channels).flat_map(|row| (0..channels).map(move |column| (row, column))) {
                    let along =
                        |axis| filter[digit(cell, 2, axis)][digit(row, order, axis)][digit(column, order, axis)];
                    let value: f64 = (0..axes).map(along).product();
                    values[((part * channels + row) * cells + cell) * channels + column] = value;
                }
            }
        }
        declare_tables(scope, [cells, channels], &values);
        let reconstruct = scope.graph().constant_numbers(&values, [2 * channels, cells * channels]);
        Transform { axes, decompose: reconstruct.transpose(), reconstruct }
    }

    /// `[batch, 2n, 2n, layers, channels]` → s and d, each `[batch, n, n, layers, channels]`; on a line one row stays one.
    fn decompose(&self, image: Tensor<'g>) -> [Tensor<'g>; 2] {
        let [batch, _, columns, layers, channels] = image.dims();
        let (half, line) = (columns / 2, self.axes == 1);
        let rows = if line { 1 } else { half };
        let cells = match line {
            true => image,
            false => image.reshape([batch, half, 2, half, 2, layers, channels]).permute(&[0, 1, 3, 5, 2, 4, 6]),
        };
        let parts = cells.reshape([batch * rows * half * layers, channels << self.axes]).matmul(self.decompose);
        parts.split(1, [channels; 2]).map(|part| part.reshape([batch, rows, half, layers, channels]))
    }

    /// v and Ud, each `[batch, n, n, layers, channels]` → `[batch, 2n, 2n, layers, channels]`
    fn reconstruct(&self, parts: [Tensor<'g>; 2]) -> Tensor<'g> {
        let [batch, rows, half, layers, channels] = parts[0].dims();
        let parts = Tensor::concatenate(&parts, 4).reshape([batch * rows * half * layers, 2 * channels]);
        let cells = parts.matmul(self.reconstruct);
        match self.axes {
            1 => cells.reshape([batch, 1, 2 * half, 1, channels]),
            _ => {
                let cells = cells.reshape([batch, half, half, layers, 2, 2, channels]);
                let sorted = cells.permute(&[0, 1, 4, 2, 5, 3, 6]);
                sorted.reshape([batch, 2 * half, 2 * half, layers, channels])
            }
        }
    }
}

/// The library keeps the matrices in its weights files: `ec_s` and `ec_d` take the cells to s and to d, `rc_e` and `rc_o`, or `rc_ee`
/// to `rc_oo`, take v and Ud to one cell each. `matrix` is `[s and d, cells]`.
fn declare_tables(scope: &Scope<'_, '_>, [cells, channels]: [usize; 2], matrix: &[f64]) {
    let at = |row: usize, column: usize| matrix[row * cells * channels + column] as f32;
    for (part, name) in ["ec_s", "ec_d"].into_iter().enumerate() {
        let entries =
            (0..cells * channels).flat_map(|cell| (0..channels).map(move |row| (part * channels + row, cell)));
        scope.table(name, [cells * channels, channels], entries.map(|(row, column)| at(row, column)).collect());
    }
    let names: &[&str] = if cells == 2 { &["rc_e", "rc_o"] } else { &["rc_ee", "rc_eo", "rc_oe", "rc_oo"] };
    for (cell, name) in names.iter().enumerate() {
        let entries =
            (0..2 * channels).flat_map(|row| (0..channels).map(move |column| (row, cell * channels + column)));
        scope.table(name, [2 * channels, channels], entries.map(|(row, column)| at(row, column)).collect());
    }
}

/// A, B or C.
enum Mixing<'g> {
    /// F⁻¹(R · F v) on a line.
    Line(LineConvolution<'g>),
    /// Lo(max(0, F⁻¹(R · F v)))
    Plane(SpectralConvolution<'g>, Linear<'g>),
    Volume(VolumeConvolution<'g>, Linear<'g>),
    /// Lo(max(0, W ∗ v + b))
    Local {
        weight: Tensor<'g>,
        bias: Tensor<'g>,
        out: Linear<'g>,
    },
}

impl<'g> Mixing<'g> {
    /// By the lowest frequencies.
    fn global(scope: &Scope<'_, 'g>, axes: usize, channels: usize, modes: usize) -> Self {
        if axes == 1 {
            return Mixing::Line(LineConvolution::new(scope, [channels; 2], modes));
        }
        // Xavier's normal numbers, half of the variance in each of the real and imaginary parts.
        let deviation = 1.0 / ((2 * channels) as f64).sqrt() / (modes as f64).powf(axes as f64 / 2.0);
        let shape = [&[channels; 2], &vec![modes; axes][..], &[2]].concat();
        let weight = |name: &str| scope.parameter(name, shape.clone(), Initial::Normal { deviation });
        let out = || Linear::new(&scope.enter("Lo"), channels, channels);
        match axes {
            2 => Mixing::Plane(SpectralConvolution::of(["weights1", "weights2"].map(weight)), out()),
            _ => {
                let weights = ["weights1", "weights2", "weights3", "weights4"].map(weight);
                Mixing::Volume(VolumeConvolution::of(weights), out())
            }
        }
    }

    /// By neighbours; on a line by the lowest frequencies, too.
    fn local(scope: &Scope<'_, 'g>, axes: usize, channels: usize, modes: usize) -> Self {
        if axes == 1 {
            return Mixing::global(scope, axes, channels, modes);
        }
        let (convolution, initial) = (scope.enter("conv.0"), Initial::fan_in(3_usize.pow(axes as u32) * channels));
        Mixing::Local {
            weight: convolution.parameter("weight", [&[channels; 2], &vec![3; axes][..]].concat(), initial),
            bias: convolution.parameter("bias", [channels], initial),
            out: Linear::new(&scope.enter("Lo"), channels, channels),
        }
    }

    /// `[batch, rows, columns, layers, channels]` → the same
    fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let [batch, rows, columns, layers, channels] = image.dims();
        let plane = || image.reshape([batch, rows, columns, channels]);
        let carried = |modes: usize, points: usize| modes.min(points / 2 + 1);
        let found = match self {
            Mixing::Line(line) => {
                let field = image.reshape([batch, columns, 1, channels]);
                line.truncated(carried(line.modes(), columns)).forward_across(field)
            }
            Mixing::Plane(convolution, out) => {
                let modes = convolution.modes().map(|modes| carried(modes, rows));
                let field = plane().permute(&[1, 2, 0, 3]); // [rows, columns, batch, channels]
                out.forward(relu(convolution.truncated(modes).forward(field).permute(&[2, 0, 1, 3])))
            }
            Mixing::Volume(convolution, out) => {
                let (extents, [along_rows, along_columns, _]) = ([rows, columns, layers], convolution.modes());
                let few = convolution.truncated([carried(along_rows, rows), carried(along_columns, columns)]);
                let field = image.permute(&[1, 2, 3, 0, 4]); // [rows, columns, layers, batch, channels]
                out.forward(relu(few.forward_padded(field, extents, extents).permute(&[3, 0, 1, 2, 4])))
            }
            Mixing::Local { weight, bias, out } => {
                let options = ConvolutionOptions { padding: [[1, 1]; 2], ..ConvolutionOptions::default() };
                let sums = match weight.shape().rank() {
                    5 => convolve_volume(image, *weight, 1),
                    _ => plane().convolve(*weight, options),
                };
                out.forward(relu(sums + *bias))
            }
        };
        found.reshape(image.shape())
    }
}

/// A whole layer.
pub struct Multiwavelet<'g> {
    transform: Transform<'g>,
    global: Mixing<'g>,
    local: [Mixing<'g>; 2],
    coarsest: Linear<'g>,
}

impl<'g> Multiwavelet<'g> {
    /// Channels of an image: k on a line, else k².
    pub fn channels(axes: usize, order: usize) -> usize {
        order.pow(axes.min(2) as u32)
    }

    /// `order` polynomials along each axis that has wavelets, `modes` frequencies along each of the `axes` of the grid.
    pub fn new(scope: &Scope<'_, 'g>, axes: usize, order: usize, modes: usize) -> Self {
        let channels = Self::channels(axes, order);
        Multiwavelet {
            transform: Transform::new(scope, axes.min(2), order),
            global: Mixing::global(&scope.enter("A"), axes, channels, modes),
            local: ["B", "C"].map(|name| Mixing::local(&scope.enter(name), axes, channels, modes)),
            coarsest: Linear::new(&scope.enter("T0"), channels, channels),
        }
    }

    /// `[batch, side, side, channels]`, on a line `[batch, 1, side, channels]`, in a volume `[batch, side, side, layers, channels]`, → the
    /// same; the side is a power of two.
    pub fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let shape = image.shape();
        let [rows, side, layers] = [1, 2, 3].map(|axis| if axis + 1 < shape.rank() { shape.dims()[axis] } else { 1 });
        assert!(
            side.is_power_of_two() && rows == if self.transform.axes == 1 { 1 } else { side },
            "multiwavelet: {rows} × {side} is no square of a power of two"
        );
        let [of_coarse, of_detail] = &self.local;
        let channels = shape.dims()[shape.rank() - 1];
        let (mut image, mut levels) = (image.reshape([shape.dims()[0], rows, side, layers, channels]), Vec::new());
        for _ in 0..side.ilog2() {
            let [coarse, detail] = self.transform.decompose(image);
            levels.push((self.global.forward(detail) + of_coarse.forward(coarse), of_detail.forward(detail)));
            image = coarse;
        }
        image = self.coarsest.forward(image);
        for (detail, coarse) in levels.into_iter().rev() {
            image = self.transform.reconstruct([image + coarse, detail]);
        }
        image.reshape(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_of_three_polynomials_are_those_of_the_closed_form() {
        let Filters { coarse: [h0, h1], detail: [g0, g1] } = Filters::legendre(3);
        let root = f64::sqrt;
        let expected_h = [
            [1.0 / root(2.0), 0.0, 0.0],
            [-root(6.0) / 4.0, root(2.0) / 4.0, 0.0],
            [0.0, -root(30.0) / 8.0, root(2.0) / 8.0],
        ];
        let expected_g = [
            [root(2.0) / 4.0, root(6.0) / 4.0, 0.0],
            [0.0, root(2.0) / 8.0, root(30.0) / 8.0],
            [0.0, 0.0, 1.0 / root(2.0)],
        ];
        for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
            let sign = if (i + j) % 2 == 0 { 1.0 } else { -1.0 };
            let pairs = [
                (h0[i][j], expected_h[i][j]),
                (h1[i][j], sign * expected_h[i][j]),
                (g0[i][j], expected_g[i][j]),
                (g1[i][j], -sign * expected_g[i][j]),
            ];
            for (found, expected) in pairs {
                assert!((found - expected).abs() < 1e-14, "{found} and {expected} at {i}, {j}");
            }
        }
    }

    #[test]
    fn polynomials_and_wavelets_of_every_order_are_orthonormal() {
        for order in 1..=6 {
            let Filters { coarse, detail } = Filters::legendre(order);
            let row = |halves: &[Vec<Vec<f64>>; 2], i: usize| [halves[0][i].clone(), halves[1][i].clone()].concat();
            let rows: Vec<_> =
                [&coarse, &detail].into_iter().flat_map(|h| (0..order).map(move |i| row(h, i))).collect();
            for (a, first) in rows.iter().enumerate() {
                for (b, second) in rows.iter().enumerate() {
                    let product: f64 = first.iter().zip(second).map(|(x, y)| x * y).sum();
                    assert!((product - f64::from(a == b)).abs() < 1e-8, "{order}: rows {a} and {b} give {product}");
                }
            }
        }
    }
}
