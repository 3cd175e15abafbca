//! What the crate promises: the library's own predictions through bytes, the same on this machine and in WebAssembly.

mod border;
mod model;
mod node;

use lamo::data::formats::{self, Named};

/// Points along a side of the grid of the pretrained model.
const SIDE: usize = 85;

/// Cells along a side of its labels, of which the model sees every fifth.
const CELLS: usize = 421;

/// The pretrained model of Darcy flow.
fn darcy() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/darcy.safetensors")).unwrap()
}

/// Permeabilities of two phases, `[samples, side, side]`: waves, cut at zero.
fn permeabilities(samples: usize, side: usize) -> Vec<f32> {
    let phase = |sample: usize, row: usize, column: usize| {
        let [x, y] = [row, column].map(|cell| cell as f32 / (side - 1) as f32);
        let wave = (4.0 + sample as f32) * x + (7.0 - sample as f32) * y;
        if (wave.sin() + (5.0 * x * y + 0.9 * sample as f32).cos()) > 0.4 { 12.0 } else { 3.0 }
    };
    let cell = |cell: usize| phase(cell / (side * side), cell / side % side, cell % side);
    (0..samples * side * side).map(cell).collect()
}

/// An array as the bytes of an npy file.
fn npy(shape: &[usize], values: Vec<f32>) -> Vec<u8> {
    formats::encode("a.npy".as_ref(), &[Named { name: "a".into(), shape: shape.to_vec(), values }]).unwrap()
}
