//! A pass: what the layers of a model know about the step they are part of, what they ask of its batch, and what they show to
//! a probe.

use super::probe::{Kernel, Places, Probe};
use lamo_tensor::{Random, Shape, Tensor};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Facts about a step. They are known when the model is applied; predictions need none of them.
#[derive(Clone, Default)]
pub struct Pass<'g>(Rc<Facts<'g>>);

#[derive(Default)]
struct Facts<'g> {
    weights: Cell<Option<Tensor<'g>>>,
    random: RefCell<Option<Random<'g>>>,
    given: RefCell<VecDeque<Tensor<'g>>>,
    least_batch: Cell<usize>,
    probe: RefCell<Option<Rc<Probe<'g>>>>,
}

impl<'g> Pass<'g> {
    /// `[batch]` which samples count, or `None` where all do. The last batch of an epoch may be filled with copies, whose
    /// weight is 0.
    pub fn weights(&self) -> Option<Tensor<'g>> {
        self.0.weights.get()
    }

    /// Factors 0 and 1/(1 − rate) of dropout; `None` where nothing is dropped: at rate 0, and in a pass without random numbers.
    pub fn factors(&self, rate: f64, shape: impl Into<Shape>) -> Option<Tensor<'g>> {
        if rate == 0.0 {
            return None;
        }
        if let Some(given) = self.0.given.borrow_mut().pop_front() {
            return Some(given.reshape(shape));
        }
        self.0.random.borrow().as_ref().map(|random| random.factors(rate, shape))
    }

    /// Asks for batches of at least `samples` samples.
    pub fn need_batch(&self, samples: usize) {
        self.0.least_batch.set(self.least_batch().max(samples));
    }

    /// Samples that a batch must have.
    pub(super) fn least_batch(&self) -> usize {
        self.0.least_batch.get().max(1)
    }

    pub(super) fn weigh(&self, weights: Tensor<'g>) {
        self.0.weights.set(Some(weights));
    }

    pub(super) fn draw_from(&self, random: Random<'g>) {
        self.0.random.replace(Some(random));
    }

    pub(super) fn give(&self, factors: impl IntoIterator<Item = Tensor<'g>>) {
        self.0.given.borrow_mut().extend(factors);
    }

    pub(super) fn probe_with(&self, probe: Rc<Probe<'g>>) {
        self.0.probe.replace(Some(probe));
    }

    fn probe(&self) -> Option<Rc<Probe<'g>>> {
        self.0.probe.borrow().clone()
    }

    /// Says that a block begins.
    pub fn begin_block(&self) {
        self.probe().iter().for_each(|probe| probe.begin());
    }

    /// Shows where the tokens of the block lie.
    pub fn show_places(&self, places: impl FnOnce() -> Places<Tensor<'g>>) {
        if let Some(probe) = self.probe() {
            probe.show(|layer| layer.places = Some(places()));
        }
    }

    /// Shows `[batch, tokens, width]` tokens before the mixer and after it.
    pub fn show_tokens(&self, before: Tensor<'g>, after: Tensor<'g>) {
        if let Some(probe) = self.probe() {
            probe.show(|layer| layer.tokens = Some([before, after]));
        }
    }

    /// Shows a mixing; its result, or what a probe puts in its place.
    pub fn show_mixing(&self, mixed: Tensor<'g>, kernel: impl FnOnce() -> Kernel<Tensor<'g>>) -> Tensor<'g> {
        self.probe().map_or(mixed, |probe| probe.mixing(kernel(), mixed))
    }
}
