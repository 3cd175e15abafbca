//! The training loop: shuffle, step, judge, keep.
//!
//! A run is a function of the experiment and the data: the order of samples depends on (seed, epoch) alone, so a
//! training that goes on from a checkpoint takes the very steps it would have taken.

use crate::case::{Case, Course};
use crate::checkpoint::{Best, Checkpoint, TOTAL};
use crate::dataset::Batches;
use crate::error::{Broken, Divergence, Error};
use crate::experiment::{Data, Experiment, Pacing};
use crate::field::{Field, Spread};
use crate::judge::Judge;
use crate::models::require;
use crate::optimiser::{AdamW, MEAN, SQUARE};
use crate::run::{self, Line, Run};
use crate::samples::Samples;
use crate::schedule::{Pace, Schedule};
use crate::step::{self, WEIGHTS};
use crate::stored::{self, ROWS, SAMPLES, SIDE, TIME};
use crate::symmetry;
use crate::trained::{self, Trained};
use lamo_tensor::{Device, Kept, PARAMETERS, Program};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The loss is looked at, and the watcher called, this often.
const PULSE: Duration = Duration::from_millis(250);
/// A mean loss beyond this is a divergence; predicting zero gives 1.
const LARGEST_LOSS: f64 = 1e6;
/// Set the order of times and of sides apart from the order of samples.
const TIMES: u64 = 0x7469_6d65;
const SIDES: u64 = 0x7369_6465;

/// How far a training has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Optimiser steps taken.
    pub step: usize,
    /// Optimiser steps in all.
    pub steps: usize,
    /// The epoch under way, counted from 1.
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
}

/// Called a few times a second and after every epoch; [`ControlFlow::Break`] ends the training after the step.
pub type Watch<'a> = &'a mut dyn FnMut(Progress<'_>) -> ControlFlow<()>;

/// How a training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All epochs are done.
    Finished,
    /// Someone asked to stop; the same training goes on from here.
    Stopped,
}

/// The order in which a sample meets its times: another one for every sample and epoch, which `index` counts.
pub fn order_of_times(count: usize, seed: u64, index: usize) -> Vec<usize> {
    let all: Vec<usize> = (0..count).collect();
    Batches::shuffled(&all, count, seed ^ TIMES, index as u64).order().to_vec()
}

/// A training under way.
pub struct Trainer {
    experiment: Experiment,
    case: Case,
    samples: Vec<usize>,
    /// The sides from which a batch may be seen, none where there is but one.
    sides: Vec<Vec<u32>>,
    adamw: AdamW,
    schedule: Schedule,
    program: Program,
    /// What a step holds, the samples apart.
    step_bytes: usize,
    judge: Judge,
    /// θ on its way to the judge.
    judged: Kept,
    /// The order of the samples in an epoch.
    order: Option<(usize, Batches)>,
    step: usize,
    best: Option<Best>,
    /// Seconds of earlier attempts, and since when one runs.
    seconds: f64,
    started: Option<Instant>,
    /// Seconds of all these that went to tests and checkpoints.
    paused: f64,
    /// Steps at which the recipe was changed.
    changed: Vec<usize>,
    /// The last state known to be sound.
    good: Option<Checkpoint>,
    /// Room for a state: the best one while it is not yet on disk, and where it stood.
    aside: [Kept; 3],
    better: Option<Moment>,
}

/// What a training keeps beside the experiment: θ and AdamW's moments.
const STATES: [&str; 3] = [PARAMETERS, MEAN, SQUARE];

/// Where a training stood when a state was set aside.
#[derive(Clone, Copy)]
struct Moment {
    step: usize,
    seconds: f64,
    paused: f64,
    total: f32,
    best: Option<Best>,
}

impl Trainer {
    /// Compiles the programs; nothing is trained yet.
    pub fn new(
        experiment: &Experiment,
        case: &Case,
        train: &Samples,
        test: &Samples,
        device: Device,
    ) -> Result<Trainer, Error> {
        case.check(train)?;
        case.check(test)?;
        for (samples, which) in [(train, "training"), (test, "test")] {
            let fits = samples.grid == case.domain.grid && samples.times == case.times();
            require(fits && !samples.targets.is_empty(), || {
                format!("the {which} samples: expected the grid and the times of the case, and targets, found others")
            })?;
        }
        let recipe = &experiment.train;
        let scalar = |fields: &[Field]| fields.iter().all(|field| field.width() == 1 && field.spread == Spread::Points);
        let fits = case.lattice && scalar(&case.inputs) && scalar(&case.outputs);
        require(!recipe.symmetries || fits, || {
            "train.symmetries: expected fields of one value at every point of a lattice, found others".to_owned()
        })?;
        let clip = (recipe.clip > 0.0).then_some(recipe.clip);
        let adamw = AdamW { weight_decay: recipe.weight_decay, clip, ..AdamW::default() };
        let batches = train.count.div_ceil(recipe.batch);
        let schedule = match recipe.schedule {
            Pacing::Onecycle => Schedule::OneCycle { peak: recipe.rate, steps: recipe.epochs * batches },
            Pacing::CosineByEpoch => Schedule::Cosine { peak: recipe.rate, steps: recipe.epochs },
            Pacing::Constant => Schedule::Constant { rate: recipe.rate },
        };
        let batch = trained::batch(experiment, device).min(test.count);
        let program = step::compile(experiment, case, train, device, &adamw)?;
        let room = |name: &str| Kept::room(&program, name);
        Ok(Trainer {
            judge: Judge::new(experiment, case, test, device, batch)?,
            judged: room(PARAMETERS)?,
            aside: [room(STATES[0])?, room(STATES[1])?, room(STATES[2])?],
            step_bytes: program.bytes().saturating_sub(stored::bytes(train)),
            program,
            experiment: experiment.clone(),
            case: case.clone(),
            samples: (0..train.count).collect(),
            sides: if recipe.symmetries { symmetry::sides(case.domain.grid) } else { Vec::new() },
            adamw,
            schedule,
            order: None,
            step: 0,
            best: None,
            seconds: 0.0,
            started: None,
            paused: 0.0,
            changed: Vec::new(),
            good: None,
            better: None,
        })
    }

    /// Goes back, or on, to a checkpoint of the same experiment.
    pub fn restore(&mut self, from: &Checkpoint) -> Result<(), Error> {
        let Trained { path, sections, parameters, case, experiment, .. } = &from.trained;
        let whole = [&from.mean, &from.square].iter().all(|moment| moment.len() == parameters.len());
        require(sections == self.program.sections() && parameters.len() == self.parameters() && whole, || {
            format!("{}: its parameters are not those of the experiment's model", path.display())
        })?;
        require(self.case.continues(case), || {
            format!("{}: expected a checkpoint of these data, found one of others; begin a new run", path.display())
        })?;
        let (epochs, asked) = (from.trained.step.div_ceil(self.epoch_steps()), self.experiment.train.epochs);
        require(epochs <= asked, || {
            format!("train.epochs: expected at least the {epochs} that are done or under way, found {asked}")
        })?;
        self.changed = from.trained.changed.clone();
        let place = Data { folder: self.experiment.data.folder.clone(), ..experiment.data.clone() };
        if self.experiment != (Experiment { data: place, ..experiment.clone() }) {
            self.changed.push(from.trained.step);
        }
        let states = [(PARAMETERS, &from.trained.parameters), (MEAN, &from.mean), (SQUARE, &from.square)];
        states.iter().for_each(|(name, values)| self.program.write(name, values));
        self.program.write(TOTAL, &[from.total]);
        (self.step, self.best, self.better) = (from.trained.step, from.best, None);
        (self.seconds, self.paused) = (from.trained.seconds, from.trained.paused);
        self.started = self.started.map(|_| Instant::now());
        Ok(())
    }

    /// The training as it stands.
    pub fn checkpoint(&self) -> Checkpoint {
        self.checkpoint_of(self.moment(), STATES.map(|name| self.program.read(name).to_vec()))
    }

    fn moment(&self) -> Moment {
        let Trainer { step, best, paused, .. } = *self;
        Moment { step, seconds: self.elapsed(), paused, total: self.program.read(TOTAL)[0], best }
    }

    fn checkpoint_of(&self, moment: Moment, [parameters, mean, square]: [Vec<f32>; 3]) -> Checkpoint {
        let Moment { step, seconds, paused, total, best } = moment;
        let trained = Trained {
            path: Default::default(),
            experiment: self.experiment.clone(),
            case: self.case.clone(),
            epoch: step / self.epoch_steps(),
            step,
            seconds,
            paused,
            step_bytes: Some(self.step_bytes),
            changed: self.changed.clone(),
            sections: self.program.sections().to_vec(),
            parameters,
        };
        Checkpoint { trained, mean, square, total, best }
    }

    /// The model as it stands.
    pub fn trained(&self) -> Trained {
        self.checkpoint().trained
    }

    /// Optimiser steps taken.
    pub fn step(&self) -> usize {
        self.step
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.program.read(PARAMETERS).len()
    }

    /// Optimiser steps of an epoch: every batch, and every time of it that is asked for by itself.
    pub fn epoch_steps(&self) -> usize {
        self.samples.len().div_ceil(self.experiment.train.batch) * self.case.steps()
    }

    /// Optimiser steps in all.
    pub fn steps(&self) -> usize {
        self.experiment.train.epochs * self.epoch_steps()
    }

    /// Trains to the end, or until `watch` says stop. The run folder, if there is one, gets a checkpoint every `saving`, sooner
    /// in the first minutes: a fifth of them is lost at most if the process is killed.
    pub fn run(&mut self, run: Option<&Run>, saving: Duration, watch: Watch<'_>) -> Result<Outcome, Error> {
        self.started = Some(Instant::now());
        let outcome = self.go_on(run, saving, watch);
        self.seconds = self.elapsed();
        self.started = None;
        outcome
    }

    fn go_on(&mut self, run: Option<&Run>, saving: Duration, watch: Watch<'_>) -> Result<Outcome, Error> {
        if let Some(run) = run {
            run.rewind(self.step / self.epoch_steps())?;
        }
        self.good = Some(self.checkpoint());
        if run.is_some_and(|run| self.step == self.steps() && !run::checkpoint(run.folder(), run::LAST).exists()) {
            self.save(run)?; // the best state was the last one, and alone was kept
        }
        let begun = Instant::now();
        let (mut pulse, mut saved) = (begun, begun);
        while self.step < self.steps() {
            self.advance();
            let ended = self.step.is_multiple_of(self.epoch_steps());
            let young = if saving == Duration::MAX { saving } else { Duration::from_secs(1) + begun.elapsed() / 4 };
            let due = saved.elapsed() >= saving.min(young) || self.step == self.steps();
            if !ended && !due && pulse.elapsed() < PULSE {
                continue;
            }
            self.sound_or_saved(run, due, watch)?;
            let line = ended.then(|| self.judge());
            if line.is_some_and(|line| line.test.is_some_and(|test| !test.is_finite())) {
                let (step, loss) = (self.step, self.mean_loss());
                self.undo(run)?;
                return Err(self.broken(Broken::Test, step, loss, None));
            }
            if let (Some(run), Some(line)) = (run, &line) {
                run.append(line)?;
            }
            let stop = watch(self.progress(line.as_ref())).is_break();
            if stop || due {
                self.sound_or_saved(run, !due, watch)?;
                let pause = Instant::now();
                self.save(run)?;
                saved = Instant::now();
                self.paused += (saved - pause).as_secs_f64();
            }
            if stop {
                return Ok(if self.step == self.steps() { Outcome::Finished } else { Outcome::Stopped });
            }
            pulse = Instant::now();
        }
        Ok(Outcome::Finished)
    }

    /// One optimiser step.
    fn advance(&mut self) {
        self.prepare();
        self.program.run();
        self.step += 1;
    }

    /// Tells the program what the next step is.
    fn prepare(&mut self) {
        let (epoch, place) = (self.step / self.epoch_steps(), self.step % self.epoch_steps());
        if place == 0 {
            self.program.write(TOTAL, &[0.0]);
        }
        let (batch, seed) = (self.experiment.train.batch, self.experiment.seed);
        if self.order.as_ref().is_none_or(|(known, _)| *known != epoch) {
            self.order = Some((epoch, Batches::shuffled(&self.samples, batch, seed, epoch as u64)));
        }
        let order = self.order.as_ref().map_or(&[][..], |(_, batches)| batches.order());
        let (number, time) = (place / self.case.steps(), place % self.case.steps());
        let chosen = &order[number * batch..((number + 1) * batch).min(order.len())];
        let places: Vec<usize> = (0..batch).map(|place| *chosen.get(place).unwrap_or(&chosen[0])).collect();
        let rows =
            |of: &dyn Fn(usize) -> usize| -> Vec<u32> { places.iter().map(|&sample| of(sample) as u32).collect() };
        let weights: Vec<f32> = (0..batch).map(|place| f32::from(place < chosen.len())).collect();
        let program = &mut self.program;
        program.write_index(SAMPLES, &rows(&|sample| sample));
        program.write(WEIGHTS, &weights);
        if !self.sides.is_empty() {
            let all: Vec<usize> = (0..self.sides.len()).collect();
            let side = Batches::shuffled(&all, 1, seed ^ SIDES, self.step as u64).order()[0];
            program.write_index(SIDE, &self.sides[side]);
        }
        if let Course::Times { count } = self.case.course {
            let index = |sample: usize| epoch * self.samples.len() + sample;
            let permuted = |sample: usize| order_of_times(count, seed, index(sample))[time];
            program.write_index(ROWS, &rows(&|sample| sample * count + permuted(sample)));
            let times: Vec<f32> = places.iter().map(|&sample| self.case.time(permuted(sample))).collect();
            program.write(TIME, &times);
        }
        let pace = self.pace(self.step);
        self.adamw.pace(&mut self.program, self.step, pace);
    }

    /// The pace of a step: one value for all times of a batch.
    fn pace(&self, step: usize) -> Pace {
        match self.experiment.train.schedule {
            Pacing::CosineByEpoch => self.schedule.at(step / self.epoch_steps()),
            Pacing::Onecycle | Pacing::Constant => self.schedule.at(step / self.case.steps()),
        }
    }

    /// The end of an epoch: its losses, and now and then the test error.
    fn judge(&mut self) -> Line {
        let epoch = self.step / self.epoch_steps();
        let due = epoch.is_multiple_of(self.experiment.train.evaluate) || self.step == self.steps();
        let pause = Instant::now(); // what was launched before has ended
        let test = due.then(|| self.test_error());
        self.paused += pause.elapsed().as_secs_f64();
        let better = |test: &f64| test.is_finite() && self.best.is_none_or(|best| *test < best.test);
        if let Some(test) = test.filter(better) {
            self.best = Some(Best { epoch, test });
            self.better = Some(self.moment());
            self.set_aside();
        }
        let rate = self.pace(self.step - 1).rate;
        Line { epoch, step: self.step, train: self.mean_loss(), test, rate, seconds: self.elapsed() }
    }

    /// Mean relative L2 over the test samples, all times of a sample together.
    pub fn test_error(&mut self) -> f64 {
        self.judged.take(&self.program);
        self.judge.error(&self.judged)
    }

    /// Mean loss per sample and time of the epoch so far.
    fn mean_loss(&self) -> f64 {
        let done = (self.step.max(1) - 1) % self.epoch_steps() + 1;
        let (batches, rest) = (done / self.case.steps(), done % self.case.steps());
        let batch = self.experiment.train.batch;
        let samples = |batches: usize| (batches * batch).min(self.samples.len());
        let seen = samples(batches) * self.case.steps() + (samples(batches + 1) - samples(batches)) * rest;
        f64::from(self.program.read(TOTAL)[0]) / (seen * self.case.windows()) as f64
    }

    fn elapsed(&self) -> f64 {
        self.seconds + self.started.map_or(0.0, |started| started.elapsed().as_secs_f64())
    }

    fn progress<'a>(&self, finished: Option<&'a Line>) -> Progress<'a> {
        Progress {
            step: self.step,
            steps: self.steps(),
            epoch: self.step.saturating_sub(1) / self.epoch_steps() + 1,
            epochs: self.experiment.train.epochs,
            train: self.mean_loss(),
            rate: self.pace(self.step.max(1) - 1).rate,
            seconds: self.elapsed(),
            finished,
        }
    }

    /// Keeps the state, which has just been found sound.
    fn save(&mut self, run: Option<&Run>) -> Result<(), Error> {
        let good = self.checkpoint();
        if let Some(run) = run {
            if let Some(better) = self.better {
                let states = [0, 1, 2].map(|state: usize| self.aside[state].read());
                run.keep(run::BEST, &self.checkpoint_of(better, states))?;
                self.better = None;
            }
            run.keep(run::LAST, &good)?;
        }
        self.good = Some(good);
        Ok(())
    }

    /// What [`Self::sound`] says; when that is bad, the last good state is kept first.
    fn sound_or_saved(&mut self, run: Option<&Run>, close: bool, watch: Watch<'_>) -> Result<(), Error> {
        match self.sound(close, watch) {
            Ok(()) => Ok(()),
            Err(broken) => {
                self.undo(run)?;
                Err(broken)
            }
        }
    }

    /// Goes back to the last good state, and keeps it.
    fn undo(&mut self, run: Option<&Run>) -> Result<(), Error> {
        let good = self.good.clone().expect("a run begins with a sound state");
        self.restore(&good)?;
        self.save(run)
    }

    /// The sentence for a step, after which the state is the last good one again.
    fn broken(&self, broken: Broken, step: usize, loss: f64, culprit: Option<String>) -> Error {
        let epoch = (step - 1) / self.epoch_steps() + 1;
        let rate = self.pace(step - 1).rate;
        Error::Diverged(Divergence { broken, step, epoch, loss, culprit, good: self.step, rate })
    }

    fn is_sound(&self) -> bool {
        let loss = self.mean_loss();
        loss.is_finite() && loss < LARGEST_LOSS
    }

    /// Fails if the losses of the epoch, or on a `close` look the parameters, are no numbers; the state then is the last
    /// good one.
    fn sound(&mut self, close: bool, watch: Watch<'_>) -> Result<(), Error> {
        let finite = |program: &Program| program.read(PARAMETERS).iter().all(|value| value.is_finite());
        if self.is_sound() && (!close || finite(&self.program)) {
            return Ok(());
        }
        let (broken, loss) = (self.step, self.mean_loss());
        let good = self.good.clone().expect("a run begins with a sound state");
        let found = self.find(&good, broken, watch)?;
        let culprit = found.and_then(|_| self.culprit());
        let (step, loss) = found.unwrap_or((broken, loss));
        self.restore(&good)?;
        let sound = loss.is_finite() && loss < LARGEST_LOSS;
        Err(self.broken(if sound { Broken::Parameter } else { Broken::Loss }, step, loss, culprit))
    }

    fn set_aside(&mut self) {
        self.aside.iter_mut().for_each(|kept| kept.take(&self.program));
    }

    /// Goes to the first step after `good` with an unsound loss, else to `broken`, the state before it set aside: which it
    /// is, and its loss. None if someone asks to stop.
    fn find(&mut self, good: &Checkpoint, broken: usize, watch: Watch<'_>) -> Result<Option<(usize, f64)>, Error> {
        self.restore(good)?;
        let mut pulse = Instant::now();
        while self.step < broken {
            self.set_aside();
            self.advance();
            if !self.is_sound() || self.step == broken {
                return Ok(Some((self.step, self.mean_loss())));
            }
            if pulse.elapsed() >= PULSE {
                if watch(self.progress(None)).is_break() {
                    break;
                }
                pulse = Instant::now();
            }
        }
        Ok(None)
    }

    /// The first kernel of the last step whose result is not finite; the state before it is set aside.
    fn culprit(&mut self) -> Option<String> {
        self.aside.iter().for_each(|kept| kept.give(&mut self.program));
        self.program.write(TOTAL, &[0.0]);
        self.step -= 1;
        self.prepare();
        let told = self.program.run_checked().err()?;
        Some(told.split(": r0").next().unwrap_or_default().to_owned()) // without its arithmetic
    }
}
