//! The length of a training: from the sizes of a user's data, or from a time.

use crate::support::{Folder, essence};
use crate::validation::{two_outputs, warnings};
use lamo::experiment::{Experiment, Preset};
use lamo::run;
use lamo::workflow::{Cancel, Event, Session, TrainRequest, train};
use lamo::{Error, Kind};
use std::path::Path;
use std::sync::Mutex;

const TINY: &str = "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }";

fn request(data: &Path, changes: &[&str]) -> TrainRequest {
    let changes = changes.iter().map(ToString::to_string).collect();
    TrainRequest { changes, ..TrainRequest::new(data.to_str().unwrap()) }
}

#[test]
fn few_samples_of_your_own_get_thousands_of_steps_in_small_batches_with_about_a_hundred_tests() {
    let folder = Folder::new("few");
    let data = two_outputs(&folder, 30);
    let of = |changes: &[&str]| request(&data, changes).experiment().unwrap().train;
    let (batch, steps) = (6, 4);
    let chosen = of(&[]);
    assert_eq!((chosen.batch, chosen.epochs, chosen.evaluate), (batch, 3000 / steps, 7), "24 training samples");
    assert_eq!(of(&["train.batch=1"]).epochs, 125, "24 steps an epoch");
    assert_eq!(of(&["train.evaluate=3"]).evaluate, 3);
    let patient = of(&["train.patience=20", "data.validation=4"]);
    assert_eq!(patient.evaluate, 1, "patience counts epochs that are tested");
    let paper = TrainRequest { preset: Some(Preset::Paper), ..request(&data, &[]) }.experiment().unwrap().train;
    assert_eq!((paper.batch, paper.epochs), (4, 10_000_usize.div_ceil(6)));
}

#[test]
fn epochs_that_were_chosen_stay_and_so_do_those_of_the_benchmarks() {
    let folder = Folder::new("stay");
    let data = two_outputs(&folder, 30);
    let chosen = request(&data, &["train.epochs=3"]).experiment().unwrap().train;
    assert_eq!((chosen.epochs, chosen.evaluate), (3, 1));
    let file = folder.at("mine.toml");
    std::fs::write(&file, "[data]\nfolder = \"plate\"\n[train]\nepochs = 17\n").unwrap();
    assert_eq!(request(&file, &[]).experiment().unwrap().train.epochs, 17);
    let darcy =
        |preset| TrainRequest { preset: Some(preset), ..TrainRequest::new("darcy") }.experiment().unwrap().train;
    assert_eq!((darcy(Preset::Quick).epochs, darcy(Preset::Paper).epochs), (40, 500));
}

#[test]
fn minutes_are_a_time_and_stand_alone() {
    let folder = Folder::new("minutes");
    let data = two_outputs(&folder, 30);
    for (minutes, found) in [(0.0, "0"), (-2.0, "-2"), (f64::NAN, "NaN"), (f64::INFINITY, "inf"), (1e9, "1000000000")] {
        let error =
            TrainRequest { minutes: Some(minutes), ..request(&data, &[]) }.experiment().unwrap_err().to_string();
        assert!(error.contains("--minutes") && error.contains(found), "{error}");
    }
    let both = TrainRequest { minutes: Some(2.0), ..request(&data, &["train.epochs=3"]) };
    let error = both.experiment().unwrap_err().to_string();
    assert!(
        error.contains("--minutes 2") && error.contains("train.epochs = 3") && error.contains("leave one out"),
        "{error}"
    );
}

/// Trains for minutes and returns the experiment that was recorded, and the notes.
fn timed(request: &TrainRequest) -> (Experiment, Vec<String>) {
    let heard: Mutex<Vec<String>> = Mutex::default();
    let listener = |event: Event<'_>| {
        if let Event::Note(note) = event {
            heard.lock().unwrap().push(note.to_owned());
        }
    };
    let done = train(request, &Session { listener: &listener, ..Session::default() }).unwrap();
    assert!(done.finished && done.epoch == done.experiment.train.epochs && done.history.len() == done.epoch);
    (done.experiment, heard.into_inner().unwrap())
}

#[test]
fn a_training_for_a_time_is_to_the_bit_the_training_of_the_epochs_that_it_records() {
    let folder = Folder::new("timed");
    let data = two_outputs(&folder, 30);
    let (timed_run, epochs_run) = (folder.at("timed"), folder.at("epochs"));
    let asked = TrainRequest { minutes: Some(0.03), out: Some(timed_run.clone()), ..request(&data, &[TINY]) };
    let (experiment, notes) = timed(&asked);
    let said = format!("training for {} epoch", experiment.train.epochs);
    assert!(notes.len() == 1 && notes[0].starts_with(&said) && notes[0].contains(", about "), "{notes:?}");
    assert!(notes[0].contains(" of 4 steps"), "{notes:?}");
    let lengths =
        [format!("train.epochs={}", experiment.train.epochs), format!("train.evaluate={}", experiment.train.evaluate)];
    let again = TrainRequest { out: Some(epochs_run.clone()), ..request(&data, &[TINY, &lengths[0], &lengths[1]]) };
    assert!(timed(&again).1.is_empty(), "a length that was chosen is not news");
    assert!(essence(&timed_run) == essence(&epochs_run));
}

/// The rate is so small that no parameter changes.
const STILL: &str = "train={ rate = 1e-30, schedule = \"constant\", weight_decay = 0.0, evaluate = 1 }";

#[test]
fn a_training_for_a_time_runs_to_its_end_unless_a_patience_was_chosen() {
    let folder = Folder::new("overfitted");
    let data = two_outputs(&folder, 56);
    let asked = |name: &str, changes: &[&str]| {
        let changes = [&[TINY, STILL], changes].concat();
        TrainRequest { minutes: Some(0.05), out: Some(folder.at(name)), ..request(&data, &changes) }
    };
    let done = train(&asked("run", &[]), &Session::default()).unwrap();
    let Experiment { train: recipe, .. } = run::experiment(&done.folder).unwrap();
    assert!(recipe.patience == 0 && done.epoch == recipe.epochs && !done.ended_early(), "{recipe:?}");

    let done = train(&asked("impatient", &["train.patience=2"]), &Session::default()).unwrap();
    assert!(done.ended_early() && done.epoch == 3, "{} epochs", done.epoch);
}

#[test]
fn a_time_too_short_for_an_epoch_is_one_epoch_with_a_warning() {
    let folder = Folder::new("short");
    let data = two_outputs(&folder, 30);
    let asked = TrainRequest { minutes: Some(1e-9), out: Some(folder.at("run")), ..request(&data, &[TINY]) };
    let (done, heard) = warnings(|session| train(&asked, session).unwrap());
    assert_eq!(done.experiment.train.epochs, 1);
    assert!(heard.iter().any(|warning| warning.contains("more than the 0.000000001 of --minutes")), "{heard:?}");
}

#[test]
fn a_training_that_is_cancelled_while_it_is_timed_leaves_no_run() {
    let folder = Folder::new("untimed");
    let data = two_outputs(&folder, 30);
    let cancel = Cancel::new();
    cancel.cancel();
    let asked = TrainRequest { minutes: Some(1.0), out: Some(folder.at("run")), ..request(&data, &[TINY]) };
    let error: Error = train(&asked, &Session { cancel, ..Session::default() }).unwrap_err();
    assert_eq!(error.kind(), Kind::Cancelled, "{error}");
    assert!(!folder.at("run").exists());
}
