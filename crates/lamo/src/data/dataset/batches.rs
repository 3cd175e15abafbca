//! The order in which an epoch visits its samples. It depends on seed and epoch alone.

use crate::random::shuffle;

/// The samples of one epoch in batches. The last batch may be smaller; no sample is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    order: Vec<usize>,
    size: usize,
}

impl Batches {
    /// The samples in a new order each epoch; panics when `size` is 0.
    pub fn shuffled(samples: &[usize], size: usize, seed: u64, epoch: u64) -> Batches {
        let mut batches = Batches::in_order(samples, size);
        shuffle(&mut batches.order, seed, epoch);
        batches
    }

    /// The samples in the order given, for evaluation; panics when `size` is 0.
    pub fn in_order(samples: &[usize], size: usize) -> Batches {
        assert!(size > 0, "a batch holds at least one sample");
        Batches { order: samples.to_vec(), size }
    }

    /// Number of batches.
    pub fn count(&self) -> usize {
        self.order.len().div_ceil(self.size)
    }

    /// All samples, one batch after another.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The batches, one after another.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        self.order.chunks(self.size)
    }
}
