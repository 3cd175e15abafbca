//! Array files: npy, npz, MAT v5 and v7.3, HDF5 and safetensors. The first bytes of a file show its format.
//!
//! A new format is one file in this folder, with its `mod` line, and one row of [`FORMATS`]. The file has
//!
//! ```text
//! sniff(start, size) -> bool     whether a file of `size` bytes with these first bytes has the format
//! open(file) -> entries          its arrays: name, layout, and how the numbers are read: a `Section` where they are one
//!                                run of bytes, else the format's own `Numbers`
//! write(arrays) -> bytes         only where the format can be written
//! ```
//! and the row adds the format to [`list`], [`describe`], [`read`], [`visit`] and [`write()`], to the search for public
//! files and to every error sentence that names formats or endings.
//!
//! Each size in a header is checked against the length of the file before memory is reserved for it, so a damaged file
//! ends in an [`Error`]. [`read_rows`] reserves memory for the rows asked for and a buffer, not for the whole array.

mod array;
mod entry;
mod error;
mod hdf5;
mod mat5;
mod mat73;
pub(crate) mod npy;
mod npz;
pub(crate) mod safetensors;
mod section;
mod source;
mod write;

pub(crate) use array::decode;
pub use array::{Array, ArrayInfo, ElementKind, Tick, Values};
pub use error::Error;
pub(crate) use error::listed;
pub use write::{Named, write};

use array::Wanted;
use entry::{Entry, OpenArray};
use error::alternatives;
use source::Opened;
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

/// Makes the bytes of a file with these arrays, or says why there is no such file.
type Write = fn(&[Named]) -> Result<Vec<u8>, String>;

/// One row of the registry.
pub struct Format {
    /// Its name in lists and error sentences.
    pub name: &'static str,
    /// Endings of its files, in lower case and without the dot.
    pub endings: &'static [&'static str],
    /// The format in one line.
    pub summary: &'static str,
    /// Whether a file with these first bytes, [`START`] at most, and of this size has the format.
    sniff: fn(start: &[u8], size: u64) -> bool,
    /// The arrays of a file.
    open: fn(&Opened) -> Result<Vec<Entry>, Error>,
    /// `None` where the format is only read.
    write: Option<Write>,
}

/// Every format. The first row that recognises a file reads it: HDF5 allows any bytes before its signature, also those
/// that another format begins with, so its rows come first.
pub const FORMATS: &[Format] = &[
    Format {
        name: "MAT v7.3",
        endings: &["mat"],
        summary: "MATLAB's save -v7.3: HDF5 with reversed axes, any number of arrays",
        sniff: mat73::sniff,
        open: mat73::open,
        write: None,
    },
    Format {
        name: "HDF5",
        endings: &["h5", "hdf5"],
        summary: "Hierarchical Data Format 5: a tree of arrays, plain or packed by gzip",
        sniff: hdf5::sniff,
        open: hdf5::open,
        write: None,
    },
    Format {
        name: "npy",
        endings: &["npy"],
        summary: "NumPy's numpy.save: one array without a name",
        sniff: npy::sniff,
        open: npy::open,
        write: Some(npy::write),
    },
    Format {
        name: "npz",
        endings: &["npz"],
        summary: "NumPy's numpy.savez: a zip archive of npy files, any number of arrays",
        sniff: npz::sniff,
        open: npz::open,
        write: Some(npz::write),
    },
    Format {
        name: "MAT v5",
        endings: &["mat"],
        summary: "MATLAB's save -v7 and older: any number of arrays, plain or packed by zlib",
        sniff: mat5::sniff,
        open: mat5::open,
        write: None,
    },
    Format {
        name: "safetensors",
        endings: &["safetensors"],
        summary: "Hugging Face's safetensors: any number of arrays, plain",
        sniff: safetensors::sniff,
        open: safetensors::open,
        write: Some(safetensors::write),
    },
];

/// Bytes at the start of a file that its format is recognised by.
const START: u64 = 4096;

impl Format {
    /// Whether [`write()`] can write it.
    pub fn is_writable(&self) -> bool {
        self.write.is_some()
    }
}

/// The arrays of real numbers in a file.
pub fn list(path: impl AsRef<Path>) -> Result<Vec<ArrayInfo>, Error> {
    let contents = Contents::of(path.as_ref())?;
    let arrays = contents.entries.iter().filter_map(|entry| entry.array(&contents.opened));
    Ok(arrays.map(|array| array.info()).collect())
}

/// A whole array in C order, shaped as NumPy or MATLAB shows it. Without a name the file must hold exactly one array.
pub fn read(path: impl AsRef<Path>, name: Option<&str>) -> Result<Array, Error> {
    Contents::of(path.as_ref())?.read(name, None, None, &mut |_| {})
}

/// Some rows of the first axis. Other rows are skipped where the array is not packed, and never stored in memory.
pub fn read_rows(path: impl AsRef<Path>, name: Option<&str>, rows: Range<usize>) -> Result<Array, Error> {
    Contents::of(path.as_ref())?.read(name, None, Some(rows), &mut |_| {})
}

/// Like [`read_rows`], with the axes in the order listed: the rows are those of the first axis listed.
///
/// `[2, 0, 1]` turns `[points, channels, samples]` into `[samples, points, channels]`; every axis is listed once.
pub fn read_ordered(
    path: impl AsRef<Path>,
    name: Option<&str>,
    order: &[usize],
    rows: Range<usize>,
    tick: Tick,
) -> Result<Array, Error> {
    Contents::of(path.as_ref())?.read(name, Some(order), Some(rows), tick)
}

/// Calls `take` with all numbers of an array in the order of the file, a bounded number at a time.
pub fn visit(path: impl AsRef<Path>, name: Option<&str>, mut take: impl FnMut(&[f64])) -> Result<(), Error> {
    let contents = Contents::of(path.as_ref())?;
    let array = contents.find(name)?;
    array.numbers.visit(&array, &mut take)
}

/// What a file says about the array called `name`, or about its only array.
pub fn describe(path: impl AsRef<Path>, name: Option<&str>) -> Result<ArrayInfo, Error> {
    Ok(Contents::of(path.as_ref())?.find(name)?.info())
}

/// An open file and its arrays.
struct Contents {
    opened: Opened,
    entries: Vec<Entry>,
}

impl Contents {
    fn of(path: &Path) -> Result<Contents, Error> {
        let opened = Opened::open(path)?;
        let start = opened.bytes(0, opened.size.min(START), "the file")?;
        let format = FORMATS.iter().find(|format| (format.sniff)(&start, opened.size)).ok_or_else(|| {
            let expected = alternatives(FORMATS.iter().map(|format| format.name));
            Error::UnknownFormat { path: path.to_owned(), expected, found: looks_like(&start) }
        })?;
        let entries = (format.open)(&opened)?;
        let mut names = HashSet::new();
        for entry in &entries {
            entry.array(&opened).map_or(Ok(()), |array| array.numbers.check(&array))?;
            if !names.insert(entry.name.as_str()) {
                return Err(opened.damaged("each array once", format!("{:?} twice", entry.name)));
            }
        }
        Ok(Contents { opened, entries })
    }

    fn read(
        &self,
        name: Option<&str>,
        order: Option<&[usize]>,
        rows: Option<Range<usize>>,
        tick: Tick,
    ) -> Result<Array, Error> {
        let array = self.find(name)?;
        let (path, name) = (|| self.opened.path.clone(), || array.name.to_owned());
        let natural: Vec<_> = (0..array.layout.shape.len()).collect();
        let order = order.unwrap_or(&natural);
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if sorted != natural {
            return Err(Error::AxesOutside { path: path(), name: name(), order: order.to_vec(), found: natural.len() });
        }
        let found = array.layout.extent(order.first());
        let rows = rows.unwrap_or(0..found);
        if rows.start > rows.end || rows.end > found {
            return Err(Error::RowsOutside { path: path(), name: name(), rows, found });
        }
        array.numbers.read(&array, &Wanted { order, rows }, tick)
    }

    fn find(&self, name: Option<&str>) -> Result<OpenArray<'_>, Error> {
        let path = || self.opened.path.clone();
        let real = || self.entries.iter().filter(|entry| entry.holds.is_ok());
        let known = || real().map(|entry| entry.name.clone()).collect();
        let entry = match name {
            Some(name) => {
                let found = self.entries.iter().find(|entry| entry.name == name);
                found.ok_or_else(|| Error::Missing { path: path(), name: name.to_owned(), known: known() })?
            }
            None => match real().collect::<Vec<_>>()[..] {
                [only] => only,
                _ if self.entries.len() == 1 => &self.entries[0], // refused below: it holds no real numbers
                _ => return Err(Error::Unnamed { path: path(), known: known() }),
            },
        };
        entry.array(&self.opened).ok_or_else(|| {
            let found = entry.holds.as_ref().err().cloned().unwrap_or_default();
            Error::WrongType { path: path(), name: entry.name.clone(), found }
        })
    }
}

/// What a file of an unknown format may be.
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
