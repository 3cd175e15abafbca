//! Verified f64 solvers that make training data for neural operators.
//!
//! [`problems::PROBLEMS`] lists the equations. Each row builds a [`problems::Problem`], whose `sample(seed, index)`
//! depends on nothing but its arguments. The other modules are the parts that the solvers share.

pub mod block_sparse;
pub mod body;
pub mod c_grid;
pub mod conduction;
mod contact;
pub mod die;
pub mod dual_mesh;
mod error;
pub mod euler;
pub mod explicit;
pub mod exponential;
pub mod finite_element;
pub mod finite_volume;
pub mod five_point;
pub mod hermite;
pub mod hexahedron;
pub mod krylov;
mod lanes;
pub mod mesh;
pub mod parameters;
pub mod periodic;
pub mod plane_stress;
pub mod plate;
pub mod problems;
mod quadrilateral;
pub mod random_field;
mod rates;
pub mod real;
pub mod solid;
pub mod sparse;
pub mod spectral;
pub mod spline;
mod stable_step;
pub mod steady;
pub mod stepping;
pub mod symmetry;
pub mod taylor_hood;

pub use error::Error;
