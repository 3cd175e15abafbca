//! A cell: one training of the paper, as a full request. Its key is the SHA-256 of its experiment, which a receipt records.

use crate::error::Error;
use crate::experiment::{Experiment, Preset};
use crate::workflow::TrainRequest;
use lamo_tensor::Device;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// One training.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The benchmark.
    pub benchmark: &'static str,
    /// The model, as the registry names it.
    pub model: &'static str,
    /// The shipped variant of the recipe, as `paper` in `airfoil-lamo-paper`.
    pub variant: Option<&'static str>,
    /// Size of the recipe.
    pub preset: Preset,
    /// `key=value` texts on top of the recipe; the last one wins.
    pub changes: Vec<String>,
    /// Seed of the first parameters and of the order of samples.
    pub seed: u64,
}

/// A cell with its experiment.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The cell.
    pub cell: Cell,
    /// Every key with its value.
    pub experiment: Experiment,
    /// SHA-256 of the experiment, as in `hashes.experiment` of a receipt.
    pub key: String,
    /// The keys of the same training with other tests in between, which change nothing that is trained.
    pub aliases: Vec<String>,
    /// The keys of the same with the split that a data set states, which is the same if it has as many samples.
    pub by_split: Vec<String>,
}

/// Epochs between two tests of runs that count as the same training.
const TESTED_EVERY: [usize; 9] = [1, 2, 5, 10, 20, 25, 50, 100, 500];

impl Cell {
    /// The same with another change.
    pub fn with(&self, change: impl Into<String>) -> Cell {
        let mut cell = self.clone();
        cell.changes.push(change.into());
        cell
    }

    /// The same with several changes of the model's settings, as `depth=4`.
    pub fn set(&self, settings: &[&str]) -> Cell {
        settings.iter().fold(self.clone(), |cell, setting| cell.with(format!("model.settings.{setting}")))
    }

    /// The same with another seed; its data stay the same.
    pub fn seeded(&self, seed: u64) -> Cell {
        Cell { seed, ..self.clone() }
    }

    /// The training on a device, in a run folder.
    pub fn request(&self, device: Device, out: Option<PathBuf>) -> TrainRequest {
        let Cell { benchmark, model, .. } = self;
        let mut changes = self.changes.clone();
        changes.extend((self.seed > 0).then(|| format!("seed={}", self.seed)));
        let base = match self.variant {
            Some(variant) => TrainRequest::new(format!("{benchmark}-{model}-{variant}")),
            None => TrainRequest {
                model: Some((*model).to_owned()),
                preset: Some(self.preset),
                ..TrainRequest::new(*benchmark)
            },
        };
        TrainRequest { device, changes, out, ..base }
    }

    /// The experiment and its key.
    pub fn resolve(&self) -> Result<Resolved, Error> {
        let experiment = self.request(Device::Cpu, None).experiment()?;
        let tested = |mut other: Experiment| {
            let every = TESTED_EVERY.into_iter().chain([other.train.epochs]);
            let keys = every.map(|evaluate| {
                other.train.evaluate = evaluate;
                hash(&other)
            });
            keys.collect()
        };
        let (key, aliases) = (hash(&experiment), tested(experiment.clone()));
        let mut by_split = experiment.clone();
        (by_split.data.train, by_split.data.test) = (0, 0);
        Ok(Resolved { cell: self.clone(), key, aliases, by_split: tested(by_split), experiment })
    }

    /// The command that trains the cell alone.
    pub fn command(&self) -> String {
        let Cell { benchmark, model, .. } = self;
        let mut words = match self.variant {
            Some(variant) => format!("lamo train {benchmark}-{model}-{variant}"),
            None => format!("lamo train {benchmark} --model {model} --preset {}", self.preset.name()),
        };
        for change in &self.changes {
            let quote = if change.contains([' ', '[', '"', '{']) { "'" } else { "" };
            words += &format!(" --set {quote}{change}{quote}");
        }
        if self.seed > 0 {
            words += &format!(" --seed {}", self.seed);
        }
        words
    }
}

/// SHA-256 of what differs from the defaults, in hexadecimal.
fn hash(experiment: &Experiment) -> String {
    Sha256::digest(experiment.essence().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Resolved {
    /// The name of the run folder and of the receipt: benchmark, model, and the first letters of the key.
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.cell.benchmark, self.cell.model, &self.key[..12])
    }

    /// The run folder inside the folder of runs.
    pub fn folder(&self, runs: &Path) -> PathBuf {
        runs.join(self.name())
    }
}
