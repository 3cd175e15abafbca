//! What a roll-out predicts in training: every snapshot from the true ones before it, or several in a row from its own
//! predictions, through which the gradient runs.
//!
//! With `train.rollout` = k, the model is shown the true snapshots before the snapshots 0, k, 2k, … and continues each of
//! these windows for k snapshots. So every snapshot is predicted once, for any k, and a step costs the same. k = 1 is teacher
//! forcing. The snapshots that are shown may carry noise, so that the model learns to correct its own errors.

use crate::network::{Input, Mode, Model};
use crate::task::Task;
use lamo_tensor::{Random, Tensor};
use std::f64::consts::TAU;

/// The windows of a batch that begin at the snapshots 0, `every`, 2 `every`, …: `[windows · batch, points, functions]` out
/// of those at all snapshots.
pub(super) fn starts<'g>(windows: Tensor<'g>, batch: usize, every: usize) -> Tensor<'g> {
    let snapshots = windows.shape().dims()[0] / batch;
    let at = |snapshot: usize| windows.slice(0, snapshot * batch, (snapshot + 1) * batch);
    Tensor::concatenate(&(0..snapshots).step_by(every).map(at).collect::<Vec<_>>(), 0)
}

/// Continues windows by the model's own predictions, `every` snapshots each and no more than the task has:
/// `[snapshots · batch, points, outputs]`. A model whose statistics change sees one window at a time. `entering` has what
/// enters the windows from the driving fields after the step to a snapshot, `[batch, points, driving]`.
pub(super) fn rolled_out<'g>(
    model: &(dyn Model<'g> + 'g),
    task: &Task,
    ([positions, starts], mask, entering): ([Tensor<'g>; 2], Option<Tensor<'g>>, &dyn Fn(usize) -> Tensor<'g>),
    (batch, every): (usize, usize),
    one_by_one: bool,
) -> Tensor<'g> {
    let snapshots = task.time.windows();
    let rows = |tensor: Tensor<'g>, windows: usize| tensor.slice(0, 0, windows * batch);
    let mut window = starts;
    let mut found = Vec::new();
    for step in 0..every {
        let windows = (snapshots - step).div_ceil(every); // those that still have a snapshot to predict
        window = rows(window, windows);
        let mask = mask.map(|mask| rows(mask, windows));
        let input = Input { positions: rows(positions, windows), functions: Some(window), time: None, mask };
        let result = predict(model, &input, if one_by_one { windows } else { 1 });
        found.push(task.found(result, input.positions, Some(window)));
        let after = |place: usize| entering(place * every + step);
        let entering =
            (task.driving() > 0).then(|| Tensor::concatenate(&(0..windows).map(after).collect::<Vec<_>>(), 0));
        window = task.moved(window, found[step], entering);
    }
    let snapshot = |snapshot: usize| {
        let (place, step) = (snapshot / every, snapshot % every);
        found[step].slice(0, place * batch, (place + 1) * batch)
    };
    Tensor::concatenate(&(0..snapshots).map(snapshot).collect::<Vec<_>>(), 0)
}

/// Predicts the windows of a batch in `passes` passes, one after the other. A model without states makes no difference
/// between samples and windows, so it sees all of them at once; statistics are those of one window at a time.
pub(super) fn predict<'g>(model: &(dyn Model<'g> + 'g), input: &Input<'g>, passes: usize) -> Tensor<'g> {
    if passes == 1 {
        return model.forward(input, Mode::Training);
    }
    let part = |tensor: Tensor<'g>, pass: usize| {
        let rows = tensor.shape().dims()[0] / passes;
        tensor.slice(0, pass * rows, (pass + 1) * rows)
    };
    let found = (0..passes).map(|pass| {
        let positions = part(input.positions, pass);
        let functions = input.functions.map(|functions| part(functions, pass));
        let time = input.time.map(|time| part(time, pass));
        let mask = input.mask.map(|mask| part(mask, pass));
        model.forward(&Input { positions, functions, time, mask }, Mode::Training)
    });
    Tensor::concatenate(&found.collect::<Vec<_>>(), 0)
}

/// Noise on the snapshots that a roll-out is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    /// In normalised units.
    pub(super) deviation: f64,
    /// `[batch, points, snapshots shown · width]`
    shape: [usize; 3],
    /// Past snapshots times their width.
    window: usize,
}

impl Noise {
    /// The noise of a recipe; `None` where it has none.
    pub(super) fn of(task: &Task, batch: usize, deviation: f64) -> Option<Noise> {
        let (past, width) = (task.time.past(), task.output_channels());
        let shape = [batch, task.grid.points(), (past + task.time.windows() - 1) * width];
        (deviation > 0.0 && past > 0).then_some(Noise { deviation, shape, window: past * width })
    }

    /// Independent normal numbers (Box and Muller 1958), which depend on seed and step alone.
    pub(super) fn draw<'g>(&self, random: &Random<'g>) -> Tensor<'g> {
        let unit = || (random.whole(self.shape) + 0.5) * (-24f64).exp2(); // above 0, at most 1
        let (radius, angle) = ((unit().log() * -2.0).sqrt(), unit() * TAU);
        radius * angle.cos() * self.deviation
    }

    /// Windows `[windows · batch, points, functions]` at the first snapshots, with noise on their past. A snapshot has the
    /// same noise in all windows; fields that stay have none.
    pub(super) fn on<'g>(&self, noise: Tensor<'g>, windows: Tensor<'g>, width: usize) -> Tensor<'g> {
        let [rows, _, functions] = windows.dims();
        let cut = |place: usize| noise.slice(2, place * width, place * width + self.window);
        let noise = Tensor::concatenate(&(0..rows / self.shape[0]).map(cut).collect::<Vec<_>>(), 0);
        windows + if functions > self.window { noise.pad(2, 0, functions - self.window) } else { noise }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lamo_geometry::Grid;
    use lamo_tensor::{Graph, Program};

    fn run(graph: &Graph) -> Program {
        let mut program = Program::compile(graph);
        program.write("random", &[3.0, 5.0, 7.0, 11.0]);
        program
    }

    #[test]
    fn noise_has_mean_0_its_deviation_and_the_share_of_large_values_of_a_normal_distribution() {
        let (graph, noise) = (Graph::new(), Noise { deviation: 0.5, shape: [10, 100, 100], window: 1 });
        graph.output("noise", noise.draw(&Random::new(&graph, "random")));
        let mut program = run(&graph);
        program.run();
        let values: Vec<f64> = program.read("noise").iter().map(|value| f64::from(*value) / 0.5).collect();
        let mean_of = |part: &dyn Fn(f64) -> f64| values.iter().map(|value| part(*value)).sum::<f64>() / 1e5;
        let (mean, square) = (mean_of(&|value| value), mean_of(&|value| value * value));
        let large = mean_of(&|value| f64::from(u8::from(value.abs() > 2.0)));
        // within four standard errors
        assert!(mean.abs() < 0.013 && (square - 1.0).abs() < 0.018, "{mean} {square}");
        assert!((large - 0.0455).abs() < 0.0027, "{large}");
    }

    #[test]
    fn a_snapshot_has_the_same_noise_in_all_windows_and_fields_that_stay_have_none() {
        let noise = Noise { deviation: 1.0, shape: [1, 2, 4], window: 2 };
        let graph = Graph::new();
        let drawn = noise.draw(&Random::new(&graph, "random"));
        graph.output("noise", drawn);
        // three windows of two past snapshots and one field that stays
        graph.output("out", noise.on(drawn, graph.input("windows", [3, 2, 3]), 1));
        let mut program = run(&graph);
        program.write("windows", &[0.0; 18]);
        program.run();
        let drawn = program.read("noise").to_vec();
        let of_point = |window: usize, point: usize| [drawn[4 * point + window], drawn[4 * point + window + 1], 0.0];
        let expected: Vec<f32> = (0..6).flat_map(|row| of_point(row / 2, row % 2)).collect();
        assert_eq!(program.read("out"), expected);
        assert_eq!(Noise::of(&Task::plain(Grid::Line { points: 2 }, 1, 1, 1), 1, 0.1), None, "without a past");
    }
}
