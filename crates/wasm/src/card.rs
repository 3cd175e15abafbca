//! The card of a model: what it is, what it maps and what it was trained on. The keys are those of the cards of `lamo serve`.

use lamo::experiment::benchmarks;
use lamo::task::POSITIONS;
use lamo::{Field, Grid, Trained};
use serde_json::{Value, json};

pub(crate) fn card(trained: &Trained) -> Value {
    let Trained { experiment, operator, epoch, note, .. } = trained;
    let task = &operator.task;
    let field = |field: &Field| json!({ "name": field.name, "unit": field.unit, "channels": field.width(), "shape": field.shape(task.grid) });
    let known = benchmarks::find(&experiment.benchmark).ok();
    let samples = match experiment.data.train {
        0 => "the training samples".to_owned(),
        count => format!("{count} samples"),
    };
    let trained_on = match &known {
        Some(known) => format!("Trained for {epoch} epochs on {samples} of {}: {}.", known.name, known.summary),
        None => format!("Trained for {epoch} epochs on {samples}."),
    };
    json!({
        "name": known.as_ref().map_or(experiment.benchmark.as_str(), |known| known.name),
        "model": operator.model.name,
        "parameters": operator.parameters.len(),
        "benchmark": known.as_ref().map(|known| known.name),
        "problem": Some(&experiment.data.problem).filter(|problem| !problem.is_empty()),
        "grid": grid(task.grid),
        "inputs": task.given_fields().iter().filter(|field| field.name != POSITIONS).map(field).collect::<Vec<_>>(),
        "outputs": task.outputs.iter().map(field).collect::<Vec<_>>(),
        "snapshots": task.time.is_series().then(|| task.time.count()),
        "trained_on": trained_on,
        "solvable": crate::solver::solvable(trained),
        "note": note,
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
