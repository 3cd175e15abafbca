//! What is learned: the geometry, the fields given and asked for, how time enters, and the normalisers.

pub mod field;
mod normaliser;
#[allow(clippy::module_inception)] // the room is named after the type it is about
pub(crate) mod task;
pub mod time;

pub use field::{Field, Spread};
pub(crate) use normaliser::moments as normaliser_moments;
pub use normaliser::{Moments, Normaliser};
pub use task::{Normalisers, Positions, Task};
pub use time::{Time, TimeMode};
