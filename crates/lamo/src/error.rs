//! What can go wrong between an experiment and a trained model: each failure is one sentence.

use crate::models::Refusal;
use crate::{data, dataset, weights};
use lamo_tensor::Unavailable;
use std::io;
use std::path::{Path, PathBuf};

/// Why an experiment cannot be run, or a trained model not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The experiment, the model and the data do not go together.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The data set.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// A file of arrays.
    #[error(transparent)]
    Data(#[from] data::Error),
    /// A checkpoint.
    #[error(transparent)]
    Weights(#[from] weights::Error),
    /// The device.
    #[error(transparent)]
    Device(#[from] Unavailable),
    /// A file of a run folder.
    #[error("{}: cannot be {action}: {reason}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Read or written.
        action: &'static str,
        /// What the system says.
        reason: io::Error,
    },
    /// A run folder that is not one, or not this one.
    #[error("{}: {reason}", path.display())]
    Run {
        /// The folder.
        path: PathBuf,
        /// Expected, found, what to do.
        reason: String,
    },
    /// The loss is no number any more.
    #[error("{}", .0)]
    Diverged(Divergence),
}

/// `1 sample`, `2 samples`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// What is no finite number any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The loss, which may also be a number beyond all bounds.
    Loss,
    /// A parameter.
    Parameter,
    /// The error on the test samples.
    Test,
}

/// Where a training broke.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// What broke.
    pub broken: Broken,
    /// Optimiser step, counted from 1.
    pub step: usize,
    /// Its epoch, counted from 1.
    pub epoch: usize,
    /// The loss of that step.
    pub loss: f64,
    /// The first kernel whose result is not finite, if it was found.
    pub culprit: Option<String>,
    /// Step of the last good checkpoint.
    pub good: usize,
    /// Learning rate in force.
    pub rate: f64,
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Divergence { broken, step, epoch, loss, culprit, good, rate } = self;
        let what = match broken {
            Broken::Loss if loss.is_finite() && *step == 1 => format!("the loss begins with {loss:.3e}"),
            Broken::Loss if loss.is_finite() => format!("the loss grew to {loss:.3e}"),
            Broken::Loss => "the loss is no finite number".into(),
            Broken::Parameter => "a parameter is no finite number".into(),
            Broken::Test => "the error on the test samples is no finite number".into(),
        };
        write!(out, "{what} at step {step} in epoch {epoch}")?;
        if let Some(culprit) = culprit {
            write!(out, ", first in {culprit}")?;
        }
        if *step == 1 && *broken == Broken::Loss {
            let advice = "fields far from the size of 1 want to be normalised (no --raw), nearly constant ones without their mean";
            return write!(out, "; look at the units of the data: {advice}");
        }
        write!(
            out,
            "; the checkpoint of step {good} is kept, try a smaller train.rate than {rate:.2e} or a smaller train.clip"
        )
    }
}

impl Error {
    pub(crate) fn reading(path: &Path, reason: io::Error) -> Error {
        Error::File { path: path.to_owned(), action: "read", reason }
    }

    pub(crate) fn writing(path: &Path, reason: io::Error) -> Error {
        Error::File { path: path.to_owned(), action: "written", reason }
    }

    pub(crate) fn run(path: &Path, reason: impl Into<String>) -> Error {
        Error::Run { path: path.to_owned(), reason: reason.into() }
    }
}
