//! Gaussian random fields with covariance τ^(2α−2) (−Δ + τ²)^(−α) on the unit square.
//!
//! A cosine transform gives fields with Neumann walls (the Darcy prior); a Fourier transform gives fields on the torus
//! (the Navier-Stokes prior, with twice the covariance, as in the authors' code). Random numbers are drawn in shells of
//! growing wave number. One random stream therefore gives the same function at every resolution: a finer grid adds
//! modes and does not change the coarse ones.

use std::f64::consts::{PI, SQRT_2, TAU};

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rustdct::DctPlanner;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

/// The random stream of one sample. It depends on seed and index only, and is the same on every machine and version.
pub fn stream(seed: u64, index: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(index);
    random
}

/// A uniform number above 0 and at most 1, so its logarithm is finite.
pub(crate) fn uniform(random: &mut impl Rng) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) * (-53f64).exp2()
}

/// Two independent standard normal numbers (Box and Muller 1958).
pub fn normal_pair(random: &mut impl Rng) -> [f64; 2] {
    let radius = (-2.0 * uniform(random).ln()).sqrt();
    let (sine, cosine) = (TAU * uniform(random)).sin_cos();
    [radius * cosine, radius * sine]
}

/// The covariance τ^(2α−2) (−Δ + τ²)^(−α); the mean of the field is zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Covariance {
    /// α > 1: decay of the spectrum
    pub alpha: f64,
    /// τ > 0: inverse correlation length
    pub tau: f64,
}

impl Covariance {
    /// Standard deviation of the mode with −Δ = `eigenvalue`.
    fn deviation(&self, eigenvalue: f64) -> f64 {
        if eigenvalue == 0.0 {
            return 0.0;
        }
        let Self { alpha, tau } = *self;
        // τ^(α−1) (λ + τ²)^(−α/2), in a form that does not overflow
        (1.0 + eigenvalue / (tau * tau)).powf(-alpha / 2.0) / tau
    }

    /// `[points, points]` values at the cell centres (i + 1/2) / points, with zero normal derivative at the walls.
    ///
    /// Equals `idct2(points · deviation · ξ)` with the orthonormal transform of `GRF.m`.
    pub fn neumann(&self, points: usize, random: &mut impl Rng) -> Vec<f64> {
        let mut modes = vec![0.0; points * points];
        let mut second_of_pair = None;
        for shell in 0..points {
            let modes_of_shell = (0..=shell).map(|k| (shell, k)).chain((0..shell).map(|k| (k, shell)));
            for (k1, k2) in modes_of_shell {
                let normal = second_of_pair.take().unwrap_or_else(|| {
                    let [first, second] = normal_pair(random);
                    second_of_pair = Some(second);
                    first
                });
                let eigenvalue = PI * PI * (k1 * k1 + k2 * k2) as f64;
                modes[k1 * points + k2] = self.deviation(eigenvalue) * cosine_scale(k1) * cosine_scale(k2) * normal;
            }
        }
        let cosine = DctPlanner::new().plan_dct3(points);
        for _axis in 0..2 {
            modes.chunks_exact_mut(points).for_each(|row| cosine.process_dct3(row));
            modes = transposed(&modes, points);
        }
        modes
    }

    /// `[points, points]` values at the nodes i / points of the unit torus.
    ///
    /// Equals `Re ifft2(points² √2 · deviation · (ξ₁ + iξ₂))` as in `random_fields.py`.
    pub fn periodic(&self, points: usize, random: &mut impl Rng) -> Vec<f64> {
        let mut modes = vec![Complex::default(); points * points];
        let least = -((points / 2) as i64);
        let waves = least..least + points as i64;
        for shell in 0..=-least {
            for (k1, k2) in square_shell(shell).filter(|(k1, k2)| waves.contains(k1) && waves.contains(k2)) {
                let [real, imaginary] = normal_pair(random);
                let deviation = SQRT_2 * self.deviation(TAU * TAU * (k1 * k1 + k2 * k2) as f64);
                let index = |k: i64| k.rem_euclid(points as i64) as usize;
                modes[index(k1) * points + index(k2)] = Complex::new(real, imaginary) * deviation;
            }
        }
        let fourier = FftPlanner::new().plan_fft_inverse(points);
        for _axis in 0..2 {
            fourier.process(&mut modes);
            modes = transposed(&modes, points);
        }
        modes.iter().map(|value| value.re).collect()
    }
}

/// Factor of cos(πkx) for unit mean square; the DCT-III halves its first term.
fn cosine_scale(k: usize) -> f64 {
    if k == 0 { 2.0 } else { SQRT_2 }
}

/// The wave numbers with max(|k1|, |k2|) = `shell`, in a fixed order.
fn square_shell(shell: i64) -> impl Iterator<Item = (i64, i64)> {
    (-shell..=shell).flat_map(move |k1| {
        let step = if k1.abs() == shell { 1 } else { 2 * shell as usize };
        (-shell..=shell).step_by(step.max(1)).map(move |k2| (k1, k2))
    })
}

fn transposed<Value: Copy>(matrix: &[Value], points: usize) -> Vec<Value> {
    (0..points).flat_map(|column| (0..points).map(move |row| matrix[row * points + column])).collect()
}

#[cfg(test)]
mod tests {
    use rand::RngCore;

    use super::*;

    const DARCY: Covariance = Covariance { alpha: 2.0, tau: 3.0 };
    const VORTICITY: Covariance = Covariance { alpha: 2.5, tau: 7.0 };

    fn mean_square(field: &[f64]) -> f64 {
        field.iter().map(|value| value * value).sum::<f64>() / field.len() as f64
    }

    #[test]
    fn the_neumann_field_equals_its_cosine_series() {
        let points = 6;
        let field = DARCY.neumann(points, &mut stream(1, 2));
        let mut random = stream(1, 2);
        let mut numbers = std::iter::repeat_with(|| normal_pair(&mut random)).flatten();
        let mut series = vec![0.0; points * points];
        for shell in 0..points {
            for (k1, k2) in (0..=shell).map(|k| (shell, k)).chain((0..shell).map(|k| (k, shell))) {
                let amplitude = DARCY.deviation(PI * PI * (k1 * k1 + k2 * k2) as f64) * numbers.next().unwrap();
                for (point, value) in series.iter_mut().enumerate() {
                    let cosine = |i: usize, k: usize| {
                        let norm = if k == 0 { 1.0 } else { SQRT_2 };
                        norm * (PI * k as f64 * (i as f64 + 0.5) / points as f64).cos()
                    };
                    *value += amplitude * cosine(point / points, k1) * cosine(point % points, k2);
                }
            }
        }
        for (found, expected) in field.iter().zip(&series) {
            assert!((found - expected).abs() < 1e-13, "found {found}, expected {expected}");
        }
    }

    #[test]
    fn variances_match_the_sum_over_the_spectrum() {
        let (points, samples) = (24, 400);
        let waves = || (0..points).flat_map(|k1| (0..points).map(move |k2| (k1 as i64, k2 as i64)));
        let neumann: f64 = waves().map(|(k1, k2)| DARCY.deviation(PI * PI * (k1 * k1 + k2 * k2) as f64).powi(2)).sum();
        let centred = |k: i64| k - points as i64 / 2;
        let periodic: f64 = waves()
            .map(|(k1, k2)| (centred(k1), centred(k2)))
            .map(|(k1, k2)| 2.0 * VORTICITY.deviation(TAU * TAU * (k1 * k1 + k2 * k2) as f64).powi(2))
            .sum();
        type Draw = fn(usize, &mut ChaCha8Rng) -> Vec<f64>;
        let fields: [(f64, Draw); 2] = [
            (neumann, |points, random| DARCY.neumann(points, random)),
            (periodic, |points, random| VORTICITY.periodic(points, random)),
        ];
        for (expected, draw) in fields {
            let found: Vec<_> = (0..samples).map(|k| mean_square(&draw(points, &mut stream(3, k)))).collect();
            let mean = found.iter().sum::<f64>() / samples as f64;
            let spread = found.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / samples as f64;
            let bound = 4.0 * (spread / samples as f64).sqrt(); // four standard errors: one false alarm in 16,000
            assert!((mean - expected).abs() < bound, "mean square {mean}, expected {expected} ± {bound}");
        }
    }

    #[test]
    fn a_finer_grid_gives_the_same_function() {
        // The finer grid adds modes above the coarse band; their deviation is √tail, and the bound allows five of them.
        let (coarse, fine) = (VORTICITY.periodic(33, &mut stream(5, 0)), VORTICITY.periodic(99, &mut stream(5, 0)));
        let tail: f64 = (17..50)
            .flat_map(square_shell)
            .map(|(k1, k2)| 2.0 * VORTICITY.deviation(TAU * TAU * (k1 * k1 + k2 * k2) as f64).powi(2))
            .sum();
        for row in 0..33 {
            for column in 0..33 {
                let change = (coarse[row * 33 + column] - fine[3 * row * 99 + 3 * column]).abs();
                assert!(change < 5.0 * tail.sqrt(), "({row}, {column}) changes by {change}");
            }
        }
    }

    #[test]
    fn streams_of_neighbouring_samples_have_no_number_in_common() {
        let first: Vec<u64> = std::iter::repeat_with({
            let mut random = stream(9, 0);
            move || random.next_u64()
        })
        .take(64)
        .collect();
        for (seed, index) in [(9, 1), (10, 0)] {
            let mut random = stream(seed, index);
            assert!((0..64).all(|_| !first.contains(&random.next_u64())), "stream ({seed}, {index}) repeats numbers");
        }
    }
}
