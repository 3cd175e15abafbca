//! U-FNO (Wen et al. 2022, Eqs. 6 and 7; `U_FNO` of Neural-Solver-Library) on lines, planes, volumes and flat clouds: four
//! Fourier layers, the last two with a U-Net beside them.
//!
//! v ← σ(F⁻¹(R · F v) + W v + b + U v),  U = 0 in the first two layers, no σ after the last one.
//!
//! The two U-Nets are whole models of the library, with a lifting and a head that are stored and never used.

use super::frame::{Demand, Frame, GridConfig, axes, by, most_modes, own_modes_in_volumes};
use super::{Hints, Inferred, OwnData, Row, Settings, Shapes, Support, read};
use crate::error::{Refusal, require};
use crate::network::layers::{ImageConvolution, Mlp, Pointwise, Shell, UBody};
use crate::network::{Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_tensor::Tensor;

const DEMAND: Demand = super::unet::demand("ufno");
/// Number of layers, and the first with a U-Net.
const LAYERS: usize = 4;
const FIRST_NET: usize = 2;

/// Declares the parameters under the library's names, in its order.
fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: GridConfig = read("ufno", settings)?;
    let (GridConfig { width, modes, norm, .. }, axes) = (config.clone(), axes(task.grid));
    let shape = config.frame().shell(task, &DEMAND)?;
    let norm = norm.check(task, &shape, &DEMAND)?;
    let most = most_modes(&shape.image[3 - axes..]);
    require(modes <= most, || {
        let image = by(&shape.image[3 - axes.max(2)..]);
        format!(
            "model ufno: an image of {image} points carries at most {most} modes, found {modes}; set modes = {most}"
        )
    })?;
    let shell = Shell::new(scope, task, shape);
    let head = |scope: &Scope<'_, 'g>| Mlp::new(scope, [width, width, task.output_channels()]);
    let spectral = |layer: usize| ImageConvolution::new(&scope.enter(&format!("conv{layer}")), axes, [width; 2], modes);
    let spectral: [_; LAYERS] = std::array::from_fn(spectral);
    let pointwise: [_; LAYERS] =
        std::array::from_fn(|layer| Pointwise::new(&scope.enter(&format!("w{layer}")), axes, width, width));
    let net = |layer: usize| {
        let scope = scope.enter(&format!("u_net{layer}"));
        let _ = Shell::new(&scope, task, shape);
        let body = UBody::new(&scope, axes, width, norm);
        let _ = head(&scope);
        body
    };
    let nets = std::array::from_fn(|number| net(FIRST_NET + number));
    Ok(Box::new(UFno { shell, spectral, pointwise, nets, head: head(scope) }))
}

/// The model.
struct UFno<'g> {
    shell: Shell<'g>,
    spectral: [ImageConvolution<'g>; LAYERS],
    pointwise: [Pointwise<'g>; LAYERS],
    nets: [UBody<'g>; LAYERS - FIRST_NET],
    head: Mlp<'g>,
}

impl<'g> UFno<'g> {
    fn body(&self, image: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        let mut field = image;
        for (layer, (spectral, pointwise)) in self.spectral.iter().zip(&self.pointwise).enumerate() {
            let mut sum = spectral.forward(field) + pointwise.forward(field);
            if let Some(net) = layer.checked_sub(FIRST_NET).map(|number| &self.nets[number]) {
                sum = sum + net.forward(field, mode);
            }
            field = if layer + 1 < LAYERS { sum.gelu() } else { sum };
        }
        field
    }
}

impl<'g> Model<'g> for UFno<'g> {
    fn forward(&self, input: &Input<'g>, mode: Mode) -> Tensor<'g> {
        self.head.forward(self.shell.forward(input, |image| self.body(image, mode)))
    }
}

/// Sizes and training of the library's scripts.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# U-FNO on darcy: script of the Neural-Solver-Library.
             model.settings = { width = 32, modes = 12, unified_positions = 8 }
             train = { rate = 0.001, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# U-FNO on navier-stokes: script of the Neural-Solver-Library.
             model.settings = { width = 64, modes = 12 }
             train = { batch = 20, rate = 0.0005, weight_decay = 1e-4, schedule = \"step-by-epoch\", teacher_forcing = false }"
        }
        "elasticity" => {
            "# U-FNO on elasticity: script of the Neural-Solver-Library.
             model.settings = { width = 128, modes = 12 }
             train.clip = 0.0"
        }
        "plasticity" => {
            "# U-FNO on plasticity: script of the Neural-Solver-Library.
             model.settings = { width = 128, modes = 12 }
             data.scrambled = false
             train.clip = 0.0"
        }
        "airfoil" => {
            "# U-FNO on airfoil: script of the Neural-Solver-Library.
             model.settings = { width = 32, modes = 12 }
             train = { batch = 20, weight_decay = 1e-4, schedule = \"step-by-epoch\", clip = 0.0 }"
        }
        "pipe" => {
            "# U-FNO on pipe: script of the Neural-Solver-Library.
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
        "plasticity" => {
            Some("model.settings = { width = 8, modes = 8, unified_positions = 0, positions_twice = false }")
        }
        other => super::unet::quick(other),
    }
}

/// Two pixels at the coarsest level, and as many modes as usual, fewer on a small grid.
fn own(data: &OwnData) -> Settings {
    let mut settings = Frame::own(data, &DEMAND);
    let padded = settings.get("padded").cloned().map(|padded| padded.try_into().expect("a list of numbers"));
    if let Some(grid) = data.grid {
        let usual = Frame::default();
        let padded = padded.unwrap_or_else(|| usual.padded.clone());
        let image = Frame { padded, ..usual.clone() }.extents(grid, &DEMAND);
        let usual = if image.len() == 3 { own_modes_in_volumes(data) } else { usual.modes };
        let modes = usual.min(most_modes(&image));
        settings.insert("modes".to_owned(), toml::Value::from(modes as i64));
    }
    settings
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    let inferred = || {
        let (mut config, inferred) = GridConfig::infer(shapes, hints, "u_net2.inc.double_conv")?;
        config.modes = shapes.extent("conv0.weights1", 2)?;
        Ok(Inferred { settings: super::settings(&config), ..inferred })
    };
    shapes.has("u_net2.inc.double_conv.0.weight").then(inferred)
}

pub(super) const ROW: Row = Row {
    name: "ufno",
    summary: "U-FNO (2022): Fourier layers with U-Nets beside the last two",
    paper: "Wen, Li, Azizzadenesheli, Anandkumar, Benson: U-FNO: An enhanced Fourier neural operator-based deep-learning model \
            for multiphase flow, Advances in Water Resources 2022, arXiv:2109.03697",
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
    translate: &[("ufno", super::unet::translate)],
};
