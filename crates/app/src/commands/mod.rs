//! One file per command, and what the commands share.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod data;
pub(crate) mod doctor;
pub(crate) mod evaluate;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod list;
pub(crate) mod paper;
pub(crate) mod parity;
pub(crate) mod predict;
pub(crate) mod progress;
pub(crate) mod results;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod stop;
pub(crate) mod terminal;
pub(crate) mod train;
pub(crate) mod weights;

use anyhow::{Context, Result};
use lamo::error::{FileError, Refusal};
use lamo::files::atomic;
use std::io::{self, Write};
use std::path::Path;

/// Prints a line on standard output. A closed pipe or a full disk is an error, not a panic.
pub(crate) fn say(line: &str) -> Result<()> {
    let failed = |reason| FileError { path: "standard output".into(), action: "written", reason };
    Ok(writeln!(io::stdout(), "{line}").map_err(failed)?)
}

/// Prints a line on standard error. A job does not fail because the line cannot be written.
pub(crate) fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Starts the threads that compute, one per core unless a number is given; how many there are.
pub(crate) fn start_threads(threads: Option<u16>) -> Result<usize> {
    let threads = threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("the threads cannot be started")?;
    Ok(threads)
}

/// Writes a file so that it appears complete or not at all.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    atomic::replace(path, bytes).map_err(|reason| FileError { path: path.to_owned(), action: "written", reason })
}

/// Makes a folder and the folders above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(path).map_err(|reason| FileError { path: path.to_owned(), action: "made", reason })
}

/// Refuses a file name with another extension than the one of the file's format.
pub(crate) fn require_extension(path: &Path, extension: &str) -> Result<(), Refusal> {
    let found = path.extension().unwrap_or_default().to_string_lossy();
    if found.eq_ignore_ascii_case(extension) {
        return Ok(());
    }
    let found = if found.is_empty() { "no extension".to_owned() } else { format!(".{found}") };
    Err(Refusal::new(path.display().to_string(), format!("a file name that ends in .{extension}"), found))
}

/// A path as an argument for a shell.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |letter: char| letter.is_alphanumeric() || "_-+./:,=@".contains(letter);
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// At most `most` indices below `count`, evenly spaced, the first and the last included.
pub(crate) fn evenly(count: usize, most: usize) -> Vec<usize> {
    let chosen = count.min(most);
    (0..chosen).map(|k| if chosen == 1 { 0 } else { k * (count - 1) / (chosen - 1) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_path_is_one_argument_of_a_shell() {
        let found = ["runs/a-1", "my runs/a", "it's"].map(|path| quoted(path.as_ref()));
        assert_eq!(found, ["runs/a-1", "'my runs/a'", r"'it'\''s'"]);
    }

    #[test]
    fn evenly_spaced_indices_include_the_first_and_the_last() {
        assert_eq!(evenly(20, 3), [0, 9, 19]);
        assert_eq!(evenly(2, 4), [0, 1]);
        assert_eq!(evenly(1, 4), [0]);
    }

    #[test]
    fn a_file_name_must_have_the_extension_of_its_format() {
        let check = |name: &str| require_extension(name.as_ref(), "png").map_err(|refusal| refusal.to_string());
        assert_eq!([check("a.png"), check("a.b.PNG")], [Ok(()), Ok(())]);
        assert_eq!(check("a.jpg").unwrap_err(), "a.jpg: expected a file name that ends in .png, found .jpg");
        assert_eq!(check("png").unwrap_err(), "png: expected a file name that ends in .png, found no extension");
    }
}
