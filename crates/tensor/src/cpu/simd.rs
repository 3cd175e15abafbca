//! Vector units: one generic body, compiled once per unit, chosen at run time.
//!
//! A kernel is written as an `#[inline(always)]` function generic over [`Unit`] whose loops the compiler can
//! vectorise; [`vectorised!`] wraps it in one copy per instruction set and picks the widest the machine has.

/// How a multiply and an add are done. A unit without fused multiply-add must not call `f32::mul_add`:
/// that would be a library call per element.
pub(crate) trait Unit: Copy + Send + Sync + 'static {
    fn mul_add(a: f32, b: f32, c: f32) -> f32;

    /// Σ values.
    #[inline(always)]
    fn sum(values: &[f32]) -> f32 {
        fold_lanes(values, 0.0, |a, b| a + b)
    }

    /// The largest value; NaN if any value is NaN.
    #[inline(always)]
    fn max(values: &[f32]) -> f32 {
        fold_lanes(values, f32::NEG_INFINITY, |a, b| if a > b || a.is_nan() { a } else { b })
    }

    /// Σ a·b.
    #[inline(always)]
    fn dot(a: &[f32], b: &[f32]) -> f32 {
        let mut lanes = [0.0; LANES];
        let (left, right) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        for (a, b) in left.0.iter().zip(right.0) {
            for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
                *lane = Self::mul_add(a, b, *lane);
            }
        }
        let rest = left.1.iter().zip(right.1).fold(0.0, |sum, (&a, &b)| Self::mul_add(a, b, sum));
        collapse(lanes, |a, b| a + b) + rest
    }
}

/// Partial results of a reduction, enough to fill vectors and hide the latency of an addition.
const LANES: usize = 32;

#[inline(always)]
fn fold_lanes(values: &[f32], identity: f32, fold: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [identity; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &value) in lanes.iter_mut().zip(block) {
            *lane = fold(*lane, value);
        }
    }
    fold(collapse(lanes, &fold), rest.iter().fold(identity, |a, &b| fold(a, b)))
}

/// Folds lanes pairwise.
#[inline(always)]
fn collapse(mut lanes: [f32; LANES], fold: impl Fn(f32, f32) -> f32) -> f32 {
    for width in [16, 8, 4, 2, 1] {
        for lane in 0..width {
            lanes[lane] = fold(lanes[lane], lanes[lane + width]);
        }
    }
    lanes[0]
}

/// AVX-512. Reductions are written with intrinsics, because the compiler would use vectors of two floats.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{Avx512, Unit};
    use std::arch::x86_64::*;

    /// Folds whole vectors two at a time, and the rest under a mask.
    #[inline(always)]
    fn fold(
        count: usize,
        identity: f32,
        mut load: impl FnMut(usize, __mmask16) -> __m512,
        combine: impl Fn(__m512, __m512) -> __m512,
    ) -> __m512 {
        // SAFETY: `Avx512` runs inside functions compiled for it.
        unsafe {
            let (mut first, mut second) = (_mm512_set1_ps(identity), _mm512_set1_ps(identity));
            let mut at = 0;
            while at + 32 <= count {
                first = combine(first, load(at, !0));
                second = combine(second, load(at + 16, !0));
                at += 32;
            }
            while at < count {
                let mask = if count - at >= 16 { !0 } else { (1 << (count - at)) - 1 };
                first = combine(first, _mm512_mask_mov_ps(_mm512_set1_ps(identity), mask, load(at, mask)));
                at += 16;
            }
            combine(first, second)
        }
    }

    impl Unit for Avx512 {
        #[inline(always)]
        fn mul_add(a: f32, b: f32, c: f32) -> f32 {
            a.mul_add(b, c)
        }

        #[inline(always)]
        fn sum(values: &[f32]) -> f32 {
            // SAFETY: `Avx512` runs inside functions compiled for it; masked loads stay inside the slice.
            unsafe {
                let load = |at: usize, mask| _mm512_maskz_loadu_ps(mask, values.as_ptr().add(at));
                _mm512_reduce_add_ps(fold(values.len(), 0.0, load, |a, b| _mm512_add_ps(a, b)))
            }
        }

        #[inline(always)]
        fn max(values: &[f32]) -> f32 {
            // SAFETY: as above. The instruction for the maximum returns its second operand if one of them is NaN, so NaNs are
            // found by a comparison.
            unsafe {
                let mut unordered = 0;
                let load = |at: usize, mask| {
                    let loaded = _mm512_maskz_loadu_ps(mask, values.as_ptr().add(at));
                    unordered |= _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(loaded, loaded);
                    loaded
                };
                let largest = fold(values.len(), f32::NEG_INFINITY, load, |a, b| _mm512_max_ps(a, b));
                if unordered != 0 { f32::NAN } else { _mm512_reduce_max_ps(largest) }
            }
        }

        #[inline(always)]
        fn dot(a: &[f32], b: &[f32]) -> f32 {
            assert_eq!(a.len(), b.len());
            // SAFETY: as above.
            unsafe {
                let (mut first, mut second) = (_mm512_setzero_ps(), _mm512_setzero_ps());
                let load = |values: &[f32], at: usize, mask| _mm512_maskz_loadu_ps(mask, values.as_ptr().add(at));
                let mut at = 0;
                while at + 32 <= a.len() {
                    first = _mm512_fmadd_ps(load(a, at, !0), load(b, at, !0), first);
                    second = _mm512_fmadd_ps(load(a, at + 16, !0), load(b, at + 16, !0), second);
                    at += 32;
                }
                while at < a.len() {
                    let mask = if a.len() - at >= 16 { !0 } else { (1 << (a.len() - at)) - 1 };
                    first = _mm512_fmadd_ps(load(a, at, mask), load(b, at, mask), first);
                    at += 16;
                }
                _mm512_reduce_add_ps(_mm512_add_ps(first, second))
            }
        }
    }
}

/// One rounding: AVX2 with FMA, NEON.
#[derive(Clone, Copy)]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
pub(crate) struct Fused;
impl Unit for Fused {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// Two roundings: any other machine.
#[derive(Clone, Copy)]
#[cfg_attr(target_arch = "aarch64", allow(dead_code))]
pub(crate) struct Separate;
impl Unit for Separate {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
}

/// The instruction sets a kernel is compiled for, narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The instructions that every machine of the target has (SSE2 on x86-64, NEON on AArch64).
    Baseline,
    /// 8 lanes, fused multiply-add.
    Avx2,
    /// 16 lanes, fused multiply-add.
    Avx512,
}

/// The level in use, found once: the widest of this machine, or a narrower one that the environment variable
/// `LAMO_VECTOR_UNIT` names (`baseline`, `avx2`, `avx512`), for tests and for comparing machines.
pub fn level() -> Level {
    use std::sync::OnceLock;
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let limit = match std::env::var("LAMO_VECTOR_UNIT").as_deref() {
            Ok("baseline") => Level::Baseline,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        };
        widest().min(limit)
    })
}

fn widest() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let avx2 = has!("avx2") && has!("fma");
        if avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
            return Level::Avx512;
        }
        if avx2 {
            return Level::Avx2;
        }
    }
    Level::Baseline
}

/// `vectorised! { pub(crate) fn name(argument: Type) -> Result = body; }` defines `name`, which runs
/// `body::<U: Unit>` compiled for this machine's widest vectors. `body` must be `#[inline(always)]`.
macro_rules! vectorised {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $body:ident;) => {
        $(#[$meta])*
        $visibility fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn avx512($($argument: $type),*) $(-> $result)? {
                    $body::<$crate::cpu::simd::Avx512>($($argument),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $type),*) $(-> $result)? {
                    $body::<$crate::cpu::simd::Fused>($($argument),*)
                }
                match $crate::cpu::simd::level() {
                    // SAFETY: `level` found these features on this machine.
                    $crate::cpu::simd::Level::Avx512 => return unsafe { avx512($($argument),*) },
                    $crate::cpu::simd::Level::Avx2 => return unsafe { avx2($($argument),*) },
                    $crate::cpu::simd::Level::Baseline => {}
                }
                $body::<$crate::cpu::simd::Separate>($($argument),*)
            }
            #[cfg(target_arch = "aarch64")]
            {
                $body::<$crate::cpu::simd::Fused>($($argument),*)
            }
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            {
                $body::<$crate::cpu::simd::Separate>($($argument),*)
            }
        }
    };
}
pub(crate) use vectorised;

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(always)]
    fn all_body<U: Unit>(a: &[f32], b: &[f32]) -> [f32; 3] {
        [U::sum(a), U::max(a), U::dot(a, b)]
    }
    vectorised! { fn widest(a: &[f32], b: &[f32]) -> [f32; 3] = all_body; }

    #[test]
    fn reductions_of_any_length_agree_on_all_units() {
        let a: Vec<f32> = (0..200).map(|i| (0.7 * i as f32).sin()).collect();
        let b: Vec<f32> = (0..200).map(|i| (0.3 * i as f32).cos()).collect();
        for length in 1..200 {
            let (a, b) = (&a[..length], &b[..length]);
            let plain = all_body::<Separate>(a, b);
            for found in [widest(a, b), all_body::<Fused>(a, b)] {
                for (found, plain) in found.iter().zip(plain) {
                    // A sum of n numbers below 1 rounds n times at most.
                    assert!((found - plain).abs() <= length as f32 * f32::EPSILON * 8.0, "{length}: {found} {plain}");
                }
                assert_eq!(found[1], plain[1], "a maximum is exact");
            }
        }
    }

    #[test]
    fn a_nan_anywhere_makes_the_maximum_nan() {
        for length in [1, 7, 16, 33, 70] {
            for place in 0..length {
                let mut values = vec![1.0; length];
                values[place] = f32::NAN;
                assert!(widest(&values, &values)[1].is_nan() && all_body::<Separate>(&values, &values)[1].is_nan());
            }
        }
    }
}
