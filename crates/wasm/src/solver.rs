//! The true pressure of a permeability, by the solver that made the labels of a model of Darcy flow.

use crate::INPUTS;
use lamo::data::formats::{self, ArrayFile, Named};
use lamo::error::Refusal;
use lamo::{Error, Grid, Trained};
use lamo_physics::problems::darcy::{Darcy, ROW};

/// Whether a solver of lamo made the labels of the model.
pub(crate) fn solvable(trained: &Trained) -> bool {
    let (data, task) = (&trained.experiment.data, &trained.operator.task);
    let whole = |key: &str, default: i64| match data.settings.get(key) {
        Some(value) => value.as_integer(),
        None => Some(default),
    };
    let (Some(resolution), Some(stride)) = (whole("resolution", 421), whole("stride", 1)) else { return false };
    let (1.., 1.., Grid::Plane { rows, columns }) = (resolution, stride, task.grid) else { return false };
    let side = (resolution as usize).div_ceil(stride as usize);
    data.problem == ROW.name && [rows, columns] == [side; 2] && task.inputs.len() == 1 && task.outputs.len() == 1
}

/// The problem of the model with the settings of its data.
pub(crate) fn problem(trained: &Trained) -> Result<Darcy, Error> {
    if !solvable(trained) {
        let expected = "a model of Darcy flow whose data a solver of lamo made";
        return Err(Refusal::new("the solver", expected, format!("a model of {}", trained.experiment.benchmark)).into());
    }
    let settings = trained.experiment.data.settings.iter();
    let changes: Vec<String> = settings.map(|(key, value)| format!("{key}={value}")).collect();
    Darcy::with(&changes).map_err(|error| Refusal::about("the solver", error.to_string()).into())
}

/// The file of the pressure at the points of the model, for a file with the permeability of all cells.
pub(crate) fn solve(problem: &Darcy, permeability: Vec<u8>) -> Result<Vec<u8>, Error> {
    let side = problem.resolution();
    let file = ArrayFile::in_memory(INPUTS, permeability)?;
    let shape = file.describe(None)?.shape;
    if !matches!(shape[..], [rows, columns] | [1, rows, columns] if [rows, columns] == [side; 2]) {
        return Err(Refusal::new(INPUTS, format!("a permeability of {side} x {side}"), format!("{shape:?}")).into());
    }
    let values: Vec<f64> = file.read(None)?.values.into_f32().into_iter().map(f64::from).collect();
    if let Some(odd) = values.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
        return Err(Refusal::new(INPUTS, "a permeability above 0 everywhere", odd.to_string()).into());
    }
    let failed = |error: lamo_physics::Error| Refusal::about("the permeability", error.to_string());
    let pressure: Vec<f32> = problem.pressure(&values).map_err(failed)?.into_iter().map(|value| value as f32).collect();
    let side = pressure.len().isqrt();
    Ok(formats::encode(
        "pressure.npy".as_ref(),
        &[Named { name: "pressure".into(), shape: vec![side; 2], values: pressure }],
    )?)
}
