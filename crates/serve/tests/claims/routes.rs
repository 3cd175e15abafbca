//! The routes of our own: cards, samples, solutions, metrics, the page.

use crate::support::{NPY, NPZ, RUNS, get, npy, permeability, post, server, start};
use lamo::data::formats::ArrayFile;
use lamo::inference::evaluate::RECEIPT;
use lamo::run::EXPERIMENT;
use lamo::workflow::{EvaluateRequest, Session, evaluate};
use lamo::{Device, Receipt};
use lamo_serve::Source;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn cards_say_what_a_model_is() {
    let (server, _) = server(|_| {});
    let cards = get(&server, "/v1/models").json();
    let names: Vec<_> = cards["models"].as_array().unwrap().iter().map(|card| card["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["plane", "cloud", "series"]);
    let card = get(&server, "/v1/models/plane").json();
    assert_eq!(
        (&card["model"], &card["benchmark"], &card["problem"]),
        (&"lamo".into(), &"darcy".into(), &"darcy".into())
    );
    assert_eq!(card["grid"], serde_json::json!({ "kind": "plane", "rows": 12, "columns": 12 }));
    assert_eq!(card["inputs"][0]["name"], "permeability");
    assert_eq!((&card["outputs"][0]["name"], &card["outputs"][0]["channels"]), (&"pressure".into(), &1.into()));
    assert_eq!((&card["samples"], &card["device"], &card["version"]), (&2.into(), &"cpu".into(), &"1".into()));
    assert!(card["error"].is_null() && card["receipt"].is_null() && card["snapshots"].is_null());
    assert!(card["trained_on"].as_str().unwrap().contains("darcy"), "{card}");
    let cloud = get(&server, "/v1/models/cloud").json();
    assert_eq!((cloud["grid"]["kind"].clone(), cloud["inputs"].clone()), ("cloud".into(), serde_json::json!([])));
    assert_eq!((&cloud["solvable"], &cloud["resolutions"]), (&false.into(), &"Any number of points.".into()));
    assert_eq!(get(&server, "/v1/models/series").json()["snapshots"], 2);
    assert!(get(&server, "/v1/models/none").fails(404).contains("plane version 1, cloud version 1"));
}

#[test]
fn the_pretrained_model_has_its_receipt() {
    let (server, _) = start(&[Source::parse("darcy").unwrap()], |settings| settings.batch = 1);
    let card = get(&server, "/v1/models/darcy").json();
    let error = card["error"].as_f64().unwrap();
    assert!((0.001..0.01).contains(&error) && card["solvable"] == true, "{card}");
    assert_eq!(card["receipt"]["benchmark"], "darcy");
    let told = get(&server, "/v1/models/darcy/samples/0").fails(404);
    assert!(told.contains("not at hand"), "{told}");
}

#[test]
fn a_test_sample_can_be_sent_to_predict_as_it_is() {
    let (server, _) = server(|_| {});
    for (model, truth, points) in [("plane", "pressure", 144), ("cloud", "stress", 0), ("series", "vorticity_truth", 0)]
    {
        let reply = get(&server, &format!("/v1/models/{model}/samples/1"));
        let file = ArrayFile::in_memory("sample", reply.ok().to_vec()).unwrap();
        let names: Vec<String> = file.list().into_iter().map(|array| array.name).collect();
        assert!(names.contains(&"positions".to_owned()) && names.contains(&truth.to_owned()), "{model}: {names:?}");
        let known = file.read(Some(truth)).unwrap();
        assert!(points == 0 || known.values.into_f32().len() == points);
        let predicted = post(&server, &format!("/v1/models/{model}/predict"), NPZ, &reply.body);
        let predicted = ArrayFile::in_memory("prediction", predicted.ok().to_vec()).unwrap();
        let predicted = predicted.read(None).unwrap();
        assert_eq!(predicted.shape, known.shape, "{model}");
        assert_eq!(names.contains(&"triangles".to_owned()), model == "cloud", "{names:?}");
    }
    for number in ["2", "-1", "x", "99999999999999999999"] {
        assert!(get(&server, &format!("/v1/models/plane/samples/{number}")).fails(404).contains("from 0 to 1"));
    }
}

#[test]
fn the_solver_finds_the_labels_that_the_model_was_trained_on() {
    let (server, _) = server(|_| {});
    let sample = get(&server, "/v1/models/plane/samples/0");
    let file = ArrayFile::in_memory("sample", sample.ok().to_vec()).unwrap();
    let label = file.read(Some("pressure")).unwrap().values.into_f32();
    // Every second point of the sample is known: the field between them is that of the nearest, which is another field.
    let given = file.read(Some("permeability")).unwrap();
    let (shape, values) = (given.shape.clone(), given.values.into_f32());
    let given = lamo::data::formats::Named { name: "a".into(), shape, values };
    let reply = post(&server, "/v1/models/plane/solve", NPY, &npy(&given));
    assert!(reply.header("lamo-solver").unwrap().contains("24 x 24 cells"));
    let found = ArrayFile::in_memory("solution", reply.ok().to_vec()).unwrap().read(None).unwrap();
    assert_eq!(found.shape, [12, 12]);
    let found = found.values.into_f32();
    let square = |values: &mut dyn Iterator<Item = f32>| values.map(|value| value * value).sum::<f32>().sqrt();
    let miss =
        square(&mut found.iter().zip(&label).map(|(found, label)| found - label)) / square(&mut label.iter().copied());
    assert!(miss < 0.2, "the solution is {miss} from the label");
    // A constant permeability is the same field on any grid.
    let solve = |side: usize| {
        let even =
            lamo::data::formats::Named { name: "a".into(), shape: vec![side, side], values: vec![3.0; side * side] };
        let reply = post(&server, "/v1/models/plane/solve", NPY, &npy(&even));
        reply.ok().to_vec()
    };
    assert_eq!(solve(12), solve(24));
    let told = post(&server, "/v1/models/plane/solve", NPY, &npy(&permeability(&[13, 13], 0))).fails(400);
    assert!(told.contains("[12, 12] or [24, 24], found [13, 13]"), "{told}");
    let mut negative = permeability(&[12, 12], 0);
    negative.values[5] = -3.0;
    assert!(post(&server, "/v1/models/plane/solve", NPY, &npy(&negative)).fails(400).contains("-3"));
    assert!(
        post(&server, "/v1/models/cloud/solve", NPY, &npy(&permeability(&[12, 12], 0)))
            .fails(501)
            .contains("no solver")
    );
}

#[test]
fn metrics_count_requests_predictions_and_points() {
    let (server, _) = server(|_| {});
    for seed in 0..3 {
        post(&server, "/v1/models/plane/predict", NPY, &npy(&permeability(&[2, 12, 12], seed))).ok();
    }
    post(&server, "/v1/models/plane/predict", NPY, b"no file").fails(400);
    let reply = get(&server, "/metrics");
    assert!(reply.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let text = reply.text();
    for line in [
        "lamo_requests_total{method=\"POST\",route=\"/v1/models/{name}/predict\",status=\"200\"} 3",
        "lamo_requests_total{method=\"POST\",route=\"/v1/models/{name}/predict\",status=\"400\"} 1",
        "lamo_predictions_total{model=\"plane\",version=\"1\"} 6",
        "lamo_points_total{model=\"plane\",version=\"1\"} 864",
        "lamo_queue_depth{model=\"plane\",version=\"1\"} 0",
        "lamo_batch_samples_count{model=\"plane\",version=\"1\"} 3",
        "lamo_request_seconds_count{route=\"/v1/models/{name}/predict\"} 4",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(text.ends_with("# EOF\n") && text.contains("lamo_resident_memory_bytes"), "{text}");
}

#[test]
fn the_page_comes_from_the_server() {
    let (server, _) = server(|_| {});
    let reply = get(&server, "/");
    assert!(reply.header("content-type").unwrap().starts_with("text/html") && reply.text().contains("<html"));
    assert!(reply.header("content-security-policy").unwrap().contains("'self'"));
    assert!(get(&server, "/page.js").header("content-type").unwrap().starts_with("text/javascript"));
}

#[test]
fn an_unknown_address_gets_404_and_a_wrong_method_405() {
    let (server, _) = server(|_| {});
    assert!(get(&server, "/v3/models").fails(404).contains("/v3/models"));
    assert!(get(&server, "/v1/models/plane/predict").fails(405).contains("POST"));
    let reply = post(&server, "/v1/models", NPY, b"");
    assert!(reply.fails(405).contains("/v1/models"));
    assert!(reply.header("allow").is_some_and(|allowed| allowed.contains("GET")), "{}", reply.head);
}

#[test]
fn two_models_of_one_name_need_two_versions() {
    let source = |version: &str| Source { name: "a".into(), version: version.into(), path: RUNS.darcy.clone() };
    let told = lamo_serve::Server::start(&[source("1"), source("1")], lamo_serve::Settings::local());
    let told = told.err().unwrap().to_string();
    assert!(told.contains("a version 1") && told.contains("@2"), "{told}");
    let (server, _) = start(&[source("2"), source("10"), source("9")], |_| {});
    assert_eq!(get(&server, "/v1/models/a").json()["version"], "10"); // the greatest number
    assert_eq!(get(&server, "/v1/models/a@9").json()["version"], "9");
    assert_eq!(get(&server, "/v2/models/a/versions/2").json()["versions"], serde_json::json!(["2", "10", "9"]));
    assert!(get(&server, "/v2/models/a/versions/3").fails(404).contains("a version 3"));
}

/// A copy of the tiny run of Darcy flow and of its data.
fn copied() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (folder.path().join("run"), folder.path().join("data"));
    let own = RUNS.darcy.with_file_name("darcy-data");
    copy(&RUNS.darcy, &run);
    copy(&own, &data);
    let file = run.join(EXPERIMENT);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(own.to_str().unwrap()), "{text}");
    fs::write(&file, text.replace(own.to_str().unwrap(), data.to_str().unwrap())).unwrap();
    (folder, run, data)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            fs::copy(&entry, &target).unwrap();
        }
    }
}

#[test]
fn the_receipt_on_a_card_is_of_the_weights_that_are_served() {
    let (_folder, run, _) = copied();
    let asked = EvaluateRequest { run: run.clone(), data: None, symmetries: false, device: Device::Cpu };
    let receipt = evaluate(&asked, &Session::default()).unwrap().receipt;
    let error = |receipt: &Receipt| {
        fs::write(run.join(RECEIPT), receipt.text()).unwrap();
        let (server, _) = start(&[Source::parse(run.to_str().unwrap()).unwrap()], |settings| settings.batch = 1);
        get(&server, "/v1/models/run").json()["error"].as_f64()
    };
    assert_eq!(error(&receipt), Some(receipt.evaluation.headline()));
    assert_eq!(error(&Receipt { symmetries: Some(8), ..receipt.clone() }), None);
    let mut other = receipt;
    other.hashes.weights = "0".repeat(64);
    assert_eq!(error(&other), None);
}

#[test]
fn test_samples_that_could_not_be_read_are_read_again() {
    let (_folder, run, data) = copied();
    let (server, _) = start(&[Source::parse(run.to_str().unwrap()).unwrap()], |settings| settings.batch = 1);
    let file = data.join("permeability.npy");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..200]).unwrap();
    assert!(get(&server, "/v1/models/run/samples/0").status >= 400);
    fs::write(&file, &whole).unwrap();
    get(&server, "/v1/models/run/samples/0").ok();
}
