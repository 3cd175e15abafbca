//! Data sets from solvers: what determines a data set, and how several threads make it.

use super::dataset::partial::{self, Partial};
use super::dataset::{Error, FieldEntry, Manifest, Outcome, Progress, Ragged, Role, Rule, Warn, Watch, position};
use super::import::catalogue;
use crate::error::counted;
use crate::files::memory;
use lamo_geometry::Grid;
use lamo_physics::parameters::Value;
use lamo_physics::problems::{self, Field, FieldKind, Problem};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// A problem with all its parameters, a seed and a number of samples. These determine every number of the data set.
#[derive(Debug)]
pub struct Recipe {
    problem: Box<dyn Problem>,
    manifest: Manifest,
}

/// What the threads of one attempt share.
#[derive(Default)]
struct Shared {
    /// Samples to make.
    missing: Vec<usize>,
    /// Index in `missing` of the next sample.
    next: AtomicUsize,
    /// How many of them are made.
    made: AtomicUsize,
    stop: AtomicBool,
    /// The first error.
    failure: Mutex<Option<Error>>,
}

/// The largest number of samples of a data set.
const MOST: usize = 1_000_000_000;

impl Recipe {
    /// The recipe of the problem called `name`, its defaults changed by `key=value` texts.
    pub fn named<Text: AsRef<str>>(name: &str, changes: &[Text], seed: u64, samples: usize) -> Result<Recipe, Error> {
        let row = problems::find(name)?;
        Recipe::new(row.problem(changes)?, row.version, seed, samples)
    }

    /// The recipe of any problem; `generator` is the version of its solver.
    pub fn new(problem: Box<dyn Problem>, generator: u32, seed: u64, samples: usize) -> Result<Recipe, Error> {
        let refuse = |what, expected: String, found: String| Err(Error::Number { what, expected, found });
        if !(1..=MOST).contains(&samples) {
            return refuse("samples", format!("1 to {MOST}"), samples.to_string());
        }
        if seed > i64::MAX as u64 {
            return refuse(
                "seed",
                format!("at most {}, the largest number of a TOML file", i64::MAX),
                seed.to_string(),
            );
        }
        Rule::default_for(samples).split(samples)?; // it may not fit into memory
        let manifest = manifest(problem.as_ref(), generator, seed, samples);
        Ok(Recipe { problem, manifest })
    }

    /// The manifest of the data set to be made, without hashes.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Makes the data set in `target`, or the samples that an interrupted attempt did not make.
    ///
    /// `watch` is called after every sample. When it returns `Break`, the threads finish and save the samples they are
    /// making.
    pub fn make(&self, target: &Path, threads: usize, watch: Watch) -> Result<Outcome, Error> {
        self.make_and_warn(target, threads, watch, &|_| {})
    }

    /// The same; `warn` is told which samples of an interrupted attempt were lost and are made again.
    pub fn make_and_warn(&self, target: &Path, threads: usize, watch: Watch, warn: Warn) -> Result<Outcome, Error> {
        partial::make(target, &self.manifest, warn, |partial| self.fill(partial, threads, watch))
    }

    /// Makes the missing samples; stops early when a sample fails or `watch` returns `Break`.
    fn fill(&self, partial: &Partial, threads: usize, watch: Watch) -> Result<Progress, Error> {
        let shared = Shared { missing: partial.missing()?, ..Shared::default() };
        let threads = threads.clamp(1, shared.missing.len().max(1));
        self.require_memory(threads)?;
        std::thread::scope(|scope| {
            let work = || self.work(&shared, partial, watch);
            // This thread works, too: where the system gives no more threads, there are fewer.
            let _helpers: Vec<_> = (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, work).ok()).collect();
            work();
        });
        let saved = partial.save();
        match shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => saved.map(|()| self.progress(&shared, shared.made.load(Ordering::Relaxed))),
        }
    }

    /// Refuses samples that do not fit into memory. Each thread holds one sample: the values in double precision as the
    /// solver returns them, at least as many inside the solver, and the values in single precision.
    fn require_memory(&self, threads: usize) -> Result<(), Error> {
        let Manifest { problem, fields, .. } = &self.manifest;
        let values =
            |field: &FieldEntry| field.shape.iter().fold(1, |count: u64, &extent| count.saturating_mul(extent as u64));
        let values = fields.iter().map(values).fold(0, u64::saturating_add);
        let bytes = values.saturating_mul(8 + 8 + 4).saturating_mul(threads as u64);
        memory::require(bytes).map_err(|reason| {
            let samples = counted(threads, "sample");
            Error::memory(format!("{problem}: {samples} at the same time"), reason)
        })
    }

    /// The work of one thread: makes the next missing sample until all are made or the attempt stops.
    fn work(&self, shared: &Shared, partial: &Partial, watch: Watch) {
        while !shared.stop.load(Ordering::Relaxed)
            && let Some(&sample) = shared.missing.get(shared.next.fetch_add(1, Ordering::Relaxed))
        {
            match self.make_sample(sample, partial) {
                Ok(()) => {
                    let made = shared.made.fetch_add(1, Ordering::Relaxed) + 1;
                    shared.stop.fetch_or(watch(self.progress(shared, made)).is_break(), Ordering::Relaxed);
                }
                Err(error) => {
                    shared.stop.store(true, Ordering::Relaxed);
                    shared.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
    }

    /// Solves sample `sample`, stores all its fields and then marks it.
    fn make_sample(&self, sample: usize, partial: &Partial) -> Result<(), Error> {
        let (fields, draws) = self.values(sample)?;
        for (field, values) in fields.iter().enumerate() {
            self.store(partial, field, sample, values)?;
        }
        partial.mark(sample..sample + 1, draws)
    }

    /// Stores one field of a sample; points of samples with different numbers of points stand one after the other.
    fn store(&self, partial: &Partial, number: usize, sample: usize, values: &[f32]) -> Result<(), Error> {
        let field = &self.manifest.fields[number];
        match self.manifest.ragged.as_ref().filter(|_| self.manifest.is_ragged_field(field)) {
            Some(ragged) => partial.store_ragged(number, ragged.points_of(sample), values),
            None => partial.store(number, sample, values),
        }
    }

    fn progress(&self, shared: &Shared, made: usize) -> Progress {
        let samples = self.manifest.samples;
        Progress { complete: samples - shared.missing.len() + made, made, samples }
    }

    /// The fields of sample `sample` rounded to float32, and how often the sample was drawn.
    fn values(&self, sample: usize) -> Result<(Vec<Vec<f32>>, usize), Error> {
        let Manifest { problem, seed, .. } = &self.manifest;
        let solved = self.problem.sample(*seed, sample as u64);
        let solved =
            solved.map_err(|reason| Error::Sample { problem: problem.clone(), seed: *seed, sample, reason })?;
        let fields = solved.fields.iter().map(|field| self.rounded(sample, field)).collect::<Result<_, _>>()?;
        Ok((fields, solved.draws))
    }

    fn rounded(&self, sample: usize, field: &Field) -> Result<Vec<f32>, Error> {
        let mut values = memory::reserve(field.values.len())
            .map_err(|reason| Error::memory(format!("{}: `{}`", self.manifest.problem, field.name), reason))?;
        values.extend(field.values.iter().map(|&value| value as f32));
        let Some(index) = values.iter().position(|value: &f32| !value.is_finite()) else {
            return Ok(values);
        };
        let Manifest { problem, seed, .. } = self.manifest.clone();
        let position = position(index, &field.shape);
        Err(Error::NotFinite { problem, seed, sample, field: field.name.into(), position, found: field.values[index] })
    }
}

/// The manifest of a data set that has not been made yet, without hashes.
fn manifest(problem: &dyn Problem, generator: u32, seed: u64, samples: usize) -> Manifest {
    let value = |value| match value {
        Value::Whole(value) => toml::Value::Integer(value as i64),
        Value::Real(value) => toml::Value::Float(value),
        Value::Switch(value) => toml::Value::Boolean(value),
        Value::Choice(value) => toml::Value::String(value.into()),
    };
    let parameters = problem.settings().iter();
    let parameters = parameters.map(|(parameter, found)| (parameter.name.into(), value(found))).collect();
    let (grid, ragged) = points(problem, seed, samples);
    let kinds = problem.fields().into_iter();
    let kinds =
        kinds.map(|kind| if ragged.is_some() { kind.on_points(problem.grid().points(), grid.points()) } else { kind });
    let mut fields: Vec<_> = kinds.map(entry).collect();
    fields.iter_mut().for_each(|field| field.normalise = catalogue::normalise(problem.name(), &field.name));
    let split = Rule::default_for(samples);
    let stated = problems::label_errors(problem).into_iter();
    let label_errors = stated.map(|labels| (labels.field.to_owned(), labels.error)).collect();
    Manifest {
        generator,
        seed,
        label_errors,
        ragged,
        ..Manifest::imported(problem.name(), parameters, grid, split, samples, fields)
    }
}

/// The grid of all samples, and how many points each has where their numbers differ.
fn points(problem: &dyn Problem, seed: u64, samples: usize) -> (Grid, Option<Ragged>) {
    let sizes: Option<Vec<usize>> = (0..samples).map(|sample| problem.points_of(seed, sample as u64)).collect();
    match sizes {
        Some(sizes) => {
            let points = sizes.iter().copied().max().unwrap_or(0);
            (Grid::Cloud { points }, Some(Ragged::of(&sizes)))
        }
        None => (problem.grid(), None),
    }
}

fn entry(kind: FieldKind) -> FieldEntry {
    let role = match kind.role {
        problems::Role::Position => Role::Position,
        problems::Role::Input => Role::Input,
        problems::Role::Output => Role::Output,
    };
    FieldEntry::new(kind.name, role, kind.unit, kind.shape)
}
