//! Ragged sets: samples with different numbers of points, whose arrays stand one after the other.
//!
//! A program has one size of points. A ragged set enters it as samples that are filled up to that size ([`Samples::padded`]),
//! with a mask of the points that are real ([`Samples::mask`]).

use super::Samples;
use crate::error::{Refusal, counted, require};
use lamo_geometry::Grid;
use std::ops::Range;

/// First point of each sample, then the number of all points.
pub(crate) fn offsets(sizes: &[usize]) -> Vec<usize> {
    let sums = sizes.iter().scan(0_usize, |sum, size| {
        *sum = sum.saturating_add(*size);
        Some(*sum)
    });
    std::iter::once(0).chain(sums).collect()
}

impl Samples {
    /// Clouds of different sizes: `sizes` `[count]` points of each sample, and the arrays of all samples one after the other:
    /// `positions` `[total, space]`, `inputs` `[total, functions]`, `targets` `[total, outputs]`, or empty where they are to be
    /// predicted.
    ///
    /// ```
    /// use lamo::data::Samples;
    /// // Two samples of two and three points on a line, without input functions.
    /// let (positions, targets) = (vec![0.0, 1.0, 0.0, 0.5, 1.0], vec![1.0, 2.0, 1.0, 1.5, 2.0]);
    /// let samples = Samples::ragged(&[2, 3], (1, positions), (0, Vec::new()), (1, targets))?;
    /// assert_eq!((samples.points_of(0), samples.target_of(1)), (2, &[1.0, 1.5, 2.0][..]));
    /// # Ok::<(), lamo::error::Refusal>(())
    /// ```
    pub fn ragged(
        sizes: &[usize],
        (space, positions): (usize, Vec<f32>),
        (functions, inputs): (usize, Vec<f32>),
        (outputs, targets): (usize, Vec<f32>),
    ) -> Result<Samples, Refusal> {
        let (count, offsets) = (sizes.len(), offsets(sizes));
        let grid = Grid::Cloud { points: sizes.iter().copied().max().unwrap_or(0) };
        let samples = Samples { count, grid, offsets, space, positions, functions, inputs, times: 1, outputs, targets };
        samples.check()?;
        Ok(samples)
    }

    /// Several sets of one task one after the other, as a ragged set; panics where they are of different tasks or on grids.
    pub fn joined(sets: &[Samples]) -> Option<Samples> {
        let first = sets.first()?;
        let alike = |set: &Samples| {
            let widths = |set: &Samples| [set.space, set.functions, set.times, set.outputs];
            widths(set) == widths(first) && matches!(set.grid, Grid::Cloud { .. })
        };
        assert!(sets.iter().all(alike), "clouds of one task");
        let sizes: Vec<usize> = sets.iter().flat_map(Samples::sizes).collect();
        let positions = |set: &Samples| -> Vec<f32> {
            (0..set.count).flat_map(|sample| set.positions_of(sample)).copied().collect()
        };
        Some(Samples {
            count: sizes.len(),
            grid: Grid::Cloud { points: sizes.iter().copied().max().unwrap_or(0) },
            offsets: offsets(&sizes),
            positions: sets.iter().flat_map(positions).collect(),
            inputs: sets.iter().flat_map(|set| &set.inputs).copied().collect(),
            targets: sets.iter().flat_map(|set| &set.targets).copied().collect(),
            ..*first
        })
    }

    /// Whether samples have different numbers of points.
    pub fn is_ragged(&self) -> bool {
        !self.offsets.is_empty()
    }

    /// Points of one sample.
    pub fn points_of(&self, sample: usize) -> usize {
        self.points_before(sample + 1) - self.points_before(sample)
    }

    /// Points of each sample.
    pub fn sizes(&self) -> Vec<usize> {
        (0..self.count).map(|sample| self.points_of(sample)).collect()
    }

    /// Points of all samples together.
    pub fn total_points(&self) -> usize {
        self.points_before(self.count)
    }

    /// Points of all samples before one.
    fn points_before(&self, sample: usize) -> usize {
        if self.is_ragged() { self.offsets[sample] } else { sample * self.grid.points() }
    }

    /// The values of one sample among values that have `each` numbers per point.
    pub(crate) fn range_of(&self, sample: usize, each: usize) -> Range<usize> {
        self.points_before(sample) * each..self.points_before(sample + 1) * each
    }

    /// The part of a prediction, ordered as the targets, that belongs to one sample: `[times, points, outputs]`.
    pub fn part_of<'a>(&self, prediction: &'a [f32], sample: usize) -> &'a [f32] {
        &prediction[self.range_of(sample, self.times * self.outputs)]
    }

    /// The samples listed, in this order.
    #[must_use]
    pub fn chosen(&self, samples: &[usize]) -> Samples {
        fn all<'a>(samples: &[usize], of: impl Fn(usize) -> &'a [f32]) -> Vec<f32> {
            samples.iter().flat_map(|&sample| of(sample)).copied().collect()
        }
        let sizes: Vec<usize> = samples.iter().map(|&sample| self.points_of(sample)).collect();
        let (grid, offsets) = match self.is_ragged() {
            true => (Grid::Cloud { points: sizes.iter().copied().max().unwrap_or(0) }, offsets(&sizes)),
            false => (self.grid, Vec::new()),
        };
        Samples {
            count: samples.len(),
            grid,
            offsets,
            positions: if self.share_positions() {
                self.positions.clone()
            } else {
                all(samples, |sample| self.positions_of(sample))
            },
            inputs: all(samples, |sample| self.input_of(sample)),
            targets: if self.targets.is_empty() { Vec::new() } else { all(samples, |sample| self.target_of(sample)) },
            ..*self
        }
    }

    /// The samples listed, each filled up to a cloud of `points` points: positions and inputs by copies of the last point of the
    /// sample, so that they are values a model may see, targets by zeros.
    #[must_use]
    pub(crate) fn padded(&self, samples: &[usize], points: usize) -> Samples {
        let fill = |values: &[f32], sample: usize, width: usize| -> Vec<f32> {
            let missing = points - self.points_of(sample);
            let last = &values[values.len() - width..];
            values.iter().chain((0..missing).flat_map(|_| last)).copied().collect()
        };
        let fill_target = |sample: usize| -> Vec<f32> {
            let of_time = self.points_of(sample) * self.outputs;
            let zeros = points * self.outputs - of_time;
            let times = self.target_of(sample).chunks_exact(of_time);
            times.flat_map(|values| values.iter().copied().chain(std::iter::repeat_n(0.0, zeros))).collect()
        };
        let (space, functions) = (self.space, self.functions);
        Samples {
            count: samples.len(),
            grid: Grid::Cloud { points },
            offsets: Vec::new(),
            positions: samples.iter().flat_map(|&sample| fill(self.positions_of(sample), sample, space)).collect(),
            inputs: samples.iter().flat_map(|&sample| fill(self.input_of(sample), sample, functions)).collect(),
            targets: match self.targets.is_empty() {
                true => Vec::new(),
                false => samples.iter().flat_map(|&sample| fill_target(sample)).collect(),
            },
            ..*self
        }
    }

    /// `[samples, points]` 1 at the points of the samples listed, 0 where [`Samples::padded`] fills them up.
    pub(crate) fn mask(&self, samples: &[usize], points: usize) -> Vec<f32> {
        let row = |&sample: &usize| (0..points).map(move |point| f32::from(point < self.points_of(sample)));
        samples.iter().flat_map(row).collect()
    }

    /// Refuses offsets that are not those of `count` samples, and samples without points.
    pub(super) fn check_offsets(&self) -> Result<(), Refusal> {
        let Samples { count, offsets, .. } = self;
        if offsets.is_empty() {
            return Ok(());
        }
        require(offsets.len() == count + 1 && offsets[0] == 0, || {
            let found = format!("{} offsets from {}", offsets.len(), offsets[0]);
            Refusal::new("samples", format!("{} offsets from 0 for {}", count + 1, counted(*count, "sample")), found)
        })?;
        let empty = offsets.windows(2).position(|pair| pair[1] <= pair[0]);
        empty.map_or(Ok(()), |sample| {
            let found = format!("{} to {}", offsets[sample], offsets[sample + 1]);
            Err(Refusal::new(format!("sample {sample}"), "at least one point", format!("the points {found}")))
        })?;
        let most = offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        require(self.grid == Grid::Cloud { points: most }, || {
            Refusal::new(
                "samples",
                format!("a cloud of the {most} points of the largest sample"),
                format!("a {}", self.grid),
            )
        })
    }
}
