//! A run folder: what was asked, where it ran, how it went, and the checkpoints.
//!
//! ```text
//! experiment.toml   every key with its value
//! environment.json  versions, device, threads, and which data
//! history.jsonl     one line per epoch
//! checkpoints/      last.safetensors and best.safetensors
//! lock              held by the process at work
//! ```

use crate::atomic;
use crate::checkpoint::Checkpoint;
use crate::dataset::{Dataset, Split};
use crate::error::Error;
use crate::experiment::{Data, Experiment};
use crate::lock;
use crate::weights;
use lamo_tensor::Device;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was asked.
pub const EXPERIMENT: &str = "experiment.toml";
/// Where it ran.
pub const ENVIRONMENT: &str = "environment.json";
/// How it went.
pub const HISTORY: &str = "history.jsonl";
/// The folder of checkpoints.
pub const CHECKPOINTS: &str = "checkpoints";
/// The checkpoint to go on from.
pub const LAST: &str = "last.safetensors";
/// The checkpoint with the least test error.
pub const BEST: &str = "best.safetensors";
const LOCK: &str = "lock";
/// Nobody writes one file for so long.
const STALE: Duration = Duration::from_secs(3600);

/// The path of a checkpoint of a run.
pub fn checkpoint(folder: &Path, name: &str) -> PathBuf {
    folder.join(CHECKPOINTS).join(name)
}

/// The checkpoint that stands for a run: the last one, or the best where a full disk kept that from being written.
pub fn kept(folder: &Path) -> Option<PathBuf> {
    [LAST, BEST].map(|name| checkpoint(folder, name)).into_iter().find(|file| file.is_file())
}

/// One epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Counted from 1.
    pub epoch: usize,
    /// Optimiser steps taken so far.
    pub step: usize,
    /// The loss, mean over the samples (and times) of the epoch while it was trained.
    pub train: f64,
    /// Mean relative L2 over the test samples, where it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<f64>,
    /// Learning rate of the last step.
    pub rate: f64,
    /// Seconds of training so far, evaluations included.
    pub seconds: f64,
}

/// Which data a run sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The folder.
    pub folder: PathBuf,
    /// The problem it holds.
    pub problem: String,
    /// Its samples.
    pub samples: usize,
    /// SHA-256 of the lists of training and test samples.
    pub split: String,
    /// SHA-256 of each array.
    pub fields: BTreeMap<String, String>,
}

/// Where a run takes place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of lamo.
    pub lamo: String,
    /// The device.
    pub device: String,
    /// The name of the card, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// Threads on the CPU.
    pub threads: usize,
    /// Vector instructions of the CPU.
    pub vectors: String,
    /// Operating system and processor family.
    pub system: String,
    /// Which data; none for arrays that were handed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Provenance>,
}

impl Provenance {
    /// Of a data set and the samples used.
    pub fn of(dataset: &Dataset, split: &Split) -> Provenance {
        let manifest = dataset.manifest();
        Provenance {
            folder: std::path::absolute(dataset.folder()).unwrap_or(dataset.folder().to_owned()),
            problem: manifest.problem.clone(),
            samples: manifest.samples,
            split: split.hash(),
            fields: manifest.fields.iter().map(|field| (field.name.clone(), field.sha256.clone())).collect(),
        }
    }
}

impl Environment {
    /// This process.
    pub fn here(device: Device, threads: usize, data: Option<Provenance>) -> Environment {
        Environment {
            lamo: env!("CARGO_PKG_VERSION").to_owned(),
            device: device.to_string(),
            card: device.card(),
            threads,
            vectors: format!("{:?}", lamo_tensor::level()).to_lowercase(),
            system: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
            data,
        }
    }

    /// Whether the samples and the arrays are the same, wherever they lie.
    pub fn sees_the_same(&self, other: &Environment) -> bool {
        let seen = |data: &Option<Provenance>| data.as_ref().map(|data| (data.split.clone(), data.fields.clone()));
        seen(&self.data) == seen(&other.data)
    }
}

/// A run folder, open for writing by this process alone.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    _lock: File,
}

impl Run {
    /// Begins a run in a folder that does not exist or is empty.
    pub fn create(folder: &Path, experiment: &Experiment, environment: &Environment) -> Result<Run, Error> {
        let checkpoints = folder.join(CHECKPOINTS);
        free(folder)?;
        std::fs::create_dir_all(&checkpoints).map_err(|reason| Error::writing(&checkpoints, reason))?;
        let run = Run { folder: folder.to_owned(), _lock: take(folder)? };
        free(folder)?; // a run may have ended here in the meantime
        run.record(environment)?;
        run.replace(HISTORY, b"")?;
        run.replace(EXPERIMENT, experiment.text().as_bytes())?;
        Ok(run)
    }

    /// Opens a run to go on with it; where it ended, if it came so far.
    pub fn open(folder: &Path) -> Result<(Run, Experiment, Option<Checkpoint>), Error> {
        let path = folder.join(EXPERIMENT);
        if !path.is_file() {
            let found = if folder.is_dir() { "a folder without it" } else { "no folder" };
            return Err(Error::run(folder, format!("expected a run folder with {EXPERIMENT}, found {found}")));
        }
        let run = Run { folder: folder.to_owned(), _lock: take(folder)? };
        let checkpoints = folder.join(CHECKPOINTS);
        std::fs::create_dir_all(&checkpoints).map_err(|reason| Error::writing(&checkpoints, reason))?;
        for place in [folder, &checkpoints] {
            atomic::sweep(place, STALE); // an evaluation may be writing here too
        }
        let experiment = experiment(folder)?;
        let begun = kept(folder).map(|file| Checkpoint::read(&file)).transpose()?;
        if let Some(begun) = &begun
            && let Some(key) = differs(&begun.trained.experiment, &experiment)
        {
            let file = begun.trained.path.display();
            let reason =
                format!("{key}: expected that of {file}, found another; put the right file back, or begin a new run");
            return Err(Error::run(&path, reason));
        }
        let (done, asked) = (begun.as_ref().map_or(0, |begun| begun.trained.epoch), experiment.train.epochs);
        if asked < done {
            let reason = format!("train.epochs: expected at least the {done} that are done, found {asked}");
            return Err(Error::run(&path, reason));
        }
        Ok((run, experiment, begun))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Notes where the data are from now on.
    pub fn move_data(&self, experiment: &Experiment) -> Result<(), Error> {
        self.replace(EXPERIMENT, experiment.text().as_bytes())
    }

    /// Notes where the run takes place from now on.
    pub fn record(&self, environment: &Environment) -> Result<(), Error> {
        let path = self.folder.join(ENVIRONMENT);
        let text = serde_json::to_string_pretty(environment).map_err(|error| Error::run(&path, error.to_string()))?;
        self.replace(ENVIRONMENT, (text + "\n").as_bytes())
    }

    /// Adds an epoch to the history.
    pub(crate) fn append(&self, line: &Line) -> Result<(), Error> {
        let path = self.folder.join(HISTORY);
        let text = serde_json::to_string(line).map_err(|error| Error::run(&path, error.to_string()))?;
        let opened = File::options().append(true).create(true).open(&path);
        let written = opened.and_then(|mut file| file.write_all((text + "\n").as_bytes()));
        written.map_err(|reason| Error::writing(&path, reason))
    }

    /// Forgets epochs after `epoch`, which will be trained again.
    pub(crate) fn rewind(&self, epoch: usize) -> Result<Vec<Line>, Error> {
        let mut lines = history(&self.folder)?;
        lines.retain(|line| line.epoch <= epoch);
        let text = |line: &Line| serde_json::to_string(line).map(|text| text + "\n");
        let text: Result<String, _> = lines.iter().map(text).collect();
        self.replace(HISTORY, text.unwrap_or_default().as_bytes())?;
        Ok(lines)
    }

    /// Writes a checkpoint.
    pub(crate) fn keep(&self, name: &str, state: &Checkpoint) -> Result<(), Error> {
        let history = self.folder.join(HISTORY);
        let synced = File::options().append(true).create(true).open(&history).and_then(|file| file.sync_data());
        synced.map_err(|reason| Error::writing(&history, reason))?; // no checkpoint outlives its epochs' lines
        state.write(&checkpoint(&self.folder, name)).map_err(|error| match &error {
            Error::Weights(weights::Error::File { reason, .. })
                if matches!(reason.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) =>
            {
                let from =
                    if kept(&self.folder).is_some() { "from the checkpoint before" } else { "from the first step" };
                Error::run(&self.folder, format!("the disk is full; free some space, then --resume goes on {from}"))
            }
            _ => error,
        })
    }

    /// A file that appears complete or not at all.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.folder.join(name);
        atomic::replace(&path, bytes).map_err(|reason| Error::writing(&path, reason))
    }
}

/// The epochs of a run; a last line that was cut short by a power failure is left out.
pub fn history(folder: &Path) -> Result<Vec<Line>, Error> {
    let path = folder.join(HISTORY);
    let text = match std::fs::read_to_string(&path) {
        Err(reason) if reason.kind() == ErrorKind::NotFound => String::new(), // taken away: the checkpoints are enough
        text => text.map_err(|reason| Error::reading(&path, reason))?,
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut history = Vec::with_capacity(lines.len());
    for (number, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(line) => history.push(line),
            Err(_) if number + 1 == lines.len() && !text.ends_with('\n') => {}
            Err(error) => return Err(Error::run(&path, format!("line {} is damaged: {error}", number + 1))),
        }
    }
    Ok(history)
}

/// Refuses a folder for a new run that is in use.
pub fn free(folder: &Path) -> Result<(), Error> {
    // What a process leaves that is killed before the experiment, the last file, is written.
    let ours = |name: &str| [LOCK, ENVIRONMENT, HISTORY, CHECKPOINTS].contains(&name) || name.ends_with(".partial");
    let foreign = |entry: std::fs::DirEntry| entry.file_name().to_str().is_none_or(|name| !ours(name));
    let begun = kept(folder).is_some();
    if begun || folder.is_file() || std::fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(foreign)) {
        let reason = "expected a free name for the run, found other files; choose another, or go on with --resume";
        return Err(Error::run(folder, reason));
    }
    Ok(())
}

/// Refuses a folder for a new run that cannot be made or written to; nothing is left there.
pub fn writable(folder: &Path) -> Result<(), Error> {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new(""));
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let probe = atomic::partial(&there.join(EXPERIMENT)).unwrap_or_default();
    let tried = File::create(&probe).and_then(|_| std::fs::remove_file(&probe));
    tried.map_err(|reason| Error::writing(folder, reason))
}

/// What was asked for, with the place where the data are now.
pub fn experiment(folder: &Path) -> Result<Experiment, Error> {
    let path = folder.join(EXPERIMENT);
    let text = std::fs::read_to_string(&path).map_err(|reason| Error::reading(&path, reason))?;
    Ok(Experiment::parse(&path.display().to_string(), &text)?)
}

/// Where a run took place.
pub fn environment(folder: &Path) -> Result<Environment, Error> {
    let path = folder.join(ENVIRONMENT);
    let text = std::fs::read_to_string(&path).map_err(|reason| Error::reading(&path, reason))?;
    serde_json::from_str(&text).map_err(|error| Error::run(&path, format!("is damaged: {error}")))
}

/// A key that must stay what it was, or the steps taken so far mean something else.
fn differs(then: &Experiment, now: &Experiment) -> Option<&'static str> {
    let data = Data { folder: now.data.folder.clone(), ..then.data.clone() };
    let same = [
        ("benchmark", then.benchmark == now.benchmark),
        ("seed", then.seed == now.seed),
        ("model", then.model == now.model),
        ("data", data == now.data),
        ("train.batch", then.train.batch == now.train.batch),
        ("train.loss", then.train.loss == now.train.loss),
    ];
    same.iter().find(|(_, same)| !same).map(|(key, _)| *key)
}

fn take(folder: &Path) -> Result<File, Error> {
    let taken = || Error::run(folder, "another process is training in this run folder; wait for it or stop it");
    let path = folder.join(LOCK);
    lock::lock(&path).map_err(|reason| Error::writing(&path, reason))?.ok_or_else(taken)
}
