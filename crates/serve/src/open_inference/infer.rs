//! `POST /v2/models/NAME/infer`.
//!
//! The request is JSON, followed by the bytes of binary tensors where the header `Inference-Header-Content-Length` says how
//! long the JSON is. Its tensors are read as `lamo predict` reads an npz file of the same arrays.

use super::tensors::{Behind, Input, TensorParameters};
use super::{Named as Address, find};
use crate::body::{Body, content_type};
use crate::catalogue::Served;
use crate::engine::Answer;
use crate::failure::Failure;
use crate::own::{self, aside, fields, noted, notes, within};
use crate::router::{Computed, Server, Timed};
use crate::settings::Limits;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use lamo::Task;
use lamo::data::formats::{self, ArrayFile, Named};
use lamo::inference::PredictionInput;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Length of the JSON where bytes follow it.
const LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

#[derive(Debug, Default, Deserialize)]
struct Parameters {
    #[serde(default)]
    binary_data_output: bool,
    /// Snapshots to continue a time series by, as `lamo predict --frames`.
    #[serde(default)]
    frames: Option<Value>,
    /// Whether a prediction is the mean over the symmetries of the problem, as `lamo predict --symmetries`.
    #[serde(default)]
    symmetries: bool,
}

#[derive(Debug, Deserialize)]
struct Wanted {
    name: String,
    #[serde(default)]
    parameters: Option<TensorParameters>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with `inputs`")]
struct Request {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    parameters: Option<Parameters>,
    inputs: Vec<Input>,
    #[serde(default)]
    outputs: Option<Vec<Wanted>>,
}

#[derive(Serialize)]
struct Tensor {
    name: String,
    shape: Vec<usize>,
    datatype: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<TensorParameters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Vec<f32>>,
}

#[derive(Serialize)]
struct Reply<'a> {
    model_name: &'a str,
    model_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<ReplyParameters>,
    outputs: Vec<Tensor>,
}

#[derive(Serialize)]
struct ReplyParameters {
    /// What `lamo predict` would note about the same input.
    note: String,
}

/// A request that has been read.
struct Given {
    input: PredictionInput,
    notes: Vec<String>,
    id: Option<String>,
    symmetric: bool,
    /// Each output that is asked for, and whether as bytes; all of them where none is named.
    outputs: Option<Vec<(String, bool)>>,
    binary: bool,
}

pub(super) async fn infer(
    State(server): State<Server>,
    Extension(timed): Extension<Timed>,
    address: Address,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Failure> {
    let served = find(&server, &address)?;
    let length = json_length(&headers, body.len())?;
    let (model, limits) = (Arc::clone(&served), server.settings.limits);
    let given = aside(timed, move || read(&model, &body, length, limits)).await?;
    let found = served.engine.predict(given.input.samples.clone(), given.symmetric, timed.deadline).await?;
    let computed = Computed::of(&found);
    let notes = given.notes.clone();
    let (bytes, json) = aside(timed, move || write(&served, given, &found)).await?;
    let response = match json {
        Some(length) => {
            let headers = [(header::CONTENT_TYPE, "application/octet-stream".to_owned()), (LENGTH, length.to_string())];
            (headers, Extension(computed), bytes).into_response()
        }
        None => ([(header::CONTENT_TYPE, "application/json")], Extension(computed), bytes).into_response(),
    };
    Ok(noted(response, &notes))
}

/// How many bytes of the body are JSON.
fn json_length(headers: &HeaderMap, body: usize) -> Result<usize, Failure> {
    if let Some(other) = content_type(headers).filter(|said| said != "application/json") {
        let sentence = format!("Content-Type: expected application/json or application/octet-stream, found {other}");
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence));
    }
    let Some(length) = headers.get(&LENGTH) else { return Ok(body) };
    let found = length.to_str().unwrap_or("other bytes");
    match found.trim().parse::<usize>() {
        Ok(length) if length <= body => Ok(length),
        _ => Err(Failure::bad(format!(
            "Inference-Header-Content-Length: expected at most {body}, the bytes of the body, found {found}"
        ))),
    }
}

fn read(served: &Served, body: &Bytes, length: usize, limits: Limits) -> Result<Given, Failure> {
    let (json, behind) = body.split_at(length);
    let request: Request =
        serde_json::from_slice(json).map_err(|error| Failure::bad(format!("the JSON of the request: {error}")))?;
    let Request { id, parameters, inputs, outputs } = request;
    let Parameters { binary_data_output, frames, symmetries } = parameters.unwrap_or_default();
    let task = served.task();
    check_names(task, &inputs)?;
    let frames = frames.map(|frames| own::frames(&frames.to_string())).transpose()?;
    for wanted in outputs.iter().flatten() {
        if !task.outputs.iter().any(|field| field.name == wanted.name) {
            let known: Vec<&str> = task.outputs.iter().map(|field| field.name.as_str()).collect();
            return Err(Failure::bad(format!("outputs: expected {}, found `{}`", known.join(", "), wanted.name)));
        }
    }
    let mut behind = Behind(behind);
    let arrays = inputs.into_iter().map(|input| input.read(&mut behind)).collect::<Result<Vec<Named>, _>>()?;
    if !behind.0.is_empty() {
        let sentence = format!("the body: expected the bytes of its binary tensors, found {} more", behind.0.len());
        return Err(Failure::bad(sentence));
    }
    let bad = |error: formats::Error| Failure::of_input(&error.into());
    let file = formats::encode("inputs.npz".as_ref(), &arrays).map_err(bad)?;
    let file = ArrayFile::in_memory("inputs", file).map_err(bad)?;
    let planned = PredictionInput::plan_file(task, file, frames).map_err(|error| Failure::of_input(&error))?;
    within(limits, &planned)?;
    let notes = notes(served, &planned);
    let input = planned.read().map_err(|error| Failure::of_input(&error))?;
    let binary = |wanted: &Wanted| {
        wanted.parameters.as_ref().and_then(|parameters| parameters.binary_data).unwrap_or(binary_data_output)
    };
    let outputs = outputs.filter(|outputs| !outputs.is_empty());
    let outputs = outputs.map(|outputs| outputs.iter().map(|wanted| (wanted.name.clone(), binary(wanted))).collect());
    Ok(Given { input, notes, id, symmetric: symmetries, outputs, binary: binary_data_output })
}

/// Refuses inputs that are not those of the model, each once.
fn check_names(task: &Task, inputs: &[Input]) -> Result<(), Failure> {
    let known: Vec<String> = task.given_fields().into_iter().map(|field| field.name).collect();
    let given = |name: &str| inputs.iter().filter(|input| input.name() == name).count();
    let refuse = |found: String| Err(Failure::bad(format!("inputs: expected {}, {found}", known.join(", "))));
    if inputs.is_empty() {
        return refuse("found none; send each of them as a tensor".into());
    }
    if let Some(other) = inputs.iter().find(|input| !known.iter().any(|name| name == input.name())) {
        return refuse(format!("found `{}`; name the inputs as the model does", other.name()));
    }
    if let Some(twice) = known.iter().find(|name| given(name) > 1) {
        return refuse(format!("found `{twice}` twice; send one tensor with all samples"));
    }
    match known.iter().find(|name| given(name) == 0) {
        Some(missing) => refuse(format!("found no `{missing}`; send it, too")),
        None => Ok(()),
    }
}

/// The answer, and the length of its JSON where bytes follow.
fn write(served: &Served, given: Given, found: &Answer) -> Result<(Vec<u8>, Option<usize>), Failure> {
    let mut arrays = fields(served, &given.input, &found.values)?;
    let wanted =
        given.outputs.unwrap_or_else(|| arrays.iter().map(|array| (array.name.clone(), given.binary)).collect());
    let (mut outputs, mut behind): (Vec<Tensor>, Vec<u8>) = (Vec::new(), Vec::new());
    for (name, binary) in wanted {
        let Some(place) = arrays.iter().position(|array| array.name == name) else {
            return Err(Failure::bad(format!("outputs: expected each output once, found `{name}` twice")));
        };
        let Named { name, shape, values } = arrays.swap_remove(place);
        let size = 4 * values.len();
        let parameters = TensorParameters { binary_data_size: Some(size), binary_data: None };
        if binary {
            behind.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        let (parameters, data) = if binary { (Some(parameters), None) } else { (None, Some(values)) };
        outputs.push(Tensor { name, shape, datatype: "FP32", parameters, data });
    }
    let parameters = (!given.notes.is_empty()).then(|| ReplyParameters { note: given.notes.join("; ") });
    let reply = Reply { model_name: &served.name, model_version: &served.version, id: given.id, parameters, outputs };
    let mut bytes = serde_json::to_vec(&reply).map_err(|error| Failure::internal(error.to_string()))?;
    let any = reply.outputs.iter().any(|tensor| tensor.parameters.is_some());
    let length = any.then_some(bytes.len());
    bytes.extend(behind);
    Ok((bytes, length))
}
