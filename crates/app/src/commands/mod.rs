//! One file per command, and what they share.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod data;
pub(crate) mod doctor;
pub(crate) mod evaluate;
pub(crate) mod list;
pub(crate) mod parity;
pub(crate) mod predict;
pub(crate) mod progress;
pub(crate) mod stop;
pub(crate) mod train;
pub(crate) mod weights;

use anyhow::{Context, Result};
use std::io::Write;
use std::path::Path;

/// The one place that reports a failed job: one sentence, causes included.
#[allow(clippy::print_stderr)]
pub(crate) fn say_error(error: &anyhow::Error) {
    eprintln!("lamo: {error:#}");
}

/// A line on standard output; a reader that has gone away is an error, not a panic.
pub(crate) fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("writing to standard output")
}

/// Starts the pool of threads that computes: all cores unless a number is given.
pub(crate) fn start_threads(threads: Option<u16>) -> Result<usize> {
    let threads = threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("starting threads")?;
    Ok(threads)
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |letter: char| letter.is_alphanumeric() || "_-+./:,=@".contains(letter);
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// At most `most` numbers below `count`, evenly spread, both ends included.
pub(crate) fn spread(count: usize, most: usize) -> Vec<usize> {
    let kept = count.min(most);
    (0..kept).map(|k| if kept == 1 { 0 } else { k * (count - 1) / (kept - 1) }).collect()
}

#[cfg(test)]
mod tests {
    use super::{quoted, spread};

    #[test]
    fn paths_can_be_pasted() {
        let found = ["runs/a-1", "my runs/a", "it's"].map(|path| quoted(path.as_ref()));
        assert_eq!(found, ["runs/a-1", "'my runs/a'", r"'it'\''s'"]);
    }

    #[test]
    fn a_few_of_many_include_both_ends() {
        assert_eq!(spread(20, 3), [0, 9, 19]);
        assert_eq!(spread(2, 4), [0, 1]);
        assert_eq!(spread(1, 4), [0]);
    }
}
