//! The arrays of a data set: npy files of version 1.0 with little-endian float32 in C order.
//!
//! Magic, header length, then a Python dictionary padded with spaces so that the values start at a multiple of 64.

use super::Error;
use crate::data::formats::npy::FLOAT_MAGIC;
pub(super) use crate::data::formats::npy::{FLOAT, float_header as header};
use crate::files::{self, memory};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Values that are converted at a time.
const BLOCK: usize = files::BUFFER / 4;

/// One field of all samples, `[samples, ...]`, read and written a few samples at a time.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) path: PathBuf,
    header: Vec<u8>,
    /// Values per sample.
    count: usize,
    /// Bytes of the file.
    length: u64,
    file: Mutex<File>,
}

impl Array {
    /// Opens a file, which must have the header and the length of `samples` samples of this shape.
    pub(super) fn open(path: PathBuf, samples: usize, shape: &[usize], write: bool) -> Result<Array, Error> {
        let failed = |reason| Error::reading(&path, reason);
        let mut file = files::open_with(&path, File::options().read(true).write(write)).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        let header = header(&[&[samples], shape].concat());
        let (count, length) = sizes(&path, &header, samples, shape)?;
        let mut start = vec![0; header.len()];
        let complete = file.read_exact(&mut start).is_ok();
        if complete && start != header {
            let reason = format!("expected a NumPy array {FLOAT} in C order of {samples} samples of {shape:?}");
            return Err(Error::malformed(&path, format!("{reason}, found {}", described(&start))));
        }
        if found != length {
            return Err(Error::Length { path, expected: length, found });
        }
        Ok(Array { path, header, count, length, file: Mutex::new(file) })
    }

    /// Creates a file of full length; all values are 0 at first.
    pub(super) fn create(path: PathBuf, samples: usize, shape: &[usize]) -> Result<Array, Error> {
        let header = header(&[&[samples], shape].concat());
        let (count, length) = sizes(&path, &header, samples, shape)?;
        let failed = |reason| Error::writing(&path, reason);
        let mut file =
            File::options().read(true).write(true).create(true).truncate(true).open(&path).map_err(failed)?;
        file.write_all(&header).map_err(failed)?;
        file.set_len(length).map_err(failed)?;
        Ok(Array { path, header, count, length, file: Mutex::new(file) })
    }

    /// How many of its first samples a file has, which an interrupted attempt wrote: all, if the file has its header and
    /// its length, and fewer if it was cut. A file without the header has none, whatever follows.
    pub(super) fn whole_samples(path: &Path, samples: usize, shape: &[usize]) -> Result<usize, Error> {
        let failed = |reason| Error::reading(path, reason);
        let mut file = match files::open(path) {
            Err(reason) if reason.kind() == ErrorKind::NotFound => return Ok(0),
            opened => opened.map_err(failed)?,
        };
        let found = file.metadata().map_err(failed)?.len();
        let header = header(&[&[samples], shape].concat());
        let (count, length) = sizes(path, &header, samples, shape)?;
        let mut start = vec![0; header.len()];
        if file.read_exact(&mut start).is_err() || start != header || found > length {
            return Ok(0);
        }
        let whole = (found - header.len() as u64) / (4 * count as u64).max(1);
        Ok(usize::try_from(whole).map_or(samples, |whole| whole.min(samples)))
    }

    /// Gives a cut file its full length again and opens it; the values that were lost are 0.
    pub(super) fn lengthen(path: PathBuf, samples: usize, shape: &[usize]) -> Result<Array, Error> {
        let (_, length) = sizes(&path, &header(&[&[samples], shape].concat()), samples, shape)?;
        let file = files::open_with(&path, File::options().write(true));
        file.and_then(|file| file.set_len(length)).map_err(|reason| Error::writing(&path, reason))?;
        Array::open(path, samples, shape, true)
    }

    /// Values per sample.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn at(&self, sample: usize) -> SeekFrom {
        SeekFrom::Start(self.header.len() as u64 + 4 * sample as u64 * self.count as u64)
    }

    /// Writes the values of consecutive samples from `first` on.
    pub(super) fn write(&self, first: usize, values: &[f32]) -> Result<(), Error> {
        let failed = |reason| Error::writing(&self.path, reason);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(self.at(first)).map_err(failed)?;
        let mut bytes = memory::reserve(4 * values.len().min(BLOCK)).map_err(failed)?;
        for block in values.chunks(BLOCK) {
            bytes.clear();
            bytes.extend(block.iter().flat_map(|value| value.to_le_bytes()));
            file.write_all(&bytes).map_err(failed)?;
        }
        Ok(())
    }

    /// Appends `samples` samples from `first` on to `values`, which has room for them.
    pub(super) fn read(&self, first: usize, samples: usize, values: &mut Vec<f32>) -> Result<(), Error> {
        let mut left = samples * self.count;
        let mut bytes = memory::filled(0, 4 * left.min(BLOCK)).map_err(|reason| Error::reading(&self.path, reason))?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(self.at(first)).map_err(|reason| Error::reading(&self.path, reason))?;
        while left > 0 {
            let block = &mut bytes[..4 * left.min(BLOCK)];
            file.read_exact(block).map_err(|reason| self.short(&file, reason))?;
            values.extend(block.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
            left -= block.len() / 4;
        }
        Ok(())
    }

    /// The error of a failed read: a file that was cut since it was opened has the wrong length.
    fn short(&self, file: &File, reason: std::io::Error) -> Error {
        match file.metadata().map(|data| data.len()) {
            Ok(found) if found < self.length => Error::Length { path: self.path.clone(), expected: self.length, found },
            _ => Error::reading(&self.path, reason),
        }
    }

    /// Waits until all values written are on the disk.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.sync_data().map_err(|reason| Error::writing(&self.path, reason))
    }
}

/// What a file begins with, for a sentence.
fn described(start: &[u8]) -> String {
    match start.strip_prefix(FLOAT_MAGIC).and_then(|rest| rest.get(2..)) {
        Some(dictionary) => {
            let text = String::from_utf8_lossy(dictionary);
            format!("the header {}", text.trim_end().replace(char::is_control, " "))
        }
        None => format!("the bytes {:02x?}", &start[..start.len().min(8)]),
    }
}

/// Values per sample, and bytes of the whole file.
fn sizes(path: &Path, header: &[u8], samples: usize, shape: &[usize]) -> Result<(usize, u64), Error> {
    let count = shape.iter().try_fold(1, |count: usize, &length| count.checked_mul(length));
    let bytes = count.and_then(|count| count.checked_mul(samples)?.checked_mul(4)?.checked_add(header.len()));
    match (count, bytes) {
        (Some(count), Some(bytes)) if i64::try_from(bytes).is_ok() => Ok((count, bytes as u64)),
        _ => Err(Error::malformed(path, format!("{samples} samples of {shape:?} are more than any file can hold"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_numpy() {
        let numpy = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
        let found = header(&[3, 2]);
        assert_eq!((&found[..8], found.len()), (&b"\x93NUMPY\x01\x00"[..], 128));
        assert_eq!((&found[8..10], found[127]), (&[118, 0][..], b'\n'));
        assert!(found[10..].starts_with(numpy) && found[10 + numpy.len()..127].iter().all(|&byte| byte == b' '));
        let line = String::from_utf8_lossy(&header(&[7])).into_owned();
        assert!(line.contains("'shape': (7,), }"), "{line}");
    }
}
