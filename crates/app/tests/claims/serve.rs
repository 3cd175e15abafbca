//! `lamo serve`: it says where it listens, answers, and a signal ends it with exit code 0. No request is lost in silence.

use crate::support::{Folder, contains};
use lamo::data::formats::{Named, encode};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::time::Duration;

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: lamo\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A server of a pretrained model, and its address.
fn served(folder: &Folder, flags: &[&str]) -> (Child, String) {
    started(folder.command(&[&["serve", "darcy", "--port=0", "--batch=1"], flags].concat()))
}

fn started(mut command: Command) -> (Child, String) {
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit_once("http://").unwrap_or_else(|| panic!("{line}")).1.to_owned();
    (child, address)
}

#[test]
#[cfg(unix)]
fn a_server_answers_and_a_signal_ends_it_with_exit_code_0() {
    let folder = Folder::new("serve");
    for signal in ["-INT", "-TERM"] {
        let (child, address) = served(&folder, &["--log=json"]);
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        contains(&get(&address, "/v2/health/live"), &["HTTP/1.1 200", "true"]);
        contains(&get(&address, "/v1/models"), &["darcy", "permeability", "receipt"]);
        kill(&child, signal);
        let ended = child.wait_with_output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{signal}: {told}");
        for line in told.lines() {
            let record: serde_json::Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!((&record["method"], &record["status"]), (&"GET".into(), &200.into()));
        }
    }
}

/// Sends samples of a permeability to predict.
fn ask(address: &str, samples: usize) -> TcpStream {
    let field = Named { name: "a".into(), shape: vec![samples, 85, 85], values: vec![3.0; samples * 85 * 85] };
    post(address, "/v1/models/darcy/predict", &encode("a.npy".as_ref(), &[field]).unwrap())
}

fn post(address: &str, path: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.1\r\nHost: lamo\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")
        .unwrap();
    stream.write_all(body).unwrap();
    stream
}

fn all(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes); // a connection may also be reset
    bytes
}

/// Waits until a request is computed.
#[cfg(unix)]
fn wait_for_work(address: &str) {
    while !get(address, "/metrics").contains("lamo_requests_in_work 1") {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(unix)]
fn kill(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
#[cfg(unix)]
fn a_request_that_runs_at_sigterm_is_answered_and_one_that_runs_at_sigkill_ends_without_an_answer() {
    let folder = Folder::new("serve-signals");
    let (child, address) = served(&folder, &["--grace=300", "--timeout=300"]);
    let running = ask(&address, 8);
    wait_for_work(&address);
    kill(&child, "-TERM");
    let answer = all(running);
    assert!(answer.starts_with(b"HTTP/1.1 200") && answer.len() > 8 * 85 * 85 * 4, "{} bytes", answer.len());
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{told}");
    contains(&told, &["POST /v1/models/darcy/predict 200"]);

    let (mut child, address) = served(&folder, &["--timeout=300"]);
    let running = ask(&address, 64);
    wait_for_work(&address);
    kill(&child, "-KILL");
    child.wait().unwrap();
    assert!(all(running).is_empty(), "there is no answer, and the connection has ended");
}

/// Standard error on a full disk, and a full disk for temporary files: a folder in which no file can be made.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_no_answer_and_the_request_that_needs_the_disk_is_told() {
    let folder = Folder::new("serve-full");
    let mut command = folder.command(&["serve", "darcy", "elasticity", "--port=0", "--batch=1"]);
    command.stderr(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap()).env("TMPDIR", "/dev/full");
    let (mut child, address) = started(command);
    assert!(all(ask(&address, 1)).starts_with(b"HTTP/1.1 200"));
    let answer = all(post(&address, "/v1/models/elasticity/predict", b"<VTKFile/>"));
    contains(&String::from_utf8(answer).unwrap(), &["HTTP/1.1 507", "the mesh cannot be stored", "npz"]);
    assert!(all(ask(&address, 1)).starts_with(b"HTTP/1.1 200"));
    kill(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_be_served_is_refused_in_a_sentence() {
    let folder = Folder::new("serve-refused");
    contains(&folder.fails(&["serve", "darcy", "darcy"]), &["darcy version 1", "@2"]);
    contains(&folder.fails(&["serve", "nothing"]), &["nothing", "a run folder"]);
    contains(&folder.fails(&["serve", "darcy", "--host=no.such.host.invalid"]), &["--host"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    contains(&folder.fails(&["serve", "darcy", "--port", &port]), &["cannot listen", "--port"]);
}
