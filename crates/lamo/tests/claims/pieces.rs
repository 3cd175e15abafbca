//! Predictions whose points come in pieces are those of all points at once.

use crate::support::experiment;
use lamo::data::Samples;
use lamo::inference::Pieces;
use lamo::network::models::MODELS;
use lamo::run::Operator;
use lamo::task::{Field, Task};
use lamo::training::Trainer;
use lamo_geometry::Grid;
use lamo_tensor::Device;

fn wave(count: usize, pace: f32) -> Vec<f32> {
    (0..count).map(|i| (pace * i as f32 + 0.3).sin() + 0.2 * (0.11 * i as f32).cos()).collect()
}

fn clouds(sizes: &[usize]) -> Samples {
    let total: usize = sizes.iter().sum();
    let (positions, inputs) = (wave(total * 2, 0.9), wave(total, 0.5));
    let targets = positions.chunks(2).zip(&inputs).map(|(place, input)| 1.5 + place[0] * input - place[1]).collect();
    match sizes.iter().all(|size| *size == sizes[0]) {
        true => Samples::cloud(sizes.len(), (2, positions), (1, inputs), (1, targets)).unwrap(),
        false => Samples::ragged(sizes, (2, positions), (1, inputs), (1, targets)).unwrap(),
    }
}

/// A model after its first step: all its parts have values of their own.
fn operator(name: &str, settings: &str, changes: &[&str], samples: &Samples) -> Operator {
    let row = MODELS.iter().find(|row| row.name == name).unwrap();
    let mut all = (row.tiny)(&Task::plain(samples.grid, 2, 1, 1));
    all.extend(settings.parse::<toml::Table>().unwrap());
    let model = format!("model={{ name = \"{name}\", settings = {} }}", toml::Value::from(all));
    let fixed = [model.as_str(), "train.epochs=2", "train.batch=2", "train.rate=1e-2", "seed=3"];
    let experiment = experiment(&[&fixed, changes].concat());
    let task = experiment.task(samples).unwrap();
    let mut trainer = Trainer::new(&experiment, &task, samples, samples, Device::Cpu).unwrap();
    crate::support::train_to(&mut trainer, None, usize::MAX);
    trainer.trained().unwrap().operator
}

/// ‖a − b‖ / ‖b‖
fn apart(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let miss = norm(&mut found.iter().zip(expected).map(|(one, other)| f64::from(one - other)));
    miss / norm(&mut expected.iter().map(|value| f64::from(*value)))
}

#[test]
fn a_prediction_in_pieces_is_that_of_all_points_at_once() {
    let (even, ragged) = (clouds(&[300; 3]), clouds(&[300, 41, 230]));
    let still = clouds(&[60; 3]);
    let targets: Vec<f32> = (0..3).flat_map(|sample| still.target_of(sample).repeat(2)).collect();
    let series =
        Samples { times: 2, targets: targets.iter().zip(0..).map(|(v, i)| v + 0.01 * i as f32).collect(), ..still };
    let by_time = &["train.loss=relative-l2-of-times"][..];
    // Two snapshots and a function are given, three snapshots are asked for.
    let past: Vec<f32> = series.targets.chunks(1).flat_map(|value| [0.9 * value[0], value[0]]).collect();
    let given = past.chunks(2).zip(wave(360, 0.5)).flat_map(|(past, input)| [past[0], past[1], input]).take(3 * 180);
    let rolled = Samples {
        times: 3,
        functions: 3,
        inputs: given.collect(),
        targets: (0..3)
            .flat_map(|sample| series.target_of(sample)[..60].repeat(3))
            .zip(0..)
            .map(|(v, i)| v + 0.01 * (i % 97) as f32)
            .collect(),
        ..series.clone()
    };
    let roll_out = &["train.loss=relative-l2-of-frames", "data.past=2"][..];
    let change = &["train.loss=relative-l2-of-frames", "data.past=2", "data.change=true"][..];
    let cases = [
        ("lamo", "", &[][..], &even),
        ("lamo", "", &["data.trend=true"], &ragged),
        ("lamo", "depth = 3\nencoder = 'shared'", &[], &even),
        ("lamo", "depth = 2\ndecoder = 'own'\nresidual = true", &[], &even),
        ("lamo", "mlp = 'swiglu'", &[], &ragged),
        ("lamo", "depth = 2\nmixer = 'mamba2'", by_time, &series),
        ("transolver", "depth = 3", &[], &ragged),
        ("transolver", "", by_time, &series),
        ("transolver", "", roll_out, &rolled),
        ("lamo", "", change, &rolled),
    ];
    for (name, settings, changes, samples) in cases {
        let operator = operator(name, settings, changes, samples);
        let expected = operator.predict(samples, Device::Cpu).unwrap();
        let largest = samples.grid.points();
        for points in [1, 7, 64, largest - 1, largest, 10 * largest] {
            if points == 1 && name == "lamo" && settings.is_empty() || points > 1 {
                for folder in [None, Some(std::env::temp_dir())] {
                    let pieces = Pieces { points, folder };
                    let found = operator.predict_in_pieces(samples, &pieces, Device::Cpu).unwrap();
                    let miss = apart(&found, &expected);
                    // Sums of 300 points in another order: a few hundred roundings of 6e-8 in each block.
                    assert!(miss < 2e-5, "{name} {settings:?} {pieces:?}: apart by {miss:.1e}");
                }
            }
        }
        let enough = Pieces::within(1 << 30, &operator, samples, Device::Cpu).unwrap();
        assert_eq!(enough, Pieces { points: largest, folder: None });
    }
}

#[test]
fn the_steps_of_a_driven_roll_out_in_pieces_are_shown_their_own_snapshots() {
    // Two past snapshots, and a force with two before and four to predict: a step is shown three of them.
    let still = clouds(&[60; 3]);
    let shown = Samples { times: 4, functions: 5, inputs: wave(900, 0.4), targets: wave(720, 0.7), ..still };
    let mut operator = operator("lamo", "", &["train.loss=relative-l2-of-frames", "data.past=2"], &shown);
    let grid = operator.task.grid;
    operator.task.inputs = vec![Field { snapshots: Some(6), ..Field::on(grid, "force", "1", &[60]).unwrap() }];
    operator.task.driven = true;
    let samples = Samples { functions: 8, inputs: wave(1440, 0.4), ..shown };
    let expected = operator.predict(&samples, Device::Cpu).unwrap();
    let found = operator.predict_in_pieces(&samples, &Pieces { points: 7, folder: None }, Device::Cpu).unwrap();
    let miss = apart(&found, &expected);
    assert!(miss < 2e-5, "apart by {miss:.1e}");
}

#[test]
fn little_memory_takes_small_pieces_and_a_file_and_too_little_is_refused() {
    let samples = clouds(&[40_000]);
    let operator = operator("transolver", "", &[], &clouds(&[50; 3]));
    let some = Pieces::within(24_000_000, &operator, &samples, Device::Cpu).unwrap();
    assert!(some.points < 40_000 && some.folder.is_none(), "{some:?}");
    let little = Pieces::within(3_000_000, &operator, &samples, Device::Cpu).unwrap();
    assert!(little.points < some.points && little.folder.is_some(), "{little:?}");
    let miss = {
        let [one, other] = [&some, &little].map(|pieces| operator.predict_in_pieces(&samples, pieces, Device::Cpu));
        apart(&one.unwrap(), &other.unwrap())
    };
    assert!(miss < 2e-5, "{miss:.1e}");
    let told = Pieces::within(700_000, &operator, &samples, Device::Cpu).unwrap_err().to_string();
    assert!(told.starts_with("--memory: expected at least ") && told.ends_with("found 700.0 kB"), "{told}");
}

#[test]
fn models_and_tasks_that_cannot_be_divided_are_refused() {
    let samples = clouds(&[60; 3]);
    let refused = |operator: &Operator, samples: &Samples| {
        let pieces = Pieces { points: 10, folder: None };
        operator.predict_in_pieces(samples, &pieces, Device::Cpu).unwrap_err().to_string()
    };
    let told = refused(&operator("galerkin", "", &[], &samples), &samples);
    assert!(told.starts_with("--memory: expected lamo with slices, or transolver, found model"), "{told}");
    let grid = Grid::Plane { rows: 4, columns: 4 };
    let plane = Samples::new(grid, 1, wave(48, 0.4), 1, wave(48, 0.9)).unwrap();
    let told = refused(&operator("lamo", "patch = 2", &[], &plane), &plane);
    assert!(told.contains("expected a model of clouds, found one of a plane"), "{told}");
}
