//! Array files: npy, npz, PyTorch, MAT v5 and v7.3, HDF5, safetensors, CSV, and the arrays of mesh files. The first bytes of a file show its format.
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
//! ends in an [`Error`]. [`read_rows`] reserves memory for the rows asked for and a buffer, not for the whole array, and
//! memory that the machine does not have ends in an [`Error`], too. Each function opens the file and reads its headers;
//! [`ArrayFile`] keeps it open where several arrays are read.

mod array;
mod complex;
pub(in crate::data) mod csv;
mod entry;
mod error;
mod file;
mod foreign;
mod hdf5;
pub(in crate::data) mod mat5;
mod mat73;
mod mesh;
pub(crate) mod npy;
mod npz;
mod packed;
mod pytorch;
pub(crate) mod safetensors;
mod section;
mod source;
mod write;
mod zip;

pub(crate) use array::decode;
pub use array::{Array, ArrayInfo, ElementKind, Rounding, Single, Tick, Values};
pub use error::Error;
pub(crate) use error::listed;
pub use file::ArrayFile;
pub(crate) use source::Stamp;
pub use write::{Named, encode, write};

use entry::Entry;
use source::Opened;
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
        name: "PyTorch",
        endings: &["pt", "pth"],
        summary: "PyTorch's torch.save: the tensors of a dictionary or list, any number of arrays",
        sniff: pytorch::sniff,
        open: pytorch::open,
        write: None,
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
        write: Some(mat5::write::write),
    },
    Format {
        name: "safetensors",
        endings: &["safetensors"],
        summary: "Hugging Face's safetensors: any number of arrays, plain",
        sniff: safetensors::sniff,
        open: safetensors::open,
        write: Some(safetensors::write),
    },
    Format {
        name: "mesh",
        endings: &["vtu", "vtp", "vti", "vtr", "vts", "vtk", "msh", "stl", "obj"],
        summary: "VTK, Gmsh, STL and OBJ: the points of a mesh, and arrays on its points and cells",
        sniff: mesh::sniff,
        open: mesh::open,
        write: None,
    },
    Format {
        name: "CSV",
        endings: &["csv", "tsv", "txt", "dat"],
        summary: "a table as text: columns by their names in the first line, numbered columns u0, u1, ... as one array",
        sniff: csv::sniff,
        open: csv::open,
        write: None,
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
    Ok(ArrayFile::open(path)?.list())
}

/// A whole array in C order, shaped as NumPy or MATLAB shows it. Without a name the file must hold exactly one array.
pub fn read(path: impl AsRef<Path>, name: Option<&str>) -> Result<Array, Error> {
    ArrayFile::open(path)?.read(name)
}

/// Some rows of the first axis. Other rows are skipped where the array is not packed, and never stored in memory.
pub fn read_rows(path: impl AsRef<Path>, name: Option<&str>, rows: Range<usize>) -> Result<Array, Error> {
    ArrayFile::open(path)?.read_rows(name, rows)
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
    ArrayFile::open(path)?.read_part(name, Some(order), Some(rows), tick)
}

/// Calls `take` with all numbers of an array in the order of the file, a bounded number at a time.
pub fn visit(path: impl AsRef<Path>, name: Option<&str>, take: impl FnMut(&[f64])) -> Result<(), Error> {
    ArrayFile::open(path)?.visit(name, take)
}

/// What a file says about the array called `name`, or about its only array.
pub fn describe(path: impl AsRef<Path>, name: Option<&str>) -> Result<ArrayInfo, Error> {
    ArrayFile::open(path)?.describe(name)
}
