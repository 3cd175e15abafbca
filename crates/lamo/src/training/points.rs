//! Training on some points of each sample (`train.points`): a step draws them from seed and step number, and the program gathers
//! them from the samples on the device. Tests and predictions have all points.

use super::buckets::{Bucket, Buckets};
use crate::data::Samples;
use crate::error::{Error, Refusal, require};
use crate::experiment::Experiment;
use crate::random;
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Index, Program, Tensor};

/// Index inputs: the rows of positions, of functions and masks, and of targets, with all points of all samples in a row.
const ROWS: [&str; 3] = ["points.positions", "points.functions", "points.targets"];
/// Makes the points independent of the order of samples, of symmetries and of dropout.
const STREAM: u64 = 0x706f_696e;

/// Refuses numbers of points where they make no sense.
pub(super) fn check(experiment: &Experiment, train: &Samples) -> Result<(), Refusal> {
    let points = experiment.train.points;
    if points == 0 {
        return Ok(());
    }
    let refuse = |expected: &str, found: String| Err(Refusal::new("train.points", expected, found));
    match train.grid {
        Grid::Cloud { .. } if experiment.train.symmetries => {
            refuse("0 where samples are shown under symmetries", points.to_string())
        }
        Grid::Cloud { .. } => Ok(()),
        grid => refuse("0 on a grid, whose points are neighbours", format!("{points} on a {grid}")),
    }
}

/// How many points of the samples of a program a step takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Drawing {
    /// Points that are taken of each sample.
    pub(super) points: usize,
    /// Points of each sample of the program, those that fill it up not counted.
    real: Vec<usize>,
    /// Points of each sample in the program.
    stored: usize,
    batch: usize,
    times: usize,
    /// Whether all samples have the same positions.
    shares: bool,
    /// Whether each sample of a batch is asked for at one time.
    by_time: bool,
}

impl Drawing {
    /// `None` where all points are taken: of each bucket of the training samples.
    pub(super) fn of_buckets(
        experiment: &Experiment,
        train: &Samples,
        buckets: &Buckets,
        by_time: bool,
    ) -> Result<Vec<Option<Drawing>>, Refusal> {
        let (points, batch, times) = (experiment.train.points, experiment.train.batch, train.times);
        let of = |bucket: &Bucket| {
            if points == 0 || points >= bucket.points {
                return Ok(None);
            }
            let rows = (bucket.samples.len() as u64).saturating_mul(times as u64).saturating_mul(bucket.points as u64);
            require(rows <= u64::from(u32::MAX), || {
                Refusal::new("train.points", "at most 4294967295 points of all samples and times", rows.to_string())
            })?;
            let real = bucket.samples.iter().map(|&sample| train.points_of(sample)).collect();
            let (stored, shares) = (bucket.points, train.share_positions());
            Ok(Some(Drawing { points, real, stored, batch, times, shares, by_time }))
        };
        buckets.all.iter().map(of).collect()
    }

    /// Declares the inputs that [`Drawing::write`] writes.
    pub(super) fn declare<'g>(&self, graph: &'g Graph) -> Drawn<'g> {
        let Drawing { points, batch, times, by_time, .. } = *self;
        let index = |which: usize, times: usize| graph.index_input(ROWS[which], batch * times * points);
        let targets = index(2, if by_time { 1 } else { times });
        Drawn { rows: [index(0, 1), index(1, 1), targets], batch, points }
    }

    /// The points of each sample of a batch, in ascending order. A sample of fewer points has all of them, then points that fill it
    /// up.
    fn draw(&self, samples: &[usize], seed: u64, step: usize) -> Vec<Vec<usize>> {
        let each = |(place, &sample): (usize, &usize)| {
            let number = (step as u64).wrapping_mul(self.batch as u64).wrapping_add(place as u64);
            let mut drawn = random::subset(self.real[sample], self.points, seed ^ STREAM, number);
            drawn.extend(drawn.len()..self.points);
            drawn
        };
        samples.iter().enumerate().map(each).collect()
    }

    /// Writes the points of a batch; `rows` are the rows `sample · times + time` asked for, where each sample has one time.
    pub(super) fn write(
        &self,
        program: &mut Program,
        samples: &[usize],
        rows: Option<&[u32]>,
        (seed, step): (u64, usize),
    ) -> Result<(), Error> {
        let drawn = self.draw(samples, seed, step);
        let of = |row: usize, points: &[usize]| -> Vec<u32> {
            points.iter().map(|point| (row * self.stored + point) as u32).collect()
        };
        let pairs = || samples.iter().zip(&drawn);
        let positions: Vec<u32> =
            pairs().flat_map(|(&sample, points)| of(if self.shares { 0 } else { sample }, points)).collect();
        let functions: Vec<u32> = pairs().flat_map(|(&sample, points)| of(sample, points)).collect();
        let targets: Vec<u32> = match rows {
            Some(rows) => rows.iter().zip(&drawn).flat_map(|(&row, points)| of(row as usize, points)).collect(),
            None => {
                let times = |(&sample, points): (&usize, &Vec<usize>)| -> Vec<u32> {
                    (0..self.times).flat_map(|time| of(sample * self.times + time, points)).collect()
                };
                pairs().flat_map(times).collect()
            }
        };
        for (name, index) in ROWS.into_iter().zip([positions, functions, targets]) {
            program.try_write_index(name, &index)?;
        }
        Ok(())
    }
}

/// The points of a batch in the graph.
#[derive(Clone, Copy)]
pub(crate) struct Drawn<'g> {
    rows: [Index<'g>; 3],
    batch: usize,
    points: usize,
}

impl<'g> Drawn<'g> {
    /// `[owners, points, channels]` → `[batch, drawn points, channels]`
    fn of(&self, values: Tensor<'g>, which: usize) -> Tensor<'g> {
        let [owners, points, channels] = values.dims();
        let rows = values.reshape([owners * points, channels]).gather(0, self.rows[which]);
        rows.reshape([self.batch, self.points, channels])
    }

    pub(super) fn positions(&self, all: Tensor<'g>) -> Tensor<'g> {
        self.of(all, 0)
    }

    pub(super) fn functions(&self, all: Tensor<'g>) -> Tensor<'g> {
        self.of(all, 1)
    }

    /// `[count, points]` → `[batch, drawn points]`
    pub(super) fn mask(&self, all: Tensor<'g>) -> Tensor<'g> {
        let [count, points] = all.dims();
        self.of(all.reshape([count, points, 1]), 1).reshape([self.batch, self.points])
    }

    /// `[count, times, points, outputs]` → `[batch, times, drawn points, outputs]`
    pub(super) fn targets(&self, all: Tensor<'g>) -> Tensor<'g> {
        let [count, times, points, outputs] = all.dims();
        let rows = all.reshape([count * times * points, outputs]).gather(0, self.rows[2]);
        rows.reshape([self.batch, times, self.points, outputs])
    }

    /// `[rows, points, outputs]` → `[batch, drawn points, outputs]` of the rows asked for
    pub(super) fn targets_of_rows(&self, all: Tensor<'g>) -> Tensor<'g> {
        self.of(all, 2)
    }
}
