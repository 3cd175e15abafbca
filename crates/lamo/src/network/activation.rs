//! Activations: the functions between the linear maps of an MLP, under the names of the Neural-Solver-Library.

use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// σ in y = W₂ σ(W₁ x + b₁) + b₂.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// x Φ(x), the exact form (Hendrycks & Gimpel 2016).
    #[default]
    Gelu,
    /// tanh x
    Tanh,
    /// 1/(1 + e⁻ˣ)
    Sigmoid,
    /// max(0, x)
    Relu,
    /// log(1 + eˣ), x itself above 20.
    Softplus,
    /// x for x > 0, else eˣ − 1 (Clevert et al. 2016).
    Elu,
    /// x/(1 + e⁻ˣ)
    Silu,
}

impl Activation {
    /// Every activation with its name in the library.
    pub const NAMED: [(&str, Activation); 7] = [
        ("gelu", Activation::Gelu),
        ("tanh", Activation::Tanh),
        ("sigmoid", Activation::Sigmoid),
        ("relu", Activation::Relu),
        ("softplus", Activation::Softplus),
        ("ELU", Activation::Elu),
        ("silu", Activation::Silu),
    ];

    /// σ(x), element by element.
    pub fn apply<'g>(self, x: Tensor<'g>) -> Tensor<'g> {
        match self {
            Activation::Gelu => x.gelu(),
            Activation::Tanh => x.tanh(),
            Activation::Sigmoid => x.sigmoid(),
            Activation::Relu => relu(x),
            Activation::Softplus => x.softplus(),
            Activation::Elu => {
                let zero = x.graph().fill(0.0, x.shape());
                zero.less(x).select(x, x.minimum(zero).exp() - 1.0) // the derivative at 0 is 1, as in PyTorch
            }
            Activation::Silu => x.silu(),
        }
    }
}

/// max(0, x), with derivative 0 at 0.
pub fn relu(values: Tensor<'_>) -> Tensor<'_> {
    values.graph().fill(0.0, values.shape()).maximum(values)
}
