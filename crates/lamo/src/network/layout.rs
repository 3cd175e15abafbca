//! The tensors of a model as its weights file has them: parameters and states, with names and shapes.

use super::models::{self, Choice};
use super::{Parameters, Presence};
use crate::error::{Refusal, bounded};
use crate::task::Task;
use lamo_tensor::{Graph, Section};

/// The states of a model: tensors of its weights file that no optimiser changes. Most models have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelStates {
    /// Names and shapes.
    pub sections: Vec<Section>,
    /// Their values, end to end.
    pub values: Vec<f32>,
}

/// Names and shapes of the tensors of a model, found by building it.
pub(crate) struct Layout {
    pub(crate) sections: Vec<Section>,
    /// The states with the values that they keep where a weights file lacks them.
    pub(crate) states: ModelStates,
    /// What a weights file must say about each state.
    pub(crate) presence: Vec<Presence>,
}

/// Seed of the states that a weights file lacks.
const SEED_OF_STATES: u64 = 0;

impl Layout {
    pub(crate) fn of(model: &Choice, task: &Task) -> Result<Layout, Refusal> {
        bounded(|| {
            let graph = Graph::new();
            let parameters = Parameters::new(&graph);
            models::find(&model.name)?.build(&parameters, task, &model.settings)?;
            Ok(Layout::declared(&graph, &parameters))
        })
    }

    /// The tensors that a model has declared.
    pub(crate) fn declared(graph: &Graph, parameters: &Parameters<'_>) -> Layout {
        let (sections, presence) = parameters.states().into_iter().unzip();
        let states = ModelStates { sections, values: parameters.draw_states(SEED_OF_STATES) };
        Layout { sections: graph.sections(), states, presence }
    }
}

/// The sections of the parameters, then those of the states, end to end.
pub(crate) fn end_to_end(parameters: &[Section], states: &[Section]) -> Vec<Section> {
    let count: usize = parameters.iter().map(|section| section.shape.count()).sum();
    let moved = states.iter().map(|section| Section { start: count + section.start, ..section.clone() });
    parameters.iter().cloned().chain(moved).collect()
}
