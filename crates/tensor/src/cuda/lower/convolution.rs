//! Convolutions: depthwise, dense on tensor cores, and simple kernels for all other shapes; see `convolution.cu`.

use super::{Argument, Family, Lowering, constants, is_vector, offset, signed};
use crate::compile::plan::Place;
use crate::ops::convolution::ConvolutionShape;

/// A dense convolution, or its input gradient, which is a convolution with reversed taps (`turned`).
pub(super) struct Direction {
    pub(super) batch: usize,
    /// Rows, columns and channels of the image that is read.
    pub(super) from: [usize; 3],
    /// Rows, columns and channels of the image that is written.
    pub(super) to: [usize; 3],
    pub(super) kernel: [usize; 2],
    /// Zeros before the first row and column.
    pub(super) pad: [isize; 2],
    pub(super) turned: bool,
}

impl Direction {
    fn of(shape: &ConvolutionShape, turned: bool) -> Direction {
        let image = [shape.rows, shape.columns, shape.in_channels];
        let result = [shape.out_rows(), shape.out_columns(), shape.out_channels];
        let (from, to) = if turned { (result, image) } else { (image, result) };
        let pad = [0, 1].map(|axis| match turned {
            true => shape.kernel[axis] as isize - 1 - shape.padding[axis][0] as isize,
            false => shape.padding[axis][0] as isize,
        });
        Direction { batch: shape.batch, from, to, kernel: shape.kernel, pad, turned }
    }

    /// Pixels that are written.
    pub(super) fn pixels(&self) -> usize {
        self.batch * self.to[0] * self.to[1]
    }
}

impl Lowering<'_> {
    fn convolution_shape(&self, shape: &ConvolutionShape, input: &Place, weight: &Place, output: &Place) -> String {
        let mut text = constants(&[
            ("B", shape.batch),
            ("H", shape.rows),
            ("W", shape.columns),
            ("I", shape.in_channels),
            ("OH", shape.out_rows()),
            ("OW", shape.out_columns()),
            ("O", shape.out_channels),
            ("G", shape.groups),
            ("KH", shape.kernel[0]),
            ("KW", shape.kernel[1]),
            ("SH", shape.stride[0]),
            ("SW", shape.stride[1]),
            ("PH", shape.padding[0][0]),
            ("PW", shape.padding[1][0]),
            ("PRECISION", usize::from(self.number())),
        ]);
        for (name, place) in [("in", input), ("weight", weight), ("out", output)] {
            text.push_str(&self.offset(name, place));
        }
        text
    }

    fn is_depthwise(shape: &ConvolutionShape) -> bool {
        shape.groups == shape.in_channels && shape.groups == shape.out_channels && shape.stride == [1, 1]
    }

    /// Whether four channels are contiguous and aligned in both images, and the taps fit the registers of a thread.
    fn in_fours(shape: &ConvolutionShape, from: &Place, to: &Place) -> bool {
        shape.out_channels.is_multiple_of(4)
            && shape.kernel[0] * shape.kernel[1] <= 9
            && is_vector(from)
            && is_vector(to)
    }

    /// Whether the taps are a column, and too many for the registers of a thread.
    fn is_column(shape: &ConvolutionShape) -> bool {
        shape.kernel[1] == 1 && shape.padding[1] == [0, 0] && (10..=64).contains(&shape.kernel[0])
    }

    /// Threads for a column of taps that writes `rows` rows: 256 for eight strips of eight rows and 32 channels.
    fn column_threads(shape: &ConvolutionShape, rows: usize) -> usize {
        (shape.batch * shape.columns * rows.div_ceil(8)).div_ceil(8) * shape.out_channels.div_ceil(32) * 256
    }

    fn is_dense(shape: &ConvolutionShape, places: &[&Place]) -> bool {
        let channels = |count: usize| count >= 16 && count.is_multiple_of(4);
        let aligned = |place: &&Place| {
            let strides = &place.layout.strides;
            strides[3] == 1 && place.layout.offset % 4 == 0 && strides[..3].iter().all(|stride| stride % 4 == 0)
        };
        shape.groups == 1
            && shape.stride == [1, 1]
            && channels(shape.in_channels)
            && channels(shape.out_channels)
            && places.iter().all(aligned)
    }

    pub(super) fn convolution(&mut self, shape: &ConvolutionShape, input: &Place, weight: &Place, to: &Place) {
        if Self::is_dense(shape, &[input, to]) {
            return self.dense(shape, input, weight, to, false);
        }
        let text = self.convolution_shape(shape, input, weight, to);
        let arguments = vec![
            ("const float*", Argument::of(input)),
            ("const float*", Argument::of(weight)),
            ("float*", Argument::of(to)),
        ];
        let [batch, rows, columns, channels] = [shape.batch, shape.out_rows(), shape.out_columns(), shape.out_channels];
        let (function, threads) = match Self::is_depthwise(shape) {
            true if Self::in_fours(shape, input, to) => {
                ("depthwise_4<S, false>", batch * rows * columns.div_ceil(4) * channels / 4)
            }
            true if Self::is_column(shape) => ("depthwise_column<S, false>", Self::column_threads(shape, rows)),
            true => ("convolve_depthwise", shape.output().count()),
            false => ("convolve_plain", shape.output().count()),
        };
        self.launch(Family::Convolution, function, &text, threads.div_ceil(256), 0, arguments, 0);
    }

    pub(super) fn input_gradient(&mut self, shape: &ConvolutionShape, cotangent: &Place, weight: &Place, to: &Place) {
        if Self::is_dense(shape, &[cotangent, to]) {
            return self.dense(shape, cotangent, weight, to, true);
        }
        let text = self.convolution_shape(shape, to, weight, cotangent);
        let arguments = vec![
            ("const float*", Argument::of(cotangent)),
            ("const float*", Argument::of(weight)),
            ("float*", Argument::of(to)),
        ];
        let (function, threads) = match Self::is_depthwise(shape) {
            true if Self::in_fours(shape, cotangent, to) => {
                ("depthwise_4<S, true>", shape.batch * shape.rows * shape.columns.div_ceil(4) * shape.in_channels / 4)
            }
            true if Self::is_column(shape) => ("depthwise_column<S, true>", Self::column_threads(shape, shape.rows)),
            true => ("input_gradient_depthwise", shape.input().count()),
            false => ("input_gradient_plain", shape.input().count()),
        };
        self.launch(Family::Convolution, function, &text, threads.div_ceil(256), 0, arguments, 0);
    }

    /// A dense convolution or its input gradient, as a product of shifted images.
    fn dense(&mut self, shape: &ConvolutionShape, from: &Place, weight: &Place, to: &Place, turned: bool) {
        let direction = Direction::of(shape, turned);
        if let Some(division) = self.division(&direction) {
            return self.dense_warp_group(shape, &direction, &division, [from, weight, to]);
        }
        let length = shape.weight().count();
        let pack = format!("pack_weight<S, {turned}>");
        self.pack(shape, [from, weight, to], turned, &pack, [length; 2]);
        let tn: usize = if direction.to[2] > 64 { 128 } else { 64 };
        let tiles_n = direction.to[2].div_ceil(tn);
        let mut text = self.direction(&direction, from, to);
        let stage = (128 * 36 + 32 * (tn + 8)) * 4;
        let stages = (self.shared / stage).min(3);
        text.push_str(&constants(&[("TN", tn), ("TILES_N", tiles_n), ("STAGES", stages)]));
        let blocks = direction.pixels().div_ceil(128) * tiles_n;
        let shared = stages * stage;
        let arguments = Self::product_arguments(from, to);
        self.launch(Family::Convolution, "convolve_dense", &text, blocks, shared, arguments, length);
    }

    /// Launches `function` on `threads` threads, which packs the weight into `length` floats at the start of scratch memory.
    pub(super) fn pack(
        &mut self,
        shape: &ConvolutionShape,
        [from, weight, to]: [&Place; 3],
        turned: bool,
        function: &str,
        [threads, length]: [usize; 2],
    ) {
        let (input, output) = if turned { (to, from) } else { (from, to) };
        let text = self.convolution_shape(shape, input, weight, output);
        let arguments = vec![("const float*", Argument::of(weight)), ("float*", Argument::Scratch(0))];
        self.launch(Family::Convolution, function, &text, threads.div_ceil(256), 0, arguments, length);
    }

    /// Arguments of a product of shifted images: image, packed weight, result.
    pub(super) fn product_arguments(from: &Place, to: &Place) -> Vec<(&'static str, Argument)> {
        vec![("const float*", Argument::of(from)), ("const float*", Argument::Scratch(0)), ("float*", Argument::of(to))]
    }

    pub(super) fn direction(&self, direction: &Direction, from: &Place, to: &Place) -> String {
        let mut text = constants(&[
            ("B", direction.batch),
            ("FH", direction.from[0]),
            ("FW", direction.from[1]),
            ("K", direction.from[2]),
            ("TH", direction.to[0]),
            ("TW", direction.to[1]),
            ("N", direction.to[2]),
            ("KH", direction.kernel[0]),
            ("KW", direction.kernel[1]),
            ("PRECISION", usize::from(self.number())),
        ]);
        text.push_str(&signed(&[("P", direction.pad[0]), ("Q", direction.pad[1])]));
        for (name, place) in [("from", from), ("to", to)] {
            text.push_str(&offset(name, &place.layout.strides[..3], self.plan.buffers[place.buffer].length >= 1 << 30));
        }
        text
    }

    pub(super) fn weight_gradient(&mut self, shape: &ConvolutionShape, input: &Place, cotangent: &Place, to: &Place) {
        let mut text = self.convolution_shape(shape, input, to, cotangent);
        let (taps, pixels) = (shape.kernel[0] * shape.kernel[1], shape.output().count() / shape.out_channels);
        let inputs = [("const float*", Argument::of(input)), ("const float*", Argument::of(cotangent))];
        let result = ("float*", Argument::of(to));
        if Self::is_dense(shape, &[input, cotangent]) && self.has_warp_groups() && shape.kernel[1] == 3 {
            self.weight_gradient_warp_group(shape, &text, inputs, result);
        } else if Self::is_dense(shape, &[input, cotangent]) {
            let groups = taps * shape.out_channels.div_ceil(128) * shape.in_channels.div_ceil(128);
            let chunks = (264 / groups).clamp(1, pixels.div_ceil(64));
            let stage = 2 * 32 * 136 * 4;
            let stages = (self.shared / stage).min(3);
            text.push_str(&constants(&[("CHUNKS", chunks), ("STAGES", stages)]));
            let scratch = groups * chunks * 128 * 128;
            let [first, second] = inputs;
            let arguments = vec![first, second, ("float*", Argument::Scratch(0))];
            self.launch(
                Family::Convolution,
                "weight_gradient_dense",
                &text,
                groups * chunks,
                stages * stage,
                arguments,
                scratch,
            );
            let arguments = vec![("const float*", Argument::Scratch(0)), result];
            self.launch(Family::Convolution, "sum_weight_chunks", &text, groups * 64, 0, arguments, scratch);
        } else if Self::is_depthwise(shape) {
            let groups = shape.out_channels.div_ceil(32);
            let chunks = (528 / groups).clamp(1, pixels.div_ceil(32));
            text.push_str(&constants(&[("CHUNKS", chunks)]));
            let [first, second] = inputs;
            let arguments =
                vec![first, second, result, ("float*", Argument::Scratch(0)), ("uint32*", Argument::Counters)];
            self.launch(
                Family::Convolution,
                "weight_gradient_depthwise",
                &text,
                groups * chunks,
                0,
                arguments,
                groups * chunks * taps * 32,
            );
        } else {
            let [first, second] = inputs;
            let arguments = vec![first, second, result];
            self.launch(Family::Convolution, "weight_gradient_plain", &text, shape.weight().count(), 0, arguments, 0);
        }
    }
}
