//! What can go wrong: every failure has a kind, the thing it is about, what was expected and what was found.
//!
//! Each room has error types of its own that implement [`Failure`]; [`Error`] holds any of them. The kind decides the exit
//! code of the command and the status of a server; the sentence is made by `Display`, and no code reads it again.

use lamo_tensor::{DeviceError, DeviceErrorKind, attempt};
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What sort of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A setting, an array or a file does not hold what it must.
    BadInput,
    /// A file, a field or a name does not exist.
    Missing,
    /// Two things do not go together: a folder in use, data that changed, a checkpoint of another experiment.
    Conflict,
    /// The device is absent, lost or out of memory.
    Device,
    /// The training broke: the loss, a parameter or the test error is not finite.
    Diverged,
    /// The disk is full, or the memory of the machine is too small.
    OutOfSpace,
    /// The caller asked to stop; the work done so far is saved.
    Cancelled,
    /// The job ran to its end and its result does not hold: a receipt that differs, parity beyond its tolerance.
    Failed,
    /// Anything else, such as an I/O error of the system.
    Internal,
}

impl Kind {
    /// As `--json` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::BadInput => "bad-input",
            Kind::Missing => "missing",
            Kind::Conflict => "conflict",
            Kind::Device => "device",
            Kind::Diverged => "diverged",
            Kind::OutOfSpace => "out-of-space",
            Kind::Cancelled => "cancelled",
            Kind::Failed => "failed",
            Kind::Internal => "internal",
        }
    }

    /// Exit code of the command: 1 for every job that failed. Wrong usage exits with 2 before a job begins.
    pub fn exit_code(self) -> u8 {
        1
    }

    /// The kind of an I/O error.
    pub fn of_io(error: &io::Error) -> Kind {
        match error.kind() {
            io::ErrorKind::NotFound => Kind::Missing,
            io::ErrorKind::AlreadyExists => Kind::Conflict,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::OutOfMemory => Kind::OutOfSpace,
            io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::PermissionDenied => Kind::BadInput,
            _ => Kind::Internal,
        }
    }
}

/// An error type of a room: one sentence by `Display`, and its kind.
pub trait Failure: std::error::Error + Send + Sync + 'static {
    /// What sort of failure it is.
    fn kind(&self) -> Kind;
}

/// Any failure of the library.
pub struct Error {
    kind: Kind,
    cause: Box<dyn std::error::Error + Send + Sync>,
}

impl Error {
    /// What sort of failure it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The error of a room, such as a [`crate::training::Divergence`], if it is one of that type.
    pub fn downcast_ref<F: Failure>(&self) -> Option<&F> {
        self.cause.downcast_ref()
    }

    /// A failed read.
    pub(crate) fn reading(path: &Path, reason: io::Error) -> Error {
        FileError { path: path.to_owned(), action: "read", reason }.into()
    }

    /// A failed write.
    pub(crate) fn writing(path: &Path, reason: io::Error) -> Error {
        FileError { path: path.to_owned(), action: "written", reason }.into()
    }
}

impl<F: Failure> From<F> for Error {
    fn from(failure: F) -> Error {
        Error { kind: failure.kind(), cause: Box::new(failure) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&one_line(&self.cause.to_string()))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}: {:?}", self.kind, self.cause)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source()
    }
}

impl Failure for DeviceError {
    fn kind(&self) -> Kind {
        match DeviceError::kind(self) {
            DeviceErrorKind::Interrupted => Kind::Cancelled,
            DeviceErrorKind::TooLarge => Kind::BadInput,
            _ => Kind::Device,
        }
    }
}

/// Builds and compiles programs; a program beyond all sizes is an error, not a panic.
pub(crate) fn bounded<T, E: From<DeviceError>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    attempt(|| false, work)?
}

impl From<DeviceError> for Refusal {
    fn from(error: DeviceError) -> Refusal {
        Refusal::said(error.to_string()).of(Failure::kind(&error))
    }
}

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be {action}: {reason}", shown(path))]
pub struct FileError {
    /// Which file.
    pub path: PathBuf,
    /// Read or written.
    pub action: &'static str,
    /// What the system says.
    pub reason: io::Error,
}

impl Failure for FileError {
    fn kind(&self) -> Kind {
        Kind::of_io(&self.reason)
    }
}

/// Something that does not fit: the thing, what was expected, what was found, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What sort of failure it is.
    pub kind: Kind,
    /// A key, a file, a field: what the sentence is about.
    pub thing: String,
    /// What it should be; the whole sentence where `found` is empty.
    pub expected: String,
    /// What it is.
    pub found: String,
    /// What to do about it.
    pub advice: String,
}

impl Refusal {
    /// `THING: expected EXPECTED, found FOUND`
    pub fn new(thing: impl Into<String>, expected: impl Into<String>, found: impl Into<String>) -> Refusal {
        Refusal {
            kind: Kind::BadInput,
            thing: thing.into(),
            expected: expected.into(),
            found: found.into(),
            advice: String::new(),
        }
    }

    /// `THING: SENTENCE`
    pub fn about(thing: impl Into<String>, sentence: impl Into<String>) -> Refusal {
        Refusal::new(thing, sentence, "")
    }

    /// A sentence that names its thing itself.
    pub fn said(sentence: impl Into<String>) -> Refusal {
        Refusal::new("", sentence, "")
    }

    /// Adds what to do.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Refusal {
        self.advice = advice.into();
        self
    }

    /// Of another kind than bad input.
    #[must_use]
    pub fn of(mut self, kind: Kind) -> Refusal {
        self.kind = kind;
        self
    }

    /// The same about a part of a larger thing, such as an array in a file: `WHOLE: THING: …`.
    #[must_use]
    pub fn within(mut self, whole: impl fmt::Display) -> Refusal {
        self.thing = if self.thing.is_empty() { whole.to_string() } else { format!("{whole}: {}", self.thing) };
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { thing, expected, found, advice, .. } = self;
        let [thing, expected, found, advice] = [thing, expected, found, advice].map(|text| one_line(text));
        if !thing.is_empty() {
            write!(out, "{thing}: ")?;
        }
        match found.is_empty() {
            true => write!(out, "{expected}")?,
            false => write!(out, "expected {expected}, found {found}")?,
        }
        if advice.is_empty() { Ok(()) } else { write!(out, "; {advice}") }
    }
}

impl std::error::Error for Refusal {}

impl Failure for Refusal {
    fn kind(&self) -> Kind {
        self.kind
    }
}

impl From<String> for Refusal {
    fn from(sentence: String) -> Refusal {
        Refusal::said(sentence)
    }
}

/// The text with its control characters escaped: a name or a path may hold a newline, and an error is one line.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let breaks = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    if !text.contains(breaks) {
        return Cow::Borrowed(text);
    }
    let escape = |letter: char| if breaks(letter) { letter.escape_default().to_string() } else { letter.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// A path in a sentence.
pub(crate) fn shown(path: &Path) -> String {
    one_line(&path.display().to_string()).into_owned()
}

/// Refuses unless the claim holds.
pub(crate) fn require<R: Into<Refusal>>(claim: bool, refusal: impl FnOnce() -> R) -> Result<(), Refusal> {
    if claim { Ok(()) } else { Err(refusal().into()) }
}

/// `1 sample`, `2 samples`.
pub fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_as_one_sentence() {
        let refusal = Refusal::new("train.rate", "a number above 0", "-1").advise("set train.rate=0.001");
        assert_eq!(refusal.to_string(), "train.rate: expected a number above 0, found -1; set train.rate=0.001");
        assert_eq!(Refusal::about("darcy", "has no recipe").within("list").to_string(), "list: darcy: has no recipe");
        assert_eq!(Refusal::said("stopped").within("a.npy").to_string(), "a.npy: stopped");
    }

    #[test]
    fn a_newline_in_a_name_or_a_path_does_not_break_the_sentence() {
        let refusal = Refusal::new("field `a\nb`", "c\r\nd", "\u{1b}[2J").advise("rename\tit");
        let told = "field `a\\nb`: expected c\\r\\nd, found \\u{1b}[2J; rename\\tit";
        assert_eq!([refusal.to_string(), Error::from(refusal).to_string()], [told, told]);
        let file = Error::reading(Path::new("a\nb.npy"), io::ErrorKind::NotFound.into());
        assert!(file.to_string().starts_with("a\\nb.npy: cannot be read"), "{file}");
        assert_eq!(one_line("Δ, ‖u‖₂ and ω stay"), "Δ, ‖u‖₂ and ω stay");
    }

    #[test]
    fn an_error_keeps_the_kind_and_the_type_of_its_cause() {
        let error = Error::from(Refusal::new("a", "b", "c").of(Kind::Conflict));
        assert_eq!((error.kind(), error.downcast_ref::<Refusal>().is_some()), (Kind::Conflict, true));
        assert!(error.downcast_ref::<FileError>().is_none());
        let full = Error::writing(Path::new("x"), io::ErrorKind::StorageFull.into());
        assert_eq!(full.kind(), Kind::OutOfSpace);
    }
}
