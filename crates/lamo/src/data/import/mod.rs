//! Data sets from files: the public files of the benchmarks (`catalogue`, `public`) and arrays of your own (`own`),
//! also those of mesh files (`meshes`); and the way back to public files (`export`).
//!
//! Both say which arrays become which field (`column`, `axes`); `write` then reads the arrays and writes the data set.

mod axes;
pub mod catalogue;
mod cells;
mod column;
mod export;
mod field;
mod glob;
mod meshes;
mod own;
mod partition;
mod precision;
mod public;
mod ragged;
mod recorded;
mod sources;
mod sweep;
mod transfer;
mod windows;
mod write;

pub(crate) use axes::order;
pub use glob::parse_arrays;
pub(crate) use glob::{expand, strangers};
pub use meshes::{FieldArray, MeshCases, array_of_field, field_name};
pub(crate) use own::is_even;
pub use own::{ArrayName, Own, OwnField};
pub use partition::Sizes;
pub use ragged::points_of_files;
pub use recorded::{Making, Recorded};
pub use sweep::{Sweep, sweep};
pub use transfer::{Listen, Transfer};
pub use windows::Windows;
pub use write::Import;
