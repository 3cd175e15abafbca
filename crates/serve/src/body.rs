//! Reads the body of a request within its limits: bytes, and the time of the request.

use crate::failure::Failure;
use crate::router::{Received, Server, Timed};
use axum::body::Body as Stream;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the rest of a body that is too large is read and dropped, so that the client sees the answer before the
/// connection is closed.
const DRAIN: Duration = Duration::from_secs(1);

/// The content type of a form: curl and wget say it of any file, and no route takes forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// The content type that the client says, in lower case and without parameters; `None` where it says nothing about the body.
pub(crate) fn content_type(headers: &HeaderMap) -> Option<String> {
    let said = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or("other bytes");
    let plain = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    Some(plain).filter(|plain| !["", FORM, "application/octet-stream"].contains(&plain.as_str()))
}

/// The whole body.
pub(crate) struct Body(pub(crate) Bytes);

impl FromRequest<Server> for Body {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &Server) -> Result<Body, Failure> {
        let most = server.settings.limits.body;
        let (parts, stream) = request.into_parts();
        let timed = parts.extensions.get::<Timed>().copied().unwrap_or_else(|| Timed::new(server.settings.limits.time));
        let promised =
            parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let read = match promised.filter(|promised| *promised > most as u64) {
            Some(promised) => {
                drain(stream, most).await;
                Err(too_large(most, Some(promised)))
            }
            None => match tokio::time::timeout_at(timed.deadline.into(), collect(stream, most)).await {
                Ok(read) => read,
                Err(_) => Err(Failure::new(
                    StatusCode::REQUEST_TIMEOUT,
                    "the body did not arrive within the time limit of a request",
                )),
            },
        };
        let body = read?;
        if let Some(received) = parts.extensions.get::<Received>() {
            received.0.store(body.len() as u64, Ordering::Relaxed);
        }
        Ok(Body(body))
    }
}

fn too_large(most: usize, found: Option<u64>) -> Failure {
    let found = found.map_or_else(|| "more".to_owned(), |found| found.to_string());
    Failure::too_large(format!(
        "the body: expected at most {most} bytes, found {found}; raise --max-body to allow more"
    ))
}

async fn collect(mut stream: Stream, most: usize) -> Result<Bytes, Failure> {
    let mut body = BytesMut::new();
    while let Some(frame) = stream.frame().await {
        let frame = frame.map_err(|reason| Failure::bad(format!("the body cannot be read: {reason}")))?;
        let Ok(data) = frame.into_data() else { continue }; // trailers
        if body.len() + data.len() > most {
            drain(stream, most).await;
            return Err(too_large(most, None));
        }
        body.extend_from_slice(&data);
    }
    Ok(body.freeze())
}

/// Reads on for a moment and drops what comes.
async fn drain(mut stream: Stream, most: usize) {
    let until = Instant::now() + DRAIN;
    let mut left = most.max(1 << 20);
    while let Ok(Some(Ok(frame))) = tokio::time::timeout_at(until.into(), stream.frame()).await {
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        if left == 0 {
            return;
        }
    }
}
