//! A folder for one test. In-source tests and `tests/claims` share this file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An empty folder, removed with all that is in it when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A folder in the system's temporary folder; `name` shows the test and need not be unique.
    pub(crate) fn new(name: &str) -> Folder {
        Folder::within(&std::env::temp_dir(), name)
    }

    /// A folder in memory where the system has `/dev/shm`, which makes thousands of small files fast.
    #[allow(dead_code)] // the tests inside src do not use it
    pub(crate) fn in_memory(name: &str) -> Folder {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Folder::within(memory, name) } else { Folder::new(name) }
    }

    fn within(root: &Path, name: &str) -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("lamo-{name}-{}-{count}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path); // an earlier process with the same id may have left one
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// A path inside.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
