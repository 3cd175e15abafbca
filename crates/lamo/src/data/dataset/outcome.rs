//! Progress and outcome of making or importing a data set.

use super::Dataset;
use std::ops::ControlFlow;

/// Progress of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Samples on disk, including those of earlier attempts.
    pub complete: usize,
    /// Samples made by this attempt.
    pub made: usize,
    /// Samples of the whole data set.
    pub samples: usize,
}

/// How an attempt to make a data set ended.
#[derive(Debug)]
pub enum Outcome {
    /// The data set is complete; here it is, open.
    Made(Dataset),
    /// The same data set existed before; the attempt wrote nothing.
    AlreadyThere(Dataset),
    /// The caller asked to stop; the next attempt resumes here.
    Stopped(Progress),
}

/// Called after every sample, on the thread that made it.
pub type Watch<'a> = &'a (dyn Fn(Progress) -> ControlFlow<()> + Sync);

/// Called with a sentence about something that was repaired.
pub type Warn<'a> = &'a (dyn Fn(&str) + Sync);
