//! All routes, and what surrounds every request: its time limit, the token, the number of requests at a time, the log.

use crate::catalogue::Catalogue;
use crate::engine::Answer;
use crate::failure::Failure;
use crate::log::Record;
use crate::metrics::{self, Metrics};
use crate::settings::Settings;
use crate::{open_inference, own, page};
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::FutureExt;
use http_body::Body as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Server(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) catalogue: Catalogue,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) stopping: AtomicBool,
    places: Arc<Semaphore>,
}

impl std::ops::Deref for Server {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Server {
    pub(crate) fn new(catalogue: Catalogue, settings: Settings, metrics: Metrics) -> Server {
        let places = Arc::new(Semaphore::new(settings.limits.concurrency.max(1)));
        Server(Arc::new(Shared { catalogue, settings, metrics, stopping: AtomicBool::new(false), places }))
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.stopping.load(Ordering::Acquire) && self.catalogue.is_ready()
    }
}

/// When a request began and must be answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
}

impl Timed {
    pub(crate) fn new(time: Duration) -> Timed {
        let started = Instant::now();
        Timed { started, deadline: started + time }
    }

    pub(crate) fn too_late(self) -> Failure {
        let seconds = (self.deadline - self.started).as_secs_f64();
        Failure::new(
            StatusCode::GATEWAY_TIMEOUT,
            format!("the answer was not ready within {seconds} s, the time limit of a request"),
        )
    }
}

/// Bytes of the body that were received.
#[derive(Clone, Default)]
pub(crate) struct Received(pub(crate) Arc<AtomicU64>);

/// How an answer was computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Computed {
    batch: usize,
    elapsed: Duration,
}

impl Computed {
    pub(crate) fn of(answer: &Answer) -> Computed {
        Computed { batch: answer.batch, elapsed: answer.elapsed }
    }
}

/// The sentence of a failure, for the log.
#[derive(Clone)]
pub(crate) struct Sentence(pub(crate) String);

/// All routes.
pub(crate) fn router(server: &Server) -> Router {
    let mut router = Router::new().route("/metrics", get(openmetrics));
    for (path, routes) in own::routes().into_iter().chain(open_inference::routes()) {
        router = router.route(path, routes);
    }
    for file in page::FILES {
        router = router.route(file.path, get(|| async { page::answer(file) }));
    }
    router
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(server.clone(), around))
        .with_state(server.clone())
}

async fn unknown(request: Request) -> Failure {
    let path = request.uri().path();
    Failure::missing(format!(
        "there is no {path}; /v1/models lists the models, / is the page, /v2 the Open Inference Protocol"
    ))
}

async fn wrong_method(request: Request) -> Failure {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let sentence = format!("{path} does not take {method}; predictions are asked for by POST, everything else by GET");
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, sentence)
}

async fn openmetrics(State(server): State<Server>) -> Result<Response, Failure> {
    let text = server.metrics.text().map_err(|_| Failure::internal("the metrics cannot be written"))?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

/// Logs and counts a request when it ends, also one whose client went away before the answer.
struct Watched {
    server: Server,
    record: Record,
    route: String,
    started: Instant,
    received: Received,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let Watched { server, record, route, .. } = self;
        record.elapsed = self.started.elapsed();
        record.received = self.received.0.load(Ordering::Relaxed);
        server.metrics.answered(&record.method, route, record.status, record.elapsed);
        server.settings.log.take(record);
    }
}

/// Status in the log of a request whose client went away; no answer has it.
const GONE: u16 = 499;

/// Everything that surrounds the handler of a request.
async fn around(State(server): State<Server>, mut request: Request, next: Next) -> Response {
    let timed = Timed::new(server.settings.limits.time);
    let received = Received::default();
    let route =
        request.extensions().get::<MatchedPath>().map_or_else(|| "other".to_owned(), |path| path.as_str().to_owned());
    let mut watched = Watched {
        record: Record {
            time: SystemTime::now(),
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            status: GONE,
            elapsed: Duration::ZERO,
            batch: None,
            received: 0,
            sent: 0,
            error: None,
        },
        route,
        started: timed.started,
        received: received.clone(),
        server: server.clone(),
    };
    request.extensions_mut().insert(timed);
    request.extensions_mut().insert(received);
    let mut response = answer(&server, &watched.route, request, next).await;
    if response.status() == StatusCode::BAD_REQUEST && response.extensions().get::<Sentence>().is_none() {
        // The framework's own refusal, of a name that it cannot read.
        response = Failure::bad("the address: expected names in UTF-8, found other bytes").into_response();
    }
    let computed = response.extensions().get::<Computed>().copied();
    if let Some(Computed { elapsed, .. }) = computed {
        let text = format!("compute;dur={:.3}", elapsed.as_secs_f64() * 1e3);
        HeaderValue::try_from(text)
            .into_iter()
            .for_each(|value| drop(response.headers_mut().insert("server-timing", value)));
    }
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    let record = &mut watched.record;
    record.status = response.status().as_u16();
    record.batch = computed.map(|computed| computed.batch);
    record.sent = response.body().size_hint().exact().unwrap_or(0);
    record.error = response.extensions().get::<Sentence>().map(|sentence| sentence.0.clone());
    response
}

/// The answer of the handler, if the request may have one.
async fn answer(server: &Server, route: &str, request: Request, next: Next) -> Response {
    if let Err(failure) = authorise(server, route, &request) {
        return failure.into_response();
    }
    let heavy = request.method() == Method::POST || route.contains("/samples/");
    let Ok(place) = heavy.then(|| Arc::clone(&server.places).try_acquire_owned()).transpose() else {
        let most = server.settings.limits.concurrency;
        let sentence = format!("the server works on {most} requests, as many as it takes; try again");
        return Failure::unavailable(sentence).into_response();
    };
    let count =
        || server.metrics.in_work(server.settings.limits.concurrency.max(1) - server.places.available_permits());
    count();
    // Dropping the future, when the client goes away, frees the place.
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    drop(place);
    count();
    answered.unwrap_or_else(|_| Failure::internal("the request failed by an error of the server").into_response())
}

/// Refuses a request without the token. Health is open to probes, and the page, which asks for the token, to browsers.
fn authorise(server: &Server, route: &str, request: &Request) -> Result<(), Failure> {
    let Some(token) = &server.settings.token else { return Ok(()) };
    let open = route.starts_with("/v2/health/") || page::FILES.iter().any(|file| file.path == route);
    let given = request.headers().get(header::AUTHORIZATION).map_or(&[][..], HeaderValue::as_bytes);
    let given = given.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
    let right = given.is_some_and(|(_, given)| bool::from(given.ct_eq(token.as_bytes())));
    if open || right {
        return Ok(());
    }
    let sentence = "this server needs a token: send the header Authorization: Bearer TOKEN";
    Err(Failure::new(StatusCode::UNAUTHORIZED, sentence))
}
