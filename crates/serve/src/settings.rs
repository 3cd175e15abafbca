//! How a server behaves: where it listens, who may ask, and how much it takes at a time.

use crate::log::Sink;
use lamo::Device;
use std::net::SocketAddr;
use std::time::Duration;

/// How a server behaves.
#[derive(Clone)]
pub struct Settings {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// What requests must bring as `Authorization: Bearer TOKEN`; health and the page's own files are open.
    pub token: Option<String>,
    /// Where to compute.
    pub device: Device,
    /// Samples that are computed at a time.
    pub batch: usize,
    /// Compiled programs that each model keeps: one for each grid and batch size, the last used ones.
    pub programs: usize,
    /// What a request may take.
    pub limits: Limits,
    /// Takes one record for each request.
    pub log: Sink,
}

impl Settings {
    /// The defaults: the CPU, no token, no log, any port of the loopback.
    pub fn local() -> Settings {
        Settings {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: None,
            device: Device::Cpu,
            batch: 8,
            programs: 8,
            limits: Limits::default(),
            log: Sink::none(),
        }
    }
}

/// What a request may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a body, and of its arrays and meshes when they are unpacked.
    pub body: usize,
    /// Points of all samples of a request together, at all times of a series.
    pub points: usize,
    /// Requests that are read, wait or are computed at the same time.
    pub concurrency: usize,
    /// Open connections; more wait until one is closed.
    pub connections: usize,
    /// From the first byte of a request to the end of its headers; an idle connection is closed after the same time.
    pub headers: Duration,
    /// From the end of the headers to the answer; a client that takes nothing of its answer for so long is cut off.
    pub time: Duration,
    /// How long a stop waits for requests that run.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body: 64_000_000,
            points: 1_000_000,
            concurrency: 64,
            connections: 1024,
            headers: Duration::from_secs(10),
            time: Duration::from_secs(60),
            grace: Duration::from_secs(10),
        }
    }
}
