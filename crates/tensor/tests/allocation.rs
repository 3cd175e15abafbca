//! A step allocates almost nothing after the first few runs. The test is a binary of its own, because it counts the allocations
//! of the whole process.
#![allow(unsafe_code)] // an allocator that counts needs it

use lamo_tensor::{ConvolutionOptions, Graph, Program, ScanInput};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are passed to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_step_allocates_next_to_nothing() {
    let graph = Graph::new();
    let (batch, rows, columns, width, states) = (2, 16, 16, 32, 16);
    let tokens = rows * columns;
    let x = graph.input("x", [batch, rows, columns, width]);
    let weight = graph.parameter("weight", [width, width]);
    let kernel = graph.parameter("kernel", [width, 1, 3, 3]);
    let scale = graph.parameter("scale", [width]);
    let around = ConvolutionOptions { groups: width, padding: [[1, 1]; 2], ..ConvolutionOptions::default() };
    let y = x.convolve(kernel, around).gelu().matmul(weight).rms_norm(scale, 1e-5).reshape([batch, tokens, width]);
    let group = y.slice(2, 0, states).reshape([batch, tokens, 1, states]);
    let gain = y.slice(2, 0, 2).softplus();
    let signal = y.reshape([batch, tokens, 2, width / 2]);
    let input = ScanInput { signal, log_decay: -gain, gain, write: group, read: group, initial: None };
    let loss = input.scan(&[(0..tokens as u32).collect()]).0.square().sum_all();
    let theta = graph.parameters();
    let gradient = graph.gradient(loss, &[theta])[0].unwrap();
    graph.assign(theta, theta - gradient * 1e-3);
    let mut program = Program::compile(&graph);
    program.write("parameters", &vec![0.1; width * width + 9 * width + width]);
    program.write("x", &vec![0.5; batch * tokens * width]);
    // One thread: with several, one may get its first task, and allocate its workspace, at any time.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| (0..5).for_each(|_| program.run()));
    let before = BYTES.load(Ordering::Relaxed);
    let steps = 50;
    pool.install(|| (0..steps).for_each(|_| program.run()));
    let each = (BYTES.load(Ordering::Relaxed) - before) / steps;
    // The rest is bookkeeping of the matrix-product and thread-pool libraries, not buffers.
    assert!(each < 16 << 10, "{each} bytes are allocated per step, of {} in use", program.bytes());
}
