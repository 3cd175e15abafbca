//! FactFormer (Li et al. 2023), as `Factformer` of the Neural-Solver-Library: blocks of attention along each axis of the grid,
//!
//! f ← f + A(LN f);  f ← f + mlp(LN₂ f),  A of [`AxialAttention`] on planes and boxes, softmax attention on lines.
//!
//! The library's network is simpler than the authors': it has neither rotations by position nor norms in the heads.

use super::{Authored, GridKind, Hints, Inferred, OwnData, Row, Settings, Shapes, Support, Translated};
use super::{check_heads, check_positive, check_unified, read};
use crate::error::{Refusal, require};
use crate::network::layers::{
    Attention, AxialAttention, LayerNorm, Linear, PointMixer, PointStack, PointStackShape, TokenMixer,
};
use crate::network::{Activation, Model, Scope, Style};
use crate::task::Task;
use lamo_geometry::Grid;
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
    /// Extents of the box on which the points of a cloud lie, the last axis fastest; zeros take the axes of the grid.
    pub extents: [usize; 3],
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
            extents: [0; 3],
            initial: Style::Small,
        }
    }
}

impl Config {
    /// Points along each axis.
    fn axes(&self, grid: Grid) -> Result<Vec<usize>, Refusal> {
        let extents = self.extents;
        if extents == [0; 3] {
            return Ok(grid.shape());
        }
        let points: usize = extents.iter().product();
        require(matches!(grid, Grid::Cloud { .. }) && points == grid.points(), || {
            let expected = match grid {
                Grid::Cloud { points } => format!("three numbers whose product is {points}"),
                Grid::Line { .. } | Grid::Plane { .. } | Grid::Volume { .. } => {
                    "[0, 0, 0] for a grid that has axes".to_owned()
                }
            };
            Refusal::new("model factformer: extents", expected, format!("{extents:?}"))
        })?;
        Ok(extents.to_vec())
    }
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("factformer", settings)?;
    let Config { width, depth, heads, mlp_ratio, activation, unified_positions, positions_twice, initial, .. } = config;
    check_positive("factformer", &[("width", width), ("depth", depth), ("heads", heads), ("mlp_ratio", mlp_ratio)])?;
    check_heads("factformer", width, heads, task)?;
    check_unified("factformer", unified_positions, task)?;
    let axes = config.axes(task.grid)?;
    let shape = PointStackShape { width, depth, mlp_ratio, unified_positions, positions_twice };
    let mixer = |block: &Scope<'_, 'g>| -> Box<dyn PointMixer<'g> + 'g> {
        Box::new(Mixer {
            norm: LayerNorm::new(&block.enter("ln_1"), width),
            along: Along::new(&block.enter("Attn"), &axes, heads, width),
        })
    };
    let scope = scope.with_style(initial).with_activation(activation);
    Ok(Box::new(PointStack::new(&scope, task, shape, mixer)))
}

/// The attention of a block with its norm.
struct Mixer<'g> {
    norm: LayerNorm<'g>,
    along: Along<'g>,
}

/// Attention along one axis or along each of several.
enum Along<'g> {
    One(Attention<'g>, Linear<'g>),
    Several(AxialAttention<'g>),
}

impl<'g> Along<'g> {
    fn new(scope: &Scope<'_, 'g>, axes: &[usize], heads: usize, width: usize) -> Self {
        if axes.len() > 1 {
            return Along::Several(AxialAttention::new(scope, axes, heads, width));
        }
        let attention = Attention::new(scope, heads, width / heads);
        Along::One(attention, Linear::new(&scope.enter("to_out.0"), width, width))
    }
}

impl<'g> PointMixer<'g> for Mixer<'g> {
    fn mix(&self, features: Tensor<'g>, _mask: Option<Tensor<'g>>) -> Tensor<'g> {
        let normed = self.norm.forward(features);
        match &self.along {
            Along::One(attention, out) => out.forward(attention.mix(normed)),
            Along::Several(attention) => attention.forward(normed),
        }
    }
}

/// Sizes and training of the library's scripts. Its script for Pipe has the sizes of Darcy, and that for Plasticity runs Pipe,
/// so that Pipe has those of the latter and Plasticity those of the other models.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# FactFormer on darcy: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 2, unified_positions = 8 }
             train = { rate = 0.001, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# FactFormer on navier-stokes: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 256, depth = 8, heads = 8, mlp_ratio = 2, unified_positions = 8 }
             train = { rate = 0.001, weight_decay = 1e-5 }"
        }
        "plasticity" => {
            "# FactFormer on plasticity: sizes of the library's other transformers there, training as in its scripts.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 1, unified_positions = 0 }
             train = { clip = 0.0 }
             data.scrambled = false"
        }
        "airfoil" => {
            "# FactFormer on airfoil: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 32, depth = 8, heads = 8, mlp_ratio = 1, unified_positions = 0 }
             train = { clip = 0.0 }"
        }
        "pipe" => {
            "# FactFormer on pipe: sizes and training of the Neural-Solver-Library.
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
    const ALONG: &str = "blocks.0.Attn.attn_x.to_q.weight";
    let inferred = || {
        let (stack, inferred) = shapes.point_stack(hints)?;
        let channels = shapes.extent("blocks.0.Attn.to_v.weight", 0)?;
        let mut extents = [0; 3];
        if !shapes.has(ALONG) {
            hints.line()?;
        } else if shapes.has("blocks.0.Attn.attn_z.to_q.weight") && !matches!(hints.grid, Some(Grid::Volume { .. })) {
            let said = hints.settings.get("extents").and_then(|value| value.clone().try_into().ok());
            extents = said.ok_or_else(|| {
                Refusal::said("the shapes of the tensors do not tell the extents of the box")
                    .advise("say it with --set task.grid=ROWSxCOLUMNSxLAYERS, or model.settings.extents=[N, N, N] and task.grid=cloud:POINTS")
            })?;
        } else {
            hints.plane()?;
        }
        let config = Config {
            width: stack.width,
            depth: stack.depth,
            heads: super::shapes::ratio("heads", stack.width, channels)?,
            mlp_ratio: stack.mlp_ratio,
            unified_positions: stack.unified_positions,
            extents,
            ..Config::default()
        };
        Ok(Inferred { settings: super::settings(&config), ..inferred })
    };
    let on_a_line = || {
        let others = ["blocks.0.Attn.in_project_slice.weight", "blocks.0.mu"]; // Transolver and ONO
        shapes.has("blocks.0.Attn.to_q.weight") && !others.iter().any(|name| shapes.has(name))
    };
    (shapes.has(ALONG) || on_a_line()).then(inferred)
}

fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let model = authored.table("model");
    let grid = authored.library_grid()?;
    let config = Config {
        width: model.number("n_hidden")?,
        depth: model.number("n_layers")?,
        heads: model.number("n_heads")?,
        mlp_ratio: model.number("mlp_ratio")?,
        activation: model.activation()?,
        unified_positions: model.unified_positions()?,
        ..Config::default()
    };
    let task = model.task(grid, "out_dim")?;
    let single_stage = config.unified_positions > 0 || task.time.is_input();
    Ok(Translated { settings: super::settings(&config), task, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "factformer",
    summary: "FactFormer (NeurIPS 2023): attention along each axis, on lines, planes and volumes",
    paper: "Li, Shu, Barati Farimani: Scalable Transformer for PDE Surrogate Modeling, NeurIPS 2023, arXiv:2305.17560",
    supports: Support { grids: &[GridKind::Line, GridKind::Plane, GridKind::Volume], time: true },
    ragged: false,
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
    translate: &[("factformer", translate)],
};
