//! Checkpoints of lamo 0.1 (format 1): an older form of the [`Task`], and three states.

use crate::task::{Field, Normalisers, Positions, Task, Time};
use lamo_geometry::Grid;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    domain: Domain,
    course: Course,
    inputs: Vec<Field>,
    outputs: Vec<Field>,
    lattice: bool,
    scrambled: bool,
    /// Times as fractions from 0 to 1; empty where they are equally spaced.
    #[serde(default)]
    times: Vec<f32>,
    #[serde(default)]
    clock: Vec<f64>,
    normalisers: Normalisers,
}

#[derive(Deserialize)]
struct Domain {
    space: usize,
    grid: Grid,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Course {
    Steady,
    Frames { past: usize, frames: usize },
    Times { count: usize },
}

/// Reads a task from the JSON of lamo 0.1.
pub(super) fn task(text: &str) -> Result<Task, serde_json::Error> {
    let Case { domain, course, inputs, outputs, lattice, scrambled, times, clock, normalisers } =
        serde_json::from_str(text)?;
    let positions = match (lattice, scrambled) {
        (false, _) => Positions::Given,
        (true, false) => Positions::Lattice,
        (true, true) => Positions::Scrambled,
    };
    let time = match course {
        Course::Steady => Time::Steady,
        Course::Frames { past, frames } => Time::RollOut { past, snapshots: frames, clock },
        Course::Times { count } if clock.len() == count => Time::ByTime { count, clock },
        Course::Times { count } => Time::ByTime { count, clock: times.iter().map(|&time| time.into()).collect() },
    };
    Ok(Task { grid: domain.grid, space: domain.space, positions, inputs, outputs, time, driven: false, normalisers })
}

/// The states beside θ, with their lengths: AdamW's moments and the sum of the losses.
pub(super) fn states(parameters: usize) -> BTreeMap<String, usize> {
    [("adamw.mean", parameters), ("adamw.square", parameters), ("train.total", 1)]
        .map(|(name, length)| (name.to_owned(), length))
        .into()
}
