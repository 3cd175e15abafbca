//! The server: listens, serves connections, stops.

use crate::catalogue::{Catalogue, Source};
use crate::metrics::Metrics;
use crate::router::{self, router};
use crate::settings::{Limits, Settings};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lamo::error::Refusal;
use lamo::{Error, Kind};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;

/// What a request gets whose headers do not arrive in time.
fn slow() -> String {
    let body = r#"{"error":"the headers of the request did not arrive in time"}"#;
    let head = "HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\nconnection: close";
    format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Bytes of the headers of a request at most.
const HEADERS: usize = 64 << 10;

/// A running server.
pub struct Server {
    address: SocketAddr,
    grace: Duration,
    state: router::Server,
    stop: watch::Sender<bool>,
    /// `None` once it has stopped.
    runtime: Option<Runtime>,
    serving: Option<tokio::task::JoinHandle<()>>,
}

impl Server {
    /// Opens the models, compiles their programs in the background and listens.
    pub fn start(sources: &[Source], settings: Settings) -> Result<Server, Error> {
        let (address, limits) = (settings.address, settings.limits);
        let metrics = Metrics::new();
        let catalogue = Catalogue::open(sources, &settings, &metrics)?;
        let failed = |reason: std::io::Error| {
            Refusal::said(format!("the server cannot be started: {reason}")).of(Kind::Internal)
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, 4);
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(threads).enable_all().thread_name("http").build().map_err(failed)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(|reason| {
            Refusal::about(address.to_string(), format!("the server cannot listen there: {reason}"))
                .advise("choose another --port or --host")
                .of(Kind::Conflict)
        })?;
        let address = listener.local_addr().map_err(failed)?;
        let state = router::Server::new(catalogue, settings, metrics);
        let (stop, stopped) = watch::channel(false);
        let serving = runtime.spawn(serve(listener, router(&state), limits, stopped));
        Ok(Server { address, grace: limits.grace, state, stop, runtime: Some(runtime), serving: Some(serving) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether all models have compiled their programs.
    pub fn is_ready(&self) -> bool {
        self.state.is_ready()
    }

    /// Takes no more requests, answers those that run, and ends; after the time of grace it ends in any case. Whether all
    /// requests were answered.
    pub fn stop(mut self) -> bool {
        self.end()
    }

    fn end(&mut self) -> bool {
        let (Some(runtime), Some(serving)) = (self.runtime.take(), self.serving.take()) else { return true };
        self.state.stopping.store(true, Ordering::Release);
        let _ = self.stop.send(true); // the task that listens may have ended
        let grace = self.grace;
        let done = runtime.block_on(async { tokio::time::timeout(grace, serving).await.is_ok() });
        self.state.catalogue.stop();
        runtime.shutdown_timeout(Duration::from_millis(100));
        done
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Accepts connections until it is told to stop, then waits for those that are open.
async fn serve(listener: TcpListener, router: Router, limits: Limits, mut stopped: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(limits.connections.max(1)));
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            () = told(&mut stopped) => break,
            _ = connections.join_next(), if !connections.is_empty() => {}
            (place, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    let (router, stopped) = (router.clone(), stopped.clone());
                    connections.spawn(async move {
                        connection(stream, router, limits, stopped).await;
                        drop(place);
                    });
                }
                // Too many open files, or a client that left while it was accepted: others are served meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits until the server is told to stop.
async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await; // a server that is gone has stopped, too
}

/// Serves one connection to its end.
async fn connection(stream: TcpStream, router: Router, limits: Limits, mut stopped: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true); // a small answer does not wait for more
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.time)); // a client that does not read its answer holds no connection for ever
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .max_buf_size(HEADERS)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router));
    let mut stopping = false;
    let ended = loop {
        tokio::select! {
            ended = poll_fn(|context| connection.poll_without_shutdown(context)) => break ended,
            () = told(&mut stopped), if !stopping => {
                stopping = true;
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner();
    // A client that has sent the start of a request is told; an idle connection is closed without a word.
    if ended.is_err_and(|error| error.is_timeout()) && !parts.read_buf.is_empty() {
        let _ = stream.write_all(slow().as_bytes()).await;
    }
    let _ = stream.shutdown().await;
}
