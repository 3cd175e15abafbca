//! An operator: a model with its parameters, its states and its task. A prediction needs nothing else.

use crate::data::state_dict;
use crate::error::{Error, Refusal};
use crate::network::models::Choice;
use crate::network::{ModelStates, end_to_end};
use crate::task::Task;
use lamo_tensor::{Device, Precision, Section};
use std::collections::BTreeMap;
use std::path::Path;

/// A model with its parameters, its states and its task.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// Which model, with its settings.
    pub model: Choice,
    /// What it maps.
    pub task: Task,
    /// Precision of products, convolutions and scans of a prediction on a GPU. It is f32, whatever the training had, because rounding
    /// to tf32 adds an eighth to the error of an accurate model; a receipt in another precision is verified in that one.
    pub precision: Precision,
    /// Samples per forward pass on a CPU.
    pub batch: usize,
    /// Names and shapes of the parameters.
    pub sections: Vec<Section>,
    /// θ, all parameters end to end.
    pub parameters: Vec<f32>,
    /// Running statistics and other tensors that are not trained.
    pub states: ModelStates,
}

/// Samples per forward pass. A GPU takes at least 16, because small batches leave it idle.
pub fn forward_batch(batch: usize, device: Device) -> usize {
    match device {
        Device::Cpu => batch,
        Device::Cuda(_) => batch.max(16),
    }
}

impl Operator {
    /// Writes the parameters and the states as a state dict under the authors' names.
    pub fn write_weights(&self, path: &Path, metadata: &BTreeMap<String, String>) -> Result<(), state_dict::Error> {
        let sections = end_to_end(&self.sections, &self.states.sections);
        state_dict::write_parts(path, &sections, &[&self.parameters, &self.states.values], metadata)
    }

    /// Refuses parameters that are not those of the model.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let expected: usize = self.sections.iter().map(|section| section.shape.count()).sum();
        if expected != self.parameters.len() {
            let found = format!("{} values", self.parameters.len());
            return Err(Refusal::new("parameters", format!("{expected} values"), found).into());
        }
        let ModelStates { sections, values } = &self.states;
        let expected: usize = sections.iter().map(|section| section.shape.count()).sum();
        if expected != values.len() {
            let found = format!("{} values", values.len());
            return Err(Refusal::new("states of the model", format!("{expected} values"), found).into());
        }
        Ok(())
    }
}
