//! ResNet (He et al. 2016): blocks of two convolutions with a residual connection, at full resolution, on planes and flat
//! clouds.
//!
//! v ← max(0, v + N₂ C₂ max(0, N₁ C₁ v)), C a convolution of 3 × 3 pixels and N a norm.
//!
//! The ResNet of the papers' tables has no public code. With the usual 8 blocks this one has, as they say, 18 layers: 16
//! convolutions, the lifting and the head. Its shell is that of Neural-Solver-Library, without padding.

use super::frame::{Demand, Frame, Norm, single_stage};
use super::{Authored, GridKind, Hints, Inferred, Row, Settings, Shapes, Support, Translated, read};
use crate::error::{Refusal, require};
use crate::network::layers::{Convolution, GridNorm, GridNormKind, Mlp, Shell, relu};
use crate::network::{Activation, Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

const DEMAND: Demand = Demand { model: "resnet", steps: [1, 1], multiple: 1 };

/// All settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// C, channels of the hidden fields.
    pub width: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Frequencies of the projection of a cloud, along each axis.
    pub modes: usize,
    /// The norm after each convolution.
    pub norm: Norm,
    /// The activation of the lifting.
    pub activation: Activation,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions.
    pub unified_positions: usize,
    /// Points of the image that a cloud is projected to.
    pub lattice: [usize; 2],
    /// Width of the learned coordinates of a cloud.
    pub coordinate_width: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config::of(&Frame { width: 64, ..Frame::default() }, 8, Norm::Auto)
    }
}

impl Config {
    fn of(frame: &Frame, depth: usize, norm: Norm) -> Self {
        let Frame { width, modes, activation, unified_positions, lattice, coordinate_width, .. } = *frame;
        Config { width, depth, modes, norm, activation, unified_positions, lattice, coordinate_width }
    }

    fn frame(&self) -> Frame {
        let Config { width, modes, activation, unified_positions, lattice, coordinate_width, .. } = *self;
        Frame { width, modes, activation, unified_positions, lattice, coordinate_width, ..Frame::default() }
    }
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("resnet", settings)?;
    let Config { width, depth, norm, .. } = config;
    require(depth > 0, || Refusal::new("model resnet: depth", "at least 1", "0"))?;
    let shape = config.frame().shell(task, &DEMAND)?;
    let norm = norm.check(task, &shape, &DEMAND)?;
    let shell = Shell::new(scope, task, shape);
    let block = |number: usize| Block::new(&scope.enter("blocks").enter(&number.to_string()), width, norm);
    let blocks = (0..depth).map(block).collect();
    Ok(Box::new(ResNet { shell, blocks, head: Mlp::new(scope, [width, width, task.output_channels()]) }))
}

/// v ← max(0, v + N₂ C₂ max(0, N₁ C₁ v)).
struct Block<'g> {
    layers: [(Convolution<'g>, GridNorm<'g>); 2],
}

impl<'g> Block<'g> {
    fn new(scope: &Scope<'_, 'g>, width: usize, norm: GridNormKind) -> Self {
        let layer = |names: [&str; 2]| {
            let convolution = Convolution::new(&scope.enter(names[0]), 2, [width; 2]);
            (convolution, GridNorm::new(&scope.enter(names[1]), width, norm))
        };
        Block { layers: [["conv1", "bn1"], ["conv2", "bn2"]].map(layer) }
    }

    /// `[batch, rows, columns, width]` → `[batch, rows, columns, width]`
    fn forward(&self, field: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        let [first, second] = &self.layers;
        let hidden = relu(first.1.forward(first.0.forward(field), mode));
        relu(second.1.forward(second.0.forward(hidden), mode) + field)
    }
}

/// The model.
struct ResNet<'g> {
    shell: Shell<'g>,
    blocks: Vec<Block<'g>>,
    head: Mlp<'g>,
}

impl<'g> Model<'g> for ResNet<'g> {
    fn forward(&self, input: &Input<'g>, mode: Mode) -> Tensor<'g> {
        let body = |image| self.blocks.iter().fold(image, |field, block| block.forward(field, mode));
        self.head.forward(self.shell.forward(input, body))
    }
}

/// Training as for the U-Net of the library.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# ResNet on darcy: 18 layers, trained as the U-Net of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, unified_positions = 8 }
             train = { rate = 0.001, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# ResNet on navier-stokes: 18 layers, trained as the U-Net of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8 }
             train = { rate = 0.001, weight_decay = 1e-5 }"
        }
        "elasticity" => {
            "# ResNet on elasticity: 18 layers, trained as the U-Net of the Neural-Solver-Library.
             model.settings = { width = 32, depth = 8, modes = 12 }
             train.clip = 0.0"
        }
        "plasticity" => {
            "# ResNet on plasticity: 18 layers, trained as the U-Net of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8 }
             data.scrambled = false
             train.clip = 0.0"
        }
        "airfoil" => {
            "# ResNet on airfoil: 18 layers, trained as the U-Net of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8 }
             train.clip = 0.0"
        }
        "pipe" => {
            "# ResNet on pipe: 18 layers, trained as the U-Net of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8 }
             train = { batch = 4, clip = 0.0 }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores.
fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "elasticity" => "model.settings = { width = 16, depth = 4, modes = 8, lattice = [32, 32] }",
        "own" => "model.settings = { width = 16, depth = 4, lattice = [48, 48] }",
        "darcy" | "navier-stokes" | "plasticity" | "airfoil" | "pipe" => {
            "model.settings = { width = 16, depth = 4, unified_positions = 0 }"
        }
        _ => return None,
    })
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 8
        depth = 2
        modes = 3
        lattice = [8, 10]
        coordinate_width = 8
    }
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    const FIRST: &str = "blocks.0.conv1.weight";
    let inferred = || {
        let (frame, inferred) = Frame::infer(shapes, hints, (FIRST, 2))?;
        let config = Config::of(&frame, shapes.count("blocks.", 0), Norm::infer(shapes, "blocks.0.bn1"));
        Ok(Inferred { settings: super::settings(&config), ..inferred })
    };
    shapes.has(FIRST).then(inferred)
}

fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let (frame, task) = Frame::translate(authored)?;
    let config = Config::of(&frame, authored.table("model").number("n_layers")?, Norm::translate(authored));
    let single_stage = single_stage(&task);
    Ok(Translated { settings: super::settings(&config), task, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "resnet",
    summary: "ResNet (CVPR 2016): convolutions with residual connections at full resolution, on planes and flat clouds",
    paper: "He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, CVPR 2016, arXiv:1512.03385",
    supports: Support { grids: &[GridKind::Plane, GridKind::FlatCloud], time: true },
    ragged: false,
    build,
    defaults: super::defaults::<Config>,
    moved: super::unet::moved,
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own: |_| Settings::new(),
    tiny,
    infer,
    translate: &[("resnet", translate)],
};
