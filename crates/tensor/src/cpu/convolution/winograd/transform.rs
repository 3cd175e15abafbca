//! The five linear maps of Winograd's filtering, each along one axis, and their use along both axes of a window.
//!
//! A product of polynomials is known from its values at as many points as it has coefficients (Toom and Cook). Here the
//! points are 0, ±a, ±b and ∞, and the maps evaluate at ±a and ±b together: the even and the odd part are shared.
//!
//! With a = 5/8 and b = 3/2 the root mean square error of y, dx and dw is 2.0 to 2.8 times that of the direct sum in f32 (16 to
//! 192 channels). With the usual points ±1 and ±2 it is 4.1 to 5.4 times as large. All powers of a and b below are exact.

use crate::cpu::simd::Unit;
use std::mem::MaybeUninit;

/// Channels that are transformed together.
pub(super) const LANES: usize = 16;
/// One value of a window for [`LANES`] channels.
pub(super) type Lanes = [f32; LANES];

const A: f32 = 5.0 / 8.0;
const B: f32 = 3.0 / 2.0;
const A2: f32 = A * A;
const B2: f32 = B * B;
const A3: f32 = A2 * A;
const B3: f32 = B2 * B;
/// Weights of a filter at the points 0, ±a and ±b: 1 / Π (point − other point).
const AT_ZERO: f32 = 1.0 / (A2 * B2);
const AT_A: f32 = 1.0 / (2.0 * A2 * (A2 - B2));
const AT_B: f32 = 1.0 / (2.0 * B2 * (B2 - A2));

/// `Bᵀ d`: six neighbouring pixels.
#[inline(always)]
pub(super) fn source<U: Unit>(d: [f32; 6]) -> [f32; 6] {
    let even = |square: f32| U::mul_add(-square, d[2], d[4]);
    let odd = |square: f32| U::mul_add(-square, d[1], d[3]);
    [
        U::mul_add(A2 * B2, d[0], U::mul_add(-(A2 + B2), d[2], d[4])),
        U::mul_add(A, odd(B2), even(B2)),
        U::mul_add(-A, odd(B2), even(B2)),
        U::mul_add(B, odd(A2), even(A2)),
        U::mul_add(-B, odd(A2), even(A2)),
        U::mul_add(A2 * B2, d[1], U::mul_add(-(A2 + B2), d[3], d[5])),
    ]
}

/// `G g`: three taps.
#[inline(always)]
pub(super) fn filter<U: Unit>(g: [f32; 3]) -> [f32; 6] {
    let even = |square: f32| U::mul_add(square, g[2], g[0]);
    [
        AT_ZERO * g[0],
        AT_A * U::mul_add(A, g[1], even(A2)),
        AT_A * U::mul_add(-A, g[1], even(A2)),
        AT_B * U::mul_add(B, g[1], even(B2)),
        AT_B * U::mul_add(-B, g[1], even(B2)),
        g[2],
    ]
}

/// `Aᵀ m`: four neighbouring results.
#[inline(always)]
pub(super) fn result<U: Unit>(m: [f32; 6]) -> [f32; 4] {
    let (even_a, odd_a) = (m[1] + m[2], m[1] - m[2]);
    let (even_b, odd_b) = (m[3] + m[4], m[3] - m[4]);
    [
        m[0] + (even_a + even_b),
        U::mul_add(A, odd_a, B * odd_b),
        U::mul_add(A2, even_a, B2 * even_b),
        U::mul_add(A3, odd_a, U::mul_add(B3, odd_b, m[5])),
    ]
}

/// `A y`: the adjoint of [`result`].
#[inline(always)]
pub(super) fn result_gradient<U: Unit>(y: [f32; 4]) -> [f32; 6] {
    let (even_a, odd_a) = (U::mul_add(A2, y[2], y[0]), U::mul_add(A3, y[3], A * y[1]));
    let (even_b, odd_b) = (U::mul_add(B2, y[2], y[0]), U::mul_add(B3, y[3], B * y[1]));
    [y[0], even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, y[3]]
}

/// `Gᵀ u`: the adjoint of [`filter`].
#[inline(always)]
pub(super) fn filter_gradient<U: Unit>(u: [f32; 6]) -> [f32; 3] {
    let (even_a, odd_a) = (AT_A * (u[1] + u[2]), AT_A * (u[1] - u[2]));
    let (even_b, odd_b) = (AT_B * (u[3] + u[4]), AT_B * (u[3] - u[4]));
    [
        U::mul_add(AT_ZERO, u[0], even_a + even_b),
        U::mul_add(A, odd_a, B * odd_b),
        U::mul_add(A2, even_a, U::mul_add(B2, even_b, u[5])),
    ]
}

/// L w Lᵀ of a window w, where `line` is L: value `[i, j]` is read at `from(i, j)` and written to `to(i, j)`.
///
/// # Safety
/// All places are valid for [`LANES`] floats; no place is both read and written.
#[inline(always)]
pub(super) unsafe fn along_both_axes<const FROM: usize, const TO: usize>(
    from: impl Fn(usize, usize) -> *const f32,
    line: impl Fn([f32; FROM]) -> [f32; TO],
    to: impl Fn(usize, usize) -> *mut f32,
) {
    // Loops, not `array::from_fn`: its closures are not compiled for the vector unit.
    let mut half = [[MaybeUninit::<Lanes>::uninit(); FROM]; TO];
    for column in 0..FROM {
        let mut values = [[0.0; LANES]; FROM];
        for (row, values) in values.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *values = unsafe { from(row, column).cast::<Lanes>().read_unaligned() };
        }
        for (half, values) in half.iter_mut().zip(&each_lane(&values, &line)) {
            half[column].write(*values);
        }
    }
    for (row, half) in half.iter().enumerate() {
        // SAFETY: the loop above wrote all of it.
        let half = unsafe { &*half.as_ptr().cast::<[Lanes; FROM]>() };
        for (column, values) in each_lane(half, &line).iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { to(row, column).cast::<Lanes>().write_unaligned(*values) };
        }
    }
}

/// `line` of every channel.
#[inline(always)]
fn each_lane<const FROM: usize, const TO: usize>(
    from: &[Lanes; FROM],
    line: impl Fn([f32; FROM]) -> [f32; TO],
) -> [Lanes; TO] {
    let mut to = [[0.0; LANES]; TO];
    for lane in 0..LANES {
        let mut values = [0.0; FROM];
        for index in 0..FROM {
            values[index] = from[index][lane];
        }
        let values = line(values);
        for index in 0..TO {
            to[index][lane] = values[index];
        }
    }
    to
}
