//! The kernel of ONO (Xiao et al. 2024): features of the points are made orthonormal and span a kernel integral,
//!
//! s = proj(x),  Σ = mean of s sᵀ = Λ Λᵀ,  ŝ = Λ⁻¹ s,  f ← f + ŝ diag(softplus(μ)) ŝᵀ f.
//!
//! The mean is over the points of the whole batch and not centred. Training takes Σ of its batch, with its gradient, and keeps a
//! running mean of it; predictions take the running mean. ŝᵀ f is a sum over points, not a mean.

use super::Linear;
use crate::network::{Initial, Mode, Pass, Scope, State};
use lamo_tensor::Tensor;

/// Share of the old running mean.
const MOMENTUM: f64 = 0.9;
/// Smallest number on the diagonal that makes a singular covariance definite; the authors' number for float32.
pub(crate) const JITTER: f64 = 1e-6;

/// Orthonormal features and the kernel that they span.
pub struct OrthogonalKernel<'g> {
    basis: usize,
    project: Linear<'g>,
    /// μ `[basis]`
    spectrum: Tensor<'g>,
    /// Running mean of Σ; zero until the first training pass.
    covariance: State<'g>,
    pass: Pass<'g>,
}

impl<'g> OrthogonalKernel<'g> {
    /// `basis` features of `width` channels.
    pub fn new(scope: &Scope<'_, 'g>, width: usize, basis: usize) -> Self {
        OrthogonalKernel {
            basis,
            project: Linear::new(&scope.enter("proj"), width, basis),
            spectrum: scope.parameter("mu", [basis], Initial::Constant(0.0)),
            covariance: scope.optional_state("feature_cov", [basis, basis], Initial::Constant(0.0)),
            pass: scope.pass(),
        }
    }

    /// `field` f and the `features` x that span the kernel: `[batch, points, width]` → the same
    pub fn forward(&self, field: Tensor<'g>, features: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        let basis = self.project.forward(features); // s [batch, points, basis]
        let covariance = match mode {
            Mode::Training => self.observe(basis),
            Mode::Inference => self.known(),
        };
        let inverse = covariance.inverse_cholesky(JITTER); // Λ⁻¹
        let orthonormal = basis.matmul_in_f32(inverse.transpose()); // ŝ [batch, points, basis]
        let coefficients = orthonormal.transpose().matmul(field); // [batch, basis, width]
        field + (orthonormal * self.spectrum.softplus()).matmul(coefficients)
    }

    /// Σ of a training batch, which also moves the running mean.
    fn observe(&self, basis: Tensor<'g>) -> Tensor<'g> {
        let [batch, points, width] = basis.dims();
        let flat = |tensor: Tensor<'g>| tensor.reshape([batch * points, width]);
        let covariance = match self.pass.weights() {
            Some(weights) => {
                let counted = basis * weights.reshape([batch, 1, 1]);
                flat(counted).transpose().matmul_in_f32(flat(basis)) / (weights.sum_all() * points as f64)
            }
            None => flat(basis).transpose().matmul_in_f32(flat(basis)) * (1.0 / (batch * points) as f64),
        };
        let old = self.covariance.value();
        let moved = old * MOMENTUM + covariance * (1.0 - MOMENTUM);
        self.covariance.set(self.is_absent().select(covariance, moved));
        covariance
    }

    /// The running mean. Before the first training pass it is unknown, and the features are taken as they are.
    fn known(&self) -> Tensor<'g> {
        let values: Vec<f32> = (0..self.basis * self.basis).map(|i| f32::from(i % (self.basis + 1) == 0)).collect();
        let covariance = self.covariance.value();
        let one = covariance.graph().constant(&values, [self.basis, self.basis]);
        self.is_absent().select(one, covariance)
    }

    /// `[basis, basis]` of 1 where there is no running mean yet: a mean of squares is 0 for nothing else.
    fn is_absent(&self) -> Tensor<'g> {
        let covariance = self.covariance.value();
        let size = covariance.abs().sum(&[0, 1]);
        size.equal(size.graph().fill(0.0, [])).broadcast_to([self.basis, self.basis])
    }
}
