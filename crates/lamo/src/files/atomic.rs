//! Files that appear under their name complete or not at all.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const ENDING: &str = ".partial";

/// A name beside `path` that nothing else uses, if it names a file or folder: `.NAME.PROCESS-COUNT.partial`.
pub(crate) fn partial(path: &Path) -> Option<PathBuf> {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = path.file_name()?.to_string_lossy();
    // A random number, because containers and machines that share a disk may have equal process ids.
    let process = PROCESS.get_or_init(|| RandomState::new().build_hasher().finish());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Some(path.with_file_name(format!(".{name}.{process:016x}-{count}{ENDING}")))
}

/// True when [`partial`] made this name, in this process or another.
pub(crate) fn is_partial(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(ENDING));
    inner.and_then(|inner| inner.rsplit_once('.')).is_some_and(|(name, mark)| {
        !name.is_empty() && !mark.is_empty() && mark.chars().all(|letter| letter == '-' || letter.is_ascii_hexdigit())
    })
}

/// Removes partial files of killed processes from `folder`, if they are at least as old as `untouched`. The age is zero
/// where only this process writes to the folder, else longer than the time to write a file.
pub fn sweep(folder: &Path, untouched: Duration) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|found| found.modified()).map(|time| time.elapsed().unwrap_or_default());
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_partial(&entry.file_name()) && age.is_ok_and(|age| age >= untouched) {
            let _ = std::fs::remove_file(entry.path()); // best effort: nothing depends on it
        }
    }
}

/// Writes and syncs a file.
pub(crate) fn fill(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces the file at `path` in one step, or leaves it unchanged.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
    let partial = partial(path).ok_or_else(|| invalid("the path names no file"))?;
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(invalid("it is no ordinary file"));
    }
    let written = fill(&partial, bytes).and_then(|()| std::fs::rename(&partial, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&partial); // best effort: the first error is reported
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|folder| folder.sync_all()); // not all systems can sync folders
    written
}

/// Writes a new file piece by piece; it appears complete or not at all. A file at `path` is left alone.
pub(crate) fn stream(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let partial = partial(path).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let written = File::create(&partial).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    });
    let written = written.and_then(|()| std::fs::hard_link(&partial, path).or_else(|_| rename_new(&partial, path)));
    let _ = std::fs::remove_file(&partial); // best effort: the first error is reported
    written
}

/// Renames a file unless another has the name, for file systems without links.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    std::fs::rename(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::scratch::Folder;

    #[test]
    #[cfg(unix)]
    fn what_is_no_ordinary_file_is_left_alone() {
        for path in ["/dev/null", "/"] {
            assert!(replace(path.as_ref(), b"bytes").is_err(), "{path}");
        }
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn threads_that_replace_one_file_at_once_all_succeed_and_leave_one_of_theirs() {
        let folder = Folder::new("atomic");
        let path = folder.at("file");
        std::thread::scope(|scope| {
            for letter in b'a'..=b'h' {
                let path = &path;
                scope.spawn(move || (0..20).for_each(|_| replace(path, &[letter; 10_000]).unwrap()));
            }
        });
        let found = std::fs::read(&path).unwrap();
        assert!(found.len() == 10_000 && found.iter().all(|letter| *letter == found[0]));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_sweep_takes_what_killed_processes_left_and_nothing_else() {
        let folder = Folder::new("sweep");
        std::fs::create_dir_all(folder.at(".model.12.partial")).unwrap();
        let left = partial(&folder.at("last.safetensors")).unwrap();
        let kept = ["last.safetensors", "notes.partial", ".notes.partial", ".my.notes.partial", ".model.12.partial"];
        std::fs::write(&left, "half").unwrap();
        std::fs::write(folder.at(".history.jsonl.4711.partial"), "half").unwrap(); // as earlier versions named them
        kept[..4].iter().for_each(|name| std::fs::write(folder.at(name), "whole").unwrap());
        sweep(folder.path(), Duration::from_secs(3600));
        assert!(left.exists(), "it may still be written");
        sweep(folder.path(), Duration::ZERO);
        let mut found: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        found.sort();
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        assert_eq!(found, kept);
    }
}
