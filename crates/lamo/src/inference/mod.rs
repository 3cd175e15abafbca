//! Use of a trained model: predictions, evaluations with receipts, and parity with the authors' code.

mod arrays;
pub mod evaluate;
pub mod explain;
pub mod parity;
mod physical;
mod pieces;
mod predictor;
mod series;

pub(crate) use arrays::check_partners;
pub use arrays::{PlannedInput, PredictionInput, SampleFile, Source};
pub use physical::{Physical, Port, Role};
pub use pieces::Pieces;
pub use predictor::Predictor;
pub use series::Series;
