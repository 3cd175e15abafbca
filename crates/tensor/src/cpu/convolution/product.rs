//! What all ways to a dense convolution share: one matrix product on one thread, and copies from any strides.

use gemm_common::Parallelism;

/// A matrix in memory.
#[derive(Clone, Copy)]
pub(super) struct Matrix<P> {
    pub(super) pointer: P,
    pub(super) row_stride: isize,
    pub(super) column_stride: isize,
}

/// C = A·B, or C += A·B if `accumulate`; `[m, n] = [m, k] · [k, n]`, on this thread alone.
///
/// # Safety
/// The matrices have these sizes, and C overlaps neither A nor B.
pub(super) unsafe fn multiply(
    [m, n, k]: [usize; 3],
    c: Matrix<*mut f32>,
    accumulate: bool,
    a: Matrix<*const f32>,
    b: Matrix<*const f32>,
) {
    let product = gemm_f32::gemm::f32::get_gemm_fn();
    let previous = if accumulate { 1.0 } else { 0.0 };
    // SAFETY: the caller's promise; the function was chosen for this machine.
    unsafe {
        product(
            m,
            n,
            k,
            c.pointer,
            c.column_stride,
            c.row_stride,
            accumulate,
            a.pointer,
            a.column_stride,
            a.row_stride,
            b.pointer,
            b.column_stride,
            b.row_stride,
            previous,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// # Safety
/// `values.len()` floats, `stride` apart, are readable from `source`.
#[inline(always)]
pub(super) unsafe fn copy_strided(source: *const f32, stride: isize, values: &mut [f32]) {
    if stride == 1 {
        // SAFETY: the caller's promise.
        return values.copy_from_slice(unsafe { std::slice::from_raw_parts(source, values.len()) });
    }
    for (index, value) in values.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *value = unsafe { *source.offset(index as isize * stride) };
    }
}
