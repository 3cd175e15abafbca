//! Rows of strided memory to and from packed lanes, and the decays within one chunk.

use super::block::{CHUNK, Lanes, Square, ZERO, lanes, unrolled};
use crate::cpu::math::exp;
use crate::cpu::memory::{Source, Target};
use crate::cpu::simd::Unit;

/// `width` floats `inner` apart, in rows `outer` apart; packed, a row fills `lanes(width)` lanes, zero beyond `width`.
#[derive(Clone, Copy)]
pub(super) struct Rows<Pointer> {
    pub(super) pointer: Pointer,
    pub(super) outer: isize,
    pub(super) inner: isize,
    pub(super) width: usize,
}

impl Rows<*const f32> {
    /// Rows `[batch, ·, middle, ·]`: of one head or group, one per token.
    ///
    /// # Safety
    /// The view holds these indices for every row and column read later.
    #[inline(always)]
    pub(super) unsafe fn of(source: &Source<4>, batch: usize, middle: usize, width: usize) -> Self {
        // SAFETY: the caller's promise.
        let pointer = unsafe { source.at([batch, 0, middle, 0]) };
        Self { pointer, outer: source.strides[1], inner: source.strides[3], width }
    }

    /// `packed[i, :]` = row `indices[i]`; rows that no index fills are zero.
    ///
    /// # Safety
    /// Every index is a row of this view.
    #[inline(always)]
    pub(super) unsafe fn gather(&self, indices: impl Iterator<Item = usize>, packed: &mut [Lanes]) {
        // The common widths have loops of their own.
        match (self.inner, self.width) {
            // SAFETY: the caller's promise.
            (1, 32) => return unsafe { self.gather_whole::<2>(indices, packed) },
            // SAFETY: the caller's promise.
            (1, 64) => return unsafe { self.gather_whole::<4>(indices, packed) },
            _ => {}
        }
        let (full, tail) = (self.width / CHUNK, self.width % CHUNK);
        let mut rows = packed.chunks_exact_mut(lanes(self.width));
        for (index, row) in indices.zip(rows.by_ref()) {
            // SAFETY: the caller's promise: `width` floats lie here, `inner` apart.
            let from = unsafe { self.pointer.offset(index as isize * self.outer) };
            for (column, lanes) in row[..full].iter_mut().enumerate() {
                // SAFETY: as above.
                *lanes = unsafe { read(from.offset((column * CHUNK) as isize * self.inner), self.inner, CHUNK) };
            }
            if tail > 0 {
                // SAFETY: as above.
                row[full] = unsafe { read(from.offset((full * CHUNK) as isize * self.inner), self.inner, tail) };
            }
        }
        rows.for_each(|row| row.fill(ZERO));
    }

    /// [`Self::gather`] for contiguous rows of exactly WIDTH lanes.
    ///
    /// # Safety
    /// As for [`Self::gather`].
    #[inline(always)]
    unsafe fn gather_whole<const WIDTH: usize>(&self, indices: impl Iterator<Item = usize>, packed: &mut [Lanes]) {
        let (rows, _) = packed.as_chunks_mut::<WIDTH>();
        let mut filled = 0;
        for (index, row) in indices.zip(rows.iter_mut()) {
            // SAFETY: the caller's promise.
            let from = unsafe { self.pointer.offset(index as isize * self.outer).cast::<[f32; CHUNK]>() };
            // SAFETY: the caller's promise.
            unrolled!(WIDTH, column => row[column] = Lanes(unsafe { from.add(column).read_unaligned() }));
            filled += 1;
        }
        rows[filled..].as_flattened_mut().fill(ZERO);
    }
}

/// Prefetches rows that are needed one chunk later: the processor does not predict accesses along columns or backwards.
///
/// # Safety
/// The view holds the tokens.
#[inline(always)]
pub(super) unsafe fn prefetch_rows(source: &Source<4>, batch: usize, middle: usize, width: usize, tokens: &[u32]) {
    #[cfg(target_arch = "x86_64")]
    for token in tokens {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: the caller's promise.
        let row = unsafe { source.at([batch, *token as usize, middle, 0]) };
        for line in (0..width).step_by(CHUNK) {
            // SAFETY: a prefetch touches no memory, and every x86-64 has it.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(row.wrapping_add(line).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (source, batch, middle, width, tokens);
}

/// A target as a source, for [`prefetch_rows`].
#[inline(always)]
pub(super) fn as_source(target: Target<4>) -> Source<4> {
    Source { pointer: target.pointer, strides: target.strides }
}

impl Rows<*mut f32> {
    /// Rows `[batch, ·, middle, ·]`.
    ///
    /// # Safety
    /// The view holds these indices for every row and column written later.
    #[inline(always)]
    pub(super) unsafe fn of(target: &Target<4>, batch: usize, middle: usize, width: usize) -> Self {
        // SAFETY: the caller's promise.
        let pointer = unsafe { target.at([batch, 0, middle, 0]) };
        Self { pointer, outer: target.strides[1], inner: target.strides[3], width }
    }

    /// row `indices[i] = packed[i, :]`, or += where `add`.
    ///
    /// # Safety
    /// Every index is a row of this view, and no other task touches these rows.
    #[inline(always)]
    pub(super) unsafe fn scatter(&self, indices: impl Iterator<Item = usize>, packed: &[Lanes], add: bool) {
        match (self.inner, self.width) {
            // SAFETY: the caller's promise.
            (1, 32) => return unsafe { self.scatter_whole::<2>(indices, packed, add) },
            // SAFETY: the caller's promise.
            (1, 64) => return unsafe { self.scatter_whole::<4>(indices, packed, add) },
            _ => {}
        }
        for (index, row) in indices.zip(packed.chunks_exact(lanes(self.width))) {
            // SAFETY: the caller's promise: `width` floats lie here, `inner` apart.
            let to = unsafe { self.pointer.offset(index as isize * self.outer) };
            for (column, lanes) in row.iter().enumerate() {
                let count = (self.width - column * CHUNK).min(CHUNK);
                // SAFETY: as above.
                unsafe { write(to.offset((column * CHUNK) as isize * self.inner), self.inner, count, *lanes, add) };
            }
        }
    }

    /// [`Self::scatter`] for contiguous rows of exactly WIDTH lanes.
    ///
    /// # Safety
    /// As for [`Self::scatter`].
    #[inline(always)]
    unsafe fn scatter_whole<const WIDTH: usize>(
        &self,
        indices: impl Iterator<Item = usize>,
        packed: &[Lanes],
        add: bool,
    ) {
        let (rows, _) = packed.as_chunks::<WIDTH>();
        for (index, row) in indices.zip(rows) {
            // SAFETY: the caller's promise.
            let to = unsafe { self.pointer.offset(index as isize * self.outer).cast::<[f32; CHUNK]>() };
            unrolled!(WIDTH, column => {
                // SAFETY: the caller's promise.
                let before = if add { Lanes(unsafe { to.add(column).read_unaligned() }) } else { ZERO };
                // SAFETY: the caller's promise.
                unsafe { to.add(column).write_unaligned(before.plus(row[column]).0) };
            });
        }
    }
}

/// # Safety
/// `count` floats lie at `from`, `inner` apart.
#[inline(always)]
unsafe fn read(from: *const f32, inner: isize, count: usize) -> Lanes {
    if inner == 1 && count == CHUNK {
        // SAFETY: the caller's promise.
        return Lanes(unsafe { from.cast::<[f32; CHUNK]>().read_unaligned() });
    }
    let mut lanes = ZERO;
    for (lane, value) in lanes.0[..count].iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *value = unsafe { *from.offset(lane as isize * inner) };
    }
    lanes
}

/// # Safety
/// `count` floats lie at `to`, `inner` apart, and are this task's alone.
#[inline(always)]
unsafe fn write(to: *mut f32, inner: isize, count: usize, lanes: Lanes, add: bool) {
    if inner == 1 && count == CHUNK {
        let whole = to.cast::<[f32; CHUNK]>();
        // SAFETY: the caller's promise.
        let sum = if add { Lanes(unsafe { whole.read_unaligned() }).plus(lanes) } else { lanes };
        // SAFETY: the caller's promise.
        unsafe { whole.write_unaligned(sum.0) };
        return;
    }
    for (lane, value) in lanes.0[..count].iter().enumerate() {
        // SAFETY: the caller's promise.
        let place = unsafe { &mut *to.offset(lane as isize * inner) };
        *place = if add { *place + value } else { *value };
    }
}

/// One float per step of a chunk; zero past the end of the sequence.
///
/// # Safety
/// `source` holds `[batch, token, head]` for every token.
#[inline(always)]
pub(super) unsafe fn gather_steps(source: &Source<3>, batch: usize, tokens: &[u32], head: usize) -> Lanes {
    let mut steps = ZERO;
    for (step, token) in steps.0.iter_mut().zip(tokens) {
        // SAFETY: the caller's promise.
        *step = unsafe { *source.at([batch, *token as usize, head]) };
    }
    steps
}

/// # Safety
/// `target` holds `[batch, token, head]` for every token, and they are this task's alone.
#[inline(always)]
pub(super) unsafe fn scatter_steps(target: &Target<3>, batch: usize, tokens: &[u32], head: usize, steps: Lanes) {
    for (step, token) in steps.0.iter().zip(tokens) {
        // SAFETY: the caller's promise.
        unsafe { *target.at([batch, *token as usize, head]) = *step };
    }
}

/// The decays of one head within a chunk. Every entry is a product of at most sixteen exp(ℓ), never a quotient of long
/// products, so ℓ = −10⁴ is as exact as ℓ = −10⁻⁶. Steps past the end have decay 1 and add nothing.
pub(super) struct Decay {
    /// d(t, s) = Π_{s < τ ≤ t} exp(ℓ_τ) in row t, lane s; zero where s > t.
    pub(super) between: Square,
    /// d(t, start) = Π_{τ ≤ t} exp(ℓ_τ)
    pub(super) since_start: Lanes,
}

impl Decay {
    #[inline(always)]
    pub(super) fn new(step: Lanes) -> Self {
        let mut between = [ZERO; CHUNK];
        let mut since_start = step;
        let mut row = ZERO;
        unrolled!(CHUNK, index => {
            let factor = step.0[index];
            row = row.times(Lanes::splat(factor));
            row.0[index] = 1.0;
            between[index] = row;
            if index > 0 {
                since_start.0[index] = since_start.0[index - 1] * factor;
            }
        });
        Self { between, since_start }
    }

    /// d(T, s)
    #[inline(always)]
    pub(super) fn until_end(&self) -> Lanes {
        self.between[CHUNK - 1]
    }

    /// d(T, start)
    #[inline(always)]
    pub(super) fn whole(&self) -> f32 {
        self.since_start.0[CHUNK - 1]
    }
}

/// exp(ℓ) per step; a step past the end has ℓ = 0.
#[inline(always)]
pub(super) fn exponentials<U: Unit>(log_decay: Lanes) -> Lanes {
    let mut step = log_decay;
    for lane in 0..CHUNK {
        step.0[lane] = exp::<U>(step.0[lane]);
    }
    step
}
