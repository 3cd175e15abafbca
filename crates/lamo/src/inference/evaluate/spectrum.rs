//! Error and truth by wave number: the orthonormal cosine transform of a line, plane or volume, its squares summed over rings.
//!
//! Mode (p, q) of the transform holds p/2 and q/2 waves per side; ring k holds the modes with √(p² + q²)/2 nearest to k. The
//! rings of a volume are shells of modes (p, q, r).
//! A field need not be periodic, since its even mirror image is continuous. On deformed meshes waves are counted along
//! the mesh lines. The squares of each sample are divided by ‖truth‖², so the rings of the truth sum to 1 and those of
//! the error to the mean square of the relative L2 (Parseval).

use lamo_geometry::Grid;
use rustdct::{DctPlanner, TransformType2And3};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// First wave numbers of the middle and the high band, as in PDEBench (Takamoto et al. 2022): 0–4, 5–12, 13 and above.
pub const BANDS: [usize; 2] = [5, 13];

/// Mean squares by wave number, relative to the mean square of the truth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spectrum {
    /// `[wave numbers]` of the error
    pub error: Vec<f64>,
    /// `[wave numbers]` of the truth; they sum to 1
    pub truth: Vec<f64>,
}

/// A range of wave numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// `low`, `middle` or `high`.
    pub name: &'static str,
    /// Its wave numbers; the high band of a coarse plane is empty.
    pub waves: std::ops::Range<usize>,
    /// Root mean square of the error relative to the whole truth. The squares of the bands sum to the square of the total.
    pub error: f64,
    /// Root mean square of the error relative to the truth in this band.
    pub relative: f64,
    /// Share of the squared error.
    pub share: f64,
}

impl Spectrum {
    /// Low, middle and high.
    pub fn bands(&self) -> [Band; 3] {
        let end = self.error.len();
        let [middle, high] = BANDS.map(|first| first.min(end));
        let total: f64 = self.error.iter().sum();
        [("low", 0..middle), ("middle", middle..high), ("high", high..end)].map(|(name, waves)| {
            let [error, truth] = [&self.error, &self.truth].map(|rings| rings[waves.clone()].iter().sum::<f64>());
            let relative = if error == 0.0 { 0.0 } else { (error / truth).sqrt() };
            let share = if error == 0.0 { 0.0 } else { error / total };
            Band { name, waves, error: error.sqrt(), relative, share }
        })
    }
}

/// Sums the squares of the modes ring by ring.
pub(super) struct Analyser {
    extents: [usize; 3],
    transforms: [Arc<dyn TransformType2And3<f64>>; 3],
    /// `[points]` the ring of each mode
    ring: Vec<usize>,
    sums: Spectrum,
}

impl Analyser {
    /// `None` for a cloud, which has no axes to transform along. A line and a plane are boxes that are one point thick.
    pub(super) fn of(grid: Grid) -> Option<Analyser> {
        let extents = grid.extents()?;
        let [_, columns, layers] = extents;
        let mut planner = DctPlanner::new();
        let ring = |mode: usize| {
            let along = [mode / (columns * layers), mode / layers % columns, mode % layers].map(|waves| waves as f64);
            along[0].hypot(along[1].hypot(along[2])) / 2.0
        };
        let ring: Vec<usize> = (0..grid.points()).map(|mode| ring(mode).round() as usize).collect();
        let empty = vec![0.0; ring.iter().max()? + 1];
        let transforms = extents.map(|points| planner.plan_dct2(points));
        Some(Analyser { extents, transforms, ring, sums: Spectrum { error: empty.clone(), truth: empty } })
    }

    /// Adds one plane; `norm` is the sum of squares of the truth of the whole sample.
    pub(super) fn add(&mut self, error: &mut [f64], truth: &mut [f64], norm: f64) {
        for field in [&mut *error, &mut *truth] {
            self.transform(field);
        }
        for (mode, &ring) in self.ring.iter().enumerate() {
            self.sums.error[ring] += error[mode] * error[mode] / norm;
            self.sums.truth[ring] += truth[mode] * truth[mode] / norm;
        }
    }

    /// `[wave numbers]` the energy of a field in each ring.
    pub(super) fn energies(&self, mut field: Vec<f64>) -> Vec<f64> {
        self.transform(&mut field);
        let mut energies = vec![0.0; self.sums.truth.len()];
        self.ring.iter().zip(&field).for_each(|(&ring, mode)| energies[ring] += mode * mode);
        energies
    }

    /// The orthonormal transform along all axes, in place.
    fn transform(&self, field: &mut [f64]) {
        let along = |transform: &Arc<dyn TransformType2And3<f64>>, line: &mut [f64]| {
            transform.process_dct2(line);
            let scale = (2.0 / line.len() as f64).sqrt();
            line.iter_mut().for_each(|value| *value *= scale);
            line[0] *= 0.5f64.sqrt();
        };
        for axis in (0..self.extents.len()).rev().filter(|&axis| self.extents[axis] > 1) {
            let (extent, stride) = (self.extents[axis], self.extents[axis + 1..].iter().product::<usize>());
            let mut line = vec![0.0; extent];
            for block in field.chunks_exact_mut(extent * stride) {
                for first in 0..stride {
                    line.iter_mut().zip(block[first..].iter().step_by(stride)).for_each(|(to, from)| *to = *from);
                    along(&self.transforms[axis], &mut line);
                    block[first..].iter_mut().step_by(stride).zip(&line).for_each(|(to, from)| *to = *from);
                }
            }
        }
    }

    pub(super) fn finish(mut self, samples: f64) -> Spectrum {
        for rings in [&mut self.sums.error, &mut self.sums.truth] {
            rings.iter_mut().for_each(|ring| *ring /= samples);
        }
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    const ROWS: usize = 40;
    const COLUMNS: usize = 36;

    /// cos of `[p, q]` half waves, sampled at the middles of the cells.
    fn wave([p, q]: [usize; 2]) -> Vec<f64> {
        let value =
            |half: usize, place: usize, points: usize| (PI * half as f64 * (place as f64 + 0.5) / points as f64).cos();
        let point = |at: usize| value(p, at / COLUMNS, ROWS) * value(q, at % COLUMNS, COLUMNS);
        (0..ROWS * COLUMNS).map(point).collect()
    }

    fn squares(values: &[f64]) -> f64 {
        values.iter().map(|value| value * value).sum()
    }

    fn spectrum(error: &[f64], truth: &[f64]) -> Spectrum {
        let mut analyser = Analyser::of(Grid::Plane { rows: ROWS, columns: COLUMNS }).unwrap();
        analyser.add(&mut error.to_vec(), &mut truth.to_vec(), squares(truth));
        analyser.finish(1.0)
    }

    #[test]
    fn a_wave_lands_in_its_own_ring_with_all_its_energy() {
        for (halves, ring) in [([0, 0], 0), ([4, 0], 2), ([0, 10], 5), ([6, 8], 5), ([30, 0], 15), ([24, 32], 20)] {
            let found = spectrum(&wave(halves), &wave(halves));
            for (k, energy) in found.truth.iter().enumerate() {
                let expected = if k == ring { 1.0 } else { 0.0 };
                assert!((energy - expected).abs() < 1e-12, "{halves:?}: ring {k} holds {energy}");
            }
        }
    }

    #[test]
    fn the_rings_sum_to_the_whole() {
        let truth: Vec<f64> = (0..ROWS * COLUMNS).map(|k| ((k * k) as f64 * 0.37).sin() + 0.2).collect();
        let error: Vec<f64> = (0..ROWS * COLUMNS).map(|k| (k as f64 * 1.7).cos() * 0.03).collect();
        let found = spectrum(&error, &truth);
        assert!((found.truth.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let whole = squares(&error) / squares(&truth);
        assert!((found.error.iter().sum::<f64>() - whole).abs() < 1e-12 * whole);
        let bands = found.bands();
        assert!((bands.iter().map(|band| band.error * band.error).sum::<f64>() - whole).abs() < 1e-12 * whole);
        assert!((bands.iter().map(|band| band.share).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn each_band_is_judged_by_its_own_truth() {
        let add = |one: &[f64], factor: f64, other: &[f64]| -> Vec<f64> {
            one.iter().zip(other).map(|(one, other)| one + factor * other).collect()
        };
        let (slow, fast) = (wave([4, 0]), wave([30, 0])); // 2 and 15 waves, of equal norm
        let found = spectrum(&add(&vec![0.0; slow.len()], 0.01, &fast), &add(&slow, 0.1, &fast));
        let [low, middle, high] = found.bands();
        assert_eq!((low.waves, middle.waves, high.waves.start), (0..5, 5..13, 13));
        assert!(low.error < 1e-12 && middle.error < 1e-12);
        assert!((high.error - 0.01 / 1.01f64.sqrt()).abs() < 1e-12, "{}", high.error);
        assert!((high.relative - 0.1).abs() < 1e-12 && (high.share - 1.0).abs() < 1e-12, "{high:?}");
    }

    #[test]
    fn the_waves_of_a_line_are_counted_along_it() {
        let wave: Vec<f64> = (0..32).map(|place| (PI * 6.0 * (f64::from(place) + 0.5) / 32.0).cos()).collect();
        let analyser = Analyser::of(Grid::Line { points: 32 }).unwrap();
        let energies = analyser.energies(wave.clone());
        let whole = squares(&wave);
        assert!((energies[3] - whole).abs() < 1e-12 * whole, "{energies:?}");
    }

    #[test]
    fn the_waves_of_a_volume_are_counted_in_shells() {
        let extents = [8, 10, 12];
        let half = |waves: usize, place: usize, points: usize| {
            (PI * waves as f64 * (place as f64 + 0.5) / points as f64).cos()
        };
        let point = |at: usize| half(2, at / 120, 8) * half(4, at / 12 % 10, 10) * half(4, at % 12, 12);
        let wave: Vec<f64> = (0..extents.iter().product()).map(point).collect();
        let analyser = Analyser::of(Grid::Volume { rows: 8, columns: 10, layers: 12 }).unwrap();
        let (energies, whole) = (analyser.energies(wave.clone()), squares(&wave));
        assert!((energies[3] - whole).abs() < 1e-12 * whole, "√(1² + 2² + 2²) = 3 waves: {energies:?}");
    }

    #[test]
    fn coarse_planes_have_empty_bands_and_clouds_none() {
        let mut analyser = Analyser::of(Grid::Plane { rows: 3, columns: 1 }).unwrap();
        analyser.add(&mut [1.0, 1.0, 1.0], &mut [2.0, 2.0, 2.0], 12.0);
        let [low, middle, high] = analyser.finish(1.0).bands();
        assert!((low.error - 0.5).abs() < 1e-15 && middle.waves.is_empty() && high.waves.is_empty());
        assert_eq!((middle.error, middle.relative, high.share), (0.0, 0.0, 0.0));
        assert!(Analyser::of(Grid::Cloud { points: 5 }).is_none());
    }
}
