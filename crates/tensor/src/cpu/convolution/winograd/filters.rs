//! Blocks of filters, from the weight to their 36 values U = G g Gᵀ, and from their sums dU to the partial sums of the weight
//! gradient, Gᵀ dU G. The values have channels in place of tiles.

use super::super::dense::Kernel;
use super::super::{ConvolutionShape, Shared};
use super::tiles::Values;
use super::transform::{LANES, Lanes, along_both_axes, filter, filter_gradient};
use crate::cpu::simd::{Unit, vectorised};
use std::ops::Range;

/// Filters between some channels of a group.
pub(super) struct FilterBlock<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) group: usize,
    /// Channels that are summed over.
    pub(super) inputs: Range<usize>,
    /// Channels that are produced.
    pub(super) outputs: Range<usize>,
}

impl FilterBlock<'_> {
    /// The filters between [`LANES`] inputs and as many outputs, `[input, tap, output]`: each filter is read once, as it lies
    /// in memory. Zero for channels past the last.
    #[inline(always)]
    fn taps(&self, first_input: usize, first_output: usize) -> [[Lanes; 9]; LANES] {
        let weight = &self.kernel.weight;
        let [_, _, _, row, column] = weight.strides;
        let mut taps = [[[0.0; LANES]; 9]; LANES];
        for (lane, output) in (first_output..self.outputs.end).take(LANES).enumerate() {
            for (taps, input) in taps.iter_mut().zip(first_input..self.inputs.end) {
                // SAFETY: the filter lies inside the weight.
                let filter = unsafe { weight.at([self.group, input, output, 0, 0]) };
                for (tap, lanes) in taps.iter_mut().enumerate() {
                    // SAFETY: as above.
                    lanes[lane] = unsafe { *filter.offset((tap / 3) as isize * row + (tap % 3) as isize * column) };
                }
            }
        }
        taps
    }
}

vectorised! {
    /// U of a block: inputs in place of tiles, and zeros past the last output.
    pub(super) fn spread_filters(block: &FilterBlock<'_>, values: Values) = spread_filters_body;
}

#[inline(always)]
fn spread_filters_body<U: Unit>(block: &FilterBlock<'_>, values: Values) {
    for first in (0..block.outputs.len()).step_by(LANES) {
        for start in (0..block.inputs.len()).step_by(LANES) {
            let taps = block.taps(block.inputs.start + start, block.outputs.start + first);
            for (index, taps) in (start..block.inputs.len()).zip(&taps) {
                // SAFETY: `values` holds the block.
                unsafe {
                    along_both_axes(
                        |u, v| taps[3 * u + v].as_ptr(),
                        filter::<U>,
                        |i, j| values.at([i, j], index, first),
                    );
                }
            }
        }
    }
}

/// Some filters of one partial sum of a weight gradient.
pub(super) struct FilterPart<'a> {
    pub(super) shape: &'a ConvolutionShape,
    pub(super) part: usize,
    /// Input channels of the group.
    pub(super) inputs: Range<usize>,
    /// Output channels of all groups.
    pub(super) outputs: Range<usize>,
}

vectorised! {
    /// Gᵀ dU G into the partial sums `[parts, 3, out_channels, 3 · in_channels/groups]`; `sums` has outputs in place of tiles.
    pub(super) fn collect_filters(place: &FilterPart<'_>, sums: Values, partials: &Shared) = collect_filters_body;
}

#[inline(always)]
fn collect_filters_body<U: Unit>(place: &FilterPart<'_>, sums: Values, partials: &Shared) {
    let FilterPart { shape, part, inputs, outputs } = place;
    for (index, output) in outputs.clone().enumerate() {
        for first in (0..inputs.len()).step_by(LANES) {
            let count = (inputs.len() - first).min(LANES);
            let mut taps = [[[0.0; LANES]; 3]; 3];
            let places = taps.each_mut().map(|row| row.each_mut().map(|lanes| lanes.as_mut_ptr()));
            // SAFETY: `sums` holds the block.
            unsafe {
                along_both_axes(
                    |i, j| sums.at([i, j], index, first).cast_const(),
                    filter_gradient::<U>,
                    |u, v| places[u][v],
                );
            }
            for (tap, lanes) in taps.as_flattened().iter().enumerate() {
                let line = (part * 3 + tap / 3) * shape.out_channels + output;
                let start = (line * 3 + tap % 3) * shape.in_width() + inputs.start + first;
                // SAFETY: each task owns the channels of its blocks in its part.
                unsafe { partials.slice(start, count) }.copy_from_slice(&lanes[..count]);
            }
        }
    }
}
