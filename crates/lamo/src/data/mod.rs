//! Data, in this order; no module uses a later one: arrays in files (`formats`), meshes in files (`mesh`), parameters of a model in files
//! (`storage`, `state_dict`) and samples in memory (`samples`), data sets in folders (`dataset`), data sets from files (`import`),
//! data sets from solvers (`make`) and the error of their labels (`converge`), triangles between points (`drawn`).

#[cfg(feature = "solvers")]
pub(crate) mod converge;
pub mod dataset;
mod drawn;
pub mod formats;
pub mod import;
#[cfg(feature = "solvers")]
mod make;
pub mod mesh;
pub mod samples;
pub mod state_dict;
mod storage;

#[cfg(feature = "solvers")]
pub use converge::{Convergence, LabelError};
pub use dataset::{Dataset, Split};
pub use drawn::Drawn;
#[cfg(feature = "solvers")]
pub use make::Recipe;
pub use samples::Samples;
pub use storage::Storage;
