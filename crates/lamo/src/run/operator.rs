//! An operator: a model with its parameters and its task. A prediction needs nothing else.

use crate::error::{Error, Refusal, bounded};
use crate::network::Parameters;
use crate::network::models::{self, Choice};
use crate::task::Task;
use lamo_tensor::{Device, Graph, Precision, Section};

/// A model with its parameters and its task.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// Which model, with its settings.
    pub model: Choice,
    /// What it maps.
    pub task: Task,
    /// Precision of products, convolutions and scans on a GPU.
    pub precision: Precision,
    /// Samples per forward pass on a CPU.
    pub batch: usize,
    /// Names and shapes of the parameters.
    pub sections: Vec<Section>,
    /// θ, all parameters end to end.
    pub parameters: Vec<f32>,
}

/// Names and shapes of the parameters of a model, found by building it.
pub(crate) fn sections(model: &Choice, task: &Task) -> Result<Vec<Section>, Refusal> {
    bounded(|| {
        let graph = Graph::new();
        models::find(&model.name)?.build(&Parameters::new(&graph), task, &model.settings)?;
        Ok(graph.sections())
    })
}

/// Samples per forward pass. A GPU takes at least 16, because small batches leave it idle.
pub(crate) fn forward_batch(batch: usize, device: Device) -> usize {
    match device {
        Device::Cpu => batch,
        Device::Cuda(_) => batch.max(16),
    }
}

impl Operator {
    /// Refuses parameters that are not those of the model.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let expected: usize = self.sections.iter().map(|section| section.shape.count()).sum();
        if expected != self.parameters.len() {
            let found = format!("{} values", self.parameters.len());
            return Err(Refusal::new("parameters", format!("{expected} values"), found).into());
        }
        Ok(())
    }
}
