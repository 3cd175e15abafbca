//! Data sets from files: the public files of the benchmarks (`catalogue`) and arrays of your own (`own`).

pub mod catalogue;
mod import;
mod own;
mod public;

pub use import::{Import, Listen, Transfer};
pub use own::{ArrayName, Own, OwnField};
