//! `lamo serve`: models over HTTP.

use crate::commands::stop::stop_on_signal;
use crate::commands::{say, start_threads, warn};
use crate::text::bytes;
use anyhow::Result;
use clap::Args;
use lamo::Device;
use lamo::error::Refusal;
use lamo_serve::{Limits, Record, Server, Settings, Sink, Source};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// `lamo serve`
#[derive(Args)]
pub(crate) struct Serve {
    /// The models: run folders, checkpoints, model folders or names of pretrained models, as for lamo predict. PATH has the name
    /// of its folder and version 1; NAME=PATH and NAME=PATH@VERSION say others.
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<String>,
    /// Port to listen on; 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 8080)]
    port: u16,
    /// Address to listen on. With another one than this machine's own, such as 0.0.0.0, other machines can ask.
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    /// Take only requests with the header Authorization: Bearer TOKEN. Health and the files of the page stay open. The variable
    /// LAMO_TOKEN sets it, too, and does not show in the list of processes.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: Device,
    /// Samples of concurrent requests that are computed at a time, at most.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Compiled programs that each model keeps, one for each grid and batch size.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    programs: u32,
    /// Bytes of a request's body at most, packed and unpacked, such as 64MB.
    #[arg(long, value_name = "BYTES", default_value = "64MB", value_parser = bytes)]
    max_body: u64,
    /// Points of all samples of a request at most, those of each predicted time counted.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_points: usize,
    /// Requests that are read, wait or are computed at the same time; more are refused with 503.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: u32,
    /// Seconds from the headers of a request to its answer, at most.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    timeout: f64,
    /// Seconds that a stop waits for the requests that run.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    grace: f64,
    /// Number of threads; one per core unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// What is written to standard error for each request: a line of text, a JSON object, or nothing.
    #[arg(long, value_name = "KIND", default_value = "text", value_parser = ["text", "json", "off"])]
    log: String,
}

pub(crate) fn run(options: &Serve) -> Result<()> {
    let token = options.token.clone().or_else(|| std::env::var("LAMO_TOKEN").ok()).filter(|token| !token.is_empty());
    let address = resolved(&options.host, options.port)?;
    if token.is_none() && !is_local(address.ip()) {
        warn(&format!(
            "warning: {} can be reached from other machines and asks for no token; say --token TOKEN, or --host 127.0.0.1",
            address.ip()
        ));
    }
    let sources = options.models.iter().map(|text| Source::parse(text)).collect::<Result<Vec<_>, _>>()?;
    start_threads(options.threads)?;
    let cancel = stop_on_signal("the requests that run")?;
    let server = Server::start(&sources, settings(options, address, token))?;
    let names: Vec<String> =
        sources.iter().map(|source| format!("{} version {}", source.name, source.version)).collect();
    say(&format!("serving {} at http://{}", names.join(", "), server.address()))?;
    while !cancel.is_cancelled() {
        std::thread::sleep(Duration::from_millis(50));
    }
    if !server.stop() {
        warn(&format!("some requests were not answered within {} s, the time of --grace", options.grace));
    }
    Ok(())
}

fn settings(options: &Serve, address: SocketAddr, token: Option<String>) -> Settings {
    let log = match options.log.as_str() {
        "json" => Sink::new(|record: &Record| warn(&record.json())),
        "text" => Sink::new(|record: &Record| warn(&record.text())),
        _ => Sink::none(),
    };
    let limits = Limits {
        body: usize::try_from(options.max_body).unwrap_or(usize::MAX),
        points: options.max_points,
        concurrency: options.concurrency as usize,
        time: Duration::from_secs_f64(options.timeout),
        grace: Duration::from_secs_f64(options.grace),
        ..Limits::default()
    };
    let (batch, programs) = (options.batch as usize, options.programs as usize);
    Settings { address, token, device: options.device, batch, programs, limits, log }
}

/// The first address of a host.
fn resolved(host: &str, port: u16) -> Result<SocketAddr, Refusal> {
    let unknown = |found: String| Refusal::new("--host", "an address of this machine, such as 127.0.0.1", found);
    let addresses = (host, port).to_socket_addrs().map_err(|reason| unknown(format!("{host} ({reason})")))?;
    addresses.into_iter().next().ok_or_else(|| unknown(host.to_owned()))
}

fn is_local(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// A time of more than 0 seconds and less than a day.
fn seconds(text: &str) -> Result<f64, String> {
    let found = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= 86_400.0);
    found.ok_or_else(|| format!("expected seconds above 0, at most a day, found `{text}`"))
}
