//! What the command does when a job fails: one sentence on standard error, one line of JSON where a script asked for
//! JSON, and an exit code.

use crate::commands::{say, warn};
use lamo::data::{dataset, formats, state_dict};
use lamo::error::{Failure, FileError, Refusal, one_line};
use lamo::{Error, Kind};
use lamo_tensor::DeviceError;
use serde_json::json;
use std::fmt;
use std::process::ExitCode;

/// A failure that the JSON object on standard output already describes, so that no error line follows the object.
#[derive(Debug)]
pub(crate) struct InReport(pub(crate) Error);

impl fmt::Display for InReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl std::error::Error for InReport {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.0)
    }
}

/// Reports a failed job; the exit code. `json` says that the command was asked for `--json`.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    let (message, kind) = (one_line(&format!("{error:#}")).into_owned(), kind(error));
    if json && !error.is::<InReport>() {
        let line = json!({ "event": "error", "kind": kind.name(), "message": message });
        let _ = say(&line.to_string()); // the sentence below goes out even if standard output is closed
    }
    warn(&format!("lamo: {message}"));
    ExitCode::from(kind.exit_code())
}

/// The kind of a failure: that of the library's error in its chain, or internal for the command's own.
pub(crate) fn kind(error: &anyhow::Error) -> Kind {
    error.chain().find_map(kind_of_cause).unwrap_or(Kind::Internal)
}

/// The kind of one cause, if it is an error of the library.
fn kind_of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Kind> {
    fn of<F: Failure>(cause: &(dyn std::error::Error + 'static)) -> Option<Kind> {
        cause.downcast_ref::<F>().map(Failure::kind)
    }
    let whole = cause.downcast_ref::<Error>().or_else(|| cause.downcast_ref::<InReport>().map(|report| &report.0));
    whole
        .map(Error::kind)
        .or_else(|| of::<Refusal>(cause))
        .or_else(|| of::<FileError>(cause))
        .or_else(|| of::<DeviceError>(cause))
        .or_else(|| of::<dataset::Error>(cause))
        .or_else(|| of::<formats::Error>(cause))
        .or_else(|| of::<state_dict::Error>(cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};
    use std::io;

    #[test]
    fn the_kind_comes_from_the_library_error_anywhere_in_the_chain() {
        let conflict = || Refusal::said("the folder is in use").of(Kind::Conflict);
        let full = FileError { path: "a.png".into(), action: "written", reason: io::ErrorKind::StorageFull.into() };
        let in_context = Err::<(), _>(Error::from(full)).context("drawing").unwrap_err();
        let found = [
            kind(&conflict().into()),
            kind(&Error::from(conflict()).into()),
            kind(&InReport(conflict().into()).into()),
            kind(&in_context),
            kind(&anyhow!("starting threads")),
        ];
        assert_eq!(found, [Kind::Conflict, Kind::Conflict, Kind::Conflict, Kind::OutOfSpace, Kind::Internal]);
    }
}
