//! The Open Inference Protocol, version 2.

use crate::support::{JSON, RUNS, ask, command_line, get, npy, permeability, post, server};
use lamo::data::formats::{ArrayFile, Named};
use serde_json::{Value, json};

fn expected(given: &Named) -> Vec<f32> {
    let written = command_line(&RUNS.darcy, &npy(given), "npy", None);
    ArrayFile::in_memory("expected", written).unwrap().read(None).unwrap().values.into_f32()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Numbers of JSON as a client reads them.
fn numbers(data: &Value) -> Vec<f32> {
    data.as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect()
}

#[test]
fn health_and_metadata_are_as_the_protocol_says() {
    let (server, _) = server(|_| {});
    assert_eq!(get(&server, "/v2/health/live").json()["live"], true);
    assert_eq!(get(&server, "/v2/health/ready").json()["ready"], true);
    let about = get(&server, "/v2").json();
    assert_eq!((&about["name"], &about["version"]), (&"lamo".into(), &env!("CARGO_PKG_VERSION").into()));
    let model = get(&server, "/v2/models/plane").json();
    assert_eq!(model["inputs"], json!([{ "name": "permeability", "datatype": "FP32", "shape": [-1, 12, 12] }]));
    assert_eq!(model["outputs"], json!([{ "name": "pressure", "datatype": "FP32", "shape": [-1, 12, 12] }]));
    assert_eq!((&model["versions"], &model["platform"]), (&json!(["1"]), &"lamo_lamo".into()));
    let cloud = get(&server, "/v2/models/cloud").json();
    assert_eq!(cloud["inputs"], json!([{ "name": "positions", "datatype": "FP32", "shape": [-1, -1, 2] }]));
    let series = get(&server, "/v2/models/series").json();
    assert_eq!(series["inputs"][0]["shape"], json!([-1, 2, 16, 16]));
    assert_eq!(get(&server, "/v2/models/plane/versions/1/ready").json()["ready"], true);
    assert!(get(&server, "/v2/models/other/ready").fails(404).contains("other"));
    let index = post(&server, "/v2/repository/index", JSON, b"{}").json();
    assert_eq!(index[0], json!({ "name": "plane", "version": "1", "state": "READY", "reason": "" }));
}

#[test]
fn tensors_in_json_give_the_bits_of_lamo_predict() {
    let (server, _) = server(|_| {});
    for (shape, datatype) in [(vec![2, 12, 12], "FP32"), (vec![12, 12], "FP64"), (vec![1, 12, 12], "INT32")] {
        let given = permeability(&shape, 4);
        let request = json!({
            "id": "seven",
            "inputs": [{ "name": "permeability", "shape": shape, "datatype": datatype, "data": given.values }],
        });
        let reply = post(&server, "/v2/models/plane/infer", JSON, request.to_string().as_bytes());
        reply.ok();
        let reply = reply.json();
        let output = &reply["outputs"][0];
        assert_eq!(
            (&reply["id"], &reply["model_name"], &reply["model_version"]),
            (&"seven".into(), &"plane".into(), &"1".into())
        );
        assert_eq!(
            (&output["name"], &output["datatype"], &output["shape"]),
            (&"pressure".into(), &"FP32".into(), &json!(shape))
        );
        assert_eq!(bits(&numbers(&output["data"])), bits(&expected(&given)), "{datatype}");
    }
}

/// A request with one tensor as bytes.
fn binary(server: &lamo_serve::Server, header: &Value, bytes: &[u8], shift: i64) -> crate::support::Reply {
    let text = header.to_string();
    let length = (text.len() as i64 + shift).to_string();
    let headers = [("Inference-Header-Content-Length", length.as_str()), ("Content-Type", "application/octet-stream")];
    ask(server.address(), "POST", "/v2/models/plane/infer", &headers, &[text.as_bytes(), bytes].concat())
}

#[test]
fn tensors_in_binary_give_the_bits_of_lamo_predict() {
    let (server, _) = server(|_| {});
    let given = permeability(&[2, 12, 12], 5);
    let expected = bits(&expected(&given));
    let single: Vec<u8> = given.values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let double: Vec<u8> = given.values.iter().flat_map(|value| f64::from(*value).to_le_bytes()).collect();
    for (datatype, bytes) in [("FP32", single), ("FP64", double)] {
        let header = json!({
            "inputs": [{ "name": "permeability", "shape": [2, 12, 12], "datatype": datatype,
                         "parameters": { "binary_data_size": bytes.len() } }],
            "outputs": [{ "name": "pressure", "parameters": { "binary_data": true } }],
        });
        let reply = binary(&server, &header, &bytes, 0);
        let length: usize = {
            reply.ok();
            reply.header("inference-header-content-length").unwrap().parse().unwrap()
        };
        let head: Value = serde_json::from_slice(&reply.body[..length]).unwrap();
        assert_eq!(head["outputs"][0]["parameters"]["binary_data_size"], 2 * 144 * 4);
        let found: Vec<f32> =
            reply.body[length..].chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
        assert_eq!(bits(&found), expected, "{datatype}");
    }
}

#[test]
fn all_outputs_come_as_bytes_where_the_request_says_so() {
    let (server, _) = server(|_| {});
    let given = permeability(&[1, 12, 12], 6);
    let request = json!({
        "parameters": { "binary_data_output": true },
        "inputs": [{ "name": "permeability", "shape": [1, 12, 12], "datatype": "FP32", "data": given.values }],
    });
    let reply = post(&server, "/v2/models/plane/infer", JSON, request.to_string().as_bytes());
    reply.ok();
    let length: usize = reply.header("inference-header-content-length").unwrap().parse().unwrap();
    assert_eq!(reply.body.len() - length, 144 * 4);
}

#[test]
fn a_time_series_is_continued_by_as_many_snapshots_as_are_asked_for() {
    let (server, _) = server(|_| {});
    let values: Vec<f32> = (0..2 * 256).map(|index| (index as f32 * 0.05).sin()).collect();
    let ask = |parameters: Value| {
        let inputs = json!([{ "name": "vorticity", "shape": [1, 2, 16, 16], "datatype": "FP32", "data": values }]);
        let request = json!({ "parameters": parameters, "inputs": inputs }).to_string();
        post(&server, "/v2/models/series/infer", JSON, request.as_bytes())
    };
    assert_eq!(ask(json!({})).json()["outputs"][0]["shape"], json!([1, 2, 16, 16]));
    assert_eq!(ask(json!({ "frames": 7 })).json()["outputs"][0]["shape"], json!([1, 7, 16, 16]));
    for odd in [json!(0), json!(-1), json!(1.5), json!("x"), json!(true)] {
        let told = ask(json!({ "frames": odd })).fails(400);
        assert_eq!(told, format!("frames: expected a whole number of at least 1, found {odd}"));
    }
}

#[test]
fn what_does_not_fit_the_model_gets_400_and_a_sentence() {
    let (server, _) = server(|_| {});
    let fine = json!({ "name": "permeability", "shape": [12, 12], "datatype": "FP32", "data": vec![3.0; 144] });
    let with = |key: &str, value: Value| {
        let mut input = fine.clone();
        input[key] = value;
        input
    };
    let infer =
        |request: Value| post(&server, "/v2/models/plane/infer", JSON, request.to_string().as_bytes()).fails(400);
    for (inputs, told) in [
        (json!([with("shape", json!([11, 12]))]), "shape [11, 12], found 144"),
        (json!([with("shape", json!([144]))]), "[12, 12]"),
        (json!([with("datatype", "FP16".into())]), "found FP16"),
        (json!([with("data", json!([1, "two"]))]), "input `permeability`: expected numbers, found \"two\""),
        (json!([with("data", json!(vec![1e39; 144]))]), "up to 3.4e38, as float32 has, found 1e39; give"),
        (json!([with("name", "other".into())]), "expected permeability, found `other`"),
        (json!([fine, with("name", "other".into())]), "expected permeability, found `other`"),
        (json!([fine, fine]), "inputs: expected permeability, found `permeability` twice; send one tensor"),
        (json!([]), "expected permeability, found none"),
    ] {
        let found = infer(json!({ "inputs": inputs }));
        assert!(found.contains(told), "expected {told} in: {found}");
    }
    assert!(infer(json!({ "inputs": [fine], "outputs": [{ "name": "speed" }] })).contains("`speed`"));
    assert!(
        infer(json!({ "inputs": [fine], "outputs": [{ "name": "pressure" }, { "name": "pressure" }] }))
            .contains("twice")
    );
    assert!(infer(json!({ "input": [] })).contains("inputs"));
}

#[test]
fn data_in_json_must_be_flat_or_nested_as_their_shape() {
    let (server, _) = server(|_| {});
    let values: Vec<f32> = (0..2 * 256).map(|index| (index as f32 * 0.05).sin()).collect();
    let nested = |outer: usize, inner: usize| -> Value {
        let rows = |part: &[f32]| part.chunks(inner).map(<[f32]>::to_vec).collect::<Vec<_>>();
        json!([values.chunks(outer).map(rows).collect::<Vec<_>>()])
    };
    let ask = |data: Value| {
        let input = json!({ "data": data, "name": "vorticity", "shape": [1, 2, 16, 16], "datatype": "FP32" });
        post(&server, "/v2/models/series/infer", JSON, json!({ "inputs": [input] }).to_string().as_bytes())
    };
    let flat = ask(json!(values));
    assert_eq!(ask(nested(256, 16)).ok(), flat.ok());
    for (outer, inner, found) in [(32, 16, "[1, 16, 2, 16]"), (256, 8, "[1, 2, 32, 8]")] {
        let told = ask(nested(outer, inner)).fails(400);
        let expected = format!("input `vorticity`: expected data nested as shape [1, 2, 16, 16], found {found}; nest");
        assert!(told.starts_with(&expected), "{told}");
    }
    let mut ragged = vec![json!([[1, 2]])];
    ragged.extend(values[2..].iter().map(|value| json!(value)));
    assert!(ask(json!(ragged)).fails(400).contains("found numbers beside arrays"));
}

#[test]
fn numbers_in_json_must_be_of_their_datatype() {
    let (server, _) = server(|_| {});
    let ask = |datatype: &str, value: Value| {
        let data = vec![value; 144];
        let input = json!({ "name": "permeability", "shape": [12, 12], "datatype": datatype, "data": data });
        post(&server, "/v2/models/plane/infer", JSON, json!({ "inputs": [input] }).to_string().as_bytes())
    };
    for (datatype, value, told) in [
        ("BOOL", json!(-0.39), "expected true or false, as BOOL has, found -0.39"),
        ("INT8", json!(2.7), "whole numbers from -128 to 127, as INT8 has, found 2.7"),
        ("INT8", json!(1000), "found 1000"),
        ("UINT8", json!(-1), "whole numbers from 0 to 255, as UINT8 has, found -1"),
        ("FP32", json!(true), "found true"),
    ] {
        let found = ask(datatype, value).fails(400);
        assert!(found.starts_with("input `permeability`: expected ") && found.contains(told), "{found}");
    }
    let [number, truth] = [ask("FP32", json!(1)), ask("BOOL", json!(true))];
    assert_eq!((ask("UINT8", json!(1)).ok(), ask("BOOL", json!(1)).ok()), (number.ok(), truth.ok()));
    assert_eq!(number.ok(), truth.ok());
}

#[test]
fn damaged_binary_requests_get_400() {
    let (server, _) = server(|_| {});
    let bytes = vec![0u8; 576];
    let header = |size: usize| {
        let parameters = json!({ "binary_data_size": size });
        json!({ "inputs": [{ "name": "permeability", "shape": [12, 12], "datatype": "FP32", "parameters": parameters }] })
    };
    assert_eq!(binary(&server, &header(576), &bytes, 0).status, 200);
    assert!(binary(&server, &header(576), &bytes[..500], 0).fails(400).contains("found 500"));
    assert!(binary(&server, &header(575), &bytes, 0).fails(400).contains("575"));
    assert!(binary(&server, &header(576), &[&bytes[..], b"more"].concat(), 0).fails(400).contains("4 more"));
    assert!(binary(&server, &header(576), &bytes, 3).fails(400).contains("JSON"));
    assert!(binary(&server, &header(576), &bytes, 1_000_000).fails(400).contains("Inference-Header-Content-Length"));
    assert!(binary(&server, &header(usize::MAX), &bytes, 0).fails(400).contains("found 576"));
    let nan: Vec<u8> = (0..144).flat_map(|_| f32::NAN.to_le_bytes()).collect();
    assert!(binary(&server, &header(576), &nan, 0).fails(400).contains("finite numbers, found NaN"));
}
