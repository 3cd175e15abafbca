//! The training loop takes the authors' steps, and every shipped experiment runs.

use crate::fixture::{Fixture, open};
use crate::support::{Folder, experiment, shrunk, train_to};
use lamo::data::dataset::{Batches, Outcome};
use lamo::data::{Recipe, Samples};
use lamo::experiment::{EXPERIMENTS, Experiment, ExperimentData, Preset, Request, Shipped};
use lamo::run::Checkpoint;
use lamo::task::time::order_of_times;
use lamo::task::{Normaliser, Positions, Task, Time};
use lamo::training::Trainer;
use lamo_geometry::Grid;
use lamo_physics::problems;
use lamo_tensor::Device;
use std::ops::ControlFlow;
use std::time::Duration;

/// Allowed absolute error of a trained parameter.
const PARAMETER: f64 = 2e-6;

fn square(side: usize) -> Grid {
    Grid::Plane { rows: side, columns: side }
}

/// A trainer with the authors' first parameters.
fn trainer(experiment: &Experiment, task: &Task, train: &Samples, fixture: &Fixture) -> Trainer {
    let mut trainer = Trainer::new(experiment, task, train, train, Device::Cpu).unwrap();
    let mut start: Checkpoint = trainer.checkpoint().unwrap();
    let operator = &mut start.trained.operator;
    for section in operator.sections.clone() {
        operator.parameters[section.range()].copy_from_slice(&fixture.floats(&format!("p0.{}", section.name)));
    }
    trainer.restore(&start).unwrap();
    trainer
}

fn check_parameters(trainer: &Trainer, fixture: &Fixture, prefix: &str) {
    let operator = trainer.trained().unwrap().operator;
    for section in &operator.sections {
        let key = format!("{prefix}.{}", section.name);
        fixture.check(&key, &operator.parameters[section.range()], 0.0, PARAMETER);
    }
}

fn close(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 1e-4
}

#[test]
fn an_epoch_on_darcy_gives_the_authors_parameters() {
    let fixture = open("train_darcy");
    let (inputs, targets) = (fixture.floats("coeff"), fixture.floats("sol"));
    let train = Samples::new(square(9), 1, inputs, 1, targets).unwrap();
    fixture.check("pos", &train.positions, 0.0, 1e-7);
    // The authors' batches in their order; inside a batch the order has no meaning.
    let all: Vec<usize> = (0..6).collect();
    let in_order = |seed: &u64| {
        let batches = Batches::shuffled(&all, 2, *seed, 0);
        batches.iter().enumerate().all(|(number, batch)| batch.iter().all(|sample| sample / 2 == number))
    };
    let seed = (0..10_000).find(in_order).unwrap();
    let experiment = experiment(&[
        "model.settings={ width = 16, depth = 1, mlp_ratio = 2, padded = [10, 10] }",
        "train={ epochs = 10, batch = 2, rate = 5e-4, loss = \"relative-l2-with-gradient\" }",
        "data.normalise=[\"inputs\", \"outputs\"]",
        &format!("seed={seed}"),
    ]);
    let task = experiment.task(&train).unwrap();
    for (normaliser, letter) in [(&task.normalisers.inputs, 'x'), (&task.normalisers.outputs, 'y')] {
        let Normaliser { mean, deviation } = normaliser.as_ref().unwrap();
        fixture.check(&format!("{letter}_mean"), mean, 1e-6, 0.0);
        fixture.check(&format!("{letter}_std"), deviation, 1e-6, 0.0);
    }
    let mut trainer = trainer(&experiment, &task, &train, &fixture);
    let mut mean = 0.0;
    trainer
        .run(None, Duration::MAX, &mut |progress| {
            mean = progress.finished.map_or(mean, |line| line.train);
            if progress.finished.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    check_parameters(&trainer, &fixture, "pN");
    let losses: Vec<f64> = fixture.values("log_f64").chunks(4).map(|row| row[0]).collect();
    assert!(close(mean, losses.iter().sum::<f64>() / 6.0), "mean loss {mean}, steps {losses:?}");
}

#[test]
fn a_teacher_forced_step_and_a_rollout_give_the_authors_numbers() {
    let fixture = open("train_ns");
    let (side, past, frames, points) = (6, 4, 3, 36);
    // The authors keep the frames of a point together; a sample here is frame by frame.
    let samples = |key: &str| {
        let series = fixture.values(key);
        let at = |sample: usize, point: usize, frame: usize| series[(sample * points + point) * 7 + frame] as f32;
        let inputs = (0..2 * points).flat_map(|i| (0..past).map(move |f| at(i / points, i % points, f))).collect();
        let later = |i: usize| at(i / (frames * points), i % points, past + i / points % frames);
        let targets = (0..2 * frames * points).map(later).collect();
        let empty = Samples::new(square(side), 0, Vec::new(), 1, vec![1.0; 2 * points]).unwrap();
        Samples { functions: past, inputs, times: frames, targets, ..empty }
    };
    let (train, test) = (samples("u_train"), samples("u_test"));
    let experiment = experiment(&[
        "model.settings={ width = 16, depth = 1, mlp_ratio = 2 }",
        "train={ epochs = 30, batch = 2, rate = 5e-4, weight_decay = 0.05, clip = 0, loss = \"relative-l2-of-frames\" }",
        "data.normalise=[]",
    ]);
    let task = experiment.task(&train).unwrap();
    assert_eq!(task.time, Time::RollOut { past, snapshots: frames, clock: Vec::new() });
    let mut trainer = trainer(&experiment, &task, &train, &fixture);
    let mut loss = 0.0;
    trainer
        .run(None, Duration::MAX, &mut |progress| {
            loss = progress.train * 6.0;
            ControlFlow::Break(())
        })
        .unwrap();
    assert!(close(loss, fixture.values("train_loss")[0]), "loss {loss}");
    check_parameters(&trainer, &fixture, "p1");
    let rollout = trainer.trained().unwrap().operator.predict(&test, Device::Cpu).unwrap(); // [sample, frame, point]
    let by_point: Vec<f32> = (0..2 * points * frames)
        .map(|i| rollout[(i / (points * frames) * frames + i % frames) * points + i / frames % points])
        .collect();
    fixture.check("test_pred", &by_point, 1e-4, 0.0);
}

#[test]
fn a_batch_of_times_gives_the_authors_parameters() {
    let fixture = open("train_plasticity");
    let (count, points, outputs) = (3, 35, 4);
    let grid = Grid::Plane { rows: 7, columns: 5 };
    let y = fixture.values("y"); // [sample, point, output, time]
    let at = |i: usize| {
        let (sample, time, rest) =
            (i / (count * points * outputs), i / (points * outputs) % count, i % (points * outputs));
        y[(sample * points * outputs + rest) * count + time] as f32
    };
    let targets: Vec<f32> = (0..2 * count * points * outputs).map(at).collect();
    let seed = (0..10_000).find(|&seed| {
        let expected =
            |sample: usize| fixture.values("perm")[sample * count..][..count].iter().map(|&time| time as usize);
        (0..2).all(|sample| order_of_times(count, seed, sample).into_iter().eq(expected(sample)))
    });
    let experiment = experiment(&[
        "model.settings={ latent = \"slices\", mixer = \"mamba2\", directions = 2, width = 16, depth = 1, mlp_ratio = 1 }",
        "model.settings={ slice_heads = 2, tokens = 5, states = 5, head_width = 8, encoder = \"own\", groups = 1 }",
        "train={ epochs = 30, batch = 2, rate = 1e-3, loss = \"relative-l2-of-times\", balanced = false }",
        "data={ normalise = [\"inputs\"], scrambled = true }",
        &format!("seed={}", seed.unwrap()),
    ]);
    // The die's height is the same along the columns.
    let die = fixture.values("die");
    let inputs = (0..2 * points).map(|i| die[i / points * 7 + i % points / 5] as f32).collect();
    let plane = Samples::new(grid, 1, inputs, 1, vec![1.0; 2 * points]).unwrap();
    let positions = fixture.floats("pos");
    let train = Samples { times: count, outputs, targets, ..plane }.at(2, positions).unwrap();
    let task = experiment.task(&train).unwrap();
    assert_eq!(task.positions, Positions::Scrambled, "the authors' positions are the scrambled lattice");
    let mut trainer = trainer(&experiment, &task, &train, &fixture);
    trainer.run(None, Duration::MAX, &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!(trainer.step(), count);
    check_parameters(&trainer, &fixture, "pN");
}

#[test]
fn a_free_place_in_the_last_batch_changes_nothing() {
    let wave = |count: usize, shift: f32| (0..count).map(|i| (0.7 * i as f32 + shift).sin()).collect::<Vec<f32>>();
    let train = Samples::new(square(6), 1, wave(36, 0.0), 1, wave(36, 1.0)).unwrap();
    let trained = |batch: usize| {
        let experiment = experiment(&[
            "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }",
            &format!("train={{ epochs = 3, batch = {batch} }}"),
        ]);
        let task = experiment.task(&train).unwrap();
        let mut trainer = Trainer::new(&experiment, &task, &train, &train, Device::Cpu).unwrap();
        let losses = train_to(&mut trainer, None, usize::MAX);
        (losses, trainer.trained().unwrap().operator.parameters)
    };
    let ((alone, parameters), (padded, same)) = (trained(1), trained(3));
    assert!(alone.iter().zip(&padded).all(|(a, b)| (a / b - 1.0).abs() < 1e-5), "{alone:?} and {padded:?}");
    let worst = parameters.iter().zip(&same).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-5, "parameters differ by {worst:.1e}");
}

/// The preset `quick` on a coarser grid with fewer samples; 0.066 and 0.050 were seen.
#[test]
fn a_small_darcy_is_learned_by_lamo_and_by_fno() {
    let folder = Folder::new("learned");
    for (model, setting, enough) in [("lamo", "depth=3", 0.12), ("fno", "modes=6", 0.08)] {
        let changes = [
            "data.settings.resolution=16".to_owned(),
            "data={ train = 256, test = 64, first_test = 256 }".to_owned(),
            "train.epochs=10".to_owned(),
            format!("model.settings.{setting}"),
        ];
        let request =
            Request { benchmark: Some("darcy"), model: Some(model), preset: Some(Preset::Quick), ..Request::default() };
        let experiment = Request { changes: &changes, ..request }.resolve().unwrap();
        let recipe = Recipe::named("darcy", &["resolution=16"], 0, 320).unwrap();
        let (Outcome::Made(dataset) | Outcome::AlreadyThere(dataset)) =
            recipe.make(&folder.at("darcy"), 2, &|_| ControlFlow::Continue(())).unwrap()
        else {
            unreachable!("the making is never stopped")
        };
        let selection = ExperimentData::read(&experiment, &dataset).unwrap();
        let task = selection.task(&experiment).unwrap();
        let mut trainer = Trainer::new(&experiment, &task, &selection.train, &selection.test, Device::Cpu).unwrap();
        trainer.run(None, Duration::MAX, &mut |_| ControlFlow::Continue(())).unwrap();
        let error = trainer.test_error().unwrap();
        assert!(error < enough, "{model} stops at {error}");
    }
}

#[test]
fn every_shipped_experiment_runs_when_shrunk_and_its_test_error_is_that_of_its_predictions() {
    let device = std::env::var("LAMO_TEST_DEVICE").map_or(Device::Cpu, |device| device.parse().unwrap());
    let folder = Folder::new("shrunk");
    let mut ran = 0;
    for Shipped { name, text, .. } in EXPERIMENTS.iter() {
        let full = Experiment::parse(name, text).unwrap();
        let Ok(row) = problems::find(&full.data.problem) else { continue };
        let mut small: Vec<String> = row.small.iter().map(ToString::to_string).collect();
        let series = row.parameters.iter().any(|parameter| parameter.name == "frames") && full.data.past > 1;
        if series {
            small.push("frames=4".into());
        }
        let data = folder.at(row.name);
        let recipe = Recipe::named(row.name, &small, 1, 6).unwrap();
        let dataset = match recipe.make(&data, 2, &|_| ControlFlow::Continue(())).unwrap() {
            Outcome::Made(dataset) | Outcome::AlreadyThere(dataset) => dataset,
            Outcome::Stopped(_) => unreachable!("the making is never stopped"),
        };
        let mut changes = shrunk(&full);
        changes.extend([
            "train={ epochs = 1, batch = 2 }".to_owned(),
            "data={ train = 3, test = 3, first_test = 3 }".to_owned(), // a batch and a half each
            format!("data.past={}", if series { 1 + ran % 2 } else { 1 }),
        ]);
        let request = Request { file: Some((name, text)), changes: &changes, ..Request::default() };
        let experiment = request.resolve().unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let selection = ExperimentData::read(&experiment, &dataset).unwrap_or_else(|error| panic!("{name}: {error}"));
        let task = selection.task(&experiment).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut trainer = Trainer::new(&experiment, &task, &selection.train, &selection.test, device)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let losses = train_to(&mut trainer, None, usize::MAX);
        assert!(losses.len() == 1 && losses[0].is_finite(), "{name}: {losses:?}");
        let error = trainer.test_error().unwrap();
        let predicted =
            selection.test.errors(&trainer.trained().unwrap().operator.predict(&selection.test, device).unwrap());
        let expected = predicted.iter().sum::<f64>() / predicted.len() as f64;
        assert!((error / expected - 1.0).abs() < 1e-5, "{name}: {error} inside the program, {expected} outside");
        ran += 1;
    }
    assert_eq!(ran, EXPERIMENTS.len(), "an experiment has no problem that makes its data");
}
