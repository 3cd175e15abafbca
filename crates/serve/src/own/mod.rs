//! The routes of our own below `/v1/models`: cards, predictions of files, test samples, true solutions.

mod arrays;
mod predict;
mod query;
mod samples;
pub(crate) mod solver;

pub(crate) use predict::{fields, noted, notes, within};
pub(crate) use query::frames;

use crate::failure::Failure;
use crate::router::{Server, Timed};
use axum::Json;
use axum::extract::{Path, State};
use axum::routing::{MethodRouter, get, post};
use serde_json::{Value, json};

/// The routes.
pub(crate) fn routes() -> [(&'static str, MethodRouter<Server>); 5] {
    [
        ("/v1/models", get(models)),
        ("/v1/models/{name}", get(model)),
        ("/v1/models/{name}/predict", post(predict::predict)),
        ("/v1/models/{name}/samples/{number}", get(samples::sample)),
        ("/v1/models/{name}/solve", post(solver::solve)),
    ]
}

async fn models(State(server): State<Server>) -> Json<Value> {
    let cards: Vec<&Value> = server.catalogue.all().iter().map(|served| &served.card).collect();
    Json(json!({ "models": cards }))
}

async fn model(State(server): State<Server>, Path(name): Path<String>) -> Result<Json<Value>, Failure> {
    Ok(Json(server.catalogue.find(&name, None)?.card.clone()))
}

/// Runs work that takes a while beside the threads that serve connections, within the time of the request.
pub(crate) async fn aside<T: Send + 'static>(
    timed: Timed,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::time::timeout_at(timed.deadline.into(), tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => Err(Failure::internal("the request broke off by a failure of the server; it was not answered")),
        Err(_) => Err(timed.too_late()),
    }
}
