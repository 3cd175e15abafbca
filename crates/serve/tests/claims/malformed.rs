//! Requests that are broken: each gets a 4xx, and the server lives.

use crate::support::{JSON, NPY, NPZ, answer, get, npy, npz, permeability, post, raw, server, wait};
use lamo::data::formats::Named;
use lamo_serve::Sink;
use std::io::Write;
use std::net::TcpStream;

#[test]
fn broken_http_gets_a_4xx() {
    let (server, _) = server(|_| {});
    let long = format!("GET /v2 HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(1 << 20));
    for bytes in [
        &b"nonsense\r\n\r\n"[..],
        b"GET /v2 HTTP/9.9\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\nBad Header: 1\r\n\r\n",
        b"POST /v1/models/plane/predict HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/models/plane/predict HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        long.as_bytes(),
    ] {
        let reply = raw(server.address(), bytes);
        assert!((400..500).contains(&reply.status), "{} for {:?}", reply.head, &bytes[..bytes.len().min(60)]);
        assert_eq!(get(&server, "/v2/health/live").status, 200);
    }
    let chunks = b"POST /v1/models/plane/predict HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    assert!(raw(server.address(), chunks).fails(400).contains("the body"));
}

#[test]
fn a_client_that_leaves_in_the_middle_harms_nothing() {
    let (server, records) = server(|settings| settings.limits.concurrency = 1);
    let body = npy(&permeability(&[12, 12], 0));
    let in_work = |count: usize| get(&server, "/metrics").text().contains(&format!("lamo_requests_in_work {count}"));
    for part in [10, 60, body.len()] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let head =
            format!("POST /v1/models/plane/predict HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body[..part]).unwrap();
        if part < body.len() {
            wait(|| in_work(1)); // it has begun
        }
        drop(stream);
        wait(|| in_work(0));
    }
    // The only place is free again, and each that had begun is in the log.
    wait(|| post(&server, "/v1/models/plane/predict", NPY, &body).status == 200);
    let logged = || records.lock().unwrap().iter().filter(|record| record.path.ends_with("predict")).count();
    wait(|| logged() >= 3);
}

#[test]
fn what_a_client_sends_is_one_line_of_the_log_and_no_longer_than_a_sentence() {
    let (server, records) = server(|_| {});
    let forged = format!("x\n2026-01-01T00:00:00.000Z GET / 200 {}", "é".repeat(100_000));
    let tensor = |name: &str| serde_json::json!({ "name": name, "shape": [1], "datatype": "FP32", "data": [1.0] });
    let request = serde_json::json!({ "inputs": [tensor(&forged), tensor("permeability")] }).to_string();
    let reply = post(&server, "/v2/models/plane/infer", JSON, request.as_bytes());
    assert_eq!(reply.status, 400);
    wait(|| records.lock().unwrap().len() == 1);
    let text = records.lock().unwrap()[0].text();
    assert!(text.lines().count() == 1 && text.contains("found `x\\n2026") && text.chars().count() < 1200, "{text}");
}

#[test]
fn bodies_that_are_not_what_they_say_get_400() {
    let (server, _) = server(|_| {});
    let whole = npy(&permeability(&[12, 12], 0));
    let cut = &whole[..whole.len() - 7];
    let header = |text: &str| [&b"\x93NUMPY\x01\x00"[..], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat();
    let huge = header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }\n");
    let objects = header("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n");
    for (kind, body) in [
        (NPY, cut),
        (NPY, &b""[..]),
        (NPY, b"{}"),
        (NPY, &huge),
        (NPY, &objects),
        (NPZ, b"PK\x03\x04 and nothing else"),
        (NPZ, &npz(&[permeability(&[12, 12], 0)])[..300]),
        (("Content-Type", "application/vnd.vtk"), b"<VTKFile"),
        (("Content-Type", "application/vnd.vtk"), b"\xff\xfe\x00"),
    ] {
        let told = post(&server, "/v1/models/plane/predict", kind, body).fails(400);
        assert!(told.contains("the body") && !told.contains("/tmp"), "{told}");
    }
    for body in [&b"{"[..], b"[]", b"null", b"\xff", b"{\"inputs\": 5}", &b"[".repeat(100_000)] {
        assert!(post(&server, "/v2/models/plane/infer", JSON, body).fails(400).contains("JSON"));
    }
}

#[test]
fn wrong_content_types_get_415() {
    let (server, _) = server(|_| {});
    let body = npy(&permeability(&[12, 12], 0));
    for (path, kind) in [
        ("/v1/models/plane/predict", "image/png"),
        ("/v2/models/plane/infer", "text/plain"),
        ("/v1/models/plane/solve", "application/json"),
    ] {
        assert!(post(&server, path, ("Content-Type", kind), &body).fails(415).contains(kind), "{path} {kind}");
    }
    assert!(post(&server, "/v1/models/plane/predict?format=exe", NPY, &body).fails(415).contains("exe"));
    assert!(post(&server, "/v1/models/plane/predict?fromat=npy", NPY, &body).fails(400).contains("fromat"));
    assert!(post(&server, "/v1/models/plane/predict?frames=0", NPY, &body).fails(400).contains("at least 1"));
    assert!(post(&server, "/v1/models/plane/predict?frames=3", NPY, &body).fails(400).contains("time series"));
}

/// What curl and wget say of every file.
const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

#[test]
fn a_body_that_curl_sends_as_it_is_gets_the_answer_of_its_own_kind() {
    let (server, _) = server(|_| {});
    let field = permeability(&[12, 12], 0);
    for (kind, body) in [(NPY, npy(&field)), (NPZ, npz(std::slice::from_ref(&field)))] {
        let expected = post(&server, "/v1/models/plane/predict", kind, &body);
        assert_eq!(post(&server, "/v1/models/plane/predict", FORM, &body).ok(), expected.ok());
    }
    let tensor =
        serde_json::json!({ "name": "permeability", "shape": [12, 12], "datatype": "FP32", "data": field.values });
    let request = serde_json::json!({ "inputs": [tensor] }).to_string();
    post(&server, "/v2/models/plane/infer", FORM, request.as_bytes()).ok();
    assert!(post(&server, "/v1/models/plane/predict", FORM, b"a=1").fails(400).contains("npy, npz or vtu"));
}

#[test]
fn a_refusal_gives_no_advice_that_a_request_cannot_follow() {
    let (server, _) = server(|_| {});
    let field = permeability(&[12, 12], 0);
    let named = |name: &str| Named { name: name.into(), ..field.clone() };
    for (kind, body) in [
        (NPZ, npz(&[named("a"), named("b")])),
        (NPY, npy(&permeability(&[12, 12, 12, 12], 0))),
        (NPY, npy(&permeability(&[12], 0))),
    ] {
        let told = post(&server, "/v1/models/plane/predict", kind, &body).fails(400);
        assert!(told.contains("; ") && !told.contains("--"), "{told}");
    }
    let told = post(&server, "/v1/models/series/predict?frames=abc", NPY, b"").fails(400);
    assert_eq!(told, "frames: expected a whole number of at least 1, found abc");
}

#[test]
fn values_that_are_not_finite_get_400_and_name_their_place() {
    let (server, _) = server(|_| {});
    for (value, word) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut field = permeability(&[12, 12], 0);
        field.values[17] = value;
        let told = post(&server, "/v1/models/plane/predict", NPY, &npy(&field)).fails(400);
        assert!(told.contains(word) && told.contains("17"), "{told}");
    }
    // Finite inputs far from those of the training may have a prediction that is not finite.
    let field = Named { values: vec![f32::MAX; 144], ..permeability(&[12, 12], 0) };
    let reply = post(&server, "/v1/models/plane/predict", NPY, &npy(&field));
    assert!([200, 422].contains(&reply.status), "{}", reply.text());
}

#[test]
fn a_connection_serves_several_requests_and_those_that_are_sent_ahead() {
    let (server, _) = server(|_| {});
    let mut stream = TcpStream::connect(server.address()).unwrap();
    for _ in 0..2 {
        stream.write_all(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert_eq!(answer(&mut stream).status, 200);
    }
    stream.write_all(b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    answer(&mut stream).fails(404);
    stream.write_all(b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(answer(&mut stream).json()["name"], "lamo");
}

/// What the log does with a record is no matter of the answer.
#[test]
fn a_log_that_panics_loses_no_answer() {
    let (server, _) = server(|settings| settings.log = Sink::new(|_| panic!("the disk is full")));
    for _ in 0..2 {
        post(&server, "/v1/models/plane/predict", NPY, &npy(&permeability(&[12, 12], 0))).ok();
        post(&server, "/v1/models/plane/predict", NPY, b"x").fails(400);
    }
}

/// Zeros, packed by zlib behind their sizes as a vtu file has them.
fn packed_zeros(bytes: usize) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let block = vec![0; 1 << 20];
    (0..bytes >> 20).for_each(|_| encoder.write_all(&block).unwrap());
    let packed = encoder.finish().unwrap();
    let sizes = [1, bytes, 0, packed.len()].map(|size| (size as u64).to_le_bytes());
    [sizes.concat(), packed].concat()
}

#[test]
fn a_mesh_that_unpacks_to_more_than_a_body_may_have_gets_413() {
    let (server, _) = server(|_| {});
    let zeros = packed_zeros(256 << 20);
    let mesh = |part: &str| {
        let root = r#"<VTKFile type="UnstructuredGrid" header_type="UInt64" compressor="vtkZLibDataCompressor">"#;
        let piece = r#"<UnstructuredGrid><Piece NumberOfPoints="3" NumberOfCells="0">"#;
        let points = r#"<Points><DataArray type="Float32" NumberOfComponents="3" format="ascii">0 0 0 1 0 0 0 1 0</DataArray></Points>"#;
        let end = r#"</Piece></UnstructuredGrid><AppendedData encoding="raw">_"#;
        let text = format!("{root}{piece}{points}{part}{end}");
        [text.as_bytes(), &zeros, b"</AppendedData></VTKFile>"].concat()
    };
    let ask = |body: &[u8]| post(&server, "/v1/models/cloud/predict", ("Content-Type", "application/vnd.vtk"), body);
    ask(&mesh("")).ok();
    let array = r#"<DataArray type="Float32" Name="a" format="appended" offset="0"/>"#;
    for part in ["PointData", "CellData", "Cells", "Other"] {
        let told = ask(&mesh(&format!("<{part}>{array}</{part}>"))).fails(413);
        assert!(told.contains("the body") && told.contains("found 2684354"), "{told}");
    }
    let image = r#"<VTKFile type="ImageData"><ImageData WholeExtent="0 999 0 999 0 999" Origin="0 0 0" Spacing="1 1 1"><Piece Extent="0 999 0 999 0 999"></Piece></ImageData></VTKFile>"#;
    assert!(ask(image.as_bytes()).fails(413).contains("12000000000"));
}

/// An npz file with one packed array: its header, and bytes of zeros. Its directory promises as many as it is told.
fn packed_array(shape: &str, zeros: usize, promised: usize) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let start = [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    let mut sum = flate2::Crc::new();
    let block = vec![0; 1 << 20];
    let blocks = std::iter::repeat_n(&block[..], zeros >> 20).chain([&block[..zeros & ((1 << 20) - 1)]]);
    for part in std::iter::once(&start[..]).chain(blocks) {
        sum.update(part);
        encoder.write_all(part).unwrap();
    }
    let packed = encoder.finish().unwrap();
    let name = "permeability.npy";
    let sizes = [sum.sum(), packed.len() as u32, (start.len() + promised) as u32].map(u32::to_le_bytes).concat();
    let about = [&[20, 0, 0, 0, 8, 0, 0, 0, 33, 0][..], &sizes, &(name.len() as u16).to_le_bytes(), &[0, 0]].concat();
    let member = [b"PK\x03\x04", &about[..], name.as_bytes(), &packed].concat();
    let directory = [b"PK\x01\x02\x14\x00", &about[..], &[0; 14], name.as_bytes()].concat();
    let places = [directory.len() as u32, member.len() as u32].map(u32::to_le_bytes).concat();
    [&member[..], &directory, b"PK\x05\x06\0\0\0\0\x01\0\x01\0", &places, &[0, 0]].concat()
}

#[test]
fn an_npz_file_that_unpacks_to_more_than_a_body_may_have_is_refused_before_it_is_unpacked() {
    let (server, _) = server(|_| {});
    let ask = |body: &[u8]| post(&server, "/v1/models/plane/predict", NPZ, body);
    ask(&packed_array("(1, 12, 12)", 576, 576)).ok();
    let samples = (1 << 30) / 576;
    let bomb = packed_array(&format!("({samples}, 12, 12)"), samples * 576, samples * 576);
    assert!(bomb.len() < 2_000_000, "{}", bomb.len());
    let told = ask(&bomb).fails(413);
    assert!(told.contains(&format!("at most 64000000 bytes as float32, unpacked, found {}", samples * 576)), "{told}");
    // More than the header promises, and more than header and directory promise.
    for promised in [256 << 20, 576] {
        let told = ask(&packed_array("(1, 12, 12)", 256 << 20, promised)).fails(400);
        assert!(told.contains("the body"), "{told}");
    }
}

#[test]
fn a_mesh_that_names_files_of_the_server_gets_400() {
    let (server, _) = server(|_| {});
    let named = |kind: &str, before: &str| {
        format!(r#"{before}<VTKFile type="{kind}"><{kind}><Piece Source="/etc/passwd"/></{kind}></VTKFile>"#)
    };
    let hidden = r#"<!-- <VTKFile type="PUnstructuredGrid"> -->"#;
    for body in [named("PUnstructuredGrid", ""), named("UnstructuredGrid", hidden), "solid a\nendsolid a\n".into()] {
        let told = post(&server, "/v1/models/cloud/predict", ("Content-Type", "application/vnd.vtk"), body.as_bytes());
        let told = told.fails(400);
        assert!(told.contains("the body: expected a vtu file") && !told.contains("passwd"), "{told}");
    }
}

#[test]
fn cells_that_do_not_fit_their_points_get_400() {
    let (server, _) = server(|_| {});
    let mesh = |connectivity: &str, offsets: &str, types: &str| {
        let array = |name: &str, text: &str| {
            format!(r#"<DataArray type="Int64" Name="{name}" format="ascii">{text}</DataArray>"#)
        };
        let cells = [array("connectivity", connectivity), array("offsets", offsets), array("types", types)].concat();
        let points = r#"<DataArray type="Float32" NumberOfComponents="3" format="ascii">0 0 0 1 0 0 0 1 0</DataArray>"#;
        format!(
            r#"<VTKFile type="UnstructuredGrid"><UnstructuredGrid><Piece NumberOfPoints="3" NumberOfCells="1"><Points>{points}</Points><Cells>{cells}</Cells></Piece></UnstructuredGrid></VTKFile>"#
        )
    };
    let ask = |body: String| {
        post(&server, "/v1/models/cloud/predict", ("Content-Type", "application/vnd.vtk"), body.as_bytes())
    };
    ask(mesh("0 1 2", "3", "5")).ok();
    ask(mesh("0 1", "2", "3")).ok(); // a line: a cloud needs points alone
    for (connectivity, offsets, types) in [
        ("0 1 7", "3", "5"),
        ("0 1 -2", "3", "5"),
        ("0 1 2", "2", "5"),
        ("0 1 2", "9223372036854775807", "5"),
        ("0 1 2", "3", "42"),
        ("0 1 2", "3", "300"),
        ("0 1 x", "3", "5"),
    ] {
        let told = ask(mesh(connectivity, offsets, types)).fails(400);
        assert!(told.contains("the body"), "{told}");
    }
}

#[test]
fn an_npz_file_that_unpacks_to_more_than_it_promises_gets_400() {
    let (server, _) = server(|_| {});
    let mut zip = npz(&[permeability(&[12, 12], 0)]);
    // The directory promises one byte more than the array has.
    let place = zip.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    zip[place + 24] = zip[place + 24].wrapping_add(1);
    assert!(post(&server, "/v1/models/plane/predict", NPZ, &zip).fails(400).contains("the body"));
    let told = get(&server, "/v1/models/%ff%fe").fails(400);
    assert!(told.contains("UTF-8"), "{told}");
}
