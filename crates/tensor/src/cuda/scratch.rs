//! Scratch memory of steps that have two pieces: a loop leaves partial sums in it, and a second kernel adds them later, perhaps
//! while other steps run. The memory of a step is used again some steps later, so that few steps wait for it.

use super::blocks_of_64;
use std::ops::Range;

/// Steps that pass before such memory is used again.
const WINDOW: usize = 16;

/// Where the scratch memory of each step is, in floats.
pub(crate) struct Scratch {
    /// `None` for a step of one piece, which uses the scratch memory of its stream.
    pub(crate) own: Vec<Option<Range<usize>>>,
    /// Floats of all.
    pub(crate) length: usize,
}

impl Scratch {
    /// `heads` and `tails`: floats of each step that has a piece before or after its main one. All steps with heads share theirs.
    pub(crate) fn plan(heads: &[Option<usize>], tails: &[Option<usize>]) -> Scratch {
        // An empty range would not order the two pieces.
        let shared = blocks_of_64(heads.iter().flatten().copied().max().map_or(0, |floats| floats.max(1)));
        let mut own: Vec<Option<Range<usize>>> = heads.iter().map(|head| head.map(|_| 0..shared)).collect();
        let mut length = shared;
        for (step, floats) in tails.iter().enumerate() {
            let Some(floats) = *floats else { continue };
            let size = blocks_of_64(floats.max(1));
            let near = own[step.saturating_sub(WINDOW)..step].iter().zip(&tails[step.saturating_sub(WINDOW)..]);
            let mut taken: Vec<Range<usize>> =
                near.filter_map(|(range, tail)| range.clone().filter(|_| tail.is_some())).collect();
            taken.sort_unstable_by_key(|range| range.start);
            let mut start = shared;
            for range in taken {
                if range.start >= start.saturating_add(size) {
                    break;
                }
                start = start.max(range.end);
            }
            let end = start.saturating_add(size);
            own[step] = Some(start..end);
            length = length.max(end);
        }
        Scratch { own, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_are_near_have_their_own_memory_and_steps_that_are_far_share_it() {
        let (heads, mut tails) = (vec![None; 100], vec![None; 100]);
        for step in (0..100).step_by(3) {
            tails[step] = Some(64 * (1 + step % 5));
        }
        let scratch = Scratch::plan(&heads, &tails);
        for (step, floats) in tails.iter().enumerate() {
            assert_eq!(scratch.own[step].as_ref().map(Range::len), *floats);
            for other in step + 1..100.min(step + WINDOW) {
                if let (Some(one), Some(two)) = (&scratch.own[step], &scratch.own[other]) {
                    assert!(one.end <= two.start || two.end <= one.start, "steps {step} and {other} share memory");
                }
            }
        }
        let all: usize = tails.iter().flatten().sum();
        assert!(scratch.length < all / 2, "{} of {all} floats", scratch.length);
    }

    #[test]
    fn steps_with_heads_share_one_place_which_no_tail_uses() {
        let scratch = Scratch::plan(&[Some(100), None, Some(0), None], &[None, Some(7), None, Some(200)]);
        assert_eq!(scratch.own, [Some(0..128), Some(128..192), Some(0..128), Some(192..448)]);
        assert_eq!(scratch.length, 448);
        assert_eq!(Scratch::plan(&[Some(0)], &[None]).own, [Some(0..64)], "an empty place orders nothing");
    }
}
