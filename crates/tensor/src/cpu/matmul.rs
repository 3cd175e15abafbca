//! Matrix products on the CPU: `gemm` on panels, the panels in parallel.
//!
//! Panels depend on the shape alone, so every element is summed in the same order on any number of threads. A product
//! with a long inner extent and a small result (the gradient of a weight) is cut along the inner extent instead; the
//! partial results are added in order.

use crate::compile::blocks::Moves;
use crate::compile::plan::Place;
use crate::cpu::blocks::{At, shift};
use crate::cpu::memory::{Source, Target};
use crate::cpu::team::for_each_task;
use crate::device::DeviceError;
use crate::memory;
use crate::shape::saturating_product;
use gemm_common::Parallelism;

/// Fewest multiply-adds of a task.
const WORTH_A_TASK: usize = 1 << 21;
/// Inner extent of one partial product.
const INNER_PANEL: usize = 1024;
/// The kernels of `gemm` hold this many elements in registers: along the contiguous axis of the result, and across it.
const KERNEL: [usize; 2] = [48, 8];
/// Least extent of a panel across the contiguous axis: if the operand that all panels share can be read as it lies, and if
/// each panel packs it first.
const LEAST_ACROSS: [usize; 2] = [16, 128];
/// Most panels of a product; more do not help.
const MOST_PANELS: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct MatMul {
    rows: usize,
    inner: usize,
    columns: usize,
    /// Offsets of left, right and result for each batch.
    batches: Vec<[isize; 3]>,
    left: Source<2>,
    right: Source<2>,
    to: Target<2>,
    row_panel: usize,
    column_panel: usize,
    inner_panel: usize,
    /// How left, right and result move from block to block.
    moves: [Moves; 3],
}

impl MatMul {
    /// `base` is the arena's memory at each place's buffer.
    pub(crate) fn new(
        left: &Place,
        right: &Place,
        to: &Place,
        base: impl Fn(&Place) -> *mut f32,
    ) -> Result<MatMul, DeviceError> {
        let rank = to.layout.dims.len();
        let (rows, columns) = (to.layout.dims[rank - 2], to.layout.dims[rank - 1]);
        let inner = left.layout.dims[rank - 1];
        let matrix = |place: &Place| [place.layout.strides[rank - 2], place.layout.strides[rank - 1]];
        let mut batches = memory::room(to.layout.dims[..rank - 2].iter().product(), "a product of all batches")?;
        crate::shape::for_each_index(&to.layout.dims[..rank - 2], |index| {
            let offset = |place: &Place| -> isize {
                index.iter().zip(&place.layout.strides).map(|(&i, stride)| i as isize * stride).sum()
            };
            batches.push([offset(left), offset(right), offset(to)]);
        });
        let mut product = MatMul {
            rows,
            inner,
            columns,
            left: Source { pointer: base(left), strides: matrix(left) },
            right: Source { pointer: base(right), strides: matrix(right) },
            to: Target { pointer: base(to), strides: matrix(to) },
            row_panel: rows,
            column_panel: columns,
            inner_panel: inner,
            batches,
            moves: [[0; 4]; 3],
        };
        product.choose_panels();
        Ok(product)
    }

    /// The same product, which moves from block to block.
    pub(crate) fn moving(self, moves: [Moves; 3]) -> MatMul {
        MatMul { moves, ..self }
    }

    /// The product of one block on this thread; with `adds`, it is added to what the result holds.
    ///
    /// # Safety
    /// The places of the block are valid, and no other task uses its result.
    pub(crate) unsafe fn run_block(&self, at: At, adds: bool) {
        let shifts = self.moves.map(|moves| shift(moves, at));
        for offsets in &self.batches {
            let [left, right, to] = [0, 1, 2].map(|operand| offsets[operand] + shifts[operand]);
            // SAFETY: the caller's promise.
            unsafe {
                gemm_onto(
                    [self.rows, self.inner, self.columns],
                    Source { pointer: self.left.pointer.offset(left), ..self.left },
                    Source { pointer: self.right.pointer.offset(right), ..self.right },
                    Target { pointer: self.to.pointer.offset(to), ..self.to },
                    adds,
                );
            }
        }
    }

    fn choose_panels(&mut self) {
        let work = saturating_product([self.rows, self.columns, self.inner]);
        let panels = (work / WORTH_A_TASK).clamp(1, MOST_PANELS.div_ceil(self.batches.len()));
        if panels == 1 {
            return;
        }
        if self.inner >= 2 * INNER_PANEL && self.rows * self.columns <= 1 << 18 {
            self.inner_panel = self.inner.div_ceil(self.inner.div_ceil(INNER_PANEL));
            return;
        }
        let panels = panels.next_power_of_two(); // equal work for 2, 4 or 8 threads
        let row_major = is_row_major(&self.to, self.columns);
        let (across, along, shared_stride) = match row_major {
            true => (self.rows, self.columns, self.right.strides[1]),
            false => (self.columns, self.rows, self.left.strides[0]),
        };
        let part = |extent: usize, parts: usize, kernel: usize| extent.div_ceil(parts).next_multiple_of(kernel);
        let [half, panel_across] = [2, panels].map(|parts| part(across, parts, KERNEL[1]));
        let least = LEAST_ACROSS[usize::from(shared_stride != 1)];
        let cut_across = panel_across >= least || across >= along;
        let panel = if cut_across { panel_across.max(least.min(half)) } else { part(along, panels, KERNEL[0]) };
        match cut_across == row_major {
            true => self.row_panel = panel,
            false => self.column_panel = panel,
        }
    }

    fn inner_panels(&self) -> usize {
        self.inner.div_ceil(self.inner_panel)
    }

    /// Floats of scratch for partial results.
    pub(crate) fn scratch(&self) -> usize {
        match self.inner_panels() {
            1 => 0,
            panels => saturating_product([panels, self.rows, self.columns, self.batches.len()]),
        }
    }

    /// # Safety
    /// The places are valid, and `scratch` holds [`MatMul::scratch`] floats that are in no other use.
    pub(crate) unsafe fn run(&self, scratch: *mut f32) {
        if self.inner_panels() > 1 {
            // SAFETY: the caller's promise.
            return unsafe { self.run_inner_panels(scratch) };
        }
        let row_panels = self.rows.div_ceil(self.row_panel);
        let column_panels = self.columns.div_ceil(self.column_panel);
        let each = row_panels * column_panels;
        let task = |task: usize| {
            let (batch, panel) = (task / each, task % each);
            let (row, column) = (panel / column_panels * self.row_panel, panel % column_panels * self.column_panel);
            let rows = self.row_panel.min(self.rows - row);
            let columns = self.column_panel.min(self.columns - column);
            let [left, right, to] = self.batches[batch];
            // SAFETY: the panel lies inside the result; panels are disjoint.
            unsafe {
                gemm(
                    [rows, self.inner, columns],
                    Source { pointer: self.left.at([row, 0]).offset(left), ..self.left },
                    Source { pointer: self.right.at([0, column]).offset(right), ..self.right },
                    Target { pointer: self.to.at([row, column]).offset(to), ..self.to },
                );
            }
        };
        for_each_task(each * self.batches.len(), task);
    }

    /// # Safety
    /// As for [`MatMul::run`].
    unsafe fn run_inner_panels(&self, scratch: *mut f32) {
        let panels = self.inner_panels();
        let size = self.rows * self.columns;
        let partials = Target::<1> { pointer: scratch, strides: [1] };
        for_each_task(panels * self.batches.len(), |task| {
            let (batch, start) = (task / panels, task % panels * self.inner_panel);
            let inner = self.inner_panel.min(self.inner - start);
            let [left, right, _] = self.batches[batch];
            // SAFETY: each task owns one partial result.
            unsafe {
                gemm(
                    [self.rows, inner, self.columns],
                    Source { pointer: self.left.at([0, start]).offset(left), ..self.left },
                    Source { pointer: self.right.at([start, 0]).offset(right), ..self.right },
                    Target { pointer: partials.at([task * size]), strides: [self.columns as isize, 1] },
                );
            }
        });
        for_each_task(self.batches.len() * self.rows, |row| {
            let (batch, row) = (row / self.rows, row % self.rows);
            // SAFETY: each task owns one row of the result.
            unsafe {
                let first = partials.at([batch * panels * size + row * self.columns]);
                let sum = std::slice::from_raw_parts_mut(first, self.columns);
                for panel in 1..panels {
                    let next = std::slice::from_raw_parts(first.add(panel * size), self.columns);
                    sum.iter_mut().zip(next).for_each(|(sum, next)| *sum += next);
                }
                for (column, sum) in sum.iter().enumerate() {
                    *self.to.at([row, column]).offset(self.batches[batch][2]) = *sum;
                }
            }
        });
    }
}

/// Whether the rows of a result are contiguous, rather than its columns.
fn is_row_major(to: &Target<2>, columns: usize) -> bool {
    to.strides[0].abs() >= to.strides[1].abs() && columns > 1
}

/// `to = left × right` on this thread; extents are `[rows, inner, columns]`.
///
/// # Safety
/// The matrices lie in valid memory, and no other task uses the result.
pub(crate) unsafe fn gemm(extents: [usize; 3], left: Source<2>, right: Source<2>, to: Target<2>) {
    // SAFETY: the caller's promise.
    unsafe { gemm_onto(extents, left, right, to, false) }
}

/// The same; with `adds`, `to += left × right`.
///
/// # Safety
/// As for [`gemm`].
unsafe fn gemm_onto([rows, inner, columns]: [usize; 3], left: Source<2>, right: Source<2>, to: Target<2>, adds: bool) {
    // `gemm` is fastest if the columns of the result are contiguous; the transposed product writes a row-major result so.
    if is_row_major(&to, columns) {
        let turned = |[rows, columns]: [isize; 2]| [columns, rows];
        let left = Source { strides: turned(left.strides), ..left };
        let right = Source { strides: turned(right.strides), ..right };
        let to = Target { strides: turned(to.strides), ..to };
        // SAFETY: the caller's promise; the same memory under exchanged axes.
        return unsafe { gemm_column_major([columns, inner, rows], right, left, to, adds) };
    }
    // SAFETY: the caller's promise.
    unsafe { gemm_column_major([rows, inner, columns], left, right, to, adds) }
}

/// # Safety
/// As for [`gemm`].
unsafe fn gemm_column_major(
    [rows, inner, columns]: [usize; 3],
    left: Source<2>,
    right: Source<2>,
    to: Target<2>,
    adds: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            rows,
            columns,
            inner,
            to.pointer,
            to.strides[1],
            to.strides[0],
            adds,
            left.pointer,
            left.strides[1],
            left.strides[0],
            right.pointer,
            right.strides[1],
            right.strides[0],
            if adds { 1.0 } else { 0.0 },
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A product with a row-major result; `turned` if the right operand lies transposed.
    fn product([rows, inner, columns]: [usize; 3], turned: bool) -> MatMul {
        let row_major = [columns as isize, 1];
        let right = if turned { [1, inner as isize] } else { row_major };
        let pointer = std::ptr::null_mut();
        let mut product = MatMul {
            rows,
            inner,
            columns,
            batches: vec![[0; 3]],
            left: Source { pointer, strides: [inner as isize, 1] },
            right: Source { pointer, strides: right },
            to: Target { pointer, strides: row_major },
            row_panel: rows,
            column_panel: columns,
            inner_panel: inner,
            moves: [[0; 4]; 3],
        };
        product.choose_panels();
        product
    }

    #[test]
    fn two_threads_get_almost_equal_parts_of_a_layer() {
        for turned in [false, true] {
            for shape in [[972, 128, 128], [972, 256, 128], [972, 128, 256], [128, 972, 128], [256, 972, 128]] {
                let MatMul { rows, row_panel, column_panel, columns, .. } = product(shape, turned);
                assert_eq!(column_panel, columns, "{shape:?}");
                let panels = rows.div_ceil(row_panel);
                let first = (panels.div_ceil(2) * row_panel) as f64 / rows as f64;
                assert!(panels >= 2 && first <= 0.53, "{shape:?}: {panels} panels of {row_panel} rows, {first}");
            }
        }
    }

    #[test]
    fn a_small_product_is_one_task() {
        let MatMul { row_panel, column_panel, inner_panel, .. } = product([16, 128, 128], false);
        assert_eq!([row_panel, column_panel, inner_panel], [16, 128, 128]);
    }

    #[test]
    fn few_long_rows_are_cut_into_columns_of_whole_kernels() {
        let MatMul { row_panel, column_panel, .. } = product([8, 1024, 4096], false);
        assert_eq!((row_panel, column_panel % KERNEL[0]), (8, 0));
        assert!(column_panel < 4096);
    }
}
