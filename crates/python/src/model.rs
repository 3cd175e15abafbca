//! A model that predicts: a run, a checkpoint, a model folder or a pretrained model.
//!
//! Inputs come as the bytes of an npy or npz file, so that they are understood as those of `lamo predict` are: any real type of
//! numbers, either order in memory. Predictions become arrays of Python without a copy. A compiled forward pass is kept for the next call with the
//! same grid, batch and device; threads that predict at the same time have one each.

use crate::errors::{broken, raised};
use crate::job;
use lamo::data::formats::{ArrayFile, Named};
use lamo::error::Refusal;
use lamo::inference::evaluate::hash_of_weights;
use lamo::inference::{Pieces, PredictionInput, Predictor};
use lamo::run::forward_batch;
use lamo::workflow::Model as Opened;
use lamo::{Device, Error, Grid, Samples};
use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Compiled forward passes that are kept at most.
const KEPT: usize = 4;
/// Values at points from which on a prediction is a job that Ctrl-C can leave.
const LONG: usize = 1 << 21;

/// An array of Python with its name.
pub(crate) type NamedArray<'py> = (String, Bound<'py, PyArrayDyn<f32>>);

/// What a forward pass was compiled for.
#[derive(Clone, Copy, PartialEq)]
struct Key {
    device: Device,
    grid: Grid,
    batch: usize,
}

struct Shared {
    model: Opened,
    /// The last one used is the last.
    predictors: Mutex<Vec<(Key, Predictor)>>,
}

/// How to predict.
#[derive(Clone, Copy)]
struct Options {
    snapshots: Option<usize>,
    symmetries: bool,
    memory: Option<u64>,
    device: Device,
}

/// Predictions.
struct Found {
    /// The output fields of each file of inputs.
    arrays: Vec<Vec<Named>>,
    /// How the inputs were understood, and that the grid is not that of the training.
    notes: Vec<String>,
}

/// A model that predicts.
#[pyclass(frozen, module = "lamo._lamo")]
pub(crate) struct Model(Arc<Shared>);

#[pymethods]
impl Model {
    /// Opens a run folder, a checkpoint file, a model folder, or a pretrained model by its name.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Model> {
        let model = py.detach(|| Opened::open(&path)).map_err(|error| raised(py, &error))?;
        Ok(Model(Arc::new(Shared { model, predictors: Mutex::default() })))
    }

    /// What it is, as JSON.
    fn describe(&self) -> String {
        let operator = self.0.model.operator();
        let task = &operator.task;
        let field =
            |field: &lamo::Field| json!({ "name": field.name, "unit": field.unit, "shape": field.shape(task.grid) });
        let mut object = json!({
            "model": operator.model.name,
            "settings": operator.model.settings,
            "parameters": operator.parameters.len(),
            "inputs": task.given_fields().iter().map(field).collect::<Vec<_>>(),
            "outputs": task.outputs.iter().map(field).collect::<Vec<_>>(),
            "grid": task.grid,
            "normalisers": task.normalisers,
            "note": self.0.model.note(),
        });
        if let Opened::Trained(trained) = &self.0.model {
            object["training"] = json!({
                "epoch": trained.epoch, "step": trained.step, "seconds": trained.seconds, "experiment": trained.experiment,
            });
        }
        object.to_string()
    }

    /// The output fields of each file of inputs, and what to know about them. Several files are clouds, whose sizes may differ.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Vec<u8>>,
        snapshots: Option<usize>,
        symmetries: bool,
        memory: Option<u64>,
        device: &str,
    ) -> PyResult<(Vec<Vec<NamedArray<'py>>>, Vec<String>)> {
        job::claim_process()?;
        let device: Device = parse(py, device)?;
        let options = Options { snapshots, symmetries, memory, device };
        let size: usize = inputs.iter().map(Vec::len).sum::<usize>() / size_of::<f32>();
        let shared = Arc::clone(&self.0);
        let Found { arrays, notes } = if size < LONG {
            let predict = AssertUnwindSafe(|| shared.predict(inputs, options));
            let done = py.detach(|| catch_unwind(predict)).map_err(|panic| broken(py, &*panic))?;
            done.map_err(|error| raised(py, &error))?
        } else {
            job::run(py, None, move |_| shared.predict(inputs, options))?.or_raise(py)?
        };
        let arrays = arrays.into_iter().map(|arrays| named_arrays(py, arrays)).collect::<PyResult<_>>()?;
        Ok((arrays, notes))
    }

    /// Parameters and states under the authors' names, each a copy.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Vec<NamedArray<'py>>> {
        let operator = self.0.model.operator();
        let states = (&operator.states.sections, &operator.states.values);
        let parts = [(&operator.sections, &operator.parameters), states];
        let tensors = parts.into_iter().flat_map(|(sections, values)| {
            sections.iter().map(move |section| Named {
                name: section.name.clone(),
                shape: section.shape.dims().to_vec(),
                values: values[section.range()].to_vec(),
            })
        });
        named_arrays(py, tensors.collect())
    }

    /// SHA-256 of the weights, as receipts have it.
    fn weights_sha256(&self, py: Python<'_>) -> String {
        py.detach(|| hash_of_weights(self.0.model.operator()))
    }
}

impl Shared {
    fn predict(&self, mut inputs: Vec<Vec<u8>>, options: Options) -> Result<Found, Error> {
        if options.snapshots == Some(0) {
            return Err(Refusal::new("frames", "at least 1", "0").into());
        }
        if options.symmetries && options.memory.is_some() {
            return Err(Refusal::new("memory", "no symmetries beside it", "both").into());
        }
        match inputs.len() {
            1 => self.predict_equal(inputs.remove(0), options),
            _ => self.predict_clouds(inputs, options),
        }
    }

    /// Samples of equal size.
    fn predict_equal(&self, input: Vec<u8>, options: Options) -> Result<Found, Error> {
        let Options { snapshots, symmetries, memory, device } = options;
        let operator = self.model.operator();
        let group = symmetries.then(|| self.model.symmetries()).transpose()?;
        let planned = PredictionInput::plan_file(&operator.task, ArrayFile::in_memory(INPUTS, input)?, snapshots)?;
        let notes = planned.notes().into_iter().chain(operator.note_on_grid(planned.grid)).collect();
        if let Some(memory) = memory {
            let given = planned.read()?;
            let prediction = self.in_pieces(&given.samples, memory, device)?;
            return Ok(Found { arrays: vec![given.output_fields(&operator.task, &prediction)?], notes });
        }
        let key = Key { device, grid: planned.grid, batch: forward_batch(operator.batch, device).min(planned.count) };
        let mut predictor = self.predictor(key).map_err(|error| match planned.grid == operator.task.grid {
            true => error,
            false => planned.blame(&error).into(),
        })?;
        let given = planned.read()?;
        let prediction = match &group {
            Some(group) => predictor.predict_mean(&given.samples, group)?,
            None => predictor.predict(&given.samples)?,
        };
        self.keep(key, predictor);
        let arrays = given.output_fields(&operator.task, &prediction).map_err(|refusal| refusal.within(INPUTS))?;
        Ok(Found { arrays: vec![arrays], notes })
    }

    /// Clouds, a file each.
    fn predict_clouds(&self, inputs: Vec<Vec<u8>>, options: Options) -> Result<Found, Error> {
        let Options { snapshots, symmetries, memory, device } = options;
        let operator = self.model.operator();
        if symmetries {
            return Err(Refusal::new("symmetries", "samples of equal size", "a list of samples").into());
        }
        let mut notes: Vec<String> = Vec::new();
        let read = |(number, bytes): (usize, Vec<u8>)| {
            let file = ArrayFile::in_memory(&format!("{INPUTS}, sample {number}"), bytes)?;
            let planned = PredictionInput::plan_file(&operator.task, file, snapshots)?;
            let new: Vec<String> = planned.notes().into_iter().filter(|note| !notes.contains(note)).collect();
            notes.extend(new);
            planned.read()
        };
        let given: Vec<PredictionInput> = inputs.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let sets: Vec<Samples> = given.iter().map(|given| given.samples.clone()).collect();
        let Some(samples) = Samples::joined(&sets) else {
            return Err(Refusal::new(INPUTS, "at least one sample", "none").into());
        };
        let prediction = match memory {
            Some(memory) => self.in_pieces(&samples, memory, device)?,
            None => operator.predict(&samples, device)?,
        };
        let mut rest = &prediction[..];
        let fields = given.iter().map(|given| {
            let (own, others) = rest.split_at(given.samples.total_points() * samples.times * samples.outputs);
            rest = others;
            Ok(given.output_fields(&operator.task, own)?)
        });
        Ok(Found { arrays: fields.collect::<Result<_, Error>>()?, notes })
    }

    /// A prediction that takes about so many bytes.
    fn in_pieces(&self, samples: &Samples, memory: u64, device: Device) -> Result<Vec<f32>, Error> {
        let operator = self.model.operator();
        let pieces = Pieces::within(memory, operator, samples, device)?;
        operator.predict_in_pieces(samples, &pieces, device)
    }

    /// A kept forward pass, or a new one.
    fn predictor(&self, key: Key) -> Result<Predictor, Error> {
        let mut kept = self.predictors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = kept.iter().rposition(|(known, _)| *known == key) {
            return Ok(kept.remove(place).1);
        }
        drop(kept);
        self.model.operator().predictor(key.device, key.grid, key.batch)
    }

    /// Keeps a forward pass for the next call.
    fn keep(&self, key: Key, predictor: Predictor) {
        let mut kept = self.predictors.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((key, predictor));
    }
}

/// What sentences call the inputs.
const INPUTS: &str = "inputs";

/// Arrays of Python that own the values.
pub(crate) fn named_arrays(py: Python<'_>, arrays: Vec<Named>) -> PyResult<Vec<NamedArray<'_>>> {
    let array = |Named { name, shape, values }: Named| Ok((name, values.into_pyarray(py).reshape(shape)?));
    arrays.into_iter().map(array).collect()
}

/// A device by its name.
pub(crate) fn parse(py: Python<'_>, device: &str) -> PyResult<Device> {
    device.parse().map_err(|error| raised(py, &Error::from(error)))
}
