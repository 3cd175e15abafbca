//! One checkpoint file predicts, from and to files of arrays.

use crate::support::{Folder, experiment, train_to};
use lamo::data::Samples;
use lamo::data::formats::{self, Named};
use lamo::experiment::Experiment;
use lamo::inference::{PredictionInput, Source};
use lamo::run::Trained;
use lamo::task::{Field, Task};
use lamo::training::Trainer;
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::path::Path;

fn wave(count: usize, speed: f32) -> Vec<f32> {
    (0..count).map(|i| (speed * i as f32).sin()).collect()
}

/// Trains one step, writes the checkpoint, reads it back.
fn trained(folder: &Folder, name: &str, experiment: &Experiment, task: &Task, train: &Samples) -> Trained {
    let mut trainer = Trainer::new(experiment, task, train, train, Device::Cpu).unwrap();
    train_to(&mut trainer, None, 1);
    let path = folder.at(name);
    trainer.checkpoint().unwrap().write(&path).unwrap();
    let read = Trained::open(&path).unwrap();
    assert_eq!(read.operator, trainer.trained().unwrap().operator);
    assert_eq!((&read.operator.task, &read.experiment, read.step), (task, experiment, 1));
    read
}

/// The whole of a file.
fn file(path: &Path) -> [Source; 1] {
    [Source::parse(path.to_str().unwrap())]
}

fn array(name: &str, shape: &[usize], values: &[f32]) -> Named {
    Named { name: name.into(), shape: shape.to_vec(), values: values.to_vec() }
}

/// Predicts through files.
fn ask(trained: &Trained, input: &Path, output: &Path) -> Result<Vec<Named>, String> {
    let given = PredictionInput::read(&trained.operator.task, &file(input), None).map_err(|error| error.to_string())?;
    let prediction = trained.operator.predict(&given.samples, Device::Cpu).map_err(|error| error.to_string())?;
    let answer = given.output_fields(&trained.operator.task, &prediction).map_err(|error| error.to_string())?;
    formats::write(output, &answer).map_err(|error| error.to_string())?;
    let arrays = formats::list(output).unwrap();
    let read = |info: &formats::ArrayInfo| {
        let array = formats::read(output, Some(&info.name)).unwrap();
        Named { name: info.name.clone(), shape: array.shape, values: array.values.into_f32() }
    };
    Ok(arrays.iter().map(read).collect())
}

#[test]
fn a_patch_model_predicts_batches_and_single_samples_from_every_format() {
    let folder = Folder::new("patches");
    let grid = Grid::Plane { rows: 6, columns: 5 };
    let train = Samples::new(grid, 1, wave(90, 0.7), 1, wave(90, 0.3)).unwrap();
    let experiment = experiment(&[
        "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }",
        "train={ epochs = 1, batch = 2 }",
    ]);
    let mut task = experiment.task(&train).unwrap();
    task.inputs = vec![Field::plain("permeability", 1)];
    task.outputs = vec![Field::plain("pressure", 1)];
    let trained = trained(&folder, "last.safetensors", &experiment, &task, &train);
    let expected = trained.operator.predict(&train, Device::Cpu).unwrap();
    for format in ["npy", "npz", "mat", "safetensors"] {
        let (input, output) = (folder.at(&format!("in.{format}")), folder.at(&format!("out.{format}")));
        formats::write(&input, &[array("permeability", &[3, 6, 5], &train.inputs)]).unwrap();
        let found = ask(&trained, &input, &output).unwrap();
        let name = if format == "npy" { "" } else { "pressure" };
        assert_eq!(found, [array(name, &[3, 6, 5], &expected)], "{format}");
        formats::write(&input, &[array("anything", &[6, 5], &train.inputs[30..60])]).unwrap();
        let found = ask(&trained, &input, &output).unwrap();
        assert_eq!(found[0].shape, [6, 5]);
        let worst = found[0].values.iter().zip(&expected[30..60]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-5, "{format}: alone and in a batch differ by {worst:.1e}");
    }
    let input = folder.at("in.npy");
    for shape in [[8, 8], [5, 6]] {
        formats::write(&input, &[array("", &shape, &wave(shape[0] * shape[1], 0.1))]).unwrap();
        assert_eq!(ask(&trained, &input, &folder.at("out.npy")).unwrap()[0].shape, shape, "another grid");
    }
    formats::write(&input, &[array("", &[30], &wave(30, 0.1))]).unwrap();
    let told = ask(&trained, &input, &folder.at("out.npy")).unwrap_err();
    assert!(
        told.contains("array `permeability`: expected samples of shape [6, 5], found shape [30]; reshape it"),
        "{told}"
    );
    let told = formats::write(&folder.at("out.txt"), &[]).unwrap_err().to_string();
    assert!(told.contains("expected a name that ends in .npy, .npz, .mat or .safetensors"), "{told}");
}

/// At these points, interpolation to the lattice of the training has the weight 1.
#[test]
fn patches_on_a_finer_grid_predict_the_same_at_the_points_of_the_training_grid() {
    let folder = Folder::new("finer");
    let (coarse, fine) = ([5, 4], [9, 10]); // 2 (5 − 1) + 1 and 3 (4 − 1) + 1
    let plane = |[rows, columns]: [usize; 2]| Grid::Plane { rows, columns };
    let line = |[_, points]: [usize; 2]| Grid::Line { points };
    let grids: [(Grid, Grid, usize, &str); 2] = [
        (plane(coarse), plane(fine), 5, "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }"),
        (
            line(coarse),
            line(fine),
            1,
            "model.settings={ width = 16, depth = 1, states = 4, directions = 2, patch = 3 }",
        ),
    ];
    for (grid, finer, rows, settings) in grids {
        let count = grid.points();
        let experiment = experiment(&[settings, "train={ epochs = 1, batch = 2 }"]);
        let train = Samples::new(grid, 1, wave(2 * count, 0.3), 1, wave(2 * count, 0.2)).unwrap();
        let task = experiment.task(&train).unwrap();
        let trained = trained(&folder, &format!("{rows}"), &experiment, &task, &train);
        let expected = trained.operator.predict(&train, Device::Cpu).unwrap();
        // Any values between the points of the training grid.
        let places: Vec<usize> = (0..count).map(|n| n / 4 * 2 * fine[1] + n % 4 * 3).collect();
        let mut inputs = wave(2 * finer.points(), 1.7);
        for (sample, values) in inputs.chunks_exact_mut(finer.points()).enumerate() {
            places.iter().enumerate().for_each(|(n, &place)| values[place] = train.inputs[sample * count + n]);
        }
        let samples = Samples::new(finer, 1, inputs, 1, wave(2 * finer.points(), 0.2)).unwrap();
        let found = trained.operator.predict(&samples, Device::Cpu).unwrap();
        assert_eq!(found.len(), 2 * finer.points());
        for (sample, values) in found.chunks_exact(finer.points()).enumerate() {
            for (n, &place) in places.iter().enumerate() {
                let (found, expected) = (values[place], expected[sample * count + n]);
                assert!((found - expected).abs() < 1e-4, "{finer}, point {place}: {found} and {expected}");
            }
        }
    }
}

#[test]
fn a_model_whose_parameters_belong_to_points_is_refused_on_another_grid() {
    let folder = Folder::new("bound");
    let experiment = experiment(&["model.name=deeponet", "model.settings={ width = 8, depth = 2 }"]);
    let train = Samples::new(Grid::Plane { rows: 6, columns: 5 }, 1, wave(60, 0.3), 1, wave(60, 0.2)).unwrap();
    let task = experiment.task(&train).unwrap();
    let trained = trained(&folder, "last.safetensors", &experiment, &task, &train);
    let (input, output) = (folder.at("in.npy"), folder.at("out.npy"));
    for shape in [[8, 8], [5, 6]] {
        formats::write(&input, &[array("", &shape, &wave(shape[0] * shape[1], 0.1))]).unwrap();
        let told = ask(&trained, &input, &output).unwrap_err();
        let expected = "expected the plane of 6 x 5 points that its parameters belong to, found a plane of ";
        assert!(told.contains(&format!("{expected}{} x {} points", shape[0], shape[1])), "{told}");
        assert!(!output.exists());
    }
}

#[test]
fn flat_samples_and_empty_arrays_are_refused() {
    let folder = Folder::new("flat");
    let (grid, experiment) = (
        Grid::Plane { rows: 4, columns: 5 },
        experiment(&["model.name=fno", "model.settings={ width = 4, depth = 1, modes = 2 }"]),
    );
    let train = Samples::new(grid, 1, wave(60, 0.3), 1, wave(60, 0.2)).unwrap();
    let task = experiment.task(&train).unwrap();
    let trained = trained(&folder, "flat", &experiment, &task, &train);
    for (shape, expected) in [
        (&[3, 20][..], "samples of shape [4, 5], found shape [3, 20]; reshape it"),
        (&[20], "samples of shape [4, 5], found shape [20]; reshape it"),
        (&[3, 20, 1], "samples of shape [4, 5], found shape [3, 20, 1]; reshape it"),
        (&[3, 1, 20], "samples of shape [4, 5], found shape [3, 1, 20]; reshape it"),
        (
            &[3, 0, 5],
            "samples of shape [4, 5], on this or another grid, found shape [3, 0, 5]; bring it into that shape, or name \
             its axes with --axes inputs=LETTERS",
        ),
        (
            &[3, 4, 5, 2],
            "samples of shape [4, 5], on this or another grid, found shape [3, 4, 5, 2]; bring it into that shape, or name \
             its axes with --axes inputs=LETTERS",
        ),
        (&[0, 4, 5], "at least one sample, found shape [0, 4, 5]"),
    ] {
        let path = folder.at("given.npz");
        let values = wave(shape.iter().product(), 0.1);
        formats::write(&path, &[array("inputs", shape, &values)]).unwrap();
        let told = ask(&trained, &path, &folder.at("answer.npz")).unwrap_err();
        assert!(told.ends_with(&format!("array `inputs`: expected {expected}")), "{told}");
    }
    let complex = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/arrays/npy/complex.npy");
    let told = ask(&trained, &complex, &folder.at("answer.npy")).unwrap_err();
    assert!(
        told.ends_with("expected real numbers, found complex numbers of shape [2, 2]; give their real part"),
        "{told}"
    );
    // a finer grid may have axes as long as the small one has points
    formats::write(&folder.at("fine.npy"), &[array("", &[1, 20, 20], &wave(400, 0.1))]).unwrap();
    ask(&trained, &folder.at("fine.npy"), &folder.at("answer.npy")).unwrap();
}

#[test]
fn axes_in_another_order_are_told_by_the_shape_trained_on() {
    let folder = Folder::new("order");
    let experiment = experiment(&["model.name=fno", "model.settings={ width = 4, depth = 1, modes = 2 }"]);
    let train = Samples::new(Grid::Plane { rows: 6, columns: 5 }, 2, wave(180, 0.3), 1, wave(90, 0.2)).unwrap();
    let task = experiment.task(&train).unwrap();
    formats::write(&folder.at("given.npy"), &[array("", &[3, 2, 6, 5], &wave(180, 0.1))]).unwrap();
    let told = PredictionInput::read(&task, &file(&folder.at("given.npy")), None).unwrap_err().to_string();
    let expected = "expected samples of shape [6, 5, 2], on this or another grid, found shape [3, 2, 6, 5]; bring it into \
                    that shape, or name its axes with --axes inputs=LETTERS";
    assert!(told.ends_with(expected), "{told}");
    formats::write(&folder.at("matlab.npy"), &[array("", &[6, 5, 2, 3], &wave(180, 0.1))]).unwrap();
    let told = PredictionInput::read(&task, &file(&folder.at("matlab.npy")), None).unwrap_err().to_string();
    assert!(told.ends_with("or name its axes with --axes inputs=xycn"), "{told}");
}

#[test]
fn predictions_that_are_not_finite_are_refused_with_their_sample() {
    let folder = Folder::new("overflow");
    let experiment = experiment(&["model.name=fno", "model.settings={ width = 4, depth = 1, modes = 2 }"]);
    let train = Samples::new(Grid::Plane { rows: 4, columns: 5 }, 1, wave(60, 0.3), 1, wave(60, 0.2)).unwrap();
    let task = experiment.task(&train).unwrap();
    let trained = trained(&folder, "overflow", &experiment, &task, &train);
    let (mut values, output) = (wave(60, 0.3), folder.at("answer.npy"));
    values[25] = 3e38;
    formats::write(&folder.at("given.npy"), &[array("", &[3, 4, 5], &values)]).unwrap();
    let told = ask(&trained, &folder.at("given.npy"), &output).unwrap_err();
    assert!(told.starts_with("sample 1: expected a prediction of finite numbers, found NaN or infinity; "), "{told}");
    assert!(!output.exists());
}

#[test]
fn names_counts_and_sizes_that_do_not_fit_are_said_with_what_to_do() {
    let folder = Folder::new("names");
    let points = 7;
    let line = Samples::new(Grid::Line { points }, 1, wave(2 * points, 0.3), 1, wave(2 * points, 0.2)).unwrap();
    let train = Samples { grid: Grid::Cloud { points }, ..line }.at(2, wave(2 * points * 2, 0.9)).unwrap();
    let mut task = experiment(&[]).task(&train).unwrap();
    task.inputs = vec![Field::plain("load", 1)];
    let read = |positions: (&str, &[usize]), load: (&str, &[usize])| {
        let values = |shape: &[usize]| wave(shape.iter().product(), 0.4);
        let arrays = [positions, load].map(|(name, shape)| array(name, shape, &values(shape)));
        formats::write(&folder.at("given.npz"), &arrays).unwrap();
        PredictionInput::read(&task, &file(&folder.at("given.npz")), None).map_err(|error| error.to_string())
    };
    let once = read(("positions", &[9, 2]), ("load", &[4, 9])).unwrap();
    assert!(
        !once.single && once.samples.count == 4 && once.samples.share_positions(),
        "positions once for all samples"
    );
    let told = read(("positions", &[4, 9, 2]), ("load", &[9])).unwrap_err();
    assert!(told.contains("`positions`: expected one sample without an axis for samples as in `load`"), "{told}");
    let told = read(("positions", &[4, 9, 2]), ("load", &[1, 9])).unwrap_err();
    assert!(told.ends_with("array `positions`: expected 1 sample as in `load`, found shape [4, 9, 2]"), "{told}");
    let told = read(("positions", &[4, 9, 2]), ("load", &[4, 7])).unwrap_err();
    assert!(told.ends_with("array `load`: expected samples of shape [9], found shape [4, 7]; bring it into that shape, or name its axes with --axes load=LETTERS"), "{told}");
    let told = read(("x", &[4, 9, 2]), ("load", &[4, 9])).unwrap_err();
    let sentence = "expected arrays named `positions`, `load`, found `x`, `load`; save the file with these names";
    assert!(told.contains(sentence) && told.ends_with("or say --input positions=FILE:VARIABLE"), "{told}");
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 7), }\n";
    let mut bytes = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat();
    bytes.extend([1e300; 7].iter().flat_map(|value: &f64| value.to_le_bytes()));
    std::fs::write(folder.at("large.npy"), bytes).unwrap();
    let line = Samples::new(Grid::Line { points }, 1, wave(2 * points, 0.3), 1, wave(2 * points, 0.2)).unwrap();
    let task = experiment(&[]).task(&line).unwrap();
    let told = PredictionInput::read(&task, &file(&folder.at("large.npy")), None).unwrap_err().to_string();
    assert!(told.contains("array `inputs`: expected values up to 3.4e38, as float32 has, found 1e300; "), "{told}");
}

#[test]
fn a_slice_model_on_a_cloud_takes_any_number_of_points() {
    let folder = Folder::new("cloud");
    let points = 9;
    let positions = wave(2 * points * 2, 0.9);
    let grid = Grid::Cloud { points };
    let plane = Samples::new(Grid::Line { points }, 0, Vec::new(), 2, wave(2 * points * 2, 0.2)).unwrap();
    let train = Samples { grid, ..plane }.at(2, positions).unwrap();
    let experiment = experiment(&[
        "model.settings={ latent = \"slices\", mixer = \"hydra\", directions = 2, width = 16, depth = 1, mlp_ratio = 1 }",
        "model.settings={ tokens = 4, slice_heads = 2, head_width = 8, groups = 2, states = 4 }",
        "train={ epochs = 1, batch = 2 }",
    ]);
    let mut task = experiment.task(&train).unwrap();
    assert!(task.needs_positions());
    task.outputs = vec![Field::plain("stress", 1), Field::plain("strain", 1)];
    let trained = trained(&folder, "last.safetensors", &experiment, &task, &train);
    let (input, output) = (folder.at("in.npz"), folder.at("out.npz"));
    formats::write(&input, &[array("positions", &[1, 13, 2], &wave(26, 0.9))]).unwrap();
    let found = ask(&trained, &input, &output).unwrap();
    let shapes: Vec<_> = found.iter().map(|array| (array.name.as_str(), array.shape.clone())).collect();
    assert_eq!(shapes, [("stress", vec![1, 13]), ("strain", vec![1, 13])]);
    assert!(found.iter().all(|array| array.values.iter().all(|value| value.is_finite())));
    let told = ask(&trained, &input, &folder.at("out.npy")).unwrap_err();
    assert!(told.contains("an npy file holds one array, found stress, strain"), "{told}");
}

#[test]
fn a_time_series_is_continued_by_as_many_snapshots_as_are_asked_for() {
    let folder = Folder::new("series");
    let (points, past, frames) = (16, 2, 3);
    let empty = Samples::new(Grid::Plane { rows: 4, columns: 4 }, 0, Vec::new(), 1, wave(2 * points, 0.1)).unwrap();
    let train = Samples {
        functions: past,
        inputs: wave(2 * points * past, 0.4),
        times: frames,
        targets: wave(2 * frames * points, 0.6),
        ..empty
    };
    let experiment = experiment(&[
        "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }",
        "train={ epochs = 1, batch = 2, loss = \"relative-l2-of-frames\" }",
    ]);
    let mut task = experiment.task(&train).unwrap();
    task.outputs[0].snapshots = Some(past + frames);
    let trained = trained(&folder, "last.safetensors", &experiment, &task, &train);
    let input = folder.at("in.npy");
    formats::write(&input, &[array("", &[past, 4, 4], &wave(past * points, 0.4))]).unwrap();
    let predict = |snapshots: Option<usize>| {
        let given = PredictionInput::read(&trained.operator.task, &file(&input), snapshots).unwrap();
        let prediction = trained.operator.predict(&given.samples, Device::Cpu).unwrap();
        given.output_fields(&trained.operator.task, &prediction).unwrap().remove(0)
    };
    let (usual, long) = (predict(None), predict(Some(5)));
    assert_eq!((usual.shape, long.shape), (vec![3, 4, 4], vec![5, 4, 4]));
    assert_eq!(usual.values, long.values[..3 * points]);
}
