//! One file per command.

pub(crate) mod bench;
pub(crate) mod data;
pub(crate) mod doctor;
pub(crate) mod list;
pub(crate) mod parity;
pub(crate) mod predict;
pub(crate) mod train;
pub(crate) mod weights;

use anyhow::{Context, Result};
use std::io::Write;

/// The one place that reports a failed job: one sentence, causes included.
#[allow(clippy::print_stderr)]
pub(crate) fn say_error(error: &anyhow::Error) {
    eprintln!("lamo: {error:#}");
}

/// A line on standard output; a reader that has gone away is an error, not a panic.
pub(crate) fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("writing to standard output")
}
