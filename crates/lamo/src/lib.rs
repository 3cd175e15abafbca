//! Neural operators: networks that learn the solution operator of a partial differential equation from examples.
//!
//! Train on your own arrays in memory, and predict:
//!
//! ```
//! use lamo::{Device, Evaluation, Grid, Preset, Request, Samples, Trainer};
//! use std::{ops::ControlFlow, time::Duration};
//!
//! // Inputs and targets are [samples, points, channels]. Yours come from files;
//! // these are waves and the same waves, shifted.
//! let grid = Grid::Plane { rows: 8, columns: 6 };
//! let field = |samples: usize, shift: f32| -> Vec<f32> {
//!     let values = 0..samples * grid.points();
//!     values.map(|value| 1.5 + (0.7 * value as f32 + shift).sin()).collect()
//! };
//! let train = Samples::new(grid, 1, field(20, 0.0), 1, field(20, 0.5))?;
//! let test = Samples::new(grid, 1, field(4, 0.1), 1, field(4, 0.6))?;
//!
//! // `Quick` trains in minutes on a CPU; `Paper` is the published recipe and takes hours.
//! let experiment = Request {
//!     model: Some("lamo"),
//!     preset: Some(Preset::Quick),
//!     changes: &["train.epochs=2".to_owned(), "model.settings.width=16".to_owned()], // any key
//!     ..Request::default()
//! }
//! .resolve()?;
//! let task = experiment.task(&train)?;
//! let mut trainer = Trainer::new(&experiment, &task, &train, &test, Device::Cpu)?;
//! trainer.run(None, Duration::from_secs(60), &mut |progress| {
//!     if let Some(epoch) = progress.finished {
//!         let (number, count) = (epoch.epoch, progress.epochs);
//!         println!("epoch {number} of {count}: train {:.4}, test {:?}", epoch.train, epoch.test);
//!     }
//!     ControlFlow::Continue(()) // or Break, to stop
//! })?;
//!
//! let operator = trainer.trained()?.operator;
//! let prediction = operator.predict(&test, Device::Cpu)?; // [samples, times, points, outputs]
//! let numbers: Vec<usize> = (0..test.count).collect();
//! let evaluation = Evaluation::of(&test, &numbers, &prediction);
//! println!("{:.2} %, worst {:?}", 100.0 * evaluation.relative_l2, evaluation.worst(3));
//! # Ok::<(), lamo::Error>(())
//! ```
//!
//! Points that lie anywhere are a cloud, of which each sample may have its own:
//!
//! ```
//! use lamo::Samples;
//!
//! // Two samples of three points: [points, coordinates], or [samples, points, coordinates],
//! let positions = vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
//! let load = vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6]; // [samples, points, inputs], none for the shape alone,
//! let pressure = vec![1.0, 2.0, 3.0, 2.0, 3.0, 4.0]; // [samples, points, outputs]
//! let samples = Samples::cloud(2, (2, positions), (1, load), (1, pressure))?;
//! assert_eq!(samples.grid, lamo::Grid::Cloud { points: 3 });
//! # Ok::<(), lamo::Error>(())
//! ```
//!
//! Files of arrays become a data set with `lamo data import` or [`workflow::import`]. [`train`] trains on the folder of
//! a data set, or on a benchmark, whose data make themselves; it writes a run that can be resumed:
//!
//! ```no_run
//! use lamo::{Event, Preset, Session, TrainRequest, train};
//!
//! let show = |event: Event<'_>| {
//!     if let Event::Epoch(epoch) = event {
//!         println!("epoch {}: train {:.4}, test {:?}", epoch.epoch, epoch.train, epoch.test);
//!     }
//! };
//! let request = TrainRequest { preset: Some(Preset::Quick), ..TrainRequest::new("darcy") };
//! let run = train(&request, &Session { listener: &show, ..Session::default() })?;
//! println!("{}: best epoch {:?}", run.folder.display(), run.best);
//! # Ok::<(), lamo::Error>(())
//! ```
//!
//! Evaluate a run, and predict from files of arrays:
//!
//! ```no_run
//! # use lamo::{Device, EvaluateRequest, PredictRequest, Session, Source, evaluate, predict};
//! # let (run, device) = (std::path::PathBuf::from("runs/darcy-lamo-1"), Device::Cpu);
//! let evaluated = evaluate(&EvaluateRequest { run: run.clone(), data: None, symmetries: false, device }, &Session::default())?;
//! println!("error {:.4}, {:?}", evaluated.receipt.evaluation.headline(), evaluated.receipt.evaluation.outputs);
//! let inputs = vec![Source::parse("permeability.npy")];
//! predict(&PredictRequest { model: run, inputs, output: "pressure.npy".into(), snapshots: None, symmetries: false, memory: None, device })?;
//! # Ok::<(), lamo::Error>(())
//! ```
//!
//! A job reports [`Event`]s to the [`Session`]'s listener, stops when its [`Cancel`] is asked to, and fails with an
//! [`Error`] that has a [`Kind`].
//!
//! The modules are the rooms of the library; each uses only those below it: [`workflow`] (whole jobs), [`inference`]
//! (predictions, evaluations, parity), [`training`], [`run`] (folders, checkpoints), [`experiment`] (benchmarks, recipes,
//! keys), [`data`] (formats, data sets, samples), [`network`] (layers, models), [`task`] (what is learned). `lamo` is the only
//! crate to depend on: [`tensor`] is the compute core, for models of your own, [`geometry`] the grids, and `physics` the solvers.

pub mod data;
pub mod error;
pub mod experiment;
pub mod files;
pub mod inference;
pub mod network;
pub mod paper;
mod random;
pub mod run;
pub mod task;
pub mod training;
pub mod workflow;

pub use data::{Dataset, Samples};
pub use error::{Error, Kind};
pub use experiment::{Experiment, Preset, Request};
pub use inference::Source;
pub use inference::evaluate::{Evaluation, Receipt};
pub use lamo_geometry as geometry;
pub use lamo_geometry::Grid;
#[cfg(feature = "solvers")]
pub use lamo_physics as physics;
pub use lamo_tensor as tensor;
pub use lamo_tensor::{Device, Precision};
pub use network::models::MODELS;
pub use run::{Checkpoint, Line, Operator, Trained};
pub use task::{Field, Task, TimeMode};
pub use training::{Progress, Trainer};
pub use workflow::{
    Cancel, EvaluateRequest, Evaluated, Event, PredictRequest, ResumeRequest, Session, TrainRequest, TrainedRun,
    compare, evaluate, predict, resume, train,
};
