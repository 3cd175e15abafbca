//! Random streams: a function of (seed, index) alone, the same on every machine and in every version.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The stream with number `index` of a seed.
fn stream(seed: u64, index: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(index);
    random
}

/// A number from 0 to `count` − 1, the first of the stream.
pub(crate) fn below(count: usize, seed: u64, index: u64) -> usize {
    let wide = u128::from(stream(seed, index).next_u64()) * count as u128;
    (wide >> 64) as usize // uniform to one part in 2^64 / count
}

/// Fisher and Yates's shuffle, last place first, written out so that no new version of a library changes it.
pub(crate) fn shuffle(order: &mut [usize], seed: u64, index: u64) {
    let mut random = stream(seed, index);
    for place in (1..order.len()).rev() {
        let wide = u128::from(random.next_u64()) * (place as u128 + 1);
        order.swap(place, (wide >> 64) as usize); // uniform to one part in 2^64 / place
    }
}

/// `chosen` different numbers from 0 to `count` − 1 in ascending order, each set equally likely (Floyd's algorithm); all where
/// there are no more.
pub(crate) fn subset(count: usize, chosen: usize, seed: u64, index: u64) -> Vec<usize> {
    if chosen >= count {
        return (0..count).collect();
    }
    let (mut random, mut taken) = (stream(seed, index), vec![false; count]);
    for last in count - chosen..count {
        let wide = u128::from(random.next_u64()) * (last as u128 + 1);
        let drawn = (wide >> 64) as usize;
        let place = if taken[drawn] { last } else { drawn };
        taken[place] = true;
    }
    (0..count).filter(|&place| taken[place]).collect()
}

/// Whole numbers from 0 to 2²⁴ − 1, which f32 holds exactly: the words of [`lamo_tensor::Random`] for a step.
pub(crate) fn words<const COUNT: usize>(seed: u64, index: u64) -> [f32; COUNT] {
    let mut random = stream(seed, index);
    std::array::from_fn(|_| (random.next_u32() >> 8) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_depends_on_seed_and_index_alone() {
        let shuffled = |seed: u64, index: u64| {
            let mut order: Vec<usize> = (0..8).collect();
            shuffle(&mut order, seed, index);
            order
        };
        assert_eq!(shuffled(3, 1), shuffled(3, 1));
        assert_ne!(shuffled(3, 1), shuffled(3, 2));
        assert_ne!(shuffled(3, 1), shuffled(4, 1));
    }

    #[test]
    fn every_number_is_equally_often_in_a_subset() {
        let mut seen = [0; 7];
        for index in 0..7000 {
            let subset = subset(7, 3, 5, index);
            assert!(subset.len() == 3 && subset.windows(2).all(|pair| pair[0] < pair[1]), "{subset:?}");
            subset.into_iter().for_each(|place| seen[place] += 1);
        }
        assert!(seen.iter().all(|count| (2840..3160).contains(count)), "{seen:?}"); // deviation 41
        assert_eq!(subset(4, 9, 1, 1), [0, 1, 2, 3]);
        assert_eq!(subset(100, 10, 1, 1), subset(100, 10, 1, 1));
        assert_ne!(subset(100, 10, 1, 1), subset(100, 10, 1, 2));
    }

    #[test]
    fn numbers_below_a_count_are_equally_likely() {
        let mut seen = [0; 5];
        (0..5000).for_each(|index| seen[below(5, 9, index)] += 1);
        assert!(seen.iter().all(|count| (900..1100).contains(count)), "{seen:?}"); // deviation 28
    }

    #[cfg(feature = "solvers")]
    #[test]
    fn the_streams_are_those_of_the_solvers() {
        use lamo_physics::random_field;
        for (seed, index) in [(0, 0), (7, 3), (u64::MAX, u64::MAX)] {
            assert_eq!(stream(seed, index).next_u64(), random_field::stream(seed, index).next_u64());
        }
    }
}
