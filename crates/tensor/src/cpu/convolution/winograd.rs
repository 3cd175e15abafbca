//! Winograd's minimal filtering F(4 × 4, 3 × 3) for dense 3 × 3 convolutions of stride 1 (Lavin & Gray 2016,
//! arXiv:1509.09308): a tile of 4 × 4 pixels takes 36 products for each pair of channels, where the sum that defines it
//! takes 144.
//!
//! ```text
//! Y  = Aᵀ M A     M  = Σ_c U ⊙ V               U = G g Gᵀ   V = Bᵀ d B     d the 6 × 6 source pixels of the tile
//! dw = Gᵀ dU G    dU = Σ_tiles V ⊙ (A dY Aᵀ)                               the adjoint
//! ```
//!
//! Each of the 36 values is a matrix product of its own, `[tiles, channels] · [channels, channels]`. The transforms of a
//! panel of tiles and of a block of filters are computed where they are used and stay in the second-level cache.

#[cfg(test)]
pub(super) mod tests;
mod tiles;
mod transform;

use super::dense::Kernel;
use super::product::{Matrix, multiply};
use super::{ConvolutionShape, Geometry, Shared, with_workspace};
use crate::cpu::memory::{Source, Target};
use crate::cpu::simd::{Unit, vectorised};
use crate::shape::saturating_product;
use rayon::prelude::*;
use std::ops::Range;
use tiles::{Results, Tiles, Values, Windows, collect, spread_gradient, spread_source};
use transform::{LANES, along_both_axes, filter, filter_gradient};

/// Target pixels of a tile along each axis.
const SIDE: usize = 4;
/// Most channels of a block that are summed over. Sums over more channels are added block by block, which keeps their rounding
/// small.
const DEPTH: usize = 64;
/// Most channels of a block that are produced.
const BLOCK: usize = 128;
/// Tiles per product: as many as the product takes without copying the filters.
const PANEL: usize = 48;
/// Most tiles of a task, which share the transform of a block of filters.
const CHUNK: usize = 3 * PANEL;
/// Tasks that a convolution is cut into where it is large enough.
const TASKS: usize = 32;

/// Whether a shape is computed here. Measured against the direct sum on two cores with AVX-512, for y, dx and dw:
///
/// - 8 channels 1.2, 1.3, 1.5 times as fast; 16 channels 1.9, 1.9, 2.2; 32 channels 2.2, 2.3, 2.7 (planes of 64 × 64);
/// - 4 tiles in all 1.0, 1.5, 0.7; 16 tiles 1.4, 1.7, 1.2; 64 tiles 2.0, 2.1, 1.6 (64 channels);
/// - tiles that cover 1.8 times the pixels, on planes of 6 × 6: 0.9, 1.1, 0.8 with 64 channels, 1.5, 1.3, 1.1 with 256;
///   2.6 times, on planes of 5 × 5: 0.7, 0.9, 0.7 and 1.2, 1.1, 0.9.
pub(super) fn suits(shape: &ConvolutionShape) -> bool {
    let pixels = shape.batch * shape.out_rows() * shape.out_columns();
    let tiles = Tiles::new(&Geometry::forward(shape)).count();
    let few_wasted = 5 * SIDE * SIDE * tiles <= 9 * pixels;
    let wide = shape.in_width() >= 16 && shape.out_width() >= 16;
    shape.kernel == [3, 3] && shape.stride == [1, 1] && wide && tiles >= 16 && few_wasted
}

/// `channels` in blocks of equal size, which is a multiple of [`LANES`].
#[derive(Clone, Copy)]
struct Blocks {
    channels: usize,
    width: usize,
}

impl Blocks {
    fn new(channels: usize, most: usize) -> Self {
        let even = channels.div_ceil(channels.div_ceil(most).max(1));
        Self { channels, width: even.next_multiple_of(LANES).max(LANES) }
    }

    fn count(&self) -> usize {
        self.channels.div_ceil(self.width)
    }

    fn range(&self, block: usize) -> Range<usize> {
        block * self.width..((block + 1) * self.width).min(self.channels)
    }
}

fn shifted(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

/// target[pixel, n] = Σ_{taps, k} source[met pixel, k] · kernel[k, n], group by group.
///
/// # Safety
/// The views have the sizes of `geometry` and `kernel`; `target` overlaps no other argument. The geometry is direct, with
/// three taps along each axis.
pub(super) unsafe fn correlate(geometry: &Geometry, source: Source<4>, kernel: &Kernel, target: Target<4>) {
    let tiles = Tiles::new(geometry);
    let (reduced, produced) = (Blocks::new(kernel.reduced, DEPTH), Blocks::new(kernel.produced, BLOCK));
    let columns = kernel.groups * produced.count();
    let chunk = tiles.count().div_ceil(TASKS.div_ceil(columns.max(1))).next_multiple_of(PANEL).min(CHUNK);
    (0..tiles.count().div_ceil(chunk.max(1)) * columns).into_par_iter().for_each(|task| {
        let (group, block) = (task % columns / produced.count(), task % produced.count());
        let range = task / columns * chunk..((task / columns + 1) * chunk).min(tiles.count());
        let outputs = produced.range(block);
        with_workspace(Workspace::floats(&reduced, &produced, chunk), |memory| {
            let workspace = Workspace::new(memory, &reduced, &produced, chunk);
            for (index, inputs) in (0..reduced.count()).map(|block| reduced.range(block)).enumerate() {
                let windows = Windows::of_source(&tiles, geometry, source, &shifted(&inputs, group * kernel.reduced));
                // SAFETY: the caller's promise.
                unsafe { workspace.take_filters(kernel, group, &inputs, &outputs) };
                workspace.multiply(&windows, range.clone(), inputs.len(), index > 0);
            }
            let results = Results {
                tiles: &tiles,
                target,
                first_channel: group * kernel.produced + outputs.start,
                channels: outputs.len(),
            };
            collect(&results, range, workspace.results);
        });
    });
}

/// The memory of a task.
struct Workspace {
    /// U of one block: `k` in place of tiles.
    filters: Values,
    /// V of one panel.
    sources: Values,
    /// M of all tiles of the task.
    results: Values,
}

impl Workspace {
    /// Floats of each part, in order.
    fn parts(reduced: &Blocks, produced: &Blocks, chunk: usize) -> [usize; 3] {
        [
            Values::floats(reduced.width, produced.width),
            Values::floats(PANEL, reduced.width),
            Values::floats(chunk, produced.width),
        ]
    }

    fn floats(reduced: &Blocks, produced: &Blocks, chunk: usize) -> usize {
        Self::parts(reduced, produced, chunk).iter().sum()
    }

    fn new(memory: &mut [f32], reduced: &Blocks, produced: &Blocks, chunk: usize) -> Self {
        let [filters, sources, _] = Self::parts(reduced, produced, chunk);
        let (filters, memory) = memory.split_at_mut(filters);
        let (sources, results) = memory.split_at_mut(sources);
        Self {
            filters: Values::new(filters, reduced.width, produced.width),
            sources: Values::new(sources, PANEL, reduced.width),
            results: Values::new(results, chunk, produced.width),
        }
    }

    /// U of the block `[inputs, outputs]`; zero for the lanes past the last output.
    ///
    /// # Safety
    /// The kernel has these channels.
    unsafe fn take_filters(&self, kernel: &Kernel, group: usize, inputs: &Range<usize>, outputs: &Range<usize>) {
        let block = FilterBlock { kernel, group, inputs: inputs.clone(), outputs: outputs.clone() };
        spread_filters(&block, self.filters);
    }

    /// M = U · V, or M += U · V if `accumulate`, for the tiles of `range`.
    fn multiply(&self, windows: &Windows<'_>, range: Range<usize>, depth: usize, accumulate: bool) {
        for start in range.clone().step_by(PANEL) {
            let panel = start..(start + PANEL).min(range.end);
            spread_source(windows, panel.clone(), self.sources);
            // A product with one column would be summed in another order.
            let columns = panel.len().max(2);
            for value in (0..6).flat_map(|i| (0..6).map(move |j| [i, j])) {
                // SAFETY: the parts hold these sizes, M whole panels.
                unsafe {
                    multiply(
                        [self.results.width, columns, depth],
                        matrix(self.results.at(value, start - range.start, 0), self.results.width),
                        accumulate,
                        matrix(self.filters.at(value, 0, 0).cast_const(), self.filters.width),
                        matrix(self.sources.at(value, 0, 0).cast_const(), self.sources.width),
                    );
                }
            }
        }
    }
}

/// Columns of `width` floats.
fn matrix<P>(pointer: P, width: usize) -> Matrix<P> {
    Matrix { pointer, row_stride: 1, column_stride: width as isize }
}

/// Filters between some channels.
struct FilterBlock<'a> {
    kernel: &'a Kernel,
    group: usize,
    inputs: Range<usize>,
    outputs: Range<usize>,
}

vectorised! {
    /// U = G g Gᵀ of filters g; `values` has inputs in place of tiles, and zeros past the last output.
    fn spread_filters(block: &FilterBlock<'_>, values: Values) = spread_filters_body;
}

#[inline(always)]
fn spread_filters_body<U: Unit>(block: &FilterBlock<'_>, values: Values) {
    let FilterBlock { kernel, group, inputs, outputs } = block;
    let [_, input_stride, output_stride, row, column] = kernel.weight.strides;
    let offsets: [isize; 9] = std::array::from_fn(|tap| (tap / 3) as isize * row + (tap % 3) as isize * column);
    for first in (0..outputs.len()).step_by(LANES) {
        let count = (outputs.len() - first).min(LANES);
        for start in (0..inputs.len()).step_by(LANES) {
            let depth = (inputs.len() - start).min(LANES);
            let mut taps = [[[0.0; LANES]; 9]; LANES]; // [input, tap, output]
            for lane in 0..count {
                for (index, taps) in taps[..depth].iter_mut().enumerate() {
                    // SAFETY: the filter lies inside the kernel.
                    unsafe {
                        let filter = kernel.weight.pointer.offset(
                            *group as isize * kernel.weight.strides[0]
                                + (inputs.start + start + index) as isize * input_stride
                                + (outputs.start + first + lane) as isize * output_stride,
                        );
                        for (taps, offset) in taps.iter_mut().zip(offsets) {
                            taps[lane] = *filter.offset(offset);
                        }
                    }
                }
            }
            for (index, taps) in taps[..depth].iter().enumerate() {
                // SAFETY: `values` holds the block.
                unsafe {
                    along_both_axes(
                        |u, v| taps[3 * u + v].as_ptr(),
                        filter::<U>,
                        |i, j| values.at([i, j], start + index, first),
                    );
                }
            }
        }
    }
}

/// Input and output channels of a weight gradient in blocks.
fn gradient_blocks(shape: &ConvolutionShape) -> [Blocks; 2] {
    [Blocks::new(shape.in_width(), DEPTH), Blocks::new(shape.out_width(), BLOCK)]
}

/// How many partial sums a weight gradient has.
fn parts(shape: &ConvolutionShape) -> usize {
    let tiles = Tiles::new(&Geometry::forward(shape)).count();
    let [inputs, outputs] = gradient_blocks(shape);
    let blocks = shape.groups * inputs.count() * outputs.count();
    (TASKS / blocks.max(1)).min(tiles / (2 * PANEL)).max(1)
}

/// Floats of the partial sums of a weight gradient.
pub(super) fn partials(shape: &ConvolutionShape) -> usize {
    saturating_product([parts(shape), shape.out_channels, shape.in_width(), 9])
}

/// dw = Σ over parts: each task one part of the tiles and one block of both channels.
///
/// # Safety
/// The views have the sizes of `shape`; `weight_gradient` overlaps no other argument.
pub(super) unsafe fn weight_gradient(
    shape: &ConvolutionShape,
    input: Source<4>,
    output_gradient: Source<4>,
    weight_gradient: Target<4>,
    scratch: &mut [f32],
) {
    let geometry = &Geometry::forward(shape);
    let (tiles, parts) = (Tiles::new(geometry), parts(shape));
    let [inputs, outputs] = gradient_blocks(shape);
    let shared = Shared(scratch.as_mut_ptr());
    (0..parts * shape.groups * outputs.count() * inputs.count()).into_par_iter().for_each(|task| {
        let (input_block, rest) = (task % inputs.count(), task / inputs.count());
        let (output_block, rest) = (rest % outputs.count(), rest / outputs.count());
        let (group, part) = (rest % shape.groups, rest / shape.groups);
        let from = inputs.range(input_block);
        let to = shifted(&outputs.range(output_block), group * shape.out_width());
        let sources = Windows::of_source(&tiles, geometry, input, &shifted(&from, group * shape.in_width()));
        let gradients = Windows::of_target(&tiles, output_gradient, &to);
        let range = part * tiles.count() / parts..(part + 1) * tiles.count() / parts;
        let floats = [Values::floats(to.len(), inputs.width), Values::floats(PANEL, inputs.width)];
        with_workspace(floats[0] + floats[1] + Values::floats(PANEL, outputs.width), |memory| {
            let (filters, memory) = memory.split_at_mut(floats[0]);
            let (panel, gradient_panel) = memory.split_at_mut(floats[1]);
            let sums = Values::new(filters, to.len(), inputs.width);
            let panels = [Values::new(panel, PANEL, inputs.width), Values::new(gradient_panel, PANEL, outputs.width)];
            filter_sums([&sources, &gradients], range, panels, [from.len(), to.len()], sums);
            collect_filters(shape, sums, part, [&from, &to], &shared);
        });
    });
    // SAFETY: the caller's promise; the tasks wrote all partial sums.
    unsafe { super::dense::sum_parts(shape, parts, scratch, weight_gradient) };
}

/// dU = Σ over `range` of V ⊙ (A dY Aᵀ), panel by panel; `sums` has outputs in place of tiles.
fn filter_sums(
    windows: [&Windows<'_>; 2],
    range: Range<usize>,
    [sources, gradients]: [Values; 2],
    [inputs, outputs]: [usize; 2],
    sums: Values,
) {
    for start in range.clone().step_by(PANEL) {
        let panel = start..(start + PANEL).min(range.end);
        spread_source(windows[0], panel.clone(), sources);
        spread_gradient(windows[1], panel.clone(), gradients);
        for value in (0..6).flat_map(|i| (0..6).map(move |j| [i, j])) {
            // SAFETY: the values have these sizes; whole lanes of inputs are written.
            unsafe {
                multiply(
                    [inputs.next_multiple_of(LANES), outputs, panel.len()],
                    matrix(sums.at(value, 0, 0), sums.width),
                    start > range.start,
                    matrix(sources.at(value, 0, 0).cast_const(), sources.width),
                    Matrix {
                        pointer: gradients.at(value, 0, 0).cast_const(),
                        row_stride: gradients.width as isize,
                        column_stride: 1,
                    },
                );
            }
        }
    }
}

vectorised! {
    /// dw = Gᵀ dU G into the partial sums `[parts, 3, out_channels, 3 · in_channels/groups]`.
    fn collect_filters(
        shape: &ConvolutionShape,
        sums: Values,
        part: usize,
        channels: [&Range<usize>; 2],
        partials: &Shared,
    ) = collect_filters_body;
}

#[inline(always)]
fn collect_filters_body<U: Unit>(
    shape: &ConvolutionShape,
    sums: Values,
    part: usize,
    [inputs, outputs]: [&Range<usize>; 2],
    partials: &Shared,
) {
    let width = shape.in_width();
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
            for (u, v) in (0..3).flat_map(|u| (0..3).map(move |v| (u, v))) {
                let line = (part * 3 + u) * shape.out_channels + output;
                // SAFETY: each task owns the channels of its blocks in its part.
                let partial = unsafe { partials.slice((line * 3 + v) * width + inputs.start + first, count) };
                partial.copy_from_slice(&taps[u][v][..count]);
            }
        }
    }
}
