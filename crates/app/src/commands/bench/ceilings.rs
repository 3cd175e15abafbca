//! The limits of this machine, measured now: matrix product, copy, memory.

use lamo_tensor::{Device, DeviceError, Graph, Precision, Program};
use rayon::prelude::*;
use std::time::Instant;

fn fastest(mut run: impl FnMut()) -> f64 {
    run();
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..7).map(|_| time(&mut run)).fold(f64::INFINITY, f64::min)
}

/// Speed of a large matrix product on all threads, or on a GPU at a precision.
pub(super) fn gemm_gflops(device: Device, precision: Precision) -> Result<f64, DeviceError> {
    let size = if device == Device::Cpu { 1024 } else { 8192 };
    let graph = Graph::new();
    graph.output("c", graph.input("a", [size, size]).matmul(graph.input("b", [size, size])));
    let mut program = Program::compile_on(&graph, device, precision)?;
    let numbers: Vec<f32> = (0..size * size).map(|i| (0.37 * (i % 1013) as f32).sin()).collect();
    ["a", "b"].iter().for_each(|name| program.write(name, &numbers));
    let seconds = fastest(|| {
        program.run();
        program.synchronise();
    });
    Ok(2e-9 * (size * size * size) as f64 / seconds)
}

/// Speed of a copy that is larger than the caches, on all threads; bytes read plus bytes written.
pub(super) fn copy_gigabytes_per_second() -> f64 {
    let count = 32 << 20;
    let from = vec![1.0_f32; count];
    let mut to = vec![0.0_f32; count];
    let chunk = 1 << 18;
    let seconds = fastest(|| {
        to.par_chunks_mut(chunk).zip(from.par_chunks(chunk)).for_each(|(to, from)| to.copy_from_slice(from));
    });
    8e-9 * count as f64 / seconds
}

/// A size in `/proc/self/status`.
fn status(key: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kilobytes: u64 = line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1024)
}

/// Memory of this process now, if the system tells it.
pub(super) fn resident_bytes() -> Option<u64> {
    status("VmRSS")
}

/// The largest memory of this process so far, if the system tells it.
pub(super) fn peak_bytes() -> Option<u64> {
    status("VmHWM")
}
