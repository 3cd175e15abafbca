//! Translation of the authors' classes. The `config.json` of a fixture names a class and gives its arguments in tables; the
//! row of a model says how they become settings and a task.

use super::Settings;
use crate::error::Refusal;
use crate::network::Activation;
use crate::task::Task;
use lamo_geometry::Grid;
use serde_json::Value;

/// The name of a class in fixtures, and the function that translates it.
pub type Translation = (&'static str, fn(&Authored<'_>) -> Result<Translated, Refusal>);

/// An instance of one of the authors' classes.
#[derive(Clone, Copy, Debug)]
pub struct Authored<'a> {
    /// All tables of the fixture's `config.json`.
    pub tables: &'a Value,
    /// Points of the fixture's inputs.
    pub points: usize,
}

/// An instance of an authors' class, as one of our models.
#[derive(Clone, Debug)]
pub struct Translated {
    /// Settings of the model.
    pub settings: Settings,
    /// The task that it is built for.
    pub task: Task,
    /// Whether the authors' code computes a stage in float32 even in double precision.
    pub single_stage: bool,
}

impl<'a> Authored<'a> {
    /// A table of arguments: `model`, `mixer`, `constructor`, …
    pub(super) fn table(&self, name: &str) -> Arguments<'a> {
        Arguments(&self.tables[name])
    }

    /// The grid of the classes that take `H` and `W`.
    pub(super) fn plane(&self) -> Result<Grid, Refusal> {
        self.table("model").plane("H", "W")
    }

    /// The grid of the classes that take points in any order.
    pub(super) fn cloud(&self) -> Grid {
        Grid::Cloud { points: self.points }
    }

    /// The grid of the classes of Neural-Solver-Library, which take a `geotype` and a `shapelist`.
    pub(super) fn library_grid(&self) -> Result<Grid, Refusal> {
        let Arguments(model) = self.table("model");
        let extent = |axis: usize| whole(&model["shapelist"][axis], "shapelist");
        match model["geotype"].as_str() {
            Some("structured_1D") => Ok(Grid::Line { points: extent(0)? }),
            Some("structured_2D") => Ok(Grid::Plane { rows: extent(0)?, columns: extent(1)? }),
            Some("structured_3D") => Ok(Grid::Volume { rows: extent(0)?, columns: extent(1)?, layers: extent(2)? }),
            Some("unstructured") => Ok(self.cloud()),
            _ => Err(Refusal::said(format!("gives geotype as {}, which is no grid of ours", model["geotype"]))),
        }
    }
}

/// Arguments by name.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a>(pub &'a Value);

impl Arguments<'_> {
    /// A whole number, also when it is written as `2.0` or as a list of one.
    pub(crate) fn number(self, key: &str) -> Result<usize, Refusal> {
        whole(&self.0[key], key)
    }

    /// A whole number, or `default` where the class is built without it.
    pub(super) fn number_or(self, key: &str, default: usize) -> Result<usize, Refusal> {
        if self.0[key].is_null() { Ok(default) } else { self.number(key) }
    }

    /// A list of whole numbers.
    pub(super) fn list(self, key: &str) -> Result<Vec<usize>, Refusal> {
        let list = self.0[key].as_array().map_or(&[][..], Vec::as_slice);
        list.iter().map(|value| whole(value, key)).collect()
    }

    /// The activation; GELU where the class is built without it.
    pub(super) fn activation(self) -> Result<Activation, Refusal> {
        let Arguments(arguments) = self;
        let act = arguments["act"].as_str().or(arguments["act"].is_null().then_some("gelu"));
        let named = Activation::NAMED.iter().find(|(name, _)| Some(*name) == act);
        named.map(|(_, activation)| *activation).ok_or_else(|| {
            let names = Activation::NAMED.map(|(name, _)| name).join(", ");
            Refusal::said(format!("gives act as {}, and the activations are {names}", arguments["act"]))
        })
    }

    /// Side of the lattice of unified positions; 0 for plain positions, which the library gives clouds whatever the flag says.
    pub(super) fn unified_positions(self) -> Result<usize, Refusal> {
        let cloud = self.0["geotype"] == "unstructured";
        if !cloud && self.number("unified_pos")? == 1 { self.number("ref") } else { Ok(0) }
    }

    pub(super) fn plane(self, rows: &str, columns: &str) -> Result<Grid, Refusal> {
        Ok(Grid::Plane { rows: self.number(rows)?, columns: self.number(columns)? })
    }

    /// The task; classes differ in the name for the number of outputs.
    pub(super) fn task(self, grid: Grid, outputs: &str) -> Result<Task, Refusal> {
        let task = Task::plain(grid, self.number("space_dim")?, self.number("fun_dim")?, self.number(outputs)?);
        let timed = ["Time_Input", "time_input"].iter().any(|key| self.0[key] == true);
        Ok(if timed { task.by_time(1) } else { task })
    }
}

fn whole(value: &Value, key: &str) -> Result<usize, Refusal> {
    let value = value.as_array().filter(|list| list.len() == 1).map_or(value, |list| &list[0]);
    let whole = value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0 && *number < 1e9);
    whole
        .map(|number| number as usize)
        .ok_or_else(|| Refusal::said(format!("gives {key} as {value}, which is no whole number")))
}
