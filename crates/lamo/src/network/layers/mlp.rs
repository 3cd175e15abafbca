//! Linear maps with activations between them.

use super::{Activation, Dropout, Dropped, Linear};
use crate::network::{Mode, Scope};
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// What stands between the two maps of an MLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Middle {
    /// The activation of the scope: GELU(h), where none is chosen.
    #[default]
    #[serde(rename = "gelu")]
    Activation,
    /// SiLU(g) ∘ h with [g | h] = first(x) (Shazeer 2020).
    Swiglu,
}

/// second(σ(first(x))), or second(SiLU(g) ∘ h) with [g | h] = first(x).
pub struct Mlp<'g> {
    first: Linear<'g>,
    second: Linear<'g>,
    middle: Middle,
    activation: Activation,
}

impl<'g> Mlp<'g> {
    /// `inputs` → `hidden` → `outputs` with a GELU; the grid models call the maps `fc1` and `fc2`.
    pub fn new(scope: &Scope<'_, 'g>, sizes: [usize; 3]) -> Self {
        Mlp::named(&scope.with_activation(Activation::Gelu), ["fc1", "fc2"], sizes)
    }

    /// An MLP whose maps are called `names`, with the activation of the scope.
    pub fn named(scope: &Scope<'_, 'g>, names: [&str; 2], sizes: [usize; 3]) -> Self {
        Mlp::with_middle(scope, names, sizes, Middle::Activation)
    }

    /// The same with a choice of what stands in the middle; a gate has `hidden` channels of its own.
    pub fn with_middle(
        scope: &Scope<'_, 'g>,
        names: [&str; 2],
        [inputs, hidden, outputs]: [usize; 3],
        middle: Middle,
    ) -> Self {
        let made = match middle {
            Middle::Activation => hidden,
            Middle::Swiglu => 2 * hidden,
        };
        Mlp {
            first: Linear::new(&scope.enter(names[0]), inputs, made),
            second: Linear::new(&scope.enter(names[1]), hidden, outputs),
            middle,
            activation: scope.activation(),
        }
    }

    /// `[…, inputs]` → `[…, outputs]`
    pub fn forward(&self, x: Tensor<'g>) -> Tensor<'g> {
        let made = self.first.forward(x);
        let hidden = match self.middle {
            Middle::Activation => self.activation.apply(made),
            Middle::Swiglu => {
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
