//! Files that appear complete or not at all, and locks on folders.

pub mod atomic;
pub(crate) mod lock;
#[cfg(test)]
pub(crate) mod scratch;
