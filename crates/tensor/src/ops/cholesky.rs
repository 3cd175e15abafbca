//! The inverse W = Λ⁻¹ of the Cholesky factor of a symmetric matrix Σ = Λ Λᵀ, Λ and W lower triangular.
//!
//! The factor is guarded. Where Σ is not positive definite, a jitter is added to its diagonal: the first of the ten numbers
//! ε, 10 ε, …, 10⁹ ε that makes Σ positive definite. If all ten fail, or if Σ has a NaN, every element of W is NaN.
//!
//! Gradient, with the jitter as a constant (Murray 2016, Eq. 9, written for W): with Φ(M) the lower triangle of M with half of
//! its diagonal, ∂Σ = −sym(Wᵀ Φ(∂W Wᵀ) W). The upper triangle of ∂W has no part in it.

use super::Op;
use crate::graph::Tensor;
use crate::reference::Array;

/// Largest side of a matrix: two of them in double precision fit the shared memory of a block.
pub(crate) const LARGEST: usize = 64;
/// Tries with a jitter.
pub(crate) const TRIES: usize = 10;

impl<'g> Tensor<'g> {
    /// Λ⁻¹ of symmetric matrices `[…, n, n]`, n at most 64, of which the lower triangle is read; `jitter` is the smallest number
    /// that is added to the diagonal of a matrix that is not positive definite.
    pub fn inverse_cholesky(self, jitter: f64) -> Tensor<'g> {
        let shape = self.shape();
        let side = shape.0.last().copied().unwrap_or(0);
        let square = shape.rank() >= 2 && shape.0[shape.rank() - 2] == side;
        assert!(square, "inverse Cholesky factor: expected square matrices, found shape {shape}");
        assert!(side <= LARGEST, "inverse Cholesky factor: expected at most {LARGEST} rows, found shape {shape}");
        let matrices = [shape.count() / (side * side), side, side];
        let op = Op::InverseCholesky { jitter: jitter.to_bits() };
        let flat = self.reshape(matrices);
        self.graph.add(op, &[flat.node], matrices.into()).reshape(shape)
    }
}

/// ∂Σ from W and ∂W, both `[matrices, n, n]`.
pub(crate) fn gradient<'g>(inverse: Tensor<'g>, cotangent: Tensor<'g>) -> Tensor<'g> {
    let [_, side, _] = inverse.dims();
    let half = |row: usize, column: usize| match row.cmp(&column) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 1.0,
    };
    let mask: Vec<f32> = (0..side * side).map(|i| half(i / side, i % side)).collect();
    let mask = inverse.graph.constant(&mask, [side, side]);
    let lower = cotangent.matmul_in_f32(inverse.transpose()) * mask; // Φ(∂W Wᵀ)
    let slope = inverse.transpose().matmul_in_f32(lower).matmul_in_f32(inverse);
    (slope + slope.transpose()) * -0.5
}

pub(crate) fn reference(jitter: f64, operand: &Array) -> Vec<f64> {
    let side = operand.shape.0[2];
    operand.values.chunks(side * side).flat_map(|matrix| guarded(matrix, side, jitter)).collect()
}

/// W of one matrix, row by row.
pub(crate) fn guarded(matrix: &[f64], side: usize, jitter: f64) -> Vec<f64> {
    let shifts = std::iter::once(0.0).chain((0..TRIES).map(|attempt| jitter * 10_f64.powi(attempt as i32)));
    let factors = shifts.map(|shift| factor(matrix, side, shift));
    factors.flatten().next().map_or_else(|| vec![f64::NAN; side * side], |factor| inverse(&factor, side))
}

/// Λ of Σ + `shift` · 1, or `None` if the matrix is not positive definite.
fn factor(matrix: &[f64], side: usize, shift: f64) -> Option<Vec<f64>> {
    let mut factor = vec![0.0; side * side];
    for row in 0..side {
        for column in 0..=row {
            let known: f64 = (0..column).map(|k| factor[row * side + k] * factor[column * side + k]).sum();
            let rest = matrix[row * side + column] + if row == column { shift } else { 0.0 } - known;
            factor[row * side + column] = if row > column {
                rest / factor[column * side + column]
            } else if rest > 0.0 && rest.is_finite() {
                rest.sqrt()
            } else {
                return None;
            };
        }
    }
    Some(factor)
}

/// Λ⁻¹ by forward substitution.
fn inverse(factor: &[f64], side: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; side * side];
    for column in 0..side {
        for row in column..side {
            let known: f64 = (column..row).map(|k| factor[row * side + k] * inverse[k * side + column]).sum();
            let right = if row == column { 1.0 } else { 0.0 };
            inverse[row * side + column] = (right - known) / factor[row * side + row];
        }
    }
    inverse
}
