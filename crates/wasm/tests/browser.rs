//! The static page in a real browser: a headless Chromium draws, and the page predicts and solves by itself. Without one on the
//! PATH the claim is skipped with a sentence.

#![allow(clippy::print_stdout)] // says what it measured

#[allow(dead_code)] // the claims of the server use all of it
#[path = "../../serve/tests/browser/chromium.rs"]
mod chromium;

use chromium::Browser;
use lamo::data::formats::{self, ArrayFile, Named};
use lamo_wasm::Model;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

const CELLS: usize = 421;
const SIDE: usize = 85;
const STRIDE: usize = 5;
/// Largest difference of native and browser, relative to the largest pressure, as the documentation states it.
const STATED: f32 = 5e-6;
/// The error is there, and belongs to what is drawn.
const SETTLED: &str = "document.querySelector('#error')?.dataset.value && !document.querySelector('.darcy.stale') && document.querySelector('#error').dataset.value";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/browser")
}

/// Serves the files of a folder and returns the address; the threads end with the process.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let folder = folder.clone();
            std::thread::spawn(move || answer(&folder, stream));
        }
    });
    address
}

/// Answers one request of a connection.
fn answer(folder: &Path, mut stream: TcpStream) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let asked = lines.next()?.ok()?;
    while !lines.next()?.ok()?.is_empty() {}
    let path = asked.split(' ').nth(1)?.split('?').next()?.trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    let kind = match path.rsplit('.').next() {
        Some("html") => "text/html",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream", // as a server that does not know wasm
    };
    let (status, body) = match std::fs::read(folder.join(path)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    stream.write_all(&body).ok()
}

fn values(file: Vec<u8>) -> Vec<f32> {
    ArrayFile::in_memory("a file", file).unwrap().read(None).unwrap().values.into_f32()
}

#[test]
fn the_page_predicts_and_solves_what_is_drawn_and_its_prediction_is_the_native_one() {
    let Some(mut browser) = Browser::start([1280, 900]) else { return };
    let address = serve(page());
    browser.open(&address);
    let error = |browser: &mut Browser| browser.wait(SETTLED).as_str().unwrap().parse::<f64>().unwrap();
    let before = error(&mut browser);
    assert!(before < 0.02, "a medium of the training distribution has the error {before}");

    let [left, top, width, height] = browser.place(".paper canvas");
    let along = |step: usize| [left + width * (0.1 + 0.08 * step as f64), top + height * 0.4];
    browser.drag(&(0..=10).map(along).collect::<Vec<_>>());
    let after = error(&mut browser);
    assert!(before != after && after < 0.1, "the error was {before} and is {after}");

    let drawing = values(browser.download("[data-save=drawing]", "darcy-permeability.npy"));
    let found = values(browser.download("[data-save=prediction]", "darcy-pressure.npy"));
    let at = |point: usize| drawing[point / SIDE * STRIDE * CELLS + point % SIDE * STRIDE];
    let seen = Named { name: "a".into(), shape: vec![SIDE; 2], values: (0..SIDE * SIDE).map(at).collect() };
    let given = formats::encode("a.npy".as_ref(), &[seen]).unwrap();
    let model = std::fs::read(page().join("darcy.safetensors")).unwrap();
    let native = values(Model::open(model).unwrap().predict(given).unwrap());
    let scale = native.iter().fold(0.0_f32, |scale, value| scale.max(value.abs()));
    let apart = native.iter().zip(&found).map(|(native, found)| (native - found).abs() / scale).fold(0.0, f32::max);
    let times =
        browser.evaluate("[...document.querySelectorAll('.times dd')].map(time => time.textContent).join(', ')");
    println!("native and browser differ by {apart:.1e} of the largest pressure; prediction, solver: {times}");
    assert!(native.len() == found.len() && found.iter().all(|value| value.is_finite()) && apart <= STATED, "{apart:e}");

    let requests = browser.requests();
    assert!(!requests.is_empty() && requests.iter().all(|url| url.starts_with(&address)), "{requests:?}");
    assert!(browser.complaints().is_empty(), "the console says {:?}", browser.complaints());
}

#[test]
fn a_page_without_its_program_says_what_is_missing() {
    let Some(mut browser) = Browser::start([800, 600]) else { return };
    let folder = tempfile::tempdir().unwrap();
    for file in ["index.html", "start.js", "local.js", "worker.js", "darcy.safetensors", "darcy.json"] {
        std::fs::copy(page().join(file), folder.path().join(file)).unwrap();
    }
    std::fs::create_dir(folder.path().join("page")).unwrap();
    for entry in std::fs::read_dir(page().join("page")).unwrap() {
        let file = entry.unwrap().path();
        std::fs::copy(&file, folder.path().join("page").join(file.file_name().unwrap())).unwrap();
    }
    browser.open(&serve(folder.path().to_owned()));
    let said = browser.wait("!document.getElementById('alarm').hidden && document.getElementById('alarm').textContent");
    assert_eq!(said, "lamo.wasm.gz could not be loaded (404). Serve the whole folder.");
}
