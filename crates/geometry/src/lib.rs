//! Where the points of a field are. The solvers, the data sets and the models share these types; the crate depends on
//! nothing.

mod grid;

pub use grid::Grid;
