//! Trainings, evaluations, comparisons and explanations: requests of the library from arguments of Python.

use crate::errors::raised;
use crate::job::{self, Ended, by_keyboard};
use crate::model::{NamedArray, named_arrays, parse};
use lamo::data::formats::Named;
use lamo::error::Refusal;
use lamo::inference::PredictionInput;
use lamo::workflow::{self, EvaluateRequest, ExplainRequest, ResumeRequest, TrainRequest, TrainedRun};
use lamo::{Device, Error, Preset};
use lamo_app::pages;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Trains and, at the end, evaluates and writes the report, as `lamo train` does. How the training ended, as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the arguments of `lamo train`
pub(crate) fn train(
    py: Python<'_>,
    what: String,
    model: Option<String>,
    init: Option<PathBuf>,
    preset: Option<&str>,
    data: Option<PathBuf>,
    device: &str,
    changes: Vec<String>,
    out: Option<PathBuf>,
    saving: f64,
    minutes: Option<f64>,
    listener: Option<Py<PyAny>>,
) -> PyResult<String> {
    let (saving, device) = (seconds(py, saving)?, parse(py, device)?);
    let preset = preset.map(|name| preset_named(py, name)).transpose()?;
    let request =
        TrainRequest { model, init, preset, data, device, changes, out, saving, minutes, ..TrainRequest::new(what) };
    let ended = job::run(py, listener, move |session| {
        let run = workflow::train(&request, session)?;
        finish(run, session)
    });
    told(py, ended?)
}

/// Continues a run; how the training ended, as JSON.
#[pyfunction]
pub(crate) fn resume(
    py: Python<'_>,
    run: PathBuf,
    data: Option<PathBuf>,
    device: Option<&str>,
    saving: f64,
    listener: Option<Py<PyAny>>,
) -> PyResult<String> {
    let saving = seconds(py, saving)?;
    let device = device.map(|device| parse(py, device)).transpose()?;
    let request = ResumeRequest { run, data, device, saving, together: 1 };
    let ended = job::run(py, listener, move |session| {
        let run = workflow::resume(&request, session)?;
        finish(run, session)
    });
    told(py, ended?)
}

/// Evaluates a finished run and writes its report.
fn finish(run: TrainedRun, session: &workflow::Session<'_>) -> Result<TrainedRun, Error> {
    if run.finished {
        pages::after_training(&run.folder, run.device, session)?;
    }
    Ok(run)
}

/// How a training ended. One that Ctrl-C stopped is not an error here: its folder can be resumed.
fn told(py: Python<'_>, ended: Ended<TrainedRun>) -> PyResult<String> {
    let stopped = ended.interruption.as_ref().is_some_and(|raised| by_keyboard(py, raised));
    let run = match ended {
        Ended { outcome: Ok(run), .. } if stopped => run,
        ended => ended.or_raise(py)?,
    };
    let TrainedRun { folder, device, finished, step, steps, epoch, seconds, .. } = &run;
    let object = json!({
        "folder": folder, "device": device.to_string(), "finished": finished, "step": step, "steps": steps, "epoch": epoch,
        "seconds": seconds, "ended_early": run.ended_early(), "interrupted": stopped,
    });
    Ok(object.to_string())
}

fn preset_named(py: Python<'_>, name: &str) -> PyResult<Preset> {
    let presets = [Preset::Quick, Preset::Paper, Preset::Best];
    presets.into_iter().find(|preset| preset.name() == name).ok_or_else(|| {
        let refusal = Refusal::new("preset", "quick, paper or best", format!("{name:?}"));
        raised(py, &refusal.into())
    })
}

fn seconds(py: Python<'_>, saving: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(saving)
        .map_err(|_| raised(py, &Refusal::new("save_every", "seconds from 0 on", saving.to_string()).into()))
}

/// The epochs of a run as JSON.
#[pyfunction]
pub(crate) fn history(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    let lines = py.detach(|| lamo::run::history(&folder)).map_err(|error| raised(py, &error))?;
    Ok(json!(lines).to_string())
}

/// Predictions and truth of the test samples, as arrays of the output fields.
struct Compared {
    receipt: String,
    predictions: Vec<Named>,
    truth: Vec<Named>,
}

/// Evaluates a run and writes the report into `folder`, if there is one; the receipt as JSON, predictions and truth. Samples of different
/// sizes have no arrays.
#[pyfunction]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    run: PathBuf,
    data: Option<PathBuf>,
    symmetries: bool,
    device: &str,
    folder: Option<PathBuf>,
    listener: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<NamedArray<'py>>, Vec<NamedArray<'py>>)> {
    let device: Device = parse(py, device)?;
    let ended = job::run(py, listener, move |session| {
        let request = EvaluateRequest { run, data, symmetries, device };
        let mut evaluated = workflow::evaluate(&request, session)?;
        if let Some(folder) = &folder {
            pages::report(&evaluated, &request, folder)?;
        }
        let receipt = evaluated.receipt.text();
        if evaluated.test.is_ragged() {
            return Ok(Compared { receipt, predictions: Vec::new(), truth: Vec::new() });
        }
        let truth = std::mem::take(&mut evaluated.test.targets);
        let given = PredictionInput { samples: evaluated.test, single: false, files: Vec::new() };
        let task = &evaluated.trained.operator.task;
        let predictions = given.output_fields(task, &evaluated.prediction)?;
        Ok(Compared { receipt, predictions, truth: given.output_fields(task, &truth)? })
    });
    let Compared { receipt, predictions, truth } = ended?.or_raise(py)?;
    Ok((receipt, named_arrays(py, predictions)?, named_arrays(py, truth)?))
}

/// Compares evaluated runs: the numbers as JSON, and the picture where the runs have the same test samples.
#[pyfunction]
pub(crate) fn compare<'py>(py: Python<'py>, runs: Vec<PathBuf>) -> PyResult<(String, Option<Bound<'py, PyBytes>>)> {
    let compared = py.detach(|| -> Result<_, Error> {
        let comparison = workflow::compare(&runs)?;
        let picture = comparison.same_test.then(|| pages::comparison(&comparison)).transpose()?;
        Ok((json!(comparison).to_string(), picture))
    });
    let (numbers, picture) = compared.map_err(|error| raised(py, &error))?;
    Ok((numbers, picture.map(|bytes| PyBytes::new(py, &bytes))))
}

/// Explains a test sample into `folder`: the page, and the numbers as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the arguments of `lamo explain`
pub(crate) fn explain(
    py: Python<'_>,
    model: PathBuf,
    data: Option<PathBuf>,
    sample: usize,
    point: Option<usize>,
    channel: usize,
    device: &str,
    folder: PathBuf,
    listener: Option<Py<PyAny>>,
) -> PyResult<(PathBuf, String)> {
    let device = parse(py, device)?;
    let ended = job::run(py, listener, move |session| {
        let request = ExplainRequest { model, data, sample, point, channel, device };
        pages::explanation(&workflow::explain(&request, session)?, sample, &folder)
    });
    ended?.or_raise(py)
}

/// Whether a folder is a run, which can be resumed.
#[pyfunction]
pub(crate) fn is_run(folder: PathBuf) -> bool {
    folder.join(lamo::run::EXPERIMENT).is_file()
}
