//! Strips: what one instruction of a loop does to the elements under way.
//!
//! A strip is `rows × columns` numbers, contiguous, small enough for the first-level cache. Each instruction is one
//! loop the compiler vectorises; its cost beside the arithmetic is a read and a write of that cache.

use crate::cpu::math;
use crate::cpu::simd::{Unit, vectorised};
use crate::ops::{Map, Reduction};

/// Extents of a strip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Extent {
    fn count(self) -> usize {
        self.rows * self.columns
    }
}

/// An operand of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Strip {
    Each(*const f32),
    PerRow(*const f32),
    Number(f32),
}

vectorised! {
    /// `to = map(operands)`; `to` overlaps no operand.
    pub(crate) fn map(map: Map, extent: Extent, operands: [Strip; 3], to: *mut f32) = map_body;
}

vectorised! {
    /// One number per row.
    pub(crate) fn reduce_rows(kind: Reduction, extent: Extent, operand: Strip, to: *mut f32) = reduce_rows_body;
}

vectorised! {
    /// Folds row `i` of the strip into row `(first + i) mod inner` of `partial`.
    pub(crate) fn fold_columns(kind: Reduction, extent: Extent, operand: Strip, partial: *mut f32, first: usize, inner: usize) = fold_columns_body;
}

vectorised! {
    /// Sum or maximum of a slice.
    pub(crate) fn reduce(kind: Reduction, values: &[f32]) -> f32 = reduce_body;
}

#[inline(always)]
fn map_body<U: Unit>(map: Map, extent: Extent, operands: [Strip; 3], to: *mut f32) {
    let [a, b, c] = operands;
    // SAFETY: the interpreter hands in strips of this extent, and a target that overlaps none of them.
    unsafe {
        match map {
            Map::Copy => unary(extent, a, to, |x| x),
            Map::Negate => unary(extent, a, to, |x| -x),
            Map::Absolute => unary(extent, a, to, f32::abs),
            Map::Sign => unary(extent, a, to, |x| f32::from(x > 0.0) - f32::from(x < 0.0)),
            Map::Exp => unary(extent, a, to, math::exp::<U>),
            Map::Log => unary(extent, a, to, math::log::<U>),
            Map::Sqrt => unary(extent, a, to, f32::sqrt),
            Map::Reciprocal => unary(extent, a, to, |x| 1.0 / x),
            Map::Tanh => unary(extent, a, to, math::tanh::<U>),
            Map::Erf => unary(extent, a, to, math::erf::<U>),
            Map::Sin => unary(extent, a, to, math::sin::<U>),
            Map::Cos => unary(extent, a, to, math::cos::<U>),
            Map::Sigmoid => unary(extent, a, to, math::sigmoid::<U>),
            Map::Softplus => unary(extent, a, to, math::softplus::<U>),
            Map::SoftplusDerivative => unary(extent, a, to, math::softplus_derivative::<U>),
            Map::Gelu => unary(extent, a, to, math::gelu::<U>),
            Map::GeluDerivative => unary(extent, a, to, math::gelu_derivative::<U>),
            Map::Silu => unary(extent, a, to, math::silu::<U>),
            Map::SiluDerivative => unary(extent, a, to, math::silu_derivative::<U>),
            Map::Add => binary(extent, a, b, to, |x, y| x + y),
            Map::Subtract => binary(extent, a, b, to, |x, y| x - y),
            Map::Multiply => binary(extent, a, b, to, |x, y| x * y),
            Map::Divide => binary(extent, a, b, to, |x, y| x / y),
            Map::Maximum => binary(extent, a, b, to, |x, y| if x > y || x.is_nan() { x } else { y }),
            Map::Minimum => binary(extent, a, b, to, |x, y| if x < y || x.is_nan() { x } else { y }),
            Map::Less => binary(extent, a, b, to, |x, y| f32::from(x < y)),
            Map::Equal => binary(extent, a, b, to, |x, y| f32::from(x == y)),
            Map::Select => select(extent, [a, b, c], to),
        }
    }
}

/// # Safety
/// The operand and `to` hold `extent` numbers and do not overlap.
#[inline(always)]
unsafe fn unary(extent: Extent, operand: Strip, to: *mut f32, f: impl Fn(f32) -> f32) {
    let count = extent.count();
    // SAFETY: the caller's promise.
    unsafe {
        match operand {
            Strip::Each(from) => flat1(from, to, count, f),
            Strip::Number(number) => std::slice::from_raw_parts_mut(to, count).fill(f(number)),
            Strip::PerRow(from) => {
                for row in 0..extent.rows {
                    let value = f(*from.add(row));
                    std::slice::from_raw_parts_mut(to.add(row * extent.columns), extent.columns).fill(value);
                }
            }
        }
    }
}

/// # Safety
/// As for [`unary`].
#[inline(always)]
unsafe fn flat1(from: *const f32, to: *mut f32, count: usize, f: impl Fn(f32) -> f32) {
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (std::slice::from_raw_parts(from, count), std::slice::from_raw_parts_mut(to, count)) };
    for (to, &from) in to.iter_mut().zip(from) {
        *to = f(from);
    }
}

/// # Safety
/// As for [`unary`].
#[inline(always)]
unsafe fn flat2(a: *const f32, b: *const f32, to: *mut f32, count: usize, f: impl Fn(f32, f32) -> f32) {
    // SAFETY: the caller's promise.
    let (a, b, to) = unsafe {
        (
            std::slice::from_raw_parts(a, count),
            std::slice::from_raw_parts(b, count),
            std::slice::from_raw_parts_mut(to, count),
        )
    };
    for ((to, &a), &b) in to.iter_mut().zip(a).zip(b) {
        *to = f(a, b);
    }
}

/// # Safety
/// As for [`unary`].
#[inline(always)]
unsafe fn binary(extent: Extent, a: Strip, b: Strip, to: *mut f32, f: impl Fn(f32, f32) -> f32) {
    let Extent { rows, columns } = extent;
    // SAFETY: the caller's promise.
    unsafe {
        match (a, b) {
            (Strip::Each(a), Strip::Each(b)) => flat2(a, b, to, rows * columns, f),
            (Strip::Each(a), Strip::Number(b)) => flat1(a, to, rows * columns, |a| f(a, b)),
            (Strip::Number(a), Strip::Each(b)) => flat1(b, to, rows * columns, |b| f(a, b)),
            (Strip::Each(a), Strip::PerRow(b)) => {
                for row in 0..rows {
                    let (start, b) = (row * columns, *b.add(row));
                    flat1(a.add(start), to.add(start), columns, |a| f(a, b));
                }
            }
            (Strip::PerRow(a), Strip::Each(b)) => {
                for row in 0..rows {
                    let (start, a) = (row * columns, *a.add(row));
                    flat1(b.add(start), to.add(start), columns, |b| f(a, b));
                }
            }
            (a, b) => {
                for row in 0..rows {
                    let value = f(a.of_row(row), b.of_row(row));
                    std::slice::from_raw_parts_mut(to.add(row * columns), columns).fill(value);
                }
            }
        }
    }
}

impl Strip {
    /// The number of a row, of an operand that has one.
    ///
    /// # Safety
    /// `row` lies inside the strip.
    #[inline(always)]
    unsafe fn of_row(self, row: usize) -> f32 {
        match self {
            Strip::Number(number) => number,
            // SAFETY: the caller's promise.
            Strip::PerRow(from) | Strip::Each(from) => unsafe { *from.add(row) },
        }
    }

    /// # Safety
    /// The element lies inside the strip.
    #[inline(always)]
    unsafe fn at(self, row: usize, column: usize, columns: usize) -> f32 {
        match self {
            Strip::Number(number) => number,
            // SAFETY: the caller's promise.
            Strip::PerRow(from) => unsafe { *from.add(row) },
            // SAFETY: the caller's promise.
            Strip::Each(from) => unsafe { *from.add(row * columns + column) },
        }
    }
}

/// # Safety
/// As for [`unary`].
#[inline(always)]
unsafe fn select(extent: Extent, [condition, yes, no]: [Strip; 3], to: *mut f32) {
    let Extent { rows, columns } = extent;
    // SAFETY: the caller's promise.
    unsafe {
        if let (Strip::Each(condition), Strip::Each(yes), Strip::Number(no)) = (condition, yes, no) {
            return flat2(condition, yes, to, rows * columns, |c, yes| if c != 0.0 { yes } else { no });
        }
        if let (Strip::Each(condition), Strip::Number(yes), Strip::Each(no)) = (condition, yes, no) {
            return flat2(condition, no, to, rows * columns, |c, no| if c != 0.0 { yes } else { no });
        }
        for row in 0..rows {
            for column in 0..columns {
                let at = |strip: Strip| strip.at(row, column, columns);
                let value = if at(condition) != 0.0 { at(yes) } else { at(no) };
                *to.add(row * columns + column) = value;
            }
        }
    }
}

/// Numbers that are summed side by side: two vectors of the widest unit hide the latency of an addition.
const LANES: usize = 32;

#[inline(always)]
fn fold(kind: Reduction, a: f32, b: f32) -> f32 {
    match kind {
        Reduction::Sum => a + b,
        Reduction::Max => {
            if a > b || a.is_nan() {
                a
            } else {
                b
            }
        }
    }
}

pub(crate) fn identity(kind: Reduction) -> f32 {
    match kind {
        Reduction::Sum => 0.0,
        Reduction::Max => f32::NEG_INFINITY,
    }
}

#[inline(always)]
fn reduce_body<U: Unit>(kind: Reduction, values: &[f32]) -> f32 {
    match kind {
        Reduction::Sum => reduce_with(values, 0.0, |a, b| a + b),
        Reduction::Max => reduce_with(values, f32::NEG_INFINITY, |a, b| fold(Reduction::Max, a, b)),
    }
}

#[inline(always)]
fn reduce_with(values: &[f32], identity: f32, f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [identity; LANES];
    let blocks = values.chunks_exact(LANES);
    let rest = blocks.remainder();
    for block in blocks {
        for (lane, &value) in lanes.iter_mut().zip(block) {
            *lane = f(*lane, value);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = f(*lane, value);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = f(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn reduce_rows_body<U: Unit>(kind: Reduction, extent: Extent, operand: Strip, to: *mut f32) {
    for row in 0..extent.rows {
        // SAFETY: the interpreter hands in strips of this extent.
        unsafe {
            let value = match operand {
                Strip::Each(from) => {
                    let values = std::slice::from_raw_parts(from.add(row * extent.columns), extent.columns);
                    reduce_body::<U>(kind, values)
                }
                constant => match kind {
                    Reduction::Sum => constant.of_row(row) * extent.columns as f32,
                    Reduction::Max => constant.of_row(row),
                },
            };
            *to.add(row) = value;
        }
    }
}

#[inline(always)]
fn fold_columns_body<U: Unit>(
    kind: Reduction,
    extent: Extent,
    operand: Strip,
    partial: *mut f32,
    first: usize,
    inner: usize,
) {
    let Extent { rows, columns } = extent;
    for row in 0..rows {
        // SAFETY: the interpreter hands in strips of this extent and a partial result of `inner × columns`.
        unsafe {
            let block = if inner == 1 { 0 } else { (first + row) % inner };
            let sums = std::slice::from_raw_parts_mut(partial.add(block * columns), columns);
            match operand {
                Strip::Each(from) => {
                    let values = std::slice::from_raw_parts(from.add(row * columns), columns);
                    match kind {
                        Reduction::Sum => sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value),
                        Reduction::Max => sums.iter_mut().zip(values).for_each(|(m, &v)| *m = fold(kind, *m, v)),
                    }
                }
                constant => {
                    let value = constant.of_row(row);
                    sums.iter_mut().for_each(|sum| *sum = fold(kind, *sum, value));
                }
            }
        }
    }
}
