//! Arithmetic on a number, or on several side by side: formulas that are written once for both give the same bits.

use crate::lanes::Lanes;
use pulp::Simd;
use std::ops::{Add, Div, Mul, Sub};

/// A number or a vector of numbers.
pub trait Real:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
{
    /// √x
    fn sqrt(self) -> Self;
    /// |x|
    fn abs(self) -> Self;
    /// The smaller of two slopes of the same sign, and zero for opposite ones.
    fn minmod(self, other: Self) -> Self;
}

impl Real for f64 {
    #[inline(always)]
    fn sqrt(self) -> f64 {
        self.sqrt()
    }

    #[inline(always)]
    fn abs(self) -> f64 {
        self.abs()
    }

    #[inline(always)]
    fn minmod(self, other: f64) -> f64 {
        if self * other <= 0.0 { 0.0 } else { self.signum() * self.abs().min(other.abs()) }
    }
}

impl<S: Simd> Real for Lanes<S> {
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.abs()
    }

    #[inline(always)]
    fn minmod(self, other: Self) -> Self {
        let smaller = self.abs().min(other.abs()).with_sign_of(self);
        smaller.or_zero_where_not_above(self * other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::{Arch, WithSimd};

    struct Minmods<'a>(&'a [[f64; 2]]);

    impl WithSimd for Minmods<'_> {
        type Output = Vec<f64>;

        fn with_simd<S: Simd>(self, unit: S) -> Vec<f64> {
            let pairs = self.0.chunks_exact(Lanes::<S>::COUNT).flat_map(|pairs| {
                let [a, b, ..] = Lanes::columns(unit, |lane| [pairs[lane][0], pairs[lane][1], 0.0, 0.0]);
                let mut found = [0.0; 8];
                a.minmod(b).store(&mut found, 0);
                found.into_iter().take(Lanes::<S>::COUNT)
            });
            pairs.collect()
        }
    }

    #[test]
    fn the_smaller_slopes_of_a_vector_are_those_of_its_numbers() {
        let values = [0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 1e-200, f64::INFINITY];
        let pairs: Vec<[f64; 2]> = values.iter().flat_map(|&a| values.map(|b| [a, b])).collect();
        let found = Arch::new().dispatch(Minmods(&pairs));
        for (pair, found) in pairs.iter().zip(found) {
            let wanted = pair[0].minmod(pair[1]);
            assert!(wanted.to_bits() == found.to_bits() || wanted.is_nan() && found.is_nan(), "{pair:?}: {found}");
        }
    }
}
