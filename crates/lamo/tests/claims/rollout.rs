//! A roll-out in the open: window by window on the host, with one forward pass at a time, is what the library computes on
//! the device, also where each step is shown its own snapshots of a field that drives the roll-out.

use crate::support::{Folder, experiment, save, train_to};
use lamo::Evaluation;
use lamo::data::Samples;
use lamo::data::dataset::{Normalise, Outcome, Role, Rule};
use lamo::data::import::{ArrayName, Own, OwnField};
use lamo::experiment::{Experiment, ExperimentData};
use lamo::network::{Input, Mode, Parameters, models};
use lamo::run::Operator;
use lamo::task::Task;
use lamo::training::optimiser::MEAN;
use lamo::training::{StepProgram, Trainer};
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, PARAMETERS, Program};
use std::ops::ControlFlow;

const GRID: Grid = Grid::Plane { rows: 6, columns: 5 };
const SNAPSHOTS: usize = 5;
const PAST: usize = 2;
const WIDTH: usize = 2;

/// Waves u and v of five snapshots, far from mean 0 and deviation 1, that run as fast as the field `speed` says. The first
/// two snapshots are the same in all samples: only `speed` tells what comes.
pub(crate) fn waves(folder: &Folder, samples: usize) -> ExperimentData {
    waves_beside(folder, samples, &[])
}

/// The same beside a force that drives them, with a snapshot for each of theirs.
fn driven_waves(folder: &Folder, samples: usize) -> ExperimentData {
    let force = |place: usize| 5.0 + (0.9 * place as f64).sin() + (place / GRID.points()) as f64;
    let values = (0..samples * SNAPSHOTS * GRID.points()).map(force);
    let force = save(folder, "force.npy", &[samples, SNAPSHOTS, 6, 5], values);
    waves_beside(folder, samples, &[(force, "ntxy")])
}

/// The same beside a force that is the same at all points: a number for each time, or that number at every point.
fn evenly_driven_waves(folder: &Folder, samples: usize, spread: bool) -> ExperimentData {
    let points = if spread { GRID.points() } else { 1 };
    let values = (0..samples * SNAPSHOTS * points).map(|place| 5.0 + (0.9 * (place / points) as f64).sin());
    let (shape, axes): (&[usize], _) =
        if spread { (&[samples, SNAPSHOTS, 6, 5], "ntxy") } else { (&[samples, SNAPSHOTS], "nt") };
    let force = save(folder, "force.npy", shape, values);
    waves_beside(folder, samples, &[(force, axes)])
}

fn waves_beside(folder: &Folder, samples: usize, beside: &[(ArrayName, &str)]) -> ExperimentData {
    let points = GRID.points();
    let speed = |sample: usize, point: usize| 0.2 + 0.25 * sample as f64 + 0.02 * (point % 5) as f64;
    let series = |phase: f64, scale: f64| {
        let value = move |place: usize| {
            let (sample, snapshot, point) = (place / points / SNAPSHOTS, place / points % SNAPSHOTS, place % points);
            let steps = snapshot.saturating_sub(PAST - 1) as f64;
            scale * (3.0 + (0.7 * point as f64 + phase + speed(sample, point) * steps).sin())
        };
        (0..samples * SNAPSHOTS * points).map(value)
    };
    let shape = [samples, SNAPSHOTS, 6, 5];
    let fields = [
        (
            Role::Input,
            save(folder, "speed.npy", &[samples, 6, 5], (0..samples * points).map(|i| speed(i / points, i % points))),
        ),
        (Role::Output, save(folder, "u.npy", &shape, series(0.0, 2.0))),
        (Role::Output, save(folder, "v.npy", &shape, series(1.0, 0.1))),
    ];
    let field = |(role, array, axes): (Role, ArrayName, Option<&str>)| OwnField {
        name: array.path.file_stem().unwrap().to_str().unwrap().into(),
        role,
        unit: "1".into(),
        normalise: Normalise::Channels,
        axes: axes.map(str::to_owned),
        arrays: vec![vec![array]],
    };
    let split = Some(Rule::Ends { train: samples - 1, test: 1 });
    let beside = beside.iter().map(|(array, axes)| (Role::Input, array.clone(), Some(*axes)));
    let fields = beside.chain(fields.map(|(role, array)| (role, array, None))).map(field).collect();
    let own = Own {
        name: "waves".into(),
        ragged: Vec::new(),
        grid: GRID,
        stride: 1,
        fields,
        times: None,
        windows: None,
        split,
        sizes: Default::default(),
    };
    let Outcome::Made(dataset) =
        own.import().unwrap().write(&folder.at("set"), &|_| ControlFlow::Continue(())).unwrap()
    else {
        panic!("the folder is new")
    };
    ExperimentData::read(&recipe(&[]), &dataset).unwrap()
}

pub(crate) fn recipe(changes: &[&str]) -> Experiment {
    let past = format!("data={{ past = {PAST}, train = 0, test = 0, normalise = [\"inputs\", \"outputs\"] }}");
    let base = [
        "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }",
        "train={ epochs = 3, batch = 2, rate = 3e-3, loss = \"relative-l2-of-frames\" }",
        &past,
    ];
    experiment(&[&base, changes].concat())
}

/// One forward pass for one sample, as the model itself gives it.
struct Pass<'a> {
    program: Program,
    task: &'a Task,
}

impl Pass<'_> {
    fn new(operator: &Operator) -> Pass<'_> {
        let task = &operator.task;
        let graph = Graph::new();
        let row = models::find(&operator.model.name).unwrap();
        let model = row.build(&Parameters::new(&graph), task, &operator.model.settings).unwrap();
        graph.output("out", model.forward(&Input::declare(&graph, task, 1), Mode::Inference));
        let mut program = Program::compile(&graph);
        program.write(PARAMETERS, &operator.parameters);
        Pass { program, task }
    }

    /// `[points, width]` the snapshot after a window `[points, past · width + static]`, both in physical units.
    fn next(&mut self, positions: &[f32], window: &[f32]) -> Vec<f32> {
        self.program.write("positions", &self.task.encode_positions(positions));
        self.program.write("functions", &self.task.encode_inputs(window, self.task.input_channels()));
        self.program.run();
        let mut snapshot = self.program.read("out").to_vec();
        self.task.normalisers.outputs.as_ref().unwrap().decode(&mut snapshot);
        snapshot
    }
}

/// What a step is shown of a window, `[points, past · width + force? + 1]`: the past, of a force that drives the waves the
/// snapshots of the window and of the step, and the speed.
fn shown(window: &[f32], functions: usize, time: usize) -> Vec<f32> {
    if functions == PAST * WIDTH + 1 {
        return window.to_vec();
    }
    let point = |point: &[f32]| {
        let (past, force) = (&point[..PAST * WIDTH], &point[PAST * WIDTH..functions - 1]);
        [past, &force[time..=time + PAST], &point[functions - 1..]].concat()
    };
    window.chunks_exact(functions).flat_map(point).collect()
}

/// The window one snapshot later: the oldest snapshot leaves, the new one is appended, the other fields stay.
fn moved(window: &[f32], functions: usize, snapshot: &[f32]) -> Vec<f32> {
    let points = window.chunks_exact(functions).zip(snapshot.chunks_exact(WIDTH));
    points.flat_map(|(old, new)| [&old[WIDTH..PAST * WIDTH], new, &old[PAST * WIDTH..]].concat()).collect()
}

/// `[count, times, points, width]`
fn rolled_out(operator: &Operator, samples: &Samples) -> Vec<f32> {
    rolled_out_anew(operator, samples, samples.times)
}

/// The same, with the true snapshots before each `every`-th one.
fn rolled_out_anew(operator: &Operator, samples: &Samples, every: usize) -> Vec<f32> {
    let mut pass = Pass::new(operator);
    let mut series = Vec::new();
    for sample in 0..samples.count {
        let mut window = samples.input_of(sample).to_vec();
        let mut truth = window.clone();
        let snapshots = samples.target_of(sample).chunks_exact(GRID.points() * WIDTH);
        for (time, target) in snapshots.enumerate() {
            if time % every == 0 {
                window = truth.clone();
            }
            let snapshot = pass.next(samples.positions_of(sample), &shown(&window, samples.functions, time));
            window = moved(&window, samples.functions, &snapshot);
            truth = moved(&truth, samples.functions, target);
            series.extend(snapshot);
        }
    }
    series
}

#[test]
fn a_roll_out_in_the_open_is_the_prediction_and_the_test_error() {
    let folder = Folder::new("rollout");
    is_the_roll_out_in_the_open(&waves(&folder, 5), PAST * WIDTH + 1);
}

#[test]
fn each_step_of_a_driven_roll_out_is_shown_its_own_snapshots() {
    let folder = Folder::new("driven-rollout");
    is_the_roll_out_in_the_open(&driven_waves(&folder, 5), PAST * WIDTH + PAST + 1 + 1);
}

fn is_the_roll_out_in_the_open(selection: &ExperimentData, channels: usize) {
    let experiment = recipe(&[]);
    let task = selection.task(&experiment).unwrap();
    task.check().unwrap();
    assert_eq!((task.input_channels(), task.output_channels(), task.time.count()), (channels, WIDTH, 3));
    assert!(task.normalisers.inputs.is_some() && task.normalisers.outputs.is_some());
    let all = &selection.train; // three samples and more are no whole number of batches
    let mut trainer = Trainer::new(&experiment, &task, all, all, Device::Cpu).unwrap();
    train_to(&mut trainer, None, usize::MAX);
    let operator = trainer.trained().unwrap().operator;
    let (open, predicted) = (rolled_out(&operator, all), operator.predict(all, Device::Cpu).unwrap());
    // A sample alone and in a batch, encoded and decoded at each of three steps: a hundred roundings of values up to 8.
    let worst = open.iter().zip(&predicted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 100.0 * 8.0 * f32::EPSILON / 2.0, "the roll-outs differ by {worst:.1e}");
    assert!(predicted.iter().zip(&all.targets).any(|(a, b)| (a - b).abs() > 1e-2), "nothing is predicted exactly");
    let numbers: Vec<usize> = (0..all.count).collect();
    let evaluation = Evaluation::of_task((&experiment, &task), None, (all, &numbers), &open);
    let (expected, found) = (evaluation.headline(), trainer.test_error().unwrap());
    assert_ne!(expected, evaluation.relative_l2, "two outputs count the same");
    assert!((found / expected - 1.0).abs() < 1e-5, "{found} inside the trainer, {expected} in the open");
}

#[test]
fn a_force_that_is_a_number_for_each_time_drives_as_that_number_at_all_points() {
    let folders = ["numbers", "spread"].map(|name| Folder::new(&format!("evenly-driven-{name}")));
    let [numbers, spread] = [0, 1].map(|place| evenly_driven_waves(&folders[place], 5, place == 1));
    is_the_roll_out_in_the_open(&numbers, PAST * WIDTH + PAST + 1 + 1);
    assert_eq!((&numbers.train, &numbers.test), (&spread.train, &spread.test));
    let [one, other] = [&numbers, &spread].map(|data| data.task(&recipe(&[])).unwrap().normalisers);
    assert_eq!(one, other);
}

#[test]
fn a_training_without_a_teacher_learns_from_its_own_roll_out() {
    learns_from_its_own_roll_out("train.teacher_forcing=false", 3, waves);
}

#[test]
fn a_driven_training_learns_from_its_own_roll_out() {
    learns_from_its_own_roll_out("train.teacher_forcing=false", 3, driven_waves);
    learns_from_its_own_roll_out("train.rollout=2", 2, driven_waves);
}

#[test]
fn a_driven_training_with_a_teacher_shows_each_step_its_own_snapshots() {
    let folder = Folder::new("driven-teacher");
    let selection = driven_waves(&folder, 5);
    let all = &selection.train;
    let experiment = recipe(&["train.balanced=false", &format!("train.batch={}", all.count)]);
    let task = selection.task(&experiment).unwrap();
    let mut step = StepProgram::new(&experiment, &task, all, Device::Cpu).unwrap();
    let operator = Trainer::new(&experiment, &task, all, all, Device::Cpu).unwrap().trained().unwrap().operator;
    let theta = step.program().read(PARAMETERS).to_vec();
    assert_eq!(operator.parameters, theta, "the same seed");
    step.run(0).unwrap();
    let (found, expected) =
        (step.program().read("train.total")[0], sum_of_errors(&rolled_out_anew(&operator, all, 1), all));
    assert!((f64::from(found) / expected - 1.0).abs() < 1e-5, "{found} in the step, {expected} in the open");
}

/// The sum of the relative errors of all snapshots.
fn sum_of_errors(predicted: &[f32], samples: &Samples) -> f64 {
    let length = GRID.points() * WIDTH;
    let relative = |(found, target): (&[f32], &[f32])| {
        let miss: f64 = found.iter().zip(target).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        (miss / target.iter().map(|b| f64::from(*b).powi(2)).sum::<f64>()).sqrt()
    };
    predicted.chunks_exact(length).zip(samples.targets.chunks_exact(length)).map(relative).sum()
}

#[test]
fn a_driven_roll_out_of_more_steps_is_step_after_step() {
    let folder = Folder::new("driven-longer");
    let selection = driven_waves(&folder, 5);
    let experiment = recipe(&[]);
    let task = selection.task(&experiment).unwrap();
    let all = &selection.train;
    let operator = Trainer::new(&experiment, &task, all, all, Device::Cpu).unwrap().trained().unwrap().operator;
    // Two snapshots more of the force than in training, before the others.
    let past = PAST * WIDTH;
    let longer = |point: &[f32]| [&point[..past], &[4.5, 6.5], &point[past..]].concat();
    let inputs: Vec<f32> = all.inputs.chunks_exact(all.functions).flat_map(longer).collect();
    let samples = Samples { functions: all.functions + 2, inputs, times: 5, targets: Vec::new(), ..all.clone() };
    assert_eq!(samples.functions, task.given_channels(5));
    let predicted = operator.predict(&samples, Device::Cpu).unwrap();
    let length = GRID.points() * WIDTH;
    let mut pass = Pass::new(&operator);
    let mut window = samples.input_of(0).to_vec();
    for (time, found) in predicted[..5 * length].chunks_exact(length).enumerate() {
        let snapshot = pass.next(samples.positions_of(0), &shown(&window, samples.functions, time));
        let worst = snapshot.iter().zip(found).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 100.0 * 8.0 * f32::EPSILON / 2.0, "step {time} differs by {worst:.1e}");
        window = moved(&window, samples.functions, &snapshot);
    }
    let fewer = Samples { times: 4, ..samples.clone() };
    let fewer = operator.predict(&fewer, Device::Cpu).unwrap();
    assert_eq!(fewer[..4 * length], predicted[..4 * length], "a force for more steps than are asked for");
    let refused = operator.predict(&Samples { times: 6, ..samples }, Device::Cpu).unwrap_err().to_string();
    assert!(refused.contains("input"), "{refused}");
}

#[test]
fn a_training_may_roll_out_a_few_snapshots_at_a_time() {
    learns_from_its_own_roll_out("train.rollout=2", 2, waves); // three snapshots: the last window ends early
    learns_from_its_own_roll_out("train.rollout=3", 3, waves);
    learns_from_its_own_roll_out("train.rollout=9", 3, waves);
}

/// The loss of a step is that of the roll-out in the open, and its gradient runs through all snapshots: along it, the loss
/// changes by the square of its norm.
fn learns_from_its_own_roll_out(key: &str, every: usize, data: fn(&Folder, usize) -> ExperimentData) {
    let folder = Folder::new("no-teacher");
    let selection = data(&folder, 5);
    let all = &selection.train;
    let batch = format!("train.batch={}", all.count);
    let constant =
        ["train.clip=0.0", "train.schedule=constant", "train.weight_decay=0.0", "train.balanced=false", &batch];
    let free = recipe(&[&constant[..], &[key]].concat());
    let task = selection.task(&free).unwrap();
    let mut step = StepProgram::new(&free, &task, all, Device::Cpu).unwrap();
    let theta = step.program().read(PARAMETERS).to_vec();
    let loss = |step: &mut StepProgram, theta: &[f32]| {
        step.program().write(PARAMETERS, theta);
        step.run(0).unwrap();
        f64::from(step.program().read("train.total")[0])
    };
    let found = loss(&mut step, &theta);
    let gradient: Vec<f32> = step.program().read(MEAN).iter().map(|mean| mean / 0.1).collect(); // (1 − β₁) g

    let operator = Trainer::new(&free, &task, all, all, Device::Cpu).unwrap().trained().unwrap().operator;
    assert_eq!(operator.parameters, theta, "the same seed");
    let open = rolled_out_anew(&operator, all, every);
    let expected = sum_of_errors(&open, all);
    assert!((found / expected - 1.0).abs() < 1e-5, "{found} in the step, {expected} in the open");
    let mut taught = StepProgram::new(&recipe(&constant), &task, all, Device::Cpu).unwrap();
    let taught = loss(&mut taught, &theta);
    assert!((taught / found - 1.0).abs() > 1e-3, "the teacher makes no difference: {taught} and {found}");

    let norm: f64 = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
    let reach = 1e-2; // far above rounding, and the loss is nearly linear along it
    let moved = |sign: f32| -> Vec<f32> {
        theta.iter().zip(&gradient).map(|(value, g)| value + sign * reach as f32 * g / norm as f32).collect()
    };
    let mut fresh = StepProgram::new(&free, &task, all, Device::Cpu).unwrap();
    let [up, down] = [1.0, -1.0].map(|sign| loss(&mut fresh, &moved(sign)));
    let slope = (up - down) / (2.0 * reach);
    assert!((slope / norm - 1.0).abs() < 0.01, "the loss changes by {slope} along a gradient of norm {norm}");
}

#[test]
fn a_static_field_beside_the_past_is_learned_from() {
    let folder = Folder::new("beside");
    let selection = waves(&folder, 4);
    let experiment = recipe(&["train={ epochs = 250, batch = 3, rate = 1e-2, evaluate = 250 }"]);
    let task = selection.task(&experiment).unwrap();
    let train = &selection.train;
    let same = |sample: usize| train.input_of(sample).chunks_exact(5).flat_map(|point| point[..4].to_vec());
    assert!(same(0).eq(same(1)) && train.input_of(0) != train.input_of(1), "only the static field tells them apart");
    let mut trainer = Trainer::new(&experiment, &task, train, train, Device::Cpu).unwrap();
    trainer.run(None, std::time::Duration::MAX, &mut |_| ControlFlow::Continue(())).unwrap();
    let learned = trainer.test_error().unwrap();
    // Without the field, the best prediction is the mean of the samples.
    let length = train.times * GRID.points() * WIDTH;
    let mean = |place: usize| {
        (0..train.count).map(|sample| train.targets[sample * length + place]).sum::<f32>() / train.count as f32
    };
    let blind: Vec<f32> = (0..train.count * length).map(|place| mean(place % length)).collect();
    let blind = train.errors(&blind).iter().sum::<f64>() / train.count as f64;
    assert!(learned < 0.02 && learned < 0.3 * blind, "the error is {learned}, without the field {blind}");
}
