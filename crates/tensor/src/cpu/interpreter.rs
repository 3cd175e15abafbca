//! The loop interpreter: a fused loop as a short program over strips that stay in the first-level cache.
//!
//! The shape alone decides how rows are divided into tasks and strips, so results do not depend on the number of threads. A
//! contiguous operand is read where it is; other operands are copied into a strip first.

mod lowering;
mod running;

use crate::compile::blocks::Moves;
use crate::compile::plan::{Loop, Place};
use crate::cpu::blocks::{At, shift};
use crate::cpu::memory::Target;
use crate::cpu::strip;
use crate::cpu::team::for_each_task;
use crate::device::DeviceError;
use crate::memory;
use crate::ops::{Map, Reduction};
use lowering::Lowering;
use running::RunningTask;
use std::cell::RefCell;

/// Elements of a strip.
const STRIP: usize = 2048;
/// Longest row that a loop can hold: one strip.
pub(crate) const LONGEST_ROW: usize = STRIP;
/// Fewest elements of a task.
const WORTH_A_TASK: usize = 1 << 15;
/// Largest partial result of a reduction across rows; larger results are divided among tasks instead.
const LARGEST_PARTIAL: usize = 1 << 13;

/// How a loop addresses one place in memory.
#[derive(Clone, Debug)]
struct Access {
    pointer: *mut f32,
    /// Strides of the row axes.
    outer: Vec<isize>,
    /// Stride from row to row, if it is the same for all rows.
    uniform: Option<isize>,
    inner: isize,
    moves: Moves,
}

// SAFETY: tasks write disjoint memory; see `cpu::memory`.
unsafe impl Send for LoopKernel {}
unsafe impl Sync for LoopKernel {}

/// Where an operand is while a strip is processed.
#[derive(Clone, Copy, Debug)]
enum Location {
    /// A strip of the workspace.
    Strip(usize),
    /// One number per row, in the workspace.
    Rows(usize),
    /// In the memory of the program.
    Memory(usize),
    Number(f32),
}

#[derive(Clone, Debug)]
enum Code {
    Load { access: usize, to: usize },
    LoadRows { access: usize, to: usize },
    Map { map: Map, operands: [Location; 3], to: Location },
    MultiplyAdd { operands: [Location; 3], signs: [f32; 2], to: Location },
    ReduceRows { kind: Reduction, operand: Location, to: usize },
    DotRows { factors: [Location; 2], to: usize },
    Store { operand: Location, access: usize },
    Accumulate { operand: Location, across: usize },
    AccumulateProduct { factors: [Location; 2], across: usize },
}

#[derive(Clone, Debug)]
struct AcrossRows {
    kind: Reduction,
    whole_rows: bool,
    /// `[outer, inner, columns]`
    to: Target<3>,
    /// Offset and length of the partial result inside the task's part of the scratch memory.
    start: usize,
    length: usize,
    moves: Moves,
    /// Whether blocks add to what earlier blocks left.
    adds: bool,
}

/// Rows `outer · reduced · inner` of a loop; a task takes a range of the last two and of the columns.
#[derive(Clone, Copy, Debug)]
struct Task {
    outer: usize,
    reduced: (usize, usize),
    inner: (usize, usize),
    columns: (usize, usize),
}

#[derive(Clone, Debug)]
pub(crate) struct LoopKernel {
    row_axes: Vec<usize>,
    columns: usize,
    split: [usize; 3],
    accesses: Vec<Access>,
    /// Loads that are the same for every strip of a task.
    once: Vec<Code>,
    code: Vec<Code>,
    strips: usize,
    strip_length: usize,
    row_strips: usize,
    strip_rows: usize,
    across: Vec<AcrossRows>,
    partial: usize,
    /// No two tasks add to the same result, so that each adds to it directly.
    direct: bool,
    tasks: Vec<Task>,
    /// No shift of any address, for loops that are not cut into blocks.
    unmoved: Vec<isize>,
}

thread_local! {
    static WORKSPACE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

impl LoopKernel {
    pub(crate) fn new(body: &Loop, base: impl Fn(&Place) -> *mut f32) -> Result<LoopKernel, DeviceError> {
        let mut kernel = LoopKernel::lower(body, |place| (base(place), [0; 4]), &[]);
        kernel.tasks = kernel.cut()?;
        let owns = |task: &Task| {
            let all_columns = task.columns == (0, kernel.columns);
            let one_sum = kernel.across.iter().any(|across| across.whole_rows);
            task.reduced == (0, body.split[1]) && (!one_sum || all_columns)
        };
        kernel.direct = kernel.tasks.iter().all(owns);
        Ok(kernel)
    }

    /// A loop over one block, which moves from block to block; `adds`: which reductions across rows go on from block to block.
    pub(crate) fn of_block(body: &Loop, base: impl Fn(&Place) -> (*mut f32, Moves), adds: &[bool]) -> LoopKernel {
        let mut kernel = LoopKernel::lower(body, base, adds);
        let [outer, reduced, inner] = body.split;
        let whole = |outer| Task { outer, reduced: (0, reduced), inner: (0, inner), columns: (0, kernel.columns) };
        kernel.tasks = (0..outer).map(whole).collect();
        kernel.direct = true;
        kernel
    }

    fn lower(body: &Loop, base: impl Fn(&Place) -> (*mut f32, Moves), adds: &[bool]) -> LoopKernel {
        let (row_axes, columns) = (body.dims[..body.dims.len() - 1].to_vec(), body.dims[body.dims.len() - 1]);
        let strip_rows = (STRIP / columns).max(1);
        let strip_columns = if columns > LONGEST_ROW { STRIP } else { columns };
        let mut kernel = LoopKernel {
            row_axes,
            columns,
            split: body.split,
            accesses: Vec::new(),
            once: Vec::new(),
            code: Vec::new(),
            strips: 0,
            strip_length: (strip_rows * strip_columns).next_multiple_of(16),
            row_strips: 0,
            strip_rows,
            across: Vec::new(),
            partial: 0,
            direct: false,
            tasks: Vec::new(),
            unmoved: Vec::new(),
        };
        for (number, across) in body.across.iter().enumerate() {
            let [outer, inner, width] = [0, 1, 2].map(|axis| across.to.layout.dims[axis]);
            debug_assert_eq!(outer, body.split[0]);
            let strides = [0, 1, 2].map(|axis| across.to.layout.strides[axis]);
            debug_assert!(across.to.layout.is_contiguous());
            let (pointer, moves) = base(&across.to);
            kernel.across.push(AcrossRows {
                kind: across.kind,
                whole_rows: across.whole_rows,
                to: Target { pointer, strides },
                start: kernel.partial,
                length: inner * width,
                moves,
                adds: adds.get(number) == Some(&true),
            });
            kernel.partial = kernel.partial.saturating_add(inner * width);
        }
        Lowering::new(&mut kernel, body, base).lower(body);
        kernel.unmoved = vec![0; kernel.accesses.len() + kernel.across.len()];
        kernel
    }

    /// Floats of scratch for partial results.
    pub(crate) fn scratch(&self) -> usize {
        if self.direct { 0 } else { self.partial.saturating_mul(self.tasks.len()) }
    }

    /// Divides the rows into tasks of about equal work.
    fn cut(&self) -> Result<Vec<Task>, DeviceError> {
        let [outer, reduced, inner] = self.split;
        let [mut reduced_step, mut inner_step, mut column_step] = [reduced, inner, self.columns];
        let total = reduced * inner * self.columns;
        let pieces = total.div_ceil(WORTH_A_TASK).max(1);
        if pieces > 1 {
            let keeps_little = self.across.iter().all(|across| across.length <= LARGEST_PARTIAL);
            let sums_rows = self.across.iter().any(|across| across.whole_rows);
            if self.across.is_empty() || keeps_little && (reduced > 1 || !sums_rows) {
                reduced_step = reduced.div_ceil(pieces);
            } else if inner > 1 {
                inner_step = inner.div_ceil(pieces);
            }
            let rows = reduced_step * inner_step;
            if self.columns > LONGEST_ROW && rows * self.columns > WORTH_A_TASK {
                column_step = (WORTH_A_TASK / rows).max(STRIP).next_multiple_of(STRIP).min(self.columns);
            }
        }
        let ranges = |extent: usize, step: usize| {
            (0..extent.div_ceil(step)).map(move |piece| (piece * step, (piece * step + step).min(extent)))
        };
        let pieces = [(reduced, reduced_step), (inner, inner_step), (self.columns, column_step)];
        let count = pieces.iter().map(|(extent, step)| extent.div_ceil(*step)).fold(outer, usize::saturating_mul);
        let mut tasks = memory::room(count, "a loop over all elements")?;
        for outer in 0..outer {
            for reduced in ranges(reduced, reduced_step) {
                for inner in ranges(inner, inner_step) {
                    for columns in ranges(self.columns, column_step) {
                        tasks.push(Task { outer, reduced, inner, columns });
                    }
                }
            }
        }
        Ok(tasks)
    }

    /// # Safety
    /// All places are valid, and `scratch` holds [`LoopKernel::scratch`] floats that are in no other use.
    pub(crate) unsafe fn run(&self, scratch: *mut f32) {
        let partials = Target::<1> { pointer: scratch, strides: [1] };
        // A direct task needs no scratch memory, and there is none to point into.
        let apart = if self.direct { 0 } else { self.partial };
        for_each_task(self.tasks.len(), |task| {
            // SAFETY: each task has its own part of the scratch memory and its own rows.
            unsafe { self.run_task(&self.tasks[task], partials.at([task * apart]), &self.unmoved) };
        });
        for across in self.across.iter().filter(|_| !self.direct) {
            // SAFETY: the tasks have finished; their partial results are complete.
            unsafe { self.combine(across, partials) };
        }
    }

    /// Runs over one block on this thread.
    ///
    /// # Safety
    /// All places of the block are valid, and no other task uses what it writes.
    pub(crate) unsafe fn run_block(&self, at: At) {
        let moves = self.accesses.iter().map(|access| access.moves);
        let shifts: Vec<isize> =
            moves.chain(self.across.iter().map(|across| across.moves)).map(|moves| shift(moves, at)).collect();
        for task in &self.tasks {
            // SAFETY: the caller's promise; results are direct.
            unsafe { self.run_task(task, std::ptr::null_mut(), &shifts) };
        }
    }

    /// Adds partial results in the order of their tasks.
    ///
    /// # Safety
    /// As for [`LoopKernel::run`], after the tasks.
    unsafe fn combine(&self, across: &AcrossRows, partials: Target<1>) {
        let width = if across.whole_rows { 1 } else { self.columns };
        let [outer, _, inner] = self.split;
        let inner = if across.whole_rows { 1 } else { inner };
        // SAFETY: indices follow the extents of the result.
        unsafe {
            for block in 0..outer * inner {
                for column in 0..width {
                    *across.to.at([block / inner, block % inner, column]) = strip::identity(across.kind);
                }
            }
            for (number, task) in self.tasks.iter().enumerate() {
                let partial = partials.at([number * self.partial + across.start]);
                let (rows, columns) = if across.whole_rows { ((0, 1), (0, 1)) } else { (task.inner, task.columns) };
                for row in rows.0..rows.1 {
                    for column in columns.0..columns.1 {
                        let to = across.to.at([task.outer, row, column]);
                        let value = *partial.add(row * width + column);
                        *to = match across.kind {
                            Reduction::Sum => *to + value,
                            Reduction::Max => strip::reduce(Reduction::Max, &[*to, value]),
                        };
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`LoopKernel::run`]; `partial` is this task's own.
    unsafe fn run_task(&self, task: &Task, partial: *mut f32, shifts: &[isize]) {
        WORKSPACE.with_borrow_mut(|workspace| {
            let needed = self.strips * self.strip_length + self.row_strips * self.strip_rows + 16;
            if workspace.len() < needed {
                workspace.resize(needed, 0.0);
            }
            let aligned = workspace.as_ptr().align_offset(64);
            // SAFETY: the workspace is long enough for the shift; the rest is the caller's promise.
            unsafe {
                for (number, across) in self.across.iter().enumerate().filter(|(_, across)| !across.adds) {
                    self.clear_partial(across, task, self.partial_result(number, task, partial, shifts));
                }
                let strips = workspace.as_mut_ptr().add(aligned);
                let rows = strips.add(self.strips * self.strip_length);
                RunningTask { kernel: self, task, strips, rows, partial, shifts, loaded: None }.run();
            }
        });
    }

    /// Where a task adds up its part of a result.
    ///
    /// # Safety
    /// `partial` is the task's part of the scratch memory, unless results are direct.
    unsafe fn partial_result(&self, number: usize, task: &Task, partial: *mut f32, shifts: &[isize]) -> *mut f32 {
        let across = &self.across[number];
        // SAFETY: the caller's promise.
        unsafe {
            match self.direct {
                true => across.to.pointer.offset(shifts[self.accesses.len() + number]).add(task.outer * across.length),
                false => partial.add(across.start),
            }
        }
    }

    /// # Safety
    /// `partial` comes from [`LoopKernel::partial_result`].
    unsafe fn clear_partial(&self, across: &AcrossRows, task: &Task, partial: *mut f32) {
        let identity = strip::identity(across.kind);
        // SAFETY: the task's rows and columns lie inside the result.
        unsafe {
            if across.whole_rows {
                *partial = identity;
                return;
            }
            for row in task.inner.0..task.inner.1 {
                let start = partial.add(row * self.columns + task.columns.0);
                std::slice::from_raw_parts_mut(start, task.columns.1 - task.columns.0).fill(identity);
            }
        }
    }

    /// Distance of a row from the first.
    fn row_offset(&self, access: &Access, row: usize) -> isize {
        if let Some(stride) = access.uniform {
            return row as isize * stride;
        }
        let mut rest = row;
        let mut offset = 0;
        for (&extent, &stride) in self.row_axes.iter().zip(&access.outer).rev() {
            offset += (rest % extent) as isize * stride;
            rest /= extent;
        }
        offset
    }
}
