//! Files, what they say about themselves, and what is refused.

use crate::support::{Folder, operator, row};
use lamo::error::Kind;
use lamo::inference::evaluate::RECEIPT;
use lamo::network::models::MODELS;
use lamo::task::Task;
use lamo::workflow::{EvaluateRequest, MakeRequest, Session, TrainRequest, evaluate, make, train};
use lamo::{Device, Grid, Operator, Receipt};
use lamo_export::{ExportRequest, Origin, export, export_operator};
use std::path::PathBuf;

fn small() -> Operator {
    let task = Task::plain(Grid::Plane { rows: 7, columns: 5 }, 2, 1, 1);
    operator(row("fno"), &task, (row("fno").tiny)(&task))
}

fn request(onnx: Option<PathBuf>, c: Option<PathBuf>) -> ExportRequest {
    ExportRequest { model: PathBuf::from("nowhere"), onnx, c, grid: None, samples: 2 }
}

#[test]
fn what_was_written_says_what_it_is_and_how_far_it_differs() {
    let folder = Folder::new("export-files");
    let request = request(Some(folder.at("model.onnx")), Some(folder.at("model.c")));
    let exported = export_operator(&small(), &request, None, None).unwrap();
    assert_eq!(
        exported.written[0].inputs.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(),
        ["positions", "inputs"]
    );
    assert_eq!(exported.written[0].outputs[0].shape, [Some(7), Some(5)]);
    for written in &exported.written {
        assert!(written.verified.origin == Origin::Drawn && written.verified.samples == 2);
        let bytes: u64 = written.files.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
        assert_eq!(bytes, written.bytes as u64);
    }
    let bytes = std::fs::read(folder.at("model.onnx")).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    for word in ["verification error", "normalisation", "plane of 7 x 5 points", "units", "batch"] {
        assert!(text.contains(word), "{word} is missing");
    }
    let header = std::fs::read_to_string(folder.at("model.h")).unwrap();
    for word in [
        "verification error",
        "LAMO_WORKSPACE",
        "int LAMO_PREDICT(size_t samples, const float *positions",
        "[samples, 7, 5]",
    ] {
        assert!(header.contains(word), "{word} is missing in {header}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    let folder = Folder::new("export-files");
    let write = |name: &str| {
        let files = [format!("{name}.onnx"), format!("{name}.c")].map(|file| folder.at(&file));
        let [onnx, c] = files.clone();
        export_operator(&small(), &request(Some(onnx), Some(c)), None, None).unwrap();
        let header = format!("\"{name}.h\"");
        let source = std::fs::read_to_string(&files[1]).unwrap().replace(&header, "");
        (std::fs::read(&files[0]).unwrap(), source)
    };
    assert!(write("one") == write("two"));
}

#[test]
fn bad_requests_are_refused_in_a_sentence_and_nothing_is_written() {
    let folder = Folder::new("export-files");
    let error = export(&request(None, None)).unwrap_err();
    assert_eq!(error.to_string(), "lamo export: expected --onnx FILE or --c FILE, found neither");
    let error = export(&ExportRequest { samples: 0, ..request(Some(folder.at("m.onnx")), None) }).unwrap_err();
    assert!(error.to_string().contains("--samples"), "{error}");
    let error = export(&request(Some(folder.at("m.onnx")), None)).unwrap_err();
    assert_eq!(error.kind(), Kind::Missing, "{error}");
    for request in [request(Some(folder.at("m.pb")), None), request(None, Some(folder.at("m.cpp")))] {
        let error = export_operator(&small(), &request, None, None).unwrap_err();
        assert!(error.to_string().contains("a file that ends with ."), "{error}");
    }
    let error = export_operator(&small(), &request(Some(folder.at("no/such/m.onnx")), None), None, None).unwrap_err();
    assert!(error.to_string().contains("cannot be written"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_grid_that_the_parameters_do_not_belong_to_is_refused_and_another_is_taken() {
    let folder = Folder::new("export-files");
    let finer = Some(Grid::Plane { rows: 9, columns: 12 });
    let request = ExportRequest { grid: finer, ..request(Some(folder.at("m.onnx")), Some(folder.at("m.c"))) };
    let exported = export_operator(&small(), &request, None, None).unwrap();
    for file in exported.written {
        assert!(file.outputs[0].shape == [Some(9), Some(12)] && file.verified.relative_l2 < 1e-5);
    }
    let task = Task::plain(Grid::Plane { rows: 7, columns: 5 }, 2, 1, 1);
    let fixed = operator(row("unet"), &task, (row("unet").tiny)(&task));
    let refused = ExportRequest { grid: Some(Grid::Cloud { points: 5 }), ..request };
    assert!(export_operator(&fixed, &refused, None, None).is_err());
}

#[test]
fn a_grid_of_another_kind_is_refused_in_a_sentence_or_works() {
    let folder = Folder::new("export-files");
    let planes = Task::plain(Grid::Plane { rows: 7, columns: 5 }, 2, 1, 1);
    let clouds = Task::plain(Grid::Cloud { points: 11 }, 2, 1, 1);
    for (task, other) in [(&planes, &clouds), (&clouds, &planes)] {
        for row in MODELS.iter().filter(|row| row.supports.allows(task)) {
            let operator = operator(row, task, (row.tiny)(task));
            let request = ExportRequest { grid: Some(other.grid), ..request(Some(folder.at("m.onnx")), None) };
            if let Err(error) = export_operator(&operator, &request, None, None) {
                assert!(error.kind() != Kind::Internal && error.to_string().len() > 20, "{}: {error}", row.name);
            }
        }
    }
}

#[test]
fn the_test_error_of_a_receipt_is_stated_for_its_own_weights_and_single_predictions() {
    let folder = Folder::new("export-receipt");
    let (data, changes) = (folder.at("data"), vec!["resolution=8".to_owned()]);
    let made = MakeRequest { problem: "darcy".into(), changes, seed: 0, samples: 7, out: data.clone() };
    make(&made, &Session::default()).unwrap();
    let changes = ["model.settings={ width = 8, depth = 1, modes = 2 }", "train={ epochs = 1, batch = 2 }"];
    let asked = TrainRequest {
        model: Some("fno".into()),
        changes: changes.map(str::to_owned).to_vec(),
        out: Some(folder.at("run")),
        ..TrainRequest::new(data.to_str().unwrap())
    };
    let run = train(&asked, &Session::default()).unwrap().folder;
    let asked = EvaluateRequest { run: run.clone(), data: None, symmetries: false, device: Device::Cpu };
    let receipt = evaluate(&asked, &Session::default()).unwrap().receipt;
    let stated = |receipt: &Receipt| {
        std::fs::write(run.join(RECEIPT), receipt.text()).unwrap();
        let request = ExportRequest { model: run.clone(), ..request(None, Some(folder.at("model.c"))) };
        export(&request).unwrap();
        std::fs::read_to_string(folder.at("model.h")).unwrap().contains("test error")
    };
    assert!(stated(&receipt));
    assert!(
        !stated(&Receipt { symmetries: Some(8), ..receipt.clone() }),
        "a mean over symmetries is another prediction"
    );
    let mut other = receipt;
    other.hashes.weights = "0".repeat(64);
    assert!(!stated(&other), "the run was resumed after its report");
}
