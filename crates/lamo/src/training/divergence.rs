//! Divergence of a training: the value that is not finite, the first step where it happened, and the step to resume from.

use crate::error::{Failure, Kind};

/// The value that is no longer finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The loss is not finite or far too large.
    Loss,
    /// A parameter.
    Parameter,
    /// The error on the validation samples.
    Validation,
    /// The error on the test samples.
    Test,
}

/// Where and how a training diverged.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// The value that is not finite.
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
    /// Learning rate of that step.
    pub rate: f64,
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Divergence { broken, step, epoch, loss, culprit, good, rate } = self;
        let what = match broken {
            Broken::Loss if loss.is_finite() && *step == 1 => format!("the loss begins with {loss:.3e}"),
            Broken::Loss if loss.is_finite() => format!("the loss grew to {loss:.3e}"),
            Broken::Loss => "the loss is not finite".into(),
            Broken::Parameter => "a parameter is not finite".into(),
            Broken::Validation => "the error on the validation samples is not finite".into(),
            Broken::Test => "the error on the test samples is not finite".into(),
        };
        write!(out, "{what} at step {step} in epoch {epoch}")?;
        if let Some(culprit) = culprit {
            write!(out, ", first in {culprit}")?;
        }
        if *step == 1 && *broken == Broken::Loss {
            let advice = "fields whose size is far from 1 need to be normalised (no --raw), nearly constant ones need their mean removed";
            return write!(out, "; check the units of the data: {advice}");
        }
        write!(
            out,
            "; the checkpoint of step {good} is saved; try a smaller train.rate than {rate:.2e} or a smaller train.clip"
        )
    }
}

impl std::error::Error for Divergence {}

impl Failure for Divergence {
    fn kind(&self) -> Kind {
        Kind::Diverged
    }
}
