//! What a trained model does with one sample: hidden matrices, tokens, errors by wavelength and region, and influences.

pub mod matrix;
mod values;

pub use values::{by_matrices, evaluated};
