//! The paper as a harness: every table and figure of "Latent Mamba Operator for Partial Differential Equations" (Tiwari et al.,
//! ICML 2025) as a list of trainings, the published numbers beside ours, and a runner that fills the list.
//!
//! - [`published`]: the numbers that the paper prints.
//! - [`artifacts`]: the tables and figures, each with what it varies. A value of one is an [`Entry`]: the published number and
//!   the trainings that give ours.
//! - [`Cell`]: one training. Its key is the SHA-256 of its experiment, which receipts record, so that a receipt in any folder
//!   is found again and equal cells of several artifacts are trained once.
//! - [`plan()`] and [`run()`]: the order, the costs, and the runs, which resume after a kill at any moment.
//! - [`theory`]: the paper's propositions, run numerically.
//! - [`Results`]: what is there, from run folders and folders of receipts.

mod artifact;
mod cell;
mod collect;
mod cost;
mod costs;
mod effort;
mod facts;
mod insight;
mod pictures;
mod plan;
pub mod published;
mod run;
mod sweeps;
mod tables;
pub mod theory;
mod view;

pub use artifact::{
    Artifact, Content, Entry, Fact, Facts, Growth, Panel, Portrait, Row, Series, Shade, Similarity, Spending, Subject,
    Table, artifacts, find,
};
pub use cell::{Cell, Resolved};
pub use collect::{Measured, Results};
pub use effort::{Effort, Options};
pub use insight::{Insight, InsightLayer};
pub use plan::{Job, plan};

pub use run::{Outcome, Report, Reporter, RunRequest, run};
pub use tables::printed;
pub use view::{Snapshot, View};
