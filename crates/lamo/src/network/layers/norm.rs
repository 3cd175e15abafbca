//! Layer norm with its affine map.

use crate::network::{Initial, Scope};
use lamo_tensor::Tensor;

/// (x − mean)/√(variance + 10⁻⁵) · weight + bias over the channels.
pub struct LayerNorm<'g> {
    weight: Tensor<'g>,
    bias: Tensor<'g>,
}

impl<'g> LayerNorm<'g> {
    /// Over `width` channels.
    pub fn new(scope: &Scope<'_, 'g>, width: usize) -> Self {
        LayerNorm {
            weight: scope.parameter("weight", [width], Initial::Constant(1.0)),
            bias: scope.parameter("bias", [width], Initial::Constant(0.0)),
        }
    }

    /// `[…, width]` → `[…, width]`
    pub fn forward(&self, x: Tensor<'g>) -> Tensor<'g> {
        x.layer_norm(self.weight, self.bias, 1e-5)
    }
}
