//! What can be wrong with an array file. Each error names the file, what was expected, what was found, and what to do.

use crate::error::{Failure, Kind, Refusal, shown};
use crate::files::memory::amount;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// Why an array file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path does not exist.
    #[error("{}: expected a file, found nothing; check the path", shown(.path))]
    NoSuchFile {
        /// The path asked for.
        path: PathBuf,
    },
    /// The path is a folder, a device or a pipe.
    #[error("{}: expected a file, found {found}; name a file instead", shown(.path))]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The operating system does not let the file be read.
    #[error("{}: expected a readable file, found \"{source}\"; check its permissions and its disk", shown(.path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The first bytes do not belong to a known format.
    #[error("{}: expected a file of format {expected}, found {found}; save it in one of these formats", shown(.path))]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The names of the formats.
        expected: String,
        /// What its first bytes look like.
        found: String,
    },
    /// A file of PyTorch from before 1.6, or without tensors: its values are Python objects, which only Python reads.
    #[error("{}: expected tensors in a file of PyTorch 1.6 or newer, found other objects of Python; convert them with: {command}", shown(.path))]
    PyTorch {
        /// The file.
        path: PathBuf,
        /// A command that writes its tensors as npz.
        command: String,
    },
    /// A line of a table does not fit the others.
    #[error("{}: expected {expected}, found {found}; correct the line", shown(.path))]
    Table {
        /// The file.
        path: PathBuf,
        /// What the line should hold.
        expected: String,
        /// The line, and what it holds.
        found: String,
    },
    /// The file is too short or too long.
    #[error("{}: {part} promises {expected} bytes, found {found}; the file is cut short or damaged, copy or download it again", shown(.path))]
    WrongLength {
        /// The file.
        path: PathBuf,
        /// Which part of it.
        part: String,
        /// Bytes according to the header.
        expected: u64,
        /// Bytes in the file.
        found: u64,
    },
    /// A shape with more values than the file can hold.
    #[error("{}: {} promises shape {shape:?}, more than its {found} bytes can hold; the file is damaged, copy or download it again", shown(.path), Titled(name))]
    AbsurdShape {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Its shape according to the header.
        shape: Vec<usize>,
        /// Bytes in the file, packed or not.
        found: u64,
    },
    /// Bytes that contradict the format.
    #[error("{}: expected {expected}, found {found}; the file is damaged, copy or download it again", shown(.path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the format requires.
        expected: String,
        /// What is there.
        found: String,
    },
    /// An array of text, records or structures instead of numbers.
    #[error("{}: expected {} to hold real numbers, found {found}; save it as plain float32 or float64", shown(.path), Titled(name))]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// What it holds.
        found: String,
    },
    /// A compression that is not supported.
    #[error("{}: expected {part} packed by gzip, with or without shuffle, or not packed, found \"{found}\"; save it in one of these ways", shown(.path))]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Which part of it.
        part: String,
        /// What is there.
        found: String,
    },
    /// The file has no array of that name.
    #[error("{}: expected an array named `{}`, found {}; name one of these", shown(.path), name.escape_debug(), Listed(known))]
    Missing {
        /// The file.
        path: PathBuf,
        /// The requested name.
        name: String,
        /// The names of its arrays.
        known: Vec<String>,
    },
    /// No name was given, and the file does not hold exactly one array.
    #[error("{}: expected the name of one array, found no name, and the file holds {}; name one of them", shown(.path), Listed(known))]
    Unnamed {
        /// The file.
        path: PathBuf,
        /// The names of its arrays.
        known: Vec<String>,
    },
    /// The array does not have these rows.
    #[error("{}: expected {} to have rows {}..{}, found {found} rows; ask for rows within them", shown(.path), Titled(name), rows.start, rows.end)]
    RowsOutside {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// The requested rows.
        rows: Range<usize>,
        /// How many rows it has.
        found: usize,
    },
    /// The arrays or the name do not fit the format.
    #[error("{}: cannot be written: {reason}", shown(.path))]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// The operating system does not let the file be written.
    #[error("{}: cannot be written: {reason}", shown(.path))]
    Writing {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
    /// The array does not have these axes.
    #[error("{}: expected {} to have the axes {order:?}, found {found} axes; list each of them once", shown(.path), Titled(name))]
    AxesOutside {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// The requested axes.
        order: Vec<usize>,
        /// How many axes it has.
        found: usize,
    },
    /// A mesh file that cannot be read, or that does not hold what is asked for.
    #[error("{}: {refusal}", shown(.path))]
    Mesh {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        refusal: Box<Refusal>,
    },
    /// The machine does not have enough memory.
    #[error("{}: expected {} of memory for {}, found too little; end other programs, or save it in smaller parts", shown(.path), amount(*.expected), Titled(name))]
    Memory {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Bytes of the values asked for.
        expected: u64,
    },
}

/// The title of an array in a sentence; the array of an npy file has no name.
struct Titled<'a>(&'a str);

impl fmt::Display for Titled<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { out.write_str("the array") } else { write!(out, "array `{}`", self.0.escape_debug()) }
    }
}

/// The names in a file as text, the first few of them if they are many.
pub(crate) fn listed(names: &[String]) -> String {
    Listed(names).to_string()
}

/// `a, b or c`
pub(super) fn alternatives(words: impl IntoIterator<Item = impl Into<String>>) -> String {
    let mut words: Vec<String> = words.into_iter().map(Into::into).collect();
    match words.pop() {
        Some(last) if !words.is_empty() => format!("{} or {last}", words.join(", ")),
        only => only.unwrap_or_default(),
    }
}

/// [`listed`] in a format string.
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
            Error::Memory { .. } => Kind::OutOfSpace,
            Error::Mesh { refusal, .. } => refusal.kind,
            Error::NotAFile { .. }
            | Error::UnknownFormat { .. }
            | Error::PyTorch { .. }
            | Error::Table { .. }
            | Error::WrongLength { .. }
            | Error::AbsurdShape { .. }
            | Error::Damaged { .. }
            | Error::WrongType { .. }
            | Error::Unsupported { .. }
            | Error::Unnamed { .. }
            | Error::RowsOutside { .. }
            | Error::AxesOutside { .. }
            | Error::Unwritable { .. } => Kind::BadInput,
        }
    }
}
