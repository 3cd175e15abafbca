//! Two linear maps with a GELU between them.

use super::Linear;
use crate::network::Scope;
use lamo_tensor::Tensor;

/// second(GELU(first(x))).
pub struct Mlp<'g> {
    first: Linear<'g>,
    second: Linear<'g>,
}

impl<'g> Mlp<'g> {
    /// `inputs` → `hidden` → `outputs`; the grid models call the maps `fc1` and `fc2`.
    pub fn new(scope: &Scope<'_, 'g>, [inputs, hidden, outputs]: [usize; 3]) -> Self {
        Mlp::named(scope, ["fc1", "fc2"], [inputs, hidden, outputs])
    }

    /// An MLP whose maps are called `names`.
    pub fn named(scope: &Scope<'_, 'g>, names: [&str; 2], [inputs, hidden, outputs]: [usize; 3]) -> Self {
        Mlp {
            first: Linear::new(&scope.enter(names[0]), inputs, hidden),
            second: Linear::new(&scope.enter(names[1]), hidden, outputs),
        }
    }

    /// `[…, inputs]` → `[…, outputs]`
    pub fn forward(&self, x: Tensor<'g>) -> Tensor<'g> {
        self.second.forward(self.first.forward(x).gelu())
    }
}
