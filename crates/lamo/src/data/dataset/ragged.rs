//! Ragged data sets: samples with different numbers of points.
//!
//! The array of a field with values on points is `[points of all samples, snapshots?, channels?]`; `offsets.npy` has the first
//! point of each sample, then the number of all points. Fields with values for whole samples have a row per sample. The grid is
//! a cloud of as many points as the largest sample.

use super::npy::Array;
use super::{Dataset, Error, FieldEntry, Manifest, offsets};
use crate::files::atomic;
use crate::task::{Field, Spread};
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;

/// The file of the offsets.
const OFFSETS: &str = "offsets.npy";

/// How many points each sample of a ragged data set has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ragged {
    /// Points of all samples together.
    pub points: usize,
    /// Name of the file of offsets in the folder.
    pub file: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// `[samples + 1]` first point of each sample, then the number of all points.
    #[serde(skip)]
    pub(in crate::data) offsets: Vec<usize>,
}

impl Ragged {
    /// Samples of these numbers of points.
    pub(in crate::data) fn of(sizes: &[usize]) -> Ragged {
        let firsts = crate::data::samples::offsets(sizes);
        let points = firsts.last().copied().unwrap_or(0);
        let sha256 = offsets::hash(&offsets::bytes(&firsts));
        Ragged { points, file: OFFSETS.into(), sha256, offsets: firsts }
    }

    /// The first point of each sample, then the number of all points.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Points of the samples with the fewest and with the most.
    pub fn range(&self) -> [usize; 2] {
        let sizes = || self.offsets.windows(2).map(|pair| pair[1] - pair[0]);
        [sizes().min().unwrap_or(0), sizes().max().unwrap_or(0)]
    }

    /// The points of a sample among all.
    pub(in crate::data) fn points_of(&self, sample: usize) -> Range<usize> {
        self.offsets[sample]..self.offsets[sample + 1]
    }

    /// Writes the offsets.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(&self.file);
        atomic::replace(&path, &offsets::bytes(&self.offsets)).map_err(|reason| Error::writing(&path, reason))
    }

    /// Reads the offsets and refuses those that are not of `samples` samples on the grid.
    fn read(&mut self, folder: &Path, samples: usize, grid: Grid) -> Result<(), Error> {
        let path = folder.join(&self.file);
        self.offsets = offsets::read(&path, samples, false)?;
        let [_, most] = self.range();
        let all = self.offsets.last().copied().unwrap_or(0);
        if all != self.points || grid != (Grid::Cloud { points: most }) {
            let expected = format!("{} points in all and a {grid}", self.points);
            let reason = format!("expected {expected}, found {all} and at most {most} in a sample");
            return Err(Error::malformed(&path, reason));
        }
        Ok(())
    }
}

impl Manifest {
    /// Whether a field has values on the points of ragged samples.
    pub fn is_ragged_field(&self, field: &FieldEntry) -> bool {
        self.ragged.is_some() && field.on(self.grid).is_ok_and(|field| field.spread == Spread::Points)
    }

    /// Rows of the array of a field, and the shape of a row.
    pub(super) fn layout(&self, field: &FieldEntry) -> (usize, Vec<usize>) {
        let ragged = self.ragged.as_ref().filter(|_| self.is_ragged_field(field));
        let Some(ragged) = ragged else { return (field.rows(self.samples), field.shape.clone()) };
        let Ok(Field { snapshots, channels, .. }) = field.on(self.grid) else {
            unreachable!("a ragged field is on points")
        };
        (ragged.points, snapshots.into_iter().chain(channels).collect())
    }

    /// The sample that row `row` of the array of a field belongs to.
    pub(super) fn sample_at(&self, field: &FieldEntry, row: usize) -> usize {
        match self.ragged.as_ref().filter(|_| self.is_ragged_field(field)) {
            Some(ragged) => ragged.offsets.partition_point(|&offset| offset <= row).saturating_sub(1),
            None => row,
        }
    }

    /// Refuses a ragged data set whose grid is no cloud, or with a field that all samples share on their points.
    pub(super) fn check_ragged(&self, path: &Path) -> Result<(), Error> {
        let Some(ragged) = &self.ragged else { return Ok(()) };
        let Grid::Cloud { points } = self.grid else {
            return Err(Error::malformed(path, format!("expected a cloud for ragged samples, found a {}", self.grid)));
        };
        let fits = self.samples <= ragged.points && points <= ragged.points;
        if !fits || Path::new(&ragged.file).file_name() != Some(ragged.file.as_ref()) {
            let expected = "at least a point for each sample, and the name of a file in the folder";
            let found = format!("{} points and `{}`", ragged.points, ragged.file);
            return Err(Error::malformed(path, format!("ragged: expected {expected}, found {found}")));
        }
        let common = self.fields.iter().find(|field| field.common && self.is_ragged_field(field));
        common.map_or(Ok(()), |field| {
            let reason = format!("field `{}`: expected values for the points of each sample, found common", field.name);
            Err(Error::malformed(path, reason))
        })
    }

    /// Reads the offsets of a ragged data set.
    pub(super) fn read_offsets(&mut self, folder: &Path) -> Result<(), Error> {
        let (samples, grid) = (self.samples, self.grid);
        self.ragged.as_mut().map_or(Ok(()), |ragged| ragged.read(folder, samples, grid))
    }
}

/// `[points, snapshots, channels]` → `[snapshots, points, channels]`, or back where the first two extents are exchanged.
pub(in crate::data) fn exchanged(values: &[f32], [first, second, channels]: [usize; 3]) -> Vec<f32> {
    let row = |place: usize| {
        let (at, of) = (place / first, place % first);
        &values[(of * second + at) * channels..][..channels]
    };
    (0..first * second).flat_map(row).copied().collect()
}

impl Dataset {
    /// How many points each sample has, where their numbers differ.
    pub fn ragged(&self) -> Option<&Ragged> {
        self.manifest().ragged.as_ref()
    }

    /// Points of one sample.
    pub fn points_of(&self, sample: usize) -> usize {
        self.ragged().map_or(self.manifest().grid.points(), |ragged| ragged.points_of(sample).len())
    }

    /// Points of a sample, the mean where their numbers differ.
    pub fn mean_points(&self) -> usize {
        self.ragged().map_or(self.manifest().grid.points(), |ragged| ragged.points.div_ceil(self.samples()))
    }

    /// `line of 16 points`, or `clouds of 900 to 1100 points`
    pub fn grid_words(&self) -> String {
        match self.ragged().map(Ragged::range) {
            Some([least, most]) if least < most => format!("clouds of {least} to {most} points"),
            Some([_, most]) => format!("clouds of {most} points"),
            None => self.manifest().grid.to_string(),
        }
    }

    /// Appends the values of one sample of a ragged field, `[snapshots?, points, channels?]`.
    pub(super) fn read_ragged(&self, array: &Array, sample: usize, values: &mut Vec<f32>) -> Result<(), Error> {
        let Some(ragged) = self.ragged() else { unreachable!("the data set is ragged") };
        let (points, start) = (ragged.points_of(sample), values.len());
        array.read(points.start, points.len(), values)?;
        if let Some(snapshots) = self.snapshots_of(array).filter(|&snapshots| snapshots > 1) {
            let channels = array.count() / snapshots;
            let series = exchanged(&values[start..], [points.len(), snapshots, channels]);
            values[start..].copy_from_slice(&series);
        }
        Ok(())
    }

    fn snapshots_of(&self, array: &Array) -> Option<usize> {
        let is_it = |field: &&FieldEntry| Some(field.file.as_ref()) == array.path.file_name();
        let field = self.manifest().fields.iter().find(is_it)?;
        self.on_grid(&field.name).ok()?.snapshots
    }

    /// Compares the hash of the offsets.
    pub(super) fn verify_offsets(&self) -> Result<(), Error> {
        let Some(ragged) = self.ragged() else { return Ok(()) };
        let path = self.folder().join(&ragged.file);
        let found = super::file_hash(&path, &mut |_| {})?;
        match found.eq_ignore_ascii_case(&ragged.sha256) {
            true => Ok(()),
            false => Err(Error::Hash { path, expected: ragged.sha256.clone(), found }),
        }
    }
}
