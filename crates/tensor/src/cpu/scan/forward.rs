//! y_t = d(t, start) C_t · h₀ + Σ_{s ≤ t} d(t, s) (C_t · B_s) g_s x_s and h_T = d(T, start) h₀ + Σ_s d(T, s) g_s x_s ⊗ B_s,
//! chunk by chunk. The state of a head is `[states, channels]`, lanes along the channels.

use super::block::{CHUNK, Lanes, Left, ROWS, Right, Square, ZERO};
use super::block::{
    accumulate, advance, by_columns, each, floats, lanes, product, scale_rows, store, transpose_wide, unrolled,
};
use super::rows::{Decay, Rows, as_source, exponentials, gather_steps, prefetch_rows};
use super::{Run, ScanInputs, ScanShape, take};
use crate::cpu::memory::Target;
use crate::cpu::simd::{Unit, vectorised};

/// One direction of some heads of one batch entry that share a group.
#[derive(Clone, Copy)]
pub(super) struct ForwardTask<'a> {
    pub(super) shape: ScanShape,
    pub(super) order: &'a [u32],
    pub(super) inputs: &'a ScanInputs,
    pub(super) batch: usize,
    pub(super) run: Run,
    pub(super) output: Target<4>,
    /// Whether an earlier direction has already written `output`.
    pub(super) add: bool,
    pub(super) final_state: Option<Target<4>>,
}

vectorised! {
    /// The task's promises are those of [`super::forward()`].
    pub(super) fn scan(task: &ForwardTask<'_>, workspace: &mut [Lanes]) = scan_body;
}

/// Packed operands of one chunk, shared by the heads of a run.
struct Group<'a> {
    /// `[16, states]` C
    read: &'a mut [Lanes],
    /// `[16, states]` B
    write: &'a mut [Lanes],
    /// `[states, 16]` Bᵀ
    write_transposed: &'a mut [Lanes],
    /// C_t · B_s in row t, lane s
    overlap: Square,
}

/// Packed operands of one chunk of one head, `[16, channels]` each.
struct Head<'a> {
    signal: &'a mut [Lanes],
    weighted: &'a mut [Lanes],
    output: &'a mut [Lanes],
}

impl ForwardTask<'_> {
    /// Lanes of workspace the task needs.
    pub(super) fn workspace(&self) -> usize {
        let (width, depth) = (lanes(self.shape.channels), lanes(self.shape.states));
        self.run.heads * depth * CHUNK * width + 3 * depth * CHUNK + 3 * width * CHUNK
    }
}

#[inline(always)]
fn scan_body<U: Unit>(task: &ForwardTask<'_>, mut workspace: &mut [Lanes]) {
    let (width, depth) = (lanes(task.shape.channels), lanes(task.shape.states));
    let state_size = depth * CHUNK * width;
    let rest = &mut workspace;
    let states = take(rest, task.run.heads * state_size);
    let mut group = Group {
        read: take(rest, depth * CHUNK),
        write: take(rest, depth * CHUNK),
        write_transposed: take(rest, depth * CHUNK),
        overlap: [ZERO; CHUNK],
    };
    let mut head = Head {
        signal: take(rest, width * CHUNK),
        weighted: take(rest, width * CHUNK),
        output: take(rest, width * CHUNK),
    };
    load_states(task, states);
    for (chunk, tokens) in task.order.chunks(CHUNK).enumerate() {
        group.load(task, tokens);
        let later = task.order.get((chunk + 1) * CHUNK..).unwrap_or_default();
        let later = &later[..later.len().min(CHUNK)];
        for (index, state) in states.chunks_exact_mut(state_size).enumerate() {
            head.scan_chunk::<U>(task, [tokens, later], index, &group, state);
        }
    }
    store_states(task, states);
}

impl Group<'_> {
    #[inline(always)]
    fn load(&mut self, task: &ForwardTask<'_>, tokens: &[u32]) {
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
    }
}

impl Head<'_> {
    #[inline(always)]
    fn scan_chunk<U: Unit>(
        &mut self,
        task: &ForwardTask<'_>,
        [tokens, next]: [&[u32]; 2],
        index: usize,
        group: &Group<'_>,
        state: &mut [Lanes],
    ) {
        let (shape, inputs, head) = (&task.shape, task.inputs, task.run.head + index);
        let scan_head = task.run.direction * shape.heads + head;
        let indices = || tokens.iter().map(|token| *token as usize);
        // SAFETY: the order holds tokens of the shape, the run heads of it.
        let (log_decay, gain) = unsafe {
            Rows::<*const f32>::of(&inputs.signal, task.batch, head, shape.channels).gather(indices(), self.signal);
            (
                gather_steps(&inputs.log_decay, task.batch, tokens, scan_head),
                gather_steps(&inputs.gain, task.batch, tokens, scan_head),
            )
        };
        let decay = Decay::new(exponentials::<U>(log_decay));
        scale_rows(self.signal, decay.until_end().times(gain), self.weighted);
        let mut within = group.overlap;
        unrolled!(CHUNK, t => within[t] = within[t].times(decay.between[t]).times(gain)); // d(t, s) (C_t · B_s) g_s
        let width = lanes(shape.channels);
        let before = Left { floats: floats(group.read), row: lanes(shape.states) * CHUNK, depth: 1 };
        let within = Left { floats: floats(&within), row: CHUNK, depth: 1 };
        let share = |part: usize| next.len() * part / task.run.heads;
        let shared = &next[share(index)..share(index + 1)];
        // SAFETY: as above.
        unsafe {
            prefetch_rows(&inputs.signal, task.batch, head, shape.channels, next);
            prefetch_rows(&inputs.write, task.batch, task.run.group, shape.states, shared);
        }
        read_state(self.output, decay.since_start, shape.states, before, state, within, self.signal);
        let left = Left { floats: floats(group.write_transposed), row: CHUNK, depth: 1 };
        // SAFETY: as above.
        unsafe {
            prefetch_rows(&as_source(task.output), task.batch, head, shape.channels, next);
            prefetch_rows(&inputs.read, task.batch, task.run.group, shape.states, shared);
        }
        advance(state, None, decay.whole(), left, Right { lanes: self.weighted, stride: width });
        // SAFETY: as above, and this task alone writes these heads of this output.
        unsafe {
            Rows::<*mut f32>::of(&task.output, task.batch, head, shape.channels).scatter(
                indices(),
                self.output,
                task.add,
            );
        }
    }
}

vectorised! {
    /// y_t = factor_t Σ_n before[t, n] state[n, :] + Σ_{s ≤ t} within[t, s] signal[s, :], all `[·, channels]`.
    #[inline(never)]
    fn read_state(
        output: &mut [Lanes],
        factor: Lanes,
        states: usize,
        before: Left<'_>,
        state: &[Lanes],
        within: Left<'_>,
        signal: &[Lanes],
    ) = read_state_body;
}

#[inline(always)]
fn read_state_body<U: Unit>(
    output: &mut [Lanes],
    factor: Lanes,
    states: usize,
    before: Left<'_>,
    state: &[Lanes],
    within: Left<'_>,
    signal: &[Lanes],
) {
    let stride = signal.len() / CHUNK;
    let (state, signal) = (Right { lanes: state, stride }, Right { lanes: signal, stride });
    by_columns!(stride, column => read_columns::<U>(output, factor, states, before, state, within, signal, column));
}

#[inline(always)]
#[allow(clippy::too_many_arguments)] // the operands of one kernel
fn read_columns<U: Unit, const WIDTH: usize>(
    output: &mut [Lanes],
    factor: Lanes,
    states: usize,
    before: Left<'_>,
    state: Right<'_>,
    within: Left<'_>,
    signal: Right<'_>,
    column: usize,
) {
    for first in [0, ROWS] {
        let sum = accumulate::<U, WIDTH>([[ZERO; WIDTH]; ROWS], states, before.from(first), state.from(column));
        let sum = each(sum, |row, _, lanes| lanes.times(Lanes::splat(factor.0[first + row])));
        let sum = accumulate::<U, WIDTH>(sum, first + ROWS, within.from(first), signal.from(column));
        store(sum, output, first * signal.stride + column, signal.stride);
    }
}

/// h₀ of every head of the run, `[states, channels]`.
#[inline(always)]
fn load_states(task: &ForwardTask<'_>, states: &mut [Lanes]) {
    let shape = &task.shape;
    let Some(initial) = task.inputs.initial else { return states.fill(ZERO) };
    let size = states.len() / task.run.heads;
    for (index, state) in states.chunks_exact_mut(size).enumerate() {
        let scan_head = task.run.direction * shape.heads + task.run.head + index;
        let [_, _, inner, outer] = initial.strides;
        // SAFETY: the view holds this head's channels and states.
        unsafe {
            let pointer = initial.at([task.batch, scan_head, 0, 0]);
            Rows { pointer, outer, inner, width: shape.channels }.gather(0..shape.states, state);
        }
    }
}

#[inline(always)]
fn store_states(task: &ForwardTask<'_>, states: &[Lanes]) {
    let shape = &task.shape;
    let Some(target) = task.final_state else { return };
    let size = states.len() / task.run.heads;
    for (index, state) in states.chunks_exact(size).enumerate() {
        let scan_head = task.run.direction * shape.heads + task.run.head + index;
        let [_, _, inner, outer] = target.strides;
        // SAFETY: the view holds this head's channels and states, and this task alone writes them.
        unsafe {
            let pointer = target.at([task.batch, scan_head, 0, 0]);
            Rows { pointer, outer, inner, width: shape.channels }.scatter(0..shape.states, state, false);
        }
    }
}
