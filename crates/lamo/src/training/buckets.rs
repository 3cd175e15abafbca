//! Buckets of a ragged set: each holds samples of similar size and has a program of its own, for the size of its largest sample.
//!
//! The cost of an epoch is Σ_b ⌈n_b / batch⌉ · batch · points_b, since a program computes all points of a full batch. For each
//! number of buckets, the sizes are chosen that make this sum smallest (dynamic programming over the sorted sizes); then the
//! fewest buckets that cost hardly more than the best. Everything follows from the sizes of the samples and the batch.
//!
//! An epoch visits the samples in the order of [`Batches::shuffled`]. A batch is taken when its bucket has collected enough of
//! them; what is left at the end makes batches that are not full. With one bucket these are the batches of equal sizes.

use crate::data::dataset::Batches;

/// Buckets at most: each keeps a program with its memory.
const MOST: usize = 8;
/// Share of the best cost by which fewer buckets may cost more.
const SLACK: f64 = 0.02;
/// Different sizes that are told apart; more are merged with the next larger.
const SIZES: usize = 256;

/// Samples of similar size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// Points of its largest sample.
    pub(crate) points: usize,
    /// Its samples, in the order of the set.
    pub(crate) samples: Vec<usize>,
}

/// One batch of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Number of its bucket.
    pub(crate) bucket: usize,
    /// Its samples, at least one and at most as many as a batch has.
    pub(crate) samples: Vec<usize>,
}

/// The buckets of a set of samples, by ascending size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    pub(crate) all: Vec<Bucket>,
    /// Bucket of each sample, and its place in the bucket.
    places: Vec<(usize, usize)>,
    batch: usize,
}

impl Buckets {
    /// One bucket for samples of equal size.
    pub(crate) fn one(points: usize, count: usize, batch: usize) -> Buckets {
        Buckets::of(vec![Bucket { points, samples: (0..count).collect() }], count, batch)
    }

    /// Buckets for samples of these sizes, in batches of at most `batch` samples.
    pub(crate) fn new(sizes: &[usize], batch: usize) -> Buckets {
        let bounds = bounds(sizes, batch);
        let mut all: Vec<Bucket> = bounds.iter().map(|&points| Bucket { points, samples: Vec::new() }).collect();
        for (sample, size) in sizes.iter().enumerate() {
            all[bounds.partition_point(|bound| bound < size)].samples.push(sample);
        }
        Buckets::of(all, sizes.len(), batch)
    }

    fn of(all: Vec<Bucket>, count: usize, batch: usize) -> Buckets {
        let mut places = vec![(0, 0); count];
        for (number, bucket) in all.iter().enumerate() {
            bucket.samples.iter().enumerate().for_each(|(place, &sample)| places[sample] = (number, place));
        }
        Buckets { all, places, batch }
    }

    /// Place of a sample in its bucket.
    pub(crate) fn place(&self, sample: usize) -> usize {
        self.places[sample].1
    }

    /// Batches of an epoch.
    pub(crate) fn batches(&self) -> usize {
        self.all.iter().map(|bucket| bucket.samples.len().div_ceil(self.batch)).sum()
    }

    /// The batches of an epoch, which depend on seed and epoch alone.
    pub(crate) fn epoch(&self, seed: u64, epoch: u64) -> Vec<Batch> {
        let samples: Vec<usize> = (0..self.places.len()).collect();
        let order = Batches::shuffled(&samples, self.batch, seed, epoch);
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); self.all.len()];
        let mut batches = Vec::with_capacity(self.batches());
        for &sample in order.order() {
            let bucket = self.places[sample].0;
            waiting[bucket].push(sample);
            if waiting[bucket].len() == self.batch {
                batches.push(Batch { bucket, samples: std::mem::take(&mut waiting[bucket]) });
            }
        }
        let rest = waiting.into_iter().enumerate().filter(|(_, samples)| !samples.is_empty());
        batches.extend(rest.map(|(bucket, samples)| Batch { bucket, samples }));
        batches
    }
}

/// The sizes of buckets, ascending; the last is the largest sample.
fn bounds(sizes: &[usize], batch: usize) -> Vec<usize> {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    // Ends of the groups of equal sizes, of which at most `SIZES` stay.
    let mut ends: Vec<usize> = (1..=sorted.len()).filter(|&end| sorted.get(end) != Some(&sorted[end - 1])).collect();
    let step = ends.len().div_ceil(SIZES).max(1);
    let last = ends.len().saturating_sub(1);
    ends =
        ends.into_iter().enumerate().filter(|(at, _)| (last - at).is_multiple_of(step)).map(|(_, end)| end).collect();
    let cost = |first: usize, end: usize| ((end - first).div_ceil(batch) * batch * sorted[end - 1]) as u64;
    // best[k][e]: least cost of the samples before ends[e] in k + 1 buckets, and where the last of them begins
    let mut best: Vec<Vec<(u64, usize)>> = vec![ends.iter().map(|&end| (cost(0, end), 0)).collect()];
    for buckets in 1..MOST.min(ends.len()) {
        let before = &best[buckets - 1];
        let least = |at: usize| {
            let choices = (0..at).map(|cut| (before[cut].0 + cost(ends[cut], ends[at]), cut + 1));
            choices.min().unwrap_or(before[at])
        };
        best.push((0..ends.len()).map(least).collect());
    }
    let costs: Vec<u64> = best.iter().filter_map(|row| row.last()).map(|&(cost, _)| cost).collect();
    let lowest = costs.iter().copied().min().unwrap_or(0) as f64;
    let mut buckets = costs.iter().position(|&cost| cost as f64 <= (1.0 + SLACK) * lowest).unwrap_or(0);
    let (mut at, mut bounds) = (ends.len(), Vec::new());
    while at > 0 {
        bounds.push(sorted[ends[at - 1] - 1]);
        at = best[buckets][at - 1].1;
        buckets = buckets.saturating_sub(1);
    }
    bounds.reverse();
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sizes_have_one_bucket_and_the_batches_of_equal_sizes() {
        let buckets = Buckets::new(&[7; 10], 4);
        assert_eq!(buckets, Buckets::one(7, 10, 4));
        let order = Batches::shuffled(&(0..10).collect::<Vec<_>>(), 4, 3, 5);
        let expected: Vec<_> = order.iter().map(|samples| Batch { bucket: 0, samples: samples.to_vec() }).collect();
        assert_eq!(buckets.epoch(3, 5), expected);
    }

    #[test]
    fn every_epoch_visits_every_sample_once_in_a_bucket_that_holds_it() {
        let sizes: Vec<usize> = (0..1000).map(|k| 100 + (k * k * 7919) % 900).collect();
        let buckets = Buckets::new(&sizes, 4);
        let fits =
            |batch: &Batch| batch.samples.iter().all(|&sample| sizes[sample] <= buckets.all[batch.bucket].points);
        for epoch in 0..3 {
            let batches = buckets.epoch(1, epoch);
            assert!(batches.len() == buckets.batches() && batches.iter().all(fits));
            let mut seen: Vec<usize> = batches.iter().flat_map(|batch| batch.samples.clone()).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..1000).collect::<Vec<_>>());
        }
        assert_ne!(buckets.epoch(1, 0), buckets.epoch(1, 1));
        assert_eq!(buckets.epoch(1, 2), Buckets::new(&sizes, 4).epoch(1, 2));
    }

    #[test]
    fn few_buckets_waste_few_points() {
        let sizes: Vec<usize> = (0..1000).map(|k| 1000 + (k * 2654435761) % 3000).collect();
        let buckets = Buckets::new(&sizes, 4);
        let padded: usize = buckets.all.iter().map(|bucket| bucket.samples.len().div_ceil(4) * 4 * bucket.points).sum();
        let waste = padded as f64 / sizes.iter().sum::<usize>() as f64;
        assert!(buckets.all.len() <= MOST && waste < 1.09, "{} buckets, {waste:.3}", buckets.all.len());
    }

    #[test]
    fn two_sizes_far_apart_have_two_buckets_and_few_samples_share_one() {
        let sizes: Vec<usize> = (0..40).map(|k| if k % 2 == 0 { 10 } else { 1000 }).collect();
        assert_eq!(Buckets::new(&sizes, 4).all.iter().map(|bucket| bucket.points).collect::<Vec<_>>(), [10, 1000]);
        // A batch of one sample costs as much as a full one.
        assert_eq!(Buckets::new(&[90, 100], 2).all.len(), 1);
    }
}
