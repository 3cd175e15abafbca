//! Symmetries of a benchmark: in training each sample is shown under one that its problem declares, in evaluation a prediction
//! may be the mean over all of them.

use crate::support::{Folder, essence, experiment};
use lamo::data::Samples;
use lamo::data::dataset::{Dataset, MANIFEST};
use lamo::experiment::{ExperimentData, Symmetries};
use lamo::inference::evaluate::{RECEIPT, Receipt};
use lamo::run::{self, Checkpoint, Trained};
use lamo::training::Trainer;
use lamo::workflow::{
    self, EvaluateRequest, MakeRequest, ResumeRequest, Session, TrainRequest, TrainedRun, VerifyRequest, evaluate,
    resume, train, verify,
};
use lamo::{Cancel, Event, Preset};
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Seven samples of a problem with its small settings.
fn made(folder: &Folder, problem: &str, settings: &[&str]) -> PathBuf {
    let out = folder.at(&format!("{problem}-data"));
    let changes = settings.iter().map(ToString::to_string).collect();
    let request = MakeRequest { problem: problem.to_owned(), changes, seed: 0, samples: 7, out: out.clone() };
    workflow::make(&request, &Session::default()).unwrap();
    out
}

/// A benchmark, three epochs of three steps on a small grid.
fn request(data: &Path, problem: &str, settings: &[&str], out: PathBuf, more: &[&str]) -> TrainRequest {
    let base = ["train.epochs=3", "train.batch=2", "train.rate=3e-3", "data.train=5", "data.test=2"];
    let sizes = ["model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }", "data.first_test=5"];
    let mut changes: Vec<String> = settings.iter().map(|setting| format!("data.settings.{setting}")).collect();
    changes.push(format!("data.folder={}", data.display()));
    changes.extend(base.iter().chain(&sizes).chain(more).map(ToString::to_string));
    TrainRequest {
        preset: Some(Preset::Quick),
        changes,
        out: Some(out),
        saving: Duration::ZERO,
        ..TrainRequest::new(problem)
    }
}

/// Benchmarks with points on a lattice, points of a cloud, and a time series.
const CASES: [(&str, &[&str], &[&str]); 3] = [
    ("darcy", &["resolution=8"], &["model.settings.padded=[0, 0]"]),
    (
        "elasticity",
        &["around=8", "layers=2"],
        &["model.settings.tokens=8", "model.settings.head_width=8", "model.settings.groups=1"],
    ),
    ("navier-stokes", &["resolution=16", "stride=2", "frames=4"], &["model.settings.padded=[0, 0]", "data.past=2"]),
];

#[test]
fn a_training_with_symmetries_resumes_to_the_bit_and_differs_from_one_without() {
    let folder = Folder::new("symmetric-runs");
    for (problem, settings, more) in CASES {
        let data = made(&folder, problem, settings);
        let run = |name: &str, symmetries: &str, session: &Session<'_>| {
            let more = [more, &[symmetries]].concat();
            let out = folder.at(&format!("{problem}-{name}"));
            train(&request(&data, problem, settings, out, &more), session)
                .unwrap_or_else(|error| panic!("{problem}: {error}"))
        };
        let on = "train.symmetries=true";
        let [whole, again, plain] = [("whole", on), ("again", on), ("plain", "train.symmetries=false")]
            .map(|(name, symmetries)| run(name, symmetries, &Session::default()));
        let bits = |run: &TrainedRun| essence(&run.folder).1;
        assert_eq!(bits(&whole), bits(&again), "{problem}: the symmetries depend on seed and step alone");
        assert_ne!(bits(&whole), bits(&plain), "{problem}");
        let cancel = Cancel::new();
        let listener = |event: Event<'_>| {
            if let Event::Epoch(_) = event {
                cancel.cancel();
            }
        };
        let session = Session { listener: &listener, cancel: cancel.clone(), threads: 1 };
        let stopped = run("stopped", on, &session);
        assert!(bits(&stopped).len() < 3, "{problem}: the training was stopped");
        let request = ResumeRequest {
            run: stopped.folder.clone(),
            data: None,
            device: None,
            saving: Duration::ZERO,
            together: 1,
        };
        resume(&request, &Session::default()).unwrap();
        assert_eq!(bits(&stopped), bits(&whole), "{problem}: resumed");
    }
}

#[test]
fn the_mean_over_the_group_turns_with_the_samples_and_its_receipt_is_verified() {
    let folder = Folder::new("symmetric-mean");
    for (problem, settings, more) in CASES {
        let data = made(&folder, problem, settings);
        let done = train(&request(&data, problem, settings, folder.at(problem), more), &Session::default()).unwrap();
        let Trained { experiment, operator, .. } = Trained::open(&done.folder).unwrap();
        let group = Symmetries::of(&experiment, &operator.task, "--symmetries").unwrap();
        let test = ExperimentData::read(&experiment, &Dataset::open(&data).unwrap()).unwrap().test;
        let mean = |samples| operator.predict_mean(samples, Some(&group), Device::Cpu).unwrap();
        let (still, plain) = (mean(&test), operator.predict(&test, Device::Cpu).unwrap());
        let gap = |one: &[f32], two: &[f32]| {
            let size = two.iter().map(|value| value.abs()).fold(0.0, f32::max);
            one.iter().zip(two).map(|(one, two)| (one - two).abs()).fold(0.0, f32::max) / size
        };
        let turn = &group.elements()[group.order() - 1];
        let turned = gap(&turn.undo(&mean(&turn.apply(&operator.task, &test))), &still);
        // The same predictions in another order; a network is a few dozen sums of f32.
        assert!(turned < 1e-4, "{problem}: {turned}");
        assert!(gap(&plain, &still) > 10.0 * turned.max(1e-6), "{problem}: one prediction is not the mean");
        let asked = EvaluateRequest { run: done.folder.clone(), data: None, symmetries: true, device: Device::Cpu };
        let evaluated = evaluate(&asked, &Session::default()).unwrap();
        assert_eq!((evaluated.receipt.symmetries, &evaluated.prediction), (Some(group.order()), &still));
        let path = done.folder.join(RECEIPT);
        std::fs::write(&path, evaluated.receipt.text()).unwrap();
        let again = VerifyRequest { receipt: path.clone(), run: None, data: None, device: Device::Cpu };
        verify(&again, &Session::default()).unwrap();
        let forged = Receipt { symmetries: None, ..evaluated.receipt };
        std::fs::write(&path, forged.text()).unwrap();
        assert!(verify(&again, &Session::default()).is_err(), "{problem}: one prediction has another error");
    }
}

#[test]
fn a_turned_grid_with_as_many_points_is_refused_for_the_mean_over_the_group() {
    let wave = |count: usize| (0..count).map(|place| (0.7 * place as f32).sin()).collect::<Vec<_>>();
    let experiment = experiment(&["model.name=fno", "model.settings={ width = 4, depth = 1, modes = 2 }"]);
    let on = |rows, columns| Samples::new(Grid::Plane { rows, columns }, 1, wave(48), 1, wave(48)).unwrap();
    let (train, turned) = (on(4, 6), on(6, 4));
    let task = experiment.task(&train).unwrap();
    let operator = Trainer::new(&experiment, &task, &train, &train, Device::Cpu).unwrap().trained().unwrap().operator;
    let group = Symmetries::of(&experiment, &task, "--symmetries").unwrap();
    operator.predict(&turned, Device::Cpu).unwrap();
    operator.predict_mean(&train, Some(&group), Device::Cpu).unwrap();
    let told = operator.predict_mean(&turned, Some(&group), Device::Cpu).unwrap_err().to_string();
    let expected =
        "--symmetries: expected samples on a plane of 4 x 6 points, as in training, found a plane of 6 x 4 points";
    assert!(told.starts_with(expected), "{told}");
}

/// The recipe `quick` has one cell a point; these data have two, and only the exchange of x and y is left.
#[test]
fn the_symmetries_are_those_of_the_data_and_not_those_of_the_recipe() {
    let folder = Folder::new("symmetric-data");
    let (problem, settings, more) = CASES[0];
    let data = made(&folder, problem, &["resolution=16", "stride=2"]);
    let more = [more, &["train.symmetries=true"]].concat();
    let done = train(&request(&data, problem, settings, folder.at("run"), &more), &Session::default()).unwrap();
    let settings_of = |key: &str| done.experiment.data.settings[key].as_integer();
    assert_eq!([settings_of("resolution"), settings_of("stride")], [Some(16), Some(2)], "the run records them");
    let Trained { experiment, operator, .. } = Trained::open(&done.folder).unwrap();
    assert_eq!(Symmetries::of(&experiment, &operator.task, "--symmetries").unwrap().order(), 2);

    // A run of an earlier version recorded the settings of the recipe.
    let file = run::checkpoint_path(&done.folder, run::LAST);
    let mut earlier = Checkpoint::read(&file).unwrap();
    for (key, value) in [("resolution", 8), ("stride", 1)] {
        earlier.trained.experiment.data.settings.insert(key.to_owned(), value.into());
    }
    earlier.write(&file).unwrap();
    std::fs::write(done.folder.join(run::EXPERIMENT), earlier.trained.experiment.text()).unwrap();
    let again =
        ResumeRequest { run: done.folder.clone(), data: None, device: None, saving: Duration::ZERO, together: 1 };
    let told = resume(&again, &Session::default()).unwrap_err().to_string();
    assert!(
        told.contains("train.symmetries: expected data.settings as the data have them, resolution=16, stride=2, found"),
        "{told}"
    );
    let asked = EvaluateRequest { run: done.folder.clone(), data: None, symmetries: true, device: Device::Cpu };
    assert_eq!(evaluate(&asked, &Session::default()).unwrap().receipt.symmetries, Some(2));
}

#[test]
fn public_files_have_the_symmetries_of_their_own_recipe() {
    let folder = Folder::new("symmetric-public");
    let (settings, padded) = (["resolution=7"], "model.settings.padded=[0, 0]");
    let data = made(&folder, "pipe", &settings);
    let job = |name: &str, more: &[&str]| {
        let more = [&[padded], more].concat();
        train(&request(&data, "pipe", &settings, folder.at(name), &more), &Session::default())
    };
    job("made", &["train.symmetries=true"]).unwrap();
    let run = job("plain", &[]).unwrap().folder;
    let manifest = data.join(MANIFEST);
    let text = std::fs::read_to_string(&manifest).unwrap();
    let line = text.lines().find(|line| line.starts_with("generator = ")).unwrap();
    std::fs::write(&manifest, text.replace(line, "generator = 0")).unwrap();
    let told = job("refused", &["train.symmetries=true"]).unwrap_err().to_string();
    assert!(told.contains("pipe, which has none with these settings"), "{told}");
    let asked = EvaluateRequest { run, data: None, symmetries: true, device: Device::Cpu };
    let told = evaluate(&asked, &Session::default()).unwrap_err().to_string();
    assert!(told.contains("--symmetries: expected a problem with symmetries"), "{told}");
}
