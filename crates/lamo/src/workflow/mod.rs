//! Whole jobs for the command line, a server or a notebook: functions that take a request, report [`Event`]s, can be
//! cancelled, and return typed results.

mod compare;
mod dataset;
mod evaluate;
mod event;
mod explain;
mod predict;
mod results;
mod sizes;
mod test_set;
mod train;

pub use compare::{Comparison, Difference, Entry, compare};
pub use dataset::{
    CheckedDataset, ExportRequest, ImportRequest, ImportSource, MakeRequest, check, export, import, make,
};
#[cfg(feature = "solvers")]
pub use dataset::{cache_of, converge};
pub use evaluate::{EvaluateRequest, Evaluated, Verified, VerifyRequest, evaluate, verify};
pub use event::{Cancel, Event, Listener, Session};
pub use explain::{ExplainRequest, ExplainedSample, Region, explain};
pub use predict::{Model, PredictRequest, Predicted, mesh_sources, predict, predict_meshes, predicted_mesh};
pub use results::{ResultRow, Source, results};
pub use test_set::{TestSample, TestSet};
pub use train::{ResumeRequest, TrainRequest, TrainedRun, in_minutes, resume, train};
