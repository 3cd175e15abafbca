//! The error of the labels: samples of a data set against the same samples on a finer discretisation.

use super::dataset::{Dataset, Error, Manifest, Progress, Role};
use crate::error::{counted, shown};
use lamo_physics::problems::{self, Refined};
use std::ops::ControlFlow;

/// Inputs of the stored and of the finer sample agree to this, relative to their norm; float32 rounds to 6e-8.
const SAME: f64 = 1e-5;

/// How far the stored values of one field are from finer ones.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelError {
    /// The field.
    pub field: String,
    /// Relative L2 difference of each sample.
    pub samples: Vec<f64>,
}

impl LabelError {
    /// Mean over the samples.
    pub fn mean(&self) -> f64 {
        self.samples.iter().sum::<f64>() / self.samples.len() as f64
    }

    /// Standard error of the mean; `None` for one sample.
    pub fn standard_error(&self) -> Option<f64> {
        let (mean, count) = (self.mean(), self.samples.len() as f64);
        let squares: f64 = self.samples.iter().map(|error| (error - mean).powi(2)).sum();
        (count > 1.0).then(|| (squares / (count - 1.0) / count).sqrt())
    }

    /// The worst sample.
    pub fn greatest(&self) -> f64 {
        self.samples.iter().copied().fold(0.0, f64::max)
    }
}

/// The errors of all fields to predict.
#[derive(Clone, Debug, PartialEq)]
pub struct Convergence {
    /// The finer discretisation in words.
    pub discretisation: String,
    /// The samples that were solved again.
    pub numbers: Vec<usize>,
    /// Each field to predict.
    pub fields: Vec<LabelError>,
}

/// Solves the samples listed on a finer discretisation and compares; `None` if `watch` asks to stop.
pub(crate) fn converge(
    dataset: &Dataset,
    numbers: &[usize],
    watch: &dyn Fn(Progress) -> ControlFlow<()>,
) -> Result<Option<Convergence>, Error> {
    let refined = refined(dataset)?;
    let outputs = |role: Role| role == Role::Output;
    let fields = &dataset.manifest().fields;
    let mut errors: Vec<LabelError> = fields
        .iter()
        .filter(|field| outputs(field.role))
        .map(|field| LabelError { field: field.name.clone(), samples: Vec::new() })
        .collect();
    for (made, &number) in numbers.iter().enumerate() {
        if watch(Progress { complete: made, made, samples: numbers.len() }).is_break() {
            return Ok(None);
        }
        let Manifest { problem, seed, .. } = dataset.manifest();
        let finer = refined.sample(*seed, number as u64).map_err(|reason| Error::Sample {
            problem: problem.clone(),
            seed: *seed,
            sample: number,
            reason,
        })?;
        for field in fields {
            let Some(fine) = finer.field(&field.name) else { continue };
            let difference = relative_l2(&dataset.gather(&field.name, &[number])?, &fine.values);
            if let Some(error) = errors.iter_mut().find(|error| error.field == field.name) {
                error.samples.push(difference);
            } else if difference > SAME {
                let what = format!("{}: `{}` of sample {number}", shown(dataset.folder()), field.name);
                let expected = format!("the values that the solver of {problem} draws");
                let advice = "make the data set again";
                return Err(Error::unfit(what, expected, format!("a difference of {difference:.1e}"), advice));
            }
        }
    }
    let discretisation = refined.discretisation.to_owned();
    Ok(Some(Convergence { discretisation, numbers: numbers.to_vec(), fields: errors }))
}

/// The finer solver of a data set's problem, with its parameters.
fn refined(dataset: &Dataset) -> Result<Refined, Error> {
    let Manifest { problem, generator, parameters, .. } = dataset.manifest();
    let refuse =
        |expected: String, found: String, advice: &str| Error::unfit(shown(dataset.folder()), expected, found, advice);
    if *generator == 0 {
        let found = format!("values from {}", counted(dataset.manifest().sources.len(), "file"));
        return Err(refuse("a data set that a solver made".into(), found, "only lamo data make can solve again"));
    }
    let row = problems::find(problem)?;
    if *generator != row.version {
        let expected = format!("version {} of the solver of {problem}", row.version);
        return Err(refuse(expected, format!("version {generator}"), "make the data set again"));
    }
    let text = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned); // no quotes
    let changes: Vec<String> = parameters.iter().map(|(key, value)| format!("{key}={}", text(value))).collect();
    let refined = row.problem(&changes)?.refined()?;
    refined.ok_or_else(|| refuse("a problem that can be solved finer".into(), problem.clone(), "choose another"))
}

/// ‖stored − finer‖₂ / ‖finer‖₂
fn relative_l2(stored: &[f32], finer: &[f64]) -> f64 {
    let pairs = stored.iter().zip(finer).map(|(&stored, &finer)| (f64::from(stored) - finer, finer));
    let (miss, size) = pairs.fold((0.0, 0.0), |(miss, size), (gap, finer)| (miss + gap * gap, size + finer * finer));
    (miss / size).sqrt()
}
