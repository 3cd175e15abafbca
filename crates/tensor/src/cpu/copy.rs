//! Loops that only move numbers: transposed weights, joined and divided channels, flipped axes.
//!
//! Where the fastest axis of the source is not that of the target, rows in either order touch one number of each cache line.
//! So a copy goes box by box: a box is a few cache lines long in both. It is read in the order of the source into a small
//! memory that has the order of the target, and written from there: each cache line is used up when it is touched, even
//! where strides are powers of two, which all want the same part of a cache.

use crate::compile::plan::{Instruction, Loop, Operand, Place};
use crate::cpu::memory::{Source, Target};
use crate::cpu::team::for_each_task;
use std::mem::MaybeUninit;

/// Neighbours of a box in the memory of the source, and in that of the target.
const SIDE: usize = 64;
/// Most numbers of a box: each of the two sides may be rounded up to almost twice as many.
const BOX: usize = 4 * SIDE * SIDE;
/// Rows of source and target that are as long are copied at once.
const LONG: usize = 16;
/// Most axes of a copy.
const RANK: usize = 8;
/// Fewest numbers of a task.
const WORTH_A_TASK: usize = 1 << 15;

/// One axis of a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    extent: usize,
    read: isize,
    write: isize,
    /// Extent of a box.
    side: usize,
    /// Boxes between two that are neighbours along this axis.
    apart: usize,
}

impl Axis {
    /// Boxes along this axis.
    fn boxes(&self) -> usize {
        self.extent.div_ceil(self.side)
    }
}

/// Copies one strided place to another.
#[derive(Clone, Debug)]
pub(crate) struct CopyKernel {
    from: Source<0>,
    to: Target<0>,
    /// From the slowest to the fastest axis of the target.
    axes: Vec<Axis>,
    /// The same axes, from the slowest to the fastest of the source; none where boxes are rows of both.
    by_read: Vec<usize>,
}

/// The copies of a loop that does nothing else, and reads nothing that it writes; `None` for any other loop.
pub(crate) fn copies(body: &Loop, base: impl Fn(&Place) -> *mut f32) -> Option<Vec<CopyKernel>> {
    let mut loads: Vec<Option<&Place>> = vec![None; body.levels.len()];
    let mut copies = Vec::new();
    for instruction in &body.instructions {
        match instruction {
            Instruction::Load { from, to } => loads[*to] = Some(from),
            Instruction::Store { operand: Operand::Register(register), to } => copies.push((loads[*register]?, to)),
            _ => return None,
        }
    }
    let is_read = |to: &Place| loads.iter().flatten().any(|from| from.buffer == to.buffer);
    if copies.iter().any(|(_, to)| is_read(to)) || body.dims.len() > RANK {
        return None;
    }
    let kernel = |(from, to): (&Place, &Place)| {
        let strides = from.layout.strides.iter().zip(&to.layout.strides).map(|(&read, &write)| (read, write));
        let from = Source { pointer: base(from).cast_const(), strides: [] };
        CopyKernel::new(from, Target { pointer: base(to), strides: [] }, merged(&body.dims, strides))
    };
    Some(copies.into_iter().map(kernel).collect())
}

/// The axes, those of extent 1 left out, neighbours joined where both places continue from one to the next.
fn merged(extents: &[usize], strides: impl Iterator<Item = (isize, isize)>) -> Vec<Axis> {
    let mut axes: Vec<Axis> = extents
        .iter()
        .zip(strides)
        .filter(|(extent, _)| **extent != 1)
        .map(|(&extent, (read, write))| Axis { extent, read, write, side: 1, apart: 1 })
        .collect();
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.write.unsigned_abs()));
    let mut joined: Vec<Axis> = Vec::with_capacity(axes.len());
    for axis in axes {
        let extent = axis.extent as isize;
        match joined.last_mut() {
            Some(last) if last.read == extent * axis.read && last.write == extent * axis.write => {
                *last = Axis { extent: last.extent * axis.extent, ..axis };
            }
            _ => joined.push(axis),
        }
    }
    if joined.is_empty() {
        joined.push(Axis { extent: 1, read: 1, write: 1, side: 1, apart: 1 });
    }
    joined
}

/// The axes from the smallest stride to the largest, without those that repeat one number.
fn order(axes: &[Axis], stride: impl Fn(&Axis) -> isize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..axes.len()).filter(|&axis| stride(&axes[axis]) != 0).collect();
    order.sort_by_key(|&axis| stride(&axes[axis]).unsigned_abs());
    order
}

impl CopyKernel {
    fn new(from: Source<0>, to: Target<0>, mut axes: Vec<Axis>) -> CopyKernel {
        let (write, mut read) = (order(&axes, |axis| axis.write), order(&axes, |axis| axis.read));
        if write.first().is_some_and(|&axis| read.first() == Some(&axis) && axes[axis].extent >= LONG) {
            choose_sides(&mut axes, &write, SIDE * SIDE);
            read.clear();
        } else {
            choose_sides(&mut axes, &write, SIDE);
            choose_sides(&mut axes, &read, SIDE);
            read.extend((0..axes.len()).filter(|axis| !read.contains(axis)).collect::<Vec<_>>());
            read.reverse();
        }
        let mut apart = 1;
        for axis in axes.iter_mut().rev() {
            axis.apart = apart;
            apart *= axis.boxes();
        }
        CopyKernel { from, to, axes, by_read: read }
    }

    /// # Safety
    /// Both places are valid, and the target is in no other use.
    pub(crate) unsafe fn run(&self) {
        let count: usize = self.axes.iter().map(Axis::boxes).product();
        let numbers: usize = self.axes.iter().map(|axis| axis.side).product();
        let step = (WORTH_A_TASK / numbers).max(1);
        for_each_task(count.div_ceil(step), |task| {
            let mut dense = MaybeUninit::<[f32; BOX]>::uninit();
            for number in task * step..(task * step + step).min(count) {
                // SAFETY: the caller's promise; boxes do not overlap.
                unsafe { self.copy_box(number, dense.as_mut_ptr().cast()) };
            }
        });
    }

    /// # Safety
    /// As for [`CopyKernel::run`]; no other task has this box, and `dense` has room for [`BOX`] numbers.
    unsafe fn copy_box(&self, number: usize, dense: *mut f32) {
        let (mut from, mut to) = (self.from.pointer, self.to.pointer);
        // Extent of the box, and stride in `dense`, of each axis.
        let mut parts = [(1, 1); RANK];
        let mut count = 1;
        for (axis, part) in self.axes.iter().zip(&mut parts).rev() {
            let first = number / axis.apart % axis.boxes() * axis.side;
            *part = (axis.side.min(axis.extent - first), count as isize);
            count *= part.0;
            // SAFETY: the first element of the box.
            (from, to) = unsafe { (from.offset(first as isize * axis.read), to.offset(first as isize * axis.write)) };
        }
        debug_assert!(count <= BOX || self.by_read.is_empty(), "{count} numbers of a box");
        let axes = self.axes.iter().zip(parts);
        // SAFETY: the box lies inside both places, and `dense` holds it.
        unsafe {
            if self.by_read.is_empty() {
                return Nest::new(axes.map(|(axis, (extent, _))| (extent, axis.read, axis.write))).copy(from, to);
            }
            let reads = self.by_read.iter().map(|&axis| (parts[axis].0, self.axes[axis].read, parts[axis].1));
            Nest::new(reads).copy(from, dense);
            Nest::new(axes.map(|(axis, (extent, stride))| (extent, stride, axis.write))).copy(dense, to);
        }
    }
}

/// Lets a box have so many neighbours in memory, up to almost twice as many; `order` has the fastest axis first.
fn choose_sides(axes: &mut [Axis], order: &[usize], neighbours: usize) {
    let mut count = 1;
    for &axis in order {
        let axis = &mut axes[axis];
        let side = neighbours.div_ceil(count).min(axis.extent);
        axis.side = axis.side.max(side);
        count *= side;
        if count >= neighbours {
            break;
        }
    }
}

/// Nested loops over a box: extent, stride of reading and stride of writing, the outermost first.
struct Nest {
    loops: [(usize, isize, isize); RANK],
    depth: usize,
}

impl Nest {
    /// Neighbours become one loop where both strides continue.
    fn new(loops: impl Iterator<Item = (usize, isize, isize)>) -> Nest {
        let mut nest = Nest { loops: [(1, 1, 1); RANK], depth: 0 };
        for (extent, read, write) in loops.filter(|(extent, ..)| *extent != 1) {
            let steps = extent as isize;
            match nest.loops[..nest.depth].last_mut() {
                Some(last) if last.1 == steps * read && last.2 == steps * write => {
                    *last = (last.0 * extent, read, write);
                }
                _ => {
                    nest.loops[nest.depth] = (extent, read, write);
                    nest.depth += 1;
                }
            }
        }
        nest
    }

    /// # Safety
    /// The box lies inside the memory of both pointers, which do not overlap.
    unsafe fn copy(&self, from: *const f32, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { copy_loops(&self.loops[..self.depth.max(1)], from, to) };
    }
}

/// # Safety
/// As for [`Nest::copy`].
unsafe fn copy_loops(loops: &[(usize, isize, isize)], from: *const f32, to: *mut f32) {
    let ((extent, read, write), inner) = (loops[0], &loops[1..]);
    // SAFETY: the caller's promise.
    unsafe {
        if inner.is_empty() {
            return copy_row(extent, (from, read), (to, write));
        }
        for index in 0..extent as isize {
            copy_loops(inner, from.offset(index * read), to.offset(index * write));
        }
    }
}

/// # Safety
/// Both rows are valid and do not overlap.
unsafe fn copy_row(count: usize, (from, read): (*const f32, isize), (to, write): (*mut f32, isize)) {
    // SAFETY: the caller's promise.
    unsafe {
        match (read, write) {
            (1, 1) => std::ptr::copy_nonoverlapping(from, to, count),
            (_, 1) => (0..count as isize).for_each(|i| *to.offset(i) = *from.offset(i * read)),
            (1, _) => (0..count as isize).for_each(|i| *to.offset(i * write) = *from.offset(i)),
            _ => (0..count as isize).for_each(|i| *to.offset(i * write) = *from.offset(i * read)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies numbers 0, 1, … between two orders of the same axes, and compares each one with its place.
    fn moves(extents: &[usize], read: &[isize], write: &[isize]) {
        let reach = |strides: &[isize]| {
            let ends = extents.iter().zip(strides).map(|(&extent, stride)| (extent as isize - 1) * stride);
            ends.fold((0, 0), |(low, high), end| (low + end.min(0), high + end.max(0)))
        };
        let ((low, high), (first, last)) = (reach(read), reach(write));
        let from: Vec<f32> = (0..=high - low).map(|value| value as f32).collect();
        let mut to = vec![-1.0; (last - first + 1) as usize];
        let axes = merged(extents, read.iter().copied().zip(write.iter().copied()));
        // SAFETY: the pointers are shifted by what negative strides reach below them.
        unsafe {
            let from = Source { pointer: from.as_ptr().offset(-low), strides: [] };
            CopyKernel::new(from, Target { pointer: to.as_mut_ptr().offset(-first), strides: [] }, axes).run();
        }
        let mut expected = vec![-1.0; to.len()];
        for number in 0..extents.iter().product::<usize>() {
            let (mut rest, mut place, mut value) = (number, -first, -low);
            for axis in (0..extents.len()).rev() {
                let index = (rest % extents[axis]) as isize;
                rest /= extents[axis];
                (place, value) = (place + index * write[axis], value + index * read[axis]);
            }
            expected[place as usize] = value as f32;
        }
        assert_eq!(to, expected, "{extents:?} from {read:?} to {write:?}");
    }

    #[test]
    fn every_number_reaches_its_place() {
        moves(&[1], &[1], &[1]);
        moves(&[1, 1], &[0, 3], &[5, 1]);
        moves(&[10_000], &[1], &[1]);
        moves(&[70, 90], &[1, 70], &[90, 1]);
        moves(&[33, 5, 2], &[2, 66, 1], &[10, 2, 1]);
        moves(&[7, 40, 9, 2], &[1, 126, 14, 7], &[720, 18, 2, 1]);
        moves(&[100, 3], &[3, 1], &[7, 2]);
        moves(&[31, 31, 31], &[1, 31, 961], &[961, 31, 1]);
        moves(&[3, 5, 7, 9, 2, 2], &[1260, 252, 2, 14, 126, 1], &[1260, 252, 36, 4, 2, 1]);
    }

    #[test]
    fn flips_and_repetitions_are_copied_too() {
        moves(&[37, 41], &[-41, -1], &[41, 1]);
        moves(&[37, 41], &[0, 1], &[41, 1]);
        moves(&[37, 41], &[1, 0], &[41, 1]);
        moves(&[3, 4], &[0, 0], &[1, 3]);
        moves(&[64, 65], &[1, -64], &[-65, 1]);
    }

    #[test]
    fn axes_that_continue_each_other_become_one() {
        let axes = merged(&[4, 1, 5, 6], [(30, 30), (7, 9), (6, 6), (1, 1)].into_iter());
        assert_eq!(axes, [Axis { extent: 120, read: 1, write: 1, side: 1, apart: 1 }]);
    }
}
