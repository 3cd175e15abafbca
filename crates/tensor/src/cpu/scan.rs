//! State-space-dual scan along several directions at once (Dao & Gu 2024, Sec. 6; Hydra, Hwang et al. 2024):
//!
//! h_l = exp(ℓ_t) h_{l−1} + g_t x_t ⊗ B_t,  y_t = Σ_k h_l C_t,  t = order_k(l),  h ∈ R^{channels × states}.
//!
//! Scan head q = k·heads + r runs along the order of direction k, reads signal head r and the group
//! ⌊q groups / (directions·heads)⌋ of B and C. The sequence is cut into chunks of sixteen steps, within which every
//! term is a small matrix product (`block`): about 2 multiply-adds per state element and step forwards
//! (`forward`), 5 backwards (`backward`), and the state is read and written once per chunk instead of once per step.
//!
//! A task is one run of heads with the same direction and group. If several tasks contribute to one result, each fills its
//! own copy in `scratch`, and the copies are added in a fixed order. Tasks depend on the shape alone, so the bits do not
//! depend on the number of threads.

use std::cell::RefCell;

use crate::cpu::team::for_each_task;

use crate::cpu::memory::{Source, Target};
use crate::ops::scan::ScanShape;

mod backward;
mod block;
mod forward;
mod rows;
#[cfg(test)]
mod tests;

use backward::BackwardTask;
use block::{Lanes, ZERO};
use forward::ForwardTask;

/// The operands of a scan.
#[derive(Clone, Copy)]
pub(crate) struct ScanInputs {
    /// `[batch, tokens, heads, channels]` x
    pub(crate) signal: Source<4>,
    /// `[batch, tokens, directions·heads]` ℓ
    pub(crate) log_decay: Source<3>,
    /// `[batch, tokens, directions·heads]` g
    pub(crate) gain: Source<3>,
    /// `[batch, tokens, groups, states]` B
    pub(crate) write: Source<4>,
    /// `[batch, tokens, groups, states]` C
    pub(crate) read: Source<4>,
    /// `[batch, directions·heads, channels, states]` h₀, zero where absent
    pub(crate) initial: Option<Source<4>>,
}

/// The gradients of all inputs; each is written completely.
#[derive(Clone, Copy)]
pub(crate) struct ScanGradients {
    pub(crate) signal: Target<4>,
    pub(crate) log_decay: Target<3>,
    pub(crate) gain: Target<3>,
    pub(crate) write: Target<4>,
    pub(crate) read: Target<4>,
    pub(crate) initial: Option<Target<4>>,
}

/// Tasks that suffice to use many cores; with more tasks, heads would share less work.
const TASKS: usize = 8;

/// Most heads of a forward task: with more, sharing C · B gains little, and the output no longer fits the cache.
const HEADS: usize = 4;

/// Tokens of a task that adds copies.
const ROWS: usize = 32;

/// Consecutive heads of one direction that share a group.
#[derive(Clone, Copy, Debug)]
struct Run {
    direction: usize,
    head: usize,
    heads: usize,
    group: usize,
    /// How many runs of the same group come before this one.
    rank: usize,
}

impl ScanShape {
    /// Heads `first` to `end` of one direction as runs.
    fn runs(&self, direction: usize, first: usize, end: usize) -> impl Iterator<Item = Run> {
        let share = self.directions * self.heads / self.groups;
        let mut head = first;
        std::iter::from_fn(move || {
            let scan_head = direction * self.heads + head;
            let heads = (end - head).min(share - scan_head % share);
            let run = Run { direction, head, heads, group: scan_head / share, rank: 0 };
            head += heads;
            (heads > 0).then_some(run)
        })
    }

    /// All runs of at most `most` heads, with their ranks in their groups.
    fn ranked_runs(&self, most: usize) -> impl Iterator<Item = Run> {
        let blocks = move |direction| (0..self.heads).step_by(most).map(move |first| (direction, first));
        let runs = (0..self.directions)
            .flat_map(blocks)
            .flat_map(move |(direction, first)| self.runs(direction, first, self.heads.min(first + most)));
        let mut last = (usize::MAX, 0);
        runs.map(move |run| {
            last = if run.group == last.0 { (run.group, last.1 + 1) } else { (run.group, 0) };
            Run { rank: last.1, ..run }
        })
    }

    /// Heads per forward task, and whether directions are tasks of their own.
    fn forward_plan(&self) -> (usize, bool) {
        let mut most = self.heads.min(HEADS);
        let apart = self.directions > 1 && self.batch * self.heads.div_ceil(most) < TASKS;
        let directions = if apart { self.directions } else { 1 };
        while most > 1 && self.batch * self.heads.div_ceil(most) * directions < TASKS {
            most = most.div_ceil(2);
        }
        (most, apart)
    }

    /// Heads per backward task.
    fn backward_plan(&self) -> usize {
        let mut most = self.heads;
        while most > 1 && self.batch * self.ranked_runs(most).count() < TASKS {
            most = most.div_ceil(2);
        }
        most
    }

    fn signal_extents(&self) -> [usize; 4] {
        [self.batch, self.tokens, self.heads, self.channels]
    }

    fn group_extents(&self) -> [usize; 4] {
        [self.batch, self.tokens, self.groups, self.states]
    }

    /// Copies of dB and dC, without the results themselves.
    fn group_copies(&self) -> usize {
        self.ranked_runs(self.backward_plan()).map(|run| run.rank).max().unwrap_or(0)
    }

    fn check(&self, order: &[u32], scratch: usize, needed: usize) {
        let Self { tokens, heads, groups, directions, .. } = *self;
        assert!(
            groups > 0 && directions * heads % groups == 0,
            "{groups} groups do not divide {directions} x {heads} heads"
        );
        assert!(order.len() == directions * tokens, "{} visits for {directions} x {tokens} tokens", order.len());
        assert!(order.iter().all(|token| (*token as usize) < tokens), "the order visits tokens beyond {tokens}");
        assert!(scratch >= needed, "{scratch} floats of scratch, {needed} needed");
    }
}

/// Floats of scratch [`forward()`] needs.
pub(crate) fn forward_scratch(shape: &ScanShape) -> usize {
    let (_, apart) = shape.forward_plan();
    if apart { (shape.directions - 1).saturating_mul(shape.signal_extents().iter().product()) } else { 0 }
}

/// Floats of scratch [`backward()`] needs.
pub(crate) fn backward_scratch(shape: &ScanShape) -> usize {
    let outputs = (shape.directions - 1).saturating_mul(shape.signal_extents().iter().product());
    let groups = (2 * shape.group_copies()).saturating_mul(shape.group_extents().iter().product());
    outputs.saturating_add(groups)
}

/// y and, if wanted, the state after the last step.
///
/// # Safety
/// Every view holds the extents of `shape` given at [`ScanInputs`], `output` those of the signal and `final_state`
/// those of `initial`; no target overlaps anything else.
pub(crate) unsafe fn forward(
    shape: &ScanShape,
    order: &[u32],
    inputs: &ScanInputs,
    output: Target<4>,
    final_state: Option<Target<4>>,
    scratch: &mut [f32],
) {
    shape.check(order, scratch.len(), forward_scratch(shape));
    let (most, apart) = shape.forward_plan();
    let copies = Copies::new(output, shape.signal_extents(), scratch);
    let blocks = shape.heads.div_ceil(most);
    let passes = if apart { shape.directions } else { 1 };
    for_each_task(shape.batch * blocks * passes, |index| {
        let (batch, block, pass) = (index / (blocks * passes), index / passes % blocks, index % passes);
        let directions = if apart { pass..pass + 1 } else { 0..shape.directions };
        for direction in directions {
            let order = &order[direction * shape.tokens..][..shape.tokens];
            let (output, add) = if apart { (copies.view(direction), false) } else { (output, direction > 0) };
            for run in shape.runs(direction, block * most, shape.heads.min((block + 1) * most)) {
                let task = ForwardTask { shape: *shape, order, inputs, batch, run, output, add, final_state };
                with_workspace(task.workspace(), |workspace| forward::scan(&task, workspace));
            }
        }
    });
    if apart {
        copies.merged().add(|_| shape.directions - 1);
    }
}

/// The gradient of every input, from the gradients of the output and, if given, of the final state.
///
/// # Safety
/// As for [`forward()`].
pub(crate) unsafe fn backward(
    shape: &ScanShape,
    order: &[u32],
    inputs: &ScanInputs,
    output_gradient: Source<4>,
    final_gradient: Option<Source<4>>,
    gradients: &ScanGradients,
    scratch: &mut [f32],
) {
    shape.check(order, scratch.len(), backward_scratch(shape));
    let most = shape.backward_plan();
    let group_size = shape.group_copies() * shape.group_extents().iter().product::<usize>();
    let (for_write, scratch) = scratch.split_at_mut(group_size);
    let (for_read, for_signal) = scratch.split_at_mut(group_size);
    let signal = Copies::new(gradients.signal, shape.signal_extents(), for_signal);
    let write = Copies::new(gradients.write, shape.group_extents(), for_write);
    let read = Copies::new(gradients.read, shape.group_extents(), for_read);
    let runs = shape.ranked_runs(most).count();
    for_each_task(shape.batch * runs, |index| {
        let (batch, position) = (index / runs, index % runs);
        let Some(run) = shape.ranked_runs(most).nth(position) else { return };
        let order = &order[run.direction * shape.tokens..][..shape.tokens];
        let gradients = ScanGradients {
            signal: signal.view(run.direction),
            write: write.view(run.rank),
            read: read.view(run.rank),
            ..*gradients
        };
        let task =
            BackwardTask { shape: *shape, order, inputs, batch, run, output_gradient, final_gradient, gradients };
        with_workspace(task.workspace(), |workspace| backward::scan_adjoint(&task, workspace));
    });
    let last = |group| shape.ranked_runs(most).filter(|run| run.group == group).last().map_or(0, |run| run.rank);
    signal.merged().add(|_| shape.directions - 1);
    write.add(last);
    read.add(last);
}

/// A result and its copies in scratch: the first task that contributes to an element writes the result, each other task a copy.
#[derive(Clone, Copy)]
struct Copies {
    target: Target<4>,
    extents: [usize; 4],
    scratch: Target<4>,
    count: usize,
}

impl Copies {
    fn new(target: Target<4>, extents: [usize; 4], scratch: &mut [f32]) -> Self {
        let [_, tokens, middle, width] = extents;
        let strides = [tokens * middle * width, middle * width, width, 1].map(|stride| stride as isize);
        let count = scratch.len() / extents.iter().product::<usize>().max(1);
        Self { target, extents, scratch: Target { pointer: scratch.as_mut_ptr(), strides }, count }
    }

    /// Copy 0 is the result itself.
    fn view(&self, copy: usize) -> Target<4> {
        if copy == 0 {
            return self.target;
        }
        assert!(copy <= self.count, "copy {copy} of {}", self.count);
        let size = self.extents.iter().product::<usize>();
        // SAFETY: `scratch` holds `count` copies of this size.
        Target { pointer: unsafe { self.scratch.pointer.add((copy - 1) * size) }, ..self.scratch }
    }

    /// The same memory with middle and last axis merged, if they are contiguous: fewer and longer rows to add.
    fn merged(self) -> Self {
        let ([batch, tokens, middle, width], strides) = (self.extents, self.target.strides);
        if strides[3] != 1 || strides[2] != width as isize {
            return self;
        }
        Self { extents: [batch, tokens, 1, middle * width], ..self }
    }

    /// Adds the first `count(middle)` copies to the result, in order.
    fn add(&self, count: impl Fn(usize) -> usize + Sync) {
        let [batch, tokens, middle, width] = self.extents;
        let stride = self.target.strides[3];
        if self.count == 0 {
            return;
        }
        for_each_task(batch * tokens.div_ceil(ROWS), |block| {
            let (batch, first) = (block / tokens.div_ceil(ROWS), block % tokens.div_ceil(ROWS) * ROWS);
            for middle in 0..middle {
                for copy in 1..=count(middle) {
                    let from = self.view(copy);
                    for token in first..tokens.min(first + ROWS) {
                        let index = [batch, token, middle, 0];
                        // SAFETY: the index lies inside both views, and no other task has these rows.
                        unsafe { add_row(self.target.at(index), stride, from.at(index), width) };
                    }
                }
            }
        });
    }
}

/// # Safety
/// There are `width` floats at `from`, and `width` floats with distance `stride` at `to`; they do not overlap.
unsafe fn add_row(to: *mut f32, stride: isize, from: *const f32, width: usize) {
    if stride == 1 {
        // SAFETY: the caller's promise.
        let (to, from) =
            unsafe { (std::slice::from_raw_parts_mut(to, width), std::slice::from_raw_parts(from, width)) };
        for (to, from) in to.iter_mut().zip(from) {
            *to += from;
        }
        return;
    }
    for index in 0..width {
        // SAFETY: the caller's promise.
        unsafe { *to.offset(index as isize * stride) += *from.add(index) };
    }
}

thread_local! {
    static WORKSPACE: RefCell<Vec<Lanes>> = const { RefCell::new(Vec::new()) };
}

/// Calls `body` with `size` lanes of this thread's workspace. The workspace grows as needed and is not cleared.
fn with_workspace(size: usize, body: impl FnOnce(&mut [Lanes])) {
    WORKSPACE.with_borrow_mut(|workspace| {
        if workspace.len() < size {
            workspace.resize(size, ZERO);
        }
        body(&mut workspace[..size]);
    });
}

/// Splits off the first `count` lanes of `rest`.
fn take<'a>(rest: &mut &'a mut [Lanes], count: usize) -> &'a mut [Lanes] {
    let (taken, left) = std::mem::take(rest).split_at_mut(count);
    *rest = left;
    taken
}
