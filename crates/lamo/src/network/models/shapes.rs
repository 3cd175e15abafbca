//! Settings and sizes of a task from the shapes of a state dict. What the shapes do not tell is asked of the user, or assumed
//! and said.

use super::Settings;
use crate::error::{Refusal, require};
use crate::network::layers::Decoder;
use crate::network::layers::embedding::lattice_points;
use lamo_geometry::Grid;
use std::collections::BTreeMap;

/// Names and shapes of the tensors of a state dict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shapes(BTreeMap<String, Vec<usize>>);

/// What the user says about a state dict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    /// Settings of the model.
    pub settings: Settings,
    /// The grid.
    pub grid: Option<Grid>,
    /// Coordinates of a point.
    pub space: Option<usize>,
    /// Functions given at each point.
    pub functions: Option<usize>,
}

/// What is known about the model of a state dict.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred {
    /// Settings of the model.
    pub settings: Settings,
    /// The grid; one point stands for any number of points.
    pub grid: Grid,
    /// Coordinates of a point.
    pub space: usize,
    /// Functions given at each point.
    pub functions: usize,
    /// Functions asked for at each point.
    pub outputs: usize,
    /// Whether a time is an input.
    pub time: bool,
    /// What the shapes do not tell, in sentences.
    pub assumed: Vec<String>,
}

impl Inferred {
    /// States the settings that no shape of any model tells, unless the user gave them.
    pub(super) fn with_unknowns(mut self, hints: &Hints) -> Inferred {
        let cloud = matches!(self.grid, Grid::Cloud { .. });
        let unknown = |key: &str| self.settings.get(key).filter(|_| !hints.settings.contains_key(key));
        let sizes = |value: &toml::Value| -> Vec<i64> {
            value.as_array().into_iter().flatten().filter_map(toml::Value::as_integer).collect()
        };
        if let Some(activation) = unknown("activation").and_then(toml::Value::as_str) {
            self.assumed.push(format!("the activation is {activation} (model.settings.activation)"));
        }
        if let Some([rows, columns]) = unknown("lattice").filter(|_| cloud).map(sizes).as_deref()
            && *rows > 0
        {
            self.assumed.push(format!("the cloud is projected to {rows} × {columns} points (model.settings.lattice)"));
        }
        // LaMO's padding is among its tensors.
        let padded = unknown("padded").filter(|_| !cloud && !self.settings.contains_key("latent")).map(sizes);
        if padded.is_some_and(|padded| padded.iter().all(|&size| size == 0)) {
            self.assumed.push("the grid is padded as in the library (model.settings.padded)".to_owned());
        }
        self
    }
}

/// Heads of the attention in the scripts of the Neural-Solver-Library.
const USUAL_HEADS: usize = 8;

/// A refusal for a size that shapes do not tell.
fn ask(what: &str, keys: &str) -> Refusal {
    Refusal::said(format!("the shapes of the tensors do not tell {what}")).advise(format!("say it with --set {keys}"))
}

impl Hints {
    /// A whole number among the settings.
    pub(super) fn setting(&self, key: &str) -> Option<usize> {
        self.settings.get(key).and_then(toml::Value::as_integer).and_then(|number| usize::try_from(number).ok())
    }

    /// The grid of a plane.
    pub(super) fn plane(&self) -> Result<Grid, Refusal> {
        self.grid.ok_or_else(|| ask("the rows and columns of the plane", "task.grid=ROWSxCOLUMNS"))
    }

    /// The grid of a volume.
    pub(super) fn volume(&self) -> Result<Grid, Refusal> {
        self.grid.ok_or_else(|| ask("the rows, columns and layers of the volume", "task.grid=ROWSxCOLUMNSxLAYERS"))
    }

    /// The grid of a line.
    pub(super) fn line(&self) -> Result<Grid, Refusal> {
        self.grid.ok_or_else(|| ask("the points of the line", "task.grid=line:POINTS"))
    }

    /// The number and order of points that a model is made for.
    pub(super) fn points(&self) -> Result<Grid, Refusal> {
        self.grid
            .ok_or_else(|| ask("the grid", "task.grid=ROWSxCOLUMNS, ROWSxCOLUMNSxLAYERS, line:POINTS or cloud:POINTS"))
    }

    /// The grid of a model that works on any.
    pub(super) fn any_grid(&self, assumed: &mut Vec<String>) -> Grid {
        self.grid.unwrap_or_else(|| {
            assumed.push("the points are a cloud of any size (task.grid)".to_owned());
            Grid::Cloud { points: 1 }
        })
    }

    /// The heads of an attention whose maps join all heads; without a word of the user, those of the library's scripts.
    pub(super) fn heads(&self, assumed: &mut Vec<String>) -> usize {
        self.setting("heads").unwrap_or_else(|| {
            assumed.push(format!("the attention has {USUAL_HEADS} heads (model.settings.heads)"));
            USUAL_HEADS
        })
    }

    /// Coordinates of a point, those of the axes of the grid where the user does not say.
    fn coordinates(&self, grid: Grid) -> usize {
        self.space.unwrap_or(match grid {
            Grid::Line { .. } => 1,
            Grid::Plane { .. } | Grid::Cloud { .. } => 2,
            Grid::Volume { .. } => 3,
        })
    }

    /// Features of unified positions with `side` points along each axis; none for a side of 0.
    pub(super) fn lattice(&self, side: usize, grid: Grid) -> usize {
        if side == 0 { 0 } else { lattice_points(grid, self.coordinates(grid), side) }
    }

    /// Coordinates and functions among `total` input channels; `lattice` features replace the coordinates unless it is 0.
    pub(super) fn split(
        &self,
        total: usize,
        lattice: usize,
        grid: Grid,
        assumed: &mut Vec<String>,
    ) -> Result<[usize; 2], Refusal> {
        let rest = |part: usize, what: &str| {
            total.checked_sub(part).ok_or_else(|| {
                Refusal::new(what, format!("at most the {total} input channels of the weights"), part.to_string())
            })
        };
        if lattice > 0 {
            let functions = rest(lattice, "features of unified positions")?;
            return Ok([self.coordinates(grid), functions]);
        }
        match (self.space, self.functions) {
            (Some(space), _) => return Ok([space, rest(space, "task.space")?]),
            (None, Some(functions)) => return Ok([rest(functions, "task.functions")?, functions]),
            (None, None) => {}
        }
        let space = match grid {
            Grid::Line { .. } => 1,
            Grid::Plane { .. } | Grid::Cloud { .. } => total.min(2),
            Grid::Volume { .. } => total.min(3),
        };
        let functions = total.saturating_sub(space);
        if functions > 0 {
            if let Grid::Cloud { .. } = grid {
                let what = format!("how many of the {total} input channels are coordinates");
                return Err(ask(&what, "task.space=2 or task.space=3"));
            }
            assumed.push(format!(
                "{space} of the {total} input channels are coordinates and {functions} functions (task.space, \
                 model.settings.unified_positions)"
            ));
        }
        Ok([space, functions])
    }
}

/// Sizes of a stack of blocks that mix the points themselves.
pub(super) struct PointStack {
    pub width: usize,
    pub depth: usize,
    pub mlp_ratio: usize,
    pub unified_positions: usize,
}

/// Sizes of a slice stack.
pub(super) struct Stack {
    pub width: usize,
    pub depth: usize,
    pub tokens: usize,
    pub heads: usize,
    pub mlp_ratio: usize,
    pub unified_positions: usize,
    /// One set of slice maps for all blocks.
    pub shared: bool,
    /// How points are sorted into slices, and back.
    pub decoder: Decoder,
}

impl Shapes {
    /// From names and shapes.
    pub fn new(tensors: impl IntoIterator<Item = (String, Vec<usize>)>) -> Shapes {
        Shapes(tensors.into_iter().collect())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn shape(&self, name: &str) -> Result<&[usize], Refusal> {
        let found = self.0.get(name).map(Vec::as_slice);
        found.ok_or_else(|| Refusal::new("the weights", format!("a tensor {name}"), "none"))
    }

    /// Number of axes of a tensor.
    pub(super) fn rank(&self, name: &str) -> Result<usize, Refusal> {
        Ok(self.shape(name)?.len())
    }

    /// Extent of a tensor along an axis.
    pub(super) fn extent(&self, name: &str, axis: usize) -> Result<usize, Refusal> {
        let shape = self.shape(name)?;
        let extent = shape.get(axis).copied().filter(|&extent| extent > 0);
        extent.ok_or_else(|| Refusal::new(name, format!("values along axis {axis}"), format!("shape {shape:?}")))
    }

    /// How many numbers, from `first` on, follow `prefix` in names.
    pub(super) fn count(&self, prefix: &str, first: usize) -> usize {
        let has = |number: usize| {
            let start = format!("{prefix}{number}.");
            self.0.range(start.clone()..).next().is_some_and(|(name, _)| name.starts_with(&start))
        };
        (first..).take_while(|&number| has(number)).count()
    }

    /// A stack that mixes points, with its task; the settings are left to the model.
    pub(super) fn point_stack(&self, hints: &Hints) -> Result<(PointStack, Inferred), Refusal> {
        let (width, depth) = (self.extent("placeholder", 0)?, self.count("blocks.", 0));
        let mut assumed = Vec::new();
        let grid = hints.any_grid(&mut assumed);
        let unified_positions = hints.setting("unified_positions").unwrap_or(0);
        let inputs = self.extent("preprocess.linear_pre.0.weight", 1)?;
        let lattice = hints.lattice(unified_positions, grid);
        let [space, functions] = hints.split(inputs, lattice, grid, &mut assumed)?;
        let mlp_ratio = ratio("mlp_ratio", self.extent("blocks.0.mlp.linear_pre.0.weight", 0)?, width)?;
        let outputs = self.extent(&format!("blocks.{}.mlp2.weight", depth.saturating_sub(1)), 0)?;
        let time = self.has("time_fc.0.weight");
        let stack = PointStack { width, depth, mlp_ratio, unified_positions };
        Ok((stack, Inferred { settings: Settings::new(), grid, space, functions, outputs, time, assumed }))
    }

    /// A stack with its task; the settings are left to the model.
    pub(super) fn stack(&self, hints: &Hints) -> Result<(Stack, Inferred), Refusal> {
        let (width, depth) = (self.extent("placeholder", 0)?, self.count("blocks.", 0));
        let shared = self.has("in_project_x.weight");
        let map = |name: &str| if shared { name.to_owned() } else { format!("blocks.0.Attn.{name}") };
        let mut assumed = Vec::new();
        let grid = match self.rank(&map("in_project_x.weight"))? {
            4 => hints.plane()?,
            5 => hints.volume()?,
            _ => hints.any_grid(&mut assumed),
        };
        let unified_positions = hints.setting("unified_positions").unwrap_or(0);
        let inputs = self.extent("preprocess.linear_pre.0.weight", 1)?;
        let lattice = hints.lattice(unified_positions, grid);
        let [space, functions] = hints.split(inputs, lattice, grid, &mut assumed)?;
        let own = self.has(&map("decoder.in_project_x.weight"));
        let stack = Stack {
            width,
            depth,
            tokens: self.extent(&map("in_project_slice.weight"), 0)?,
            heads: self.extent(&map("temperature"), 1)?,
            mlp_ratio: ratio("mlp_ratio", self.extent("blocks.0.mlp.linear_post.weight", 1)?, width)?,
            unified_positions,
            shared,
            decoder: if own { Decoder::Own } else { Decoder::Tied },
        };
        let outputs = self.extent(&format!("blocks.{}.mlp2.weight", depth.saturating_sub(1)), 0)?;
        let time = self.has("time_fc.0.weight");
        Ok((stack, Inferred { settings: Settings::new(), grid, space, functions, outputs, time, assumed }))
    }
}

/// A setting that is the ratio of two extents.
pub(super) fn ratio(setting: &str, extent: usize, of: usize) -> Result<usize, Refusal> {
    require(of > 0 && extent > 0 && extent.is_multiple_of(of), || {
        Refusal::new(format!("setting {setting}"), format!("an extent that {of} divides"), extent.to_string())
    })?;
    Ok(extent / of)
}
