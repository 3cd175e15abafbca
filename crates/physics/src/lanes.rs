//! A few numbers that are computed together in the vector instructions of the machine.

use std::ops::{Add, Div, Mul, Range, Sub};

use pulp::Simd;

/// Most numbers per vector: 512 bits.
pub(crate) const MOST: usize = 8;

/// As many numbers as the vector unit `S` takes at once. Each lane rounds as a single f64 does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes<S: Simd> {
    unit: S,
    values: S::f64s,
}

impl<S: Simd> Lanes<S> {
    /// Numbers per vector.
    pub(crate) const COUNT: usize = S::F64_LANES;

    #[inline(always)]
    pub(crate) fn splat(unit: S, value: f64) -> Self {
        Self { unit, values: unit.splat_f64s(value) }
    }

    /// 1 in the lanes of a range, −1 in the others.
    #[inline(always)]
    pub(crate) fn within(unit: S, lanes: Range<usize>) -> Self {
        let signs: [f64; MOST] = std::array::from_fn(|lane| if lanes.contains(&lane) { 1.0 } else { -1.0 });
        Self::load(unit, &signs, 0)
    }

    /// Reads consecutive values.
    #[inline(always)]
    pub(crate) fn load(unit: S, values: &[f64], start: usize) -> Self {
        Self { unit, values: S::as_simd_f64s(&values[start..start + Self::COUNT]).0[0] }
    }

    /// Four numbers for each lane, those of its row.
    #[inline(always)]
    pub(crate) fn columns(unit: S, row: impl Fn(usize) -> [f64; 4]) -> [Self; 4] {
        let mut values = [[0.0; MOST]; 4];
        let [a, b, c, d] = &mut values;
        for (lane, (((a, b), c), d)) in a.iter_mut().zip(b).zip(c).zip(d).enumerate().take(Self::COUNT) {
            [*a, *b, *c, *d] = row(lane);
        }
        let [a, b, c, d] = &values;
        [Self::load(unit, a, 0), Self::load(unit, b, 0), Self::load(unit, c, 0), Self::load(unit, d, 0)]
    }

    /// Writes consecutive values.
    #[inline(always)]
    pub(crate) fn store(self, values: &mut [f64], start: usize) {
        S::as_mut_simd_f64s(&mut values[start..start + Self::COUNT]).0[0] = self.values;
    }

    /// Writes the lanes in which `active` is positive, or all.
    #[inline(always)]
    pub(crate) fn store_where(self, active: Option<Self>, values: &mut [f64], start: usize) {
        self.or(Self::load(self.unit, values, start), active).store(values, start);
    }

    #[inline(always)]
    pub(crate) fn recip(self) -> Self {
        Self { values: self.unit.div_f64s(self.unit.splat_f64s(1.0), self.values), ..self }
    }

    #[inline(always)]
    pub(crate) fn sqrt(self) -> Self {
        Self { values: self.unit.sqrt_f64s(self.values), ..self }
    }

    /// The smaller number of each pair; the first one if either is NaN.
    #[inline(always)]
    pub(crate) fn min(self, other: Self) -> Self {
        let less = self.unit.less_than_f64s(other.values, self.values);
        Self { values: self.unit.select_f64s(less, other.values, self.values), ..self }
    }

    #[inline(always)]
    pub(crate) fn abs(self) -> Self {
        Self { values: self.unit.abs_f64s(self.values), ..self }
    }

    /// These numbers, which are not negative, with the signs of others.
    #[inline(always)]
    pub(crate) fn with_sign_of(self, other: Self) -> Self {
        let sign = self.unit.and_f64s(other.values, self.unit.splat_f64s(-0.0));
        Self { values: self.unit.or_f64s(self.values, sign), ..self }
    }

    /// These numbers, or zero in the lanes in which `of` is zero or negative.
    #[inline(always)]
    pub(crate) fn or_zero_where_not_above(self, of: Self) -> Self {
        let zero = self.unit.splat_f64s(0.0);
        let not_above = self.unit.less_than_or_equal_f64s(of.values, zero);
        Self { values: self.unit.select_f64s(not_above, zero, self.values), ..self }
    }

    /// These numbers in the lanes in which `of` exceeds `limit`, the `other` ones elsewhere.
    #[inline(always)]
    pub(crate) fn where_above(self, of: Self, limit: f64, other: Self) -> Self {
        let above = self.unit.less_than_f64s(self.unit.splat_f64s(limit), of.values);
        Self { values: self.unit.select_f64s(above, self.values, other.values), ..self }
    }

    /// These numbers, or the `other` ones where `active` is not positive.
    #[inline(always)]
    pub(crate) fn or(self, other: Self, active: Option<Self>) -> Self {
        match active {
            None => self,
            Some(active) => self.where_above(active, 0.0, other),
        }
    }

    /// The greatest number.
    #[inline(always)]
    pub(crate) fn greatest(self) -> f64 {
        self.unit.reduce_max_f64s(self.values)
    }

    /// The least number.
    #[inline(always)]
    pub(crate) fn least(self) -> f64 {
        self.unit.reduce_min_f64s(self.values)
    }

    #[inline(always)]
    pub(crate) fn sum(self) -> f64 {
        self.unit.reduce_sum_f64s(self.values)
    }
}

macro_rules! operator {
    ($name:ident, $method:ident, $operation:ident) => {
        impl<S: Simd> $name for Lanes<S> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self { values: self.unit.$operation(self.values, other.values), ..self }
            }
        }

        impl<S: Simd> $name<f64> for Lanes<S> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: f64) -> Self {
                Self { values: self.unit.$operation(self.values, self.unit.splat_f64s(other)), ..self }
            }
        }
    };
}

operator!(Add, add, add_f64s);
operator!(Sub, sub, sub_f64s);
operator!(Mul, mul, mul_f64s);
operator!(Div, div, div_f64s);
