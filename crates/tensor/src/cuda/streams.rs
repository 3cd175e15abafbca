//! Which pieces of a plan may run side by side: a piece waits only for pieces that use the same memory, unless both only read it.

use super::scratch::{Need, Pieces};
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
/// cotangent. The two pieces share the scratch memory of the step, `scratch`.
pub(crate) fn touched(plan: &Plan, needs: &[Need], scratch: &[Option<Range<usize>>]) -> Vec<Touched> {
    let place = |stretch: Stretch| {
        let buffer = &plan.buffers[stretch.buffer];
        let Range { start, end } = stretch.range.unwrap_or(0..buffer.length);
        buffer.offset + start..buffer.offset + end
    };
    let mut pieces = Vec::new();
    for (position, step) in plan.steps.iter().enumerate() {
        let [mut read, mut written] = step.stretches().map(|list| list.into_iter().map(place).collect::<Vec<_>>());
        let (own, cut) = (scratch[position].clone(), needs[position].pieces);
        if let (Pieces::HeadFirst, Step::ScanGradient { operands, .. }, Some(own)) = (cut, step, &own) {
            let operands = operands.iter().map(|operand| place(Stretch::from(operand))).collect();
            pieces.push(Touched { read: operands, written: vec![own.clone()], is_side: true });
            read.push(own.clone());
        }
        written.extend(own.clone());
        pieces.push(Touched { read, written, is_side: false });
        if let (Pieces::TailLast, Step::Loop(body), Some(own)) = (cut, step, own) {
            let sums = body.across.iter().map(|across| place(Stretch::from(&across.to))).collect();
            pieces.push(Touched { read: vec![own], written: sums, is_side: true });
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{self, Options};
    use crate::cuda::scratch::Scratch;
    use crate::cuda::{STREAMS, TRAITS, lower, needs};
    use crate::graph::Graph;
    use crate::ops::Precision;

    /// Sums over rows and over columns of many layers, with their gradients: many loops of two pieces.
    fn graph() -> Graph {
        let graph = Graph::new();
        let mut field = graph.input("x", [4000, 96]);
        for layer in 0..12 {
            let scale = graph.parameter(&format!("scale {layer}"), [96]);
            field = (field * scale).sin() + (field.mean(&[0]) * scale).cos();
        }
        let theta = graph.parameters();
        graph.output("gradient", graph.gradient(field.square().sum_all(), &[theta])[0].unwrap());
        graph
    }

    /// Two pieces that use the same memory, scratch memory too, run one after the other, unless both only read it.
    #[test]
    fn pieces_that_share_memory_are_ordered() {
        let plan = compile::compile(&graph(), Options::default(), TRAITS).unwrap();
        let lowered = lower(&plan, Precision::F32, 90, 227 * 1024).unwrap();
        let needs = needs(&plan, &lowered.actions, &lowered.heads, &[]);
        let scratch = Scratch::plan(&plan, &needs).unwrap();
        let taken: usize = scratch.own.iter().flatten().map(Range::len).sum();
        assert!(scratch.arena < plan.arena + taken, "{taken} floats, none of which is used twice");
        let touched = touched(&plan, &needs, &scratch.own);
        let turns = order(&touched, STREAMS);
        // before[piece]: all pieces that are done when it starts.
        let mut before: Vec<Vec<bool>> = Vec::new();
        for (position, turn) in turns.iter().enumerate() {
            let same_stream = (0..position).rev().find(|&earlier| turns[earlier].stream == turn.stream);
            let mut known = vec![false; turns.len()];
            for &earlier in turn.waits.iter().chain(&same_stream) {
                known[earlier] = true;
                before[earlier].iter().enumerate().for_each(|(piece, done)| known[piece] |= done);
            }
            before.push(known);
        }
        let meet = |a: &[Range<usize>], b: &[Range<usize>]| a.iter().any(|a| b.iter().any(|b| overlap(a, b)));
        for (later, piece) in touched.iter().enumerate() {
            for (earlier, other) in touched[..later].iter().enumerate() {
                let shared = meet(&piece.written, &other.written)
                    || meet(&piece.written, &other.read)
                    || meet(&piece.read, &other.written);
                assert!(!shared || before[later][earlier], "piece {later} may run beside piece {earlier}");
            }
        }
    }
}
