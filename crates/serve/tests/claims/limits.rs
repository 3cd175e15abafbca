//! Limits: size, points, requests at a time, time, token.

use crate::support::{JSON, NPY, NPZ, answer, ask, get, npy, permeability, post, raw, request, server, wait};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn a_request_that_is_too_large_gets_413_and_the_server_lives() {
    let (server, _) = server(|settings| settings.limits.body = 10_000);
    let large = npy(&permeability(&[20, 12, 12], 0));
    let reply = post(&server, "/v1/models/plane/predict", NPY, &large);
    assert!(reply.fails(413).contains("10000 bytes, found 11"));
    // A length that was never sent.
    let head = b"POST /v1/models/plane/predict HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999\r\n\r\n";
    assert!(raw(server.address(), head).fails(413).contains("found 99999999999999"));
    // Chunks without a length.
    let chunk = format!("{:x}\r\n{}\r\n", 4000, "x".repeat(4000));
    let head = "POST /v1/models/plane/predict HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = format!("{head}{}0\r\n\r\n", chunk.repeat(3));
    assert!(raw(server.address(), body.as_bytes()).fails(413).contains("found more"));
    post(&server, "/v1/models/plane/predict", NPY, &npy(&permeability(&[12, 12], 0))).ok();
}

#[test]
fn a_request_in_chunks_is_taken() {
    let (server, _) = server(|_| {});
    let body = npy(&permeability(&[12, 12], 0));
    let whole = post(&server, "/v1/models/plane/predict", NPY, &body);
    let head = "POST /v1/models/plane/predict HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut bytes = head.as_bytes().to_vec();
    for part in body.chunks(100) {
        bytes.extend(format!("{:x}\r\n", part.len()).into_bytes());
        bytes.extend(part);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    assert_eq!(raw(server.address(), &bytes).ok(), whole.ok());
}

#[test]
fn too_many_points_get_413() {
    let (server, _) = server(|settings| settings.limits.points = 300);
    post(&server, "/v1/models/plane/predict", NPY, &npy(&permeability(&[2, 12, 12], 0))).ok();
    let told = post(&server, "/v1/models/plane/predict", NPY, &npy(&permeability(&[3, 12, 12], 0))).fails(413);
    assert!(told.contains("300 points, found 3 x 144"), "{told}");
    let tensor =
        serde_json::json!({ "name": "permeability", "shape": [18, 18], "datatype": "FP32", "data": vec![3.0; 324] });
    let request = serde_json::json!({ "inputs": [tensor] }).to_string();
    assert!(post(&server, "/v2/models/plane/infer", JSON, request.as_bytes()).fails(413).contains("1 x 324"));
}

#[test]
fn a_roll_out_of_more_points_than_it_takes_gets_413() {
    let (server, _) = server(|_| {});
    let sample = get(&server, "/v1/models/series/samples/0").ok().to_vec();
    for frames in ["1000000000", "9999999999999999999"] {
        let told = post(&server, &format!("/v1/models/series/predict?frames={frames}"), NPZ, &sample);
        assert!([400, 413].contains(&told.status), "{}", told.text());
    }
    let told = post(&server, "/v1/models/series/predict?frames=1000000000", NPZ, &sample).fails(413);
    assert!(told.contains("x 1000000000 times"), "{told}");
    post(&server, "/v1/models/series/predict?frames=2", NPZ, &sample).ok();
}

#[test]
fn arrays_that_are_larger_unpacked_than_a_body_may_be_get_413() {
    let (server, _) = server(|settings| settings.limits.body = 60_000);
    // Numbers of one byte, which are read as float32 of four.
    let series = |frames: usize| {
        let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({frames}, 16, 16), }}\n");
        let values = (0..frames * 256).map(|place| (place % 7) as u8).collect::<Vec<_>>();
        [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes(), &values].concat()
    };
    let told = post(&server, "/v1/models/series/predict", NPY, &series(200)).fails(413);
    assert!(told.contains("at most 60000 bytes as float32, unpacked, found 204800"), "{told}");
    post(&server, "/v1/models/series/predict", NPY, &series(50)).ok();
}

#[test]
fn a_client_that_does_not_read_its_answer_is_cut_off() {
    let (server, _) = server(|settings| {
        settings.limits.time = Duration::from_secs(2);
        settings.limits.connections = 1;
    });
    let mut stream = TcpStream::connect(server.address()).unwrap();
    // Requests sent ahead, whose answers are larger than the buffers of the system.
    let ask = b"GET /page.js HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20_000);
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let _ = stream.write_all(&ask); // the server stops reading, too
    // The only connection is free again, while the other client still holds its end.
    assert_eq!(get(&server, "/v2/health/live").status, 200);
    drop(stream);
}

#[test]
fn more_requests_than_it_takes_get_503_and_are_taken_later() {
    let (server, _) = server(|settings| settings.limits.concurrency = 2);
    let body = npy(&permeability(&[12, 12], 0));
    let whole = request("POST", "/v1/models/plane/predict", &[NPY], &body);
    // Two requests whose bodies do not arrive hold both places.
    let mut held: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(&whole[..whole.len() - 10]).unwrap();
            stream
        })
        .collect();
    wait(|| get(&server, "/metrics").text().contains("lamo_requests_in_work 2"));
    let refused = raw(server.address(), &whole);
    assert!(refused.fails(503).contains("2 requests"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(get(&server, "/v2/health/ready").status, 200); // probes are answered
    for stream in &mut held {
        stream.write_all(&whole[whole.len() - 10..]).unwrap();
        answer(stream).ok();
    }
    raw(server.address(), &whole).ok();
}

#[test]
fn a_body_that_does_not_arrive_gets_408() {
    let (server, _) = server(|settings| settings.limits.time = Duration::from_millis(300));
    let whole = request("POST", "/v1/models/plane/predict", &[NPY], &npy(&permeability(&[12, 12], 0)));
    let started = Instant::now();
    let reply = raw(server.address(), &whole[..whole.len() - 1]);
    assert!(reply.fails(408).contains("did not arrive"));
    assert!(started.elapsed() >= Duration::from_millis(300));
    assert_eq!(get(&server, "/v2/health/live").status, 200);
}

#[test]
fn headers_that_drip_get_408_and_an_idle_connection_is_closed() {
    let (server, _) = server(|settings| settings.limits.headers = Duration::from_millis(400));
    let mut slow = TcpStream::connect(server.address()).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    slow.write_all(b"GET /v2 HTTP/1.1\r\nHost: a\r\nX-Slow: ").unwrap();
    assert!(answer(&mut slow).fails(408).contains("headers"));
    let mut idle = TcpStream::connect(server.address()).unwrap();
    idle.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(idle.read(&mut [0; 10]).unwrap(), 0);
    assert_eq!(get(&server, "/v2/health/live").status, 200);
}

#[test]
fn an_answer_that_is_not_ready_in_time_gets_504() {
    let (server, _) = server(|settings| settings.limits.time = Duration::from_millis(1));
    let reply = post(&server, "/v1/models/plane/predict", NPY, &npy(&permeability(&[500, 12, 12], 0)));
    assert!([504, 408].contains(&reply.status), "{}", reply.text()); // also the body may be late
    assert_eq!(get(&server, "/v2/health/live").status, 200);
}

#[test]
fn without_the_token_there_are_only_health_and_the_page() {
    let (server, _) = server(|settings| settings.token = Some("s3cret".into()));
    let with = |path: &str, token: &str| ask(server.address(), "GET", path, &[("Authorization", token)], &[]);
    for path in ["/v1/models", "/v2", "/v2/models/plane", "/metrics", "/none"] {
        let reply = get(&server, path);
        assert!(reply.fails(401).contains("Bearer"), "{path}");
        assert!(reply.header("www-authenticate").unwrap().starts_with("Bearer"));
        for wrong in ["Bearer s3cre", "Bearer s3cret2", "s3cret", "Basic s3cret", "Bearer ", ""] {
            assert_eq!(with(path, wrong).status, 401, "{path} {wrong}");
        }
    }
    assert_eq!(post(&server, "/v1/models/plane/predict", NPY, b"").status, 401);
    for path in ["/v2/health/live", "/v2/health/ready", "/", "/page.js"] {
        assert_eq!(get(&server, path).status, 200, "{path}");
    }
    assert_eq!([with("/v1/models", "Bearer s3cret").status, with("/v2", "bearer s3cret").status], [200, 200]);
}

#[test]
fn every_request_is_logged_with_its_bytes_and_its_batch() {
    let (server, records) = server(|_| {});
    let body = npy(&permeability(&[2, 12, 12], 0));
    let reply = post(&server, "/v1/models/plane/predict?format=npy", NPY, &body);
    post(&server, "/v1/models/plane/predict", NPY, b"x").fails(400);
    wait(|| records.lock().unwrap().len() == 2);
    let records = records.lock().unwrap();
    let (good, bad) = (&records[0], &records[1]);
    assert_eq!((good.path.as_str(), good.status, good.batch), ("/v1/models/plane/predict", 200, Some(2)));
    assert_eq!((good.received, good.sent), (body.len() as u64, reply.body.len() as u64));
    assert_eq!((bad.status, bad.batch), (400, None));
    assert!(bad.error.as_ref().unwrap().contains("npy"));
}
