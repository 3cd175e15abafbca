//! Reading arrays from files: npy, npz, MAT v5 and v7.3, HDF5 and safetensors, told apart by their contents.
//!
//! Whatever a file says is held against its size before memory is taken for it, so that a damaged file ends in an
//! [`Error`] and nothing else. [`read_rows`] takes memory for the rows asked for and a buffer, not for the whole array.

mod array;
mod error;
mod hdf5;
mod mat5;
pub(crate) mod npy;
mod npz;
pub(crate) mod safetensors;
mod source;
mod write;

pub(crate) use array::decode;
pub use array::{Array, ArrayInfo, ElementKind, Tick, Values};
pub use error::Error;
pub(crate) use error::listed;
pub use write::{Named, write};

use array::{Layout, Wanted};
use source::{Entry, Opened};
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

/// The arrays of real numbers in a file.
pub fn list(path: impl AsRef<Path>) -> Result<Vec<ArrayInfo>, Error> {
    Ok(Contents::of(path.as_ref())?.entries.into_iter().filter_map(info).collect())
}

/// A whole array in C order, shaped as NumPy or MATLAB shows it. Without a name the file must hold exactly one.
pub fn read(path: impl AsRef<Path>, name: Option<&str>) -> Result<Array, Error> {
    Contents::of(path.as_ref())?.read(name, None, None, &mut |_| {})
}

/// Some rows of the first axis: what lies between is passed over where it is not packed, and never held.
pub fn read_rows(path: impl AsRef<Path>, name: Option<&str>, rows: Range<usize>) -> Result<Array, Error> {
    Contents::of(path.as_ref())?.read(name, None, Some(rows), &mut |_| {})
}

/// Like [`read_rows`], with the axes in the order listed: the rows are those of the first axis listed.
///
/// `[2, 0, 1]` makes `[samples, points, channels]` of `[points, channels, samples]`; every axis is listed once.
pub fn read_ordered(
    path: impl AsRef<Path>,
    name: Option<&str>,
    order: &[usize],
    rows: Range<usize>,
    tick: Tick,
) -> Result<Array, Error> {
    Contents::of(path.as_ref())?.read(name, Some(order), Some(rows), tick)
}

/// Hands on all numbers of an array in the order of the file, a bounded number at a time.
pub fn visit(path: impl AsRef<Path>, name: Option<&str>, take: impl FnMut(&[f64])) -> Result<(), Error> {
    let contents = Contents::of(path.as_ref())?;
    let (entry, layout) = contents.find(name)?;
    match &contents.tree {
        Some(tree) => tree.visit(&contents.opened, entry, layout, take),
        None => entry.visit(&contents.opened, layout, take),
    }
}

/// What a file says about the array called `name`, or about its only one.
pub fn describe(path: impl AsRef<Path>, name: Option<&str>) -> Result<ArrayInfo, Error> {
    let contents = Contents::of(path.as_ref())?;
    let (entry, layout) = contents.find(name)?;
    Ok(ArrayInfo { name: entry.name.clone(), shape: layout.shape.clone(), kind: layout.kind })
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
        let mut names = HashSet::new();
        for entry in &entries {
            entry.check(&opened)?;
            if !names.insert(entry.name.as_str()) {
                return Err(opened.damaged("each array once", format!("{:?} twice", entry.name)));
            }
        }
        Ok(Contents { opened, tree, entries })
    }

    fn read(
        &self,
        name: Option<&str>,
        order: Option<&[usize]>,
        rows: Option<Range<usize>>,
        tick: Tick,
    ) -> Result<Array, Error> {
        let (entry, layout) = self.find(name)?;
        let straight: Vec<_> = (0..layout.shape.len()).collect();
        let order = order.unwrap_or(&straight);
        let mut listed = order.to_vec();
        listed.sort_unstable();
        if listed != straight {
            let (path, name) = (self.opened.path.clone(), entry.name.clone());
            return Err(Error::AxesOutside { path, name, order: order.to_vec(), found: straight.len() });
        }
        let found = layout.extent(order.first());
        let rows = rows.unwrap_or(0..found);
        if rows.start > rows.end || rows.end > found {
            let (path, name) = (self.opened.path.clone(), entry.name.clone());
            return Err(Error::RowsOutside { path, name, rows, found });
        }
        let wanted = Wanted { order, rows };
        match &self.tree {
            Some(tree) => tree.read(&self.opened, entry, layout, &wanted, tick),
            None => entry.read(&self.opened, layout, &wanted, tick),
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
