//! Neural operators: networks that learn the solution operator of a partial differential equation from examples.
//!
//! Models are built from [`layers`] as tensor programs; [`loss`], [`schedule`] and [`optimiser`] turn a model into a
//! training step that runs as one program:
//!
//! ```no_run
//! use lamo::{experiment::Experiment, layers::Parameters, loss::relative_l2_sum, models, optimiser::AdamW};
//! use lamo_tensor::{Graph, Program};
//!
//! let experiment = Experiment::shipped("darcy-lamo")?;
//! let task = experiment.benchmark()?.task(experiment.train.batch);
//! let graph = Graph::new();
//! let parameters = Parameters::new(&graph);
//! let model = models::find("lamo")?.build(&parameters, &task, &experiment.model.settings)?;
//! let prediction = model.forward(&models::Input::declare(&graph, &task)); // [batch, points, outputs]
//! let loss = relative_l2_sum(prediction, graph.input("target", prediction.shape()));
//! graph.output("loss", loss);
//! AdamW::default().minimise(&graph, loss);
//! let mut program = Program::compile(&graph); // program.explain() shows its kernels
//! parameters.initialise(&mut program, 0);
//! # Ok::<(), models::Refusal>(())
//! ```

pub mod atomic;
pub mod benchmarks;
pub mod cache;
pub mod case;
pub mod checkpoint;
pub mod data;
pub mod dataset;
pub mod error;
pub mod evaluate;
pub mod experiment;
pub mod field;
mod judge;
pub mod layers;
mod lock;
pub mod loss;
pub mod models;
pub mod optimiser;
pub mod parity;
pub mod predict;
pub mod run;
pub mod samples;
pub mod schedule;
mod step;
mod stored;
mod symmetry;
pub mod train;
pub mod trained;
pub mod weights;
