//! Files that appear complete or not at all, folders as one file, locks on folders, opening without waiting, and memory for what files hold.

pub(crate) mod archive;
pub mod atomic;
pub(crate) mod lock;
pub(crate) mod memory;
mod open;
#[cfg(test)]
pub(crate) mod scratch;

pub(crate) use open::{irregular, open_with};
pub use open::{open, read, read_to_string};

/// Bytes that are read or written at a time where a whole file is.
pub(crate) const BUFFER: usize = 1 << 18;
