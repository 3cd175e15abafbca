//! The cells of meshes, as the triangles they are drawn as: the surface cells of a mesh, or the outer faces of its volume cells.
//!
//! `triangles.npy` is `[triangles of all samples, 3]`, int32: the points of each triangle, counted within its sample.
//! `triangle-offsets.npy` has the first triangle of each sample, then the number of all. Where all samples have the same
//! triangles, they are stored once, as those of one sample. Where the points of the samples are the centres of cells, the three
//! points of a triangle are its cell, and another file has the positions of its corners ([`Corners`]).

use super::corners::{CornerWriter, Corners};
use super::{Dataset, Error, Manifest, file_hash, offsets};
use crate::data::formats::npy::header_of;
use crate::error::shown;
use crate::files::{self, atomic, memory};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const FILE: &str = "triangles.npy";
const OFFSETS: &str = "triangle-offsets.npy";
/// NumPy's name of the type of the points.
const INTEGER: &str = "<i4";
/// Bytes of a triangle.
const BYTES: u64 = 12;

/// The triangles as which the cells of a data set are drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Triangles {
    /// Rows of the file of triangles.
    pub count: usize,
    /// Cells of the files from which they come, of all samples together.
    pub cells: u64,
    /// Whether all samples have the same triangles, which are stored once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub common: bool,
    /// Name of the file of triangles in the folder.
    pub file: String,
    /// SHA-256 of the file, in hexadecimal; empty while the data set is being made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// Name of the file of offsets in the folder.
    pub offsets_file: String,
    /// SHA-256 of the file of offsets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub offsets_sha256: String,
    /// Where the corners of the triangles are, if they are not points of the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corners: Option<Corners>,
    /// `[samples + 1]` first triangle of each sample, then the number of all; of one sample where they are common.
    #[serde(skip)]
    offsets: Vec<usize>,
}

impl Triangles {
    /// Triangles that have not been written yet.
    pub(in crate::data) fn unwritten(corners: Option<Corners>) -> Triangles {
        Triangles {
            corners,
            count: 0,
            cells: 0,
            common: false,
            file: FILE.into(),
            sha256: String::new(),
            offsets_file: OFFSETS.into(),
            offsets_sha256: String::new(),
            offsets: Vec::new(),
        }
    }

    /// The files in the folder of a data set.
    pub(super) fn paths(&self, folder: &Path) -> Vec<PathBuf> {
        self.names().into_iter().map(|name| folder.join(name)).collect()
    }

    /// The names of the files.
    fn names(&self) -> Vec<&String> {
        [&self.file, &self.offsets_file].into_iter().chain(self.corners.as_ref().map(|corners| &corners.file)).collect()
    }

    fn header(&self) -> Vec<u8> {
        header_of(INTEGER, &[self.count, 3])
    }

    /// Refuses names that leave the folder, and more triangles than a file can hold.
    pub(super) fn check(&self, path: &Path) -> Result<(), Error> {
        let names = self.names();
        let inside = names.iter().all(|name| Path::new(name).file_name() == Some(name.as_ref()));
        let apart = names.iter().enumerate().all(|(place, name)| !names[..place].contains(name));
        let most = BYTES.max(self.corners.as_ref().map_or(0, Corners::row_bytes));
        let fits = (self.count as u64).checked_mul(most).is_some_and(|bytes| bytes < i64::MAX as u64 / 2);
        if inside && apart && fits && self.corners.as_ref().is_none_or(Corners::is_sound) {
            return Ok(());
        }
        let expected = "different files in the folder and a number of triangles that a file can hold";
        let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
        let found = format!("{} and {}", names.join(", "), self.count);
        Err(Error::malformed(path, format!("triangles: expected {expected}, found {found}")))
    }

    /// Reads the offsets and compares the length of the file of triangles.
    fn open(&mut self, folder: &Path, samples: usize) -> Result<(), Error> {
        let [path, offsets_path] = [&self.file, &self.offsets_file].map(|name| folder.join(name));
        self.offsets = offsets::read(&offsets_path, if self.common { 1 } else { samples }, true)?;
        let last = self.offsets.last().copied().unwrap_or(0);
        if last != self.count {
            let reason = format!("expected offsets that end with the {} triangles, found {last}", self.count);
            return Err(Error::malformed(&offsets_path, reason));
        }
        let failed = |reason| Error::reading(&path, reason);
        let mut file = files::open(&path).map_err(failed)?;
        let header = self.header();
        let (expected, found) =
            (header.len() as u64 + BYTES * self.count as u64, file.metadata().map_err(failed)?.len());
        if found != expected {
            return Err(Error::Length { path, expected, found });
        }
        let mut start = vec![0; header.len()];
        file.read_exact(&mut start).map_err(failed)?;
        match start == header {
            true => self.corners.as_ref().map_or(Ok(()), |corners| corners.open(folder, self.count)),
            false => {
                let expected = format!("a NumPy array {INTEGER} of {} triangles", self.count);
                Err(Error::malformed(&path, format!("expected {expected}, found another header")))
            }
        }
    }

    /// The first triangle of a sample, and the one after its last.
    fn rows(&self, sample: usize) -> [usize; 2] {
        let place = if self.common { 0 } else { sample };
        [self.offsets[place], self.offsets[place + 1]]
    }

    /// The triangles of a sample of `points` points.
    fn read(&self, folder: &Path, sample: usize, points: usize) -> Result<Vec<[u32; 3]>, Error> {
        let path = folder.join(&self.file);
        let failed = |reason| Error::reading(&path, reason);
        let [first, end] = self.rows(sample);
        let mut file = files::open(&path).map_err(failed)?;
        file.seek(SeekFrom::Start(self.header().len() as u64 + BYTES * first as u64)).map_err(failed)?;
        let mut bytes = memory::filled(0, (end - first) * BYTES as usize).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(failed)?;
        let mut triangles = memory::reserve(end - first).map_err(failed)?;
        for row in bytes.as_chunks::<12>().0 {
            let corners = [0, 4, 8].map(|at| i32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]));
            if let Some(odd) = corners.iter().find(|&&corner| corner < 0 || corner as usize >= points) {
                let expected = format!("points 0 to {} of sample {sample}", points.saturating_sub(1));
                let at = first + triangles.len();
                return Err(Error::malformed(&path, format!("triangle {at}: expected {expected}, found {odd}")));
            }
            triangles.push(corners.map(|corner| corner as u32));
        }
        Ok(triangles)
    }
}

impl Manifest {
    /// Reads what is needed to read triangles.
    pub(super) fn read_triangles(&mut self, folder: &Path) -> Result<(), Error> {
        let samples = self.samples;
        self.triangles.as_mut().map_or(Ok(()), |triangles| triangles.open(folder, samples))
    }
}

impl Dataset {
    /// The triangles as which the cells of a sample are drawn, three of its points each; none where no cells are stored.
    pub fn triangles_of(&self, sample: usize) -> Result<Vec<[u32; 3]>, Error> {
        match &self.manifest().triangles {
            Some(triangles) if sample < self.samples() => triangles.read(self.folder(), sample, self.points_of(sample)),
            _ => Ok(Vec::new()),
        }
    }

    /// The positions of the corners of these triangles, `[triangles, 3, space]`, where they are not points of the sample: where the
    /// points are the centres of cells.
    pub fn corners_of(&self, sample: usize) -> Result<Vec<f32>, Error> {
        let triangles = self.manifest().triangles.as_ref().filter(|_| sample < self.samples());
        match triangles.and_then(|triangles| Some((triangles, triangles.corners.as_ref()?))) {
            Some((triangles, corners)) => corners.read(self.folder(), triangles.count, triangles.rows(sample)),
            None => Ok(Vec::new()),
        }
    }

    /// Compares the hashes of the files of triangles, and reads all triangles.
    pub(super) fn verify_triangles(&self) -> Result<(), Error> {
        let Some(triangles) = &self.manifest().triangles else { return Ok(()) };
        let corners = triangles.corners.as_ref().map(|corners| &corners.sha256);
        let hashes = [&triangles.sha256, &triangles.offsets_sha256].into_iter().chain(corners);
        for (path, expected) in triangles.paths(self.folder()).into_iter().zip(hashes) {
            let found = file_hash(&path, &mut |_| {})?;
            if !found.eq_ignore_ascii_case(expected) {
                return Err(Error::Hash { path, expected: expected.clone(), found });
            }
        }
        (0..self.samples()).try_for_each(|sample| self.triangles_of(sample).map(|_| ()))
    }
}

/// Writes the triangles of one sample after those of the other.
pub(in crate::data) struct TriangleWriter {
    folder: PathBuf,
    path: PathBuf,
    file: BufWriter<File>,
    /// Those of the first sample, and the positions of their corners.
    first: (Vec<[u32; 3]>, Vec<f32>),
    corners: Option<CornerWriter>,
    /// First triangle of each sample so far, then the number of all.
    offsets: Vec<usize>,
    cells: u64,
    /// Whether all samples so far have those of the first, which are not written yet.
    common: bool,
}

impl TriangleWriter {
    /// With the number of coordinates of their corners where these are not points of the samples.
    pub(in crate::data) fn new(folder: &Path, space: Option<usize>) -> Result<TriangleWriter, Error> {
        let path = folder.join(FILE);
        let file = File::create(&path).map_err(|reason| Error::writing(&path, reason))?;
        let mut file = BufWriter::new(file);
        // The header has this length with any number of triangles.
        let start = file.write_all(&Triangles::unwritten(None).header());
        start.map_err(|reason| Error::writing(&path, reason))?;
        let corners = space.map(|space| CornerWriter::new(folder, space)).transpose()?;
        let (folder, first) = (folder.to_owned(), Default::default());
        Ok(TriangleWriter { folder, path, file, first, corners, offsets: vec![0], cells: 0, common: true })
    }

    /// Adds the triangles of the next sample, which come from so many cells, and the positions of their corners where these are not
    /// points of the sample.
    pub(in crate::data) fn add(
        &mut self,
        triangles: Vec<[u32; 3]>,
        corners: Vec<f32>,
        cells: usize,
    ) -> Result<(), Error> {
        let written = self.offsets.len() - 1;
        self.offsets.push(self.offsets[written] + triangles.len());
        self.cells += cells as u64;
        if written == 0 {
            self.first = (triangles, corners);
            return Ok(());
        }
        if self.common && triangles == self.first.0 && corners == self.first.1 {
            return Ok(());
        }
        if self.common {
            self.common = false;
            let (first, its_corners) = std::mem::take(&mut self.first);
            (0..written).try_for_each(|_| self.write(&first, &its_corners))?;
        }
        self.write(&triangles, &corners)
    }

    fn write(&mut self, triangles: &[[u32; 3]], positions: &[f32]) -> Result<(), Error> {
        let mut corners = triangles.as_flattened().iter();
        let written = corners.try_for_each(|corner| self.file.write_all(&corner.to_le_bytes()));
        written.map_err(|reason| Error::writing(&self.path, reason))?;
        self.corners.as_mut().map_or(Ok(()), |corners| corners.write(positions))
    }

    /// Ends both files.
    pub(in crate::data) fn finish(mut self) -> Result<Triangles, Error> {
        if self.common {
            let (first, its_corners) = std::mem::take(&mut self.first);
            self.write(&first, &its_corners)?;
            self.offsets = vec![0, first.len()];
        }
        let count = self.offsets.last().copied().unwrap_or(0);
        let corners = self.corners.map(|corners| corners.finish(count)).transpose()?;
        let written = Triangles { count, cells: self.cells, common: self.common, ..Triangles::unwritten(corners) };
        let failed = |reason| Error::writing(&self.path, reason);
        let mut file = self.file.into_inner().map_err(|error| failed(error.into_error()))?;
        let header = written.header();
        let same = header.len() == Triangles::unwritten(None).header().len();
        assert!(same, "headers of one length: {}", shown(&self.path));
        file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&header)).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        let (offsets, path) = (offsets::bytes(&self.offsets), self.folder.join(OFFSETS));
        atomic::replace(&path, &offsets).map_err(|reason| Error::writing(&path, reason))?;
        let sha256 = file_hash(&self.path, &mut |_| {})?;
        Ok(Triangles { sha256, offsets_sha256: offsets::hash(&offsets), ..written })
    }
}
