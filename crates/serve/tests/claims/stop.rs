//! A stop answers what runs, refuses what comes, and ends in bounded time.

use crate::support::{NPY, answer, npy, permeability, request, server, wait};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn a_request_that_runs_is_answered_and_new_ones_are_refused() {
    let (server, records) = server(|_| {});
    let address = server.address();
    let body = npy(&permeability(&[400, 12, 12], 0));
    let mut idle = TcpStream::connect(address).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let whole = request("POST", "/v1/models/plane/predict", &[NPY], &body);
    stream.write_all(&whole[..whole.len() - 1]).unwrap();
    std::thread::sleep(Duration::from_millis(300)); // its headers have arrived
    let stop = std::thread::spawn(move || server.stop());
    wait(|| TcpStream::connect(address).is_err());
    stream.write_all(&whole[whole.len() - 1..]).unwrap();
    answer(&mut stream).ok();
    assert!(stop.join().unwrap(), "all requests were answered");
    let _ = idle.write_all(b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(std::io::Read::read(&mut idle, &mut [0; 10]).unwrap_or(0), 0, "the idle connection was closed");
    assert_eq!(records.lock().unwrap().last().unwrap().status, 200);
}

#[test]
fn a_stop_does_not_wait_longer_than_its_time_of_grace() {
    let (server, _) = server(|settings| settings.limits.grace = Duration::from_millis(300));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"POST /v1/models/plane/predict HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let started = Instant::now();
    assert!(!server.stop(), "one request was not answered");
    assert!(started.elapsed() < Duration::from_secs(5));
}
