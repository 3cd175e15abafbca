//! Reading arrays from files: npy, npz, MAT v5 and v7.3, HDF5 and safetensors, told apart by their contents.
//!
//! Whatever a file says is held against its size before memory is taken for it, so that a damaged file ends in an
//! [`Error`] and nothing else. [`read_rows`] takes memory for the rows asked for and a buffer, not for the whole array.

mod array;
mod error;
mod hdf5;
mod mat5;
mod npy;
mod npz;
mod safetensors;
mod source;
mod write;

pub use array::{Array, ArrayInfo, ElementKind, Values};
pub use error::Error;
pub use write::{Named, write};

use array::Layout;
use source::{Entry, Opened};
use std::ops::Range;
use std::path::Path;

/// The arrays of real numbers in a file.
pub fn list(path: impl AsRef<Path>) -> Result<Vec<ArrayInfo>, Error> {
    Ok(Contents::of(path.as_ref())?.entries.into_iter().filter_map(info).collect())
}

/// A whole array in C order, shaped as NumPy or MATLAB shows it. Without a name the file must hold exactly one.
pub fn read(path: impl AsRef<Path>, name: Option<&str>) -> Result<Array, Error> {
    Contents::of(path.as_ref())?.read(name, None)
}

/// Some rows of the first axis: what lies between is passed over where it is not packed, and never held.
pub fn read_rows(path: impl AsRef<Path>, name: Option<&str>, rows: Range<usize>) -> Result<Array, Error> {
    Contents::of(path.as_ref())?.read(name, Some(rows))
}

fn info(entry: Entry) -> Option<ArrayInfo> {
    let layout = entry.holds.ok()?;
    Some(ArrayInfo { name: entry.name, shape: layout.shape, kind: layout.kind })
}

/// A file and what is in it.
struct Contents {
    opened: Opened,
    /// HDF5 finds its own way to the numbers.
    tree: Option<hdf5::Tree>,
    entries: Vec<Entry>,
}

impl Contents {
    fn of(path: &Path) -> Result<Contents, Error> {
        let opened = Opened::open(path)?;
        let start = opened.bytes(0, opened.size.min(4096), "the file")?;
        let mut tree = None;
        let entries = if hdf5::begins(&start) {
            tree.insert(hdf5::Tree::open(&opened, start.starts_with(b"MATLAB 7.3"))?).entries(&opened)
        } else if start.starts_with(npy::MAGIC) {
            npy::entries(&opened)
        } else if npz::MAGICS.iter().any(|magic| start.starts_with(magic)) {
            npz::entries(&opened)
        } else if mat5::begins(&start) {
            mat5::entries(&opened)
        } else if safetensors::begins(&start, opened.size) {
            safetensors::entries(&opened)
        } else {
            Err(Error::UnknownFormat { path: path.to_owned(), found: looks_like(&start) })
        }?;
        entries.iter().try_for_each(|entry| entry.check(&opened))?;
        Ok(Contents { opened, tree, entries })
    }

    fn read(&self, name: Option<&str>, rows: Option<Range<usize>>) -> Result<Array, Error> {
        let (entry, layout) = self.find(name)?;
        let found = layout.height();
        let rows = rows.unwrap_or(0..found);
        if rows.start > rows.end || rows.end > found {
            let (path, name) = (self.opened.path.clone(), entry.name.clone());
            return Err(Error::RowsOutside { path, name, rows, found });
        }
        match &self.tree {
            Some(tree) => tree.read(&self.opened, entry, layout, &rows),
            None => entry.read(&self.opened, layout, &rows),
        }
    }

    fn find(&self, name: Option<&str>) -> Result<(&Entry, &Layout), Error> {
        let path = || self.opened.path.clone();
        let known =
            || self.entries.iter().filter(|entry| entry.holds.is_ok()).map(|entry| entry.name.clone()).collect();
        let entry = match name {
            Some(name) => {
                let found = self.entries.iter().find(|entry| entry.name == name);
                found.ok_or_else(|| Error::Missing { path: path(), name: name.to_owned(), known: known() })?
            }
            None => match self.entries.iter().filter(|entry| entry.holds.is_ok()).collect::<Vec<_>>()[..] {
                [only] => only,
                _ if self.entries.len() == 1 => &self.entries[0], // and its type is the reason
                _ => return Err(Error::Unnamed { path: path(), known: known() }),
            },
        };
        match &entry.holds {
            Ok(layout) => Ok((entry, layout)),
            Err(found) => Err(Error::WrongType { path: path(), name: entry.name.clone(), found: found.clone() }),
        }
    }
}

/// Says what an unknown file may be.
fn looks_like(start: &[u8]) -> String {
    match start {
        [] => "an empty file".to_owned(),
        _ if start.starts_with(b"version https://git-lfs") => "a Git LFS pointer without its file".to_owned(),
        _ if start.starts_with(b"MATLAB 7.3") => "a MAT v7.3 header without its file".to_owned(),
        _ if start.starts_with(b"<") => "a web page".to_owned(),
        [0x1f, 0x8b, ..] => "a gzip file to be unpacked first".to_owned(),
        _ => format!("the bytes {:02x?}", &start[..start.len().min(8)]),
    }
}
