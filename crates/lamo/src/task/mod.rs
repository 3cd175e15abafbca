//! The task: the geometry, the input and output fields, the role of time, and the normalisers.

pub(crate) mod beside;
pub mod field;
mod normaliser;
mod spacing;
#[allow(clippy::module_inception)] // the folder is named after its main type
pub(crate) mod task;
pub mod time;
pub(crate) mod trend;

pub use field::{Field, Spread};
pub(crate) use normaliser::moments as normaliser_moments;
pub use normaliser::{Moments, Normaliser};
pub(crate) use spacing::spacing;
pub use task::{Normalisers, POSITIONS, Positions, Task};
pub use time::{Time, TimeMode};
pub use trend::Trend;
