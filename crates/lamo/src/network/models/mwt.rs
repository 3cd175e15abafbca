//! Multiwavelet transform operator (Gupta, Xiao, Bogdan 2021; `MWT` of Neural-Solver-Library, `WMT` in LaMO's table) on lines,
//! planes, volumes and flat clouds.
//!
//! v ← GELU(W v), W a [`Multiwavelet`] layer; no GELU after the last one. The image is a square or a cube whose side is a power of
//! two, with k² channels: the coefficients of k Legendre polynomials along rows and columns. On a line it has k channels. It is wide
//! only in the lifting and the head.

use super::frame::{Frame, axes};
use super::{Authored, Hints, Inferred, Row, Settings, Shapes, Support, Translated, check_unified, read};
use crate::error::{Refusal, require};
use crate::network::layers::{Mlp, Multiwavelet, Shell, ShellShape};
use crate::network::{Activation, Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// All settings; the defaults are the library's usual ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// C, hidden channels of the lifting and of the head.
    pub width: usize,
    /// Number of layers.
    pub depth: usize,
    /// k, Legendre polynomials along each axis; the image has k² channels, on a line k.
    pub polynomials: usize,
    /// Frequencies along each axis that a level mixes.
    pub wavelet_modes: usize,
    /// Frequencies along each axis of the projection of a cloud.
    pub modes: usize,
    /// The activation of the lifting.
    pub activation: Activation,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions.
    pub unified_positions: usize,
    /// Gives the positions a second time, as input functions, as the library's script for Pipe does.
    pub positions_twice: bool,
    /// Points of the image that a cloud is projected to.
    pub lattice: [usize; 2],
    /// Width of the learned coordinates of a cloud.
    pub coordinate_width: usize,
}

impl Default for Config {
    fn default() -> Self {
        let Frame { modes, activation, unified_positions, positions_twice, coordinate_width, .. } = Frame::default();
        Config {
            width: 128,
            depth: 8,
            polynomials: 3,
            wavelet_modes: 2,
            modes,
            activation,
            unified_positions,
            positions_twice,
            lattice: [128, 128],
            coordinate_width,
        }
    }
}

/// Largest k: the coefficients of higher polynomials lose digits to cancellation.
const MOST_POLYNOMIALS: usize = 6;

impl Config {
    /// Side of the image: the next power of two for a regular grid.
    fn side(&self, grid: Grid) -> usize {
        match grid {
            Grid::Cloud { .. } => self.lattice[0],
            _ => grid.shape().into_iter().fold(1, usize::max).next_power_of_two(),
        }
    }

    fn shell(&self, task: &Task) -> Result<ShellShape, Refusal> {
        let Config { width, depth, polynomials, wavelet_modes, modes, activation, unified_positions, .. } = *self;
        for (name, value) in [("width", width), ("depth", depth), ("wavelet_modes", wavelet_modes), ("modes", modes)] {
            require(value > 0, || Refusal::new(format!("model mwt: {name}"), "at least 1", "0"))?;
        }
        require((1..=MOST_POLYNOMIALS).contains(&polynomials), || {
            let expected = format!("1 to {MOST_POLYNOMIALS}");
            Refusal::new("model mwt: polynomials", expected, polynomials.to_string())
        })?;
        let channels = Multiwavelet::channels(axes(task.grid), polynomials);
        require(!task.time.is_input() || channels > 1, || {
            Refusal::new("model mwt: polynomials", "at least 2 where a time is an input", "1")
        })?;
        check_unified("mwt", unified_positions, task)?;
        let (side, coordinate_width) = (self.side(task.grid), self.coordinate_width);
        if let Grid::Cloud { .. } = task.grid {
            let [rows, columns] = self.lattice;
            require(rows == columns && rows.is_power_of_two(), || {
                let found = format!("[{rows}, {columns}]");
                Refusal::new("model mwt: lattice", "a square whose side is a power of two", found)
            })?;
            let most = rows.min(columns / 2 + 1);
            require(modes <= most, || {
                format!(
                    "model mwt: a lattice of {rows} × {rows} points carries at most {most} modes, found {modes}; set modes = {most}"
                )
            })?;
            require(coordinate_width > 0 && coordinate_width.is_multiple_of(4), || {
                Refusal::new("model mwt: coordinate_width", "a multiple of 4", coordinate_width.to_string())
            })?;
        }
        let positions_twice = self.positions_twice;
        // In a volume A keeps all its frequencies along the layers, whose number no level halves.
        let volume = matches!(task.grid, Grid::Volume { .. });
        require(!volume || wavelet_modes <= side / 2 + 1, || {
            let most = side / 2 + 1;
            format!("model mwt: a volume of {side} layers carries at most {most} wavelet_modes, found {wavelet_modes}")
        })?;
        let mut image = [1; 3];
        image[3 - axes(task.grid)..].fill(side);
        let hidden = 2 * width;
        Ok(ShellShape {
            hidden,
            width: channels,
            activation,
            unified_positions,
            positions_twice,
            image,
            modes,
            coordinate_width,
        })
    }
}

/// Declares the parameters under the library's names, in its order.
fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("mwt", settings)?;
    let shell = Shell::new(scope, task, config.shell(task)?);
    let Config { width, depth, polynomials, wavelet_modes, .. } = config;
    let layers = scope.enter("spectral_layers");
    let axes = axes(task.grid);
    let layer = |number: usize| Multiwavelet::new(&layers.enter(&number.to_string()), axes, polynomials, wavelet_modes);
    let layers = (0..depth).map(layer).collect();
    let head = Mlp::new(scope, [Multiwavelet::channels(axes, polynomials), width, task.output_channels()]);
    Ok(Box::new(Mwt { shell, layers, head }))
}

/// The model.
struct Mwt<'g> {
    shell: Shell<'g>,
    layers: Vec<Multiwavelet<'g>>,
    head: Mlp<'g>,
}

impl<'g> Model<'g> for Mwt<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        let last = self.layers.len() - 1;
        let body = |image: Tensor<'g>| {
            self.layers.iter().enumerate().fold(image, |image, (number, layer)| {
                let image = layer.forward(image);
                if number == last { image } else { image.gelu() }
            })
        };
        self.head.forward(self.shell.forward(input, body))
    }
}

/// Sizes and training of the library's scripts.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# MWT on darcy: script of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, polynomials = 3, unified_positions = 8 }
             train = { rate = 0.001, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# MWT on navier-stokes: script of the Neural-Solver-Library.
             model.settings = { width = 256, depth = 8, polynomials = 3, unified_positions = 8 }
             train = { rate = 0.001, weight_decay = 1e-5 }"
        }
        "elasticity" => {
            "# MWT on elasticity: script of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, polynomials = 3 }
             train = { clip = 0.0 }"
        }
        "plasticity" => {
            "# MWT on plasticity: script of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, polynomials = 3 }
             train = { clip = 0.0 }
             data.scrambled = false"
        }
        "airfoil" => {
            "# MWT on airfoil: script of the Neural-Solver-Library.
             model.settings = { width = 32, depth = 8, polynomials = 3 }
             train = { clip = 0.0 }"
        }
        "pipe" => {
            "# MWT on pipe: script of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, polynomials = 3, positions_twice = true }
             train = { batch = 4, clip = 0.0 }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores.
fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "elasticity" | "own" => {
            "model.settings = { width = 32, depth = 4, modes = 6, lattice = [32, 32], coordinate_width = 16 }"
        }
        "darcy" | "navier-stokes" => "model.settings = { width = 32, depth = 4, unified_positions = 0 }",
        "plasticity" | "airfoil" | "pipe" => "model.settings = { width = 16, depth = 2 }",
        _ => return None,
    })
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 8
        depth = 2
        polynomials = 3
        modes = 3
        lattice = [8, 8]
        coordinate_width = 8
    }
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    const FIRST: &str = "spectral_layers.0.A.weights1";
    let inferred = || {
        let (frame, inferred) = Frame::infer(shapes, hints, (FIRST, 3))?;
        let channels = shapes.extent("spectral_layers.0.T0.weight", 0)?;
        let config = Config {
            width: shapes.extent("fc1.weight", 0)?,
            depth: shapes.count("spectral_layers.", 0),
            polynomials: if shapes.rank(FIRST)? == 4 { channels } else { channels.isqrt() },
            wavelet_modes: shapes.extent(FIRST, 2)?,
            modes: frame.modes,
            unified_positions: frame.unified_positions,
            positions_twice: frame.positions_twice,
            coordinate_width: frame.coordinate_width,
            ..Config::default()
        };
        Ok(Inferred { settings: super::settings(&config), ..inferred })
    };
    shapes.has(FIRST).then(inferred)
}

/// `MWT` of the library with its Legendre basis.
fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let (model, constructor, usual) = (authored.table("model"), authored.table("constructor"), Config::default());
    let (frame, task) = Frame::translate(authored)?;
    for (key, only) in [("L", 0), ("c", 1)] {
        let found = constructor.number_or(key, only)?;
        require(found == only, || format!("gives {key} as {found}; the model knows {only}"))?;
    }
    let base = &authored.tables["constructor"]["base"];
    require(base.is_null() || base == "legendre", || format!("gives base as {base}; the model knows legendre"))?;
    let [rows, columns] = usual.lattice;
    let config = Config {
        width: frame.width,
        depth: model.number("n_layers")?,
        polynomials: model.number("mwt_k")?,
        wavelet_modes: constructor.number_or("alpha", usual.wavelet_modes)?,
        modes: frame.modes,
        activation: frame.activation,
        unified_positions: frame.unified_positions,
        lattice: [constructor.number_or("s1", rows)?, constructor.number_or("s2", columns)?],
        coordinate_width: frame.coordinate_width,
        ..usual
    };
    let single_stage = task.time.is_input();
    Ok(Translated { settings: super::settings(&config), task, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "mwt",
    summary: "Multiwavelet transform operator (NeurIPS 2021): Legendre wavelets on all levels of a square",
    paper: "Gupta, Xiao, Bogdan: Multiwavelet-based Operator Learning for Differential Equations, NeurIPS 2021, \
            arXiv:2109.13459",
    supports: Support::PROJECTED,
    ragged: false,
    build,
    defaults: super::defaults::<Config>,
    moved: |_, _| None,
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own: |_| Settings::new(),
    tiny,
    infer,
    translate: &[("mwt", translate)],
};
