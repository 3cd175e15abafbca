//! Patches: a plane cut into p × p squares, or a line into p points, each a token, and back. A line is a plane of one row.

use super::LayerNorm;
use crate::network::{Initial, Scope};
use lamo_tensor::Tensor;

/// `t_e = LN(Σ_{c,u,v} W[e,c,u,v] · f[c, i p + u, j p + v] + b_e)`: every patch becomes a token.
pub struct Patchify<'g> {
    /// Rows and columns of a patch.
    patch: [usize; 2],
    /// `[width, inputs, p, p]`
    weight: Tensor<'g>,
    /// `[width]`
    bias: Tensor<'g>,
    norm: LayerNorm<'g>,
}

impl<'g> Patchify<'g> {
    /// `inputs` channels to `width`, in patches of so many rows and columns.
    pub fn new(scope: &Scope<'_, 'g>, patch: [usize; 2], inputs: usize, width: usize) -> Self {
        let normal = Initial::Normal { deviation: 1.0 };
        Patchify {
            patch,
            weight: scope.parameter("WE", [width, inputs, patch[0], patch[1]], normal),
            bias: scope.parameter("bE", [width], normal),
            norm: LayerNorm::new(&scope.enter("layer_norm"), width),
        }
    }

    /// `[batch, rows, columns, inputs]` → `[batch, tokens, width]`; the patch divides rows and columns.
    pub fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let [batch, rows, columns, inputs] = image.dims();
        let ([height, length], [width, ..]) = (self.patch, self.weight.dims::<4>());
        let (down, across) = (rows / height, columns / length);
        let patches = image.reshape([batch, down, height, across, length, inputs]).permute(&[0, 1, 3, 5, 2, 4]);
        let flat = patches.reshape([batch, down * across, inputs * height * length]); // channel, then row, then column
        let weight = self.weight.reshape([width, inputs * height * length]);
        self.norm.forward(flat.matmul(weight.transpose()) + self.bias)
    }
}

/// `o[ch, i p + u, j p + v] = Σ_e s_e W[e,ch,u,v]`, `s = LN(t) + b`: every token becomes a patch.
pub struct Depatchify<'g> {
    /// Rows and columns of a patch.
    patch: [usize; 2],
    /// `[width, outputs, p, p]`
    weight: Tensor<'g>,
    /// `[width]`, added to the token before it is projected.
    bias: Tensor<'g>,
    norm: LayerNorm<'g>,
}

impl<'g> Depatchify<'g> {
    /// `width` channels to `outputs`, in patches of so many rows and columns.
    pub fn new(scope: &Scope<'_, 'g>, patch: [usize; 2], width: usize, outputs: usize) -> Self {
        let normal = Initial::Normal { deviation: 1.0 };
        Depatchify {
            patch,
            weight: scope.parameter("WE", [width, outputs, patch[0], patch[1]], normal),
            bias: scope.parameter("bE", [width], normal),
            norm: LayerNorm::new(&scope.enter("layer_norm"), width),
        }
    }

    /// `[batch, tokens, width]` → `[batch, rows, columns, outputs]`
    pub fn forward(&self, tokens: Tensor<'g>, rows: usize, columns: usize) -> Tensor<'g> {
        let [batch, _, width] = tokens.dims();
        let ([height, length], [_, outputs, ..]) = (self.patch, self.weight.dims::<4>());
        let (down, across) = (rows / height, columns / length);
        let shifted = self.norm.forward(tokens) + self.bias;
        let flat = shifted.matmul(self.weight.reshape([width, outputs * height * length]));
        let patches = flat.reshape([batch, down, across, outputs, height, length]).permute(&[0, 1, 4, 2, 5, 3]);
        patches.reshape([batch, rows, columns, outputs])
    }
}
