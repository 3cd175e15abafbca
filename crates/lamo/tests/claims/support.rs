//! What the claims about training share.

use lamo::data::import::ArrayName;
use lamo::experiment::{Experiment, Request};
use lamo::network::models;
use lamo::run::{self, Checkpoint, Run};
use lamo::training::{Progress, Trainer};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use toml::Value;

#[path = "../../src/files/scratch.rs"]
mod scratch;
pub(crate) use scratch::Folder;

/// An npy file of doubles in a folder.
pub(crate) fn save(folder: &Folder, name: &str, shape: &[usize], values: impl Iterator<Item = f64>) -> ArrayName {
    let axes: Vec<_> = shape.iter().map(ToString::to_string).collect();
    let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}\n", axes.join(", "));
    let mut bytes = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    bytes.extend(values.flat_map(f64::to_le_bytes));
    std::fs::write(folder.at(name), bytes).unwrap();
    ArrayName { path: folder.at(name), variable: None }
}

/// An experiment on own data with some keys changed; with AdamW, as the authors' scripts have, unless they change it.
pub(crate) fn experiment(changes: &[&str]) -> Experiment {
    let changes: Vec<String> = ["train.optimiser=adamw"].iter().chain(changes).map(ToString::to_string).collect();
    Request { changes: &changes, ..Request::default() }.resolve().unwrap()
}

/// The sizes of the model's row for tests, where they are smaller; switches stay as the recipe has them.
pub(crate) fn shrunk(experiment: &Experiment) -> Vec<String> {
    let row = models::find(&experiment.model.name).unwrap();
    let tiny = (row.tiny)(&experiment.benchmark().unwrap().task());
    let sizes = tiny.into_iter().filter_map(|(key, tiny)| {
        let size = match (&experiment.model.settings[&key], tiny) {
            (Value::Integer(published), Value::Integer(tiny)) => Value::Integer(tiny.min(*published)),
            (Value::Array(_), tiny) => tiny,
            _ => return None,
        };
        Some(format!("model.settings.{key}={size}"))
    });
    sizes.collect()
}

/// Trains with a checkpoint after every step until `stop` steps are done; the mean losses of the epochs that ended.
pub(crate) fn train_to(trainer: &mut Trainer, run: Option<&Run>, stop: usize) -> Vec<f64> {
    let mut losses = Vec::new();
    let watch = &mut |progress: Progress<'_>| {
        losses.extend(progress.finished.map(|line| line.train));
        if progress.step >= stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    trainer.run(run, Duration::ZERO, watch).unwrap();
    losses
}

/// Epoch, step and the bits of both errors.
pub(crate) type Bits = (usize, usize, u64, Option<u64>);

/// Everything except the seconds; interruptions must not change it.
pub(crate) fn essence(folder: &Path) -> (Checkpoint, Vec<Bits>) {
    let mut last = Checkpoint::read(&run::checkpoint_path(folder, run::LAST)).unwrap();
    (last.trained.seconds, last.trained.paused) = (0.0, 0.0);
    last.trained.path.clear();
    let lines = run::history(folder).unwrap();
    let bits = lines.iter().map(|line| (line.epoch, line.step, line.train.to_bits(), line.error().map(f64::to_bits)));
    (last, bits.collect())
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Whether this process runs the one test; if not, the test runs in a process of its own, with its own memory and with these
/// variables of the environment.
pub(crate) fn alone(test: &str, variables: &[(&str, &Path)]) -> bool {
    const ALONE: &str = "LAMO_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut process = std::process::Command::new(std::env::current_exe().unwrap());
    process.args([test, "--exact", "--test-threads=1"]).env(ALONE, "1").envs(variables.iter().copied());
    let done = process.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    false
}
