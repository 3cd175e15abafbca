//! U-NO (Rahman et al. 2023; `U_NO` of Neural-Solver-Library) on lines, planes, volumes and flat clouds: a U-Net with a
//! Fourier layer after each of its stages,
//!
//! x ← σ(F⁻¹(R · F x) + W x).
//!
//! W is no linear map in the library: it is a double convolution through one channel in the middle, with batch norm in every
//! task. So it is here.

use super::frame::{Demand, Frame, GridConfig, axes, own_modes_in_volumes};
use super::{Hints, Inferred, OwnData, Row, Settings, Shapes, Support, read};
use crate::error::Refusal;
use crate::network::layers::{DoubleConvolution, GridNormKind, ImageConvolution, LEVELS, Mlp, Shell, UBody};
use crate::network::{Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;

const DEMAND: Demand = super::unet::demand("uno");

/// Modes at a level, counted from 0: at most half of its pixels along the shortest axis, and one at least.
fn modes_at(level: usize, modes: usize, shorter: usize) -> usize {
    modes.min(shorter >> (level + 1)).max(1)
}

/// Declares the parameters under the library's names, in its order.
fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: GridConfig = read("uno", settings)?;
    let (GridConfig { width, modes, norm, .. }, axes) = (config.clone(), axes(task.grid));
    let shape = config.frame().shell(task, &DEMAND)?;
    let norm = norm.check(task, &shape, &DEMAND)?;
    let shorter = shape.image[3 - axes..].iter().copied().min().expect("a grid has an axis");
    let shell = Shell::new(scope, task, shape);
    let body = UBody::new(scope, axes, width, norm);
    // The library declares the Fourier layers of one way before their double convolutions.
    let way = |name: &str, widths: [usize; LEVELS]| {
        let scope = |kind: &str, level: usize| scope.enter(&format!("{kind}{}_{name}", level + 1));
        let spectral: [_; LEVELS] = std::array::from_fn(|level| {
            let modes = modes_at(level, modes, shorter);
            ImageConvolution::new(&scope("process", level), axes, [widths[level]; 2], modes)
        });
        let local: [_; LEVELS] = std::array::from_fn(|level| {
            DoubleConvolution::new(&scope("w", level), axes, [widths[level], 1, widths[level]], GridNormKind::Batch)
        });
        Way { spectral, local }
    };
    let (down, up) = (way("down", UBody::down_widths(width)), way("up", UBody::up_widths(width)));
    Ok(Box::new(Uno { shell, body, down, up, head: Mlp::new(scope, [width, 2 * width, task.output_channels()]) }))
}

/// The Fourier layers of the way down or up, one for each level.
struct Way<'g> {
    /// R
    spectral: [ImageConvolution<'g>; LEVELS],
    /// W
    local: [DoubleConvolution<'g>; LEVELS],
}

impl<'g> Way<'g> {
    /// σ(F⁻¹(R · F x) + W x)
    fn forward(&self, level: usize, field: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        (self.spectral[level].forward(field) + self.local[level].forward(field, mode)).gelu()
    }
}

/// The model.
struct Uno<'g> {
    shell: Shell<'g>,
    body: UBody<'g>,
    down: Way<'g>,
    up: Way<'g>,
    head: Mlp<'g>,
}

impl<'g> Model<'g> for Uno<'g> {
    fn forward(&self, input: &Input<'g>, mode: Mode) -> Tensor<'g> {
        let body = |image: Tensor<'g>| {
            let mut fields = self.body.descend(image, mode, |level, field| self.down.forward(level, field, mode));
            fields[LEVELS - 1] = self.up.forward(LEVELS - 1, fields[LEVELS - 1], mode);
            self.body.ascend(fields, mode, |level, field| self.up.forward(level, field, mode))
        };
        self.head.forward(self.shell.forward(input, body))
    }
}

/// Sizes and training of the library's scripts.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# U-NO on darcy: script of the Neural-Solver-Library.
             model.settings = { width = 32, modes = 12, unified_positions = 8 }
             train = { rate = 0.001, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# U-NO on navier-stokes: script of the Neural-Solver-Library.
             model.settings = { width = 64, modes = 12 }
             train = { batch = 16, rate = 0.001, weight_decay = 1e-5, schedule = \"step-by-epoch\", optimiser = \"adam\", teacher_forcing = false }"
        }
        "elasticity" => {
            "# U-NO on elasticity: script of the Neural-Solver-Library.
             model.settings = { width = 32, modes = 12 }
             train = { batch = 4, schedule = \"onecycle\", clip = 0.0 }"
        }
        "plasticity" => {
            "# U-NO on plasticity: script of the Neural-Solver-Library.
             model.settings = { width = 128, modes = 12 }
             data.scrambled = false
             train.clip = 0.0"
        }
        "airfoil" => {
            "# U-NO on airfoil: script of the Neural-Solver-Library.
             model.settings = { width = 32, modes = 12 }
             train = { batch = 20, weight_decay = 1e-4, schedule = \"step-by-epoch\", clip = 0.0 }"
        }
        "pipe" => {
            "# U-NO on pipe: script of the Neural-Solver-Library.
             model.settings = { width = 128, modes = 12, positions_twice = true }
             train = { batch = 4, clip = 0.0 }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores.
fn quick(benchmark: &str) -> Option<&'static str> {
    match benchmark {
        "navier-stokes" => Some(
            "model.settings = { width = 8 }
             train = { schedule = \"onecycle\", optimiser = \"adamw\", teacher_forcing = true }",
        ),
        "airfoil" => Some(
            "model.settings = { width = 8 }
             train.schedule = \"onecycle\"",
        ),
        other => super::unet::quick(other),
    }
}

fn own(data: &OwnData) -> Settings {
    let mut settings = Frame::own(data, &DEMAND);
    if let Some(Grid::Volume { .. }) = data.grid {
        settings.insert("modes".to_owned(), toml::Value::from(own_modes_in_volumes(data) as i64));
    }
    settings
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    const FIRST: &str = "process1_down.weights1";
    let inferred = || {
        let (mut config, inferred) = GridConfig::infer(shapes, hints, "inc.double_conv")?;
        config.modes = shapes.extent(FIRST, 2)?;
        Ok(Inferred { settings: super::settings(&config), ..inferred })
    };
    shapes.has(FIRST).then(inferred)
}

pub(super) const ROW: Row = Row {
    name: "uno",
    summary: "U-NO (TMLR 2023): a U-Net with a Fourier layer after each stage",
    paper: "Rahman, Ross, Azizzadenesheli: U-NO: U-shaped Neural Operators, TMLR 2023, arXiv:2204.11127",
    supports: Support::PROJECTED,
    ragged: false,
    build,
    defaults: super::defaults::<GridConfig>,
    moved: super::unet::moved,
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own,
    tiny: super::unet::tiny,
    infer,
    translate: &[("uno", super::unet::translate)],
};
