//! How far the making or import of a data set has come, and how it ended.

use super::Dataset;
use std::ops::ControlFlow;

/// How far the making has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Samples on disk, those of interrupted attempts included.
    pub complete: usize,
    /// Samples made by this attempt.
    pub made: usize,
    /// Samples wanted.
    pub samples: usize,
}

/// How an attempt to make a data set ended.
#[derive(Debug)]
pub enum Outcome {
    /// Made, and opened.
    Made(Dataset),
    /// The same set was there before; nothing was done.
    AlreadyThere(Dataset),
    /// Asked to stop; the same recipe goes on from here.
    Stopped(Progress),
}

/// Called after every sample, on the thread that made it.
pub type Watch<'a> = &'a (dyn Fn(Progress) -> ControlFlow<()> + Sync);
