//! Sixteen-lane blocks: the small matrix product that every term of the scan consists of, and the transposes around it.
//!
//! sum[r, c] += Σ_d left[r, d] right[d, c]: `left` is broadcast element by element, `right` is read in whole lanes,
//! `sum` stays in registers. Sixteen is the length of a chunk and also the lanes of the widest unit, so a 16 × 16
//! matrix of a chunk is sixteen registers and a scalar per step of a chunk is one.

#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::{Level, level};
use crate::cpu::simd::{Unit, vectorised};

/// Steps in a chunk, floats in a [`Lanes`].
pub(super) const CHUNK: usize = 16;

/// Rows of a product that are in registers at once: 8 rows of 2 lanes leave registers for operands and hide the latency.
pub(super) const ROWS: usize = 8;

/// One register of the widest unit.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Lanes(pub(super) [f32; CHUNK]);

pub(super) const ZERO: Lanes = Lanes([0.0; CHUNK]);

/// A 16 × 16 matrix over the steps of one chunk.
pub(super) type Square = [Lanes; CHUNK];

impl Lanes {
    #[inline(always)]
    pub(super) fn splat(value: f32) -> Self {
        Self([value; CHUNK])
    }

    #[inline(always)]
    pub(super) fn times(self, other: Self) -> Self {
        let mut product = self;
        for lane in 0..CHUNK {
            product.0[lane] *= other.0[lane];
        }
        product
    }

    #[inline(always)]
    pub(super) fn plus(self, other: Self) -> Self {
        let mut sum = self;
        for lane in 0..CHUNK {
            sum.0[lane] += other.0[lane];
        }
        sum
    }

    /// `self · factor + addend`
    #[inline(always)]
    pub(super) fn times_plus<U: Unit>(self, factor: Self, addend: Self) -> Self {
        let mut sum = addend;
        for lane in 0..CHUNK {
            sum.0[lane] = U::mul_add(self.0[lane], factor.0[lane], sum.0[lane]);
        }
        sum
    }

    /// The first `count` lanes, zero after them.
    #[inline(always)]
    pub(super) fn before(self, count: usize) -> Self {
        let mut masked = self;
        for lane in 0..CHUNK {
            masked.0[lane] = if lane < count { masked.0[lane] } else { 0.0 };
        }
        masked
    }
}

/// Lanes that hold `length` floats.
pub(super) fn lanes(length: usize) -> usize {
    length.div_ceil(CHUNK)
}

/// The lanes as plain floats, for broadcasting one at a time.
#[inline(always)]
pub(super) fn floats(lanes: &[Lanes]) -> &[f32] {
    // SAFETY: `Lanes` is sixteen floats and nothing else (`repr(C)`, size 64).
    unsafe { std::slice::from_raw_parts(lanes.as_ptr().cast(), lanes.len() * CHUNK) }
}

/// Repeats a body with a constant index. The compiler would turn a plain `for` over rows into gathers across the rows
/// instead of one register per row, forty times slower.
macro_rules! unrolled {
    ($count:expr, $index:ident => $body:expr) => {
        unrolled!(@ $count, $index, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $count:expr, $index:ident, $body:expr, $($value:literal)*) => {
        $(if $value < $count { let $index = $value; $body; })*
    };
}
pub(super) use unrolled;

/// The broadcast operand: element `[r, d]` is `floats[r·row + d·depth]`.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    pub(super) floats: &'a [f32],
    pub(super) row: usize,
    pub(super) depth: usize,
}

impl Left<'_> {
    #[inline(always)]
    pub(super) fn from(self, row: usize) -> Self {
        Self { floats: &self.floats[row * self.row..], ..self }
    }
}

/// The operand read in lanes: row `d` begins at `lanes[d·stride]`.
#[derive(Clone, Copy)]
pub(super) struct Right<'a> {
    pub(super) lanes: &'a [Lanes],
    pub(super) stride: usize,
}

impl Right<'_> {
    #[inline(always)]
    pub(super) fn from(self, column: usize) -> Self {
        Self { lanes: &self.lanes[column..], ..self }
    }
}

/// ROWS × 16·WIDTH elements in registers.
pub(super) type Block<const WIDTH: usize> = [[Lanes; WIDTH]; ROWS];

/// sum[r, c] += Σ_{d < depth} left[r, d] right[d, c]
#[inline(always)]
pub(super) fn accumulate<U: Unit, const WIDTH: usize>(
    mut sum: Block<WIDTH>,
    depth: usize,
    left: Left<'_>,
    right: Right<'_>,
) -> Block<WIDTH> {
    if depth == 0 {
        return sum;
    }
    assert!(left.floats.len() > (ROWS - 1) * left.row + (depth - 1) * left.depth, "left operand too short");
    assert!(right.lanes.len() >= (depth - 1) * right.stride + WIDTH, "right operand too short");
    for step in 0..depth {
        // SAFETY: the largest index formed was checked above.
        let lanes = unsafe { right.lanes.as_ptr().add(step * right.stride).cast::<[Lanes; WIDTH]>().read() };
        unrolled!(ROWS, row => {
            // SAFETY: the largest index formed was checked above.
            let scalar = Lanes::splat(unsafe { *left.floats.get_unchecked(row * left.row + step * left.depth) });
            unrolled!(WIDTH, column => {
                sum[row][column] = scalar.times_plus::<U>(lanes[column], sum[row][column]);
            });
        });
    }
    sum
}

/// Replaces every lane vector of a block by `change(row, column, lanes)`.
#[inline(always)]
pub(super) fn each<const WIDTH: usize>(
    mut block: Block<WIDTH>,
    mut change: impl FnMut(usize, usize, Lanes) -> Lanes,
) -> Block<WIDTH> {
    unrolled!(ROWS, row => {
        unrolled!(WIDTH, column => block[row][column] = change(row, column, block[row][column]));
    });
    block
}

/// Runs a kernel generic over `WIDTH` across `count` columns of lanes, two at a time and then the odd one.
macro_rules! by_columns {
    ($count:expr, $column:ident => $kernel:ident::<$unit:ident>($($argument:expr),* $(,)?)) => {{
        let mut $column = 0;
        while $column + 2 <= $count {
            $kernel::<$unit, 2>($($argument),*);
            $column += 2;
        }
        if $column < $count {
            $kernel::<$unit, 1>($($argument),*);
        }
    }};
}
pub(super) use by_columns;

vectorised! {
    /// target[r, c] = Σ_{d < depth} left[r, d] right[d, c] for `rows` rows (a multiple of eight), or += where `add`.
    #[inline(never)] // inlined, a kernel would share its registers with the shuffles of its neighbours
    pub(super) fn product(target: &mut [Lanes], add: bool, rows: usize, depth: usize, left: Left<'_>, right: Right<'_>)
        = product_body;
}

#[inline(always)]
fn product_body<U: Unit>(target: &mut [Lanes], add: bool, rows: usize, depth: usize, left: Left<'_>, right: Right<'_>) {
    by_columns!(right.stride, column => product_columns::<U>(target, add, rows, depth, left, right, column));
}

#[inline(always)]
fn product_columns<U: Unit, const WIDTH: usize>(
    target: &mut [Lanes],
    add: bool,
    rows: usize,
    depth: usize,
    left: Left<'_>,
    right: Right<'_>,
    column: usize,
) {
    for first in (0..rows).step_by(ROWS) {
        let start = first * right.stride + column;
        let sum = if add { load(target, start, right.stride) } else { [[ZERO; WIDTH]; ROWS] };
        let sum = accumulate::<U, WIDTH>(sum, depth, left.from(first), right.from(column));
        store(sum, target, start, right.stride);
    }
}

vectorised! {
    /// A chunk's step of the state, h ← d h + Σ_s (d g x)_s ⊗ B_s, or of its adjoint:
    /// state[r, c] ← factor · source[r, c] + Σ_{s < 16} left[r, s] right[s, c]; an absent `source` is `state` itself.
    #[inline(never)]
    pub(super) fn advance(state: &mut [Lanes], source: Option<&[Lanes]>, factor: f32, left: Left<'_>, right: Right<'_>)
        = advance_body;
}

#[inline(always)]
fn advance_body<U: Unit>(state: &mut [Lanes], source: Option<&[Lanes]>, factor: f32, left: Left<'_>, right: Right<'_>) {
    by_columns!(right.stride, column => advance_columns::<U>(state, source, factor, left, right, column));
}

#[inline(always)]
fn advance_columns<U: Unit, const WIDTH: usize>(
    state: &mut [Lanes],
    source: Option<&[Lanes]>,
    factor: f32,
    left: Left<'_>,
    right: Right<'_>,
    column: usize,
) {
    let factor = Lanes::splat(factor);
    for first in (0..state.len() / right.stride).step_by(ROWS) {
        let start = first * right.stride + column;
        let sum = load(source.unwrap_or(state), start, right.stride);
        let sum = each(sum, |_, _, lanes| lanes.times(factor));
        let sum = accumulate::<U, WIDTH>(sum, CHUNK, left.from(first), right.from(column));
        store(sum, state, start, right.stride);
    }
}

/// Rows of a block are `stride` apart, beginning at `start`.
#[inline(always)]
pub(super) fn load<const WIDTH: usize>(from: &[Lanes], start: usize, stride: usize) -> Block<WIDTH> {
    let from = &from[start..start + (ROWS - 1) * stride + WIDTH];
    // SAFETY: the slice above ends with the last element read.
    each([[ZERO; WIDTH]; ROWS], |row, column, _| unsafe { *from.get_unchecked(row * stride + column) })
}

#[inline(always)]
pub(super) fn store<const WIDTH: usize>(block: Block<WIDTH>, to: &mut [Lanes], start: usize, stride: usize) {
    let to = &mut to[start..start + (ROWS - 1) * stride + WIDTH];
    each(block, |row, column, lanes| {
        // SAFETY: the slice above ends with the last element written.
        unsafe { *to.get_unchecked_mut(row * stride + column) = lanes };
        lanes
    });
}

/// `to[c]` = the c-th lanes of the sixteen rows `stride` apart at `from`.
#[inline(always)]
fn transpose(from: &[Lanes], stride: usize, to: &mut [Lanes], to_stride: usize) {
    assert!(from.len() > (CHUNK - 1) * stride && to.len() > (CHUNK - 1) * to_stride, "tile too short");
    #[cfg(target_arch = "x86_64")]
    if level() == Level::Avx512 {
        // SAFETY: `level` found these features; the tiles were measured above.
        return unsafe { shuffled_transpose(from.as_ptr(), stride, to.as_mut_ptr(), to_stride) };
    }
    for row in 0..CHUNK {
        for column in 0..CHUNK {
            to[column * to_stride].0[row] = from[row * stride].0[column];
        }
    }
}

/// Four rounds of pairwise exchange, at distances 1, 2, 4 and 8. Written with intrinsics, because the compiler turns a portable
/// version into moves of the 256 single floats.
///
/// # Safety
/// Sixteen lanes lie `stride` apart at `from`, and sixteen `to_stride` apart at `to`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn shuffled_transpose(from: *const Lanes, stride: usize, to: *mut Lanes, to_stride: usize) {
    use std::arch::x86_64::*;
    let mut rows = [_mm512_setzero_ps(); CHUNK];
    // SAFETY: the caller's promise.
    unrolled!(CHUNK, row => rows[row] = unsafe { _mm512_load_ps(from.add(row * stride).cast()) });
    let mut pairs = rows; // [2i] and [2i + 1]: the columns 4j, 4j + 1 and 4j + 2, 4j + 3 of rows 2i, 2i + 1
    unrolled!(8, pair => {
        pairs[2 * pair] = _mm512_unpacklo_ps(rows[2 * pair], rows[2 * pair + 1]);
        pairs[2 * pair + 1] = _mm512_unpackhi_ps(rows[2 * pair], rows[2 * pair + 1]);
    });
    unrolled!(4, four => { // rows[4i + c]: the columns 4j + c of rows 4i to 4i + 3
        let [a, b, c, d] = [0, 1, 2, 3].map(|row| _mm512_castps_pd(pairs[4 * four + row]));
        rows[4 * four] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        rows[4 * four + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        rows[4 * four + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        rows[4 * four + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    });
    unrolled!(4, column => { // a 4 × 4 transpose of quarters
        let low = _mm512_shuffle_f32x4::<0x44>(rows[column], rows[column + 4]);
        let high = _mm512_shuffle_f32x4::<0xee>(rows[column], rows[column + 4]);
        let low_after = _mm512_shuffle_f32x4::<0x44>(rows[column + 8], rows[column + 12]);
        let high_after = _mm512_shuffle_f32x4::<0xee>(rows[column + 8], rows[column + 12]);
        rows[column] = _mm512_shuffle_f32x4::<0x88>(low, low_after);
        rows[column + 4] = _mm512_shuffle_f32x4::<0xdd>(low, low_after);
        rows[column + 8] = _mm512_shuffle_f32x4::<0x88>(high, high_after);
        rows[column + 12] = _mm512_shuffle_f32x4::<0xdd>(high, high_after);
    });
    // SAFETY: the caller's promise.
    unrolled!(CHUNK, row => unsafe { _mm512_store_ps(to.add(row * to_stride).cast(), rows[row]) });
}

/// Lane r is the sum of row r.
#[inline(always)]
pub(super) fn row_sums(square: &Square) -> Lanes {
    let mut columns = [ZERO; CHUNK];
    transpose(square, 1, &mut columns, 1);
    let mut sums = [ZERO; 4];
    unrolled!(CHUNK, column => sums[column % 4] = sums[column % 4].plus(columns[column]));
    sums[0].plus(sums[1]).plus(sums[2].plus(sums[3]))
}

/// `[16, 16·count]` to `[16·count, 16]`
#[inline(always)]
pub(super) fn transpose_wide(from: &[Lanes], to: &mut [Lanes]) {
    let count = to.len() / CHUNK;
    for tile in 0..count {
        transpose(&from[tile..], count, &mut to[tile * CHUNK..], 1);
    }
}

/// `[16·count, 16]` to `[16, 16·count]`
#[inline(always)]
pub(super) fn transpose_tall(from: &[Lanes], to: &mut [Lanes]) {
    let count = from.len() / CHUNK;
    for tile in 0..count {
        transpose(&from[tile * CHUNK..], 1, &mut to[tile..], count);
    }
}

/// to[s, :] = factor_s · from[s, :]
#[inline(always)]
pub(super) fn scale_rows(from: &[Lanes], factor: Lanes, to: &mut [Lanes]) {
    let width = to.len() / CHUNK;
    for column in 0..width {
        let (from, to) = (&from[column..=column + (CHUNK - 1) * width], &mut to[column..=column + (CHUNK - 1) * width]);
        unrolled!(CHUNK, row => to[row * width] = from[row * width].times(Lanes::splat(factor.0[row])));
    }
}
