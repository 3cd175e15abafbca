//! Requests without a browser, and numbers to compare with the page's.

use lamo::data::formats::{Array, ArrayFile};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The body of the answer to a posted file; the server knows its kind by its first bytes.
pub(crate) fn post(address: SocketAddr, path: &str, body: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let body = answer.split_off(end + 4);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{}", String::from_utf8_lossy(&body));
    body
}

/// The array of an npy file.
pub(crate) fn array(bytes: &[u8]) -> Array {
    ArrayFile::in_memory("the file", bytes.to_vec()).unwrap().read(None).unwrap()
}

/// ‖prediction − truth‖ / ‖truth‖.
pub(crate) fn relative_l2(prediction: &[f32], truth: &[f32]) -> f64 {
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let mut pairs = prediction.iter().zip(truth).map(|(&one, &other)| f64::from(one) - f64::from(other));
    (squares(&mut pairs) / squares(&mut truth.iter().map(|&value| f64::from(value)))).sqrt()
}

/// Every `stride`-th row and column of a square, starting with the first.
pub(crate) fn thinned(values: &[f32], cells: usize, stride: usize) -> Vec<f32> {
    let rows = (0..cells).step_by(stride);
    rows.flat_map(|row| (0..cells).step_by(stride).map(move |column| values[row * cells + column])).collect()
}
