//! HT-Net (Liu, Xu, Zhang 2022; `HANO` of May 2023): attention without softmax in windows of a hierarchy of planes, then Fourier
//! layers. With t₀ = LN(patches · a) and E channels,
//!
//! down: t ← t + W(LN t), t ← t + mlp(LN t), a_L = t, t = R LN(the four cells of each square);  up: a_{L−1} += S a_L;
//! decode: v ← σ(K v + C v) with K of [`SpectralConvolution`] and a 3 × 3 convolution C, u = Q v.
//!
//! The authors' code is for squares, sees no coordinates and has one output. Other planes are ours: zeros below and right make
//! the levels fit and are cut off at the end, coordinates and a time can be further inputs, and there may be several outputs.
//! The authors drop up to a tenth of the branches at random in training (stochastic depth), which is not available here.

use super::{Authored, GridKind, OwnData, Row, Settings, Support, Translated, check_positive, read};
use crate::error::{Refusal, require};
use crate::network::layers::{LayerNorm, Linear, Mlp, SpectralConvolution, WindowAttention, WindowWeights, Windows};
use crate::network::{Initial, Input, Mode, Model, Scope, Style};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::{ConvolutionOptions, Tensor};
use serde::{Deserialize, Serialize};

/// Hidden channels of a block's MLP over its width.
const MLP_RATIO: usize = 4;

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
    /// Channels of a level.
    fn level_width(&self, level: usize) -> usize {
        self.width << level
    }

    /// The number that divides the tokens along each axis if they fit the windows of all levels.
    fn unit(&self) -> usize {
        let sides = self.windows.iter().enumerate().map(|(level, window)| window << level);
        sides.fold(1, |unit, side| unit / common(unit, side) * side)
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
        for (level, heads) in self.heads.iter().enumerate() {
            let width = self.level_width(level);
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
            Refusal::new("model htnet: padding", expected, self.padding.to_string())
        })?;
        require(self.modes <= most, || {
            Refusal::new("model htnet: modes", format!("at most {most} on this grid"), self.modes.to_string())
        })
    }
}

/// Greatest common divisor.
fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("htnet", settings)?;
    let grid = task.grid.plane().expect("htnet supports planes only");
    config.check(task, grid)?;
    let scope = scope.with_style(Style::Small);
    let extents = config.extents(grid);
    let (encoder, attention) = (scope.enter("encoder"), scope.enter("attn"));
    let coordinates = if config.coordinates { task.space } else { 0 };
    let inputs = task.input_channels() + coordinates + usize::from(task.time.is_input());
    let depth = config.windows.len();
    Ok(Box::new(HtNet {
        extents,
        coordinates: config.coordinates,
        patches: Convolution::new(&encoder.enter("proj"), [inputs, config.width], config.patch, config.patch_padding),
        norm: LayerNorm::new(&encoder.enter("norm"), config.width),
        levels: (0..depth).map(|level| Level::new(&attention, &config, level, extents.tokens)).collect(),
        rises: (0..depth)
            .map(|level| {
                let (scope, width) = (attention.enter("relayers").enter(&level.to_string()), config.level_width(level));
                Linear::new(&scope.enter("rebuildnet"), width, 2 * width)
            })
            .collect(),
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
    patches: Convolution<'g>,
    norm: LayerNorm<'g>,
    levels: Vec<Level<'g>>,
    /// S of each level; the weights file has one of the finest level, too, which leads nowhere.
    rises: Vec<Linear<'g>>,
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
        let mut stream = self.norm.forward(self.patches.forward(image));
        let mut results = Vec::with_capacity(self.levels.len());
        for level in &self.levels {
            let result = level.forward(stream);
            stream = level.down.as_ref().map_or(result, |down| down.forward(result));
            results.push(result);
        }
        let mut fine = results.pop().expect("there is a level");
        while let Some(finer) = results.pop() {
            fine = finer + raised(self.rises[results.len() + 1].forward(fine));
        }
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

/// A convolution over the plane with a bias.
struct Convolution<'g> {
    weight: Tensor<'g>,
    bias: Tensor<'g>,
    padding: usize,
}

impl<'g> Convolution<'g> {
    fn new(scope: &Scope<'_, 'g>, [inputs, outputs]: [usize; 2], side: usize, padding: usize) -> Self {
        let initial = Initial::fan_in(inputs * side * side);
        let weight = scope.parameter("weight", [outputs, inputs, side, side], initial);
        Convolution { weight, bias: scope.parameter("bias", [outputs], initial), padding }
    }

    /// `[batch, rows, columns, inputs]` → `[batch, rows, columns, outputs]`
    fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let padding = [[self.padding; 2]; 2];
        image.convolve(self.weight, ConvolutionOptions { padding, ..ConvolutionOptions::default() }) + self.bias
    }
}

/// The blocks of a level, and the way to the next.
struct Level<'g> {
    windows: Windows,
    blocks: Vec<Block<'g>>,
    down: Option<Down<'g>>,
}

struct Block<'g> {
    norm1: LayerNorm<'g>,
    attention: WindowAttention<'g>,
    norm2: LayerNorm<'g>,
    mlp: Mlp<'g>,
}

impl<'g> Level<'g> {
    fn new(scope: &Scope<'_, 'g>, config: &Config, level: usize, tokens: [usize; 2]) -> Self {
        let scope = scope.enter("layers").enter(&level.to_string());
        let (width, side, heads) = (config.level_width(level), config.windows[level], config.heads[level]);
        let block = |number: usize| {
            let scope = scope.enter("blocks").enter(&number.to_string());
            Block {
                norm1: LayerNorm::new(&scope.enter("norm1"), width),
                attention: WindowAttention::new(&scope.enter("attn"), WindowWeights::Plain, side, heads, width),
                norm2: LayerNorm::new(&scope.enter("norm2"), width),
                mlp: Mlp::new(&scope.enter("mlp"), [width, MLP_RATIO * width, width]),
            }
        };
        let blocks = (0..config.depths[level]).map(block).collect();
        let down = (level + 1 < config.windows.len()).then(|| Down::new(&scope.enter("downsample"), width));
        Level { windows: Windows { extents: tokens.map(|extent| extent >> level), side }, blocks, down }
    }

    /// `[batch, rows, columns, width]` → the same
    fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        self.blocks.iter().fold(image, |image, block| {
            let windows = self.windows.cut(block.norm1.forward(image));
            let image = image + self.windows.join(block.attention.forward(windows, None));
            image + block.mlp.forward(block.norm2.forward(image))
        })
    }
}

/// R LN of the four cells of each square.
struct Down<'g> {
    reduce: Linear<'g>,
    norm: LayerNorm<'g>,
}

impl<'g> Down<'g> {
    fn new(scope: &Scope<'_, 'g>, width: usize) -> Self {
        Down {
            reduce: Linear::without_bias(&scope.enter("reduction"), 4 * width, 2 * width),
            norm: LayerNorm::new(&scope.enter("norm"), 4 * width),
        }
    }

    /// `[batch, rows, columns, width]` → `[batch, rows/2, columns/2, 2 width]`; the row of a cell varies before its column.
    fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let [batch, rows, columns, width] = image.dims();
        let squares = image.reshape([batch, rows / 2, 2, columns / 2, 2, width]).permute(&[0, 1, 3, 4, 2, 5]);
        self.reduce.forward(self.norm.forward(squares.reshape([batch, rows / 2, columns / 2, 4 * width])))
    }
}

/// `[batch, rows, columns, 4 width]` → `[batch, 2 rows, 2 columns, width]`: the four parts of the channels are the cells of a
/// square, in the order of [`Down`].
fn raised(image: Tensor<'_>) -> Tensor<'_> {
    let [batch, rows, columns, parts] = image.dims();
    let squares = image.reshape([batch, rows, columns, 2, 2, parts / 4]).permute(&[0, 1, 4, 2, 3, 5]);
    squares.reshape([batch, 2 * rows, 2 * columns, parts / 4])
}

/// Fourier layers and the last map.
struct Decoder<'g> {
    padding: usize,
    layers: Vec<(SpectralConvolution<'g>, Convolution<'g>)>,
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
            SpectralConvolution::of(["fourier_weight1", "fourier_weight2"].map(weight))
        };
        let spectral: Vec<_> = (0..layers).map(spectral).collect();
        let near =
            |layer: usize| Convolution::new(&scope.enter("Conv2d_list").enter(&layer.to_string()), [width; 2], 3, 1);
        let layers = spectral.into_iter().zip((0..layers).map(near)).collect();
        let mlp = Mlp::named(&scope.enter("mlp.net"), ["0", "3"], [width, hidden, task.output_channels()]);
        Decoder { padding, layers, mlp }
    }

    /// `[batch, token rows, token columns, width]` → `[batch, rows, columns, outputs]`
    fn forward(&self, image: Tensor<'g>, [rows, columns]: [usize; 2]) -> Tensor<'g> {
        let mut image = image.pad(1, 0, self.padding).pad(2, 0, self.padding);
        for (number, (far, near)) in self.layers.iter().enumerate() {
            let waves = far.forward(image.permute(&[1, 2, 0, 3])).permute(&[2, 0, 1, 3]);
            image = waves + near.forward(image);
            image = if number + 1 == self.layers.len() { image } else { image.gelu() };
        }
        self.mlp.forward(image.slice(1, 0, rows).slice(2, 0, columns))
    }
}

/// The authors' sizes and rate for Darcy and Navier–Stokes; on other planes those for Darcy with our extension. Their Adam with
/// an L2 term is our AdamW with the same factor, and their H1 loss on Darcy our loss with slopes.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# HT-Net on darcy: the authors' sizes and rate; patches of six points make 80 × 80 tokens. No stochastic depth.
             model.settings = { width = 64, patch = 6, patch_padding = 0, coordinates = false, zero_border = true }
             train = { batch = 8, rate = 0.0008, weight_decay = 1e-4, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# HT-Net on navier-stokes: the authors' sizes and rate, without stochastic depth.
             model.settings = { width = 18, coordinates = false }
             train = { batch = 20, rate = 0.0008, weight_decay = 1e-4 }"
        }
        "plasticity" => {
            "# HT-Net on plasticity: the authors' sizes for darcy on a padded plane, with coordinates and time; recipe as for LaMO.
             model.settings = { width = 64, coordinates = true }"
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
        windows = [2, 2]
        depths = [1, 1]
        heads = [1, 2]
        modes = 2
        layers = 2
        hidden = 16
        padding = 0
    }
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
    // The tables of waves are float32 here, too.
    Ok(Translated { settings: super::settings(&config), task, single_stage: true })
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
    infer: |_, _| None,
    translate: &[("htnet", translate)],
};
