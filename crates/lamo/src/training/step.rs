//! The training step as one program: gather the batch, predict, loss, gradient, update.
//!
//! The training samples live inside the program; the inputs of a step choose the samples of the batch. The last batch of
//! an epoch may be smaller: it is filled with copies of a sample, with weight 0. The order of samples depends only on
//! (seed, epoch), so a resumed training takes the steps of an uninterrupted one.
//!
//! Samples of different sizes have a program for each bucket of sizes ([`Buckets`]). The program of the current batch holds the
//! states; they move to the next program on the device.

use super::average::{self, Average};
use super::bucket_programs::BucketPrograms;
use super::buckets::{Batch, Bucket, Buckets};
use super::loss;
use super::muon::Muon;
use super::optimiser::{AdamW, Optimiser};
use super::points::{self, Drawing};
use super::resident::{self, ROWS, Resident, SAMPLES, Stored, TIME};
use super::rollout::{Noise, predict, rolled_out, starts};
use super::schedule::{Pace, Schedule};
use super::symmetry::Turning;
use crate::data::Samples;
use crate::error::{Error, Kind, Refusal, bounded, require};
use crate::experiment::{self, Experiment, Loss, Pacing, Symmetries, Training};
use crate::files::memory;
use crate::network::layers::mask::{filled_share, real_only};
use crate::network::models::Settings;
use crate::network::{Input, Parameters, models};
use crate::random;
use crate::task::{Moments, Task};
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, Program, RANDOM_WORDS, Random, Tensor};
use std::borrow::Cow;

/// States of the optimiser beside each parameter.
const MOMENTS: usize = 2;
/// Momentum of Muon.
const MOMENTUM: f64 = 0.95;
/// Epochs between two halvings of the rate.
const HALVED_AFTER: usize = 100;
/// Input: weight of each sample of the batch, 0 for copies that fill it.
const WEIGHTS: &str = "weights";
/// Input: words from which the random numbers of a step follow; absent where the model draws none.
const RANDOM: &str = "random";
/// State: the losses of the epoch so far, summed.
pub(super) const TOTAL: &str = "train.total";
/// Makes dropout independent of the order of samples and of symmetries.
const DROPS: u64 = 0x6472_6f70;

/// The compiled step of a training, with all that decides what each step does.
pub struct StepProgram {
    /// The program of the current bucket, which holds the states.
    pub(super) program: Program,
    pub(super) experiment: Experiment,
    pub(super) task: Task,
    programs: BucketPrograms,
    facts: Facts,
    /// The symmetries under which samples are shown, where they are on.
    turning: Option<Turning>,
    /// The points that are drawn of the samples of each bucket; `None` where all are taken.
    drawings: Vec<Option<Drawing>>,
    optimiser: Optimiser,
    schedule: Schedule,
    /// The batches of an epoch.
    order: Option<(usize, Vec<Batch>)>,
    /// Whether the program has the input [`RANDOM`].
    draws: bool,
    bytes: usize,
}

impl StepProgram {
    /// Compiles the step, writes the samples into it, and draws the first parameters.
    pub fn new(experiment: &Experiment, task: &Task, train: &Samples, device: Device) -> Result<StepProgram, Error> {
        let recipe = &experiment.train;
        let group = recipe.symmetries.then(|| Symmetries::of(experiment, task, "train.symmetries")).transpose()?;
        let turning = group.map(|group| Turning::new(group, task));
        let regular = task.spacing(task.grid, &train.positions).is_some();
        require(recipe.loss != Loss::H1 || regular, || {
            Refusal::new("train.loss = h1", "a regular line, plane or volume", format!("a {}", task.grid))
                .advise("use relative-l2")
        })?;
        let optimiser = optimiser(recipe);
        let buckets = match train.is_ragged() {
            true => Buckets::new(&train.sizes(), recipe.batch),
            false => Buckets::one(train.grid.points(), train.count, recipe.batch),
        };
        require(!train.is_ragged() || turning.is_none(), || {
            Refusal::new("train.symmetries", "false for samples of different sizes", "true")
        })?;
        points::check(experiment, train)?;
        let drawings = Drawing::of_buckets(experiment, train, &buckets, task.time.is_input())?;
        let batches = buckets.batches();
        let schedule = match recipe.schedule {
            Pacing::Onecycle => Schedule::OneCycle { peak: recipe.rate, steps: recipe.epochs * batches },
            Pacing::CosineByEpoch => Schedule::Cosine { peak: recipe.rate, steps: recipe.epochs },
            Pacing::StepByEpoch => Schedule::Halving { first: recipe.rate, interval: HALVED_AFTER },
            Pacing::Constant => Schedule::Constant { rate: recipe.rate },
        };
        let programs = BucketPrograms::new(train, buckets);
        let stored = programs.stored(train, programs.active());
        let facts = Facts { units: units(&train.targets, train.outputs), count: train.count, device };
        let shown = (&stored, turning.as_ref(), drawings[programs.active()].as_ref());
        let (program, draws) = bounded(|| compile(experiment, task, shown, &facts, &optimiser))?;
        Ok(StepProgram {
            bytes: program.bytes().saturating_sub(stored.bytes()),
            program,
            experiment: experiment.clone(),
            task: task.clone(),
            programs,
            facts,
            turning,
            drawings,
            optimiser,
            schedule,
            order: None,
            draws,
        })
    }

    /// The compiled program.
    pub fn program(&mut self) -> &mut Program {
        &mut self.program
    }

    /// Bytes that a step holds on the device, without the samples; of ragged samples, a step of the largest.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Optimiser steps of an epoch: one per batch, or one per batch and time where the model predicts each time by itself.
    pub fn epoch_steps(&self) -> usize {
        self.programs.buckets.batches() * self.task.time.turns()
    }

    /// Programs of a training: one for each bucket of sizes.
    pub fn programs(&self) -> usize {
        self.programs.buckets.all.len()
    }

    /// Points that the programs of an epoch compute, those that fill up samples and batches included.
    pub fn padded_points(&self) -> usize {
        let batch = self.experiment.train.batch;
        let bucket = |(bucket, drawing): (&Bucket, &Option<Drawing>)| {
            let points = drawing.as_ref().map_or(bucket.points, |drawing| drawing.points);
            bucket.samples.len().div_ceil(batch) * batch * points
        };
        self.programs.buckets.all.iter().zip(&self.drawings).map(bucket).sum()
    }

    /// For each of several buckets, the first step of the first epoch that its program takes.
    pub(super) fn first_steps(&self) -> Vec<usize> {
        if self.programs() == 1 {
            return Vec::new();
        }
        let batches = self.programs.buckets.epoch(self.experiment.seed, 0);
        let first = |bucket: usize| batches.iter().position(|batch| batch.bucket == bucket);
        (0..self.programs()).filter_map(first).map(|batch| batch * self.task.time.turns()).collect()
    }

    /// Takes step number `step`, counted from 0. On a GPU it may still be running when this returns.
    pub fn run(&mut self, step: usize) -> Result<(), Error> {
        self.prepare(step)?;
        Ok(self.program.try_run()?)
    }

    /// Writes the inputs of step number `step` into the program.
    pub(super) fn prepare(&mut self, step: usize) -> Result<(), Error> {
        let turns = self.task.time.turns();
        let (epoch, place) = (step / self.epoch_steps(), step % self.epoch_steps());
        let (batch, seed) = (self.experiment.train.batch, self.experiment.seed);
        if self.order.as_ref().is_none_or(|(known, _)| *known != epoch) {
            self.order = Some((epoch, self.programs.buckets.epoch(seed, epoch as u64)));
        }
        let (number, turn) = (place / turns, place % turns);
        let Batch { bucket, samples: chosen } = self.batches_of(epoch)[number].clone();
        self.enter(bucket)?;
        if place == 0 {
            self.program.try_write(TOTAL, &[0.0])?;
        }
        let places: Vec<usize> = chosen.iter().map(|&sample| self.programs.buckets.place(sample)).collect();
        let fill =
            |list: &[usize]| -> Vec<usize> { (0..batch).map(|place| *list.get(place).unwrap_or(&list[0])).collect() };
        let (samples, places) = (fill(&chosen), fill(&places));
        let weights: Vec<f32> = (0..batch).map(|place| f32::from(place < chosen.len())).collect();
        let program = &mut self.program;
        program.try_write_index(SAMPLES, &places.iter().map(|&place| place as u32).collect::<Vec<_>>())?;
        program.try_write(WEIGHTS, &weights)?;
        if let Some(turning) = &self.turning {
            turning.write(program, &turning.draw(batch, seed, step))?;
        }
        if self.draws {
            program.try_write(RANDOM, &random::words::<RANDOM_WORDS>(seed ^ DROPS, step as u64))?;
        }
        let index: Vec<usize> = samples.iter().map(|sample| epoch * self.facts.count + sample).collect();
        let asked = self.task.time.ask(&places, turn, seed, &index);
        if let Some(drawing) = &self.drawings[bucket] {
            let rows = asked.as_ref().map(|asked| asked.rows.as_slice());
            drawing.write(program, &places, rows, (seed, step))?;
        }
        if let Some(asked) = &asked {
            if self.drawings[bucket].is_none() {
                program.try_write_index(ROWS, &asked.rows)?;
            }
            program.try_write(TIME, &asked.times)?;
        }
        let pace = self.pace(step);
        self.optimiser.pace(&mut self.program, step, pace)?;
        Ok(())
    }

    /// The batches of an epoch.
    fn batches_of(&self, epoch: usize) -> Cow<'_, [Batch]> {
        match &self.order {
            Some((known, batches)) if *known == epoch => Cow::Borrowed(batches),
            _ => Cow::Owned(self.programs.buckets.epoch(self.experiment.seed, epoch as u64)),
        }
    }

    /// Lets the program of a bucket take the next step.
    fn enter(&mut self, bucket: usize) -> Result<(), Error> {
        let StepProgram { programs, program, experiment, task, facts, optimiser, drawings, .. } = self;
        programs.enter(bucket, program, |stored| {
            let shown = (stored, None, drawings[bucket].as_ref());
            let (next, _) = bounded(|| compile(experiment, task, shown, facts, optimiser))?;
            Ok(next)
        })
    }

    /// Rate and momentum of a step: one value for all turns of a batch.
    pub(super) fn pace(&self, step: usize) -> Pace {
        match self.experiment.train.schedule {
            Pacing::CosineByEpoch | Pacing::StepByEpoch => self.schedule.at(step / self.epoch_steps()),
            Pacing::Onecycle | Pacing::Constant => self.schedule.at(step / self.task.time.turns()),
        }
    }

    /// Mean loss per sample and time of the epoch so far, after `step` steps.
    pub(super) fn mean_loss(&self, step: usize) -> Result<f64, Error> {
        let turns = self.task.time.turns();
        let (epoch, place) = ((step.max(1) - 1) / self.epoch_steps(), (step.max(1) - 1) % self.epoch_steps());
        let (batches, rest) = ((place + 1) / turns, (place + 1) % turns);
        let epoch = self.batches_of(epoch);
        let begun = if rest > 0 { epoch[batches].samples.len() * rest } else { 0 };
        let seen = epoch[..batches].iter().map(|batch| batch.samples.len()).sum::<usize>() * turns + begun;
        Ok(f64::from(self.program.try_read(TOTAL)?[0]) / (seen * self.task.time.windows()) as f64)
    }
}

/// The optimiser that a recipe asks for.
fn optimiser(recipe: &Training) -> Optimiser {
    let clip = (recipe.clip > 0.0).then_some(recipe.clip);
    let coupled = recipe.optimiser == experiment::Optimiser::Adam;
    let muon = recipe.optimiser == experiment::Optimiser::Muon;
    Optimiser {
        adamw: AdamW { weight_decay: recipe.weight_decay, clip, coupled, ..AdamW::default() },
        muon: muon.then_some(Muon {
            momentum: MOMENTUM,
            rate: recipe.matrix_rate,
            convolutions: recipe.matrix_convolutions,
        }),
        average: (recipe.average > 0.0).then_some(Average { decay: recipe.average }),
    }
}

/// What all buckets have in common.
struct Facts {
    /// The unit in which the errors of each output count.
    units: Vec<f32>,
    /// Training samples.
    count: usize,
    device: Device,
}

fn compile(
    experiment: &Experiment,
    task: &Task,
    (stored, turning, drawing): (&Stored<'_>, Option<&Turning>, Option<&Drawing>),
    facts: &Facts,
    optimiser: &Optimiser,
) -> Result<(Program, bool), Error> {
    let (batch, windows, train) = (experiment.train.batch, task.time.windows(), stored.samples());
    let grid = drawing.map_or(train.grid, |drawing| Grid::Cloud { points: drawing.points });
    let advised = |refusal: Refusal| if drawing.is_some() { refusal.advise("leave train.points out") } else { refusal };
    let settings = &on_grid(experiment, task, grid).map_err(advised)?;
    let task = &task.on(grid);
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let model = models::find(&experiment.model.name)?.build(&parameters, task, settings)?;
    let resident = Resident::declare_some(&graph, stored, batch, turning, drawing);
    let given = resident.functions(train.functions);
    let time = resident.time(task);
    let mask = resident.mask.map(|mask| repeated(mask, windows));
    let (positions, functions, target) = task.time.training_pair(
        resident.positions,
        (given, &|given, step| task.beside_at(given, step)),
        || resident.targets(),
        || resident.targets_of_rows(),
        task.normalisers.outputs.as_ref(),
    );
    let weights = graph.input(WEIGHTS, [batch]);
    parameters.weigh_samples(weights);
    let random = Random::new(&graph, RANDOM);
    parameters.draw_from(&random);
    let noise = Noise::of(task, batch, experiment.train.noise);
    let noisy = noise.map(|noise| (noise, noise.draw(&random)));
    let shown = |windows| noisy.map_or(windows, |(noise, values)| noise.on(values, windows, train.outputs));
    let one_by_one = parameters.has_changing_states();
    let every = if experiment.train.teacher_forcing { experiment.train.rollout.min(windows) } else { windows };
    let found = match (given, functions) {
        (Some(given), Some(functions)) if task.time.past() > 0 && every > 1 => {
            let starts = match every == windows && task.driving() == 0 {
                true => shown(given),
                false => shown(starts(functions, batch, every)),
            };
            let positions = if every == windows { resident.positions } else { positions };
            let entering = |step: usize| task.entering_at(given, step);
            rolled_out(model.as_ref(), task, ([positions, starts], mask, &entering), (batch, every), one_by_one)
        }
        _ => {
            let passes = if one_by_one { windows } else { 1 };
            let functions = functions.map(shown);
            let input = Input { positions, functions, time, mask };
            task.found(predict(model.as_ref(), &input, passes), positions, functions)
        }
    };
    let prediction = real_only(task.decoded(found, mask), mask); // targets are 0 where a sample is filled up
    parameters.store_states();
    check_batch(&experiment.model.name, parameters.least_batch(), [batch, facts.count])?;
    let kind = experiment.train.loss;
    let (prediction, target) = if kind.counts_deviations() || (experiment.train.balanced && train.outputs > 1) {
        let units = graph.constant(&facts.units, [train.outputs]);
        (prediction / units, target / units)
    } else {
        (prediction, target)
    };
    let spacing = task.spacing(task.grid, &train.positions);
    let each = loss_of_each(kind, task.grid, spacing.as_deref(), prediction, target);
    let each = match mask {
        Some(mask) if kind.counts_deviations() => each / filled_share(mask),
        _ => each,
    };
    let loss = (each.reshape([windows, batch]) * weights).sum_all();
    let total = graph.state(TOTAL, [1]);
    graph.assign(total, total + loss);
    optimiser.minimise(&graph, loss);
    let mut program = Program::compile_on(&graph, facts.device, experiment.precision)?;
    require_memory(&experiment.model.name, &program)?;
    parameters.try_initialise(&mut program, experiment.seed)?;
    average::begin(&mut program)?;
    resident::fill(&mut program, task, stored, train.functions > 0)?;
    Ok((program, random.is_used()))
}

/// Settings of the model in a program for another number of points: what follows from the grid stays that of the task.
pub(super) fn on_grid(experiment: &Experiment, task: &Task, grid: Grid) -> Result<Settings, Refusal> {
    let settings = &experiment.model.settings;
    if grid == task.grid {
        return Ok(settings.clone());
    }
    let row = models::find(&experiment.model.name)?;
    row.moved(settings, [task.grid, grid]).ok_or_else(|| {
        Refusal::new(format!("model {}", row.name), "one size for all samples", format!("{} and {grid}", task.grid))
    })
}

/// `[windows · batch, points]` the mask of every window of a batch.
fn repeated(mask: Tensor<'_>, windows: usize) -> Tensor<'_> {
    let [batch, points] = mask.dims();
    match windows {
        1 => mask,
        _ => mask.reshape([1, batch, points]).broadcast_to([windows, batch, points]).reshape([windows * batch, points]),
    }
}

/// Refuses batches of fewer samples than the model asks for.
fn check_batch(model: &str, least: usize, [batch, samples]: [usize; 2]) -> Result<(), Refusal> {
    let reason =
        format!("{least}: a norm of model {model} sees one value of each channel in a sample, and needs a deviation");
    require(batch >= least, || Refusal::new("train.batch", format!("at least {reason}"), batch.to_string()))?;
    require(samples >= least, || Refusal::new("training samples", format!("at least {reason}"), samples.to_string()))
}

/// Refuses states that do not fit into memory beside the program: the last good ones, those of a checkpoint, and its file.
fn require_memory(model: &str, program: &Program) -> Result<(), Refusal> {
    let parameters: usize = program.sections().iter().map(|section| section.shape.count()).sum();
    let copies = 1 + MOMENTS + usize::from(average::is_kept(program));
    let states = parameters.saturating_mul(copies * size_of::<f32>()) as u64;
    memory::require(states.saturating_mul(3)).map_err(|reason| {
        let thing = format!("model {model}: {parameters} parameters and their checkpoints");
        Refusal::about(thing, reason.to_string()).advise("use smaller sizes").of(Kind::OutOfSpace)
    })
}

/// `[batch · windows]` the loss of each sample and window.
fn loss_of_each<'g>(
    kind: Loss,
    grid: Grid,
    spacing: Option<&[f64]>,
    prediction: Tensor<'g>,
    target: Tensor<'g>,
) -> Tensor<'g> {
    match (kind, grid, spacing) {
        (Loss::RelativeL2WithGradient, Grid::Plane { rows, columns }, _) => {
            let [batch, _, _] = prediction.dims();
            let plane = [batch, rows, columns];
            loss::relative_l2_with_gradient_each(prediction.reshape(plane), target.reshape(plane))
        }
        (Loss::RelativeL2PerChannel, ..) => loss::relative_l2_per_channel(prediction, target),
        (Loss::Mse, ..) => loss::mean_square(prediction, target),
        (Loss::L1, ..) => loss::mean_absolute(prediction, target),
        (Loss::H1, _, Some(spacing)) => loss::relative_h1(prediction, target, grid, spacing),
        _ => loss::relative_l2(prediction, target),
    }
}

/// The unit in which the errors of each output count.
fn units(targets: &[f32], outputs: usize) -> Vec<f32> {
    let of = |output: usize| Moments::of(targets.iter().skip(output).step_by(outputs).map(|&value| f64::from(value)));
    (0..outputs).map(|output| of(output).unit() as f32).collect()
}
