//! C99: one source and one header, nothing but libm, no allocation, any number of threads.
//!
//! A sample is computed at a time, in a workspace that the caller gives. The loops are data first (`kernel`): they are run here to
//! be compared with the library's predictions, and then written as C.

mod emit;
mod kernel;
mod lower;
mod memory;
mod run;
mod special;
mod text;
mod view;

use crate::plan::Plan;
use crate::verify::{Arrays, Runs};
use kernel::Kernel;
use lamo::error::{Error, Refusal};
use lamo::inference::Port;
use memory::Buffer;

/// A translated model.
pub(crate) struct CModel {
    buffers: Vec<Buffer>,
    kernels: Vec<Kernel>,
    weights: Vec<f32>,
    /// Floats of the workspace.
    work: usize,
    inputs: Vec<Port>,
    /// The number of each input among all that the model could take.
    places: Vec<usize>,
    outputs: Vec<Port>,
}

impl CModel {
    pub(crate) fn of(plan: &Plan) -> Result<CModel, Refusal> {
        let lower::Lowered { mut buffers, kernels, weights } = lower::lower(plan)?;
        let work = memory::plan(&mut buffers, &kernels);
        let inputs: Vec<Port> = plan.inputs.iter().map(|(port, _)| port.clone()).collect();
        let all = &plan.physical.inputs;
        let places = inputs.iter().filter_map(|port| all.iter().position(|one| one.name == port.name)).collect();
        let outputs = plan.outputs.iter().map(|(port, _)| port.clone()).collect();
        Ok(CModel { buffers, kernels, weights, work, inputs, places, outputs })
    }

    /// Number of loops.
    pub(crate) fn loops(&self) -> usize {
        self.kernels.len()
    }
}

impl Runs for CModel {
    fn run(&self, given: &[Arrays]) -> Result<Vec<Arrays>, Error> {
        let sample = |arrays: &Arrays| {
            let inputs: Vec<&[f32]> = self.places.iter().map(|&place| arrays[place].as_slice()).collect();
            let lengths = self.outputs.iter().map(|port| port.shape.iter().product());
            let outputs = lengths.map(|length: usize| vec![f32::NAN; length]).collect();
            // Whatever a loop reads before it is written shows.
            let work = vec![f32::NAN; self.work];
            let mut memory =
                run::Memory { buffers: &self.buffers, weights: &self.weights, inputs: &inputs, outputs, work };
            self.kernels.iter().for_each(|kernel| memory.run(kernel));
            memory.outputs
        };
        Ok(given.iter().map(sample).collect())
    }
}
