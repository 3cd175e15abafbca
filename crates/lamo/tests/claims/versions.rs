//! What lamo 0.1 wrote still opens: data sets, runs, receipts, model folders. They are in `tests/v0_1`, see its README.

use crate::support::{Folder, copy};
use lamo::data::formats;
use lamo::data::import::ArrayName;
use lamo::inference::Source;
use lamo::inference::evaluate::{RECEIPT, Receipt};
use lamo::run::{self, Line, Trained};
use lamo::task::Positions;
use lamo::workflow::{
    EvaluateRequest, PredictRequest, ResumeRequest, Session, TrainedRun, VerifyRequest, check, evaluate, predict,
    resume, verify,
};
use lamo_tensor::Device;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn old(name: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests/v0_1").join(name)
}

/// A copy of a run of 0.1 and of its data, resumed to its end. The data are no longer where the run says.
fn resumed(folder: &Folder, name: &str) -> TrainedRun {
    let (run, data) = (folder.at(&format!("run-{name}")), folder.at(&format!("data-{name}")));
    copy(&old(&format!("runs/{name}")), &run);
    copy(&old(&format!("data/{name}")), &data);
    let request = ResumeRequest { run, data: Some(data), device: None, saving: Duration::from_secs(60), together: 1 };
    resume(&request, &Session::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn data_sets_of_0_1_open_with_their_hashes() {
    for (name, samples) in [("darcy", 6), ("navier-stokes", 4), ("plasticity", 3), ("cloud", 5)] {
        let checked = check(&old(&format!("data/{name}"))).unwrap_or_else(|error| panic!("{name}: {error}"));
        checked.require_finite().unwrap();
        let manifest = checked.dataset.manifest();
        assert_eq!((manifest.lamo.as_str(), manifest.samples), ("0.1.0", samples), "{name}");
    }
}

#[test]
fn checkpoints_of_0_1_open_with_their_task() {
    let open =
        |name: &str| Trained::open(&old(&format!("runs/{name}"))).unwrap_or_else(|error| panic!("{name}: {error}"));
    for (name, positions, sizes) in [
        ("darcy", Positions::Lattice, [1, 1, 1]),
        ("cloud", Positions::Given, [1, 1, 1]),
        ("navier-stokes", Positions::Lattice, [2, 1, 3]),
        ("plasticity", Positions::Scrambled, [1, 4, 4]),
    ] {
        let task = open(name).operator.task;
        let found = [task.input_channels(), task.output_channels(), task.time.count()];
        assert_eq!((task.positions, found), (positions, sizes), "{name}");
    }
    let names = |fields: &[lamo::task::Field]| fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
    let task = open("cloud").operator.task;
    assert_eq!(
        (names(&task.inputs), names(&task.outputs), task.outputs[0].unit.as_str()),
        (vec!["load".into()], vec!["stress".into()], "MPa")
    );
}

/// The resumed run takes the same steps. Rounding, which differs from processor to processor and since 0.1 for slices, is magnified by
/// hundreds of steps, so the fifth epoch is compared, and the last one where no slices are.
#[test]
fn a_run_that_0_1_left_in_the_middle_goes_on_as_0_1_would_have_gone_on() {
    let folder = Folder::new("middle");
    for (name, epochs) in [("navier-stokes", 300), ("plasticity", 100)] {
        let begun = Trained::open(&old(&format!("runs/{name}"))).unwrap().step;
        let run = resumed(&folder, name);
        assert!(run.finished && (1..run.steps).contains(&begun), "{name} was stopped at step {begun}");
        assert_eq!(run.history.len(), epochs, "{name}");
        let expected = std::fs::read_to_string(old(&format!("expected/{name}.jsonl"))).unwrap();
        for expected in expected.lines().map(|line| serde_json::from_str::<Line>(line).unwrap()) {
            let found = &run.history[expected.epoch - 1];
            assert_eq!((found.epoch, found.step), (expected.epoch, expected.step), "{name}");
            let tolerance = if expected.epoch == epochs { 0.02 } else { 1e-4 };
            for (found, expected) in [(found.train, expected.train), (found.test.unwrap(), expected.test.unwrap())] {
                let apart = (found / expected - 1.0).abs();
                assert!(apart < tolerance, "{name} has {found} where 0.1 has {expected}");
            }
        }
        assert_eq!(
            run.experiment.data.folder,
            Some(folder.at(&format!("data-{name}"))),
            "the run notes where its data are"
        );
    }
}

#[test]
fn a_receipt_of_0_1_is_verified_and_an_evaluation_finds_its_number() {
    let folder = Folder::new("receipts");
    for name in ["darcy", "cloud"] {
        let run = resumed(&folder, name).folder;
        let stated = Receipt::read(&run.join(RECEIPT)).unwrap().evaluation.relative_l2;
        let verified = verify(
            &VerifyRequest { receipt: run.join(RECEIPT), run: None, data: None, device: Device::Cpu },
            &Session::default(),
        );
        let verified = verified.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!((verified.relative_l2 / stated - 1.0).abs() <= verified.tolerance, "{name}");
        let request = EvaluateRequest {
            run: old(&format!("runs/{name}")),
            data: Some(old(&format!("data/{name}"))),
            symmetries: false,
            device: Device::Cpu,
        };
        let found = evaluate(&request, &Session::default()).unwrap().receipt.evaluation.relative_l2;
        assert!((found / stated - 1.0).abs() < 1e-4, "{name}: {found} where the receipt says {stated}");
    }
}

/// Relative to the largest value.
fn apart(path: &Path, expected: &str) -> f64 {
    let values = |path: &Path| formats::read(path, None).unwrap().values.into_f64();
    let (found, expected) = (values(path), values(&old(expected)));
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest
}

#[test]
fn runs_and_model_folders_of_0_1_predict_what_they_predicted() {
    let folder = Folder::new("predicted");
    let source = |field: &str, file: &str| Source {
        field: Some(field.into()),
        array: ArrayName { path: old(&format!("data/{file}.npy")), variable: None },
        axes: None,
    };
    let cloud = |load: &str| vec![source("positions", "cloud/positions"), source(load, "cloud/load")];
    for (model, inputs, expected) in [
        ("runs/darcy", vec![source("permeability", "darcy/permeability")], "expected/pressure.npy"),
        (
            "runs/darcy/checkpoints/best.safetensors",
            vec![source("permeability", "darcy/permeability")],
            "expected/pressure.npy",
        ),
        ("runs/cloud", cloud("load"), "expected/stress.npy"),
        ("models/cloud", cloud("inputs"), "expected/stress.npy"), // a state dict has no names of fields
    ] {
        let output = folder.at("prediction.npy");
        let request = PredictRequest {
            model: old(model),
            inputs,
            output: output.clone(),
            snapshots: None,
            symmetries: false,
            memory: None,
            device: Device::Cpu,
        };
        predict(&request).unwrap_or_else(|error| panic!("{model}: {error}"));
        let worst = apart(&output, expected);
        assert!(worst < 1e-5, "{model} is off by {worst:.1e}");
    }
}

#[test]
fn a_run_of_0_1_whose_data_are_gone_says_how_to_name_them() {
    let folder = Folder::new("gone");
    copy(&old("runs/darcy"), &folder.at("run"));
    let request = ResumeRequest { run: folder.at("run"), data: None, device: None, saving: Duration::MAX, together: 1 };
    let error = resume(&request, &Session::default()).unwrap_err();
    assert_eq!(error.kind(), lamo::Kind::Missing);
    assert!(error.to_string().contains("--data DIR"), "{error}");
    assert_eq!(run::history(&folder.at("run")).unwrap().len(), 2, "and leaves the run as it was");
}
