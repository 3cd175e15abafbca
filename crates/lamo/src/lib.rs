//! Neural operators.
pub mod data;
pub mod error;
pub mod experiment;
pub mod files;
pub mod inference;
pub mod network;
mod random;
pub mod run;
pub mod task;
pub mod training;
pub mod workflow;

pub use error::{Error, Kind};
