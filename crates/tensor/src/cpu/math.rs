//! Elementary functions of one f32, written so that a loop over them becomes vector code.
//!
//! No branches, no tables in memory, no library calls: a magic number rounds to an integer and leaves it in the low
//! bits, bit patterns scale by powers of two, and every `if` selects between values already computed.
//!
//! Largest errors over the whole float range, as sampled by the tests below with both units. One ulp is the distance between
//! the f32 around the exact value, 2⁻¹⁴⁹ for denormals.
//!
//! | function            | error                                                                             |
//! |---------------------|-----------------------------------------------------------------------------------|
//! | `exp`               | 1.3 ulp                                                                           |
//! | `log`               | 1.2 ulp                                                                           |
//! | `tanh`              | 3 ulp                                                                             |
//! | `erf`               | 2.5 ulp                                                                           |
//! | `sigmoid`           | 3 ulp                                                                             |
//! | `softplus`          | 3 ulp                                                                             |
//! | `silu`              | 4 ulp, and 2⁻¹⁴² where eˣ is denormal                                             |
//! | `silu_derivative`   | 4e-7                                                                              |
//! | `gelu`              | 3e-7 max(1, x); for x < 0 relative 1e-6 (fused), 6e-6 (separate), and 2⁻¹⁴³       |
//! | `gelu_derivative`   | 4e-7                                                                              |
//! | `sin`, `cos`        | 2e-7 for abs(x) ≤ 10⁴ π; beyond, at most 1 + 2⁻²³ in size, NaN at ±∞              |
//! | `arctangent`        | 3 ulp                                                                             |
//!
//! NaN gives NaN everywhere. The coefficients are weighted minimax fits of our own (Lawson iteration on a Chebyshev
//! basis in double precision). They are rounded to f32 one by one from the lowest power; after each rounding the remaining
//! coefficients are fitted again.

use super::simd::Unit;
use std::f32::consts::{FRAC_1_PI, FRAC_PI_2, LN_2, LOG2_E, PI};

/// Added to a float below 2²², it leaves the nearest integer in the low bits of the sum.
const MAGIC: f32 = 12_582_912.0; // 1.5 · 2²³

/// ln 2 = high + low; `high` has 16 bits, so an 8-bit integer times it is exact without fusing.
const LN_2_HIGH: f32 = f32::from_bits(LN_2.to_bits() & !0xff);
const LN_2_LOW: f32 = (std::f64::consts::LN_2 - LN_2_HIGH as f64) as f32;

/// π = high + middle + low, the first two of 9 bits: exact times half-integers below 2¹⁴.
const PI_HIGH: f32 = f32::from_bits(PI.to_bits() & !0x7fff);
const PI_MIDDLE: f32 = f32::from_bits(((std::f64::consts::PI - PI_HIGH as f64) as f32).to_bits() & !0x7fff);
const PI_LOW: f32 = (std::f64::consts::PI - PI_HIGH as f64 - PI_MIDDLE as f64) as f32;

/// 1 / √(2π), the height of the normal density.
const DENSITY: f32 = {
    use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
    (FRAC_2_SQRT_PI * FRAC_1_SQRT_2 / 2.0) as f32
};

/// (eʳ − 1 − r) / r² on ±0.3475; eʳ − 1 then has relative error 1.4e-8.
const EXP: [f32; 5] = [0.49999997, 0.16666545, 0.041667446, 0.008366447, 0.0013869847];

/// (ln(1 + f) − f + f²/2) / f³ on ±1/3; the logarithm then has relative error 4.7e-9.
const LOG: [f32; 8] =
    [0.33333215, -0.24999802, 0.20010449, -0.16680326, 0.14005205, -0.1218625, 0.13987641, -0.12883885];

/// (ln(1 + u) − u) / u² on 0..1; the logarithm then has relative error 5.3e-9.
#[rustfmt::skip]
const LOG_ONE_PLUS: [f32; 9] = [
    -0.4999993, 0.33330464, -0.2495802, 0.19692121, -0.15344977,
    0.1066137, -0.057460457, 0.02008843, -0.003291063,
];

/// −ln(erfc a) / a − 1 on 0..3.95; erf then has relative error 4.3e-9.
#[rustfmt::skip]
const ERF: [f32; 9] = [
    0.12837917, 0.63661957, 0.102776304, -0.019147823, -0.00016950442,
    0.0016756769, -0.00063736405, 0.00011886171, -9.388055e-6,
];

/// Φ(−z) e^{z²/2} in powers of w = 1 / (1 + z/3.45) for z in 0..14.625: relative error 1.8e-8 max(1, z²/9).
#[rustfmt::skip]
const TAIL: [f32; 9] = [
    3.1559637e-5, 0.11494723, 0.122063234, 0.07219216, 0.19576961,
    -0.16506907, 0.31779224, -0.19803046, 0.040303495,
];

/// (sin r − r) / r³ in powers of r² on ±1.58; the sine then has relative error 5.6e-9.
const SIN: [f32; 4] = [-0.1666666, 0.0083330665, -0.0001980938, 2.6048338e-6];

/// (arctan q − q) / q³ in powers of q² on 0..1; the arctangent then has relative error 2.6e-9.
#[rustfmt::skip]
const ARCTANGENT: [f32; 9] = [
    -0.333333, 0.19998531, -0.14264053, 0.109511934, -0.084005535,
    0.057908073, -0.031128503, 0.010888066, -0.0017876677,
];

/// Σ cₙ vⁿ by Horner's rule.
#[inline(always)]
fn polynomial<U: Unit, const N: usize>(coefficients: [f32; N], v: f32) -> f32 {
    let mut sum = coefficients[N - 1];
    for n in (0..N - 1).rev() {
        sum = U::mul_add(sum, v, coefficients[n]);
    }
    sum
}

/// The smaller of x and the limit; NaN stays NaN.
#[inline(always)]
fn at_most(x: f32, limit: f32) -> f32 {
    if x > limit { limit } else { x }
}

/// The larger of x and the limit; NaN stays NaN.
#[inline(always)]
fn at_least(x: f32, limit: f32) -> f32 {
    if x < limit { limit } else { x }
}

/// 2ⁿ eʳ, where the low bits of `exponent` hold n + 254 ≥ 0. Both factors of 2ⁿ are normal from n = −252 on, so only the
/// second product rounds, to a denormal or to ∞ if necessary; at n = −254 both are 0.
#[inline(always)]
fn scaled_exp<U: Unit>(exponent: u32, r: f32) -> f32 {
    let half = (exponent >> 1) << 23;
    let rest = (exponent << 23).wrapping_sub(half);
    let linear = U::mul_add(polynomial::<U, 5>(EXP, r), r, 1.0);
    U::mul_add(linear, r, 1.0) * f32::from_bits(half) * f32::from_bits(rest)
}

/// Smaller arguments of e are raised to this: there n = −254, and the product with 0 avoids a slow underflow.
const VANISHING: f32 = -176.0;

/// eˣ for −176 ≤ x ≤ 89: x = n ln 2 + r with |r| ≤ ln 2 / 2.
#[inline(always)]
fn exp_within_range<U: Unit>(x: f32) -> f32 {
    const BIASED: f32 = MAGIC + 254.0;
    let rounded = U::mul_add(x, LOG2_E, BIASED);
    let n = rounded - BIASED;
    let r = U::mul_add(n, -LN_2_LOW, U::mul_add(n, -LN_2_HIGH, x));
    scaled_exp::<U>(rounded.to_bits(), r)
}

/// e^{−|x|}, in 0..=1.
#[inline(always)]
fn exp_of_minus_magnitude<U: Unit>(x: f32) -> f32 {
    exp_within_range::<U>(at_least(-x.abs(), VANISHING))
}

/// e^{−z²/2} for 0 ≤ z ≤ 18.75. A fused unit never rounds z², so the relative error stays that of `exp`.
#[inline(always)]
fn exp_of_minus_half_square<U: Unit>(z: f32) -> f32 {
    const BIASED: f32 = MAGIC + 254.0;
    let rounded = U::mul_add(z * (-0.5 * LOG2_E), z, BIASED);
    let n = rounded - BIASED;
    let r = U::mul_add(n, -LN_2_LOW, U::mul_add(z * -0.5, z, -(n * LN_2_HIGH)));
    scaled_exp::<U>(rounded.to_bits(), r)
}

/// eˣ − 1 for −80 ≤ x ≤ 0, with relative accuracy at 0.
#[inline(always)]
fn exp_minus_one_of_nonpositive<U: Unit>(x: f32) -> f32 {
    const BIASED: f32 = MAGIC + 127.0;
    let rounded = U::mul_add(x, LOG2_E, BIASED);
    let n = rounded - BIASED;
    let r = U::mul_add(n, -LN_2_LOW, U::mul_add(n, -LN_2_HIGH, x));
    let power = f32::from_bits(rounded.to_bits() << 23); // 2ⁿ
    let difference = U::mul_add(polynomial::<U, 5>(EXP, r), r * r, r); // eʳ − 1
    U::mul_add(difference, power, power - 1.0)
}

/// eˣ: 0 at −∞, denormal from −87.34 to −103.98, ∞ from 88.73 on. Error 1.3 ulp.
#[inline(always)]
pub(crate) fn exp<U: Unit>(x: f32) -> f32 {
    exp_within_range::<U>(at_least(at_most(x, 89.0), VANISHING))
}

/// ln x: −∞ at ±0, NaN below, denormals included. Error 1.2 ulp.
#[inline(always)]
pub(crate) fn log<U: Unit>(x: f32) -> f32 {
    const TWO_THIRDS: u32 = (2.0f32 / 3.0).to_bits();
    let denormal = x < f32::MIN_POSITIVE;
    let bits = (if denormal { x * 8_388_608.0 } else { x }).to_bits(); // 2²³
    let exponent = bits.wrapping_sub(TWO_THIRDS).cast_signed() >> 23;
    let f = f32::from_bits(bits.wrapping_sub((exponent << 23).cast_unsigned())) - 1.0; // 1 + f in 2/3..4/3
    let exponent = (exponent - if denormal { 23 } else { 0 }) as f32;
    let curvature = U::mul_add(polynomial::<U, 8>(LOG, f), f, -0.5);
    let small = U::mul_add(f * f, curvature, exponent * LN_2_LOW);
    let positive = U::mul_add(exponent, LN_2_HIGH, f + small);
    let positive = if x < f32::INFINITY { positive } else { x };
    let other = if x == 0.0 { f32::NEG_INFINITY } else { f32::NAN };
    if x > 0.0 { positive } else { other }
}

/// tanh x = −d / (2 + d) with d = e^{−2|x|} − 1, and the sign of x: ±1 from |x| = 9.02 on. Error 3 ulp.
#[inline(always)]
pub(crate) fn tanh<U: Unit>(x: f32) -> f32 {
    let d = exp_minus_one_of_nonpositive::<U>(-2.0 * at_most(x.abs(), 9.5));
    (d / (2.0 + d)).copysign(x)
}

/// erf x = 1 − e^{−g(|x|)} with g = −ln erfc, and the sign of x: ±1 from |x| = 3.92 on. Error 2.5 ulp.
#[inline(always)]
pub(crate) fn erf<U: Unit>(x: f32) -> f32 {
    let a = at_most(x.abs(), 3.9375);
    let g = U::mul_add(polynomial::<U, 9>(ERF, a), a, a);
    exp_minus_one_of_nonpositive::<U>(-g).copysign(x)
}

/// σ(x) = 1 / (1 + e⁻ˣ): 0 at −∞ through the denormals, 1 at ∞. Error 3 ulp.
#[inline(always)]
pub(crate) fn sigmoid<U: Unit>(x: f32) -> f32 {
    let e = exp_of_minus_magnitude::<U>(x);
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// ln(1 + eˣ) = max(x, 0) + ln(1 + e^{−|x|}): eˣ far below 0, exactly x above 17, 0 and ∞ at ∓∞. Error 3 ulp.
#[inline(always)]
pub(crate) fn softplus<U: Unit>(x: f32) -> f32 {
    let u = exp_of_minus_magnitude::<U>(x);
    let correction = U::mul_add(polynomial::<U, 9>(LOG_ONE_PLUS, u), u * u, u);
    (if x > 0.0 { x } else { 0.0 }) + correction
}

/// d/dx ln(1 + eˣ) = σ(x).
#[inline(always)]
pub(crate) fn softplus_derivative<U: Unit>(x: f32) -> f32 {
    sigmoid::<U>(x)
}

/// x σ(x): −0 at −∞. Error 4 ulp, and 2⁻¹⁴² where eˣ is denormal.
#[inline(always)]
pub(crate) fn silu<U: Unit>(x: f32) -> f32 {
    at_least(x, -104.0) * sigmoid::<U>(x)
}

/// d/dx x σ(x) = σ(x) (1 + x σ(−x)): 0 at −∞ (−0), 1 at ∞. Absolute error 4e-7.
#[inline(always)]
pub(crate) fn silu_derivative<U: Unit>(x: f32) -> f32 {
    let e = exp_of_minus_magnitude::<U>(x);
    let larger = 1.0 / (1.0 + e);
    let smaller = e * larger;
    let (of_x, of_minus_x) = if x < 0.0 { (smaller, larger) } else { (larger, smaller) };
    of_x * U::mul_add(at_least(at_most(x, 104.0), -104.0), of_minus_x, 1.0)
}

/// z = |x|, limited to where the tails underflow, then e^{−z²/2} and Φ(−z) e^{z²/2}.
#[inline(always)]
fn normal_tail<U: Unit>(x: f32) -> (f32, f32, f32) {
    let z = at_most(x.abs(), 18.75);
    let w = 1.0 / U::mul_add(z, 1.0 / 3.45, 1.0);
    (z, exp_of_minus_half_square::<U>(z), polynomial::<U, 9>(TAIL, w))
}

/// x Φ(x) with the exact normal distribution Φ: −0 at −∞. Error 3e-7 max(1, x); for x < 0 the relative error is
/// 1e-6 fused and 6e-6 separate, down to where the result is denormal.
#[inline(always)]
pub(crate) fn gelu<U: Unit>(x: f32) -> f32 {
    let (_, e, ratio) = normal_tail::<U>(x);
    let tail = e * ratio;
    at_least(x, -18.75) * if x < 0.0 { tail } else { 1.0 - tail }
}

/// d/dx x Φ(x) = Φ(x) + x φ(x): 0 at −∞ (−0), 1 at ∞. Absolute error 4e-7.
#[inline(always)]
pub(crate) fn gelu_derivative<U: Unit>(x: f32) -> f32 {
    let (z, e, ratio) = normal_tail::<U>(x);
    let tail = e * U::mul_add(z, -DENSITY, ratio);
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// (−1)ⁿ sin(x − (n − shift) π), where the low bit of `rounded` is that of n. The clamp keeps arguments too large to
/// reduce within ±1.
#[inline(always)]
fn sine_about<U: Unit>(x: f32, rounded: f32, shift: f32) -> f32 {
    let n = (rounded - MAGIC) - shift;
    let r = U::mul_add(n, -PI_MIDDLE, U::mul_add(n, -PI_HIGH, x));
    let r = U::mul_add(n, -PI_LOW, r);
    let r = at_least(at_most(r, 1.58), -1.58); // π/2 and the rounding of n at the end of the range
    let square = r * r;
    let sine = U::mul_add(polynomial::<U, 4>(SIN, square), square * r, r);
    f32::from_bits(sine.to_bits() ^ (rounded.to_bits() << 31))
}

/// sin x. Absolute error 2e-7 for |x| ≤ 10⁴ π; sin(−0) is +0.
#[inline(always)]
pub(crate) fn sin<U: Unit>(x: f32) -> f32 {
    sine_about::<U>(x, U::mul_add(x, FRAC_1_PI, MAGIC), 0.0)
}

/// cos x = sin(x + π/2). Absolute error 2e-7 for |x| ≤ 10⁴ π.
#[inline(always)]
pub(crate) fn cos<U: Unit>(x: f32) -> f32 {
    sine_about::<U>(x, U::mul_add(x, FRAC_1_PI, 0.5) + MAGIC, 0.5)
}

/// Angle of the point (x, y): arctan of the smaller over the larger coordinate, reflected into the octant of the point. Zeros
/// keep their signs, as in IEEE 754. Error 3 ulp.
#[inline(always)]
pub(crate) fn arctangent<U: Unit>(y: f32, x: f32) -> f32 {
    let steep = y.abs() > x.abs();
    let (low, high) = if steep { (x.abs(), y.abs()) } else { (y.abs(), x.abs()) };
    let diagonal = if high == 0.0 { 0.0 } else { 1.0 }; // also ∞/∞
    let q = if low == high { diagonal } else { low / high };
    let angle = U::mul_add(polynomial::<U, 9>(ARCTANGENT, q * q), q * q * q, q);
    let angle = if steep { FRAC_PI_2 - angle } else { angle };
    let angle = if x.is_sign_negative() { PI - angle } else { angle };
    if x.is_nan() { x } else { angle.copysign(y) }
}

#[cfg(test)]
mod tests {
    use super::super::simd::{Level, Separate, level, vectorised};
    use super::*;
    use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

    /// Each function over a slice: by the widest unit of this machine (fused where it has one), and separate.
    macro_rules! over_slices {
        ($($name:ident),*) => { $(mod $name {
            use super::*;
            #[inline(always)]
            fn map<U: Unit>(input: &[f32], output: &mut [f32]) {
                for (output, input) in output.iter_mut().zip(input) {
                    *output = super::super::$name::<U>(*input);
                }
            }
            vectorised! { fn widest(input: &[f32], output: &mut [f32]) = map; }
            pub(super) const UNITS: [Map; 2] = [widest, map::<Separate>];
        })* };
    }
    type Map = fn(&[f32], &mut [f32]);
    over_slices!(exp, log, tanh, erf, sigmoid, softplus, silu, silu_derivative, gelu, gelu_derivative, sin, cos);

    /// The spacing of the f32 around an exact value.
    fn ulp(exact: f64) -> f64 {
        let exponent = ((exact.to_bits() >> 52) & 0x7ff).max(1023 - 126);
        f64::from_bits((exponent - 23) << 52)
    }

    /// Every 257th bit pattern, every 127th of 0.25..16, and all near each interesting point, of both signs.
    fn sweep(mut check: impl FnMut(&[f32])) {
        #[rustfmt::skip]
        const INTERESTING: [f32; 18] = [
            0.0, 1e-38, 0.1732868, 0.25, 0.3465736, 0.6666667, 1.0, 1.3333334, PI / 2.0, 2.0, PI, 3.92, 9.01,
            14.0, 17.0, 87.33655, 88.72284, 103.97208,
        ];
        let mut ranges = vec![(0..u32::MAX, 257)];
        for point in INTERESTING.into_iter().flat_map(|point| [point, -point]) {
            ranges.push((point.to_bits().saturating_sub(999)..point.to_bits() + 999, 1));
        }
        for sign in [0, 1 << 31] {
            ranges.push((sign + 0.25f32.to_bits()..sign + 16.0f32.to_bits(), 127));
        }
        let mut chunk = Vec::with_capacity(4096);
        for (bits, step) in ranges {
            let mut points = bits.step_by(step).map(f32::from_bits);
            loop {
                chunk.clear();
                chunk.extend(points.by_ref().take(4096));
                if chunk.is_empty() {
                    break;
                }
                check(&chunk);
            }
        }
    }

    /// Both units stay within `allowed(x, exact)[unit]` of the reference over the sweep; NaN exactly where it has NaN.
    fn hold(units: [Map; 2], reference: impl Fn(f64) -> f64, allowed: impl Fn(f64, f64) -> [f64; 2]) {
        const OVERFLOW: f64 = 340_282_366_920_938_463_463_374_607_431_768_211_456.0; // 2¹²⁸ stands for ∞
        let finite = |value: f64| value.clamp(-OVERFLOW, OVERFLOW);
        let mut worst = [(0.0, 0.0); 2];
        let mut output = [vec![0.0; 4096], vec![0.0; 4096]];
        sweep(|input| {
            for (map, output) in units.iter().zip(&mut output) {
                map(input, &mut output[..input.len()]);
            }
            for (i, &x) in input.iter().enumerate() {
                let x = f64::from(x);
                let exact = reference(x);
                for unit in 0..2 {
                    let got = output[unit][i];
                    if got == exact as f32 {
                        continue; // exact; true for most floats, which are tiny or huge
                    }
                    let got = f64::from(got);
                    assert_eq!(got.is_nan(), exact.is_nan(), "unit {unit} at {x:e}: {got:e}, exactly {exact:e}");
                    let share = (finite(got) - finite(exact)).abs() / allowed(x, exact)[unit];
                    if share > worst[unit].0 {
                        worst[unit] = (share, x);
                    }
                }
            }
        });
        let seen = format!(
            "the widest unit reaches {:?}, the separate {:?} of the bound (share, argument)",
            worst[0], worst[1]
        );
        assert!(worst.iter().all(|(share, _)| *share <= 1.0), "{seen}");
    }

    fn ulps(count: f64) -> impl Fn(f64, f64) -> [f64; 2] {
        move |_, exact| [count * ulp(exact); 2]
    }

    /// erf by its all-positive series 2/√π e^{−x²} Σ 2ⁿ x²ⁿ⁺¹ / (2n+1)!!.
    fn reference_erf(x: f64) -> f64 {
        if x.abs() > 2.5 {
            return (1.0 - reference_erfc(x.abs())).copysign(x);
        }
        let (mut term, mut sum, mut n) = (x, x, 1.0);
        while term.abs() > 1e-17 * sum.abs() {
            term *= 2.0 * x * x / (2.0 * n + 1.0);
            sum += term;
            n += 1.0;
        }
        FRAC_2_SQRT_PI * (-x * x).exp() * sum
    }

    /// erfc, above 2.5 by its continued fraction e^{−x²}/√π · 1/(x + ½/(x + 1/(x + 3⁄2/(x + …)))).
    fn reference_erfc(x: f64) -> f64 {
        if x.is_nan() || x <= 2.5 {
            return if x < -6.0 { 2.0 } else { 1.0 - reference_erf(x) };
        }
        if x > 12.0 {
            return 0.0;
        }
        let fraction = (1..60).rev().fold(x, |fraction, n| x + 0.5 * f64::from(n) / fraction);
        0.5 * FRAC_2_SQRT_PI * (-x * x).exp() / fraction
    }

    /// Φ(x).
    fn normal(x: f64) -> f64 {
        0.5 * reference_erfc(-x * FRAC_1_SQRT_2)
    }

    /// σ(x). Beyond ±200 the result is 0 or 1 in f32; the limit avoids slow overflows in the library.
    fn reference_sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x.clamp(-200.0, 200.0)).exp())
    }

    #[test]
    fn the_reference_erf_has_the_tabulated_values() {
        // Abramowitz & Stegun, table 7.1 and 7.3: erf to 10 digits, erfc(4) and erfc(10) to 7
        for (x, value) in [(0.1, 0.1124629160), (0.5, 0.5204998778), (1.0, 0.8427007929), (2.0, 0.9953222650)] {
            assert!((reference_erf(x) - value).abs() < 1e-10, "erf({x}) = {}", reference_erf(x));
        }
        for (x, value) in [(4.0, 1.541_725_8e-8), (10.0, 2.088_487_6e-45)] {
            assert!((reference_erfc(x) / value - 1.0).abs() < 1e-7, "erfc({x}) = {}", reference_erfc(x));
        }
        let (series, fraction) = (1.0 - reference_erf(2.5), reference_erfc(2.5 + 1e-15));
        assert!((series - fraction).abs() < 1e-15, "{series} and {fraction} disagree where the two methods meet");
    }

    #[test]
    fn exp_errs_by_at_most_1_3_ulp() {
        hold(exp::UNITS, |x| x.clamp(-200.0, 200.0).exp(), ulps(1.3));
    }

    #[test]
    fn log_errs_by_at_most_1_2_ulp() {
        hold(log::UNITS, f64::ln, ulps(1.2));
    }

    #[test]
    fn tanh_errs_by_at_most_3_ulp() {
        hold(tanh::UNITS, f64::tanh, ulps(3.0));
    }

    #[test]
    fn erf_errs_by_at_most_2_5_ulp() {
        hold(erf::UNITS, reference_erf, ulps(2.5));
    }

    #[test]
    fn sigmoid_errs_by_at_most_3_ulp() {
        hold(sigmoid::UNITS, reference_sigmoid, ulps(3.0));
    }

    #[test]
    fn softplus_errs_by_at_most_3_ulp() {
        hold(
            softplus::UNITS,
            |x| if x > 100.0 { x } else { x.max(-200.0).exp().ln_1p() + 0.0 * x.signum() },
            ulps(3.0),
        );
    }

    #[test]
    fn silu_errs_by_at_most_4_ulp() {
        let reference = |x: f64| x.max(-200.0) * reference_sigmoid(x);
        hold(silu::UNITS, reference, |_, exact| [4.0 * ulp(exact) + (-142f64).exp2(); 2]);
    }

    #[test]
    fn silu_derivative_errs_by_at_most_4e_7() {
        let reference = |x: f64| {
            let x = x.clamp(-200.0, 200.0);
            reference_sigmoid(x) * (1.0 + x * reference_sigmoid(-x))
        };
        hold(silu_derivative::UNITS, reference, |_, _| [4e-7; 2]);
    }

    #[test]
    fn gelu_errs_by_3e_7_and_keeps_relative_accuracy_in_the_left_tail() {
        let fused = cfg!(target_arch = "aarch64") || level() != Level::Baseline;
        let widest = if fused { 1e-6 } else { 6e-6 };
        hold(
            gelu::UNITS,
            |x| x.max(-25.0) * normal(x),
            |x, exact| {
                let absolute = 3e-7 * x.abs().max(1.0);
                let left = |relative: f64| (relative * exact.abs() + (-143f64).exp2()).min(absolute);
                if x < 0.0 { [left(widest), left(6e-6)] } else { [absolute; 2] }
            },
        );
    }

    #[test]
    fn gelu_derivative_errs_by_at_most_4e_7() {
        let reference = |x: f64| {
            let x = x.clamp(-25.0, 25.0);
            normal(x) + x * (-0.5 * x * x).exp() * 0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2
        };
        hold(gelu_derivative::UNITS, reference, |_, _| [4e-7; 2]);
    }

    #[test]
    fn sine_and_cosine_err_by_2e_7_within_ten_thousand_pi_and_stay_bounded_beyond() {
        const RANGE: f64 = 1e4 * std::f64::consts::PI;
        // beyond the range the reference is 0 (NaN at ±∞): a bound on the size, not on the error
        let allowed = |x: f64, _: f64| [if x.abs() <= RANGE { 2e-7 } else { 1.0 + f64::from(f32::EPSILON) }; 2];
        let within = |x: f64| if x.abs() > RANGE { 0.0 * x } else { x };
        hold(sin::UNITS, |x| within(x).sin(), allowed);
        hold(cos::UNITS, |x| within(x).cos() * if x.abs() > RANGE { 0.0 } else { 1.0 }, allowed);
    }

    #[test]
    fn the_arctangent_errs_by_at_most_3_ulp_on_both_sides_of_the_axis() {
        sweep(|heights| {
            for (&y, x) in heights.iter().flat_map(|y| [(y, 1.0_f32), (y, -1.0)]) {
                let (got, exact) = (f64::from(arctangent::<Separate>(y, x)), f64::from(y).atan2(f64::from(x)));
                let close = (got - exact).abs() <= 3.0 * ulp(exact) || got.is_nan() && exact.is_nan();
                assert!(close, "the angle of ({x}, {y:e}) is {got}, exactly {exact}");
            }
        });
    }

    #[test]
    fn the_arctangent_of_zeros_and_infinities_is_that_of_ieee_754() {
        let values = [0.0, 1.0, f32::INFINITY, f32::NAN].into_iter().flat_map(|value| [value, -value]);
        for (y, x) in values.clone().flat_map(|y| values.clone().map(move |x| (y, x))) {
            let (got, exact) = (arctangent::<Separate>(y, x), y.atan2(x));
            let equal = (got - exact).abs() <= 3e-7 && got.is_sign_negative() == exact.is_sign_negative();
            assert!(equal || got.is_nan() && exact.is_nan(), "the angle of ({x}, {y}) is {got}, exactly {exact}");
        }
    }

    #[test]
    fn special_values_are_exact() {
        const INFINITY: f32 = f32::INFINITY;
        type Pairs = &'static [(f32, f32)];
        let claims: [(&str, [Map; 2], Pairs); 12] = [
            (
                "exp",
                exp::UNITS,
                &[(-INFINITY, 0.0), (INFINITY, INFINITY), (88.73, INFINITY), (-104.0, 0.0), (0.0, 1.0)],
            ),
            ("log", log::UNITS, &[(0.0, -INFINITY), (-0.0, -INFINITY), (1.0, 0.0), (INFINITY, INFINITY)]),
            ("tanh", tanh::UNITS, &[(INFINITY, 1.0), (-INFINITY, -1.0), (-0.0, -0.0), (-1e-45, -1e-45)]),
            ("erf", erf::UNITS, &[(INFINITY, 1.0), (-INFINITY, -1.0), (-0.0, -0.0)]),
            ("sigmoid", sigmoid::UNITS, &[(-INFINITY, 0.0), (INFINITY, 1.0), (0.0, 0.5)]),
            ("softplus", softplus::UNITS, &[(-INFINITY, 0.0), (INFINITY, INFINITY), (20.5, 20.5)]),
            ("silu", silu::UNITS, &[(-INFINITY, -0.0), (INFINITY, INFINITY)]),
            ("silu_derivative", silu_derivative::UNITS, &[(-INFINITY, -0.0), (INFINITY, 1.0)]),
            ("gelu", gelu::UNITS, &[(-INFINITY, -0.0), (INFINITY, INFINITY), (-0.0, -0.0)]),
            ("gelu_derivative", gelu_derivative::UNITS, &[(-INFINITY, -0.0), (INFINITY, 1.0)]),
            ("sin", sin::UNITS, &[(0.0, 0.0)]),
            ("cos", cos::UNITS, &[(0.0, 1.0)]),
        ];
        for (name, units, pairs) in claims {
            for (map, &(x, expected)) in units.into_iter().flat_map(|map| pairs.iter().map(move |pair| (map, pair))) {
                let mut got = [0.0];
                map(&[x], &mut got);
                assert_eq!(got[0].to_bits(), expected.to_bits(), "{name}({x}) = {}, expected {expected}", got[0]);
            }
        }
    }
}
