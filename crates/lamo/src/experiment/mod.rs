//! Experiments: a benchmark, a model, data and a recipe.
//!
//! An experiment is layers of the same keys, and the later one counts: `defaults.toml`, the benchmark's file in
//! `experiments/`, the model's recipe (in its file under `network/models/`), the preset, the user's file, single changes.
//! Unknown keys are refused with the nearest known one; what comes out has a value for every key.

pub mod benchmarks;
mod keys;
mod request;
mod selection;
mod shipped;

pub use request::Request;
pub use selection::{ExperimentData, split, test_samples};
pub use shipped::{EXPERIMENTS, Shipped, nearest, shipped_text};

use crate::error::{Refusal, require};
use crate::network::models::{self, Choice};
use crate::task::TimeMode;
use benchmarks::Benchmark;
use lamo_geometry::Grid;
use lamo_tensor::Precision;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use toml::{Table, Value};

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

impl Loss {
    /// How time enters.
    fn time_mode(self, past: usize) -> TimeMode {
        match self {
            Loss::RelativeL2 | Loss::RelativeL2WithGradient => TimeMode::Steady,
            Loss::RelativeL2OfFrames => TimeMode::RollOut { past },
            Loss::RelativeL2OfTimes => TimeMode::ByTime,
        }
    }

    /// Refuses a loss that cannot be computed on these points.
    fn check(self, grid: Grid, outputs: usize) -> Result<(), Refusal> {
        let smooth = matches!(grid, Grid::Plane { rows, columns } if rows > 2 && columns > 2) && outputs == 1;
        require(self != Loss::RelativeL2WithGradient || smooth, || {
            let found = format!("{outputs} outputs on a grid of shape {:?}", grid.shape());
            Refusal::new("train.loss = relative-l2-with-gradient", "one output on a plane", found)
                .advise("use relative-l2")
        })
    }
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
    /// The test error is taken after so many epochs, and after the last one.
    pub evaluate: usize,
    /// Whether the problem looks the same mirrored and turned: every batch is then shown from another side. For values on a
    /// plane that have no direction.
    pub symmetries: bool,
    /// Whether each of several outputs counts by its own deviation, or those with small units are not learned. The
    /// benchmarks' recipes count all alike.
    pub balanced: bool,
}

/// What is shifted and scaled to mean 0 and deviation 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalised {
    /// Each coordinate of the points.
    Positions,
    /// Each input function.
    Inputs,
    /// Each output function.
    Outputs,
}

/// Where the samples come from, and what they are used as.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// A data set to use instead of making one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// The problem whose solver makes the samples.
    pub problem: String,
    /// Its parameters.
    pub settings: Table,
    /// Seed of the sequence of samples.
    pub seed: u64,
    /// Train on the first so many samples; 0 keeps the split of the data set.
    pub train: usize,
    /// Test on so many: those from `first_test` on, or the last ones.
    pub test: usize,
    /// Number of the first test sample; 0 takes the last samples of the data set. Set by itself where `train` is changed, so
    /// that runs with fewer or more training samples are tested on the same ones.
    pub first_test: usize,
    /// Fields given; none named, those the data set calls inputs.
    pub inputs: Vec<String>,
    /// Fields asked for; none named, those the data set calls outputs.
    pub outputs: Vec<String>,
    /// Counts the lattice of positions along the wrong axis, as the authors' Plasticity loader does.
    pub scrambled: bool,
    /// What is normalised.
    pub normalise: Vec<Normalised>,
    /// Snapshots given where a time series is continued.
    pub past: usize,
}

impl Data {
    /// How many samples of its problem the experiment needs.
    pub(crate) fn samples(&self) -> usize {
        self.train.max(self.first_test).saturating_add(self.test)
    }
}

/// How large an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Minutes on two cores.
    Quick,
    /// The published recipe.
    Paper,
}

/// A benchmark, a model, data and a recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// A name from [`benchmarks::BENCHMARKS`], or [`OWN`].
    pub benchmark: String,
    /// How large it is.
    pub preset: Preset,
    /// Seed of the first parameters and of the order of samples.
    pub seed: u64,
    /// Precision of products, convolutions and scans on a GPU.
    #[serde(with = "precision")]
    pub precision: Precision,
    /// Which model, with its settings.
    pub model: Choice,
    /// The samples.
    pub data: Data,
    /// The recipe.
    pub train: Training,
}

/// The benchmark of those who bring their own data.
pub const OWN: &str = "own";

impl Experiment {
    /// Reads an experiment file; `name` stands in the sentence when it is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Experiment, Refusal> {
        Request { file: Some((name, text)), ..Request::default() }.resolve()
    }

    /// Reads the record of a run, which has every key; keys that came later take their defaults.
    pub(crate) fn recorded(name: &str, text: &str) -> Result<Experiment, Refusal> {
        Request { file: Some((name, text)), recorded: true, ..Request::default() }.resolve()
    }

    /// A shipped experiment.
    pub fn shipped(name: &str) -> Result<Experiment, Refusal> {
        Experiment::parse(name, shipped_text(name)?)
    }

    /// The benchmark it runs on.
    pub fn benchmark(&self) -> Result<&'static Benchmark, Refusal> {
        benchmarks::find(&self.benchmark)
    }

    /// Parameters of its model on the benchmark's own grid.
    pub fn parameter_count(&self) -> Result<usize, Refusal> {
        let task = self.benchmark()?.task();
        models::find(&self.model.name)?.parameter_count(&task, &self.model.settings)
    }

    /// How time enters.
    pub fn time_mode(&self) -> TimeMode {
        self.train.loss.time_mode(self.data.past)
    }

    /// Every key with its value, as an experiment file.
    pub fn text(&self) -> String {
        toml::to_string(self).expect("an experiment is a table of plain values")
    }

    /// What differs from the defaults, wherever the data lie: the same when a later version knows more keys.
    pub fn essence(&self) -> String {
        let mut table = Table::try_from(self).expect("an experiment is a table of plain values");
        if let Some(Value::Table(data)) = table.get_mut("data") {
            data.remove("folder");
        }
        let mut common = models::find(&self.model.name).and_then(request::defaults).unwrap_or_default();
        let problem_settings = request::problem_settings(&self.data.problem);
        keys::merge(&mut common, problem_settings.unwrap_or_default(), true);
        keys::subtract(&mut table, &common);
        toml::to_string(&table).expect("what is left of an experiment is a table of plain values")
    }

    /// Refuses numbers that no training can have.
    fn check(&self) -> Result<(), Refusal> {
        let Training { epochs, batch, rate, weight_decay, clip, evaluate, .. } = self.train;
        for (key, value) in [("epochs", epochs), ("batch", batch), ("evaluate", evaluate)] {
            require(value > 0, || format!("train.{key}: expected at least 1, found 0"))?;
        }
        require(rate.is_finite() && rate > 0.0, || format!("train.rate: expected a number above 0, found {rate}"))?;
        for (key, value) in [("weight_decay", weight_decay), ("clip", clip)] {
            let allowed = value.is_finite() && value >= 0.0;
            require(allowed, || format!("train.{key}: expected a number not below 0, found {value}"))?;
        }
        require(i64::try_from(self.seed).is_ok(), || {
            format!("seed: expected at most {}, found {}", i64::MAX, self.seed)
        })?;
        let Data { train, test, past, .. } = self.data;
        require(past == 1 || self.train.loss == Loss::RelativeL2OfFrames, || {
            format!("data.past: expected 1 unless train.loss = relative-l2-of-frames, found {past}")
        })?;
        require((train == 0) == (test == 0), || {
            format!("data.train and data.test: expected both or neither to be 0, found {train} and {test}")
        })
    }
}

impl Preset {
    /// As a file and the command line write it.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Quick => "quick",
            Preset::Paper => "paper",
        }
    }
}

/// A precision as text.
mod precision {
    use lamo_tensor::Precision;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(precision: &Precision, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(precision)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Precision, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
