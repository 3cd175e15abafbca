//! The files of an import, as they were when it began. A data set records the SHA-256 of its sources, so every value must
//! come from the bytes that were hashed: a file that changes in between ends the import.

use crate::data::dataset::{Error, hexadecimal};
use crate::data::formats::{ArrayFile, Stamp};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Files that are open at the same time. The last ones used stay open, so the header of a file with many arrays is read
/// once; a process may not have all files of a large import open.
const MOST_OPEN: usize = 16;

/// The files of an import.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The last ones used, the latest at the end.
    open: Vec<Rc<ArrayFile>>,
    /// Each file as it was when it was opened first.
    stamps: HashMap<PathBuf, Stamp>,
}

impl Sources {
    /// Sources that must still be as others found them.
    pub(super) fn as_found_by(others: &Sources) -> Sources {
        Sources { open: Vec::new(), stamps: others.stamps.clone() }
    }

    /// The file at a path; refuses a file that is not as it was when it was opened first.
    pub(super) fn file(&mut self, path: &Path) -> Result<Rc<ArrayFile>, Error> {
        let file = match self.open.iter().position(|file| file.path() == path) {
            Some(place) => self.open.remove(place),
            None => Rc::new(ArrayFile::open(path)?),
        };
        let first = *self.stamps.entry(path.to_owned()).or_insert(file.stamp());
        if file.stamp() != first || file.stamp_now()? != first {
            return Err(Error::Changed { path: path.to_owned() });
        }
        if self.open.len() == MOST_OPEN {
            self.open.remove(0);
        }
        self.open.push(Rc::clone(&file));
        Ok(file)
    }

    /// Size and SHA-256 of a file; `tick` is called with the bytes read since its last call.
    pub(super) fn hash(&mut self, path: &Path, tick: &mut dyn FnMut(usize)) -> Result<(u64, String), Error> {
        let file = self.file(path)?;
        let mut hash = Sha256::new();
        file.bytes(&mut |bytes| {
            hash.update(bytes);
            tick(bytes.len());
        })?;
        Ok((file.stamp().size, hexadecimal(hash)))
    }

    /// Forgets the open files, and so the memory that their headers take.
    pub(super) fn close(&mut self) {
        self.open.clear();
    }
}
