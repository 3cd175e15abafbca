//! Files of offsets: where the rows of each sample begin in an array that holds those of all samples, then the number of all
//! rows. An npy file of int64.

use super::{Error, hexadecimal};
use crate::data::formats::npy::header_of;
use crate::files::{self, memory};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;

/// NumPy's name of their type.
const INTEGER: &str = "<i8";

/// The bytes of a file of offsets.
pub(super) fn bytes(offsets: &[usize]) -> Vec<u8> {
    let mut bytes = header_of(INTEGER, &[offsets.len()]);
    bytes.extend(offsets.iter().flat_map(|&offset| (offset as u64).to_le_bytes()));
    bytes
}

/// SHA-256 of some bytes, in hexadecimal.
pub(super) fn hash(bytes: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(bytes);
    hexadecimal(hash)
}

/// Reads the offsets of `samples` samples; refuses a file that does not begin with 0, and offsets that fall. With `empty`, two
/// may be equal.
pub(super) fn read(path: &Path, samples: usize, empty: bool) -> Result<Vec<usize>, Error> {
    let failed = |reason| Error::reading(path, reason);
    let header = header_of(INTEGER, &[samples.saturating_add(1)]);
    let expected = (samples as u64).saturating_add(1).saturating_mul(8).saturating_add(header.len() as u64);
    let mut file = files::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?.len();
    if found != expected {
        return Err(Error::Length { path: path.to_owned(), expected, found });
    }
    let mut bytes = memory::filled(0, found as usize).map_err(failed)?;
    file.read_exact(&mut bytes).map_err(failed)?;
    if !bytes.starts_with(&header) {
        let reason = format!("expected a NumPy array {INTEGER} of {} offsets", samples + 1);
        return Err(Error::malformed(path, format!("{reason}, found another header")));
    }
    let numbers = bytes[header.len()..].as_chunks::<8>().0.iter().map(|&bytes| i64::from_le_bytes(bytes));
    let mut before: i64 = 0;
    let mut offsets = memory::reserve(samples + 1).map_err(failed)?;
    for (place, offset) in numbers.enumerate() {
        let grows = if place == 0 { offset == 0 } else { offset > before || empty && offset == before };
        if !grows {
            let least = if empty { format!("at least {before}") } else { format!("more than {before}") };
            let expected = if place == 0 { "0 at first".into() } else { least };
            let found = format!("{offset} as offset {place}");
            return Err(Error::malformed(path, format!("expected offsets that grow, {expected}, found {found}")));
        }
        before = offset;
        offsets.push(offset as usize);
    }
    Ok(offsets)
}
