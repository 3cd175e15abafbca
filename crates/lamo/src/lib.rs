//! Neural operators: networks that learn the solution operator of a partial differential equation from examples.
//!
//! Models are built from [`layers`] as tensor programs; [`loss`], [`schedule`] and [`optimiser`] turn a model into a
//! training step that runs as one program.

pub mod benchmarks;
pub mod experiment;
pub mod layers;
pub mod loss;
pub mod models;
pub mod optimiser;
pub mod parity;
pub mod schedule;
pub mod weights;
