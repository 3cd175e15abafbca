//! Settings of OFormer: sizes, angles and rates, and what the authors' classes and state dicts say about them.

use crate::error::{Refusal, require};
use crate::network::layers::turned_channels;
use crate::network::models::{
    self, Authored, Hints, Inferred, Settings, Shapes, Translated, check_positive, check_rate, read, settings, shapes,
};
use crate::task::Task;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};

/// Points per side for which the authors' recurrent classes are made.
const RECURRENT_SIDE: usize = 64;
/// Deviation of their fixed frequencies.
const RECURRENT_FREQUENCY: f64 = 8.0;
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
    /// Steps of the latent recurrence; 0 is the steady decoder, or as many as there are times where a time is an input.
    pub steps: usize,
    /// Maps of one latent step.
    pub propagators: usize,
    /// Rate of dropout after each attention and in each MLP of the encoder, in training.
    pub dropout: f64,
    /// Rate of dropout of the encoder's embedding, in training.
    pub embedding_dropout: f64,
}

impl Default for Config {
    fn default() -> Self {
        let (frequency, resolution, steps, propagators) = (0.5, 0, 0, 1);
        let (width, depth, heads, latent, cross_heads) = (96, 6, 4, 256, 4);
        let (dropout, embedding_dropout) = (0.0, 0.0);
        Config {
            width,
            depth,
            heads,
            latent,
            cross_heads,
            frequency,
            resolution,
            steps,
            propagators,
            dropout,
            embedding_dropout,
        }
    }
}

impl Config {
    /// The settings for a task. Where a time is an input and no number of steps is set, each of its times is a step.
    pub(super) fn of(settings: &Settings, task: &Task) -> Result<Config, Refusal> {
        let mut config: Config = read("oformer", settings)?;
        if config.steps == 0 && task.time.is_input() {
            config.steps = task.time.count();
        }
        config.check(task)?;
        Ok(config)
    }

    /// Channels of the encoder's output and of the cross attention.
    pub(super) fn cross_width(&self) -> usize {
        if self.steps == 0 { self.latent } else { self.latent / 2 }
    }

    /// Points per side.
    pub(super) fn side(&self, grid: Grid) -> usize {
        match (self.steps, self.resolution) {
            (0, 0) => ((grid.points() as f64).sqrt().round() as usize).max(1),
            (0, side) => side,
            _ => RECURRENT_SIDE,
        }
    }

    /// κ of each layer of the encoder.
    pub(super) fn factors(&self, side: usize) -> Vec<f64> {
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
        check_rate("oformer", "dropout", self.dropout)?;
        check_rate("oformer", "embedding_dropout", self.embedding_dropout)?;
        let outputs = task.output_channels();
        require(steps == 0 || task.time.is_input() || outputs.is_multiple_of(steps), || {
            Refusal::new("model oformer: steps", format!("a divisor of the {outputs} outputs"), steps.to_string())
        })
    }
}

/// The trained angles belong to the resolution of the training.
pub(super) fn moved(settings: &Settings, [from, _]: [Grid; 2]) -> Option<Settings> {
    let config: Config = read("oformer", settings).ok()?;
    Some(models::settings(&Config { resolution: config.side(from), ..config }))
}

pub(super) fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
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
            heads: shapes::ratio("heads", joined, 3 * width)?,
            latent,
            frequency: if recurrent { RECURRENT_FREQUENCY } else { defaults.frequency },
            cross_heads: shapes::ratio("cross_heads", shapes.extent(cross, 0)?, shapes.extent(cross, 1)?)?,
            steps,
            resolution: hints.setting("resolution").unwrap_or(0),
            propagators: shapes.count("decoder.propagator.", 0).max(1),
            ..defaults
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
        let settings = settings(&config);
        Ok(Inferred { settings, grid, space, functions, outputs, time: false, assumed })
    };
    shapes.has(FIXED).then(inferred)
}

pub(super) fn translate(authored: &Authored<'_>, recurrent: bool) -> Result<Translated, Refusal> {
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
    Ok(Translated { settings: settings(&config), task, single_stage: false })
}
