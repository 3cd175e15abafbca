//! Validation samples come from the training samples, choose the best epoch and the end of a training, and leave the test
//! samples to the end; a model is compared with predictors that learn nothing.

use crate::support::{Folder, essence, experiment, save, train_to};
use lamo::Kind;
use lamo::data::Samples;
use lamo::data::dataset::{Normalise, Role, Rule};
use lamo::data::import::{Own, OwnField};
use lamo::experiment::{Experiment, OWN};
use lamo::inference::evaluate::RECEIPT;
use lamo::run::{self, Checkpoint, Environment, Run, Trained};
use lamo::training::{Outcome, Trainer};
use lamo::workflow::{
    self, EvaluateRequest, Event, ImportRequest, ImportSource, ResumeRequest, Session, TrainRequest, VerifyRequest,
    evaluate, resume, train, verify,
};
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

#[test]
fn validation_samples_are_drawn_from_the_training_samples_and_never_from_the_test_samples() {
    let whole = Rule::Ends { train: 20, test: 5 }.split(30).unwrap();
    let split = whole.clone().validated(6, 3).unwrap();
    assert_eq!((split.train.len(), split.validation.len()), (14, 6));
    assert_eq!(split.test, whole.test);
    let mut both = [split.train.clone(), split.validation.clone()].concat();
    both.sort_unstable();
    assert_eq!(both, whole.train, "each training sample is in one of the two");
    assert!(split.train.is_sorted() && split.validation.is_sorted(), "both keep the order of the samples");
    assert_ne!(split.validation, [14, 15, 16, 17, 18, 19], "not the last, which a sweep of a parameter would make odd");
    assert_eq!(whole.clone().validated(6, 3).unwrap(), split);
    assert_ne!(whole.clone().validated(6, 4).unwrap().validation, split.validation);
    assert_eq!(whole.clone().validated(0, 3).unwrap().hash(), whole.hash());
    assert_ne!(split.hash(), whole.hash());
    for count in [20, 21] {
        let refusal = whole.clone().validated(count, 0).unwrap_err().to_string();
        assert!(refusal.contains("data.validation") && refusal.contains("fewer than the 20"), "{refusal}");
    }
    assert_eq!(whole.clone().validated(19, 0).unwrap().train.len(), 1);
}

/// Seven samples to train on and three to validate with.
fn samples(phase: f32) -> Samples {
    let field =
        |change: fn(f32) -> f32| (0..7 * 30).map(|i| change((0.37 * i as f32 + phase).sin())).collect::<Vec<f32>>();
    Samples::new(Grid::Plane { rows: 6, columns: 5 }, 1, field(|v| v), 1, field(|v| 1.5 + v * v)).unwrap()
}

/// Four steps an epoch.
fn small(changes: &[&str]) -> Experiment {
    let base = [
        "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }",
        "train={ epochs = 4, batch = 2, rate = 3e-3 }",
        "data.validation=3",
    ];
    experiment(&[&base, changes].concat())
}

fn trainer(experiment: &Experiment) -> Trainer {
    let samples = samples(0.0);
    let task = experiment.task(&samples).unwrap();
    Trainer::new(experiment, &task, &samples, &self::samples(1.0).first(3), Device::Cpu).unwrap()
}

fn create(folder: &Path, experiment: &Experiment) -> Run {
    Run::create(folder, experiment, &Environment::here(Device::Cpu, 1, None)).unwrap()
}

/// Opens a run, resumes it, and trains it to its end.
fn resumed(folder: &Path) -> Trainer {
    let (run, again, begun) = Run::open(folder).unwrap();
    let mut resumed = trainer(&again);
    resumed.restore(&begun.unwrap()).unwrap();
    train_to(&mut resumed, Some(&run), usize::MAX);
    resumed
}

/// The rate is so small that no parameter changes: the validation error never improves after the first epoch.
const STILL: &str = "train={ rate = 1e-30, schedule = \"constant\", weight_decay = 0.0, epochs = 50, patience = 3 }";

#[test]
fn a_run_with_validation_interrupted_after_any_step_ends_with_the_same_bits() {
    for (name, changes, steps) in [("epochs", &[][..], 16), ("patience", &[STILL][..], 16)] {
        let (folder, experiment) = (Folder::new(&format!("validated-{name}")), small(changes));
        let whole = folder.at("whole");
        train_to(&mut trainer(&experiment), Some(&create(&whole, &experiment)), usize::MAX);
        let expected = essence(&whole);
        assert_eq!((expected.0.trained.step, expected.1.len()), (steps, 4), "{name}");
        let lines = run::history(&whole).unwrap();
        assert!(lines.iter().all(|line| line.validation.is_some() && line.test.is_none()), "{name}: {lines:?}");
        let best = |folder: &Path| Checkpoint::read(&run::checkpoint_path(folder, run::BEST)).unwrap();
        let least = lines.iter().filter_map(|line| line.validation).fold(f64::INFINITY, f64::min);
        assert_eq!(best(&whole).best.unwrap().error, least, "{name}: the best epoch is that of the validation samples");
        for stop in [1, 4, 7, 8, 15, 16] {
            let path = folder.at(&format!("stopped-{stop}"));
            train_to(&mut trainer(&experiment), Some(&create(&path, &experiment)), stop);
            resumed(&path);
            assert!(essence(&path) == expected, "{name}, stopped after step {stop}");
            assert_eq!(
                best(&path).trained.operator,
                best(&whole).trained.operator,
                "{name}, stopped after step {stop}"
            );
        }
    }
}

/// A checkpoint may be written during the test of an epoch, and the process be killed after the line of the epoch was written
/// and before the next checkpoint.
#[test]
fn an_epoch_whose_test_is_not_in_the_checkpoint_is_tested_again() {
    let (folder, experiment) = (Folder::new("tested-again"), small(&[]));
    let whole = folder.at("whole");
    train_to(&mut trainer(&experiment), Some(&create(&whole, &experiment)), usize::MAX);
    let path = folder.at("killed");
    train_to(&mut trainer(&experiment), Some(&create(&path, &experiment)), 4);
    let file = run::checkpoint_path(&path, run::LAST);
    let after = Checkpoint::read(&file).unwrap();
    assert_eq!((after.tested, after.best.map(|best| best.epoch)), (Some(1), Some(1)));
    Checkpoint { tested: Some(0), best: None, ..after }.write(&file).unwrap();
    assert_eq!(run::history(&path).unwrap().len(), 1, "the line is there");
    resumed(&path);
    assert!(essence(&path) == essence(&whole));
}

#[test]
fn a_training_ends_when_the_validation_error_has_not_improved_for_its_patience() {
    let (folder, experiment) = (Folder::new("patience"), small(&[STILL]));
    let path = folder.at("run");
    let mut first = trainer(&experiment);
    let run = create(&path, &experiment);
    let outcome = first.run(Some(&run), Duration::MAX, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((outcome, first.step()), (Outcome::Finished, 16), "one epoch that improves and three that do not");
    drop(run);
    let before = essence(&path);
    assert_eq!(resumed(&path).step(), 16, "a resumed run takes no further step");
    assert!(essence(&path) == before);
    // More patience continues the run.
    let file = path.join(run::EXPERIMENT);
    let text = std::fs::read_to_string(&file).unwrap().replace("patience = 3", "patience = 5");
    std::fs::write(&file, text).unwrap();
    assert_eq!(resumed(&path).step(), 24);
    // Epochs that are not tested do not end a training.
    let rare = small(&[STILL, "train.evaluate=4"]);
    let mut rare = trainer(&rare);
    train_to(&mut rare, None, usize::MAX);
    assert_eq!(rare.step(), 32, "the fourth epoch is the first that is tested, the eighth the next");
}

#[test]
fn patience_needs_validation_samples_and_these_need_training_samples() {
    let samples = samples(0.0);
    let experiment = experiment(&["train.patience=2"]);
    let task = experiment.task(&samples).unwrap();
    let error = Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).err().unwrap().to_string();
    assert!(error.contains("train.patience: expected 0 without validation samples, found 2"), "{error}");
    let refused = |changes: &[&str]| {
        let changes = changes.iter().map(ToString::to_string).collect();
        TrainRequest { changes, ..TrainRequest::new("darcy") }.experiment().unwrap_err().to_string()
    };
    assert!(refused(&["train.patience=2"]).contains("data.validation"));
    assert!(refused(&["data.train=10", "data.test=2", "data.validation=10"]).contains("fewer than the 10"));
    assert!(refused(&["data.validation=-1"]).contains("validation"));
}

/// A pressure in Pa and a displacement in m on 5 x 4 points, both from one input; `count` samples.
pub(crate) fn two_outputs(folder: &Folder, count: usize) -> PathBuf {
    let wave = |k: usize| (0.7 * k as f64).sin();
    let field = |name: &str, role: Role, unit: &str, value: &dyn Fn(usize) -> f64| OwnField {
        name: name.into(),
        role,
        unit: unit.into(),
        normalise: Normalise::Channels,
        axes: None,
        arrays: vec![vec![save(folder, &format!("{name}.npy"), &[count, 5, 4], (0..count * 20).map(value))]],
    };
    let fields = vec![
        field("a", Role::Input, "1", &|k| wave(k)),
        field("p", Role::Output, "Pa", &|k| 1e5 + 1e4 * wave(k)),
        field("w", Role::Output, "m", &|k| 1e-3 * (5.0 * wave(k)).sin() + 1e-4),
    ];
    let grid = Grid::Plane { rows: 5, columns: 4 };
    let split = Some(Rule::Ends { train: count - 6, test: 6 });
    let (windows, sizes) = (None, Default::default());
    let own =
        Own { name: "plate".into(), grid, ragged: Vec::new(), stride: 1, fields, times: None, windows, split, sizes };
    let request = ImportRequest { source: ImportSource::Own(Box::new(own)), out: folder.at("plate") };
    workflow::import(&request, &Session::default()).unwrap();
    folder.at("plate")
}

fn request(data: &Path, out: PathBuf, changes: &[&str]) -> TrainRequest {
    let base = [
        "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }",
        "train={ epochs = 3, batch = 6, rate = 3e-3 }",
    ];
    TrainRequest {
        changes: [&base, changes].concat().into_iter().map(str::to_owned).collect(),
        out: Some(out),
        ..TrainRequest::new(data.to_str().unwrap())
    }
}

/// Runs a job and returns the warnings that it reported.
pub(crate) fn warnings<T>(job: impl FnOnce(&Session<'_>) -> T) -> (T, Vec<String>) {
    let heard: Mutex<Vec<String>> = Mutex::default();
    let listener = |event: Event<'_>| {
        if let Event::Warning(warning) = event {
            heard.lock().unwrap().push(warning.to_owned());
        }
    };
    let done = job(&Session { listener: &listener, ..Session::default() });
    (done, heard.into_inner().unwrap())
}

#[test]
fn your_own_data_are_validated_with_a_tenth_and_tested_once_with_the_best_checkpoint() {
    let folder = Folder::new("own-validation");
    let data = two_outputs(&folder, 56);
    let job = request(&data, folder.at("run"), &[]);
    assert_eq!(job.experiment().unwrap().data.validation, 5, "--print-config says so");
    let done = train(&job, &Session::default()).unwrap();
    assert_eq!((done.experiment.benchmark.as_str(), done.experiment.data.validation), (OWN, 5));
    assert!(done.history.iter().all(|line| line.validation.is_some() && line.test.is_none()), "{:?}", done.history);
    assert_eq!(done.steps, 3 * 45usize.div_ceil(6), "45 of 50 samples are trained on");
    let chosen = Trained::open(&done.folder).unwrap();
    assert_eq!(chosen.epoch, done.best.unwrap().epoch);
    let asked = EvaluateRequest { run: done.folder.clone(), data: None, symmetries: false, device: Device::Cpu };
    let evaluated = evaluate(&asked, &Session::default()).unwrap();
    assert_eq!((evaluated.receipt.epoch, evaluated.test.count, evaluated.train_samples), (chosen.epoch, 6, Some(45)));

    let without = train(&request(&data, folder.at("without"), &["data.validation=0"]), &Session::default()).unwrap();
    assert!(without.history.iter().all(|line| line.test.is_some() && line.validation.is_none()));
}

#[test]
fn with_several_outputs_the_headline_is_the_mean_of_their_errors_in_training_and_evaluation() {
    let folder = Folder::new("headline");
    let data = two_outputs(&folder, 30);
    let done = train(&request(&data, folder.at("run"), &[]), &Session::default()).unwrap();
    assert_eq!(done.experiment.data.validation, 0, "a tenth of 24 samples decides nothing");
    let asked = EvaluateRequest { run: done.folder.clone(), data: None, symmetries: false, device: Device::Cpu };
    let (evaluated, warnings) = warnings(|session| evaluate(&asked, session).unwrap());
    let evaluation = &evaluated.receipt.evaluation;
    let [p, w] = &evaluation.outputs[..] else { panic!("two outputs: {:?}", evaluation.outputs) };
    assert_eq!([&p.name, &p.unit, &w.name, &w.unit], ["p", "Pa", "w", "m"]);
    let mean = (p.relative_l2.unwrap() + w.relative_l2.unwrap()) / 2.0;
    assert_eq!(evaluation.headline(), mean);
    assert!(evaluation.relative_l2 < 0.5 * mean, "{} hides the displacement, {mean} does not", evaluation.relative_l2);
    assert!(p.rmse > 1.0 && w.rmse < 1e-2 && p.mae <= p.rmse && p.rmse <= p.max, "{p:?} {w:?}");
    assert!(p.h1.is_some() && p.spectrum.is_some() && p.r2.is_some());
    let tested = done.history.last().unwrap().test.unwrap();
    assert!((tested / mean - 1.0).abs() < 1e-4, "{tested} while it trained, {mean} afterwards");

    // The trivial predictors see the same metric. Three epochs do not beat them, and a warning says so.
    let trivial = evaluation.trivial.unwrap();
    let (name, least) = trivial.best().unwrap();
    assert_eq!(trivial.persistence, None, "no input is the past of an output");
    assert_eq!(warnings.len(), usize::from(mean >= least), "{mean}, {trivial:?}: {warnings:?}");
    assert!(warnings.iter().all(|said| said.contains("learns nothing") && said.contains(name)), "{warnings:?}");

    // The receipt verifies, and one without the new numbers does, too.
    let path = done.folder.join(RECEIPT);
    let holds = |text: String| {
        std::fs::write(&path, text).unwrap();
        let asked = VerifyRequest { receipt: path.clone(), run: None, data: None, device: Device::Cpu };
        verify(&asked, &Session::default()).map_err(|error| error.kind())
    };
    assert!(holds(evaluated.receipt.text()).is_ok());
    let mut older: serde_json::Value = serde_json::from_str(&evaluated.receipt.text()).unwrap();
    for key in ["outputs", "mean_of_outputs", "trivial"] {
        assert!(older["evaluation"].as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    assert!(holds(older.to_string()).is_ok());
    let mut wrong: serde_json::Value = serde_json::from_str(&evaluated.receipt.text()).unwrap();
    wrong["evaluation"]["outputs"][1]["mae"] = 0.5.into();
    assert_eq!(holds(wrong.to_string()).err(), Some(Kind::Failed));
}

#[test]
fn a_training_whose_loss_still_falls_or_never_fell_warns() {
    let folder = Folder::new("doubts");
    let data = two_outputs(&folder, 12);
    let heard = |name: &str, changes: &[&str]| {
        let job = request(&data, folder.at(name), changes);
        let (done, heard) = warnings(|session| train(&job, session).unwrap());
        assert!(done.finished && !done.ended_early());
        heard
    };
    let still = heard("still", &["train={ epochs = 12, rate = 1e-30, schedule = \"constant\" }"]);
    assert!(still.len() == 1 && still[0].contains("learned next to nothing"), "{still:?}");
    assert_eq!(heard("short", &[]), Vec::<String>::new(), "three epochs say nothing");
    // A run that was stopped is not judged.
    let job = request(&data, folder.at("stopped"), &["train={ epochs = 12, rate = 1e-30 }"]);
    let session = Session::default();
    session.cancel.cancel();
    assert!(!train(&job, &session).is_ok_and(|done| done.finished));
    let again = ResumeRequest { run: folder.at("still"), data: None, device: None, saving: Duration::MAX, together: 1 };
    let (done, heard) = warnings(|session| resume(&again, session).unwrap());
    assert!(done.finished && heard.len() == 1, "a finished run that is resumed says it again: {heard:?}");
}
