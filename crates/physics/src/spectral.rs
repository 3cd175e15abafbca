//! Fourier series on the unit torus, kept to wave numbers |k| ≤ modes with 3 · modes < points.
//!
//! Under this 2/3 rule (Orszag 1971) the product of two such series, taken point by point, comes back to the kept wave
//! numbers without aliasing. Real fields are stored as half spectra `[modes + 1, 2 modes + 1]`: ky = 0..=modes, and for
//! each kx in the order 0, 1, …, modes, −modes, …, −1. Two real fields travel as one complex field, which costs what
//! two real transforms would and needs no untangling beyond the Hermitian sums of the caller.

use std::fmt;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

/// Rows transformed together: eight complex numbers fill two cache lines of every column read.
const BLOCK: usize = 8;

/// Transforms of `points` × `points` values, ready to use from many threads.
#[derive(Clone)]
pub struct Torus {
    points: usize,
    modes: usize,
    forward: Arc<dyn Fft<f64>>,
    inverse: Arc<dyn Fft<f64>>,
}

/// The memory one transform works in.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// `[2 modes + 1, points]`: for each ky (0, …, modes, −modes, …, −1) all kx in the order of the transform
    lines: Vec<Complex<f64>>,
    block: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl fmt::Debug for Torus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Torus {{ points: {}, modes: {} }}", self.points, self.modes)
    }
}

impl Torus {
    /// Keeps as many modes as the 2/3 rule allows.
    pub fn new(points: usize) -> Self {
        let mut planner = FftPlanner::new();
        Self {
            points,
            modes: (points - 1) / 3,
            forward: planner.plan_fft_forward(points),
            inverse: planner.plan_fft_inverse(points),
        }
    }

    /// Points along each side.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Complex numbers in a half spectrum.
    pub fn half_length(&self) -> usize {
        (self.modes + 1) * self.width()
    }

    /// Wave numbers (kx, ky) in the order of a half spectrum.
    pub fn half_wave_numbers(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        (0..=self.modes as i64).flat_map(move |ky| (0..self.width()).map(move |place| (self.wave_number(place), ky)))
    }

    /// How often a half spectrum stands for each of its modes: once on ky = 0, twice elsewhere.
    pub fn half_weights(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.half_length()).map(|place| if place < self.width() { 1.0 } else { 2.0 })
    }

    /// Memory for one thread.
    pub fn workspace(&self) -> Workspace {
        let scratch = self.forward.get_inplace_scratch_len().max(self.inverse.get_inplace_scratch_len());
        Workspace {
            lines: vec![Complex::default(); self.width() * self.points],
            block: vec![Complex::default(); BLOCK * self.points],
            scratch: vec![Complex::default(); scratch],
        }
    }

    /// Kept wave numbers along one axis.
    fn width(&self) -> usize {
        2 * self.modes + 1
    }

    fn wave_number(&self, place: usize) -> i64 {
        let signed = place as i64;
        if place <= self.modes { signed } else { signed - self.width() as i64 }
    }

    /// Place of −k along one axis of kept wave numbers.
    fn mirrored(&self, place: usize) -> usize {
        if place == 0 { 0 } else { self.width() - place }
    }

    /// Place of a kept wave number along an axis of `points`.
    fn padded(&self, place: usize) -> usize {
        if place <= self.modes { place } else { place + self.points - self.width() }
    }

    /// Puts Σ c(k) ω̂(k) e^{2πik·x}, for all k, on the lines: `factor` is c on the half spectrum and obeys c(−k) = −c(k).
    ///
    /// With odd factors c = c₁ + i c₂ this carries two real derivatives of ω, divided by i, as one complex field.
    pub fn load_odd(&self, half: &[Complex<f64>], factor: &[Complex<f64>], work: &mut Workspace) {
        self.load(half, work, |place, value, sign| factor[place] * value * sign);
    }

    /// Puts a real field on the lines.
    fn load_even(&self, half: &[Complex<f64>], work: &mut Workspace) {
        self.load(half, work, |_, value, _| value);
    }

    fn load(
        &self,
        half: &[Complex<f64>],
        work: &mut Workspace,
        value: impl Fn(usize, Complex<f64>, f64) -> Complex<f64>,
    ) {
        let (width, modes, points) = (self.width(), self.modes, self.points);
        for (line, out) in work.lines.chunks_exact_mut(points).enumerate() {
            let mirror = line > modes;
            let row = width * if mirror { self.mirrored(line) } else { line };
            out[modes + 1..points - modes].fill(Complex::default());
            for (place, target) in (0..=modes).chain(points - modes..points).enumerate() {
                out[target] = if mirror {
                    let opposite = row + self.mirrored(place);
                    value(opposite, half[opposite].conj(), -1.0)
                } else {
                    value(row + place, half[row + place], 1.0)
                };
            }
        }
    }

    /// Goes from the lines to values in space, lets `visit` see and change row x of them, and comes back to the lines.
    ///
    /// Both ways without normalisation: series coefficients come back multiplied by points².
    pub fn through_space(&self, work: &mut Workspace, mut visit: impl FnMut(usize, &mut [Complex<f64>])) {
        let Workspace { lines, block, scratch } = work;
        let (points, modes) = (self.points, self.modes);
        self.inverse.process_with_scratch(lines, scratch); // [ky, x]
        for first in (0..points).step_by(BLOCK) {
            let count = BLOCK.min(points - first);
            let rows = &mut block[..count * points]; // [x, ky]
            for (place, line) in lines.chunks_exact(points).enumerate() {
                let target = self.padded(place);
                for (row, value) in line[first..first + count].iter().enumerate() {
                    rows[row * points + target] = *value;
                }
            }
            rows.chunks_exact_mut(points).for_each(|row| row[modes + 1..points - modes].fill(Complex::default()));
            self.inverse.process_with_scratch(rows, scratch); // [x, y]
            rows.chunks_exact_mut(points).enumerate().for_each(|(row, values)| visit(first + row, values));
            self.forward.process_with_scratch(rows, scratch); // [x, ky]
            for (place, line) in lines.chunks_exact_mut(points).enumerate() {
                let source = self.padded(place);
                for (row, value) in line[first..first + count].iter_mut().enumerate() {
                    *value = rows[row * points + source];
                }
            }
        }
        self.forward.process_with_scratch(lines, scratch); // [ky, kx]
    }

    /// Writes `combine(place, g(k), conj g(−k))` for every mode of the half spectrum, g being what the lines hold.
    pub fn collect(
        &self,
        work: &Workspace,
        half: &mut [Complex<f64>],
        combine: impl Fn(usize, Complex<f64>, Complex<f64>) -> Complex<f64>,
    ) {
        let (width, points) = (self.width(), self.points);
        for (line, out) in half.chunks_exact_mut(width).enumerate() {
            let here = &work.lines[line * points..][..points];
            let there = &work.lines[self.mirrored(line) * points..][..points];
            for (place, value) in out.iter_mut().enumerate() {
                let opposite = there[self.padded(self.mirrored(place))].conj();
                *value = combine(line * width + place, here[self.padded(place)], opposite);
            }
        }
    }

    /// Half spectrum of real values `[points, points]`, projected onto the kept modes.
    pub fn spectrum(&self, values: &[f64]) -> Vec<Complex<f64>> {
        assert_eq!(values.len(), self.points * self.points, "values on the torus");
        let mut work = self.workspace();
        self.through_space(&mut work, |x, row| {
            row.iter_mut().zip(&values[x * self.points..]).for_each(|(target, value)| *target = (*value).into());
        });
        let mut half = vec![Complex::default(); self.half_length()];
        let scale = 0.5 / (self.points * self.points) as f64;
        self.collect(&work, &mut half, |_, value, opposite| (value + opposite) * scale);
        half
    }

    /// Values `[points, points]` of a half spectrum.
    pub fn values(&self, half: &[Complex<f64>]) -> Vec<f64> {
        let mut work = self.workspace();
        self.load_even(half, &mut work);
        let mut values = Vec::with_capacity(self.points * self.points);
        self.through_space(&mut work, |_, row| values.extend(row.iter().map(|value| value.re)));
        values
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    fn plane(points: usize, function: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let at = |index: usize| TAU * index as f64 / points as f64;
        (0..points * points).map(|place| function(at(place / points), at(place % points))).collect()
    }

    #[test]
    fn values_survive_the_round_trip_at_odd_and_even_sizes() {
        for points in [8, 15, 16, 21, 48] {
            let torus = Torus::new(points);
            let field = plane(points, |x, y| 0.3 + (2.0 * x + y).sin() - 0.7 * (x - 2.0 * y).cos());
            let back = torus.values(&torus.spectrum(&field));
            let worst = field.iter().zip(&back).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-14, "{points} points: {worst:e}");
        }
    }

    #[test]
    fn a_plane_wave_has_one_coefficient_where_its_wave_number_says() {
        let torus = Torus::new(16);
        let half = torus.spectrum(&plane(16, |x, y| (3.0 * y - 2.0 * x).cos()));
        for ((kx, ky), value) in torus.half_wave_numbers().zip(half) {
            let expected = if (kx, ky) == (-2, 3) { 0.5 } else { 0.0 };
            assert!((value - expected).norm() < 1e-15, "({kx}, {ky}): {value}");
        }
    }

    #[test]
    fn modes_beyond_two_thirds_are_removed() {
        let torus = Torus::new(16);
        let high = torus.spectrum(&plane(16, |x, y| (6.0 * x).cos() + (6.0 * y).sin()));
        assert!(high.iter().all(|value| value.norm() < 1e-15));
    }
}
