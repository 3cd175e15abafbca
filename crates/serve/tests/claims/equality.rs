//! Answers have the bits of `lamo predict`, alone and in batches.

use crate::support::{JSON, NPY, NPZ, RUNS, Runs, ask, command_line, get, npy, npz, permeability, post, server, start};
use lamo::Grid;
use lamo::data::dataset::Rule;
use lamo::data::formats::{ArrayFile, Named};
use lamo::data::import::{MeshCases, Own, Sizes};
use lamo::data::mesh::{self, Cells, DataArray, Mesh, Numbers, Shape};
use lamo::workflow::{Session, TrainRequest, train};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// VTK's number of a triangle.
const TRIANGLE: u8 = 5;

/// A cloud of points in the unit square.
fn cloud(points: usize, seed: usize) -> Named {
    let value = |index: usize| 0.5 + 0.4 * ((index * 37 + seed * 11) as f32).sin();
    Named { name: "positions".into(), shape: vec![points, 2], values: (0..2 * points).map(value).collect() }
}

#[test]
fn an_npy_file_gives_the_file_that_lamo_predict_writes() {
    let (server, _) = server(|_| {});
    let Runs { darcy, .. } = &*RUNS;
    for shape in [&[12, 12][..], &[1, 12, 12], &[5, 12, 12], &[11, 12, 12], &[20, 18]] {
        let given = npy(&permeability(shape, 1));
        let reply = post(&server, "/v1/models/plane/predict", NPY, &given);
        assert_eq!(reply.ok(), command_line(darcy, &given, "npy", None), "{shape:?}");
        assert_eq!(reply.header("content-type"), Some("application/x-npy"));
        assert!(reply.header("server-timing").unwrap().starts_with("compute;dur="));
    }
}

#[test]
fn an_npz_file_gives_the_file_that_lamo_predict_writes() {
    let (server, _) = server(|_| {});
    let Runs { darcy, cloud: clouds, series } = &*RUNS;
    let given = npz(&[permeability(&[3, 12, 12], 2)]);
    assert_eq!(post(&server, "/v1/models/plane/predict", NPZ, &given).ok(), command_line(darcy, &given, "npz", None));
    for points in [24, 31] {
        let given = npz(&[cloud(points, points)]);
        let reply = post(&server, "/v1/models/cloud/predict", NPZ, &given);
        assert_eq!(reply.ok(), command_line(clouds, &given, "npz", None), "{points} points");
    }
    let sample = get(&server, "/v1/models/series/samples/0").ok().to_vec();
    for frames in [None, Some(5)] {
        let query = frames.map_or_else(String::new, |frames| format!("?frames={frames}"));
        let reply = post(&server, &format!("/v1/models/series/predict{query}"), NPZ, &sample);
        assert_eq!(reply.ok(), command_line(series, &sample, "npz", frames), "{frames:?}");
    }
}

#[test]
fn an_answer_has_the_notes_of_lamo_predict() {
    let (server, _) = server(|_| {});
    let finer = npy(&permeability(&[20, 18], 1));
    let reply = post(&server, "/v1/models/plane/predict", NPY, &finer);
    let grids = "trained on a plane of 12 x 12 points and predicts on a plane of 20 x 18 points";
    assert!(reply.header("lamo-note").is_some_and(|note| note.contains(grids)), "{}", reply.head);
    let usual = post(&server, "/v1/models/plane/predict", NPY, &npy(&permeability(&[12, 12], 1)));
    assert_eq!(usual.header("lamo-note"), None);
    let values: Vec<f32> = (0..5 * 256).map(|place| (place as f32).sin()).collect();
    let series = Named { name: "vorticity".into(), shape: vec![5, 16, 16], values };
    let reply = post(&server, "/v1/models/series/predict", NPY, &npy(&series));
    assert!(reply.header("lamo-note").is_some_and(|note| note.contains("the last 2 of 5 snapshots")), "{}", reply.head);
    let tensor = serde_json::json!({
        "name": "permeability", "shape": [20, 18], "datatype": "FP32", "data": permeability(&[20, 18], 1).values,
    });
    let request = serde_json::json!({ "inputs": [tensor] }).to_string();
    let reply = post(&server, "/v2/models/plane/infer", JSON, request.as_bytes());
    assert!(reply.header("lamo-note").is_some_and(|note| note.contains(grids)), "{}", reply.head);
    assert!(reply.json()["parameters"]["note"].as_str().is_some_and(|note| note.contains(grids)));
}

#[test]
fn a_mesh_gives_the_mesh_that_lamo_predict_writes() {
    let (server, _) = server(|_| {});
    let Named { values, .. } = cloud(30, 3);
    let points = values.chunks(2).flat_map(|point| [point[0], point[1], 0.0]).collect();
    let mut cells = Cells::new();
    (0..28).for_each(|first| cells.push(TRIANGLE, [first, first + 1, first + 2]));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.vtu");
    let mut drawn = Mesh::new(Shape::Unstructured { points: Numbers::F32(points), cells });
    drawn.point_data.push(DataArray { name: "Stress".into(), components: 1, values: Numbers::F32(vec![0.25; 30]) });
    mesh::write(&file, &drawn, &mesh::Options::default()).unwrap();
    let given = std::fs::read(&file).unwrap();
    let kind = ("Content-Type", "application/vnd.vtk");
    let reply = post(&server, "/v1/models/cloud/predict", kind, &given);
    assert_eq!(reply.ok(), command_line(&RUNS.cloud, &given, "vtu", None));
    let text = reply.text();
    assert!(text.contains("Stress_predicted") && text.contains("Stress_error"), "{}", &text[..500]);
    let arrays =
        ask(server.address(), "POST", "/v1/models/cloud/predict", &[kind, ("Accept", "application/x-npz")], &given);
    assert_eq!(ArrayFile::in_memory("x", arrays.ok().to_vec()).unwrap().read(None).unwrap().shape, [30]);
    let told =
        post(&server, "/v1/models/cloud/predict", kind, b"<VTKFile type=\"UnstructuredGrid\"></VTKFile>").fails(400);
    assert!(told.contains("the body") && !told.contains("lamo-"), "{told}");
    assert!(
        post(&server, "/v1/models/cloud/predict?derive=sdf=/etc/passwd", kind, &given)
            .fails(400)
            .contains("distance or normals")
    );
    assert!(post(&server, "/v1/models/cloud/predict?on=edges", kind, &given).fails(400).contains("points or cells"));
}

/// A strip of 12 points with arrays `Distance` and `p`, as a vtu file.
fn strip(path: &Path, slope: f32) {
    let points = (0..12_u8).flat_map(|point| [f32::from(point % 4), f32::from(point / 4), 0.0]).collect();
    let mut cells = Cells::new();
    (0..7).for_each(|first| cells.push(TRIANGLE, [first, first + 1, first + 4]));
    let mut strip = Mesh::new(Shape::Unstructured { points: Numbers::F32(points), cells });
    for (name, shift) in [("Distance", 3.0), ("p", 1.0)] {
        let values = (0..12_u8).map(|point| shift + slope * f32::from(point)).collect();
        strip.point_data.push(DataArray { name: name.into(), components: 1, values: Numbers::F32(values) });
    }
    mesh::write(path, &strip, &mesh::Options::default()).unwrap();
}

/// A tiny run on strips.
fn run_on_strips(folder: &Path, name: &str, inputs: &[&str], derived: &[String]) -> PathBuf {
    let files: Vec<PathBuf> = (0..4).map(|case| folder.join(format!("case_{case}.vtu"))).collect();
    files.iter().zip([0.1, 0.2, 0.3, 0.4]).for_each(|(file, slope)| strip(file, slope));
    let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
    let cases =
        MeshCases { files, inputs, outputs: vec!["p".into()], derived: derived.to_vec(), ..MeshCases::default() };
    let own = Own {
        name: name.into(),
        grid: Grid::Cloud { points: 12 },
        ragged: Vec::new(),
        stride: 1,
        split: Some(Rule::Ends { train: 3, test: 1 }),
        fields: cases.fields().unwrap().0,
        times: None,
        windows: None,
        sizes: Sizes::default(),
    };
    let data = folder.join(name);
    own.import().unwrap().write(&data, &|_| ControlFlow::Continue(())).unwrap();
    let tiny = "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4, tokens = 4, slice_heads = 2 }";
    let changes = [tiny, "train={ epochs = 1, batch = 2 }"].map(str::to_owned).to_vec();
    let out = Some(folder.join(format!("{name}-run")));
    train(&TrainRequest { changes, out, ..TrainRequest::new(data.to_str().unwrap()) }, &Session::default())
        .unwrap()
        .folder
}

#[test]
fn the_fields_of_a_mesh_are_made_as_those_of_the_training_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let stored = run_on_strips(folder.path(), "stored", &["Distance"], &[]);
    let wall = format!("distance={}", folder.path().join("case_0.vtu").display());
    let wall = run_on_strips(folder.path(), "wall", &[], &[wall]);
    let source = |name: &str, path| lamo_serve::Source { name: name.into(), version: "1".into(), path };
    let (server, _) = start(&[source("stored", stored), source("wall", wall)], |_| {});
    let file = folder.path().join("case_3.vtu");
    let (given, kind) = (std::fs::read(&file).unwrap(), ("Content-Type", "application/vnd.vtk"));
    let array = |name: &str, shape: Vec<usize>, from: &str| {
        let values = lamo::data::formats::read(&file, Some(from)).unwrap().values.into_f64();
        Named { name: name.into(), shape, values: values.iter().map(|&value| value as f32).collect() }
    };
    let arrays = npz(&[array("positions", vec![12, 2], "points-xy"), array("distance", vec![12], "Distance")]);
    let headers = [kind, ("Accept", "application/x-npz")];
    let of_mesh = ask(server.address(), "POST", "/v1/models/stored/predict", &headers, &given);
    assert_eq!(
        of_mesh.ok(),
        post(&server, "/v1/models/stored/predict", NPZ, &arrays).ok(),
        "the array `Distance` is the input"
    );
    for query in ["", "?derive=distance"] {
        let told = post(&server, &format!("/v1/models/wall/predict{query}"), kind, &given).fails(400);
        assert!(told.contains("field `distance`") && told.contains("another file, case_0.vtu"), "{told}");
        assert!(told.ends_with("send the points and the fields as an npz file"), "{told}");
    }
    let told = post(&server, "/v1/models/stored/predict?derive=distance", kind, &given).fails(400);
    assert!(told.contains("expected the array `Distance` of the file, as in the training"), "{told}");
    post(&server, "/v1/models/wall/predict", NPZ, &arrays).ok();
}

#[test]
fn requests_that_are_computed_together_have_the_bits_of_each_alone() {
    let (server, records) = server(|_| {});
    let Runs { darcy, cloud: clouds, .. } = &*RUNS;
    let (address, mut expected) = (server.address(), BTreeMap::new());
    for seed in 0..24 {
        let given =
            if seed % 3 == 0 { npz(&[cloud(24, seed)]) } else { npy(&permeability(&[1 + seed % 2, 12, 12], seed)) };
        let (model, ending) = if seed % 3 == 0 { (clouds, "npz") } else { (darcy, "npy") };
        expected.insert(seed, (command_line(model, &given, ending, None), given));
    }
    for _ in 0..4 {
        std::thread::scope(|scope| {
            for (seed, (expected, given)) in &expected {
                scope.spawn(move || {
                    let (model, kind) = if seed % 3 == 0 { ("cloud", NPZ) } else { ("plane", NPY) };
                    let reply = ask(address, "POST", &format!("/v1/models/{model}/predict"), &[kind], given);
                    assert!(reply.ok() == expected, "the answer to {seed} differs");
                });
            }
        });
    }
    let largest = records.lock().unwrap().iter().filter_map(|record| record.batch).max();
    assert!(largest.is_some_and(|largest| (2..=8).contains(&largest)), "the largest batch was {largest:?}");
}

#[test]
fn the_format_of_the_answer_is_the_one_that_is_asked_for() {
    let (server, _) = server(|_| {});
    let given = npy(&permeability(&[12, 12], 0));
    let asked =
        |accept: &str| ask(server.address(), "POST", "/v1/models/plane/predict", &[NPY, ("Accept", accept)], &given);
    assert!(asked("application/x-npz").ok().starts_with(b"PK"));
    assert!(asked("text/html, */*").ok().starts_with(b"\x93NUMPY"));
    assert!(asked("text/html").fails(406).contains("text/html"));
    assert!(asked("application/vnd.vtk").fails(406).contains("vtu"));
    let plain = ask(server.address(), "POST", "/v1/models/plane/predict?format=npy", &[], &given);
    assert!(plain.ok().starts_with(b"\x93NUMPY"));
    let sniffed = ask(server.address(), "POST", "/v1/models/plane/predict", &[], &given);
    assert_eq!(sniffed.ok(), plain.ok());
}
