//! Factorised FNO (Tran et al. 2023, Eqs. 7 and 8; `F_FNO` of Neural-Solver-Library) on lines, planes, volumes and flat
//! clouds.
//!
//! v ← v + Σ_d F_d⁻¹(R_d · F_d v): a Fourier layer along each axis d by itself. The library keeps neither the feed-forward
//! nets nor the activations of the paper, so that the whole body is linear; so is this model.
//!
//! Inside the layers a field is `[rows, columns, batch, width]`, in a volume `[batch, rows, columns, layers, width]`.

use super::frame::{Demand, Frame, by, moved_periods, single_stage};
use super::{Authored, Hints, Inferred, OwnData, Row, Settings, Shapes, Support, Translated, read};
use crate::error::{Refusal, require};
use crate::network::layers::{AxialConvolution, LineConvolution, Mlp, Shell};
use crate::network::{Activation, Initial, Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// The library pads planes and volumes, and leaves lines as they are.
const DEMAND: Demand = Demand { model: "ffno", steps: [1, 16], multiple: 1 };

/// All settings; the defaults are the library's usual ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// C, channels of the hidden fields.
    pub width: usize,
    /// Number of layers.
    pub depth: usize,
    /// Frequencies 0 ≤ k < modes along each axis, and of the projection of a cloud.
    pub modes: usize,
    /// The activation of the lifting.
    pub activation: Activation,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions.
    pub unified_positions: usize,
    /// Gives the positions a second time, as input functions, as the library's script for Pipe does.
    pub positions_twice: bool,
    /// Points along each axis after zero padding, the period of the waves; 0 is the next multiple of 16, on a line its points. A volume
    /// has three.
    pub padded: Vec<usize>,
    /// Points of the image that a cloud is projected to.
    pub lattice: [usize; 2],
    /// Width of the learned coordinates of a cloud.
    pub coordinate_width: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config::of(Frame { width: 64, ..Frame::default() }, 8)
    }
}

impl Config {
    fn of(frame: Frame, depth: usize) -> Self {
        let Frame { width, modes, activation, unified_positions, positions_twice, padded, lattice, coordinate_width } =
            frame;
        Config {
            width,
            depth,
            modes,
            activation,
            unified_positions,
            positions_twice,
            padded,
            lattice,
            coordinate_width,
        }
    }

    fn frame(&self) -> Frame {
        let Config {
            width,
            modes,
            activation,
            unified_positions,
            positions_twice,
            padded,
            lattice,
            coordinate_width,
            ..
        } = self.clone();
        Frame { width, modes, activation, unified_positions, positions_twice, padded, lattice, coordinate_width }
    }
}

/// Largest number of modes that every axis carries.
fn most_modes(extents: &[usize]) -> usize {
    extents.iter().map(|extent| extent / 2 + 1).min().unwrap_or(1)
}

/// Declares the parameters under the library's names, in its order.
fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("ffno", settings)?;
    let Config { width, depth, modes, .. } = config;
    require(depth > 0, || Refusal::new("model ffno: depth", "at least 1", "0"))?;
    let shape = config.frame().shell(task, &DEMAND)?;
    let extents = config.frame().extents(task.grid, &DEMAND);
    let most = most_modes(&extents);
    require(modes <= most, || {
        format!(
            "model ffno: an image of {} points carries at most {most} modes, found {modes}; set modes = {most}",
            by(&extents)
        )
    })?;
    let shell = Shell::new(scope, task, shape);
    let layer =
        |number: usize| Layer::new(&scope.enter("spectral_layers").enter(&number.to_string()), task.grid, width, modes);
    let layers = (0..depth).map(layer).collect();
    Ok(Box::new(Ffno { shell, layers, head: Mlp::new(scope, [width, width, task.output_channels()]) }))
}

/// Σ_d F_d⁻¹(R_d · F_d v).
enum Layer<'g> {
    Line(LineConvolution<'g>),
    /// Along rows and along columns.
    Plane([LineConvolution<'g>; 2]),
    Volume(AxialConvolution<'g>),
}

impl<'g> Layer<'g> {
    fn new(scope: &Scope<'_, 'g>, grid: Grid, width: usize, modes: usize) -> Self {
        if let Grid::Line { .. } = grid {
            return Layer::Line(LineConvolution::new(scope, [width; 2], modes));
        }
        let (scope, initial) = (scope.enter("fourier_weight"), Initial::Normal { deviation: xavier(width, modes) });
        let weight = |name| LineConvolution::of(scope.parameter(name, [width, width, modes, 2], initial));
        match grid {
            Grid::Volume { .. } => Layer::Volume(AxialConvolution::of_volume(["0", "1", "2"].map(weight))),
            _ => Layer::Plane(["0", "1"].map(weight)),
        }
    }

    /// The field of the next layer is this one and the result.
    fn forward(&self, field: Tensor<'g>) -> Tensor<'g> {
        match self {
            Layer::Volume(axial) => axial.forward(field),
            Layer::Line(line) => {
                let [_, columns, batch, width] = field.dims();
                line.forward(field.reshape([columns, batch, width])).reshape(field.shape())
            }
            Layer::Plane([along_rows, along_columns]) => {
                let [rows, columns, batch, width] = field.dims();
                let lanes = field.reshape([rows, columns * batch, width]);
                along_rows.forward(lanes).reshape(field.shape()) + along_columns.forward_across(field)
            }
        }
    }
}

/// Deviation of Xavier's normal initialisation of a real tensor `[C, C, modes, 2]`: σ² = 2/((C + C) · 2 modes).
fn xavier(width: usize, modes: usize) -> f64 {
    (1.0 / (2 * width * modes) as f64).sqrt()
}

/// The model.
struct Ffno<'g> {
    shell: Shell<'g>,
    layers: Vec<Layer<'g>>,
    head: Mlp<'g>,
}

impl<'g> Model<'g> for Ffno<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        let layers = |field| self.layers.iter().fold(field, |field, layer| field + layer.forward(field));
        let body = |image: Tensor<'g>| match image.shape().rank() {
            5 => layers(image),
            _ => layers(image.permute(&[1, 2, 0, 3])).permute(&[2, 0, 1, 3]), // [rows, columns, batch, width] inside
        };
        self.head.forward(self.shell.forward(input, body))
    }
}

/// Sizes and training of the library's scripts.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# F-FNO on darcy: script of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, modes = 12, unified_positions = 8 }
             train.rate = 0.001"
        }
        "navier-stokes" => {
            "# F-FNO on navier-stokes: script of the Neural-Solver-Library.
             model.settings = { width = 20, depth = 8, modes = 12 }
             train = { batch = 20, rate = 0.0025, weight_decay = 1e-4, schedule = \"step-by-epoch\", clip = 0.1 }"
        }
        "elasticity" => {
            "# F-FNO on elasticity: script of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, modes = 12 }"
        }
        "plasticity" => {
            "# F-FNO on plasticity: script of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, modes = 12 }
             data.scrambled = false"
        }
        "airfoil" => {
            "# F-FNO on airfoil: script of the Neural-Solver-Library.
             model.settings = { width = 32, depth = 8, modes = 12 }
             train = { batch = 20, weight_decay = 1e-4, schedule = \"step-by-epoch\", clip = 0.0 }"
        }
        "pipe" => {
            "# F-FNO on pipe: script of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, modes = 12, positions_twice = true }
             train.batch = 4"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores.
fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "elasticity" => "model.settings = { width = 32, depth = 4, modes = 8, lattice = [32, 32] }",
        "own" => "model.settings = { width = 32, depth = 4, lattice = [48, 48] }",
        "navier-stokes" | "airfoil" => {
            "model.settings = { width = 12, depth = 4 }
             train.schedule = \"onecycle\""
        }
        "darcy" | "pipe" => {
            "model.settings = { width = 32, depth = 4, unified_positions = 0, positions_twice = false }"
        }
        "plasticity" => {
            "model.settings = { width = 32, depth = 4, modes = 8, unified_positions = 0, positions_twice = false }"
        }
        _ => return None,
    })
}

/// On another grid the waves keep their length. A cloud is projected to the same image.
fn moved(settings: &Settings, [from, to]: [Grid; 2]) -> Option<Settings> {
    let mut config: Config = read("ffno", settings).ok()?;
    if !matches!(from, Grid::Cloud { .. }) {
        let periods = config.frame().extents(from, &DEMAND);
        if to.shape().len() != periods.len() {
            return None;
        }
        let moved = moved_periods(&periods, [&from.shape(), &to.shape()]);
        config.padded = if let [line] = moved[..] { vec![0, line] } else { moved };
    }
    Some(super::settings(&config))
}

/// As many modes as usual, fewer on a small grid.
fn own(data: &OwnData) -> Settings {
    let usual = Frame::default();
    let modes = data.grid.map(|grid| usual.modes.min(most_modes(&usual.extents(grid, &DEMAND))));
    modes.map(|modes| ("modes".to_owned(), toml::Value::from(modes as i64))).into_iter().collect()
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 12
        depth = 2
        modes = 3
        lattice = [10, 12]
        coordinate_width = 8
    }
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    let [line, plane, third] =
        ["spectral_layers.0.weights1", "spectral_layers.0.fourier_weight.0", "spectral_layers.0.fourier_weight.2"];
    let inferred = || {
        let first = if shapes.has(plane) { plane } else { line };
        // All these tensors have the same axes; their names tell a line, a plane and a volume apart.
        let axes = if shapes.has(third) { 3 } else { 1 + usize::from(shapes.has(plane)) };
        let (frame, inferred) = Frame::infer(shapes, hints, (first, shapes.rank(first)? - axes))?;
        let frame = Frame { modes: shapes.extent(first, 2)?, ..frame };
        let config = Config::of(frame, shapes.count("spectral_layers.", 0));
        Ok(Inferred { settings: super::settings(&config), ..inferred })
    };
    (shapes.has(line) || shapes.has(plane)).then(inferred)
}

/// `F_FNO` of the library.
fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let (frame, task) = Frame::translate(authored)?;
    let config = Config::of(frame, authored.table("model").number("n_layers")?);
    let single_stage = single_stage(&task);
    Ok(Translated { settings: super::settings(&config), task, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "ffno",
    summary: "Factorised FNO (ICLR 2023): a Fourier layer along each axis by itself",
    paper: "Tran, Mathews, Xie, Ong: Factorized Fourier Neural Operators, ICLR 2023, arXiv:2111.13802",
    supports: Support::PROJECTED,
    ragged: true,
    build,
    defaults: super::defaults::<Config>,
    moved,
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own,
    tiny,
    infer,
    translate: &[("ffno", translate)],
};
