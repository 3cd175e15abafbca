//! Real fields on a circle or on a torus as half spectra, with wave numbers |k| ≤ modes and 3 · modes < points.
//!
//! Products of two fields have no aliasing under this 2/3 rule (Orszag 1971). Wave numbers count waves around the
//! domain; equations multiply them by 2π / extent.

use std::fmt;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use crate::spectral::Torus;

/// Transforms of `points` values around a circle; several threads can share them.
#[derive(Clone)]
pub struct Circle {
    points: usize,
    modes: usize,
    forward: Arc<dyn Fft<f64>>,
    inverse: Arc<dyn Fft<f64>>,
}

impl fmt::Debug for Circle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Circle {{ points: {}, modes: {} }}", self.points, self.modes)
    }
}

/// A periodic domain of one or two dimensions.
#[derive(Clone, Debug)]
pub enum Domain {
    /// One dimension; half spectra have the wave numbers 0 to modes.
    Circle(Circle),
    /// Two dimensions.
    Torus(Torus),
}

impl Domain {
    /// A circle or a torus with this many points along each side.
    pub fn new(dimensions: usize, points: usize) -> Self {
        if dimensions == 2 {
            return Self::Torus(Torus::new(points));
        }
        let mut planner = FftPlanner::new();
        let (forward, inverse) = (planner.plan_fft_forward(points), planner.plan_fft_inverse(points));
        Self::Circle(Circle { points, modes: (points - 1) / 3, forward, inverse })
    }

    /// Points along each side.
    pub fn side(&self) -> usize {
        match self {
            Self::Circle(circle) => circle.points,
            Self::Torus(torus) => torus.points(),
        }
    }

    /// Number of dimensions.
    pub fn dimensions(&self) -> usize {
        if let Self::Circle(_) = self { 1 } else { 2 }
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.side().pow(self.dimensions() as u32)
    }

    /// Number of complex coefficients of a half spectrum.
    pub fn half_length(&self) -> usize {
        match self {
            Self::Circle(circle) => circle.modes + 1,
            Self::Torus(torus) => torus.half_length(),
        }
    }

    /// Wave numbers (kx, ky) in the order of a half spectrum; ky = 0 on a circle.
    pub fn wave_numbers(&self) -> Vec<[f64; 2]> {
        match self {
            Self::Circle(circle) => (0..=circle.modes).map(|k| [k as f64, 0.0]).collect(),
            Self::Torus(torus) => torus.half_wave_numbers().map(|(kx, ky)| [kx as f64, ky as f64]).collect(),
        }
    }

    /// Mean over the domain of the product of two fields (Parseval).
    pub fn mean_product(&self, first: &[Complex<f64>], second: &[Complex<f64>]) -> f64 {
        let weights: Vec<f64> = match self {
            Self::Circle(circle) => (0..=circle.modes).map(|k| if k == 0 { 1.0 } else { 2.0 }).collect(),
            Self::Torus(torus) => torus.half_weights().collect(),
        };
        weights.iter().zip(first.iter().zip(second)).map(|(weight, (a, b))| weight * (a * b.conj()).re).sum()
    }

    /// Values at the points x = i / side, y = j / side of a half spectrum, the last axis running fastest.
    pub fn values(&self, half: &[Complex<f64>]) -> Vec<f64> {
        match self {
            Self::Circle(circle) => {
                let mut line = vec![Complex::default(); circle.points];
                line[..=circle.modes].copy_from_slice(half);
                (1..=circle.modes).for_each(|k| line[circle.points - k] = half[k].conj());
                circle.inverse.process(&mut line);
                line.iter().map(|value| value.re).collect()
            }
            Self::Torus(torus) => torus.values(half),
        }
    }

    /// Half spectrum of values; higher modes are removed.
    pub fn spectrum(&self, values: &[f64]) -> Vec<Complex<f64>> {
        match self {
            Self::Circle(circle) => {
                assert_eq!(values.len(), circle.points, "one value per point of the circle");
                let mut line: Vec<Complex<f64>> = values.iter().map(|&value| value.into()).collect();
                circle.forward.process(&mut line);
                line[..=circle.modes].iter().map(|value| value / circle.points as f64).collect()
            }
            Self::Torus(torus) => torus.spectrum(values),
        }
    }

    /// The half spectrum of a coarser domain as one of this domain: the additional modes are zero.
    pub fn extended(&self, coarse: &Self, half: &[Complex<f64>]) -> Vec<Complex<f64>> {
        match (self, coarse) {
            (Self::Torus(fine), Self::Torus(coarse)) => fine.extended(coarse, half),
            _ => {
                let mut extended = vec![Complex::default(); self.half_length()];
                extended[..half.len()].copy_from_slice(half);
                extended
            }
        }
    }

    /// Values of a function at the points, each as coordinates from 0 to below 1.
    pub fn sampled(&self, function: impl Fn([f64; 2]) -> f64) -> Vec<f64> {
        let side = self.side();
        let at = |index: usize| index as f64 / side as f64;
        match self {
            Self::Circle(_) => (0..side).map(|i| function([at(i), 0.0])).collect(),
            Self::Torus(_) => (0..side * side).map(|i| function([at(i / side), at(i % side)])).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    #[test]
    fn spectrum_and_values_are_inverse_and_a_wave_has_its_coefficient() {
        for (dimensions, points) in [(1, 16), (1, 21), (2, 12)] {
            let domain = Domain::new(dimensions, points);
            let values = domain.sampled(|[x, y]| 0.3 + (TAU * (3.0 * x - 2.0 * y)).cos());
            let half = domain.spectrum(&values);
            for (wave, value) in domain.wave_numbers().iter().zip(&half) {
                let expected = match wave {
                    [0.0, 0.0] => 0.3,
                    [3.0, 0.0] if dimensions == 1 => 0.5,
                    [-3.0, 2.0] => 0.5,
                    _ => 0.0,
                };
                assert!((value - expected).norm() < 1e-15, "{wave:?}: {value}");
            }
            let worst = domain.values(&half).iter().zip(&values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-14, "{points}: {worst:e}");
            let size = values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64;
            assert!((domain.mean_product(&half, &half) - size).abs() < 1e-14);
            let fine = Domain::new(dimensions, 3 * points);
            let extended = fine.values(&fine.extended(&domain, &half));
            let wanted = fine.sampled(|[x, y]| 0.3 + (TAU * (3.0 * x - 2.0 * y)).cos());
            assert!(extended.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-14));
        }
    }
}
