//! y = x Wᵀ + b over the last axis.

use crate::network::{Initial, Scope, Style};
use lamo_tensor::Tensor;

/// An affine map of the channels.
#[derive(Clone, Copy)]
pub struct Linear<'g> {
    /// `[outputs, inputs]`
    weight: Tensor<'g>,
    /// `[outputs]`
    bias: Option<Tensor<'g>>,
}

impl<'g> Linear<'g> {
    /// With a bias.
    pub fn new(scope: &Scope<'_, 'g>, inputs: usize, outputs: usize) -> Self {
        let bias = match scope.style() {
            Style::FanIn => Initial::fan_in(inputs),
            Style::Small => Initial::Constant(0.0),
        };
        let linear = Linear::without_bias(scope, inputs, outputs);
        Linear { bias: Some(scope.parameter("bias", [outputs], bias)), ..linear }
    }

    /// Without a bias.
    pub fn without_bias(scope: &Scope<'_, 'g>, inputs: usize, outputs: usize) -> Self {
        let weight = match scope.style() {
            Style::FanIn => Initial::fan_in(inputs),
            Style::Small => Initial::Normal { deviation: 0.02 },
        };
        Linear { weight: scope.parameter("weight", [outputs, inputs], weight), bias: None }
    }

    /// With orthonormal rows or columns to start from.
    pub fn orthogonal(scope: &Scope<'_, 'g>, inputs: usize, outputs: usize) -> Self {
        Linear {
            weight: scope.parameter("weight", [outputs, inputs], Initial::Orthogonal),
            bias: Some(scope.parameter("bias", [outputs], Initial::fan_in(inputs))),
        }
    }

    /// W and b of a map with a bias.
    pub(super) fn affine(&self) -> [Tensor<'g>; 2] {
        [self.weight, self.bias.expect("this map was made with a bias")]
    }

    /// `[…, inputs]` → `[…, outputs]`
    pub fn forward(&self, x: Tensor<'g>) -> Tensor<'g> {
        let y = x.matmul(self.weight.transpose());
        self.bias.map_or(y, |bias| y + bias)
    }
}
