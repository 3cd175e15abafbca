//! Arrays of a problem in three dimensions, to try volumes with: −Δu/π² + u³ = f on the unit cube, u = 0 on its faces.
//!
//! `cargo run --release -p lamo --example volume_data -- OUT` writes `f.npy` and `u.npy`, `[200, 32, 32, 32]` each; then
//! `lamo data import --input f=OUT/f.npy --output u=OUT/u.npy --grid 32x32x32 --out data/cube`.
//!
//! u is a sum of products of sines with random heights, and f follows from it.

use std::error::Error;
use std::f64::consts::PI;
use std::path::Path;

const SAMPLES: usize = 200;
const SIDE: usize = 32;
/// Half waves along each axis.
const WAVES: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::args().nth(1).ok_or("expected a folder for the arrays")?;
    std::fs::create_dir_all(&out)?;
    let (mut sources, mut solutions) = (Vec::new(), Vec::new());
    for sample in 0..SAMPLES {
        let mut heights = vec![0.0; WAVES * WAVES * WAVES];
        let mut curved = heights.clone();
        for (number, height) in heights.iter_mut().enumerate() {
            let waves = [number / (WAVES * WAVES), number / WAVES % WAVES, number % WAVES].map(|k| (k + 1) as f64);
            let eigenvalue: f64 = waves.iter().map(|k| k * k).sum();
            *height = 12.0 * (random(sample, number) - 0.5) / eigenvalue;
            curved[number] = eigenvalue * *height;
        }
        let solution = summed(&heights);
        sources.extend(summed(&curved).iter().zip(&solution).map(|(curved, u)| curved + u.powi(3)));
        solutions.extend(solution);
    }
    let shape = [SAMPLES, SIDE, SIDE, SIDE];
    save(&Path::new(&out).join("f.npy"), &shape, &sources)?;
    save(&Path::new(&out).join("u.npy"), &shape, &solutions)
}

/// Σ h_{klm} sin(πkx) sin(πly) sin(πmz) at the points of the cube, one axis after the other.
fn summed(heights: &[f64]) -> Vec<f64> {
    let sine = |k: usize, place: usize| (PI * (k + 1) as f64 * place as f64 / (SIDE - 1) as f64).sin();
    let mut values = heights.to_vec();
    for _ in 0..3 {
        // [k, rest] → [rest, places]
        let rest = values.len() / WAVES;
        let at = |r: usize, place: usize| (0..WAVES).map(|k| values[k * rest + r] * sine(k, place)).sum::<f64>();
        values =
            (0..rest).flat_map(|r| (0..SIDE).map(move |place| (r, place))).map(|(r, place)| at(r, place)).collect();
    }
    values
}

/// A number from 0 to 1 for each pair of numbers, as good as random.
fn random(sample: usize, number: usize) -> f64 {
    let mut state = ((sample as u64) << 32) | number as u64;
    for _ in 0..3 {
        state = (state ^ (state >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x632b_e59b_d9b4_e019);
    }
    (state >> 11) as f64 / (1u64 << 53) as f64
}

/// Writes numbers of a shape as an array of NumPy in single precision.
fn save(path: &Path, shape: &[usize], values: &[f64]) -> Result<(), Box<dyn Error>> {
    let axes: Vec<_> = shape.iter().map(ToString::to_string).collect();
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}\n", axes.join(", "));
    let mut bytes = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    bytes.extend(values.iter().flat_map(|value| (*value as f32).to_le_bytes()));
    std::fs::write(path, bytes)?;
    Ok(())
}
