//! Data sets: made by a solver, imported from files of arrays, described, checked.

use crate::errors::raised;
use crate::job;
use lamo::data::dataset::{Normalise, Outcome, Role};
use lamo::data::import::{ArrayName, Own, OwnField, Sizes, Windows};
use lamo::error::{Refusal, counted};
use lamo::workflow::{self, ImportRequest, ImportSource, MakeRequest};
use lamo::{Dataset, Error, Grid, Kind};
use pyo3::prelude::*;
use serde_json::json;
use std::path::PathBuf;

/// The folder of data sets that were made, if there is one.
#[pyfunction]
pub(crate) fn cache_folder() -> Option<PathBuf> {
    lamo::tensor::cache_folder()
}

/// What a data set holds, as JSON.
#[pyfunction]
pub(crate) fn describe_dataset(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    let described = py.detach(|| -> Result<String, Error> {
        let dataset = Dataset::open(&folder)?;
        let split = dataset.split()?;
        Ok(json!({ "manifest": dataset.manifest(), "train": split.train, "test": split.test }).to_string())
    });
    described.map_err(|error| raised(py, &error))
}

/// Verifies the hashes of a data set, refuses values that are not finite; the statistics of each field as JSON.
#[pyfunction]
pub(crate) fn check_dataset(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    let checked = job::run(py, None, move |_| {
        let checked = workflow::check(&folder)?;
        checked.require_finite()?;
        let field = |(field, found): &(lamo::data::dataset::FieldEntry, lamo::data::dataset::Statistics)| {
            json!({
                "name": field.name, "least": found.least, "most": found.most, "mean": found.mean,
                "deviation": found.deviation,
            })
        };
        Ok(json!(checked.fields.iter().map(field).collect::<Vec<_>>()).to_string())
    });
    checked?.or_raise(py)
}

/// Makes a data set with a solver; its folder, which is in the cache unless `out` is given.
#[pyfunction]
pub(crate) fn make(
    py: Python<'_>,
    problem: String,
    changes: Vec<String>,
    seed: u64,
    samples: usize,
    out: Option<PathBuf>,
    listener: Option<Py<PyAny>>,
) -> PyResult<PathBuf> {
    let made = job::run(py, listener, move |session| {
        let out = out.map_or_else(|| workflow::cache_of(&problem, &changes, seed, samples), Ok)?;
        finished(workflow::make(&MakeRequest { problem, changes, seed, samples, out: out.clone() }, session)?)?;
        Ok(out)
    });
    made?.or_raise(py)
}

/// A field of an import: name, role, unit, whether it is normalised, letters of its axes, its files.
type FieldFiles = (String, String, String, bool, Option<String>, Vec<PathBuf>);

/// The grid: its kind, the extents, and the points of each sample where they differ.
type GridSizes = (String, Vec<usize>, Vec<usize>);

/// Imports npy files as a data set.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the arguments of `lamo data import`
pub(crate) fn import_files(
    py: Python<'_>,
    name: String,
    grid: GridSizes,
    fields: Vec<FieldFiles>,
    times: Option<PathBuf>,
    windows: Option<(usize, usize, usize)>,
    sizes: (Option<usize>, Option<usize>, Option<u64>, bool),
    out: PathBuf,
    listener: Option<Py<PyAny>>,
) -> PyResult<()> {
    let imported = job::run(py, listener, move |session| {
        let (kind, extents, ragged) = grid;
        let (train, test, seed, ordered) = sizes;
        let own = Own {
            name,
            grid: parse_grid(&kind, &extents)?,
            ragged,
            stride: 1,
            fields: fields.into_iter().map(field).collect::<Result<_, _>>()?,
            times: times.map(array),
            windows: windows.map(|(window, horizon, step)| Windows { window, horizon, step }),
            split: None,
            sizes: Sizes { train, test, seed, ordered },
        };
        let request = ImportRequest { source: ImportSource::Own(Box::new(own)), out };
        finished(workflow::import(&request, session)?)
    });
    imported?.or_raise(py)
}

/// Refuses a data set that was not finished.
fn finished(outcome: Outcome) -> Result<(), Error> {
    let Outcome::Stopped(progress) = outcome else { return Ok(()) };
    let sentence = format!("stopped with {} of {} saved", progress.complete, counted(progress.samples, "sample"));
    Err(Refusal::said(sentence).advise("call it again to continue").of(Kind::Cancelled).into())
}

fn array(path: PathBuf) -> ArrayName {
    ArrayName { path, variable: None }
}

fn field((name, role, unit, normalised, axes, files): FieldFiles) -> Result<OwnField, Refusal> {
    let role = match role.as_str() {
        "position" => Role::Position,
        "input" => Role::Input,
        "output" => Role::Output,
        _ => return Err(Refusal::new("role", "position, input or output", role)),
    };
    let normalise = if normalised { Normalise::Channels } else { Normalise::None };
    Ok(OwnField {
        name,
        role,
        unit,
        normalise,
        axes,
        arrays: files.into_iter().map(|file| vec![array(file)]).collect(),
    })
}

fn parse_grid(kind: &str, extents: &[usize]) -> Result<Grid, Refusal> {
    match (kind, extents) {
        ("line", &[points]) => Ok(Grid::Line { points }),
        ("plane", &[rows, columns]) => Ok(Grid::Plane { rows, columns }),
        ("volume", &[rows, columns, layers]) => Ok(Grid::Volume { rows, columns, layers }),
        ("cloud", &[points]) => Ok(Grid::Cloud { points }),
        _ => Err(Refusal::new("grid", "a line, plane, volume or cloud", format!("{kind} of {extents:?}"))),
    }
}
