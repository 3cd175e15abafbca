//! The corners of triangles that are no points of the samples: the cells of a data set whose points are the centres of cells.
//!
//! `triangle-corners.npy` is `[triangles of all samples, 3, space]`, float32, with the rows of `triangles.npy`.

use super::{Error, file_hash};
use crate::data::formats::npy::header_of;
use crate::error::shown;
use crate::files::{self, memory};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const FILE: &str = "triangle-corners.npy";
/// NumPy's name of the type of the coordinates.
const REAL: &str = "<f4";

/// The file of the corners.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corners {
    /// Coordinates of a corner: 2 or 3.
    pub space: usize,
    /// Name of the file in the folder.
    pub file: String,
    /// SHA-256 of the file, in hexadecimal; empty while the data set is being made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
}

impl Corners {
    /// Corners that have not been written yet.
    pub(in crate::data) fn unwritten(space: usize) -> Corners {
        Corners { space, file: FILE.into(), sha256: String::new() }
    }

    /// Whether the number of coordinates is one that can be drawn.
    pub(super) fn is_sound(&self) -> bool {
        matches!(self.space, 2 | 3)
    }

    /// Bytes of the corners of a triangle.
    pub(super) fn row_bytes(&self) -> u64 {
        12 * self.space as u64
    }

    fn header(&self, triangles: usize) -> Vec<u8> {
        header_of(REAL, &[triangles, 3, self.space])
    }

    /// Compares the header and the length of the file.
    pub(super) fn open(&self, folder: &Path, triangles: usize) -> Result<(), Error> {
        let path = folder.join(&self.file);
        let failed = |reason| Error::reading(&path, reason);
        let mut file = files::open(&path).map_err(failed)?;
        let header = self.header(triangles);
        let expected = header.len() as u64 + self.row_bytes() * triangles as u64;
        let found = file.metadata().map_err(failed)?.len();
        if found != expected {
            return Err(Error::Length { path, expected, found });
        }
        let mut start = vec![0; header.len()];
        file.read_exact(&mut start).map_err(failed)?;
        match start == header {
            true => Ok(()),
            false => {
                let expected = format!("a NumPy array {REAL} of the corners of {triangles} triangles");
                Err(Error::malformed(&path, format!("expected {expected}, found another header")))
            }
        }
    }

    /// `[triangles, 3, space]` of some rows.
    pub(super) fn read(&self, folder: &Path, triangles: usize, [first, end]: [usize; 2]) -> Result<Vec<f32>, Error> {
        let path = folder.join(&self.file);
        let failed = |reason| Error::reading(&path, reason);
        let mut file = files::open(&path).map_err(failed)?;
        let start = self.header(triangles).len() as u64 + self.row_bytes() * first as u64;
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
        let mut bytes = memory::filled(0, (end - first) * self.row_bytes() as usize).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(failed)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}

/// Writes the corners of one sample after those of the other.
pub(super) struct CornerWriter {
    path: PathBuf,
    file: BufWriter<File>,
    corners: Corners,
}

impl CornerWriter {
    pub(super) fn new(folder: &Path, space: usize) -> Result<CornerWriter, Error> {
        let (path, corners) = (folder.join(FILE), Corners::unwritten(space));
        let failed = |reason| Error::writing(&path, reason);
        let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
        file.write_all(&corners.header(0)).map_err(failed)?; // it has this length with any number of triangles
        Ok(CornerWriter { path, file, corners })
    }

    pub(super) fn write(&mut self, positions: &[f32]) -> Result<(), Error> {
        let written = positions.iter().try_for_each(|position| self.file.write_all(&position.to_le_bytes()));
        written.map_err(|reason| Error::writing(&self.path, reason))
    }

    /// Ends the file with the corners of so many triangles.
    pub(super) fn finish(self, triangles: usize) -> Result<Corners, Error> {
        let failed = |reason| Error::writing(&self.path, reason);
        let mut file = self.file.into_inner().map_err(|error| failed(error.into_error()))?;
        let header = self.corners.header(triangles);
        assert_eq!(header.len(), self.corners.header(0).len(), "headers of one length: {}", shown(&self.path));
        file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&header)).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        Ok(Corners { sha256: file_hash(&self.path, &mut |_| {})?, ..self.corners })
    }
}
