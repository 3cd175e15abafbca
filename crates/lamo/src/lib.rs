//! Neural operators: networks that learn the solution operator of a partial differential equation from examples.
//!
//! The names on this page are all that most programs need. Train on a benchmark, whose data make themselves:
//!
//! ```no_run
//! use lamo::{Session, TrainRequest, train};
//!
//! let run = train(&TrainRequest::new("darcy"), &Session::default())?;
//! println!("{}: best epoch {:?}", run.folder.display(), run.best);
//! # Ok::<(), lamo::Error>(())
//! ```
//!
//! evaluate the run, predict from files of arrays:
//!
//! ```no_run
//! # use lamo::{Device, EvaluateRequest, PredictRequest, Session, Source, evaluate, predict};
//! # let (run, device) = (std::path::PathBuf::from("runs/darcy-lamo-1"), Device::Cpu);
//! let evaluated = evaluate(&EvaluateRequest { run: run.clone(), data: None, device }, &Session::default())?;
//! println!("error {:.4}, {:?}", evaluated.receipt.evaluation.headline(), evaluated.receipt.evaluation.outputs);
//! let inputs = vec![Source::parse("permeability.npy")];
//! predict(&PredictRequest { model: run, inputs, output: "pressure.npy".into(), snapshots: None, device })?;
//! # Ok::<(), lamo::Error>(())
//! ```
//!
//! or train on arrays in memory:
//!
//! ```no_run
//! use lamo::{Device, Evaluation, Grid, Request, Samples, Trainer};
//! use std::{ops::ControlFlow, time::Duration};
//! # fn load(_: &str) -> (Vec<f32>, Vec<f32>) { unreachable!() }
//!
//! let grid = Grid::Plane { rows: 64, columns: 64 };
//! let [train, test] = ["train", "test"].map(|name| {
//!     let (inputs, targets) = load(name); // [samples, points, 1] each, as Vec<f32>
//!     Samples::new(grid, 1, inputs, 1, targets)
//! });
//! let (train, test) = (train?, test?);
//! let experiment = Request { model: Some("lamo"), ..Request::default() }.resolve()?;
//! let task = experiment.task(&train)?;
//! let mut trainer = Trainer::new(&experiment, &task, &train, &test, Device::Cpu)?;
//! trainer.run(None, Duration::from_secs(60), &mut |_| ControlFlow::Continue(()))?;
//! let prediction = trainer.trained()?.operator.predict(&test, Device::Cpu)?;
//! let numbers: Vec<usize> = (0..test.count).collect();
//! let evaluation = Evaluation::of(&test, &numbers, &prediction);
//! println!("{:.2} %, worst {:?}", 100.0 * evaluation.relative_l2, evaluation.worst(3));
//! # Ok::<(), lamo::Error>(())
//! ```
//!
//! A job reports [`Event`]s to the [`Session`]'s listener, stops when its [`Cancel`] is asked to, and fails with an
//! [`Error`] that has a [`Kind`].
//!
//! The modules are the rooms of the library; each uses only those below it: [`workflow`] (whole jobs), [`inference`]
//! (predictions, evaluations, parity), [`training`], [`run`] (folders, checkpoints), [`experiment`] (benchmarks, recipes,
//! keys), [`data`] (formats, data sets, samples), [`network`] (layers, models), [`task`] (what is learned).

pub mod data;
pub mod error;
pub mod experiment;
pub mod files;
pub mod inference;
pub mod network;
mod random;
pub mod run;
pub mod task;
pub mod training;
pub mod workflow;

pub use data::{Dataset, Samples};
pub use error::{Error, Kind};
pub use experiment::{Experiment, Request};
pub use inference::Source;
pub use inference::evaluate::{Evaluation, Receipt};
pub use lamo_geometry::Grid;
pub use lamo_tensor::Device;
pub use network::models::MODELS;
pub use run::{Operator, Trained};
pub use task::Task;
pub use training::Trainer;
pub use workflow::{
    Cancel, EvaluateRequest, Event, PredictRequest, ResumeRequest, Session, TrainRequest, compare, evaluate, predict,
    resume, train,
};
