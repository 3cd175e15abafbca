//! Muon (Jordan et al. 2024): a step along the nearest orthogonal matrix to the momentum of a matrix.
//!
//! B ← B + (1 − μ)(G − B),  U = G + μ (B − G),  θ ← θ (1 − η λ) − η · 0.2 √max(rows, columns) · orthogonal(U).
//!
//! Newton and Schulz's iteration makes U orthogonal without its singular value decomposition: X = U / ‖U‖, and five times
//! X ← a X + (b A + c A²) X with A = X Xᵀ. It maps singular values to about 1 (0.7 to 1.2) and uses matrix products only.
//! The factor 0.2 √max gives a step the root mean square of a step of AdamW (Liu et al. 2025), so that both share rate and
//! decay. Matrices of one shape are one batch of products.
//!
//! Matrices are the weights of linear maps: parameters of two axes called `weight`. With [`Muon::convolutions`] the weights of
//! dense convolutions are matrices, too, `[out, in · taps]`. AdamW updates all other parameters.

use super::optimiser::Slope;
use lamo_tensor::{DeviceError, Program, Section, Tensor};
use std::collections::BTreeMap;
use std::ops::Range;

/// a, b, c: the polynomial a s + b s³ + c s⁵ has a slope of 3.4 at 0 and stays near 1 for singular values up to 1.
pub const COEFFICIENTS: [f64; 3] = [3.4445, -4.7750, 2.0315];
/// Iterations of Newton and Schulz.
pub const ITERATIONS: usize = 5;
/// Root mean square of a step of AdamW, about.
const STEP: f64 = 0.2;
/// Keeps a matrix without gradient at zero.
const EPSILON: f64 = 1e-7;
/// Input: 1 − η λ, η.
const CONTROLS: &str = "muon.controls";

/// Muon's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Muon {
    /// μ
    pub momentum: f64,
    /// η relative to the rate of AdamW.
    pub rate: f64,
    /// Weights of dense convolutions are matrices, too.
    pub convolutions: bool,
}

/// A matrix among the parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matrix {
    range: Range<usize>,
    /// rows, columns
    shape: [usize; 2],
}

impl Muon {
    /// The matrix of a section, if it has one. A depthwise convolution has one input channel per group, and no matrix.
    pub(super) fn matrix(&self, section: &Section) -> Option<Matrix> {
        let (rows, inputs, taps) = match *section.shape.dims() {
            [rows, inputs] => (rows, inputs, 1),
            [rows, inputs, ref taps @ ..] if self.convolutions => (rows, inputs, taps.iter().product()),
            _ => return None,
        };
        let is_weight = section.name == "weight" || section.name.ends_with(".weight");
        let shape = [rows, inputs * taps];
        (is_weight && rows > 1 && inputs > 1).then(|| Matrix { range: section.range(), shape })
    }

    /// Updates matrices; returns their new values.
    pub(super) fn update<'g>(&self, slope: &Slope<'g>, matrices: &[Matrix]) -> Vec<(Range<usize>, Tensor<'g>)> {
        let graph = slope.theta.graph();
        if matrices.is_empty() {
            return Vec::new();
        }
        let [keep, rate] = graph.input(CONTROLS, [2]).split(0, [1; 2]);
        let mut of_shape: BTreeMap<[usize; 2], Vec<&Matrix>> = BTreeMap::new();
        matrices.iter().for_each(|matrix| of_shape.entry(matrix.shape).or_default().push(matrix));
        let mut new = Vec::new();
        for ([rows, columns], alike) in of_shape {
            let momentum = |matrix: &&Matrix| {
                let (mean, slope) = (part(slope.mean, &matrix.range), slope.clipped(&matrix.range));
                let moved = mean + (slope - mean) * (1.0 - self.momentum);
                graph.assign(mean, moved);
                (slope + (moved - slope) * self.momentum).reshape([1, rows, columns])
            };
            let stacked = Tensor::concatenate(&alike.iter().map(momentum).collect::<Vec<_>>(), 0);
            let turned = orthogonal(stacked) * (STEP * (rows.max(columns) as f64).sqrt());
            for (place, matrix) in alike.iter().enumerate() {
                let theta = part(slope.theta, &matrix.range);
                let step = turned.slice(0, place, place + 1).reshape([rows * columns]);
                let value = theta * keep - rate * step;
                graph.assign(theta, value);
                new.push((matrix.range.clone(), value));
            }
        }
        new
    }

    /// Tells the program the rate of its next step; `rate` is that of AdamW.
    pub(super) fn pace(&self, program: &mut Program, rate: f64, decay: f64) -> Result<(), DeviceError> {
        if !program.has_input(CONTROLS) {
            return Ok(()); // there are no matrices
        }
        let rate = self.rate * rate;
        program.try_write(CONTROLS, &[(1.0 - rate * decay) as f32, rate as f32])
    }
}

fn part<'g>(tensor: Tensor<'g>, range: &Range<usize>) -> Tensor<'g> {
    tensor.slice(0, range.start, range.end)
}

/// `[count, rows, columns]` matrices with the same singular vectors and singular values near 1.
pub fn orthogonal(matrices: Tensor<'_>) -> Tensor<'_> {
    let [count, rows, columns] = matrices.dims();
    if rows > columns {
        return orthogonal(matrices.transpose()).transpose();
    }
    let [a, b, c] = COEFFICIENTS;
    let norm = matrices.square().sum(&[1, 2]).sqrt().reshape([count, 1, 1]);
    let mut x = matrices / (norm + EPSILON);
    for _ in 0..ITERATIONS {
        let gram = x.matmul(x.transpose()); // [count, rows, rows]
        let polynomial = gram * b + gram.matmul(gram) * c;
        x = x * a + polynomial.matmul(x);
    }
    x
}
