//! `lamo data import`: your own arrays become a data set; flags that do not fit give one sentence.

use crate::support::{Folder, contains, wave_npy};
use lamo::data::formats;
use lamo::run::Trained;
use lamo::task::TimeMode;
use serde_json::{Value, json};

#[test]
fn your_own_arrays_become_a_data_set_that_check_verifies() {
    let folder = Folder::new("import");
    for (name, shape) in [("a.npy", &[10, 6, 4][..]), ("u.npy", &[6, 4, 3, 10])] {
        wave_npy(&folder.at(name), shape);
    }
    crate::support::write_npy(&folder.at("t.npy"), &[3], (0..3u8).map(f32::from));
    let arrays = ["--input=a=a.npy", "--output=u=u.npy", "--axes=u=xytn", "--time=t.npy", "--grid=6x4", "--out=flow"];
    let import = [&["data", "import"], &arrays[..]].concat();
    let split = ["--train=7", "--test=2", "--unit=u=m/s"];
    let whole = [&import[..], &split, &["--raw=a"]].concat();
    let report = folder.ok(&whole);
    contains(&report, &["flow: flow, 10 samples of a 6x4 and u 3x6x4, 7 to train and 2 to test, drawn with seed 0"]);
    assert!(folder.ok(&whole).trim_end().ends_with("already there"));
    let report = folder.ok(&["data", "check", "flow"]);
    contains(&report, &["flow: 10 samples, imported from a.npy, u.npy", "[3, 6, 4]", "m/s", "verified"]);
    let report = folder.ok_json(&["data", "check", "flow", "--json"]);
    let fields = &report["fields"];
    assert_eq!(fields[1]["shape"], json!([3, 6, 4]));
    assert_eq!((&fields[0]["normalise"], &fields[1]["normalise"]), (&"none".into(), &"channels".into()));
    assert_eq!((&report["split"]["train"], &report["sources"][0]["file"]), (&7.into(), &"a.npy".into()));
    assert_eq!((&report["times"], &report["picture"]), (&json!([0.0, 1.0, 2.0]), &Value::Null));
    contains(&folder.fails(&[&import[..], &split].concat()), &["`a`", "channels", "none"]);
    contains(
        &folder.fails(&[&import[..], &["--train=6", "--test=2"]].concat()),
        &["6 to train and 2", "7 to train and 2"],
    );
}

#[test]
fn flags_that_do_not_fit_give_one_sentence() {
    let folder = Folder::new("flags");
    wave_npy(&folder.at("u.npy"), &[5, 6, 4]);
    let own = |more: &[&str]| folder.fails(&[&["data", "import", "--output=u=u.npy", "--out=set"], more].concat());
    contains(
        &own(&["--grid=6by4"]),
        &["--grid: expected ROWSxCOLUMNS, ROWSxCOLUMNSxLAYERS, line:POINTS or cloud:POINTS, found `6by4`"],
    );
    contains(
        &own(&["--grid=cloud"]),
        &["--grid: expected line:POINTS without --positions", "found no number of points"],
    );
    contains(&own(&["--grid=4x6"]), &["[4, 6]", "[5, 6, 4]"]);
    contains(&own(&["--grid=6x4", "--axes=v=nxy"]), &["--axes: expected one of u, found `v`"]);
    contains(&own(&["--grid=6x4", "--input=a"]), &["expected NAME=ARRAY", "found `a`"]);
    contains(&own(&["--grid=6x4", "--train=9"]), &["5 samples", "9"]);
    let public =
        |files: &str, benchmark: &str| folder.fails(&["data", "import", files, "--as", benchmark, "--out=set"]);
    contains(&public("absent", "darcy"), &["absent", "darcy"]);
    contains(&public(".", "darcies"), &["darcies", "darcy, navier-stokes"]);
    contains(&public(".", "pipe"), &["pipe", "Pipe_X"]);
    assert_eq!(folder.names(), ["u.npy"]);
    for usage in [&[][..], &["x.mat"], &["--as", "darcy"], &["--output", "u=u.npy"]] {
        let output = folder.run(&[&["data", "import", "--out=set"], usage].concat());
        assert_eq!(output.status.code(), Some(2), "{usage:?}");
    }
}

#[test]
fn a_comma_joins_channels_unless_it_is_part_of_a_file_name() {
    let folder = Folder::new("comma");
    for name in ["u,v.npy", "w.npy"] {
        wave_npy(&folder.at(name), &[5, 6, 4]);
    }
    let import = |arrays: &str, out: &str| {
        folder.ok(&["data", "import", "--output", &format!("u={arrays}"), "--grid=6x4", "--out", out])
    };
    contains(&import("u,v.npy", "one"), &["5 samples of u 6x4, "]);
    contains(&import("w.npy,w.npy", "joined"), &["5 samples of u 6x4x2, "]);
}

#[test]
fn one_sample_is_singular() {
    let folder = Folder::new("one");
    wave_npy(&folder.at("u.npy"), &[1, 6, 4]);
    let own = ["data", "import", "--output=u=u.npy", "--grid=6x4", "--out=set"];
    contains(&folder.fails(&[&own[..], &["--train=2", "--test=0"]].concat()), &["1 sample "]);
    contains(
        &folder.ok(&[&own[..], &["--train=0", "--test=1"]].concat()),
        &["1 sample of u 6x4, 0 to train and 1 to test"],
    );
}

#[test]
fn one_time_series_is_cut_trained_and_continued() {
    let folder = Folder::new("windows");
    wave_npy(&folder.at("u.npy"), &[6, 40]); // points, snapshots
    let import = ["data", "import", "--output=u=u.npy", "--grid=line:6", "--out=set"];
    contains(&folder.fails(&import), &["40 snapshots, 6 points and no axis n (axes pt)", "--window 10 --horizon 10"]);
    let cut = [&import[..], &["--axes=u=xt", "--window=3", "--horizon=2", "--stride=2"]].concat();
    let told = folder.ok(&cut);
    contains(&told, &["u: 40 snapshots, 6 points (axes pt, as given)", "18 windows of one time series, split in time"]);
    contains(&told, &["18 samples of u 5x6, 0..13 to train, 15..18 to test"]);
    assert_eq!(folder.run(&[&import[..], &["--window=3"]].concat()).status.code(), Some(2), "--horizon is missing");
    let model = ["--model=transolver", "--set=model.settings={ width = 8, depth = 1, slice_heads = 2, tokens = 4 }"];
    folder.ok(&[&["train", "set", "--set=train.epochs=1", "--threads=1", "--out=run"], &model[..]].concat());
    let time = Trained::open(&folder.at("run")).unwrap().operator.task.time;
    assert_eq!((time.mode(), time.count()), (TimeMode::RollOut { past: 3 }, 2));
    let predict = ["predict", "run", "--input=u=u.npy", "--output=next.npy"];
    let told = folder.ok(&[&predict[..], &["--axes=u=xt", "--frames=4"]].concat());
    contains(&told, &["u: the prediction continues the last 3 of 40 snapshots", "next.npy: u [4, 6] of 1 sample in "]);
    // The same three snapshots by themselves, in the order of the data set.
    let values = formats::read(folder.at("u.npy"), None).unwrap().values.into_f32();
    let last = (0..18).map(|place| values[(place % 6) * 40 + 37 + place / 6]);
    crate::support::write_npy(&folder.at("last.npy"), &[3, 6], last);
    folder.ok(&["predict", "run", "--input=last.npy", "--output=same.npy", "--frames=4"]);
    assert_eq!(
        formats::read(folder.at("next.npy"), None).unwrap(),
        formats::read(folder.at("same.npy"), None).unwrap()
    );
    contains(&folder.fails(&predict), &["u.npy", "[3, 6]", "[6, 40]"]);
    contains(
        &folder.fails(&[&predict[..], &["--axes=v=xt"]].concat()),
        &["--axes: expected a field that --input names"],
    );
    contains(&folder.fails(&[&predict[..], &["--axes=u=xtn"]].concat()), &["--axes u=xtn: expected a letter for each"]);
}

#[test]
fn a_sweep_and_the_split_of_the_files_are_said() {
    let folder = Folder::new("said");
    crate::support::write_npy(&folder.at("mu.npy"), &[12], (0..12u8).map(f32::from));
    wave_npy(&folder.at("u.npy"), &[12, 6]);
    let import = ["data", "import", "--input=mu=mu.npy", "--output=u=u.npy", "--grid=line:6"];
    let told = folder.ok(&[&import[..], &["--out=drawn"]].concat());
    contains(&told, &["`mu` goes from 0 to 11 in their order; the test samples lie between", "drawn with seed 0"]);
    let told = folder.ok(&[&import[..], &["--out=ends", "--ordered"]].concat());
    contains(&told, &["warning: the samples are a sweep", "extrapolation", "first 10 to train, last 2 to test"]);
    for (name, samples) in [("train_u.npy", 5), ("test_u.npy", 3)] {
        wave_npy(&folder.at(name), &[samples, 6]);
    }
    let told = folder.ok(&[
        "data",
        "import",
        "--output=u=train_u.npy",
        "--output=u=test_u.npy",
        "--grid=line:6",
        "--out=said",
    ]);
    contains(&told, &["the names of the files say which samples are for training", "first 5 to train, last 3 to test"]);
    let usage = folder.run(&[&import[..], &["--out=none", "--ordered", "--seed=1"]].concat());
    assert_eq!(usage.status.code(), Some(2));
}
