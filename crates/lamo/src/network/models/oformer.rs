//! OFormer (Li et al. 2022): an encoder of linear attention on the input points, cross attention from the points that are
//! asked for, and a decoder at each of them. With rotations by position ([`RotarySelfAttention`]),
//!
//! z = E([a | x]):  z ← LN z, z ← z + A(z), z ← LN′ z, z ← z + F(z), F(z) = W′ (GELU(g) ∘ h) with [g | h] = W z;
//! y = P(sin 2πBx, cos 2πBx),  y ← y + A(y, z),  y ← y + F(y);  u = Q([y | x])  (`SpatialEncoder2D`, `PointWiseDecoder2DSimple`).
//!
//! With `steps`, time is a recurrence of the latent field (`SpatialTemporalEncoder2D`, `PointWiseDecoder2D`): y ← y + N([LN y | x])
//! and uₖ = Q(LN y), once for each step. The outputs of all steps stand one after another. B is drawn once and never trained.
//! The encoder of the steady class has dropout in training.
//!
//! A time as an input is ours: the first step is the first time, the last step the last, and y between two steps is
//! interpolated, so that each of as many times as steps has the y of its own step.

mod config;
mod recipes;

pub use config::Config;
use config::{infer, moved, translate};

use super::{Row, Settings, Support};
use crate::error::Refusal;
use crate::network::layers::{
    Angles, Dropout, Dropped, GatedMlp, LayerNorm, Linear, RotaryCrossAttention, RotarySelfAttention,
};
use crate::network::{Initial, Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_tensor::Tensor;
use std::f64::consts::TAU;

/// κ of the cross attention over the points per side.
const CROSS_FACTOR: usize = 16;

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config = Config::of(settings, task)?;
    let side = config.side(task.grid);
    let (encoder, decoder) = (scope.enter("encoder"), scope.enter("decoder"));
    Ok(Box::new(Oformer {
        encoder: Encoder::new(&encoder, task, &config, side),
        query: Query::new(&decoder, task.space, &config),
        factor: (CROSS_FACTOR * side) as f64,
        decoder: Decoder::new(&decoder, task, &config),
    }))
}

/// The model.
struct Oformer<'g> {
    encoder: Encoder<'g>,
    query: Query<'g>,
    /// κ of the cross attention.
    factor: f64,
    decoder: Decoder<'g>,
}

impl<'g> Model<'g> for Oformer<'g> {
    fn forward(&self, input: &Input<'g>, mode: Mode) -> Tensor<'g> {
        self.at(input, input.positions, mode)
    }

    fn forward_at(&self, input: &Input<'g>, queries: Tensor<'g>, mode: Mode) -> Option<Tensor<'g>> {
        Some(self.at(input, queries, mode))
    }
}

impl<'g> Oformer<'g> {
    /// At positions `[batch, queries, space]`: `[batch, queries, outputs]`.
    fn at(&self, input: &Input<'g>, positions: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        let given = self.encoder.forward(input, mode);
        let [_, _, width] = given.dims();
        let angles = [positions, input.positions].map(|positions| Angles::new(positions, width, self.factor));
        let features = self.query.forward(positions, (given, input.mask), angles, mode);
        self.decoder.forward(features, positions, input.time)
    }
}

/// E: the stream itself is normalised, so that each residual starts behind the norm.
struct Encoder<'g> {
    embed: Linear<'g>,
    dropout: Dropout<'g>,
    layers: Vec<Layer<'g>>,
    out: Linear<'g>,
}

struct Layer<'g> {
    /// κ
    factor: f64,
    norms: [LayerNorm<'g>; 2],
    attention: RotarySelfAttention<'g>,
    gated: GatedMlp<'g>,
}

impl<'g> Encoder<'g> {
    fn new(scope: &Scope<'_, 'g>, task: &Task, config: &Config, side: usize) -> Self {
        let width = config.width;
        let inputs = task.input_channels() + task.space;
        let embed = Linear::without_bias(&scope.enter("to_embedding.0"), inputs, width);
        let dropout = Dropout::new(scope, config.embedding_dropout, Dropped::Elements);
        let layer = |(number, factor): (usize, f64)| {
            let part = |name: usize| scope.enter("s_transformer.layers").enter(&format!("{number}.{name}"));
            let first = LayerNorm::new(&part(0), width);
            let attention = RotarySelfAttention::new(&part(1), config.heads, width, task.space, config.dropout);
            let second = LayerNorm::new(&part(2), width);
            let gated = GatedMlp::new(&part(3), width, config.dropout);
            Layer { factor, norms: [first, second], attention, gated }
        };
        let layers = config.factors(side).into_iter().enumerate().map(layer).collect();
        let name = if config.steps == 0 { "to_out.0" } else { "project_to_latent.0" };
        Encoder { embed, dropout, layers, out: Linear::without_bias(&scope.enter(name), width, config.cross_width()) }
    }

    /// `[batch, points, cross width]`
    fn forward(&self, input: &Input<'g>, mode: Mode) -> Tensor<'g> {
        let channels = match input.functions {
            Some(functions) => Tensor::concatenate(&[functions, input.positions], 2),
            None => input.positions,
        };
        let embedded = self.dropout.forward(self.embed.forward(channels), mode);
        let features = self.layers.iter().fold(embedded, |features, layer| {
            let [first, second] = &layer.norms;
            let normed = first.forward(features);
            let angles = Angles::new(input.positions, normed.dims::<3>()[2], layer.factor);
            let normed = second.forward(normed + layer.attention.forward(normed, angles, input.mask, mode));
            normed + layer.gated.forward(normed, mode)
        });
        self.out.forward(features)
    }
}

/// y: features of the points that are asked for, which have seen those that are given.
struct Query<'g> {
    /// `[space, latent/2]` B
    frequencies: Tensor<'g>,
    project: [Linear<'g>; 2],
    attention: RotaryCrossAttention<'g>,
    gated: GatedMlp<'g>,
}

impl<'g> Query<'g> {
    fn new(scope: &Scope<'_, 'g>, space: usize, config: &Config) -> Self {
        let (latent, width) = (config.latent, config.cross_width());
        let projection = scope.enter("coordinate_projection");
        let normal = Initial::Normal { deviation: config.frequency };
        let frequencies = projection.enter("0").state("_B", [space, latent / 2], normal).value();
        let linear = |name: &str, outputs: usize| Linear::without_bias(&projection.enter(name), latent, outputs);
        let project = [linear("1", latent), linear("3", width)];
        let cross = scope.enter("decoding_transformer");
        let attention = RotaryCrossAttention::new(&cross.enter("cross_attn_module"), config.cross_heads, width, space);
        Query { frequencies, project, attention, gated: GatedMlp::new(&cross.enter("ffn"), width, 0.0) }
    }

    /// `[batch, queries, cross width]`
    fn forward(
        &self,
        positions: Tensor<'g>,
        (given, mask): (Tensor<'g>, Option<Tensor<'g>>),
        angles: [Angles<'g>; 2],
        mode: Mode,
    ) -> Tensor<'g> {
        let phase = (positions * TAU).matmul(self.frequencies); // [batch, queries, latent/2]
        let waves = Tensor::concatenate(&[phase.sin(), phase.cos()], 2);
        let [first, second] = &self.project;
        let features = second.forward(first.forward(waves).gelu());
        let features = features + self.attention.forward(features, given, angles, mask);
        features + self.gated.forward(features, mode)
    }
}

/// Q, and the latent steps in front of it.
enum Decoder<'g> {
    Steady([Linear<'g>; 3]),
    Recurrent {
        steps: usize,
        expand: Linear<'g>,
        propagators: Vec<(LayerNorm<'g>, [Linear<'g>; 3])>,
        norm: LayerNorm<'g>,
        out: [Linear<'g>; 3],
    },
}

impl<'g> Decoder<'g> {
    fn new(scope: &Scope<'_, 'g>, task: &Task, config: &Config) -> Self {
        let (latent, space, half) = (config.latent, task.space, config.latent / 2);
        let plain = |scope: &Scope<'_, 'g>, name: &str, inputs, outputs| {
            Linear::without_bias(&scope.enter(name), inputs, outputs)
        };
        let out = scope.enter("to_out");
        if config.steps == 0 {
            let last = Linear::new(&out.enter("4"), half, task.output_channels());
            return Decoder::Steady([plain(&out, "0", latent + space, latent), plain(&out, "2", latent, half), last]);
        }
        let expand = Linear::new(&scope.enter("expand_feat"), half, latent);
        let propagator = |number: usize| {
            let scope = scope.enter("propagator").enter(&number.to_string());
            let norm = LayerNorm::new(&scope.enter("0"), latent);
            let inputs = [latent + space, latent, latent];
            let maps = [0, 1, 2].map(|layer| plain(&scope.enter("1"), &(2 * layer).to_string(), inputs[layer], latent));
            (norm, maps)
        };
        let propagators = (0..config.propagators).map(propagator).collect();
        let norm = LayerNorm::new(&out.enter("0"), latent);
        let calls = if task.time.is_input() { 1 } else { config.steps };
        let last = Linear::new(&out.enter("5"), half, task.output_channels() / calls);
        let out = [plain(&out, "1", latent, half), plain(&out, "3", half, half), last];
        Decoder::Recurrent { steps: config.steps, expand, propagators, norm, out }
    }

    /// `[batch, queries, cross width]` → `[batch, queries, outputs]`, of all steps or at times `[batch, 1]`
    fn forward(&self, features: Tensor<'g>, positions: Tensor<'g>, time: Option<Tensor<'g>>) -> Tensor<'g> {
        let beside = |features: Tensor<'g>| Tensor::concatenate(&[features, positions], 2);
        match self {
            Decoder::Steady(maps) => chain(maps, beside(features)),
            Decoder::Recurrent { steps, expand, propagators, norm, out } => {
                let mut latent = expand.forward(features);
                let step = |_: usize| {
                    for (norm, maps) in propagators {
                        latent = latent + chain(maps, beside(norm.forward(latent)));
                    }
                    latent // [batch, queries, latent]
                };
                let latents: Vec<_> = (0..*steps).map(step).collect();
                match time {
                    Some(time) => chain(out, norm.forward(interpolated(&latents, time))),
                    None => {
                        let found = latents.iter().map(|latent| chain(out, norm.forward(*latent)));
                        Tensor::concatenate(&found.collect::<Vec<_>>(), 2)
                    }
                }
            }
        }
    }
}

/// Σ max(0, 1 − |s − k|) yₖ with s = t (steps − 1), at a time t `[batch, 1]` from 0 to 1.
fn interpolated<'g>(latents: &[Tensor<'g>], time: Tensor<'g>) -> Tensor<'g> {
    let ([batch, _], graph) = (time.dims(), time.graph());
    let place = (time.clamp(0.0, 1.0) * (latents.len() - 1) as f64).reshape([batch, 1, 1]);
    let weighed = latents.iter().enumerate().map(|(step, latent)| {
        let weight = (1.0 - (place - step as f64).abs()).maximum(graph.fill(0.0, [1]));
        *latent * weight
    });
    weighed.reduce(|sum, next| sum + next).expect("there is a step")
}

/// Three linear maps with GELUs between them.
fn chain<'g>([first, second, third]: &[Linear<'g>; 3], features: Tensor<'g>) -> Tensor<'g> {
    third.forward(second.forward(first.forward(features).gelu()).gelu())
}

pub(super) const ROW: Row = Row {
    name: "oformer",
    summary: "OFormer (TMLR 2023): linear attention turned by position, decoded at each point",
    paper: "Li, Meidani, Barati Farimani: Transformer for Partial Differential Equations' Operator Learning, TMLR 2023, \
            arXiv:2205.13671",
    supports: Support::EVERYTHING,
    ragged: true,
    build,
    defaults: super::defaults::<Config>,
    moved,
    embedding: |_, _| None,
    recipe: recipes::recipe,
    variants: &[],
    quick: recipes::quick,
    own: |_| Settings::new(),
    tiny: recipes::tiny,
    infer,
    translate: &[
        ("oformer_steady", |authored| translate(authored, false)),
        ("oformer_ns", |authored| translate(authored, true)),
    ],
};
