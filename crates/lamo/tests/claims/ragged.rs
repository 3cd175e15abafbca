//! Samples with different numbers of points: what one predicts depends on its own points alone, in value and gradient, and a
//! training of them can be interrupted.

use crate::support::{Folder, essence, experiment, train_to};
use lamo::data::Samples;
use lamo::experiment::Experiment;
use lamo::network::models::{MODELS, Row};
use lamo::network::{Input, Mode, Parameters};
use lamo::run::{self, Checkpoint, Environment, Run};
use lamo::task::{Field, Spread, Task};
use lamo::training::Trainer;
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, Program};
use std::path::Path;

const SIZES: [usize; 7] = [9, 14, 11, 30, 28, 9, 17];

fn wave(count: usize, pace: f32) -> Vec<f32> {
    (0..count).map(|i| (pace * i as f32 + 0.3).sin() + 0.2 * (0.11 * i as f32).cos()).collect()
}

/// Points in the plane, a function on them, and one that is asked for.
fn clouds(sizes: &[usize]) -> Samples {
    let total: usize = sizes.iter().sum();
    let (positions, inputs) = (wave(total * 2, 0.9), wave(total, 0.5));
    let targets = positions.chunks(2).zip(&inputs).map(|(place, input)| 1.5 + place[0] * input - place[1]).collect();
    Samples::ragged(sizes, (2, positions), (1, inputs), (1, targets)).unwrap()
}

fn ragged_rows() -> impl Iterator<Item = &'static Row> {
    MODELS.iter().filter(|row| row.ragged)
}

/// Prediction and gradient of the first sample of a batch, whose samples have `points` points in the program and `real` real
/// ones. Points that fill a sample up have the values `fill`.
fn alone_in(row: &Row, time: bool, points: usize, real: &[usize], fill: f32) -> (Vec<f32>, Vec<f32>) {
    let plain = Task::plain(Grid::Cloud { points }, 2, 1, 1);
    let task = if time { plain.by_time(3) } else { plain };
    let (graph, batch) = (Graph::new(), real.len());
    let parameters = Parameters::new(&graph);
    // A model trained on clouds of at most 13 points.
    let trained = task.on(Grid::Cloud { points: 13 });
    let settings = row.moved(&(row.tiny)(&trained), [trained.grid, task.grid]).unwrap();
    let model = row.build(&parameters, &task, &settings).unwrap();
    let input = Input::declare(&graph, &task, batch);
    let input = if real.iter().all(|&real| real == points) { input } else { input.masked(&graph) };
    let found = model.forward(&input, Mode::Training).slice(0, 0, 1).slice(1, 0, real[0]);
    let weights = graph.constant(&wave(real[0], 0.77), [1, real[0], 1]);
    let gradient = graph.gradient((found * weights).sum_all(), &[graph.parameters()])[0].unwrap();
    graph.output("found", found);
    graph.output("gradient", gradient);
    let mut program = Program::compile(&graph);
    parameters.initialise(&mut program, 5);
    // Sample k has its own values; those of the first do not depend on the other samples.
    let rows = |width: usize, pace: f32| -> Vec<f32> {
        let of = |(k, &real): (usize, &usize)| {
            let own = wave(real * width, pace + 0.07 * k as f32);
            own.into_iter().chain(std::iter::repeat_n(fill, (points - real) * width))
        };
        real.iter().enumerate().flat_map(of).collect()
    };
    program.write("positions", &rows(2, 0.9));
    program.write("functions", &rows(1, 0.5));
    if time {
        program.write("time", &(0..batch).map(|k| 0.5 + 0.1 * k as f32).collect::<Vec<_>>());
    }
    if input.mask.is_some() {
        let mask = real.iter().flat_map(|&real| (0..points).map(move |point| f32::from(point < real)));
        program.write("mask", &mask.collect::<Vec<_>>());
    }
    program.run();
    (program.read("found").to_vec(), program.read("gradient").to_vec())
}

/// ‖a − b‖ / ‖b‖
fn apart(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let miss = norm(&mut found.iter().zip(expected).map(|(one, other)| f64::from(one - other)));
    miss / norm(&mut expected.iter().map(|value| f64::from(*value)))
}

#[test]
fn what_a_sample_predicts_and_its_gradient_do_not_depend_on_padding_or_on_who_shares_its_batch() {
    // Sums of at most 40 points, in another order: a few hundred roundings of 6e-8.
    const ROUNDING: f64 = 2e-5;
    let mut count = 0;
    for row in ragged_rows() {
        for time in [false, true].into_iter().filter(|time| !time || row.supports.time) {
            let (prediction, gradient) = alone_in(row, time, 13, &[13], 0.0);
            for (points, real, fill) in
                [(20, vec![13], 0.7), (40, vec![13, 40, 29], -3.0), (13, vec![13, 9], 5.0), (32, vec![13, 1], 0.0)]
            {
                let (found, slope) = alone_in(row, time, points, &real, fill);
                let (values, slopes) = (apart(&found, &prediction), apart(&slope, &gradient));
                let words = format!("{} with {points} points, {real:?} real, time {time}", row.name);
                assert!(values < ROUNDING && slopes < ROUNDING, "{words}: apart by {values:.1e} and {slopes:.1e}");
            }
            count += 1;
        }
    }
    assert!(count > 3, "{count}");
}

fn small(row: &Row, changes: &[&str]) -> Experiment {
    let mut settings = (row.tiny)(&Task::plain(Grid::Cloud { points: 30 }, 2, 1, 1));
    // What dropout leaves out is another part of a padded batch.
    let defaults = row.defaults();
    for key in defaults.keys().filter(|key| key.contains("dropout")) {
        settings.insert(key.clone(), toml::Value::from(0.0));
    }
    let model = format!("model={{ name = \"{}\", settings = {} }}", row.name, toml::Value::from(settings));
    let fixed = [model.as_str(), "train.epochs=3", "train.batch=2", "seed=3"];
    experiment(&[&fixed, changes].concat())
}

fn trainer(experiment: &Experiment, samples: &Samples) -> Trainer {
    let task = experiment.task(samples).unwrap();
    Trainer::new(experiment, &task, samples, samples, Device::Cpu).unwrap()
}

#[test]
fn ragged_samples_of_equal_size_train_as_samples_on_a_cloud() {
    let sizes = [12; 5];
    let ragged = clouds(&sizes);
    let Samples { positions, inputs, targets, .. } = ragged.clone();
    let cloud = Samples::cloud(5, (2, positions), (1, inputs), (1, targets)).unwrap();
    for row in ragged_rows() {
        let experiment = small(row, &[]);
        let losses = [&ragged, &cloud].map(|samples| {
            let mut trainer = trainer(&experiment, samples);
            (train_to(&mut trainer, None, usize::MAX), trainer.test_error().unwrap())
        });
        assert_eq!(losses[0], losses[1], "{}", row.name);
    }
}

#[test]
fn padding_changes_the_losses_of_a_training_by_rounding_only() {
    // With one sample per batch and buckets of equal sizes there is no padding; with seven, all samples are filled up to 30
    // points. The losses of a step of all samples are the sum of those of each.
    let samples = clouds(&SIZES);
    for row in ragged_rows() {
        for loss in ["relative-l2", "mse", "l1", "relative-l2-per-channel"] {
            let changes = [&format!("train.loss={loss}"), "train.rate=1e-12", "train.epochs=1"];
            let losses = ["train.batch=1", "train.batch=7"].map(|batch| {
                let experiment = small(row, &[&changes[..], &[batch]].concat());
                let mut trainer = trainer(&experiment, &samples);
                assert_eq!(trainer.epoch_steps(), if batch == "train.batch=1" { 7 } else { 1 });
                let first = train_to(&mut trainer, None, usize::MAX)[0];
                (first, trainer.test_error().unwrap())
            });
            let near = |one: f64, other: f64| (one - other).abs() < 1e-5 * other;
            let [one, all] = losses;
            assert!(near(one.0, all.0) && near(one.1, all.1), "{} with {loss}: {one:?} and {all:?}", row.name);
        }
    }
}

#[test]
fn time_series_on_different_points_train_and_roll_out_as_each_does_alone() {
    let (still, times) = (clouds(&SIZES), 3);
    let series = |sample: usize| {
        let first = still.target_of(sample);
        (1..=times).flat_map(move |time| first.iter().map(move |value| value + 0.2 * time as f32 * value.sin()))
    };
    let targets: Vec<f32> = (0..still.count).flat_map(series).collect();
    let samples = Samples { inputs: still.targets.clone(), times, targets, ..still.clone() };
    let row = MODELS.iter().find(|row| row.name == "lamo").unwrap();
    for changes in [
        &["train.loss=relative-l2-of-frames"][..],
        &["train.loss=relative-l2-of-frames", "train.rollout=2"],
        &["train.loss=relative-l2-of-times"],
    ] {
        let losses = ["train.batch=1", "train.batch=7"].map(|batch| {
            let experiment = small(row, &[changes, &["train.rate=1e-12", "train.epochs=1", batch]].concat());
            let mut trainer = trainer(&experiment, &samples);
            let first = train_to(&mut trainer, None, usize::MAX)[0];
            let operator = trainer.trained().unwrap().operator;
            let errors = samples.errors(&operator.predict(&samples, Device::Cpu).unwrap());
            [first, trainer.test_error().unwrap(), errors.iter().sum::<f64>() / 7.0]
        });
        let near = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-5 * other;
        assert!(losses[0].iter().zip(&losses[1]).all(near), "{changes:?}: {losses:?}");
        assert!(near((&losses[0][1], &losses[0][2])), "the test is that of the prediction, {changes:?}: {losses:?}");
    }
}

#[test]
fn the_test_error_is_that_of_the_predictions_and_a_sample_alone_predicts_the_same() {
    let samples = clouds(&SIZES);
    for row in ragged_rows() {
        let mut trainer = trainer(&small(row, &[]), &samples);
        train_to(&mut trainer, None, usize::MAX);
        let operator = trainer.trained().unwrap().operator;
        let prediction = operator.predict(&samples, Device::Cpu).unwrap();
        let errors = samples.errors(&prediction);
        let (mean, tested) = (errors.iter().sum::<f64>() / 7.0, trainer.test_error().unwrap());
        assert!((mean - tested).abs() < 1e-5 * mean, "{}: {mean} and {tested}", row.name);
        for sample in 0..samples.count {
            let alone = Samples::cloud(
                1,
                (2, samples.positions_of(sample).to_vec()),
                (1, samples.input_of(sample).to_vec()),
                (1, Vec::new()),
            );
            let found = operator.predict(&alone.unwrap(), Device::Cpu).unwrap();
            let miss = apart(samples.part_of(&prediction, sample), &found);
            assert!(miss < 2e-5, "{}: sample {sample} is apart by {miss:.1e}", row.name);
        }
    }
}

#[test]
fn a_number_of_a_sample_is_the_mean_over_its_own_points_whoever_shares_its_batch() {
    let samples = clouds(&SIZES);
    let drag = |sample: usize| std::iter::repeat_n(1.0 + 0.3 * sample as f32, SIZES[sample]);
    let samples = Samples { targets: (0..SIZES.len()).flat_map(drag).collect(), ..samples };
    let row = MODELS.iter().find(|row| row.name == "lamo").unwrap();
    let experiment = small(row, &["train.batch=7", "train.loss=mse"]);
    let mut task = experiment.task(&samples).unwrap();
    task.outputs = vec![Field { spread: Spread::Sample, ..Field::plain("drag", 1) }];
    let mut trainer = Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap();
    train_to(&mut trainer, None, usize::MAX);
    let operator = trainer.trained().unwrap().operator;
    let prediction = operator.predict(&samples, Device::Cpu).unwrap();
    let errors = samples.errors(&prediction);
    let (mean, tested) = (errors.iter().sum::<f64>() / 7.0, trainer.test_error().unwrap());
    assert!((mean - tested).abs() < 1e-5 * mean, "{mean} and {tested}");
    for sample in 0..samples.count {
        let (positions, inputs) = (samples.positions_of(sample).to_vec(), samples.input_of(sample).to_vec());
        let alone = Samples::cloud(1, (2, positions), (1, inputs), (1, Vec::new())).unwrap();
        let found = operator.predict(&alone, Device::Cpu).unwrap();
        let miss = apart(samples.part_of(&prediction, sample), &found);
        assert!(miss < 2e-5, "sample {sample} is apart by {miss:.1e}");
    }
}

fn create(folder: &Path, experiment: &Experiment) -> Run {
    Run::create(folder, experiment, &Environment::here(Device::Cpu, 1, None)).unwrap()
}

#[test]
fn a_ragged_training_that_is_interrupted_after_any_step_ends_with_the_same_bits() {
    let row = MODELS.iter().find(|row| row.name == "lamo").unwrap();
    let samples = clouds(&SIZES);
    let experiment = small(row, &["train.average=0.9"]);
    let folder = Folder::new("ragged-resume");
    let whole = create(&folder.at("whole"), &experiment);
    let mut uninterrupted = trainer(&experiment, &samples);
    let steps = uninterrupted.steps();
    assert!(uninterrupted.epoch_steps() > 3, "several buckets: {}", uninterrupted.epoch_steps());
    train_to(&mut uninterrupted, Some(&whole), usize::MAX);
    for stop in 1..steps {
        let at = folder.at(&format!("stop_{stop}"));
        let run = create(&at, &experiment);
        train_to(&mut trainer(&experiment, &samples), Some(&run), stop);
        let mut resumed = trainer(&experiment, &samples);
        resumed.restore(&Checkpoint::read(&run::checkpoint_path(&at, run::LAST)).unwrap()).unwrap();
        train_to(&mut resumed, Some(&run), usize::MAX);
        assert!(essence(&folder.at("whole")) == essence(&at), "other bits when stopped after step {stop}");
    }
}

#[test]
fn a_model_without_masks_refuses_samples_of_different_sizes_and_names_those_that_take_them() {
    let samples = clouds(&SIZES);
    let row = MODELS.iter().find(|row| row.name == "deeponet").unwrap();
    let experiment = small(row, &[]);
    let task = experiment.task(&samples).unwrap();
    let refusal = Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).err().unwrap().to_string();
    assert!(
        refusal.starts_with(
            "model deeponet: expected samples of equal size, found samples with different numbers of points"
        ) && refusal.contains("lamo")
            && refusal.contains("transolver"),
        "{refusal}"
    );
    let line = Task { space: 1, ..task };
    for name in ["deeponet", "ffno"] {
        let row = MODELS.iter().find(|row| row.name == name).unwrap();
        let refusal = row.check_ragged(&line, &row.defaults()).unwrap_err().to_string();
        assert!(refusal.ends_with("; use lamo, transolver, galerkin, gnot or oformer"), "{refusal}");
    }
}

#[test]
fn wrong_sizes_and_offsets_get_a_sentence() {
    let good = clouds(&[3, 5]);
    let refused = |samples: Samples| samples.check_for(&Task::plain(Grid::Cloud { points: 5 }, 2, 1, 1)).unwrap_err();
    for (offsets, sentence) in [
        (vec![0, 3], "samples: expected 3 offsets from 0 for 2 samples, found 2 offsets from 0"),
        (vec![0, 0, 8], "sample 0: expected at least one point, found the points 0 to 0"),
        (vec![0, 3, 9], "samples: expected a cloud of the 6 points of the largest sample, found a cloud of 5 points"),
    ] {
        assert_eq!(refused(Samples { offsets, ..good.clone() }).to_string(), sentence);
    }
    let empty = Samples::ragged(&[2, 0], (1, vec![0.0; 2]), (0, Vec::new()), (1, vec![1.0; 2])).unwrap_err();
    assert_eq!(empty.to_string(), "sample 1: expected at least one point, found the points 2 to 2");
    let short = Samples::ragged(&[2, 1], (1, vec![0.0; 3]), (0, Vec::new()), (1, vec![1.0; 2])).unwrap_err();
    assert_eq!(
        short.to_string(),
        "targets: expected 2 samples of 1 times 3 points in all of 1 functions, 3 values, found 2"
    );
}
