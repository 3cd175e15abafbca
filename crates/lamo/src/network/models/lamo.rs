//! The Latent Mamba Operator (Tiwari et al., ICML 2025).
//!
//! Lift the input functions, compress N points into M latent tokens, mix the tokens with selective state-space scans,
//! expand back, project:
//!
//! - on lines, planes and volumes, *patches*: z = Patchify([x | f]) + e;  z ← z + SS2D(LN₁ z);  z ← z + MLP(LN₂ z);  y = Depatchify(z);
//! - anywhere, *slices*: v = P([x | f]);  v ← v + Dec(Mix(Enc(LN₁ v)));  v ← v + MLP(LN₂ v);  y = Q(LN₃ v),
//!   with Enc and Dec of [`crate::network::layers::Slices`].
//!
//! Levers beyond the paper, each off by default: `spectral_modes`, `residual` and `mlp`
//! ([`crate::network::layers::Levers`]).
//!
//! The mixers are [`Ss2d`], [`Hydra`] and [`Mamba2`]; each is a scan h = e^{ΔA} h + B̄ x, y = C h whose Δ, B, C depend on
//! the token. Everything is linear in the number of points.

mod config;
mod infer;
mod recipes;

pub use crate::network::layers::Decoder;
use config::Layout;
pub use config::{Config, Encoder, Latent, Mixer};

use super::{Authored, Embedding, OwnData, Row, Settings, Support, Translated, read};
use crate::error::Refusal;
use crate::network::layers::{
    BlockLevers, Depatchify, Hydra, LayerNorm, Mamba2, Mlp, PatchShape, Patchify, SliceShape, SliceStack, Ss2d,
    StackShape, TokenMixer, resample,
};
use crate::network::probe::Places;
use crate::network::{InPieces, Initial, Input, Mode, Model, Pass, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;

/// Patches keep the lattice of the training: their embeddings, convolutions and scans count in tokens, so that finer tokens
/// are another problem. Darcy flow trained on 16 × 16 points has an error of 0.09 there. On 32 × 32 points it has 0.12 on its
/// own lattice, and 0.62 with twice as many tokens along each axis and interpolated embeddings.
fn moved(settings: &Settings, [from, _]: [Grid; 2]) -> Option<Settings> {
    let mut config: Config = read("lamo", settings).ok()?;
    if let (Latent::Patches, Some(layout)) = (config.latent, config.layout(from)) {
        config.lattice = layout.given(layout.extents);
    }
    Some(super::settings(&config))
}

/// Embedding of the patches.
const EMBEDDING: &str = "pos_embed1";

fn embedding(settings: &Settings, grid: Grid) -> Option<Embedding> {
    let config: Config = read("lamo", settings).ok()?;
    let layout = config.layout(grid).filter(|_| config.latent == Latent::Patches)?;
    Some((EMBEDDING, layout.patches()))
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("lamo", settings)?;
    config.check(task)?;
    let scope = &scope.with_activation(config.activation);
    Ok(match config.layout(task.grid) {
        Some(layout) if config.latent == Latent::Patches => Box::new(PatchModel::new(scope, task, &config, layout)),
        _ => Box::new(slice_model(scope, task, &config)),
    })
}

/// A mixer over a sequence of tokens.
fn sequence_mixer<'g>(scope: &Scope<'_, 'g>, config: &Config) -> Box<dyn TokenMixer<'g> + 'g> {
    match config.mixer {
        Mixer::Mamba2 => Box::new(Mamba2::new(scope, config.mixed_width(), config.selection())),
        Mixer::Hydra | Mixer::Cross => Box::new(Hydra::new(scope, config.mixed_width(), config.selection())),
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
    let Config { slice_heads: heads, tokens, .. } = *config;
    let shape = StackShape {
        width: config.width,
        slices: SliceShape { grid: task.grid, width: config.mixed_width(), heads, tokens },
        depth: config.depth,
        mlp_ratio: config.mlp_ratio,
        shared: config.encoder == Encoder::Shared,
        decoder: config.decoder,
        levers: config.levers(),
        unified_positions: config.unified_positions,
    };
    let scope = scope.with_style(config.initial);
    SliceStack::new(&scope, task, shape, |block| sequence_mixer(&block.enter("hydra"), config))
}

impl<'g> Model<'g> for SliceStack<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        SliceStack::forward(self, input)
    }

    fn in_pieces(&self) -> Option<&dyn InPieces<'g>> {
        self.is_pointwise().then_some(self)
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
    levers: BlockLevers<'g>,
    layout: Layout,
    pass: Pass<'g>,
}

/// The maps of a patch block's MLP.
const PATCH_MLP: [&str; 2] = ["fc1", "fc2"];

impl<'g> PatchBlock<'g> {
    fn new(scope: &Scope<'_, 'g>, config: &Config, layout: Layout) -> Self {
        let (width, mixed, levers, mixer) = (config.width, config.mixed_width(), config.levers(), scope.enter("hydra"));
        let sizes = [width, config.mlp_ratio * width, width];
        PatchBlock {
            norm1: LayerNorm::new(&scope.enter("norm1"), width),
            mixer: match config.mixer {
                Mixer::Cross => PatchMixer::Cross(Box::new(Ss2d::new(&mixer, layout.axes, mixed, config.selection()))),
                Mixer::Hydra | Mixer::Mamba2 => PatchMixer::Sequence(sequence_mixer(&mixer, config)),
            },
            norm2: LayerNorm::new(&scope.enter("norm2"), width),
            mlp: Mlp::with_middle(&scope.enter("mlp"), PATCH_MLP, sizes, levers.mlp),
            levers: BlockLevers::new(scope, levers, layout.patches(), width),
            layout,
            pass: scope.pass(),
        }
    }

    fn forward(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let Layout { extents, patch, .. } = self.layout;
        self.pass.begin_block();
        self.pass.show_places(|| Places::Patches { extents, patch, patches: self.layout.patches() });
        let mixed = tokens + self.levers.mix(self.norm1.forward(tokens), |part| self.mix(part));
        self.pass.show_tokens(tokens, mixed);
        mixed + self.mlp.forward(self.norm2.forward(mixed))
    }

    /// Mix(z), or γ Mix(z).
    fn mix(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let mixed = match &self.mixer {
            PatchMixer::Cross(cross) => cross.forward(tokens, self.layout.patches()),
            PatchMixer::Sequence(sequence) => sequence.mix(tokens),
        };
        self.levers.gain().map_or(mixed, |gain| mixed * gain)
    }
}

/// LaMO on regular grids.
struct PatchModel<'g> {
    layout: Layout,
    encode: Patchify<'g>,
    /// `[1, tokens, width]`
    position: Tensor<'g>,
    /// `[space]`, added to the positions where no function is given.
    placeholder: Tensor<'g>,
    blocks: Vec<PatchBlock<'g>>,
    decode: Depatchify<'g>,
}

impl<'g> PatchModel<'g> {
    fn new(scope: &Scope<'_, 'g>, task: &Task, config: &Config, layout: Layout) -> Self {
        let (width, patch) = (config.width, PatchShape { axes: layout.axes, patch: layout.patch });
        let tokens = layout.patches().iter().product();
        let scope_of = |number: usize| scope.enter("block1").enter(&number.to_string());
        let block = |number: usize| PatchBlock::new(&scope_of(number), config, layout);
        PatchModel {
            layout,
            encode: Patchify::new(&scope.enter("patch_embed1"), patch, task.space + task.input_channels(), width),
            position: scope.parameter(EMBEDDING, [1, tokens, width], Initial::Constant(0.0)),
            placeholder: scope.parameter("placeholder", [task.space], Initial::Uniform { low: 0.0, high: 0.5 }),
            blocks: (0..config.depth).map(block).collect(),
            decode: Depatchify::new(&scope.enter("depatch_embed1"), patch, width, task.output_channels()),
        }
    }
}

impl<'g> Model<'g> for PatchModel<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        let Layout { points: grid, extents, padded, .. } = self.layout;
        let channels = match input.functions {
            Some(_) => input.channels(),
            None => input.channels() + self.placeholder,
        };
        let [batch, points, inputs] = channels.dims();
        let image = resample(channels.reshape([batch, grid[0], grid[1], grid[2], inputs]), extents);
        let image = (0..3).fold(image, |image, axis| image.pad(axis + 1, 0, padded[axis] - extents[axis])); // behind
        let mut tokens = self.encode.forward(image) + self.position; // padded tokens are mixed like all tokens
        for block in &self.blocks {
            tokens = block.forward(tokens);
        }
        let image = self.decode.forward(tokens, padded);
        let [_, _, _, _, outputs] = image.dims();
        let image = (0..3).fold(image, |image, axis| image.slice(axis + 1, 0, extents[axis]));
        resample(image, grid).reshape([batch, points, outputs])
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

/// Most patches of a user's grid in minutes on a CPU, and their longest side: after one minute of two busy cores on 300 samples of 85 × 85
/// points, patches of 2, 4 and 8 were at 17, 8 and 4 %, because the last take 25 times as many steps.
const MOST_PATCHES: usize = 256;
const LONGEST_PATCH: usize = 8;

/// The side of the patches on a user's plane or volume: two points, doubled until there are few.
fn own_patch(extents: &[usize]) -> usize {
    let mut patch = Config::default().patch;
    let patches = |patch: usize| extents.iter().map(|extent| extent.div_ceil(patch)).product::<usize>();
    // A cube of 8³ points has 8 times the numbers of a square of 8², so that a volume may have twice as many patches.
    let most = if extents.len() == 3 { 2 * MOST_PATCHES } else { MOST_PATCHES };
    while patch < LONGEST_PATCH && patches(patch) > most {
        patch *= 2;
    }
    patch
}

/// Patches on lines, planes and volumes. Slices for clouds and where a time is an input; their widths are those of the official
/// code.
fn own(data: &OwnData) -> Settings {
    let mut settings = match data.grid {
        Some(grid @ Grid::Plane { .. }) if !data.timed && data.quick => {
            return [("patch".to_owned(), toml::Value::from(own_patch(&grid.shape()) as i64))].into_iter().collect();
        }
        Some(grid @ Grid::Volume { .. }) if !data.timed => {
            let patch = own_patch(&grid.shape()) as i64;
            return [("patch", patch), ("directions", 6)]
                .into_iter()
                .map(|(key, value)| (key.to_owned(), toml::Value::from(value)))
                .collect();
        }
        None | Some(Grid::Plane { .. }) if !data.timed => return Settings::new(),
        Some(Grid::Line { .. }) if !data.timed => toml::toml! { directions = 2 },
        _ => {
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
    };
    settings.extend(data.slice_settings());
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
    match task.grid {
        Grid::Volume { .. } if !task.time.is_input() => settings.extend(toml::toml! { directions = 6 }),
        Grid::Plane { .. } if !task.time.is_input() => {}
        Grid::Line { .. } if !task.time.is_input() => settings.extend(toml::toml! { directions = 2 }),
        _ => settings.extend(slices()),
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
        padded: vec![model.number("H")?, model.number("W")?],
        width: model.number("embed_dims")?,
        depth: model.number("depths")?,
        mlp_ratio: model.number("mlp_ratios")?,
        activation: model.activation()?,
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
        activation: model.activation()?,
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
    ragged: true,
    build,
    defaults: super::defaults::<Config>,
    moved,
    embedding,
    recipe: recipes::recipe,
    variants: recipes::VARIANTS,
    quick: recipes::quick,
    own,
    tiny,
    infer: infer::infer,
    translate: &[
        ("regular_grid", translate_patches),
        ("structured_shared", |authored| translate_slices(authored, authored.plane()?, Encoder::Shared)),
        ("structured_unshared", |authored| translate_slices(authored, authored.plane()?, Encoder::Own)),
        ("irregular_shared", |authored| translate_slices(authored, authored.cloud(), Encoder::Shared)),
        ("irregular_unshared", |authored| translate_slices(authored, authored.cloud(), Encoder::Own)),
    ],
};
