//! Data on regular grids of three axes: import, training, resume, prediction, symmetries.

use crate::support::{Folder, essence, experiment, save, train_to};
use lamo::data::Samples;
use lamo::data::dataset::{Dataset, Normalise, Outcome, Role};
use lamo::data::import::{Own, OwnField, Sizes};
use lamo::experiment::{Experiment, ExperimentData, Symmetries};
use lamo::run::{Environment, Run};
use lamo::task::Positions;
use lamo::training::Trainer;
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::ops::ControlFlow;
use std::path::Path;

fn volume(rows: usize, columns: usize, layers: usize) -> Grid {
    Grid::Volume { rows, columns, layers }
}

const SIDE: usize = 8;

/// 0.3 and the mean over each point and its neighbours along the axes.
fn means(field: &[f32]) -> Vec<f32> {
    let at = |[x, y, z]: [usize; 3]| field.get((x * SIDE + y) * SIDE + z).copied().filter(|_| x.max(y).max(z) < SIDE);
    let mean = |point: usize| {
        let place = [point / (SIDE * SIDE), point / SIDE % SIDE, point % SIDE];
        let moved = |axis: usize, step: usize| {
            let mut moved = place;
            moved[axis] = moved[axis].wrapping_add(step);
            if moved[axis] < SIDE { at(moved) } else { None }
        };
        let steps = (0..3).flat_map(|axis| [1, usize::MAX].map(|step| moved(axis, step)));
        let around: Vec<f32> = steps.flatten().chain(at(place)).collect();
        0.3 + around.iter().sum::<f32>() / around.len() as f32
    };
    (0..field.len()).map(mean).collect()
}

/// Random fields, and what a known kernel makes of them.
fn smoothed(count: usize, first: u64) -> Samples {
    let grid = volume(SIDE, SIDE, SIDE);
    let points = grid.points();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(first + 1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let inputs: Vec<f32> = (0..count * points).map(|_| next()).collect();
    let targets = inputs.chunks_exact(points).flat_map(means).collect();
    Samples::new(grid, 1, inputs.clone(), 1, targets).unwrap()
}

fn small(model: &str) -> Experiment {
    let of_model = match model {
        "lamo" => "model.settings={ width = 32, depth = 2, mlp_ratio = 2, states = 8, directions = 6, patch = 2 }",
        "fno" => "model.settings={ width = 12, modes = 4, depth = 2, padded = [8, 8, 8] }",
        _ => "model.settings={ width = 16, depth = 1, slice_heads = 2, tokens = 8 }",
    };
    experiment(&[&format!("model.name={model}"), of_model, "train={ epochs = 3, batch = 2, rate = 3e-3 }"])
}

/// The mean of the training outputs has an error of 0.60. Slices do not see the neighbours of a point one by one: Transolver learns
/// less of this kernel.
#[test]
fn a_smoothing_kernel_in_a_volume_is_learned() {
    let (train, test) = (smoothed(48, 1), smoothed(8, 2));
    let mean = train.targets.iter().sum::<f32>() / train.targets.len() as f32;
    let trivial = test.errors(&vec![mean; test.targets.len()]);
    let trivial = trivial.iter().sum::<f64>() / trivial.len() as f64;
    for (model, share) in [("lamo", 0.5), ("fno", 0.5), ("transolver", 0.95)] {
        let mut experiment = small(model);
        experiment.train.epochs = 12;
        let task = experiment.task(&train).unwrap();
        assert_eq!((task.positions, task.space), (Positions::Lattice, 3));
        let mut trainer = Trainer::new(&experiment, &task, &train, &test, Device::Cpu).unwrap();
        train_to(&mut trainer, None, usize::MAX);
        let error = trainer.test_error().unwrap();
        assert!(error < share * trivial, "{model} stops at {error}, the mean has {trivial}");
        let trained = trainer.trained().unwrap();
        let again = test.errors(&trained.operator.predict(&test, Device::Cpu).unwrap());
        let again = again.iter().sum::<f64>() / again.len() as f64;
        assert!((again / error - 1.0).abs() < 1e-5, "{model}: {error} inside the program, {again} outside");
    }
}

#[test]
fn a_run_on_a_volume_is_resumed_to_the_same_bits_and_its_checkpoint_predicts_the_same() {
    let samples = smoothed(5, 3);
    for model in ["lamo", "fno", "transolver"] {
        let (folder, experiment) = (Folder::new(&format!("volume-{model}")), small(model));
        let task = experiment.task(&samples).unwrap();
        let trainer = || Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap();
        let create = |path: &Path| Run::create(path, &experiment, &Environment::here(Device::Cpu, 1, None)).unwrap();
        let (whole, stopped) = (folder.at("whole"), folder.at("stopped"));
        let mut first = trainer();
        train_to(&mut first, Some(&create(&whole)), usize::MAX);
        train_to(&mut trainer(), Some(&create(&stopped)), 4);
        let (run, again, begun) = Run::open(&stopped).unwrap();
        assert_eq!(again, experiment);
        let begun = begun.unwrap();
        assert_eq!((begun.trained.step, begun.trained.operator.task.grid), (4, samples.grid));
        let mut resumed = trainer();
        resumed.restore(&begun).unwrap();
        train_to(&mut resumed, Some(&run), usize::MAX);
        assert!(essence(&stopped) == essence(&whole), "{model}");
        let predict = |trainer: &Trainer| trainer.trained().unwrap().operator.predict(&samples, Device::Cpu).unwrap();
        assert_eq!(predict(&resumed), predict(&first), "{model}");
    }
}

/// Patches keep their lattice, waves their length, slices their maps.
#[test]
fn a_model_of_a_volume_predicts_on_another_volume() {
    let samples = smoothed(2, 4);
    let finer = volume(15, 9, 8);
    let field: Vec<f32> = (0..finer.points()).map(|point| (0.01 * point as f32).sin()).collect();
    let finer = Samples::new(finer, 1, field.clone(), 1, field).unwrap();
    for model in ["lamo", "fno", "transolver", "factformer", "deeponet"] {
        let sizes = ["model.settings={ width = 16, depth = 1 }"];
        let experiment = match model {
            "factformer" => experiment(&[&["model.name=factformer"], &sizes[..]].concat()),
            "deeponet" => experiment(&["model.name=deeponet"]),
            _ => small(model),
        };
        let task = experiment.task(&samples).unwrap();
        let trainer = Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap();
        match trainer.trained().unwrap().operator.predict(&finer, Device::Cpu) {
            Ok(predicted) => assert!(predicted.len() == finer.targets.len() && predicted.iter().all(|v| v.is_finite())),
            Err(error) => assert!(model == "deeponet" && error.to_string().contains("8"), "{model}: {error}"),
        }
    }
}

#[test]
fn arrays_of_volumes_become_a_data_set_with_the_axes_that_their_shapes_tell() {
    let folder = Folder::new("volumes");
    let counting = |name: &str, shape: &[usize]| {
        let count: usize = shape.iter().product();
        vec![vec![save(&folder, name, shape, (0..count).map(|place| place as f64))]]
    };
    let field = |name: &str, role, arrays| {
        let (unit, normalise) = ("1".into(), Normalise::Channels);
        OwnField { name: String::from(name), role, unit, normalise, axes: None, arrays }
    };
    let own = |grid: Grid, stride: usize, fields: Vec<OwnField>| {
        let (name, sizes) = ("box".into(), Sizes { ordered: true, ..Sizes::default() });
        Own { name, grid, ragged: Vec::new(), stride, fields, times: None, windows: None, split: None, sizes }
    };
    let mut flow = field("u", Role::Output, counting("u.npy", &[4, 3, 2, 2, 6]));
    flow.axes = Some("zyxcn".into());
    let fields = vec![field("a", Role::Input, counting("a.npy", &[6, 2, 3, 4])), flow];
    let written = |own: &Own, name: &str| -> Dataset {
        match own.import().unwrap().write(&folder.at(name), &|_| ControlFlow::Continue(())).unwrap() {
            Outcome::Made(dataset) => dataset,
            other => panic!("expected a new data set, found {other:?}"),
        }
    };
    let all = own(volume(2, 3, 4), 1, fields.clone());
    let dataset = written(&all, "all");
    assert_eq!(dataset.manifest().grid, volume(2, 3, 4));
    assert_eq!(Dataset::open(&folder.at("all")).unwrap().manifest().grid, volume(2, 3, 4));
    let [a, u] =
        ["a", "u"].map(|name| (dataset.field(name).unwrap().shape.clone(), dataset.gather(name, &[5]).unwrap()));
    assert_eq!((a.0, a.1[7]), (vec![2, 3, 4], 5.0 * 24.0 + 7.0));
    // Row 1, column 2, layer 3, channel 1, sample 5 of [z, y, x, c, n].
    let expected = ((((3 * 3 + 2) * 2 + 1) * 2 + 1) * 6 + 5) as f32;
    assert_eq!((u.0, u.1[((3 + 2) * 4 + 3) * 2 + 1]), (vec![2, 3, 4, 2], expected));
    let thin = written(&own(volume(2, 3, 4), 2, fields.clone()), "thin");
    assert_eq!(thin.manifest().grid, volume(1, 2, 2));
    assert_eq!(thin.gather("a", &[0]).unwrap(), [0.0, 2.0, 8.0, 10.0]);

    let experiment = experiment(&["data={ train = 4, test = 2, first_test = 4 }"]);
    let selection = ExperimentData::read(&experiment, &dataset).unwrap();
    assert_eq!(selection.train.grid, volume(2, 3, 4));
    let task = selection.task(&experiment).unwrap();
    assert_eq!(
        (task.positions, task.space, task.input_channels(), task.output_channels()),
        (Positions::Lattice, 3, 1, 2)
    );

    let wrong = own(volume(2, 3, 5), 1, fields).import().err().unwrap().to_string();
    assert!(wrong.contains("5 layers along its axis z") || wrong.contains("axes"), "{wrong}");
    assert_eq!(wrong.lines().count(), 1, "{wrong}");
}

#[test]
fn a_cube_of_your_own_has_48_symmetries() {
    let (samples, experiment) = (smoothed(1, 5), small("lamo"));
    let task = experiment.task(&samples).unwrap();
    let symmetries = Symmetries::of(&experiment, &task, "train.symmetries").unwrap();
    assert_eq!(symmetries.order(), 48);
    for element in symmetries.elements() {
        let turned = element.apply(&task, &samples);
        // The kernel has no direction: smoothing the turned field is turning the smoothed one.
        assert_eq!(element.undo(&turned.targets), samples.targets);
        let again = means(&turned.inputs);
        let worst = again.iter().zip(&turned.targets).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-6, "{worst}");
    }
}
