//! Experiments: one file, one published number.
//!
//! An experiment is layers of the same keys, the later one counting: the library's defaults, the benchmark's data, the
//! shipped file of benchmark and model, the preset, the user's file, single changes. Unknown keys are refused in every
//! layer with the nearest known one; what comes out has a value for every key.

pub mod benchmarks;
mod keys;
mod material;

pub use material::{Material, split, test_samples};

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
    /// Test on the last so many.
    pub test: usize,
    /// Fields given; none named, those the data set calls inputs.
    pub inputs: Vec<String>,
    /// Fields asked for; none named, those the data set calls outputs.
    pub outputs: Vec<String>,
    /// Counts the lattice of positions along the wrong axis, as the authors' Plasticity loader does.
    pub scrambled: bool,
    /// What is normalised.
    pub normalise: Vec<Normalised>,
    /// Frames given where a film is continued.
    pub past: usize,
}

impl Data {
    /// How many samples of its problem the experiment needs.
    pub(crate) fn samples(&self) -> usize {
        self.train.saturating_add(self.test)
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
    /// Of products, convolutions and scans on a card.
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

const DEFAULTS: &str = include_str!("defaults.toml");
/// The preset `quick` on one's own data.
const OWN_QUICK: &str = include_str!("../../../../experiments/quick/own.toml");
/// One's own outputs may well be a pressure and a velocity.
const OWN_RECIPE: &str = "train.balanced = true";
/// LaMO where there are no rows and columns, or a time is asked for.
const OWN_SLICES: &str = "model.settings = { latent = \"slices\", mixer = \"hydra\", directions = 2, encoder = \"shared\", \
                          mlp_ratio = 1, head_width = 64, groups = 2, width = 128 }";

macro_rules! shipped {
    ($($name:literal)*) => {
        /// The experiments that come with the library, by name.
        pub const EXPERIMENTS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../../experiments/", $name, ".toml")))),*];
    };
}
shipped! {
    "darcy-lamo" "navier-stokes-lamo" "elasticity-lamo" "plasticity-lamo" "airfoil-lamo" "pipe-lamo"
    "navier-stokes-lamo-paper" "elasticity-lamo-paper" "airfoil-lamo-paper" "pipe-lamo-paper"
    "darcy-transolver" "navier-stokes-transolver" "elasticity-transolver"
    "plasticity-transolver" "airfoil-transolver" "pipe-transolver"
    "darcy-fno" "navier-stokes-fno" "airfoil-fno" "pipe-fno"
}

/// An experiment before it is resolved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// A benchmark, which may be left to the file.
    pub benchmark: Option<&'a str>,
    /// A model; LaMO unless the file says otherwise.
    pub model: Option<&'a str>,
    /// How large; the published recipe unless the file says otherwise.
    pub preset: Option<Preset>,
    /// `(name for complaints, text)` of an experiment file.
    pub file: Option<(&'a str, &'a str)>,
    /// The grid of one's own data, which decides what LaMO's tokens are.
    pub grid: Option<Grid>,
    /// `key=value` texts, the last word on any key.
    pub changes: &'a [String],
}

impl Request<'_> {
    /// All layers, one on top of the other.
    pub fn resolve(&self) -> Result<Experiment, Refusal> {
        let mut layers = Vec::new();
        if let Some((name, text)) = self.file {
            layers.push((format!("experiment {name}"), keys::parse(name, text)?));
        }
        for change in self.changes {
            layers.push((format!("--set {change}"), keys::change(change)?));
        }
        let said = |path: &[&str]| {
            let values = layers.iter().rev().filter_map(|(_, layer)| keys::text(layer, path));
            values.map(str::to_owned).next()
        };
        let given = [
            ("benchmark", &["benchmark"][..], self.benchmark),
            ("model.name", &["model", "name"], self.model),
            ("preset", &["preset"], self.preset.map(Preset::name)),
        ];
        for (change, (key, path, value)) in layers.iter().flat_map(|layer| given.map(|given| (layer, given))) {
            let (source, layer) = change;
            if let (Some(other), Some(value)) = (keys::text(layer, path), value)
                && other != value
            {
                return Err(Refusal::said(format!(
                    "{source}: expected one {key}, found {other} here and {value} beside it; leave one out"
                )));
            }
        }
        let benchmark = self.benchmark.map(str::to_owned).or_else(|| said(&["benchmark"])).unwrap_or(OWN.into());
        let model = self.model.map(str::to_owned).or_else(|| said(&["model", "name"])).unwrap_or("lamo".into());
        let preset = self.preset.map(Preset::name).map(str::to_owned).or_else(|| said(&["preset"]));
        let timed = said(&["train", "loss"]).as_deref() == Some("relative-l2-of-times");
        let slices = timed || self.grid.is_some_and(|grid| !matches!(grid, Grid::Plane { .. }));
        let mut table = base(&benchmark, &model, slices, preset.as_deref() == Some("quick"))?;
        if let (OWN, "fno", Some(Grid::Plane { rows, columns })) = (benchmark.as_str(), model.as_str(), self.grid) {
            let modes = models::fno::fitting_modes([rows, columns]);
            keys::merge(&mut table, keys::change(&format!("model.settings.modes={modes}"))?, false);
        }
        let problem =
            said(&["data", "problem"]).or_else(|| keys::text(&table, &["data", "problem"]).map(str::to_owned));
        keys::merge(&mut table, problem_settings(problem.as_deref().unwrap_or_default())?, true);
        let known = keys::flatten(&table);
        for (source, layer) in layers {
            keys::check(&source, &layer, &known)?;
            keys::merge(&mut table, layer, false);
        }
        for (key, value) in [("benchmark", benchmark), ("preset", preset.unwrap_or("paper".into()))] {
            table.insert(key.into(), Value::String(value));
        }
        keys::merge(&mut table, keys::change(&format!("model.name={model}"))?, false);
        let parsed = table.try_into::<Experiment>();
        let name = self.file.map_or_else(String::new, |(name, _)| format!(" {name}"));
        let experiment =
            parsed.map_err(|error| Refusal::said(format!("experiment{name}: {}", keys::plain(&error.to_string()))))?;
        experiment.check()?;
        Ok(experiment)
    }
}

/// What holds before the user says anything.
fn base(benchmark: &str, model: &str, slices: bool, quick: bool) -> Result<Table, Refusal> {
    let mut table = keys::parse("defaults", DEFAULTS)?;
    let mut settings = Table::new();
    settings.insert("settings".into(), Value::Table(models::find(model)?.defaults()));
    keys::merge(&mut table, Table::from_iter([("model".into(), Value::Table(settings))]), false);
    let quick_layer = if benchmark == OWN {
        keys::merge(&mut table, keys::parse("own", OWN_RECIPE)?, false);
        if model == "lamo" && slices {
            keys::merge(&mut table, keys::parse("own", OWN_SLICES)?, false);
        }
        OWN_QUICK
    } else {
        let row = benchmarks::find(benchmark)?;
        keys::merge(&mut table, keys::parse(row.name, row.data)?, false);
        let name = format!("{benchmark}-{model}");
        let shipped = EXPERIMENTS.iter().find(|(known, _)| *known == name);
        let (_, text) = shipped.ok_or_else(|| no_recipe(benchmark, model))?;
        keys::merge(&mut table, keys::parse(&name, text)?, false);
        row.quick
    };
    if quick {
        let mut layer = keys::parse(benchmark, quick_layer)?;
        if let Some(Value::Table(mut models)) = layer.remove("models")
            && let Some(settings) = models.remove(model)
        {
            let model = Table::from_iter([("settings".into(), settings)]);
            keys::merge(&mut layer, Table::from_iter([("model".into(), Value::Table(model))]), false);
        }
        keys::merge(&mut table, layer, false);
    }
    Ok(table)
}

fn no_recipe(benchmark: &str, model: &str) -> Refusal {
    let prefix = format!("{benchmark}-");
    let able = EXPERIMENTS.iter().filter_map(|(known, _)| known.strip_prefix(&prefix));
    let able: Vec<_> = able.filter(|rest| models::find(rest).is_ok()).collect();
    Refusal::said(format!("{benchmark}: there is no recipe for model {model}; there are {}", able.join(", ")))
}

/// `data.settings` with the problem's defaults; none where no problem is named.
fn problem_settings(problem: &str) -> Result<Table, Refusal> {
    let mut table = Table::new();
    if problem.is_empty() {
        return Ok(table);
    }
    #[cfg(feature = "solvers")]
    {
        let row = lamo_physics::problems::find(problem);
        let row = row.map_err(|error| Refusal::about("data.problem", error.to_string()))?;
        for parameter in row.parameters {
            let (name, value) = (parameter.name, parameter.kind.default_value());
            keys::merge(&mut table, keys::change(&format!("data.settings.{name}={value}"))?, false);
        }
    }
    Ok(table)
}

impl Experiment {
    /// Reads an experiment file; `name` stands in the sentence when it is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Experiment, Refusal> {
        Request { file: Some((name, text)), ..Request::default() }.resolve()
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
        let mut common = keys::parse("defaults", DEFAULTS).unwrap_or_default();
        let settings = models::find(&self.model.name).map(|row| Value::Table(row.defaults()));
        let model = Table::from_iter(settings.map(|settings| ("settings".to_owned(), settings)));
        keys::merge(&mut common, Table::from_iter([("model".into(), Value::Table(model))]), false);
        keys::merge(&mut common, problem_settings(&self.data.problem).unwrap_or_default(), true);
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

/// The benchmark or shipped experiment whose name is nearest to a word, if one is near.
pub fn nearest(word: &str) -> Option<&'static str> {
    let benchmarks = benchmarks::BENCHMARKS.iter().map(|row| row.name);
    keys::nearest(word, benchmarks.chain(EXPERIMENTS.iter().map(|(name, _)| *name)))
}

/// The text of a shipped experiment.
pub fn shipped_text(name: &str) -> Result<&'static str, Refusal> {
    let found = EXPERIMENTS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let known: Vec<_> = EXPERIMENTS.iter().map(|(known, _)| *known).collect();
        Refusal::said(format!("experiment {name:?} does not exist; there are {}", known.join(", ")))
    })
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
