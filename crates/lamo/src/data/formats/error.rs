//! What can be wrong with an array file: each failure names the file, what was expected, what was found, what to do.

use crate::error::{Failure, Kind};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// A failure of the world outside: a path, a file, or a question the file cannot answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing is there.
    #[error("{}: expected a file, found nothing; check the path", .path.display())]
    NoSuchFile {
        /// The path asked for.
        path: PathBuf,
    },
    /// A folder, a device or a pipe is there.
    #[error("{}: expected a file, found {found}; name a file instead", .path.display())]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The operating system refuses.
    #[error("{}: expected a readable file, found \"{source}\"; check its permissions and its disk", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The first bytes are those of no known format.
    #[error("{}: expected an npy, npz, MAT v5 or v7.3, HDF5 or safetensors file, found {found}; save it anew in one of these formats", .path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What its beginning looks like.
        found: String,
    },
    /// The file ends too early, or goes on too long.
    #[error("{}: {part} promises {expected} bytes, found {found}; the file is cut short or damaged, copy or download it again", .path.display())]
    WrongLength {
        /// The file.
        path: PathBuf,
        /// Which part of it.
        part: String,
        /// Bytes by its header.
        expected: u64,
        /// Bytes there.
        found: u64,
    },
    /// A shape that no file of this size can fill.
    #[error("{}: {} promises shape {shape:?}, more than its {found} bytes can hold; the file is damaged, copy or download it again", .path.display(), Titled(name))]
    AbsurdShape {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Its shape by its header.
        shape: Vec<usize>,
        /// Bytes there, still packed where they are packed.
        found: u64,
    },
    /// Bytes that contradict the format.
    #[error("{}: expected {expected}, found {found}; the file is damaged, copy or download it again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the format asks for.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Something other than real numbers: text, complex numbers, structures.
    #[error("{}: expected {} to hold real numbers, found {found}; save it anew as plain float32 or float64", .path.display(), Titled(name))]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// What it holds.
        found: String,
    },
    /// A way of packing or writing that is not read here.
    #[error("{}: expected {part} packed by gzip, with or without shuffle, or not at all, found \"{found}\"; save it anew so", .path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Which part of it.
        part: String,
        /// What is there.
        found: String,
    },
    /// No array of that name.
    #[error("{}: expected an array named `{name}`, found {}; name one of these", .path.display(), Listed(known))]
    Missing {
        /// The file.
        path: PathBuf,
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// No name, and not exactly one array.
    #[error("{}: expected the name of one array, found none where there are {}; name one of them", .path.display(), Listed(known))]
    Unnamed {
        /// The file.
        path: PathBuf,
        /// The names there are.
        known: Vec<String>,
    },
    /// Rows that the array does not have.
    #[error("{}: expected {} to have rows {}..{}, found {found} rows; ask for rows within them", .path.display(), Titled(name), rows.start, rows.end)]
    RowsOutside {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// The rows asked for.
        rows: Range<usize>,
        /// The rows there are.
        found: usize,
    },
    /// An array file that cannot be written.
    #[error("{}: cannot be written: {reason}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the format says.
        reason: String,
    },
    /// The system does not let the file be written.
    #[error("{}: cannot be written: {reason}", .path.display())]
    Writing {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
    /// Axes that the array does not have.
    #[error("{}: expected {} to have the axes {order:?}, found {found} axes; list each of them once", .path.display(), Titled(name))]
    AxesOutside {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// The axes asked for.
        order: Vec<usize>,
        /// The number there is.
        found: usize,
    },
    /// The machine has not so much memory.
    #[error("{}: expected memory for {expected} values of {}, found too little; read fewer rows at a time", .path.display(), Titled(name))]
    Memory {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Values asked for.
        expected: usize,
    },
}

/// An array in a sentence; the one in an npy file has no name.
struct Titled<'a>(&'a str);

impl fmt::Display for Titled<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { out.write_str("the array") } else { write!(out, "array `{}`", self.0.escape_debug()) }
    }
}

/// [`Listed`] as text.
pub(crate) fn listed(names: &[String]) -> String {
    Listed(names).to_string()
}

/// The names in a file, the first few of them if they are many.
struct Listed<'a>(&'a [String]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 24;
        match self.0 {
            [] => out.write_str("no arrays"),
            [only] if only.is_empty() => out.write_str("one array without a name"),
            names => {
                let shown: Vec<_> = names.iter().take(SHOWN).map(|name| format!("`{}`", name.escape_debug())).collect();
                out.write_str(&shown.join(", "))?;
                if names.len() > SHOWN { write!(out, " and {} more", names.len() - SHOWN) } else { Ok(()) }
            }
        }
    }
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Error::NoSuchFile { .. } | Error::Missing { .. } => Kind::Missing,
            Error::Unreadable { source, .. } => Kind::of_io(source),
            Error::Writing { reason, .. } => Kind::of_io(reason),
            _ => Kind::BadInput,
        }
    }
}
