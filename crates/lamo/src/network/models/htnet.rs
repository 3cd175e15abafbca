//! HT-Net (Liu, Xu, Zhang 2022; `HANO` of May 2023): attention without softmax in windows of a hierarchy of planes, then Fourier
//! layers. With t₀ = LN(patches · a) and E channels,
//!
//! down: t ← t + W(LN t), t ← t + mlp(LN t), a_L = t, t = R LN(the four cells of each square);  up: a_{L−1} += S a_L;
//! decode: v ← σ(K v + C v) with K of [`SpectralConvolution`] and a 3 × 3 convolution C, u = Q v.
//!
//! The authors' code is for squares, sees no coordinates and has one output. Other planes are ours: zeros below and right make
//! the levels fit and are cut off at the end, coordinates and a time can be further inputs, and there may be several outputs.
//! The authors drop up to a tenth of the branches at random in training (stochastic depth), which is not available here.

use super::{Authored, GridKind, Hints, Inferred, OwnData, Row, Settings, Shapes, Support, Translated};
use super::{check_positive, check_window, least_common_multiple, read};
use crate::error::{Refusal, require};
use crate::network::layers::{
    ImageConvolution, LayerNorm, Mlp, PlaneConvolution, SpectralConvolution, WindowLevels, WindowLevelsShape,
};
use crate::network::{Initial, Input, Mode, Model, Scope, Style};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// Tokens along a side of the smallest plane that the windows of all levels fit into, at most.
const MOST_TOKENS: usize = 4096;

/// All settings; the defaults are the authors' for Navier–Stokes with the width for Darcy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// E, channels of the finest level; each coarser one has twice as many.
    pub width: usize,
    /// Side of the squares that become tokens; neighbouring squares overlap, as the tokens are one point apart.
    pub patch: usize,
    /// Zeros around the plane before it is cut into squares.
    pub patch_padding: usize,
    /// Side of the windows of each level.
    pub windows: Vec<usize>,
    /// Blocks of each level.
    pub depths: Vec<usize>,
    /// Heads of each level.
    pub heads: Vec<usize>,
    /// Frequencies along each axis.
    pub modes: usize,
    /// Fourier layers.
    pub layers: usize,
    /// Hidden channels of the last map.
    pub hidden: usize,
    /// Zeros below and right of the plane in the Fourier layers.
    pub padding: usize,
    /// Whether the coordinates are inputs, too.
    pub coordinates: bool,
    /// Whether the outputs are zero, in physical units, on the border of the plane.
    pub zero_border: bool,
    /// Whether outputs are shifted and scaled point by point with tensors of the weights file.
    pub pointwise_scale: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            width: 64,
            patch: 3,
            patch_padding: 1,
            windows: vec![4, 4, 4],
            depths: vec![1, 1, 1],
            heads: vec![1, 1, 1],
            modes: 12,
            layers: 5,
            hidden: 128,
            padding: 5,
            coordinates: true,
            zero_border: false,
            pointwise_scale: false,
        }
    }
}

/// Sizes of a plane on its way through the model.
#[derive(Clone, Copy)]
struct Extents {
    /// Rows and columns of the grid.
    grid: [usize; 2],
    /// With the zeros that make all levels fit.
    padded: [usize; 2],
    /// Tokens of the finest level.
    tokens: [usize; 2],
}

impl Config {
    fn levels(&self) -> WindowLevelsShape {
        let Config { width, windows, depths, heads, .. } = self.clone();
        WindowLevelsShape { width, windows, depths, heads }
    }

    /// The number that divides the tokens along each axis if they fit the windows of all levels.
    fn unit(&self) -> usize {
        let sides = self.windows.iter().enumerate().map(|(level, window)| window << level);
        sides.fold(1, least_common_multiple)
    }

    fn extents(&self, grid: [usize; 2]) -> Extents {
        let lost = (self.patch - 1).saturating_sub(2 * self.patch_padding);
        let gained = (2 * self.patch_padding).saturating_sub(self.patch - 1);
        let tokens = grid.map(|extent| (extent.saturating_sub(lost).max(1) + gained).next_multiple_of(self.unit()));
        Extents { grid, padded: tokens.map(|extent| extent + lost - gained), tokens }
    }

    /// Largest number of modes that the planes of the Fourier layers have along both axes.
    fn most_modes(&self, grid: [usize; 2]) -> usize {
        let [rows, columns] = self.extents(grid).tokens.map(|extent| extent + self.padding);
        rows.min(columns / 2 + 1)
    }

    fn check(&self, task: &Task, grid: [usize; 2]) -> Result<(), Refusal> {
        let levels = self.windows.len();
        let sizes = [("width", self.width), ("patch", self.patch), ("modes", self.modes), ("layers", self.layers)];
        check_positive("htnet", &sizes)?;
        check_positive("htnet", &[("hidden", self.hidden), ("windows: number of levels", levels)])?;
        for (name, list) in [("windows", &self.windows), ("depths", &self.depths), ("heads", &self.heads)] {
            require(list.len() == levels && levels <= 8 && !list.contains(&0), || {
                let expected = "one positive number for each level, the same number of levels everywhere and at most 8";
                Refusal::new(format!("model htnet: {name}"), expected, format!("{list:?}"))
            })?;
        }
        self.windows.iter().try_for_each(|window| check_window("htnet", *window))?;
        require(self.unit() <= MOST_TOKENS, || {
            let expected = format!("sides that fit into planes of {MOST_TOKENS} tokens a side on all levels");
            Refusal::new("model htnet: windows", expected, format!("{:?}", self.windows))
        })?;
        for (level, heads) in self.heads.iter().enumerate() {
            let width = self.levels().level_width(level);
            require(width.is_multiple_of(*heads), || {
                format!("model htnet: the {width} channels of level {level} do not divide into {heads} heads")
            })?;
        }
        require(self.coordinates || task.input_channels() > 0, || {
            "model htnet: a task without input functions needs coordinates = true".to_owned()
        })?;
        let (Extents { tokens, .. }, most) = (self.extents(grid), self.most_modes(grid));
        require([0, 1].iter().all(|&axis| tokens[axis] + self.padding >= grid[axis]), || {
            let expected = format!("zeros that make {tokens:?} tokens cover {grid:?} points");
            let found = format!("patch = {} and padding = {}", self.patch, self.padding);
            Refusal::new("model htnet: patch and padding", expected, found)
        })?;
        require(self.modes <= most, || {
            Refusal::new("model htnet: modes", format!("at most {most} on this grid"), self.modes.to_string())
        })
    }
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("htnet", settings)?;
    let grid = task.grid.plane().expect("htnet supports planes only");
    config.check(task, grid)?;
    let scope = scope.with_style(Style::Small);
    let extents = config.extents(grid);
    let encoder = scope.enter("encoder");
    let coordinates = if config.coordinates { task.space } else { 0 };
    let inputs = task.input_channels() + coordinates + usize::from(task.time.is_input());
    Ok(Box::new(HtNet {
        extents,
        coordinates: config.coordinates,
        patches: PlaneConvolution::new(
            &encoder.enter("proj"),
            [inputs, config.width],
            config.patch,
            config.patch_padding,
        ),
        norm: LayerNorm::new(&encoder.enter("norm"), config.width),
        levels: WindowLevels::new(&scope.enter("attn"), &config.levels(), extents.tokens),
        decoder: Decoder::new(&scope.enter("decoder"), task, &config),
        scale: config.pointwise_scale.then(|| {
            let state = |name: &str, value| scope.enter("y_norm").state(name, grid, Initial::Constant(value)).value();
            [state("mean", 0.0), state("std", 1.0)]
        }),
        border: config.zero_border.then(|| border_values(task)),
    }))
}

/// Zero in physical units, as the model's outputs are normalised.
fn border_values(task: &Task) -> Vec<f32> {
    match &task.normalisers.outputs {
        Some(normaliser) => {
            let mut zeros = vec![0.0; task.output_channels()];
            normaliser.encode(&mut zeros);
            zeros
        }
        None => vec![0.0; task.output_channels()],
    }
}

/// The model.
struct HtNet<'g> {
    extents: Extents,
    coordinates: bool,
    patches: PlaneConvolution<'g>,
    norm: LayerNorm<'g>,
    levels: WindowLevels<'g>,
    decoder: Decoder<'g>,
    /// Mean and deviation at each point.
    scale: Option<[Tensor<'g>; 2]>,
    /// Values of the outputs on the border.
    border: Option<Vec<f32>>,
}

impl<'g> Model<'g> for HtNet<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        let image = self.image(input);
        let [batch, ..] = image.dims::<4>();
        let fine = self.levels.forward(self.norm.forward(self.patches.forward(image)));
        let [rows, columns] = self.extents.grid;
        let mut out = self.decoder.forward(fine, self.extents.grid); // [batch, rows, columns, outputs]
        if let Some([mean, deviation]) = self.scale {
            let at = |values: Tensor<'g>| values.reshape([rows, columns, 1]);
            out = out * (at(deviation) + 1e-5) + at(mean);
        }
        if let Some(values) = &self.border {
            out = with_border(out, values);
        }
        let [.., outputs] = out.dims::<4>();
        out.reshape([batch, rows * columns, outputs])
    }
}

impl<'g> HtNet<'g> {
    /// `[batch, padded rows, padded columns, inputs]`
    fn image(&self, input: &Input<'g>) -> Tensor<'g> {
        let [batch, points, _] = input.positions.dims();
        let coordinates = self.coordinates.then_some(input.positions);
        let time = input.time.map(|time| time.reshape([batch, 1, 1]).broadcast_to([batch, points, 1]));
        let channels: Vec<_> = [coordinates, input.functions, time].into_iter().flatten().collect();
        let channels = Tensor::concatenate(&channels, 2);
        let ([_, _, count], Extents { grid, padded, .. }) = (channels.dims(), self.extents);
        let image = channels.reshape([batch, grid[0], grid[1], count]);
        image.pad(1, 0, padded[0] - grid[0]).pad(2, 0, padded[1] - grid[1])
    }
}

/// `[batch, rows, columns, outputs]` with given values on the outermost points.
fn with_border<'g>(image: Tensor<'g>, values: &[f32]) -> Tensor<'g> {
    let ([_, rows, columns, outputs], graph) = (image.dims(), image.graph());
    let inside = |place: usize, extent: usize| place > 0 && place + 1 < extent;
    let inner = |point: usize| f32::from(inside(point / columns, rows) && inside(point % columns, columns));
    let mask: Vec<f32> = (0..rows * columns).map(inner).collect();
    graph.constant(&mask, [rows, columns, 1]).select(image, graph.constant(values, [outputs]))
}

/// Fourier layers and the last map.
struct Decoder<'g> {
    padding: usize,
    layers: Vec<(ImageConvolution<'g>, PlaneConvolution<'g>)>,
    mlp: Mlp<'g>,
}

impl<'g> Decoder<'g> {
    fn new(scope: &Scope<'_, 'g>, task: &Task, config: &Config) -> Self {
        let Config { width, modes, layers, hidden, padding, .. } = *config;
        let (channels, count) = (width as f64, modes as f64);
        let gain = (2.0 * channels / 16.0).sqrt() / (channels * channels);
        let bound = gain * (6.0 / (2.0 * channels * 2.0 * count * count)).sqrt();
        let spectral = |layer: usize| {
            let scope = scope.enter("Spectral_Conv_List").enter(&layer.to_string());
            let uniform = Initial::Uniform { low: -bound, high: bound };
            let weight = |name: &str| scope.parameter(name, [width, width, modes, modes, 2], uniform);
            ImageConvolution::Plane(SpectralConvolution::of(["fourier_weight1", "fourier_weight2"].map(weight)))
        };
        let spectral: Vec<_> = (0..layers).map(spectral).collect();
        let near = |layer: usize| {
            PlaneConvolution::new(&scope.enter("Conv2d_list").enter(&layer.to_string()), [width; 2], 3, 1)
        };
        let layers = spectral.into_iter().zip((0..layers).map(near)).collect();
        let mlp = Mlp::named(&scope.enter("mlp.net"), ["0", "3"], [width, hidden, task.output_channels()]);
        Decoder { padding, layers, mlp }
    }

    /// `[batch, token rows, token columns, width]` → `[batch, rows, columns, outputs]`
    fn forward(&self, image: Tensor<'g>, [rows, columns]: [usize; 2]) -> Tensor<'g> {
        let mut image = image.pad(1, 0, self.padding).pad(2, 0, self.padding);
        for (number, (far, near)) in self.layers.iter().enumerate() {
            image = far.forward(image) + near.forward(image);
            image = if number + 1 == self.layers.len() { image } else { image.gelu() };
        }
        self.mlp.forward(image.slice(1, 0, rows).slice(2, 0, columns))
    }
}

/// The authors' sizes and rate for Darcy and Navier–Stokes; on other planes those for Darcy with our extension. The loss with slopes
/// stands for their H1 loss on Darcy.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# HT-Net on darcy: the authors' sizes and rate; patches of six points make 80 × 80 tokens. No stochastic depth.
             model.settings = { width = 64, patch = 6, patch_padding = 0, coordinates = false, zero_border = true }
             train = { batch = 8, rate = 0.0008, optimiser = \"adam\", weight_decay = 1e-4, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# HT-Net on navier-stokes: the authors' sizes and rate, without stochastic depth.
             model.settings = { width = 18, coordinates = false }
             train = { batch = 20, rate = 0.0008, optimiser = \"adam\", weight_decay = 1e-4 }"
        }
        "plasticity" => {
            "# HT-Net on plasticity: the authors' sizes for darcy on a padded plane, with coordinates and time; recipe as for LaMO.
             model.settings = { width = 64, coordinates = true }
             data.scrambled = false"
        }
        "airfoil" => {
            "# HT-Net on airfoil: the authors' sizes for darcy on a padded plane, with coordinates; recipe as for LaMO.
             model.settings = { width = 64, coordinates = true }"
        }
        "pipe" => {
            "# HT-Net on pipe: the authors' sizes for darcy on a padded plane, with coordinates; recipe as for LaMO.
             model.settings = { width = 64, coordinates = true }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores.
fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "model.settings = { width = 12, patch = 3, patch_padding = 1, windows = [4, 4], depths = [1, 1], heads = [1, 1], \
             modes = 8, layers = 3, hidden = 32 }"
        }
        "navier-stokes" | "plasticity" | "airfoil" | "pipe" => {
            "model.settings = { width = 12, windows = [4, 4], depths = [1, 1], heads = [1, 1], modes = 6, layers = 3, hidden = 32 }"
        }
        "own" => {
            "model.settings = { width = 12, windows = [4, 4], depths = [1, 1], heads = [1, 1], layers = 3, hidden = 32 }"
        }
        _ => return None,
    })
}

/// As many modes as usual, fewer on a small plane. The two levels of the preset `quick` make the smallest planes.
fn own(data: &OwnData) -> Settings {
    let usual = Config::default();
    let smallest = Config { windows: vec![4, 4], ..Config::default() };
    let modes = data.grid.as_ref().and_then(Grid::plane).map(|grid| usual.modes.min(smallest.most_modes(grid)));
    modes.map(|modes| ("modes".to_owned(), toml::Value::from(modes as i64))).into_iter().collect()
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 8
        patch = 3
        patch_padding = 1
        coordinates = true
        windows = [2, 2]
        depths = [1, 1]
        heads = [1, 2]
        modes = 2
        layers = 2
        hidden = 16
        padding = 0
    }
}

/// The zeros, the border and the use of coordinates leave no trace in the shapes.
fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    const PATCHES: &str = "encoder.proj.weight";
    const WAVES: &str = "decoder.Spectral_Conv_List.0.fourier_weight1";
    let inferred = || {
        let (grid, patch, defaults) = (hints.plane()?, shapes.extent(PATCHES, 2)?, Config::default());
        let levels = shapes.count("attn.layers.", 0);
        let table = |level: usize| format!("attn.layers.{level}.blocks.0.attn.relative_position_bias_table");
        let window = |level: usize| {
            let offsets = shapes.extent(&table(level), 0);
            offsets.map(|offsets| (offsets as f64).sqrt().round() as usize / 2 + 1)
        };
        let said = |key: &str| hints.settings.get(key).and_then(toml::Value::as_bool).unwrap_or(false);
        let config = Config {
            width: shapes.extent(PATCHES, 0)?,
            patch,
            patch_padding: hints.setting("patch_padding").unwrap_or(if patch % 2 == 1 { patch / 2 } else { 0 }),
            windows: (0..levels).map(window).collect::<Result<_, _>>()?,
            depths: (0..levels).map(|level| shapes.count(&format!("attn.layers.{level}.blocks."), 0)).collect(),
            heads: (0..levels).map(|level| shapes.extent(&table(level), 1)).collect::<Result<_, _>>()?,
            modes: shapes.extent(WAVES, 2)?,
            layers: shapes.count("decoder.Spectral_Conv_List.", 0),
            hidden: shapes.extent("decoder.mlp.net.0.weight", 0)?,
            padding: hints.setting("padding").unwrap_or(defaults.padding),
            coordinates: said("coordinates"),
            zero_border: said("zero_border"),
            pointwise_scale: shapes.has("y_norm.mean"),
        };
        let Config { patch_padding, padding, coordinates, zero_border, .. } = config;
        let assumed = vec![format!(
            "patch_padding is {patch_padding}, padding {padding}, coordinates {coordinates} and zero_border {zero_border} \
             (model.settings)"
        )];
        let space = hints.space.unwrap_or(2);
        let functions = shapes.extent(PATCHES, 1)?.saturating_sub(if coordinates { space } else { 0 });
        let (settings, outputs) = (super::settings(&config), shapes.extent("decoder.mlp.net.3.weight", 0)?);
        Ok(Inferred { settings, grid, space, functions, outputs, time: false, assumed })
    };
    shapes.has(WAVES).then(inferred)
}

fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let model = authored.table("model");
    let [input, output, stride] =
        [model.number("res_input")?, model.number("res_output")?, model.number("subsample_attn")?];
    require(input == output && stride == 1, || {
        Refusal::said(format!(
            "takes {input} points a side to {output} with tokens {stride} points apart; the model predicts on the grid of its \
             inputs, with tokens one point apart"
        ))
    })?;
    let config = Config {
        width: model.number("feature_dim")?,
        patch: model.number("patch_size")?,
        patch_padding: model.number("patch_padding")?,
        windows: model.list("window_size")?,
        depths: model.list("depths")?,
        heads: model.list("num_heads")?,
        modes: model.number("F_modes")?,
        layers: model.number("num_spectral_layers")?,
        hidden: model.number("mlp_hidden_dim")?,
        padding: model.number("F_padding")?,
        coordinates: false,
        zero_border: model.0["boundary_condition"] == "dirichlet",
        pointwise_scale: model.0["y_norm"] == true,
    };
    let task = Task::plain(Grid::Plane { rows: input, columns: input }, 2, model.number("in_dim")?, 1);
    Ok(Translated { settings: super::settings(&config), task, single_stage: false })
}

pub(super) const ROW: Row = Row {
    name: "htnet",
    summary: "HT-Net (2022): attention in windows of a hierarchy of planes, then Fourier layers",
    paper: "Liu, Xu, Zhang: HT-Net: Hierarchical Transformer based Operator Learning Model for Multiscale PDEs, 2022, \
            arXiv:2210.10890",
    supports: Support { grids: &[GridKind::Plane], time: true },
    build,
    defaults: super::defaults::<Config>,
    moved: |_, _| None,
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own,
    tiny,
    infer,
    translate: &[("htnet", translate)],
};
