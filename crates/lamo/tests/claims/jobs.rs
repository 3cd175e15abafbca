//! Whole jobs: what a listener hears, how a cancelled job is resumed, and the kind of each failure.

use crate::support::{Folder, alone, essence, save};
use lamo::data::Storage;
use lamo::data::dataset::{MANIFEST, Normalise, Outcome, Role};
use lamo::data::import::{Own, OwnField};
use lamo::error::FileError;
use lamo::inference::Source;
use lamo::inference::evaluate::{RECEIPT, Receipt};
use lamo::run::{self, Trained};
use lamo::workflow::{
    self, Cancel, EvaluateRequest, Event, ImportRequest, ImportSource, MakeRequest, PredictRequest, ResumeRequest,
    Session, TrainRequest, VerifyRequest, evaluate, predict, resume, train,
};
use lamo::{Error, Kind};
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Seven samples of Darcy flow on 8 x 8 points.
fn darcy(folder: &Folder, name: &str, seed: u64) -> PathBuf {
    let out = folder.at(name);
    let made = {
        let (problem, changes) = ("darcy".to_owned(), vec!["resolution=8".to_owned()]);
        workflow::make(&MakeRequest { problem, changes, seed, samples: 7, out: out.clone() }, &Session::default())
            .unwrap()
    };
    assert!(matches!(made, Outcome::Made(_)));
    out
}

/// Six steps an epoch, three epochs, a checkpoint after every step.
fn request(data: &Path, out: PathBuf, changes: &[&str]) -> TrainRequest {
    let base = [
        "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4, padded = [0, 0] }",
        "train={ epochs = 3, batch = 1, rate = 3e-3 }",
    ];
    TrainRequest {
        changes: [&base, changes].concat().into_iter().map(str::to_owned).collect(),
        out: Some(out),
        saving: Duration::ZERO,
        ..TrainRequest::new(data.to_str().unwrap())
    }
}

#[test]
fn a_training_reports_data_model_run_progress_epochs_and_checkpoints_in_order() {
    let folder = Folder::new("events");
    let data = darcy(&folder, "darcy", 0);
    let heard = Mutex::new(Vec::new());
    let listener = |event: Event<'_>| {
        heard.lock().unwrap().push(match event {
            Event::Data { dataset, made_in } => {
                assert!(dataset.samples() == 7 && made_in.is_none());
                "data".to_owned()
            }
            Event::Model { name, parameters, steps, .. } => {
                assert!((name, steps) == ("lamo", 18) && parameters > 0);
                "model".to_owned()
            }
            Event::Run { step, steps, history, .. } => {
                assert_eq!((step, steps, history.len()), (0, 18, 0));
                "run".to_owned()
            }
            Event::Progress(progress) => format!("step {}", progress.step),
            Event::Epoch(line) => format!("epoch {}", line.epoch),
            Event::Checkpoint { step } => format!("saved {step}"),
            other => panic!("{other:?} is not expected"),
        });
    };
    let session = Session { listener: &listener, ..Session::default() };
    let run = train(&request(&data, folder.at("run"), &[]), &session).unwrap();
    assert!(run.finished && run.step == 18 && run.history.len() == 3 && run.best.is_some());
    let steps = (1..=18).flat_map(|step: usize| {
        let epoch = step.is_multiple_of(6).then(|| format!("epoch {}", step / 6));
        [format!("step {step}")].into_iter().chain(epoch).chain([format!("saved {step}")])
    });
    let expected: Vec<String> = ["data", "model", "run"].map(str::to_owned).into_iter().chain(steps).collect();
    assert_eq!(*heard.lock().unwrap(), expected);
}

#[test]
fn a_cancelled_training_is_saved_and_resumed_to_the_same_bits() {
    let folder = Folder::new("cancelled");
    let data = darcy(&folder, "darcy", 0);
    let whole = folder.at("whole");
    train(&request(&data, whole.clone(), &[]), &Session::default()).unwrap();
    for stop in [1, 6, 11] {
        let cancel = Cancel::new();
        let listener = |event: Event<'_>| match event {
            Event::Progress(progress) if progress.step == stop => cancel.cancel(),
            _ => {}
        };
        let session = Session { listener: &listener, cancel: cancel.clone(), threads: 1 };
        let run = train(&request(&data, folder.at(&format!("run-{stop}")), &[]), &session).unwrap();
        assert!(!run.finished && run.step == stop, "stopped at step {} and not {stop}", run.step);
        let again = ResumeRequest {
            run: run.folder.clone(),
            data: None,
            device: None,
            saving: Duration::from_secs(60),
            together: 1,
        };
        let resumed = resume(&again, &Session::default()).unwrap();
        assert!(resumed.finished && resumed.history.len() == 3);
        assert!(essence(&run.folder) == essence(&whole), "stopped after step {stop}");
    }
}

fn kind<T>(result: Result<T, impl Into<Error>>) -> Kind {
    let error: Error = result.err().expect("it fails").into();
    assert!(error.to_string().lines().count() == 1, "not one sentence: {error}");
    error.kind()
}

#[test]
fn what_is_not_there_is_missing() {
    let folder = Folder::new("missing");
    let nowhere = folder.at("nowhere");
    assert_eq!(kind(workflow::check(&nowhere)), Kind::Missing);
    assert_eq!(kind(Trained::open(&nowhere)), Kind::Missing);
    assert_eq!(kind(workflow::Model::open(&nowhere)), Kind::Missing);
    assert_eq!(kind(TrainRequest::new("darcyy").experiment()), Kind::Missing);
    assert_eq!(kind(workflow::compare(std::slice::from_ref(&nowhere))), Kind::Missing);
    let request = EvaluateRequest { run: nowhere.clone(), data: None, symmetries: false, device: Device::Cpu };
    assert_eq!(kind(evaluate(&request, &Session::default())), Kind::Missing);
    let gone = ResumeRequest { run: nowhere, data: None, device: None, saving: Duration::MAX, together: 1 };
    assert_eq!(kind(resume(&gone, &Session::default())), Kind::Missing);
}

#[test]
fn a_finished_run_shows_a_conflict_bad_input_a_missing_file_and_a_receipt_that_fails() {
    let folder = Folder::new("kinds");
    let (data, path) = (darcy(&folder, "darcy", 0), folder.at("run"));
    train(&request(&data, path.clone(), &["train.epochs=1"]), &Session::default()).unwrap();
    // an occupied folder
    assert_eq!(kind(train(&request(&data, path.clone(), &[]), &Session::default())), Kind::Conflict);
    // a file to predict from that is not there, and an output that would overwrite a checkpoint
    let ask = |input: &Path, output: PathBuf| {
        let inputs = vec![Source::parse(input.to_str().unwrap())];
        predict(&PredictRequest {
            model: path.clone(),
            inputs,
            output,
            snapshots: None,
            symmetries: false,
            memory: None,
            device: Device::Cpu,
        })
    };
    assert_eq!(kind(ask(&folder.at("none.npy"), folder.at("out.npy"))), Kind::Missing);
    let own = run::checkpoint_path(&path, run::BEST);
    assert_eq!(kind(ask(&data.join("permeability.npy"), own)), Kind::Conflict);
    // a receipt with another number
    let request = EvaluateRequest { run: path.clone(), data: None, symmetries: false, device: Device::Cpu };
    let receipt = evaluate(&request, &Session::default()).unwrap().receipt;
    let text = serde_json::to_string(&receipt).unwrap();
    let verify = |text: &str| {
        fs::write(path.join(RECEIPT), text).unwrap();
        {
            let receipt = path.join(RECEIPT);
            workflow::verify(
                &VerifyRequest { receipt, run: None, data: None, device: Device::Cpu },
                &Session::default(),
            )
        }
    };
    verify(&text).unwrap();
    let stated = format!("{}", receipt.evaluation.relative_l2);
    assert!(text.contains(&stated), "{text}");
    assert_eq!(kind(verify(&text.replace(&stated, "0.001"))), Kind::Failed);
    // other data than those of the run
    let other = darcy(&folder, "other", 1);
    let request =
        ResumeRequest { run: path.clone(), data: Some(other), device: None, saving: Duration::MAX, together: 1 };
    assert_eq!(kind(resume(&request, &Session::default())), Kind::Conflict);
    // a damaged checkpoint
    for name in [run::LAST, run::BEST] {
        fs::write(run::checkpoint_path(&path, name), b"no tensors").unwrap();
    }
    assert_eq!(kind(Trained::open(&path)), Kind::BadInput);
}

#[test]
fn an_unknown_key_is_bad_input_a_rate_too_large_diverges_and_a_device_that_is_not_there_is_the_devices() {
    let folder = Folder::new("other-kinds");
    let data = darcy(&folder, "darcy", 0);
    let attempt = |changes: &[&str], device: Device| {
        let request = TrainRequest { device, ..request(&data, folder.at(&format!("run-{}", changes.len())), changes) };
        train(&request, &Session::default())
    };
    assert_eq!(kind(attempt(&["train.epoch=3"], Device::Cpu)), Kind::BadInput);
    assert_eq!(kind(attempt(&[], "cuda:99".parse().unwrap())), Kind::Device);
    assert_eq!(kind(attempt(&["train.rate=1e30", "train.schedule=constant"], Device::Cpu)), Kind::Diverged);
}

#[test]
fn a_cancelled_making_of_data_is_cancelled_and_the_same_command_continues() {
    let folder = Folder::new("making");
    if !alone(
        "jobs::a_cancelled_making_of_data_is_cancelled_and_the_same_command_continues",
        &[("LAMO_CACHE", folder.path())],
    ) {
        return;
    }
    let changes = ["data={ settings = { resolution = 8 }, train = 5, test = 2 }", "preset=quick"];
    let request = TrainRequest { what: "darcy".into(), ..request(Path::new(""), folder.at("run"), &changes) };
    let cancel = Cancel::new();
    let made = Mutex::new(0);
    let listener = |event: Event<'_>| match event {
        Event::Making { problem, progress } => {
            assert_eq!(problem, "darcy");
            *made.lock().unwrap() = progress.complete;
            if progress.complete == 3 {
                cancel.cancel();
            }
        }
        Event::Data { made_in, .. } => assert!(made_in.is_some(), "the data are made"),
        _ => {}
    };
    let session = Session { listener: &listener, cancel: cancel.clone(), threads: 1 };
    assert_eq!(kind(train(&request, &session)), Kind::Cancelled);
    assert_eq!(*made.lock().unwrap(), 3);
    let first = Mutex::new(None);
    let listener = |event: Event<'_>| {
        if let Event::Making { progress, .. } = event {
            first.lock().unwrap().get_or_insert(progress.complete);
        }
    };
    assert!(train(&request, &Session { listener: &listener, cancel: Cancel::new(), threads: 1 }).unwrap().finished);
    assert_eq!(*first.lock().unwrap(), Some(4), "three samples were kept");
}

/// A second training from the same seed is the same run: only its clock differs.
#[test]
fn the_receipt_of_a_run_verifies_a_bit_identical_repetition_of_it() {
    let folder = Folder::new("repeated");
    let data = darcy(&folder, "darcy", 0);
    let runs = ["one", "two"].map(|name| {
        train(&request(&data, folder.at(name), &["train.epochs=1"]), &Session::default()).unwrap();
        folder.at(name)
    });
    let evaluated = evaluate(
        &EvaluateRequest { run: runs[0].clone(), data: None, device: Device::Cpu, symmetries: false },
        &Session::default(),
    )
    .unwrap();
    let receipt = folder.at("receipt.json");
    let verify = |run: &Path| {
        let request =
            VerifyRequest { receipt: receipt.clone(), run: Some(run.to_owned()), data: None, device: Device::Cpu };
        workflow::verify(&request, &Session::default())
    };
    fs::write(&receipt, evaluated.receipt.text()).unwrap();
    assert_eq!(verify(&runs[1]).unwrap().tolerance, 0.0);
    train(&request(&data, folder.at("other"), &["train.epochs=1", "seed=9"]), &Session::default()).unwrap();
    assert_eq!(kind(verify(&folder.at("other"))), Kind::Failed);
}

/// The data set states six samples to train on and one to test on; the run takes four and three.
#[test]
fn data_of_a_run_that_moved_keep_its_split_with_data() {
    let folder = Folder::new("moved-data");
    let data = darcy(&folder, "darcy", 0);
    let run = folder.at("run");
    train(&request(&data, run.clone(), &["train.epochs=1", "data.train=4", "data.test=3"]), &Session::default())
        .unwrap();
    let moved = folder.at("moved");
    fs::rename(&data, &moved).unwrap();
    let asked = |run: &Path, data: &Path| {
        let (run, data) = (run.to_owned(), Some(data.to_owned()));
        evaluate(&EvaluateRequest { run, data, device: Device::Cpu, symmetries: false }, &Session::default())
    };
    let found = asked(&run, &moved).unwrap();
    assert_eq!((found.test.count, found.train_samples), (3, Some(4)));
    let recorded = run::environment(&run).unwrap().data.unwrap().split;
    assert_eq!(found.receipt.hashes.split, recorded, "the split of the run");
    assert!(found.receipt.evaluation.trivial.is_some(), "the training samples are known");

    // A checkpoint without its record takes the split of the data; so did every run in earlier versions, whose receipts hold.
    let bare = asked(&run::checkpoint_path(&run, run::LAST), &moved).unwrap();
    assert_eq!((bare.test.count, bare.train_samples), (1, Some(4)));
    let receipt = folder.at("receipt.json");
    for stated in [&found.receipt, &bare.receipt] {
        fs::write(&receipt, stated.text()).unwrap();
        let (receipt, data) = (receipt.clone(), Some(moved.clone()));
        let request = VerifyRequest { receipt, run: Some(run.clone()), data, device: Device::Cpu };
        workflow::verify(&request, &Session::default()).unwrap();
    }

    // The same samples with another split are told.
    let other = folder.at("other");
    train(&request(&moved, other.clone(), &["train.epochs=1"]), &Session::default()).unwrap();
    let manifest = moved.join(MANIFEST);
    let text = fs::read_to_string(&manifest).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("split_sha256"));
    let lines: Vec<&str> = lines.map(|line| if line == "train = 6" { "train = 5" } else { line }).collect();
    fs::write(&manifest, lines.join("\n")).unwrap();
    let (found, warnings) = crate::validation::warnings(|session| {
        let (run, data) = (other.clone(), Some(moved.clone()));
        evaluate(&EvaluateRequest { run, data, device: Device::Cpu, symmetries: false }, session)
    });
    assert_eq!(found.unwrap().test.count, 1);
    assert!(warnings.iter().any(|said| said.contains("the samples of the run with another split")), "{warnings:?}");
}

#[test]
fn data_in_another_unit_than_that_of_the_training_are_refused() {
    let folder = Folder::new("units");
    let data = darcy(&folder, "darcy", 0);
    train(&request(&data, folder.at("run"), &["train.epochs=1"]), &Session::default()).unwrap();
    let other = darcy(&folder, "other", 1);
    let asked = || {
        let (run, data) = (folder.at("run"), Some(other.clone()));
        evaluate(&EvaluateRequest { run, data, device: Device::Cpu, symmetries: false }, &Session::default())
    };
    asked().unwrap();
    let manifest = other.join(MANIFEST);
    let text = fs::read_to_string(&manifest).unwrap();
    let (before, after) = text.split_at(text.find("name = \"pressure\"").unwrap());
    fs::write(&manifest, format!("{before}{}", after.replacen("unit = \"1\"", "unit = \"kPa\"", 1))).unwrap();
    let told = asked().unwrap_err().to_string();
    let words = ["field `pressure`: expected the unit of the training, 1, found kPa", "import the data in that unit"];
    assert!(words.iter().all(|word| told.contains(word)), "{told}");
}

/// The record says that a GPU trained the run; the CPU only evaluates it.
#[test]
fn the_device_of_a_training_is_that_of_its_steps() {
    let folder = Folder::new("training-device");
    let (data, run) = (darcy(&folder, "darcy", 0), folder.at("run"));
    train(&request(&data, run.clone(), &["train.epochs=1"]), &Session::default()).unwrap();
    let file = run.join(run::ENVIRONMENT);
    let mut record: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    record.as_object_mut().unwrap().remove("sha256"); // a record of lamo 0.1 has no seal
    (record["device"], record["card"]) = ("cuda".into(), "a GPU".into());
    fs::write(&file, record.to_string()).unwrap();
    let (device, saving) = (Some(Device::Cpu), Duration::MAX);
    let again = ResumeRequest { run: run.clone(), data: None, device, saving, together: 1 };
    assert!(resume(&again, &Session::default()).unwrap().finished);
    let kept = run::environment(&run).unwrap();
    assert_eq!(
        (kept.device.as_str(), kept.gpu.as_deref()),
        ("cuda", Some("a GPU")),
        "a finished run takes no step here"
    );
    let asked = EvaluateRequest { run: run.clone(), data: None, device: Device::Cpu, symmetries: false };
    let receipt = evaluate(&asked, &Session::default()).unwrap().receipt;
    let trained = receipt.training_device();
    assert_eq!((trained.device.as_str(), trained.gpu.as_deref()), ("cuda", Some("a GPU")));
    assert_eq!(receipt.machine.device, "cpu");
    let earlier = Receipt { trained_with: None, ..receipt };
    assert_eq!(earlier.training_device().device, "cpu", "all that a receipt of an earlier version says");
    // More epochs are trained here.
    let recipe = run.join(run::EXPERIMENT);
    let text = fs::read_to_string(&recipe).unwrap().replace("epochs = 1", "epochs = 2");
    fs::write(&recipe, text).unwrap();
    resume(&again, &Session::default()).unwrap();
    assert_eq!(run::environment(&run).unwrap().device, "cpu");
}

#[test]
fn a_small_model_of_given_data_does_not_make_others() {
    let folder = Folder::new("shrunk");
    let data = darcy(&folder, "darcy", 0);
    let (run, model) = (folder.at("run"), folder.at("model.safetensors"));
    train(&request(&data, run.clone(), &["train.epochs=1", "data.train=4", "data.test=3"]), &Session::default())
        .unwrap();
    run::pretrained::shrink(&run, &model, Storage::F32).unwrap();
    let asked = |data: Option<PathBuf>| {
        let run = model.clone();
        evaluate(&EvaluateRequest { run, data, device: Device::Cpu, symmetries: false }, &Session::default())
    };
    let error = asked(None).unwrap_err();
    let told = error.to_string();
    assert!(
        error.kind() == Kind::Missing && told.contains("comes without the data") && told.contains("--data"),
        "{told}"
    );
    assert_eq!(asked(Some(data)).unwrap().test.count, 1);
}

/// `/dev/full` takes the role of a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_out_of_space() {
    let folder = Folder::new("full");
    let array = save(&folder, "u.npy", &[5, 3, 2], (0..30).map(f64::from));
    let field = OwnField {
        name: "u".into(),
        role: Role::Output,
        unit: "1".into(),
        normalise: Normalise::Channels,
        axes: None,
        arrays: vec![vec![array]],
    };
    let grid = Grid::Plane { rows: 3, columns: 2 };
    let own = Own {
        name: "flow".into(),
        ragged: Vec::new(),
        grid,
        stride: 1,
        fields: vec![field],
        times: None,
        windows: None,
        split: None,
        sizes: Default::default(),
    };
    let import = |out: &str| {
        let request = ImportRequest { source: ImportSource::Own(Box::new(own.clone())), out: folder.at(out) };
        workflow::import(&request, &Session::default())
    };
    import("set").unwrap();
    let partial = folder.at("again.partial");
    fs::create_dir_all(&partial).unwrap();
    fs::copy(folder.at("set").join("dataset.toml"), partial.join("recipe.toml")).unwrap();
    std::os::unix::fs::symlink("/dev/full", partial.join("u.npy")).unwrap();
    assert_eq!(kind(import("again")), Kind::OutOfSpace);
}

#[test]
fn a_failure_of_the_system_without_a_kind_of_its_own_is_internal() {
    let reason = std::io::Error::other("the cable is loose");
    assert_eq!(Error::from(FileError { path: "a.npy".into(), action: "read", reason }).kind(), Kind::Internal);
}

#[test]
fn a_run_that_resumes_from_its_best_checkpoint_or_with_a_changed_recipe_warns() {
    let folder = Folder::new("warnings");
    let (data, path) = (darcy(&folder, "darcy", 0), folder.at("run"));
    train(&request(&data, path.clone(), &["train.epochs=2"]), &Session::default()).unwrap();
    fs::remove_file(run::checkpoint_path(&path, run::LAST)).unwrap();
    let file = path.join(run::EXPERIMENT);
    let text = fs::read_to_string(&file).unwrap().replace("epochs = 2", "epochs = 3");
    fs::write(&file, text).unwrap();
    let heard: Mutex<Vec<String>> = Mutex::default();
    let listener = |event: Event<'_>| {
        if let Event::Warning(warning) = event {
            heard.lock().unwrap().push(warning.to_owned());
        }
    };
    let request = ResumeRequest { run: path, data: None, device: None, saving: Duration::MAX, together: 1 };
    resume(&request, &Session { listener: &listener, ..Session::default() }).unwrap();
    let heard = heard.into_inner().unwrap();
    assert!(heard.iter().any(|warning| warning.contains("resumes from its best one")), "{heard:?}");
    assert!(heard.iter().any(|warning| warning.contains("was changed")), "{heard:?}");
}

/// A data set that was made anew in the same folder has other test samples than those that the model never saw.
#[test]
fn test_samples_of_data_that_are_not_those_of_the_run_are_refused() {
    let folder = Folder::new("other-tests");
    let (data, path) = (darcy(&folder, "darcy", 0), folder.at("run"));
    train(&request(&data, path.clone(), &["train.epochs=1"]), &Session::default()).unwrap();
    let open = || workflow::TestSet::open(&workflow::Model::open(&path).unwrap(), &path);
    assert_eq!(open().unwrap().count(), 1);
    fs::remove_dir_all(&data).unwrap();
    darcy(&folder, "darcy", 1);
    let told = open().unwrap_err();
    assert!(told.to_string().contains("the data are not those the run began with"), "{told}");
    assert_eq!(told.kind(), Kind::Conflict);
}
