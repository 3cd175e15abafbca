//! A training that starts from another model: what it takes, what it says, and that it no longer needs its source.

use crate::support::{Folder, copy, essence, experiment};
use lamo::Kind;
use lamo::data::{Dataset, Samples};
use lamo::experiment::test_samples;
use lamo::run::{self, Checkpoint, Operator, Origin, Trained};
use lamo::training::Trainer;
use lamo::workflow::{
    self, Cancel, Event, MakeRequest, Model, ResumeRequest, Session, TrainRequest, TrainedRun, resume, train,
};
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

const TINY: &str = "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4, padded = [0, 0] }";
const RECIPE: &str = "train={ epochs = 2, batch = 2, rate = 3e-3 }";

/// Seven samples of Darcy flow on a square of points.
fn darcy(folder: &Folder, side: usize) -> PathBuf {
    let out = folder.at(&format!("darcy-{side}"));
    let (problem, changes) = ("darcy".to_owned(), vec![format!("resolution={side}")]);
    let request = MakeRequest { problem, changes, seed: 0, samples: 7, out: out.clone() };
    workflow::make(&request, &Session::default()).unwrap();
    out
}

fn request(data: &Path, out: PathBuf, changes: &[&str]) -> TrainRequest {
    TrainRequest {
        changes: changes.iter().map(ToString::to_string).collect(),
        out: Some(out),
        saving: Duration::ZERO,
        ..TrainRequest::new(data.to_str().unwrap())
    }
}

/// A trained run.
fn source(folder: &Folder, data: &Path, changes: &[&str]) -> TrainedRun {
    train(&request(data, folder.at("source"), &[&[TINY, RECIPE], changes].concat()), &Session::default()).unwrap()
}

/// A run that starts from `init`, what it took, and its error before the first step.
fn started(init: &Path, mut request: TrainRequest) -> (TrainedRun, Origin, f64) {
    let heard = Mutex::new(None);
    let listener = |event: Event<'_>| {
        if let Event::Init { origin, error } = event {
            *heard.lock().unwrap() = Some((origin.clone(), error));
        }
    };
    request.init = Some(init.to_owned());
    let run = train(&request, &Session { listener: &listener, ..Session::default() }).unwrap();
    let (origin, error) = heard.into_inner().unwrap().expect("a training says what it starts from");
    (run, origin, error)
}

fn sha256(path: &Path) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(std::fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_training_starts_at_the_error_of_the_run_that_it_starts_from() {
    let folder = Folder::new("start");
    let data = darcy(&folder, 8);
    let source = source(&folder, &data, &[]);
    let last = run::checkpoint_path(&source.folder, run::LAST);
    let expected = source.history.last().unwrap().error().unwrap();
    for (init, name) in [(source.folder.clone(), "from-run"), (last.clone(), "from-file")] {
        let (run, origin, error) = started(&init, request(&data, folder.at(name), &[RECIPE, "seed=9"]));
        assert_eq!(error.to_bits(), expected.to_bits(), "{error} and {expected}");
        assert_eq!(run.experiment.model, source.experiment.model, "the settings are those of the source");
        assert_eq!((origin.transfer.tensors[0], origin.transfer.drawn.len()), (origin.transfer.tensors[1], 0));
        assert_eq!((&origin.path, &origin.sha256), (&last, &sha256(&last)));
        assert_eq!(run::environment(&run.folder).unwrap().init, Some(origin), "the run records its source");
        let [later, earlier] = [&run, &source].map(|run| run.history[0].train);
        assert!(later < earlier, "the loss of the first epoch is {later}, that of the source was {earlier}");
    }
    let plain = train(&request(&data, folder.at("plain"), &[TINY, RECIPE]), &Session::default()).unwrap();
    assert!(essence(&plain.folder) == essence(&source.folder), "without a source nothing changes");
    assert_eq!(run::environment(&plain.folder).unwrap().init, None);
}

/// The normalisers are those of the new data. Two programs may add in another order, hence the tolerance.
#[test]
fn on_another_resolution_a_training_starts_at_the_error_that_the_source_has_there() {
    for (model, settings) in [("lamo", TINY), ("fno", "model.settings={ width = 8, modes = 3, depth = 2 }")] {
        let folder = Folder::new(&format!("finer-{model}"));
        let [coarse, fine] = [8, 11].map(|side| darcy(&folder, side));
        let first = TrainRequest {
            model: Some(model.to_owned()),
            ..request(&coarse, folder.at("source"), &[settings, RECIPE])
        };
        let source = train(&first, &Session::default()).unwrap().folder;
        let (run, origin, error) = started(&source, request(&fine, folder.at("run"), &[RECIPE]));
        assert_eq!(origin.transfer.tensors[0], origin.transfer.tensors[1], "{model}: {}", origin.transfer);
        let [mut operator, new] = [&source, &run.folder].map(|run| Trained::open(run).unwrap().operator);
        assert_ne!(operator.task.normalisers, new.task.normalisers);
        operator.task.normalisers = new.task.normalisers;
        let test = test_samples(&run.experiment, &Dataset::open(&fine).unwrap()).unwrap();
        let errors = test.errors(&operator.predict(&test, Device::Cpu).unwrap());
        let expected = errors.iter().sum::<f64>() / errors.len() as f64;
        assert!((error - expected).abs() < 1e-5 * expected, "{model}: {error} and {expected}");
    }
}

#[test]
fn position_embeddings_are_interpolated_where_the_lattice_is_to_be_that_of_the_data() {
    let folder = Folder::new("lattice");
    let [coarse, fine] = [8, 12].map(|side| darcy(&folder, side));
    let source = source(&folder, &coarse, &[]);
    let changes = [RECIPE, "model.settings.lattice=[0, 0]", "train.epochs=1", "train.rate=1e-30"];
    let (run, origin, _) = started(&source.folder, request(&fine, folder.at("run"), &changes));
    assert_eq!(origin.transfer.interpolated, ["pos_embed1"]);
    assert!(origin.transfer.drawn.is_empty(), "{}", origin.transfer);
    let embedding = |folder: &Path| {
        let operator = Checkpoint::read(&run::checkpoint_path(folder, run::LAST)).unwrap().trained.operator;
        tensor(&operator, "pos_embed1")
    };
    let (before, after) = (embedding(&source.folder), embedding(&run.folder));
    assert_eq!((before.len(), after.len()), (16 * 16, 36 * 16));
    // The outermost patches of both lattices coincide.
    assert_eq!([&before[..16], &before[15 * 16..]], [&after[..16], &after[35 * 16..]]);
}

fn tensor(operator: &Operator, name: &str) -> Vec<f32> {
    let section = operator.sections.iter().find(|section| section.name == name).unwrap();
    operator.parameters[section.range()].to_vec()
}

/// Samples of a few waves on a small plane, with so many input channels.
fn waves(inputs: usize) -> Samples {
    let field = |channels: usize| (0..3 * 30 * channels).map(|i| 1.5 + (0.37 * i as f32).sin()).collect();
    Samples::new(Grid::Plane { rows: 6, columns: 5 }, inputs, field(inputs), 1, field(1)).unwrap()
}

fn trainer(samples: &Samples, changes: &[&str]) -> Trainer {
    let experiment = experiment(&[&[TINY, RECIPE], changes].concat());
    let task = experiment.task(samples).unwrap();
    Trainer::new(&experiment, &task, samples, samples, Device::Cpu).unwrap()
}

#[test]
fn with_one_more_input_the_first_layer_is_drawn_and_the_rest_is_taken() {
    let source = trainer(&waves(1), &["seed=5"]).trained().unwrap().operator;
    let mut other = trainer(&waves(2), &[]);
    let fresh = other.trained().unwrap().operator;
    let transfer = other.start_from(&source).unwrap();
    let found = other.trained().unwrap().operator;
    for section in &found.sections {
        let from = if section.name == "patch_embed1.WE" { &fresh } else { &source };
        assert_eq!(tensor(&found, &section.name), tensor(from, &section.name), "{}", section.name);
    }
    let names: Vec<_> = transfer.drawn.iter().map(|drawn| drawn.name.as_str()).collect();
    assert_eq!((names, transfer.tensors), (vec!["patch_embed1.WE"], [found.sections.len() - 1, found.sections.len()]));
    let [taken, all] = transfer.parameters;
    assert_eq!((all, all - taken), (found.parameters.len(), tensor(&found, "patch_embed1.WE").len()));
    let sentence = transfer.to_string();
    let reason = "patch_embed1.WE (its shape is [16, 4, 2, 2], that of the source [16, 3, 2, 2])";
    assert!(sentence.contains(reason), "{sentence}");
}

#[test]
fn a_source_that_cannot_be_used_gives_one_sentence_and_no_run() {
    let folder = Folder::new("no-start");
    let data = darcy(&folder, 8);
    let source = source(&folder, &data, &["train.epochs=1"]).folder;
    let damaged = folder.at("damaged");
    copy(&source, &damaged);
    let file = run::checkpoint_path(&damaged, run::LAST);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() - 100;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let cases = [
        (damaged, None, Kind::BadInput, vec!["--init", "last.safetensors", "is damaged"]),
        (folder.at("absent"), None, Kind::Missing, vec!["--init", "absent", "a run folder"]),
        (data.clone(), None, Kind::Missing, vec!["--init", "a run folder"]),
        (source, Some("deeponet"), Kind::BadInput, vec!["--init", "none among", "model deeponet"]),
    ];
    for (init, model, kind, words) in cases {
        let request = TrainRequest {
            init: Some(init.clone()),
            model: model.map(str::to_owned),
            ..request(&data, folder.at("run"), &["train={ epochs = 1, batch = 2, rate = 3e-3 }"])
        };
        let error = train(&request, &Session::default()).expect_err("the source cannot be used");
        let sentence = error.to_string();
        assert!(words.iter().all(|word| sentence.contains(word)), "{sentence}");
        assert_eq!((error.kind(), sentence.lines().count()), (kind, 1), "{sentence}");
        assert!(!folder.at("run").exists(), "{sentence}");
    }
}

#[test]
fn a_run_that_started_from_another_is_resumed_to_the_same_bits_without_it() {
    let folder = Folder::new("orphan");
    let data = darcy(&folder, 8);
    let source = source(&folder, &data, &["train.epochs=1"]).folder;
    let whole = started(&source, request(&data, folder.at("whole"), &[RECIPE])).0.folder;
    let stopped = |name: &str, stop: usize| {
        let cancel = Cancel::new();
        let listener = |event: Event<'_>| match event {
            Event::Run { folder: run, .. } => copy(run, &folder.at(&format!("{name}-begun"))),
            Event::Progress(progress) if progress.step == stop => cancel.cancel(),
            _ => {}
        };
        let session = Session { listener: &listener, cancel: cancel.clone(), threads: 1 };
        let request = TrainRequest { init: Some(source.clone()), ..request(&data, folder.at(name), &[RECIPE]) };
        assert!(!train(&request, &session).unwrap().finished);
        folder.at(name)
    };
    let runs = [stopped("first", 1), stopped("later", 4), folder.at("first-begun")];
    let [unsaved, orphan] = ["unsaved", "orphan"].map(|name| {
        copy(&runs[2], &folder.at(name));
        // The process was killed before it wrote its first checkpoint.
        std::fs::remove_file(run::checkpoint_path(&folder.at(name), run::LAST)).unwrap();
        folder.at(name)
    });
    let again = |run: &Path| {
        let request = ResumeRequest {
            run: run.to_owned(),
            data: None,
            device: None,
            saving: Duration::from_secs(60),
            together: 1,
        };
        resume(&request, &Session::default())
    };
    again(&unsaved).unwrap();
    std::fs::remove_dir_all(&source).unwrap();
    for run in &runs {
        assert!(again(run).unwrap().finished);
    }
    for run in runs.iter().chain([&unsaved]) {
        assert!(essence(run) == essence(&whole), "{}", run.display());
        assert!(run::environment(run).unwrap().init.is_some());
    }
    let error = again(&orphan).expect_err("neither a checkpoint nor a source");
    let sentence = error.to_string();
    assert!(error.kind() == Kind::Conflict && sentence.contains("is gone"), "{sentence}");
}

#[test]
fn what_the_user_says_about_the_trend_counts_more_than_the_source() {
    let folder = Folder::new("start-trend");
    let data = darcy(&folder, 8);
    let plain = source(&folder, &data, &["train.epochs=1"]).folder;
    let found = |request: TrainRequest| TrainRequest { init: Some(plain.clone()), ..request }.experiment().unwrap();
    let trend = |changes: &[&str]| found(request(&data, folder.at("never"), changes)).data.trend;
    assert!(!trend(&[]) && trend(&["data.trend=true"]) && trend(&["data={ trend = true }"]));
    let file = folder.at("mine.toml");
    let place = toml::Value::String(data.display().to_string());
    std::fs::write(
        &file,
        format!("benchmark = \"darcy\"\ndata = {{ folder = {place}, train = 0, test = 0, trend = true }}\n"),
    )
    .unwrap();
    assert!(found(request(&file, folder.at("never"), &[])).data.trend, "the file says so");
}

#[test]
fn a_training_starts_from_a_model_that_comes_with_the_library() {
    let folder = Folder::new("start-included");
    let data = darcy(&folder, 85);
    let named = PathBuf::from("darcy");
    let job = TrainRequest { init: Some(named.clone()), ..request(&data, folder.at("never"), &[]) };
    let Model::Trained(included) = Model::open(&named).unwrap() else { panic!("it was trained") };
    assert_eq!(job.experiment().unwrap().model, included.experiment.model, "the settings are those of the source");
}
