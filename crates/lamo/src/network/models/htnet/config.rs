//! Settings of HT-Net: sizes of the levels and of the padded plane, and what the authors' classes and state dicts say about them.

use crate::error::{Refusal, require};
use crate::network::layers::WindowLevelsShape;
use crate::network::models::{
    Authored, Hints, Inferred, Shapes, Translated, check_positive, check_rate, check_window, least_common_multiple,
    settings,
};
use crate::task::Task;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Tokens along a side of the smallest plane that the windows of all levels fit into, at most.
const MOST_TOKENS: usize = 4096;

/// Rate of the authors' classes.
const STOCHASTIC_DEPTH: f64 = 0.1;

/// All settings; the defaults are the authors' for Navier–Stokes with the width for Darcy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// E, channels of the finest level; each coarser one has twice as many.
    pub width: usize,
    /// Side of the squares that become tokens; neighbouring squares overlap where it is larger than the stride.
    pub patch: usize,
    /// Points from one token to the next.
    pub stride: usize,
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
    /// Rate at which a branch of the last block is left out of a sample in training; it grows from 0 at the first block.
    pub stochastic_depth: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            width: 64,
            patch: 3,
            stride: 1,
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
            stochastic_depth: 0.0,
        }
    }
}

/// Sizes of a plane on its way through the model.
#[derive(Clone, Copy)]
pub(super) struct Extents {
    /// Rows and columns of the grid.
    pub(super) grid: [usize; 2],
    /// With the zeros that make all levels fit.
    pub(super) padded: [usize; 2],
    /// Tokens of the finest level.
    pub(super) tokens: [usize; 2],
}

impl Config {
    pub(super) fn levels(&self) -> WindowLevelsShape {
        let Config { width, windows, depths, heads, stochastic_depth, .. } = self.clone();
        WindowLevelsShape { width, windows, depths, heads, stochastic_depth }
    }

    /// The number that divides the tokens along each axis if they fit the windows of all levels.
    fn unit(&self) -> usize {
        let sides = self.windows.iter().enumerate().map(|(level, window)| window << level);
        sides.fold(1, least_common_multiple)
    }

    pub(super) fn extents(&self, grid: [usize; 2]) -> Extents {
        let around = 2 * self.patch_padding;
        let squares = |extent: usize| (extent + around).saturating_sub(self.patch) / self.stride + 1;
        let covered = |tokens: usize| ((tokens - 1).saturating_mul(self.stride) + self.patch).saturating_sub(around);
        let tokens = grid.map(|extent| squares(extent).next_multiple_of(self.unit()));
        // A stride may leave the last points without a square of their own.
        Extents { grid, padded: [0, 1].map(|axis| covered(tokens[axis]).max(grid[axis])), tokens }
    }

    /// Largest number of modes that the planes of the Fourier layers have along both axes.
    pub(super) fn most_modes(&self, grid: [usize; 2]) -> usize {
        let [rows, columns] = self.extents(grid).tokens.map(|extent| extent + self.padding);
        rows.min(columns / 2 + 1)
    }

    pub(super) fn check(&self, task: &Task, grid: [usize; 2]) -> Result<(), Refusal> {
        let levels = self.windows.len();
        let sizes = [("width", self.width), ("patch", self.patch), ("modes", self.modes), ("layers", self.layers)];
        check_positive("htnet", &sizes)?;
        let sizes = [("stride", self.stride), ("hidden", self.hidden), ("windows: number of levels", levels)];
        check_positive("htnet", &sizes)?;
        require(self.stride <= self.patch, || {
            let expected = format!("at most patch = {}, so that every point lies in a square", self.patch);
            Refusal::new("model htnet: stride", expected, self.stride.to_string())
        })?;
        check_rate("htnet", "stochastic_depth", self.stochastic_depth)?;
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
            let Config { patch, stride, padding, .. } = self;
            let found = format!("patch = {patch}, stride = {stride} and padding = {padding}");
            Refusal::new("model htnet: patch, stride and padding", expected, found)
        })?;
        require(self.modes <= most, || {
            Refusal::new("model htnet: modes", format!("at most {most} on this grid"), self.modes.to_string())
        })
    }
}

/// The zeros, the border and the use of coordinates leave no trace in the shapes.
pub(super) fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
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
            stride: hints.setting("stride").unwrap_or(defaults.stride),
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
            stochastic_depth: STOCHASTIC_DEPTH,
        };
        let Config { stride, patch_padding, padding, coordinates, zero_border, .. } = config;
        let assumed = vec![format!(
            "stride is {stride}, patch_padding {patch_padding}, padding {padding}, coordinates {coordinates} and zero_border \
             {zero_border} (model.settings)"
        )];
        let space = hints.space.unwrap_or(2);
        let functions = shapes.extent(PATCHES, 1)?.saturating_sub(if coordinates { space } else { 0 });
        let (settings, outputs) = (settings(&config), shapes.extent("decoder.mlp.net.3.weight", 0)?);
        Ok(Inferred { settings, grid, space, functions, outputs, time: false, assumed })
    };
    shapes.has(WAVES).then(inferred)
}

pub(super) fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let model = authored.table("model");
    let [input, output] = [model.number("res_input")?, model.number("res_output")?];
    require(input == output, || {
        Refusal::said(format!(
            "gives res_input as {input} and res_output as {output}; a task has one grid, on which the inputs and the outputs lie, so \
             outputs on a grid of their own cannot be predicted"
        ))
    })?;
    let config = Config {
        width: model.number("feature_dim")?,
        patch: model.number("patch_size")?,
        stride: model.number("subsample_attn")?,
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
        stochastic_depth: STOCHASTIC_DEPTH,
    };
    check_class(&authored.tables["class"], &config.depths)?;
    let task = Task::plain(Grid::Plane { rows: input, columns: input }, 2, model.number("in_dim")?, 1);
    Ok(Translated { settings: settings(&config), task, single_stage: false })
}

/// The authors' file of 2023 gives the input of a level to each of its blocks, so that the last one alone counts. Their later file
/// chains the blocks, as we do; with one block for each level there is no difference.
fn check_class(class: &Value, depths: &[usize]) -> Result<(), Refusal> {
    match class.as_str() {
        None if class.is_null() => Ok(()),
        Some("hano_legacy") => Ok(()),
        Some("models2023") if depths.iter().all(|&depth| depth == 1) => Ok(()),
        Some("models2023") => Err(Refusal::said(format!(
            "gives class as models2023 and depths as {depths:?}; this class does not chain the blocks of a level, and the model has \
             chained blocks only (class hano_legacy)"
        ))),
        _ => Err(Refusal::said(format!("gives class as {class}; the model knows hano_legacy and models2023"))),
    }
}
