//! Two linear maps with a GELU between them.

use super::{Linear, Scope};
use lamo_tensor::Tensor;

/// fc2(GELU(fc1(x))).
pub struct Mlp<'g> {
    fc1: Linear<'g>,
    fc2: Linear<'g>,
}

impl<'g> Mlp<'g> {
    /// `width` → `hidden` → `width`.
    pub fn new(scope: &Scope<'_, 'g>, width: usize, hidden: usize) -> Self {
        Mlp {
            fc1: Linear::new(&scope.enter("fc1"), width, hidden),
            fc2: Linear::new(&scope.enter("fc2"), hidden, width),
        }
    }

    /// `[…, width]` → `[…, width]`
    pub fn forward(&self, x: Tensor<'g>) -> Tensor<'g> {
        self.fc2.forward(self.fc1.forward(x).gelu())
    }
}
