//! Training on windows of time series: which windows are validated with, and how many snapshots are given.

use crate::support::{Folder, save};
use lamo::data::Dataset;
use lamo::data::dataset::{Normalise, Role, Series, Split};
use lamo::data::import::{Own, OwnField, Windows};
use lamo::experiment;
use lamo::run;
use lamo::workflow::{self, ImportRequest, ImportSource, Session, TrainRequest, train};
use lamo_geometry::Grid;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const SHORT: Windows = Windows { window: 2, horizon: 2, step: 1 };

/// A data set of windows of `count` waves on a line of 8 points, `snapshots` each.
fn waves(folder: &Folder, name: &str, count: usize, snapshots: usize, windows: Windows) -> PathBuf {
    let wave = |place: usize| {
        let (series, time, point) = (place / (8 * snapshots), place / 8 % snapshots, place % 8);
        2.0 + (0.7 * series as f64 + 0.3 * time as f64 + 0.8 * point as f64).sin()
    };
    let values = (0..count * snapshots * 8).map(wave);
    let field = OwnField {
        name: "u".into(),
        role: Role::Output,
        unit: "1".into(),
        normalise: Normalise::Channels,
        axes: Some("ntx".into()),
        arrays: vec![vec![save(folder, &format!("{name}.npy"), &[count, snapshots, 8], values)]],
    };
    let (grid, windows, fields) = (Grid::Line { points: 8 }, Some(windows), vec![field]);
    let (name, sizes) = (name.to_owned(), Default::default());
    let own = Own { name, grid, ragged: Vec::new(), stride: 1, fields, times: None, windows, split: None, sizes };
    let out = folder.at(&own.name);
    let request = ImportRequest { source: ImportSource::Own(Box::new(own)), out: out.clone() };
    workflow::import(&request, &Session::default()).unwrap();
    out
}

fn request(data: &Path, out: PathBuf, changes: &[&str]) -> TrainRequest {
    let base = ["model.settings={ width = 8, modes = 2, depth = 1 }", "train.epochs=1", "train.batch=2"];
    let changes = [&base, changes].concat().into_iter().map(str::to_owned).collect();
    TrainRequest { model: Some("fno".into()), changes, out: Some(out), ..TrainRequest::new(data.to_str().unwrap()) }
}

#[test]
fn no_snapshot_of_a_time_series_is_trained_on_and_validated_with() {
    let folder = Folder::new("windows-validated");
    for (name, count, snapshots, step, gap) in
        [("one", 1, 100, 1, 3), ("two-apart", 1, 150, 2, 1), ("apart", 1, 300, 4, 0), ("several", 12, 12, 1, 3)]
    {
        let data = waves(&folder, name, count, snapshots, Windows { step, ..SHORT });
        let job = request(&data, folder.at(&format!("run-{name}")), &[]);
        let experiment = job.experiment().unwrap();
        let dataset = Dataset::open(&data).unwrap();
        let whole = dataset.split().unwrap();
        let split = experiment::split(&experiment, &dataset).unwrap();
        assert_eq!(split.validation.len(), whole.train.len() / 10, "{name}");
        assert_eq!((experiment.data.gap, &split.test), (gap, &whole.test), "{name}");
        let each = (snapshots - 4) / step + 1; // windows of a series
        let seen = |samples: &[usize]| -> BTreeSet<usize> {
            let first = |sample: usize| sample / each * snapshots + sample % each * step;
            samples.iter().flat_map(|&sample| first(sample)..first(sample) + 4).collect()
        };
        assert!(seen(&split.train).is_disjoint(&seen(&split.validation)), "{name}: {split:?}");
        assert!(seen(&split.validation).is_disjoint(&seen(&split.test)), "{name}");
        assert!(split.train.len() + split.validation.len() + gap >= whole.train.len(), "{name}: one border");
        // A run of an earlier version has no gap: its split, and so its hash, are as then.
        let mut earlier = experiment.clone();
        earlier.data.gap = 0;
        let drawn = whole.validated(experiment.data.validation, experiment.data.seed).unwrap();
        assert_eq!(experiment::split(&earlier, &dataset).unwrap(), drawn, "{name}");
        let done = train(&job, &Session::default()).unwrap();
        assert_eq!(run::environment(&done.folder).unwrap().data.unwrap().split, split.hash(), "{name}");
        assert!(done.history.iter().all(|line| line.validation.is_some() && line.test.is_none()), "{name}");
    }
}

#[test]
fn windows_to_train_on_share_no_snapshots_with_those_that_are_named_to_test_on() {
    let folder = Folder::new("windows-named");
    let data = waves(&folder, "named", 2, 30, SHORT); // 27 windows of each series
    let dataset = Dataset::open(&data).unwrap();
    let named = |train: usize| {
        let sizes = [format!("data.train={train}"), "data.test=4".into(), "data.first_test=10".into()];
        let changes: Vec<&str> = sizes.iter().map(String::as_str).chain(["data.validation=0"]).collect();
        let experiment = request(&data, folder.at("run"), &changes).experiment().map_err(|error| error.to_string())?;
        experiment::split(&experiment, &dataset).map_err(|error| error.to_string())
    };
    let split = named(40).unwrap();
    assert_eq!(split.test, [10, 11, 12, 13]);
    let near = |&window: &usize| (7..=16).contains(&window);
    assert!(split.train.len() == 40 && !split.train.iter().any(near), "{:?}", split.train);
    let told = named(45).unwrap_err();
    assert!(told.contains("data.train: expected at most 44, those that share no snapshots"), "{told}");
}

#[test]
fn windows_that_would_cost_half_of_the_training_are_not_validated_with_unless_asked_for() {
    let folder = Folder::new("windows-few");
    let long = waves(&folder, "long", 1, 90, Windows { window: 10, horizon: 10, step: 1 });
    let data = request(&long, folder.at("never"), &[]).experiment().unwrap().data;
    assert_eq!((data.validation, data.gap), (0, 0), "41 windows to train on, of which 4 and their 19 neighbours");
    let data = request(&long, folder.at("never"), &["data.validation=4"]).experiment().unwrap().data;
    assert_eq!((data.validation, data.gap), (4, 19));

    let short = waves(&folder, "short", 1, 60, SHORT);
    let refused = |changes: &[&str]| request(&short, folder.at("never"), changes).experiment().unwrap_err().to_string();
    let told = refused(&["data.validation=43"]);
    assert!(told.contains("data.validation: expected fewer, so that some of the 45 windows"), "{told}");
    assert!(refused(&["data.validation=45"]).contains("fewer than the 45"));
    let own = request(&short, folder.at("never"), &["data.gap=0", "data.validation=43"]).experiment().unwrap();
    assert_eq!(own.data.gap, 0, "the user may set it");
}

#[test]
fn validation_windows_are_whole_series_and_the_last_windows_of_one() {
    let split = Split::of((0..30).collect(), (30..40).collect());
    for series in [Series::Equal(5), Series::Ends(vec![5, 10, 15, 20, 25, 30, 40])] {
        let seeds: BTreeSet<Vec<usize>> = (0..20)
            .map(|seed| {
                let found = split.clone().validated_in_time(7, seed, 2, &series).unwrap();
                let touched: BTreeSet<usize> = found.validation.iter().map(|window| window / 5).collect();
                assert_eq!((found.validation.len(), touched.len(), found.train.len()), (7, 2, 21), "{found:?}");
                found.validation
            })
            .collect();
        assert!(seeds.len() > 10, "drawn with the seed: {seeds:?}");
    }
    let one = split.validated_in_time(7, 3, 2, &Series::One).unwrap();
    assert_eq!((one.train, one.validation), ((0..21).collect(), (23..30).collect()), "an end of one series");
}

#[test]
fn a_loss_of_all_tasks_leaves_the_windows_what_they_are_given() {
    let folder = Folder::new("windows-loss");
    let data = waves(&folder, "wave", 1, 60, Windows { window: 3, horizon: 2, step: 1 });
    let found = |changes: &[&str]| {
        let experiment = request(&data, folder.at("never"), changes).experiment().unwrap();
        (experiment.time_mode().is_roll_out(), experiment.data.past)
    };
    for changes in [
        &[][..],
        &["train.loss=mse"],
        &["train.loss=relative-l2-of-frames"],
        &["train={ loss = \"mse\" }"],
        &["train.loss=l1", "data.time=roll-out"],
    ] {
        assert_eq!(found(changes), (true, 3), "{changes:?}");
    }
    assert_eq!(found(&["train.loss=relative-l2-of-times"]), (false, 1));
    assert_eq!(found(&["train.loss=mse", "data.time=by-time"]), (false, 1));
    assert_eq!(found(&["train.loss=mse", "data.past=2"]), (true, 2), "the user's own number counts");
}
