//! Training fixtures: a few optimiser steps of a tiny model, from the samples to the prediction with the new parameters.
//! Our own training step takes them; it is given the authors' samples, first parameters and order.

use super::super::{Arguments, Comparison, DOUBLE, Error, GRADIENT, LOSS, OUTPUT, distance, double, single};
use super::recipe::{compare_encoded, compare_normaliser};
use crate::data::dataset::Batches;
use crate::data::{Samples, state_dict};
use crate::error;
use crate::experiment::{Experiment, Loss, Normalised, Optimiser, Pacing, Request, Training};
use crate::network::models::{Authored, Choice, MODELS};
use crate::run::Operator;
use crate::task::Task;
use crate::task::time::order_of_times;
use crate::training::StepProgram;
use crate::training::optimiser::GRADIENT_NORM;
use crate::training::schedule::Schedule;
use lamo_tensor::{PARAMETERS, Precision};

/// Allowed absolute error of a parameter after the steps.
const PARAMETER: f64 = 2e-6;
/// State of the training step: the losses of the epoch so far, summed.
const TOTAL: &str = "train.total";
/// Number of seeds that are searched for one that draws the order of the fixture.
const SEEDS: u64 = 10_000;

/// A training fixture, with an experiment that does what its script did.
struct Script<'a> {
    fixture: &'a Arguments<'a>,
    experiment: Experiment,
    /// The task that the model's class was made for.
    task: Task,
}

/// A training in progress.
struct Steps {
    program: StepProgram,
    /// Parameters and task, for predictions.
    operator: Operator,
    taken: usize,
}

impl<'a> Script<'a> {
    /// `count` samples in batches of `batch`. The number of epochs follows from the length of the fixture's schedule.
    fn new(fixture: &'a Arguments<'a>, io: &Comparison, [count, batch]: [usize; 2], loss: Loss) -> Result<Self, Error> {
        if count * batch == 0 {
            return Err(fixture.malformed("has no samples".to_owned()).into());
        }
        let (model, task) = translated(fixture, io)?;
        let request = Request { model: Some(&model.name), ..Request::default() };
        let refused = |refusal| Error::Model { path: fixture.path.to_owned(), refusal };
        let mut experiment = request.resolve().map_err(refused)?;
        let [rate] = fixture.reals(["lr"])?;
        experiment.train = Training {
            epochs: fixture.number("onecycle_total_steps")? / count.div_ceil(batch),
            batch,
            rate,
            schedule: Pacing::Onecycle,
            optimiser: Optimiser::Adamw,
            weight_decay: fixture.table["weight_decay"].as_f64().unwrap_or(1e-5),
            clip: fixture.table["clip"].as_f64().unwrap_or(0.0),
            loss,
            symmetries: false,
            balanced: false,
            ..experiment.train
        };
        experiment.data.normalise = Vec::new();
        Ok(Script { fixture, experiment: Experiment { model, precision: io.target.1, ..experiment }, task })
    }

    fn failed(&self, error: impl Into<error::Error>) -> Error {
        Error::Training { path: self.fixture.path.to_owned(), error: error.into() }
    }

    /// Samples on the points `pos` of the fixture.
    fn samples(
        &self,
        io: &Comparison,
        [functions, times, outputs]: [usize; 3],
        inputs: Vec<f32>,
        targets: Vec<f32>,
    ) -> Result<Samples, Error> {
        let (grid, space) = (self.task.grid, self.task.space);
        let count = targets.len() / (times * grid.points() * outputs).max(1);
        let positions = single(io.doubles("pos", grid.points() * space)?);
        let samples =
            Samples { count, grid, offsets: Vec::new(), space, positions, functions, inputs, times, outputs, targets };
        samples.check().map_err(|refusal| self.failed(refusal))?;
        Ok(samples)
    }

    /// The order in which the first epoch takes samples.
    fn order(&self, seed: u64, count: usize) -> Vec<usize> {
        let samples: Vec<usize> = (0..count).collect();
        Batches::shuffled(&samples, self.experiment.train.batch, seed, 0).order().to_vec()
    }

    /// Compiles the step with the parameters `p0.*` of the fixture. It takes the samples from the first to the last.
    fn start(&self, io: &Comparison, task: &Task, samples: &Samples) -> Result<Steps, Error> {
        let train = placed(samples, &self.order(self.experiment.seed, samples.count));
        let mut program = StepProgram::new(&self.experiment, task, &train, io.target.0).map_err(|e| self.failed(e))?;
        let sections = program.program().sections().to_vec();
        let parameters = single(&io.parameters("p0", &sections)?);
        program.program().write(PARAMETERS, &parameters);
        let Experiment { model, precision, train: Training { batch, .. }, .. } = self.experiment.clone();
        let operator =
            Operator { model, task: task.clone(), precision, batch, sections, parameters, states: Default::default() };
        Ok(Steps { program, operator, taken: 0 })
    }
}

impl Steps {
    /// Takes a step and returns its loss, and the norm of its gradient before clipping.
    fn take(&mut self, script: &Script<'_>) -> Result<[f64; 2], Error> {
        let read = |program: &mut StepProgram, name: &str| f64::from(program.program().read(name)[0]);
        let first = self.taken.is_multiple_of(self.program.epoch_steps());
        let before = if first { 0.0 } else { read(&mut self.program, TOTAL) };
        self.program.run(self.taken).map_err(|error| script.failed(error))?;
        self.taken += 1;
        self.operator.parameters = self.program.program().read(PARAMETERS).to_vec();
        Ok([read(&mut self.program, TOTAL) - before, read(&mut self.program, GRADIENT_NORM)])
    }

    /// Compares the parameters with those of the fixture.
    fn compare(&self, io: &mut Comparison, prefix: &str) -> Result<(), Error> {
        if io.target.1 != Precision::F32 {
            // AdamW divides each gradient by its own size, so a gradient of pure rounding error moves its parameter by the
            // whole learning rate. The losses and predictions are compared in every precision.
            return Ok(());
        }
        for section in &self.operator.sections {
            let found = double(&self.operator.parameters[section.range()]);
            io.compare_absolute("parameters", &format!("{prefix}.{}", section.name), &found, PARAMETER)?;
        }
        Ok(())
    }

    /// `[count, times, points, outputs]`
    fn predict(&self, script: &Script<'_>, io: &Comparison, samples: &Samples) -> Result<Vec<f32>, Error> {
        self.operator.predict(samples, io.target.0).map_err(|error| script.failed(error))
    }
}

/// The authors' class as one of our models, and the task that it was made for.
fn translated(fixture: &Arguments<'_>, io: &Comparison) -> Result<(Choice, Task), Error> {
    let config = &fixture.table["config"];
    let mut classes = MODELS.iter().flat_map(|row| row.translate.iter().map(move |class| (row.name, class)));
    let (name, (_, translate)) = classes
        .find(|(_, (class, _))| config["variant"] == *class)
        .ok_or_else(|| fixture.malformed(format!("names the unknown variant {}", config["variant"])))?;
    let refused = |refusal| Error::Model { path: fixture.path.to_owned(), refusal };
    let translated = translate(&Authored { tables: config, points: first_axis(io, "pos")? }).map_err(refused)?;
    Ok((Choice { name: name.to_owned(), settings: translated.settings }, translated.task))
}

/// Reorders the samples so that `order` takes them from the first to the last.
fn placed(samples: &Samples, order: &[usize]) -> Samples {
    let permuted = |values: &[f32]| {
        let length = values.len() / samples.count;
        let mut permuted = vec![0.0; values.len()];
        for (place, sample) in order.iter().zip(values.chunks_exact(length.max(1))) {
            permuted[place * length..(place + 1) * length].copy_from_slice(sample);
        }
        permuted
    };
    Samples { inputs: permuted(&samples.inputs), targets: permuted(&samples.targets), ..samples.clone() }
}

/// Length of the first axis of an array: samples or points.
fn first_axis(io: &Comparison, key: &str) -> Result<usize, state_dict::Error> {
    Ok(io.tensor(key)?.0.first().copied().unwrap_or_default())
}

/// `[outer, inner, last]` as `[outer, last, inner]`.
fn last_before_inner<T: Copy>(values: &[T], inner: usize, last: usize) -> Vec<T> {
    let block = |block: &[T]| (0..last * inner).map(|n| block[n % inner * last + n / inner]).collect::<Vec<_>>();
    values.chunks_exact(inner * last).flat_map(block).collect()
}

/// Compares the loss of a step and the norm of its gradient with a row of the fixture's log: its first and last column.
fn compare_log(io: &mut Comparison, log: &str, step: usize, [loss, norm]: [f64; 2]) -> Result<(), Error> {
    let (dims, values) = io.tensor(log)?;
    let columns = dims.last().map_or(1, |columns| *columns.max(&1));
    let Some(&[expected_loss, .., expected_norm]) = values.chunks_exact(columns).nth(step) else {
        return Err(state_dict::Error::malformed(&io.path, format!("has no row {step} in {log}")).into());
    };
    io.record("loss", &format!("{log} of step {step}"), distance(&[loss], &[expected_loss], 0.0), LOSS);
    io.record("gradient", &format!("norm of step {step}"), distance(&[norm], &[expected_norm], 0.0), GRADIENT);
    Ok(())
}

/// Relative L2 of whole samples, and of each of their times, both summed.
fn sums(samples: &Samples, prediction: &[f32]) -> [f64; 2] {
    let by_time = Samples { count: samples.count * samples.times, times: 1, ..samples.clone() };
    [samples, &by_time].map(|samples| samples.errors(prediction).iter().sum())
}

/// Steps on normalised samples with the loss of field and slopes.
pub(super) fn darcy(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let batch = Arguments { path: fixture.path, table: &fixture.table["config"]["inputs"] }.number("B")?;
    let (coefficients, solutions) = (single(&io.tensor("coeff")?.1), single(&io.tensor("sol")?.1));
    let count = first_axis(io, "sol")?;
    let mut script = Script::new(fixture, io, [count, batch], Loss::RelativeL2WithGradient)?;
    script.experiment.data.normalise = vec![Normalised::Inputs, Normalised::Outputs];
    let samples = script.samples(io, [1, 1, 1], coefficients, solutions)?;
    let task = script.experiment.task(&samples).map_err(|error| script.failed(error))?;
    let [inputs, outputs] = [&task.normalisers.inputs, &task.normalisers.outputs];
    if let (Some(inputs), Some(outputs)) = (inputs, outputs) {
        compare_normaliser(io, inputs, &samples.inputs, ["x_mean", "x_std"])?;
        compare_normaliser(io, outputs, &samples.targets, ["y_mean", "y_std"])?;
    }
    let mut steps = script.start(io, &task, &samples)?;
    for step in 0..fixture.number("steps")? {
        compare_log(io, "log_f64", step, steps.take(&script)?)?;
    }
    steps.compare(io, "pN")
}

/// Snapshots `[count, points, snapshots]`: the first `past` are inputs, the rest are targets.
fn series(script: &Script<'_>, io: &Comparison, key: &str, past: usize) -> Result<Samples, Error> {
    let points = script.task.grid.points();
    let values = single(&io.tensor(key)?.1);
    let snapshots = io.tensor(key)?.0.last().copied().unwrap_or_default().max(past + 1);
    let inputs = values.chunks_exact(snapshots).flat_map(|point| &point[..past]).copied().collect();
    let targets: Vec<f32> = values.chunks_exact(snapshots).flat_map(|point| &point[past..]).copied().collect();
    let times = snapshots - past;
    script.samples(io, [past, times, 1], inputs, last_before_inner(&targets, points, times))
}

/// Every window of a series and the snapshot after it, as samples of their own: `[count, times]` of them.
fn windows(samples: &Samples) -> Samples {
    let (points, past, times) = (samples.grid.points(), samples.functions, samples.times);
    let value = |sample: usize, point: usize, snapshot: usize| match snapshot.checked_sub(past) {
        None => samples.input_of(sample)[point * past + snapshot],
        Some(time) => samples.target_of(sample)[time * points + point],
    };
    let window = |number: usize| {
        let (sample, time) = (number / times, number % times);
        (0..points * past).map(move |place| (sample, place / past, time + place % past))
    };
    let inputs = (0..samples.count * times).flat_map(window);
    let inputs = inputs.map(|(sample, point, snapshot)| value(sample, point, snapshot)).collect();
    Samples { count: samples.count * times, times: 1, inputs, ..samples.clone() }
}

/// One step on the sum over teacher-forced snapshots, then a roll-out with the new parameters.
pub(super) fn navier_stokes(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let count = first_axis(io, "u_train")?;
    let script = Script::new(fixture, io, [count, count], Loss::RelativeL2OfFrames)?;
    let [train, test] = ["u_train", "u_test"].map(|key| series(&script, io, key, script.task.input_channels()));
    let (train, test) = (train?, test?);
    let task = script.experiment.task(&train).map_err(|error| script.failed(error))?;
    let mut steps = script.start(io, &task, &train)?;
    let compare_prediction = |io: &mut Comparison, key: &str, samples: &Samples, prediction: &[f32]| {
        // The fixture has the times last.
        let found = last_before_inner(&double(prediction), samples.times, samples.grid.points());
        io.compare("output", key, &found, OUTPUT)
    };

    let forced = steps.predict(&script, io, &windows(&train))?;
    compare_prediction(io, "train_pred", &train, &forced)?;
    io.compare("loss", "train_full", &[sums(&train, &forced)[0]], LOSS)?;
    let [loss, _] = steps.take(&script)?;
    io.compare("loss", "train_loss", &[loss], LOSS)?;
    steps.compare(io, "p1")?;

    let rolled = steps.predict(&script, io, &test)?;
    compare_prediction(io, "test_pred", &test, &rolled)?;
    let [whole, by_time] = sums(&test, &rolled);
    io.compare("loss", "test_full_sum", &[whole], LOSS)?;
    Ok(io.compare("loss", "test_step_sum", &[by_time], LOSS)?)
}

/// The first seed that shows each sample its times in the order of the fixture, `[count, times]`.
fn seed_that_draws(script: &Script<'_>, asked: &[f64], count: usize) -> Result<u64, Error> {
    let times = asked.len() / count;
    let draws = |seed: &u64| {
        let places = script.order(*seed, count).into_iter();
        places.flat_map(|place| order_of_times(times, *seed, place)).map(|time| time as f64).eq(asked.iter().copied())
    };
    let unknown = || script.fixture.malformed("has orders of times that none of our seeds draws".to_owned());
    Ok((0..SEEDS).find(draws).ok_or_else(unknown)?)
}

/// One batch: a step for each time, all at the first pace of the schedule. Each sample has its own order of times.
pub(super) fn plasticity(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let (count, times) = (first_axis(io, "die")?, fixture.number("T")?);
    let mut script = Script::new(fixture, io, [count, count], Loss::RelativeL2OfTimes)?;
    script.experiment.data.normalise = vec![Normalised::Inputs];
    let [rows, columns] = script.task.grid.plane().ok_or_else(|| fixture.malformed("names no plane".to_owned()))?;
    let outputs = script.task.output_channels();
    let die = single(io.doubles("die", count * rows)?);
    let die = die.iter().flat_map(|&height| std::iter::repeat_n(height, columns)).collect();
    let targets = single(io.doubles("y", count * rows * columns * outputs * times)?);
    let targets = last_before_inner(&targets, rows * columns * outputs, times);
    let samples = script.samples(io, [1, times, outputs], die, targets)?;
    let task = script.experiment.task(&samples).map_err(|error| script.failed(error))?;
    if let Some(inputs) = &task.normalisers.inputs {
        compare_normaliser(io, inputs, &samples.inputs, ["x_mean", "x_std"])?;
        compare_encoded(io, "fx", inputs, &samples.inputs)?;
    }
    let fractions: Vec<f64> = (0..times).map(|time| f64::from(task.time.fraction(time))).collect();
    io.compare_absolute("time", "time", &fractions.repeat(count), 0.0)?;

    script.experiment.seed = seed_that_draws(&script, io.doubles("perm", count * times)?, count)?;
    let mut steps = script.start(io, &task, &samples)?;
    for step in 0..times {
        compare_log(io, "log", step, steps.take(&script)?)?;
    }
    steps.compare(io, "pN")?;

    let [peak] = fixture.reals(["lr"])?;
    let schedule = Schedule::OneCycle { peak, steps: fixture.number("onecycle_total_steps")? };
    io.compare("schedule", "lr_after", &[schedule.at(1).rate], DOUBLE)?;
    let [whole, by_time] = sums(&samples, &steps.predict(&script, io, &samples)?);
    io.compare("loss", "test_full_sum", &[whole], LOSS)?;
    Ok(io.compare("loss", "test_step_sum", &[by_time], LOSS)?)
}
