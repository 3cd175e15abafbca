//! Patches: a plane cut into p × p squares, each a token, and back.

use super::LayerNorm;
use crate::network::{Initial, Scope};
use lamo_tensor::Tensor;

/// `t_e = LN(Σ_{c,u,v} W[e,c,u,v] · f[c, i p + u, j p + v] + b_e)`: every square becomes a token.
pub struct Patchify<'g> {
    side: usize,
    /// `[width, inputs, p, p]`
    weight: Tensor<'g>,
    /// `[width]`
    bias: Tensor<'g>,
    norm: LayerNorm<'g>,
}

impl<'g> Patchify<'g> {
    /// `inputs` channels to `width`.
    pub fn new(scope: &Scope<'_, 'g>, side: usize, inputs: usize, width: usize) -> Self {
        let normal = Initial::Normal { deviation: 1.0 };
        Patchify {
            side,
            weight: scope.parameter("WE", [width, inputs, side, side], normal),
            bias: scope.parameter("bE", [width], normal),
            norm: LayerNorm::new(&scope.enter("layer_norm"), width),
        }
    }

    /// `[batch, rows, columns, inputs]` → `[batch, tokens, width]`; the patch divides rows and columns.
    pub fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let [batch, rows, columns, inputs] = image.dims();
        let (side, [width, ..]) = (self.side, self.weight.dims::<4>());
        let (down, across) = (rows / side, columns / side);
        let squares = image.reshape([batch, down, side, across, side, inputs]).permute(&[0, 1, 3, 5, 2, 4]);
        let flat = squares.reshape([batch, down * across, inputs * side * side]); // channel, then row, then column
        let weight = self.weight.reshape([width, inputs * side * side]);
        self.norm.forward(flat.matmul(weight.transpose()) + self.bias)
    }
}

/// `o[ch, i p + u, j p + v] = Σ_e s_e W[e,ch,u,v]`, `s = LN(t) + b`: every token becomes a square.
pub struct Depatchify<'g> {
    side: usize,
    /// `[width, outputs, p, p]`
    weight: Tensor<'g>,
    /// `[width]`, added to the token before it is projected.
    bias: Tensor<'g>,
    norm: LayerNorm<'g>,
}

impl<'g> Depatchify<'g> {
    /// `width` channels to `outputs`.
    pub fn new(scope: &Scope<'_, 'g>, side: usize, width: usize, outputs: usize) -> Self {
        let normal = Initial::Normal { deviation: 1.0 };
        Depatchify {
            side,
            weight: scope.parameter("WE", [width, outputs, side, side], normal),
            bias: scope.parameter("bE", [width], normal),
            norm: LayerNorm::new(&scope.enter("layer_norm"), width),
        }
    }

    /// `[batch, tokens, width]` → `[batch, rows, columns, outputs]`
    pub fn forward(&self, tokens: Tensor<'g>, rows: usize, columns: usize) -> Tensor<'g> {
        let [batch, _, width] = tokens.dims();
        let (side, [_, outputs, ..]) = (self.side, self.weight.dims::<4>());
        let (down, across) = (rows / side, columns / side);
        let shifted = self.norm.forward(tokens) + self.bias;
        let flat = shifted.matmul(self.weight.reshape([width, outputs * side * side]));
        let squares = flat.reshape([batch, down, across, outputs, side, side]).permute(&[0, 1, 4, 2, 5, 3]);
        squares.reshape([batch, rows, columns, outputs])
    }
}
