//! The training step as one program: gather the batch, predict, loss, gradient, update.
//!
//! The training samples live inside the program; a step is told which of them to take. The last batch of an epoch may
//! be smaller: its free places repeat a sample with weight 0.

use crate::case::{Case, Course};
use crate::checkpoint::TOTAL;
use crate::dataset::Moments;
use crate::error::Error;
use crate::experiment::{Experiment, Loss};
use crate::layers::Parameters;
use crate::loss;
use crate::models::{self, Input};
use crate::optimiser::AdamW;
use crate::samples::Samples;
use crate::stored::{self, Stored};
use crate::trained::decoded;
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, Program, Tensor};

/// Input: 1 for a sample, 0 for a free place.
pub(crate) const WEIGHTS: &str = "weights";

/// Compiles the step, puts the samples in, and draws the first parameters.
pub(crate) fn compile(
    experiment: &Experiment,
    case: &Case,
    train: &Samples,
    device: Device,
    adamw: &AdamW,
) -> Result<Program, Error> {
    let batch = experiment.train.batch;
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let task = case.task(batch * case.windows());
    let model = models::find(&experiment.model.name)?.build(&parameters, &task, &experiment.model.settings)?;
    let (input, target) = gather(&graph, case, train, batch, experiment.train.symmetries);
    let prediction = decoded(model.forward(&input), case.normalisers.outputs.as_ref());
    let (prediction, target) = if experiment.train.balanced && train.outputs > 1 {
        let units = graph.constant(&units(&train.targets, train.outputs), [train.outputs]);
        (prediction / units, target / units)
    } else {
        (prediction, target)
    };
    let each = match (experiment.train.loss, task.grid) {
        (Loss::RelativeL2WithGradient, Grid::Plane { rows, columns }) => {
            let plane = [batch, rows, columns];
            loss::relative_l2_with_gradient_each(prediction.reshape(plane), target.reshape(plane))
        }
        _ => loss::relative_l2(prediction, target),
    };
    let weights = graph.input(WEIGHTS, [batch]);
    let loss = (each.reshape([case.windows(), batch]) * weights).sum_all();
    let total = graph.state(TOTAL, [1]);
    graph.assign(total, total + loss);
    adamw.minimise(&graph, loss);
    let mut program = Program::compile_on(&graph, device, experiment.precision)?;
    parameters.initialise(&mut program, experiment.seed);
    stored::fill(&mut program, case, train, train.functions > 0);
    Ok(program)
}

/// The unit in which the errors of each output count.
fn units(targets: &[f32], outputs: usize) -> Vec<f32> {
    let of = |output: usize| Moments::of(targets.iter().skip(output).step_by(outputs).map(|&value| f64::from(value)));
    (0..outputs).map(|output| of(output).unit() as f32).collect()
}

/// The batch's part of the samples, and what is to be predicted: `[batch · windows, points, outputs]`.
fn gather<'g>(graph: &'g Graph, case: &Case, train: &Samples, batch: usize, sides: bool) -> (Input<'g>, Tensor<'g>) {
    let stored = Stored::declare(graph, train, batch, sides);
    match (case.course, stored.functions(train.functions)) {
        (Course::Times { .. }, functions) => (stored.input(functions, true), stored.targets_of_rows()),
        (Course::Frames { .. }, Some(past)) => teacher_forced(graph, case, stored.positions, past, stored.targets()),
        (_, functions) => {
            let target = stored.targets().reshape([batch, train.grid.points(), train.outputs]);
            (stored.input(functions, false), target)
        }
    }
}

/// Every frame of the film from the true frames before it. They are independent, so all are one batch, frame by frame:
/// window `frame · batch + sample`.
fn teacher_forced<'g>(
    graph: &'g Graph,
    case: &Case,
    positions: Tensor<'g>,
    past: Tensor<'g>,
    film: Tensor<'g>,
) -> (Input<'g>, Tensor<'g>) {
    let [batch, frames, points, width] = film.dims();
    let [_, _, space] = positions.dims();
    let [_, _, window] = past.dims();
    let encoded = match &case.normalisers.outputs {
        Some(normaliser) => {
            (film - graph.constant(&normaliser.mean, [width])) / graph.constant(&normaliser.deviation, [width])
        }
        None => film,
    };
    let future = encoded.permute(&[0, 2, 1, 3]).reshape([batch, points, frames * width]);
    let whole = Tensor::concatenate(&[past, future], 2); // [batch, points, (past + frames) · width]
    let windows: Vec<Tensor<'g>> =
        (0..frames).map(|frame| whole.slice(2, frame * width, frame * width + window)).collect();
    let functions = Tensor::concatenate(&windows, 0);
    let positions = positions.reshape([1, batch, points, space]).broadcast_to([frames, batch, points, space]);
    let positions = positions.reshape([frames * batch, points, space]);
    let target = film.permute(&[1, 0, 2, 3]).reshape([frames * batch, points, width]);
    (Input { positions, functions: Some(functions), time: None }, target)
}
