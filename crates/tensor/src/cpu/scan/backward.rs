//! The adjoint, from the last chunk to the first. With h₀ at a chunk's start and the adjoint dh_T at its end:
//!
//! dC_t = d(t, start) h₀ᵀ dy_t + Σ_{s ≤ t} M_ts B_s,      M_ts = d(t, s) g_s (dy_t · x_s),
//! dB_s = d(T, s) g_s dh_Tᵀ x_s + Σ_{t ≥ s} M_ts C_t,
//! du_s = d(T, s) dh_T B_s + Σ_{t ≥ s} d(t, s) (C_t · B_s) dy_t,      dx = g du,  dg = x · du,
//! dh₀ = d(T, start) dh_T + Σ_t d(t, start) dy_t ⊗ C_t,
//! dℓ_τ = Σ over every path that crosses step τ: h₀ → h_T, h₀ → y_t (t ≥ τ), x_s → h_T (s < τ), x_s → y_t (s < τ ≤ t).
//!
//! No terms are subtracted, so no digits cancel. The states at the starts of chunks are recomputed first and stored in the
//! workspace. State and adjoint are `[channels, states]`, lanes along the states.

use super::block::{CHUNK, Lanes, Left, ROWS, Right, Square, ZERO};
use super::block::{accumulate, advance, by_columns, each, floats, lanes, load, product, row_sums, scale_rows, store};
use super::block::{transpose_tall, transpose_wide, unrolled};
use super::rows::{Decay, Rows, as_source, exponentials, gather_steps, prefetch_rows, scatter_steps};
use super::{Run, ScanGradients, ScanInputs, ScanShape, take};
use crate::cpu::memory::{Source, Target};
use crate::cpu::simd::{Unit, vectorised};

/// Most lanes of stored states, 8 MiB: longer sequences are divided into segments, which costs a second recomputation.
/// (Segments that fit the second-level cache gain less than that costs. Tests use short segments.)
const SEGMENT: usize = if cfg!(test) { 1 << 8 } else { 1 << 17 };

/// One direction of some heads of one batch entry that share a group.
#[derive(Clone, Copy)]
pub(super) struct BackwardTask<'a> {
    pub(super) shape: ScanShape,
    /// This direction's order.
    pub(super) order: &'a [u32],
    pub(super) inputs: &'a ScanInputs,
    pub(super) batch: usize,
    pub(super) run: Run,
    pub(super) output_gradient: Source<4>,
    pub(super) final_gradient: Option<Source<4>>,
    pub(super) gradients: ScanGradients,
}

vectorised! {
    /// The task's promises are those of [`super::backward()`].
    pub(super) fn scan_adjoint(task: &BackwardTask<'_>, workspace: &mut [Lanes]) = scan_adjoint_body;
}

/// Memory outside the workspace that a chunk of a head reads or writes.
#[derive(Clone, Copy)]
enum Part {
    Signal,
    OutputGradient,
    SignalGradient,
    Write,
    Group,
    GroupGradient,
}

/// Packed operands of one chunk, shared by the heads of a run.
struct Group<'a> {
    /// `[16, states]` B, C and their gradients
    write: &'a mut [Lanes],
    read: &'a mut [Lanes],
    write_gradient: &'a mut [Lanes],
    read_gradient: &'a mut [Lanes],
    /// `[states, 16]` Bᵀ
    write_transposed: &'a mut [Lanes],
    /// C_t · B_s in row t, lane s
    overlap: Square,
    /// Σ over heads of M_ts
    mixing: Square,
}

/// Packed operands of one chunk of one head.
struct Head<'a> {
    /// `[16, channels]` x, d(T, s) g_s x_s, dy, d(t, start) dy_t
    signal: &'a mut [Lanes],
    weighted_signal: &'a mut [Lanes],
    output_gradient: &'a mut [Lanes],
    weighted_gradient: &'a mut [Lanes],
    /// `[channels, 16]` xᵀ and dxᵀ
    signal_transposed: &'a mut [Lanes],
    gradient_transposed: &'a mut [Lanes],
}

/// Contributions of one chunk of one head to dg and dℓ, lanes or rows along the steps.
struct Paths {
    /// Σ of lanes: <h₀, dh_T> d(T, start)
    through: Lanes,
    /// Σ of row t: the part of dy_t · y_t that comes from h₀
    from_start: Square,
    /// Lane s: the part of u_s · du_s that goes to h_T
    to_end: Lanes,
    /// M_ts (C_t · B_s)
    within: Square,
}

impl BackwardTask<'_> {
    fn state_size(&self) -> usize {
        lanes(self.shape.channels) * CHUNK * lanes(self.shape.states)
    }

    /// Chunks per segment, and segments.
    fn segments(&self) -> (usize, usize) {
        let chunks = self.shape.tokens.div_ceil(CHUNK);
        let length = (SEGMENT / (self.run.heads * self.state_size())).clamp(1, chunks);
        (length, chunks.div_ceil(length))
    }

    /// Lanes of workspace the task needs.
    pub(super) fn workspace(&self) -> usize {
        let (length, segments) = self.segments();
        let heads = self.run.heads;
        (segments + length) * heads * self.state_size()
            + 2 * length * segments * heads
            + 5 * CHUNK * lanes(self.shape.states)
            + 6 * CHUNK * lanes(self.shape.channels)
    }

    /// Prefetches one part of the memory that head `index` needs in its next chunk. Each product prefetches one part: the
    /// requests then overlap with arithmetic instead of waiting for each other.
    #[inline(always)]
    fn prefetch(&self, part: Part, tokens: &[u32], index: usize) {
        let (shape, head, group) = (&self.shape, self.run.head + index, self.run.group);
        let share = |part: usize| tokens.len() * part / self.run.heads;
        let shared = &tokens[share(index)..share(index + 1)];
        // SAFETY: the order holds tokens of the shape, the run heads of it.
        unsafe {
            match part {
                Part::Signal => prefetch_rows(&self.inputs.signal, self.batch, head, shape.channels, tokens),
                Part::OutputGradient => prefetch_rows(&self.output_gradient, self.batch, head, shape.channels, tokens),
                Part::SignalGradient => {
                    prefetch_rows(&as_source(self.gradients.signal), self.batch, head, shape.channels, tokens);
                }
                Part::Write => prefetch_rows(&self.inputs.write, self.batch, group, shape.states, shared),
                Part::Group => {
                    prefetch_rows(&self.inputs.write, self.batch, group, shape.states, shared);
                    prefetch_rows(&self.inputs.read, self.batch, group, shape.states, shared);
                }
                Part::GroupGradient => {
                    prefetch_rows(&as_source(self.gradients.write), self.batch, group, shape.states, shared);
                    prefetch_rows(&as_source(self.gradients.read), self.batch, group, shape.states, shared);
                }
            }
        }
    }

    /// The tokens of a chunk; empty for a chunk beyond either end.
    fn tokens_of(&self, chunk: usize) -> &[u32] {
        let start = chunk.saturating_mul(CHUNK).min(self.order.len());
        &self.order[start..self.order.len().min(start + CHUNK)]
    }

    fn scan_head(&self, index: usize) -> usize {
        self.run.direction * self.shape.heads + self.run.head + index
    }
}

/// A task's memory, all heads of the run side by side.
struct Workspace<'a> {
    /// The states at the start of every segment
    checkpoints: &'a mut [Lanes],
    /// The states at the start of every chunk of one segment but the first
    states: &'a mut [Lanes],
    adjoints: &'a mut [Lanes],
    /// exp(ℓ) and g of every chunk and head
    steps: &'a mut [Lanes],
    group: Group<'a>,
    head: Head<'a>,
}

impl<'a> Workspace<'a> {
    fn new(task: &BackwardTask<'_>, mut memory: &'a mut [Lanes]) -> Self {
        let (width, depth) = (CHUNK * lanes(task.shape.channels), CHUNK * lanes(task.shape.states));
        let (heads, size) = (task.run.heads, task.run.heads * task.state_size());
        let (length, segments) = task.segments();
        let rest = &mut memory;
        Self {
            checkpoints: take(rest, segments * size),
            states: take(rest, (length - 1) * size),
            adjoints: take(rest, size),
            steps: take(rest, 2 * length * segments * heads),
            group: Group {
                write: take(rest, depth),
                read: take(rest, depth),
                write_gradient: take(rest, depth),
                read_gradient: take(rest, depth),
                write_transposed: take(rest, depth),
                overlap: [ZERO; CHUNK],
                mixing: [ZERO; CHUNK],
            },
            head: Head {
                signal: take(rest, width),
                weighted_signal: take(rest, width),
                output_gradient: take(rest, width),
                weighted_gradient: take(rest, width),
                signal_transposed: take(rest, width),
                gradient_transposed: take(rest, width),
            },
        }
    }
}

#[inline(always)]
fn scan_adjoint_body<U: Unit>(task: &BackwardTask<'_>, memory: &mut [Lanes]) {
    let size = task.run.heads * task.state_size();
    let (length, segments) = task.segments();
    let Workspace { checkpoints, states, adjoints, steps, mut group, mut head } = Workspace::new(task, memory);
    load_steps::<U>(task, steps);
    load_states(task, task.inputs.initial, &mut checkpoints[..size]);
    for chunk in 0..(segments - 1) * length {
        let (past, next) = checkpoints.split_at_mut((chunk / length + 1) * size);
        let source = chunk.is_multiple_of(length).then_some(&past[past.len() - size..]);
        advance_chunk(task, chunk, steps, &mut group, &mut head, source, &mut next[..size]);
    }
    load_states(task, task.final_gradient, adjoints);
    for segment in (0..segments).rev() {
        let (first, start) = (segment * length, &checkpoints[segment * size..][..size]);
        let end = task.shape.tokens.div_ceil(CHUNK).min(first + length);
        for chunk in first..end - 1 {
            let (past, next) = states.split_at_mut((chunk - first) * size);
            let source = if past.is_empty() { start } else { &past[past.len() - size..] };
            advance_chunk(task, chunk, steps, &mut group, &mut head, Some(source), &mut next[..size]);
        }
        for chunk in (first..end).rev() {
            let state = if chunk == first { start } else { &states[(chunk - first - 1) * size..][..size] };
            chunk_adjoint::<U>(task, chunk, steps, &mut group, &mut head, state, adjoints);
        }
    }
    store_adjoints(task, adjoints);
}

/// exp(ℓ) and g of every chunk and head.
#[inline(always)]
fn load_steps<U: Unit>(task: &BackwardTask<'_>, steps: &mut [Lanes]) {
    let places = steps.chunks_exact_mut(2 * task.run.heads);
    for (tokens, steps) in task.order.chunks(CHUNK).zip(places) {
        for index in 0..task.run.heads {
            // SAFETY: the order holds tokens of the shape, the run heads of it.
            unsafe {
                let log_decay = gather_steps(&task.inputs.log_decay, task.batch, tokens, task.scan_head(index));
                steps[2 * index] = exponentials::<U>(log_decay);
                steps[2 * index + 1] = gather_steps(&task.inputs.gain, task.batch, tokens, task.scan_head(index));
            }
        }
    }
}

/// The states of all heads at the end of a chunk from those at its start (`source`, or `states` itself).
#[inline(always)]
fn advance_chunk(
    task: &BackwardTask<'_>,
    chunk: usize,
    steps: &[Lanes],
    group: &mut Group<'_>,
    head: &mut Head<'_>,
    source: Option<&[Lanes]>,
    states: &mut [Lanes],
) {
    let (shape, inputs, size) = (&task.shape, task.inputs, task.state_size());
    let tokens = task.tokens_of(chunk);
    let indices = || tokens.iter().map(|token| *token as usize);
    // SAFETY: the order holds tokens of the shape.
    unsafe {
        Rows::<*const f32>::of(&inputs.write, task.batch, task.run.group, shape.states).gather(indices(), group.write);
    }
    for (index, state) in states.chunks_exact_mut(size).enumerate() {
        task.prefetch(Part::Signal, task.tokens_of(chunk + 1), index);
        task.prefetch(Part::Write, task.tokens_of(chunk + 1), index);
        // SAFETY: the order holds tokens of the shape, the run heads of it.
        unsafe {
            Rows::<*const f32>::of(&inputs.signal, task.batch, task.run.head + index, shape.channels)
                .gather(indices(), head.signal);
        }
        let slot = chunk * task.run.heads + index;
        let (decay, gain) = (Decay::new(steps[2 * slot]), steps[2 * slot + 1]);
        scale_rows(head.signal, decay.until_end().times(gain), head.weighted_signal);
        let left = Left { floats: floats(head.weighted_signal), row: 1, depth: lanes(shape.channels) * CHUNK };
        let right = Right { lanes: group.write, stride: lanes(shape.states) };
        let source = source.map(|source| &source[index * size..][..size]);
        advance(state, source, decay.whole(), left, right);
    }
}

/// The adjoints of all heads at the start of a chunk from those at its end, and the chunk's gradients.
#[inline(always)]
fn chunk_adjoint<U: Unit>(
    task: &BackwardTask<'_>,
    chunk: usize,
    steps: &[Lanes],
    group: &mut Group<'_>,
    head: &mut Head<'_>,
    states: &[Lanes],
    adjoints: &mut [Lanes],
) {
    let size = task.state_size();
    let tokens = task.tokens_of(chunk);
    let steps = &steps[2 * chunk * task.run.heads..];
    group.load(task, tokens);
    for (index, adjoint) in adjoints.chunks_exact_mut(size).enumerate() {
        let state = &states[index * size..][..size];
        head.adjoint::<U>(task, chunk, index, [steps[2 * index], steps[2 * index + 1]], group, state, adjoint);
    }
    group.store(task, tokens);
}

impl Group<'_> {
    #[inline(always)]
    fn load(&mut self, task: &BackwardTask<'_>, tokens: &[u32]) {
        let (states, group) = (task.shape.states, task.run.group);
        let indices = || tokens.iter().map(|token| *token as usize);
        // SAFETY: the order holds tokens of the shape.
        unsafe {
            Rows::<*const f32>::of(&task.inputs.write, task.batch, group, states).gather(indices(), self.write);
            Rows::<*const f32>::of(&task.inputs.read, task.batch, group, states).gather(indices(), self.read);
        }
        transpose_wide(self.write, self.write_transposed);
        let left = Left { floats: floats(self.read), row: lanes(states) * CHUNK, depth: 1 };
        product(&mut self.overlap, false, CHUNK, states, left, Right { lanes: self.write_transposed, stride: 1 });
        self.mixing = [ZERO; CHUNK];
    }

    /// Adds the pairs within the chunk, Σ_s M_ts B_s and Σ_t M_ts C_t, and writes dB and dC.
    #[inline(always)]
    fn store(&mut self, task: &BackwardTask<'_>, tokens: &[u32]) {
        let (states, group) = (task.shape.states, task.run.group);
        let stride = lanes(states);
        let indices = || tokens.iter().map(|token| *token as usize);
        let by_read = Left { floats: floats(&self.mixing), row: CHUNK, depth: 1 };
        let by_write = Left { floats: floats(&self.mixing), row: 1, depth: CHUNK };
        let (write, read) = (Right { lanes: self.write, stride }, Right { lanes: self.read, stride });
        product(self.read_gradient, true, CHUNK, CHUNK, by_read, write);
        product(self.write_gradient, true, CHUNK, CHUNK, by_write, read);
        // SAFETY: the order holds tokens of the shape, and this task alone writes this view of its group.
        unsafe {
            Rows::<*mut f32>::of(&task.gradients.write, task.batch, group, states).scatter(
                indices(),
                self.write_gradient,
                false,
            );
            Rows::<*mut f32>::of(&task.gradients.read, task.batch, group, states).scatter(
                indices(),
                self.read_gradient,
                false,
            );
        }
    }
}

impl Head<'_> {
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // the operands of one kernel
    fn adjoint<U: Unit>(
        &mut self,
        task: &BackwardTask<'_>,
        chunk: usize,
        index: usize,
        [step, gain]: [Lanes; 2],
        group: &mut Group<'_>,
        state: &[Lanes],
        adjoint: &mut [Lanes],
    ) {
        let (shape, channels) = (&task.shape, task.shape.channels);
        let (width, depth) = (lanes(channels) * CHUNK, lanes(shape.states));
        let (tokens, next) = (task.tokens_of(chunk), task.tokens_of(chunk.wrapping_sub(1)));
        let decay = Decay::new(step);
        self.load(task, tokens, task.run.head + index, &decay, gain);
        let mut paths = Paths { through: ZERO, from_start: [ZERO; CHUNK], to_end: ZERO, within: [ZERO; CHUNK] };

        let left = Left { floats: floats(self.weighted_gradient), row: width, depth: 1 };
        let right = Right { lanes: state, stride: depth };
        task.prefetch(Part::Signal, next, index);
        project_back(group.read_gradient, index > 0, &mut paths.from_start, group.read, channels, left, right);
        let left = Left { floats: floats(self.weighted_signal), row: width, depth: 1 };
        let right = Right { lanes: adjoint, stride: depth };
        task.prefetch(Part::OutputGradient, next, index);
        product(group.write_gradient, index > 0, CHUNK, channels, left, right);

        task.prefetch(Part::Group, next, index);
        self.pairs(group, &mut paths.within, channels, &decay, gain);
        task.prefetch(Part::SignalGradient, next, index);
        let gain_gradient = self.signal_gradient::<U>(group, &mut paths.to_end, shape.states, &decay, gain, adjoint);
        paths.through = inner::<U>(state, adjoint).times(Lanes::splat(decay.whole()));
        let left = Left { floats: floats(self.weighted_gradient), row: 1, depth: width };
        task.prefetch(Part::GroupGradient, next, index);
        advance(adjoint, None, decay.whole(), left, Right { lanes: group.read, stride: depth });
        self.store(task, tokens, index, gain_gradient, paths.log_decay_gradient());
    }

    #[inline(always)]
    fn load(&mut self, task: &BackwardTask<'_>, tokens: &[u32], head: usize, decay: &Decay, gain: Lanes) {
        let channels = task.shape.channels;
        let indices = || tokens.iter().map(|token| *token as usize);
        // SAFETY: the order holds tokens of the shape, the run heads of it.
        unsafe {
            Rows::<*const f32>::of(&task.inputs.signal, task.batch, head, channels).gather(indices(), self.signal);
            Rows::<*const f32>::of(&task.output_gradient, task.batch, head, channels)
                .gather(indices(), self.output_gradient);
        }
        scale_rows(self.signal, decay.until_end().times(gain), self.weighted_signal);
        scale_rows(self.output_gradient, decay.since_start, self.weighted_gradient);
        transpose_wide(self.signal, self.signal_transposed);
    }

    /// M_ts = d(t, s) g_s (dy_t · x_s), added to the sum of the group, and M_ts (C_t · B_s).
    #[inline(always)]
    fn pairs(&self, group: &mut Group<'_>, within: &mut Square, channels: usize, decay: &Decay, gain: Lanes) {
        let left = Left { floats: floats(self.output_gradient), row: lanes(channels) * CHUNK, depth: 1 };
        let right = Right { lanes: self.signal_transposed, stride: 1 };
        product(within, false, CHUNK, channels, left, right);
        unrolled!(CHUNK, t => {
            let mixing = within[t].times(decay.between[t]).times(gain);
            group.mixing[t] = group.mixing[t].plus(mixing);
            within[t] = mixing.times(group.overlap[t]);
        });
    }

    /// dxᵀ into `gradient_transposed`, u_s · du_s towards h_T into `to_end`; returns dg.
    #[inline(always)]
    fn signal_gradient<U: Unit>(
        &mut self,
        group: &Group<'_>,
        to_end: &mut Lanes,
        states: usize,
        decay: &Decay,
        gain: Lanes,
        adjoint: &[Lanes],
    ) -> Lanes {
        let mut within = group.overlap;
        unrolled!(CHUNK, t => within[t] = within[t].times(decay.between[t]));
        let channels = self.signal_transposed.len();
        let after = Left { floats: floats(adjoint), row: lanes(states) * CHUNK, depth: 1 };
        let inside = Left { floats: floats(self.output_gradient), row: 1, depth: channels };
        let gradient = &mut *self.gradient_transposed;
        product(gradient, false, channels, states, after, Right { lanes: group.write_transposed, stride: 1 });
        for (gradient, signal) in gradient.iter_mut().zip(&*self.signal_transposed) {
            *gradient = gradient.times(decay.until_end());
            *to_end = gradient.times_plus::<U>(*signal, *to_end);
        }
        product(gradient, true, channels, CHUNK, inside, Right { lanes: &within, stride: 1 });
        let mut gain_gradient = ZERO;
        for (gradient, signal) in gradient.iter_mut().zip(&*self.signal_transposed) {
            gain_gradient = gradient.times_plus::<U>(*signal, gain_gradient);
            *gradient = gradient.times(gain);
        }
        *to_end = to_end.times(gain);
        gain_gradient
    }

    #[inline(always)]
    fn store(&mut self, task: &BackwardTask<'_>, tokens: &[u32], index: usize, gain: Lanes, log_decay: Lanes) {
        let indices = tokens.iter().map(|token| *token as usize);
        transpose_tall(self.gradient_transposed, self.signal);
        // SAFETY: the order holds tokens of the shape, and this task alone writes these heads of this view.
        unsafe {
            Rows::<*mut f32>::of(&task.gradients.signal, task.batch, task.run.head + index, task.shape.channels)
                .scatter(indices, self.signal, false);
            scatter_steps(&task.gradients.gain, task.batch, tokens, task.scan_head(index), gain);
            scatter_steps(&task.gradients.log_decay, task.batch, tokens, task.scan_head(index), log_decay);
        }
    }
}

impl Paths {
    /// dℓ_τ: row τ collects every path across step τ; the rows are summed at the end.
    #[inline(always)]
    fn log_decay_gradient(&self) -> Lanes {
        let mut crossing = [ZERO; CHUNK];
        let mut from_start = self.through;
        let mut to_later = self.to_end;
        unrolled!(CHUNK, back => {
            let step = CHUNK - 1 - back;
            from_start = from_start.plus(self.from_start[step]);
            to_later = to_later.plus(self.within[step]);
            crossing[step] = from_start.plus(to_later.before(step));
        });
        row_sums(&crossing)
    }
}

vectorised! {
    /// dC_t = d(t, start) h₀ᵀ dy_t, or += if `add`. `overlap` gets its products with C_t; their sum over lanes is dy_t · y_t.
    #[inline(never)]
    fn project_back(
        target: &mut [Lanes],
        add: bool,
        overlap: &mut [Lanes],
        read: &[Lanes],
        channels: usize,
        left: Left<'_>,
        right: Right<'_>,
    ) = project_back_body;
}

#[inline(always)]
fn project_back_body<U: Unit>(
    target: &mut [Lanes],
    add: bool,
    overlap: &mut [Lanes],
    read: &[Lanes],
    channels: usize,
    left: Left<'_>,
    right: Right<'_>,
) {
    by_columns!(right.stride, column => project_columns::<U>(target, add, overlap, read, channels, left, right, column));
}

#[inline(always)]
#[allow(clippy::too_many_arguments)] // the operands of one kernel
fn project_columns<U: Unit, const WIDTH: usize>(
    target: &mut [Lanes],
    add: bool,
    overlap: &mut [Lanes],
    read: &[Lanes],
    channels: usize,
    left: Left<'_>,
    right: Right<'_>,
    column: usize,
) {
    for first in [0, ROWS] {
        let start = first * right.stride + column;
        let sum = accumulate::<U, WIDTH>([[ZERO; WIDTH]; ROWS], channels, left.from(first), right.from(column));
        let read: [[Lanes; WIDTH]; ROWS] = load(read, start, right.stride);
        each(sum, |row, column, lanes| {
            overlap[first + row] = lanes.times_plus::<U>(read[row][column], overlap[first + row]);
            lanes
        });
        let before: [[Lanes; WIDTH]; ROWS] =
            if add { load(target, start, right.stride) } else { [[ZERO; WIDTH]; ROWS] };
        let sum = each(sum, |row, column, lanes| lanes.plus(before[row][column]));
        store(sum, target, start, right.stride);
    }
}

/// <a, b> without the sum over lanes, which the caller does.
#[inline(always)]
fn inner<U: Unit>(a: &[Lanes], b: &[Lanes]) -> Lanes {
    let mut sums = [ZERO; 4];
    for (a, b) in a.chunks_exact(4).zip(b.chunks_exact(4)) {
        unrolled!(4, part => sums[part] = a[part].times_plus::<U>(b[part], sums[part]));
    }
    sums[0].plus(sums[1]).plus(sums[2].plus(sums[3]))
}

/// h₀ or dh_T of every head of the run, `[channels, states]`; zero if absent.
#[inline(always)]
fn load_states(task: &BackwardTask<'_>, source: Option<Source<4>>, states: &mut [Lanes]) {
    let shape = &task.shape;
    let Some(source) = source else { return states.fill(ZERO) };
    for (index, state) in states.chunks_exact_mut(task.state_size()).enumerate() {
        let [_, _, outer, inner] = source.strides;
        // SAFETY: the view holds this head's channels and states.
        unsafe {
            let pointer = source.at([task.batch, task.scan_head(index), 0, 0]);
            Rows { pointer, outer, inner, width: shape.states }.gather(0..shape.channels, state);
        }
    }
}

#[inline(always)]
fn store_adjoints(task: &BackwardTask<'_>, adjoints: &[Lanes]) {
    let shape = &task.shape;
    let Some(target): Option<Target<4>> = task.gradients.initial else { return };
    for (index, adjoint) in adjoints.chunks_exact(task.state_size()).enumerate() {
        let [_, _, outer, inner] = target.strides;
        // SAFETY: the view holds this head's channels and states, and this task alone writes them.
        unsafe {
            let pointer = target.at([task.batch, task.scan_head(index), 0, 0]);
            Rows { pointer, outer, inner, width: shape.states }.scatter(0..shape.channels, adjoint, false);
        }
    }
}
