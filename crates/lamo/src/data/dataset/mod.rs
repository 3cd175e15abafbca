//! Data sets on disk: a folder with `dataset.toml` and one plain `.npy` array per field, samples along the first axis.
//!
//! ```text
//! Recipe (problem, parameters, seed, samples) -- make ---> folder -- Dataset::open --> Split -> Normaliser -> Batches
//! Import (public files, or your own arrays) ----- write -->
//! ```
//! The head of `manifest` shows a whole `dataset.toml`. What a training run reads in a field is in
//! [`crate::task::field`] (to which points the values belong), [`Role`] (position, input, output) and [`Normalise`].
//!
//! Sample k depends on the recipe and k alone, so a data set has the same bytes on any number of threads and after any
//! number of interruptions. The folder appears under its name complete or not at all.

mod at_rest;
mod batches;
mod corners;
mod difference;
mod error;
mod fields;
mod folder;
mod manifest;
mod npy;
mod offsets;
mod outcome;
pub(super) mod partial;
mod ragged;
mod series;
mod split;
mod statistics;
mod triangles;

pub use batches::Batches;
pub use corners::Corners;
pub use error::Error;
pub use fields::{Normalise, OriginEntry, SourceEntry};
pub use folder::Dataset;
pub use manifest::{FieldEntry, MANIFEST, Manifest, Role};
pub use outcome::{Outcome, Progress, Warn, Watch};
pub use ragged::Ragged;
pub(super) use ragged::exchanged;
pub use series::Series;
pub use split::{Rule, Split};
pub use statistics::Statistics;
pub(super) use triangles::TriangleWriter;
pub use triangles::Triangles;

use crate::files;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;

/// Bytes or values in memory at a time where a whole file is read.
pub(super) const BLOCK: usize = 1 << 20;

/// SHA-256 of a file, in hexadecimal; `tick` is called with the number of bytes read since its last call.
pub(super) fn file_hash(path: &Path, tick: &mut dyn FnMut(usize)) -> Result<String, Error> {
    let failed = |reason| Error::reading(path, reason);
    let mut file = files::open(path).map_err(failed)?;
    let mut block = files::memory::filled(0, files::BUFFER).map_err(failed)?;
    let mut hash = Sha256::new();
    loop {
        match file.read(&mut block).map_err(failed)? {
            0 => return Ok(hexadecimal(hash)),
            count => {
                hash.update(&block[..count]);
                tick(count);
            }
        }
    }
}

/// The index along each axis of value `index` of an array in C order.
pub(super) fn position(index: usize, shape: &[usize]) -> Vec<usize> {
    let (mut rest, mut position) = (index, vec![0; shape.len()]);
    for (along, length) in position.iter_mut().zip(shape).rev() {
        (*along, rest) = (rest % length, rest / length);
    }
    position
}

pub(super) fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
