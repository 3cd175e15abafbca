//! How much of the paper is run: the full grid, smaller ones with shorter trainings, and one for tests of the harness.

use super::Cell;
use crate::error::Refusal;
use crate::experiment::Preset;
use crate::experiment::benchmarks::{self, Benchmark};
use crate::network::models;
use std::str::FromStr;
use toml::Value;

/// The size of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Every cell of the paper at its 500 epochs, with all 18 models: about 200 hours on an H200.
    Full,
    /// The paper's models and data with short trainings and fewer cells: about two hours on an H200.
    Reduced,
    /// Small models on coarse data: about two hours on two cores.
    Quick,
    /// Tiny models for one epoch: seconds. Its numbers mean nothing; every artifact comes out.
    Smoke,
}

impl Effort {
    /// All, the largest first.
    pub const ALL: [Effort; 4] = [Effort::Full, Effort::Reduced, Effort::Quick, Effort::Smoke];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Effort::Full => "full",
            Effort::Reduced => "reduced",
            Effort::Quick => "quick",
            Effort::Smoke => "smoke",
        }
    }
}

impl FromStr for Effort {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Effort, Refusal> {
        let found = Effort::ALL.into_iter().find(|effort| effort.name() == text);
        found.ok_or_else(|| Refusal::new("--grid", "full, reduced, quick or smoke", text))
    }
}

/// What the cells of all artifacts depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The size of the grid.
    pub effort: Effort,
    /// Runs of every cell, with seeds from 0 on.
    pub seeds: usize,
}

/// Whether a training stands in a sweep or in the main table, whose trainings are longer in the smaller grids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Main,
    Sweep,
}

impl Options {
    /// A training of a model on a benchmark in this grid. Its data are those of all cells of the benchmark.
    pub(super) fn cell(&self, benchmark: &'static str, model: &'static str, length: Length) -> Cell {
        let preset = match self.effort {
            Effort::Full | Effort::Reduced => Preset::Paper,
            Effort::Quick | Effort::Smoke => Preset::Quick,
        };
        let mut changes = Vec::new();
        match self.effort {
            Effort::Full => {}
            Effort::Reduced => changes.push(format!("train.epochs={}", reduced(benchmark, length))),
            Effort::Quick if length == Length::Main => {}
            Effort::Quick => changes.push(format!("train.epochs={}", quick(benchmark))),
            Effort::Smoke => changes.extend(smoke(benchmark, model)),
        }
        if (self.effort, benchmark) == (Effort::Reduced, "plasticity") {
            changes.extend(["data.train=300".to_owned(), "data.first_test=300".to_owned()]);
        }
        if (preset, benchmark) == (Preset::Quick, "plasticity") {
            // Time by time, as in the paper; a change of the effort is the later one.
            changes.splice(0..0, BY_TIME.map(str::to_owned));
        }
        if (preset, model) == (Preset::Quick, "lamo") {
            // The tables compare models, so that all of them train with AdamW, as in the paper.
            changes.extend(ADAMW.map(str::to_owned));
        }
        changes.push("train.evaluate=50".to_owned()); // a test after each epoch costs 5 %; the last epoch is always tested
        Cell { benchmark, model, variant: None, preset, changes, seed: 0 }
    }

    /// The cell with as many seeds as asked for.
    pub(super) fn runs(&self, cell: &Cell) -> Vec<Cell> {
        (0..self.seeds.max(1) as u64).map(|seed| cell.seeded(seed)).collect()
    }

    /// Numbers of training samples of a sweep over them.
    pub(super) fn samples(&self, benchmark: &str) -> Vec<usize> {
        let whole = match (self.effort, benchmark) {
            (Effort::Full, "plasticity") => 900,
            (Effort::Full, _) => 1000,
            (Effort::Reduced, "plasticity") => 300,
            (Effort::Reduced, _) => 1000,
            (Effort::Quick, "darcy") => 1024,
            (Effort::Quick, "navier-stokes" | "plasticity") => 400,
            (Effort::Quick, "pipe") => 200,
            (Effort::Quick, "airfoil") => 160,
            (Effort::Quick, _) => 800,
            (Effort::Smoke, _) => SMOKE_TRAIN,
        };
        let percents: &[usize] = match self.effort {
            Effort::Full => &[20, 40, 60, 80, 100],
            Effort::Reduced | Effort::Quick => &[20, 40, 100],
            Effort::Smoke => &[50, 100],
        };
        percents.iter().map(|percent| whole * percent / 100).collect()
    }
}

/// What a preset that predicts all times at once does not have.
const BY_TIME: [&str; 3] = ["data.time=auto", "train.loss=relative-l2-of-times", "train.epochs=20"];

/// What a preset with Muon does not have.
const ADAMW: [&str; 3] = ["train.optimiser=adamw", "train.matrix_rate=1", "train.matrix_convolutions=false"];

/// Epochs of the reduced grid.
fn reduced(benchmark: &str, length: Length) -> usize {
    let [main, sweep] = match benchmark {
        "darcy" => [150, 20],
        "elasticity" => [60, 20],
        "airfoil" => [60, 20],
        "pipe" => [40, 15],
        "navier-stokes" => [15, 5],
        _ => [30, 10],
    };
    if length == Length::Main { main } else { sweep }
}

/// Epochs of the sweeps of the quick grid; its main table has those of the preset.
fn quick(benchmark: &str) -> usize {
    match benchmark {
        "darcy" => 6,
        "elasticity" => 8,
        "navier-stokes" => 10,
        "pipe" => 15,
        "airfoil" => 25,
        _ => 3,
    }
}

/// Training and test samples of the smoke grid.
const SMOKE_TRAIN: usize = 8;
const SMOKE_TEST: usize = 4;

/// The smallest data and the size that claims use for the model.
fn smoke(benchmark: &str, model: &str) -> Vec<String> {
    let data = match benchmark {
        "darcy" => "settings={ resolution = 12, stride = 1, canonical = false }",
        "navier-stokes" => "settings={ resolution = 16, stride = 1, viscosity = 1e-3, frames = 4, interval = 0.1 }",
        "plasticity" => "settings={ resolution = 3, frames = 2 }",
        "airfoil" => "settings={ wake_cells = 8, surface_cells = 24, normal_cells = 8, canonical = false }",
        "pipe" => "settings={ resolution = 8, canonical = false }",
        _ => "settings={}",
    };
    let mut changes = vec![format!("data.{data}"), "train.epochs=1".to_owned(), "train.batch=2".to_owned()];
    changes.extend([format!("data.train={SMOKE_TRAIN}"), format!("data.test={SMOKE_TEST}")]);
    changes.push(format!("data.first_test={SMOKE_TRAIN}"));
    changes.extend((benchmark == "navier-stokes").then(|| "data.past=2".to_owned()));
    let row = models::find(model).ok();
    let task = benchmarks::find(benchmark).map(Benchmark::task);
    if let (Some(row), Ok(task)) = (row, task) {
        let setting = |(key, value): (String, Value)| format!("model.settings.{key}={value}");
        changes.extend((row.tiny)(&task).into_iter().map(setting));
    }
    changes
}
