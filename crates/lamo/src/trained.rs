//! A trained model: one checkpoint file holds all that it needs to predict.

use crate::case::{Case, Course};
use crate::checkpoint::Checkpoint;
use crate::dataset::Normaliser;
use crate::error::Error;
use crate::experiment::Experiment;
use crate::layers::Parameters;
use crate::models::{self, Choice, Input, Refusal, Task, require};
use crate::run;
use crate::samples::Samples;
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, PARAMETERS, Program, Section, Tensor};
use std::path::{Path, PathBuf};

/// A model with its parameters and everything around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// The file it comes from, empty while it has none.
    pub path: PathBuf,
    /// What was run.
    pub experiment: Experiment,
    /// What was learned.
    pub case: Case,
    /// Epochs completed.
    pub epoch: usize,
    /// Optimiser steps taken.
    pub step: usize,
    /// Seconds of training.
    pub seconds: f64,
    /// Seconds of these that went to tests and checkpoints.
    pub paused: f64,
    /// Bytes a step holds on the device of the training, the samples apart.
    pub step_bytes: Option<usize>,
    /// Steps at which the recipe was changed: what stands in `experiment` holds from the last of them on.
    pub changed: Vec<usize>,
    /// Names and shapes of the parameters.
    pub sections: Vec<Section>,
    /// θ, all parameters end to end.
    pub parameters: Vec<f32>,
}

impl Trained {
    /// Opens a run folder, which gives its last checkpoint, the best one where that is missing, or a checkpoint file.
    pub fn open(path: &Path) -> Result<Trained, Error> {
        if !path.exists() {
            return Err(Error::run(path, "expected a run folder or a checkpoint file, found nothing"));
        }
        match run::kept(path) {
            Some(file) => Ok(Checkpoint::read(&file)?.trained),
            None if path.is_dir() => {
                Err(Error::run(path, "expected a run folder with checkpoints/last.safetensors, found none"))
            }
            None => Ok(Checkpoint::read(path)?.trained),
        }
    }

    /// Refuses an output that would replace a file the model, or the run it belongs to, is read from.
    pub fn spare(&self, output: &Path) -> Result<(), Error> {
        let place = |path: &Path| std::path::absolute(path).ok()?.canonicalize().ok();
        let folder = |path: &Path| place(std::path::absolute(path).ok()?.parent()?);
        let own = place(output).is_some_and(|output| place(&self.path) == Some(output));
        let checkpoints = folder(&self.path).filter(|folder| folder.ends_with(run::CHECKPOINTS));
        require(!own && (checkpoints.is_none() || folder(output) != checkpoints), || {
            format!(
                "{}: expected a file that is not the model's own, found one of these; choose another",
                output.display()
            )
        })?;
        Ok(())
    }

    /// A compiled forward pass for batches of `batch` samples on a grid, which may differ from the training grid where the
    /// model allows it.
    pub fn predictor(&self, device: Device, grid: Grid, batch: usize) -> Result<Predictor, Error> {
        let mut predictor = Predictor::new(&self.experiment, &self.case, device, grid, batch)?;
        let Choice { name, settings } = &self.experiment.model;
        let moved = grid != self.case.domain.grid && models::find(name)?.is_local(settings);
        if moved || predictor.sections() != self.sections {
            let trained = self.case.domain.grid.shape();
            return Err(Refusal(format!(
                "model {name}: its parameters belong to the grid {trained:?} and fit no grid {:?}; predict on the grid it was trained on, or train with --set 'model.settings={{ latent = \"slices\", mixer = \"hydra\", directions = 2 }}'",
                grid.shape()
            ))
            .into());
        }
        predictor.load(&self.parameters);
        Ok(predictor)
    }

    /// `[count, times, points, outputs]` predictions in physical units. Films are continued for `samples.times` frames.
    pub fn predict(&self, samples: &Samples, device: Device) -> Result<Vec<f32>, Error> {
        let batch = batch(&self.experiment, device).min(samples.count.max(1));
        self.predictor(device, samples.grid, batch)?.predict(&self.case, samples)
    }
}

/// Samples per forward pass.
pub(crate) fn batch(experiment: &Experiment, device: Device) -> usize {
    match device {
        Device::Cpu => experiment.train.batch,
        Device::Cuda(_) => experiment.train.batch.max(16),
    }
}

/// A forward pass.
pub struct Predictor {
    program: Program,
    task: Task,
}

impl Predictor {
    /// Compiles the model of an experiment; its parameters are zero until [`Predictor::load`].
    pub fn new(experiment: &Experiment, case: &Case, device: Device, grid: Grid, batch: usize) -> Result<Self, Error> {
        require(batch > 0, || "a predictor: expected batches of at least 1 sample, found 0".to_owned())?;
        let task = Task { grid, ..case.task(batch) };
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let model = models::find(&experiment.model.name)?.build(&parameters, &task, &experiment.model.settings)?;
        let prediction = model.forward(&Input::declare(&graph, &task));
        graph.output("prediction", decoded(prediction, case.normalisers.outputs.as_ref()));
        Ok(Predictor { program: Program::compile_on(&graph, device, experiment.precision)?, task })
    }

    /// Names and shapes of the parameters.
    pub fn sections(&self) -> &[Section] {
        self.program.sections()
    }

    /// Takes θ; panics if its length is not that of the sections.
    pub fn load(&mut self, parameters: &[f32]) {
        self.program.write(PARAMETERS, parameters);
    }

    /// `[count, times, points, outputs]` in physical units.
    pub fn predict(&mut self, case: &Case, samples: &Samples) -> Result<Vec<f32>, Error> {
        case.check(samples)?;
        require(samples.grid == self.task.grid, || {
            let (expected, found) = (self.task.grid.shape(), samples.grid.shape());
            format!(
                "samples: expected the grid {expected:?} of the predictor, found {found:?}; ask for a predictor on it"
            )
        })?;
        let size = [samples.count, samples.times, samples.grid.points(), samples.outputs];
        let count = size.iter().try_fold(1_usize, |product, extent| product.checked_mul(*extent));
        let mut predictions = Vec::new();
        require(count.is_some_and(|count| predictions.try_reserve_exact(count).is_ok()), || {
            format!("{} samples of {} times: the predictions do not fit into memory; ask for fewer", size[0], size[1])
        })?;
        for first in (0..samples.count).step_by(self.task.batch) {
            let chosen: Vec<usize> = (first..(first + self.task.batch).min(samples.count)).collect();
            predictions.extend(self.batch(case, samples, &chosen));
        }
        Ok(predictions)
    }

    /// One batch; places behind the last sample repeat it and are dropped.
    fn batch(&mut self, case: &Case, samples: &Samples, chosen: &[usize]) -> Vec<f32> {
        let last = *chosen.last().expect("a batch holds at least one sample");
        let filled: Vec<usize> = (0..self.task.batch).map(|place| chosen.get(place).copied().unwrap_or(last)).collect();
        let positions: Vec<f32> = filled.iter().flat_map(|&sample| samples.positions_of(sample)).copied().collect();
        self.program.write("positions", &case.encode_positions(&positions));
        let inputs: Vec<f32> = filled.iter().flat_map(|&sample| samples.input_of(sample)).copied().collect();
        let mut inputs = case.encode_inputs(&inputs);
        let frames: Vec<Vec<f32>> = (0..samples.times).map(|time| self.frame(case, &mut inputs, time)).collect();
        let length = samples.grid.points() * samples.outputs;
        let sample = |place: usize| frames.iter().flat_map(move |frame| &frame[place * length..(place + 1) * length]);
        (0..chosen.len()).flat_map(sample).copied().collect()
    }

    /// `[batch, points, outputs]` at one time; a film's window moves on by one frame.
    fn frame(&mut self, case: &Case, inputs: &mut [f32], time: usize) -> Vec<f32> {
        if self.task.functions > 0 {
            self.program.write("functions", inputs);
        }
        if self.task.time {
            self.program.write("time", &vec![case.time(time); self.task.batch]);
        }
        self.program.run();
        let frame = self.program.read("prediction").to_vec();
        if let Course::Frames { .. } = case.course {
            let mut next = frame.clone();
            if let Some(outputs) = &case.normalisers.outputs {
                outputs.encode(&mut next);
            }
            let (window, width) = (self.task.functions, self.task.outputs);
            for (point, new) in inputs.chunks_exact_mut(window).zip(next.chunks_exact(width)) {
                point.copy_within(width.., 0);
                point[window - width..].copy_from_slice(new);
            }
        }
        frame
    }
}

/// v σ + μ for each output function.
pub(crate) fn decoded<'g>(prediction: Tensor<'g>, normaliser: Option<&Normaliser>) -> Tensor<'g> {
    let Some(Normaliser { mean, deviation }) = normaliser else { return prediction };
    if let ([mean], [deviation]) = (mean.as_slice(), deviation.as_slice()) {
        return prediction * f64::from(*deviation) + f64::from(*mean);
    }
    let channel = |values: &[f32]| prediction.graph().constant(values, [values.len()]);
    prediction * channel(deviation) + channel(mean)
}
