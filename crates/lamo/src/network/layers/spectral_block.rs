//! The neural spectral block (Wu et al. 2023, Eqs. 3 to 6): each patch of an image passes through a few latent tokens,
//!
//! Z = softmax(L Kᵀ) V + L,  z ← z + Σⱼ (wⱼ sin(πjz/b) + w_{b+j} cos(πjz/b)),  x ← x + softmax(Q Zᵀ) Z,
//!
//! where K, V and Q are linear maps of the pixels x of the patch, L are learned tokens, and 0 ≤ j < b.

use super::Pointwise;
use crate::network::{Initial, Scope};
use lamo_tensor::Tensor;
use std::f64::consts::PI;

/// Sizes of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockShape {
    /// 1 on a line, 2 on a plane, 3 in a volume.
    pub axes: usize,
    /// Channels, which the heads divide.
    pub width: usize,
    /// Heads of the attention.
    pub heads: usize,
    /// Latent tokens of each head.
    pub tokens: usize,
    /// b, half the number of sines and cosines.
    pub bases: usize,
    /// Extents of a patch as those of a box: on a plane one row before its own two axes, on a line two.
    pub patch: [usize; 3],
}

/// The block.
pub struct SpectralBlock<'g> {
    shape: BlockShape,
    /// `[width, 2 b]` w
    weights: Tensor<'g>,
    /// `[heads, tokens, c]` L
    latent: Tensor<'g>,
    encode: Pointwise<'g>,
    decode: Pointwise<'g>,
}

impl<'g> SpectralBlock<'g> {
    /// `weights`, `latent`, `encoder_attn` and `decoder_attn` inside `scope`.
    pub fn new(scope: &Scope<'_, 'g>, shape: BlockShape) -> Self {
        let BlockShape { axes, width, heads, tokens, bases, .. } = shape;
        let uniform = Initial::Uniform { low: 0.0, high: 1.0 / width as f64 };
        SpectralBlock {
            shape,
            weights: scope.parameter("weights", [width, 2 * bases], uniform),
            latent: scope.parameter("latent", [heads, tokens, width / heads], uniform),
            encode: Pointwise::new(&scope.enter("encoder_attn"), axes, width, 2 * width),
            decode: Pointwise::new(&scope.enter("decoder_attn"), axes, width, width),
        }
    }

    /// `[batch, …extents, width]` → `[batch, …extents, width]`; the patch divides the extents.
    pub fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let BlockShape { width, heads, tokens, patch, .. } = self.shape;
        let (shape, channels) = (image.shape(), width / heads);
        let axes = shape.rank() - 2;
        let (batch, extents, patch) = (shape.dims()[0], &shape.dims()[1..=axes], &patch[3 - axes..]);
        let across: Vec<usize> = extents.iter().zip(patch).map(|(extent, side)| extent / side).collect();
        let (patches, pixels) = (batch * across.iter().product::<usize>(), patch.iter().product::<usize>());
        // Each axis is cut into patches and the pixels of one; `order` has all patches, then the heads, then all pixels.
        let cut = across.iter().zip(patch).flat_map(|(&count, &side)| [count, side]);
        let cut: Vec<usize> = [batch].into_iter().chain(cut).collect();
        let (firsts, seconds) = ((1..=axes).map(|axis| 2 * axis - 1), (1..=axes).map(|axis| 2 * axis));
        let [of_heads, of_channels] = [2 * axes + 1, 2 * axes + 2];
        let order = [0].into_iter().chain(firsts).chain([of_heads]).chain(seconds).chain([of_channels]);
        let order: Vec<usize> = order.collect();
        // `count` values of each channel, `[patches, heads, pixels, c, count]`
        let by_patch = |image: Tensor<'g>, count: usize| {
            let split = image.reshape([&cut[..], &[heads, channels * count]].concat());
            split.permute(&order).reshape([patches, heads, pixels, channels, count])
        };
        let pairs = by_patch(self.encode.forward(image), 2); // key and value of a channel side by side
        let [keys, values] = pairs.split(4, [1, 1]).map(|part| part.reshape([patches, heads, pixels, channels]));
        let latent = self.latent.broadcast_to([patches, heads, tokens, channels]);
        let collected = latent.matmul(keys.transpose()).lean_softmax().matmul(values) + latent; // Z
        let latent = self.transition(collected);
        let queries = by_patch(self.decode.forward(image), 1).reshape([patches, heads, pixels, channels]);
        let spread = queries.matmul(latent.transpose()).lean_softmax().matmul(latent); // [patches, heads, pixels, c]
        let spread = spread.reshape([&[batch], &across[..], &[heads], patch, &[channels]].concat());
        // Back to the order of the axes in `cut`, the heads before the channels.
        let back = (0..axes).flat_map(|axis| [1 + axis, 2 + axes + axis]);
        let back: Vec<usize> = [0].into_iter().chain(back).chain([1 + axes, of_channels]).collect();
        image + spread.permute(&back).reshape(shape)
    }

    /// The sum of sines and cosines, `[patches, heads, tokens, c]` → `[patches, heads, tokens, c]`.
    fn transition(&self, latent: Tensor<'g>) -> Tensor<'g> {
        let ([patches, heads, tokens, channels], bases) = (latent.dims(), self.shape.bases);
        let numbers: Vec<f32> = (0..bases).map(|j| j as f32).collect();
        let phases = latent.reshape([patches, heads, tokens, channels, 1]) * latent.graph().constant(&numbers, [bases]);
        let phases = phases * (PI / bases as f64); // [patches, heads, tokens, c, b]
        let [sines, cosines] = self.weights.reshape([heads, 1, channels, 2 * bases]).split(3, [bases; 2]);
        let sum = (phases.sin() * sines + phases.cos() * cosines).sum(&[4]);
        latent + sum.reshape(latent.shape())
    }
}
