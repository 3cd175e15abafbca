//! Inverse Cholesky factors: one block per matrix; see `cholesky.cu`.

use super::{Argument, Family, Lowering, constants};
use crate::compile::plan::Place;
use crate::ops::cholesky::TRIES;

impl Lowering<'_> {
    pub(super) fn inverse_cholesky(&mut self, jitter: f64, from: &Place, to: &Place) {
        let (matrices, side) = (from.layout.dims[0], from.layout.dims[1]);
        let mut text = constants(&[("SIDE", side), ("TRIES", TRIES)]);
        text.push_str(&format!("  __device__ static double jitter() {{ return {jitter:e}; }}\n"));
        text.push_str(&self.offset("matrix", from));
        text.push_str(&self.offset("result", to));
        let arguments = vec![("const float*", Argument::of(from)), ("float*", Argument::of(to))];
        let shared = 2 * side * side * size_of::<f64>();
        self.launch(Family::Cholesky, "inverse_cholesky", &text, matrices, shared, arguments, 0);
    }
}
