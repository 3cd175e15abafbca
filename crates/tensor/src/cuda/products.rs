//! Matrix products by cuBLASLt.

use super::gpu::Gpu;
use super::library::{Address, Handle};
use super::lower::{Matrix, Product};
use super::status;
use crate::device::DeviceError;
use crate::ops::Precision;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

/// The way in which cuBLASLt proposes to compute a product: `cublasLtMatmulHeuristicResult_t`.
#[repr(C, align(8))]
struct Choice {
    algorithm: [u64; 8],
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// A product that can be put on a stream.
pub(crate) struct Prepared {
    operation: Handle,
    layouts: [Handle; 3],
    /// Bytes from the start of the arena.
    offsets: [Address; 3],
    choice: Choice,
    gpu: Arc<Gpu>,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: created once in `new`.
        unsafe {
            self.layouts.iter().filter(|layout| !layout.is_null()).for_each(|&layout| {
                (self.gpu.products.layout_destroy)(layout);
            });
            (self.gpu.products.operation_destroy)(self.operation);
        }
    }
}

fn error(status: c_int, what: &str) -> DeviceError {
    let kind = status::product_kind(status);
    DeviceError::new(kind, format!("{what} failed: cuBLASLt returns status {status}; {}", status::advice(kind)))
}

/// A row-major matrix as cuBLASLt's column-major one: `(rows, columns, leading dimension, transposed)`.
fn column_major(matrix: &Matrix, rows: usize, columns: usize) -> (usize, usize, usize, bool) {
    let [r, c, _] = matrix.strides;
    if (c == 1 || columns == 1) && (rows == 1 || r >= columns as isize) {
        (columns, rows, if rows == 1 { columns } else { r as usize }, false)
    } else {
        (rows, columns, if columns == 1 { rows } else { c as usize }, true)
    }
}

impl Prepared {
    /// `offset`: where an element of a buffer is, in bytes from the start of the arena, which is aligned to 256 bytes.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        product: &Product,
        offset: &impl Fn(usize, isize) -> Address,
        workspace: usize,
    ) -> Result<Prepared, DeviceError> {
        let lt = &gpu.products;
        let [m, n, k] = product.extents;
        let compute: c_int = match product.precision {
            Precision::F32 => 68,
            Precision::Tf32 => 77,
            Precision::Bf16 => 75,
        };
        // Cᵀ = Bᵀ·Aᵀ: the row-major right side is the first operand.
        let parts = [(&product.right, k, n), (&product.left, m, k), (&product.to, m, n)];
        let check = |status: c_int| match status {
            0 => Ok(()),
            _ => Err(error(status, &format!("preparing a product [{m}, {k}] × [{k}, {n}]"))),
        };
        let mut prepared = Prepared {
            operation: ptr::null_mut(),
            layouts: [ptr::null_mut(); 3],
            offsets: [0; 3],
            choice: Choice { algorithm: [0; 8], workspace: 0, state: 0, waves: 0.0, reserved: [0; 4] },
            gpu: gpu.clone(),
        };
        let set = |value: &c_int| ptr::from_ref(value).cast::<c_void>();
        // SAFETY: every pointer is valid for its call; handles are destroyed with `prepared` or below.
        unsafe {
            check((lt.operation_create)(&raw mut prepared.operation, compute, 0))?;
            let mut preference = ptr::null_mut();
            check((lt.preference_create)(&raw mut preference))?;
            (lt.preference_set)(preference, 1, ptr::from_ref(&workspace).cast(), size_of::<usize>());
            for (position, (matrix, rows, columns)) in parts.into_iter().enumerate() {
                let (r, c, leading, transposed) = column_major(matrix, rows, columns);
                check((lt.layout_create)(&raw mut prepared.layouts[position], 0, r as u64, c as u64, leading as i64))?;
                let (count, stride) = (product.batch as c_int, matrix.strides[2] as i64);
                if count > 1 {
                    (lt.layout_set)(prepared.layouts[position], 5, set(&count), 4);
                    (lt.layout_set)(prepared.layouts[position], 6, ptr::from_ref(&stride).cast(), 8);
                }
                if position < 2 {
                    (lt.operation_set)(prepared.operation, 3 + position as c_int, set(&c_int::from(transposed)), 4);
                }
                prepared.offsets[position] = offset(matrix.buffer, matrix.offset);
                let mut alignment = 1_u32 << prepared.offsets[position].trailing_zeros().min(8);
                for step in [stride * i64::from(count > 1), leading as i64] {
                    if step != 0 {
                        alignment = alignment.min(1 << (4 * step).trailing_zeros().min(8));
                    }
                }
                let aligned = alignment.max(4);
                (lt.preference_set)(preference, 5 + position as c_int, ptr::from_ref(&aligned).cast(), 4);
                if position == 2 {
                    (lt.preference_set)(preference, 8, ptr::from_ref(&aligned).cast(), 4);
                }
            }
            let [a, b, c] = prepared.layouts;
            let mut found = 0;
            let status = (lt.choose)(
                gpu.multiplier,
                prepared.operation,
                a,
                b,
                c,
                c,
                preference,
                1,
                ptr::from_mut(&mut prepared.choice).cast(),
                &raw mut found,
            );
            (lt.preference_destroy)(preference);
            check(status)?;
            check(if found == 0 { 15 } else { 0 })?;
        }
        Ok(prepared)
    }

    /// Bytes of its workspace.
    pub(crate) fn workspace(&self) -> usize {
        self.choice.workspace
    }

    pub(crate) fn submit(
        &self,
        gpu: &Gpu,
        arena: Address,
        workspace: Address,
        stream: Handle,
    ) -> Result<(), DeviceError> {
        let (one, zero) = (1.0_f32, 0.0_f32);
        let [a, b, c] = self.layouts;
        let [pa, pb, pc] = self.offsets.map(|offset| arena + offset);
        // SAFETY: the addresses hold the matrices the layouts describe.
        let status = unsafe {
            (gpu.products.multiply)(
                gpu.multiplier,
                self.operation,
                ptr::from_ref(&one).cast(),
                pa,
                a,
                pb,
                b,
                ptr::from_ref(&zero).cast(),
                pc,
                c,
                pc,
                c,
                ptr::from_ref(&self.choice.algorithm).cast(),
                workspace,
                self.choice.workspace,
                stream,
            )
        };
        match status {
            0 => Ok(()),
            _ => Err(error(status, "starting a product")),
        }
    }
}
