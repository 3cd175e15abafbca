//! One row of the registry: all that the library knows about a model.

use super::authors::Translation;
use super::shapes::{Hints, Inferred, Shapes};
use super::{MODELS, Settings};
use crate::error::{Refusal, bounded, counted, require};
use crate::network::{Model, Parameters, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Graph;
use serde::Serialize;
use std::fmt;

type Build = for<'a, 'g> fn(&Scope<'a, 'g>, &Task, &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal>;

/// A tensor with a row for each patch: its name, and the patches along each axis of a box; those of a plane are
/// `[1, down, across]`.
pub type Embedding = (&'static str, [usize; 3]);

type Infer = fn(&Shapes, &Hints) -> Option<Result<Inferred, Refusal>>;

/// One row of the registry. The texts of recipes, variants and presets are parts of an experiment file: they set
/// `model.settings`, and keys of `[train]` where they differ from the file of the benchmark.
pub struct Row {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Where it was published.
    pub paper: &'static str,
    /// The tasks that it can be built for.
    pub supports: Support,
    /// Whether it takes samples of different sizes: with a mask, what a sample predicts depends on its own points alone.
    pub ragged: bool,
    /// Declares the parameters, on a task that `supports` allows.
    pub(super) build: Build,
    /// All settings with their default values.
    pub(super) defaults: fn() -> Settings,
    /// Settings on the second grid of a model that was trained on the first; `None` where its parameters belong to points.
    pub(super) moved: fn(&Settings, [Grid; 2]) -> Option<Settings>,
    /// The tensor `[1, patches, channels]` with a row for each patch, and the patches along each axis; `None` without one.
    pub(super) embedding: fn(&Settings, Grid) -> Option<Embedding>,
    /// The published recipe for a benchmark, if there is one, or what a user's data (`own`) train with beside the sizes of `own`. Its first
    /// line is a comment that says what it is.
    pub recipe: fn(&str) -> Option<&'static str>,
    /// Other published recipes.
    pub variants: &'static [Variant],
    /// Sizes of the preset `quick` for a benchmark, or for `own`: a user's data.
    pub quick: fn(&str) -> Option<&'static str>,
    /// Settings that follow from a user's data.
    pub own: fn(&OwnData) -> Settings,
    /// Sizes for tests. With them, the model builds on every task that it supports.
    pub tiny: fn(&Task) -> Settings,
    /// Settings and sizes from the shapes of a state dict; `None` where it is not one of the model.
    pub(super) infer: Infer,
    /// The authors' classes that fixtures name, each with its translation.
    pub translate: &'static [Translation],
}

/// Another recipe for a benchmark: the experiment `BENCHMARK-MODEL-NAME`.
pub struct Variant {
    /// The benchmark.
    pub benchmark: &'static str,
    /// Last part of the experiment's name.
    pub name: &'static str,
    /// What differs from the recipe. The first line is a comment that says what it is.
    pub text: &'static str,
}

/// Facts about a user's data that are known when the experiment is resolved.
#[derive(Clone, Copy, Debug)]
pub struct OwnData {
    /// The grid, where the data set is known: its folder, or a file that names it.
    pub grid: Option<Grid>,
    /// Whether a time is an input.
    pub timed: bool,
    /// Whether the preset is `quick`: minutes on a CPU.
    pub quick: bool,
}

impl OwnData {
    /// Settings of slice models and of the library's transformers on a user's data. With the authors' small weights a block hands on hardly anything but the
    /// means of all points: training stops for a hundred epochs at the error of a map from each point to itself. Weights of
    /// the usual size learn from the first epochs on. The record of a run has no grid here, and keeps what it was trained with.
    pub(super) fn slice_settings(&self) -> Settings {
        self.grid.map(|_| ("initial".to_owned(), toml::Value::from("fan-in"))).into_iter().collect()
    }
}

/// The kinds of [`Grid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GridKind {
    /// Points in order along one axis.
    Line,
    /// Rows and columns.
    Plane,
    /// Rows, columns and layers.
    Volume,
    /// Points without order.
    Cloud,
    /// Points without order that have two coordinates; a model that lists it takes no other clouds.
    #[serde(rename = "flat cloud")]
    FlatCloud,
}

impl GridKind {
    /// The kind of a grid.
    pub fn of(grid: Grid) -> GridKind {
        match grid {
            Grid::Line { .. } => GridKind::Line,
            Grid::Plane { .. } => GridKind::Plane,
            Grid::Volume { .. } => GridKind::Volume,
            Grid::Cloud { .. } => GridKind::Cloud,
        }
    }

    /// How many numbers a setting has that gives a size along each axis; a line has those of a plane, its row first.
    pub(super) fn settings_sizes(self) -> usize {
        if self == GridKind::Volume { 3 } else { 2 }
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            GridKind::Line => "line",
            GridKind::Plane => "plane",
            GridKind::Volume => "volume",
            GridKind::Cloud => "cloud",
            GridKind::FlatCloud => "flat cloud",
        }
    }
}

/// The tasks that a model can be built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Support {
    /// Kinds of grids.
    pub grids: &'static [GridKind],
    /// Whether a time can be an input.
    pub time: bool,
}

impl Support {
    /// Regular grids and the clouds that can be projected to a plane, with or without a time.
    pub const PROJECTED: Support =
        Support { grids: &[GridKind::Line, GridKind::Plane, GridKind::Volume, GridKind::FlatCloud], time: true };

    /// Every grid, with or without a time.
    pub const EVERYTHING: Support =
        Support { grids: &[GridKind::Line, GridKind::Plane, GridKind::Volume, GridKind::Cloud], time: true };

    /// Whether some settings of the model can be built for the task.
    pub fn allows(self, task: &Task) -> bool {
        self.takes(task) && (self.time || !task.time.is_input())
    }

    fn takes(self, task: &Task) -> bool {
        let kind = GridKind::of(task.grid);
        let flat = kind == GridKind::Cloud && task.space == 2 && self.grids.contains(&GridKind::FlatCloud);
        flat || self.grids.contains(&kind)
    }
}

impl fmt::Display for Support {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grids: Vec<_> = self.grids.iter().map(|grid| format!("{}s", grid.name())).collect();
        let time = if self.time { ", also with time as an input" } else { "" };
        write!(out, "{}{time}", listed(&grids, "and"))
    }
}

impl Row {
    /// All settings with their default values.
    pub fn defaults(&self) -> Settings {
        (self.defaults)()
    }

    /// Settings with which the parameters of a model that was trained on the first grid are used on the second; `None` where
    /// they belong to points, so that the model works on its own grid only.
    pub fn moved(&self, settings: &Settings, grids: [Grid; 2]) -> Option<Settings> {
        (self.moved)(settings, grids)
    }

    /// The tensor with a row for each patch, and the patches along each axis; `None` where the model has none.
    pub fn embedding(&self, settings: &Settings, grid: Grid) -> Option<Embedding> {
        (self.embedding)(settings, grid)
    }

    /// What the shapes of a state dict tell about the model and its task; `None` where it is not one of the model.
    pub fn infer(&self, shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
        (self.infer)(shapes, hints).map(|inferred| Ok(inferred?.with_unknowns(hints)))
    }

    /// Refuses a task that the model does not support, and names the models that do. Settings that lay the points of a cloud on
    /// a box give it axes.
    pub fn check(&self, task: &Task, settings: &Settings) -> Result<(), Refusal> {
        self.check_among(task, settings, |row| row.supports.allows(task))
    }

    /// The same; the refusal names the models that are able.
    fn check_among(&self, task: &Task, settings: &Settings, able: impl Fn(&Row) -> bool) -> Result<(), Refusal> {
        let advice = advice(able);
        let thing = || format!("model {}", self.name);
        let Support { grids, time } = self.supports;
        let found = GridKind::of(task.grid);
        require(self.supports.takes(task) || on_a_box(settings), || {
            let grids: Vec<_> = grids.iter().map(|grid| format!("a {}", grid.name())).collect();
            let coordinates = match grids.contains(&"a flat cloud".to_owned()) && found == GridKind::Cloud {
                true => format!(" of points with {}", counted(task.space, "coordinate")),
                false => String::new(),
            };
            let found = format!("a {} of shape {:?}{coordinates}", found.name(), task.grid.shape());
            Refusal::new(thing(), listed(&grids, "or"), found).advise(advice.as_str())
        })?;
        require(time || !task.time.is_input(), || {
            Refusal::new(thing(), "a task without a time among the inputs", "a time").advise(advice)
        })
    }

    /// Refuses samples of different sizes where the model does not take a mask, or not the points of the task, and names the models
    /// that take both.
    pub fn check_ragged(&self, task: &Task, settings: &Settings) -> Result<(), Refusal> {
        let able = |row: &Row| row.ragged && row.supports.allows(task);
        require(self.ragged, || {
            let thing = format!("model {}", self.name);
            Refusal::new(thing, "samples of equal size", "samples with different numbers of points")
                .advise(advice(able))
        })?;
        self.check_among(task, settings, able)
    }

    /// Declares the model's parameters and returns it.
    pub fn build<'g>(
        &self,
        parameters: &Parameters<'g>,
        task: &Task,
        settings: &Settings,
    ) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
        self.check(task, settings)?;
        (self.build)(&parameters.root(), task, settings)
    }

    /// Number of parameters for a task.
    pub fn parameter_count(&self, task: &Task, settings: &Settings) -> Result<usize, Refusal> {
        bounded(|| {
            let graph = Graph::new();
            self.build(&Parameters::new(&graph), task, settings)?;
            Ok(graph.sections().iter().map(|section| section.shape.count()).sum())
        })
    }
}

/// The advice that names the models which can do it; empty where no model can.
fn advice(able: impl Fn(&Row) -> bool) -> String {
    let able: Vec<_> = MODELS.iter().filter(|row| able(row)).map(|row| row.name).collect();
    if able.is_empty() { String::new() } else { format!("use {}", listed(&able, "or")) }
}

/// Whether a setting `extents` lays the points on a box.
fn on_a_box(settings: &Settings) -> bool {
    let extents = settings.get("extents").and_then(toml::Value::as_array);
    extents.is_some_and(|extents| extents.iter().any(|extent| extent.as_integer() != Some(0)))
}

/// `a`, `a and b`, `a, b and c`
fn listed(words: &[impl AsRef<str>], last: &str) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((word, rest)) if !rest.is_empty() => format!("{} {last} {word}", rest.join(", ")),
        _ => words.concat(),
    }
}
