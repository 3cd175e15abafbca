//! Soft membership of points in slices (see `ops::membership`): strips of points whose weights stay in cache.
//!
//! The weights of a strip are one product of queries and keys and a softmax of its rows; each result is one more product with
//! the weights. Sums over points are divided into parts that depend on the shape alone, and the parts are added in order.

use crate::cpu::math;
use crate::cpu::matmul::gemm;
use crate::cpu::memory::{Source, Target};
use crate::cpu::simd::{Unit, vectorised};
use crate::cpu::team::for_each_task;
use crate::ops::membership::MembershipShape;
use crate::shape::saturating_product;

/// The operands that define the weights.
#[derive(Clone, Copy)]
pub(crate) struct MembershipInputs {
    /// `[batch, points, heads, channels]`
    pub(crate) queries: Source<4>,
    /// `[heads, slices, channels]`
    pub(crate) keys: Source<3>,
    /// `[heads, slices]`
    pub(crate) offsets: Source<2>,
}

/// What a membership was used for: an array on points and one on slices each.
#[derive(Clone, Copy)]
pub(crate) struct MembershipUses {
    /// Values, and the cotangent of their collection.
    pub(crate) collection: Option<[Source<4>; 2]>,
    /// The cotangent of a spread, and its tokens.
    pub(crate) spread: Option<[Source<4>; 2]>,
}

/// The gradients of [`MembershipInputs`], and of the collected values.
#[derive(Clone, Copy)]
pub(crate) struct MembershipGradients {
    pub(crate) queries: Target<4>,
    pub(crate) keys: Target<3>,
    pub(crate) offsets: Target<2>,
    pub(crate) values: Option<Target<4>>,
}

/// Points of a strip.
const STRIP: usize = 128;
/// Sums over points have at most this many parts per batch entry.
const PARTS: usize = 16;

/// How many parts the points of a batch entry are divided into for sums over them.
fn parts(shape: &MembershipShape) -> usize {
    shape.points.div_ceil(STRIP).clamp(1, PARTS)
}

fn part(shape: &MembershipShape, number: usize) -> std::ops::Range<usize> {
    let strips = shape.points.div_ceil(STRIP);
    let edge = |number: usize| (strips * number / parts(shape) * STRIP).min(shape.points);
    edge(number)..edge(number + 1)
}

/// Floats of the workspace of a task: weights, their cotangents from two uses, a strip of points with a column of ones, a small
/// matrix.
fn workspace(shape: &MembershipShape) -> usize {
    let widest = shape.width.max(shape.channels) + 1;
    let strips = STRIP.saturating_mul(3 * shape.slices + widest);
    strips.saturating_add(shape.slices.saturating_mul(widest))
}

/// Floats of the sums of all tasks, each `[heads, columns, slices]`.
fn sums(shape: &MembershipShape, columns: usize) -> usize {
    saturating_product([shape.batch, parts(shape), shape.heads, shape.slices, columns])
}

pub(crate) fn collect_scratch(shape: &MembershipShape) -> usize {
    spread_scratch(shape).saturating_add(sums(shape, shape.width + 1))
}

pub(crate) fn spread_scratch(shape: &MembershipShape) -> usize {
    saturating_product([shape.batch, parts(shape), workspace(shape)])
}

pub(crate) fn gradient_scratch(shape: &MembershipShape) -> usize {
    spread_scratch(shape).saturating_add(sums(shape, shape.channels + 1))
}

/// Memory of one task.
struct Task<'a> {
    shape: &'a MembershipShape,
    inputs: &'a MembershipInputs,
    entry: usize,
    points: std::ops::Range<usize>,
    /// `[strip, slices]`
    weights: &'a mut [f32],
    /// `[strip, slices]`
    cotangents: &'a mut [f32],
    /// `[strip, slices]`
    more_cotangents: &'a mut [f32],
    /// `[strip, widest + 1]`
    with_ones: &'a mut [f32],
    /// `[widest + 1, slices]`
    small: &'a mut [f32],
    /// `[heads, columns, slices]`
    sums: &'a mut [f32],
}

/// Runs `body` for every part of every batch entry, each with memory of its own.
fn for_each_part(
    shape: &MembershipShape,
    inputs: &MembershipInputs,
    columns: usize,
    scratch: &mut [f32],
    body: impl Fn(Task<'_>) + Sync + Send,
) {
    let (parts, each) = (parts(shape), workspace(shape));
    let size = shape.heads * shape.slices * columns;
    assert!(scratch.len() >= shape.batch * parts * (each + size), "scratch too short");
    let memory = Target::<1> { pointer: scratch.as_mut_ptr(), strides: [1] };
    for_each_task(shape.batch * parts, |number| {
        // SAFETY: the scratch holds all sums, then one workspace per task; these two belong to this task alone.
        let (sums, space) = unsafe {
            let all = shape.batch * parts * size;
            (
                std::slice::from_raw_parts_mut(memory.at([number * size]), size),
                std::slice::from_raw_parts_mut(memory.at([all + number * each]), each),
            )
        };
        let (weights, space) = space.split_at_mut(STRIP * shape.slices);
        let (cotangents, space) = space.split_at_mut(STRIP * shape.slices);
        let (more_cotangents, space) = space.split_at_mut(STRIP * shape.slices);
        let (with_ones, small) = space.split_at_mut(STRIP * (shape.width.max(shape.channels) + 1));
        sums.fill(0.0);
        let (entry, points) = (number / parts, part(shape, number % parts));
        body(Task { shape, inputs, entry, points, weights, cotangents, more_cotangents, with_ones, small, sums });
    });
}

/// Σ over the sums of the parts `from..until`, in order, in the place of the first; each has `size` elements.
fn total(scratch: &mut [f32], size: usize, [from, until]: [usize; 2]) -> &[f32] {
    for number in from + 1..until {
        let (before, next) = scratch.split_at_mut(number * size);
        let sum = &mut before[from * size..][..size];
        sum.iter_mut().zip(&next[..size]).for_each(|(sum, next)| *sum += next);
    }
    &scratch[from * size..][..size]
}

/// Σ_n w_{nm} [v_n | 1]
///
/// # Safety
/// Every view holds the extents of `shape`; no target overlaps anything else.
pub(crate) unsafe fn collect(
    shape: &MembershipShape,
    inputs: &MembershipInputs,
    values: Source<4>,
    to: Target<4>,
    scratch: &mut [f32],
) {
    let columns = shape.width + 1;
    for_each_part(shape, inputs, columns, scratch, |mut task| {
        task.for_each_strip(|task, head, points| {
            // SAFETY: the caller's promise.
            unsafe { task.load_with_ones(values, head, points.clone(), shape.width) };
            let left = matrix(task.weights, shape.slices).transposed();
            task.add_product(head, [shape.slices, points.len(), columns], left);
        });
    });
    let (parts, size) = (parts(shape), shape.heads * shape.slices * columns);
    for entry in 0..shape.batch {
        let sums = total(scratch, size, [entry * parts, (entry + 1) * parts]);
        for (row, sums) in sums.chunks_exact(shape.slices).enumerate() {
            for (slice, sum) in sums.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { *to.at([entry, row / columns, slice, row % columns]) = *sum };
            }
        }
    }
}

/// Σ_m w_{nm} t_m
///
/// # Safety
/// As for [`collect()`].
pub(crate) unsafe fn spread(
    shape: &MembershipShape,
    inputs: &MembershipInputs,
    tokens: Source<4>,
    to: Target<4>,
    scratch: &mut [f32],
) {
    for_each_part(shape, inputs, 0, scratch, |mut task| {
        task.for_each_strip(|task, head, points| {
            // SAFETY: the caller's promise; parts are disjoint.
            unsafe {
                task.spread_strip(head, points, tokens, to);
            }
        });
    });
}

/// Gradients of queries, keys, offsets and of the collected values.
///
/// # Safety
/// As for [`collect()`].
pub(crate) unsafe fn gradient(
    shape: &MembershipShape,
    inputs: &MembershipInputs,
    uses: &MembershipUses,
    to: &MembershipGradients,
    scratch: &mut [f32],
) {
    let MembershipShape { slices, channels, .. } = *shape;
    let columns = channels + 1;
    for_each_part(shape, inputs, columns, scratch, |mut task| {
        task.for_each_strip(|task, head, points| {
            // SAFETY: the caller's promise; parts are disjoint.
            unsafe {
                if let (Some([_, cotangent]), Some(values)) = (uses.collection, to.values) {
                    task.spread_strip(head, points.clone(), cotangent, values);
                }
                task.make_cotangents(head, points.clone(), uses);
                differentiate(&mut task.cotangents[..points.len() * slices], task.weights, slices);
                let keys = Source { pointer: inputs.keys.at([head, 0, 0]), strides: last_two(inputs.keys.strides) };
                let queries = to.queries.at([task.entry, points.start, head, 0]);
                let queries = Target { pointer: queries, strides: [to.queries.strides[1], to.queries.strides[3]] };
                gemm([points.len(), slices, channels], matrix(task.cotangents, slices).source, keys, queries);
                task.load_with_ones(inputs.queries, head, points.clone(), channels);
            }
            let left = matrix(task.cotangents, slices).transposed();
            task.add_product(head, [slices, points.len(), columns], left);
        });
    });
    let sums = total(scratch, shape.heads * slices * columns, [0, shape.batch * parts(shape)]);
    for (row, sums) in sums.chunks_exact(slices).enumerate() {
        let (head, column) = (row / columns, row % columns);
        for (slice, sum) in sums.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                match column == channels {
                    true => *to.offsets.at([head, slice]) = *sum,
                    false => *to.keys.at([head, slice, column]) = *sum,
                }
            }
        }
    }
}

impl Task<'_> {
    /// Calls `body(task, head, points)` with the weights of every strip.
    fn for_each_strip(&mut self, body: impl Fn(&mut Self, usize, std::ops::Range<usize>)) {
        let shape = self.shape;
        for first in self.points.clone().step_by(STRIP) {
            let points = first..self.points.end.min(first + STRIP);
            for head in 0..shape.heads {
                // SAFETY: the views hold the shape's extents.
                unsafe { self.make_weights(head, points.clone()) };
                body(self, head, points.clone());
            }
        }
    }

    /// # Safety
    /// The inputs hold the extents of the shape.
    unsafe fn make_weights(&mut self, head: usize, points: std::ops::Range<usize>) {
        let MembershipShape { slices, channels, .. } = *self.shape;
        let MembershipInputs { queries, keys, offsets } = self.inputs;
        // SAFETY: the caller's promise; the weights are this task's own.
        unsafe {
            let left = Source {
                pointer: queries.at([self.entry, points.start, head, 0]),
                strides: [queries.strides[1], queries.strides[3]],
            };
            let right = Source { pointer: keys.at([head, 0, 0]), strides: [keys.strides[2], keys.strides[1]] };
            let to = Target { pointer: self.weights.as_mut_ptr(), strides: [slices as isize, 1] };
            gemm([points.len(), channels, slices], left, right, to);
            for (slice, offset) in self.small[..slices].iter_mut().enumerate() {
                *offset = *offsets.at([head, slice]);
            }
        }
        soften(&mut self.weights[..points.len() * slices], &self.small[..slices]);
    }

    /// Rows of `to` from the weights: Σ_m w_{nm} t_m.
    ///
    /// # Safety
    /// The arrays hold the extents of the shape, and the points of `to` belong to this task.
    unsafe fn spread_strip(&self, head: usize, points: std::ops::Range<usize>, tokens: Source<4>, to: Target<4>) {
        let MembershipShape { slices, width, .. } = *self.shape;
        // SAFETY: the caller's promise.
        unsafe {
            let right = Source { pointer: tokens.at([self.entry, head, 0, 0]), strides: last_two(tokens.strides) };
            let pointer = to.at([self.entry, points.start, head, 0]);
            let result = Target { pointer, strides: [to.strides[1], to.strides[3]] };
            gemm([points.len(), slices, width], matrix(self.weights, slices).source, right, result);
        }
    }

    /// ∂w_{nm}, the sum of p_n·t_m + s_m over the uses.
    ///
    /// # Safety
    /// The arrays hold the extents of the shape.
    unsafe fn make_cotangents(&mut self, head: usize, points: std::ops::Range<usize>, uses: &MembershipUses) {
        let (MembershipShape { slices, width, .. }, entry) = (*self.shape, self.entry);
        let rows = |to: &mut [f32]| Target { pointer: to.as_mut_ptr(), strides: [slices as isize, 1] };
        // SAFETY: the caller's promise; the targets are this task's own memory.
        unsafe {
            let columns = |tokens: Source<4>| {
                let [slice, channel] = last_two(tokens.strides);
                Source { pointer: tokens.at([entry, head, 0, 0]), strides: [channel, slice] }
            };
            if let Some([values, cotangent]) = uses.collection {
                self.load_with_ones(values, head, points.clone(), width);
                let left = matrix(self.with_ones, width + 1).source;
                gemm([points.len(), width + 1, slices], left, columns(cotangent), rows(self.cotangents));
            }
            if let Some([cotangent, tokens]) = uses.spread {
                let left = Source {
                    pointer: cotangent.at([entry, points.start, head, 0]),
                    strides: [cotangent.strides[1], cotangent.strides[3]],
                };
                let to = if uses.collection.is_some() { &mut *self.more_cotangents } else { &mut *self.cotangents };
                gemm([points.len(), width, slices], left, columns(tokens), rows(to));
            }
        }
        if uses.collection.is_some() && uses.spread.is_some() {
            let sums = &mut self.cotangents[..points.len() * slices];
            sums.iter_mut().zip(&*self.more_cotangents).for_each(|(sum, next)| *sum += next);
        }
    }

    /// `[points, width + 1]`: rows of `from`, each followed by a one.
    ///
    /// # Safety
    /// `from` holds `[batch, points, heads, width]`.
    unsafe fn load_with_ones(&mut self, from: Source<4>, head: usize, points: std::ops::Range<usize>, width: usize) {
        for (row, point) in self.with_ones.chunks_exact_mut(width + 1).zip(points) {
            for (p, value) in row[..width].iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *value = unsafe { *from.at([self.entry, point, head, p]) };
            }
            row[width] = 1.0;
        }
    }

    /// Adds left × [points | ones] to the head's sums; extents are `[slices, points, columns]`.
    fn add_product(&mut self, head: usize, extents: [usize; 3], left: Source<2>) {
        let [slices, _, columns] = extents;
        // Slices are contiguous: there are more of them than columns, so that they fill the registers.
        let to = Target { pointer: self.small.as_mut_ptr(), strides: [1, slices as isize] };
        // SAFETY: all three are this task's own memory.
        unsafe { gemm(extents, left, matrix(self.with_ones, columns).source, to) };
        let sums = &mut self.sums[head * slices * columns..][..slices * columns];
        sums.iter_mut().zip(&*self.small).for_each(|(sum, next)| *sum += next);
    }
}

/// A row-major matrix in a task's memory.
struct Matrix {
    source: Source<2>,
}

fn matrix(values: &[f32], columns: usize) -> Matrix {
    Matrix { source: Source { pointer: values.as_ptr(), strides: [columns as isize, 1] } }
}

impl Matrix {
    fn transposed(self) -> Source<2> {
        let [row, column] = self.source.strides;
        Source { strides: [column, row], ..self.source }
    }
}

fn last_two<const RANK: usize>(strides: [isize; RANK]) -> [isize; 2] {
    [strides[RANK - 2], strides[RANK - 1]]
}

vectorised! {
    /// Rows of `weights` become softmax(row + offsets).
    fn soften(weights: &mut [f32], offsets: &[f32]) = soften_body;
}

#[inline(always)]
fn soften_body<U: Unit>(weights: &mut [f32], offsets: &[f32]) {
    for row in weights.chunks_exact_mut(offsets.len()) {
        row.iter_mut().zip(offsets).for_each(|(weight, offset)| *weight += offset);
        let largest = U::max(row);
        row.iter_mut().for_each(|weight| *weight = math::exp::<U>(*weight - largest));
        let scale = 1.0 / U::sum(row);
        row.iter_mut().for_each(|weight| *weight *= scale);
    }
}

vectorised! {
    /// Rows of ∂w become ∂ℓ = w (∂w − Σ w ∂w).
    fn differentiate(cotangents: &mut [f32], weights: &[f32], slices: usize) = differentiate_body;
}

#[inline(always)]
fn differentiate_body<U: Unit>(cotangents: &mut [f32], weights: &[f32], slices: usize) {
    for (row, weights) in cotangents.chunks_exact_mut(slices).zip(weights.chunks_exact(slices)) {
        let mean = U::dot(row, weights);
        row.iter_mut().zip(weights).for_each(|(value, weight)| *value = weight * (*value - mean));
    }
}
