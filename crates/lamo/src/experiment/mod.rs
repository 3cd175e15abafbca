//! Experiments: a benchmark, a model, data and a recipe.
//!
//! An experiment is made of layers with the same keys, and a later layer wins: `defaults.toml`, the benchmark's file in
//! `experiments/`, the model's recipe (in its file under `network/models/`), the preset, the user's file, single changes.
//! An unknown key is refused, and the error names the nearest known key. The result has a value for every key.

pub mod benchmarks;
mod best;
mod keys;
mod length;
mod loss;
mod reference;
mod request;
mod selection;
mod shipped;
mod symmetries;

pub(crate) use keys::{change, merge};
pub(crate) use length::{default_batch, default_epochs, default_evaluate};
pub use loss::{Loss, TimeRole};
pub use reference::reference;
pub use request::Request;
pub use selection::{ExperimentData, split, test_samples, train_samples};
pub(crate) use selection::{default_validation, fields};
pub use shipped::{EXPERIMENTS, Shipped, nearest, shipped_text};
pub(crate) use symmetries::Channels;
pub use symmetries::{Symmetries, Symmetry};

use crate::error::{Refusal, require};
use crate::network::models::{self, Choice};
use crate::task::{Task, TimeMode};
use benchmarks::Benchmark;
use lamo_tensor::Precision;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;
use toml::{Table, Value};

/// Schedule of the learning rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// OneCycle over all steps.
    Onecycle,
    /// Half a cosine, one value per epoch.
    CosineByEpoch,
    /// Halved after every 100 epochs.
    StepByEpoch,
    /// A constant rate.
    Constant,
}

/// How the gradient becomes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimiser {
    /// The weight decay shrinks the parameters beside the step.
    Adamw,
    /// The weight decay is part of the gradient, and so of its moments.
    Adam,
    /// Matrices take orthogonal steps, all other parameters those of AdamW.
    Muon,
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
    /// Schedule of the learning rate.
    pub schedule: Pacing,
    /// How the gradient becomes a step.
    pub optimiser: Optimiser,
    /// With Muon, the rate of matrices relative to `rate`.
    pub matrix_rate: f64,
    /// With Muon, weights of dense convolutions are matrices, too.
    pub matrix_convolutions: bool,
    /// Decay of the running average of the parameters, which is then the model; 0 keeps none.
    pub average: f64,
    /// λ, the weight decay.
    pub weight_decay: f64,
    /// Largest norm of the gradient; 0 does not clip.
    pub clip: f64,
    /// Loss to minimise.
    pub loss: Loss,
    /// Shows a roll-out the true snapshots in training; otherwise it continues its own predictions.
    pub teacher_forcing: bool,
    /// Snapshots that a roll-out continues by itself in training before it is shown the true ones again.
    pub rollout: usize,
    /// Deviation of the noise on the snapshots that a roll-out is given in training, in normalised units.
    pub noise: f64,
    /// Points of each sample that a step draws, on clouds; 0 takes all.
    pub points: usize,
    /// Number of epochs between two errors on the validation samples, or on the test samples where there are none; the
    /// last epoch is always tested.
    pub evaluate: usize,
    /// Ends the training when the validation error has not improved for this many epochs; 0 never does.
    pub patience: usize,
    /// Shows each sample under a random symmetry of the problem. Your own data take mirrorings and rotations of a plane
    /// or its like, one for each batch, and must look the same from all sides: scalar values without a preferred direction.
    pub symmetries: bool,
    /// Divides the error of each output by its own deviation, so that outputs with small units are learned too. The
    /// benchmarks' recipes weight all outputs equally.
    pub balanced: bool,
}

/// Values that are shifted and scaled to mean 0 and deviation 1.
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

/// The source of the samples, their split and their fields.
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
    /// Number of training samples, the first of the data set; 0 uses the split of the data set.
    pub train: usize,
    /// Number of test samples, from `first_test` on, or the last of the data set.
    pub test: usize,
    /// Number of the first test sample; 0 takes the last samples of the data set. A change of `train` sets it, so that
    /// runs with fewer or more training samples share their test samples.
    pub first_test: usize,
    /// Number of training samples that are not trained on but decide the best epoch and the end of the training; 0
    /// tests on the test samples after each epoch.
    pub validation: usize,
    /// Windows beside the validation windows of a time series that are dropped, because they share snapshots with them; 0
    /// draws the validation samples one by one.
    pub gap: usize,
    /// Input fields; an empty list takes the inputs of the data set.
    pub inputs: Vec<String>,
    /// Output fields; an empty list takes the outputs of the data set.
    pub outputs: Vec<String>,
    /// Counts the lattice of positions along the wrong axis, as the authors' Plasticity loader does.
    pub scrambled: bool,
    /// Values to normalise.
    pub normalise: Vec<Normalised>,
    /// The role of time.
    pub time: TimeRole,
    /// Past snapshots that a roll-out is given.
    pub past: usize,
    /// A roll-out's model predicts the change from the last snapshot instead of the next snapshot.
    pub change: bool,
    /// The model learns the difference to the best linear function of positions and inputs at each point.
    pub trend: bool,
}

impl Data {
    /// Number of samples of its problem that the experiment needs.
    #[cfg(feature = "solvers")]
    pub(crate) fn samples(&self) -> usize {
        self.train.max(self.first_test).saturating_add(self.test)
    }
}

/// Size of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Trains in minutes on two cores.
    Quick,
    /// The published recipe.
    Paper,
    /// Our own recipe, chosen by validation error.
    Best,
}

/// A benchmark, a model, data and a recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// A name from [`benchmarks::BENCHMARKS`], or [`OWN`].
    pub benchmark: String,
    /// Size of the experiment.
    pub preset: Preset,
    /// Seed of the first parameters and of the order of samples.
    pub seed: u64,
    /// Precision of products, convolutions and scans of a training on a GPU.
    #[serde(with = "precision")]
    pub precision: Precision,
    /// The model with its settings.
    pub model: Choice,
    /// The samples.
    pub data: Data,
    /// The recipe.
    pub train: Training,
}

/// Epochs, samples and snapshots at most. With this bound, the number of steps and of rows fits into 64 bits.
const MOST: usize = 1_000_000_000;

/// Name of the benchmark for a user's own data.
pub const OWN: &str = "own";

impl Experiment {
    /// Reads an experiment file; an error names the file `name`.
    pub fn parse(name: &str, text: &str) -> Result<Experiment, Refusal> {
        Request { file: Some((name, text)), ..Request::default() }.resolve()
    }

    /// Reads the record of a run, which has every key. Keys of later versions take their defaults.
    pub fn recorded(name: &str, text: &str) -> Result<Experiment, Refusal> {
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
        self.data.time.mode(self.train.loss, self.data.past)
    }

    /// The functions of the outputs whose relative errors the headline averages: those of each output field, as a
    /// pressure and a velocity have different sizes; all together on a published benchmark, as in its papers.
    pub fn output_groups(&self, task: &Task) -> Vec<Range<usize>> {
        let ranges = task.output_ranges();
        let whole = 0..task.output_channels();
        let published = self.benchmark().is_ok_and(|row| row.published);
        if !published && ranges.len() > 1 { ranges } else { vec![whole] }
    }

    /// Every key with its value, as an experiment file.
    pub fn text(&self) -> String {
        toml::to_string(self).expect("an experiment is a table of plain values")
    }

    /// The keys that differ from the defaults, without the data folder. The text stays equal when a later version adds keys.
    pub fn essence(&self) -> String {
        let mut table = Table::try_from(self).expect("an experiment is a table of plain values");
        if let Some(Value::Table(data)) = table.get_mut("data") {
            data.remove("folder");
        }
        let mut common = models::find(&self.model.name).and_then(request::defaults).unwrap_or_default();
        let problem_settings = request::problem_settings(&self.data.problem);
        merge(&mut common, problem_settings.unwrap_or_default(), true);
        merge(&mut common, self.removed_settings(), true);
        keys::subtract(&mut table, &common);
        toml::to_string(&table).expect("what is left of an experiment is a table of plain values")
    }

    /// Settings of earlier versions, with the defaults that they had last.
    fn removed_settings(&self) -> Table {
        request::removed_settings(&self.data.problem, &self.model.name).unwrap_or_default()
    }

    /// `key=value` of every key that differs from the preset of the benchmark and model, without seed and data folder: with
    /// these behind `--set` the preset is this experiment. `None` on your own data, which have no preset of their own.
    pub fn changes(&self) -> Option<Vec<String>> {
        let Experiment { benchmark, model, preset, .. } = self;
        let request = Request {
            benchmark: Some(benchmark),
            model: Some(&model.name),
            preset: Some(*preset),
            ..Request::default()
        };
        let usual = (benchmark != OWN).then(|| request.resolve().ok()).flatten()?;
        let plain = |experiment: &Experiment| {
            let mut table = Table::try_from(experiment).expect("an experiment is a table of plain values");
            table.remove("seed");
            if let Some(Value::Table(data)) = table.get_mut("data") {
                data.remove("folder");
            }
            table
        };
        let (mut table, mut usual) = (plain(self), plain(&usual));
        merge(&mut usual, self.removed_settings(), true);
        keys::subtract(&mut table, &usual);
        Some(
            keys::flatten(&table)
                .iter()
                .filter_map(|key| Some(format!("{key}={}", keys::bare(&table, key)?)))
                .collect(),
        )
    }

    /// Refuses numbers that no training can have.
    fn check(&self) -> Result<(), Refusal> {
        let Training { epochs, batch, rate, weight_decay, clip, evaluate, patience, rollout, .. } = self.train;
        for (key, value) in [("epochs", epochs), ("batch", batch), ("evaluate", evaluate), ("rollout", rollout)] {
            require((1..=MOST).contains(&value), || {
                Refusal::new(format!("train.{key}"), format!("a number from 1 to {MOST}"), value.to_string())
            })?;
        }
        let Training { matrix_rate, average, noise, .. } = self.train;
        for (key, value) in [("rate", rate), ("matrix_rate", matrix_rate)] {
            let allowed = value.is_finite() && value > 0.0;
            require(allowed, || format!("train.{key}: expected a number above 0, found {value}"))?;
        }
        require((0.0..1.0).contains(&average), || {
            Refusal::new("train.average", "a number from 0 to less than 1", average.to_string())
        })?;
        for (key, value) in [("weight_decay", weight_decay), ("clip", clip), ("noise", noise)] {
            let allowed = value.is_finite() && value >= 0.0;
            require(allowed, || format!("train.{key}: expected a number not below 0, found {value}"))?;
        }
        require(i64::try_from(self.seed).is_ok(), || {
            format!("seed: expected at most {}, found {}", i64::MAX, self.seed)
        })?;
        let Data { train, test, first_test, validation, gap, past, .. } = self.data;
        let counts = [
            ("data.train", train),
            ("data.test", test),
            ("data.first_test", first_test),
            ("data.validation", validation),
            ("data.gap", gap),
            ("data.past", past),
            ("train.patience", patience),
            ("train.points", self.train.points),
        ];
        for (key, value) in counts {
            require(value <= MOST, || Refusal::new(key, format!("at most {MOST}"), value.to_string()))?;
        }
        require(train == 0 || validation < train, || {
            let expected = format!("fewer than the {train} of data.train, from which they are taken");
            Refusal::new("data.validation", expected, validation.to_string())
        })?;
        // Your own data get validation samples when their number is known.
        require(patience == 0 || validation > 0 || self.benchmark == OWN, || patience_needs_validation(patience))?;
        self.data.time.check(self.train.loss)?;
        require(past == 1 || self.time_mode().is_roll_out(), || {
            format!(
                "data.past: expected 1 unless train.loss = relative-l2-of-frames or data.time = roll-out, found {past}"
            )
        })?;
        let roll_out = self.time_mode().is_roll_out();
        require(roll_out || (rollout == 1 && noise == 0.0), || {
            let found = format!("{rollout} and {noise}");
            Refusal::new("train.rollout and train.noise", "1 and 0 unless data.time = roll-out", found)
        })?;
        require(self.train.teacher_forcing || rollout == 1, || {
            Refusal::new(
                "train.rollout",
                "1 where train.teacher_forcing = false, which rolls out all",
                rollout.to_string(),
            )
        })?;
        require(!self.data.change || self.time_mode().is_roll_out(), || {
            Refusal::new("data.change", "false unless data.time = roll-out", "true")
        })?;
        require(!self.data.trend || !self.time_mode().is_roll_out(), || {
            Refusal::new("data.trend", "false where data.time = roll-out", "true").advise("use data.change = true")
        })?;
        require((train == 0) == (test == 0), || {
            format!("data.train and data.test: expected both or neither to be 0, found {train} and {test}")
        })
    }
}

/// Without validation samples, the test samples would decide when the training ends.
pub(crate) fn patience_needs_validation(patience: usize) -> Refusal {
    Refusal::new("train.patience", "0 without validation samples", patience.to_string())
        .advise("set data.validation to the number of training samples that decide when to stop")
}

impl Preset {
    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Quick => "quick",
            Preset::Paper => "paper",
            Preset::Best => "best",
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
