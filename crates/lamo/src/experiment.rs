//! Experiments: one file, one published number. Unknown keys are refused.

use crate::benchmarks::{self, Benchmark};
use crate::models::{self, Choice, Refusal};
use serde::{Deserialize, Serialize};

/// How the learning rate runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// OneCycle over all steps.
    Onecycle,
    /// Half a cosine, one value per epoch.
    CosineByEpoch,
    /// The same rate throughout.
    Constant,
}

/// What is minimised; each is a sum over the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Relative L2 of the whole field.
    RelativeL2,
    /// The same plus a tenth of the relative L2 of both central differences (Darcy).
    RelativeL2WithGradient,
    /// The sum over teacher-forced frames (Navier–Stokes).
    RelativeL2OfFrames,
    /// One optimiser step per time (Plasticity).
    RelativeL2OfTimes,
}

/// The recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Passes over the training samples.
    pub epochs: usize,
    /// Samples per batch.
    pub batch: usize,
    /// Largest learning rate.
    pub rate: f64,
    /// How it runs.
    pub schedule: Pacing,
    /// λ of AdamW.
    pub weight_decay: f64,
    /// Largest norm of the gradient; 0 does not clip.
    pub clip: f64,
    /// What is minimised.
    pub loss: Loss,
}

/// A benchmark, a model and a recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// A name from [`benchmarks::BENCHMARKS`].
    pub benchmark: String,
    /// Which model, with its settings.
    pub model: Choice,
    /// The recipe.
    pub train: Training,
}

macro_rules! shipped {
    ($($name:literal)*) => {
        /// The experiments that come with the library, by name.
        pub const EXPERIMENTS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*];
    };
}
shipped! {
    "darcy-lamo" "navier-stokes-lamo" "elasticity-lamo" "plasticity-lamo" "airfoil-lamo" "pipe-lamo"
    "navier-stokes-lamo-paper" "elasticity-lamo-paper" "airfoil-lamo-paper" "pipe-lamo-paper"
    "darcy-transolver" "navier-stokes-transolver" "elasticity-transolver"
    "plasticity-transolver" "airfoil-transolver" "pipe-transolver"
}

impl Experiment {
    /// Reads an experiment file; `name` stands in the sentence when it is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Experiment, Refusal> {
        toml::from_str(text).map_err(|error| Refusal(format!("experiment {name}: {}", error.message())))
    }

    /// A shipped experiment.
    pub fn shipped(name: &str) -> Result<Experiment, Refusal> {
        let found = EXPERIMENTS.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| {
            let known: Vec<_> = EXPERIMENTS.iter().map(|(known, _)| *known).collect();
            Refusal(format!("experiment {name:?} does not exist; there are {}", known.join(", ")))
        })?;
        Experiment::parse(name, text)
    }

    /// The benchmark it runs on.
    pub fn benchmark(&self) -> Result<&'static Benchmark, Refusal> {
        benchmarks::find(&self.benchmark)
    }

    /// Parameters of its model.
    pub fn parameter_count(&self) -> Result<usize, Refusal> {
        let task = self.benchmark()?.task(self.train.batch);
        models::find(&self.model.name)?.parameter_count(&task, &self.model.settings)
    }
}
