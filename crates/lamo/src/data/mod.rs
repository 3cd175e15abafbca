//! Data: arrays in files (`formats`), data sets in folders (`dataset`), data sets from files (`import`) and from solvers
//! (`make`), samples in memory (`samples`).

pub mod dataset;
pub mod formats;
pub mod import;
#[cfg(feature = "solvers")]
mod make;
pub mod samples;
pub mod state_dict;

pub use dataset::{Dataset, Split};
#[cfg(feature = "solvers")]
pub use make::Recipe;
pub use samples::Samples;
