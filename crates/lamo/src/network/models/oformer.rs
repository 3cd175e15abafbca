//! OFormer (Li et al. 2022): an encoder of linear attention on the input points, cross attention from the points that are
//! asked for, and a decoder at each of them. With rotations by position ([`RotarySelfAttention`]),
//!
//! z = E([a | x]):  z ← LN z, z ← z + A(z), z ← LN′ z, z ← z + F(z), F(z) = W′ (GELU(g) ∘ h) with [g | h] = W z;
//! y = P(sin 2πBx, cos 2πBx),  y ← y + A(y, z),  y ← y + F(y);  u = Q([y | x])  (`SpatialEncoder2D`, `PointWiseDecoder2DSimple`).
//!
//! With `steps`, time is a recurrence of the latent field (`SpatialTemporalEncoder2D`, `PointWiseDecoder2D`): y ← y + N([LN y | x])
//! and uₖ = Q(LN y), once for each step. The outputs of all steps stand one after another. B is drawn once and never trained.
//! The authors' encoder of the steady class has a dropout of a few percent in training, which is not available here.

use super::{Authored, Hints, Inferred, Row, Settings, Shapes, Support, Translated, check_positive, read};
use crate::error::{Refusal, require};
use crate::network::layers::{
    Angles, GatedMlp, LayerNorm, Linear, RotaryCrossAttention, RotarySelfAttention, turned_channels,
};
use crate::network::{Initial, Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Points per side for which the authors' recurrent classes are made.
const RECURRENT_SIDE: usize = 64;
/// Deviation of their fixed frequencies.
const RECURRENT_FREQUENCY: f64 = 8.0;
/// κ of the cross attention over the points per side.
const CROSS_FACTOR: usize = 16;

/// All settings; the defaults are the authors' for Darcy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// c, channels of the points in the encoder, and of each of its heads.
    pub width: usize,
    /// Layers of the encoder.
    pub depth: usize,
    /// Heads of the encoder's attention.
    pub heads: usize,
    /// m, channels of the points in the decoder.
    pub latent: usize,
    /// Heads of the cross attention, of m channels each.
    pub cross_heads: usize,
    /// Deviation of the fixed frequencies B.
    pub frequency: f64,
    /// Points per side, which scales the angles; 0 is the square root of the number of points. Recurrent models have 64.
    pub resolution: usize,
    /// Steps of the latent recurrence; 0 is the steady decoder.
    pub steps: usize,
    /// Maps of one latent step.
    pub propagators: usize,
}

impl Default for Config {
    fn default() -> Self {
        let (frequency, resolution, steps, propagators) = (0.5, 0, 0, 1);
        let (width, depth, heads, latent, cross_heads) = (96, 6, 4, 256, 4);
        Config { width, depth, heads, latent, cross_heads, frequency, resolution, steps, propagators }
    }
}

impl Config {
    /// Channels of the encoder's output and of the cross attention.
    fn cross_width(&self) -> usize {
        if self.steps == 0 { self.latent } else { self.latent / 2 }
    }

    /// Points per side.
    fn side(&self, grid: Grid) -> usize {
        match (self.steps, self.resolution) {
            (0, 0) => ((grid.points() as f64).sqrt().round() as usize).max(1),
            (0, side) => side,
            _ => RECURRENT_SIDE,
        }
    }

    /// κ of each layer of the encoder.
    fn factors(&self, side: usize) -> Vec<f64> {
        let factor = |layer: usize| match (self.steps, layer) {
            (0, 0) => side * side,
            (0, 1) => side / 4 * side,
            (0, _) => side,
            (_, 0) => 32 * side,
            (_, 1..4) if self.depth > 4 => [16, 8, 8][layer - 1] * side,
            (_, _) if self.depth > 4 || layer + 1 == self.depth => side,
            (_, _) => 16 * side,
        };
        (0..self.depth).map(|layer| factor(layer) as f64).collect()
    }

    fn check(&self, task: &Task) -> Result<(), Refusal> {
        let Config { width, depth, heads, latent, cross_heads, frequency, steps, propagators, .. } = *self;
        let sizes = [("width", width), ("depth", depth), ("heads", heads), ("latent", latent)];
        check_positive("oformer", &sizes)?;
        check_positive("oformer", &[("cross_heads", cross_heads), ("propagators", propagators)])?;
        let parts = if steps == 0 { 2 } else { 4 };
        require(latent.is_multiple_of(parts), || {
            Refusal::new("model oformer: latent", format!("a multiple of {parts}"), latent.to_string())
        })?;
        for (name, channels) in [("width", width), ("latent", self.cross_width())] {
            require(turned_channels(channels, task.space) > 0, || {
                let expected = format!("at least {} channels in a head", 2 * task.space);
                Refusal::new(format!("model oformer: {name}"), expected, channels.to_string())
            })?;
        }
        require(frequency.is_finite() && frequency > 0.0, || {
            Refusal::new("model oformer: frequency", "a positive number", frequency.to_string())
        })?;
        let outputs = task.output_channels();
        require(steps == 0 || outputs.is_multiple_of(steps), || {
            Refusal::new("model oformer: steps", format!("a divisor of the {outputs} outputs"), steps.to_string())
        })
    }
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("oformer", settings)?;
    config.check(task)?;
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
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        self.at(input, input.positions)
    }

    fn forward_at(&self, input: &Input<'g>, queries: Tensor<'g>, _mode: Mode) -> Option<Tensor<'g>> {
        Some(self.at(input, queries))
    }
}

impl<'g> Oformer<'g> {
    /// At positions `[batch, queries, space]`: `[batch, queries, outputs]`.
    fn at(&self, input: &Input<'g>, positions: Tensor<'g>) -> Tensor<'g> {
        let given = self.encoder.forward(input);
        let [_, _, width] = given.dims();
        let angles = [positions, input.positions].map(|positions| Angles::new(positions, width, self.factor));
        let features = self.query.forward(positions, given, angles);
        self.decoder.forward(features, positions)
    }
}

/// E: the stream itself is normalised, so that each residual starts behind the norm.
struct Encoder<'g> {
    embed: Linear<'g>,
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
        let layer = |(number, factor): (usize, f64)| {
            let part = |name: usize| scope.enter("s_transformer.layers").enter(&format!("{number}.{name}"));
            let first = LayerNorm::new(&part(0), width);
            let attention = RotarySelfAttention::new(&part(1), config.heads, width, task.space);
            let second = LayerNorm::new(&part(2), width);
            Layer { factor, norms: [first, second], attention, gated: GatedMlp::new(&part(3), width) }
        };
        let layers = config.factors(side).into_iter().enumerate().map(layer).collect();
        let name = if config.steps == 0 { "to_out.0" } else { "project_to_latent.0" };
        Encoder { embed, layers, out: Linear::without_bias(&scope.enter(name), width, config.cross_width()) }
    }

    /// `[batch, points, cross width]`
    fn forward(&self, input: &Input<'g>) -> Tensor<'g> {
        let channels = match input.functions {
            Some(functions) => Tensor::concatenate(&[functions, input.positions], 2),
            None => input.positions,
        };
        let features = self.layers.iter().fold(self.embed.forward(channels), |features, layer| {
            let [first, second] = &layer.norms;
            let normed = first.forward(features);
            let angles = Angles::new(input.positions, normed.dims::<3>()[2], layer.factor);
            let normed = second.forward(normed + layer.attention.forward(normed, angles));
            normed + layer.gated.forward(normed)
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
        Query { frequencies, project, attention, gated: GatedMlp::new(&cross.enter("ffn"), width) }
    }

    /// `[batch, queries, cross width]`
    fn forward(&self, positions: Tensor<'g>, given: Tensor<'g>, angles: [Angles<'g>; 2]) -> Tensor<'g> {
        let phase = (positions * TAU).matmul(self.frequencies); // [batch, queries, latent/2]
        let waves = Tensor::concatenate(&[phase.sin(), phase.cos()], 2);
        let [first, second] = &self.project;
        let features = second.forward(first.forward(waves).gelu());
        let features = features + self.attention.forward(features, given, angles);
        features + self.gated.forward(features)
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
        let last = Linear::new(&out.enter("5"), half, task.output_channels() / config.steps);
        let out = [plain(&out, "1", latent, half), plain(&out, "3", half, half), last];
        Decoder::Recurrent { steps: config.steps, expand, propagators, norm, out }
    }

    /// `[batch, queries, cross width]` → `[batch, queries, outputs]`
    fn forward(&self, features: Tensor<'g>, positions: Tensor<'g>) -> Tensor<'g> {
        let beside = |features: Tensor<'g>| Tensor::concatenate(&[features, positions], 2);
        match self {
            Decoder::Steady(maps) => chain(maps, beside(features)),
            Decoder::Recurrent { steps, expand, propagators, norm, out } => {
                let mut latent = expand.forward(features);
                let step = |_: usize| {
                    for (norm, maps) in propagators {
                        latent = latent + chain(maps, beside(norm.forward(latent)));
                    }
                    chain(out, norm.forward(latent))
                };
                Tensor::concatenate(&(0..*steps).map(step).collect::<Vec<_>>(), 2)
            }
        }
    }
}

/// Three linear maps with GELUs between them.
fn chain<'g>([first, second, third]: &[Linear<'g>; 3], features: Tensor<'g>) -> Tensor<'g> {
    third.forward(second.forward(first.forward(features).gelu()).gelu())
}

/// The trained angles belong to the resolution of the training.
fn moved(settings: &Settings, [from, _]: [Grid; 2]) -> Option<Settings> {
    let config: Config = read("oformer", settings).ok()?;
    Some(super::settings(&Config { resolution: config.side(from), ..config }))
}

/// The authors' sizes for Darcy and Navier–Stokes; the other benchmarks have those for Darcy.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# OFormer on darcy: the authors' sizes and rate, without dropout and with one optimiser.
             model.settings = { width = 96, depth = 6, heads = 4, latent = 256 }
             train = { batch = 8, rate = 0.0008, optimiser = \"adam\", weight_decay = 1e-4, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# OFormer on navier-stokes: the authors' sizes and rate, one latent step from the last ten snapshots to the next.
             model.settings = { width = 96, depth = 5, heads = 1, latent = 384, steps = 1, propagators = 1, frequency = 8.0 }
             train = { rate = 0.0005, weight_decay = 1e-4, clip = 2.0 }"
        }
        "elasticity" => {
            "# OFormer on elasticity: the authors' sizes for darcy, recipe as for LaMO.
             model.settings = { width = 96, depth = 6, heads = 4, latent = 256 }"
        }
        "airfoil" => {
            "# OFormer on airfoil: the authors' sizes for darcy, recipe as for LaMO.
             model.settings = { width = 96, depth = 6, heads = 4, latent = 256 }"
        }
        "pipe" => {
            "# OFormer on pipe: the authors' sizes for darcy, recipe as for LaMO.
             model.settings = { width = 96, depth = 6, heads = 4, latent = 256 }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores.
fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" | "elasticity" | "airfoil" | "pipe" | "own" => {
            "model.settings = { width = 32, depth = 3, heads = 1, latent = 32, cross_heads = 2 }"
        }
        "navier-stokes" => "model.settings = { width = 32, depth = 3, heads = 1, latent = 64, cross_heads = 2 }",
        _ => return None,
    })
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 12
        depth = 1
        heads = 1
        latent = 16
        cross_heads = 1
    }
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    const FIXED: &str = "decoder.coordinate_projection.0._B";
    const EMBEDDING: &str = "encoder.to_embedding.0.weight";
    let inferred = || {
        let mut assumed = Vec::new();
        let grid = hints.any_grid(&mut assumed);
        let (width, space, latent) =
            (shapes.extent(EMBEDDING, 0)?, shapes.extent(FIXED, 0)?, 2 * shapes.extent(FIXED, 1)?);
        let joined = shapes.extent("encoder.s_transformer.layers.0.1.to_qkv.weight", 0)?;
        let cross = "decoder.decoding_transformer.cross_attn_module.to_q.weight";
        let recurrent = shapes.has("decoder.expand_feat.weight");
        let steps = if recurrent { hints.setting("steps").unwrap_or(1) } else { 0 };
        let defaults = Config::default();
        let config = Config {
            width,
            depth: shapes.count("encoder.s_transformer.layers.", 0),
            heads: super::shapes::ratio("heads", joined, 3 * width)?,
            latent,
            frequency: if recurrent { RECURRENT_FREQUENCY } else { defaults.frequency },
            cross_heads: super::shapes::ratio("cross_heads", shapes.extent(cross, 0)?, shapes.extent(cross, 1)?)?,
            steps,
            resolution: hints.setting("resolution").unwrap_or(0),
            propagators: shapes.count("decoder.propagator.", 0).max(1),
        };
        let sentence = match (recurrent, config.resolution) {
            (true, _) => Some(format!("the recurrence has {steps} steps (model.settings.steps)")),
            (false, 0) => Some("the side of the grid scales the angles (model.settings.resolution)".to_owned()),
            _ => None,
        };
        assumed.extend(sentence);
        let functions = shapes.extent(EMBEDDING, 1)?.saturating_sub(space);
        let last = if recurrent { "decoder.to_out.5.weight" } else { "decoder.to_out.4.weight" };
        let outputs = shapes.extent(last, 0)? * steps.max(1);
        let settings = super::settings(&config);
        Ok(Inferred { settings, grid, space, functions, outputs, time: false, assumed })
    };
    shapes.has(FIXED).then(inferred)
}

fn translate(authored: &Authored<'_>, recurrent: bool) -> Result<Translated, Refusal> {
    let model = authored.table("model");
    let mut config = Config {
        width: model.number("encoder_emb_dim")?,
        depth: model.number("encoder_depth")?,
        heads: model.number("encoder_heads")?,
        cross_heads: model.number_or("decoder_heads", 4)?,
        frequency: model.0["fourier_scale"].as_f64().unwrap_or(if recurrent {
            RECURRENT_FREQUENCY
        } else {
            Config::default().frequency
        }),
        ..Config::default()
    };
    let mut outputs = model.number("out_channels")?;
    if recurrent {
        config.latent = model.number("decoder_emb_dim")?;
        let (snapshots, at_once) = (model.number_or("forward_steps", 1)?, model.number_or("out_step", 1)?.max(1));
        config.steps = snapshots / at_once;
        config.propagators = model.number_or("propagator_depth", 1)?;
        outputs *= at_once * config.steps;
    } else {
        config.latent = model.number("out_seq_emb_dim")?;
        config.resolution = model.number("res")?;
    }
    let inputs = model.number("in_channels")?;
    let functions = inputs.checked_sub(2).ok_or_else(|| {
        Refusal::said(format!("gives in_channels as {inputs}, which leaves no room for two coordinates"))
    })?;
    let task = Task::plain(authored.cloud(), 2, functions, outputs);
    Ok(Translated { settings: super::settings(&config), task, single_stage: false })
}

pub(super) const ROW: Row = Row {
    name: "oformer",
    summary: "OFormer (TMLR 2023): linear attention turned by position, decoded at each point",
    paper: "Li, Meidani, Barati Farimani: Transformer for Partial Differential Equations' Operator Learning, TMLR 2023, \
            arXiv:2205.13671",
    supports: Support { time: false, ..Support::EVERYTHING },
    build,
    defaults: super::defaults::<Config>,
    moved,
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own: |_| Settings::new(),
    tiny,
    infer,
    translate: &[
        ("oformer_steady", |authored| translate(authored, false)),
        ("oformer_ns", |authored| translate(authored, true)),
    ],
};
