//! The attentions of the rivals equal their definitions, written with all pairs of points, and work where they promise to.

use lamo::network::layers::{AxialAttention, LinearAttention, LinearScale, WindowAttention, WindowWeights, Windows};
use lamo::network::models::{self, Settings};
use lamo::network::{Input, Mode, Parameters};
use lamo::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, MODEL_STATES, PARAMETERS, Program, Tensor};

/// Numbers without a pattern.
fn values(count: usize, phase: f64) -> Vec<f64> {
    (0..count).map(|n| 0.7 * (phase + 12.9898 * n as f64).sin()).collect()
}

/// The value of a tensor in f64, with numbers in all parameters and in the input `x`.
fn evaluated(graph: &Graph, points: Tensor<'_>, out: Tensor<'_>) -> Vec<f64> {
    let parameters = values(graph.parameters().shape().count(), 1.0);
    let bindings = Bindings::from([(PARAMETERS, parameters), ("x", values(points.shape().count(), 0.3))]);
    reference::evaluate(graph, &bindings, &[out])[0].values.clone()
}

/// A parameter of the graph by name, as [`evaluated`] fills it.
fn parameter(graph: &Graph, name: &str) -> Vec<f64> {
    let all = values(graph.parameters().shape().count(), 1.0);
    let sections = graph.sections();
    let section = sections.iter().find(|section| section.name == name).unwrap_or_else(|| panic!("no parameter {name}"));
    all[section.range()].to_vec()
}

/// W x + b of a point.
fn affine(graph: &Graph, map: &str, x: &[f64]) -> Vec<f64> {
    let (weight, bias) = (parameter(graph, &format!("{map}.weight")), parameter(graph, &format!("{map}.bias")));
    let row = |(row, bias): (&[f64], &f64)| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + bias;
    weight.chunks_exact(x.len()).zip(&bias).map(row).collect()
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let weights: Vec<f64> = row.iter().map(|value| value.exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-12 * largest, "{what}: {found} instead of {expected}");
    }
}

#[test]
fn linear_attention_is_the_sum_over_all_pairs_of_points() {
    let (points, heads, channels) = (5, 2, 3);
    let width = heads * channels;
    for scale in [LinearScale::Galerkin, LinearScale::L1] {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let attention = LinearAttention::new(&parameters.root(), scale, heads, width);
        let x = graph.input("x", [1, points, width]);
        let found = evaluated(&graph, x, attention.forward(x, x));
        let given = values(points * width, 0.3);
        let mapped = |map: &str, n: usize| affine(&graph, map, &given[n * width..(n + 1) * width]);
        let mut expected = Vec::new();
        for i in 0..points {
            let mut joined = Vec::new();
            for head in (0..heads).map(|head| head * channels..(head + 1) * channels) {
                let query = softmax(&mapped("query", i)[head.clone()]);
                let weights: Vec<f64> =
                    (0..points).map(|j| dot(&query, &softmax(&mapped("key", j)[head.clone()]))).collect();
                let total = if scale == LinearScale::L1 { weights.iter().sum() } else { points as f64 };
                for (channel, query) in head.zip(query) {
                    let mixed: f64 = (0..points).map(|j| weights[j] * mapped("value", j)[channel]).sum();
                    joined.push(mixed / total + query);
                }
            }
            expected.extend(affine(&graph, "proj", &joined));
        }
        close(&found, &expected, &format!("{scale:?}"));
    }
}

#[test]
fn attention_in_windows_sees_its_own_window_only_and_a_mask_keeps_points_apart() {
    let windows = Windows { extents: [4, 6], side: 2 };
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let attention = WindowAttention::new(&parameters.root(), WindowWeights::Softmax, 2, 1, 2);
    let image = graph.input("x", [1, 4, 6, 2]);
    let shape = [6, 4, 4];
    let mask = graph.constant(&windows.mask(1), shape);
    let plain = windows.join(attention.forward(windows.cut(image), None));
    let moved = windows.join_rolled(attention.forward(windows.cut_rolled(image, 1), Some(mask)), 1);
    for (out, changed, alike) in [
        // The point (0, 2) lies in the window of rows 0 and 1 and columns 2 and 3.
        (plain, [0, 2], (0..2).flat_map(|row| (2..4).map(move |column| [row, column])).collect::<Vec<_>>()),
        // The shifted windows: a corner is alone, as its neighbours across the border are no neighbours.
        (moved, [0, 0], vec![[0, 0]]),
        (moved, [1, 1], vec![[1, 1], [1, 2], [2, 1], [2, 2]]),
    ] {
        let numbers = values(48, 0.3);
        let mut other = numbers.clone();
        other[(changed[0] * 6 + changed[1]) * 2] += 0.5;
        let theta = values(graph.parameters().shape().count(), 1.0);
        let [before, after] = [numbers, other].map(|x| {
            let bindings = Bindings::from([(PARAMETERS, theta.clone()), ("x", x)]);
            reference::evaluate(&graph, &bindings, &[out])[0].values.clone()
        });
        for point in 0..24 {
            let differs = (before[2 * point] - after[2 * point]).abs() > 1e-9;
            let place = [point / 6, point % 6];
            assert_eq!(differs, alike.contains(&place), "a change at {changed:?} and the point {place:?}");
        }
    }
}

/// The first row and column of a plane moved behind the last.
fn rolled(image: Tensor<'_>) -> Tensor<'_> {
    [1, 2].into_iter().fold(image, |image, axis| {
        let extent = image.dims::<4>()[axis];
        Tensor::concatenate(&[image.slice(axis, 1, extent), image.slice(axis, 0, 1)], axis)
    })
}

#[test]
fn windows_are_cut_and_joined_and_a_roll_is_undone() {
    let windows = Windows { extents: [6, 4], side: 2 };
    let graph = Graph::new();
    let image = graph.input("x", [2, 6, 4, 3]);
    let _ = graph.parameter("unused", [1]);
    let cut = windows.cut_rolled(image, 1);
    assert_eq!(cut.shape().dims(), [12, 4, 3]);
    assert_eq!(evaluated(&graph, image, cut), evaluated(&graph, image, windows.cut(rolled(image))));
    for back in [windows.join(windows.cut(image)), windows.join_rolled(cut, 1)] {
        assert_eq!(evaluated(&graph, image, back), values(144, 0.3));
    }
}

/// No axis has an order of its own: with its first row moved behind the others, the result has that row there, too.
#[test]
fn attention_along_axes_moves_with_the_rows_of_the_plane() {
    let extents = [3, 2, 2];
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let attention = AxialAttention::new(&parameters.root(), &extents, 2, 4);
    let x = graph.input("x", [1, 12, 4]);
    let [first, rest] = x.split(1, [4, 8]);
    let turned = attention.forward(Tensor::concatenate(&[rest, first], 1));
    let [last, front] = turned.split(1, [8, 4]);
    let expected = evaluated(&graph, x, attention.forward(x));
    close(&evaluated(&graph, x, Tensor::concatenate(&[front, last], 1)), &expected, "rows in another order");
}

#[test]
fn oformer_has_outputs_at_any_points_which_at_the_given_ones_are_its_usual_ones() {
    let task = Task::plain(Grid::Cloud { points: 7 }, 2, 1, 2);
    let row = models::find("oformer").unwrap();
    for steps in [0, 2] {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let mut settings = (row.tiny)(&task);
        settings.insert("steps".into(), steps.into());
        let model = row.build(&parameters, &task, &settings).unwrap();
        let input = Input::declare(&graph, &task, 1);
        graph.output("usual", model.forward(&input, Mode::Inference));
        let queries = input.positions.slice(1, 2, 5);
        graph.output("chosen", model.forward_at(&input, queries, Mode::Inference).unwrap());
        let mut program = Program::compile(&graph);
        parameters.initialise(&mut program, 3);
        let single = |values: Vec<f64>| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
        program.write("positions", &single(values(14, 0.1)));
        program.write("functions", &single(values(7, 0.2)));
        program.run();
        let (usual, chosen) = (program.read("usual"), program.read("chosen"));
        for (found, expected) in chosen.iter().zip(&usual[4..10]) {
            assert!((found - expected).abs() <= 1e-6, "{steps} steps: {found} instead of {expected}");
        }
        assert!(program.states().contains(&MODEL_STATES.to_owned()), "the frequencies are a state");
    }
}

/// At the time of step k, the outputs are those of step k of the recurrence without a time as an input; between two times, y is
/// between theirs.
#[test]
fn oformer_at_a_time_has_the_outputs_of_its_latent_step() {
    let grid = Grid::Plane { rows: 3, columns: 4 };
    let row = models::find("oformer").unwrap();
    let settings = |steps: usize| -> Settings {
        format!("width = 12\ndepth = 1\nheads = 1\nlatent = 16\ncross_heads = 1\nsteps = {steps}").parse().unwrap()
    };
    let predict = |task: &Task, steps: usize, time: Option<f32>| {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let model = row.build(&parameters, task, &settings(steps)).unwrap();
        graph.output("out", model.forward(&Input::declare(&graph, task, 2), Mode::Inference));
        let mut program = Program::compile(&graph);
        parameters.initialise(&mut program, 3);
        let wave = |count: usize, pace: f32| (0..count).map(|i| (pace * i as f32).sin()).collect::<Vec<f32>>();
        program.write("positions", &wave(2 * 12 * 2, 0.3));
        program.write("functions", &wave(2 * 12, 0.7));
        time.into_iter().for_each(|time| program.write("time", &[time; 2]));
        program.run();
        program.read("out").to_vec()
    };
    let all = predict(&Task::plain(grid, 2, 1, 8), 4, None); // [batch, points, steps · outputs]
    let timed = Task::plain(grid, 2, 1, 2).by_time(4);
    let at = |time: f32| predict(&timed, 0, Some(time)); // one step for each of the four times
    for step in 0..4 {
        let expected: Vec<f32> = all.chunks_exact(8).flat_map(|point| point[2 * step..2 * step + 2].to_vec()).collect();
        let found = at(step as f32 / 3.0);
        let far = found.iter().zip(&expected).fold(0.0, |far: f32, (a, b)| far.max((a - b).abs()));
        assert!(far < 1e-5, "step {step}: {far:e} apart");
    }
    assert!(at(0.4) != at(0.5) && at(0.0) != at(1.0));
    assert_eq!(at(1.5), at(1.0), "later times are the last one");
}
