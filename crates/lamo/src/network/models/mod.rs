//! Models: maps from functions on a grid to functions on the same grid. The registry has one row per model; a row
//! enrols a model in every claim, command and benchmark.

pub mod fno;
pub mod lamo;
pub mod transolver;

use super::{Model, Parameters, Scope};
use crate::error::{Refusal, require};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Graph;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A model's configuration as data: the keys of its `Config`, others refused.
pub type Settings = toml::Table;

type Build = for<'a, 'g> fn(&Scope<'a, 'g>, &Task, &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal>;

/// One row of the registry.
pub struct Row {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    build: Build,
    defaults: fn() -> Settings,
    local: fn(&Settings) -> bool,
}

/// Every model.
pub const MODELS: &[Row] = &[
    Row {
        name: "lamo",
        summary: "Latent Mamba Operator (ICML 2025): state-space scans over latent tokens",
        build: lamo::build,
        defaults: settings::<lamo::Config>,
        local: lamo::is_local,
    },
    Row {
        name: "transolver",
        summary: "Transolver (ICML 2024): attention over softmax slices",
        build: transolver::build,
        defaults: settings::<transolver::Config>,
        local: |_| false,
    },
    Row {
        name: "fno",
        summary: "Fourier Neural Operator (ICLR 2021): products in truncated Fourier space, on planes",
        build: fno::build,
        defaults: settings::<fno::Config>,
        local: |_| false,
    },
];

/// The default settings of a configuration type, as data.
fn settings<C: Default + Serialize>() -> Settings {
    toml::Table::try_from(C::default()).expect("a configuration is a table of plain values")
}

/// Reads a model's own configuration; unknown keys and wrong types are refused.
pub(crate) fn read<C: DeserializeOwned>(model: &str, settings: &Settings) -> Result<C, Refusal> {
    settings.clone().try_into::<C>().map_err(|error| {
        let defaults = find(model).map(Row::defaults).unwrap_or_default();
        let wrong = |(key, value): &(&String, &toml::Value)| {
            let mut one = defaults.clone();
            one.insert((*key).clone(), (*value).clone());
            one.try_into::<C>().is_err()
        };
        let key = settings.iter().find(wrong).map(|(key, _)| format!(" setting {key}:")).unwrap_or_default();
        Refusal::said(format!("model {model}:{key} {}", error.message()))
    })
}

/// Refuses distances to a lattice of `side` × `side` points where there is no square to lay it on; 0 asks for none.
pub(crate) fn check_unified(model: &str, side: usize, task: &Task) -> Result<(), Refusal> {
    require(side != 1, || {
        format!("model {model}: a lattice of unified positions has at least 2 points a side, found 1")
    })?;
    let flat = match task.grid {
        Grid::Plane { rows, columns } => rows > 1 && columns > 1,
        Grid::Line { .. } | Grid::Cloud { .. } => task.space == 2,
    };
    require(side == 0 || flat, || {
        let (space, shape) = (task.space, task.grid.shape());
        format!(
            "model {model}: unified positions need points of a plane, found {space} coordinates on a grid {shape:?}; set unified_positions = 0"
        )
    })
}

/// The row of a model by name.
pub fn find(name: &str) -> Result<&'static Row, Refusal> {
    MODELS.iter().find(|row| row.name == name).ok_or_else(|| {
        let known: Vec<_> = MODELS.iter().map(|row| row.name).collect();
        Refusal::said(format!("model {name:?} does not exist; there are {}", known.join(", ")))
    })
}

impl Row {
    /// All settings with their default values.
    pub fn defaults(&self) -> Settings {
        (self.defaults)()
    }

    /// Whether parameters belong to places of the grid, which then is no other.
    pub fn is_local(&self, settings: &Settings) -> bool {
        (self.local)(settings)
    }

    /// Declares the model's parameters and returns it.
    pub fn build<'g>(
        &self,
        parameters: &Parameters<'g>,
        task: &Task,
        settings: &Settings,
    ) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
        (self.build)(&parameters.root(), task, settings)
    }

    /// Number of parameters for a task.
    pub fn parameter_count(&self, task: &Task, settings: &Settings) -> Result<usize, Refusal> {
        let graph = Graph::new();
        self.build(&Parameters::new(&graph), task, settings)?;
        Ok(graph.sections().iter().map(|section| section.shape.count()).sum())
    }
}

/// Which model, with its settings: the `[model]` table of an experiment and the `model.toml` of a model folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// A name from [`MODELS`].
    pub name: String,
    /// Its settings; what is missing takes its default.
    #[serde(default)]
    pub settings: Settings,
}
