//! The card of a model, as JSON: what it is, what it maps and what it was trained on. Pages and programs read it.

use super::{Operator, Trained};
use crate::experiment::{Experiment, benchmarks};
use crate::network::models;
use crate::task::{Field, POSITIONS};
use lamo_geometry::Grid;
use serde_json::{Value, json};

/// The card of an operator; `trained` is the training that it comes from, `None` for imported weights.
pub fn card(operator: &Operator, trained: Option<&Trained>) -> Value {
    let task = &operator.task;
    let known = trained.and_then(|trained| benchmarks::find(&trained.experiment.benchmark).ok());
    let problem = trained.map(|trained| trained.experiment.data.problem.as_str()).filter(|problem| !problem.is_empty());
    let shaped = |field: &Field| {
        let Field { name, unit, .. } = field;
        json!({ "name": name, "unit": unit, "channels": field.width(), "shape": field.shape(task.grid) })
    };
    json!({
        "model": operator.model.name,
        "parameters": operator.parameters.len(),
        "benchmark": known.map(|known| known.name),
        "problem": problem,
        "grid": grid(task.grid),
        "inputs": task.given_fields().iter().filter(|field| field.name != POSITIONS).map(shaped).collect::<Vec<_>>(),
        "outputs": task.predicted_fields().iter().map(shaped).collect::<Vec<_>>(),
        "snapshots": task.time.is_series().then(|| task.time.count()),
        "trained_on": trained.map_or_else(|| "It has imported weights; its data are not known.".to_owned(), trained_on),
        "resolutions": resolutions(operator),
    })
}

fn grid(grid: Grid) -> Value {
    match grid {
        Grid::Line { points } => json!({ "kind": "line", "points": points }),
        Grid::Plane { rows, columns } => json!({ "kind": "plane", "rows": rows, "columns": columns }),
        Grid::Volume { rows, columns, layers } => {
            json!({ "kind": "volume", "rows": rows, "columns": columns, "layers": layers })
        }
        Grid::Cloud { points } => json!({ "kind": "cloud", "points": points }),
    }
}

/// What the model was trained on, in a sentence.
fn trained_on(trained: &Trained) -> String {
    let Trained { experiment, epoch, .. } = trained;
    let Experiment { benchmark, data, .. } = experiment;
    let seen = data.train.saturating_sub(data.validation);
    let samples = if seen > 0 { format!("{seen} samples") } else { "the training samples".to_owned() };
    let epochs = format!("{epoch} epoch{}", if *epoch == 1 { "" } else { "s" });
    match benchmarks::find(benchmark) {
        Ok(known) => format!("Trained for {epochs} on {samples} of {benchmark}: {}.", known.summary),
        Err(_) => {
            let folder =
                data.folder.as_ref().and_then(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()));
            let of = folder.map_or_else(String::new, |folder| format!(" of the data set {folder}"));
            format!("Trained for {epochs} on {samples}{of}.")
        }
    }
}

/// What the model does with fields on another grid than that of its training.
fn resolutions(operator: &Operator) -> String {
    let trained = operator.task.grid;
    let other = match trained {
        Grid::Line { points } => Grid::Line { points: 2 * points },
        Grid::Plane { rows, columns } => Grid::Plane { rows: 2 * rows, columns: 2 * columns },
        Grid::Volume { rows, columns, layers } => {
            Grid::Volume { rows: 2 * rows, columns: 2 * columns, layers: 2 * layers }
        }
        Grid::Cloud { points } => Grid::Cloud { points: 2 * points },
    };
    let row = models::find(&operator.model.name);
    let moved = row.ok().and_then(|row| row.moved(&operator.model.settings, [trained, other]));
    let patches = operator.model.settings.get("latent").and_then(|latent| latent.as_str()) == Some("patches");
    match (moved.is_some(), matches!(trained, Grid::Cloud { .. })) {
        (true, true) => "Any number of points.".into(),
        (true, false) if patches => {
            format!("Fields on other grids are interpolated to the {trained} of the training and back.")
        }
        (true, false) => format!("Trained on a {trained}; fields on other grids are taken, with a larger error."),
        (false, _) => format!("Fields on the {trained} of the training only."),
    }
}
