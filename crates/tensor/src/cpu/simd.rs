//! Vector units: one generic body, compiled once per unit, chosen at run time.
//!
//! A kernel is written as an `#[inline(always)]` function generic over [`Unit`] whose loops the compiler can
//! vectorise; [`vectorised!`] wraps it in one copy per instruction set and picks the widest the machine has.

/// How a multiply and an add are done. A unit without fused multiply-add must not call `f32::mul_add`:
/// that would be a library call per element.
pub(crate) trait Unit: Copy + Send + Sync + 'static {
    fn mul_add(a: f32, b: f32, c: f32) -> f32;
}

/// One rounding: AVX-512, AVX2 with FMA, NEON.
#[derive(Clone, Copy)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Whatever the target guarantees (SSE2 on x86-64, NEON on AArch64).
    Baseline,
    /// 8 lanes, fused multiply-add.
    Avx2,
    /// 16 lanes, fused multiply-add.
    Avx512,
}

/// The widest level of this machine, found once.
pub fn level() -> Level {
    use std::sync::OnceLock;
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
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
    })
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
                    $body::<$crate::cpu::simd::Fused>($($argument),*)
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
