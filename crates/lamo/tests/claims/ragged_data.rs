//! Files with different numbers of points become a ragged data set, which is checked, learned, evaluated and predicted; damage
//! of its offsets gets a sentence.

use crate::support::{Folder, save};
use lamo::data::dataset::{Dataset, Normalise, Outcome, Role, Rule};
use lamo::data::formats;
use lamo::data::import::{ArrayName, Own, OwnField, Sizes, Windows, points_of_files};
use lamo::experiment::ExperimentData;
use lamo::inference::Source;
use lamo::workflow::{EvaluateRequest, PredictRequest, Session, TrainRequest, check, evaluate, predict, train};
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

const SIZES: [usize; 9] = [12, 30, 17, 23, 12, 28, 19, 25, 14];

fn field(name: &str, role: Role, arrays: Vec<Vec<ArrayName>>) -> OwnField {
    OwnField { name: name.into(), role, unit: "1".into(), normalise: Normalise::Channels, axes: None, arrays }
}

/// x and y of point `point` of sample `sample`.
fn place(sample: usize, point: usize) -> [f64; 2] {
    let turn = 0.7 * point as f64 + sample as f64;
    [turn.cos() * (1.0 + 0.1 * sample as f64), turn.sin()]
}

fn value(sample: usize, point: usize) -> f64 {
    let [x, y] = place(sample, point);
    1.0 + x * y + 0.3 * x
}

/// A file of positions and one of a field for each sample, and a number of each sample.
fn own(folder: &Folder, sizes: &[usize]) -> Own {
    let file = |kind: &str, sample: usize, shape: &[usize], values: Vec<f64>| {
        vec![save(folder, &format!("{kind}_{sample}.npy"), shape, values.into_iter())]
    };
    let positions = |(sample, &points): (usize, &usize)| {
        let values = (0..points).flat_map(|point| place(sample, point)).collect();
        file("xy", sample, &[points, 2], values)
    };
    let outputs = |(sample, &points): (usize, &usize)| {
        file("u", sample, &[points], (0..points).map(|point| value(sample, point)).collect())
    };
    let speeds = save(folder, "speed.npy", &[sizes.len()], (0..sizes.len()).map(|sample| 2.0 + sample as f64));
    let fields = vec![
        field("positions", Role::Position, sizes.iter().enumerate().map(positions).collect()),
        field("speed", Role::Input, vec![vec![speeds]]),
        field("u", Role::Output, sizes.iter().enumerate().map(outputs).collect()),
    ];
    Own {
        name: "bodies".into(),
        grid: Grid::Cloud { points: sizes.iter().copied().max().unwrap() },
        ragged: points_of_files(&fields).unwrap(),
        stride: 1,
        fields,
        times: None,
        windows: None,
        split: Some(Rule::Ends { train: sizes.len() - 2, test: 2 }),
        sizes: Sizes::default(),
    }
}

fn imported(own: &Own, folder: &Folder) -> PathBuf {
    let target = folder.at("set");
    match own.import().unwrap().write(&target, &|_| ControlFlow::Continue(())).unwrap() {
        Outcome::Made(_) => target,
        other => panic!("expected a new data set, found {other:?}"),
    }
}

#[test]
fn files_of_different_sizes_become_one_array_with_offsets_and_read_back_equal() {
    let folder = Folder::new("ragged-import");
    let own = own(&folder, &SIZES);
    assert_eq!(own.ragged, SIZES);
    let set = imported(&own, &folder);
    let dataset = Dataset::open(&set).unwrap();
    assert_eq!(dataset.grid_words(), "clouds of 12 to 30 points");
    let total: usize = SIZES.iter().sum();
    assert_eq!(formats::describe(set.join("positions.npy"), None).unwrap().shape, [total, 2]);
    assert_eq!(formats::describe(set.join("u.npy"), None).unwrap().shape, [total]);
    assert_eq!(formats::describe(set.join("offsets.npy"), None).unwrap().shape, [SIZES.len() + 1]);
    for (sample, &points) in SIZES.iter().enumerate() {
        let expected: Vec<f32> = (0..points).map(|point| value(sample, point) as f32).collect();
        assert_eq!(dataset.gather("u", &[sample]).unwrap(), expected, "sample {sample}");
        assert_eq!(dataset.points_of(sample), points);
    }
    assert_eq!(dataset.gather("speed", &[3, 1]).unwrap(), [5.0, 3.0]);
    check(&set).unwrap().require_finite().unwrap();
    // The same import again finds the data set; files of other sizes do not.
    assert!(matches!(own.import().unwrap().write(&set, &|_| ControlFlow::Continue(())), Ok(Outcome::AlreadyThere(_))));
}

#[test]
fn normalisers_count_the_points_of_all_samples_and_nothing_else() {
    let folder = Folder::new("ragged-normaliser");
    let set = imported(&own(&folder, &SIZES), &folder);
    let experiment = TrainRequest::new(set.to_str().unwrap()).experiment().unwrap();
    let data = ExperimentData::read(&experiment, &Dataset::open(&set).unwrap()).unwrap();
    assert_eq!((data.train.sizes(), data.test.sizes()), (SIZES[..7].to_vec(), SIZES[7..].to_vec()));
    let task = data.task(&experiment).unwrap();
    assert_eq!(task.grid, Grid::Cloud { points: 30 });
    let values: Vec<f64> =
        (0..7).flat_map(|sample| (0..SIZES[sample]).map(move |point| value(sample, point))).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let found = f64::from(task.normalisers.outputs.unwrap().mean[0]);
    assert!((found - mean).abs() < 1e-6, "{found} and {mean}");
    // The number of a sample stands at each of its points.
    assert_eq!(data.train.input_of(2), [4.0; 17]);
}

fn request(set: &std::path::Path, out: PathBuf, changes: &[&str]) -> TrainRequest {
    let base = [
        "model.settings={ width = 16, depth = 1, tokens = 4, slice_heads = 2, states = 4, mlp_ratio = 1, initial = \"fan-in\" }",
        "train={ epochs = 40, batch = 2, rate = 3e-3 }",
    ];
    TrainRequest {
        changes: [&base, changes].concat().into_iter().map(str::to_owned).collect(),
        out: Some(out),
        ..TrainRequest::new(set.to_str().unwrap())
    }
}

#[test]
fn a_ragged_set_is_learned_evaluated_and_predicted_from_new_files() {
    let folder = Folder::new("ragged-run");
    let set = imported(&own(&folder, &SIZES), &folder);
    let done = train(&request(&set, folder.at("run"), &[]), &Session::default()).unwrap();
    let asked = EvaluateRequest { run: done.folder.clone(), data: None, symmetries: false, device: Device::Cpu };
    let evaluated = evaluate(&asked, &Session::default()).unwrap();
    let evaluation = &evaluated.receipt.evaluation;
    let tested = done.history.last().unwrap().test.unwrap();
    assert!((tested / evaluation.headline() - 1.0).abs() < 1e-4, "{tested} and {}", evaluation.headline());
    let trivial = evaluation.trivial.unwrap();
    assert!(evaluation.headline() < 0.7 * trivial.mean.unwrap(), "{} and {trivial:?}", evaluation.headline());
    assert_eq!(trivial.nearest, None, "points of different samples do not belong to each other");
    // MAE over the real points.
    let pairs = evaluated.prediction.iter().zip(&evaluated.test.targets);
    let mae = pairs.map(|(found, truth)| f64::from((found - truth).abs())).sum::<f64>() / (25 + 14) as f64;
    assert!((evaluation.outputs[0].mae / mae - 1.0).abs() < 1e-6, "{} and {mae}", evaluation.outputs[0].mae);
    // The files of both test samples, each to a file of its own.
    for sample in [7, 8] {
        save(&folder, &format!("new_{sample}.npy"), &[1], std::iter::once(2.0 + sample as f64));
    }
    let sources = |pattern: &str| Source::parse_all(&pattern.replace("AT", folder.at("").to_str().unwrap())).unwrap();
    let mut inputs = sources("positions=AT/xy_7.npy");
    inputs.extend(sources("positions=AT/xy_8.npy"));
    inputs.extend(sources("speed=AT/new_7.npy"));
    inputs.extend(sources("speed=AT/new_8.npy"));
    let output = folder.at("out_*.npy");
    let asked = PredictRequest {
        model: done.folder,
        inputs,
        output,
        snapshots: None,
        symmetries: false,
        memory: None,
        device: Device::Cpu,
    };
    let mut strangers = asked.clone();
    strangers.inputs.extend(sources("positions=AT/xy_5.npy"));
    save(&folder, "new_9.npy", &[1], std::iter::once(3.0));
    strangers.inputs.extend(sources("speed=AT/new_9.npy"));
    let told = predict(&strangers).unwrap_err().to_string();
    assert!(
        told.contains("new_9.npy: expected the partner of ") && told.contains("xy_5.npy, found another case"),
        "{told}"
    );
    let predicted = predict(&asked).unwrap();
    assert_eq!(predicted.samples, 2);
    for (place, file) in predicted.files.iter().enumerate() {
        let found = formats::read(file, None).unwrap().values.into_f32();
        let expected = evaluated.test.part_of(&evaluated.prediction, place);
        let miss = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs()).fold(0.0, f32::max);
        assert!(found.len() == expected.len() && miss < 1e-4, "{}: {miss}", file.display());
    }
}

#[test]
fn a_time_series_on_different_points_is_arranged_sample_by_sample() {
    let folder = Folder::new("ragged-series");
    let sizes = [5, 9, 7, 8];
    let mut own = own(&folder, &sizes);
    let series = |(sample, &points): (usize, &usize)| {
        let values = (0..3 * points).map(|at| value(sample, at % points) + 10.0 * (at / points) as f64);
        vec![save(&folder, &format!("s_{sample}.npy"), &[3, points], values)]
    };
    own.fields[2] = field("u", Role::Output, sizes.iter().enumerate().map(series).collect());
    own.fields[2].axes = Some("tp".into());
    let set = imported(&own, &folder);
    let dataset = Dataset::open(&set).unwrap();
    assert_eq!(formats::describe(set.join("u.npy"), None).unwrap().shape, [29, 3]);
    let expected: Vec<f32> = (0..27).map(|at| (value(1, at % 9) + 10.0 * (at / 9) as f64) as f32).collect();
    assert_eq!(dataset.gather("u", &[1]).unwrap(), expected);
    let changes = ["train.loss=relative-l2-of-frames".to_owned()];
    let folder_name = set.to_str().unwrap();
    let request = TrainRequest { changes: changes.to_vec(), ..TrainRequest::new(folder_name) };
    let experiment = request.experiment().unwrap();
    let data = ExperimentData::read(&experiment, &dataset).unwrap();
    assert_eq!((data.train.times, data.train.functions), (2, 2));
    assert_eq!(data.train.target_of(1), &expected[9..]);
}

#[test]
fn damaged_offsets_and_files_that_do_not_fit_get_one_sentence() {
    let folder = Folder::new("ragged-damage");
    let set = imported(&own(&folder, &SIZES), &folder);
    let path = set.join("offsets.npy");
    let whole = fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let sentence = Dataset::open(&set).and_then(|dataset| dataset.verify()).unwrap_err().to_string();
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        sentence
    };
    let with = |place: usize, number: i64| {
        let mut bytes = whole.clone();
        let at = bytes.len() - 8 * (SIZES.len() + 1 - place);
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    for (bytes, part) in [
        (with(0, 1), "expected offsets that grow, 0 at first, found 1 as offset 0"),
        (with(2, 12), "expected offsets that grow, more than 12, found 12 as offset 2"),
        (with(3, -5), "found -5 as offset 3"),
        (with(9, i64::MAX), "expected 180 points in all and a cloud of 30 points, found 9223372036854775807"),
        (with(2, 43), "expected 180 points in all and a cloud of 30 points, found 180 and at most 31 in a sample"),
        (with(3, 60), "SHA-256"),
        (whole[..whole.len() - 3].to_vec(), "bytes"),
        (Vec::new(), "bytes"),
    ] {
        let sentence = refused(&bytes);
        assert!(sentence.contains(part) && sentence.contains("offsets.npy"), "{sentence}");
    }
    fs::remove_file(&path).unwrap();
    assert!(Dataset::open(&set).unwrap_err().to_string().contains("offsets.npy"));
    let folder = Folder::new("ragged-unfit");
    let sentence = |change: &dyn Fn(&mut Own)| {
        let mut own = own(&folder, &[4, 6, 5]);
        change(&mut own);
        own.import().err().unwrap().to_string()
    };
    let short = sentence(&|own| own.fields[2].arrays.truncate(2));
    assert!(short.contains("expected 3 files, one for each sample, found 2"), "{short}");
    let other = sentence(&|own| own.fields[2].arrays[1] = own.fields[2].arrays[0].clone());
    assert!(other.contains("u_0.npy") && other.lines().count() == 1, "{other}");
}

#[test]
fn an_interrupted_import_of_different_sizes_ends_with_the_same_bytes() {
    let folder = Folder::new("ragged-resume-import");
    let own = own(&folder, &SIZES);
    let names = ["positions.npy", "u.npy", "speed.npy", "offsets.npy", "dataset.toml"];
    let whole = imported(&own, &folder);
    let bytes = |set: &std::path::Path| names.map(|name| fs::read(set.join(name)).unwrap());
    let target = folder.at("again");
    let mut stops = 0;
    while let Outcome::Stopped(_) = own.import().unwrap().write(&target, &|_| ControlFlow::Break(())).unwrap() {
        stops += 1;
        assert!(stops < 40, "no progress");
        if stops == 5 {
            // A field that was cut loses the samples behind the cut, and they are read again.
            let file = fs::File::options().write(true).open(folder.at("again.partial").join("u.npy")).unwrap();
            file.set_len(file.metadata().unwrap().len() - 4 * 120).unwrap();
        }
    }
    assert!(stops > SIZES.len(), "{stops} stops");
    assert!(bytes(&whole) == bytes(&target), "other bytes after {stops} stops");
}

/// Time series of bodies: the value at a point decays, from a start that the point decides.
fn series(folder: &Folder, sizes: &[(usize, usize)]) -> Own {
    let mut own = own(folder, &sizes.iter().map(|(points, _)| *points).collect::<Vec<_>>());
    let file = |(sample, &(points, snapshots)): (usize, &(usize, usize))| {
        let at = |time: usize| (0..points).map(move |point| value(sample, point) * 0.9_f64.powi(time as i32) + 0.1);
        vec![save(folder, &format!("s_{sample}.npy"), &[snapshots, points], (0..snapshots).flat_map(at))]
    };
    own.fields.remove(1); // a number of each series
    own.fields[1] =
        OwnField { axes: Some("tp".into()), ..field("u", Role::Output, sizes.iter().enumerate().map(file).collect()) };
    own.windows = Some(Windows { window: 2, horizon: 3, step: 1 });
    own.split = None;
    own
}

#[test]
fn time_series_on_different_points_are_cut_into_windows_and_learned_by_their_changes() {
    let folder = Folder::new("ragged-windows");
    let sizes = [(12, 8), (30, 7), (17, 9), (23, 8), (14, 8), (20, 7)];
    let set = imported(&series(&folder, &sizes), &folder);
    let dataset = Dataset::open(&set).unwrap();
    let counts = sizes.map(|(_, snapshots)| snapshots - 4);
    assert_eq!(dataset.samples(), counts.iter().sum::<usize>());
    let mut sample = 0;
    for (number, &(points, _)) in sizes.iter().enumerate() {
        for window in 0..counts[number] {
            assert_eq!(dataset.points_of(sample), points, "sample {sample}");
            let found = dataset.gather("u", &[sample]).unwrap(); // [snapshots, points]
            let expected =
                |time: usize, point: usize| (value(number, point) * 0.9_f64.powi((window + time) as i32) + 0.1) as f32;
            for (time, point) in (0..5).flat_map(|time| (0..points).map(move |point| (time, point))) {
                assert_eq!(found[time * points + point], expected(time, point), "sample {sample}");
            }
            let position = dataset.gather("positions", &[sample]).unwrap();
            assert_eq!(position[2..4], place(number, 1).map(|side| side as f32));
            sample += 1;
        }
    }
    check(&set).unwrap().require_finite().unwrap();
    let experiment = TrainRequest::new(set.to_str().unwrap()).experiment().unwrap();
    assert!(experiment.data.change, "own time series are learned by their changes");
    let data = ExperimentData::read(&experiment, &dataset).unwrap();
    let change = data.task(&experiment).unwrap().normalisers.change.unwrap();
    let mut changes: Vec<f64> = Vec::new();
    for sample in 0..data.train.count {
        let (given, asked) = (data.train.input_of(sample), data.train.target_of(sample));
        let points = data.train.points_of(sample);
        let last = given.chunks(2).map(|past| past[1]).chain(asked[..2 * points].iter().copied());
        changes.extend(asked.iter().zip(last).map(|(after, before)| f64::from(after - before)));
    }
    let mean = changes.iter().sum::<f64>() / changes.len() as f64;
    assert!((f64::from(change.mean[0]) - mean).abs() < 1e-5, "{change:?} and {mean}");
    let done = train(&request(&set, folder.at("run"), &["train.epochs=20"]), &Session::default()).unwrap();
    let asked = EvaluateRequest { run: done.folder.clone(), data: None, symmetries: false, device: Device::Cpu };
    let evaluation = evaluate(&asked, &Session::default()).unwrap().receipt.evaluation;
    let persistence = evaluation.trivial.unwrap().persistence.unwrap();
    assert!(evaluation.headline() < 0.5 * persistence, "{} and {persistence}", evaluation.headline());
}
