//! Linear attention with rotations by position (OFormer, Li et al. 2022): for each head of d channels,
//!
//! y = R(x) q · ((R(x′) k̂)ᵀ v̂) / keys,  k̂, v̂ normalised over the channels of the head,
//!
//! where R turns the channels of the first part of a head by the first coordinate, those of the second part by the second, and
//! so on: channels k and k + D/2 of a part of D channels are a pair that turns by κ x 10000^{−2k/D}. The authors have two
//! coordinates; channels that do not divide into parts stay as they are.

use super::mask::{over_keys, real_keys};
use super::{Dropout, Dropped, Linear, join_heads, split_heads};
use crate::network::{Initial, Mode, Scope};
use lamo_tensor::{Graph, Tensor};

/// cos and sin of all angles at some points, `[batch, 1, points, space, 1, D/2]` each.
#[derive(Clone, Copy)]
pub struct Angles<'g> {
    cosine: Tensor<'g>,
    sine: Tensor<'g>,
}

/// Channels D of a head that one coordinate turns.
pub fn turned_channels(channels: usize, space: usize) -> usize {
    channels / (2 * space) * 2
}

/// 10000^{−2k/D}, rounded step by step as the authors' code does.
fn frequencies(turned: usize) -> Vec<f32> {
    (0..turned / 2).map(|k| 1.0 / 10000_f32.powf((2 * k) as f32 / turned as f32)).collect()
}

impl<'g> Angles<'g> {
    /// κ x ω at positions `[batch, points, space]`, for heads of `channels` channels.
    pub fn new(positions: Tensor<'g>, channels: usize, factor: f64) -> Self {
        let ([batch, points, space], turned) = (positions.dims(), turned_channels(channels, positions.dims::<3>()[2]));
        let frequencies = positions.graph().constant(&frequencies(turned), [turned / 2]);
        let phase = (positions * factor).reshape([batch, 1, points, space, 1, 1]) * frequencies;
        Angles { cosine: phase.cos(), sine: phase.sin() }
    }

    /// R t of `[batch, heads, points, d]`.
    fn turn(self, by_head: Tensor<'g>) -> Tensor<'g> {
        let [batch, heads, points, channels] = by_head.dims();
        let [_, _, _, space, _, half] = self.cosine.dims();
        let turned = space * 2 * half;
        let pairs = by_head.slice(3, 0, turned).reshape([batch, heads, points, space, 2, half]);
        let [a, b] = pairs.split(4, [1, 1]);
        let (cosine, sine) = (self.cosine, self.sine);
        let result = Tensor::concatenate(&[a * cosine - b * sine, b * cosine + a * sine], 4);
        let result = result.reshape([batch, heads, points, turned]);
        if turned == channels {
            return result;
        }
        Tensor::concatenate(&[result, by_head.slice(3, turned, channels)], 3)
    }
}

/// y of the file's head, with the keys where a mask `[batch, keys]` is 1: `[batch, heads, queries, d]` and twice `[batch, heads, keys, d]` → `[batch, heads, queries, d]`.
fn attend<'g>(
    [query, key, value]: [Tensor<'g>; 3],
    [asking, given]: [Angles<'g>; 2],
    mask: Option<Tensor<'g>>,
) -> Tensor<'g> {
    let [_, _, keys, _] = key.dims();
    let (query, key) = (asking.turn(query), real_keys(given.turn(normalised(key)), mask));
    over_keys(query.matmul(key.transpose().matmul(normalised(value))), keys, mask)
}

/// Mean 0 and variance 1 over the last axis. The authors call an instance norm on `[batch · heads, points, d]`, which does this.
fn normalised(values: Tensor<'_>) -> Tensor<'_> {
    let graph: &Graph = values.graph();
    values.layer_norm(graph.fill(1.0, [1]), graph.fill(0.0, [1]), 1e-5)
}

/// Attention of points to each other; each head has as many channels as the points.
pub struct RotarySelfAttention<'g> {
    heads: usize,
    joined: Tensor<'g>,
    /// With dropout behind it.
    out: Option<(Linear<'g>, Dropout<'g>)>,
}

impl<'g> RotarySelfAttention<'g> {
    /// Points of `width` channels in a space of so many coordinates. One head needs no map behind it, and the authors have none;
    /// they have dropout of `rate` behind the map of several.
    pub fn new(scope: &Scope<'_, 'g>, heads: usize, width: usize, space: usize, rate: f64) -> Self {
        let joined = scope.enter("to_qkv").parameter(
            "weight",
            [3 * heads * width, width],
            Initial::NearIdentity { blocks: heads },
        );
        let out = (heads > 1).then(|| {
            let map = Linear::new(&scope.enter("to_out.0"), heads * width, width);
            (map, Dropout::new(scope, rate, Dropped::Elements))
        });
        declare_frequencies(scope, width, space);
        RotarySelfAttention { heads, joined, out }
    }

    /// `[batch, points, width]` → the same
    pub fn forward(
        &self,
        features: Tensor<'g>,
        angles: Angles<'g>,
        mask: Option<Tensor<'g>>,
        mode: Mode,
    ) -> Tensor<'g> {
        let [_, _, width] = features.dims();
        let parts = features.matmul(self.joined.transpose()).split(2, [self.heads * width; 3]);
        let mixed = join_heads(attend(parts.map(|part| split_heads(part, self.heads)), [angles; 2], mask));
        self.out.as_ref().map_or(mixed, |(map, dropout)| dropout.forward(map.forward(mixed), mode))
    }
}

/// Attention of points to other points; each head has as many channels as the points.
pub struct RotaryCrossAttention<'g> {
    heads: usize,
    query: Tensor<'g>,
    joined: Tensor<'g>,
    out: Linear<'g>,
}

impl<'g> RotaryCrossAttention<'g> {
    /// Points of `width` channels in a space of so many coordinates.
    pub fn new(scope: &Scope<'_, 'g>, heads: usize, width: usize, space: usize) -> Self {
        let map = |name: &str, blocks: usize| {
            let initial = Initial::NearIdentity { blocks };
            scope.enter(name).parameter("weight", [blocks * width, width], initial)
        };
        let (query, joined) = (map("to_q", heads), map("to_kv", 2 * heads));
        let out = Linear::new(&scope.enter("to_out.0"), heads * width, width);
        declare_frequencies(scope, width, space);
        RotaryCrossAttention { heads, query, joined, out }
    }

    /// `[batch, queries, width]` and `[batch, keys, width]` → `[batch, queries, width]`
    pub fn forward(
        &self,
        asking: Tensor<'g>,
        given: Tensor<'g>,
        angles: [Angles<'g>; 2],
        mask: Option<Tensor<'g>>,
    ) -> Tensor<'g> {
        let [_, _, width] = given.dims();
        let [key, value] = given.matmul(self.joined.transpose()).split(2, [self.heads * width; 2]);
        let parts = [asking.matmul(self.query.transpose()), key, value];
        self.out.forward(join_heads(attend(parts.map(|part| split_heads(part, self.heads)), angles, mask)))
    }
}

/// The authors' weights have a table of the frequencies for each attention.
fn declare_frequencies(scope: &Scope<'_, '_>, width: usize, space: usize) {
    let values = frequencies(turned_channels(width, space));
    scope.enter("emb_module").table("inv_freq", [values.len()], values);
}
