//! The authors' training recipes, step by step: parameters after the steps equal theirs.

use crate::fixture::{Fixture, open};
use lamo::network::models::{self, Settings};
use lamo::network::{Input, Mode, Model, Parameters};
use lamo::task::Task;
use lamo::training::loss::{relative_l2, relative_l2_sum, relative_l2_with_gradient};
use lamo::training::optimiser::{AdamW, GRADIENT_NORM};
use lamo::training::schedule::Schedule;
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Program};

/// Allowed absolute error of a trained parameter.
const PARAMETER: f64 = 2e-6;

fn model<'g>(graph: &'g Graph, task: &Task, settings: &str) -> Box<dyn Model<'g> + 'g> {
    let settings: Settings = settings.parse().unwrap();
    models::find("lamo").unwrap().build(&Parameters::new(graph), task, &settings).unwrap()
}

fn load(program: &mut Program, fixture: &Fixture, prefix: &str) {
    for section in program.sections().to_vec() {
        program.write_parameter(&section.name, &fixture.floats(&format!("{prefix}.{}", section.name)));
    }
}

fn check_parameters(program: &Program, fixture: &Fixture, prefix: &str) {
    for section in program.sections() {
        let key = format!("{prefix}.{}", section.name);
        fixture.check(&key, program.read_parameter(&section.name), 0.0, PARAMETER);
    }
}

fn repeated(values: &[f32], times: usize) -> Vec<f32> {
    values.iter().copied().cycle().take(values.len() * times).collect()
}

#[test]
fn the_darcy_loss_equals_the_authors_with_its_gradient() {
    let fixture = open("darcy_loss");
    let graph = Graph::new();
    let (mean, deviation) = (fixture.values("mean")[0], fixture.values("std")[0]);
    let (out, target) = (graph.input("out", [3, 81]), graph.input("y_enc", [3, 81]));
    let shape = [3, 9, 9];
    let prediction = (out * deviation + mean).reshape(shape);
    let loss = relative_l2_with_gradient(prediction, (target * deviation + mean).reshape(shape));
    graph.output("loss", loss);
    graph.output("gradient", graph.gradient(loss, &[out])[0].unwrap());
    let mut program = Program::compile(&graph);
    ["out", "y_enc"].iter().for_each(|key| program.write(key, &fixture.floats(key)));
    program.run();
    fixture.check("loss", program.read("loss"), 1e-5, 0.0);
    fixture.check("grad.out", program.read("gradient"), 3e-4, 1e-7);
}

#[test]
fn three_darcy_steps_give_the_authors_parameters() {
    let fixture = open("train_darcy");
    let (batch, side) = (2, 9);
    let grid = Grid::Plane { rows: side, columns: side };
    let task = Task::plain(grid, 2, 1, 1);
    let graph = Graph::new();
    let model = model(&graph, &task, "width = 16\ndepth = 1\nmlp_ratio = 2\npadded = [10, 10]");
    let input = Input::declare(&graph, &task, batch);
    let target = graph.input("target", [batch, side, side]);
    let statistic = |key: &str| fixture.values(key)[0];
    let prediction =
        model.forward(&input, Mode::Training).reshape([batch, side, side]) * statistic("y_std") + statistic("y_mean");
    let loss = relative_l2_with_gradient(prediction, target);
    graph.output("loss", loss);
    let adamw = AdamW::default();
    adamw.minimise(&graph, loss);
    let mut program = Program::compile(&graph);
    load(&mut program, &fixture, "p0");
    program.write("positions", &repeated(&fixture.floats("pos"), batch));
    let schedule = Schedule::OneCycle { peak: 5e-4, steps: 30 };
    let (coefficients, solutions) = (fixture.floats("coeff"), fixture.floats("sol"));
    let (mean, deviation) = (statistic("x_mean") as f32, statistic("x_std") as f32);
    for step in 0..3 {
        let samples = step * batch * side * side..(step + 1) * batch * side * side;
        let encoded: Vec<f32> = coefficients[samples.clone()].iter().map(|a| (a - mean) / deviation).collect();
        program.write("functions", &encoded);
        program.write("target", &solutions[samples]);
        adamw.pace(&mut program, step, schedule.at(step)).unwrap();
        program.run();
        let log = &fixture.values("log_f64")[4 * step..];
        let close = |found: f32, expected: f64| (f64::from(found) / expected - 1.0).abs() < 1e-4;
        assert!(close(program.read("loss")[0], log[0]), "loss of step {step}");
        assert!(close(program.read(GRADIENT_NORM)[0], log[3]), "gradient norm of step {step}");
    }
    check_parameters(&program, &fixture, "pN");
}

/// Teacher-forced frames are independent, so all of them are one batch.
#[test]
fn a_navier_stokes_step_and_rollout_give_the_authors_numbers() {
    let fixture = open("train_ns");
    let (batch, side, window, frames) = (2, 6, 4, 3);
    let points = side * side;
    let grid = Grid::Plane { rows: side, columns: side };
    let settings = "width = 16\ndepth = 1\nmlp_ratio = 2";
    let at = |key: &str, sample: usize, point: usize, frame: usize| {
        fixture.values(key)[(sample * points + point) * (window + frames) + frame] as f32
    };

    let task = Task::plain(grid, 2, window, 1);
    let graph = Graph::new();
    let input = Input::declare(&graph, &task, batch * frames);
    let prediction = model(&graph, &task, settings).forward(&input, Mode::Training);
    let loss = relative_l2_sum(prediction, graph.input("target", [batch * frames, points, 1]));
    graph.output("loss", loss);
    let adamw = AdamW { weight_decay: 0.05, clip: None, ..AdamW::default() };
    adamw.minimise(&graph, loss);
    let mut program = Program::compile(&graph);
    load(&mut program, &fixture, "p0");
    program.write("positions", &repeated(&fixture.floats("pos"), batch * frames));
    let (mut windows, mut targets) = (Vec::new(), Vec::new());
    for frame in 0..frames {
        for sample in 0..batch {
            for point in 0..points {
                windows.extend((frame..frame + window).map(|f| at("u_train", sample, point, f)));
                targets.push(at("u_train", sample, point, frame + window));
            }
        }
    }
    program.write("functions", &windows);
    program.write("target", &targets);
    adamw.pace(&mut program, 0, Schedule::OneCycle { peak: 5e-4, steps: 30 }.at(0)).unwrap();
    program.run();
    fixture.check("train_loss", program.read("loss"), 1e-5, 0.0);
    check_parameters(&program, &fixture, "p1");

    // The rollout feeds predictions back into the window.
    let graph = Graph::new();
    let input = Input::declare(&graph, &task, batch);
    graph.output("out", model(&graph, &task, settings).forward(&input, Mode::Inference));
    let mut rollout = Program::compile(&graph);
    rollout.write(lamo_tensor::PARAMETERS, program.read(lamo_tensor::PARAMETERS));
    rollout.write("positions", &repeated(&fixture.floats("pos"), batch));
    let mut history: Vec<Vec<f32>> = (0..batch * points)
        .map(|i| (0..window).map(|frame| at("u_test", i / points, i % points, frame)).collect())
        .collect();
    for _ in 0..frames {
        let recent: Vec<f32> = history.iter().flat_map(|past| past[past.len() - window..].to_vec()).collect();
        rollout.write("functions", &recent);
        rollout.run();
        history.iter_mut().zip(rollout.read("out")).for_each(|(past, &next)| past.push(next));
    }
    let predicted: Vec<f32> = history.iter().flat_map(|past| past[window..].to_vec()).collect();
    fixture.check("test_pred", &predicted, 1e-4, 0.0);
}

#[test]
fn a_plasticity_batch_of_steps_gives_the_authors_parameters() {
    let fixture = open("train_plasticity");
    let (batch, times, points) = (2, 3, 35);
    let task = Task::plain(Grid::Plane { rows: 7, columns: 5 }, 2, 1, 4).by_time(times);
    let settings = "latent = \"slices\"\nmixer = \"mamba2\"\ndirections = 2\nwidth = 16\ndepth = 1\nmlp_ratio = 1\n\
                    slice_heads = 2\ntokens = 5\nstates = 5\nhead_width = 8";
    let graph = Graph::new();
    let input = Input::declare(&graph, &task, batch);
    let prediction = model(&graph, &task, settings).forward(&input, Mode::Training);
    let loss = relative_l2(prediction, graph.input("target", [batch, points, 4])).sum_all();
    graph.output("loss", loss);
    let adamw = AdamW::default();
    adamw.minimise(&graph, loss);
    let mut program = Program::compile(&graph);
    load(&mut program, &fixture, "p0");
    program.write("positions", &repeated(&fixture.floats("pos"), batch));
    program.write("functions", &fixture.floats("fx"));
    let pace = Schedule::OneCycle { peak: 1e-3, steps: 30 }.at(0); // one pace for the whole batch of steps
    for step in 0..times {
        let chosen = |sample: usize| fixture.values("perm")[sample * times + step] as usize;
        let time: Vec<f32> =
            (0..batch).map(|sample| fixture.values("time")[sample * times + chosen(sample)] as f32).collect();
        let target: Vec<f32> =
            (0..batch * points * 4).map(|i| fixture.values("y")[i * times + chosen(i / (points * 4))] as f32).collect();
        program.write("time", &time);
        program.write("target", &target);
        adamw.pace(&mut program, step, pace).unwrap();
        program.run();
        let expected = fixture.values("log")[2 * step];
        assert!((f64::from(program.read("loss")[0]) / expected - 1.0).abs() < 1e-4, "loss of step {step}");
    }
    check_parameters(&program, &fixture, "pN");
}
