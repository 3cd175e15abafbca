//! y = x Wᵀ + b over the last axis.

use super::{Initial, Scope};
use lamo_tensor::Tensor;

/// An affine map of the channels.
pub struct Linear<'g> {
    /// `[outputs, inputs]`
    weight: Tensor<'g>,
    /// `[outputs]`
    bias: Option<Tensor<'g>>,
}

impl<'g> Linear<'g> {
    /// With a bias.
    pub fn new(scope: &Scope<'_, 'g>, inputs: usize, outputs: usize) -> Self {
        let initial = Initial::fan_in(inputs);
        let weight = scope.parameter("weight", [outputs, inputs], initial);
        Linear { weight, bias: Some(scope.parameter("bias", [outputs], initial)) }
    }

    /// Without a bias.
    pub fn without_bias(scope: &Scope<'_, 'g>, inputs: usize, outputs: usize) -> Self {
        Linear { weight: scope.parameter("weight", [outputs, inputs], Initial::fan_in(inputs)), bias: None }
    }

    /// `[…, inputs]` → `[…, outputs]`
    pub fn forward(&self, x: Tensor<'g>) -> Tensor<'g> {
        let y = x.matmul(self.weight.transpose());
        self.bias.map_or(y, |bias| y + bias)
    }
}
