//! Memberships of the points of a batch, computed where they are used ([`Membership`]).
//!
//! The keys of the slices are the same for all samples, or each sample has its own. In the second case each pair of sample and
//! head counts as one head of a single sample, so that the same operator serves both.

use crate::network::probe::Places;
use lamo_tensor::{Membership, Tensor};

/// w_{nhm} of all samples of a batch.
#[derive(Clone, Copy)]
pub(super) enum Sorted<'g> {
    /// All samples have the same keys.
    Alike(Membership<'g>),
    /// Each sample has its own keys; samples and heads are one axis of the membership.
    BySample {
        /// Samples of the batch.
        batch: usize,
        /// With one sample of batch · heads heads.
        membership: Membership<'g>,
    },
}

impl<'g> Sorted<'g> {
    /// w = softmax_m(x_n·k_m): x `[batch, points, heads, channels]`, k `[batch, heads, slices, channels]`.
    pub(super) fn by_sample(queries: Tensor<'g>, keys: Tensor<'g>) -> Self {
        let [batch, heads, slices, channels] = keys.dims();
        let membership = Membership {
            queries: together(queries),
            keys: keys.reshape([batch * heads, slices, channels]),
            offsets: keys.graph().fill(0.0, [batch * heads, slices]),
        };
        Sorted::BySample { batch, membership }
    }

    /// The memberships as a probe sees them.
    pub(super) fn places(&self) -> Places<Tensor<'g>> {
        let (membership, joined) = match *self {
            Sorted::Alike(membership) => (membership, None),
            Sorted::BySample { batch, membership } => (membership, Some(batch)),
        };
        let Membership { queries, keys, offsets } = membership;
        Places::Slices { queries, keys, offsets, joined }
    }

    /// Σ_n w_{nm} [v_n | 1]: `[batch, points, heads, width]` → `[batch, heads, slices, width + 1]`, the sum over the points of the
    /// mask `[batch, points]` where there is one.
    pub(super) fn collect(&self, values: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
        let Some(mask) = mask else { return self.collect_all(values) };
        let [batch, points, heads, width] = values.dims();
        let real = mask.reshape([batch, points, 1, 1]);
        let ones = real.broadcast_to([batch, points, heads, 1]);
        self.collect_all(Tensor::concatenate(&[values * real, ones], 3)).slice(3, 0, width + 1)
    }

    fn collect_all(&self, values: Tensor<'g>) -> Tensor<'g> {
        match *self {
            Sorted::Alike(membership) => membership.collect(values),
            Sorted::BySample { batch, membership } => {
                let [_, _, heads, _] = values.dims();
                let collected = membership.collect(together(values)); // [1, batch · heads, slices, width + 1]
                let [_, _, slices, width] = collected.dims();
                collected.reshape([batch, heads, slices, width])
            }
        }
    }

    /// Σ_m w_{nm} t_m: `[batch, heads, slices, width]` → `[batch, points, heads, width]`
    pub(super) fn spread(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        match *self {
            Sorted::Alike(membership) => membership.spread(tokens),
            Sorted::BySample { batch, membership } => {
                let [_, heads, slices, width] = tokens.dims();
                let spread = membership.spread(tokens.reshape([1, batch * heads, slices, width]));
                let [_, points, _, _] = spread.dims();
                spread.reshape([points, batch, heads, width]).permute(&[1, 0, 2, 3])
            }
        }
    }
}

/// `[batch, points, heads, channels]` → `[1, points, batch · heads, channels]`
fn together(values: Tensor<'_>) -> Tensor<'_> {
    let [batch, points, heads, channels] = values.dims();
    values.permute(&[1, 0, 2, 3]).reshape([1, points, batch * heads, channels])
}
