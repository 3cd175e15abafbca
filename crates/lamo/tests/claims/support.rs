//! What the claims about training share.

use lamo::experiment::{Experiment, Request};
use lamo::run::Run;
use lamo::training::trainer::Trainer;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// An empty folder of one test alone, gone when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("lamo-claims-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One's own experiment with some keys changed.
pub(crate) fn experiment(changes: &[&str]) -> Experiment {
    let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
    Request { changes: &changes, ..Request::default() }.resolve().unwrap()
}

/// Trains with a checkpoint after every step until `stop` steps are done; the mean losses of the epochs that ended.
pub(crate) fn train_to(trainer: &mut Trainer, run: Option<&Run>, stop: usize) -> Vec<f64> {
    let mut losses = Vec::new();
    let watch = &mut |progress: lamo::training::trainer::Progress<'_>| {
        losses.extend(progress.finished.map(|line| line.train));
        if progress.step >= stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    trainer.run(run, Duration::ZERO, watch).unwrap();
    losses
}
