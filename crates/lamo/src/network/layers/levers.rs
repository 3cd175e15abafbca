//! What a block of LaMO can have beyond the authors'. Each is off by default:
//!
//! - *spectral half*: Mix v = [Mix a | Σ_d F_d⁻¹(R_d F_d b)] with v = [a | b], so that half of the channels are mixed by tokens
//!   and half by the lowest frequencies along each axis ([`AxialConvolution`]), which a grid must have;
//! - *residual update*: the tokens of slices become z + γ Mix(z) instead of Mix(z); the tokens of patches, which have the
//!   residual already, z + γ Mix(LN z) instead of z + Mix(LN z). γ is a number of each block that begins at 0;
//! - *gated MLP*: [`Middle::Swiglu`].

use super::{AxialConvolution, Middle};
use crate::network::{Initial, Scope};
use lamo_tensor::Tensor;

/// The levers that a block has. By default it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Levers {
    /// Frequencies of the spectral half; 0 without one.
    pub modes: usize,
    /// z + γ Mix(z).
    pub residual: bool,
    /// What stands in the middle of the MLP of the block.
    pub mlp: Middle,
}

impl Levers {
    /// Channels that tokens mix, of `width`.
    pub fn mixed(&self, width: usize) -> usize {
        if self.modes > 0 { width / 2 } else { width }
    }
}

/// The levers of one block.
pub struct BlockLevers<'g> {
    /// Points along each axis of a box; a line is one row, a plane `[1, rows, columns]`.
    extents: [usize; 3],
    spectral: Option<AxialConvolution<'g>>,
    /// `[1]` γ
    gain: Option<Tensor<'g>>,
}

impl<'g> BlockLevers<'g> {
    /// `spectral` and `gamma` inside `scope`, as far as there are any, for blocks of `width` channels.
    pub fn new(scope: &Scope<'_, 'g>, levers: Levers, extents: [usize; 3], width: usize) -> Self {
        let (modes, rest) = (levers.modes, width - levers.mixed(width));
        BlockLevers {
            extents,
            spectral: (modes > 0).then(|| AxialConvolution::new(&scope.enter("spectral"), extents, rest, modes)),
            gain: levers.residual.then(|| scope.parameter("gamma", [1], Initial::Constant(0.0))),
        }
    }

    /// Mixes half of the channels with `mix`, or all of them where there is no spectral half: `[batch, points, width]` → the same.
    pub fn mix(&self, features: Tensor<'g>, mix: impl FnOnce(Tensor<'g>) -> Tensor<'g>) -> Tensor<'g> {
        let Some(spectral) = &self.spectral else { return mix(features) };
        let ([batch, _, width], [rows, columns, layers]) = (features.dims(), self.extents);
        let [tokens, rest] = features.split(2, [width / 2, width - width / 2]);
        let field = rest.reshape([batch, rows, columns, layers, width - width / 2]);
        Tensor::concatenate(&[mix(tokens), spectral.forward(field).reshape(rest.shape())], 2)
    }

    /// γ, where the update is residual.
    pub fn gain(&self) -> Option<Tensor<'g>> {
        self.gain
    }
}
