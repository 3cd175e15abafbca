//! Linear maps with GELUs between them.

use super::{Dropout, Dropped, Linear};
use crate::network::{Mode, Scope};
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// What stands between the two maps of an MLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// GELU(h)
    #[default]
    Gelu,
    /// SiLU(g) ∘ h with [g | h] = first(x) (Shazeer 2020).
    Swiglu,
}

/// second(GELU(first(x))), or second(SiLU(g) ∘ h) with [g | h] = first(x).
pub struct Mlp<'g> {
    first: Linear<'g>,
    second: Linear<'g>,
    activation: Activation,
}

impl<'g> Mlp<'g> {
    /// `inputs` → `hidden` → `outputs`; the grid models call the maps `fc1` and `fc2`.
    pub fn new(scope: &Scope<'_, 'g>, [inputs, hidden, outputs]: [usize; 3]) -> Self {
        Mlp::named(scope, ["fc1", "fc2"], [inputs, hidden, outputs])
    }

    /// An MLP whose maps are called `names`.
    pub fn named(scope: &Scope<'_, 'g>, names: [&str; 2], sizes: [usize; 3]) -> Self {
        Mlp::activated(scope, names, sizes, Activation::Gelu)
    }

    /// With another activation; a gate has `hidden` channels of its own.
    pub fn activated(
        scope: &Scope<'_, 'g>,
        names: [&str; 2],
        [inputs, hidden, outputs]: [usize; 3],
        activation: Activation,
    ) -> Self {
        let made = match activation {
            Activation::Gelu => hidden,
            Activation::Swiglu => 2 * hidden,
        };
        Mlp {
            first: Linear::new(&scope.enter(names[0]), inputs, made),
            second: Linear::new(&scope.enter(names[1]), hidden, outputs),
            activation,
        }
    }

    /// `[…, inputs]` → `[…, outputs]`
    pub fn forward(&self, x: Tensor<'g>) -> Tensor<'g> {
        let made = self.first.forward(x);
        let hidden = match self.activation {
            Activation::Gelu => made.gelu(),
            Activation::Swiglu => {
                let axis = made.shape().rank() - 1;
                let width = made.shape().dims()[axis] / 2;
                let [gate, value] = made.split(axis, [width; 2]);
                gate.silu() * value
            }
        };
        self.second.forward(hidden)
    }
}

/// The library's MLP with one inner layer: t = GELU(first(x)), t ← t + GELU(inner(t)), y = last(t).
pub struct ResidualMlp<'g> {
    first: Linear<'g>,
    last: Linear<'g>,
    inner: Linear<'g>,
}

impl<'g> ResidualMlp<'g> {
    /// `inputs` → `hidden` → `hidden` → `outputs`
    pub fn new(scope: &Scope<'_, 'g>, [inputs, hidden, outputs]: [usize; 3]) -> Self {
        let linear = |name: &str, inputs, outputs| Linear::new(&scope.enter(name), inputs, outputs);
        ResidualMlp {
            first: linear("linear_pre.0", inputs, hidden),
            last: linear("linear_post", hidden, outputs),
            inner: linear("linears.0.0", hidden, hidden),
        }
    }

    /// `[…, inputs]` → `[…, outputs]`
    pub fn forward(&self, x: Tensor<'g>) -> Tensor<'g> {
        let hidden = self.first.forward(x).gelu();
        self.last.forward(hidden + self.inner.forward(hidden).gelu())
    }
}

/// last(GELU(g) ∘ h) with [g | h] = joined(x), with dropout before and after the last map.
pub struct GatedMlp<'g> {
    joined: Linear<'g>,
    last: Linear<'g>,
    dropout: Dropout<'g>,
}

impl<'g> GatedMlp<'g> {
    /// `width` channels, g and h as well.
    pub fn new(scope: &Scope<'_, 'g>, width: usize, rate: f64) -> Self {
        let linear = |name: &str, outputs: usize| Linear::new(&scope.enter(name), width, outputs);
        let dropout = Dropout::new(scope, rate, Dropped::Elements);
        GatedMlp { joined: linear("net.0", 2 * width), last: linear("net.3", width), dropout }
    }

    /// `[batch, points, width]` → the same
    pub fn forward(&self, features: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        let [_, _, width] = features.dims();
        let [gate, value] = self.joined.forward(features).split(2, [width; 2]);
        let hidden = self.dropout.forward(gate.gelu() * value, mode);
        self.dropout.forward(self.last.forward(hidden), mode)
    }
}
