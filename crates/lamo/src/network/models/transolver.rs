//! Transolver (Wu et al., ICML 2024): the slice stack with softmax attention over the tokens of each head,
//!
//! softmax(q kᵀ/√c) v,  q, k, v linear maps that all heads share.

use super::{Authored, Hints, Inferred, OwnData, Row, Settings, Shapes, Support, Translated, check_unified, read};
use crate::error::{Refusal, require};
use crate::network::layers::{Attention, Decoder, Levers, SliceShape, SliceStack, StackShape, TokenMixer};
use crate::network::{Activation, Model, Scope, Style};
use crate::task::Task;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};

/// All settings; the defaults are the official mesh models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// C, channels of points and tokens.
    pub width: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Heads of slices and attention.
    pub slice_heads: usize,
    /// M, slices per head.
    pub tokens: usize,
    /// Hidden channels of a block's MLP over its width.
    pub mlp_ratio: usize,
    /// The activation of the lifting and of a block's MLP.
    pub activation: Activation,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions.
    pub unified_positions: usize,
    /// First values of the linear maps; small is the authors'.
    pub initial: Style,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            width: 128,
            depth: 8,
            slice_heads: 8,
            tokens: 64,
            mlp_ratio: 1,
            activation: Activation::Gelu,
            unified_positions: 0,
            initial: Style::Small,
        }
    }
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("transolver", settings)?;
    let Config { width, depth, slice_heads, tokens, mlp_ratio, activation, unified_positions, initial } = config;
    for (name, value) in
        [("width", width), ("depth", depth), ("slice_heads", slice_heads), ("tokens", tokens), ("mlp_ratio", mlp_ratio)]
    {
        require(value > 0, || format!("model transolver: {name} must be at least 1, found 0"))?;
    }
    require(width.is_multiple_of(slice_heads), || {
        format!("model transolver: width {width} does not divide into {slice_heads} slice heads")
    })?;
    check_unified("transolver", unified_positions, task)?;
    require(!task.time.is_input() || width % 2 == 0, || {
        format!("model transolver: a time needs an even width, found {width}")
    })?;
    let shape = StackShape {
        width,
        slices: SliceShape { grid: task.grid, width, heads: slice_heads, tokens },
        depth,
        mlp_ratio,
        shared: false,
        decoder: Decoder::Tied,
        levers: Levers::default(),
        unified_positions,
    };
    let attention = |block: &Scope<'_, 'g>| -> Box<dyn TokenMixer<'g> + 'g> {
        Box::new(Attention::new(block, slice_heads, width / slice_heads))
    };
    let scope = scope.with_style(initial).with_activation(activation);
    Ok(Box::new(SliceStack::new(&scope, task, shape, attention)))
}

/// Sizes of the official scripts.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# Transolver on darcy: sizes of its official scripts, recipe as for LaMO.
             model.settings = { width = 128, depth = 8, slice_heads = 8, tokens = 64, mlp_ratio = 1, unified_positions = 8 }"
        }
        "navier-stokes" => {
            "# Transolver on navier-stokes: sizes of its official scripts, recipe as for LaMO.
             model.settings = { width = 256, depth = 8, slice_heads = 8, tokens = 32, mlp_ratio = 1, unified_positions = 8 }"
        }
        "elasticity" => {
            "# Transolver on elasticity: sizes of its official scripts, recipe as for LaMO.
             model.settings = { width = 128, depth = 8, slice_heads = 8, tokens = 64, mlp_ratio = 1, unified_positions = 0 }"
        }
        "plasticity" => {
            "# Transolver on plasticity: sizes of its official scripts, recipe as for LaMO.
             model.settings = { width = 128, depth = 8, slice_heads = 8, tokens = 64, mlp_ratio = 1, unified_positions = 0 }"
        }
        "airfoil" => {
            "# Transolver on airfoil: sizes of its official scripts, recipe as for LaMO.
             model.settings = { width = 128, depth = 8, slice_heads = 8, tokens = 64, mlp_ratio = 1, unified_positions = 0 }"
        }
        "pipe" => {
            "# Transolver on pipe: sizes of its official scripts, recipe as for LaMO.
             model.settings = { width = 128, depth = 8, slice_heads = 8, tokens = 64, mlp_ratio = 2, unified_positions = 0 }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores.
fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => "model.settings = { width = 32, depth = 4, slice_heads = 4, tokens = 32, unified_positions = 0 }",
        "navier-stokes" => {
            "model.settings = { width = 32, depth = 2, slice_heads = 4, tokens = 32, unified_positions = 0 }"
        }
        "elasticity" => "model.settings = { width = 64, depth = 3, slice_heads = 4, tokens = 32 }",
        "plasticity" => {
            "model.settings = { width = 32, depth = 2, slice_heads = 4, tokens = 16, initial = \"fan-in\" }"
        }
        "airfoil" => "model.settings = { width = 32, depth = 2, slice_heads = 4, tokens = 16 }",
        "pipe" => "model.settings = { width = 32, depth = 2, slice_heads = 4, tokens = 16, mlp_ratio = 1 }",
        "own" => "model.settings = { width = 32, depth = 4, slice_heads = 4, tokens = 32 }",
        _ => return None,
    })
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 16
        depth = 1
        mlp_ratio = 1
        tokens = 4
        slice_heads = 2
    }
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    let inferred = || {
        let (stack, inferred) = shapes.stack(hints)?;
        let config = Config {
            width: stack.width,
            depth: stack.depth,
            slice_heads: stack.heads,
            tokens: stack.tokens,
            mlp_ratio: stack.mlp_ratio,
            unified_positions: stack.unified_positions,
            ..Config::default()
        };
        Ok(Inferred { settings: super::settings(&config), ..inferred })
    };
    let slices = shapes.has("blocks.0.Attn.in_project_slice.weight");
    (slices && shapes.has("blocks.0.Attn.to_q.weight")).then(inferred)
}

fn translate(authored: &Authored<'_>, grid: Grid) -> Result<Translated, Refusal> {
    let model = authored.table("model");
    let config = Config {
        width: model.number("n_hidden")?,
        depth: model.number("n_layers")?,
        slice_heads: model.number("n_head")?,
        tokens: model.number("slice_num")?,
        mlp_ratio: model.number("mlp_ratio")?,
        activation: model.activation()?,
        unified_positions: model.unified_positions()?,
        ..Config::default()
    };
    let (settings, single_stage) = (super::settings(&config), config.unified_positions > 0);
    Ok(Translated { settings, task: model.task(grid, "out_dim")?, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "transolver",
    summary: "Transolver (ICML 2024): attention over softmax slices",
    paper: "Wu, Luo, Wang, Wang, Long: Transolver: A Fast Transformer Solver for PDEs on General Geometries, ICML 2024, \
            arXiv:2402.02366",
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
    translate: &[
        ("transolver_structured", |authored| translate(authored, authored.plane()?)),
        ("transolver_irregular", |authored| translate(authored, authored.cloud())),
    ],
};
