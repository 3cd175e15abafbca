//! The pages, pictures and lists of the command, for other programs: nothing is printed, and errors are those of the library.

use crate::commands::{compare, evaluate, explain, list};
use crate::failure;
use crate::report::PAGE;
use lamo::error::Refusal;
use lamo::inference::evaluate::Receipt;
use lamo::workflow::{Comparison, EvaluateRequest, Evaluated, ExplainedSample, Session};
use lamo::{Device, Error};
use std::path::{Path, PathBuf};

/// Writes the report of an evaluation, its pictures and its receipt into a folder; the page.
pub fn report(evaluated: &Evaluated, request: &EvaluateRequest, folder: &Path) -> Result<PathBuf, Error> {
    told(evaluate::write(evaluated, request, folder))?;
    Ok(folder.join(PAGE))
}

/// Evaluates a run that has just ended on its own data, and writes the report and the receipt into its folder.
pub fn after_training(folder: &Path, device: Device, session: &Session<'_>) -> Result<Receipt, Error> {
    told(evaluate::after_training(folder, device, session))
}

/// Writes the page about an explained sample, its numbers and its arrays into a folder; the page, and the numbers as JSON.
pub fn explanation(explained: &ExplainedSample, sample: usize, folder: &Path) -> Result<(PathBuf, String), Error> {
    let numbers = told(explain::write(explained, sample, folder))?;
    Ok((folder.join(explain::PAGE), numbers))
}

/// The picture of a comparison as a PNG file.
pub fn comparison(comparison: &Comparison) -> Result<Vec<u8>, Error> {
    told(compare::draw(comparison).png(None))
}

/// Models, benchmarks and experiments as JSON, as `lamo list --json` prints them.
pub fn list() -> Result<String, Error> {
    told(list::Report::make().and_then(|report| Ok(serde_json::to_string(&report)?)))
}

/// A failure of the command as one of the library, of the same kind and with the same sentence.
fn told<T>(result: anyhow::Result<T>) -> Result<T, Error> {
    result.map_err(|error| Refusal::said(format!("{error:#}")).of(failure::kind(&error)).into())
}
