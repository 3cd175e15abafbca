//! Events that a job reports while it runs, and the request to stop it.

use crate::data::dataset::{self, Dataset};
use crate::data::import::Transfer;
use crate::run::{Line, Origin};
use crate::training;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A report of a running job.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A data set is being made; reported after every sample, from the thread that made it.
    Making {
        /// Its problem.
        problem: &'a str,
        /// Progress so far.
        progress: dataset::Progress,
    },
    /// The files of an import fit together.
    Planned {
        /// Samples of the data set to come.
        samples: usize,
    },
    /// Files are being imported.
    Importing(Transfer),
    /// Public files are being written.
    Exporting(Transfer),
    /// The data are ready.
    Data {
        /// The data set.
        dataset: &'a Dataset,
        /// Time to make the data; `None` if they existed before.
        made_in: Option<Duration>,
    },
    /// The programs are compiled.
    Model {
        /// Name of the model.
        name: &'a str,
        /// Number of parameters.
        parameters: usize,
        /// Optimiser steps in all.
        steps: usize,
        /// Samples per batch.
        batch: usize,
        /// How long compiling took.
        compiled_in: Duration,
    },
    /// The first parameters are those of another model.
    Init {
        /// Its file, and what was taken.
        origin: &'a Origin,
        /// Error before the first step, on the samples that are tested after an epoch.
        error: f64,
    },
    /// The run folder is open.
    Run {
        /// The folder.
        folder: &'a Path,
        /// Optimiser steps taken before.
        step: usize,
        /// Optimiser steps in all.
        steps: usize,
        /// Epochs done before.
        history: &'a [Line],
    },
    /// A few times a second while a model trains, and at the end of every epoch.
    Progress(training::Progress<'a>),
    /// An epoch has ended; it also stands in the history of the run.
    Epoch(&'a Line),
    /// A checkpoint was written.
    Checkpoint {
        /// Optimiser steps taken.
        step: usize,
    },
    /// How something was understood, such as the axes of an array.
    Note(&'a str),
    /// Something that the user should know.
    Warning(&'a str),
}

/// Receives events, possibly from several threads at once.
pub type Listener<'a> = &'a (dyn Fn(Event<'_>) + Sync);

/// Asks a job to stop; clones ask the same job.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A request that is not yet made.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Asks the job to save what it has and stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the job was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn flow(&self) -> ControlFlow<()> {
        if self.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The surroundings of a job: a listener, a way to cancel it, and a number of threads.
#[derive(Clone)]
pub struct Session<'a> {
    /// Receives the events.
    pub listener: Listener<'a>,
    /// Asks the job to stop.
    pub cancel: Cancel,
    /// Threads that make data; a run records this number.
    pub threads: usize,
}

impl Default for Session<'_> {
    /// A session that reports nothing and uses all cores.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Session { listener: &|_| {}, cancel: Cancel::new(), threads }
    }
}
