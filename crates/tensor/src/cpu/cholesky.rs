//! Inverse Cholesky factors on the CPU, in double precision: a matrix of 64 rows takes a few microseconds, and a covariance has
//! few digits to lose.

use super::memory::{Source, Target};
use crate::cpu::team::for_each_task;
use crate::ops::cholesky;

/// # Safety
/// Both views have `matrices` matrices of `side` rows.
pub(crate) unsafe fn inverse_cholesky([matrices, side]: [usize; 2], jitter: f64, from: Source<3>, to: Target<3>) {
    for_each_task(matrices, |matrix| {
        // SAFETY: the caller's promise; each task has a matrix of its own.
        let value = |i: usize| f64::from(unsafe { *from.at([matrix, i / side, i % side]) });
        let values: Vec<f64> = (0..side * side).map(value).collect();
        for (i, value) in cholesky::guarded(&values, side, jitter).into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { *to.at([matrix, i / side, i % side]) = value as f32 };
        }
    });
}
