//! Dropout (Srivastava et al. 2014) and stochastic depth (Huang et al. 2016): in training, x is multiplied by
//!
//! 0 with the probability p, 1/(1 − p) with the probability 1 − p,
//!
//! element by element, or one factor for all elements of a sample. Predictions are not changed.

use crate::network::{Mode, Pass, Scope};
use lamo_tensor::{Shape, Tensor};

/// What shares a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Each element has its own.
    Elements,
    /// All elements of a sample have the same: a branch is left out.
    Samples,
}

/// Factors at random.
pub struct Dropout<'g> {
    rate: f64,
    dropped: Dropped,
    pass: Pass<'g>,
}

impl<'g> Dropout<'g> {
    /// p = `rate`.
    pub fn new(scope: &Scope<'_, 'g>, rate: f64, dropped: Dropped) -> Self {
        Dropout { rate, dropped, pass: scope.pass() }
    }

    /// `[batch, …]` → the same
    pub fn forward(&self, x: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        let shape = x.shape();
        let shape = match self.dropped {
            Dropped::Elements => shape,
            Dropped::Samples => {
                let mut dims = vec![1; shape.rank()];
                dims[0] = shape.dims()[0];
                Shape::from(dims)
            }
        };
        let factors = if mode == Mode::Training { self.pass.factors(self.rate, shape) } else { None };
        factors.map_or(x, |factors| x * factors)
    }
}
