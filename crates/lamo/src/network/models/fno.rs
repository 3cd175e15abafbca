//! Fourier Neural Operator on lines, planes, volumes and flat clouds (Li et al. 2021, Eqs. 2, 4 and 5; `FNO` of
//! Neural-Solver-Library). A cloud becomes an image by the [`Projection`] of Geo-FNO, and the image a cloud again.
//!
//! v₀ = P(positions, functions),  vₜ₊₁ = σ(F⁻¹(R · F vₜ) + W vₜ + b),  u = Q(v_T);  no σ after the last layer.
//!
//! F⁻¹(R · F v) is the [`SpectralConvolution`] with |k| ≤ modes along rows and 0 ≤ l < modes along columns, the
//! [`LineConvolution`] with 0 ≤ l < modes, or the [`VolumeConvolution`]. Inside the layers a field is
//! `[rows, columns, batch, width]`, `[points, batch, width]` or `[rows, columns, layers, batch, width]`. Where time is an input, its embedding is added to v₀ at all points.

use super::frame::{by, check_padded, most_modes, moved_periods, own_modes_in_volumes, padded_extents};
use super::{
    Authored, GridKind, Hints, Inferred, OwnData, Row, Settings, Shapes, Support, Translated, check_unified, read,
};
use crate::error::{Refusal, require};
use crate::network::layers::embedding::{Table, lattice_points, unified_positions};
use crate::network::layers::{
    LineConvolution, Linear, Pointwise, Projection, SpectralConvolution, TimeEmbedding, VolumeConvolution,
    mask::real_only,
};
use crate::network::{Activation, Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// Planes and volumes are padded with zeros, behind the last point of each axis, to multiples of this, as the library does.
const PADDING: usize = 16;

/// All settings; the defaults are the library's usual ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Channels of the hidden fields.
    pub width: usize,
    /// Frequencies along each axis: 0 ≤ l < modes along the last axis, −modes ≤ k < modes along the others.
    pub modes: usize,
    /// Whether `modes` may be more than half of the rows after padding, as in the library. Rows of positive frequencies then have the
    /// weights of negative ones, which belong to this grid alone.
    pub overlap: bool,
    /// T, number of Fourier layers.
    pub depth: usize,
    /// The activation of the lifting.
    pub activation: Activation,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions.
    pub unified_positions: usize,
    /// Points along each axis after zero padding, the period of the waves; 0 is the next multiple of 16. A line is padded to
    /// the second; a volume has three.
    pub padded: Vec<usize>,
    /// A line whose `padded` is 0 is padded to a multiple of this. The library pads no line, as 1 does: its ends are neighbours.
    pub line_padding: usize,
    /// Points of the image that a cloud is projected to.
    pub lattice: [usize; 2],
    /// Width of the learned coordinates of a cloud.
    pub coordinate_width: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            width: 64,
            modes: 12,
            overlap: true,
            depth: 4,
            activation: Activation::Gelu,
            unified_positions: 0,
            padded: vec![0, 0],
            line_padding: PADDING,
            lattice: [96, 96],
            coordinate_width: 32,
        }
    }
}

/// Largest number of modes that have a row for each frequency. With more, the product of −k replaces that of a positive one.
fn separate_modes(extents: &[usize]) -> usize {
    let (last, others) = extents.split_last().expect("a grid has an axis");
    others.iter().map(|extent| extent / 2).fold(last / 2 + 1, usize::min)
}

impl Config {
    /// Points of the grid that the waves live on, and of that grid after padding.
    fn extents(&self, grid: Grid) -> [Vec<usize>; 2] {
        match grid {
            Grid::Cloud { .. } => [self.lattice.to_vec(), self.lattice.to_vec()],
            Grid::Line { .. } | Grid::Plane { .. } | Grid::Volume { .. } => [grid.shape(), self.padded(&grid.shape())],
        }
    }

    /// Points along each axis after padding.
    fn padded(&self, extents: &[usize]) -> Vec<usize> {
        padded_extents(&self.padded, extents, if extents.len() == 1 { self.line_padding.max(1) } else { PADDING })
    }

    fn check(&self, task: &Task, [extents, padded]: [&[usize]; 2]) -> Result<(), Refusal> {
        let Config { width, modes, depth, unified_positions, line_padding, coordinate_width, .. } = *self;
        require(width > 0 && modes > 0 && depth > 0, || {
            format!("model fno: width, modes and depth are at least 1, found {width}, {modes} and {depth}")
        })?;
        require(line_padding > 0, || Refusal::new("model fno: line_padding", "at least 1", "0"))?;
        require(extents.iter().all(|extent| *extent > 0), || {
            Refusal::new("model fno: lattice", "at least 1 point along each axis", format!("{extents:?}"))
        })?;
        require(coordinate_width > 0 && coordinate_width.is_multiple_of(4), || {
            Refusal::new("model fno: coordinate_width", "a multiple of 4", coordinate_width.to_string())
        })?;
        check_padded("fno", &self.padded, task.grid)?;
        require(padded.iter().zip(extents).all(|(padded, extent)| padded >= extent), || {
            format!("model fno: padded = {padded:?} must cover {extents:?} points; set padded = [0, 0]")
        })?;
        let most = if self.overlap { most_modes(padded) } else { separate_modes(padded) };
        require(modes <= most, || {
            let (kind, extents) = (GridKind::of(task.grid).name(), by(padded));
            let sentence =
                format!("model fno: a padded {kind} of {extents} points carries at most {most} modes, found {modes}");
            Refusal::said(sentence).advise(format!("set modes = {most}"))
        })?;
        check_unified("fno", unified_positions, task)?;
        require(!task.time.is_input() || width > 1, || {
            format!("model fno: a time needs a width of at least 2, found {width}")
        })
    }
}

/// F⁻¹(R · F v) on one kind of grid.
enum Convolution<'g> {
    Line(LineConvolution<'g>),
    Plane(SpectralConvolution<'g>),
    Volume(VolumeConvolution<'g>),
}

impl<'g> Convolution<'g> {
    fn new(scope: &Scope<'_, 'g>, axes: usize, width: usize, modes: usize) -> Self {
        match axes {
            1 => Convolution::Line(LineConvolution::new(scope, [width; 2], modes)),
            3 => Convolution::Volume(VolumeConvolution::new(scope, [width; 2], [modes; 3])),
            _ => Convolution::Plane(SpectralConvolution::new(scope, [width; 2], [modes; 2])),
        }
    }

    /// On a grid of `periods` points that is zero beyond the edges of `field`; the result is cut to `extents`.
    fn forward(&self, field: Tensor<'g>, periods: &[usize], extents: &[usize]) -> Tensor<'g> {
        match self {
            Convolution::Line(line) => line.forward_padded(field, periods[0], extents[0]),
            Convolution::Plane(plane) => {
                plane.forward_padded(field, [periods[0], periods[1]], [extents[0], extents[1]])
            }
            Convolution::Volume(volume) => {
                let [periods, extents] = [periods, extents].map(|sizes| [sizes[0], sizes[1], sizes[2]]);
                volume.forward_padded(field, periods, extents)
            }
        }
    }
}

/// Declares the parameters under the library's names, in its order.
fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("fno", settings)?;
    let [extents, padded] = config.extents(task.grid);
    let axes = extents.len();
    config.check(task, [&extents, &padded])?;
    let Config { width, modes, depth, activation, unified_positions: side, lattice, coordinate_width, .. } = config;
    let positions = if side == 0 { task.space } else { lattice_points(task.grid, task.space, side) };
    let preprocess = scope.enter("preprocess");
    let lift = Linear::new(&preprocess.enter("linear_pre").enter("0"), positions + task.input_channels(), 2 * width);
    let settle = Linear::new(&preprocess.enter("linear_post"), 2 * width, width);
    let time = task.time.is_input().then(|| TimeEmbedding::new(scope, width, width));
    let projection = matches!(task.grid, Grid::Cloud { .. })
        .then(|| Projection::new(scope, width, modes, lattice, coordinate_width));
    let convolution = |layer| Convolution::new(&scope.enter(&format!("conv{layer}")), axes, width, modes);
    let convolutions: Vec<_> = (0..depth).map(convolution).collect();
    let pointwise = (0..depth).map(|layer| Pointwise::new(&scope.enter(&format!("w{layer}")), axes, width, width));
    Ok(Box::new(Fno {
        grid: task.grid,
        side,
        extents,
        padded,
        preprocess: [lift, settle],
        activation,
        time,
        projection,
        layers: convolutions.into_iter().zip(pointwise).collect(),
        project: [
            Linear::new(&scope.enter("fc1"), width, width),
            Linear::new(&scope.enter("fc2"), width, task.output_channels()),
        ],
    }))
}

/// The model.
struct Fno<'g> {
    grid: Grid,
    /// Points of the lattice of unified positions along each axis, 0 for plain positions.
    side: usize,
    /// Points along each axis.
    extents: Vec<usize>,
    /// Points along each axis with the zeros.
    padded: Vec<usize>,
    /// P
    preprocess: [Linear<'g>; 2],
    activation: Activation,
    time: Option<TimeEmbedding<'g>>,
    /// For clouds.
    projection: Option<Projection<'g>>,
    layers: Vec<(Convolution<'g>, Pointwise<'g>)>,
    /// Q
    project: [Linear<'g>; 2],
}

impl<'g> Fno<'g> {
    /// All Fourier layers: `[…extents, batch, width]` → the same.
    fn body(&self, field: Tensor<'g>) -> Tensor<'g> {
        // The transforms pad and crop: the first layer reads the unpadded grid, and the last layer writes it.
        self.layers.iter().enumerate().fold(field, |field, (layer, (convolution, pointwise))| {
            let last = layer + 1 == self.layers.len();
            let extents = if last { &self.extents } else { &self.padded };
            let convolved = convolution.forward(field, &self.padded, extents);
            let field = convolved + pointwise.forward_padded(field, extents); // Eq. 2
            if last { field } else { field.gelu() }
        })
    }
}

impl<'g> Model<'g> for Fno<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        let [lift, settle] = &self.preprocess;
        let positions = match self.side {
            0 => input.positions,
            side => unified_positions(input.positions, self.grid, side, Table::Double),
        };
        let channels = Input { positions, ..*input }.channels().swap(0, 1);
        let mut points = settle.forward(self.activation.apply(lift.forward(channels))); // [points, batch, width]
        let [count, batch, width] = points.dims();
        if let (Some(embedding), Some(time)) = (&self.time, input.time) {
            points = points + embedding.forward(time);
        }
        let points = if let Some(projection) = &self.projection {
            let waves = projection.waves(input.positions);
            let real = real_only(points.swap(0, 1), input.mask);
            let image = projection.enter(waves, real).permute(&[1, 2, 0, 3]);
            projection.leave(waves, self.body(image).permute(&[2, 0, 1, 3])).swap(0, 1)
        } else {
            let field = points.reshape([&self.extents[..], &[batch, width]].concat());
            self.body(field).reshape([count, batch, width])
        };
        let [fc1, fc2] = &self.project;
        fc2.forward(fc1.forward(points).gelu()).swap(0, 1)
    }
}

/// Usual sizes of the Neural-Solver-Library.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "own" => {
            "# FNO on your own data. The validation error of four small data sets was 18 to 60 % lower than with AdamW, in equal epochs.
             # Twice the rate for matrices lowered that of six sets by another 1 to 21 %.
             train = { optimiser = \"muon\", matrix_rate = 2.0, matrix_convolutions = true }"
        }
        "darcy" => {
            "# FNO on darcy: usual sizes of the Neural-Solver-Library, recipe as for LaMO.
             model.settings = { width = 64, modes = 12, depth = 4 }"
        }
        "navier-stokes" => {
            "# FNO on navier-stokes: usual sizes of the Neural-Solver-Library, recipe as for LaMO.
             model.settings = { width = 64, modes = 12, depth = 4 }"
        }
        "elasticity" => {
            "# FNO on elasticity: usual sizes of the Neural-Solver-Library with the projection of Geo-FNO, recipe as for LaMO.
             model.settings = { width = 64, modes = 12, depth = 4 }"
        }
        "plasticity" => {
            "# FNO on plasticity: usual sizes of the Neural-Solver-Library, recipe as for LaMO.
             model.settings = { width = 64, modes = 12, depth = 4 }"
        }
        "airfoil" => {
            "# FNO on airfoil: usual sizes of the Neural-Solver-Library, recipe as for LaMO.
             model.settings = { width = 64, modes = 12, depth = 4 }"
        }
        "pipe" => {
            "# FNO on pipe: usual sizes of the Neural-Solver-Library, recipe as for LaMO.
             model.settings = { width = 64, modes = 12, depth = 4 }"
        }
        _ => return None,
    })
}

/// On another grid the waves keep their length.
fn moved(settings: &Settings, [from, to]: [Grid; 2]) -> Option<Settings> {
    let mut config: Config = read("fno", settings).ok()?;
    if let Grid::Cloud { .. } = from {
        return Some(super::settings(&config)); // projected to the same image
    }
    let (from, to) = (from.shape(), to.shape());
    let periods = config.padded(&from);
    let [rows @ .., _] = &periods[..] else { return None };
    if from != to && rows.iter().any(|extent| config.modes > extent / 2) {
        return None; // other frequencies share a row there
    }
    config.overlap &= from == to;
    let moved = moved_periods(&periods, [&from, &to]);
    config.padded = if moved.len() == 1 { [vec![config.padded[0]], moved].concat() } else { moved };
    Some(super::settings(&config))
}

/// As many modes as usual, fewer on a small grid. A layer of a volume has 4 modes³ complex matrices: 4.2 million numbers with the
/// sizes here, where that of a plane with the usual sizes has 2.4 million.
fn own(data: &OwnData) -> Settings {
    let usual = Config::default();
    if let Some(grid @ Grid::Volume { .. }) = data.grid {
        let (modes, width) = (own_modes_in_volumes(data), 32); // the preset `quick` has a width of its own
        let modes = separate_modes(&usual.extents(grid)[1]).min(modes);
        return [("modes", modes), ("width", width)]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), toml::Value::from(value as i64)))
            .collect();
    }
    let modes = data.grid.map(|grid| usual.modes.min(separate_modes(&usual.extents(grid)[1])));
    modes.map(|modes| ("modes".to_owned(), toml::Value::from(modes as i64))).into_iter().collect()
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 8
        depth = 2
        modes = 3
        lattice = [10, 12]
        coordinate_width = 8
    }
}

/// The library pads no line.
fn library_padding(grid: Grid) -> usize {
    if let Grid::Line { .. } = grid { 1 } else { PADDING }
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    const FIRST: &str = "conv0.weights1";
    let inferred = || {
        let (usual, cloud) = (Config::default(), shapes.has("fftproject_in.weights1"));
        let mut config = Config {
            width: shapes.extent(FIRST, 0)?,
            unified_positions: hints.setting("unified_positions").unwrap_or(0),
            modes: shapes.extent(FIRST, 2)?,
            depth: shapes.count("conv", 0),
            coordinate_width: if cloud { shapes.extent("iphi.fc0.weight", 0)? } else { usual.coordinate_width },
            ..usual
        };
        let grid = match shapes.rank(FIRST)? {
            5 if cloud => hints.grid.unwrap_or(Grid::Cloud { points: 1 }),
            5 => hints.plane()?,
            6 => hints.volume()?,
            _ => hints.line()?,
        };
        let (inputs, mut assumed) = (shapes.extent("preprocess.linear_pre.0.weight", 1)?, Vec::new());
        config.line_padding = library_padding(grid);
        if config.line_padding == 1 && !hints.settings.contains_key("line_padding") {
            assumed.push("the line is not padded, as in the library (model.settings.line_padding)".to_owned());
        }
        let [space, functions] =
            hints.split(inputs, hints.lattice(config.unified_positions, grid), grid, &mut assumed)?;
        let (outputs, time) = (shapes.extent("fc2.weight", 0)?, shapes.has("time_fc.0.weight"));
        Ok(Inferred { settings: super::settings(&config), grid, space, functions, outputs, time, assumed })
    };
    let other = shapes.has("u_net2.inc.double_conv.0.weight"); // U-FNO has layers of the same names
    (shapes.has(FIRST) && !other).then(inferred)
}

/// `FNO` of the library, whose transforms stay in float32.
fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let model = authored.table("model");
    let (constructor, usual) = (authored.table("constructor"), Config::default());
    let grid = authored.library_grid()?;
    let config = Config {
        width: model.number("n_hidden")?,
        modes: model.number("modes")?,
        activation: model.activation()?,
        unified_positions: model.unified_positions()?,
        line_padding: library_padding(grid),
        lattice: [constructor.number_or("s1", usual.lattice[0])?, constructor.number_or("s2", usual.lattice[1])?],
        coordinate_width: constructor.number_or("iphi_width", usual.coordinate_width)?,
        ..usual
    };
    let task = model.task(grid, "out_dim")?;
    Ok(Translated { settings: super::settings(&config), task, single_stage: true })
}

pub(super) const ROW: Row = Row {
    name: "fno",
    summary: "Fourier Neural Operator (ICLR 2021): products in truncated Fourier space",
    paper: "Li et al.: Fourier Neural Operator for Parametric Partial Differential Equations, ICLR 2021, arXiv:2010.08895",
    supports: Support::PROJECTED,
    ragged: true,
    build,
    defaults: super::defaults::<Config>,
    moved,
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick: |benchmark| match benchmark {
        "elasticity" | "own" => Some("model.settings = { width = 24, lattice = [48, 48] }"),
        "plasticity" => Some("model.settings = { width = 24, modes = 8 }"), // the mesh has 16 rows
        "darcy" | "navier-stokes" | "airfoil" | "pipe" => Some("model.settings = { width = 24 }"),
        _ => None,
    },
    own,
    tiny,
    infer,
    translate: &[("fno2d", translate)],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Parameters;
    use lamo_tensor::reference::{self, Bindings};
    use lamo_tensor::{Graph, PARAMETERS};

    const SETTINGS: &str = "width = 5\nmodes = 2\ndepth = 2";
    const TIME: f64 = 0.3;

    /// Parameters by name, in order, and the output for one sample.
    fn evaluated(task: &Task, values: &dyn Fn(&str, usize) -> Vec<f64>) -> (Vec<String>, Vec<f64>) {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let model = build(&parameters.root(), task, &SETTINGS.parse().unwrap()).unwrap();
        let out = model.forward(&Input::declare(&graph, task, 1), Mode::Inference);
        let mut theta = vec![0.0; graph.parameters().shape().count()];
        for section in graph.sections() {
            theta[section.range()].copy_from_slice(&values(&section.name, section.shape.count()));
        }
        let mut bindings = Bindings::from([(PARAMETERS, theta), ("time", vec![TIME])]);
        for (name, count) in [("positions", 12), ("functions", 6)] {
            bindings.insert(name, drawn(name, count));
        }
        let names = graph.sections().iter().map(|section| section.name.clone()).collect();
        (names, reference::evaluate(&graph, &bindings, &[out])[0].values.clone())
    }

    /// Numbers without a pattern that depend on the name alone.
    fn drawn(name: &str, count: usize) -> Vec<f64> {
        let phase: u32 = name.bytes().map(u32::from).sum();
        (0..count).map(|n| 0.5 * (f64::from(phase) + 12.9898 * n as f64).sin()).collect()
    }

    fn affine(map: &str, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (drawn(&format!("{map}.weight"), x.len() * 5), drawn(&format!("{map}.bias"), 5));
        let row = |row: usize| weight[row * x.len()..].iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
        bias.iter().enumerate().map(|(number, bias)| row(number) + bias).collect()
    }

    /// The library adds time_fc(e(T)) to the output of `linear_post`. A larger bias there has the same effect.
    #[test]
    fn a_time_is_added_to_the_lifted_features_of_every_point() {
        let plane = Task::plain(Grid::Plane { rows: 2, columns: 3 }, 2, 1, 1);
        let (without, _) = evaluated(&plane, &drawn);
        let (names, found) = evaluated(&plane.clone().by_time(1), &drawn);
        let time: Vec<_> = ["0.weight", "0.bias", "2.weight", "2.bias"].map(|name| format!("time_fc.{name}")).to_vec();
        assert_eq!(names, [&without[..4], &time, &without[4..]].concat(), "the order of the library's state dict");

        let phases = [0, 1].map(|k| TIME * 10000_f64.powf(-f64::from(k) / 2.0)); // width 5, so half = 2
        let sines = [phases[0].cos(), phases[1].cos(), phases[0].sin(), phases[1].sin(), 0.0];
        let hidden: Vec<f64> = affine("time_fc.0", &sines).iter().map(|x| x / (1.0 + (-x).exp())).collect();
        let shift = affine("time_fc.2", &hidden);
        let (_, expected) = evaluated(&plane, &|name, count| {
            let mut values = drawn(name, count);
            if name == "preprocess.linear_post.bias" {
                values.iter_mut().zip(&shift).for_each(|(bias, shift)| *bias += shift);
            }
            values
        });
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-6, "{found} and {expected}");
        }
    }
}
