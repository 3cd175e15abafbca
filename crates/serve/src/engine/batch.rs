//! Samples of several requests as one set.

use lamo::Samples;
use std::borrow::Cow;

/// Whether samples can be computed by one program.
pub(super) fn alike(one: &Samples, other: &Samples) -> bool {
    let sizes = |samples: &Samples| (samples.grid, samples.times, samples.functions, samples.space, samples.outputs);
    sizes(one) == sizes(other) && !one.is_ragged() && !other.is_ragged()
}

/// The samples one after another; all are [`alike`].
pub(super) fn joined<'a>(sets: &[&'a Samples]) -> Cow<'a, Samples> {
    let [first, others @ ..] = sets else { unreachable!("a batch holds at least one request") };
    if others.is_empty() {
        return Cow::Borrowed(first);
    }
    // Requests with points of their own have as many points as those that share them.
    let same = |set: &&Samples| set.share_positions() && set.positions == first.positions;
    let positions = match sets.iter().all(same) {
        true => first.positions.clone(),
        false => {
            let of_set = |set: &&'a Samples| {
                let set: &'a Samples = set;
                (0..set.count).flat_map(move |sample| set.positions_of(sample))
            };
            sets.iter().flat_map(of_set).copied().collect()
        }
    };
    Cow::Owned(Samples {
        count: sets.iter().map(|set| set.count).sum(),
        positions,
        inputs: sets.iter().flat_map(|set| &set.inputs).copied().collect(),
        targets: Vec::new(),
        offsets: Vec::new(),
        ..**first
    })
}
