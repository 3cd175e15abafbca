//! Latent Spectral Model (Wu et al. 2023; `LSM` of Neural-Solver-Library) on lines, planes, volumes and flat clouds: a
//! U-Net whose skips and coarsest level pass through a [`SpectralBlock`] each.
//!
//! All levels have patches of the same number of points, a sixteenth of the image along each axis: 16 × 16 patches of a plane at
//! the finest level, one at the coarsest.

use super::frame::{Demand, Frame, Norm, axes, single_stage};
use super::{Authored, Hints, Inferred, OwnData, Row, Settings, Shapes, Support, Translated, read};
use crate::error::{Refusal, require};
use crate::network::layers::{BlockShape, COARSEST, Mlp, Shell, SpectralBlock, UBody};
use crate::network::{Activation, Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

const DEMAND: Demand = super::unet::demand("lsm");

/// All settings; the defaults are the library's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// C, channels of the finest level.
    pub width: usize,
    /// Heads of the attention between pixels and latent tokens.
    pub heads: usize,
    /// Latent tokens of each head and patch.
    pub tokens: usize,
    /// Sines, and cosines, that a latent token passes through.
    pub bases: usize,
    /// Frequencies of the projection of a cloud, along each axis.
    pub modes: usize,
    /// The norm after each convolution.
    pub norm: Norm,
    /// The activation of the lifting.
    pub activation: Activation,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions.
    pub unified_positions: usize,
    /// Points along each axis after zero padding; 0 is the next multiple of 16. A line is padded to the second; a volume has three.
    pub padded: Vec<usize>,
    /// Points of the image that a cloud is projected to.
    pub lattice: [usize; 2],
    /// Width of the learned coordinates of a cloud.
    pub coordinate_width: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config::of(Frame::default(), [8, 4, 12], Norm::Auto)
    }
}

impl Config {
    fn of(frame: Frame, [heads, tokens, bases]: [usize; 3], norm: Norm) -> Self {
        let Frame { width, modes, activation, unified_positions, padded, lattice, coordinate_width, .. } = frame;
        Config {
            width,
            heads,
            tokens,
            bases,
            modes,
            norm,
            activation,
            unified_positions,
            padded,
            lattice,
            coordinate_width,
        }
    }

    fn frame(&self) -> Frame {
        let Config { width, modes, activation, unified_positions, padded, lattice, coordinate_width, .. } =
            self.clone();
        Frame { width, modes, activation, unified_positions, positions_twice: false, padded, lattice, coordinate_width }
    }
}

/// Declares the parameters under the library's names, in its order.
fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("lsm", settings)?;
    let Config { width, heads, tokens, bases, .. } = config;
    for (name, value) in [("heads", heads), ("tokens", tokens), ("bases", bases)] {
        require(value > 0, || Refusal::new(format!("model lsm: {name}"), "at least 1", "0"))?;
    }
    require(width.is_multiple_of(heads), || format!("model lsm: width {width} does not divide into {heads} heads"))?;
    let shape = config.frame().shell(task, &DEMAND)?;
    let norm = config.norm.check(task, &shape, &DEMAND)?;
    let (axes, patch) = (axes(task.grid), shape.image.map(|extent| extent.div_ceil(COARSEST)));
    let shell = Shell::new(scope, task, shape);
    let body = UBody::new(scope, axes, width, norm);
    let widths = UBody::down_widths(width);
    let blocks = std::array::from_fn(|level| {
        let shape = BlockShape { axes, width: widths[level], heads, tokens, bases, patch };
        SpectralBlock::new(&scope.enter(&format!("process{}", level + 1)), shape)
    });
    Ok(Box::new(Lsm { shell, body, blocks, head: Mlp::new(scope, [width, 2 * width, task.output_channels()]) }))
}

/// The model.
struct Lsm<'g> {
    shell: Shell<'g>,
    body: UBody<'g>,
    blocks: [SpectralBlock<'g>; 5],
    head: Mlp<'g>,
}

impl<'g> Model<'g> for Lsm<'g> {
    fn forward(&self, input: &Input<'g>, mode: Mode) -> Tensor<'g> {
        let same = |_: usize, field: Tensor<'g>| field;
        let body = |image: Tensor<'g>| {
            let fields = self.body.descend(image, mode, same); // the way down sees the fields before their blocks
            let fields = std::array::from_fn(|level| self.blocks[level].forward(fields[level]));
            self.body.ascend(fields, mode, same)
        };
        self.head.forward(self.shell.forward(input, body))
    }
}

/// Sizes and training of the library's scripts.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# LSM on darcy: script of the Neural-Solver-Library.
             # Theirs normalises each point by itself; this one normalises all points together.
             model.settings = { width = 64, heads = 8, tokens = 4, bases = 12 }
             train = { batch = 20, weight_decay = 1e-4, schedule = \"step-by-epoch\", optimiser = \"adam\", loss = \"relative-l2\", clip = 0.0 }"
        }
        "navier-stokes" => {
            "# LSM on navier-stokes: script of the Neural-Solver-Library.
             model.settings = { width = 64, heads = 8, tokens = 4, bases = 12 }
             train = { batch = 20, rate = 0.0005, weight_decay = 1e-4, schedule = \"step-by-epoch\", teacher_forcing = false }"
        }
        "elasticity" => {
            "# LSM on elasticity: script of the Neural-Solver-Library.
             model.settings = { width = 32, heads = 8, tokens = 4, bases = 12, modes = 12 }
             train = { batch = 4, schedule = \"onecycle\", clip = 0.0 }"
        }
        "plasticity" => {
            "# LSM on plasticity: script of the Neural-Solver-Library.
             model.settings = { width = 32, heads = 8, tokens = 4, bases = 12 }
             data.scrambled = false
             train = { batch = 4, clip = 0.0 }"
        }
        "airfoil" => {
            "# LSM on airfoil: script of the Neural-Solver-Library.
             model.settings = { width = 32, heads = 8, tokens = 4, bases = 12 }
             train.clip = 0.0"
        }
        "pipe" => {
            "# LSM on pipe: script of the Neural-Solver-Library.
             model.settings = { width = 32, heads = 8, tokens = 4, bases = 12 }
             train = { batch = 4, clip = 0.0 }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores.
fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "elasticity" => "model.settings = { width = 8, heads = 4, modes = 8, lattice = [32, 32] }",
        "own" => "model.settings = { width = 8, heads = 4, lattice = [48, 48] }",
        "darcy" | "navier-stokes" => {
            "model.settings = { width = 8, heads = 4 }
             train = { schedule = \"onecycle\", optimiser = \"adamw\", teacher_forcing = true }"
        }
        "plasticity" | "airfoil" | "pipe" => "model.settings = { width = 8, heads = 4 }",
        _ => return None,
    })
}

fn own(data: &OwnData) -> Settings {
    Frame::own(data, &DEMAND)
}

fn tiny(task: &Task) -> Settings {
    let mut settings = super::unet::tiny(task);
    settings.extend(toml::toml! {
        heads = 2
        tokens = 3
        bases = 4
    });
    settings
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    const LATENT: &str = "process1.latent";
    let inferred = || {
        let (frame, inferred) = Frame::infer(shapes, hints, ("inc.double_conv.0.weight", 2))?;
        let sizes = [shapes.extent(LATENT, 0)?, shapes.extent(LATENT, 1)?, shapes.extent("process1.weights", 1)? / 2];
        let config = Config::of(frame, sizes, Norm::infer(shapes, "inc.double_conv.1"));
        Ok(Inferred { settings: super::settings(&config), ..inferred })
    };
    shapes.has(LATENT).then(inferred)
}

/// `LSM` of the library.
fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let ((frame, task), constructor) = (Frame::translate(authored)?, authored.table("constructor"));
    let usual = Config::default();
    let sizes = [
        authored.table("model").number_or("n_heads", usual.heads)?,
        constructor.number_or("num_token", usual.tokens)?,
        constructor.number_or("num_basis", usual.bases)?,
    ];
    let config = Config::of(frame, sizes, Norm::translate(authored));
    let single_stage = single_stage(&task);
    Ok(Translated { settings: super::settings(&config), task, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "lsm",
    summary: "Latent Spectral Model (ICML 2023): a U-Net with sines and cosines of latent tokens on its skips",
    paper: "Wu, Hu, Luo, Wang, Long: Solving High-Dimensional PDEs with Latent Spectral Models, ICML 2023, arXiv:2301.12664",
    supports: Support::PROJECTED,
    ragged: false,
    build,
    defaults: super::defaults::<Config>,
    moved: super::unet::moved,
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own,
    tiny,
    infer,
    translate: &[("lsm", translate)],
};
