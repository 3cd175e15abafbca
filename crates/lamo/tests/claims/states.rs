//! States of models: running statistics are trained, tested, saved, resumed, moved and predicted with.

use crate::support::{Folder, essence, experiment, train_to};
use lamo::data::Samples;
use lamo::experiment::Experiment;
use lamo::network::{Input, Mode, Parameters, models};
use lamo::run::model_folder::{Description, ModelFolder};
use lamo::run::{self, Environment, Run, Trained};
use lamo::task::{Task, Time};
use lamo::training::{StepProgram, Trainer};
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, MODEL_STATES, PARAMETERS, Program};
use safetensors::SafeTensors;
use std::path::Path;

const MODEL: &str =
    "{ width = 8, depth = 2, heads = 2, mlp_ratio = 1, basis = 3, attention = \"efficient\", initial = \"fan-in\" }";
const GRID: Grid = Grid::Plane { rows: 6, columns: 5 };

/// A model with running covariances; four steps an epoch, the last batch has one sample.
fn small(changes: &[&str]) -> Experiment {
    let settings = format!("model.settings={MODEL}");
    let base = ["model.name=ono", &settings, "train={ epochs = 3, batch = 2, rate = 3e-3 }"];
    experiment(&[&base, changes].concat())
}

fn samples() -> Samples {
    let field = |change: fn(f32) -> f32| (0..7 * 30).map(|i| change((0.37 * i as f32).sin())).collect::<Vec<f32>>();
    Samples::new(GRID, 1, field(|v| v), 1, field(|v| 1.5 + v * v)).unwrap()
}

fn trainer(experiment: &Experiment) -> Trainer {
    let samples = samples();
    let task = experiment.task(&samples).unwrap();
    Trainer::new(experiment, &task, &samples, &samples.clone().first(3), Device::Cpu).unwrap()
}

fn create(folder: &Path, experiment: &Experiment) -> Run {
    Run::create(folder, experiment, &Environment::here(Device::Cpu, 1, None)).unwrap()
}

#[test]
fn a_run_with_states_that_is_interrupted_after_any_step_ends_with_the_same_bits() {
    let (folder, experiment) = (Folder::new("resume-states"), small(&[]));
    let whole = folder.at("whole");
    train_to(&mut trainer(&experiment), Some(&create(&whole, &experiment)), usize::MAX);
    let expected = essence(&whole);
    let states = &expected.0.trained.operator.states;
    let names: Vec<_> = states.sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(names, ["blocks.0.feature_cov", "blocks.1.feature_cov"]);
    assert!(states.values.iter().any(|&value| value != 0.0), "the covariances moved");
    for stop in [1, 3, 4, 11] {
        let path = folder.at(&format!("stopped-{stop}"));
        train_to(&mut trainer(&experiment), Some(&create(&path, &experiment)), stop);
        let (run, again, begun) = Run::open(&path).unwrap();
        let mut resumed = trainer(&again);
        resumed.restore(&begun.unwrap()).unwrap();
        train_to(&mut resumed, Some(&run), usize::MAX);
        assert!(essence(&path) == expected, "stopped after step {stop}");
        let best = |folder: &Path| Trained::open(&run::checkpoint_path(folder, run::BEST)).unwrap();
        assert_eq!(best(&path).operator, best(&whole).operator);
    }
}

/// Also the snapshot of the best epoch has the states of that epoch: its error is that of the epoch.
#[test]
fn the_test_and_a_prediction_use_the_states_that_the_training_left() {
    let (folder, experiment) = (Folder::new("predict-states"), small(&[]));
    let path = folder.at("run");
    let mut trainer = trainer(&experiment);
    train_to(&mut trainer, Some(&create(&path, &experiment)), usize::MAX);
    let test = samples().first(3);
    let error = |operator: &run::Operator| {
        let errors = test.errors(&operator.predict(&test, Device::Cpu).unwrap());
        errors.iter().sum::<f64>() / errors.len() as f64
    };
    let operator = trainer.trained().unwrap().operator;
    let (found, expected) = (trainer.test_error().unwrap(), error(&operator));
    assert!((found / expected - 1.0).abs() < 1e-5, "{found} inside the trainer, {expected} by a prediction");
    let best = run::checkpoint_path(&path, run::BEST);
    let epoch = lamo::Checkpoint::read(&best).unwrap().best.unwrap();
    let (found, expected) = (error(&Trained::open(&best).unwrap().operator), epoch.error);
    assert!((found / expected - 1.0).abs() < 1e-5, "{found} from the best checkpoint, {expected} in its epoch");
    let mut other = operator;
    other.states.values.iter_mut().for_each(|value| *value *= 4.0);
    assert!((error(&other) / error(&trainer.trained().unwrap().operator) - 1.0).abs() > 1e-3, "the states matter");
}

#[test]
fn weights_files_have_the_states_under_the_authors_names_and_may_lack_optional_ones() {
    let (folder, experiment) = (Folder::new("export-states"), small(&[]));
    let mut trainer = trainer(&experiment);
    train_to(&mut trainer, None, 5);
    let operator = trainer.trained().unwrap().operator;
    let weights = folder.at("weights.safetensors");
    operator.write_weights(&weights, &Default::default()).unwrap();
    let bytes = std::fs::read(&weights).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.tensor("blocks.1.feature_cov").unwrap().shape(), [3, 3]);
    assert_eq!(file.len(), operator.sections.len() + operator.states.sections.len());
    let text = format!(
        "[model]\nname = \"ono\"\nsettings = {MODEL}\n\n[task]\ngrid = {{ kind = \"plane\", rows = 6, columns = 5 }}\nspace = 2\n\
         functions = 1\noutputs = 1\n"
    );
    std::fs::write(folder.at("model.toml"), text).unwrap();
    let description = || Description::read(&folder.at("model.toml")).unwrap();
    let imported = ModelFolder::import(description(), &weights).unwrap();
    assert_eq!((&imported.operator.parameters, &imported.operator.states), (&operator.parameters, &operator.states));
    imported.write(&folder.at("folder")).unwrap();
    assert_eq!(ModelFolder::read(&folder.at("folder")).unwrap().operator, imported.operator);
    let mut fresh = operator.clone();
    fresh.states = Default::default();
    fresh.write_weights(&weights, &Default::default()).unwrap();
    let imported = ModelFolder::import(description(), &weights).unwrap().operator;
    assert_eq!(imported.parameters, operator.parameters);
    assert!(imported.states.values.len() == 18 && imported.states.values.iter().all(|&value| value == 0.0));
    let predicted = imported.predict(&samples(), Device::Cpu).unwrap();
    assert!(predicted.iter().all(|value| value.is_finite()), "a model that was never trained predicts");
}

#[test]
fn a_training_that_starts_from_another_takes_its_states() {
    let mut source = trainer(&small(&[]));
    train_to(&mut source, None, 5);
    let given = source.trained().unwrap().operator;
    let mut started = trainer(&small(&["seed=5"]));
    let transfer = started.start_from(&given).unwrap();
    assert!(transfer.drawn.is_empty() && transfer.unused.is_empty(), "{transfer}");
    assert_eq!(started.trained().unwrap().operator.states, given.states);
    let changed = MODEL.replace("basis = 3", "basis = 4");
    let mut other = trainer(&small(&[&format!("model.settings={changed}")]));
    let transfer = other.start_from(&given).unwrap();
    let lacking = transfer.drawn.iter().filter(|drawn| drawn.name.ends_with("feature_cov")).count();
    assert_eq!(lacking, 2, "{transfer}");
    assert!(other.trained().unwrap().operator.states.values.iter().all(|&value| value == 0.0));
}

/// One step of a roll-out is a training pass for each of its windows. By hand: the passes one after the other, as programs.
#[test]
fn the_windows_of_a_roll_out_move_the_states_one_after_the_other() {
    let (count, times, points) = (2, 3, GRID.points());
    let series: Vec<f32> = (0..count * (times + 1) * points).map(|i| 1.2 + (0.23 * i as f32).sin()).collect();
    let snapshot = |sample: usize, time: usize| {
        let start = (sample * (times + 1) + time) * points;
        series[start..start + points].to_vec()
    };
    let both = |time: usize| (0..count).flat_map(|sample| snapshot(sample, time)).collect::<Vec<f32>>();
    let targets = (0..count).flat_map(|sample| (1..=times).flat_map(move |time| snapshot(sample, time)));
    let samples = Samples { times, targets: targets.collect(), ..Samples::new(GRID, 1, both(0), 1, both(1)).unwrap() };
    let time = Time::RollOut { past: 1, snapshots: times, clock: Vec::new() };
    let task = Task { time, ..Task::plain(GRID, 2, 0, 1) };
    let experiment = small(&["train.loss=relative-l2-of-frames", "data.past=1"]);
    let mut step = StepProgram::new(&experiment, &task, &samples, Device::Cpu).unwrap();
    let first = step.program().read(PARAMETERS).to_vec();
    step.run(0).unwrap();
    let found = step.program().read(MODEL_STATES).to_vec();

    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let model = models::find("ono").unwrap().build(&parameters, &task, &experiment.model.settings).unwrap();
    graph.output("out", model.forward(&Input::declare(&graph, &task, count), Mode::Training));
    parameters.store_states();
    let mut program = Program::compile(&graph);
    program.write(PARAMETERS, &first);
    program.write("positions", &[&samples.positions[..]; 2].concat());
    for time in 0..times {
        program.write("functions", &both(time));
        program.run();
    }
    let expected = program.read(MODEL_STATES);
    let largest = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    assert!(largest > 0.0);
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-5 * largest, "{found} instead of {expected}");
    }
}
