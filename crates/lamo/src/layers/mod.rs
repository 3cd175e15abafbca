//! Parts that models are made of. A layer declares its parameters under the authors' names, with their first values
//! beside them, and is a function of tensors after that.

mod linear;
mod mlp;
mod norm;
mod parameters;
mod ss2d;

pub use linear::Linear;
pub use mlp::Mlp;
pub use norm::LayerNorm;
pub use parameters::{Initial, Parameters, Scope};
pub use ss2d::{Ss2d, cross_orders};
