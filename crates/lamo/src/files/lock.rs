//! One process at a time in a folder.

use super::irregular;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// A process that was killed while it used a GPU holds its locks until the driver has cleaned up.
const PATIENCE: Duration = Duration::from_secs(3);

/// Locks `path` as long as the returned file lives; `None` if another process holds the lock. On a file system without locks
/// every process gets it.
pub(crate) fn lock(path: &Path) -> io::Result<Option<File>> {
    if let Some(found) = std::fs::metadata(path).ok().as_ref().and_then(irregular) {
        let reason = format!("expected a regular file, found {found}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason)); // opening a named pipe would wait
    }
    let file = File::create(path)?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => std::thread::sleep(PATIENCE / 60),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(reason)) if reason.kind() == io::ErrorKind::Unsupported => return Ok(Some(file)),
            Err(TryLockError::Error(reason)) => return Err(reason),
        }
    }
}
