//! Files that appear under their name complete or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A name beside `path` that nothing else uses, if it names a file or folder.
pub(crate) fn partial(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    Some(path.with_file_name(format!(".{}.{}.partial", name.to_string_lossy(), std::process::id())))
}

/// Writes and syncs a file.
pub(crate) fn fill(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// What stood at `path` before is replaced at once, or left as it was.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
    let partial = partial(path).ok_or_else(|| invalid("the path names no file"))?;
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(invalid("it is no ordinary file"));
    }
    let written = fill(&partial, bytes).and_then(|()| std::fs::rename(&partial, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&partial); // best effort: the first error is the one to tell
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|folder| folder.sync_all()); // not all systems can sync folders
    written
}

#[cfg(test)]
mod tests {
    use super::replace;

    #[test]
    #[cfg(unix)]
    fn what_is_no_ordinary_file_is_left_alone() {
        for path in ["/dev/null", "/"] {
            assert!(replace(path.as_ref(), b"bytes").is_err(), "{path}");
        }
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }
}
