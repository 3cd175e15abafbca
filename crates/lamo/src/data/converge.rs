//! The error of the labels: samples of a data set against the same samples on a finer discretisation.

use super::dataset::{Dataset, Error, Manifest, Progress, Role};
use crate::error::{counted, shown};
use lamo_physics::problems::{self, Problem, Quantity, Refined};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// Inputs of the stored and of the finer sample agree to this, relative to their norm; float32 rounds to 6e-8.
const SAME: f64 = 1e-5;

/// How far the stored values of one quantity are from finer ones.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelError {
    /// The quantity: a field, or some channels of one.
    pub quantity: String,
    /// Relative L2 difference of each sample.
    pub samples: Vec<f64>,
    /// Mean relative L2 difference of each snapshot; empty where the field is no time series.
    pub snapshots: Vec<f64>,
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

/// The errors of all quantities to predict.
#[derive(Clone, Debug, PartialEq)]
pub struct Convergence {
    /// The finer discretisation in words.
    pub discretisation: String,
    /// The samples that were solved again.
    pub numbers: Vec<usize>,
    /// Each quantity to predict.
    pub quantities: Vec<LabelError>,
}

/// The differences of one sample: for each quantity, over everything and for each snapshot.
type Differences = Vec<(f64, Vec<f64>)>;

/// Solves the samples listed on a finer discretisation, on some threads, and compares; `None` if `watch` asks to stop.
pub(crate) fn converge(
    dataset: &Dataset,
    numbers: &[usize],
    threads: usize,
    watch: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
) -> Result<Option<Convergence>, Error> {
    let problem = problem(dataset)?;
    let refined = problem.refined()?.ok_or_else(|| {
        let found = dataset.manifest().problem.clone();
        unfit(dataset, "a problem that can be solved finer".into(), found, "choose another")
    })?;
    let quantities = problem.quantities();
    let (next, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let stopped = AtomicBool::new(watch(Progress { complete: 0, made: 0, samples: numbers.len() }).is_break());
    let found: Mutex<Vec<Option<Result<Differences, Error>>>> = Mutex::new(numbers.iter().map(|_| None).collect());
    let work = || {
        while !stopped.load(Ordering::Relaxed)
            && let place = next.fetch_add(1, Ordering::Relaxed)
            && let Some(&number) = numbers.get(place)
        {
            let result = compare(dataset, &refined, &quantities, number);
            let made = made.fetch_add(1, Ordering::Relaxed) + 1;
            let progress = Progress { complete: made, made, samples: numbers.len() };
            stopped.fetch_or(result.is_err() || watch(progress).is_break() && made < numbers.len(), Ordering::Relaxed);
            found.lock().unwrap_or_else(PoisonError::into_inner)[place] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        // Where the system gives no more threads, there are fewer.
        let _helpers: Vec<_> = (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, work).ok()).collect();
        work();
    });
    let mut samples = Vec::new();
    for result in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        match result {
            Some(differences) => samples.push(differences?),
            None => return Ok(None),
        }
    }
    let error = |(index, quantity): (usize, &Quantity)| {
        let count = samples.first().map_or(0, |differences| differences[index].1.len());
        let snapshot = |snapshot: usize| {
            samples.iter().map(|differences| differences[index].1[snapshot]).sum::<f64>() / samples.len() as f64
        };
        LabelError {
            quantity: quantity.name.to_owned(),
            samples: samples.iter().map(|differences| differences[index].0).collect(),
            snapshots: (0..count).map(snapshot).collect(),
        }
    };
    let quantities = quantities.iter().enumerate().map(error).collect();
    let discretisation = refined.discretisation.to_owned();
    Ok(Some(Convergence { discretisation, numbers: numbers.to_vec(), quantities }))
}

/// Solves one sample finer and compares each quantity; the inputs must be the same.
fn compare(dataset: &Dataset, refined: &Refined, quantities: &[Quantity], number: usize) -> Result<Differences, Error> {
    let Manifest { problem, seed, fields, grid, .. } = dataset.manifest();
    let nodes = dataset.ragged().map_or_else(|| grid.shape(), |_| vec![dataset.points_of(number)]);
    let finer = refined.sample(*seed, number as u64);
    let finer =
        finer.map_err(|reason| Error::Sample { problem: problem.clone(), seed: *seed, sample: number, reason })?;
    for field in fields.iter().filter(|field| field.role != Role::Output) {
        let Some(fine) = finer.field(&field.name) else { continue };
        let difference = relative_l2(&dataset.gather(&field.name, &[number])?, &fine.values, |_| true);
        if difference > SAME {
            let what = format!("{}: `{}` of sample {number}", shown(dataset.folder()), field.name);
            let expected = format!("the values that the solver of {problem} draws");
            let advice = "make the data set again";
            return Err(Error::unfit(what, expected, format!("a difference of {difference:.1e}"), advice));
        }
    }
    let mut differences = Vec::new();
    for quantity in quantities {
        let Some(fine) = finer.field(quantity.field) else { continue };
        let stored = dataset.gather(quantity.field, &[number])?;
        let channels = fine.shape.last().copied().unwrap_or(1).max(1);
        let belongs = |index: usize| quantity.channels.as_ref().is_none_or(|part| part.contains(&(index % channels)));
        let axes = fine.shape.len();
        let is_series = axes > nodes.len() && fine.shape[1..=nodes.len()] == nodes;
        let each = if is_series { fine.values.len() / fine.shape[0] } else { usize::MAX };
        let snapshots = stored.chunks(each).zip(fine.values.chunks(each)).filter(|_| is_series);
        let snapshots = snapshots.map(|(stored, fine)| relative_l2(stored, fine, belongs)).collect();
        differences.push((relative_l2(&stored, &fine.values, belongs), snapshots));
    }
    Ok(differences)
}

/// The problem of a data set, with its parameters.
fn problem(dataset: &Dataset) -> Result<Box<dyn Problem>, Error> {
    let Manifest { problem, generator, parameters, .. } = dataset.manifest();
    if *generator == 0 {
        let found = format!("values from {}", counted(dataset.manifest().sources.len(), "file"));
        let advice = "only lamo data make can solve again";
        return Err(unfit(dataset, "a data set that a solver made".into(), found, advice));
    }
    let row = problems::find(problem)?;
    if *generator != row.version {
        let expected = format!("version {} of the solver of {problem}", row.version);
        return Err(unfit(dataset, expected, format!("version {generator}"), "make the data set again"));
    }
    let text = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned); // no quotes
    let changes: Vec<String> = parameters.iter().map(|(key, value)| format!("{key}={}", text(value))).collect();
    Ok(row.problem(&changes)?)
}

/// The triangles between the points of a sample that a solver made; none where the solver joins them by none.
pub(super) fn triangles(dataset: &Dataset, sample: usize) -> Vec<[u32; 3]> {
    let points = dataset.points_of(sample);
    let inside = |triangles: &Vec<[u32; 3]>| triangles.as_flattened().iter().all(|&point| (point as usize) < points);
    let made = (dataset.manifest().generator > 0).then(|| problem(dataset).ok()).flatten();
    made.map(|problem| problem.triangles(dataset.manifest().seed, sample as u64)).filter(inside).unwrap_or_default()
}

fn unfit(dataset: &Dataset, expected: String, found: String, advice: &str) -> Error {
    Error::unfit(shown(dataset.folder()), expected, found, advice)
}

/// ‖stored − finer‖₂ / ‖finer‖₂ over the values whose index `belongs`; 0 where both are zero.
fn relative_l2(stored: &[f32], finer: &[f64], belongs: impl Fn(usize) -> bool) -> f64 {
    let pairs = stored.iter().zip(finer).enumerate().filter(|&(index, _)| belongs(index));
    let pairs = pairs.map(|(_, (&stored, &finer))| (f64::from(stored) - finer, finer));
    let (miss, size) = pairs.fold((0.0, 0.0), |(miss, size), (gap, finer)| (miss + gap * gap, size + finer * finer));
    if miss == 0.0 { 0.0 } else { (miss / size).sqrt() }
}
