//! What a block of LaMO can have beyond the authors'. Each is off by default:
//!
//! - *positional convolution*: v ← v + D v before the block, D a depthwise 3 × 3 convolution with a bias (3 taps on a
//!   line, 3 × 3 × 3 in a volume);
//! - *spectral half*: Mix v = [Mix a | Σ_d F_d⁻¹(R_d F_d b)] with v = [a | b], so that half of the channels are mixed by tokens
//!   and half by the lowest frequencies along each axis ([`AxialConvolution`]);
//! - *residual update*: the tokens of slices become z + γ Mix(z) instead of Mix(z); the tokens of patches, which have the
//!   residual already, z + γ Mix(LN z) instead of z + Mix(LN z). γ is a number of each block that begins at 0;
//! - *gated MLP*: [`Activation::Swiglu`].
//!
//! The first two need a grid with axes.

use super::{Activation, AxialConvolution, DepthwiseConvolution};
use crate::network::{Initial, Scope};
use lamo_tensor::Tensor;

/// The levers that a block has. By default it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Levers {
    /// v ← v + D v before the block.
    pub positional: bool,
    /// Frequencies of the spectral half; 0 without one.
    pub modes: usize,
    /// z + γ Mix(z).
    pub residual: bool,
    /// The activation in the MLP of the block.
    pub activation: Activation,
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
    positional: Option<DepthwiseConvolution<'g>>,
    spectral: Option<AxialConvolution<'g>>,
    /// `[1]` γ
    gain: Option<Tensor<'g>>,
}

impl<'g> BlockLevers<'g> {
    /// `position`, `spectral` and `gamma` inside `scope`, as far as there are any.
    pub fn new(scope: &Scope<'_, 'g>, levers: Levers, extents: [usize; 3], width: usize) -> Self {
        let Levers { positional, modes, residual, .. } = levers;
        let rest = width - levers.mixed(width);
        BlockLevers {
            extents,
            positional: positional.then(|| DepthwiseConvolution::new(&scope.enter("position"), extents, width)),
            spectral: (modes > 0).then(|| AxialConvolution::new(&scope.enter("spectral"), extents, rest, modes)),
            gain: residual.then(|| scope.parameter("gamma", [1], Initial::Constant(0.0))),
        }
    }

    /// `[batch, points, width]` → the same, before the block.
    pub fn enter(&self, features: Tensor<'g>) -> Tensor<'g> {
        match &self.positional {
            Some(convolution) => features + convolution.forward(self.field(features)).reshape(features.shape()),
            None => features,
        }
    }

    /// Mixes half of the channels with `mix`, or all of them where there is no spectral half.
    pub fn mix(&self, features: Tensor<'g>, mix: impl FnOnce(Tensor<'g>) -> Tensor<'g>) -> Tensor<'g> {
        let Some(spectral) = &self.spectral else { return mix(features) };
        let [_, _, width] = features.dims();
        let [tokens, waves] = features.split(2, [width / 2, width - width / 2]);
        let waved = spectral.forward(self.field(waves)).reshape(waves.shape());
        Tensor::concatenate(&[mix(tokens), waved], 2)
    }

    /// γ, where the update is residual.
    pub fn gain(&self) -> Option<Tensor<'g>> {
        self.gain
    }

    /// `[batch, points, channels]` → `[batch, …extents, channels]`
    fn field(&self, features: Tensor<'g>) -> Tensor<'g> {
        let ([batch, _, channels], [rows, columns, layers]) = (features.dims(), self.extents);
        features.reshape([batch, rows, columns, layers, channels])
    }
}
