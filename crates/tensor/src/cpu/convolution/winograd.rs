//! Winograd's minimal filtering F(4 × 4, 3 × 3) for dense 3 × 3 convolutions of stride 1 (Lavin & Gray 2016,
//! arXiv:1509.09308): a tile of 4 × 4 pixels takes 36 products for each pair of channels, where the sum that defines it
//! takes 144.
//!
//! ```text
//! Y  = Aᵀ M A     M  = Σ_c U ⊙ V               U = G g Gᵀ   V = Bᵀ d B     d the 6 × 6 source pixels of the tile
//! dw = Gᵀ dU G    dU = Σ_tiles V ⊙ (A dY Aᵀ)                               the adjoint
//! ```
//!
//! Each of the 36 values is a matrix product of its own, `[tiles, channels] · [channels, channels]`, whose operands fit the
//! second-level cache. Panels of tiles and blocks of filters are transformed where they are used: the transforms of a whole
//! image or weight would have 2.25 or 4 times its size. [`transform`] says how exact this is.

mod filters;
#[cfg(test)]
pub(super) mod tests;
mod tiles;
mod transform;

use super::dense::Kernel;
use super::product::{Matrix, multiply};
use super::{ConvolutionShape, Geometry, Shared, with_workspace};
use crate::cpu::memory::{Source, Target};
use crate::cpu::team::for_each_task;
use crate::shape::saturating_product;
use filters::{FilterBlock, FilterPart, collect_filters, spread_filters};
use std::ops::Range;
use tiles::{Results, Tiles, Values, Windows, collect, spread_gradient, spread_source};
use transform::LANES;

/// Target pixels of a tile along each axis.
const SIDE: usize = 4;
/// Values of a tile or of a filter along each axis.
const POINTS: usize = SIDE + 2;
/// Most channels of a block that are summed over, and that are produced. With 48 tiles, y, dx and dw of 128 channels on 96 × 96
/// pixels take 45, 44, 47 ms on one core with blocks of 64 × 64; 39, 37, 42 ms with 64 × 128; 36, 35, 43 ms with 128 × 128,
/// but sums over more channels before they are added round more.
const DEPTH: usize = 64;
const BLOCK: usize = 128;
/// Tiles per product: eight times six, because the product would copy the filters for more.
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
///
/// The number of samples does not count, so that the bits of a sample do not depend on its batch. Nine tiles per plane lie between
/// the measured 4 and 16.
pub(super) fn suits(shape: &ConvolutionShape) -> bool {
    let [rows, columns] = [shape.out_rows(), shape.out_columns()];
    let tiles = rows.div_ceil(SIDE) * columns.div_ceil(SIDE);
    let few_wasted = 5 * SIDE * SIDE * tiles <= 9 * rows * columns;
    let wide = shape.in_width() >= 16 && shape.out_width() >= 16;
    shape.kernel == [3, 3] && shape.stride == [1, 1] && wide && tiles >= 9 && few_wasted
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
    for_each_task(tiles.count().div_ceil(chunk.max(1)) * columns, |task| {
        let (group, block) = (task % columns / produced.count(), task % produced.count());
        let range = task / columns * chunk..((task / columns + 1) * chunk).min(tiles.count());
        let outputs = produced.range(block);
        with_workspace(Workspace::floats(&reduced, &produced, chunk), |memory| {
            let workspace = Workspace::new(memory, &reduced, &produced, chunk);
            for (index, inputs) in (0..reduced.count()).map(|block| reduced.range(block)).enumerate() {
                let windows = Windows::of_source(&tiles, geometry, source, &shifted(&inputs, group * kernel.reduced));
                let depth = inputs.len();
                spread_filters(&FilterBlock { kernel, group, inputs, outputs: outputs.clone() }, workspace.filters);
                workspace.multiply(&windows, range.clone(), depth, index > 0);
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

    /// M = U · V, or M += U · V if `accumulate`, for the tiles of `range`.
    fn multiply(&self, windows: &Windows<'_>, range: Range<usize>, depth: usize, accumulate: bool) {
        for start in range.clone().step_by(PANEL) {
            let panel = start..(start + PANEL).min(range.end);
            spread_source(windows, panel.clone(), self.sources);
            // A product with one column would be summed in another order.
            let columns = panel.len().max(2);
            for value in each_value() {
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

/// The places of all values.
fn each_value() -> impl Iterator<Item = [usize; 2]> {
    (0..POINTS * POINTS).map(|value| [value / POINTS, value % POINTS])
}

/// Columns of `width` floats.
fn matrix<P>(pointer: P, width: usize) -> Matrix<P> {
    Matrix { pointer, row_stride: 1, column_stride: width as isize }
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
    for_each_task(parts * shape.groups * outputs.count() * inputs.count(), |task| {
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
            sum_filters([&sources, &gradients], range, panels, [from.len(), to.len()], sums);
            collect_filters(&FilterPart { shape, part, inputs: from, outputs: to }, sums, &shared);
        });
    });
    // SAFETY: the caller's promise; the tasks wrote all partial sums.
    unsafe { super::dense::sum_parts(shape, parts, scratch, weight_gradient) };
}

/// dU = Σ over `range` of V ⊙ (A dY Aᵀ), panel by panel; `sums` has outputs in place of tiles.
fn sum_filters(
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
        for value in each_value() {
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
