//! Where the points of a field lie, and surfaces of triangles. The solvers, the datasets and the models share these types.
//!
//! The crate has no dependencies. The feature `serde` adds `Serialize` and `Deserialize`.

mod grid;
mod surface;

pub use grid::Grid;
pub use surface::{Sides, Surface};
