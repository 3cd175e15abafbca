//! u_t + u u_x = L u on a circle: what Burgers', Korteweg and de Vries' and Kuramoto and Sivashinsky's equation share.

use std::f64::consts::TAU;

use rand::Rng;
use rustfft::num_complex::Complex;

use super::series::RightSide;
use crate::exponential::Nonlinear;
use crate::periodic::Domain;
use crate::random_field::uniform;

/// −u u_x = −(u²/2)_x, which keeps the mean of u, and a linear part.
#[derive(Debug)]
pub(super) struct Convective {
    domain: Domain,
    /// L of each coefficient.
    symbol: Vec<Complex<f64>>,
    /// −i κ / 2
    slope: Vec<Complex<f64>>,
}

impl Convective {
    /// On a circle of length `extent`; `symbol` gives L of the wave number κ = 2π k / extent.
    pub(super) fn boxed(domain: &Domain, extent: f64, symbol: impl Fn(f64) -> Complex<f64>) -> Box<dyn RightSide> {
        let waves: Vec<f64> = domain.wave_numbers().iter().map(|[k, _]| TAU * k / extent).collect();
        Box::new(Self {
            domain: domain.clone(),
            symbol: waves.iter().map(|&wave| symbol(wave)).collect(),
            slope: waves.iter().map(|&wave| Complex::new(0.0, -0.5 * wave)).collect(),
        })
    }
}

impl Nonlinear for Convective {
    fn rate(&self, state: &[Complex<f64>], rate: &mut [Complex<f64>]) {
        let mut values = self.domain.values(state);
        values.iter_mut().for_each(|value| *value *= *value);
        let squares = self.domain.spectrum(&values);
        rate.iter_mut().zip(self.slope.iter().zip(squares)).for_each(|(rate, (slope, square))| *rate = slope * square);
    }
}

impl RightSide for Convective {
    fn symbol(&self) -> Vec<Complex<f64>> {
        self.symbol.clone()
    }
}

/// Σ A sin(2π (k · x) + φ) at the points of a domain: `count` waves with whole wave numbers from 1 to `most` along each
/// axis, A even between the two amplitudes, φ even on the circle. On a torus wave numbers have random signs.
pub(super) fn sines(
    domain: &Domain,
    random: &mut impl Rng,
    count: usize,
    most: usize,
    [low, high]: [f64; 2],
) -> Vec<f64> {
    let waves: Vec<([f64; 2], f64, f64)> = (0..count)
        .map(|_| {
            let mut whole = || 1.0 + (most as f64 * uniform(random)).floor().min(most as f64 - 1.0);
            let wave = [whole(), whole()];
            let sign = if uniform(random) < 0.5 { -1.0 } else { 1.0 };
            let amplitude = low + (high - low) * uniform(random);
            let second = if domain.dimensions() == 2 { sign * wave[1] } else { 0.0 };
            ([wave[0], second], amplitude, TAU * uniform(random))
        })
        .collect();
    domain.sampled(|[x, y]| {
        let term =
            |&([kx, ky], amplitude, phase): &([f64; 2], f64, f64)| amplitude * (TAU * (kx * x + ky * y) + phase).sin();
        waves.iter().map(term).sum()
    })
}
