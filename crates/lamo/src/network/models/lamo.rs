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

pub use config::{Config, Decoder, Encoder, Latent, Mixer};

use super::{Settings, read};
use crate::error::Refusal;
use crate::network::layers::{
    Depatchify, Hydra, LayerNorm, Mamba2, Mlp, Patchify, SliceShape, SliceStack, Ss2d, StackShape, TokenMixer,
};
use crate::network::{Initial, Input, Mode, Model, Scope, Style};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;

/// Each patch has an embedding of its own.
pub(super) fn is_local(settings: &Settings) -> bool {
    read("lamo", settings).is_ok_and(|config: Config| config.latent == Latent::Patches)
}

pub(super) fn build<'g>(
    scope: &Scope<'_, 'g>,
    task: &Task,
    settings: &Settings,
) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
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
        let mut tokens = self.encode.forward(image) + self.position; // padded tokens take part in everything
        for block in &self.blocks {
            tokens = block.forward(tokens, self.patches);
        }
        let image = self.decode.forward(tokens, padded_rows, padded_columns);
        let [_, _, _, outputs] = image.dims();
        image.slice(1, 0, rows).slice(2, 0, columns).reshape([batch, points, outputs])
    }
}
