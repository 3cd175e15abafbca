//! The Open Inference Protocol, version 2, as KServe and Triton speak it: health, metadata, inference with tensors in JSON or
//! in binary.

mod infer;
mod numbers;
mod tensors;

use crate::catalogue::Served;
use crate::failure::Failure;
use crate::router::Server;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use lamo::task::Spread;
use lamo::{Field, Grid};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The routes.
pub(crate) fn routes() -> [(&'static str, MethodRouter<Server>); 10] {
    [
        ("/v2", get(server)),
        ("/v2/health/live", get(|| async { Json(json!({ "live": true })) })),
        ("/v2/health/ready", get(ready)),
        ("/v2/models/{name}", get(metadata)),
        ("/v2/models/{name}/versions/{version}", get(metadata)),
        ("/v2/models/{name}/ready", get(model_ready)),
        ("/v2/models/{name}/versions/{version}/ready", get(model_ready)),
        ("/v2/models/{name}/infer", post(infer::infer)),
        ("/v2/models/{name}/versions/{version}/infer", post(infer::infer)),
        ("/v2/repository/index", post(index)),
    ]
}

/// The name and, where the address has one, the version of a model.
type Named = Path<BTreeMap<String, String>>;

fn find(server: &Server, Path(address): &Named) -> Result<std::sync::Arc<Served>, Failure> {
    let name = address.get("name").map_or("", String::as_str);
    server.catalogue.find(name, address.get("version").map(String::as_str))
}

async fn server() -> Json<Value> {
    let version = env!("CARGO_PKG_VERSION");
    Json(json!({ "name": "lamo", "version": version, "extensions": ["binary_tensor_data", "model_repository"] }))
}

async fn ready(State(server): State<Server>) -> Response {
    let ready = server.is_ready();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({ "ready": ready }))).into_response()
}

async fn model_ready(State(server): State<Server>, address: Named) -> Result<Response, Failure> {
    let served = find(&server, &address)?;
    let ready = served.engine.is_ready();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok((status, Json(json!({ "name": served.name, "ready": ready }))).into_response())
}

async fn metadata(State(server): State<Server>, address: Named) -> Result<Json<Value>, Failure> {
    let served = find(&server, &address)?;
    let operator = served.model.operator();
    let tensors = |fields: &[Field]| -> Vec<Value> {
        let tensor = |field: &Field| json!({ "name": field.name, "datatype": "FP32", "shape": shape(field, operator.task.grid) });
        fields.iter().map(tensor).collect()
    };
    Ok(Json(json!({
        "name": served.name,
        "versions": server.catalogue.versions(&served.name),
        "platform": format!("lamo_{}", operator.model.name),
        "inputs": tensors(&operator.task.given_fields()),
        "outputs": tensors(&operator.task.predicted_fields()),
    })))
}

/// The axes of a field, samples first; -1 where any number is allowed.
fn shape(field: &Field, grid: Grid) -> Vec<i64> {
    let mut shape: Vec<i64> = field.shape(grid).iter().map(|&extent| extent as i64).collect();
    if let (Grid::Cloud { .. }, Spread::Points) = (grid, field.spread) {
        shape[usize::from(field.snapshots.is_some())] = -1;
    }
    [-1].into_iter().chain(shape).collect()
}

async fn index(State(server): State<Server>) -> Json<Value> {
    let row = |served: &std::sync::Arc<Served>| {
        let state = if served.engine.is_ready() { "READY" } else { "LOADING" };
        json!({ "name": served.name, "version": served.version, "state": state, "reason": "" })
    };
    Json(server.catalogue.all().iter().map(row).collect())
}
