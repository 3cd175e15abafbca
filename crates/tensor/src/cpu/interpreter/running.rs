//! Running: one task of a loop, strip by strip.

use super::{Access, Code, LONGEST_ROW, Location, LoopKernel, STRIP, Task};
use crate::cpu::strip::{self, Extent, Strip};
use crate::ops::Reduction;

/// One task while it runs.
pub(super) struct RunningTask<'a> {
    pub(super) kernel: &'a LoopKernel,
    pub(super) task: &'a Task,
    pub(super) strips: *mut f32,
    pub(super) rows: *mut f32,
    pub(super) partial: *mut f32,
    /// Shift of the address of every access, then of every reduction across rows.
    pub(super) shifts: &'a [isize],
    /// First column of the strip for which the shared loads are done.
    pub(super) loaded: Option<usize>,
}

/// The current strip: a rectangle of rows and columns of the loop.
#[derive(Clone, Copy)]
struct Window {
    row: usize,
    /// Position of the first row inside `reduced · inner`.
    inside: usize,
    column: usize,
    extent: Extent,
}

/// Rows at equal distances.
struct Run {
    /// Rows of the window before them.
    row: usize,
    rows: usize,
    start: *mut f32,
    stride: isize,
}

/// Copies a row whose length the compiler knows.
///
/// # Safety
/// Both rows are valid, and they are the same or do not overlap.
#[inline(always)]
unsafe fn copy<const COUNT: usize>(from: *const f32, to: *mut f32) {
    // SAFETY: the caller's promise; the row is read before it is written.
    unsafe { to.cast::<[f32; COUNT]>().write(from.cast::<[f32; COUNT]>().read()) };
}

impl RunningTask<'_> {
    /// # Safety
    /// As for [`LoopKernel::run_task`].
    pub(super) unsafe fn run(mut self) {
        let task = self.task;
        let [_, reduced, inner] = self.kernel.split;
        // Consecutive rows are one run: all rows of the task, unless it has only some of the inner rows.
        let whole = task.inner == (0, inner);
        let runs = if whole { 1 } else { task.reduced.1 - task.reduced.0 };
        let width = if self.kernel.columns > LONGEST_ROW { STRIP } else { self.kernel.columns };
        for run in 0..runs {
            let first = (task.reduced.0 + run) * inner + task.inner.0;
            let end = if whole { task.reduced.1 * inner } else { first + task.inner.1 - task.inner.0 };
            let mut inside = first;
            while inside < end {
                let rows = self.kernel.strip_rows.min(end - inside);
                let mut column = task.columns.0;
                while column < task.columns.1 {
                    let extent = Extent { rows, columns: width.min(task.columns.1 - column) };
                    let row = task.outer * reduced * inner + inside;
                    // SAFETY: the caller's promise.
                    unsafe { self.window(Window { row, inside, column, extent }) };
                    column += extent.columns;
                }
                inside += rows;
            }
        }
    }

    /// # Safety
    /// The window lies inside the loop.
    unsafe fn window(&mut self, window: Window) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.loaded != Some(window.column) {
                let full = Extent { rows: self.kernel.strip_rows, ..window.extent };
                for code in &self.kernel.once {
                    self.step(code, Window { extent: full, row: 0, ..window });
                }
                self.loaded = Some(window.column);
            }
            for code in &self.kernel.code {
                self.step(code, window);
            }
        }
    }

    /// # Safety
    /// The window lies inside the loop.
    unsafe fn address(&self, access: usize, window: Window) -> *mut f32 {
        let shift = self.shifts[access];
        let access = &self.kernel.accesses[access];
        let offset = shift + self.kernel.row_offset(access, window.row) + window.column as isize * access.inner;
        // SAFETY: the caller's promise.
        unsafe { access.pointer.offset(offset) }
    }

    /// # Safety
    /// The window lies inside the loop.
    unsafe fn operand(&self, location: Location, window: Window) -> Strip {
        // SAFETY: strips and rows lie in the workspace; the rest is the caller's promise.
        unsafe {
            match location {
                Location::Strip(number) => Strip::Each(self.strips.add(number * self.kernel.strip_length)),
                Location::Rows(number) => Strip::PerRow(self.rows.add(number * self.kernel.strip_rows)),
                Location::Memory(access) => Strip::Each(self.address(access, window)),
                Location::Number(number) => Strip::Number(number),
            }
        }
    }

    /// Where an instruction writes one number per element.
    ///
    /// # Safety
    /// The window lies inside the loop.
    unsafe fn target(&self, location: Location, window: Window) -> *mut f32 {
        // SAFETY: strips lie in the workspace; the rest is the caller's promise.
        unsafe {
            match location {
                Location::Strip(number) => self.strips.add(number * self.kernel.strip_length),
                Location::Memory(access) => self.address(access, window),
                Location::Rows(_) | Location::Number(_) => unreachable!("elements go to strips or memory"),
            }
        }
    }

    /// # Safety
    /// The window lies inside the loop.
    unsafe fn step(&self, code: &Code, window: Window) {
        let extent = window.extent;
        // SAFETY: the caller's promise; the lowering gives every instruction its own target.
        unsafe {
            match code {
                Code::Load { access, to } => {
                    self.copy_in(*access, window, self.strips.add(to * self.kernel.strip_length));
                }
                Code::LoadRows { access, to } => {
                    let to = self.rows.add(to * self.kernel.strip_rows);
                    let first = self.address(*access, window);
                    match self.kernel.accesses[*access].uniform {
                        Some(1) => std::ptr::copy_nonoverlapping(first, to, extent.rows),
                        _ => self.each_run(*access, window, |Run { row: skipped, rows, start, stride }| {
                            (0..rows).for_each(|row| *to.add(skipped + row) = *start.offset(row as isize * stride));
                        }),
                    }
                }
                Code::Map { map, operands, to } => {
                    let mut strips = [Strip::Number(0.0); 3];
                    for (strip, &operand) in strips.iter_mut().zip(operands).take(map.arity()) {
                        *strip = self.operand(operand, window);
                    }
                    match *to {
                        Location::Rows(number) => {
                            // An instruction on numbers per row alone treats them as a strip of one row.
                            for strip in &mut strips {
                                if let Strip::PerRow(rows) = *strip {
                                    *strip = Strip::Each(rows);
                                }
                            }
                            let to = self.rows.add(number * self.kernel.strip_rows);
                            strip::map(*map, Extent { rows: 1, columns: extent.rows }, &strips, to);
                        }
                        to => strip::map(*map, extent, &strips, self.target(to, window)),
                    }
                }
                Code::MultiplyAdd { operands, signs, to } => {
                    let [a, b, c] = *operands;
                    let strips = [self.operand(a, window), self.operand(b, window), self.operand(c, window)];
                    strip::multiply_add(extent, &strips, *signs, self.target(*to, window));
                }
                Code::DotRows { factors: [a, b], to } => {
                    let to = self.rows.add(to * self.kernel.strip_rows);
                    strip::dot_rows(extent, self.operand(*a, window), self.operand(*b, window), to);
                }
                Code::AccumulateProduct { factors, across } => {
                    let factors = factors.map(|factor| self.operand(factor, window));
                    self.accumulate_product(*across, factors, window);
                }
                Code::ReduceRows { kind, operand, to } => {
                    let to = self.rows.add(to * self.kernel.strip_rows);
                    strip::reduce_rows(*kind, extent, self.operand(*operand, window), to);
                }
                Code::Store { operand, access } => self.copy_out(self.operand(*operand, window), *access, window),
                Code::Accumulate { operand, across } => {
                    self.accumulate(*across, self.operand(*operand, window), window);
                }
            }
        }
    }

    /// # Safety
    /// The window lies inside the loop, `to` is a strip.
    unsafe fn copy_in(&self, access: usize, window: Window, to: *mut f32) {
        let columns = window.extent.columns;
        let inner = self.kernel.accesses[access].inner;
        // SAFETY: the caller's promise.
        self.each_run(access, window, |Run { row, rows, start, stride }| unsafe {
            let to = to.add(row * columns);
            match (inner, columns) {
                (1, 16) => (0..rows).for_each(|row| copy::<16>(start.offset(row as isize * stride), to.add(row * 16))),
                (1, 32) => (0..rows).for_each(|row| copy::<32>(start.offset(row as isize * stride), to.add(row * 32))),
                (1, _) => (0..rows).for_each(|row| {
                    std::ptr::copy_nonoverlapping(start.offset(row as isize * stride), to.add(row * columns), columns);
                }),
                _ => (0..rows).for_each(|row| {
                    let (from, to) = (start.offset(row as isize * stride), to.add(row * columns));
                    (0..columns).for_each(|i| *to.add(i) = *from.offset(i as isize * inner));
                }),
            }
        });
    }

    /// Rows of a window that lie at equal distances in an access, run by run: finding the address of a row takes divisions.
    fn each_run(&self, access: usize, window: Window, mut each: impl FnMut(Run)) {
        let rows = window.extent.rows;
        let Access { uniform, ref outer, .. } = self.kernel.accesses[access];
        let (axis, stride) = match uniform {
            Some(stride) => (usize::MAX, stride),
            None => (*self.kernel.row_axes.last().unwrap_or(&1), *outer.last().unwrap_or(&0)),
        };
        let mut row = 0;
        while row < rows {
            let run = (axis - (window.row + row) % axis).min(rows - row);
            // SAFETY: the window lies inside the loop.
            let start = unsafe { self.address(access, Window { row: window.row + row, ..window }) };
            each(Run { row, rows: run, start, stride });
            row += run;
        }
    }

    /// # Safety
    /// The window lies inside the loop.
    unsafe fn copy_out(&self, operand: Strip, access: usize, window: Window) {
        let Extent { rows, columns } = window.extent;
        let Access { inner, uniform, .. } = self.kernel.accesses[access];
        if let (Strip::PerRow(from), 0, Some(1)) = (operand, inner, uniform) {
            // SAFETY: the caller's promise.
            return unsafe { std::ptr::copy_nonoverlapping(from, self.address(access, window), rows) };
        }
        self.each_run(access, window, |Run { row: first, rows, start, stride }| {
            for row in 0..rows {
                // SAFETY: the caller's promise.
                unsafe {
                    let to = start.offset(row as isize * stride);
                    let number = match operand {
                        Strip::Each(from) => {
                            let from = from.add((first + row) * columns);
                            match (inner, columns) {
                                (1, 16) => copy::<16>(from, to),
                                (1, 32) => copy::<32>(from, to),
                                (1, _) => std::ptr::copy(from, to, columns),
                                _ => (0..columns).for_each(|i| *to.offset(i as isize * inner) = *from.add(i)),
                            }
                            continue;
                        }
                        Strip::PerRow(from) => *from.add(first + row),
                        Strip::Number(number) => number,
                    };
                    let columns = if inner == 0 { 1 } else { columns };
                    (0..columns).for_each(|i| *to.offset(i as isize * inner) = number);
                }
            }
        });
    }

    /// # Safety
    /// The window lies inside the loop.
    unsafe fn accumulate(&self, across: usize, operand: Strip, window: Window) {
        let [_, _, inner] = self.kernel.split;
        // SAFETY: the partial result has the extents of the window.
        unsafe {
            let partial = self.kernel.partial_result(across, self.task, self.partial, self.shifts);
            let across = &self.kernel.across[across];
            if across.whole_rows {
                let count = window.extent.rows * window.extent.columns;
                let value = match operand {
                    Strip::Each(from) => strip::reduce(across.kind, std::slice::from_raw_parts(from, count)),
                    Strip::PerRow(from) => {
                        let rows = std::slice::from_raw_parts(from, window.extent.rows);
                        let value = strip::reduce(across.kind, rows);
                        if across.kind == Reduction::Sum { value * window.extent.columns as f32 } else { value }
                    }
                    Strip::Number(number) if across.kind == Reduction::Sum => number * count as f32,
                    Strip::Number(number) => number,
                };
                *partial = strip::reduce(across.kind, &[*partial, value]);
            } else if window.extent.columns == self.kernel.columns {
                strip::fold_columns(across.kind, window.extent, operand, partial, window.inside, inner);
            } else {
                let start = window.inside % inner * self.kernel.columns + window.column;
                strip::fold_columns(across.kind, window.extent, operand, partial.add(start), 0, 1);
            }
        }
    }

    /// # Safety
    /// The window lies inside the loop; the reduction is a sum over columns.
    unsafe fn accumulate_product(&self, across: usize, factors: [Strip; 2], window: Window) {
        let [_, _, inner] = self.kernel.split;
        // SAFETY: the partial result has the extents of the window.
        unsafe {
            let partial = self.kernel.partial_result(across, self.task, self.partial, self.shifts);
            if window.extent.columns == self.kernel.columns {
                strip::fold_products(window.extent, factors, partial, window.inside, inner);
            } else {
                let start = window.inside % inner * self.kernel.columns + window.column;
                strip::fold_products(window.extent, factors, partial.add(start), 0, 1);
            }
        }
    }
}
