//! The training step as one program: gather the batch, predict, loss, gradient, update.
//!
//! The training samples live inside the program; a step is told which of them to take. The last batch of an epoch may
//! be smaller: its free places repeat a sample with weight 0.

use crate::case::{Case, Course};
use crate::checkpoint::TOTAL;
use crate::error::Error;
use crate::experiment::{Experiment, Loss};
use crate::layers::Parameters;
use crate::loss;
use crate::models::{self, Input};
use crate::optimiser::AdamW;
use crate::samples::Samples;
use crate::trained::decoded;
use lamo_physics::Grid;
use lamo_tensor::{Device, Graph, Index, Program, Tensor};

/// Index input: the samples of the batch.
pub(crate) const SAMPLES: &str = "samples";
/// Index input: the rows `sample · times + time` of the targets.
pub(crate) const ROWS: &str = "rows";
/// Input: 1 for a sample, 0 for a free place.
pub(crate) const WEIGHTS: &str = "weights";
/// Input: the time of each place.
pub(crate) const TIME: &str = "time";

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
    let (input, target) = gather(&graph, case, train, batch); // target: [batch · windows, points, outputs]
    let prediction = decoded(model.forward(&input), case.normalisers.outputs.as_ref());
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
    program.write("train.positions", &case.encode_positions(&train.positions));
    if train.functions > 0 {
        program.write("train.functions", &case.encode_inputs(&train.inputs));
    }
    program.write("train.targets", &train.targets);
    Ok(program)
}

/// The batch's part of the samples.
fn gather<'g>(graph: &'g Graph, case: &Case, train: &Samples, batch: usize) -> (Input<'g>, Tensor<'g>) {
    let Samples { count, space, functions, times, outputs, .. } = *train;
    let points = train.grid.points();
    let chosen = graph.index_input(SAMPLES, batch);
    let taken =
        |name: &str, width: usize, chosen: Index<'g>| graph.input(name, [count, points, width]).gather(0, chosen);
    let positions = if train.share_positions() {
        graph.input("train.positions", [1, points, space]).broadcast_to([batch, points, space])
    } else {
        taken("train.positions", space, chosen)
    };
    let functions = (functions > 0).then(|| taken("train.functions", functions, chosen));
    match (case.course, functions) {
        (Course::Times { .. }, _) => {
            let rows = graph.index_input(ROWS, batch);
            let target = graph.input("train.targets", [count * times, points, outputs]).gather(0, rows);
            (Input { positions, functions, time: Some(graph.input(TIME, [batch, 1])) }, target)
        }
        (Course::Frames { .. }, Some(past)) => {
            let film = graph.input("train.targets", [count, times, points, outputs]).gather(0, chosen);
            teacher_forced(graph, case, positions, past, film)
        }
        _ => (Input { positions, functions, time: None }, taken("train.targets", outputs, chosen)),
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
