//! The test error as a program: the test samples live inside it, and predictions stay on the device.
//!
//! [`Predictor`](crate::inference::Predictor) and [`Samples::errors`] compute the same error more simply and more slowly.

use super::resident::{self, ROWS, Resident, SAMPLES, TIME};
use crate::data::Samples;
use crate::error::Error;
use crate::experiment::Experiment;
use crate::network::{Mode, Parameters, models};
use crate::task::Task;
use crate::task::time::WINDOW;
use lamo_tensor::{Device, Graph, Program, Snapshot};

/// State `[batch]`: Σ (prediction − target)² over the times so far, points and functions.
const MISS: &str = "miss";
/// State `[batch]`: Σ target².
const SIZE: &str = "size";

pub(crate) struct TestProgram {
    program: Program,
    task: Task,
    batch: usize,
    count: usize,
    /// `[count, points, functions]` the first windows of a roll-out, normalised.
    windows: Vec<f32>,
    /// Samples tested so far, and the sum of their errors.
    tested: usize,
    sum: f64,
}

impl TestProgram {
    pub(crate) fn new(
        experiment: &Experiment,
        task: &Task,
        test: &Samples,
        device: Device,
        batch: usize,
    ) -> Result<TestProgram, Error> {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let model = models::find(&experiment.model.name)?.build(&parameters, task, &experiment.model.settings)?;
        let (resident, width) = (Resident::declare(&graph, test, batch, false), task.input_channels());
        let window = task.time.window(&graph, [batch, test.grid.points(), width]);
        let functions = window.or_else(|| resident.functions(width));
        let found = model.forward(&resident.input(functions, task), Mode::Inference);
        if let Some(window) = window {
            task.time.advance(window, found);
        }
        let target = resident.targets_of_rows();
        let miss = task.decoded(found) - target;
        for (name, value) in [(MISS, miss), (SIZE, target)] {
            let sum = graph.state(name, [batch]);
            graph.assign(sum, sum + value.square().sum(&[1, 2]).reshape([batch]));
        }
        let mut program = Program::compile_on(&graph, device, experiment.precision)?;
        resident::fill(&mut program, task, test, window.is_none() && width > 0)?;
        let windows = if window.is_some() { task.encode_inputs(&test.inputs) } else { Vec::new() };
        Ok(TestProgram { program, task: task.clone(), batch, count: test.count, windows, tested: 0, sum: 0.0 })
    }

    /// Names of the states that a snapshot may set: θ and the states of the model.
    pub(crate) fn model_states(&self) -> Vec<String> {
        let own = [MISS, SIZE, WINDOW];
        self.program.states().into_iter().filter(|name| !own.contains(&name.as_str())).collect()
    }

    /// Begins a test of the model in these states.
    pub(crate) fn begin(&mut self, states: &Snapshot) -> Result<(), Error> {
        states.restore(&mut self.program)?;
        (self.tested, self.sum) = (0, 0.0);
        Ok(())
    }

    /// Tests the next batch. After the last one: the mean relative L2 over the test samples, all times of a sample together.
    pub(crate) fn advance(&mut self) -> Result<Option<f64>, Error> {
        self.sum += self.errors(self.tested)?.into_iter().sum::<f64>();
        self.tested += self.batch;
        Ok((self.tested >= self.count).then_some(self.sum / self.count as f64))
    }

    /// Errors of the batch that begins with sample `first`. A short batch is filled with copies of
    /// the last sample, whose errors are dropped.
    fn errors(&mut self, first: usize) -> Result<Vec<f64>, Error> {
        let place = |place: usize| (first + place).min(self.count - 1);
        let samples: Vec<usize> = (0..self.batch).map(place).collect();
        let rows = |of: &dyn Fn(usize) -> usize| -> Vec<u32> { samples.iter().map(|&s| of(s) as u32).collect() };
        let program = &mut self.program;
        program.try_write_index(SAMPLES, &rows(&|sample| sample))?;
        for state in [MISS, SIZE] {
            program.try_write(state, &vec![0.0; self.batch])?;
        }
        if !self.windows.is_empty() {
            let length = self.windows.len() / self.count;
            let window = |sample: &usize| &self.windows[sample * length..(sample + 1) * length];
            program.try_write(WINDOW, &samples.iter().flat_map(window).copied().collect::<Vec<_>>())?;
        }
        let times = self.task.time.count();
        for time in 0..times {
            program.try_write_index(ROWS, &rows(&|sample| sample * times + time))?;
            if self.task.time.is_input() {
                program.try_write(TIME, &vec![self.task.time.fraction(time); self.batch])?;
            }
            program.try_run()?;
        }
        let (miss, size) = (program.try_read(MISS)?, program.try_read(SIZE)?);
        let pairs = miss.iter().zip(size).take(self.count - first);
        Ok(pairs.map(|(miss, size)| (f64::from(*miss) / f64::from(*size)).sqrt()).collect())
    }
}
