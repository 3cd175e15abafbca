//! Row operators: softmax and the norms, over the last axis. They are compositions of maps and reductions; the
//! compiler runs each of them, and each of their gradients, as one pass over the rows.

use super::Op;
use crate::graph::Tensor;

/// y ∘ (g − Σ g y) over the last axis.
pub(super) fn softmax_gradient<'g>(result: Tensor<'g>, cotangent: Tensor<'g>) -> Tensor<'g> {
    result * (cotangent - (cotangent * result).sum(&result.last_axis()))
}

impl<'g> Tensor<'g> {
    fn last_axis(&self) -> [usize; 1] {
        let shape = self.shape();
        assert!(shape.rank() > 0, "a row operator needs an axis, found shape {shape}");
        [shape.rank() - 1]
    }

    /// exp(x − max x) / Σ exp(x − max x) over the last axis.
    pub fn softmax(self) -> Tensor<'g> {
        let row = self.last_axis();
        // A softmax does not change if its row is shifted, so the maximum has no gradient.
        let weight = (self - self.max(&row).detach()).exp();
        weight * weight.sum(&row).reciprocal()
    }

    /// [`Tensor::softmax`] with another gradient rule, y ∘ (g − Σ g y): it needs the result y alone, so that a program need not keep
    /// x where y is kept. The value has the same bits, the gradient is rounded differently.
    pub fn lean_softmax(self) -> Tensor<'g> {
        let value = self.softmax();
        self.graph.add(Op::Softmaxed, &[value.node, self.node], self.shape())
    }

    /// (x − mean) / √(variance + ε) over the last axis, biased variance; then the affine map of the row.
    pub fn layer_norm(self, weight: Tensor<'g>, bias: Tensor<'g>, epsilon: f64) -> Tensor<'g> {
        let row = self.last_axis();
        let centred = self - self.mean(&row);
        let deviation = (centred.square().mean(&row) + epsilon).sqrt();
        centred * deviation.reciprocal() * weight + bias
    }

    /// x / √(mean x² + ε) over the last axis, times the weight of the row.
    pub fn rms_norm(self, weight: Tensor<'g>, epsilon: f64) -> Tensor<'g> {
        let row = self.last_axis();
        let magnitude = (self.square().mean(&row) + epsilon).sqrt();
        self * magnitude.reciprocal() * weight
    }
}
