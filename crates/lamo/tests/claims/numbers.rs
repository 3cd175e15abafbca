//! Outputs that are numbers of the whole sample, such as a drag: imported, learned as the mean over the points, and measured
//! in their unit.

use crate::support::{Folder, experiment, save, train_to};
use lamo::data::Samples;
use lamo::data::dataset::{Normalise, Role, Rule};
use lamo::data::import::{ArrayName, Own, OwnField};
use lamo::experiment::{Experiment, Loss};
use lamo::inference::PredictionInput;
use lamo::network::models::MODELS;
use lamo::run::Operator;
use lamo::task::{Field, Spread, Task};
use lamo::training::Trainer;
use lamo::workflow::{self, EvaluateRequest, ImportRequest, ImportSource, Session, TrainRequest, evaluate, train};
use lamo_geometry::Grid;
use lamo_tensor::Device;

const PLANE: Grid = Grid::Plane { rows: 6, columns: 5 };

fn wave(count: usize, speed: f64) -> Vec<f32> {
    (0..count).map(|place| (speed * place as f64).sin() as f32).collect()
}

fn field(name: &str, role: Role, unit: &str, array: ArrayName) -> OwnField {
    let (name, unit) = (name.into(), unit.into());
    OwnField { name, role, unit, normalise: Normalise::Channels, axes: None, arrays: vec![vec![array]] }
}

fn own(grid: Grid, fields: Vec<OwnField>) -> Own {
    let split = Some(Rule::Ends { train: 30, test: 10 });
    Own {
        name: "car".into(),
        grid,
        ragged: Vec::new(),
        stride: 1,
        fields,
        times: None,
        windows: None,
        split,
        sizes: Default::default(),
    }
}

/// 40 samples of an input on the plane and an output of this shape for each of them.
fn with_output(folder: &Folder, shape: &[usize]) -> Own {
    let input = save(folder, "a.npy", &[40, 6, 5], (0..1200).map(|place| (0.7 * f64::from(place)).sin()));
    let shape = [&[40], shape].concat();
    let count: usize = shape.iter().product();
    let output = save(folder, "drag.npy", &shape, (0..count).map(|place| 2.0 + (0.3 * place as f64).sin()));
    own(PLANE, vec![field("a", Role::Input, "1", input), field("drag", Role::Output, "N", output)])
}

#[test]
fn numbers_for_each_sample_are_imported_and_anything_that_may_be_a_wrong_grid_is_not() {
    let folder = Folder::new("numbers-import");
    for (shape, words) in [(&[][..], "40 samples, a number for each sample"), (&[3], "3 numbers for each sample")] {
        let import = with_output(&folder, shape).import().unwrap();
        assert_eq!(import.manifest().fields[1].shape, shape);
        assert!(
            import.notes().iter().any(|note| note.starts_with("drag: ") && note.contains(words)),
            "{:?}",
            import.notes()
        );
    }
    let refused = |own: Own| own.import().err().unwrap().to_string();
    let sentence = refused(with_output(&folder, &[31]));
    let wanted =
        "found [31] for each sample; check --grid; if these are 31 numbers for each sample, say --axes drag=nc";
    assert!(sentence.contains("a value at every point of the grid [6, 5]") && sentence.contains(wanted), "{sentence}");
    assert!(
        refused(with_output(&folder, &[30]))
            .ends_with("found [30] for each sample; reshape it to [6, 5] for each sample")
    );
    let mut given = with_output(&folder, &[31]);
    given.fields[1].axes = Some("nc".into());
    given.import().unwrap();
    // The letters tell six numbers from a value for each of the six rows.
    let mut numbers = with_output(&folder, &[6]);
    numbers.fields[1].axes = Some("nc".into());
    let import = numbers.import().unwrap();
    assert_eq!(import.manifest().fields[1].on(PLANE).unwrap().spread, Spread::Sample);
    assert!(refused(with_output(&folder, &[6])).contains("check --grid"), "a value for each row is no output");
}

/// The task of these samples with their outputs as a number of the sample.
fn as_numbers(experiment: &Experiment, samples: &Samples) -> Task {
    let mut task = experiment.task(samples).unwrap();
    task.outputs = vec![Field { spread: Spread::Sample, ..Field::plain("drag", samples.outputs) }];
    task
}

#[test]
fn every_model_predicts_a_number_as_the_mean_over_the_points() {
    let targets = (0..4).flat_map(|sample| [1.0 + sample as f32; 30]).collect();
    let samples = Samples::new(PLANE, 1, wave(120, 0.7), 1, targets).unwrap();
    let mut flat = Vec::new();
    for row in MODELS {
        let task = Task::plain(PLANE, 2, 1, 1);
        let settings = format!("model.settings={}", toml::Value::Table((row.tiny)(&task)));
        let name = format!("model.name={}", row.name);
        let experiment = experiment(&[&name, &settings, "train={ epochs = 1, batch = 2, loss = \"mse\" }"]);
        let task = as_numbers(&experiment, &samples);
        let mut trainer = Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap();
        train_to(&mut trainer, None, usize::MAX);
        let numbers = trainer.trained().unwrap().operator;
        let mut plain = task.clone();
        plain.outputs = vec![Field::plain("drag", 1)];
        let fields = Operator { task: plain, ..numbers.clone() };
        let [found, field] = [&numbers, &fields].map(|operator| operator.predict(&samples, Device::Cpu).unwrap());
        for (found, field) in found.chunks_exact(30).zip(field.chunks_exact(30)) {
            let mean = field.iter().map(|value| f64::from(*value)).sum::<f64>() / 30.0;
            let near = |value: &f32| (f64::from(*value) - mean).abs() < 1e-5 * mean.abs().max(1.0);
            assert!(found.iter().all(near), "{}: {found:?}, the mean is {mean}", row.name);
        }
        if field.chunks_exact(30).all(|field| field.iter().all(|value| *value == field[0])) {
            flat.push(row.name);
        }
    }
    // A field without differences has its mean at every point anyway.
    assert!(2 * flat.len() < MODELS.len(), "{flat:?} give the same value at all points");
}

#[test]
fn numbers_beside_a_field_leave_the_field_as_it_is() {
    let samples = Samples::new(PLANE, 1, wave(120, 0.7), 2, wave(240, 0.3)).unwrap();
    let tiny = "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }";
    let experiment = experiment(&[tiny, "train={ epochs = 1, batch = 2 }"]);
    let mut task = experiment.task(&samples).unwrap();
    task.outputs = vec![Field::plain("u", 1), Field { spread: Spread::Sample, ..Field::plain("drag", 1) }];
    let mut trainer = Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap();
    train_to(&mut trainer, None, usize::MAX);
    let mixed = trainer.trained().unwrap().operator;
    let mut plain = task.clone();
    plain.outputs = vec![Field::plain("outputs", 2)];
    let fields = Operator { task: plain, ..mixed.clone() };
    let [found, field] = [&mixed, &fields].map(|operator| operator.predict(&samples, Device::Cpu).unwrap());
    for (found, field) in found.chunks_exact(60).zip(field.chunks_exact(60)) {
        let u = |values: &[f32]| values.iter().step_by(2).copied().collect::<Vec<_>>();
        assert_eq!(u(found), u(field));
        assert!(found.iter().skip(1).step_by(2).all(|value| *value == found[1]), "{found:?}");
    }
    let input = PredictionInput { samples, single: false, files: Vec::new() };
    let arrays = input.output_fields(&task, &found).unwrap();
    let shapes: Vec<_> = arrays.iter().map(|array| (array.name.as_str(), array.shape.as_slice())).collect();
    assert_eq!(shapes, [("u", &[4, 6, 5][..]), ("drag", &[4])]);
    assert_eq!(arrays[1].values, [found[1], found[61], found[121], found[181]]);
}

/// A load on 16 points, and its mean square in N.
pub(crate) fn loads(folder: &Folder) -> Own {
    let size = |sample: usize| 1.0 + 0.8 * (1.7 * sample as f64).sin();
    let load = |sample: usize, point: usize| 1.0 + size(sample) * (0.9 * sample as f64 + 0.4 * point as f64).sin();
    let loads = (0..640).map(|place| load(place / 16, place % 16));
    let drags = (0..40).map(|sample| (0..16).map(|point| load(sample, point).powi(2)).sum::<f64>() / 16.0);
    let fields = vec![
        field("load", Role::Input, "1", save(folder, "load.npy", &[40, 16], loads)),
        field("drag", Role::Output, "N", save(folder, "drag.npy", &[40], drags)),
    ];
    own(Grid::Line { points: 16 }, fields)
}

#[test]
fn a_number_is_learned_and_measured_in_its_unit_by_the_same_error_in_training_and_evaluation() {
    let folder = Folder::new("numbers-learned");
    let data = folder.at("loads");
    let source = ImportSource::Own(Box::new(loads(&folder)));
    workflow::import(&ImportRequest { source, out: data.clone() }, &Session::default()).unwrap();
    let changes = ["model.settings={ width = 8, depth = 2, modes = 4 }", "train.epochs=60", "train.batch=5"];
    let request = TrainRequest {
        changes: changes.map(str::to_owned).to_vec(),
        out: Some(folder.at("run")),
        ..TrainRequest::new(data.to_str().unwrap())
    };
    assert_eq!(request.experiment().unwrap().train.loss, Loss::Mse, "a number may be near zero");
    let done = train(&request, &Session::default()).unwrap();
    let asked = EvaluateRequest { run: done.folder.clone(), data: None, symmetries: false, device: Device::Cpu };
    let evaluated = evaluate(&asked, &Session::default()).unwrap();
    let evaluation = &evaluated.receipt.evaluation;
    let tested = done.history.last().unwrap().test.unwrap();
    assert!((tested / evaluation.headline() - 1.0).abs() < 1e-4, "{tested} and {}", evaluation.headline());
    let [drag] = &evaluation.outputs[..] else { panic!("one output: {:?}", evaluation.outputs) };
    assert!(drag.r2.is_some_and(|share| share > 0.9), "{drag:?}");
    assert_eq!((drag.unit.as_str(), drag.h1, drag.spectrum), ("N", None, None));
    assert!(evaluation.spectrum.is_none() && evaluation.border.is_none());
    // MAE of the numbers themselves, from the values in the data set.
    let pairs = evaluated.prediction.iter().zip(&evaluated.test.targets).step_by(16);
    let mae = pairs.map(|(found, truth)| f64::from((found - truth).abs())).sum::<f64>() / 10.0;
    assert!((drag.mae / mae - 1.0).abs() < 1e-6, "{} and {mae}", drag.mae);
}

#[test]
fn a_number_that_is_zero_or_a_series_of_numbers_is_refused_with_what_to_do() {
    let folder = Folder::new("numbers-zero");
    let mut zero = loads(&folder);
    zero.fields[1].arrays = vec![vec![save(&folder, "zero.npy", &[40], (0..40).map(|sample| f64::from(sample % 2)))]];
    let source = ImportSource::Own(Box::new(zero));
    workflow::import(&ImportRequest { source, out: folder.at("zero") }, &Session::default()).unwrap();
    let refused = |changes: &[&str]| {
        let changes = changes.iter().map(ToString::to_string).collect();
        let data = folder.at("zero");
        let request =
            TrainRequest { changes, out: Some(folder.at("run")), ..TrainRequest::new(data.to_str().unwrap()) };
        train(&request, &Session::default()).unwrap_err().to_string()
    };
    let sentence = refused(&[]);
    assert!(sentence.ends_with("leave it out, or add a constant to the numbers of all samples"), "{sentence}");
    let sentence = refused(&["train.loss=relative-l2-of-times"]);
    assert!(sentence.contains("at least one output, with a value at every point, found `drag` []"), "{sentence}");
}
