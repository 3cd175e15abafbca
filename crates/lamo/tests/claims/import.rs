//! Your own arrays become a data set: roles, axes, joined files; what does not fit is said with both files.

use crate::support::{Folder, experiment, save};
use lamo::data::dataset::{Dataset, Error, Normalise, Outcome, Role, Rule};
use lamo::data::formats::{self, Named};
use lamo::data::import::{ArrayName, Import, Own, OwnField, Sizes, Windows, parse_arrays};
use lamo::experiment::{ExperimentData, OWN};
use lamo::workflow::TrainRequest;
use lamo_geometry::Grid;
use std::fs;
use std::ops::{ControlFlow, Range};
use std::path::Path;

/// An npy file whose n-th number is `first` + n.
fn counting(folder: &Folder, name: &str, shape: &[usize], first: f64) -> ArrayName {
    let count: usize = shape.iter().product();
    save(folder, name, shape, (0..count).map(|place| first + place as f64))
}

fn field(name: &str, role: Role, arrays: Vec<Vec<ArrayName>>) -> OwnField {
    OwnField { name: name.into(), role, unit: "1".into(), normalise: Normalise::Channels, axes: None, arrays }
}

fn own(grid: Grid, fields: Vec<OwnField>) -> Own {
    let sizes = Sizes { ordered: true, ..Sizes::default() };
    Own {
        name: "flow".into(),
        grid,
        ragged: Vec::new(),
        stride: 1,
        fields,
        times: None,
        windows: None,
        split: None,
        sizes,
    }
}

fn written(import: &Import, target: &Path) -> Dataset {
    match import.write(target, &|_| ControlFlow::Continue(())).unwrap() {
        Outcome::Made(dataset) => dataset,
        other => panic!("expected a new data set, found {other:?}"),
    }
}

fn refusal(own: &Own) -> String {
    let error: Error = own.import().err().unwrap();
    let sentence = error.to_string();
    assert_eq!(sentence.lines().count(), 1, "one sentence: {sentence}");
    sentence
}

const PLANE: Grid = Grid::Plane { rows: 3, columns: 2 };

#[test]
fn own_arrays_under_the_name_of_a_benchmark_stay_own_arrays() {
    let folder = Folder::new("named-darcy");
    let fields = vec![
        field("a", Role::Input, vec![vec![counting(&folder, "a.npy", &[9, 3, 2], 0.0)]]),
        field("u", Role::Output, vec![vec![counting(&folder, "u.npy", &[9, 3, 2], 0.0)]]),
    ];
    let own = Own { name: "darcy".into(), ..own(PLANE, fields) };
    written(&own.import().unwrap(), &folder.at("darcy"));
    let experiment = TrainRequest::new(folder.at("darcy").to_str().unwrap()).experiment().unwrap();
    assert_eq!(experiment.benchmark, OWN);
}

#[test]
fn samples_last_frames_channels_and_common_positions_find_their_places() {
    let folder = Folder::new("axes");
    let (input, output) = (Role::Input, Role::Output);
    let mut series = field("series", output, vec![vec![counting(&folder, "series.npy", &[3, 2, 4, 5], 0.0)]]); // x, y, t, n
    series.axes = Some("xytn".into());
    let fields = vec![
        field("positions", Role::Position, vec![vec![counting(&folder, "xy.npy", &[3, 2, 2], 100.0)]]),
        field("a", input, vec![vec![counting(&folder, "a.npy", &[5, 3, 2], 0.0)]]),
        field("profile", input, vec![vec![counting(&folder, "profile.npy", &[5, 3], 0.0)]]),
        field("speed", input, vec![vec![counting(&folder, "speed.npy", &[5], 0.0)]]),
        series,
        field(
            "v",
            output,
            vec![vec![counting(&folder, "v.npy", &[5, 3, 2], 0.0), counting(&folder, "w.npy", &[5, 3, 2], 500.0)]],
        ),
    ];
    let times = Some(counting(&folder, "t.npy", &[1, 4], 2.0));
    let split = Some(Rule::Ends { train: 3, test: 1 });
    let dataset = written(&Own { times, split, ..own(PLANE, fields) }.import().unwrap(), &folder.at("set"));
    dataset.verify().unwrap();
    let shape = |name: &str| dataset.field(name).unwrap().shape.clone();
    assert_eq!(shape("positions"), [3, 2, 2]);
    assert!(dataset.field("positions").unwrap().common && !dataset.field("a").unwrap().common);
    assert_eq!(
        (shape("profile"), shape("speed"), shape("series"), shape("v")),
        (vec![3], vec![], vec![4, 3, 2], vec![3, 2, 2])
    );
    assert_eq!(dataset.manifest().times, [2.0, 3.0, 4.0, 5.0]);
    let beyond = dataset.read("positions", 0..usize::MAX).unwrap_err().to_string();
    assert!(beyond.contains("expected samples below 5"), "{beyond}");
    // the same positions for each sample asked for
    let positions: Vec<f32> = (100..112).map(|value| value as f32).collect();
    assert_eq!(dataset.read("positions", 3..5).unwrap(), [&positions[..], &positions[..]].concat());
    assert_eq!(dataset.gather("speed", &[4, 1]).unwrap(), [4.0, 1.0]);
    let all = dataset.read("series", 0..5).unwrap();
    for (place, &value) in all.iter().enumerate() {
        let (n, t, x, y) = (place / 24, place / 6 % 4, place / 2 % 3, place % 2);
        assert_eq!(value, (((x * 2 + y) * 4 + t) * 5 + n) as f32);
    }
    let pairs = dataset.read("v", 1..2).unwrap();
    assert_eq!(pairs[..4], [6.0, 506.0, 7.0, 507.0]);
    assert_eq!(dataset.on_grid("v").unwrap().width(), 2);
    let normaliser = dataset.normaliser("v", &[0, 1, 2]).unwrap().unwrap();
    assert_eq!(normaliser.mean, [8.5, 508.5]);
}

#[test]
fn files_of_a_field_join_along_the_samples_and_a_stride_thins_the_grid() {
    let folder = Folder::new("join");
    let grid = Grid::Plane { rows: 5, columns: 4 };
    let fields = vec![
        field(
            "a",
            Role::Input,
            vec![
                vec![counting(&folder, "train_a.npy", &[3, 5, 4], 0.0)],
                vec![counting(&folder, "test_a.npy", &[2, 5, 4], 1000.0)],
            ],
        ),
        field("u", Role::Output, vec![vec![counting(&folder, "u.npy", &[5, 5, 4], 0.0)]]),
    ];
    let dataset = written(&Own { stride: 2, ..own(grid, fields) }.import().unwrap(), &folder.at("set"));
    assert_eq!(dataset.field("a").unwrap().shape, [3, 2]);
    assert_eq!(
        dataset.read("a", 2..4).unwrap(),
        [40.0, 42.0, 48.0, 50.0, 56.0, 58.0, 1000.0, 1002.0, 1008.0, 1010.0, 1016.0, 1018.0]
    );
    assert_eq!(dataset.read("u", 1..2).unwrap(), [20.0, 22.0, 28.0, 30.0, 36.0, 38.0]);
    let sources: Vec<_> = dataset.manifest().sources.iter().map(|source| source.file.as_str()).collect();
    assert_eq!(sources, ["train_a.npy", "test_a.npy", "u.npy"]);
    assert!(dataset.manifest().sources.iter().all(|source| source.sha256.len() == 64));
    assert_eq!(dataset.manifest().parameters["stride"].as_integer(), Some(2));
}

/// Two square arrays that only their names tell apart, twice a square, and times.
fn squares(folder: &Folder) -> Own {
    let array = |name: &str, first: usize| Named {
        name: name.into(),
        shape: vec![5, 3, 3],
        values: (first..first + 45).map(|value| value as f32).collect(),
    };
    formats::write(&folder.at("flow.npz"), &[array("coeff", 0), array("sol", 100)]).unwrap();
    let coeff = ArrayName { path: folder.at("flow.npz"), variable: Some("coeff".into()) };
    let fields = vec![
        field("b", Role::Input, vec![vec![counting(folder, "b.npy", &[5, 3, 3], 0.0)]]),
        field("u", Role::Output, vec![vec![coeff]]),
        field("series", Role::Output, vec![vec![counting(folder, "series.npy", &[5, 2, 3, 3], 0.0)]]),
    ];
    let times = Some(counting(folder, "t.npy", &[2], 0.0));
    Own { times, ..own(Grid::Plane { rows: 3, columns: 3 }, fields) }
}

#[test]
fn a_corrected_import_is_not_taken_for_the_one_that_is_there_or_under_way() {
    let folder = Folder::new("corrected");
    let wrong = squares(&folder);
    let (target, unfinished) = (folder.at("set"), folder.at("half"));
    let write = |own: &Own, target: &Path| own.import().unwrap().write(target, &|_| ControlFlow::Continue(()));
    written(&wrong.import().unwrap(), &target);
    let partial = folder.at("half.partial");
    fs::create_dir_all(&partial).unwrap();
    fs::copy(target.join("dataset.toml"), partial.join("recipe.toml")).unwrap(); // killed before the arrays were there
    assert!(matches!(write(&wrong, &target), Ok(Outcome::AlreadyThere(_))));
    let mut spelled_out = wrong.clone();
    spelled_out.fields[0].axes = Some("nxy".into());
    assert!(matches!(write(&spelled_out, &target), Ok(Outcome::AlreadyThere(_))), "these axes were found by the shape");
    let changed = |change: &dyn Fn(&mut Own)| {
        let mut own = wrong.clone();
        change(&mut own);
        own
    };
    let sol = |own: &mut Own| own.fields[1].arrays[0][0].variable = Some("sol".into());
    for (corrected, difference) in [
        (changed(&sol), "origin of `u` flow.npz:sol with axes nxy, found flow.npz:coeff with axes nxy;"),
        (
            changed(&|own| own.fields[0].axes = Some("nyx".into())),
            "origin of `b` b.npy with axes nyx, found b.npy with axes nxy;",
        ),
        (changed(&|own| own.fields[0].role = Role::Output), "role of `b` output, found input;"),
        (changed(&|own| own.fields[1].normalise = Normalise::None), "normalisation of `u` none, found channels;"),
        (changed(&|own| own.times = None), "times [], found [0.0, 1.0];"),
        (
            changed(&|own| own.split = Some(Rule::Indices { train: vec![0], test: vec![1] })),
            "split 1 to train and 1 to test, listed, found first 4 to train, last 1 to test;",
        ),
    ] {
        for (target, state) in [(&target, "set holds another"), (&unfinished, "half.partial holds an unfinished")] {
            let sentence = write(&corrected, target).unwrap_err().to_string();
            assert!(sentence.contains(&format!("{state} data set: expected {difference}")), "{sentence}");
        }
    }
    assert_eq!(written(&changed(&sol).import().unwrap(), &folder.at("right")).read("u", 0..1).unwrap()[0], 100.0);
}

#[test]
fn an_import_of_an_earlier_version_is_read_but_not_taken_for_what_it_does_not_say_it_is() {
    let folder = Folder::new("earlier");
    let (own, target) = (squares(&folder), folder.at("set"));
    written(&own.import().unwrap(), &target);
    let path = target.join("dataset.toml");
    let mut manifest: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
    for field in manifest["fields"].as_array_mut().unwrap() {
        field.as_table_mut().unwrap().remove("origin").unwrap();
    }
    fs::write(&path, manifest.to_string()).unwrap();
    Dataset::open(&target).unwrap().verify().unwrap();
    let sentence = own.import().unwrap().write(&target, &|_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(sentence.contains("origin of `b` b.npy with axes nxy, found nothing on record;"), "{sentence}");
}

#[test]
fn files_of_the_same_name_are_told_apart() {
    let folder = Folder::new("namesakes");
    for part in ["one", "two"] {
        fs::create_dir_all(folder.at(part)).unwrap();
    }
    let (one, two) =
        (counting(&folder, "one/u.npy", &[5, 3, 2], 0.0), counting(&folder, "two/u.npy", &[5, 3, 2], 100.0));
    let output = |name: &str, array: &ArrayName| field(name, Role::Output, vec![vec![array.clone()]]);
    let fields = |last: &ArrayName| vec![output("a", &one), output("b", &two), output("c", last)];
    written(&own(PLANE, fields(&one)).import().unwrap(), &folder.at("set"));
    let other = own(PLANE, fields(&two)).import().unwrap();
    let sentence = other.write(&folder.at("set"), &|_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(sentence.contains("source files of `c` [1], found [0];"), "{sentence}");
}

#[test]
fn clouds_bring_positions_for_each_sample() {
    let folder = Folder::new("cloud");
    let mut positions = field("positions", Role::Position, vec![vec![counting(&folder, "xy.npy", &[7, 2, 3], 0.0)]]);
    positions.axes = Some("pcn".into());
    let mut stress = field("stress", Role::Output, vec![vec![counting(&folder, "s.npy", &[7, 3], 0.0)]]);
    stress.axes = Some("pn".into());
    let dataset =
        written(&own(Grid::Cloud { points: 7 }, vec![positions, stress]).import().unwrap(), &folder.at("set"));
    assert_eq!(dataset.field("positions").unwrap().shape, [7, 2]);
    assert_eq!(dataset.read("positions", 1..2).unwrap()[..4], [1.0, 4.0, 7.0, 10.0]);
    assert_eq!(dataset.read("stress", 2..3).unwrap(), [2.0, 5.0, 8.0, 11.0, 14.0, 17.0, 20.0]);
}

#[test]
fn what_does_not_fit_is_said_with_both_files() {
    let folder = Folder::new("unfit");
    let (input, output) = (Role::Input, Role::Output);
    let one = |name: &str, shape: &[usize]| vec![vec![counting(&folder, name, shape, 0.0)]];
    let file = |name: &str| folder.at(name).display().to_string();
    let a = || field("a", input, one("a.npy", &[5, 3, 2]));
    let u = || field("u", output, one("u.npy", &[5, 3, 2]));
    assert_eq!(
        refusal(&own(PLANE, vec![a(), field("u", output, one("short.npy", &[4, 3, 2]))])),
        format!(
            "{}: expected 5 samples, as {} holds, found 4; each sample needs all its fields",
            file("short.npy"),
            file("a.npy")
        )
    );
    let wide = refusal(&own(PLANE, vec![a(), field("u", output, one("wide.npy", &[5, 2, 3]))]));
    assert!(wide.starts_with(&format!("{}: expected samples, then snapshots if any", file("wide.npy"))), "{wide}");
    assert!(wide.contains("over a grid of [3, 2], found shape [5, 2, 3]; check --grid, or name the axes"), "{wide}");
    let mut turned = field("u", output, one("turned.npy", &[3, 2, 5]));
    turned.axes = Some("xyt".into());
    let sentence = refusal(&own(PLANE, vec![turned]));
    assert!(
        sentence.contains("turned.npy: expected several samples, found 5 snapshots, 3 rows, 2 columns"),
        "{sentence}"
    );
    assert!(sentence.contains("no axis n (axes xyt); cut the time series into samples with --window 10"), "{sentence}");
    let times = Some(counting(&folder, "t.npy", &[3], 0.0));
    let series = field("u", output, one("series.npy", &[5, 4, 3, 2]));
    let sentence = refusal(&Own { times, ..own(PLANE, vec![series]) });
    assert!(
        sentence
            .contains(&format!("t.npy: expected 4 times, one for each snapshot of {}, found 3", file("series.npy"))),
        "{sentence}"
    );
    let joined =
        vec![vec![counting(&folder, "j1.npy", &[3, 3, 2], 0.0)], vec![counting(&folder, "j2.npy", &[2, 3, 2, 4], 0.0)]];
    let sentence = refusal(&own(PLANE, vec![field("u", output, joined)]));
    assert!(
        sentence.contains("j2.npy: expected 3 rows, 2 columns for each sample, as ")
            && sentence.contains("j1.npy holds (axes nxy), found 3 rows, 2 columns, 4 channels (axes nxyc); "),
        "{sentence}"
    );
    assert_eq!(refusal(&own(PLANE, vec![a()])), "the import: expected at least one output, found none; add --output");
    let sentence = refusal(&own(PLANE, vec![a(), field("a", output, one("u2.npy", &[5, 3, 2]))]));
    assert!(
        sentence.contains("expected each name once among positions, inputs and outputs, found `a` twice"),
        "{sentence}"
    );
    assert_eq!(refusal(&Own { stride: 0, ..own(PLANE, vec![u()]) }), "stride: expected 1 or more, found 0");
    let line = Own { stride: 2, ..own(Grid::Line { points: 6 }, vec![u()]) };
    assert_eq!(refusal(&line), "stride: expected 1 where the grid is no plane or volume, found 2");
    assert!(refusal(&own(PLANE, vec![field("U x", output, one("u3.npy", &[5, 3, 2]))])).contains("small letters"));
    let sentence = refusal(&Own { split: Some(Rule::Ends { train: 5, test: 1 }), ..own(PLANE, vec![u()]) });
    assert_eq!(sentence, "split: expected at most 5 samples in all, found 5 to train and 1 to test on");
    assert!(
        refusal(&own(PLANE, vec![field("u", output, vec![])])).contains("field `u`: expected an array, found none")
    );
    let absent = ArrayName { path: folder.at("none.npy"), variable: None };
    let sentence = refusal(&own(PLANE, vec![field("u", output, vec![vec![absent]])]));
    assert!(sentence.ends_with("none.npy: expected a file, found nothing; check the path"), "{sentence}");
    let folder_given = ArrayName { path: folder.path().to_owned(), variable: None };
    assert!(refusal(&own(PLANE, vec![field("u", output, vec![vec![folder_given]])])).contains("found a folder"));
    let named = ArrayName { path: folder.at("u.npy"), variable: Some("sol".into()) };
    let sentence = refusal(&own(PLANE, vec![u(), field("v", output, vec![vec![named]])]));
    assert!(sentence.contains("expected an array named `sol`, found one array without a name"), "{sentence}");
}

#[test]
fn what_could_never_be_trained_is_not_imported() {
    let folder = Folder::new("untrainable");
    let one = |name: &str, shape: &[usize]| vec![vec![counting(&folder, name, shape, 1.0)]];
    let u = || field("u", Role::Output, one("u.npy", &[5, 3, 2]));
    for beside in [vec![], vec![u()]] {
        let rows = field("drag", Role::Output, one("drag.npy", &[5, 3]));
        let sentence = refusal(&own(PLANE, [beside, vec![rows]].concat()));
        let expected =
            "drag.npy: expected an output with a value at every point of the grid [3, 2], found [3] for each sample";
        assert!(sentence.contains(expected), "{sentence}");
    }
    for (shape, count) in [([3, 2, 4], 4), ([3, 2, 150], 150)] {
        let positions = field("positions", Role::Position, one("xy.npy", &shape));
        let sentence = refusal(&own(PLANE, vec![positions, u()]));
        assert!(
            sentence.contains(&format!("xy.npy: expected 1 to 3 coordinates for each point, found {count}; ")),
            "{sentence}"
        );
    }
    let sentence = refusal(&Own { split: Some(Rule::Ends { train: 5, test: 0 }), ..own(PLANE, vec![u()]) });
    assert!(sentence.contains("expected at least 1 sample to test on, found none of 5 samples; "), "{sentence}");
    for (axes, found) in [("nqq", "`q`;"), ("nxx", "`x` twice;")] {
        let sentence = refusal(&own(PLANE, vec![OwnField { axes: Some(axes.into()), ..u() }]));
        assert!(sentence.contains(&format!("--axes u={axes}: expected ")), "{sentence}");
        assert!(sentence.contains(&format!(", found {found}")), "{sentence}");
    }
}

/// Five samples of an input `a` and a time series `v` of four snapshots, `zero` of its 120 values at rest.
fn series(folder: &Folder, zero: Range<usize>, split: Rule) -> Dataset {
    let value = move |place: usize| if zero.contains(&place) { 0.0 } else { 1.0 + place as f64 };
    let fields = vec![
        field("a", Role::Input, vec![vec![counting(folder, "a.npy", &[5, 3, 2], 0.0)]]),
        field("v", Role::Output, vec![vec![save(folder, "v.npy", &[5, 4, 3, 2], (0..120).map(value))]]),
    ];
    written(&Own { split: Some(split), ..own(PLANE, fields) }.import().unwrap(), &folder.at("set"))
}

#[test]
fn an_input_beside_a_time_series_is_given_beside_its_past_unless_the_experiment_leaves_it_out() {
    let folder = Folder::new("beside");
    let dataset = series(&folder, 0..0, Rule::Ends { train: 3, test: 1 });
    let read = |changes: &[&str]| {
        let changes = [&["train.loss=relative-l2-of-frames", "data={ train = 0, test = 0 }"], changes].concat();
        ExperimentData::read(&experiment(&changes), &dataset)
    };
    for changes in [&[][..], &["data.inputs=[\"a\"]"], &["data.inputs=[\"v\", \"a\"]"]] {
        let both = read(changes).unwrap();
        assert_eq!((both.inputs.len(), both.inputs[0].name.as_str()), (1, "a"), "{changes:?}");
        assert_eq!((both.train.functions, both.train.inputs[..4].to_vec()), (2, vec![1.0, 0.0, 2.0, 1.0]));
    }
    let alone = read(&["data.inputs=[\"v\"]"]).unwrap();
    assert_eq!((alone.inputs.len(), alone.train.functions), (0, 1));
}

#[test]
fn a_sample_without_a_relative_error_is_named_by_its_number_in_the_data_set() {
    let folder = Folder::new("rest");
    let dataset = series(&folder, 4 * 24..120, Rule::Ends { train: 3, test: 1 });
    let told = ExperimentData::read(&experiment(&["data={ train = 0, test = 0 }"]), &dataset).unwrap_err().to_string();
    assert!(told.contains("not zero everywhere") && told.contains("found sample 4; "), "{told}");
    let folder = Folder::new("rest-of-a-frame");
    let dataset = series(&folder, 4 * 24 + 6..4 * 24 + 12, Rule::Indices { train: vec![2, 4], test: vec![0] });
    let changes = ["train.loss=relative-l2-of-times", "data={ train = 0, test = 0 }"];
    let told = ExperimentData::read(&experiment(&changes), &dataset).unwrap_err().to_string();
    assert!(told.contains("found snapshot 1 of sample 4; "), "{told}");
}

#[test]
fn values_that_are_not_finite_float32_are_named_with_file_sample_and_index_and_nothing_is_written() {
    let folder = Folder::new("nan");
    for (bad, found) in [(f64::NAN, "NaN"), (f64::NEG_INFINITY, "-inf"), (1e300, "1e300")] {
        let values = (0..30).map(|place| if place == 15 { bad } else { 1.0 });
        let array = save(&folder, "u.npy", &[5, 3, 2], values);
        let import = own(PLANE, vec![field("u", Role::Output, vec![vec![array]])]).import().unwrap();
        let sentence = import.write(&folder.at("set"), &|_| ControlFlow::Continue(())).unwrap_err().to_string();
        let expected = format!(
            "u.npy: sample 2 has {found} at [1, 1] of `u`, expected finite float32 values, up to 3.4e38; correct the file \
             or leave the sample out"
        );
        assert!(sentence.ends_with(&expected), "{sentence}");
        assert!(!folder.at("set").exists() && !folder.at("set.partial").exists(), "a mended file is not in the way");
    }
}

/// `/dev/full` takes the role of a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_and_the_same_command_continues_when_there_is_space() {
    let folder = Folder::new("full");
    let array = counting(&folder, "u.npy", &[5, 3, 2], 0.0);
    let import = own(PLANE, vec![field("u", Role::Output, vec![vec![array]])]).import().unwrap();
    let target = folder.at("set");
    let stopped = import.write(&target, &|_| ControlFlow::Break(()));
    assert!(matches!(stopped, Ok(Outcome::Made(_))), "all samples fit one block");
    let manifest = fs::read_to_string(target.join("dataset.toml")).unwrap();
    fs::remove_dir_all(&target).unwrap();
    let partial = folder.at("set.partial");
    fs::create_dir_all(&partial).unwrap();
    fs::write(partial.join("recipe.toml"), manifest).unwrap(); // killed before the arrays were there
    std::os::unix::fs::symlink("/dev/full", partial.join("u.npy")).unwrap();
    let sentence = import.write(&target, &|_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert_eq!(
        sentence,
        format!(
            "{}: the disk is full; free some space and run the same command again, it continues with the next sample",
            partial.join("u.npy").display()
        )
    );
    assert!(!target.exists());
    fs::remove_file(partial.join("u.npy")).unwrap();
    assert_eq!(written(&import, &target).read("u", 0..1).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

/// Imports while a source is overwritten once it has been hashed; the refusal.
fn overwritten(name: &str, change: impl Fn(&Path)) -> Error {
    let folder = Folder::new(name);
    let array = counting(&folder, "u.npy", &[6, 4, 3], 0.0);
    let path = array.path.clone();
    let import = own(Grid::Plane { rows: 4, columns: 3 }, vec![field("u", Role::Output, vec![vec![array]])]).import();
    let hashed = fs::metadata(&path).unwrap().len();
    let done = std::cell::Cell::new(false);
    let listen = |transfer: lamo::data::import::Transfer| {
        if transfer.done >= hashed && !done.replace(true) {
            change(&path);
        }
        ControlFlow::Continue(())
    };
    let error = import.unwrap().write(&folder.at("set"), &listen).unwrap_err();
    assert!(done.get() && !folder.at("set").exists() && !folder.at("set.partial").exists(), "{error}");
    error
}

#[test]
fn a_source_that_is_overwritten_during_an_import_is_named_and_nothing_is_written() {
    let other = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        bytes
    };
    let kept_time = |path: &Path| {
        let time = fs::metadata(path).unwrap().modified().unwrap();
        fs::write(path, other(path)).unwrap();
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    };
    type Change<'a> = &'a dyn Fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("in-place", &|path| fs::write(path, other(path)).unwrap()),
        ("same-time", &kept_time), // only the second hash shows it
        ("longer", &|path| fs::write(path, [other(path), vec![0]].concat()).unwrap()),
        ("replaced", &|path| {
            fs::write(path.with_extension("new"), other(path)).unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        }),
    ];
    for (name, change) in changes {
        let error = overwritten(name, change);
        assert!(matches!(&error, Error::Changed { path } if path.ends_with("u.npy")), "{name}: {error}");
        assert_eq!(lamo::error::Failure::kind(&error), lamo::Kind::Conflict, "{name}");
    }
}

#[test]
fn names_with_control_characters_are_refused_in_one_line() {
    let folder = Folder::new("control");
    let array = counting(&folder, "u.npy", &[6, 4, 3], 0.0);
    let grid = Grid::Plane { rows: 4, columns: 3 };
    let output = |name: &str| field(name, Role::Output, vec![vec![array.clone()]]);
    let unit = OwnField { unit: "m\ns".into(), ..output("u") };
    let name = Own { name: "a\u{1b}[2J".into(), ..own(grid, vec![output("u")]) };
    for (own, word) in [(own(grid, vec![output("u\nv")]), "u\\nv"), (own(grid, vec![unit]), "m\\ns"), (name, "\\u{1b}")]
    {
        let told = refusal(&own);
        assert!(told.contains(word) && told.lines().count() == 1, "{told:?}");
    }
    written(&own(grid, vec![output("u")]).import().unwrap(), &folder.at("set"));
    let path = folder.at("set/dataset.toml");
    let text = fs::read_to_string(&path).unwrap().replace("name = \"u\"", "name = \"u\\nv\"");
    fs::write(&path, text).unwrap();
    let told = Dataset::open(&folder.at("set")).unwrap_err().to_string();
    assert!(told.contains("field `u\\nv`: expected a name without control characters"), "{told}");
    assert_eq!(told.lines().count(), 1);
}

#[test]
fn a_line_that_does_not_fit_a_time_series_is_told_with_both_sizes() {
    let folder = Folder::new("wrong-line");
    let series = || vec![field("u", Role::Output, vec![vec![counting(&folder, "u.npy", &[17, 30], 0.0)]])];
    let windows = Some(Windows { window: 2, horizon: 2, step: 1 });
    let told = refusal(&Own { windows, ..own(Grid::Line { points: 16 }, series()) });
    let expected = "u.npy: expected snapshots of a line of 16 points to cut windows from, found shape [17, 30], read as 17 samples, \
                    30 channels (axes nc); say --grid line:17 if it has 30 snapshots, or --grid line:30 if it has 17";
    assert!(told.starts_with("--window and ") && told.ends_with(expected), "{told}");
    assert!(Own { windows, ..own(Grid::Line { points: 17 }, series()) }.import().is_ok());
}

#[test]
fn arrays_of_one_file_that_fit_a_pattern_are_samples_in_the_order_of_their_names() {
    let folder = Folder::new("inner-pattern");
    let array = |run: usize| Named { name: format!("run_{run}/u"), shape: vec![3, 2], values: vec![run as f32; 6] };
    let other = Named { name: "grid".into(), shape: vec![1], values: vec![0.0] };
    formats::write(&folder.at("all.npz"), &[array(10), other, array(2), array(1)]).unwrap();
    let text = |pattern: &str| format!("{}:{pattern}", folder.at("all.npz").display());
    let dataset = written(
        &own(PLANE, vec![field("u", Role::Output, parse_arrays(&text("run_*/u")).unwrap())]).import().unwrap(),
        &folder.at("data"),
    );
    let firsts: Vec<f32> = (0..3).map(|sample| dataset.gather("u", &[sample]).unwrap()[0]).collect();
    assert_eq!(firsts, [1.0, 2.0, 10.0]);
    let told = parse_arrays(&text("*/v")).unwrap_err().to_string();
    assert!(told.contains("expected arrays that fit the pattern, found none among `run_10/u`, `grid`"), "{told}");
}
