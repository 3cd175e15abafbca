//! `GET /v1/models/NAME/samples/K`: test sample K as an npz file that can be sent to `predict` as it is.
//!
//! It holds `positions`, each input field by its name, the truth of each output by its name (or `NAME_truth` where an
//! input has the same name, as in a time series that is continued), and `triangles` `[count, 3]` where cells are known.

use super::arrays::Format;
use super::aside;
use crate::catalogue::Served;
use crate::failure::Failure;
use crate::router::{Server, Timed};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use lamo::Samples;
use lamo::data::formats;
use lamo::workflow::TestSet;
use std::sync::{Arc, PoisonError};

pub(super) async fn sample(
    State(server): State<Server>,
    Extension(timed): Extension<Timed>,
    Path((name, number)): Path<(String, String)>,
) -> Result<Response, Failure> {
    let served = server.catalogue.find(&name, None)?;
    let bytes = aside(timed, move || encoded(&served, &number)).await?;
    Ok(([(header::CONTENT_TYPE, Format::Npz.content_type())], bytes).into_response())
}

fn encoded(served: &Arc<Served>, number: &str) -> Result<Vec<u8>, Failure> {
    let test = served
        .test
        .as_ref()
        .map_err(|reason| Failure::missing(format!("the test samples of {} are not at hand: {reason}", served.name)))?;
    let missing = || {
        let most = test.count().saturating_sub(1);
        Failure::missing(format!("sample: expected a number from 0 to {most}, found {number}"))
    };
    let number = number.parse::<usize>().ok().filter(|number| *number < test.count()).ok_or_else(missing)?;
    let sample = test.one(&*all(served, test)?, number).map_err(|error| Failure::of(&error))?;
    let arrays = sample.arrays(served.task());
    formats::encode("sample.npz".as_ref(), &arrays).map_err(|error| Failure::of(&error.into()))
}

/// All test samples, read when first asked for. A failure is not kept: the next request reads again.
fn all(served: &Served, test: &TestSet) -> Result<Arc<Samples>, Failure> {
    let mut known = served.samples.lock().unwrap_or_else(PoisonError::into_inner);
    let samples = match known.take() {
        Some(samples) => samples,
        None => Arc::new(test.samples().map_err(|error| Failure::of(&error))?),
    };
    Ok(Arc::clone(known.insert(samples)))
}
