//! What can go wrong with a data set: each failure is one sentence with the thing, what was expected, what was found
//! and what to do.

use crate::error::{Failure, Kind};
use std::io;
use std::path::{Path, PathBuf};

/// Why a data set cannot be made, opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The problem or its parameters are not what the solvers know, or a sample cannot be solved.
    #[cfg(feature = "solvers")]
    #[error(transparent)]
    Physics(#[from] lamo_physics::Error),
    /// The solver gave up on one sample.
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
        /// What the solver says.
        reason: lamo_physics::Error,
    },
    /// The solver's numbers are no numbers, or do not fit float32.
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
    /// An array, a file or a choice that does not fit the others.
    #[error("{what}: expected {expected}, found {found}; {advice}")]
    Unfit {
        /// The thing.
        what: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
        /// What to do.
        advice: String,
    },
    /// Values in a file that are no numbers, or do not fit float32.
    #[error(
        "{origin}: sample {sample} has {found:e} at {position:?} of `{field}`, expected finite float32 values, up to \
         3.4e38; mend the file or leave the sample out"
    )]
    NoNumber {
        /// The file and its array.
        origin: String,
        /// The field it becomes.
        field: String,
        /// Index of the sample in the file.
        sample: usize,
        /// Where in the sample, in the order of the data set.
        position: Vec<usize>,
        /// The value.
        found: f64,
    },
    /// A number that no data set can have.
    #[error("{what}: expected {expected}, found {found}")]
    Number {
        /// Which number.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// The file or folder cannot be read.
    #[error("{}: cannot be read: {reason}; check the path and its permissions", path.display())]
    Reading {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// The file or folder cannot be written.
    #[error("{}: cannot be written: {reason}; choose a folder you may write to", path.display())]
    Writing {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// The disk is full.
    #[error(
        "{}: the disk is full; free some space and run the same command again, finished samples are kept",
        path.display()
    )]
    Full {
        /// What was being written.
        path: PathBuf,
    },
    /// A folder without a manifest.
    #[error("{}: not a data set, expected a folder with dataset.toml, found {found}", path.display())]
    NotADataset {
        /// The path given.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// A manifest or a header that cannot be understood.
    #[error("{}: {reason}; restore the file or make the data set again", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Expected and found.
        reason: String,
    },
    /// A file of the wrong length.
    #[error(
        "{}: expected {expected} bytes, found {found}; restore the file or make the data set again", path.display()
    )]
    Length {
        /// Which file.
        path: PathBuf,
        /// Bytes the manifest promises.
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
    /// A file whose bytes have changed.
    #[error(
        "{}: expected SHA-256 {expected}, found {found}; restore the file or make the data set again", path.display()
    )]
    Hash {
        /// Which file.
        path: PathBuf,
        /// According to the manifest.
        expected: String,
        /// According to the file.
        found: String,
    },
    /// The folder belongs to another recipe.
    #[error(
        "{} {state}: expected {what} {expected}, found {found}; repeat the earlier command, or choose another folder, \
         or remove this one", path.display()
    )]
    Different {
        /// The folder.
        path: PathBuf,
        /// What it holds.
        state: &'static str,
        /// The first difference.
        what: String,
        /// What this recipe says.
        expected: String,
        /// What the folder says.
        found: String,
    },
    /// The target holds something else.
    #[error("{}: expected a free name for the data set, found {found}; choose another folder", path.display())]
    Occupied {
        /// The target.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// Two processes on one folder.
    #[error("{}: another process is making this data set; wait for it or stop it", path.display())]
    InUse {
        /// The partial folder.
        path: PathBuf,
    },
    /// A benchmark whose files are not known.
    #[error(
        "benchmark: expected one of {expected}, found `{found}`; choose one of these, or import arrays of your own"
    )]
    UnknownBenchmark {
        /// The benchmarks there are.
        expected: String,
        /// The one asked for.
        found: String,
    },
    /// A field that is not there.
    #[error("{}: no field `{found}`, expected one of {expected}", path.display())]
    UnknownField {
        /// The data set.
        path: PathBuf,
        /// The fields there are.
        expected: String,
        /// The field asked for.
        found: String,
    },
    /// A sample that is not there.
    #[error("{}: expected samples below {expected}, found {found}", path.display())]
    UnknownSample {
        /// The data set.
        path: PathBuf,
        /// How many there are.
        expected: usize,
        /// The sample asked for, or the last of the range.
        found: usize,
    },
}

impl Error {
    pub(in crate::data) fn reading(path: &Path, reason: io::Error) -> Error {
        Error::Reading { path: path.to_owned(), reason }
    }

    pub(in crate::data) fn writing(path: &Path, reason: io::Error) -> Error {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        match reason.kind() {
            StorageFull | QuotaExceeded => Error::Full { path: path.to_owned() },
            _ => Error::Writing { path: path.to_owned(), reason },
        }
    }

    pub(in crate::data) fn unfit(what: String, expected: String, found: String, advice: impl Into<String>) -> Error {
        Error::Unfit { what, expected, found, advice: advice.into() }
    }

    pub(in crate::data) fn malformed(path: &Path, reason: impl Into<String>) -> Error {
        Error::Malformed { path: path.to_owned(), reason: reason.into() }
    }
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            #[cfg(feature = "solvers")]
            Error::Physics(_) | Error::Sample { .. } => Kind::BadInput,
            Error::File(error) => error.kind(),
            Error::Reading { reason, .. } | Error::Writing { reason, .. } => Kind::of_io(reason),
            Error::Full { .. } => Kind::OutOfSpace,
            Error::NotADataset { .. }
            | Error::UnknownBenchmark { .. }
            | Error::UnknownField { .. }
            | Error::UnknownSample { .. } => Kind::Missing,
            Error::Different { .. } | Error::Occupied { .. } | Error::InUse { .. } => Kind::Conflict,
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
            "set.partial/pressure.npy: the disk is full; free some space and run the same command again, finished \
             samples are kept"
        );
        assert_eq!(
            message(io::ErrorKind::PermissionDenied),
            "set.partial/pressure.npy: cannot be written: permission denied; choose a folder you may write to"
        );
    }
}
