//! States of a model: tensors of its weights file that no optimiser changes. A running statistic changes with each training
//! pass; a fixed tensor is drawn once and stays.
//!
//! Several passes in one training step change a state one after the other: [`State::value`] is what the passes so far have
//! left. [`Parameters::store_states`](super::Parameters::store_states) makes the program keep the last value.

use lamo_tensor::{Shape, Tensor};
use std::cell::Cell;
use std::rc::Rc;

/// What a weights file must say about a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The file must have it.
    Required,
    /// Where the file lacks it, it keeps its first value.
    Optional,
    /// A table that is computed here. The file may have it, but its values are not read.
    Computed,
}

/// A state of a model.
#[derive(Clone)]
pub struct State<'g> {
    shape: Shape,
    /// `[count]` as the program has it before a run.
    stored: Tensor<'g>,
    /// `[count]` after the training passes so far.
    current: Rc<Cell<Tensor<'g>>>,
}

impl<'g> State<'g> {
    pub(super) fn new(stored: Tensor<'g>, shape: Shape) -> State<'g> {
        State { shape, stored, current: Rc::new(Cell::new(stored)) }
    }

    /// The value after the training passes so far.
    pub fn value(&self) -> Tensor<'g> {
        self.current.get().reshape(self.shape.clone())
    }

    /// Gives it another value, through which no gradient flows.
    pub fn set(&self, value: Tensor<'g>) {
        let (expected, found) = (&self.shape, value.shape());
        assert!(*expected == found, "a state of shape {expected} cannot take a value of shape {found}");
        self.current.set(value.detach().reshape([found.count()]));
    }

    /// Makes the program keep the last value.
    pub(super) fn store(&self) {
        let (stored, current) = (self.stored, self.current.get());
        if !stored.is_same(&current) {
            stored.graph().assign(stored, current);
        }
    }
}
