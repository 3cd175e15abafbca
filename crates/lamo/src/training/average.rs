//! The running average of the parameters: a ← a + (1 − dₜ)(θ − a), dₜ = min(d, (1 + t) / (10 + t)).
//!
//! The first steps count more, as in TensorFlow's `ExponentialMovingAverage`, so that the average forgets the first
//! parameters. It begins as θ. The model of a run with an average is the average: tests, checkpoints and predictions use it.
//! Statistics that a model keeps, such as those of a batch norm, are those of the training.

use lamo_tensor::{DeviceError, Graph, PARAMETERS, Program, Tensor};
use std::ops::Range;

/// State: a.
pub const AVERAGE: &str = "average.parameters";
/// Input: 1 − dₜ.
const SHARE: &str = "average.share";

/// A running average of the parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// d
    pub decay: f64,
}

impl Average {
    /// Adds the update of the average to the program, from the new values of the parameters that a step changes.
    pub(super) fn follow<'g>(&self, graph: &'g Graph, length: usize, new: &[(Range<usize>, Tensor<'g>)]) {
        let (average, share) = (graph.state(AVERAGE, [length]), graph.input(SHARE, [1]));
        for (range, value) in new {
            let part = average.slice(0, range.start, range.end);
            graph.assign(part, part + share * (*value - part));
        }
    }

    /// Tells the program the share of its next step, counted from 0.
    pub(super) fn pace(&self, program: &mut Program, step: usize) -> Result<(), DeviceError> {
        let t = (step + 1) as f64;
        let decay = self.decay.min((1.0 + t) / (10.0 + t));
        program.try_write(SHARE, &[(1.0 - decay) as f32])
    }
}

/// Lets the average begin as the parameters.
pub(super) fn begin(program: &mut Program) -> Result<(), DeviceError> {
    if is_kept(program) {
        let parameters = program.try_read(PARAMETERS)?.to_vec();
        program.try_write(AVERAGE, &parameters)?;
    }
    Ok(())
}

/// Whether a training program keeps an average.
pub(super) fn is_kept(program: &Program) -> bool {
    program.states().iter().any(|name| name == AVERAGE)
}
