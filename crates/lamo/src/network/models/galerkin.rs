//! Galerkin Transformer (Cao 2021), as `Galerkin_Transformer` of the Neural-Solver-Library: blocks of linear attention,
//!
//! f ← f + A(LN f, LN′ f);  f ← f + mlp(LN₂ f),  A of [`LinearAttention`] with the scale 1/points.
//!
//! The library's network is not the author's: it has softmaxes over channels in place of norms of k and v, no coordinates in
//! the heads, and a linear map in place of the spectral decoder.

use super::{Authored, Hints, Inferred, OwnData, Row, Settings, Shapes, Support, Translated};
use super::{check_heads, check_positive, check_unified, read};
use crate::error::Refusal;
use crate::network::layers::{LayerNorm, LinearAttention, LinearScale, PointMixer, PointStack, PointStackShape};
use crate::network::{Activation, Input, Mode, Model, Scope, Style};
use crate::task::Task;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// All settings; the defaults are the library's usual ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// C, channels of the points.
    pub width: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Heads of the attention.
    pub heads: usize,
    /// Hidden channels of a block's MLP over its width.
    pub mlp_ratio: usize,
    /// The activation of the lifting and of a block's MLP.
    pub activation: Activation,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions.
    pub unified_positions: usize,
    /// Gives the positions a second time, as input functions, as some scripts of the library do.
    pub positions_twice: bool,
    /// First values of the linear maps; small is the library's.
    pub initial: Style,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            width: 128,
            depth: 8,
            heads: 8,
            mlp_ratio: 2,
            activation: Activation::Gelu,
            unified_positions: 0,
            positions_twice: false,
            initial: Style::Small,
        }
    }
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let Config { width, depth, heads, mlp_ratio, activation, unified_positions, positions_twice, initial } =
        read("galerkin", settings)?;
    check_positive("galerkin", &[("width", width), ("depth", depth), ("heads", heads), ("mlp_ratio", mlp_ratio)])?;
    check_heads("galerkin", width, heads, task)?;
    check_unified("galerkin", unified_positions, task)?;
    let shape = PointStackShape { width, depth, mlp_ratio, unified_positions, positions_twice };
    let mixer =
        |block: &Scope<'_, 'g>| -> Box<dyn PointMixer<'g> + 'g> { Box::new(Galerkin::new(block, heads, width)) };
    let scope = scope.with_style(initial).with_activation(activation);
    Ok(Box::new(PointStack::new(&scope, task, shape, mixer)))
}

impl<'g> Model<'g> for PointStack<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        PointStack::forward(self, input)
    }
}

/// The attention of a block with its two norms.
struct Galerkin<'g> {
    query_norm: LayerNorm<'g>,
    key_norm: LayerNorm<'g>,
    attention: LinearAttention<'g>,
}

impl<'g> Galerkin<'g> {
    fn new(block: &Scope<'_, 'g>, heads: usize, width: usize) -> Self {
        Galerkin {
            query_norm: LayerNorm::new(&block.enter("ln_1"), width),
            key_norm: LayerNorm::new(&block.enter("ln_1a"), width),
            attention: LinearAttention::new(&block.enter("Attn"), LinearScale::Galerkin, heads, width),
        }
    }
}

impl<'g> PointMixer<'g> for Galerkin<'g> {
    fn mix(&self, features: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
        self.attention.forward_masked(self.query_norm.forward(features), self.key_norm.forward(features), mask)
    }
}

/// Sizes and training of the library's scripts.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# Galerkin Transformer on darcy: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 2, unified_positions = 8 }
             train = { rate = 0.001, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# Galerkin Transformer on navier-stokes: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 256, depth = 8, heads = 8, mlp_ratio = 2, unified_positions = 8 }
             train = { rate = 0.001, weight_decay = 1e-5 }"
        }
        "elasticity" => {
            "# Galerkin Transformer on elasticity: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 2, unified_positions = 0 }
             train = { clip = 0.0 }"
        }
        "plasticity" => {
            "# Galerkin Transformer on plasticity: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 1, unified_positions = 0 }
             train = { clip = 0.0 }
             data.scrambled = false"
        }
        "airfoil" => {
            "# Galerkin Transformer on airfoil: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 1, unified_positions = 0 }
             train = { clip = 0.0 }"
        }
        "pipe" => {
            "# Galerkin Transformer on pipe: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 2, unified_positions = 0, positions_twice = true }
             train = { batch = 4, clip = 0.0 }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores, and weights that learn from the first epochs on.
fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" | "navier-stokes" => {
            "model.settings = { width = 32, depth = 3, heads = 4, mlp_ratio = 1, unified_positions = 0, initial = \"fan-in\" }"
        }
        "elasticity" => "model.settings = { width = 64, depth = 4, heads = 4, mlp_ratio = 1, initial = \"fan-in\" }",
        "plasticity" | "airfoil" | "pipe" => {
            "model.settings = { width = 32, depth = 2, heads = 4, mlp_ratio = 1, initial = \"fan-in\" }"
        }
        "own" => "model.settings = { width = 32, depth = 4, heads = 4, mlp_ratio = 1 }",
        _ => return None,
    })
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 16
        depth = 1
        heads = 2
        mlp_ratio = 1
    }
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    let inferred = || {
        let (stack, mut inferred) = shapes.point_stack(hints)?;
        let heads = hints.heads(&mut inferred.assumed);
        let config = Config {
            width: stack.width,
            depth: stack.depth,
            heads,
            mlp_ratio: stack.mlp_ratio,
            unified_positions: stack.unified_positions,
            ..Config::default()
        };
        Ok(Inferred { settings: super::settings(&config), ..inferred })
    };
    shapes.has("blocks.0.ln_1a.weight").then(inferred)
}

fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let model = authored.table("model");
    let config = Config {
        width: model.number("n_hidden")?,
        depth: model.number("n_layers")?,
        heads: model.number("n_heads")?,
        mlp_ratio: model.number("mlp_ratio")?,
        activation: model.activation()?,
        unified_positions: model.unified_positions()?,
        ..Config::default()
    };
    let task = model.task(authored.library_grid()?, "out_dim")?;
    let single_stage = config.unified_positions > 0 || task.time.is_input();
    Ok(Translated { settings: super::settings(&config), task, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "galerkin",
    summary: "Galerkin Transformer (NeurIPS 2021): linear attention among all points",
    paper: "Cao: Choose a Transformer: Fourier or Galerkin, NeurIPS 2021, arXiv:2105.14995",
    supports: Support::EVERYTHING,
    ragged: true,
    build,
    defaults: super::defaults::<Config>,
    moved: |settings, _| Some(settings.clone()),
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own: OwnData::slice_settings,
    tiny,
    infer,
    translate: &[("galerkin", translate)],
};
