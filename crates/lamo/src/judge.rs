//! The test error as a program: the test samples live inside it, and predictions stay on the device.
//!
//! [`Predictor`](crate::trained::Predictor) and [`Samples::errors`] say the same in the open, and slower.

use crate::case::{Case, Course};
use crate::error::Error;
use crate::experiment::Experiment;
use crate::layers::Parameters;
use crate::models;
use crate::samples::Samples;
use crate::stored::{self, ROWS, SAMPLES, Stored, TIME};
use crate::trained::decoded;
use lamo_tensor::{Device, Graph, Kept, Program, Tensor};

/// State `[batch]`: Σ (prediction − target)² over the times so far, points and functions.
const MISS: &str = "miss";
/// State `[batch]`: Σ target².
const SIZE: &str = "size";
/// State `[batch, points, past · outputs]`: the frames before the one asked for, as the model sees them.
const WINDOW: &str = "window";

pub(crate) struct Judge {
    program: Program,
    case: Case,
    batch: usize,
    count: usize,
    /// `[count, points, past · outputs]` the first windows of films.
    windows: Vec<f32>,
}

impl Judge {
    pub(crate) fn new(
        experiment: &Experiment,
        case: &Case,
        test: &Samples,
        device: Device,
        batch: usize,
    ) -> Result<Judge, Error> {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let task = case.task(batch);
        let model = models::find(&experiment.model.name)?.build(&parameters, &task, &experiment.model.settings)?;
        let (stored, width) = (Stored::declare(&graph, test, batch, false), case.domain.functions);
        let film = matches!(case.course, Course::Frames { .. });
        let window = film.then(|| graph.state(WINDOW, [batch, test.grid.points(), width]));
        let functions = if film { window } else { stored.functions(width) };
        let found = model.forward(&stored.input(functions, matches!(case.course, Course::Times { .. })));
        if let Some(window) = window {
            let moved = match width > test.outputs {
                true => Tensor::concatenate(&[window.slice(2, test.outputs, width), found], 2),
                false => found,
            };
            graph.assign(window, moved);
        }
        let target = stored.targets_of_rows();
        let miss = decoded(found, case.normalisers.outputs.as_ref()) - target;
        for (name, value) in [(MISS, miss), (SIZE, target)] {
            let sum = graph.state(name, [batch]);
            graph.assign(sum, sum + value.square().sum(&[1, 2]).reshape([batch]));
        }
        let mut program = Program::compile_on(&graph, device, experiment.precision)?;
        stored::fill(&mut program, case, test, !film && width > 0);
        let windows = if film { case.encode_inputs(&test.inputs) } else { Vec::new() };
        Ok(Judge { program, case: case.clone(), batch, count: test.count, windows })
    }

    /// Mean relative L2 over the test samples, all times of a sample together.
    pub(crate) fn error(&mut self, parameters: &Kept) -> f64 {
        parameters.give(&mut self.program);
        let firsts = (0..self.count).step_by(self.batch);
        firsts.map(|first| self.errors(first).into_iter().sum::<f64>()).sum::<f64>() / self.count as f64
    }

    /// Errors of the batch that begins with sample `first`; places behind the last sample repeat it and are dropped.
    fn errors(&mut self, first: usize) -> Vec<f64> {
        let place = |place: usize| (first + place).min(self.count - 1);
        let samples: Vec<usize> = (0..self.batch).map(place).collect();
        let rows = |of: &dyn Fn(usize) -> usize| -> Vec<u32> { samples.iter().map(|&s| of(s) as u32).collect() };
        let program = &mut self.program;
        program.write_index(SAMPLES, &rows(&|sample| sample));
        for state in [MISS, SIZE] {
            program.write(state, &vec![0.0; self.batch]);
        }
        if !self.windows.is_empty() {
            let length = self.windows.len() / self.count;
            let window = |sample: &usize| &self.windows[sample * length..(sample + 1) * length];
            program.write(WINDOW, &samples.iter().flat_map(window).copied().collect::<Vec<_>>());
        }
        let times = self.case.times();
        for time in 0..times {
            program.write_index(ROWS, &rows(&|sample| sample * times + time));
            if let Course::Times { .. } = self.case.course {
                program.write(TIME, &vec![self.case.time(time); self.batch]);
            }
            program.run();
        }
        let pairs = program.read(MISS).iter().zip(program.read(SIZE)).take(self.count - first);
        pairs.map(|(miss, size)| (f64::from(*miss) / f64::from(*size)).sqrt()).collect()
    }
}
