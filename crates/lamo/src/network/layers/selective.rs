//! What the three mixers share: the discretised state space (Gu & Dao 2023, Eqs. 1, 2 and 4) and the convolution in
//! front of it.

use crate::network::probe::ShownScan;
use crate::network::{Initial, Scope};
use lamo_tensor::{ConvolutionOptions, ScanInput, Tensor};
use serde::{Deserialize, Serialize};

/// How the continuous system h′ = A h + B x (Eq. 1a) becomes the recurrence h_t = e^{ΔA} h_{t−1} + B̄ x_t (Eq. 2a) with
/// step Δ. The decay is e^{ΔA} in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discretisation {
    /// B̄ = Δ B: what the authors' kernels compute.
    #[default]
    Euler,
    /// B̄ = (e^{ΔA} − 1)/A · B, the exact zero-order hold (Eq. 4): what the paper's text says.
    Zoh,
}

/// Width over heads per direction, in the mixer of planes.
const WIDTH_PER_HEAD: usize = 16;

/// Sizes of a mixer's selective state space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// N, size of the state.
    pub states: usize,
    /// Inner channels over the width.
    pub expand: usize,
    /// P, channels of a head.
    pub head_width: usize,
    /// Groups of heads that share B and C.
    pub groups: usize,
    /// Width of the convolution.
    pub convolution: usize,
    /// Directions of the scan: 1, 2 or 4. Four need a plane of tokens, or as many tokens as a square has.
    pub directions: usize,
    /// Heads in each direction of the mixer of planes; 0 is one for each 16 channels of the width.
    pub scan_heads: usize,
    /// How Δ enters.
    pub discretisation: Discretisation,
}

impl Selection {
    /// I, channels inside the mixer.
    pub fn inner(&self, width: usize) -> usize {
        self.expand * width
    }

    /// Heads of I/P channels.
    pub fn heads(&self, width: usize) -> usize {
        self.inner(width) / self.head_width
    }

    /// Heads in each direction of the mixer of planes: those chosen, or ⌈width/16⌉ as in the authors' code.
    pub fn cross_heads(&self, width: usize) -> usize {
        if self.scan_heads == 0 { width.div_ceil(WIDTH_PER_HEAD) } else { self.scan_heads }
    }
}

/// ℓ = Δ A and the gain g with B̄ = g B, for Δ > 0 and A < 0 of shapes that broadcast.
pub fn discretise<'g>(discretisation: Discretisation, step: Tensor<'g>, rate: Tensor<'g>) -> (Tensor<'g>, Tensor<'g>) {
    let log_decay = step * rate;
    let gain = match discretisation {
        Discretisation::Euler => step,
        Discretisation::Zoh => {
            // e^z − 1 = 2t/(1 − t) with t = tanh(z/2): no digits cancel at any step size.
            let t = (log_decay * 0.5).tanh();
            t * 2.0 / (1.0 - t) / rate
        }
    };
    (log_decay, gain)
}

/// The side of the square that some tokens fill; `None` for other numbers of tokens.
pub fn square_side(tokens: usize) -> Option<usize> {
    let side = tokens.isqrt();
    (side * side == tokens).then_some(side)
}

/// `[batch, side², channels]` tokens of a square, row by row, in the order column by column; the same once more gives them back.
pub(crate) fn by_columns(tokens: Tensor<'_>) -> Tensor<'_> {
    let [batch, length, channels] = tokens.dims();
    let side = square_side(length).expect("four directions need as many tokens as a square has");
    tokens.reshape([batch, side, side, channels]).swap(1, 2).reshape([batch, length, channels])
}

/// The token at each place of [`by_columns`].
pub(super) fn column_order(length: usize) -> Vec<u32> {
    let side = length.isqrt();
    (0..length).map(|place| (place % side * side + place / side) as u32).collect()
}

/// A scan as a probe sees it; `tokens` are those at its places.
pub(super) fn shown<'g>(
    scan: ScanInput<'g>,
    orders: &[Vec<u32>],
    tokens: Option<Vec<u32>>,
    shifted: bool,
) -> ShownScan<Tensor<'g>> {
    let ScanInput { signal, log_decay, gain, write, read, initial } = scan;
    ShownScan { signal, log_decay, gain, write, read, initial, orders: orders.to_vec(), tokens, shifted }
}

/// A convolution along the tokens, one filter per channel.
pub(crate) struct TokenConvolution<'g> {
    /// `[channels, 1, width]`
    weight: Tensor<'g>,
    /// `[channels]`
    bias: Tensor<'g>,
}

impl<'g> TokenConvolution<'g> {
    pub(crate) fn new(scope: &Scope<'_, 'g>, channels: usize, width: usize) -> Self {
        TokenConvolution {
            weight: scope.parameter("weight", [channels, 1, width], Initial::fan_in(width)),
            bias: scope.parameter("bias", [channels], Initial::fan_in(width)),
        }
    }

    /// `[batch, tokens, channels]` with `before` and `after` zeros at the ends.
    fn apply(&self, x: Tensor<'g>, kernel: Tensor<'g>, [before, after]: [usize; 2]) -> Tensor<'g> {
        let [batch, tokens, channels] = x.dims();
        let options = ConvolutionOptions {
            groups: channels,
            padding: [[0, 0], [before, after]],
            ..ConvolutionOptions::default()
        };
        let [_, _, width] = kernel.dims();
        let line = x.reshape([batch, 1, tokens, channels]);
        let y = line.convolve(kernel.reshape([channels, 1, 1, width]), options);
        y.reshape([batch, tokens, channels]) + self.bias
    }

    /// Each token sees equally many tokens before and after it; the width is odd.
    pub(crate) fn centred(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [_, _, width] = self.weight.dims();
        self.apply(x, self.weight, [width / 2, width / 2])
    }

    /// Each token sees itself and the tokens before it.
    pub(crate) fn causal(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [_, _, width] = self.weight.dims();
        self.apply(x, self.weight, [width - 1, 0])
    }

    /// Each token sees itself and the tokens after it: the causal convolution of the reversed sequence, by the flipped
    /// kernel.
    pub(crate) fn anticausal(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [_, _, width] = self.weight.dims();
        self.apply(x, self.weight.flip(2), [0, width - 1])
    }
}
