//! The multiwavelet layer (Gupta et al. 2021): a square image of k² coefficients per cell is decomposed level by level, each
//! level is mixed, and the image is put together again.
//!
//! With v_{pq} the cells of odd or even rows p and columns q, a level is
//!
//! s = Σ v_{pq} (H_p ⊗ H_q)ᵀ,  d = Σ v_{pq} (G_p ⊗ G_q)ᵀ,  Ud = A d + B s,  Us = C d,
//!
//! the next level decomposes s, the last one is mapped by T₀, and on the way back v ← v + Us,
//! v_{pq} = v (H_p ⊗ H_q) + Ud (G_p ⊗ G_q). H and G are the filters of the first k Legendre polynomials on [0, 1] and of
//! their wavelets; the mixed details H ⊗ G and G ⊗ H are left out, as in the Neural-Solver-Library. All levels share A, B, C.

use super::{Linear, SpectralConvolution, relu};
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

/// Matrices of a level for the four cells (p, q) = (0, 0), (0, 1), (1, 0), (1, 1).
struct Transform<'g> {
    /// `[4 k², 2 k²]`, cells to s and d.
    decompose: Tensor<'g>,
    /// `[2 k², 4 k²]`, v and Ud to cells.
    reconstruct: Tensor<'g>,
}

impl<'g> Transform<'g> {
    fn new(scope: &Scope<'_, 'g>, order: usize) -> Self {
        let (filters, square) = (Filters::legendre(order), order * order);
        // One matrix for both ways: `[s and d, cells]`, orthonormal rows on each part.
        let mut values = vec![0.0; 2 * square * 4 * square];
        for (part, filter) in [&filters.coarse, &filters.detail].into_iter().enumerate() {
            for cell in 0..4 {
                for (row, column) in (0..square).flat_map(|row| (0..square).map(move |column| (row, column))) {
                    let (rows, columns) = (&filter[cell / 2], &filter[cell % 2]);
                    let value = rows[row / order][column / order] * columns[row % order][column % order];
                    values[(part * square + row) * 4 * square + cell * square + column] = value;
                }
            }
        }
        declare_tables(scope, square, &values);
        let reconstruct = scope.graph().constant_numbers(&values, [2 * square, 4 * square]);
        Transform { decompose: reconstruct.transpose(), reconstruct }
    }

    /// `[batch, 2n, 2n, k²]` → s and d, each `[batch, n, n, k²]`
    fn decompose(&self, image: Tensor<'g>) -> [Tensor<'g>; 2] {
        let [batch, side, _, channels] = image.dims();
        let half = side / 2;
        let cells = image.reshape([batch, half, 2, half, 2, channels]).permute(&[0, 1, 3, 2, 4, 5]);
        let parts = cells.reshape([batch * half * half, 4 * channels]).matmul(self.decompose);
        parts.split(1, [channels; 2]).map(|part| part.reshape([batch, half, half, channels]))
    }

    /// v and Ud, each `[batch, n, n, k²]` → `[batch, 2n, 2n, k²]`
    fn reconstruct(&self, parts: [Tensor<'g>; 2]) -> Tensor<'g> {
        let [batch, half, _, channels] = parts[0].dims();
        let parts = Tensor::concatenate(&parts, 3).reshape([batch * half * half, 2 * channels]);
        let cells = parts.matmul(self.reconstruct).reshape([batch, half, half, 2, 2, channels]);
        cells.permute(&[0, 1, 3, 2, 4, 5]).reshape([batch, 2 * half, 2 * half, channels])
    }
}

/// The library keeps the matrices in its weights files: `ec_s` and `ec_d` take the four cells to s and to d, `rc_ee` to `rc_oo`
/// take v and Ud to one cell each. `matrix` is `[s and d, cells]`.
fn declare_tables(scope: &Scope<'_, '_>, square: usize, matrix: &[f64]) {
    let at = |row: usize, column: usize| matrix[row * 4 * square + column] as f32;
    for (part, name) in ["ec_s", "ec_d"].into_iter().enumerate() {
        let entries = (0..4 * square).flat_map(|cell| (0..square).map(move |row| (part * square + row, cell)));
        scope.table(name, [4 * square, square], entries.map(|(row, column)| at(row, column)).collect());
    }
    for (cell, name) in ["rc_ee", "rc_eo", "rc_oe", "rc_oo"].into_iter().enumerate() {
        let entries = (0..2 * square).flat_map(|row| (0..square).map(move |column| (row, cell * square + column)));
        scope.table(name, [2 * square, square], entries.map(|(row, column)| at(row, column)).collect());
    }
}

/// Lo(max(0, W ∗ v + b)): B and C.
struct Local<'g> {
    weight: Tensor<'g>,
    bias: Tensor<'g>,
    out: Linear<'g>,
}

impl<'g> Local<'g> {
    fn new(scope: &Scope<'_, 'g>, channels: usize) -> Self {
        let (convolution, initial) = (scope.enter("conv.0"), Initial::fan_in(9 * channels));
        Local {
            weight: convolution.parameter("weight", [channels, channels, 3, 3], initial),
            bias: convolution.parameter("bias", [channels], initial),
            out: Linear::new(&scope.enter("Lo"), channels, channels),
        }
    }

    fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let options = ConvolutionOptions { padding: [[1, 1]; 2], ..ConvolutionOptions::default() };
        self.out.forward(relu(image.convolve(self.weight, options) + self.bias))
    }
}

/// Lo(max(0, F⁻¹(R · F v))): A.
struct Global<'g> {
    convolution: SpectralConvolution<'g>,
    out: Linear<'g>,
}

impl<'g> Global<'g> {
    fn new(scope: &Scope<'_, 'g>, channels: usize, modes: usize) -> Self {
        // Xavier's normal numbers, half of the variance in each of the real and imaginary parts.
        let deviation = 1.0 / ((2 * channels) as f64).sqrt() / modes as f64;
        let shape = [channels, channels, modes, modes, 2];
        let weights = ["weights1", "weights2"].map(|name| scope.parameter(name, shape, Initial::Normal { deviation }));
        Global {
            convolution: SpectralConvolution::of(weights),
            out: Linear::new(&scope.enter("Lo"), channels, channels),
        }
    }

    fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let [_, side, _, _] = image.dims();
        let modes = self.convolution.modes().map(|modes| modes.min(side / 2 + 1));
        let field = image.permute(&[1, 2, 0, 3]); // [rows, columns, batch, channels]
        let found = self.convolution.truncated(modes).forward(field).permute(&[2, 0, 1, 3]);
        self.out.forward(relu(found))
    }
}

/// A whole layer.
pub struct Multiwavelet<'g> {
    transform: Transform<'g>,
    global: Global<'g>,
    local: [Local<'g>; 2],
    coarsest: Linear<'g>,
}

impl<'g> Multiwavelet<'g> {
    /// `order` polynomials along each axis, `modes` frequencies along each axis in A.
    pub fn new(scope: &Scope<'_, 'g>, order: usize, modes: usize) -> Self {
        let channels = order * order;
        Multiwavelet {
            transform: Transform::new(scope, order),
            global: Global::new(&scope.enter("A"), channels, modes),
            local: ["B", "C"].map(|name| Local::new(&scope.enter(name), channels)),
            coarsest: Linear::new(&scope.enter("T0"), channels, channels),
        }
    }

    /// `[batch, side, side, order²]` → the same; the side is a power of two.
    pub fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let [_, side, columns, _] = image.dims();
        assert!(
            side.is_power_of_two() && side == columns,
            "multiwavelet: {side} × {columns} is no square of a power of two"
        );
        let [of_coarse, of_detail] = &self.local;
        let (mut image, mut levels) = (image, Vec::new());
        for _ in 0..side.ilog2() {
            let [coarse, detail] = self.transform.decompose(image);
            levels.push((self.global.forward(detail) + of_coarse.forward(coarse), of_detail.forward(detail)));
            image = coarse;
        }
        image = self.coarsest.forward(image);
        for (detail, coarse) in levels.into_iter().rev() {
            image = self.transform.reconstruct([image + coarse, detail]);
        }
        image
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
