//! Strips: one instruction of a loop, applied to the current elements.
//!
//! A strip is `rows × columns` contiguous numbers, few enough for the first-level cache. Each instruction is one loop that
//! the compiler vectorises; besides its arithmetic it reads and writes that cache once.

use crate::cpu::math;
use crate::cpu::simd::{Unit, vectorised};
use crate::ops::{Map, Reduction, random};

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

/// Whether rows are so short that most of the time would go to the begin and the end of a loop over one of them: those of the heads
/// of an attention.
fn is_short(columns: usize) -> bool {
    columns == 16 || columns == 32
}

/// Runs through short rows, 32 elements at a time: `value` of an element and of its row. They are read before the results are written,
/// so that the compiler need not ask for each row whether it overlaps its operands.
macro_rules! short_rows {
    ($extent:expr, $to:expr, |$at:ident, $row:ident| $value:expr) => {{
        let count = $extent.count();
        let rows_of_chunk = 32 / $extent.columns;
        for chunk in 0..count / 32 {
            let mut values = [0.0_f32; 32];
            if rows_of_chunk == 1 {
                let $row = chunk;
                for (i, value) in values.iter_mut().enumerate() {
                    let $at = chunk * 32 + i;
                    *value = $value;
                }
            } else {
                let (one, two) = values.split_at_mut(16);
                for (half, values) in [one, two].into_iter().enumerate() {
                    let $row = chunk * 2 + half;
                    for (i, value) in values.iter_mut().enumerate() {
                        let $at = chunk * 32 + half * 16 + i;
                        *value = $value;
                    }
                }
            }
            $to.add(chunk * 32).cast::<[f32; 32]>().write(values);
        }
        for $at in count / 32 * 32..count {
            let $row = $at / $extent.columns;
            *$to.add($at) = $value;
        }
    }};
}

/// Runs a body for every row with the number of columns, which the compiler knows for short rows. (A closure that is called from
/// three places is not always inlined, and then it is compiled without the instructions of the vector unit.)
macro_rules! each_row {
    ($extent:expr, |$row:ident, $columns:ident| $body:expr) => {{
        let Extent { rows, columns } = $extent;
        match columns {
            16 => each_row!(rows, 16, $row, $columns, $body),
            32 => each_row!(rows, 32, $row, $columns, $body),
            _ => each_row!(rows, columns, $row, $columns, $body),
        }
    }};
    ($rows:expr, $count:expr, $row:ident, $columns:ident, $body:expr) => {
        for $row in 0..$rows {
            let $columns: usize = $count;
            $body
        }
    };
}

vectorised! {
    /// `to = map(operands)`; `to` overlaps no operand.
    pub(crate) fn map(map: Map, extent: Extent, operands: &[Strip; 3], to: *mut f32) = map_body;
}

vectorised! {
    /// `to = ±a·b ± c`, rounded once where the machine can; `to` overlaps no operand.
    pub(crate) fn multiply_add(extent: Extent, operands: &[Strip; 3], signs: [f32; 2], to: *mut f32) = multiply_add_body;
}

vectorised! {
    /// Σ a·b of each row.
    pub(crate) fn dot_rows(extent: Extent, a: Strip, b: Strip, to: *mut f32) = dot_rows_body;
}

vectorised! {
    /// Adds a·b to columns as [`fold_columns`] does.
    pub(crate) fn fold_products(extent: Extent, factors: [Strip; 2], partial: *mut f32, first: usize, inner: usize) = fold_products_body;
}

vectorised! {
    /// One number per row.
    pub(crate) fn reduce_rows(kind: Reduction, extent: Extent, operand: Strip, to: *mut f32) = reduce_rows_body;
}

vectorised! {
    /// Reduces row `i` of the strip into row `(first + i) mod inner` of `partial`.
    pub(crate) fn fold_columns(kind: Reduction, extent: Extent, operand: Strip, partial: *mut f32, first: usize, inner: usize) = fold_columns_body;
}

vectorised! {
    /// Sum or maximum of a slice.
    pub(crate) fn reduce(kind: Reduction, values: &[f32]) -> f32 = reduce_body;
}

#[inline(always)]
fn map_body<U: Unit>(map: Map, extent: Extent, operands: &[Strip; 3], to: *mut f32) {
    let [a, b, _] = *operands;
    // SAFETY: the interpreter passes strips of this extent, and a target that overlaps none of them.
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
            Map::Arctangent => binary(extent, a, b, to, math::arctangent::<U>),
            Map::Less => binary(extent, a, b, to, |x, y| f32::from(x < y)),
            Map::Equal => binary(extent, a, b, to, |x, y| f32::from(x == y)),
            Map::Philox => ternary(extent, operands, to, |index, word, key| {
                random::philox(index as u32, word as u32, key as u32) as f32
            }),
            Map::Select => ternary(extent, operands, to, |c, yes, no| if c != 0.0 { yes } else { no }),
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
unsafe fn flat3(
    a: *const f32,
    b: *const f32,
    c: *const f32,
    to: *mut f32,
    count: usize,
    f: impl Fn(f32, f32, f32) -> f32,
) {
    // SAFETY: the caller's promise.
    let ([a, b, c], to) = unsafe {
        ([a, b, c].map(|from| std::slice::from_raw_parts(from, count)), std::slice::from_raw_parts_mut(to, count))
    };
    for (((to, &a), &b), &c) in to.iter_mut().zip(a).zip(b).zip(c) {
        *to = f(a, b, c);
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
            (Strip::Each(a), Strip::PerRow(b)) if is_short(columns) => {
                short_rows!(extent, to, |at, row| f(*a.add(at), *b.add(row)));
            }
            (Strip::PerRow(a), Strip::Each(b)) if is_short(columns) => {
                short_rows!(extent, to, |at, row| f(*a.add(row), *b.add(at)));
            }
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
}

/// One row of an operand.
#[derive(Clone, Copy)]
enum Line {
    Each(*const f32),
    Same(f32),
}

impl Strip {
    /// # Safety
    /// `row` lies inside the strip of `columns` columns.
    #[inline(always)]
    unsafe fn line(self, row: usize, columns: usize) -> Line {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Strip::Each(from) => Line::Each(from.add(row * columns)),
                Strip::PerRow(from) => Line::Same(*from.add(row)),
                Strip::Number(number) => Line::Same(number),
            }
        }
    }
}

/// # Safety
/// As for [`unary`].
#[inline(always)]
unsafe fn ternary(extent: Extent, operands: &[Strip; 3], to: *mut f32, f: impl Fn(f32, f32, f32) -> f32 + Copy) {
    // If no operand has one number per row, the strip is one long row.
    let by_rows = operands.iter().any(|operand| matches!(operand, Strip::PerRow(_)));
    let extent = if by_rows { extent } else { Extent { rows: 1, columns: extent.count() } };
    // SAFETY: the caller's promise.
    unsafe {
        for row in 0..extent.rows {
            let lines = [0, 1, 2].map(|operand| operands[operand].line(row, extent.columns));
            line(lines, to.add(row * extent.columns), extent.columns, f);
        }
    }
}

/// One row, or several without a gap.
///
/// # Safety
/// As for [`unary`].
#[inline(always)]
unsafe fn line([a, b, c]: [Line; 3], to: *mut f32, columns: usize, f: impl Fn(f32, f32, f32) -> f32 + Copy) {
    // SAFETY: the caller's promise.
    unsafe {
        match (a, b, c) {
            (Line::Each(a), Line::Each(b), Line::Each(c)) => flat3(a, b, c, to, columns, f),
            (Line::Each(a), Line::Each(b), Line::Same(c)) => flat2(a, b, to, columns, |a, b| f(a, b, c)),
            (Line::Each(a), Line::Same(b), Line::Each(c)) => flat2(a, c, to, columns, |a, c| f(a, b, c)),
            (Line::Same(a), Line::Each(b), Line::Each(c)) => flat2(b, c, to, columns, |b, c| f(a, b, c)),
            (Line::Each(a), Line::Same(b), Line::Same(c)) => flat1(a, to, columns, |a| f(a, b, c)),
            (Line::Same(a), Line::Each(b), Line::Same(c)) => flat1(b, to, columns, |b| f(a, b, c)),
            (Line::Same(a), Line::Same(b), Line::Each(c)) => flat1(c, to, columns, |c| f(a, b, c)),
            (Line::Same(a), Line::Same(b), Line::Same(c)) => {
                std::slice::from_raw_parts_mut(to, columns).fill(f(a, b, c));
            }
        }
    }
}

#[inline(always)]
fn multiply_add_body<U: Unit>(extent: Extent, operands: &[Strip; 3], signs: [f32; 2], to: *mut f32) {
    // SAFETY: the interpreter passes strips of this extent, and a target that overlaps none of them.
    unsafe {
        match signs {
            [1.0, 1.0] => ternary(extent, operands, to, |a, b, c| U::mul_add(a, b, c)),
            [1.0, _] => ternary(extent, operands, to, |a, b, c| U::mul_add(a, b, -c)),
            _ => ternary(extent, operands, to, |a, b, c| U::mul_add(-a, b, c)),
        }
    }
}

#[inline(always)]
fn dot_rows_body<U: Unit>(extent: Extent, a: Strip, b: Strip, to: *mut f32) {
    each_row!(extent, |row, columns| {
        // SAFETY: the interpreter passes strips of this extent.
        unsafe {
            let sum = match (a.line(row, columns), b.line(row, columns)) {
                (Line::Each(a), Line::Each(b)) => {
                    U::dot(std::slice::from_raw_parts(a, columns), std::slice::from_raw_parts(b, columns))
                }
                (Line::Each(values), Line::Same(factor)) | (Line::Same(factor), Line::Each(values)) => {
                    factor * reduce_body::<U>(Reduction::Sum, std::slice::from_raw_parts(values, columns))
                }
                (Line::Same(a), Line::Same(b)) => a * b * columns as f32,
            };
            *to.add(row) = sum;
        }
    });
}

#[inline(always)]
fn fold_products_body<U: Unit>(extent: Extent, factors: [Strip; 2], partial: *mut f32, first: usize, inner: usize) {
    let Extent { rows, columns } = extent;
    for row in 0..rows {
        // SAFETY: the interpreter passes strips of this extent and a partial result of `inner × columns`.
        unsafe {
            let block = if inner == 1 { 0 } else { (first + row) % inner };
            let sums = std::slice::from_raw_parts_mut(partial.add(block * columns), columns);
            match (factors[0].line(row, columns), factors[1].line(row, columns)) {
                (Line::Each(a), Line::Each(b)) => {
                    let (a, b) = (std::slice::from_raw_parts(a, columns), std::slice::from_raw_parts(b, columns));
                    for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
                        *sum = U::mul_add(a, b, *sum);
                    }
                }
                (Line::Each(values), Line::Same(factor)) | (Line::Same(factor), Line::Each(values)) => {
                    let values = std::slice::from_raw_parts(values, columns);
                    sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum = U::mul_add(value, factor, *sum));
                }
                (Line::Same(a), Line::Same(b)) => sums.iter_mut().for_each(|sum| *sum += a * b),
            }
        }
    }
}

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
        Reduction::Sum => U::sum(values),
        Reduction::Max => U::max(values),
    }
}

#[inline(always)]
fn reduce_rows_body<U: Unit>(kind: Reduction, extent: Extent, operand: Strip, to: *mut f32) {
    each_row!(extent, |row, columns| {
        // SAFETY: the interpreter passes strips of this extent.
        unsafe {
            let value = match operand {
                Strip::Each(from) => {
                    reduce_body::<U>(kind, std::slice::from_raw_parts(from.add(row * columns), columns))
                }
                constant => match kind {
                    Reduction::Sum => constant.of_row(row) * columns as f32,
                    Reduction::Max => constant.of_row(row),
                },
            };
            *to.add(row) = value;
        }
    });
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
        // SAFETY: the interpreter passes strips of this extent and a partial result of `inner × columns`.
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
