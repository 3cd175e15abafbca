//! Training: the step as one program, the test error as another, and the loop around them.

pub mod average;
mod bucket_programs;
pub(crate) mod buckets;
pub mod convergence;
mod divergence;
pub mod loss;
pub mod muon;
pub mod optimiser;
mod points;
mod recovery;
mod resident;
mod rollout;
pub mod schedule;
mod speed;
mod step;
mod symmetry;
mod test_program;
mod trainer;

pub use divergence::{Broken, Divergence};
pub(crate) use speed::Length;
pub use step::StepProgram;
pub use trainer::{Outcome, Progress, Trainer, Watch};
