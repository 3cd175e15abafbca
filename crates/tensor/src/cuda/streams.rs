//! Which steps may run side by side: a step waits for those whose memory it reads or writes, and for no others.

use crate::compile::plan::Plan;
use std::ops::Range;

/// When and where a step runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    pub(crate) stream: usize,
    /// Earlier steps on other streams.
    pub(crate) waits: Vec<usize>,
    /// Whether a step on another stream waits for this one.
    pub(crate) awaited: bool,
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// A step continues the stream of the latest step it needs, if that stream has gone no further; else it takes the stream
/// that has been idle longest.
pub(crate) fn order(plan: &Plan, streams: usize) -> Vec<Turn> {
    let place = |id: usize| plan.buffers[id].offset..plan.buffers[id].offset + plan.buffers[id].length;
    let touched: Vec<[Vec<Range<usize>>; 2]> = plan
        .steps
        .iter()
        .map(|step| {
            let (read, written) = step.buffers();
            [read, written].map(|ids| ids.into_iter().map(place).collect())
        })
        .collect();
    let meet = |a: &[Range<usize>], b: &[Range<usize>]| a.iter().any(|a| b.iter().any(|b| overlap(a, b)));
    let mut turns: Vec<Turn> = Vec::with_capacity(touched.len());
    // done[step][stream]: the last step of each stream that is over when `step` begins.
    let mut done: Vec<Vec<Option<usize>>> = Vec::with_capacity(touched.len());
    let mut last: Vec<Option<usize>> = vec![None; streams];
    for (position, [read, written]) in touched.iter().enumerate() {
        let mut needed: Vec<usize> = (0..position)
            .filter(|&earlier| {
                let [earlier_read, earlier_written] = &touched[earlier];
                meet(read, earlier_written) || meet(written, earlier_written) || meet(written, earlier_read)
            })
            .collect();
        needed.sort_unstable_by(|a, b| b.cmp(a));
        let continued = needed
            .iter()
            .map(|&step| turns[step].stream)
            .find(|&stream| last[stream].is_some_and(|step| needed.contains(&step)));
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
