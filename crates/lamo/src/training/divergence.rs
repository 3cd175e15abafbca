//! A training that broke: what is not finite, where it happened first, and from which step it can be resumed.

use crate::error::{Failure, Kind};

/// What is not finite any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The loss; it may also have grown beyond all bounds.
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
            Broken::Loss => "the loss is not finite".into(),
            Broken::Parameter => "a parameter is not finite".into(),
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
