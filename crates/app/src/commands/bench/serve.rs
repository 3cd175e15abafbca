//! `lamo bench serve`: how many predictions a server answers, one request at a time and with many clients, and how long each
//! waits. Every answer is compared with that of a request by itself.

use crate::commands::{say, start_threads};
use crate::text::memory;
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::Device;
use lamo::data::formats::{self, Named};
use lamo::error::Refusal;
use lamo_serve::{Server, Settings, Source, resident_memory};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// `lamo bench serve`
#[derive(Args)]
pub(crate) struct Serve {
    /// The model, as for lamo serve; its server runs in this process.
    #[arg(default_value = "darcy", value_name = "MODEL")]
    model: String,
    /// A server on this machine that runs already, such as http://127.0.0.1:8080; MODEL is then the name of its model.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Clients that ask at the same time, each one request after another.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    clients: u16,
    /// Seconds that one client asks, and that all clients ask.
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Samples that are computed at a time, at most.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: Device,
    /// Number of threads; one per core unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Print one JSON object on standard output.
    #[arg(long)]
    pub(super) json: bool,
}

/// What some clients measured.
#[derive(Serialize)]
struct Measured {
    clients: usize,
    requests: usize,
    /// Answers with another status than 200, other bits, or no answer.
    errors: usize,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    worst_ms: f64,
    memory_before: Option<u64>,
    memory_after: Option<u64>,
}

/// A request and the answer that it must get.
struct Exchange {
    request: Vec<u8>,
    expected: Vec<u8>,
}

pub(crate) fn run(options: &Serve) -> Result<()> {
    if !(options.seconds > 0.0 && options.seconds <= 86_400.0) {
        return Err(Refusal::new("--seconds", "a time above 0, at most a day", options.seconds.to_string()).into());
    }
    let (address, name, server) = match &options.url {
        Some(url) => (loopback(url)?, options.model.clone(), None),
        None => {
            start_threads(options.threads)?;
            let source = Source::parse(&options.model)?;
            let name = source.name.clone();
            let mut settings = Settings { device: options.device, batch: options.batch as usize, ..Settings::local() };
            settings.limits.concurrency = settings.limits.concurrency.max(2 * usize::from(options.clients));
            let server = Server::start(&[source], settings)?;
            while !server.is_ready() {
                std::thread::sleep(Duration::from_millis(20));
            }
            (server.address(), name, Some(server))
        }
    };
    let exchanges = exchanges(address, &name)?;
    let time = Duration::from_secs_f64(options.seconds);
    let one = measure(address, &exchanges, 1, time);
    let all = measure(address, &exchanges, usize::from(options.clients), time);
    drop(server);
    let gain = all.per_second / one.per_second;
    let spread = all.p99_ms / all.p50_ms;
    if options.json {
        say(&json!({ "model": name, "one": one, "all": all, "gain": gain, "p99_over_p50": spread }).to_string())?;
    } else {
        for measured in [&one, &all] {
            say(&line(measured))?;
        }
        say(&format!("throughput {gain:.2} times that of one client, p99 {spread:.2} times p50"))?;
    }
    match one.errors + all.errors {
        0 => Ok(()),
        errors => bail!("{errors} requests had no answer, or another one than by themselves"),
    }
}

fn line(measured: &Measured) -> String {
    let Measured { clients, requests, errors, per_second, p50_ms, p99_ms, worst_ms, memory_before, memory_after } =
        measured;
    let bytes = |bytes: &Option<u64>| memory(bytes.map(|bytes| bytes as usize));
    format!(
        "{clients} client{}: {requests} requests, {errors} errors, {per_second:.1} per second, p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms, \
         worst {worst_ms:.1} ms, memory {} before, {} after",
        if *clients == 1 { "" } else { "s" },
        bytes(memory_before),
        bytes(memory_after),
    )
}

/// The address of a server on this machine; a load test asks no other.
fn loopback(url: &str) -> Result<SocketAddr> {
    let refused = || Refusal::new("--url", "a server on this machine, such as http://127.0.0.1:8080", url);
    let host = url.strip_prefix("http://").ok_or_else(refused)?.trim_end_matches('/');
    let address = host.to_socket_addrs().ok().and_then(|mut all| all.next()).ok_or_else(refused)?;
    if address.ip().is_loopback() { Ok(address) } else { Err(refused().into()) }
}

/// Four different requests for one sample each, with the answers they get one by one.
fn exchanges(address: SocketAddr, name: &str) -> Result<Vec<Exchange>> {
    let mut client = Client::connect(address)?;
    let mut about = |path: String| -> Result<Value> {
        let (status, body) = client.ask(format!("GET {path} HTTP/1.1\r\nHost: lamo\r\n\r\n").as_bytes())?;
        if status != 200 {
            bail!("{path}: the server answers {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice(&body)?)
    };
    let (card, metadata) = (about(format!("/v1/models/{name}"))?, about(format!("/v2/models/{name}"))?);
    let points = card["grid"]["points"].as_u64().unwrap_or(1);
    let mut exchanges = Vec::new();
    for seed in 0..4 {
        let arrays: Vec<Named> =
            metadata["inputs"].as_array().into_iter().flatten().map(|input| synthetic(input, points, seed)).collect();
        let body = formats::encode("sample.npz".as_ref(), &arrays)?;
        let head = format!(
            "POST /v1/models/{name}/predict HTTP/1.1\r\nHost: lamo\r\nContent-Type: application/x-npz\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let request = [head.as_bytes(), &body].concat();
        let (status, expected) = client.ask(&request)?;
        if status != 200 {
            bail!("the server answers {status}: {}", String::from_utf8_lossy(&expected));
        }
        exchanges.push(Exchange { request, expected });
    }
    Ok(exchanges)
}

/// One sample of an input: waves, or the two values of a permeability.
fn synthetic(input: &Value, points: u64, seed: usize) -> Named {
    let name = input["name"].as_str().unwrap_or_default();
    let extents = input["shape"].as_array().into_iter().flatten().skip(1); // without the axis of samples
    let shape: Vec<usize> = extents.map(|extent| extent.as_u64().unwrap_or(points) as usize).collect();
    let wave = |index: usize| (0.37 * index as f32 + 1.3 * seed as f32).sin();
    let value = |index: usize| match name {
        "permeability" if wave(index / 7) > 0.0 => 12.0,
        "permeability" => 3.0,
        _ => 0.5 + 0.4 * wave(index),
    };
    let values = (0..shape.iter().product()).map(value).collect();
    Named { name: name.to_owned(), shape, values }
}

/// Clients that ask for a time.
fn measure(address: SocketAddr, exchanges: &[Exchange], clients: usize, time: Duration) -> Measured {
    let memory_before = resident_memory();
    let errors = AtomicUsize::new(0);
    let started = Instant::now();
    let mut times: Vec<f64> = std::thread::scope(|scope| {
        let client = |number: usize| {
            let errors = &errors;
            move || ask_on(address, exchanges, number, started + time, errors)
        };
        let asking: Vec<_> = (0..clients).map(|number| scope.spawn(client(number))).collect();
        asking.into_iter().flat_map(|client| client.join().unwrap_or_default()).collect()
    });
    let elapsed = started.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    let at =
        |share: f64| times.get((share * times.len() as f64) as usize).or(times.last()).copied().unwrap_or(f64::NAN);
    Measured {
        clients,
        requests: times.len(),
        errors: errors.load(Ordering::Relaxed),
        per_second: times.len() as f64 / elapsed,
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        worst_ms: at(1.0),
        memory_before,
        memory_after: resident_memory(),
    }
}

/// The milliseconds of the requests of one client.
fn ask_on(
    address: SocketAddr,
    exchanges: &[Exchange],
    number: usize,
    until: Instant,
    errors: &AtomicUsize,
) -> Vec<f64> {
    let mut times = Vec::new();
    let mut client = None;
    for exchange in exchanges.iter().cycle().skip(number % exchanges.len()) {
        if Instant::now() >= until {
            break;
        }
        let started = Instant::now();
        let connected = client.take().map_or_else(|| Client::connect(address), Ok);
        let answered = connected.and_then(|mut client| client.ask(&exchange.request).map(|answer| (client, answer)));
        match answered {
            Ok((kept, (200, body))) if body == exchange.expected => {
                times.push(started.elapsed().as_secs_f64() * 1e3);
                client = Some(kept);
            }
            _ => drop(errors.fetch_add(1, Ordering::Relaxed)),
        }
    }
    times
}

/// A connection that stays open.
struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn connect(address: SocketAddr) -> Result<Client> {
        let stream = TcpStream::connect(address).with_context(|| format!("{address} cannot be reached"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// Sends a request; the status and the body of the answer.
    fn ask(&mut self, request: &[u8]) -> Result<(u16, Vec<u8>)> {
        self.stream.get_mut().write_all(request)?;
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                bail!("the server closed the connection");
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(text) = line.strip_prefix("http/1.1 ") {
                status = text.split(' ').next().unwrap_or_default().parse()?;
            } else if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse()?;
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, body))
    }
}
