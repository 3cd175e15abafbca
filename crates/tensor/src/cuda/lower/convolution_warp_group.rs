//! Dense convolutions of stride 1 in tf32 on warp groups (Hopper); see `convolution_warp_group.cu`.

use super::convolution::Direction;
use super::{Action, Argument, Family, Lowering, constants};
use crate::compile::plan::Place;
use crate::ops::convolution::ConvolutionShape;

/// Blocks that run at a time, one on each multiprocessor.
const BLOCKS: usize = 132;
/// Bytes of shared memory that a block may have on GPUs with warp groups.
const SHARED: usize = 232_448;

/// How a convolution is divided: tiles of 64 · `groups` pixels and `channels` results.
pub(super) struct Division {
    groups: usize,
    channels: usize,
    /// Rows and columns of an image with the zeros between neighbours.
    extents: [usize; 2],
    /// Rows of shared memory for the pixels of a tile and those around it, 32 channels each.
    slab: usize,
    /// Pieces of the weight that are in shared memory at a time.
    stages: usize,
}

impl Division {
    /// Registers of a thread that multiplies and of one that copies: multiples of eight, 65536 for all threads.
    fn registers(&self) -> [usize; 2] {
        match self.groups {
            2 => [216, 72],
            3 => [152, 56],
            _ => [112, 32],
        }
    }

    fn shared(&self) -> usize {
        2 * self.slab * 128 + self.stages * (self.channels * 128 + 16) + 32
    }

    /// `None` if the pixels of a tile do not fit shared memory.
    fn new(direction: &Direction, groups: usize, channels: usize) -> Option<Division> {
        let extents = [0, 1].map(|axis| {
            let before = direction.pad[axis];
            let after =
                (direction.to[axis] + direction.kernel[axis] - 1) as isize - before - direction.from[axis] as isize;
            direction.from[axis] + before.max(after) as usize
        });
        let [rows, columns] = [direction.to[0], direction.to[1]];
        let place = |pixel: usize| {
            (pixel / (rows * columns) * extents[0] + pixel / columns % rows) * extents[1] + pixel % columns
        };
        let pixels = direction.pixels();
        let around = (direction.kernel[0] - 1) * extents[1] + direction.kernel[1];
        let reach = |first: usize| place((first + 64 * groups).min(pixels) - 1) - place(first) + around;
        let slab = (0..pixels).step_by(64 * groups).map(reach).max()?.next_multiple_of(8);
        let stages = (SHARED.checked_sub(2 * slab * 128 + 32)? / (channels * 128 + 16)).min(6);
        (stages >= 2).then_some(Division { groups, channels, extents, slab, stages })
    }

    fn tiles(&self, direction: &Direction) -> usize {
        direction.pixels().div_ceil(64 * self.groups) * direction.to[2].div_ceil(self.channels)
    }

    /// Work of the busiest multiprocessor, in units of 64 pixels and one channel.
    fn cost(&self, direction: &Direction) -> usize {
        self.tiles(direction).div_ceil(BLOCKS) * self.groups * self.channels
    }
}

impl Lowering<'_> {
    pub(super) fn has_warp_groups(&self) -> bool {
        self.architecture == 90 && self.number() == 1
    }

    /// The fastest division; of two equal ones that with larger tiles, which reads less.
    pub(super) fn division(&self, direction: &Direction) -> Option<Division> {
        if !self.has_warp_groups() || direction.pad.iter().any(|&pad| pad < 0) {
            return None;
        }
        let choices: &[(usize, usize)] = match direction.to[2] {
            0..=64 => &[(4, 64), (3, 64), (2, 64)],
            65..=128 => &[(4, 128), (3, 128), (2, 128)],
            _ => &[(2, 256), (4, 128), (3, 128), (2, 128)],
        };
        let divisions = choices.iter().filter_map(|&(groups, channels)| Division::new(direction, groups, channels));
        divisions.min_by_key(|division| division.cost(direction))
    }

    pub(super) fn dense_warp_group(
        &mut self,
        shape: &ConvolutionShape,
        direction: &Direction,
        division: &Division,
        [from, weight, to]: [&Place; 3],
    ) {
        let tiles_n = direction.to[2].div_ceil(division.channels);
        let parts = direction.from[2].div_ceil(32);
        let threads = tiles_n * division.channels * parts * 32;
        let length = threads * direction.kernel[0] * direction.kernel[1];
        let pack = format!("pack_weight_rows<S, {}, {}>", direction.turned, division.channels);
        self.pack(shape, [from, weight, to], direction.turned, &pack, [threads, length]);
        let mut text = self.direction(direction, from, to);
        let [taken, given] = division.registers();
        text.push_str(&constants(&[
            ("TN", division.channels),
            ("TILES_N", tiles_n),
            ("GROUPS", division.groups),
            ("STAGES", division.stages),
            ("VH", division.extents[0]),
            ("VW", division.extents[1]),
            ("SLAB", division.slab),
            ("TAKEN", taken),
            ("GIVEN", given),
        ]));
        let (blocks, shared) = (division.tiles(direction).min(BLOCKS), division.shared());
        let arguments = Self::product_arguments(from, to);
        self.launch(Family::Convolution, "convolve_warp_group", &text, blocks, shared, arguments, length);
        self.widen(128 * (division.groups + 1));
    }

    /// The weight gradient; `text` has the constants of the shape.
    pub(super) fn weight_gradient_warp_group(
        &mut self,
        shape: &ConvolutionShape,
        text: &str,
        [input, cotangent]: [(&'static str, Argument); 2],
        result: (&'static str, Argument),
    ) {
        let [image, out] = [[shape.rows, shape.columns], [shape.out_rows(), shape.out_columns()]];
        let [rows, columns] = [0, 1].map(|axis| {
            let before = shape.padding[axis][0];
            (out[axis] + shape.kernel[axis] - 1).saturating_sub(before).max(image[axis] + before)
        });
        let groups = shape.kernel[0] * shape.out_channels.div_ceil(128) * shape.in_channels.div_ceil(128);
        let chunks = (BLOCKS / groups).clamp(1, (shape.batch * rows * columns).div_ceil(64));
        let text = format!("{text}{}", constants(&[("CHUNKS", chunks), ("VH", rows), ("VW", columns)]));
        let scratch = groups * 3 * chunks * 128 * 128;
        let shared = 4 * ((2 * 128 * 32 + (34_usize * 136).next_multiple_of(256)) * 4 + 24);
        let partial = Argument::Scratch(0);
        let arguments = vec![input, cotangent, ("float*", partial.clone())];
        let function = "weight_gradient_warp_group";
        self.launch(Family::Convolution, function, &text, groups * chunks, shared, arguments, scratch);
        self.widen(3 * 128);
        let arguments = vec![("const float*", partial), result];
        self.launch(Family::Convolution, "sum_weight_chunks", &text, groups * 3 * 64, 0, arguments, scratch);
    }

    /// Sets the threads of the last launch; a multiprocessor holds one block of it.
    fn widen(&mut self, threads: usize) {
        if let Some(Action::Launch(kernel)) = self.actions.last_mut() {
            kernel.block = threads as u32;
            kernel.resident = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Convolutions of the sizes of the benchmarks, and some that are hard to divide.
    fn directions() -> Vec<Direction> {
        let mut found = Vec::new();
        for [batch, rows, columns, from, to] in [
            [4, 221, 51, 128, 256],
            [8, 101, 31, 128, 128],
            [8, 129, 129, 128, 256],
            [2, 13, 17, 36, 20],
            [1, 5, 210, 16, 64],
        ] {
            for (from, to) in [(from, to), (to, from)] {
                let [from, to] = [from, to].map(|channels| [rows, columns, channels]);
                found.push(Direction { batch, from, to, kernel: [3, 3], pad: [1, 1], turned: false });
            }
        }
        found
    }

    #[test]
    fn every_division_covers_all_pixels_and_fits_on_a_multiprocessor() {
        for direction in directions() {
            for (groups, channels) in [(4, 64), (3, 128), (2, 256)] {
                let Some(division) = Division::new(&direction, groups, channels) else { continue };
                assert!(division.shared() <= SHARED);
                assert!(division.tiles(&direction) * 64 * groups * channels >= direction.pixels() * direction.to[2]);
                let [taken, given] = division.registers();
                let each = 65536 / (128 * (groups + 1)) / 8 * 8;
                assert!(groups * taken + given <= (groups + 1) * each);
            }
        }
    }
}
