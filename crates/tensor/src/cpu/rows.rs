//! Gather, and its transpose scatter-add: rows by their numbers.

use crate::compile::plan::Place;
use crate::cpu::memory::{Source, Target};
use crate::cpu::team::for_each_task;

/// Fewest elements of a task.
const WORTH_A_TASK: usize = 1 << 14;

/// Moves rows of one axis: `wide` has all rows, `named` those that the index lists.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    wide: Source<1>,
    wide_layout: crate::shape::Layout,
    named: Target<1>,
    named_layout: crate::shape::Layout,
    axis: usize,
    index: *const u32,
    count: usize,
}

// SAFETY: the planner's guarantee, see `cpu::memory`.
unsafe impl Send for Rows {}
unsafe impl Sync for Rows {}

impl Rows {
    pub(crate) fn new(
        axis: usize,
        wide: &Place,
        named: &Place,
        index: *const u32,
        base: impl Fn(&Place) -> *mut f32,
    ) -> Rows {
        Rows {
            wide: Source { pointer: base(wide), strides: [1] },
            wide_layout: wide.layout.clone(),
            named: Target { pointer: base(named), strides: [1] },
            named_layout: named.layout.clone(),
            axis,
            index,
            count: named.layout.dims[axis],
        }
    }

    /// # Safety
    /// All places are valid.
    pub(crate) unsafe fn gather(&self) {
        self.check();
        let dims = &self.named_layout.dims;
        let inner: usize = dims[self.axis + 1..].iter().product();
        let outer: usize = dims[..self.axis].iter().product();
        let rows_per_task = (WORTH_A_TASK / inner).clamp(1, self.count);
        let pieces = self.count.div_ceil(rows_per_task);
        for_each_task(outer * pieces, |task| {
            let (block, first) = (task / pieces, task % pieces * rows_per_task);
            for position in first..(first + rows_per_task).min(self.count) {
                // SAFETY: the index was checked; each task writes its own rows.
                unsafe {
                    let row = *self.index.add(position) as usize;
                    self.each_pair(block, row, position, |wide, named| *named = *wide);
                }
            }
        });
    }

    /// # Safety
    /// All places are valid; `wide` is written.
    pub(crate) unsafe fn scatter_add(&self) {
        self.check();
        let dims = &self.wide_layout.dims;
        let outer: usize = dims[..self.axis].iter().product();
        let rows = dims[self.axis];
        // One task per block: rows with the same number are added in the order of the index.
        for_each_task(outer, |block| {
            // SAFETY: the index was checked; each task writes its own block.
            unsafe {
                for row in 0..rows {
                    self.each_pair(block, row, 0, |wide, _| *wide.cast_mut() = 0.0);
                }
                for position in 0..self.count {
                    let row = *self.index.add(position) as usize;
                    self.each_pair(block, row, position, |wide, named| *wide.cast_mut() += *named);
                }
            }
        });
    }

    fn check(&self) {
        let rows = self.wide_layout.dims[self.axis];
        for position in 0..self.count {
            // SAFETY: the index holds `count` numbers.
            let row = unsafe { *self.index.add(position) } as usize;
            assert!(row < rows, "index {position} names row {row} of an axis with {rows} rows");
        }
    }

    /// # Safety
    /// `row` and `position` lie inside their axes.
    unsafe fn each_pair(&self, block: usize, row: usize, position: usize, visit: impl Fn(*const f32, *mut f32)) {
        let offset = |layout: &crate::shape::Layout, at: usize| -> isize {
            let mut rest = block;
            let mut offset = at as isize * layout.strides[self.axis];
            for axis in (0..self.axis).rev() {
                offset += (rest % layout.dims[axis]) as isize * layout.strides[axis];
                rest /= layout.dims[axis];
            }
            offset
        };
        let (wide, named) = (offset(&self.wide_layout, row), offset(&self.named_layout, position));
        let inner = self.axis + 1..self.wide_layout.dims.len();
        let dims = &self.wide_layout.dims[inner.clone()];
        let strides = (&self.wide_layout.strides[inner.clone()], &self.named_layout.strides[inner]);
        for_each_offset(dims, strides, |from, to| {
            // SAFETY: the caller's promise.
            unsafe { visit(self.wide.pointer.offset(wide + from), self.named.pointer.offset(named + to)) };
        });
    }
}

/// Offsets of a box under two sets of strides, last axis fastest.
fn for_each_offset(dims: &[usize], (first, second): (&[isize], &[isize]), mut visit: impl FnMut(isize, isize)) {
    let (Some((&extent, outer)), Some((&a, first)), Some((&b, second))) =
        (dims.split_last(), first.split_last(), second.split_last())
    else {
        return visit(0, 0);
    };
    let count: usize = outer.iter().product();
    for block in 0..count {
        let (mut rest, mut from, mut to) = (block, 0, 0);
        for axis in (0..outer.len()).rev() {
            let position = (rest % outer[axis]) as isize;
            from += position * first[axis];
            to += position * second[axis];
            rest /= outer[axis];
        }
        for i in 0..extent as isize {
            visit(from + i * a, to + i * b);
        }
    }
}
