//! Which pieces of a plan may run side by side: a piece waits only for pieces that use the same memory, unless both only read it.

use crate::compile::plan::{Plan, Step, Stretch};
use std::ops::Range;

/// When and where a piece runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    pub(crate) stream: usize,
    /// Earlier pieces on other streams.
    pub(crate) waits: Vec<usize>,
    /// Whether a piece on another stream waits for this one.
    pub(crate) awaited: bool,
}

/// The memory that a piece reads and writes, in elements of the arena.
pub(crate) struct Touched {
    read: Vec<Range<usize>>,
    written: Vec<Range<usize>>,
    /// Whether the piece is the second part of the step before it, or prepares the piece after it. It gets a stream that delays
    /// no other piece.
    is_side: bool,
}

/// A step whose partial sums are added by a second kernel has two pieces: a piece that needs only the stores of the loop does
/// not wait for the sums. The gradient of a scan may have two pieces as well, because its first part does not need the
/// cotangent. The two pieces share scratch memory, which is represented by elements after the end of the arena: one per step, and
/// one that all such scans share.
pub(crate) fn touched(plan: &Plan, has_tail: impl Fn(usize) -> bool, has_head: impl Fn(usize) -> bool) -> Vec<Touched> {
    let place = |stretch: Stretch| {
        let buffer = &plan.buffers[stretch.buffer];
        let Range { start, end } = stretch.range.unwrap_or(0..buffer.length);
        buffer.offset + start..buffer.offset + end
    };
    let common = plan.arena + plan.steps.len()..plan.arena + plan.steps.len() + 1;
    let mut pieces = Vec::new();
    for (position, step) in plan.steps.iter().enumerate() {
        let [mut read, mut written] = step.stretches().map(|list| list.into_iter().map(place).collect::<Vec<_>>());
        let own = plan.arena + position..plan.arena + position + 1;
        if let Step::ScanGradient { operands, .. } = step
            && has_head(position)
        {
            let operands = operands.iter().map(|operand| place(Stretch::from(operand))).collect();
            pieces.push(Touched { read: operands, written: vec![common.clone()], is_side: true });
            read.push(common.clone());
            written.push(common.clone());
        }
        let sums = match step {
            Step::Loop(body) if has_tail(position) => {
                written.push(own.clone());
                Some(body.across.iter().map(|across| place(Stretch::from(&across.to))).collect())
            }
            _ => None,
        };
        pieces.push(Touched { read, written, is_side: false });
        pieces.extend(sums.map(|written| Touched { read: vec![own], written, is_side: true }));
    }
    pieces
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// A piece continues the stream of the latest piece that it needs, if that piece is the last one on its stream. Otherwise, and
/// for side pieces, it takes the stream that has been idle longest.
pub(crate) fn order(touched: &[Touched], streams: usize) -> Vec<Turn> {
    let meet = |a: &[Range<usize>], b: &[Range<usize>]| a.iter().any(|a| b.iter().any(|b| overlap(a, b)));
    let mut turns: Vec<Turn> = Vec::with_capacity(touched.len());
    // done[piece][stream]: the last piece of each stream that is done when `piece` starts.
    let mut done: Vec<Vec<Option<usize>>> = Vec::with_capacity(touched.len());
    let mut last: Vec<Option<usize>> = vec![None; streams];
    for (position, Touched { read, written, is_side }) in touched.iter().enumerate() {
        let mut needed: Vec<usize> = (0..position)
            .filter(|&earlier| {
                let earlier = &touched[earlier];
                meet(read, &earlier.written) || meet(written, &earlier.written) || meet(written, &earlier.read)
            })
            .collect();
        needed.sort_unstable_by(|a, b| b.cmp(a));
        let continued = needed
            .iter()
            .filter(|&&step| !touched[step].is_side)
            .map(|&step| turns[step].stream)
            .find(|&stream| !is_side && last[stream].is_some_and(|step| needed.contains(&step)));
        let stream =
            continued.unwrap_or_else(|| (0..streams).min_by_key(|&stream| last[stream]).expect("at least one"));
        let mut known = match last[stream] {
            Some(before) => {
                let mut known = done[before].clone();
                known[stream] = Some(before);
                known
            }
            None => vec![None; streams],
        };
        let mut waits = Vec::new();
        for step in needed {
            let other = turns[step].stream;
            if known[other] < Some(step) {
                waits.push(step);
                turns[step].awaited = true;
                known[other] = Some(step);
                for stream in 0..streams {
                    known[stream] = known[stream].max(done[step][stream]);
                }
            }
        }
        done.push(known);
        turns.push(Turn { stream, waits, awaited: false });
        last[stream] = Some(position);
    }
    turns
}
