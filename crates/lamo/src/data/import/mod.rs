//! Data sets from files: the public files of the benchmarks (`catalogue`, `public`) and arrays of your own (`own`); and the
//! way back to public files (`export`).
//!
//! Both say which arrays become which field (`column`, `axes`); `write` then reads the arrays and writes the data set.

mod axes;
pub mod catalogue;
mod column;
mod export;
mod own;
mod public;
mod sources;
mod transfer;
mod write;

pub use own::{ArrayName, Own, OwnField};
pub use transfer::{Listen, Transfer};
pub use write::Import;
