//! A trained model: its operator, its experiment, and the progress of the training.

use super::folder;
use super::{CHECKPOINTS, Checkpoint, Operator};
use crate::error::{Error, Kind, Refusal, require};
use crate::experiment::Experiment;
use std::path::{Path, PathBuf};

/// A model from a training.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// The checkpoint file it comes from, empty while it has none.
    pub path: PathBuf,
    /// The experiment that trained it.
    pub experiment: Experiment,
    /// The model, its parameters and its task.
    pub operator: Operator,
    /// Epochs completed.
    pub epoch: usize,
    /// Optimiser steps taken.
    pub step: usize,
    /// Seconds of training.
    pub seconds: f64,
    /// Part of these seconds that tests and checkpoints took.
    pub paused: f64,
    /// Bytes that a step holds on the device of the training, without the samples.
    pub step_bytes: Option<usize>,
    /// Steps at which the recipe was changed: `experiment` holds from the last of them on.
    pub changed: Vec<usize>,
    /// A warning for the user: the checksum of an older file does not cover its metadata.
    pub note: Option<String>,
}

impl Trained {
    /// Opens a checkpoint file, or a run folder: the best checkpoint of a run with validation samples, else its last one, or
    /// the best where the last is missing.
    pub fn open(path: &Path) -> Result<Trained, Error> {
        if !path.exists() {
            let refusal = Refusal::new(path.display().to_string(), "a run folder or a checkpoint file", "nothing");
            return Err(refusal.of(Kind::Missing).into());
        }
        match folder::chosen(path) {
            Some(file) => Ok(folder::read_checkpoint(path, &file)?.trained),
            None if path.is_dir() => {
                let expected = "a run folder with checkpoints/last.safetensors";
                Err(Refusal::new(path.display().to_string(), expected, "none").of(Kind::Missing).into())
            }
            None => Ok(Checkpoint::read(path)?.trained),
        }
    }

    /// Refuses an output that would overwrite the model's own checkpoint or another one of its run.
    pub fn protect(&self, output: &Path) -> Result<(), Error> {
        let place = |path: &Path| std::path::absolute(path).ok()?.canonicalize().ok();
        let folder = |path: &Path| place(std::path::absolute(path).ok()?.parent()?);
        let own = place(output).is_some_and(|output| place(&self.path) == Some(output));
        let checkpoints = folder(&self.path).filter(|folder| folder.ends_with(CHECKPOINTS));
        require(!own && (checkpoints.is_none() || folder(output) != checkpoints), || {
            Refusal::new(
                output.display().to_string(),
                "a file that does not belong to the model",
                "one of its checkpoints",
            )
            .advise("choose another name")
            .of(Kind::Conflict)
        })?;
        Ok(())
    }
}
