//! Training on some points of each sample: which they are, what they mean, and that all points are tested.

use crate::support::{Folder, essence, experiment, train_to};
use lamo::data::Samples;
use lamo::experiment::Experiment;
use lamo::network::models::{MODELS, Row};
use lamo::run::{self, Checkpoint, Environment, Run};
use lamo::task::Task;
use lamo::training::Trainer;
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::path::Path;

const SIZES: [usize; 7] = [9, 14, 11, 30, 28, 9, 17];

fn wave(count: usize, pace: f32) -> Vec<f32> {
    (0..count).map(|i| (pace * i as f32 + 0.3).sin() + 0.2 * (0.11 * i as f32).cos()).collect()
}

/// Points in the plane, a function on them, and one that is asked for; each point by itself, or `alike` in a sample.
fn clouds(sizes: &[usize], alike: bool) -> Samples {
    let place = |(sample, &size): (usize, &usize)| {
        (0..size).map(move |point| if alike { 100.0 * sample as f32 } else { (sample * 37 + point) as f32 })
    };
    let places: Vec<f32> = sizes.iter().enumerate().flat_map(place).collect();
    let positions: Vec<f32> = places.iter().flat_map(|at| [(0.9 * at).sin(), (0.7 * at).cos()]).collect();
    let inputs: Vec<f32> = places.iter().map(|at| (0.5 * at + 0.3).sin()).collect();
    let targets = positions.chunks(2).zip(&inputs).map(|(place, input)| 2.5 + place[0] * input - place[1]).collect();
    match sizes.iter().all(|size| *size == sizes[0]) {
        true => Samples::cloud(sizes.len(), (2, positions), (1, inputs), (1, targets)).unwrap(),
        false => Samples::ragged(sizes, (2, positions), (1, inputs), (1, targets)).unwrap(),
    }
}

/// The same as a time series whose first snapshot is the only input.
fn series(still: &Samples, times: usize) -> Samples {
    let snapshot = |sample: usize| {
        let first = still.target_of(sample);
        (1..=times).flat_map(move |time| first.iter().map(move |value| value + 0.2 * time as f32 * value.sin()))
    };
    let targets = (0..still.count).flat_map(snapshot).collect();
    Samples { inputs: still.targets.clone(), times, targets, ..still.clone() }
}

fn row(name: &str) -> &'static Row {
    MODELS.iter().find(|row| row.name == name).unwrap()
}

fn small(row: &Row, changes: &[&str]) -> Experiment {
    let settings = (row.tiny)(&Task::plain(Grid::Cloud { points: 30 }, 2, 1, 1));
    let model = format!("model={{ name = \"{}\", settings = {} }}", row.name, toml::Value::from(settings));
    let fixed = [model.as_str(), "train.epochs=3", "train.batch=2", "seed=3"];
    experiment(&[&fixed, changes].concat())
}

fn trainer(experiment: &Experiment, samples: &Samples) -> Trainer {
    let task = experiment.task(samples).unwrap();
    Trainer::new(experiment, &task, samples, samples, Device::Cpu).unwrap()
}

fn trained(experiment: &Experiment, samples: &Samples) -> (Vec<f64>, f64, Vec<f32>) {
    let mut trainer = trainer(experiment, samples);
    let losses = train_to(&mut trainer, None, usize::MAX);
    (losses, trainer.test_error().unwrap(), trainer.trained().unwrap().operator.parameters)
}

#[test]
fn with_as_many_points_as_the_largest_sample_has_the_bits_are_those_of_all_points() {
    for samples in [clouds(&[12; 5], false), clouds(&SIZES, false)] {
        for name in ["lamo", "transolver", "galerkin"] {
            let all = trained(&small(row(name), &[]), &samples);
            for points in [samples.grid.points(), samples.grid.points() + 1, 100_000] {
                let found = trained(&small(row(name), &[&format!("train.points={points}")]), &samples);
                assert!(found == all, "{name} with {points} points");
            }
            let fewer = trained(&small(row(name), &["train.points=8"]), &samples);
            assert!(fewer.2 != all.2, "{name}: 8 points are others than all");
        }
    }
}

#[test]
fn where_all_points_of_a_sample_are_alike_some_of_them_have_the_loss_of_all() {
    let one = ["train.rate=1e-12", "train.epochs=1"];
    for sizes in [&[12; 5][..], &SIZES] {
        let still = clouds(sizes, true);
        for (samples, kind) in [
            (still.clone(), &["train.loss=relative-l2"][..]),
            (still.clone(), &["train.loss=mse"]),
            (series(&still, 3), &["train.loss=relative-l2-of-frames"]),
            (series(&still, 3), &["train.loss=relative-l2-of-frames", "train.rollout=2"]),
            (series(&still, 3), &["train.loss=relative-l2-of-times"]),
        ] {
            let loss = |points: &str| {
                let experiment = small(row("lamo"), &[&one, kind, &[points]].concat());
                trained(&experiment, &samples).0[0]
            };
            let all = loss("train.points=0");
            for points in [1, 5, 10, 20] {
                let some = loss(&format!("train.points={points}"));
                assert!((some / all - 1.0).abs() < 1e-4, "{sizes:?} {kind:?}, {points} points: {some} and {all}");
            }
        }
    }
}

#[test]
fn some_points_teach_all_and_all_are_tested() {
    for sizes in [&[40; 6][..], &[35, 44, 40, 31, 44, 38]] {
        let samples = clouds(sizes, false);
        let changes = ["train.points=12", "train.epochs=60", "train.rate=5e-3", "train.clip=0"];
        let mut trainer = trainer(&small(row("lamo"), &changes), &samples);
        let before = trainer.test_error().unwrap();
        train_to(&mut trainer, None, usize::MAX);
        let after = trainer.test_error().unwrap();
        assert!(after < 0.5 * before, "{before} to {after}");
        let operator = trainer.trained().unwrap().operator;
        let errors = samples.errors(&operator.predict(&samples, Device::Cpu).unwrap());
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        assert!((mean - after).abs() < 1e-5 * mean, "{mean} and {after}");
    }
}

#[test]
fn a_training_on_some_points_that_is_interrupted_after_any_step_ends_with_the_same_bits() {
    for (name, sizes) in [("equal", &[20; 5][..]), ("ragged", &SIZES)] {
        let samples = clouds(sizes, false);
        let experiment = small(row("lamo"), &["train.points=10"]);
        let folder = Folder::new(&format!("points-{name}"));
        let create =
            |folder: &Path| Run::create(folder, &experiment, &Environment::here(Device::Cpu, 1, None)).unwrap();
        let whole = create(&folder.at("whole"));
        let mut uninterrupted = trainer(&experiment, &samples);
        let steps = uninterrupted.steps();
        train_to(&mut uninterrupted, Some(&whole), usize::MAX);
        for stop in 1..steps {
            let at = folder.at(&format!("stop_{stop}"));
            let run = create(&at);
            train_to(&mut trainer(&experiment, &samples), Some(&run), stop);
            let mut resumed = trainer(&experiment, &samples);
            resumed.restore(&Checkpoint::read(&run::checkpoint_path(&at, run::LAST)).unwrap()).unwrap();
            train_to(&mut resumed, Some(&run), usize::MAX);
            assert!(essence(&folder.at("whole")) == essence(&at), "{name}: other bits when stopped after step {stop}");
        }
    }
}

#[test]
fn points_are_refused_where_they_make_no_sense() {
    let refused = |experiment: &Experiment, samples: &Samples| {
        let task = experiment.task(samples).unwrap();
        Trainer::new(experiment, &task, samples, samples, Device::Cpu).err().unwrap().to_string()
    };
    let grid = Grid::Plane { rows: 4, columns: 4 };
    let plane = Samples::new(grid, 1, wave(32, 0.4), 1, wave(32, 0.9)).unwrap();
    let mut settings = (row("lamo").tiny)(&Task::plain(grid, 2, 1, 1));
    settings.insert("patch".into(), toml::Value::from(2));
    let model = format!("model={{ name = \"lamo\", settings = {} }}", toml::Value::from(settings));
    let told = refused(&experiment(&[&model, "train.points=7"]), &plane);
    let expected = "train.points: expected 0 on a grid, whose points are neighbours, found 7 on a plane";
    assert!(told.starts_with(expected), "{told}");
    // Its branch sees all points as one vector.
    let told = refused(&small(row("deeponet"), &["train.points=7"]), &clouds(&[12; 5], false));
    assert!(told.starts_with("model deeponet: ") && told.ends_with("leave train.points out"), "{told}");
}
