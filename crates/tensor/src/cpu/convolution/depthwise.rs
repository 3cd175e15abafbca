//! Depthwise convolution: each channel has a kernel of its own, so channels are the lanes of the vectors.
//!
//! `y[b,i,j,c] = Σ_{u,v} w[u,v,c] · x[b, i·s+u−p, j·s+v−p, c]`
//!
//! A unit of work is a run of neighbouring pixels of one row. Within it, the sums of a few neighbouring pixels and a block of
//! channels stay in registers during the loop over taps; pixels with all taps inside need no checks of bounds. Units follow
//! each other down the rows, so that the rows that two units share are still in the cache.

use super::dense::Kernel;
use super::{Axis, ConvolutionShape, Geometry, Shared};
use crate::cpu::memory::{Source, Target};
use crate::cpu::simd::{Unit, vectorised};
use crate::cpu::team::for_each_task;
use crate::shape::saturating_product;
use std::ops::Range;

/// Floats of target per unit: enough to make the cost of a task small.
const RUN: usize = 16 * 1024;
/// Most partial sums of a weight gradient.
const PARTS: usize = 32;
/// Pixels whose sums are in registers together.
const PIXELS: usize = 4;

/// Everything a unit needs.
#[derive(Clone, Copy)]
struct Plan {
    geometry: Geometry,
    source: Source<4>,
    /// `[taps, channels]`
    weight: *const f32,
    target: Target<4>,
    channels: usize,
}
// SAFETY: the weight is only read; the views promise the rest.
unsafe impl Sync for Plan {}

/// Pixels per unit.
fn run_length(columns: usize, channels: usize) -> usize {
    RUN.div_ceil(channels.max(1)).next_multiple_of(2 * PIXELS).min(columns.max(1))
}

/// `[batch, row]` and columns of unit `unit`.
#[inline(always)]
fn unit_pixels(geometry: &Geometry, channels: usize, unit: usize) -> ([usize; 2], Range<usize>) {
    let [rows, columns] = [geometry.axes[0].target_length, geometry.axes[1].target_length];
    let run = run_length(columns, channels);
    let (line, piece) = (unit / columns.div_ceil(run), unit % columns.div_ceil(run));
    ([line / rows, line % rows], piece * run..((piece + 1) * run).min(columns))
}

fn units(geometry: &Geometry, channels: usize) -> usize {
    let columns = geometry.axes[1].target_length;
    geometry.batch * geometry.axes[0].target_length * columns.div_ceil(run_length(columns, channels))
}

/// target[pixel, c] = Σ_taps source[met pixel, c] · kernel[tap, c].
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
    let channels = kernel.groups;
    let [_, tap_columns] = geometry.axes.map(|axis| axis.taps);
    for (tap, values) in scratch.chunks_exact_mut(channels).enumerate().take(geometry.axes[0].taps * tap_columns) {
        for (channel, value) in values.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *value = unsafe { *kernel.weight.at([channel, 0, 0, tap / tap_columns, tap % tap_columns]) };
        }
    }
    let plan = Plan { geometry: *geometry, source, weight: scratch.as_ptr(), target, channels };
    let direct = geometry.is_direct() && source.strides[3] == 1 && target.strides[3] == 1;
    let task = if direct { correlate_unit } else { correlate_unit_by_element };
    for_each_task(units(geometry, channels), |unit| task(&plan, unit));
}

/// Any strides and any geometry, one element at a time.
fn correlate_unit_by_element(plan: &Plan, unit: usize) {
    let axes = &plan.geometry.axes;
    let ([batch, row], columns) = unit_pixels(&plan.geometry, plan.channels, unit);
    for column in columns {
        for channel in 0..plan.channels {
            let mut sum = 0.0;
            for tap_row in 0..axes[0].taps {
                let Some(source_row) = axes[0].source(row, tap_row) else { continue };
                for tap_column in 0..axes[1].taps {
                    let Some(source_column) = axes[1].source(column, tap_column) else { continue };
                    let tap = tap_row * axes[1].taps + tap_column;
                    // SAFETY: `source` answers with pixels inside; the weight is `[taps, channels]`.
                    sum += unsafe {
                        *plan.weight.add(tap * plan.channels + channel)
                            * *plan.source.at([batch, source_row, source_column, channel])
                    };
                }
            }
            // SAFETY: each unit owns its pixels.
            unsafe { *plan.target.at([batch, row, column, channel]) = sum };
        }
    }
}

vectorised! { fn correlate_unit(plan: &Plan, unit: usize) = correlate_unit_body; }

#[inline(always)]
fn correlate_unit_body<U: Unit>(plan: &Plan, unit: usize) {
    if plan.geometry.axes[1].taps == 3 && plan.geometry.axes[1].step == 1 {
        correlate_run::<U, 3>(plan, unit);
    } else {
        correlate_run::<U, 0>(plan, unit);
    }
}

/// Taps of one row of the kernel, and the distance of neighbouring pixels in taps. With `TAPS` of 0 both are read from the
/// axis; otherwise the step is 1, and the compiler knows which taps read the same pixel and loads it once.
#[inline(always)]
fn row_taps<const TAPS: usize>(axis: &Axis) -> (usize, isize) {
    if TAPS == 0 { (axis.taps, axis.step) } else { (TAPS, 1) }
}

/// Columns of the target within `run` that have all taps inside.
#[inline(always)]
fn interior(axis: &Axis, run: &Range<usize>) -> Range<usize> {
    let start = axis.inside_targets(0).start.clamp(run.start, run.end);
    start..axis.inside_targets(axis.taps - 1).end.clamp(start, run.end)
}

#[inline(always)]
fn correlate_run<U: Unit, const TAPS: usize>(plan: &Plan, unit: usize) {
    let axis = &plan.geometry.axes[1];
    let ([batch, row], run) = unit_pixels(&plan.geometry, plan.channels, unit);
    let tap_rows = plan.geometry.axes[0].inside_taps(row);
    let inner = interior(axis, &run);
    let together = if inner.len() < PIXELS { 0 } else { inner.len().div_ceil(PIXELS) };
    for block in 0..together {
        // The last block has full length and overlaps the one before: it writes the same sums again.
        let column = (inner.start + block * PIXELS).min(inner.end - PIXELS);
        correlate_pixels::<U, TAPS, PIXELS>(plan, [batch, row, column], &tap_rows, 0..row_taps::<TAPS>(axis).0);
    }
    let done = if together == 0 { run.end..run.end } else { inner };
    for column in (run.start..done.start).chain(done.end..run.end) {
        correlate_pixels::<U, 0, 1>(plan, [batch, row, column], &tap_rows, axis.inside_taps(column));
    }
}
/// All channels of `COUNT` pixels from `[batch, row, column]` on; the taps all lie inside.
#[inline(always)]
fn correlate_pixels<U: Unit, const TAPS: usize, const COUNT: usize>(
    plan: &Plan,
    place: [usize; 3],
    tap_rows: &Range<usize>,
    tap_columns: Range<usize>,
) {
    let mut channel = 0;
    while COUNT == 1 && channel + 128 <= plan.channels {
        correlate_block::<U, TAPS, COUNT, 128>(plan, place, channel, tap_rows, &tap_columns);
        channel += 128;
    }
    while channel + 32 <= plan.channels {
        correlate_block::<U, TAPS, COUNT, 32>(plan, place, channel, tap_rows, &tap_columns);
        channel += 32;
    }
    while channel + 8 <= plan.channels {
        correlate_block::<U, TAPS, COUNT, 8>(plan, place, channel, tap_rows, &tap_columns);
        channel += 8;
    }
    while channel < plan.channels {
        correlate_block::<U, TAPS, COUNT, 1>(plan, place, channel, tap_rows, &tap_columns);
        channel += 1;
    }
}

#[inline(always)]
fn correlate_block<U: Unit, const TAPS: usize, const COUNT: usize, const LANES: usize>(
    plan: &Plan,
    [batch, row, column]: [usize; 3],
    channel: usize,
    tap_rows: &Range<usize>,
    tap_columns: &Range<usize>,
) {
    let [rows, columns] = &plan.geometry.axes;
    let (taps, step) = row_taps::<TAPS>(columns);
    let tap_columns = if TAPS == 0 { tap_columns.clone() } else { 0..TAPS };
    let [batch_stride, row_stride, column_stride, _] = plan.source.strides;
    let mut sums = [[0.0f32; LANES]; COUNT];
    for tap_row in tap_rows.clone() {
        let source_row = rows.step * row as isize + rows.offset + tap_row as isize;
        let first = columns.step * column as isize + columns.offset;
        // `wrapping`: the first pixel may lie outside if tap 0 is skipped.
        let line = plan.source.pointer.wrapping_offset(
            batch as isize * batch_stride + source_row * row_stride + first * column_stride + channel as isize,
        );
        for tap in tap_columns.clone() {
            // SAFETY: the weight is `[taps, channels]`; the caller's taps lie inside the source.
            let weight: [f32; LANES] =
                unsafe { *plan.weight.add((tap_row * taps + tap) * plan.channels + channel).cast() };
            for (pixel, sum) in sums.iter_mut().enumerate() {
                let distance = (pixel as isize * step + tap as isize) * column_stride;
                // SAFETY: as above.
                let values: [f32; LANES] = unsafe { *line.wrapping_offset(distance).cast() };
                for lane in 0..LANES {
                    sum[lane] = U::mul_add(weight[lane], values[lane], sum[lane]);
                }
            }
        }
    }
    for (pixel, sum) in sums.iter().enumerate() {
        // SAFETY: each unit owns its pixels, whose channels lie side by side.
        unsafe { *plan.target.at([batch, row, column + pixel, channel]).cast() = *sum };
    }
}

/// How many partial sums a weight gradient has; each has at least one unit.
fn parts(shape: &ConvolutionShape) -> usize {
    let floats = shape.batch * shape.out_rows() * shape.out_columns() * shape.in_channels;
    (floats / RUN).clamp(1, PARTS)
}

/// Floats of the partial sums.
pub(super) fn partials(shape: &ConvolutionShape) -> usize {
    saturating_product([parts(shape), shape.taps(), shape.in_channels])
}

/// `dw[c,u,v] = Σ dy[b,i,j,c] · x[b, i·s+u−p, j·s+v−p, c]`: each task a fixed part of the units, added in order.
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
    let geometry = Geometry::forward(shape);
    let (parts, units, channels) = (parts(shape), units(&geometry, shape.in_channels), shape.in_channels);
    let length = shape.taps() * channels;
    let shared = Shared(scratch.as_mut_ptr());
    let plan = GradientPlan { geometry, input, output_gradient, channels };
    let direct = input.strides[3] == 1 && output_gradient.strides[3] == 1;
    let task = if direct { gradient_unit } else { gradient_unit_by_element };
    for_each_task(parts, |part| {
        // SAFETY: each part is one task's.
        let partial = unsafe { shared.slice(part * length, length) };
        partial.fill(0.0);
        for unit in part * units / parts..(part + 1) * units / parts {
            task(&plan, unit, partial);
        }
    });
    let (total, others) = scratch[..parts * length].split_at_mut(length);
    for part in others.chunks_exact(length) {
        for (total, term) in total.iter_mut().zip(part) {
            *total += term;
        }
    }
    for (place, &value) in total.iter().enumerate() {
        let (tap, channel) = (place / channels, place % channels);
        // SAFETY: the caller's promise.
        unsafe { *weight_gradient.at([channel, 0, tap / shape.kernel[1], tap % shape.kernel[1]]) = value };
    }
}

/// Everything a unit of the weight gradient needs.
#[derive(Clone, Copy)]
struct GradientPlan {
    geometry: Geometry,
    input: Source<4>,
    output_gradient: Source<4>,
    channels: usize,
}

/// Any strides, one element at a time; `partial` is `[taps, channels]`.
fn gradient_unit_by_element(plan: &GradientPlan, unit: usize, partial: &mut [f32]) {
    let axes = &plan.geometry.axes;
    let ([batch, row], run) = unit_pixels(&plan.geometry, plan.channels, unit);
    for (tap, sums) in partial.chunks_exact_mut(plan.channels).enumerate() {
        let Some(source_row) = axes[0].source(row, tap / axes[1].taps) else { continue };
        for column in run.clone() {
            let Some(source_column) = axes[1].source(column, tap % axes[1].taps) else { continue };
            for (channel, sum) in sums.iter_mut().enumerate() {
                // SAFETY: `source` answers with pixels inside.
                *sum += unsafe {
                    *plan.output_gradient.at([batch, row, column, channel])
                        * *plan.input.at([batch, source_row, source_column, channel])
                };
            }
        }
    }
}

vectorised! { fn gradient_unit(plan: &GradientPlan, unit: usize, partial: &mut [f32]) = gradient_unit_body; }

#[inline(always)]
fn gradient_unit_body<U: Unit>(plan: &GradientPlan, unit: usize, partial: &mut [f32]) {
    let axes = &plan.geometry.axes;
    let ([batch, row], run) = unit_pixels(&plan.geometry, plan.channels, unit);
    for tap_row in axes[0].inside_taps(row) {
        let source_row = (axes[0].step * row as isize + axes[0].offset + tap_row as isize) as usize;
        let sums = &mut partial[tap_row * axes[1].taps * plan.channels..][..axes[1].taps * plan.channels];
        if axes[1].taps == 3 && axes[1].step == 1 {
            gradient_row::<U, 3>(plan, [batch, row, source_row], &run, sums);
        } else {
            gradient_row::<U, 0>(plan, [batch, row, source_row], &run, sums);
        }
    }
}

/// One row of taps, `sums` `[kernel_columns, channels]`.
#[inline(always)]
fn gradient_row<U: Unit, const TAPS: usize>(
    plan: &GradientPlan,
    place: [usize; 3],
    run: &Range<usize>,
    sums: &mut [f32],
) {
    let mut channel = 0;
    while channel + 32 <= plan.channels {
        gradient_block::<U, TAPS, 32>(plan, place, run, channel, sums);
        channel += 32;
    }
    while channel + 8 <= plan.channels {
        gradient_block::<U, TAPS, 8>(plan, place, run, channel, sums);
        channel += 8;
    }
    while channel < plan.channels {
        gradient_block::<U, TAPS, 1>(plan, place, run, channel, sums);
        channel += 1;
    }
}

/// If `TAPS` is known, all sums of the row stay in registers for the interior of the run; the rest is done tap by tap.
#[inline(always)]
fn gradient_block<U: Unit, const TAPS: usize, const LANES: usize>(
    plan: &GradientPlan,
    [batch, row, source_row]: [usize; 3],
    run: &Range<usize>,
    channel: usize,
    sums: &mut [f32],
) {
    let axis = &plan.geometry.axes[1];
    let (taps, step) = row_taps::<TAPS>(axis);
    let strides = [plan.output_gradient.strides[2], plan.input.strides[2]];
    // SAFETY: channel and rows lie inside; the lanes from `channel` on do too.
    let gradients = unsafe { plan.output_gradient.at([batch, row, 0, channel]) };
    // SAFETY: as above.
    let inputs = unsafe { plan.input.at([batch, source_row, 0, channel]) };
    let product = |sum: &mut [f32; LANES], column: usize, tap: usize| {
        let source_column = step * column as isize + axis.offset + tap as isize;
        // SAFETY: callers ask for taps inside.
        let gradient: [f32; LANES] = unsafe { *gradients.offset(column as isize * strides[0]).cast() };
        // SAFETY: as above.
        let values: [f32; LANES] = unsafe { *inputs.offset(source_column * strides[1]).cast() };
        for lane in 0..LANES {
            sum[lane] = U::mul_add(gradient[lane], values[lane], sum[lane]);
        }
    };
    let inner = if TAPS == 0 { run.start..run.start } else { interior(axis, run) };
    let mut together = [[0.0f32; LANES]; TAPS];
    let even = inner.start..inner.end - inner.len() % PIXELS;
    for first in even.clone().step_by(PIXELS) {
        for column in first..first + PIXELS {
            for (tap, sum) in together.iter_mut().enumerate() {
                product(sum, column, tap);
            }
        }
    }
    for column in even.end..inner.end {
        for (tap, sum) in together.iter_mut().enumerate() {
            product(sum, column, tap);
        }
    }
    for tap in 0..taps {
        let sums: &mut [f32; LANES] =
            (&mut sums[tap * plan.channels + channel..][..LANES]).try_into().expect("LANES sums");
        let mut sum = if TAPS == 0 { [0.0; LANES] } else { together[tap] };
        let inside = axis.inside_targets(tap);
        for column in run.start.max(inside.start)..inner.start.min(inside.end) {
            product(&mut sum, column, tap);
        }
        for column in inner.end.max(inside.start)..run.end.min(inside.end) {
            product(&mut sum, column, tap);
        }
        for lane in 0..LANES {
            sums[lane] += sum[lane];
        }
    }
}
