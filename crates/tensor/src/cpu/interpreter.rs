//! The loop interpreter: a fused loop as a short program over strips that stay in the first-level cache.
//!
//! Rows are cut into tasks and strips by the shape alone, so results do not depend on the number of threads. An
//! operand that lies contiguously is read where it is; everything else is copied into a strip first.

use crate::compile::fuse::LONGEST_ROW;
use crate::compile::plan::{Instruction, Level, Loop, Operand, Place};
use crate::cpu::matmul::for_each_task;
use crate::cpu::memory::Target;
use crate::cpu::strip::{self, Extent, Strip};
use crate::ops::{Map, Reduction};
use std::cell::RefCell;

/// Elements of a strip.
const STRIP: usize = 1024;
/// Elements that are worth a task of their own.
const WORTH_A_TASK: usize = 1 << 15;
/// A reduction across rows keeps partial results up to this size; larger ones are cut along the result instead.
const LARGEST_PARTIAL: usize = 1 << 13;

/// How a loop walks one place in memory.
#[derive(Clone, Debug)]
struct Access {
    pointer: *mut f32,
    /// Strides of the row axes.
    outer: Vec<isize>,
    /// Stride from row to row, where it is the same for all rows.
    uniform: Option<isize>,
    inner: isize,
}

// SAFETY: the planner keeps what tasks write disjoint; see `cpu::memory`.
unsafe impl Send for LoopKernel {}
unsafe impl Sync for LoopKernel {}

/// Where an operand is while a strip is under way.
#[derive(Clone, Copy, Debug)]
enum Location {
    /// A strip of the workspace.
    Strip(usize),
    /// One number per row, in the workspace.
    Rows(usize),
    /// In place.
    Memory(usize),
    Number(f32),
}

#[derive(Clone, Debug)]
enum Code {
    Load { access: usize, to: usize },
    LoadRows { access: usize, to: usize },
    Map { map: Map, operands: [Location; 3], to: Location },
    ReduceRows { kind: Reduction, operand: Location, to: usize },
    Store { operand: Location, access: usize },
    Accumulate { operand: Location, across: usize },
}

#[derive(Clone, Debug)]
struct AcrossRows {
    kind: Reduction,
    whole_rows: bool,
    /// `[outer, inner, columns]`
    to: Target<3>,
    /// Offset and length of the partial result inside a task's share of the scratch memory.
    start: usize,
    length: usize,
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
    /// Loads that every strip of a task shares.
    once: Vec<Code>,
    code: Vec<Code>,
    strips: usize,
    strip_length: usize,
    row_strips: usize,
    strip_rows: usize,
    across: Vec<AcrossRows>,
    partial: usize,
    /// Every task owns the results it adds to, so it adds where they lie.
    direct: bool,
    tasks: Vec<Task>,
}

thread_local! {
    static WORKSPACE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

impl LoopKernel {
    pub(crate) fn new(body: &Loop, base: impl Fn(&Place) -> *mut f32) -> LoopKernel {
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
        };
        for across in &body.across {
            let [outer, inner, width] = [0, 1, 2].map(|axis| across.to.layout.dims[axis]);
            debug_assert_eq!(outer, body.split[0]);
            let strides = [0, 1, 2].map(|axis| across.to.layout.strides[axis]);
            debug_assert!(across.to.layout.is_contiguous());
            let to = Target { pointer: base(&across.to), strides };
            let (kind, whole_rows) = (across.kind, across.whole_rows);
            kernel.across.push(AcrossRows { kind, whole_rows, to, start: kernel.partial, length: inner * width });
            kernel.partial += inner * width;
        }
        Lowering::new(&mut kernel, body, base).lower(body);
        kernel.tasks = kernel.cut();
        let owns = |task: &Task| {
            let all_columns = task.columns == (0, columns);
            let one_sum = kernel.across.iter().any(|across| across.whole_rows);
            task.reduced == (0, body.split[1]) && (!one_sum || all_columns)
        };
        kernel.direct = kernel.tasks.iter().all(owns);
        kernel
    }

    /// Floats of scratch for partial results.
    pub(crate) fn scratch(&self) -> usize {
        if self.direct { 0 } else { self.partial * self.tasks.len() }
    }

    /// Cuts the rows into tasks of about equal work.
    fn cut(&self) -> Vec<Task> {
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
        let mut tasks = Vec::new();
        for outer in 0..outer {
            for reduced in ranges(reduced, reduced_step) {
                for inner in ranges(inner, inner_step) {
                    for columns in ranges(self.columns, column_step) {
                        tasks.push(Task { outer, reduced, inner, columns });
                    }
                }
            }
        }
        tasks
    }

    /// # Safety
    /// All places are valid, and `scratch` holds [`LoopKernel::scratch`] floats nobody else uses.
    pub(crate) unsafe fn run(&self, scratch: *mut f32) {
        let partials = Target::<1> { pointer: scratch, strides: [1] };
        for_each_task(self.tasks.len(), |task| {
            // SAFETY: each task has its own share of the scratch memory and its own rows.
            unsafe { self.run_task(&self.tasks[task], partials.at([task * self.partial])) };
        });
        for across in self.across.iter().filter(|_| !self.direct) {
            // SAFETY: the tasks have finished; their partial results are complete.
            unsafe { self.combine(across, partials) };
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
    unsafe fn run_task(&self, task: &Task, partial: *mut f32) {
        WORKSPACE.with_borrow_mut(|workspace| {
            let needed = self.strips * self.strip_length + self.row_strips * self.strip_rows + 16;
            if workspace.len() < needed {
                workspace.resize(needed, 0.0);
            }
            let aligned = workspace.as_ptr().align_offset(64);
            // SAFETY: the workspace has room for the shift; the rest is the caller's promise.
            unsafe {
                for across in &self.across {
                    self.clear_partial(across, task, self.partial_result(across, task, partial));
                }
                let strips = workspace.as_mut_ptr().add(aligned);
                let rows = strips.add(self.strips * self.strip_length);
                Walk { kernel: self, task, strips, rows, partial, loaded: None }.run();
            }
        });
    }

    /// Where a task adds up its share of a result.
    ///
    /// # Safety
    /// `partial` is the task's share of the scratch memory, unless results are direct.
    unsafe fn partial_result(&self, across: &AcrossRows, task: &Task, partial: *mut f32) -> *mut f32 {
        // SAFETY: the caller's promise.
        unsafe {
            if self.direct { across.to.pointer.add(task.outer * across.length) } else { partial.add(across.start) }
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

/// One task at work.
struct Walk<'a> {
    kernel: &'a LoopKernel,
    task: &'a Task,
    strips: *mut f32,
    rows: *mut f32,
    partial: *mut f32,
    /// Columns for which the shared loads are in place.
    loaded: Option<usize>,
}

/// The rectangle under way.
#[derive(Clone, Copy)]
struct Window {
    row: usize,
    /// Position of the first row inside `reduced · inner`.
    inside: usize,
    column: usize,
    extent: Extent,
}

impl Walk<'_> {
    /// # Safety
    /// As for [`LoopKernel::run_task`].
    unsafe fn run(mut self) {
        let task = self.task;
        let [_, reduced, inner] = self.kernel.split;
        // Rows that follow each other are one run: all of the task's, unless it takes only some of the inner ones.
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
        let access = &self.kernel.accesses[access];
        let offset = self.kernel.row_offset(access, window.row) + window.column as isize * access.inner;
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
                    for row in 0..extent.rows {
                        *to.add(row) = *self.address(*access, Window { row: window.row + row, ..window });
                    }
                }
                Code::Map { map, operands, to } => {
                    let operands = operands.map(|operand| self.operand(operand, window));
                    match *to {
                        Location::Rows(number) => {
                            // Numbers per row among themselves are a strip of one row.
                            let flat = operands.map(|operand| match operand {
                                Strip::PerRow(rows) => Strip::Each(rows),
                                other => other,
                            });
                            let to = self.rows.add(number * self.kernel.strip_rows);
                            strip::map(*map, Extent { rows: 1, columns: extent.rows }, flat, to);
                        }
                        Location::Strip(number) => {
                            strip::map(*map, extent, operands, self.strips.add(number * self.kernel.strip_length));
                        }
                        Location::Memory(access) => strip::map(*map, extent, operands, self.address(access, window)),
                        Location::Number(_) => unreachable!("a map never writes a number"),
                    }
                }
                Code::ReduceRows { kind, operand, to } => {
                    let to = self.rows.add(to * self.kernel.strip_rows);
                    strip::reduce_rows(*kind, extent, self.operand(*operand, window), to);
                }
                Code::Store { operand, access } => self.copy_out(self.operand(*operand, window), *access, window),
                Code::Accumulate { operand, across } => {
                    self.accumulate(&self.kernel.across[*across], self.operand(*operand, window), window);
                }
            }
        }
    }

    /// # Safety
    /// The window lies inside the loop, `to` is a strip.
    unsafe fn copy_in(&self, access: usize, window: Window, to: *mut f32) {
        let Extent { rows, columns } = window.extent;
        let inner = self.kernel.accesses[access].inner;
        for row in 0..rows {
            // SAFETY: the caller's promise.
            unsafe {
                let from = self.address(access, Window { row: window.row + row, ..window });
                let to = to.add(row * columns);
                match inner {
                    1 => std::ptr::copy_nonoverlapping(from, to, columns),
                    _ => (0..columns).for_each(|i| *to.add(i) = *from.offset(i as isize * inner)),
                }
            }
        }
    }

    /// # Safety
    /// The window lies inside the loop.
    unsafe fn copy_out(&self, operand: Strip, access: usize, window: Window) {
        let Extent { rows, columns } = window.extent;
        let Access { inner, .. } = self.kernel.accesses[access];
        for row in 0..rows {
            // SAFETY: the caller's promise.
            unsafe {
                let to = self.address(access, Window { row: window.row + row, ..window });
                let number = match operand {
                    Strip::Each(from) => {
                        let from = from.add(row * columns);
                        match inner {
                            1 => std::ptr::copy(from, to, columns),
                            _ => (0..columns).for_each(|i| *to.offset(i as isize * inner) = *from.add(i)),
                        }
                        continue;
                    }
                    Strip::PerRow(from) => *from.add(row),
                    Strip::Number(number) => number,
                };
                let columns = if inner == 0 { 1 } else { columns };
                (0..columns).for_each(|i| *to.offset(i as isize * inner) = number);
            }
        }
    }

    /// # Safety
    /// The window lies inside the loop.
    unsafe fn accumulate(&self, across: &AcrossRows, operand: Strip, window: Window) {
        let [_, _, inner] = self.kernel.split;
        // SAFETY: the partial result has room for what the extents name.
        unsafe {
            let partial = self.kernel.partial_result(across, self.task, self.partial);
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
}

/// Turns instructions into code: registers get strips, or stay where they are in memory.
struct Lowering<'a, F> {
    kernel: &'a mut LoopKernel,
    base: F,
    locations: Vec<Location>,
    levels: Vec<Level>,
    /// Last instruction that reads a register.
    last_use: Vec<usize>,
    free: Vec<usize>,
    free_rows: Vec<usize>,
    /// Buffers that the loop reads: a store into one of them must wait until the strip is done.
    read: Vec<usize>,
}

impl<'a, F: Fn(&Place) -> *mut f32> Lowering<'a, F> {
    fn new(kernel: &'a mut LoopKernel, body: &Loop, base: F) -> Self {
        let loaded = |instruction: &Instruction| match instruction {
            Instruction::Load { from, .. } => Some(from.buffer),
            _ => None,
        };
        let read: Vec<usize> = body.instructions.iter().filter_map(loaded).collect();
        let mut last_use = vec![0; body.levels.len()];
        for (time, instruction) in body.instructions.iter().enumerate() {
            let mut uses = |operand: &Operand, time: usize| {
                if let Operand::Register(register) = operand {
                    last_use[*register] = time.max(last_use[*register]);
                }
            };
            match instruction {
                Instruction::Map { operands, .. } => operands.iter().for_each(|operand| uses(operand, time)),
                Instruction::Store { operand, to } if read.contains(&to.buffer) => uses(operand, usize::MAX),
                Instruction::ReduceRow { operand, .. }
                | Instruction::Store { operand, .. }
                | Instruction::Accumulate { operand, .. } => uses(operand, time),
                Instruction::Load { .. } => {}
            }
        }
        let locations = vec![Location::Number(0.0); body.levels.len()];
        let levels = body.levels.clone();
        Lowering { kernel, base, locations, levels, last_use, free: Vec::new(), free_rows: Vec::new(), read }
    }

    fn access(&mut self, place: &Place) -> usize {
        let last = place.layout.dims.len() - 1;
        let outer = place.layout.strides[..last].to_vec();
        let axes = &self.kernel.row_axes;
        let mut uniform = Some(0);
        // Rows follow each other evenly when each axis continues where the one inside it ends.
        let moving: Vec<(usize, isize)> =
            axes.iter().copied().zip(outer.iter().copied()).filter(|&(extent, _)| extent != 1).collect();
        if let Some(&(_, innermost)) = moving.last() {
            let even = moving.windows(2).all(|pair| pair[0].1 == pair[1].1 * pair[1].0 as isize);
            uniform = even.then_some(innermost);
        }
        let inner = place.layout.strides[last];
        self.kernel.accesses.push(Access { pointer: (self.base)(place), outer, uniform, inner });
        self.kernel.accesses.len() - 1
    }

    /// Whether strips of this access are contiguous in memory.
    fn is_flat(&self, access: usize) -> bool {
        let Access { uniform, inner, .. } = &self.kernel.accesses[access];
        let columns = self.kernel.columns;
        let rows: usize = self.kernel.row_axes.iter().product();
        let one_row = rows == 1 || columns > LONGEST_ROW || self.kernel.strip_rows == 1;
        (*inner == 1 || columns == 1) && (one_row || *uniform == Some(columns as isize))
    }

    fn take_strip(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.kernel.strips += 1;
            self.kernel.strips - 1
        })
    }

    fn take_rows(&mut self) -> usize {
        self.free_rows.pop().unwrap_or_else(|| {
            self.kernel.row_strips += 1;
            self.kernel.row_strips - 1
        })
    }

    fn location(&self, operand: &Operand) -> Location {
        match operand {
            Operand::Register(register) => self.locations[*register],
            Operand::Number(number) => Location::Number(*number),
        }
    }

    fn lower(mut self, body: &Loop) {
        let mut stored_directly = vec![false; body.instructions.len()];
        let mut permanent = vec![false; body.levels.len()];
        // A store into memory that the loop also reads runs last, when the strip has been read.
        let mut late = Vec::new();
        for (time, instruction) in body.instructions.iter().enumerate() {
            match instruction {
                Instruction::Load { from, to } => permanent[*to] = self.load(from, *to),
                Instruction::Map { map, operands, to } => {
                    let operands = [0, 1, 2].map(|position| self.location(&operands[position]));
                    let target = match self.levels[*to] {
                        Level::Row => Location::Rows(self.take_rows()),
                        Level::Element => match self.direct_store(body, *to) {
                            Some((store, access)) => {
                                stored_directly[store] = true;
                                Location::Memory(access)
                            }
                            None => Location::Strip(self.take_strip()),
                        },
                    };
                    self.locations[*to] = target;
                    self.kernel.code.push(Code::Map { map: *map, operands, to: target });
                }
                Instruction::ReduceRow { kind, operand, to } => {
                    let operand = self.location(operand);
                    let rows = self.take_rows();
                    self.locations[*to] = Location::Rows(rows);
                    self.kernel.code.push(Code::ReduceRows { kind: *kind, operand, to: rows });
                }
                Instruction::Store { operand, to } => {
                    if !stored_directly[time] {
                        let access = self.access(to);
                        let store = Code::Store { operand: self.location(operand), access };
                        if self.read.contains(&to.buffer) { late.push(store) } else { self.kernel.code.push(store) }
                    }
                }
                Instruction::Accumulate { operand, across } => {
                    self.kernel.code.push(Code::Accumulate { operand: self.location(operand), across: *across });
                }
            }
            for register in (0..body.levels.len()).filter(|&r| self.last_use[r] == time && !permanent[r]) {
                match self.locations[register] {
                    Location::Strip(strip) if !self.free.contains(&strip) => self.free.push(strip),
                    Location::Rows(rows) if !self.free_rows.contains(&rows) => self.free_rows.push(rows),
                    _ => {}
                }
            }
        }
        self.kernel.code.append(&mut late);
    }

    /// Loads a register; whether its strip serves the whole task.
    fn load(&mut self, from: &Place, to: usize) -> bool {
        let access = self.access(from);
        if self.levels[to] == Level::Row {
            let rows = self.take_rows();
            self.locations[to] = Location::Rows(rows);
            self.kernel.code.push(Code::LoadRows { access, to: rows });
            return false;
        }
        if self.is_flat(access) {
            self.locations[to] = Location::Memory(access);
            return true;
        }
        let same_for_all_rows = self.kernel.accesses[access].uniform == Some(0);
        let strip = if same_for_all_rows {
            self.kernel.strips += 1; // never shared: it outlives the strip under way
            self.kernel.strips - 1
        } else {
            self.take_strip()
        };
        self.locations[to] = Location::Strip(strip);
        let code = Code::Load { access, to: strip };
        if same_for_all_rows {
            self.kernel.once.push(code);
        } else {
            self.kernel.code.push(code);
        }
        same_for_all_rows
    }

    /// The store of a register that the map can write itself: contiguous, into memory the loop does not read.
    fn direct_store(&mut self, body: &Loop, register: usize) -> Option<(usize, usize)> {
        for (time, instruction) in body.instructions.iter().enumerate() {
            if let Instruction::Store { operand: Operand::Register(from), to } = instruction
                && *from == register
                && !self.read.contains(&to.buffer)
            {
                let access = self.access(to);
                if self.is_flat(access) {
                    return Some((time, access));
                }
                self.kernel.accesses.pop();
            }
        }
        None
    }
}
