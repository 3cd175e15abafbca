//! The card of a model: what it is, what it maps, what it was trained on and how large its error is.

use crate::catalogue::Source;
use lamo::experiment::{Experiment, benchmarks};
use lamo::inference::evaluate::RECEIPT;
use lamo::network::models;
use lamo::run::pretrained;
use lamo::task::{POSITIONS, Time};
use lamo::workflow::Model;
use lamo::{Device, Field, Grid, Operator, Receipt, Trained};
use serde_json::{Value, json};
use std::path::Path;

/// The receipts of the models that come with the library.
const RECEIPTS: &[(&str, &str)] = &[
    ("darcy", include_str!("../../../models/darcy.json")),
    ("elasticity", include_str!("../../../models/elasticity.json")),
];

/// The card of a model with so many test samples at hand.
pub(crate) fn card(source: &Source, model: &Model, device: Device, samples: usize, solvable: bool) -> Value {
    let operator = model.operator();
    let task = &operator.task;
    let trained = match model {
        Model::Trained(trained) => Some(trained.as_ref()),
        Model::Imported(_) => None,
    };
    let known = trained.map(|trained| &trained.experiment).filter(|experiment| experiment.benchmark().is_ok());
    let problem = trained.map(|trained| trained.experiment.data.problem.as_str()).filter(|problem| !problem.is_empty());
    let receipt = receipt(&source.path);
    let shaped = |field: &Field| {
        let Field { name, unit, .. } = field;
        json!({ "name": name, "unit": unit, "channels": field.width(), "shape": field.shape(task.grid) })
    };
    json!({
        "name": source.name,
        "version": source.version,
        "model": operator.model.name,
        "parameters": operator.parameters.len(),
        "benchmark": known.map(|experiment| &experiment.benchmark),
        "problem": problem,
        "device": device.to_string(),
        "grid": grid(task.grid),
        "inputs": task.given_fields().iter().filter(|field| field.name != POSITIONS).map(shaped).collect::<Vec<_>>(),
        "outputs": predicted(operator).iter().map(shaped).collect::<Vec<_>>(),
        "snapshots": task.time.is_series().then(|| task.time.count()),
        "error": receipt.as_ref().map(|(_, error)| *error),
        "receipt": receipt.as_ref().map(|(receipt, _)| receipt),
        "trained_on": trained.map_or_else(|| "It has imported weights; its data are not known.".to_owned(), trained_on),
        "resolutions": resolutions(operator),
        "solvable": solvable,
        "samples": samples,
        "note": model.note(),
    })
}

/// The output fields as a prediction has them, with the snapshots of a series.
pub(crate) fn predicted(operator: &Operator) -> Vec<Field> {
    let time = &operator.task.time;
    let snapshots = |field: &Field| match time {
        Time::Steady => field.snapshots,
        Time::RollOut { .. } | Time::ByTime { .. } => Some(time.count()),
    };
    operator.task.outputs.iter().map(|field| Field { snapshots: snapshots(field), ..field.clone() }).collect()
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

/// The receipt of a run or of a model that comes with the library, and its headline.
fn receipt(path: &Path) -> Option<(Value, f64)> {
    let text = match path.exists() {
        true => std::fs::read_to_string(path.join(RECEIPT)).ok(),
        false => {
            let beside = std::env::var_os(pretrained::FOLDER).map(|folder| Path::new(&folder).join(path));
            let beside = beside.and_then(|model| std::fs::read_to_string(model.with_extension("json")).ok());
            let name = path.to_str()?;
            beside.or_else(|| Some(RECEIPTS.iter().find(|(known, _)| *known == name)?.1.to_owned()))
        }
    };
    let receipt: Value = serde_json::from_str(&text?).ok()?;
    let error = serde_json::from_value::<Receipt>(receipt.clone()).ok()?.evaluation.headline();
    Some((receipt, error))
}

/// What the model was trained on, in a sentence.
fn trained_on(trained: &Trained) -> String {
    let Trained { experiment, epoch, .. } = trained;
    let Experiment { benchmark, data, .. } = experiment;
    let samples = if data.train > 0 { format!("{} samples", data.train) } else { "the training samples".to_owned() };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_that_comes_with_the_library_has_its_receipt() {
        for (name, _) in pretrained::MODELS {
            let (_, error) = receipt(name.as_ref()).unwrap_or_else(|| panic!("card.rs has no receipt of {name}"));
            assert!((0.0..0.1).contains(&error), "{name}: {error}");
        }
    }
}
