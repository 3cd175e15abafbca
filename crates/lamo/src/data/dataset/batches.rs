//! The order in which an epoch visits its samples: a function of (seed, epoch) alone.

use crate::random::shuffle;

/// One epoch's samples in groups; the last group may be smaller, none is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    order: Vec<usize>,
    size: usize,
}

impl Batches {
    /// The samples in a new order each epoch; panics when a batch is to hold nothing.
    pub fn shuffled(samples: &[usize], size: usize, seed: u64, epoch: u64) -> Batches {
        let mut batches = Batches::in_order(samples, size);
        shuffle(&mut batches.order, seed, epoch);
        batches
    }

    /// The samples as they come, for evaluation; panics when a batch is to hold nothing.
    pub fn in_order(samples: &[usize], size: usize) -> Batches {
        assert!(size > 0, "a batch holds at least one sample");
        Batches { order: samples.to_vec(), size }
    }

    /// Number of batches.
    pub fn count(&self) -> usize {
        self.order.len().div_ceil(self.size)
    }

    /// All samples, batch after batch.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The batches in turn.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        self.order.chunks(self.size)
    }
}
