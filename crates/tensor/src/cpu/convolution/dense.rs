//! Dense convolution as matrix products over panels of pixels: Y = Col(x) · W and dW = Col(x)ᵀ · dY, where row p of
//! Col(x) `[pixels, kernel_rows · kernel_columns · channels]` lists the source values under the taps of pixel p.
//!
//! A panel of Col(x) is gathered into the thread's workspace, small enough for the second-level cache, and multiplied there.
//! Each group is a product of its own. Input gradients are computed in the same way with [`Geometry::backward`].

use super::product::{Matrix, copy_strided, multiply};
use super::{ConvolutionShape, Geometry, Shared, with_workspace};
use crate::cpu::memory::{Source, Target};
use crate::cpu::team::for_each_task;
use crate::shape::saturating_product;
use std::ops::Range;

/// Floats of a panel of Col: 512 KiB, half a second-level cache.
const PANEL: usize = 128 * 1024;
/// Channels of y per task of the weight gradient: enough columns to make the cost of gathering small.
const BLOCK: usize = 128;
/// Most floats of partial sums of a weight gradient.
const PARTIALS: usize = 4 * 1024 * 1024;

/// The weight, as the product of each group reads it.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    /// `[groups, k, n, kernel_rows, kernel_columns]`
    pub(super) weight: Source<5>,
    pub(super) groups: usize,
    /// Channels of one group that are summed over.
    pub(super) reduced: usize,
    /// Channels of one group that are produced.
    pub(super) produced: usize,
}

/// Sums over input channels, produces output channels.
pub(super) fn by_input(shape: &ConvolutionShape, weight: Source<4>) -> Kernel {
    let [out_channel, in_channel, row, column] = weight.strides;
    let group = shape.out_width() as isize * out_channel;
    Kernel {
        weight: Source { pointer: weight.pointer, strides: [group, in_channel, out_channel, row, column] },
        groups: shape.groups,
        reduced: shape.in_width(),
        produced: shape.out_width(),
    }
}

/// Sums over output channels, produces input channels.
pub(super) fn by_output(shape: &ConvolutionShape, weight: Source<4>) -> Kernel {
    let [out_channel, in_channel, row, column] = weight.strides;
    let group = shape.out_width() as isize * out_channel;
    Kernel {
        weight: Source { pointer: weight.pointer, strides: [group, out_channel, in_channel, row, column] },
        groups: shape.groups,
        reduced: shape.out_width(),
        produced: shape.in_width(),
    }
}

/// The source of the columns of Col.
struct Columns<'a> {
    geometry: &'a Geometry,
    source: Source<4>,
    /// Channels of the group.
    channels: Range<usize>,
    tap_rows: Range<usize>,
}

impl Columns<'_> {
    /// Floats per pixel.
    fn width(&self) -> usize {
        self.tap_rows.len() * self.geometry.axes[1].taps * self.channels.len()
    }

    /// Writes the rows of Col for `pixels`, `stride` floats apart.
    ///
    /// # Safety
    /// The source has the sizes of the geometry.
    unsafe fn gather(&self, pixels: Range<usize>, panel: &mut [f32], stride: usize) {
        for (pixel, values) in pixels.zip(panel.chunks_mut(stride)) {
            let [batch, row, column] = self.geometry.split(pixel);
            let line_width = self.geometry.axes[1].taps * self.channels.len();
            for (tap, line) in self.tap_rows.clone().zip(values.chunks_exact_mut(line_width)) {
                match self.geometry.axes[0].source(row, tap) {
                    // SAFETY: `source` answers with rows inside.
                    Some(source_row) => unsafe { self.gather_line([batch, source_row], column, line) },
                    None => line.fill(0.0),
                }
            }
        }
    }

    /// One row of taps: `[kernel_columns, channels]`.
    #[inline(always)]
    unsafe fn gather_line(&self, [batch, row]: [usize; 2], column: usize, line: &mut [f32]) {
        let axis = &self.geometry.axes[1];
        let width = self.channels.len();
        let [_, _, column_stride, channel_stride] = self.source.strides;
        let inside = if axis.is_direct() { axis.inside_taps(column) } else { 0..0 };
        if inside.len() == axis.taps && channel_stride == 1 && column_stride == width as isize {
            let first = (axis.step * column as isize + axis.offset) as usize;
            // SAFETY: all taps lie inside, and their channels follow each other in memory.
            let values = unsafe {
                std::slice::from_raw_parts(self.source.at([batch, row, first, self.channels.start]), line.len())
            };
            return line.copy_from_slice(values);
        }
        for (tap, values) in line.chunks_exact_mut(width).enumerate() {
            match axis.source(column, tap) {
                // SAFETY: `source` answers with columns inside.
                Some(source_column) => unsafe {
                    copy_strided(
                        self.source.at([batch, row, source_column, self.channels.start]),
                        channel_stride,
                        values,
                    );
                },
                None => values.fill(0.0),
            }
        }
    }
}

/// Floats between pixels of a panel: an odd number of whole cache lines, so that pixels do not share cache sets.
fn padded(width: usize) -> usize {
    (width.div_ceil(16) | 1) * 16
}

/// Pixels per panel: at most eight tiles of six, because the product would copy the weight for each larger panel; fewer if
/// there would be too few panels for all threads.
fn panel_pixels(width: usize, pixels: usize) -> usize {
    let cached = (PANEL / padded(width)).clamp(24, 48);
    pixels.div_ceil(32).clamp(12, cached).next_multiple_of(6)
}

/// target[pixel, n] = Σ_k Col[pixel, k] · kernel[k, n], group by group.
///
/// # Safety
/// The views have the sizes of `geometry` and `kernel`; `target` overlaps no other argument.
pub(super) unsafe fn correlate(
    geometry: &Geometry,
    source: Source<4>,
    kernel: &Kernel,
    target: Target<4>,
    scratch: &mut [f32],
) {
    let taps = [geometry.axes[0].taps, geometry.axes[1].taps];
    // SAFETY: the caller's promise.
    unsafe { pack(kernel, taps, scratch) };
    let packed: &[f32] = scratch;
    let depth = taps[0] * taps[1] * kernel.reduced;
    let pixels = geometry.target_pixels();
    let panel = panel_pixels(depth, pixels);
    for_each_task(pixels.div_ceil(panel) * kernel.groups, |task| {
        let (index, group) = (task / kernel.groups, task % kernel.groups);
        let range = index * panel..((index + 1) * panel).min(pixels);
        let columns = Columns {
            geometry,
            source,
            channels: group * kernel.reduced..(group + 1) * kernel.reduced,
            tap_rows: 0..taps[0],
        };
        let weight = &packed[group * depth * kernel.produced..][..depth * kernel.produced];
        let channels = group * kernel.produced..(group + 1) * kernel.produced;
        // SAFETY: the caller's promise; tasks write different pixels or groups.
        unsafe { correlate_panel(&columns, range, weight, channels, target) };
    });
}

/// kernel `[groups, k, n, kernel_rows, kernel_columns]` as `[groups, kernel_rows, kernel_columns, k, n]`.
unsafe fn pack(kernel: &Kernel, taps: [usize; 2], packed: &mut [f32]) {
    let row_width = kernel.reduced * kernel.produced;
    let count = kernel.groups * taps[0] * taps[1];
    let shared = Shared(packed[..count * row_width].as_mut_ptr());
    for_each_task(count * kernel.reduced, |line| {
        // SAFETY: each task owns a line.
        let values = unsafe { shared.slice(line * kernel.produced, kernel.produced) };
        let (tap, k) = (line / kernel.reduced, line % kernel.reduced);
        let index = [tap / (taps[0] * taps[1]), k, 0, tap / taps[1] % taps[0], tap % taps[1]];
        // SAFETY: the indices lie inside the weight.
        unsafe { copy_strided(kernel.weight.at(index), kernel.weight.strides[2], values) };
    });
}

/// One panel of pixels of one group; `weight` is `[depth, produced]`, `channels` those of the target.
unsafe fn correlate_panel(
    columns: &Columns,
    pixels: Range<usize>,
    weight: &[f32],
    channels: Range<usize>,
    target: Target<4>,
) {
    let geometry = columns.geometry;
    let (depth, produced) = (columns.width(), channels.len());
    let stride = padded(depth);
    with_workspace(pixels.len() * (stride + produced), |workspace| {
        let (panel, result) = workspace.split_at_mut(pixels.len() * stride);
        // SAFETY: the caller's promise; a flat target's pixels are `flat` apart from the first on.
        unsafe {
            columns.gather(pixels.clone(), panel, stride);
            let [batch, row, column] = geometry.split(pixels.start);
            let first = target.at([batch, row, column, channels.start]);
            let flat = geometry.pixel_stride(target.strides);
            let (pointer, column_stride) = flat.map_or((result.as_mut_ptr(), produced as isize), |flat| (first, flat));
            multiply(
                [produced, pixels.len(), depth],
                Matrix { pointer, row_stride: 1, column_stride },
                false,
                Matrix { pointer: weight.as_ptr(), row_stride: 1, column_stride: produced as isize },
                Matrix { pointer: panel.as_ptr(), row_stride: 1, column_stride: stride as isize },
            );
            if flat.is_none() {
                scatter(geometry, pixels, result, channels, target);
            }
        }
    });
}

/// Copies `result` `[pixels, channels]` to a target of any strides.
unsafe fn scatter(
    geometry: &Geometry,
    pixels: Range<usize>,
    result: &[f32],
    channels: Range<usize>,
    target: Target<4>,
) {
    for (pixel, values) in pixels.zip(result.chunks_exact(channels.len())) {
        let [batch, row, column] = geometry.split(pixel);
        for (channel, &value) in channels.clone().zip(values) {
            // SAFETY: the caller's promise.
            unsafe { *target.at([batch, row, column, channel]) = value };
        }
    }
}

/// Copies `channels` of `pixels` from a source of any strides to `values` `[pixels, channels]`.
unsafe fn copy_pixels(
    geometry: &Geometry,
    pixels: Range<usize>,
    source: Source<4>,
    channels: Range<usize>,
    values: &mut [f32],
) {
    for (pixel, values) in pixels.zip(values.chunks_exact_mut(channels.len())) {
        let [batch, row, column] = geometry.split(pixel);
        // SAFETY: the caller's promise.
        unsafe { copy_strided(source.at([batch, row, column, channels.start]), source.strides[3], values) };
    }
}

/// How many partial sums a weight gradient has.
fn parts(shape: &ConvolutionShape) -> usize {
    let pixels = shape.batch * shape.out_rows() * shape.out_columns();
    let weights = (shape.out_channels * shape.in_width() * shape.taps()).max(1);
    pixels.div_ceil(256).min(PARTIALS / weights).clamp(1, 16)
}

/// Floats of the partial sums.
pub(super) fn partials(shape: &ConvolutionShape) -> usize {
    saturating_product([parts(shape), shape.out_channels, shape.in_width(), shape.taps()])
}

/// dW = Σ Col(x)ᵀ · dY: each task one part of the pixels, one row of taps, one block of output channels.
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
    let (parts, pixels) = (parts(shape), geometry.target_pixels());
    let blocks = shape.out_width().div_ceil(BLOCK);
    let shared = Shared(scratch.as_mut_ptr());
    for_each_task(parts * shape.groups * blocks * shape.kernel[0], |task| {
        let (tap_row, rest) = (task % shape.kernel[0], task / shape.kernel[0]);
        let (block, rest) = (rest % blocks, rest / blocks);
        let (group, part) = (rest % shape.groups, rest / shape.groups);
        let columns = Columns {
            geometry,
            source: input,
            channels: group * shape.in_width()..(group + 1) * shape.in_width(),
            tap_rows: tap_row..tap_row + 1,
        };
        let first = group * shape.out_width() + block * BLOCK;
        let channels = first..(first + BLOCK).min((group + 1) * shape.out_width());
        let line = columns.width();
        // Partial sums are [parts, kernel_rows, out_channels, kernel_columns · in_channels/groups].
        let start = ((part * shape.kernel[0] + tap_row) * shape.out_channels + first) * line;
        let range = part * pixels / parts..(part + 1) * pixels / parts;
        // SAFETY: each task owns the lines of its part, tap row and channels.
        let partial = unsafe { shared.slice(start, channels.len() * line) };
        // SAFETY: the caller's promise.
        unsafe { weight_part(&columns, range, output_gradient, channels, partial) };
    });
    // SAFETY: the caller's promise.
    unsafe { sum_parts(shape, parts, scratch, weight_gradient) };
}

/// partial `[channels, line]` = Σ over `pixels` of dY[pixel, channel] · Col[pixel, line].
unsafe fn weight_part(
    columns: &Columns,
    pixels: Range<usize>,
    output_gradient: Source<4>,
    channels: Range<usize>,
    partial: &mut [f32],
) {
    let geometry = columns.geometry;
    let line = columns.width();
    let stride = padded(line);
    let step = (PANEL / stride).clamp(32, 512);
    let flat = geometry.pixel_stride(output_gradient.strides);
    if pixels.is_empty() {
        partial.fill(0.0);
    }
    with_workspace(step * (stride + channels.len()), |workspace| {
        let (panel, gradients) = workspace.split_at_mut(step * stride);
        for start in pixels.clone().step_by(step) {
            let range = start..(start + step).min(pixels.end);
            // SAFETY: the caller's promise; a flat gradient's pixels are `flat` apart from the first on.
            unsafe {
                columns.gather(range.clone(), panel, stride);
                let [batch, row, column] = geometry.split(start);
                let first = output_gradient.at([batch, row, column, channels.start]);
                let (pointer, row_stride) =
                    flat.map_or((gradients.as_ptr(), channels.len() as isize), |flat| (first, flat));
                if flat.is_none() {
                    copy_pixels(geometry, range.clone(), output_gradient, channels.clone(), gradients);
                }
                multiply(
                    [line, channels.len(), range.len()],
                    Matrix { pointer: partial.as_mut_ptr(), row_stride: 1, column_stride: line as isize },
                    start > pixels.start,
                    Matrix { pointer: panel.as_ptr(), row_stride: 1, column_stride: stride as isize },
                    Matrix { pointer, row_stride, column_stride: 1 },
                );
            }
        }
    });
}

/// Adds the parts `[parts, kernel_rows, out_channels, kernel_columns · in_channels/groups]` in order and writes the weight
/// gradient, one output channel after the other: its filters lie side by side.
///
/// # Safety
/// `weight_gradient` has the sizes of `shape` and overlaps no other argument.
pub(super) unsafe fn sum_parts(shape: &ConvolutionShape, parts: usize, partials: &[f32], weight_gradient: Target<4>) {
    let ([rows, columns], width) = (shape.kernel, shape.in_width());
    let stride = padded(width);
    for_each_task(shape.out_channels, |channel| {
        with_workspace(rows * columns * stride, |sums| {
            for (tap, sums) in sums.chunks_exact_mut(stride).enumerate() {
                let term = |part: usize| {
                    let line = (part * rows + tap / columns) * shape.out_channels + channel;
                    &partials[(line * columns + tap % columns) * width..][..width]
                };
                sums[..width].copy_from_slice(term(0));
                for part in 1..parts {
                    sums.iter_mut().zip(term(part)).for_each(|(sum, term)| *sum += term);
                }
            }
            for reduced in 0..width {
                for row in 0..rows {
                    for column in 0..columns {
                        let sum = sums[(row * columns + column) * stride + reduced];
                        // SAFETY: the caller's promise.
                        unsafe { *weight_gradient.at([channel, reduced, row, column]) = sum };
                    }
                }
            }
        });
    });
}
