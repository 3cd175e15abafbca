//! Fourier series on the unit torus, truncated to wave numbers |k| ≤ modes with 3 · modes < points.
//!
//! With this 2/3 rule (Orszag 1971) the pointwise product of two such series has no aliasing at the wave numbers |k| ≤
//! modes. Real fields are stored as half spectra `[modes + 1, 2 modes + 1]`: rows are ky = 0..=modes, columns are kx in
//! the order 0, 1, …, modes, −modes, …, −1. One complex transform handles two real fields, at the cost of two real
//! transforms; the caller separates them by Hermitian sums.

use std::fmt;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

/// Rows that are transformed together: eight complex numbers fill two cache lines of every column.
const BLOCK: usize = 8;

/// Transforms of `points` × `points` values; several threads can share them.
#[derive(Clone)]
pub struct Torus {
    points: usize,
    modes: usize,
    forward: Arc<dyn Fft<f64>>,
    inverse: Arc<dyn Fft<f64>>,
}

/// Working memory of one transform.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// `[2 modes + 1, points]`: one line per ky (0, …, modes, −modes, …, −1), with kx in the order of the transform
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
    /// Plans the transforms, with as many modes as the 2/3 rule allows.
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

    /// Number of complex coefficients in a half spectrum.
    pub fn half_length(&self) -> usize {
        (self.modes + 1) * self.width()
    }

    /// Wave numbers (kx, ky) in the order of a half spectrum.
    pub fn half_wave_numbers(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        (0..=self.modes as i64).flat_map(move |ky| (0..self.width()).map(move |index| (self.wave_number(index), ky)))
    }

    /// Weight of each coefficient in sums over all modes: 1 for ky = 0, and 2 elsewhere because −k counts as well.
    pub fn half_weights(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.half_length()).map(|index| if index < self.width() { 1.0 } else { 2.0 })
    }

    /// Working memory for one thread.
    pub fn workspace(&self) -> Workspace {
        let scratch = self.forward.get_inplace_scratch_len().max(self.inverse.get_inplace_scratch_len());
        Workspace {
            lines: vec![Complex::default(); self.width() * self.points],
            block: vec![Complex::default(); BLOCK * self.points],
            scratch: vec![Complex::default(); scratch],
        }
    }

    /// Number of wave numbers along one axis.
    fn width(&self) -> usize {
        2 * self.modes + 1
    }

    /// Wave number at an index of an axis of modes.
    fn wave_number(&self, index: usize) -> i64 {
        let signed = index as i64;
        if index <= self.modes { signed } else { signed - self.width() as i64 }
    }

    /// Index of −k along an axis of modes.
    fn mirrored(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.width() - index }
    }

    /// Index of a mode along an axis of `points`.
    fn padded(&self, index: usize) -> usize {
        if index <= self.modes { index } else { index + self.points - self.width() }
    }

    /// Loads Σ c(k) ω̂(k) e^{2πik·x} over all k into the lines; `factor` is c on the half spectrum, and c(−k) = −c(k).
    ///
    /// With c = c₁ + i c₂ this gives two real derivatives of ω, divided by i, as one complex field.
    pub fn load_odd(&self, half: &[Complex<f64>], factor: &[Complex<f64>], work: &mut Workspace) {
        self.load(half, work, |index, value, sign| factor[index] * value * sign);
    }

    /// Loads a real field into the lines.
    fn load_even(&self, half: &[Complex<f64>], work: &mut Workspace) {
        self.load(half, work, |_, value, _| value);
    }

    /// Loads `value(index, coefficient, sign)` for every mode; modes with ky < 0 take the conjugate of their mirror
    /// image and the sign −1.
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
            for (index, target) in (0..=modes).chain(points - modes..points).enumerate() {
                out[target] = if mirror {
                    let opposite = row + self.mirrored(index);
                    value(opposite, half[opposite].conj(), -1.0)
                } else {
                    value(row + index, half[row + index], 1.0)
                };
            }
        }
    }

    /// Transforms the lines to values in space, calls `visit` with each row x, which it may change, and transforms
    /// back.
    ///
    /// The transforms are not normalised: the round trip multiplies the coefficients by points².
    pub fn through_space(&self, work: &mut Workspace, mut visit: impl FnMut(usize, &mut [Complex<f64>])) {
        let Workspace { lines, block, scratch } = work;
        let (points, modes) = (self.points, self.modes);
        self.inverse.process_with_scratch(lines, scratch); // [ky, x]
        for first in (0..points).step_by(BLOCK) {
            let count = BLOCK.min(points - first);
            let rows = &mut block[..count * points]; // [x, ky]
            for (index, line) in lines.chunks_exact(points).enumerate() {
                let target = self.padded(index);
                for (row, value) in line[first..first + count].iter().enumerate() {
                    rows[row * points + target] = *value;
                }
            }
            rows.chunks_exact_mut(points).for_each(|row| row[modes + 1..points - modes].fill(Complex::default()));
            self.inverse.process_with_scratch(rows, scratch); // [x, y]
            rows.chunks_exact_mut(points).enumerate().for_each(|(row, values)| visit(first + row, values));
            self.forward.process_with_scratch(rows, scratch); // [x, ky]
            for (index, line) in lines.chunks_exact_mut(points).enumerate() {
                let source = self.padded(index);
                for (row, value) in line[first..first + count].iter_mut().enumerate() {
                    *value = rows[row * points + source];
                }
            }
        }
        self.forward.process_with_scratch(lines, scratch); // [ky, kx]
    }

    /// Writes `combine(index, g(k), conj g(−k))` for every mode of the half spectrum, where g are the coefficients in
    /// the lines.
    pub fn collect(
        &self,
        work: &Workspace,
        half: &mut [Complex<f64>],
        combine: impl Fn(usize, Complex<f64>, Complex<f64>) -> Complex<f64>,
    ) {
        let (width, points) = (self.width(), self.points);
        for (line, out) in half.chunks_exact_mut(width).enumerate() {
            let same = &work.lines[line * points..][..points];
            let mirror = &work.lines[self.mirrored(line) * points..][..points];
            for (index, value) in out.iter_mut().enumerate() {
                let opposite = mirror[self.padded(self.mirrored(index))].conj();
                *value = combine(line * width + index, same[self.padded(index)], opposite);
            }
        }
    }

    /// The half spectrum of a coarser torus as one of this torus: the additional modes are zero.
    pub fn extended(&self, coarse: &Self, half: &[Complex<f64>]) -> Vec<Complex<f64>> {
        assert!(coarse.modes <= self.modes, "a torus with {} modes has no room for {}", self.modes, coarse.modes);
        let mut extended = vec![Complex::default(); self.half_length()];
        for ((kx, ky), &value) in coarse.half_wave_numbers().zip(half) {
            let column = kx.rem_euclid(self.width() as i64);
            extended[ky as usize * self.width() + column as usize] = value;
        }
        extended
    }

    /// Half spectrum of real values `[points, points]`; higher modes are removed.
    pub fn spectrum(&self, values: &[f64]) -> Vec<Complex<f64>> {
        assert_eq!(values.len(), self.points * self.points, "one value per point of the torus");
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

    /// Values of `function` on the torus, whose sides have the length 2π here.
    fn plane(points: usize, function: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let at = |index: usize| TAU * index as f64 / points as f64;
        (0..points * points).map(|index| function(at(index / points), at(index % points))).collect()
    }

    #[test]
    fn spectrum_and_values_are_inverse_at_odd_and_even_sizes() {
        for points in [8, 15, 16, 21, 48] {
            let torus = Torus::new(points);
            let field = plane(points, |x, y| 0.3 + (2.0 * x + y).sin() - 0.7 * (x - 2.0 * y).cos());
            let back = torus.values(&torus.spectrum(&field));
            let worst = field.iter().zip(&back).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-14, "{points} points: {worst:e}");
        }
    }

    #[test]
    fn a_plane_wave_has_one_coefficient_at_its_wave_number() {
        let torus = Torus::new(16);
        let half = torus.spectrum(&plane(16, |x, y| (3.0 * y - 2.0 * x).cos()));
        for ((kx, ky), value) in torus.half_wave_numbers().zip(half) {
            let expected = if (kx, ky) == (-2, 3) { 0.5 } else { 0.0 };
            assert!((value - expected).norm() < 1e-15, "({kx}, {ky}): {value}");
        }
    }

    #[test]
    fn a_finer_torus_has_the_same_function_at_common_points() {
        let (coarse, fine) = (Torus::new(16), Torus::new(48));
        let function = |x: f64, y: f64| 0.3 + (2.0 * x + y).sin() - 0.7 * (4.0 * x - 5.0 * y).cos();
        let extended = fine.values(&fine.extended(&coarse, &coarse.spectrum(&plane(16, function))));
        let wanted = plane(48, function);
        let worst = extended.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-14, "{worst:e}");
    }

    #[test]
    fn modes_beyond_two_thirds_are_removed() {
        let torus = Torus::new(16);
        let high = torus.spectrum(&plane(16, |x, y| (6.0 * x).cos() + (6.0 * y).sin()));
        assert!(high.iter().all(|value| value.norm() < 1e-15));
    }
}
