//! U-Net (Ronneberger et al. 2015; `U_Net` of Neural-Solver-Library) on lines, planes, volumes and flat clouds: the [`UBody`] on
//! the image of the [`Shell`].

use super::frame::{Demand, Frame, GridConfig, Norm, axes, single_stage};
use super::{Authored, Hints, Inferred, OwnData, Row, Settings, Shapes, Support, Translated, read};
use crate::error::Refusal;
use crate::network::layers::{COARSEST, Mlp, Shell, UBody};
use crate::network::{Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;

/// What a body with five levels asks of its image.
pub(super) const fn demand(model: &'static str) -> Demand {
    Demand { model, steps: [COARSEST; 2], multiple: COARSEST }
}

const DEMAND: Demand = demand("unet");

/// Declares the parameters under the library's names, in its order.
fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: GridConfig = read("unet", settings)?;
    let shape = config.frame().shell(task, &DEMAND)?;
    let (width, norm) = (config.width, config.norm.check(task, &shape, &DEMAND)?);
    Ok(Box::new(UNet {
        shell: Shell::new(scope, task, shape),
        body: UBody::new(scope, axes(task.grid), width, norm),
        head: Mlp::new(scope, [width, width, task.output_channels()]),
    }))
}

/// The model.
struct UNet<'g> {
    shell: Shell<'g>,
    body: UBody<'g>,
    head: Mlp<'g>,
}

impl<'g> Model<'g> for UNet<'g> {
    fn forward(&self, input: &Input<'g>, mode: Mode) -> Tensor<'g> {
        self.head.forward(self.shell.forward(input, |image| self.body.forward(image, mode)))
    }
}

/// Sizes and training of the library's scripts.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# U-Net on darcy: script of the Neural-Solver-Library.
             model.settings = { width = 128, unified_positions = 8 }
             train = { rate = 0.001, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# U-Net on navier-stokes: script of the Neural-Solver-Library.
             model.settings = { width = 256, unified_positions = 8 }
             train = { rate = 0.001, weight_decay = 1e-5 }"
        }
        "elasticity" => {
            "# U-Net on elasticity: script of the Neural-Solver-Library.
             model.settings = { width = 32, modes = 12 }
             train.clip = 0.0"
        }
        "plasticity" => {
            "# U-Net on plasticity: script of the Neural-Solver-Library.
             model.settings = { width = 128 }
             data.scrambled = false
             train.clip = 0.0"
        }
        "airfoil" => {
            "# U-Net on airfoil: script of the Neural-Solver-Library.
             model.settings = { width = 32 }
             train.clip = 0.0"
        }
        "pipe" => {
            "# U-Net on pipe: script of the Neural-Solver-Library.
             model.settings = { width = 128, positions_twice = true }
             train = { batch = 4, clip = 0.0 }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores.
pub(super) fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "elasticity" => "model.settings = { width = 8, modes = 8, lattice = [32, 32] }",
        "own" => "model.settings = { width = 8, lattice = [48, 48] }",
        "darcy" | "navier-stokes" | "plasticity" | "airfoil" | "pipe" => {
            "model.settings = { width = 8, unified_positions = 0, positions_twice = false }"
        }
        _ => return None,
    })
}

/// Convolutions count points, so that a model for a grid belongs to its spacing. A cloud is projected to the same image.
pub(super) fn moved(settings: &Settings, [from, _]: [Grid; 2]) -> Option<Settings> {
    matches!(from, Grid::Cloud { .. }).then(|| settings.clone())
}

/// Two pixels at the coarsest level, which a norm needs.
pub(super) fn tiny(task: &Task) -> Settings {
    let mut settings = toml::toml! {
        width = 4
        modes = 2
        padded = [16, 32]
        lattice = [16, 32]
        coordinate_width = 8
    };
    if let Grid::Volume { rows, columns, layers } = task.grid {
        let extents = [rows, columns, layers.max(COARSEST + 1)].map(|extent| extent.next_multiple_of(COARSEST) as i64);
        settings.insert("padded".to_owned(), toml::Value::from(extents.to_vec()));
    } else if task.grid.points() > 16 * 32 {
        // A benchmark, whose claims have up to 41 × 9 and 24 × 24 points.
        settings.insert("padded".to_owned(), toml::Value::from(vec![48, 32]));
    }
    settings
}

fn own(data: &OwnData) -> Settings {
    Frame::own(data, &DEMAND)
}

/// Whether a state dict has a body of its own, and neither Fourier layers nor latent tokens.
fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    let other = ["process1.latent", "process1_down.weights1"].iter().any(|name| shapes.has(name));
    let own = shapes.has("inc.double_conv.0.weight") && !other;
    let inferred = || {
        let (config, inferred) = GridConfig::infer(shapes, hints, "inc.double_conv")?;
        Ok(Inferred { settings: super::settings(&config), ..inferred })
    };
    own.then(inferred)
}

/// `U_Net` of the library.
pub(super) fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let (frame, task) = Frame::translate(authored)?;
    let settings = super::settings(&GridConfig::of(frame, Norm::translate(authored)));
    let single_stage = single_stage(&task);
    Ok(Translated { settings, task, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "unet",
    summary: "U-Net (MICCAI 2015): double convolutions on five levels with skips",
    paper: "Ronneberger, Fischer, Brox: U-Net: Convolutional Networks for Biomedical Image Segmentation, MICCAI 2015, \
            arXiv:1505.04597",
    supports: Support::PROJECTED,
    ragged: false,
    build,
    defaults: super::defaults::<GridConfig>,
    moved,
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own,
    tiny,
    infer,
    translate: &[("unet", translate)],
};
