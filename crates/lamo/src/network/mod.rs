//! How inputs are mapped to outputs: parameters, layers, and the registry of models.

pub mod layers;
mod model;
pub mod models;
mod parameters;

pub use model::{Input, Mode, Model};
pub use parameters::{Initial, Parameters, Scope, Style};
