//! Every loss is what it says: its value, its gradient, and that a model learns by it.

use crate::support::{experiment, train_to};
use lamo::data::Samples;
use lamo::experiment::{Experiment, Loss, Request};
use lamo::training::Trainer;
use lamo::training::loss;
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, Program, Tensor, reference};
use std::collections::HashMap;

const BATCH: usize = 2;
const CHANNELS: usize = 3;
/// A plane of odd sizes, and a line.
const GRIDS: [(Grid, &[f64]); 2] =
    [(Grid::Plane { rows: 4, columns: 5 }, &[0.5, 0.25]), (Grid::Line { points: 7 }, &[0.125])];

type Each = for<'g> fn(Tensor<'g>, Tensor<'g>, Grid, &[f64]) -> Tensor<'g>;

/// The losses of single samples.
const EACH: [(&str, Each); 4] = [
    ("mse", |prediction, target, _, _| loss::mean_square(prediction, target)),
    ("l1", |prediction, target, _, _| loss::mean_absolute(prediction, target)),
    ("relative-l2-per-channel", |prediction, target, _, _| loss::relative_l2_per_channel(prediction, target)),
    ("h1", |prediction, target, grid, spacing| loss::relative_h1(prediction, target, grid, spacing)),
];

/// `[batch, points, channels]` values without zeros, and no two fields closer than 0.01 at any point: a kink of |e| is
/// farther away than a finite difference reaches.
fn fields(grid: Grid) -> [Vec<f64>; 2] {
    let count = BATCH * grid.points() * CHANNELS;
    let target: Vec<f64> = (0..count).map(|k| 1.5 + (0.7 * k as f64).sin()).collect();
    let gap = |k: usize| 0.3 * (1.3 * k as f64).cos();
    let gap = |k: usize| if gap(k).abs() < 0.01 { 0.05 } else { gap(k) };
    let prediction = target.iter().enumerate().map(|(k, value)| value + gap(k)).collect();
    [prediction, target]
}

/// The definition, written out point by point for one sample.
fn defined(name: &str, prediction: &[f64], target: &[f64], grid: Grid, spacing: &[f64]) -> f64 {
    let (points, shape) = (grid.points(), grid.shape());
    let error: Vec<f64> = prediction.iter().zip(target).map(|(found, truth)| found - truth).collect();
    let norm = |values: &[f64], channel: usize| {
        (0..points).map(|point| values[point * CHANNELS + channel].powi(2)).sum::<f64>().sqrt()
    };
    let sobolev = |values: &[f64]| {
        let mut sum: f64 = values.iter().map(|value| value * value).sum();
        for point in 0..points {
            for (axis, distance) in spacing.iter().enumerate() {
                let stride: usize = shape[axis + 1..].iter().product();
                if point / stride % shape[axis] + 1 < shape[axis] {
                    for channel in 0..CHANNELS {
                        let at = |point: usize| values[point * CHANNELS + channel];
                        sum += ((at(point + stride) - at(point)) / distance).powi(2);
                    }
                }
            }
        }
        sum.sqrt()
    };
    match name {
        "mse" => error.iter().map(|error| error * error).sum::<f64>() / error.len() as f64,
        "l1" => error.iter().map(|error| error.abs()).sum::<f64>() / error.len() as f64,
        "relative-l2-per-channel" => {
            (0..CHANNELS).map(|channel| norm(&error, channel) / norm(target, channel)).sum::<f64>() / CHANNELS as f64
        }
        _ => sobolev(&error) / sobolev(target),
    }
}

#[test]
fn each_loss_is_its_definition_point_by_point() {
    for (grid, spacing) in GRIDS {
        let [prediction, target] = fields(grid);
        let size = grid.points() * CHANNELS;
        for (name, each) in EACH {
            let graph = Graph::new();
            let shape = [BATCH, grid.points(), CHANNELS];
            let losses = each(graph.input("prediction", shape), graph.input("target", shape), grid, spacing);
            assert_eq!(losses.shape().dims(), [BATCH]);
            let bindings = HashMap::from([("prediction", prediction.clone()), ("target", target.clone())]);
            let found = &reference::evaluate(&graph, &bindings, &[losses])[0].values;
            for sample in 0..BATCH {
                let part = |values: &[f64]| values[sample * size..][..size].to_vec();
                let expected = defined(name, &part(&prediction), &part(&target), grid, spacing);
                let error = (found[sample] / expected - 1.0).abs();
                assert!(error < 1e-12, "{name} on a {grid}: {} and by definition {expected}", found[sample]);
            }
        }
    }
}

#[test]
fn the_gradient_of_each_loss_equals_finite_differences() {
    for (grid, spacing) in GRIDS {
        let [prediction, target] = fields(grid);
        for (name, each) in EACH {
            let graph = Graph::new();
            let shape = [BATCH, grid.points(), CHANNELS];
            let (found, truth) = (graph.input("prediction", shape), graph.input("target", shape));
            let loss = each(found, truth, grid, spacing).sum_all();
            let gradient = graph.gradient(loss, &[found])[0].unwrap();
            let mut bindings = HashMap::from([("prediction", prediction.clone()), ("target", target.clone())]);
            let slope = reference::evaluate(&graph, &bindings, &[gradient])[0].values.clone();
            let largest = slope.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
            for element in (0..slope.len()).step_by(5) {
                let mut at = |shift: f64| {
                    bindings.get_mut("prediction").unwrap()[element] = prediction[element] + shift;
                    let value = reference::evaluate(&graph, &bindings, &[loss])[0].values[0];
                    bindings.get_mut("prediction").unwrap()[element] = prediction[element];
                    value
                };
                // Fourth order: the error of the difference is about step⁴ = 1e-12, its rounding 1e-16/step = 1e-13.
                let step = 1e-3;
                let difference = (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step);
                assert!(
                    (difference - slope[element]).abs() <= 1e-8 * largest,
                    "{name} on a {grid}: element {element} has slope {}, differences give {difference}",
                    slope[element]
                );
            }
        }
    }
}

/// A small model and a small recipe with one loss.
fn small(loss: Loss, changes: &[&str]) -> Experiment {
    let loss = format!("train.loss={}", loss.name());
    let base = [
        "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }",
        "train={ epochs = 8, batch = 2, rate = 3e-3 }",
        &loss,
    ];
    experiment(&[&base, changes].concat())
}

/// Six samples of a wave and of two functions of it, in the units of the second argument.
fn waves(grid: Grid, units: [f32; 2]) -> Samples {
    let wave: Vec<f32> = (0..6 * grid.points()).map(|k| (0.37 * k as f32).sin()).collect();
    let outputs = wave.iter().flat_map(|&v| [units[0] * (1.5 + v * v), units[1] * (3.0 * v).cos()]).collect();
    Samples::new(grid, 1, wave, 2, outputs).unwrap()
}

#[test]
fn a_model_learns_by_every_loss_for_steady_fields() {
    let samples = waves(Grid::Plane { rows: 6, columns: 5 }, [1.0, 1.0]);
    for loss in [Loss::RelativeL2, Loss::RelativeL2PerChannel, Loss::Mse, Loss::L1, Loss::H1] {
        let experiment = small(loss, &[]);
        let task = experiment.task(&samples).unwrap();
        let mut trainer = Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap();
        let losses = train_to(&mut trainer, None, usize::MAX);
        assert!(losses[7] < 0.9 * losses[0], "{}: {losses:?}", loss.name());
    }
}

/// A pressure in Pa must not drown a displacement in m.
#[test]
fn mse_and_l1_do_not_depend_on_the_units_of_the_outputs() {
    let grid = Grid::Plane { rows: 6, columns: 5 };
    for loss in [Loss::Mse, Loss::L1] {
        let losses = |units: [f32; 2]| {
            let (experiment, samples) = (small(loss, &["train.balanced=false", "train.epochs=3"]), waves(grid, units));
            let task = experiment.task(&samples).unwrap();
            train_to(&mut Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap(), None, usize::MAX)
        };
        // Powers of two change no bit of a mantissa.
        let (one, other) = (losses([1.0, 1.0]), losses([1024.0, 0.25]));
        let apart = one.iter().zip(&other).map(|(one, other)| (one / other - 1.0).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-5, "{}: {one:?} and {other:?}", loss.name());
    }
}

#[test]
fn a_roll_out_and_times_by_themselves_take_any_loss() {
    let plane = Grid::Plane { rows: 5, columns: 4 };
    let count = plane.points();
    let series = |times: usize, inputs: usize| Samples {
        functions: inputs,
        inputs: (0..3 * count * inputs).map(|k| (0.2 * k as f32).cos()).collect(),
        times,
        targets: (0..3 * times * count).map(|k| 1.5 + (0.3 * k as f32).sin()).collect(),
        ..Samples::new(plane, 1, vec![0.0; 3 * count], 1, vec![1.0; 3 * count]).unwrap()
    };
    for loss in [Loss::Mse, Loss::L1, Loss::H1, Loss::RelativeL2] {
        let experiment = small(loss, &["data.time=roll-out", "data.past=2", "train.epochs=1"]);
        let samples = series(3, 2);
        let task = experiment.task(&samples).unwrap();
        assert_eq!((task.time.past(), task.time.count()), (2, 3));
        let losses =
            train_to(&mut Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap(), None, 99);
        assert!(losses[0].is_finite() && losses[0] > 0.0, "{}: {losses:?}", loss.name());
    }
    let same = |time: &str, loss: Loss| {
        let (experiment, samples) = (small(loss, &[time, "train.epochs=2"]), series(2, 1));
        let task = experiment.task(&samples).unwrap();
        train_to(&mut Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap(), None, usize::MAX)
    };
    assert_eq!(
        same("data.time=roll-out", Loss::RelativeL2),
        same("data.time=auto", Loss::RelativeL2OfFrames),
        "the older name is the same loss"
    );
}

#[test]
fn a_loss_that_cannot_be_computed_is_refused_with_what_to_use() {
    let refusal = |loss: Loss, samples: &Samples| small(loss, &[]).task(samples).unwrap_err().to_string();
    let plane = Grid::Plane { rows: 4, columns: 3 };
    let bent: Vec<f32> = (0..12).flat_map(|k| [(k % 3) as f32, (k / 3 * (k / 3)) as f32]).collect();
    let mesh = waves(plane, [1.0, 1.0]).at(2, bent).unwrap();
    let said = refusal(Loss::H1, &mesh);
    assert!(
        said.contains("train.loss = h1: expected equally spaced points") && said.ends_with("use relative-l2"),
        "{said}"
    );
    let zeros = Samples { targets: waves(plane, [1.0, 0.0]).targets, ..waves(plane, [1.0, 1.0]) };
    let said = refusal(Loss::RelativeL2PerChannel, &zeros);
    assert!(said.contains("output 2 of training field 0"), "{said}");
    let clash = ["train.loss=relative-l2-of-times".to_owned(), "data.time=roll-out".to_owned()];
    let said = Request { changes: &clash, ..Request::default() }.resolve().unwrap_err().to_string();
    assert!(said.contains("data.time: expected auto or by-time"), "{said}");
    let unknown = ["train.loss=mae".to_owned()];
    let said = Request { changes: &unknown, ..Request::default() }.resolve().unwrap_err().to_string();
    assert!(said.contains("mae") && said.contains("mse") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_prediction_without_an_error_has_no_gradient() {
    for (name, each) in EACH.into_iter().chain([("relative-l2", (|p, t, _, _| loss::relative_l2(p, t)) as Each)]) {
        for (grid, spacing) in GRIDS {
            let [_, target] = fields(grid);
            let graph = Graph::new();
            let shape = [BATCH, grid.points(), CHANNELS];
            let [prediction, expected] = ["prediction", "target"].map(|input| graph.input(input, shape));
            let total = each(prediction, expected, grid, spacing).sum_all();
            graph.output("loss", total);
            graph.output("gradient", graph.gradient(total, &[prediction])[0].unwrap());
            let mut program = Program::compile(&graph);
            for input in ["prediction", "target"] {
                program.write(input, &target.iter().map(|value| *value as f32).collect::<Vec<_>>());
            }
            program.run();
            assert!(program.read("loss")[0] < 1e-15, "{name}: {:?}", program.read("loss"));
            assert!(program.read("gradient").iter().all(|slope| *slope == 0.0 || name == "l1"), "{name} on a {grid}");
            assert!(program.read("gradient").iter().all(|slope| slope.is_finite()), "{name} on a {grid}");
        }
    }
}
