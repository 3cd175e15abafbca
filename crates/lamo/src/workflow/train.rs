//! Train and resume: resolve the request, get the data, compile, run.

mod minutes;
mod named;
mod start;

pub use minutes::in_minutes;

use super::sizes::{self, Chosen, fit_sizes};
use super::{Event, Session, dataset};
use crate::data::dataset::{Dataset, FieldEntry, MANIFEST, Manifest, Role};
use crate::data::import::is_even;
use crate::error::{Error, Kind, Refusal, require};
use crate::experiment::{
    self, Data, Experiment, ExperimentData, Loss, OWN, Preset, Request, Symmetries, TimeRole, benchmarks,
};
use crate::files;
use crate::network::models;
use crate::run::{self, Best, Checkpoint, Environment, Line, Provenance, Run};
use crate::task::{Spread, Task};
use crate::training::{Outcome, Trainer, convergence};
use lamo_tensor::{Device, Graph, Program, attempt};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The folder of runs without a name of their own.
const RUNS: &str = "runs";

/// A training to start.
#[derive(Clone, Debug)]
pub struct TrainRequest {
    /// A benchmark, a shipped experiment, an experiment file, or the folder of a data set.
    pub what: String,
    /// Name of the model; unless given here or in the file, FNO on lines of a user's data and LaMO elsewhere.
    pub model: Option<String>,
    /// A run folder, a checkpoint file or a model folder to start from. Without a model in the request, its model and settings
    /// are used; parameters are taken where names and shapes agree.
    pub init: Option<PathBuf>,
    /// Size; unless given here or in the file, quick on a CPU and the published recipe on a GPU.
    pub preset: Option<Preset>,
    /// A data set to train on instead of making one.
    pub data: Option<PathBuf>,
    /// Where to compute.
    pub device: Device,
    /// `key=value` texts for any key of the experiment; the last one wins.
    pub changes: Vec<String>,
    /// The run folder; `runs/BENCHMARK-MODEL-N` unless given.
    pub out: Option<PathBuf>,
    /// Time between checkpoints.
    pub saving: Duration,
    /// Minutes that the training may take on this machine; the number of epochs follows from them.
    pub minutes: Option<f64>,
    /// Trainings that share the device at the same time, this one included. The run records it, because its seconds are then not
    /// those of a training alone.
    pub together: usize,
}

impl TrainRequest {
    /// Trains on what `what` names, with the defaults.
    pub fn new(what: impl Into<String>) -> TrainRequest {
        TrainRequest {
            what: what.into(),
            model: None,
            init: None,
            preset: None,
            data: None,
            device: Device::Cpu,
            changes: Vec::new(),
            out: None,
            saving: Duration::from_secs(60),
            minutes: None,
            together: 1,
        }
    }

    /// The experiment that is asked for, every key with its value. Sizes that follow from a data set on disk are those of
    /// that data set; epochs that follow from `minutes` are unknown before the training and are not those of this experiment.
    pub fn experiment(&self) -> Result<Experiment, Error> {
        let (mut experiment, chosen, _) = self.resolve_start()?;
        let there = experiment.data.folder.as_ref().filter(|folder| folder.join(MANIFEST).is_file());
        if let Some(dataset) = there.map(|folder| Dataset::open(folder)).transpose()? {
            fit_sizes(&mut experiment, &dataset, chosen)?;
            check_model(&experiment, dataset.manifest())?;
        }
        Ok(experiment)
    }

    /// Refuses minutes that are not a time, and minutes beside a number of epochs.
    fn check_minutes(&self, experiment: &Experiment, chosen: Chosen) -> Result<(), Refusal> {
        let Some(minutes) = self.minutes else { return Ok(()) };
        require(minutes > 0.0 && minutes <= sizes::MOST_MINUTES, || {
            let expected = format!("a number above 0, {} at most", sizes::MOST_MINUTES);
            Refusal::new("--minutes", expected, minutes.to_string())
        })?;
        require(!chosen.epochs, || {
            let found = format!("--minutes {minutes} and train.epochs = {}", experiment.train.epochs);
            Refusal::new("the length of the training", "minutes or epochs", found).advise("leave one out")
        })
    }

    /// Whether a change sets a key.
    fn says(&self, key: &str) -> bool {
        self.changes.iter().any(|change| change.trim_start().starts_with(key))
    }

    /// The experiment, and which sizes the user chose.
    fn resolve(&self) -> Result<(Experiment, Chosen), Error> {
        let what = self.what.as_str();
        let path = Path::new(what);
        let mut request = Request { model: self.model.as_deref(), ..Request::default() };
        let (mut folder, mut text, mut named) = (self.data.clone(), None, what.to_owned());
        let mut changes = Vec::new();
        // With --data, the name of a benchmark is the benchmark, also where a folder has this name.
        let benchmark = folder.is_some() && benchmarks::find(what).is_ok();
        if !benchmark && path.join(MANIFEST).is_file() {
            require(folder.is_none(), || {
                let other = folder.as_ref().map(|folder| folder.display().to_string()).unwrap_or_default();
                Refusal::said(format!("{what} is a data set, and so is --data {other}")).advise("name one")
            })?;
            folder = Some(path.to_owned());
            let manifest = Dataset::open(path)?.manifest().clone();
            request.grid = Some(manifest.grid);
            if is_benchmark(&manifest)? {
                named = manifest.problem;
            } else {
                let window = manifest.parameters.get("window").and_then(toml::Value::as_integer);
                if window.is_some() || is_time_series(&manifest) {
                    changes.push("train.loss=relative-l2-of-frames".to_owned());
                    // A loss for all tasks leaves the series a roll-out.
                    if !self.changes.iter().any(|change| change.contains(Loss::RelativeL2OfTimes.name())) {
                        changes.push(format!("data.time={}", TimeRole::RollOut.name()));
                    }
                }
                // A number may come near zero, where a relative error says little.
                if are_numbers(&manifest) {
                    changes.push(format!("train.loss={}", Loss::Mse.name()));
                }
                named = OWN.to_owned();
                // The samples of an import with windows begin with the snapshots that a roll-out is given.
                let all: Vec<String> = changes.iter().chain(&self.changes).cloned().collect();
                let asked = Request { benchmark: Some(OWN), changes: &all, ..request }.resolve();
                let rolls = asked.is_ok_and(|experiment| experiment.time_mode().is_roll_out());
                changes.extend(window.filter(|_| rolls).map(|window| format!("data.past={window}")));
            }
        } else if let Ok(shipped) = experiment::shipped_text(what) {
            require(self.preset.is_none_or(|preset| preset == Preset::Paper), || {
                let preset = self.preset.map_or("", Preset::name);
                let advice = format!("for another one say lamo train BENCHMARK --model MODEL --preset {preset}");
                Refusal::said(format!("{what} is the published recipe")).advise(advice)
            })?;
            text = Some(shipped.to_owned());
        } else if path.is_file() {
            let read = files::read_to_string(path).map_err(|reason| match reason.kind() {
                ErrorKind::InvalidData => not_text(what).into(),
                _ => Error::reading(path, reason),
            })?;
            request.grid = self.grid_of_file(path, &read)?;
            text = Some(read);
        } else if benchmarks::find(what).is_err() {
            return Err(unknown(what).into());
        }
        match &text {
            Some(text) => request.file = Some((what, text)),
            None => request.benchmark = Some(&named),
        }
        let quick = self.preset.is_none() && text.is_none() && self.device == Device::Cpu;
        request.preset = if quick { Some(Preset::Quick) } else { self.preset };
        if let Some(folder) = folder {
            let folder = std::path::absolute(&folder).unwrap_or(folder);
            let place = toml::Value::String(folder.display().to_string());
            let own = [format!("data.folder={place}"), "data.train=0".to_owned(), "data.test=0".to_owned()];
            // As many samples as the benchmark has are split as it says.
            let usual = request.resolve().ok().filter(|usual| is_whole(&folder, &usual.data));
            changes.splice(0..0, own.into_iter().take(if usual.is_some() { 1 } else { 3 }));
        }
        changes.extend(self.changes.iter().cloned());
        let request = Request { changes: &changes, ..request };
        let mut experiment = request.resolve()?;
        let says = |table: &str, key: &str| request.says(&[table, key]);
        let chosen = Chosen {
            batch: says("train", "batch"),
            validation: says("data", "validation"),
            gap: says("data", "gap"),
            epochs: says("train", "epochs"),
            evaluate: says("train", "evaluate") || experiment.train.patience > 0,
            change: says("data", "change"),
            trend: says("data", "trend"),
        };
        self.check_minutes(&experiment, chosen)?;
        // A file names the data folder relative to itself; the run stores a path that is valid from any folder.
        let here = self.changes.iter().any(|change| change.trim_start().starts_with("data.folder"));
        let base = path.parent().filter(|_| path.is_file() && !here).unwrap_or(Path::new(""));
        if let Some(folder) = &mut experiment.data.folder {
            let place = base.join(&*folder);
            *folder = std::path::absolute(&place).map_err(|reason| Error::reading(&place, reason))?;
        }
        Ok((experiment, chosen))
    }
}

fn unknown(what: &str) -> Refusal {
    let known: Vec<_> = benchmarks::BENCHMARKS.iter().map(|row| row.name).collect();
    let expected = format!(
        "a benchmark ({}), a shipped experiment (see lamo list), an experiment file or a data set",
        known.join(", ")
    );
    if Path::new(what).join(run::EXPERIMENT).is_file() {
        let advice =
            format!("continue it with lamo train --resume {what}, or start from its weights with --init {what}");
        return Refusal::new(what, expected, "the folder of a run").advise(advice);
    }
    let refusal = Refusal::new(what, expected, "none of these").of(Kind::Missing);
    match experiment::nearest(what) {
        Some(name) => refusal.advise(format!("did you mean {name}?")),
        None => refusal,
    }
}

/// A file of arrays or weights where an experiment is expected.
fn not_text(what: &str) -> Refusal {
    let advice = "make a data set of arrays with lamo data import, and start from weights with --init";
    Refusal::new(what, "a text file with an experiment", "a file that is not text").advise(advice)
}

/// Whether a data set has the name of a benchmark and the fields that the benchmark predicts.
fn is_benchmark(manifest: &Manifest) -> Result<bool, Error> {
    let problem = manifest.problem.as_str();
    if benchmarks::find(problem).is_err() {
        return Ok(false);
    }
    let outputs = Request { benchmark: Some(problem), ..Request::default() }.resolve()?.data.outputs;
    Ok(outputs.iter().all(|output| manifest.fields.iter().any(|field| field.name == *output)))
}

/// True when a folder has all samples of a benchmark, and no more.
fn is_whole(folder: &Path, data: &Data) -> bool {
    let whole = |manifest: &Manifest| manifest.problem == data.problem && manifest.samples == data.train + data.test;
    Dataset::open(folder).is_ok_and(|dataset| whole(dataset.manifest()))
}

/// True when the only inputs are the first snapshots of a time series.
fn is_time_series(manifest: &Manifest) -> bool {
    let of = |role| manifest.fields.iter().filter(move |field| field.role == role);
    let moves = |entry: &FieldEntry| entry.on(manifest.grid).is_ok_and(|field| field.snapshots.is_some());
    of(Role::Input).count() == 0 && of(Role::Position).all(|field| field.common) && of(Role::Output).all(moves)
}

/// Refuses a model that does not take the grid of the data, before any array is read.
fn check_model(experiment: &Experiment, manifest: &Manifest) -> Result<(), Refusal> {
    let positions = manifest.fields.iter().find(|field| field.role == Role::Position);
    let positions = positions.and_then(|entry| entry.on(manifest.grid).ok());
    let space = positions.map_or(manifest.grid.shape().len(), |field| field.width());
    let task = Task::plain(manifest.grid, space, 1, 1);
    let task = if experiment.time_mode().is_input() { task.by_time(1) } else { task };
    let (row, settings) = (models::find(&experiment.model.name)?, &experiment.model.settings);
    match manifest.ragged {
        Some(_) => row.check_ragged(&task, settings),
        None => row.check(&task, settings),
    }
}

/// What a roll-out of several steps does not know of an input with snapshots that are not those of the series: which step they
/// belong to.
fn unaligned_input(experiment: &Experiment, manifest: &Manifest) -> Option<String> {
    let mode = experiment.time_mode();
    let snapshots = |field: &FieldEntry| field.on(manifest.grid).ok()?.snapshots;
    let of = |role: Role| manifest.fields.iter().filter(move |field| field.role == role);
    let series = of(Role::Output).filter_map(snapshots).max()?;
    let (_, steps) = mode.turns_and_windows(series);
    let moving = of(Role::Input).find(|field| snapshots(field).is_some_and(|count| count > 1 && count != series))?;
    (mode.is_roll_out() && steps > 1).then(|| {
        format!(
            "the input `{}` has {} snapshots and the series {series}: every one of the {steps} steps of the roll-out is given all of \
             them; with {series} snapshots, each step is given its own",
            moving.name,
            snapshots(moving).unwrap_or(1)
        )
    })
}

/// That the samples to test on are those of the data set, although others are named.
fn ignored_test(experiment: &Experiment) -> Option<String> {
    let data = &experiment.data;
    (data.first_test > 0 && (data.train == 0 || data.test == 0)).then(|| {
        "data.first_test is ignored, because the split of the data set is used; set data.train and data.test, too"
            .to_owned()
    })
}

/// Why a roll-out does not learn a series whose snapshots are not equally spaced.
fn uneven_steps(experiment: &Experiment, manifest: &Manifest) -> Option<String> {
    let times = &manifest.times;
    if !experiment.time_mode().is_roll_out() || is_even(times) {
        return None;
    }
    let steps = || times.windows(2).map(|pair| pair[1] - pair[0]);
    let [least, most] = [steps().fold(f64::INFINITY, f64::min), steps().fold(0.0, f64::max)];
    Some(format!(
        "the snapshots are not equally spaced, {least:.2e} to {most:.2e} apart, and the model is not told how long a step of its roll-out is; \
         import the first snapshot as an input, so that all times are predicted at once, or snapshots at equal times"
    ))
}

/// True when all outputs are numbers of the whole sample.
fn are_numbers(manifest: &Manifest) -> bool {
    let mut outputs = manifest.fields.iter().filter(|field| field.role == Role::Output);
    let number = |entry: &FieldEntry| entry.on(manifest.grid).is_ok_and(|field| field.spread == Spread::Sample);
    outputs.clone().next().is_some() && outputs.all(number)
}

/// A run to resume.
#[derive(Clone, Debug)]
pub struct ResumeRequest {
    /// The run folder.
    pub run: PathBuf,
    /// Where the run's data are now, if they have moved.
    pub data: Option<PathBuf>,
    /// Where to compute; the device of the first part of the run unless given.
    pub device: Option<Device>,
    /// Time between checkpoints.
    pub saving: Duration,
    /// Trainings that share the device at the same time, this one included.
    pub together: usize,
}

/// A run that has ended or was stopped.
#[derive(Clone, Debug)]
pub struct TrainedRun {
    /// The run folder.
    pub folder: PathBuf,
    /// The experiment.
    pub experiment: Experiment,
    /// The problem of the data, or the name of your own.
    pub data: String,
    /// Where it ran.
    pub device: Device,
    /// Whether all epochs are done, or the validation error no longer improved.
    pub finished: bool,
    /// Optimiser steps taken.
    pub step: usize,
    /// Optimiser steps in all.
    pub steps: usize,
    /// Epochs completed.
    pub epoch: usize,
    /// Seconds of training.
    pub seconds: f64,
    /// The best epoch so far.
    pub best: Option<Best>,
    /// The epochs.
    pub history: Vec<Line>,
}

impl TrainedRun {
    /// True when `train.patience` ended the training before its last epoch.
    pub fn ended_early(&self) -> bool {
        self.finished && self.step < self.steps
    }
}

/// Trains a model: makes the data if needed, trains, saves checkpoints. A cancelled training is saved and can be resumed.
pub fn train(request: &TrainRequest, session: &Session<'_>) -> Result<TrainedRun, Error> {
    let (mut experiment, chosen, start) = request.resolve_start()?;
    let job = Job { device: request.device, saving: request.saving, session };
    job.check_ahead(&experiment, request.out.as_deref())?;
    let dataset = dataset::of_experiment(&experiment, session)?;
    let begun = Instant::now();
    fit_sizes(&mut experiment, &dataset, chosen)?;
    let manifest = dataset.manifest();
    let warnings =
        [unaligned_input(&experiment, manifest), uneven_steps(&experiment, manifest), ignored_test(&experiment)];
    for warning in warnings.into_iter().flatten() {
        (session.listener)(Event::Warning(&warning));
    }
    let mut trainer = match request.minutes {
        Some(minutes) => job.compile_for(request, (minutes, begun), &mut experiment, &dataset, chosen)?,
        None => job.compile(&experiment, &dataset)?,
    };
    if request.minutes.is_none() && experiment.benchmark == OWN && !chosen.epochs {
        job.say_length(&experiment, &trainer, None);
    }
    let init = start.map(|start| start.lay(&job, &mut trainer)).transpose()?;
    let folder = request.out.clone().map_or_else(|| claim_name(&experiment, &dataset), Ok)?;
    let environment =
        Environment { init, together: company(request.together), ..job.environment(&experiment, &dataset)? };
    let run = Run::create(&folder, &experiment, &environment)?;
    if environment.init.is_some() {
        trainer.save_first(&run)?; // from here on the run does not need its source
    }
    job.train(&run, &experiment, &dataset, trainer)
}

/// Continues an interrupted run exactly where it stopped.
pub fn resume(request: &ResumeRequest, session: &Session<'_>) -> Result<TrainedRun, Error> {
    let (run, mut experiment, begun) = Run::open(&request.run)?;
    if let Some(data) = &request.data {
        let folder = std::path::absolute(data).map_err(|reason| Error::reading(data, reason))?;
        require(folder.to_str().is_some(), || {
            Refusal::new(
                format!("--data {}", folder.display()),
                "a path in Unicode, which a run can record",
                "a path that is not Unicode",
            )
            .advise("move the data")
        })?;
        experiment.data.folder = Some(folder);
    }
    let before = run::environment(&request.run)?;
    let device = request.device.map_or_else(|| before.device.parse(), Ok)?;
    let job = Job { device, saving: request.saving, session };
    dataset::require_present(&experiment)?;
    let mut source = experiment.clone();
    dataset::recorded_folder(&mut source.data, &before);
    let dataset = dataset::of_experiment(&source, session)?;
    let (init, together) = (before.init.clone(), before.together.max(company(request.together)));
    let now = Environment { init, together, ..job.environment(&experiment, &dataset)? };
    require(now.sees_the_same(&before), || {
        Refusal::about(dataset.folder().display().to_string(), "the data are not those the run began with")
            .advise("give the right ones with --data DIR")
            .of(Kind::Conflict)
    })?;
    let mut trainer = job.compile(&experiment, &dataset)?;
    if let Some(begun) = &begun {
        trainer.restore(begun)?;
        if let Some(note) = &begun.trained.note {
            (session.listener)(Event::Warning(note));
        }
        let (step, folder) = (trainer.step(), request.run.display());
        if begun.trained.path != run::checkpoint_path(&request.run, run::LAST) {
            let warning = format!("{folder} has no last checkpoint; the run resumes from its best one, at step {step}");
            (session.listener)(Event::Warning(&warning));
        }
        if trainer.recipe_changes().last() == Some(&step) {
            let warning = format!("the recipe of {folder} was changed; the change takes effect from step {step} on");
            (session.listener)(Event::Warning(&warning));
        }
    }
    if let (None, Some(origin)) = (&begun, &before.init) {
        start::begin_again(request, (&job, &run), origin, &mut trainer)?;
    }
    // A run that takes no further step was trained where its record says; its data may have moved.
    let record = if trainer.is_done() { Environment { data: now.data, ..before } } else { now };
    run.record(&record)?;
    if request.data.is_some() {
        run.move_data(&experiment)?;
    }
    job.train(&run, &experiment, &dataset, trainer)
}

/// How many trainings share the device, as a run records it: nothing for one alone.
fn company(together: usize) -> Option<usize> {
    Some(together).filter(|count| *count > 1)
}

struct Job<'a> {
    device: Device,
    saving: Duration,
    session: &'a Session<'a>,
}

impl Job<'_> {
    /// Checks the run folder, the model and the device before the data are made.
    fn check_ahead(&self, experiment: &Experiment, out: Option<&Path>) -> Result<(), Error> {
        if let Some(folder) = out {
            run::free(folder)?;
        }
        run::writable(out.unwrap_or(Path::new(RUNS)))?;
        dataset::check_before_making(experiment)?;
        let graph = Graph::new();
        graph.output("one", graph.fill(1.0, [1]));
        Program::compile_on(&graph, self.device, experiment.precision)?;
        Ok(())
    }

    fn environment(&self, experiment: &Experiment, dataset: &Dataset) -> Result<Environment, Error> {
        let split = experiment::split(experiment, dataset)?;
        Ok(Environment::here(self.device, self.session.threads, Some(Provenance::of(dataset, &split))))
    }

    fn build(&self, experiment: &Experiment, dataset: &Dataset) -> Result<Trainer, Error> {
        Symmetries::check_data(experiment, dataset.manifest())?;
        let selection = ExperimentData::read(experiment, dataset)?;
        let task = selection.task(experiment)?;
        let tested = selection.validation.as_ref().unwrap_or(&selection.test);
        let build = || Trainer::new(experiment, &task, &selection.train, tested, self.device);
        attempt(|| self.session.cancel.is_cancelled(), build)?
    }

    fn compile(&self, experiment: &Experiment, dataset: &Dataset) -> Result<Trainer, Error> {
        let started = Instant::now();
        let trainer = self.build(experiment, dataset)?;
        (self.session.listener)(Event::Model {
            name: &experiment.model.name,
            parameters: trainer.parameters(),
            steps: trainer.steps(),
            batch: experiment.train.batch,
            compiled_in: started.elapsed(),
        });
        Ok(trainer)
    }

    fn train(
        &self,
        run: &Run,
        experiment: &Experiment,
        dataset: &Dataset,
        mut trainer: Trainer,
    ) -> Result<TrainedRun, Error> {
        let Session { listener, cancel, .. } = self.session;
        let history = run::history(run.folder()).unwrap_or_default();
        let (step, steps) = (trainer.step(), trainer.steps());
        listener(Event::Run { folder: run.folder(), step, steps, history: &history });
        let (mut lines, mut collapsed) = (history, false);
        let outcome = trainer.run(Some(run), self.saving, &mut |progress| {
            match progress.saved {
                true => listener(Event::Checkpoint { step: progress.step }),
                false => listener(Event::Progress(progress)),
            }
            if let Some(line) = progress.finished {
                listener(Event::Epoch(line));
                lines.push(*line);
                if let Some(collapse) = convergence::collapse(&lines).filter(|_| !collapsed) {
                    listener(Event::Warning(&collapse));
                    collapsed = true;
                }
            }
            cancel.flow()
        })?;
        let Checkpoint { trained, best, .. } = trainer.checkpoint()?;
        let history = run::history(run.folder())?;
        let finished = outcome == Outcome::Finished;
        // A training that ended early did not improve any more, whatever its loss does.
        if let Some(doubt) = convergence::doubt(&history).filter(|_| finished && trained.step == steps) {
            listener(Event::Warning(&doubt));
        }
        Ok(TrainedRun {
            folder: run.folder().to_owned(),
            experiment: experiment.clone(),
            data: dataset.manifest().problem.clone(),
            device: self.device,
            finished,
            step: trained.step,
            steps,
            epoch: trained.epoch,
            seconds: trained.seconds,
            best,
            history,
        })
    }
}

/// Makes the first free `runs/BENCHMARK-MODEL-N`; two processes at once get different folders.
fn claim_name(experiment: &Experiment, dataset: &Dataset) -> Result<PathBuf, Error> {
    let benchmark = if experiment.benchmark == OWN { &dataset.manifest().problem } else { &experiment.benchmark };
    let name = format!("{benchmark}-{}", experiment.model.name).replace(['/', '\\'], "-");
    let folder = |number: usize| Path::new(RUNS).join(format!("{name}-{number}"));
    std::fs::create_dir_all(RUNS).map_err(|reason| Error::writing(Path::new(RUNS), reason))?;
    let mut number = 1;
    loop {
        match std::fs::create_dir(folder(number)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            made => return made.map_err(|reason| Error::writing(&folder(number), reason)).map(|()| folder(number)),
        }
    }
}
