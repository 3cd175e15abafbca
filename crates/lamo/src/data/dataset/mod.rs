//! Data sets on disk: a folder with `dataset.toml` and one plain `.npy` array per field, the sample axis first.
//!
//! ```text
//! Recipe (problem, parameters, seed, samples) -- make ---> folder -- Dataset::open --> Split -> Normaliser -> Batches
//! Import (public files, or your own arrays) ----- write -->
//! ```
//! `dataset.toml` is shown whole at the top of `manifest`; what its fields mean to a training run is in
//! [`crate::task::field`] (where the values lie), [`Role`] (position, input, output) and [`Normalise`].
//!
//! Sample k is a function of the recipe and k alone, so a set is the same bytes on any number of threads and after any
//! number of interruptions. The folder appears under its name complete or not at all.

mod batches;
mod difference;
mod error;
mod fields;
mod folder;
mod manifest;
mod npy;
mod outcome;
pub(super) mod partial;
mod split;
mod statistics;

pub use batches::Batches;
pub use error::Error;
pub use fields::{Normalise, OriginEntry, SourceEntry};
pub use folder::Dataset;
pub use manifest::{FieldEntry, MANIFEST, Manifest, Role};
pub use outcome::{Outcome, Progress, Watch};
pub use split::{Rule, Split};
pub use statistics::Statistics;

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes read at a time where a whole file passes through.
pub(super) const BLOCK: usize = 1 << 20;

/// SHA-256 of a file, in hexadecimal; `tick` hears how many bytes have gone by.
pub(super) fn file_hash(path: &Path, tick: &mut dyn FnMut(usize)) -> Result<String, Error> {
    let failed = |reason| Error::reading(path, reason);
    let mut file = File::open(path).map_err(failed)?;
    let (mut hash, mut block) = (Sha256::new(), vec![0; BLOCK]);
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

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
