//! What can be wrong with a data set. Each error is one sentence: the thing, what was expected, what was found, what to
//! do.

use crate::error::{Failure, Kind, one_line, shown};
use std::io;
use std::path::{Path, PathBuf};

/// Why a data set cannot be made, opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The solvers do not know the problem or its parameters.
    #[cfg(feature = "solvers")]
    #[error(transparent)]
    Physics(#[from] lamo_physics::Error),
    /// The solver cannot compute one sample.
    #[cfg(feature = "solvers")]
    #[error(
        "{problem}: sample {sample} of seed {seed} cannot be computed, {reason}; change the parameters or the seed"
    )]
    Sample {
        /// The problem.
        problem: String,
        /// Its seed.
        seed: u64,
        /// Index of the sample.
        sample: usize,
        /// The error of the solver.
        reason: lamo_physics::Error,
    },
    /// A value that the solver computed is NaN or too large for float32.
    #[error(
        "{problem}: sample {sample} of seed {seed} has {found} at {position:?} of `{field}`, expected finite float32 \
         values; change the parameters or the seed"
    )]
    NotFinite {
        /// The problem.
        problem: String,
        /// Its seed.
        seed: u64,
        /// Index of the sample.
        sample: usize,
        /// The field.
        field: String,
        /// Where in the sample.
        position: Vec<usize>,
        /// The value.
        found: f64,
    },
    /// An array file cannot be read.
    #[error(transparent)]
    File(#[from] crate::data::formats::Error),
    /// An array, a file or a setting does not fit the rest of the data set.
    #[error("{what}: expected {expected}, found {found}; {advice}")]
    Unfit {
        /// The array, file or setting.
        what: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
        /// What to do.
        advice: String,
    },
    /// A value in a file is NaN or too large for float32.
    #[error(
        "{origin}: sample {sample} has {found:e} at {position:?} of `{field}`, expected finite float32 values, up to \
         3.4e38; correct the file or leave the sample out"
    )]
    NoNumber {
        /// The file and its array.
        origin: String,
        /// The field it becomes.
        field: String,
        /// Index of the sample in the file.
        sample: usize,
        /// Where in the sample, along the axes of the data set.
        position: Vec<usize>,
        /// The value.
        found: f64,
    },
    /// A number outside its range.
    #[error("{what}: expected {expected}, found {found}")]
    Number {
        /// Which number.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A file or folder cannot be read.
    #[error("{}: cannot be read: {reason}; check the path and its permissions", shown(path))]
    Reading {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// A file or folder cannot be written.
    #[error("{}: cannot be written: {reason}; choose a folder you may write to", shown(path))]
    Writing {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// The disk is full.
    #[error(
        "{}: the disk is full; free some space and run the same command again, it continues with the next sample",
        shown(path)
    )]
    Full {
        /// What was being written.
        path: PathBuf,
    },
    /// The machine does not have enough memory.
    #[error("{thing}: {reason}; end other programs, or use fewer or smaller samples")]
    Memory {
        /// What needs it: a file, or the samples.
        thing: String,
        /// How much was expected.
        reason: io::Error,
    },
    /// A source file was written to while it was imported.
    #[error(
        "{}: it changed while it was imported; run the same command again when no other program writes to it",
        shown(path)
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// There is no data set at the path.
    #[error("{}: not a data set, expected a folder with dataset.toml, found {found}", shown(path))]
    NotADataset {
        /// The path given.
        path: PathBuf,
        /// What is at the path.
        found: String,
    },
    /// A manifest or a header cannot be read, or contradicts itself.
    #[error("{}: {reason}; restore the file or make the data set again", shown(path))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Expected and found.
        reason: String,
    },
    /// A file has the wrong length.
    #[error("{}: expected {expected} bytes, found {found}; restore the file or make the data set again", shown(path))]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes according to the manifest.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The bytes of a file have changed.
    #[error("{}: expected SHA-256 {expected}, found {found}; restore the file or make the data set again", shown(path))]
    Hash {
        /// The file.
        path: PathBuf,
        /// SHA-256 in the manifest.
        expected: String,
        /// SHA-256 of the file.
        found: String,
    },
    /// The folder holds the data set of another recipe.
    #[error(
        "{} {state}: expected {what} {expected}, found {found}; repeat the earlier command, or choose another folder, \
         or remove this one",
        shown(path)
    )]
    Different {
        /// The folder.
        path: PathBuf,
        /// What it holds.
        state: &'static str,
        /// The first property that differs.
        what: String,
        /// Its value in this recipe.
        expected: String,
        /// Its value in the folder.
        found: String,
    },
    /// The path is taken by a file, or by a folder that is not a data set.
    #[error("{}: expected a free name for the data set, found {found}; choose another folder", shown(path))]
    Occupied {
        /// The target.
        path: PathBuf,
        /// What is at the path.
        found: String,
    },
    /// Another process holds the lock of the folder.
    #[error("{}: another process is making this data set; wait for it or stop it", shown(path))]
    InUse {
        /// The partial folder.
        path: PathBuf,
    },
    /// The catalogue has no benchmark of this name.
    #[error(
        "benchmark: expected one of {expected}, found `{found}`; choose one of these, or import arrays of your own"
    )]
    UnknownBenchmark {
        /// The names in the catalogue.
        expected: String,
        /// The requested name.
        found: String,
    },
    /// The data set has no field of this name.
    #[error("{}: no field `{found}`, expected one of {expected}", shown(path))]
    UnknownField {
        /// The data set.
        path: PathBuf,
        /// The names of its fields.
        expected: String,
        /// The requested name.
        found: String,
    },
    /// The data set has no sample of this index.
    #[error("{}: expected samples below {expected}, found {found}", shown(path))]
    UnknownSample {
        /// The data set.
        path: PathBuf,
        /// How many samples it has.
        expected: usize,
        /// The requested sample, or the last of the requested range.
        found: usize,
    },
}

impl Error {
    pub(in crate::data) fn reading(path: &Path, reason: io::Error) -> Error {
        match reason.kind() {
            io::ErrorKind::OutOfMemory => Error::memory(shown(path), reason),
            _ => Error::Reading { path: path.to_owned(), reason },
        }
    }

    pub(in crate::data) fn memory(thing: impl Into<String>, reason: io::Error) -> Error {
        Error::Memory { thing: thing.into(), reason }
    }

    pub(in crate::data) fn writing(path: &Path, reason: io::Error) -> Error {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        match reason.kind() {
            StorageFull | QuotaExceeded => Error::Full { path: path.to_owned() },
            io::ErrorKind::OutOfMemory => Error::memory(shown(path), reason),
            _ => Error::Writing { path: path.to_owned(), reason },
        }
    }

    pub(in crate::data) fn unfit(what: String, expected: String, found: String, advice: impl Into<String>) -> Error {
        let [what, expected, found] = [what, expected, found].map(|text| one_line(&text).into_owned());
        Error::Unfit { what, expected, found, advice: advice.into() }
    }

    pub(in crate::data) fn malformed(path: &Path, reason: impl Into<String>) -> Error {
        Error::Malformed { path: path.to_owned(), reason: one_line(&reason.into()).into_owned() }
    }
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            #[cfg(feature = "solvers")]
            Error::Physics(lamo_physics::Error::UnknownProblem { .. }) => Kind::Missing,
            #[cfg(feature = "solvers")]
            Error::Physics(_) | Error::Sample { .. } => Kind::BadInput,
            Error::File(error) => error.kind(),
            Error::Reading { reason, .. } | Error::Writing { reason, .. } => Kind::of_io(reason),
            Error::Full { .. } | Error::Memory { .. } => Kind::OutOfSpace,
            Error::NotADataset { .. }
            | Error::UnknownBenchmark { .. }
            | Error::UnknownField { .. }
            | Error::UnknownSample { .. } => Kind::Missing,
            Error::Different { .. } | Error::Occupied { .. } | Error::InUse { .. } | Error::Changed { .. } => {
                Kind::Conflict
            }
            Error::NotFinite { .. }
            | Error::Unfit { .. }
            | Error::NoNumber { .. }
            | Error::Number { .. }
            | Error::Malformed { .. }
            | Error::Length { .. }
            | Error::Hash { .. } => Kind::BadInput,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart_from_a_forbidden_folder() {
        let path = Path::new("set.partial/pressure.npy");
        let message = |kind: io::ErrorKind| Error::writing(path, kind.into()).to_string();
        assert_eq!(
            message(io::ErrorKind::StorageFull),
            "set.partial/pressure.npy: the disk is full; free some space and run the same command again, it continues \
             with the next sample"
        );
        assert_eq!(
            message(io::ErrorKind::PermissionDenied),
            "set.partial/pressure.npy: cannot be written: permission denied; choose a folder you may write to"
        );
    }
}
