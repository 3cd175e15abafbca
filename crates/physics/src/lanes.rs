//! A few numbers that are computed together; the compiler turns their arithmetic into vector instructions.

use std::array;
use std::ops::{Add, Mul, Sub};

/// `COUNT` numbers in lanes. Each lane rounds as a single f64 does, so the results do not depend on `COUNT`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lanes<const COUNT: usize>(pub(crate) [f64; COUNT]);

impl<const COUNT: usize> Lanes<COUNT> {
    #[inline(always)]
    pub(crate) fn splat(value: f64) -> Self {
        Self([value; COUNT])
    }

    /// Reads consecutive values.
    #[inline(always)]
    pub(crate) fn load(values: &[f64], start: usize) -> Self {
        let part = &values[start..start + COUNT];
        Self(array::from_fn(|lane| part[lane]))
    }

    /// Writes consecutive values.
    #[inline(always)]
    pub(crate) fn store(self, values: &mut [f64], start: usize) {
        values[start..start + COUNT].copy_from_slice(&self.0);
    }

    #[inline(always)]
    pub(crate) fn map(self, function: impl Fn(f64) -> f64) -> Self {
        Self(array::from_fn(|lane| function(self.0[lane])))
    }

    #[inline(always)]
    pub(crate) fn zip(self, other: Self, function: impl Fn(f64, f64) -> f64) -> Self {
        Self(array::from_fn(|lane| function(self.0[lane], other.0[lane])))
    }

    #[inline(always)]
    pub(crate) fn recip(self) -> Self {
        self.map(f64::recip)
    }

    #[inline(always)]
    pub(crate) fn sqrt(self) -> Self {
        self.map(f64::sqrt)
    }

    /// The smaller number of each pair; the first one if either is NaN.
    #[inline(always)]
    pub(crate) fn min(self, other: Self) -> Self {
        self.zip(other, |first, second| if second < first { second } else { first })
    }

    #[inline(always)]
    pub(crate) fn sum(self) -> f64 {
        self.0.iter().sum()
    }
}

macro_rules! operator {
    ($name:ident, $method:ident, $symbol:tt) => {
        impl<const COUNT: usize> $name for Lanes<COUNT> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.zip(other, |first, second| first $symbol second)
            }
        }

        impl<const COUNT: usize> $name<f64> for Lanes<COUNT> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: f64) -> Self {
                self.map(|first| first $symbol other)
            }
        }
    };
}

operator!(Add, add, +);
operator!(Sub, sub, -);
operator!(Mul, mul, *);
