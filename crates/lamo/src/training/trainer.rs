//! The training loop: step, test at the end of an epoch, save.

use super::average::{self, AVERAGE};
use super::divergence::Broken;
use super::step::StepProgram;
use super::test_program::TestProgram;
use crate::data::Samples;
use crate::error::{Error, Kind, Refusal, bounded, counted, require};
use crate::experiment::{Data, Experiment, Training, patience_needs_validation};
use crate::network::{ModelStates, models};
use crate::run::{self, Best, Checkpoint, Line, Operator, Run, Trained, Transfer};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::{Device, MODEL_STATES, PARAMETERS, Precision, Program, Snapshot};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often the loss is read and the watcher called.
pub(super) const PULSE: Duration = Duration::from_millis(250);

/// Progress of a training.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Optimiser steps taken.
    pub step: usize,
    /// Optimiser steps in all.
    pub steps: usize,
    /// The current epoch, counted from 1.
    pub epoch: usize,
    /// Epochs in all.
    pub epochs: usize,
    /// Mean loss of the epoch so far.
    pub train: f64,
    /// Learning rate of the last step.
    pub rate: f64,
    /// Seconds of training so far.
    pub seconds: f64,
    /// The epoch that has just ended.
    pub finished: Option<&'a Line>,
    /// True when a checkpoint was written just before this call.
    pub saved: bool,
}

/// Called a few times a second and after every epoch; [`ControlFlow::Break`] ends the training after the step.
pub type Watch<'a> = &'a mut dyn FnMut(Progress<'_>) -> ControlFlow<()>;

/// How a training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All epochs are done, or the validation error has not improved for `train.patience` epochs.
    Finished,
    /// The watcher asked to stop; the same training can be resumed from here.
    Stopped,
}

/// A training in progress.
pub struct Trainer {
    pub(super) program: StepProgram,
    pub(super) test: TestProgram,
    /// Copy of the model's states on the device that the test program reads.
    tested: Snapshot,
    pub(super) step: usize,
    best: Option<Best>,
    /// Epochs whose end, with its test, `best` takes into account.
    ended: usize,
    /// Seconds of earlier attempts, and when this one started.
    seconds: f64,
    started: Option<Instant>,
    /// Part of these seconds that tests and checkpoints took.
    paused: f64,
    /// Steps at which the recipe was changed.
    changed: Vec<usize>,
    /// The last checkpoint whose loss and parameters were finite.
    pub(super) good: Option<Checkpoint>,
    /// Snapshot of the best epoch, on the device until it is written; while a divergence is traced, the state before
    /// the step that broke.
    pub(super) snapshot: Snapshot,
    /// Step, times and error of the best epoch, until its snapshot is written.
    unsaved_best: Option<Moment>,
    /// True when the last epoch has ended and its test was interrupted.
    untested: bool,
}

/// The states of the model in a training program.
fn model_states(program: &Program, read: impl Fn(&str) -> Result<Vec<f32>, Error>) -> Result<ModelStates, Error> {
    let sections = program.state_sections().to_vec();
    let values = if sections.is_empty() { Vec::new() } else { read(MODEL_STATES)? };
    Ok(ModelStates { sections, values })
}

/// Where the model of a checkpoint is the average, this state holds the parameters θ with which the training continues.
const UNAVERAGED: &str = "average.theta";

/// The values of a checkpoint for a state of the training program. Where averaging is switched on by a resume, the average starts
/// at θ; where it is switched off, the training continues with θ.
fn saved<'a>(from: &'a Checkpoint, name: &str) -> Option<&'a [f32]> {
    match name {
        PARAMETERS => from.state(UNAVERAGED).or(from.state(PARAMETERS)),
        AVERAGE => from.state(PARAMETERS),
        _ => from.state(name),
    }
}

/// The states of the training program that are tested: those of the model, with the average in place of θ where it is kept.
fn tested_states(test: &TestProgram, program: &Program) -> Vec<String> {
    let averaged = average::is_kept(program);
    let name = |name: String| if averaged && name == PARAMETERS { AVERAGE.to_owned() } else { name };
    test.model_states().into_iter().map(name).collect()
}

/// When to call the watcher and when to save.
struct Pace {
    begun: Instant,
    saving: Duration,
    pulse: Instant,
    saved: Instant,
}

impl Pace {
    fn new(saving: Duration) -> Pace {
        let begun = Instant::now();
        Pace { begun, saving, pulse: begun, saved: begun }
    }

    /// True when the next checkpoint is due.
    fn is_due(&self) -> bool {
        let soon = Duration::from_secs(1) + self.begun.elapsed() / 4;
        let young = if self.saving == Duration::MAX { self.saving } else { soon };
        self.saved.elapsed() >= self.saving.min(young)
    }
}

/// Step, times and best error at a snapshot.
#[derive(Clone, Copy)]
struct Moment {
    step: usize,
    seconds: f64,
    paused: f64,
    best: Option<Best>,
    ended: usize,
}

impl Trainer {
    /// Compiles the programs; no step is taken yet. `test` are the samples that are tested after an epoch: the validation
    /// samples if `experiment.data.validation` is above 0.
    pub fn new(
        experiment: &Experiment,
        task: &Task,
        train: &Samples,
        test: &Samples,
        device: Device,
    ) -> Result<Trainer, Error> {
        let (validates, patience) = (experiment.data.validation > 0, experiment.train.patience);
        require(validates || patience == 0, || patience_needs_validation(patience))?;
        for (samples, which) in [(train, "training"), (test, if validates { "validation" } else { "test" })] {
            samples.check_for(task)?;
            let words = |grid: Grid, times: usize| format!("a {grid} and {}", counted(times, "time"));
            // A ragged set has clouds of any size.
            let alike = samples.grid == task.grid || (samples.is_ragged() && matches!(task.grid, Grid::Cloud { .. }));
            let fits = alike && samples.times == task.time.count();
            require(fits, || {
                let (expected, found) = (words(task.grid, task.time.count()), words(samples.grid, samples.times));
                Refusal::new(format!("{which} samples"), expected, found)
            })?;
            require(!samples.targets.is_empty(), || Refusal::new(format!("{which} samples"), "targets", "none"))?;
        }
        if train.is_ragged() || test.is_ragged() {
            models::find(&experiment.model.name)?.check_ragged(task, &experiment.model.settings)?;
        }
        let program = StepProgram::new(experiment, task, train, device)?;
        let batch = run::forward_batch(experiment.train.batch, device).min(test.count);
        let test = bounded(|| TestProgram::new(experiment, task, test, device, batch))?;
        let snapshot =
            |names: &[String]| Snapshot::new(&program.program, &names.iter().map(String::as_str).collect::<Vec<_>>());
        Ok(Trainer {
            tested: snapshot(&tested_states(&test, &program.program))?,
            snapshot: snapshot(&program.program.states())?,
            test,
            program,
            step: 0,
            best: None,
            ended: 0,
            seconds: 0.0,
            started: None,
            paused: 0.0,
            changed: Vec::new(),
            good: None,
            unsaved_best: None,
            untested: false,
        })
    }

    pub(super) fn experiment(&self) -> &Experiment {
        &self.program.experiment
    }

    /// Continues from a checkpoint of the same experiment.
    pub fn restore(&mut self, from: &Checkpoint) -> Result<(), Error> {
        let Trained { path, operator, experiment, .. } = &from.trained;
        let program = &self.program.program;
        let alike = operator.sections == program.sections() && operator.states.sections == program.state_sections();
        require(alike, || {
            Refusal::about(path.display().to_string(), "its parameters are not those of the experiment's model")
                .of(Kind::Conflict)
        })?;
        let states = self.program.program.states();
        for name in &states {
            let expected = self.program.program.try_read(name)?.len();
            let found = saved(from, name).map(<[f32]>::len);
            require(found == Some(expected), || {
                let found = found.map_or_else(|| "none".to_owned(), |found| format!("{found} values"));
                Refusal::new(format!("{}: state {name}", path.display()), format!("{expected} values"), found)
                    .of(Kind::Conflict)
            })?;
        }
        require(self.program.task.continues(&operator.task), || {
            Refusal::about(path.display().to_string(), "the checkpoint belongs to other data than these")
                .advise("start a new run")
                .of(Kind::Conflict)
        })?;
        let (epochs, asked) = (from.trained.step.div_ceil(self.epoch_steps()), self.experiment().train.epochs);
        require(epochs <= asked, || {
            Refusal::new("train.epochs", format!("at least the {epochs} that are done or under way"), asked.to_string())
        })?;
        self.changed = from.trained.changed.clone();
        let place = Data { folder: self.experiment().data.folder.clone(), ..experiment.data.clone() };
        if *self.experiment() != (Experiment { data: place, ..experiment.clone() }) {
            self.changed.push(from.trained.step);
        }
        for name in &states {
            self.program.program.try_write(name, saved(from, name).unwrap_or_default())?;
        }
        (self.step, self.best, self.unsaved_best) = (from.trained.step, from.best, None);
        self.ended = from.tested.unwrap_or(self.step / self.epoch_steps());
        self.untested = false;
        (self.seconds, self.paused) = (from.trained.seconds, from.trained.paused);
        self.started = self.started.map(|_| Instant::now());
        Ok(())
    }

    /// Takes the parameters of another model where names and shapes agree, before the first step.
    pub fn start_from(&mut self, source: &Operator) -> Result<Transfer, Error> {
        let StepProgram { program, experiment, task, .. } = &mut self.program;
        let mut values = program.try_read(PARAMETERS)?.to_vec();
        let mut states = model_states(program, |name| Ok(program.try_read(name)?.to_vec()))?;
        let taken = run::transfer(source, (&experiment.model, task), (program.sections(), &mut values), &mut states)?;
        program.try_write(PARAMETERS, &values)?;
        average::begin(program)?;
        if !states.values.is_empty() {
            program.try_write(MODEL_STATES, &states.values)?;
        }
        Ok(taken)
    }

    /// Writes the checkpoint of a training before its first step.
    pub(crate) fn save_first(&self, run: &Run) -> Result<(), Error> {
        run.save(run::LAST, &self.checkpoint()?)
    }

    /// The training as it stands.
    pub fn checkpoint(&self) -> Result<Checkpoint, Error> {
        let program = &self.program.program;
        self.checkpoint_of(self.moment(), |name| Ok(program.try_read(name)?.to_vec()))
    }

    fn moment(&self) -> Moment {
        Moment { step: self.step, seconds: self.elapsed(), paused: self.paused, best: self.best, ended: self.ended }
    }

    fn checkpoint_of(
        &self,
        moment: Moment,
        read: impl Fn(&str) -> Result<Vec<f32>, Error>,
    ) -> Result<Checkpoint, Error> {
        let (program, experiment) = (&self.program.program, self.experiment());
        let averaged = average::is_kept(program);
        let of_model = |name: &String| [PARAMETERS, MODEL_STATES, AVERAGE].contains(&name.as_str());
        let states = program.states().into_iter().filter(|name| !of_model(name));
        let states = states.map(|name| Ok((name.clone(), read(&name)?)));
        let beside = averaged.then(|| Ok((UNAVERAGED.to_owned(), read(PARAMETERS)?)));
        let states = states.chain(beside).collect::<Result<BTreeMap<_, _>, Error>>()?;
        let operator = Operator {
            model: experiment.model.clone(),
            task: self.program.task.clone(),
            precision: Precision::F32,
            batch: experiment.train.batch,
            sections: program.sections().to_vec(),
            parameters: read(if averaged { AVERAGE } else { PARAMETERS })?,
            states: model_states(program, read)?,
        };
        let Moment { step, seconds, paused, best, ended } = moment;
        let trained = Trained {
            path: Default::default(),
            experiment: experiment.clone(),
            operator,
            epoch: step / self.epoch_steps(),
            step,
            seconds,
            paused,
            step_bytes: Some(self.program.bytes()),
            changed: self.changed.clone(),
            note: None,
        };
        Ok(Checkpoint { trained, states, best, tested: Some(ended) })
    }

    /// The model as it stands.
    pub fn trained(&self) -> Result<Trained, Error> {
        Ok(self.checkpoint()?.trained)
    }

    /// Steps at which the recipe was changed.
    pub fn recipe_changes(&self) -> &[usize] {
        &self.changed
    }

    /// Optimiser steps taken.
    pub fn step(&self) -> usize {
        self.step
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.program.program.sections().iter().map(|section| section.shape.count()).sum()
    }

    /// Optimiser steps of an epoch.
    pub fn epoch_steps(&self) -> usize {
        self.program.epoch_steps()
    }

    /// Optimiser steps in all.
    pub fn steps(&self) -> usize {
        self.experiment().train.epochs * self.epoch_steps()
    }

    /// Trains to the end, or until `watch` asks to stop. The run folder, if there is one, gets a checkpoint every `saving`;
    /// in the first minutes sooner, so that a killed process loses a fifth of them at most.
    pub fn run(&mut self, run: Option<&Run>, saving: Duration, watch: Watch<'_>) -> Result<Outcome, Error> {
        self.started = Some(Instant::now());
        let outcome = self.train(run, saving, watch);
        self.seconds = self.elapsed();
        self.started = None;
        outcome
    }

    fn train(&mut self, run: Option<&Run>, saving: Duration, watch: Watch<'_>) -> Result<Outcome, Error> {
        if let Some(run) = run {
            let epoch = self.step / self.epoch_steps();
            // The test of an epoch may have ended after its checkpoint was written; its line is then written again.
            let lines = run.rewind(epoch.min(self.ended))?;
            let ended = self.step > 0 && self.step.is_multiple_of(self.epoch_steps());
            self.untested = ended && lines.last().is_none_or(|line| line.epoch < epoch);
        }
        self.good = Some(self.checkpoint()?);
        if run.is_some_and(|run| self.is_done() && !run::checkpoint_path(run.folder(), run::LAST).exists()) {
            self.save(run)?; // the last epoch was the best, and only its best checkpoint was written
        }
        let mut pace = Pace::new(saving);
        while !self.is_done() {
            if !self.untested {
                self.advance()?;
            }
            let ended = self.step.is_multiple_of(self.epoch_steps());
            let due = pace.is_due() || self.step == self.steps();
            if !ended && !due && pace.pulse.elapsed() < PULSE {
                continue;
            }
            self.check_or_undo(run, due, watch)?;
            self.untested = ended;
            let line = if ended { self.end_epoch(run, &mut pace, watch)? } else { None };
            if line.is_some_and(|line| line.error().is_some_and(|error| !error.is_finite())) {
                let (step, loss) = (self.step, self.mean_loss()?);
                self.undo(run)?;
                let broken = if self.validates() { Broken::Validation } else { Broken::Test };
                return Err(self.diverged(broken, step, loss, None));
            }
            if let (Some(run), Some(line)) = (run, &line) {
                run.append(line)?;
            }
            let interrupted = ended && line.is_none();
            self.untested = interrupted;
            let stop = watch(self.progress(line.as_ref(), false)?).is_break() || interrupted;
            if stop || due || self.is_done() {
                self.save_checked(run, !due, &mut pace, watch)?;
            }
            if stop {
                return Ok(if self.is_done() { Outcome::Finished } else { Outcome::Stopped });
            }
            pace.pulse = Instant::now();
        }
        Ok(Outcome::Finished)
    }

    /// Whether the epochs are tested on validation samples.
    fn validates(&self) -> bool {
        self.experiment().data.validation > 0
    }

    /// True when all epochs are done and tested, or the validation error has not improved for `train.patience` epochs.
    pub fn is_done(&self) -> bool {
        if self.untested {
            return false;
        }
        let Training { patience, evaluate, .. } = self.experiment().train;
        let epoch = self.step / self.epoch_steps();
        let tested = self.step.is_multiple_of(self.epoch_steps()) && epoch.is_multiple_of(evaluate);
        let best = self.best.map_or(0, |best| best.epoch);
        self.step == self.steps() || (patience > 0 && tested && epoch >= best + patience)
    }

    /// Saves, after a check that the state is finite; with `parameters`, these too.
    fn save_checked(
        &mut self,
        run: Option<&Run>,
        parameters: bool,
        pace: &mut Pace,
        watch: Watch<'_>,
    ) -> Result<(), Error> {
        self.check_or_undo(run, parameters, watch)?;
        let pause = Instant::now();
        self.save(run)?;
        pace.saved = Instant::now();
        self.paused += (pace.saved - pause).as_secs_f64();
        let _ = watch(self.progress(None, true)?); // the watcher repeats a request to stop at the next pulse
        Ok(())
    }

    /// One optimiser step.
    pub(super) fn advance(&mut self) -> Result<(), Error> {
        self.program.run(self.step)?;
        self.step += 1;
        Ok(())
    }

    /// The end of an epoch: its mean loss, and the error on the validation or test samples where it is due. `None` when the watcher asks to stop during
    /// the test. The whole test runs again when the training is resumed.
    fn end_epoch(&mut self, run: Option<&Run>, pace: &mut Pace, watch: Watch<'_>) -> Result<Option<Line>, Error> {
        let epoch = self.step / self.epoch_steps();
        let due = epoch.is_multiple_of(self.experiment().train.evaluate) || self.step == self.steps();
        let mut error = None;
        if due {
            let begun = Instant::now(); // reading the loss has waited for the steps before
            let paused = self.paused;
            error = self.watched_test(run, pace, watch)?;
            self.paused = paused + begun.elapsed().as_secs_f64();
            if error.is_none() {
                return Ok(None);
            }
        }
        self.ended = epoch;
        let better = |error: &f64| error.is_finite() && self.best.is_none_or(|best| *error < best.error);
        if let Some(error) = error.filter(better) {
            self.best = Some(Best { epoch, error });
            self.unsaved_best = Some(self.moment());
            self.snapshot.capture(&self.program.program)?;
        }
        let rate = self.program.pace(self.step - 1).rate;
        let (validation, test) = if self.validates() { (error, None) } else { (None, error) };
        let (step, train, seconds) = (self.step, self.mean_loss()?, self.elapsed());
        Ok(Some(Line { epoch, step, train, validation, test, rate, seconds }))
    }

    /// [`Trainer::test_error`] that calls the watcher and saves as the training does; `None` if the watcher asks to stop.
    fn watched_test(&mut self, run: Option<&Run>, pace: &mut Pace, watch: Watch<'_>) -> Result<Option<f64>, Error> {
        self.begin_test()?;
        loop {
            let tested = self.test.advance()?;
            if tested.is_some() {
                return Ok(tested);
            }
            if pace.pulse.elapsed() >= PULSE {
                if watch(self.progress(None, false)?).is_break() {
                    return Ok(None);
                }
                if pace.is_due() {
                    self.save_checked(run, true, pace, watch)?;
                }
                pace.pulse = Instant::now();
            }
        }
    }

    pub(super) fn begin_test(&mut self) -> Result<(), Error> {
        self.tested.capture(&self.program.program)?;
        self.test.begin(&self.tested)
    }

    /// Mean relative L2 over the samples that are tested after an epoch, all times of a sample together; with several outputs
    /// of a user's own data, the mean over the outputs.
    pub fn test_error(&mut self) -> Result<f64, Error> {
        self.begin_test()?;
        loop {
            if let Some(error) = self.test.advance()? {
                return Ok(error);
            }
        }
    }

    /// Mean loss per sample and time of the epoch so far.
    pub(super) fn mean_loss(&self) -> Result<f64, Error> {
        self.program.mean_loss(self.step)
    }

    fn elapsed(&self) -> f64 {
        self.seconds + self.started.map_or(0.0, |started| started.elapsed().as_secs_f64())
    }

    pub(super) fn progress<'a>(&self, finished: Option<&'a Line>, saved: bool) -> Result<Progress<'a>, Error> {
        Ok(Progress {
            step: self.step,
            steps: self.steps(),
            epoch: self.step.saturating_sub(1) / self.epoch_steps() + 1,
            epochs: self.experiment().train.epochs,
            train: self.mean_loss()?,
            rate: self.program.pace(self.step.max(1) - 1).rate,
            seconds: self.elapsed(),
            finished,
            saved,
        })
    }

    /// Writes the checkpoints of a state that was just found finite.
    pub(super) fn save(&mut self, run: Option<&Run>) -> Result<(), Error> {
        let good = self.checkpoint()?;
        if let Some(run) = run {
            if let Some(best) = self.unsaved_best {
                let read = |name: &str| Ok(self.snapshot.read(name)?);
                run.save(run::BEST, &self.checkpoint_of(best, read)?)?;
                self.unsaved_best = None;
            }
            run.save(run::LAST, &good)?;
        }
        self.good = Some(good);
        Ok(())
    }
}
