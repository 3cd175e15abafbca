//! `lamo serve`: it says where it listens, answers, and a signal ends it with exit code 0.

use crate::support::{Folder, contains};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: lamo\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A server of the pretrained model, and its address.
fn served(folder: &Folder, flags: &[&str]) -> (Child, String) {
    let mut child = folder.command(&[&["serve", "darcy", "--port=0", "--batch=1"], flags].concat()).spawn().unwrap();
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
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
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
