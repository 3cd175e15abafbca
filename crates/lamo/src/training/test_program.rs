//! The error on test or validation samples as a program: the samples live inside it, and predictions stay on the device.
//!
//! Where the headline of the experiment is a mean over outputs, so is this error.
//! [`Predictor`](crate::inference::Predictor) and [`Samples::errors`] compute the same error more simply and more slowly.

use super::average::AVERAGE;
use super::buckets::{Bucket, Buckets};
use super::resident::{self, ROWS, Resident, SAMPLES, Stored, TIME};
use super::step::on_grid;
use crate::data::Samples;
use crate::error::Error;
use crate::experiment::Experiment;
use crate::network::layers::mask::real_only;
use crate::network::{Mode, Parameters, models};
use crate::task::Task;
use crate::task::beside::DRIVING;
use crate::task::time::WINDOW;
use lamo_tensor::{Device, Graph, PARAMETERS, Program, Snapshot};

/// State `[batch]` of each group of outputs: Σ (prediction − target)² over the times so far, points and functions.
const MISS: &str = "miss";
/// State `[batch]` of each group of outputs: Σ target².
const SIZE: &str = "size";

/// The names of both states of a group.
fn states(group: usize) -> [String; 2] {
    [MISS, SIZE].map(|name| format!("{name}.{group}"))
}

/// The errors of one group of outputs so far.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    /// Samples whose target is not zero.
    count: usize,
    sum: f64,
}

/// The test of all samples: one program, or one for each bucket of sizes.
pub(crate) struct TestProgram {
    parts: Vec<Part>,
    /// The part that is tested next, and its samples that were tested.
    next: (usize, usize),
    /// Errors of all samples that were tested, in each group of outputs.
    errors: Vec<Errors>,
}

/// The test of samples of one size.
struct Part {
    program: Program,
    task: Task,
    batch: usize,
    count: usize,
    /// `[count, points, functions]` the first windows of a roll-out and what is beside them, normalised.
    windows: Vec<f32>,
    functions: usize,
    groups: usize,
}

impl TestProgram {
    pub(crate) fn new(
        experiment: &Experiment,
        task: &Task,
        test: &Samples,
        device: Device,
        batch: usize,
    ) -> Result<TestProgram, Error> {
        let parts = match test.is_ragged() {
            true => {
                let buckets = Buckets::new(&test.sizes(), batch).all;
                let part = |bucket: &Bucket| {
                    let stored = Stored::padded(test, &bucket.samples, bucket.points);
                    Part::new(experiment, task, &stored, device, batch.min(bucket.samples.len()))
                };
                buckets.iter().map(part).collect::<Result<Vec<_>, _>>()?
            }
            false => vec![Part::new(experiment, task, &Stored::whole(test), device, batch)?],
        };
        let errors = vec![Errors::default(); parts[0].groups];
        Ok(TestProgram { parts, next: (0, 0), errors })
    }

    /// Names of the states that a snapshot may set: θ and the states of the model.
    pub(crate) fn model_states(&self) -> Vec<String> {
        let mut own: Vec<String> = (0..self.errors.len()).flat_map(states).collect();
        own.push(WINDOW.to_owned());
        self.parts[0].program.states().into_iter().filter(|name| !own.contains(name)).collect()
    }

    /// Batches of a whole test.
    pub(crate) fn batches(&self) -> usize {
        self.parts.iter().map(|part| part.count.div_ceil(part.batch)).sum()
    }

    /// Begins a test of the model in these states.
    pub(crate) fn begin(&mut self, states: &Snapshot) -> Result<(), Error> {
        for part in &mut self.parts {
            states.restore_as(&mut part.program, |name| if name == AVERAGE { PARAMETERS } else { name })?;
        }
        self.next = (0, 0);
        self.errors.fill(Errors::default());
        Ok(())
    }

    /// Tests the next batch. After the last one: the mean relative L2 over the samples, all times of a sample together; with
    /// several groups of outputs, the mean over the groups.
    pub(crate) fn advance(&mut self) -> Result<Option<f64>, Error> {
        let (number, first) = self.next;
        let part = &mut self.parts[number];
        for (all, new) in self.errors.iter_mut().zip(part.errors_of_batch(first)?) {
            all.sum += new.sum;
            all.count += new.count;
        }
        self.next = if first + part.batch < part.count { (number, first + part.batch) } else { (number + 1, 0) };
        let means = self.errors.iter().filter(|errors| errors.count > 0).map(|errors| errors.sum / errors.count as f64);
        let (count, sum) = means.fold((0.0, 0.0), |(count, sum), mean| (count + 1.0, sum + mean));
        Ok((self.next.0 == self.parts.len()).then_some(sum / count))
    }
}

impl Part {
    fn new(
        experiment: &Experiment,
        task: &Task,
        stored: &Stored<'_>,
        device: Device,
        batch: usize,
    ) -> Result<Part, Error> {
        let test = stored.samples();
        let settings = &on_grid(experiment, task, test.grid)?;
        let task = &task.on(test.grid);
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let model = models::find(&experiment.model.name)?.build(&parameters, task, settings)?;
        let (resident, width) = (Resident::declare(&graph, stored, batch, None), task.input_channels());
        let window = task.time.window(&graph, [batch, test.grid.points(), width]);
        let functions = window.or_else(|| resident.functions(width));
        let input = resident.input(functions, task);
        let found = task.found(model.forward(&input, Mode::Inference), input.positions, functions);
        if let Some(window) = window {
            task.advance(window, found, task.declare_driving(&graph, batch, test.grid));
        }
        let target = resident.targets_of_rows();
        let miss = real_only(task.decoded(found, input.mask), input.mask) - target; // targets are 0 where a sample is filled up
        let groups = experiment.output_groups(task);
        for (group, range) in groups.iter().enumerate() {
            let parts = [miss, target].map(|values| match groups.len() {
                1 => values,
                _ => values.slice(2, range.start, range.end),
            });
            for (name, value) in states(group).iter().zip(parts) {
                let sum = graph.state(name, [batch]);
                graph.assign(sum, sum + value.square().sum(&[1, 2]).reshape([batch]));
            }
        }
        let mut program = Program::compile_on(&graph, device, experiment.precision)?;
        resident::fill(&mut program, task, stored, window.is_none() && width > 0)?;
        let windows = if window.is_some() { task.encode_inputs(&test.inputs, test.functions) } else { Vec::new() };
        let (count, functions) = (test.count, test.functions);
        Ok(Part { program, task: task.clone(), batch, count, windows, functions, groups: groups.len() })
    }

    /// Errors of the batch that begins with sample `first`. A short batch is filled with copies of
    /// the last sample, whose errors are dropped.
    fn errors_of_batch(&mut self, first: usize) -> Result<Vec<Errors>, Error> {
        let place = |place: usize| (first + place).min(self.count - 1);
        let samples: Vec<usize> = (0..self.batch).map(place).collect();
        let rows = |of: &dyn Fn(usize) -> usize| -> Vec<u32> { samples.iter().map(|&s| of(s) as u32).collect() };
        let groups = 0..self.groups;
        let program = &mut self.program;
        program.try_write_index(SAMPLES, &rows(&|sample| sample))?;
        for state in groups.clone().flat_map(states) {
            program.try_write(&state, &vec![0.0; self.batch])?;
        }
        let mut given = Vec::new();
        if !self.windows.is_empty() {
            let length = self.windows.len() / self.count;
            let window = |sample: &usize| &self.windows[sample * length..(sample + 1) * length];
            given = samples.iter().flat_map(window).copied().collect();
            program.try_write(WINDOW, &self.task.shown(&given, self.functions, 0))?;
        }
        let times = self.task.time.count();
        for time in 0..times {
            if self.task.driving() > 0 {
                program.try_write(DRIVING, &self.task.entering(&given, self.functions, time))?;
            }
            program.try_write_index(ROWS, &rows(&|sample| sample * times + time))?;
            if self.task.time.is_input() {
                program.try_write(TIME, &vec![self.task.time.fraction(time); self.batch])?;
            }
            program.try_run()?;
        }
        let alone = groups.len() == 1;
        let errors = groups.map(|group| {
            let [miss, size] = states(group);
            let (miss, size) = (program.try_read(&miss)?.to_vec(), program.try_read(&size)?);
            // A target of zeros has no relative error. Samples with such a target are refused, single outputs of them not.
            let pairs = miss.iter().zip(size).take(self.count - first).filter(|(_, size)| alone || **size > 0.0);
            let ratios: Vec<f64> = pairs.map(|(miss, size)| (f64::from(*miss) / f64::from(*size)).sqrt()).collect();
            Ok(Errors { count: ratios.len(), sum: ratios.into_iter().sum() })
        });
        errors.collect()
    }
}
