//! Every shipped pair of a model and a benchmark computes what its equations say, on every device.

use crate::support::shrunk;
use lamo::experiment::{EXPERIMENTS, Experiment, Request, Shipped};
use lamo::network::{Input, Mode, Parameters, models};
use lamo::training::loss::relative_l2_sum;
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Device, Graph, Options, Precision, Program};

const BATCH: usize = 2;

/// Allowed relative errors of output, loss and gradient in f32. ONO's Cholesky factors have 3e-5 and 3.5e-4; the others 1e-5 and less.
const ROUNDINGS: [f64; 3] = [1e-4, 1e-4, 1e-3];
/// Models with ReLU, pooling, or norms of a few values at their coarsest level. Where a rounding turns a kink, the gradient jumps:
/// 0.03 was seen. Fixtures that keep away from kinks compare their gradients to rounding.
const HAS_KINKS: [&str; 3] = ["unet", "uno", "ufno"];
const KINKS: [f64; 3] = [2e-3, 1e-3, 0.1];

/// A small grid of the same kind: the reference is slow.
fn coarse(grid: Grid) -> Grid {
    match grid {
        Grid::Line { .. } => Grid::Line { points: 18 },
        Grid::Plane { .. } => Grid::Plane { rows: 16, columns: 12 },
        Grid::Volume { .. } => Grid::Volume { rows: 4, columns: 5, layers: 3 },
        Grid::Cloud { .. } => Grid::Cloud { points: 23 },
    }
}

/// ‖found − expected‖ / ‖expected‖
fn distance(found: &[f32], expected: &[f64]) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let difference = norm(&mut found.iter().zip(expected).map(|(found, expected)| f64::from(*found) - expected));
    difference / norm(&mut expected.iter().copied())
}

/// Values at inputs of a program, none of which are equal.
fn spread(count: usize, pace: f64) -> Vec<f64> {
    (0..count).map(|i| f64::from((pace * i as f64).sin() as f32)).collect()
}

/// On the CPU fused and unfused, and on the device that `LAMO_TEST_DEVICE` names.
#[test]
fn outputs_losses_and_gradients_of_every_pair_are_those_of_the_reference() {
    for Shipped { name, text, .. } in EXPERIMENTS.iter() {
        let changes = shrunk(&Experiment::parse(name, text).unwrap());
        let experiment =
            Request { file: Some((name, text)), changes: &changes, ..Request::default() }.resolve().unwrap();
        let task = experiment.benchmark().unwrap().task();
        let task = task.on(coarse(task.grid));
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let row = models::find(&experiment.model.name).unwrap();
        let model =
            row.build(&parameters, &task, &experiment.model.settings).unwrap_or_else(|no| panic!("{name}: {no}"));
        let out = model.forward(&Input::declare(&graph, &task, BATCH), Mode::Training);
        let target = graph.input("target", out.shape());
        let loss = relative_l2_sum(out, target);
        graph.output("out", out);
        graph.output("loss", loss);
        graph.output("gradient", graph.gradient(loss, &[graph.parameters()])[0].unwrap());

        let points = BATCH * task.grid.points();
        let mut bindings = Bindings::from([
            ("positions", spread(points * task.space, 0.7)),
            ("target", spread(points * task.output_channels(), 0.31)),
        ]);
        if task.input_channels() > 0 {
            bindings.insert("functions", spread(points * task.input_channels(), 1.3));
        }
        if task.time.is_input() {
            bindings.insert("time", spread(BATCH, 0.4));
        }
        let compiled = |fuse| (format!("fuse {fuse}"), Program::compile_with(&graph, Options { fuse }));
        let mut programs = Vec::from([true, false].map(compiled));
        if let Ok(device) = std::env::var("LAMO_TEST_DEVICE") {
            let device: Device = device.parse().unwrap();
            let program = Program::compile_on(&graph, device, Precision::F32);
            programs.push((device.to_string(), program.unwrap_or_else(|error| panic!("{name}: {error}"))));
        }
        let mut expected = None;
        for (how, mut program) in programs {
            for (input, values) in &bindings {
                program.write(input, &values.iter().map(|&value| value as f32).collect::<Vec<_>>());
            }
            parameters.initialise(&mut program, 7);
            let states = program.states();
            let expected = expected.get_or_insert_with(|| {
                let drawn = |state| program.read(state).iter().copied().map(f64::from).collect();
                let states = states.iter().map(|state| (state.as_str(), drawn(state)));
                reference::run(&graph, &bindings.clone().into_iter().chain(states).collect()).0
            });
            program.run();
            let allowed = if HAS_KINKS.contains(&row.name) { KINKS } else { ROUNDINGS };
            for (output, allowed) in ["out", "loss", "gradient"].into_iter().zip(allowed) {
                let apart = distance(program.read(output), &expected[output].values);
                assert!(apart < allowed, "{name} ({how}): {output} differs by {apart:.1e}");
            }
        }
    }
}
