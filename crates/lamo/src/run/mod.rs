//! Runs on disk: the folder, its checkpoints and its environment; models with their parameters.

mod card;
pub mod checkpoint;
mod environment;
mod folder;
mod inferred;
mod legacy;
pub mod model_folder;
mod operator;
mod pack;
pub mod pretrained;
mod trained;
mod transfer;

pub use card::card;
pub use checkpoint::{Best, Checkpoint};
pub use environment::{Environment, Provenance};
pub use folder::{
    BEST, CHECKPOINTS, ENVIRONMENT, EXPERIMENT, HISTORY, LAST, Line, Run, checkpoint_path, chosen, environment,
    experiment, free, history, latest, writable,
};
pub use operator::{Operator, forward_batch};
pub use pack::{Moments, Packed, pack, unpack};
pub use trained::Trained;
pub(crate) use transfer::transfer;
pub use transfer::{Drawn, Origin, Transfer};
