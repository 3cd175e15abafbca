//! Imports of what people have: one time series cut into windows, a file for each sample, tables, complex numbers; and
//! which samples of them are for training and which for testing.

use crate::support::{Folder, experiment, save};
use lamo::data::dataset::{Dataset, Normalise, Outcome, Role, Rule, Split};
use lamo::data::import::{ArrayName, Own, OwnField, Sizes, Sweep, Windows, parse_arrays, sweep};
use lamo::experiment;
use lamo_geometry::Grid;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

pub(crate) const LINE: Grid = Grid::Line { points: 4 };

pub(crate) fn field(name: &str, role: Role, axes: &str, arrays: Vec<Vec<ArrayName>>) -> OwnField {
    let axes = Some(axes.to_owned()).filter(|axes| !axes.is_empty());
    OwnField { name: name.into(), role, unit: "1".into(), normalise: Normalise::Channels, axes, arrays }
}

pub(crate) fn own(grid: Grid, fields: Vec<OwnField>) -> Own {
    let (windows, sizes) = (None, Sizes::default());
    Own { name: "flow".into(), grid, ragged: Vec::new(), stride: 1, fields, times: None, windows, split: None, sizes }
}

pub(crate) fn cut(window: usize, horizon: usize, step: usize, fields: Vec<OwnField>) -> Own {
    Own { windows: Some(Windows { window, horizon, step }), ..own(LINE, fields) }
}

pub(crate) fn written(own: &Own, target: &Path) -> Dataset {
    match own.import().unwrap().write(target, &|_| ControlFlow::Continue(())).unwrap() {
        Outcome::Made(dataset) => dataset,
        other => panic!("expected a new data set, found {other:?}"),
    }
}

pub(crate) fn refusal(own: &Own) -> String {
    let sentence = own.import().err().unwrap().to_string();
    assert_eq!(sentence.lines().count(), 1, "one sentence: {sentence}");
    sentence
}

/// A file of `[snapshots, 4]` values 10 · snapshot + point, from `first` on.
fn series(folder: &Folder, name: &str, snapshots: usize, first: usize) -> Vec<Vec<ArrayName>> {
    let values = (0..snapshots * 4).map(|place| (first + 10 * (place / 4) + place % 4) as f64);
    vec![vec![save(folder, name, &[snapshots, 4], values)]]
}

/// The snapshots of some samples of windows that begin at every `step`-th snapshot.
fn snapshots(samples: &[usize], length: usize, step: usize) -> Vec<usize> {
    samples.iter().flat_map(|sample| sample * step..sample * step + length).collect()
}

#[test]
fn one_time_series_is_cut_into_windows_and_no_snapshot_is_in_training_and_test() {
    let folder = Folder::new("windows");
    for (window, horizon, step, count) in [(3, 2, 1, 36), (3, 2, 2, 18), (1, 1, 7, 6), (4, 1, 3, 12)] {
        let own = cut(window, horizon, step, vec![field("u", Role::Output, "tx", series(&folder, "u.npy", 40, 0))]);
        let target = folder.at(&format!("set-{window}-{step}"));
        let dataset = written(&own, &target);
        let length = window + horizon;
        assert_eq!((dataset.samples(), &dataset.field("u").unwrap().shape[..]), (count, &[length, 4][..]));
        for sample in 0..count {
            let expected = (0..length * 4).map(|place| (10 * (sample * step + place / 4) + place % 4) as f32);
            assert!(dataset.read("u", sample..sample + 1).unwrap().into_iter().eq(expected), "sample {sample}");
        }
        let Split { train, test, .. } = dataset.split().unwrap();
        assert!(!train.is_empty() && test.last() == Some(&(count - 1)), "{train:?} {test:?}");
        let [trained, tested] = [&train, &test].map(|list| snapshots(list, length, step));
        assert!(trained.iter().max() < tested.iter().min(), "the test is the last part, without a common snapshot");
        let parameters = &dataset.manifest().parameters;
        assert_eq!(parameters["window"].as_integer(), Some(window as i64));
        let notes = own.import().unwrap().notes().join("\n");
        assert!(notes.contains("u: 40 snapshots, 4 points (axes tp, as given)"), "{notes}");
        assert!(notes.contains("split in time: the first"), "{notes}");
    }
}

#[test]
fn the_axes_of_a_series_may_stand_in_any_order_and_are_found_by_the_shape() {
    let folder = Folder::new("turned");
    let values = (0..30 * 4).map(|place| (10 * (place % 30) + place / 30) as f64); // [points, snapshots]
    let turned = vec![vec![save(&folder, "turned.npy", &[4, 30], values)]];
    let [expected, given, found] = [("tp", false), ("xt", true), ("", true)].map(|(axes, is_turned)| {
        let arrays = if is_turned { turned.clone() } else { series(&folder, "u.npy", 30, 0) };
        let own = cut(2, 2, 1, vec![field("u", Role::Output, axes, arrays)]);
        written(&own, &folder.at(&format!("set{axes}"))).read("u", 0..27).unwrap()
    });
    assert_eq!((&given, &found), (&expected, &expected));
}

#[test]
fn several_series_are_cut_one_by_one_and_split_as_wholes() {
    let folder = Folder::new("several");
    let count = 8;
    let values = (0..count * 12 * 4).map(|place| (1000 * (place / 48) + 10 * (place / 4 % 12) + place % 4) as f64);
    let fields = vec![
        field("mask", Role::Input, "p", vec![vec![save(&folder, "mask.npy", &[4], (0..4).map(f64::from))]]),
        field("mu", Role::Input, "n", vec![vec![save(&folder, "mu.npy", &[8], (0..8).map(f64::from))]]),
        field("u", Role::Output, "ntp", vec![vec![save(&folder, "u.npy", &[count, 12, 4], values)]]),
    ];
    let dataset = written(&cut(3, 1, 2, fields), &folder.at("set"));
    assert_eq!(dataset.samples(), count * 5);
    assert!(dataset.field("mask").unwrap().common);
    assert_eq!(dataset.read("mu", 0..40).unwrap(), (0..40).map(|sample| (sample / 5) as f32).collect::<Vec<_>>());
    for sample in [0, 4, 5, 23, 39] {
        let first = (1000 * (sample / 5) + 20 * (sample % 5)) as f32;
        assert_eq!(dataset.read("u", sample..sample + 1).unwrap()[0], first, "sample {sample}");
    }
    let Split { train, test, .. } = dataset.split().unwrap();
    assert_eq!((train.len(), test.len()), (35, 5));
    assert!(train.iter().all(|sample| sample / 5 != test[0] / 5), "the series of a test window is not trained on");

    // Series of different lengths, a file each.
    let files = |first| [series(&folder, "run_1.npy", 6, first), series(&folder, "run_2.npy", 9, 500)].concat();
    let dataset = written(&cut(2, 1, 1, vec![field("u", Role::Output, "tp", files(0))]), &folder.at("files"));
    assert_eq!(dataset.samples(), 4 + 7);
    assert_eq!(dataset.read("u", 4..5).unwrap()[0], 500.0);
    let speeds = vec![vec![save(&folder, "speed.npy", &[2], [1.0, 2.0].into_iter())]];
    let fields = vec![field("speed", Role::Input, "n", speeds), field("u", Role::Output, "tp", files(0))];
    assert!(refusal(&cut(2, 1, 1, fields)).contains("found series of 4 and 7 windows"));
}

#[test]
fn windows_of_a_system_at_rest_are_in_no_part_of_the_split_and_the_import_says_so() {
    let folder = Folder::new("at-rest");
    // Three series of twelve snapshots, zero in the first five; windows of two given and two predicted snapshots.
    let moves = |place: usize| if place / 4 % 12 < 5 { 0.0 } else { 1.0 + (place * 7919 % 101) as f64 };
    let arrays = vec![vec![save(&folder, "u.npy", &[3, 12, 4], (0..3 * 12 * 4).map(moves))]];
    let own = cut(2, 2, 1, vec![field("u", Role::Output, "ntx", arrays)]);
    let dataset = written(&own, &folder.at("set"));
    assert_eq!(dataset.manifest().at_rest, [0, 1, 2, 9, 10, 11, 18, 19, 20]);
    let told = dataset.at_rest().unwrap();
    assert!(told.starts_with("9 windows of 27 left out: a snapshot to predict is zero everywhere"), "{told}");
    assert!(told.ends_with("; 12 to train and 6 to test remain"), "{told}");
    let split = dataset.split().unwrap();
    assert_eq!((split.train.len(), split.test.len()), (12, 6));
    assert!(split.train.iter().chain(&split.test).all(|window| window % 9 > 2));
    let recipe = experiment(&["train.loss=relative-l2-of-frames", "data={ train = 0, test = 0, past = 2 }"]);
    let read = experiment::ExperimentData::read(&recipe, &dataset).unwrap();
    assert_eq!((read.train.count, read.test.count), (12, 6));
    // The same import finds the data set that is there.
    let again = own.import().unwrap().write(&folder.at("set"), &|_| ControlFlow::Continue(())).unwrap();
    assert!(matches!(again, Outcome::AlreadyThere(_)));
    // A series that moves from the first predicted snapshot on loses nothing.
    let whole = written(&cut(5, 2, 5, own.fields.clone()), &folder.at("whole"));
    assert!(whole.manifest().at_rest.is_empty() && whole.at_rest().is_none());
}

#[test]
fn a_file_for_each_sample_is_found_by_a_pattern_in_the_order_of_its_numbers() {
    let folder = Folder::new("pattern");
    for number in [1, 2, 10, 3] {
        let values = |shift: usize| (0..4).map(move |point| (100 * number + shift + point) as f64);
        save(&folder, &format!("a_{number}.npy"), &[4], values(0));
        save(&folder, &format!("u_{number}.npy"), &[1, 4], values(50));
    }
    let arrays = |name: &str| parse_arrays(&folder.at(name).display().to_string()).unwrap();
    let fields =
        |name: &str| vec![field("a", Role::Input, "", arrays(name)), field("u", Role::Output, "", arrays("u_*.npy"))];
    let dataset = written(&own(LINE, fields("a_*.npy")), &folder.at("set"));
    let firsts = |name: &str| dataset.read(name, 0..4).unwrap().chunks(4).map(|sample| sample[0]).collect::<Vec<_>>();
    assert_eq!((firsts("a"), firsts("u")), (vec![100.0, 200.0, 300.0, 1000.0], vec![150.0, 250.0, 350.0, 1050.0]));

    fs::rename(folder.at("a_2.npy"), folder.at("a_4.npy")).unwrap();
    let sentence = refusal(&own(LINE, fields("a_*.npy")));
    assert!(
        sentence.contains("u_2.npy: expected the partner of ") && sentence.contains("a_3.npy, found another case"),
        "{sentence}"
    );
    fs::remove_file(folder.at("a_4.npy")).unwrap();
    assert!(refusal(&own(LINE, fields("a_*.npy"))).contains("expected 3 samples, as "));
    let nothing = parse_arrays(&folder.at("b_*.npy").display().to_string()).unwrap_err().to_string();
    assert!(nothing.contains("b_*.npy: expected files that fit the pattern, found none"), "{nothing}");
}

#[test]
fn rows_of_a_table_are_samples_and_tables_side_by_side_are_samples_too() {
    let folder = Folder::new("table");
    fs::write(folder.at("runs.csv"), "mu,u0,u1,u2,u3\n1,10,11,12,13\n2,20,21,22,23\n3,30,31,32,33\n").unwrap();
    let name = |text: &str| parse_arrays(&folder.at(text).display().to_string()).unwrap();
    let fields =
        vec![field("mu", Role::Input, "", name("runs.csv:mu")), field("u", Role::Output, "", name("runs.csv:u"))];
    let dataset = written(&own(LINE, fields), &folder.at("rows"));
    assert_eq!(dataset.read("u", 1..2).unwrap(), [20.0, 21.0, 22.0, 23.0]);
    assert_eq!(dataset.read("mu", 0..3).unwrap(), [1.0, 2.0, 3.0]);

    for case in 1..=3 {
        let line = |point: i32| format!("{}.5,{point},{}\n", point, 10 * case + point);
        let text: String = (0..4).map(line).collect();
        fs::write(folder.at(&format!("case_{case}.csv")), format!("x,y,u\n{text}")).unwrap();
    }
    let fields = vec![
        field("positions", Role::Position, "", name("case_*.csv:x,y")),
        field("u", Role::Output, "", name("case_*.csv:u")),
    ];
    let dataset = written(&own(Grid::Cloud { points: 4 }, fields), &folder.at("files"));
    assert_eq!(dataset.read("positions", 2..3).unwrap(), [0.5, 0.0, 1.5, 1.0, 2.5, 2.0, 3.5, 3.0]);
    assert_eq!(dataset.read("u", 2..3).unwrap(), [30.0, 31.0, 32.0, 33.0]);
}

#[test]
fn real_and_imaginary_parts_become_two_channels() {
    let folder = Folder::new("parts");
    let path = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests/arrays/mat5/packed.mat");
    let arrays = vec![vec![ArrayName { path, variable: Some("complex".into()) }]];
    let line = Grid::Line { points: 2 };
    for axes in ["np", "nx", ""] {
        let own = own(line, vec![field("u", Role::Output, axes, arrays.clone())]);
        let dataset = written(&own, &folder.at(&format!("set{axes}")));
        assert_eq!(dataset.field("u").unwrap().shape, [2, 2]);
        assert_eq!(dataset.read("u", 0..1).unwrap(), [0.0, 1.0, 0.0, 1.0]);
        let notes = own.import().unwrap().notes().join("\n");
        assert!(notes.contains("its real and imaginary parts are two channels"), "{notes}");
    }
    let sentence = refusal(&own(line, vec![field("u", Role::Output, "nc", arrays)]));
    assert!(sentence.contains("found complex numbers; save its real and imaginary parts"), "{sentence}");
}

#[test]
fn axes_that_do_not_fit_are_refused_with_the_real_cause() {
    let folder = Folder::new("causes");
    let told = |axes: &str, shape: &[usize]| {
        let count: usize = shape.iter().product();
        let array = save(&folder, "u.npy", shape, (0..count).map(|place| place as f64));
        refusal(&own(LINE, vec![field("u", Role::Output, axes, vec![vec![array]])]))
    };
    for (axes, shape, cause) in [
        (
            "pt",
            &[4, 9][..],
            "expected several samples, found 9 snapshots, 4 points and no axis n (axes pt); cut the time",
        ),
        ("", &[4, 30], "(axes pt); cut the time series into samples with --window 10 --horizon 10, or give a file for"),
        (
            "tp",
            &[4, 9],
            "--axes u=tp: expected 4 points along its axis p, as the grid has, found 9, axis 1 of shape [4, 9]",
        ),
        ("ntp", &[4, 9], "expected a letter for each of its 2 axes, found 3 in `ntp` for shape [4, 9]"),
        ("nxy", &[2, 4, 4], "expected p or x, the points of the line, found `y`"),
        ("", &[9, 7, 4, 5, 6], "check --grid: no order of these axes fits it"),
        ("", &[2, 4, 3, 5], "such as u=nptc or u=npct or u=tpnc"),
    ] {
        let sentence = told(axes, shape);
        assert!(sentence.contains(cause), "{sentence}");
    }
    let file =
        |name: &str, points: usize| vec![save(&folder, name, &[points, 9], (0..9 * points).map(|place| place as f64))];
    let sentence =
        refusal(&cut(1, 1, 1, vec![field("u", Role::Output, "", vec![file("run_1.npy", 4), file("run_2.npy", 5)])]));
    assert!(sentence.contains("run_2.npy: expected 4 points along its axis p, as the grid has, found 5"), "{sentence}");
    assert!(
        sentence.contains("it is read with the axes pt of ") && sentence.contains("run_1.npy; check"),
        "{sentence}"
    );
    let short = vec![field("u", Role::Output, "tp", series(&folder, "short.npy", 4, 0))];
    let sentence = refusal(&cut(3, 2, 1, short.clone()));
    assert!(
        sentence.contains("expected at least 5 snapshots, 3 given and 2 predicted, found 4 (axes tp)"),
        "{sentence}"
    );
    assert!(refusal(&cut(2, 1, 1, short.clone())).contains("windows to train on that end before"), "2 windows overlap");
    assert!(refusal(&cut(0, 1, 1, short.clone())).contains("--window: expected 1 to 65536 snapshots, found 0"));
    assert!(refusal(&cut(1, 1, 0, short)).contains("--stride: expected 1 to 65536 snapshots, found 0"));
    let steady =
        vec![field("u", Role::Output, "np", vec![vec![save(&folder, "n.npy", &[3, 4], (0..12).map(f64::from))]])];
    assert!(refusal(&cut(1, 1, 1, steady)).contains("n.npy: expected snapshots of a line of 4 points"));
}

/// Twenty samples of an input and an output on four points, `value(sample)` of the input.
fn twenty(folder: &Folder, value: impl Fn(usize) -> f64) -> Own {
    let noise = |place: usize| ((place * 7919 + 13) % 101) as f64;
    let fields = vec![
        field("mu", Role::Input, "", vec![vec![save(folder, "mu.npy", &[20], (0..20).map(value))]]),
        field("u", Role::Output, "", vec![vec![save(folder, "u.npy", &[20, 4], (0..80).map(noise))]]),
    ];
    own(LINE, fields)
}

#[test]
fn samples_are_drawn_with_a_recorded_seed_unless_the_order_is_asked_for() {
    let folder = Folder::new("drawn");
    let dataset = written(&twenty(&folder, |sample| sample as f64), &folder.at("set"));
    assert_eq!(dataset.manifest().split, Rule::Random { train: 17, test: 3, seed: 0 });
    assert!(fs::read_to_string(folder.at("set/dataset.toml")).unwrap().contains("kind = \"random\""));
    let again = Dataset::open(&folder.at("set")).unwrap().split().unwrap();
    assert_eq!((&again, again.hash()), (&dataset.split().unwrap(), dataset.manifest().split_sha256.clone()));
    assert_ne!(again.test, [17, 18, 19]);
    let rule = |sizes: Sizes| {
        let own = Own { sizes, ..twenty(&folder, |sample| sample as f64) };
        own.import().unwrap().manifest().split.clone()
    };
    let plain = Sizes::default();
    assert_eq!(rule(Sizes { seed: Some(7), test: Some(5), ..plain }), Rule::Random { train: 15, test: 5, seed: 7 });
    assert_eq!(rule(Sizes { ordered: true, train: Some(4), ..plain }), Rule::Ends { train: 4, test: 16 });

    // An experiment that asks for fewer samples takes them from the lists, so no test sample is trained on.
    let chosen = |changes: &[&str]| experiment::split(&experiment(changes), &dataset);
    let fewer = chosen(&["data={ train = 5, test = 2 }"]).unwrap();
    assert_eq!((&fewer.train[..], &fewer.test[..]), (&again.train[..5], &again.test[..2]));
    let told = chosen(&["data={ train = 18, test = 2 }"]).unwrap_err().to_string();
    assert_eq!(told, "data.train: expected at most 17 samples, as the split of the data set has, found 18");
    // It may name the samples to test on, also where their number is that of the data set.
    let named = chosen(&["data={ train = 17, test = 3, first_test = 5 }"]).unwrap();
    assert_eq!((&named.test[..], named.train.len()), (&[5, 6, 7][..], 17));
    assert!(named.train.iter().all(|sample| !named.test.contains(sample)));
}

#[test]
fn files_for_training_and_testing_keep_their_samples() {
    let folder = Folder::new("said");
    let file = |name: &str, samples: usize| {
        vec![save(&folder, name, &[samples, 4], (0..4 * samples).map(|place| place as f64))]
    };
    let fields = |first: &str, second: &str| {
        vec![
            field("a", Role::Input, "", vec![file(&format!("{first}_a.npy"), 8), file(&format!("{second}_a.npy"), 3)]),
            field("u", Role::Output, "", vec![file(&format!("{first}_u.npy"), 8), file(&format!("{second}_u.npy"), 3)]),
        ]
    };
    let rule = |fields: Vec<OwnField>, sizes: Sizes| {
        let import = Own { sizes, ..own(LINE, fields) }.import();
        import.map(|import| import.manifest().split.clone()).map_err(|error| error.to_string())
    };
    let plain = Sizes::default();
    assert_eq!(rule(fields("train", "test"), plain), Ok(Rule::Ends { train: 8, test: 3 }));
    let listed = Rule::Indices { train: (8..11).collect(), test: (0..8).collect() };
    assert_eq!(rule(fields("flow_test", "flow_train"), plain), Ok(listed));
    assert_eq!(
        rule(fields("train", "val"), Sizes { train: Some(5), ..plain }).unwrap().split(11).unwrap().test,
        [8, 9, 10]
    );
    assert!(
        rule(fields("train", "test"), Sizes { train: Some(9), ..plain }).unwrap_err().contains("expected at most 8")
    );
    assert!(matches!(rule(fields("one", "two"), plain), Ok(Rule::Random { .. })));
    assert!(matches!(rule(fields("train", "test"), Sizes { seed: Some(0), ..plain }), Ok(Rule::Random { .. })));
    let mut crossed = fields("train", "test");
    crossed[1].arrays.reverse();
    assert!(rule(crossed, plain).unwrap_err().contains("expected the partner of"));
    let mut other = fields("train", "test");
    other[1].arrays = vec![file("1_test_u.npy", 8), file("2_train_u.npy", 3)];
    assert!(rule(other, plain).unwrap_err().contains("expected the training and test samples that"));
}

#[test]
fn a_sweep_is_recognised_and_samples_in_no_order_are_not_taken_for_one() {
    let folder = Folder::new("sweep");
    let found = |name: &str, own: &Own| sweep(&written(own, &folder.at(name))).unwrap();
    let parameter = Some(Sweep::Parameter { field: "mu".into(), ends: [0.5, 19.5] });
    assert_eq!(found("grows", &twenty(&folder, |sample| 0.5 + sample as f64)), parameter);
    let steps = found("steps", &twenty(&folder, |sample| -((sample / 4) as f64)));
    assert!(matches!(steps, Some(Sweep::Parameter { .. })), "a grid of two parameters: {steps:?}");
    assert_eq!(found("mixed", &twenty(&folder, |sample| (sample * 7 % 20) as f64)), None);
    assert_eq!(found("constant", &twenty(&folder, |_| 3.0)), None);
    let waves = (0..40 * 4).map(|place| (0.1 * (place / 4) as f64 + (place % 4) as f64).sin());
    let path = own(LINE, vec![field("u", Role::Output, "", vec![vec![save(&folder, "w.npy", &[40, 4], waves)]])]);
    let Some(Sweep::Neighbours { field, ratio }) = found("path", &path) else { panic!("neighbours are alike") };
    assert!(field == "u" && ratio < 0.3, "{ratio}");
}
