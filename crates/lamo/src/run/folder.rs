//! A run folder: the experiment, where it ran, its epochs and its checkpoints.
//!
//! ```text
//! experiment.toml   every key with its value
//! environment.json  versions, device, threads, and which data
//! history.jsonl     one line per epoch
//! checkpoints/      last.safetensors and best.safetensors
//! lock              held by the process that trains
//! ```

use super::{Checkpoint, Environment};
use crate::error::{Error, Kind, Refusal};
use crate::experiment::{Data, Experiment, Optimiser};
use crate::files::{self, atomic, lock};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The experiment, every key with its value.
pub const EXPERIMENT: &str = "experiment.toml";
/// Versions, device and data.
pub const ENVIRONMENT: &str = "environment.json";
/// One line per epoch.
pub const HISTORY: &str = "history.jsonl";
/// The folder of checkpoints.
pub const CHECKPOINTS: &str = "checkpoints";
/// The checkpoint to resume from.
pub const LAST: &str = "last.safetensors";
/// The checkpoint of the best epoch: the least error on the validation samples, or on the test samples without them.
pub const BEST: &str = "best.safetensors";
pub(super) const LOCK: &str = "lock";
/// A partial file older than this belongs to a process that has ended.
const STALE: Duration = Duration::from_secs(3600);

/// The path of a checkpoint of a run.
pub fn checkpoint_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(CHECKPOINTS).join(name)
}

/// The checkpoint to resume a run from: the last, or the best where a full disk prevented the last.
pub fn latest(folder: &Path) -> Option<PathBuf> {
    [LAST, BEST].map(|name| checkpoint_path(folder, name)).into_iter().find(|file| file.is_file())
}

/// The checkpoint to evaluate and to predict with: the best of a run that has validation samples to choose it by, else
/// [`latest`]. The test samples must not choose the checkpoint that they then measure.
pub fn chosen(folder: &Path) -> Option<PathBuf> {
    let best = checkpoint_path(folder, BEST);
    let validated = || experiment(folder).is_ok_and(|experiment| experiment.data.validation > 0);
    if best.is_file() && validated() { Some(best) } else { latest(folder) }
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
    /// Error on the validation samples, if the run has them and the epoch was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// Error on the test samples, if the epoch was tested on them; a run with validation samples is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<f64>,
    /// Learning rate of the last step.
    pub rate: f64,
    /// Seconds of training so far, evaluations included.
    pub seconds: f64,
}

impl Line {
    /// The error that decides which epoch is the best: on the validation samples, or on the test samples without them.
    pub fn error(&self) -> Option<f64> {
        self.validation.or(self.test)
    }
}

/// A run folder, open for writing by this process alone.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    _lock: File,
}

impl Run {
    /// Starts a run in a folder that does not exist or is empty.
    pub fn create(folder: &Path, experiment: &Experiment, environment: &Environment) -> Result<Run, Error> {
        let checkpoints = folder.join(CHECKPOINTS);
        free(folder)?;
        std::fs::create_dir_all(&checkpoints).map_err(|reason| Error::writing(&checkpoints, reason))?;
        let run = Run { folder: folder.to_owned(), _lock: take(folder)? };
        free(folder)?; // another process may have run here before this one got the lock
        run.record(environment)?;
        run.replace(HISTORY, b"")?;
        run.replace(EXPERIMENT, experiment.text().as_bytes())?;
        Ok(run)
    }

    /// Opens a run to resume it: its experiment and its latest checkpoint, if there is one.
    pub fn open(folder: &Path) -> Result<(Run, Experiment, Option<Checkpoint>), Error> {
        let path = folder.join(EXPERIMENT);
        if !path.is_file() {
            let found = if folder.is_dir() { "a folder without it" } else { "no folder" };
            let refusal = Refusal::new(folder.display().to_string(), format!("a run folder with {EXPERIMENT}"), found);
            return Err(refusal.of(Kind::Missing).into());
        }
        let run = Run { folder: folder.to_owned(), _lock: take(folder)? };
        let checkpoints = folder.join(CHECKPOINTS);
        std::fs::create_dir_all(&checkpoints).map_err(|reason| Error::writing(&checkpoints, reason))?;
        atomic::sweep(&checkpoints, Duration::ZERO); // only the process with the lock writes there
        atomic::sweep(folder, STALE); // an evaluation may be writing here too
        let experiment = experiment(folder)?;
        let begun = latest(folder).map(|file| read_checkpoint(folder, &file)).transpose()?;
        if let Some(begun) = &begun
            && let Some(key) = differs(&begun.trained.experiment, &experiment)
        {
            let file = begun.trained.path.display();
            let reason = format!("{key} differs from {file}; restore the file, or start a new run");
            return Err(refuse(&path, reason));
        }
        if let Some(begun) = begun.as_ref().filter(|begun| !begun.has_moments()) {
            let sentence =
                "has no moments, so the training cannot go on from it; it can be evaluated and predicted with";
            return Err(refuse(&begun.trained.path, sentence));
        }
        let (done, asked) = (begun.as_ref().map_or(0, |begun| begun.trained.epoch), experiment.train.epochs);
        if asked < done {
            let reason = format!("train.epochs: expected at least the {done} that are done, found {asked}");
            return Err(refuse(&path, reason));
        }
        Ok((run, experiment, begun))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Records where the data are from now on.
    pub fn move_data(&self, experiment: &Experiment) -> Result<(), Error> {
        self.replace(EXPERIMENT, experiment.text().as_bytes())
    }

    /// Records where the run takes place from now on.
    pub fn record(&self, environment: &Environment) -> Result<(), Error> {
        let path = self.folder.join(ENVIRONMENT);
        let text = environment.text().map_err(|error| refuse(&path, error.to_string()))?;
        self.replace(ENVIRONMENT, text.as_bytes())
    }

    /// Adds an epoch to the history.
    pub(crate) fn append(&self, line: &Line) -> Result<(), Error> {
        let path = self.folder.join(HISTORY);
        let text = serde_json::to_string(line).map_err(|error| refuse(&path, error.to_string()))?;
        let opened = File::options().append(true).create(true).open(&path);
        let written = opened.and_then(|mut file| file.write_all((text + "\n").as_bytes()));
        written.map_err(|reason| Error::writing(&path, reason))
    }

    /// Removes the epochs after `epoch`, which will be trained again.
    pub(crate) fn rewind(&self, epoch: usize) -> Result<Vec<Line>, Error> {
        let mut lines = history(&self.folder)?;
        lines.retain(|line| line.epoch <= epoch);
        let text = |line: &Line| serde_json::to_string(line).map(|text| text + "\n");
        let text: Result<String, _> = lines.iter().map(text).collect();
        self.replace(HISTORY, text.unwrap_or_default().as_bytes())?;
        Ok(lines)
    }

    /// Writes a checkpoint.
    pub(crate) fn save(&self, name: &str, state: &Checkpoint) -> Result<(), Error> {
        let history = self.folder.join(HISTORY);
        let synced = File::options().append(true).create(true).open(&history).and_then(|file| file.sync_data());
        synced.map_err(|reason| Error::writing(&history, reason))?; // a checkpoint must not reach the disk before the lines of its epochs
        state.write(&checkpoint_path(&self.folder, name)).map_err(|error| match error.kind() {
            Kind::OutOfSpace => {
                let from =
                    if latest(&self.folder).is_some() { "from the checkpoint before" } else { "from the first step" };
                let advice = format!("free some space, then --resume continues {from}");
                Refusal::about(self.folder.display().to_string(), "the disk is full")
                    .advise(advice)
                    .of(Kind::OutOfSpace)
                    .into()
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

/// The epochs of a run, without a last line that a power failure cut short.
pub fn history(folder: &Path) -> Result<Vec<Line>, Error> {
    let path = folder.join(HISTORY);
    let text = match files::read_to_string(&path) {
        Err(reason) if reason.kind() == ErrorKind::NotFound => String::new(), // the checkpoints are enough
        text => text.map_err(|reason| Error::reading(&path, reason))?,
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut history = Vec::with_capacity(lines.len());
    for (number, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(line) => history.push(line),
            Err(_) if number + 1 == lines.len() && !text.ends_with('\n') => {}
            Err(error) => return Err(damaged(&path, format!("line {} is damaged: {error}", number + 1))),
        }
    }
    Ok(history)
}

/// Refuses a folder with files, except those of a process that was killed while it started a run.
pub fn free(folder: &Path) -> Result<(), Error> {
    // A starting process writes these before the experiment, its last file.
    let ours = |name: &str| [LOCK, ENVIRONMENT, HISTORY, CHECKPOINTS].contains(&name) || name.ends_with(".partial");
    let foreign = |entry: std::fs::DirEntry| entry.file_name().to_str().is_none_or(|name| !ours(name));
    let begun = latest(folder).is_some();
    if begun || folder.is_file() || std::fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(foreign)) {
        let reason = "expected a new or empty folder for the run, found files in it; choose another name, or resume the run with --resume";
        return Err(refuse(folder, reason));
    }
    Ok(())
}

/// Refuses a folder for a new run that cannot be made or written to; leaves nothing behind.
pub fn writable(folder: &Path) -> Result<(), Error> {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new(""));
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let probe = atomic::partial(&there.join(EXPERIMENT)).unwrap_or_default();
    let tried = File::create(&probe).and_then(|_| std::fs::remove_file(&probe));
    tried.map_err(|reason| Error::writing(folder, reason))
}

/// The experiment of a run, with the current folder of its data.
pub fn experiment(folder: &Path) -> Result<Experiment, Error> {
    let path = folder.join(EXPERIMENT);
    let text = files::read_to_string(&path).map_err(|reason| Error::reading(&path, reason))?;
    Ok(Experiment::recorded(&path.display().to_string(), &text)?)
}

/// Where a run took place.
pub fn environment(folder: &Path) -> Result<Environment, Error> {
    let path = folder.join(ENVIRONMENT);
    let text = files::read_to_string(&path).map_err(|reason| Error::reading(&path, reason))?;
    Environment::parse(&text).map_err(|reason| damaged(&path, reason))
}

fn is_muon(experiment: &Experiment) -> bool {
    experiment.train.optimiser == Optimiser::Muon
}

/// The first changed key that the steps taken so far depend on.
fn differs(then: &Experiment, now: &Experiment) -> Option<&'static str> {
    let data = Data { folder: now.data.folder.clone(), ..then.data.clone() };
    let same = [
        ("benchmark", then.benchmark == now.benchmark),
        ("seed", then.seed == now.seed),
        ("model", then.model == now.model),
        ("data", data == now.data),
        ("train.batch", then.train.batch == now.train.batch),
        ("train.loss", then.train.loss == now.train.loss),
        // Muon has no second moments of matrices, without which the first steps of Adam would be far too large.
        ("train.optimiser", is_muon(then) == is_muon(now)),
    ];
    same.iter().find(|(_, same)| !same).map(|(key, _)| *key)
}

pub(super) fn take(folder: &Path) -> Result<File, Error> {
    let taken = || refuse(folder, "another process is training in this run folder; wait for it or stop it");
    let path = folder.join(LOCK);
    lock::lock(&path).map_err(|reason| Error::writing(&path, reason))?.ok_or_else(taken)
}

/// Error about a file or folder of a run.
pub(super) fn refuse(path: &Path, reason: impl Into<String>) -> Error {
    Refusal::about(path.display().to_string(), reason).of(Kind::Conflict).into()
}

/// Error about a file of a run that cannot be parsed.
fn damaged(path: &Path, reason: String) -> Error {
    Refusal::about(path.display().to_string(), reason).into()
}

/// Reads a checkpoint of a run. If the last checkpoint is damaged and the best is whole, the error says so.
pub(super) fn read_checkpoint(folder: &Path, file: &Path) -> Result<Checkpoint, Error> {
    Checkpoint::read(file).map_err(|error| {
        let best = checkpoint_path(folder, BEST);
        let advice = match Checkpoint::read(&best) {
            Ok(whole) if best != file => format!(
                "{} of epoch {} is whole: use it in its place, or remove the damaged file to resume from it",
                best.display(),
                whole.trained.epoch
            ),
            _ => return error,
        };
        Refusal::said(error.to_string()).advise(advice).of(error.kind()).into()
    })
}
