//! Tiles of 4 × 4 target pixels, the windows of an image that belong to them, and the way from a window to its 36 values
//! and back. A tile lies in one sample; what it needs outside an image is zero.

use super::super::Geometry;
use super::super::product::copy_strided;
use super::transform::{LANES, along_both_axes, result, result_gradient, source};
use super::{BLOCK, POINTS, SIDE};
use crate::cpu::memory::{Source, Target};
use crate::cpu::simd::{Unit, vectorised};
use std::ops::Range;

/// The tiles of all target pixels, sample by sample and row by row.
#[derive(Clone, Copy)]
pub(super) struct Tiles {
    batch: usize,
    /// Extents of the target.
    lengths: [usize; 2],
}

impl Tiles {
    pub(super) fn new(geometry: &Geometry) -> Self {
        Self { batch: geometry.batch, lengths: geometry.axes.map(|axis| axis.target_length) }
    }

    pub(super) fn count(&self) -> usize {
        self.batch * self.lengths[0].div_ceil(SIDE) * self.lengths[1].div_ceil(SIDE)
    }

    /// The first target pixel of tile number `tile`, as `[batch, row, column]`.
    #[inline(always)]
    fn corner(&self, tile: usize) -> [usize; 3] {
        let [rows, columns] = self.lengths.map(|length| length.div_ceil(SIDE));
        [tile / (rows * columns), tile / columns % rows * SIDE, tile % columns * SIDE]
    }
}

/// What a pixel outside the image reads.
static OUTSIDE: [f32; BLOCK] = [0.0; BLOCK];

/// Square windows of an image, one for each tile.
#[derive(Clone, Copy)]
pub(super) struct Windows<'a> {
    tiles: &'a Tiles,
    image: Source<4>,
    lengths: [usize; 2],
    /// From the first pixel of a tile to that of its window.
    offsets: [isize; 2],
    first_channel: usize,
    channels: usize,
}

impl<'a> Windows<'a> {
    /// What the tiles read: windows of 6 × 6 source pixels.
    pub(super) fn of_source(tiles: &'a Tiles, geometry: &Geometry, image: Source<4>, channels: &Range<usize>) -> Self {
        let (lengths, offsets) = (geometry.axes.map(|axis| axis.source_length), geometry.axes.map(|axis| axis.offset));
        Self { tiles, image, lengths, offsets, first_channel: channels.start, channels: channels.len() }
    }

    /// The tiles themselves, of an image with the extents of the target.
    pub(super) fn of_target(tiles: &'a Tiles, image: Source<4>, channels: &Range<usize>) -> Self {
        let (lengths, offsets) = (tiles.lengths, [0; 2]);
        Self { tiles, image, lengths, offsets, first_channel: channels.start, channels: channels.len() }
    }

    /// Where the pixels of the window of `tile` lie; [`OUTSIDE`] for those outside the image.
    ///
    /// # Safety
    /// The image has the sizes of the tiles.
    #[inline(always)]
    unsafe fn pixels<const SIZE: usize>(&self, tile: usize) -> [[*const f32; SIZE]; SIZE] {
        let [batch, row, column] = self.tiles.corner(tile);
        let inside = |axis: usize, first: usize, step: usize| {
            let place = first as isize + self.offsets[axis] + step as isize;
            (place >= 0 && place < self.lengths[axis] as isize).then_some(place as usize)
        };
        let mut pixels = [[OUTSIDE.as_ptr(); SIZE]; SIZE];
        for (i, pixels) in pixels.iter_mut().enumerate() {
            let Some(row) = inside(0, row, i) else { continue };
            for (j, pixel) in pixels.iter_mut().enumerate() {
                let Some(column) = inside(1, column, j) else { continue };
                // SAFETY: the pixel lies inside.
                *pixel = unsafe { self.image.at([batch, row, column, self.first_channel]) };
            }
        }
        pixels
    }

    /// Whether channels lie side by side in whole [`LANES`].
    fn is_whole(&self) -> bool {
        self.image.strides[3] == 1 && self.channels.is_multiple_of(LANES)
    }

    /// Copies the channels of a pixel side by side.
    ///
    /// # Safety
    /// The pixel is one of [`Windows::pixels`].
    #[inline(always)]
    unsafe fn copy(&self, pixel: *const f32, to: &mut [f32; BLOCK]) -> *const f32 {
        if pixel == OUTSIDE.as_ptr() {
            return pixel;
        }
        // SAFETY: the caller's promise.
        unsafe { copy_strided(pixel, self.image.strides[3], &mut to[..self.channels]) };
        to.as_ptr()
    }

    /// Prefetches pixels that are needed one tile later: the processor does not predict accesses across rows.
    #[inline(always)]
    fn prefetch<const SIZE: usize>(&self, pixels: &[[*const f32; SIZE]; SIZE]) {
        #[cfg(target_arch = "x86_64")]
        for pixel in pixels.as_flattened() {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            for line in (0..self.channels).step_by(LANES) {
                // SAFETY: a prefetch touches no memory, and every x86-64 has it.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(pixel.wrapping_add(line).cast()) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = pixels;
    }
}

/// The 36 values of some tiles: value v of the tile at `index` and its channels are `width` floats from
/// `pointer + v · plane + index · width` on.
#[derive(Clone, Copy)]
pub(super) struct Values {
    pub(super) pointer: *mut f32,
    pub(super) plane: usize,
    pub(super) width: usize,
}

impl Values {
    /// Values of `count` tiles at the beginning of `memory`.
    pub(super) fn new(memory: &mut [f32], count: usize, width: usize) -> Self {
        assert!(memory.len() >= Self::floats(count, width), "{} floats for {count} tiles", memory.len());
        Self { pointer: memory.as_mut_ptr(), plane: Self::plane(count, width), width }
    }

    /// One cache line more than the values, so that planes do not share cache sets.
    fn plane(count: usize, width: usize) -> usize {
        count * width + LANES
    }

    pub(super) fn floats(count: usize, width: usize) -> usize {
        POINTS * POINTS * Self::plane(count, width)
    }

    /// Value `[i, j]` of the tile at `index`, from channel `first` on.
    ///
    /// # Safety
    /// They lie in the memory.
    #[inline(always)]
    pub(super) unsafe fn at(&self, [i, j]: [usize; 2], index: usize, first: usize) -> *mut f32 {
        // SAFETY: the caller's promise.
        unsafe { self.pointer.add((POINTS * i + j) * self.plane + index * self.width + first) }
    }
}

vectorised! {
    /// V = Bᵀ d B of the windows d of `range`.
    pub(super) fn spread_source(windows: &Windows<'_>, range: Range<usize>, values: Values) = spread_source_body;
}

#[inline(always)]
fn spread_source_body<U: Unit>(windows: &Windows<'_>, range: Range<usize>, values: Values) {
    spread::<POINTS>(windows, range, values, source::<U>);
}

vectorised! {
    /// A dY Aᵀ of the tiles dY of `range`.
    pub(super) fn spread_gradient(windows: &Windows<'_>, range: Range<usize>, values: Values) = spread_gradient_body;
}

#[inline(always)]
fn spread_gradient_body<U: Unit>(windows: &Windows<'_>, range: Range<usize>, values: Values) {
    spread::<SIDE>(windows, range, values, result_gradient::<U>);
}

#[inline(always)]
fn spread<const SIZE: usize>(
    windows: &Windows<'_>,
    range: Range<usize>,
    values: Values,
    line: impl Fn([f32; SIZE]) -> [f32; POINTS],
) {
    let mut patch = [[[0.0; BLOCK]; SIZE]; SIZE];
    // SAFETY: images have the sizes of their tiles.
    let pixels_of = |tile| unsafe { windows.pixels::<SIZE>(tile) };
    let mut next = pixels_of(range.start);
    for (index, tile) in range.clone().enumerate() {
        let mut pixels = next;
        if tile + 1 < range.end {
            next = pixels_of(tile + 1);
            windows.prefetch(&next);
        }
        if !windows.is_whole() {
            for (pixel, patch) in pixels.as_flattened_mut().iter_mut().zip(patch.as_flattened_mut()) {
                // SAFETY: as above.
                *pixel = unsafe { windows.copy(*pixel, patch) };
            }
        }
        for first in (0..windows.channels).step_by(LANES) {
            // SAFETY: `pixels` has whole lanes, and `values` room for these tiles.
            unsafe {
                along_both_axes(|i, j| pixels[i][j].add(first), &line, |i, j| values.at([i, j], index, first));
            }
        }
    }
}

/// Some channels of the tiles of a target.
#[derive(Clone, Copy)]
pub(super) struct Results<'a> {
    pub(super) tiles: &'a Tiles,
    pub(super) target: Target<4>,
    pub(super) first_channel: usize,
    pub(super) channels: usize,
}

vectorised! {
    /// Y = Aᵀ M A of the tiles of `range`.
    pub(super) fn collect(results: &Results<'_>, range: Range<usize>, values: Values) = collect_body;
}

#[inline(always)]
fn collect_body<U: Unit>(results: &Results<'_>, range: Range<usize>, values: Values) {
    let Results { tiles, target, first_channel, channels } = *results;
    for (index, tile) in range.enumerate() {
        let [batch, row, column] = tiles.corner(tile);
        let [rows, columns] = [tiles.lengths[0] - row, tiles.lengths[1] - column].map(|length| length.min(SIDE));
        for first in (0..channels).step_by(LANES) {
            let count = (channels - first).min(LANES);
            let direct = count == LANES && target.strides[3] == 1;
            let mut local = [[[0.0; LANES]; SIDE]; SIDE];
            let mut places = local.each_mut().map(|row| row.each_mut().map(|lanes| lanes.as_mut_ptr()));
            // SAFETY: the pixels lie inside, and their channels too.
            let pixel = |i, j| unsafe { target.at([batch, row + i, column + j, first_channel + first]) };
            if direct {
                (0..rows).for_each(|i| (0..columns).for_each(|j| places[i][j] = pixel(i, j)));
            }
            // SAFETY: `values` holds these tiles; places are in the target, where they have whole lanes, or local.
            unsafe {
                along_both_axes(|i, j| values.at([i, j], index, first).cast_const(), result::<U>, |i, j| places[i][j]);
            }
            if !direct {
                for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                    for (lane, value) in local[i][j][..count].iter().enumerate() {
                        // SAFETY: the channel lies inside.
                        unsafe { *pixel(i, j).offset(lane as isize * target.strides[3]) = *value };
                    }
                }
            }
        }
    }
}
