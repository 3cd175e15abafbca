//! One file per command.

pub(crate) mod bench;

/// The one place that reports a failed job: one sentence, causes included.
#[allow(clippy::print_stderr)]
pub(crate) fn say_error(error: &anyhow::Error) {
    eprintln!("lamo: {error:#}");
}
