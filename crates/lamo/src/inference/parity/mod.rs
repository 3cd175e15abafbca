//! Parity: compares a model built here with the authors' weights to the results of the authors' code.
//!
//! A model fixture is a folder of `config.json`, `params.safetensors` and `io.safetensors`: output, loss and all
//! gradients are compared in float32, and the output once more in float64 by the reference evaluator; so are the states of the
//! model after the pass, and its output in evaluation, where the fixture has them. An operator
//! fixture is a `.json` beside a `.safetensors`: a layer, a part of the recipe, or a few steps of training.
//! `fixtures/README.md` lists them and says how to add one.
#![allow(clippy::result_large_err)] // an error ends the check of its fixture, so its size costs nothing

mod model;
mod operators;
mod states;

use crate::data::state_dict::{self, Doubles};
use crate::error::{self, Failure, Kind, Refusal};
use crate::files;
use crate::network::models;
use lamo_tensor::reference::Bindings;
use lamo_tensor::{Device, DeviceError, Graph, Precision, Program, Section, Tensor};
use model::check_model;
use operators::check_operator;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Allowed error relative to the largest expected element, and the size below which elements are rounding noise.
#[derive(Clone, Copy)]
struct Tolerance {
    relative: f64,
    noise: f64,
}

impl Tolerance {
    const fn of_output(relative: f64) -> Self {
        Tolerance { relative, noise: 0.0 }
    }

    /// `relative` · max|g| + 10⁻⁷: a gradient that is zero in theory is rounding in practice.
    const fn of_gradient(relative: f64) -> Self {
        Tolerance { relative, noise: 1e-7 / relative }
    }
}

/// Error that tensor cores may add to an output, a loss and a gradient: some roundings of their operands. The gradient of a
/// single parameter can be a difference of large sums, so the tolerance applies to the whole gradient.
fn lower_precision(subject: &str, precision: Precision) -> Option<f64> {
    let unit = match precision {
        Precision::F32 => return None,
        Precision::Tf32 => 2_f64.powi(-11),
        Precision::Bf16 => 2_f64.powi(-8),
    };
    match subject {
        "output" | "training output" | "loss" | "evaluation" | "state" => Some(10.0 * unit),
        "gradient" => Some(40.0 * unit),
        _ => None,
    }
}

const OUTPUT: Tolerance = Tolerance::of_output(2e-5);
const LOSS: Tolerance = Tolerance { relative: 1e-5, noise: 0.0 };
const GRADIENT: Tolerance = Tolerance::of_gradient(3e-4);
/// Five optimiser steps move parameters by a few roundings.
const STEP: Tolerance = Tolerance { relative: 2e-7, noise: 0.0 };
const DOUBLE: Tolerance = Tolerance { relative: 1e-12, noise: 0.0 };
/// A handful of roundings in float32, for numbers of about 1.
const ROUNDING: f64 = 4.0 * f32::EPSILON as f64;
/// Tolerance where the authors' code computes one stage in float32 even in double precision.
const DOUBLE_WITH_SINGLE_STAGE: Tolerance = Tolerance { relative: 1e-7, noise: 0.0 };

/// Why a fixture cannot be checked: one sentence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the fixture cannot be read, or the weights do not fit.
    #[error(transparent)]
    Weights(#[from] state_dict::Error),
    /// The model refuses the fixture's configuration.
    #[error("{}: {refusal}", path.display())]
    Model {
        /// Which fixture.
        path: PathBuf,
        /// What the model says.
        refusal: Refusal,
    },
    /// The training steps of the fixture cannot be taken.
    #[error("{}: {error}", path.display())]
    Training {
        /// Which fixture.
        path: PathBuf,
        /// What the training says.
        error: error::Error,
    },
    /// The device cannot run it.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Error::Weights(error) => error.kind(),
            Error::Model { refusal, .. } => refusal.kind,
            Error::Training { error, .. } => error.kind(),
            Error::Device(error) => Failure::kind(error),
        }
    }
}

/// One thing compared.
#[derive(Clone, Debug, Serialize)]
pub struct Measure {
    /// `output`, `loss`, `gradient`, `double`, ...
    pub subject: &'static str,
    /// The tensor that is furthest off.
    pub tensor: String,
    /// max|found − expected| / max|expected|, or without the divisor where the tolerance is absolute; infinite where
    /// something is not finite.
    pub error: f64,
    /// Largest allowed error.
    pub allowed: f64,
}

impl Measure {
    /// The error divided by the allowed error.
    fn share(&self) -> f64 {
        if self.error == 0.0 { 0.0 } else { self.error / self.allowed }
    }
}

/// Result of the check of a fixture.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Name of the folder or file.
    pub fixture: String,
    /// The worst of each subject.
    pub measures: Vec<Measure>,
    /// The reason, if the fixture was skipped.
    pub skipped: Option<String>,
}

impl Outcome {
    /// Whether every error is within its tolerance.
    pub fn passed(&self) -> bool {
        self.measures.iter().all(|measure| measure.error <= measure.allowed)
    }
}

/// The fixtures at `path`: itself, or those in the folder and in the folders below it.
pub fn find(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() || path.join("config.json").exists() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let failed = |reason| state_dict::Error::file(path, reason);
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?.path();
        if entry.is_dir() {
            found.extend(find(&entry).unwrap_or_default()); // a folder without fixtures is no error down here
        } else if entry.extension().is_some_and(|ending| ending == "json") && tensors_beside(&entry).exists() {
            found.push(entry);
        }
    }
    found.sort();
    if found.is_empty() {
        let reason = "holds no fixture: neither a config.json nor a .json beside a .safetensors";
        return Err(state_dict::Error::malformed(path, reason).into());
    }
    Ok(found)
}

fn tensors_beside(json: &Path) -> PathBuf {
    json.with_extension("safetensors")
}

/// A fixture's name: that of its folder, or of its file without the ending.
pub fn name(path: &Path) -> String {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Checks a model fixture (a folder) or an operator fixture (a `.json` file) on the CPU.
pub fn check(path: &Path) -> Result<Outcome, Error> {
    check_on(path, Device::Cpu, Precision::F32)
}

/// [`check`] on a device; products of lower precision have wider tolerances.
pub fn check_on(path: &Path, device: Device, precision: Precision) -> Result<Outcome, Error> {
    let target = (device, if device == Device::Cpu { Precision::F32 } else { precision });
    let fixture = name(path);
    if path.is_dir() {
        let mut comparison = Comparison::read(&path.join("io.safetensors"), target)?;
        check_model(path, &mut comparison)?;
        return Ok(Outcome { fixture, measures: comparison.measures, skipped: None });
    }
    let settings: Value = read_json(path)?;
    let mut comparison = Comparison::read(&tensors_beside(path), target)?;
    let known = check_operator(&Arguments { path, table: &settings }, &mut comparison)?;
    let skipped = (!known).then(|| "not a fixture parity knows".to_owned());
    Ok(Outcome { fixture, measures: comparison.measures, skipped })
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, state_dict::Error> {
    let text = files::read_to_string(path).map_err(|reason| state_dict::Error::file(path, reason))?;
    serde_json::from_str(&text).map_err(|error| state_dict::Error::malformed(path, format!("cannot be read: {error}")))
}

/// The tensors of a fixture, and the errors measured so far.
struct Comparison {
    path: PathBuf,
    tensors: BTreeMap<String, Doubles>,
    measures: Vec<Measure>,
    target: (Device, Precision),
}

impl Comparison {
    fn read(path: &Path, target: (Device, Precision)) -> Result<Comparison, state_dict::Error> {
        Ok(Comparison { path: path.to_owned(), tensors: state_dict::read_doubles(path)?, measures: Vec::new(), target })
    }

    fn compile(&self, graph: &Graph) -> Result<Program, DeviceError> {
        Program::compile_on(graph, self.target.0, self.target.1)
    }

    /// Writes every leaf in float32 and runs the program once.
    fn run(&self, graph: &Graph, bindings: &Bindings<'_>) -> Result<Program, DeviceError> {
        let mut program = self.compile(graph)?;
        bindings.iter().for_each(|(name, values)| program.write(name, &single(values)));
        program.run();
        Ok(program)
    }

    fn tensor(&self, key: &str) -> Result<&Doubles, state_dict::Error> {
        self.tensors.get(key).ok_or_else(|| state_dict::Error::malformed(&self.path, format!("holds no tensor {key}")))
    }

    /// Values of a tensor that has `count` elements.
    fn doubles(&self, key: &str, count: usize) -> Result<&[f64], state_dict::Error> {
        let (dims, values) = self.tensor(key)?;
        let reason = || format!("holds {key} with shape {dims:?} where {count} values belong");
        if values.len() == count { Ok(values) } else { Err(state_dict::Error::malformed(&self.path, reason())) }
    }

    fn input<'g>(&self, graph: &'g Graph, key: &str) -> Result<Tensor<'g>, state_dict::Error> {
        let (dims, _) = self.tensor(key)?;
        let empty = || state_dict::Error::malformed(&self.path, format!("holds {key} without elements"));
        if dims.contains(&0) { Err(empty()) } else { Ok(graph.input(key, dims)) }
    }

    fn bindings<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Result<Bindings<'a>, state_dict::Error> {
        keys.into_iter().map(|key| Ok((key, self.tensor(key)?.1.clone()))).collect()
    }

    /// θ from the tensors `PREFIX.NAME`.
    fn parameters(&self, prefix: &str, sections: &[Section]) -> Result<Vec<f64>, state_dict::Error> {
        let mut theta = vec![0.0; sections.iter().map(|section| section.shape.count()).sum()];
        for section in sections {
            let values = self.doubles(&format!("{prefix}.{}", section.name), section.shape.count())?;
            theta[section.range()].copy_from_slice(values);
        }
        Ok(theta)
    }

    fn compare(
        &mut self,
        subject: &'static str,
        key: &str,
        found: &[f64],
        tolerance: Tolerance,
    ) -> Result<(), state_dict::Error> {
        let expected = self.doubles(key, found.len())?;
        let error = distance(found, expected, tolerance.noise);
        self.record(subject, key, error, tolerance);
        Ok(())
    }

    /// [`Comparison::compare`] with an absolute bound on max|found − expected|.
    fn compare_absolute(
        &mut self,
        subject: &'static str,
        key: &str,
        found: &[f64],
        allowed: f64,
    ) -> Result<(), state_dict::Error> {
        let error = furthest(found, self.doubles(key, found.len())?);
        self.record(subject, key, error, Tolerance { relative: allowed, noise: 0.0 });
        Ok(())
    }

    /// Records the measure if it is the worst of its subject, relative to the allowed error.
    fn record(&mut self, subject: &'static str, tensor: &str, error: f64, tolerance: Tolerance) {
        let allowed = lower_precision(subject, self.target.1).unwrap_or(tolerance.relative);
        let measure = Measure { subject, tensor: tensor.to_owned(), error, allowed };
        match self.measures.iter_mut().find(|known| known.subject == subject) {
            Some(worst) if worst.share() >= measure.share() => {}
            Some(worst) => *worst = measure,
            None => self.measures.push(measure),
        }
    }
}

/// max|found − expected| / (max|expected| + noise)
fn distance(found: &[f64], expected: &[f64], noise: f64) -> f64 {
    let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let worst = furthest(found, expected);
    let relative = if worst == 0.0 { 0.0 } else { worst / (largest + noise) };
    if relative.is_nan() { f64::INFINITY } else { relative }
}

/// max|found − expected|, infinite where something is not a number
fn furthest(found: &[f64], expected: &[f64]) -> f64 {
    let errors = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs());
    errors.fold(0.0, |worst: f64, error| if error.is_nan() { f64::INFINITY } else { worst.max(error) })
}

fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

fn double(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// The arguments of one of the authors' classes, or all that the `.json` of an operator fixture says.
struct Arguments<'a> {
    path: &'a Path,
    table: &'a Value,
}

impl Arguments<'_> {
    /// A whole number, also when it is written as `2.0` or as a list of one.
    fn number(&self, key: &str) -> Result<usize, state_dict::Error> {
        let number = models::Arguments(self.table).number(key);
        number.map_err(|refusal| state_dict::Error::malformed(self.path, refusal.to_string()))
    }

    fn number_or(&self, key: &str, default: usize) -> Result<usize, state_dict::Error> {
        if self.table[key].is_null() { Ok(default) } else { self.number(key) }
    }

    fn numbers<const COUNT: usize>(&self, keys: [&str; COUNT]) -> Result<[usize; COUNT], state_dict::Error> {
        let mut numbers = [0; COUNT];
        for (number, key) in numbers.iter_mut().zip(keys) {
            *number = self.number(key)?;
        }
        Ok(numbers)
    }

    fn reals<const COUNT: usize>(&self, keys: [&str; COUNT]) -> Result<[f64; COUNT], state_dict::Error> {
        let mut reals = [0.0; COUNT];
        for (real, key) in reals.iter_mut().zip(keys) {
            *real = self.table[key].as_f64().ok_or_else(|| self.malformed(format!("gives no number {key}")))?;
        }
        Ok(reals)
    }

    fn malformed(&self, reason: String) -> state_dict::Error {
        state_dict::Error::malformed(self.path, reason)
    }
}

/// Output that holds the gradient of θ; a fixture names every section of it.
const GRADIENT_OF_PARAMETERS: &str = "gradient";

/// Makes (∂output/∂w)ᵀ · cotangent readable under the name of each w.
fn output_pullback<'g>((output, cotangent): (Tensor<'g>, Tensor<'g>), wanted: &[(String, Tensor<'g>)]) {
    let graph = output.graph();
    let tensors: Vec<_> = wanted.iter().map(|(_, tensor)| *tensor).collect();
    for ((name, tensor), gradient) in wanted.iter().zip(graph.pullback(&[(output, cotangent)], &tensors)) {
        graph.output(name, gradient.unwrap_or_else(|| graph.fill(0.0, tensor.shape())));
    }
}

fn compare_gradients(
    program: &Program,
    wanted: &[(String, Tensor<'_>)],
    unused: &[String],
    tolerance: Tolerance,
    io: &mut Comparison,
) -> Result<(), state_dict::Error> {
    let mut found: Vec<(String, Vec<f64>)> = wanted
        .iter()
        .filter(|(key, _)| key != GRADIENT_OF_PARAMETERS)
        .map(|(key, _)| (key.clone(), double(program.read(key))))
        .collect();
    for section in program.sections() {
        let values = double(&program.read(GRADIENT_OF_PARAMETERS)[section.range()]);
        let key = format!("grad.param.{}", section.name);
        if unused.contains(&section.name) {
            io.record("gradient", &key, distance(&values, &vec![0.0; values.len()], tolerance.noise), tolerance);
        } else {
            found.push((key, values));
        }
    }
    if io.target.1 == Precision::F32 {
        return found.iter().try_for_each(|(key, values)| io.compare("gradient", key, values, tolerance));
    }
    let (mut error, mut size) = (0.0, 0.0);
    for (key, values) in &found {
        for (found, expected) in values.iter().zip(io.doubles(key, values.len())?) {
            error += (found - expected).powi(2);
            size += expected.powi(2);
        }
    }
    let relative = (error / size).sqrt();
    io.record("gradient", "all", if relative.is_nan() { f64::INFINITY } else { relative }, tolerance);
    Ok(())
}
