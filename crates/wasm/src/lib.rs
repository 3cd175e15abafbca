//! Predictions inside a browser: a trained model as bytes, files of arrays in, files of arrays out, and no server.
//!
//! ```text
//! model.safetensors ──open──▶ Model ──card──▶ JSON
//! input.npy or .npz ──predict──▶ output.npy or .npz
//! permeability.npy  ──solve──▶ pressure.npy, the true one
//! ```
//!
//! A model is the file of a checkpoint, or one that `lamo run shrink` made. Files of arrays are those of `lamo predict`, and so are
//! the predictions: this crate calls the library on one thread. [`border`] is what a WebAssembly module exports; [`Model`] is
//! the same for Rust.

pub mod border;
mod solver;

use lamo::data::formats::{self, ArrayFile, Named};
use lamo::inference::{PredictionInput, Predictor};
use lamo::{Checkpoint, Device, Error, Grid, Trained};
use lamo_physics::problems::darcy::Darcy;
use std::path::Path;

/// What sentences call the bytes of a model and of its inputs.
const MODEL: &str = "the model";
const INPUTS: &str = "the inputs";

/// A model in memory.
pub struct Model {
    trained: Trained,
    /// The last compiled forward pass, for one sample on a grid: a page asks for one, and more would need more memory.
    compiled: Option<(Grid, Predictor)>,
    /// The solver of the labels, once it was asked for.
    problem: Option<Darcy>,
}

impl Model {
    /// Opens the bytes of a checkpoint or of a shrunk model.
    pub fn open(bytes: Vec<u8>) -> Result<Model, Error> {
        Ok(Model { trained: Checkpoint::of(Path::new(MODEL), bytes)?.trained, compiled: None, problem: None })
    }

    /// What it is, what it maps and what it was trained on, as JSON with the keys of the cards of `lamo serve`.
    pub fn card(&self) -> String {
        let mut card = lamo::run::card(&self.trained.operator, Some(&self.trained));
        card["name"] = self.trained.experiment.benchmark.clone().into();
        card["solvable"] = solver::solvable(&self.trained).into();
        card["note"] = self.trained.note.clone().into();
        card.to_string()
    }

    /// The prediction for a file of arrays: npy where the model has one output, npz otherwise.
    pub fn predict(&mut self, inputs: Vec<u8>) -> Result<Vec<u8>, Error> {
        let fields = self.fields(inputs)?;
        let file = if fields.len() == 1 { "prediction.npy" } else { "prediction.npz" };
        Ok(formats::encode(file.as_ref(), &fields)?)
    }

    /// The true solution for a file with the permeability of every cell, by the solver that made the labels: the pressure at the
    /// points of the model, as npy. Models of Darcy flow have it.
    pub fn solve(&mut self, permeability: Vec<u8>) -> Result<Vec<u8>, Error> {
        let problem = match self.problem.take() {
            Some(problem) => problem,
            None => solver::problem(&self.trained)?,
        };
        let solved = solver::solve(&problem, permeability);
        self.problem = Some(problem);
        solved
    }

    /// The predicted fields for a file of arrays.
    pub fn fields(&mut self, inputs: Vec<u8>) -> Result<Vec<Named>, Error> {
        let operator = &self.trained.operator;
        let planned = PredictionInput::plan_file(&operator.task, ArrayFile::in_memory(INPUTS, inputs)?, None)?;
        let grid = planned.grid;
        let known = self.compiled.take().filter(|(known, _)| *known == grid);
        let mut predictor = match known {
            Some((_, predictor)) => predictor,
            None => operator.predictor(Device::Cpu, grid, 1).map_err(|error| match grid == operator.task.grid {
                true => error,
                false => planned.blame(&error).into(),
            })?,
        };
        let given = planned.read()?;
        let prediction = predictor.predict(&given.samples)?;
        self.compiled = Some((grid, predictor));
        Ok(given.output_fields(&self.trained.operator.task, &prediction)?)
    }
}
