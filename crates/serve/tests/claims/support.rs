//! Tiny models, servers and a client that speaks HTTP by itself, so that it can also send what no client library would.

use lamo::Device;
use lamo::data::formats::{self, Named};
use lamo::data::import::MeshCases;
use lamo::workflow::{MakeRequest, PredictRequest, Session, TrainRequest, make, predict, predict_meshes, train};
use lamo_serve::{Record, Server, Settings, Sink, Source};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

/// Tiny runs, made once for all claims: permeability to pressure on 12 x 12 points, a cloud to its stress, a time series.
pub(crate) struct Runs {
    pub(crate) darcy: PathBuf,
    pub(crate) cloud: PathBuf,
    pub(crate) series: PathBuf,
}

pub(crate) static RUNS: LazyLock<Runs> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve-claims");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let tiny = "model.settings={ width = 32, depth = 1, mlp_ratio = 1, states = 4 }";
    let cloud = "model.settings={ width = 32, depth = 1, mlp_ratio = 1, states = 4, tokens = 8 }";
    let plain = ["resolution=24", "stride=2"];
    Runs {
        darcy: trained(&folder, "darcy", &plain, &[tiny]),
        cloud: trained(&folder, "elasticity", &["around=12", "layers=2"], &[cloud]),
        series: trained(
            &folder,
            "navier-stokes",
            &["resolution=32", "stride=2", "frames=4", "interval=0.1", "viscosity=1e-3"],
            &[tiny, "data.past=2"],
        ),
    }
});

fn trained(folder: &Path, problem: &str, settings: &[&str], changes: &[&str]) -> PathBuf {
    let (data, out) = (folder.join(format!("{problem}-data")), folder.join(format!("{problem}-run")));
    let settings = settings.iter().map(|&text| text.to_owned()).collect();
    let request = MakeRequest { problem: problem.into(), changes: settings, seed: 0, samples: 10, out: data.clone() };
    make(&request, &Session::default()).unwrap();
    let sizes = ["train.epochs=1", "train.batch=4", "data.train=8", "data.test=2", "data.validation=0"];
    let request = TrainRequest {
        changes: changes.iter().chain(&sizes).map(|&text| text.to_owned()).collect(),
        preset: Some(lamo::Preset::Quick),
        model: Some("lamo".into()),
        data: Some(data),
        out: Some(out.clone()),
        ..TrainRequest::new(problem)
    };
    train(&request, &Session::default()).unwrap();
    out
}

/// The records of a server.
pub(crate) type Records = Arc<Mutex<Vec<Record>>>;

/// A server of the tiny models; `change` sets what a claim is about.
pub(crate) fn server(change: impl FnOnce(&mut Settings)) -> (Server, Records) {
    let Runs { darcy, cloud, series } = &*RUNS;
    let source = |name: &str, path: &Path| Source { name: name.into(), version: "1".into(), path: path.to_owned() };
    let sources = [source("plane", darcy), source("cloud", cloud), source("series", series)];
    start(&sources, change)
}

pub(crate) fn start(sources: &[Source], change: impl FnOnce(&mut Settings)) -> (Server, Records) {
    let records = Records::default();
    let own = Arc::clone(&records);
    let log = Sink::new(move |record: &Record| own.lock().unwrap().push(record.clone()));
    let mut settings = Settings { log, ..Settings::local() };
    change(&mut settings);
    let server = Server::start(sources, settings).unwrap();
    wait(|| server.is_ready());
    (server, records)
}

/// Waits until something holds.
pub(crate) fn wait(holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(120), "it did not come to hold within two minutes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let own = |line: &&str| line.split(':').next().is_some_and(|own| own.eq_ignore_ascii_case(name));
        self.head.lines().find(own).and_then(|line| Some(line.split_once(':')?.1.trim()))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The sentence of a failure with a status.
    pub(crate) fn fails(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.text());
        let sentence =
            self.json()["error"].as_str().unwrap_or_else(|| panic!("no error in {}", self.text())).to_owned();
        assert!(!sentence.contains('\n') && sentence.len() > 5, "{sentence}");
        sentence
    }

    pub(crate) fn ok(&self) -> &[u8] {
        assert_eq!(self.status, 200, "{}\n{}", self.head, self.text());
        &self.body
    }
}

/// Sends bytes as they are and reads the answer to the end of the connection.
pub(crate) fn raw(address: SocketAddr, bytes: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let _ = stream.write_all(bytes); // a server that refuses early may close before all is sent
    answer(&mut stream)
}

/// Reads an answer: its head, and a body as long as the head says.
pub(crate) fn answer(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let mut block = [0; 1 << 16];
    loop {
        if let Some(reply) = parsed(&bytes) {
            return reply;
        }
        match stream.read(&mut block) {
            Ok(0) => panic!("the connection ended after {:?}", String::from_utf8_lossy(&bytes)),
            Ok(count) => bytes.extend_from_slice(&block[..count]),
            Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&bytes)),
        }
    }
}

fn parsed(bytes: &[u8]) -> Option<Reply> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1)?.parse().unwrap();
    let mut reply = Reply { status, head, body: bytes[end + 4..].to_vec() };
    let length: usize = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
    (reply.body.len() >= length).then(|| {
        reply.body.truncate(length);
        reply
    })
}

/// A request with headers and a body.
pub(crate) fn ask(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    raw(address, &request(method, path, headers, body))
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: lamo\r\nContent-Length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

pub(crate) fn get(server: &Server, path: &str) -> Reply {
    ask(server.address(), "GET", path, &[], &[])
}

pub(crate) const NPY: (&str, &str) = ("Content-Type", "application/x-npy");
pub(crate) const NPZ: (&str, &str) = ("Content-Type", "application/x-npz");
pub(crate) const JSON: (&str, &str) = ("Content-Type", "application/json");

pub(crate) fn post(server: &Server, path: &str, kind: (&str, &str), body: &[u8]) -> Reply {
    ask(server.address(), "POST", path, &[kind], body)
}

/// Numbers of 3 and 12, different ones for each seed.
pub(crate) fn permeability(shape: &[usize], seed: usize) -> Named {
    let count: usize = shape.iter().product();
    let value = |index: usize| {
        if (index * 7919 + seed * 104_729).wrapping_mul(2_654_435_761) >> 13 & 1 == 0 { 3.0 } else { 12.0 }
    };
    Named { name: "permeability".into(), shape: shape.to_vec(), values: (0..count).map(value).collect() }
}

pub(crate) fn npy(array: &Named) -> Vec<u8> {
    formats::encode("x.npy".as_ref(), std::slice::from_ref(array)).unwrap()
}

pub(crate) fn npz(arrays: &[Named]) -> Vec<u8> {
    formats::encode("x.npz".as_ref(), arrays).unwrap()
}

/// The bytes of the file that `lamo predict` writes for the same input file.
pub(crate) fn command_line(model: &Path, input: &[u8], ending: &str, frames: Option<usize>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let [given, output] = ["given", "out"].map(|name| folder.path().join(format!("{name}.{ending}")));
    fs::write(&given, input).unwrap();
    let inputs = lamo::inference::Source::parse_all(given.to_str().unwrap()).unwrap();
    let request = PredictRequest {
        model: model.to_owned(),
        inputs,
        output: output.clone(),
        snapshots: frames,
        symmetries: false,
        memory: None,
        device: Device::Cpu,
    };
    if ending == "vtu" {
        predict_meshes(&request, &MeshCases::default()).unwrap();
    } else {
        predict(&request).unwrap();
    }
    fs::read(output).unwrap()
}
