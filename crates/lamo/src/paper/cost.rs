//! What a cell costs before it is run: seconds per epoch of the base models on an H200, or of the quick models on two cores,
//! scaled by what the cell changes. Finished cells on the same kind of device correct the estimates.

use super::cell::Resolved;
use super::effort::{Effort, Length, Options};
use crate::error::Error;
use crate::experiment::{Experiment, Preset};
use lamo_tensor::Device;

/// Seconds per epoch, and seconds to compile and evaluate.
const START: f64 = 3.0;

/// Seconds per epoch of LaMO and of Transolver: the paper's sizes on an H200 (measured for LaMO), the quick sizes on two cores.
fn epoch_seconds(benchmark: &str, model: &str, preset: Preset) -> f64 {
    let [lamo, other] = match (preset, benchmark) {
        (Preset::Paper | Preset::Best, "darcy") => [0.70, 1.24],
        (Preset::Paper | Preset::Best, "navier-stokes") => [11.0, 22.5],
        (Preset::Paper | Preset::Best, "elasticity") => [1.50, 1.50],
        (Preset::Paper | Preset::Best, "plasticity") => [11.53, 11.53],
        (Preset::Paper | Preset::Best, "airfoil") => [1.875, 1.875],
        (Preset::Paper | Preset::Best, _) => [2.56, 2.56],
        (Preset::Quick, "darcy") => [4.5, 19.0],
        (Preset::Quick, "navier-stokes") => [2.0, 8.5],
        (Preset::Quick, "elasticity") => [6.5, 6.5],
        (Preset::Quick, "plasticity") => [16.5, 16.5],
        (Preset::Quick, "airfoil") => [1.15, 1.05],
        (Preset::Quick, _) => [1.15, 1.15],
    };
    match model {
        "lamo" => lamo,
        "fno" => 0.25 * other, // 0.26 s per epoch on Darcy flow, measured
        _ => other,
    }
}

/// How much slower the paper's sizes are on two cores than on an H200, and the quick sizes faster on the GPU; both roughly.
const CORES_OVER_GPU: f64 = 100.0;
const QUICK_ON_GPU: f64 = 0.1;

/// Estimated seconds of a cell.
pub(super) fn seconds(resolved: &Resolved, device: Device) -> Result<f64, Error> {
    let Resolved { cell, experiment, .. } = resolved;
    let effort = if cell.preset == Preset::Paper { Effort::Full } else { Effort::Quick };
    let base = Options { effort, seeds: 1 }.cell(cell.benchmark, cell.model, Length::Main).resolve()?.experiment;
    let device = match (cell.preset, device) {
        (Preset::Paper | Preset::Best, Device::Cpu) => CORES_OVER_GPU,
        (Preset::Quick, Device::Cpu) | (Preset::Paper | Preset::Best, _) => 1.0,
        (Preset::Quick, _) => QUICK_ON_GPU,
    };
    let samples = experiment.data.train as f64 / base.data.train.max(1) as f64;
    let epoch = epoch_seconds(cell.benchmark, cell.model, cell.preset) * samples * relative(experiment, &base);
    Ok(device * epoch * experiment.train.epochs as f64 + START)
}

/// The work of a step relative to that of the base experiment.
fn relative(experiment: &Experiment, base: &Experiment) -> f64 {
    let setting = |of: &Experiment, key: &str| of.model.settings.get(key).and_then(toml::Value::as_integer);
    let ratio = |key: &str| match (setting(experiment, key), setting(base, key)) {
        (Some(now), Some(then)) if then > 0 => now as f64 / then as f64,
        _ => 1.0,
    };
    let points = points(experiment) / points(base);
    let patches = ratio("patch").powi(-2).max(0.3);
    let tokens = 0.85 + 0.15 * ratio("tokens"); // the membership of points in tokens is a part of the work
    ratio("depth") * ratio("width").powf(0.9) * points * patches * tokens
}

/// Points of Darcy's plane, whose resolution is varied; 1 elsewhere.
fn points(experiment: &Experiment) -> f64 {
    let whole = |key: &str| experiment.data.settings.get(key).and_then(toml::Value::as_integer);
    match (experiment.data.problem.as_str(), whole("resolution"), whole("stride")) {
        ("darcy", Some(resolution), Some(stride)) => (resolution as f64 / stride.max(1) as f64).powi(2),
        _ => 1.0,
    }
}
