//! How inputs are mapped to outputs: parameters, layers, and the registry of models.

mod activation;
pub mod layers;
mod layout;
mod model;
pub mod models;
mod parameters;
mod pass;
pub mod probe;
mod state;

pub use activation::Activation;
pub use layout::ModelStates;
pub(crate) use layout::{Layout, end_to_end};
pub use model::{InPieces, Input, Mode, Model};
pub use parameters::{Initial, Parameters, Scope, Style};
pub use pass::Pass;
pub use state::{Presence, State};
