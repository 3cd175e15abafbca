//! Swin Transformer (Liu et al. 2021), as `Swin_Transformer` of the Neural-Solver-Library: each point of a plane is a token, and
//! pairs of blocks attend inside windows of w × w points, in the second block of a pair rolled by w/2 ([`WindowAttention`]):
//!
//! g ← g + A(LN₁ g);  g ← g + mlp(LN₂ g);  u = fc2(GELU(fc1 g)).
//!
//! The plane is padded with zeros to multiples of w. There is one resolution only: no patches and no hierarchy.

use super::{Authored, GridKind, Hints, Inferred, OwnData, Row, Settings, Shapes, Support, Translated};
use super::{check_heads, check_positive, check_unified, check_window, read};
use crate::error::Refusal;
use crate::network::layers::{
    LayerNorm, Lifting, LiftingShape, Mlp, ResidualMlp, WindowAttention, WindowWeights, Windows,
};
use crate::network::{Activation, Input, Mode, Model, Scope, Style};
use crate::task::Task;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// Hidden channels of a block's MLP over its width; the library's scripts cannot change it.
const MLP_RATIO: usize = 4;

/// All settings; the defaults are the library's usual ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// C, channels of the points.
    pub width: usize,
    /// Number of pairs of blocks.
    pub depth: usize,
    /// Heads of the attention.
    pub heads: usize,
    /// w, points along a side of a window.
    pub window: usize,
    /// The activation of the lifting.
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
            window: 4,
            activation: Activation::Gelu,
            unified_positions: 0,
            positions_twice: false,
            initial: Style::Small,
        }
    }
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let Config { width, depth, heads, window, activation, unified_positions, positions_twice, initial } =
        read("swin", settings)?;
    check_positive("swin", &[("width", width), ("depth", depth), ("heads", heads), ("window", window)])?;
    check_window("swin", window)?;
    check_heads("swin", width, heads, task)?;
    check_unified("swin", unified_positions, task)?;
    let extents = task.grid.plane().expect("swin supports planes only");
    let windows = windows(extents, window);
    let scope = scope.with_style(initial).with_activation(activation);
    let lifted = LiftingShape { unified_positions, positions_twice, placeholder: true, ..LiftingShape::usual(width) };
    let lifting = Lifting::new(&scope, task, lifted);
    let block = |number: usize| {
        let scope = scope.enter("blocks").enter(&(number / 2).to_string()).enter("blocks");
        Block::new(&scope.enter(&(number % 2).to_string()), windows, number % 2 == 1, heads, width)
    };
    let blocks = (0..2 * depth).map(block).collect();
    let project = Mlp::new(&scope, [width, 2 * width, task.output_channels()]);
    Ok(Box::new(Swin { extents, windows, lifting, blocks, project }))
}

/// Windows of a plane that is padded with zeros to multiples of them, as the library does.
fn windows(extents: [usize; 2], side: usize) -> Windows {
    Windows { extents: extents.map(|extent| extent.next_multiple_of(side)), side }
}

/// The model.
struct Swin<'g> {
    /// Rows and columns of the plane.
    extents: [usize; 2],
    /// How the padded plane is cut into windows.
    windows: Windows,
    lifting: Lifting<'g>,
    blocks: Vec<Block<'g>>,
    project: Mlp<'g>,
}

impl<'g> Model<'g> for Swin<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        let lifted = self.lifting.forward(input);
        let ([batch, points, width], [rows, columns]) = (lifted.dims(), self.extents);
        let [below, right] = [0, 1].map(|axis| self.windows.extents[axis] - self.extents[axis]);
        let image = lifted.reshape([batch, rows, columns, width]).pad(1, 0, below).pad(2, 0, right);
        let image = self.blocks.iter().fold(image, |image, block| block.forward(image));
        let cropped = image.slice(1, 0, rows).slice(2, 0, columns);
        self.project.forward(cropped.reshape([batch, points, width]))
    }
}

struct Block<'g> {
    windows: Windows,
    /// Points by which the plane is rolled, with the mask that belongs to it.
    shift: Option<(usize, Tensor<'g>)>,
    norm1: LayerNorm<'g>,
    attention: WindowAttention<'g>,
    norm2: LayerNorm<'g>,
    mlp: ResidualMlp<'g>,
}

impl<'g> Block<'g> {
    fn new(scope: &Scope<'_, 'g>, windows: Windows, is_second: bool, heads: usize, width: usize) -> Self {
        let Windows { extents: [rows, columns], side } = windows;
        let norm1 = LayerNorm::new(&scope.enter("norm1"), width);
        let attention = WindowAttention::new(&scope.enter("attn"), WindowWeights::Softmax, side, heads, width);
        let norm2 = LayerNorm::new(&scope.enter("norm2"), width);
        let mlp = ResidualMlp::new(&scope.enter("mlp"), [width, MLP_RATIO * width, width]);
        // A plane of one window along an axis is not rolled.
        let shift = (is_second && side > 1 && rows.min(columns) > side).then(|| {
            let (shift, shape) = (side / 2, [rows * columns / (side * side), side * side, side * side]);
            let mask = windows.mask(shift);
            scope.table("attn_mask", shape, mask.clone());
            (shift, scope.graph().constant(&mask, shape))
        });
        Block { windows, shift, norm1, attention, norm2, mlp }
    }

    /// `[batch, rows, columns, width]` → the same
    fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let (normed, windows) = (self.norm1.forward(image), self.windows);
        let mixed = match self.shift {
            None => windows.join(self.attention.forward(windows.cut(normed), None)),
            Some((shift, mask)) => {
                windows.join_rolled(self.attention.forward(windows.cut_rolled(normed, shift), Some(mask)), shift)
            }
        };
        let image = image + mixed;
        image + self.mlp.forward(self.norm2.forward(image))
    }
}

/// Sizes and training of the library's scripts.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# Swin Transformer on darcy: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, unified_positions = 8 }
             train = { rate = 0.001, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# Swin Transformer on navier-stokes: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8 }
             train = { rate = 0.001, weight_decay = 1e-5 }"
        }
        "plasticity" => {
            "# Swin Transformer on plasticity: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8 }
             train = { clip = 0.0 }
             data.scrambled = false"
        }
        "airfoil" => {
            "# Swin Transformer on airfoil: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, positions_twice = true }
             train = { clip = 0.0 }"
        }
        "pipe" => {
            "# Swin Transformer on pipe: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, positions_twice = true }
             train = { batch = 4, clip = 0.0 }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores, and weights that learn from the first epochs on.
fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => "model.settings = { width = 24, depth = 1, heads = 4, unified_positions = 0, initial = \"fan-in\" }",
        "navier-stokes" | "plasticity" | "airfoil" | "pipe" => {
            "model.settings = { width = 24, depth = 1, heads = 4, initial = \"fan-in\" }"
        }
        "own" => "model.settings = { width = 24, depth = 2, heads = 4 }",
        _ => return None,
    })
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 8
        depth = 1
        heads = 2
    }
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    const TABLE: &str = "blocks.0.blocks.0.attn.relative_position_bias_table";
    let inferred = || {
        let (grid, mut assumed) = (hints.plane()?, Vec::new());
        let offsets = (shapes.extent(TABLE, 0)? as f64).sqrt().round() as usize;
        let unified_positions = hints.setting("unified_positions").unwrap_or(0);
        let config = Config {
            width: shapes.extent("placeholder", 0)?,
            depth: shapes.count("blocks.", 0),
            heads: shapes.extent(TABLE, 1)?,
            window: offsets.div_ceil(2),
            unified_positions,
            ..Config::default()
        };
        let inputs = shapes.extent("preprocess.linear_pre.0.weight", 1)?;
        let lattice = unified_positions.saturating_mul(unified_positions);
        let [space, functions] = hints.split(inputs, lattice, grid, &mut assumed)?;
        let (outputs, time) = (shapes.extent("fc2.weight", 0)?, shapes.has("time_fc.0.weight"));
        Ok(Inferred { settings: super::settings(&config), grid, space, functions, outputs, time, assumed })
    };
    shapes.has(TABLE).then(inferred)
}

fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let model = authored.table("model");
    let config = Config {
        width: model.number("n_hidden")?,
        depth: model.number("n_layers")?,
        heads: model.number("n_heads")?,
        window: authored.table("constructor").number_or("window_size", Config::default().window)?,
        activation: model.activation()?,
        unified_positions: model.unified_positions()?,
        ..Config::default()
    };
    let task = model.task(authored.library_grid()?, "out_dim")?;
    let single_stage = config.unified_positions > 0 || task.time.is_input();
    Ok(Translated { settings: super::settings(&config), task, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "swin",
    summary: "Swin Transformer (ICCV 2021): attention in shifted windows, on planes",
    paper: "Liu et al.: Swin Transformer: Hierarchical Vision Transformer using Shifted Windows, ICCV 2021, arXiv:2103.14030",
    supports: Support { grids: &[GridKind::Plane], time: true },
    ragged: false,
    build,
    defaults: super::defaults::<Config>,
    moved: |_, _| None,
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own: OwnData::slice_settings,
    tiny,
    infer,
    translate: &[("swin", translate)],
};
