//! Where the points of a field lie. The solvers, the datasets and the models share these types.
//!
//! The crate has no dependencies. The feature `serde` adds `Serialize` and `Deserialize`.

mod grid;

pub use grid::Grid;
