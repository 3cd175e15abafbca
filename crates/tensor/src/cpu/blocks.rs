//! Blocks on the CPU: tasks run all kernels of a group on a range of blocks, one block after the other.
//!
//! The sizes alone decide which blocks a task has, so results do not depend on the number of threads.

use crate::compile::blocks::{Arranged, BlockStep, Blocks, Moves, Sum};
use crate::compile::plan::{Place, Step};
use crate::cpu::interpreter::LoopKernel;
use crate::cpu::matmul::MatMul;
use crate::cpu::memory::{Source, Target};
use crate::cpu::strip;
use crate::cpu::team::for_each_task;
use crate::device::DeviceError;
use crate::ops::Reduction;
use crate::shape::Layout;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sample, first point, task, slot.
pub(crate) type At = [usize; 4];

/// How far an access has moved.
pub(crate) fn shift(moves: Moves, at: At) -> isize {
    moves.iter().zip(at).map(|(step, at)| step * at as isize).sum()
}

/// Fewest elements of a sum that a thread adds.
const WORTH_A_TASK: usize = 1 << 12;

enum Kernel {
    Loop(LoopKernel),
    MatMul(MatMul, bool),
}

fn arranged(matrix: &Arranged, base: impl Fn(&Place) -> *mut f32) -> ([usize; 2], Source<2>, usize) {
    let Layout { dims, strides, .. } = &matrix.from.layout;
    let from = Source { pointer: base(&matrix.from).cast_const(), strides: [strides[0], strides[1]] };
    ([dims[0], dims[1]], from, matrix.start)
}

pub(crate) struct BlockKernel {
    batch: usize,
    points: usize,
    rows: usize,
    tasks: usize,
    /// For a whole block, and for the last one of a sample.
    kernels: [Vec<Kernel>; 2],
    sums: Vec<(Sum, Target<1>)>,
    /// Extents of a matrix, where it is, and where it is arranged.
    arranged: Vec<([usize; 2], Source<2>, usize)>,
    workspace: Target<1>,
    slot_length: usize,
    slots: usize,
    sums_length: usize,
    /// Slots that no task has.
    free: Mutex<Vec<usize>>,
}

impl BlockKernel {
    /// `base` is the arena's memory at each place's buffer.
    pub(crate) fn new(blocks: &Blocks, base: impl Fn(&Place) -> *mut f32) -> Result<BlockKernel, DeviceError> {
        let viewed = |place: &Place| {
            let view = &blocks.views[place.buffer];
            (base(&Place { buffer: view.buffer, layout: place.layout.clone() }), view.moves)
        };
        let kernel = |step: &BlockStep| match &step.step {
            Step::Loop(body) => Ok(Kernel::Loop(LoopKernel::of_block(body, viewed, &step.adds))),
            Step::MatMul { left, right, to, .. } => {
                let product = MatMul::new(left, right, to, |place| viewed(place).0)?;
                Ok(Kernel::MatMul(product.moving([left, right, to].map(|place| viewed(place).1)), step.adds[0]))
            }
            step => unreachable!("{step:?} does not treat points one by one"),
        };
        let kernels = |steps: &[BlockStep]| steps.iter().map(kernel).collect::<Result<Vec<_>, DeviceError>>();
        let target = |pointer| Target { pointer, strides: [1] };
        let workspace = Layout { offset: 0, dims: Vec::new(), strides: Vec::new() };
        Ok(BlockKernel {
            batch: blocks.batch,
            points: blocks.points,
            rows: blocks.rows,
            tasks: blocks.tasks,
            kernels: [kernels(&blocks.kernels[0])?, kernels(&blocks.kernels[1])?],
            sums: blocks.sums.iter().map(|sum| (sum.clone(), target(base(&sum.to)))).collect(),
            arranged: blocks.arranged.iter().map(|matrix| arranged(matrix, &base)).collect(),
            workspace: target(base(&Place { buffer: blocks.workspace, layout: workspace })),
            slot_length: blocks.slot_length,
            slots: blocks.slots,
            sums_length: blocks.sums_length,
            free: Mutex::new((0..blocks.slots).collect()),
        })
    }

    /// # Safety
    /// All places are valid and in no other use.
    pub(crate) unsafe fn run(&self) {
        for_each_task(self.arranged.len(), |matrix| {
            let ([rows, columns], from, start) = &self.arranged[matrix];
            for row in 0..*rows {
                for column in 0..*columns {
                    // SAFETY: the caller's promise; each matrix has its own memory.
                    unsafe { *self.workspace.at([start + row * columns + column]) = *from.at([row, column]) };
                }
            }
        });
        let per_sample = self.points.div_ceil(self.rows);
        let blocks = self.batch * per_sample;
        let first = |task: usize| blocks * task / self.tasks;
        for_each_task(self.tasks, |task| {
            let slot = self.take_slot();
            // SAFETY: each task has a slot and sums of its own; blocks write their own points.
            unsafe {
                for (sum, _) in &self.sums {
                    self.part(sum, task).fill(strip::identity(sum.kind));
                }
                for block in first(task)..first(task + 1) {
                    let point = block % per_sample * self.rows;
                    let at = [block / per_sample, point, task, slot];
                    let is_last = point + self.rows > self.points;
                    for kernel in &self.kernels[usize::from(is_last)] {
                        match kernel {
                            Kernel::Loop(kernel) => kernel.run_block(at),
                            Kernel::MatMul(product, adds) => product.run_block(at, *adds),
                        }
                    }
                }
            }
            self.free().push(slot);
        });
        for (sum, to) in &self.sums {
            // SAFETY: the tasks have finished.
            unsafe { self.combine(sum, *to) };
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot that no other task has. Where there are more threads than slots, this waits for the end of a task.
    fn take_slot(&self) -> usize {
        loop {
            if let Some(slot) = self.free().pop() {
                return slot;
            }
            std::thread::yield_now();
        }
    }

    /// Where the part of a sum begins in the workspace.
    fn start(&self, sum: &Sum, task: usize) -> usize {
        self.slots * self.slot_length + task * self.sums_length + sum.start
    }

    /// A task's part of a sum.
    ///
    /// # Safety
    /// No other slice of it is alive.
    #[allow(clippy::mut_from_ref)] // the workspace is memory of the arena
    unsafe fn part(&self, sum: &Sum, task: usize) -> &mut [f32] {
        let length = sum.to.layout.dims.iter().product();
        // SAFETY: the workspace has a part for every task.
        unsafe { std::slice::from_raw_parts_mut(self.workspace.at([self.start(sum, task)]), length) }
    }

    /// Adds the parts of all tasks in their order.
    ///
    /// # Safety
    /// As for [`BlockKernel::run`], after the tasks.
    unsafe fn combine(&self, sum: &Sum, to: Target<1>) {
        let layout = &sum.to.layout;
        let (columns, rank) = (*layout.dims.last().expect("a sum has axes"), layout.dims.len());
        let rows: usize = layout.dims[..rank - 1].iter().product();
        let rows_of_task = (WORTH_A_TASK / columns).max(1);
        for_each_task(rows.div_ceil(rows_of_task), |piece| {
            for row in piece * rows_of_task..((piece + 1) * rows_of_task).min(rows) {
                let part = |task: usize| {
                    let start = self.start(sum, task) + row * columns;
                    // SAFETY: the row lies inside the part; each task reads and writes rows of its own.
                    unsafe { std::slice::from_raw_parts_mut(self.workspace.at([start]), columns) }
                };
                let total = part(0);
                for task in 1..self.tasks {
                    let next = part(task).iter();
                    match sum.kind {
                        Reduction::Sum => total.iter_mut().zip(next).for_each(|(total, next)| *total += next),
                        Reduction::Max => total
                            .iter_mut()
                            .zip(next)
                            .for_each(|(total, next)| *total = strip::reduce(Reduction::Max, &[*total, *next])),
                    }
                }
                let (mut rest, mut offset) = (row, 0);
                for axis in (0..rank - 1).rev() {
                    offset += (rest % layout.dims[axis]) as isize * layout.strides[axis];
                    rest /= layout.dims[axis];
                }
                let step = layout.strides[rank - 1];
                for (column, value) in total.iter().enumerate() {
                    // SAFETY: the element lies inside the result.
                    unsafe { *to.at([0]).offset(offset + column as isize * step) = *value };
                }
            }
        });
    }
}
