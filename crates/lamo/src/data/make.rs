//! What a data set is made of, and its making on several threads.

use super::dataset::partial::{self, Partial};
use super::dataset::{Error, FieldEntry, Manifest, Outcome, Progress, Role, Rule, Watch};
use super::import::catalogue;
use lamo_physics::parameters::Value;
use lamo_physics::problems::{self, Field, FieldKind, Problem};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A problem with all its parameters, a seed and a number of samples: all that determines the numbers of a data set.
#[derive(Debug)]
pub struct Recipe {
    problem: Box<dyn Problem>,
    manifest: Manifest,
}

/// What the threads of one attempt share.
#[derive(Default)]
struct Shift {
    missing: Vec<usize>,
    next: AtomicUsize,
    made: AtomicUsize,
    stop: AtomicBool,
    failure: Mutex<Option<Error>>,
}

/// Samples of a data set at most.
const MOST: usize = 1_000_000_000;

impl Recipe {
    /// Of the problem called `name`, its defaults changed by `key=value` texts.
    pub fn named<Text: AsRef<str>>(name: &str, changes: &[Text], seed: u64, samples: usize) -> Result<Recipe, Error> {
        let row = problems::find(name)?;
        Recipe::new(row.problem(changes)?, row.version, seed, samples)
    }

    /// Of any problem; `generator` is the version of its numbers.
    pub fn new(problem: Box<dyn Problem>, generator: u32, seed: u64, samples: usize) -> Result<Recipe, Error> {
        let refuse = |what, expected: String, found: String| Err(Error::Number { what, expected, found });
        if !(1..=MOST).contains(&samples) {
            return refuse("samples", format!("1 to {MOST}"), samples.to_string());
        }
        if seed > i64::MAX as u64 {
            return refuse(
                "seed",
                format!("at most {}, the largest number of a toml file", i64::MAX),
                seed.to_string(),
            );
        }
        let manifest = manifest(problem.as_ref(), generator, seed, samples);
        Ok(Recipe { problem, manifest })
    }

    /// The manifest of the set to come, without hashes.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Makes the data set in `target`, or what an earlier attempt left missing of it.
    ///
    /// `watch` is called after every sample; its `Break` lets the samples under way finish and saves them.
    pub fn make(&self, target: &Path, threads: usize, watch: Watch) -> Result<Outcome, Error> {
        partial::make(target, &self.manifest, |partial| self.fill(partial, threads, watch))
    }

    /// Makes what is missing; stops early when a sample fails or `watch` says so.
    fn fill(&self, partial: &Partial, threads: usize, watch: Watch) -> Result<Progress, Error> {
        let shift = Shift { missing: partial.missing(), ..Shift::default() };
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, shift.missing.len().max(1)) {
                scope.spawn(|| self.work(&shift, partial, watch));
            }
        });
        let saved = partial.save();
        match shift.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => saved.map(|()| self.progress(&shift, shift.made.load(Ordering::Relaxed))),
        }
    }

    /// One thread: takes the next missing sample until there is none or someone stops the shift.
    fn work(&self, shift: &Shift, partial: &Partial, watch: Watch) {
        while !shift.stop.load(Ordering::Relaxed)
            && let Some(&sample) = shift.missing.get(shift.next.fetch_add(1, Ordering::Relaxed))
        {
            match self.values(sample).and_then(|(fields, draws)| partial.write(sample, &fields, draws)) {
                Ok(()) => {
                    let made = shift.made.fetch_add(1, Ordering::Relaxed) + 1;
                    shift.stop.fetch_or(watch(self.progress(shift, made)).is_break(), Ordering::Relaxed);
                }
                Err(error) => {
                    shift.stop.store(true, Ordering::Relaxed);
                    shift.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
    }

    fn progress(&self, shift: &Shift, made: usize) -> Progress {
        let samples = self.manifest.samples;
        Progress { complete: samples - shift.missing.len() + made, made, samples }
    }

    /// Sample `sample`, its fields rounded to float32, and how often it was drawn.
    fn values(&self, sample: usize) -> Result<(Vec<Vec<f32>>, usize), Error> {
        let Manifest { problem, seed, .. } = &self.manifest;
        let solved = self.problem.sample(*seed, sample as u64);
        let solved =
            solved.map_err(|reason| Error::Sample { problem: problem.clone(), seed: *seed, sample, reason })?;
        let fields = solved.fields.iter().map(|field| self.rounded(sample, field)).collect::<Result<_, _>>()?;
        Ok((fields, solved.draws))
    }

    fn rounded(&self, sample: usize, field: &Field) -> Result<Vec<f32>, Error> {
        let values: Vec<f32> = field.values.iter().map(|&value| value as f32).collect();
        let Some(place) = values.iter().position(|value| !value.is_finite()) else {
            return Ok(values);
        };
        let Manifest { problem, seed, .. } = self.manifest.clone();
        let (mut rest, mut position) = (place, vec![0; field.shape.len()]);
        for (index, length) in position.iter_mut().zip(&field.shape).rev() {
            (*index, rest) = (rest % length, rest / length);
        }
        Err(Error::NotFinite { problem, seed, sample, field: field.name.into(), position, found: field.values[place] })
    }
}

/// The manifest of a set that is still to be made: no hashes yet.
fn manifest(problem: &dyn Problem, generator: u32, seed: u64, samples: usize) -> Manifest {
    let value = |value| match value {
        Value::Whole(value) => toml::Value::Integer(value as i64),
        Value::Real(value) => toml::Value::Float(value),
        Value::Switch(value) => toml::Value::Boolean(value),
        Value::Choice(value) => toml::Value::String(value.into()),
    };
    let parameters = problem.settings().iter();
    let parameters = parameters.map(|(parameter, found)| (parameter.name.into(), value(found))).collect();
    let mut fields: Vec<_> = problem.fields().into_iter().map(entry).collect();
    fields.iter_mut().for_each(|field| field.normalise = catalogue::normalise(problem.name(), &field.name));
    let (grid, split) = (problem.grid(), Rule::default_for(samples));
    Manifest { generator, seed, ..Manifest::imported(problem.name(), parameters, grid, split, samples, fields) }
}

fn entry(kind: FieldKind) -> FieldEntry {
    let role = match kind.role {
        problems::Role::Position => Role::Position,
        problems::Role::Input => Role::Input,
        problems::Role::Output => Role::Output,
    };
    FieldEntry::new(kind.name, role, kind.unit, kind.shape)
}
