//! The Latent Mamba Operator (Tiwari et al., ICML 2025).
//!
//! Lift the input functions, compress N points into M latent tokens, mix the tokens with selective state-space scans,
//! expand back, project:
//!
//! - on planes, *patches*: z = Patchify([x | f]) + e;  z ← z + SS2D(LN₁ z);  z ← z + MLP(LN₂ z);  y = Depatchify(z);
//! - anywhere, *slices*: v = P([x | f]);  v ← v + Dec(Mix(Enc(LN₁ v)));  v ← v + MLP(LN₂ v);  y = Q(LN₃ v),
//!   with Enc and Dec of [`crate::network::layers::Slices`].
//!
//! The mixers are [`Ss2d`], [`Hydra`] and [`Mamba2`]; each is a scan h = e^{ΔA} h + B̄ x, y = C h whose Δ, B, C depend on
//! the token. Everything is linear in the number of points.

mod config;
mod recipes;

pub use config::{Config, Decoder, Encoder, Latent, Mixer};

use super::{Authored, OwnData, Row, Settings, Support, Translated, read};
use crate::error::Refusal;
use crate::network::layers::{
    Depatchify, Hydra, LayerNorm, Mamba2, Mlp, Patchify, SliceShape, SliceStack, Ss2d, StackShape, TokenMixer,
};
use crate::network::{Initial, Input, Mode, Model, Scope, Style};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;

/// Each patch has an embedding of its own.
fn is_local(settings: &Settings) -> bool {
    read("lamo", settings).is_ok_and(|config: Config| config.latent == Latent::Patches)
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("lamo", settings)?;
    config.check(task)?;
    Ok(match (config.latent, task.grid) {
        (Latent::Patches, Grid::Plane { rows, columns }) => {
            Box::new(PatchModel::new(scope, task, &config, [rows, columns]))
        }
        _ => Box::new(slice_model(scope, task, &config)),
    })
}

/// A mixer over a sequence of tokens.
fn sequence_mixer<'g>(scope: &Scope<'_, 'g>, config: &Config) -> Box<dyn TokenMixer<'g> + 'g> {
    match config.mixer {
        Mixer::Mamba2 => Box::new(Mamba2::new(scope, config.width, config.selection())),
        Mixer::Hydra | Mixer::Cross => Box::new(Hydra::new(scope, config.width, config.selection())),
    }
}

impl<'g> TokenMixer<'g> for Hydra<'g> {
    fn mix(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        self.forward(tokens)
    }
}

impl<'g> TokenMixer<'g> for Mamba2<'g> {
    fn mix(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        self.forward(tokens)
    }
}

/// LaMO on meshes and clouds.
fn slice_model<'g>(scope: &Scope<'_, 'g>, task: &Task, config: &Config) -> SliceStack<'g> {
    let shape = StackShape {
        slices: SliceShape { grid: task.grid, width: config.width, heads: config.slice_heads, tokens: config.tokens },
        depth: config.depth,
        mlp_ratio: config.mlp_ratio,
        shared: config.encoder == Encoder::Shared,
        own_decoder: config.decoder == Decoder::Own,
        unified_positions: config.unified_positions,
    };
    let scope = scope.with_style(Style::Small);
    SliceStack::new(&scope, task, shape, |block| sequence_mixer(&block.enter("hydra"), config))
}

impl<'g> Model<'g> for SliceStack<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        SliceStack::forward(self, input)
    }
}

/// What mixes the patches of a block.
enum PatchMixer<'g> {
    Cross(Box<Ss2d<'g>>),
    Sequence(Box<dyn TokenMixer<'g> + 'g>),
}

struct PatchBlock<'g> {
    norm1: LayerNorm<'g>,
    mixer: PatchMixer<'g>,
    norm2: LayerNorm<'g>,
    mlp: Mlp<'g>,
}

impl<'g> PatchBlock<'g> {
    fn new(scope: &Scope<'_, 'g>, config: &Config) -> Self {
        let (width, mixer) = (config.width, scope.enter("hydra"));
        PatchBlock {
            norm1: LayerNorm::new(&scope.enter("norm1"), width),
            mixer: match config.mixer {
                Mixer::Cross => PatchMixer::Cross(Box::new(Ss2d::new(&mixer, width, config.selection()))),
                Mixer::Hydra | Mixer::Mamba2 => PatchMixer::Sequence(sequence_mixer(&mixer, config)),
            },
            norm2: LayerNorm::new(&scope.enter("norm2"), width),
            mlp: Mlp::new(&scope.enter("mlp"), [width, config.mlp_ratio * width, width]),
        }
    }

    fn forward(&self, tokens: Tensor<'g>, [rows, columns]: [usize; 2]) -> Tensor<'g> {
        let normed = self.norm1.forward(tokens);
        let mixed = match &self.mixer {
            PatchMixer::Cross(cross) => cross.forward(normed, rows, columns),
            PatchMixer::Sequence(sequence) => sequence.mix(normed),
        };
        let tokens = tokens + mixed;
        tokens + self.mlp.forward(self.norm2.forward(tokens))
    }
}

/// LaMO on regular grids.
struct PatchModel<'g> {
    plane: [usize; 2],
    padded: [usize; 2],
    /// Patches down and across.
    patches: [usize; 2],
    encode: Patchify<'g>,
    /// `[1, tokens, width]`
    position: Tensor<'g>,
    /// `[space]`, added to the positions where no function is given.
    placeholder: Tensor<'g>,
    blocks: Vec<PatchBlock<'g>>,
    decode: Depatchify<'g>,
}

impl<'g> PatchModel<'g> {
    fn new(scope: &Scope<'_, 'g>, task: &Task, config: &Config, plane: [usize; 2]) -> Self {
        let Config { patch, width, .. } = *config;
        let padded = config.padded(plane[0], plane[1]);
        let patches = padded.map(|extent| extent / patch);
        let tokens = [1, patches[0] * patches[1], width];
        let block = |number: usize| PatchBlock::new(&scope.enter("block1").enter(&number.to_string()), config);
        PatchModel {
            plane,
            padded,
            patches,
            encode: Patchify::new(&scope.enter("patch_embed1"), patch, task.space + task.input_channels(), width),
            position: scope.parameter("pos_embed1", tokens, Initial::Constant(0.0)),
            placeholder: scope.parameter("placeholder", [task.space], Initial::Uniform { low: 0.0, high: 0.5 }),
            blocks: (0..config.depth).map(block).collect(),
            decode: Depatchify::new(&scope.enter("depatch_embed1"), patch, width, task.output_channels()),
        }
    }
}

impl<'g> Model<'g> for PatchModel<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        let ([rows, columns], [padded_rows, padded_columns]) = (self.plane, self.padded);
        let channels = match input.functions {
            Some(_) => input.channels(),
            None => input.channels() + self.placeholder,
        };
        let [batch, points, inputs] = channels.dims();
        let image = channels.reshape([batch, rows, columns, inputs]);
        let image = image.pad(1, 0, padded_rows - rows).pad(2, 0, padded_columns - columns); // below and right
        let mut tokens = self.encode.forward(image) + self.position; // padded tokens are mixed like all tokens
        for block in &self.blocks {
            tokens = block.forward(tokens, self.patches);
        }
        let image = self.decode.forward(tokens, padded_rows, padded_columns);
        let [_, _, _, outputs] = image.dims();
        image.slice(1, 0, rows).slice(2, 0, columns).reshape([batch, points, outputs])
    }
}

/// Soft slices in place of patches.
fn slices() -> Settings {
    toml::toml! {
        latent = "slices"
        mixer = "hydra"
        directions = 2
    }
}

/// Slices for data without rows and columns, or with a time as input. Their widths are those of the official code.
fn own(data: &OwnData) -> Settings {
    let patches = data.grid.is_none_or(|grid| grid.plane().is_some()) && !data.timed;
    if patches {
        return Settings::new();
    }
    let mut settings = slices();
    settings.extend(toml::toml! {
        encoder = "shared"
        mlp_ratio = 1
        head_width = 64
        groups = 2
        width = 128
    });
    settings
}

fn tiny(task: &Task) -> Settings {
    let mut settings = toml::toml! {
        width = 16
        depth = 1
        mlp_ratio = 1
        tokens = 4
        slice_heads = 2
        states = 4
        head_width = 8
        padded = [0, 0]
    };
    if task.grid.plane().is_none() || task.time.is_input() {
        settings.extend(slices());
    }
    settings
}

fn translate_patches(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let [model, mixer] = ["model", "mixer"].map(|table| authored.table(table));
    let config = Config {
        latent: Latent::Patches,
        mixer: Mixer::Cross,
        directions: 4,
        patch: model.number("patch_sizes")?,
        padded: [model.number("H")?, model.number("W")?],
        width: model.number("embed_dims")?,
        depth: model.number("depths")?,
        mlp_ratio: model.number("mlp_ratios")?,
        states: mixer.number("d_state")?,
        expand: mixer.number("ssm_ratio")?,
        ..Config::default()
    };
    let task = model.task(model.plane("H_img", "W_img")?, "out_chans")?;
    Ok(Translated { settings: super::settings(&config), task, single_stage: false })
}

fn translate_slices(authored: &Authored<'_>, grid: Grid, encoder: Encoder) -> Result<Translated, Refusal> {
    let [model, mixer] = ["model", "mixer"].map(|table| authored.table(table));
    let unified_positions = model.unified_positions()?;
    let config = Config {
        latent: Latent::Slices,
        encoder,
        mixer: match mixer.0["kind"].as_str() {
            Some("hydra") => Mixer::Hydra,
            Some("bimamba2") => Mixer::Mamba2,
            _ => return Err(Refusal::said(format!("names the mixer {}, not hydra or bimamba2", mixer.0["kind"]))),
        },
        directions: 2,
        width: model.number("n_hidden")?,
        depth: model.number("n_layers")?,
        mlp_ratio: model.number("mlp_ratio")?,
        tokens: model.number("slice_num")?,
        slice_heads: model.number("n_head")?,
        states: mixer.number("d_state")?,
        expand: mixer.number("expand")?,
        head_width: mixer.number("headdim")?,
        groups: mixer.number("ngroups")?,
        convolution: mixer.number("d_conv")?,
        unified_positions,
        ..Config::default()
    };
    let (settings, single_stage) = (super::settings(&config), unified_positions > 0);
    Ok(Translated { settings, task: model.task(grid, "out_dim")?, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "lamo",
    summary: "Latent Mamba Operator (ICML 2025): state-space scans over latent tokens",
    paper: "Tiwari, Dutta, Krishnan, Prathosh: Latent Mamba Operator for Partial Differential Equations, ICML 2025, \
            arXiv:2505.19105",
    supports: Support::EVERYTHING,
    build,
    defaults: super::defaults::<Config>,
    is_local,
    recipe: recipes::recipe,
    variants: recipes::VARIANTS,
    quick: recipes::quick,
    own,
    tiny,
    translate: &[
        ("regular_grid", translate_patches),
        ("structured_shared", |authored| translate_slices(authored, authored.plane()?, Encoder::Shared)),
        ("structured_unshared", |authored| translate_slices(authored, authored.plane()?, Encoder::Own)),
        ("irregular_shared", |authored| translate_slices(authored, authored.cloud(), Encoder::Shared)),
        ("irregular_unshared", |authored| translate_slices(authored, authored.cloud(), Encoder::Own)),
    ],
};
