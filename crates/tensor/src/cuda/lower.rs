//! From the steps of a plan to launches: which kernel, with which constants, over which grid.

use super::generate::{self, Argument, Family, Kernel};
use crate::compile::plan::{Place, Plan, Step};
use crate::ops::Precision;
use crate::ops::convolution::ConvolutionShape;
use crate::ops::scan::ScanShape;
use std::fmt::Write;
use std::sync::Arc;

/// One thing the card does.
pub(crate) enum Action {
    Launch(Kernel),
    Clear {
        buffer: usize,
        length: usize,
    },
    /// A product for cuBLASLt.
    Product(Product),
}

/// `to[batch, m, n] = left[batch, m, k] · right[batch, k, n]`
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) left: Matrix,
    pub(crate) right: Matrix,
    pub(crate) to: Matrix,
    /// m, n, k
    pub(crate) extents: [usize; 3],
    pub(crate) batch: usize,
    /// Left and right have changed places.
    to_is_transposed: bool,
}

/// A matrix in memory, one per batch.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) buffer: usize,
    pub(crate) offset: isize,
    /// Strides of the two axes, then of the batch.
    pub(crate) strides: [isize; 3],
}

/// Threads of every hand-written kernel.
const THREADS: u32 = 256;

pub(crate) struct Lowering<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) precision: Precision,
    pub(crate) tables: Vec<Arc<[u32]>>,
    pub(crate) actions: Vec<Action>,
}

impl Lowering<'_> {
    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Loop(body) => {
                let lengths: Vec<usize> = self.plan.buffers.iter().map(|buffer| buffer.length).collect();
                self.actions.extend(generate::kernels(body, &lengths).into_iter().map(Action::Launch));
            }
            Step::Clear { buffer } => {
                self.actions.push(Action::Clear { buffer: *buffer, length: self.plan.buffers[*buffer].length });
            }
            Step::MatMul { left, right, to } => self.product(left, right, to),
            Step::Convolution { shape, input, weight, to } => self.convolution(shape, input, weight, to),
            Step::ConvolutionInputGradient { shape, cotangent, weight, to } => {
                self.input_gradient(shape, cotangent, weight, to);
            }
            Step::ConvolutionWeightGradient { shape, input, cotangent, to } => {
                self.weight_gradient(shape, input, cotangent, to);
            }
            Step::Scan { shape, order, operands, output, final_state } => {
                self.scan(shape, order, operands, output, final_state.as_ref());
            }
            Step::ScanGradient { shape, order, operands, cotangent, final_cotangent, to } => {
                self.scan_gradient(shape, order, operands, cotangent, final_cotangent.as_ref(), to);
            }
            Step::Gather { axis, from, index, to } => self.rows("gather", *axis, from, to, *index),
            Step::ScatterAdd { axis, from, index, to } => self.rows("scatter_add", *axis, to, from, *index),
        }
    }

    fn number(&self) -> u8 {
        match self.precision {
            Precision::F32 => 0,
            Precision::Tf32 => 1,
            Precision::Bf16 => 2,
        }
    }

    #[allow(clippy::too_many_arguments)] // a launch has as many parts
    /// Adds a launch of `function<$S>` whose shape holds `constants` and `members`.
    fn launch(
        &mut self,
        family: Family,
        function: &str,
        shape: &str,
        blocks: usize,
        shared: usize,
        arguments: Vec<(&str, Argument)>,
        scratch: usize,
    ) {
        let declared: Vec<String> =
            arguments.iter().enumerate().map(|(position, (kind, _))| format!("{kind} p{position}")).collect();
        let passed: Vec<String> = (0..arguments.len()).map(|position| format!("p{position}")).collect();
        let function = if function.contains('<') { function.replace("<S", "<$S") } else { format!("{function}<$S>") };
        self.actions.push(Action::Launch(Kernel {
            family,
            before: format!("struct $S {{\n{shape}}};\n"),
            text: format!("({}) {{ {function}({}); }}\n", declared.join(", "), passed.join(", ")),
            arguments: arguments.into_iter().map(|(_, argument)| argument).collect(),
            grid: [u32::try_from(blocks).expect("a grid has fewer than 2^32 blocks"), 1, 1],
            block: THREADS,
            resident: if shared <= 113 * 1024 { 2 } else { 1 }, // 227 KB of shared memory, 65536 registers
            shared: shared as u32,
            scratch,
        }));
    }

    fn rows(&mut self, function: &str, axis: usize, wide: &Place, named: &Place, index: usize) {
        let (dims, count) = (&wide.layout.dims, named.layout.dims[axis]);
        let outer: usize = dims[..axis].iter().product();
        let inner: usize = dims[axis + 1..].iter().product();
        let mut shape = constants(&[("OUTER", outer), ("INNER", inner), ("ROWS", dims[axis]), ("COUNT", count)]);
        for (name, place) in [("wide", wide), ("named", named)] {
            // o and n run over several axes each.
            let mut body = format!(
                "  __device__ static long long {name}(long long o, long long r, long long n) {{ long long at = r * {};",
                place.layout.strides[axis]
            );
            for (letter, axes) in [('o', 0..axis), ('n', axis + 1..dims.len())] {
                for axis in axes.rev() {
                    let (extent, stride) = (place.layout.dims[axis], place.layout.strides[axis]);
                    let _ = write!(body, " at += {letter} % {extent} * {stride}; {letter} /= {extent};");
                }
            }
            shape.push_str(&body);
            shape.push_str(" return at; }\n");
        }
        let gathers = function == "gather";
        let count = outer * inner * if gathers { count } else { dims[axis] };
        let table = Argument::Buffer { buffer: index, offset: 0 };
        let (from, to) = if gathers { (wide, named) } else { (named, wide) };
        let arguments =
            vec![("const float*", Argument::of(from)), ("const uint32*", table), ("float*", Argument::of(to))];
        self.launch(Family::Rows, function, &shape, count.div_ceil(256), 0, arguments, 0);
    }

    fn product(&mut self, left: &Place, right: &Place, to: &Place) {
        let rank = to.layout.dims.len();
        let mut axes: Vec<[isize; 4]> = Vec::new(); // extent, left, right, to
        for axis in (0..rank - 2).filter(|&axis| to.layout.dims[axis] > 1) {
            let next = [
                to.layout.dims[axis] as isize,
                left.layout.strides[axis],
                right.layout.strides[axis],
                to.layout.strides[axis],
            ];
            match axes.last_mut() {
                Some(last) if (1..4).all(|i| last[i] == next[0] * next[i]) => {
                    *last = [last[0] * next[0], next[1], next[2], next[3]];
                }
                _ => axes.push(next),
            }
        }
        let [m, k] = [left.layout.dims[rank - 2], left.layout.dims[rank - 1]];
        let n = right.layout.dims[rank - 1];
        let matrix = |place: &Place, which: usize| Matrix {
            buffer: place.buffer,
            offset: place.layout.offset,
            strides: [
                place.layout.strides[rank - 2],
                place.layout.strides[rank - 1],
                axes.first().map_or(0, |axis| axis[which]),
            ],
        };
        let batch = axes.iter().map(|axis| axis[0] as usize).product();
        let mut product = Product {
            left: matrix(left, 1),
            right: matrix(right, 2),
            to: matrix(to, 3),
            extents: [m, n, k],
            batch,
            to_is_transposed: false,
        };
        // The contiguous axis of the result is its columns: Cᵀ = Bᵀ·Aᵀ.
        if product.to.strides[1] != 1 && product.to.strides[0] == 1 {
            product.transpose();
        }
        let long = product.extents[0] * product.extents[1] <= 64 * 64 && k >= 2048;
        // cuBLASLt takes one batch axis; two, and long sums into small matrices, are faster by our own.
        let rows = product.left.strides[1] == 1 || product.extents[1] > 32;
        if product.is_aligned(&axes) && rows && (axes.len() > 1 || (long && batch > 1)) {
            self.aligned_product(&product, &axes);
        } else if axes.len() <= 1 && product.suits_the_library() && !(long && batch > 1) {
            self.actions.push(Action::Product(product));
        } else {
            self.own_product(&product, &axes, k);
        }
    }

    /// Extents, strides and the walk over batches, as constants.
    fn product_shape(&self, product: &Product, axes: &[[isize; 4]], tiles: &[(&str, usize)]) -> String {
        let [m, n, k] = product.extents;
        let mut shape = constants(&[("M", m), ("N", n), ("K", k), ("PRECISION", usize::from(self.number()))]);
        shape.push_str(&constants(tiles));
        let (left, right, to) = (&product.left.strides, &product.right.strides, &product.to.strides);
        shape.push_str(&signed(&[
            ("LEFT_M", left[0]),
            ("LEFT_K", left[1]),
            ("RIGHT_K", right[0]),
            ("RIGHT_N", right[1]),
            ("TO_M", to[0]),
            ("TO_N", to[1]),
            ("LEFT_K1", isize::from(left[1] == 1)),
            ("RIGHT_N1", isize::from(right[1] == 1)),
        ]));
        shape.push_str(
            "  __device__ static void batch(int i, long long& l, long long& r, long long& t) { l = r = t = 0;",
        );
        for axis in axes.iter().rev() {
            let (l, r) = if product.to_is_transposed { (axis[2], axis[1]) } else { (axis[1], axis[2]) };
            let _ = write!(
                shape,
                " {{ const int d = i % {}; i /= {}; l += d * {l}LL; r += d * {r}LL; t += d * {}LL; }}",
                axis[0], axis[0], axis[3]
            );
        }
        shape.push_str(" }\n");
        shape
    }

    fn aligned_product(&mut self, product: &Product, axes: &[[isize; 4]]) {
        let [m, n, k] = product.extents;
        let tn: usize = if n > 64 { 128 } else { 64 };
        let tiles = m.div_ceil(128) * n.div_ceil(tn) * product.batch;
        let split = (264 / tiles).clamp(1, k.div_ceil(256));
        let stages = k.div_ceil(split).div_ceil(32).min(3);
        let shape = self.product_shape(product, axes, &[("TN", tn), ("SPLIT", split), ("STAGES", stages)]);
        let of = |matrix: &Matrix| Argument::Buffer { buffer: matrix.buffer, offset: matrix.offset };
        let a = if product.left.strides[1] == 1 { 128 * 36 } else { 32 * 136 };
        let b = if product.right.strides[1] == 1 { 32 * (tn + 8) } else { tn * 36 };
        let scratch = if split > 1 { tiles * split * 128 * tn } else { 0 };
        let arguments = vec![
            ("const float*", of(&product.left)),
            ("const float*", of(&product.right)),
            ("float*", of(&product.to)),
            ("float*", Argument::Scratch(0)),
        ];
        self.launch(
            Family::Product,
            "product_aligned",
            &shape,
            tiles * split,
            stages * (a + b) * 4,
            arguments,
            scratch,
        );
        if split > 1 {
            let arguments = vec![("const float*", Argument::Scratch(0)), ("float*", of(&product.to))];
            self.launch(Family::Product, "sum_splits", &shape, tiles * 128 * tn / 256, 0, arguments, scratch);
        }
    }

    fn own_product(&mut self, product: &Product, axes: &[[isize; 4]], k: usize) {
        let [m, n, _] = product.extents;
        let fit = |extent: usize| if extent > 32 { 64 } else { extent.next_power_of_two().max(16) };
        let (tm, tn) = (fit(m), fit(n));
        let tiles = m.div_ceil(tm) * n.div_ceil(tn) * product.batch;
        let split = (528 / tiles).clamp(1, k.div_ceil(128)).max(1);
        let shape = self.product_shape(product, axes, &[("TM", tm), ("TN", tn), ("SPLIT", split)]);
        let of = |matrix: &Matrix| Argument::Buffer { buffer: matrix.buffer, offset: matrix.offset };
        let arguments = vec![
            ("const float*", of(&product.left)),
            ("const float*", of(&product.right)),
            ("float*", of(&product.to)),
            ("float*", Argument::Scratch(0)),
            ("uint32*", Argument::Counters),
        ];
        let scratch = if split > 1 { tiles * split * tm * tn } else { 0 };
        self.launch(Family::Product, "product", &shape, tiles * split, 0, arguments, scratch);
    }

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

    /// `name(i0, i1, …)` to the offset of an element.
    fn offset(&self, name: &str, place: &Place) -> String {
        let wide = self.plan.buffers[place.buffer].length >= 1 << 30;
        offset(name, &place.layout.strides, wide)
    }

    fn is_depthwise(shape: &ConvolutionShape) -> bool {
        shape.groups == shape.in_channels && shape.groups == shape.out_channels && shape.stride == [1, 1]
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

    fn convolution(&mut self, shape: &ConvolutionShape, input: &Place, weight: &Place, to: &Place) {
        if Self::is_dense(shape, &[input, to]) {
            return self.dense(shape, input, weight, to, false);
        }
        let function = if Self::is_depthwise(shape) { "convolve_depthwise" } else { "convolve_plain" };
        let text = self.convolution_shape(shape, input, weight, to);
        let arguments = vec![
            ("const float*", Argument::of(input)),
            ("const float*", Argument::of(weight)),
            ("float*", Argument::of(to)),
        ];
        self.launch(Family::Convolution, function, &text, shape.output().count().div_ceil(256), 0, arguments, 0);
    }

    fn input_gradient(&mut self, shape: &ConvolutionShape, cotangent: &Place, weight: &Place, to: &Place) {
        if Self::is_dense(shape, &[cotangent, to]) {
            return self.dense(shape, cotangent, weight, to, true);
        }
        let function = if Self::is_depthwise(shape) { "input_gradient_depthwise" } else { "input_gradient_plain" };
        let text = self.convolution_shape(shape, to, weight, cotangent);
        let arguments = vec![
            ("const float*", Argument::of(cotangent)),
            ("const float*", Argument::of(weight)),
            ("float*", Argument::of(to)),
        ];
        self.launch(Family::Convolution, function, &text, shape.input().count().div_ceil(256), 0, arguments, 0);
    }

    /// Both directions of a dense convolution are one product of shifted images.
    fn dense(&mut self, shape: &ConvolutionShape, from: &Place, weight: &Place, to: &Place, turned: bool) {
        let (input, output) = if turned { (to, from) } else { (from, to) };
        let packing = self.convolution_shape(shape, input, weight, output);
        let length = shape.weight().count();
        let pack = format!("pack_weight<S, {turned}>");
        let arguments = vec![("const float*", Argument::of(weight)), ("float*", Argument::Scratch(0))];
        self.launch(Family::Convolution, &pack, &packing, length.div_ceil(256), 0, arguments, length);
        let [image, result] = [
            [shape.rows, shape.columns, shape.in_channels],
            [shape.out_rows(), shape.out_columns(), shape.out_channels],
        ];
        let (f, t) = if turned { (result, image) } else { (image, result) };
        let pad = |axis: usize| match turned {
            true => shape.kernel[axis] as isize - 1 - shape.padding[axis][0] as isize,
            false => shape.padding[axis][0] as isize,
        };
        let tn: usize = if t[2] > 64 { 128 } else { 64 };
        let tiles_n = t[2].div_ceil(tn);
        let mut text = constants(&[
            ("B", shape.batch),
            ("FH", f[0]),
            ("FW", f[1]),
            ("K", f[2]),
            ("TH", t[0]),
            ("TW", t[1]),
            ("N", t[2]),
            ("KH", shape.kernel[0]),
            ("KW", shape.kernel[1]),
            ("TN", tn),
            ("TILES_N", tiles_n),
            ("PRECISION", usize::from(self.number())),
        ]);
        text.push_str(&signed(&[("P", pad(0)), ("Q", pad(1))]));
        for (name, place) in [("from", from), ("to", to)] {
            text.push_str(&offset(name, &place.layout.strides[..3], self.plan.buffers[place.buffer].length >= 1 << 30));
        }
        let blocks = (shape.batch * t[0] * t[1]).div_ceil(128) * tiles_n;
        let shared = 3 * (128 * 36 + 32 * (tn + 8)) * 4;
        let arguments = vec![
            ("const float*", Argument::of(from)),
            ("const float*", Argument::Scratch(0)),
            ("float*", Argument::of(to)),
        ];
        self.launch(Family::Convolution, "convolve_dense", &text, blocks, shared, arguments, length);
    }

    fn weight_gradient(&mut self, shape: &ConvolutionShape, input: &Place, cotangent: &Place, to: &Place) {
        let mut text = self.convolution_shape(shape, input, to, cotangent);
        let (taps, pixels) = (shape.kernel[0] * shape.kernel[1], shape.output().count() / shape.out_channels);
        let inputs = [("const float*", Argument::of(input)), ("const float*", Argument::of(cotangent))];
        let result = ("float*", Argument::of(to));
        if Self::is_dense(shape, &[input, cotangent]) {
            let groups = taps * shape.out_channels.div_ceil(128) * shape.in_channels.div_ceil(128);
            let chunks = (264 / groups).clamp(1, pixels.div_ceil(64));
            text.push_str(&constants(&[("CHUNKS", chunks)]));
            let scratch = groups * chunks * 128 * 128;
            let [first, second] = inputs;
            let arguments = vec![first, second, ("float*", Argument::Scratch(0))];
            self.launch(
                Family::Convolution,
                "weight_gradient_dense",
                &text,
                groups * chunks,
                3 * 2 * 32 * 136 * 4,
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

    fn table(&mut self, order: &Arc<[u32]>) -> Argument {
        let known = self.tables.iter().position(|table| table == order);
        Argument::Table(known.unwrap_or_else(|| {
            self.tables.push(order.clone());
            self.tables.len() - 1
        }))
    }

    fn scan_shape(&self, z: &ScanSizes, operands: &[Place]) -> String {
        let shape = &z.shape;
        let mut text = constants(&[
            ("BATCH", shape.batch),
            ("L", shape.tokens),
            ("HEADS", shape.heads),
            ("P", shape.channels),
            ("GROUPS", shape.groups),
            ("N", shape.states),
            ("DIRS", shape.directions),
            ("UNIT", z.unit),
            ("UNITS", z.units),
            ("INITIAL", usize::from(operands.len() == 6)),
            ("PRECISION", usize::from(self.number())),
        ]);
        for (name, place) in ["signal", "decay", "gain", "write", "read", "initial"].iter().zip(operands) {
            text.push_str(&self.offset(name, place));
        }
        for (name, place) in [("SIGNAL_4", &operands[0]), ("WRITE_4", &operands[3]), ("READ_4", &operands[4])] {
            text.push_str(&constants(&[(name, usize::from(is_vector(place)))]));
        }
        if operands.len() < 6 {
            text.push_str(&offset("initial", &[0; 4], false));
        }
        text
    }

    fn scan(
        &mut self,
        shape: &ScanShape,
        order: &Arc<[u32]>,
        operands: &[Place],
        output: &Place,
        final_state: Option<&Place>,
    ) {
        let z = ScanSizes::new(shape);
        let mut text = self.scan_shape(&z, operands);
        let summed = shape.directions > 1;
        text.push_str(&constants(&[("FINAL", usize::from(final_state.is_some()))]));
        text.push_str(
            &final_state
                .map_or_else(|| offset("final_state", &[0; 4], false), |place| self.offset("final_state", place)),
        );
        text.push_str(&offset("initial_gradient", &[0; 4], false));
        text.push_str(&offset("cotangent", &[0; 4], false));
        text.push_str(&constants(&[("COTANGENT_4", 0)]));
        text.push_str(&self.piece("output", summed, shape, output));
        text.push_str(&self.offset("summed", output));
        text.push_str(&offset("signal_gradient", &[0; 4], false));
        let order = self.table(order);
        let (states, decays) = (0, z.states);
        let pieces = decays + z.decays;
        let scratch = pieces + if summed { shape.directions * shape.signal().count() } else { 0 };
        let inputs = |order: Argument| {
            let mut list = vec![("const uint32*", order)];
            list.extend(operands[..5].iter().map(|place| ("const float*", Argument::of(place))));
            list
        };
        let at = Argument::Scratch;
        let single = z.single && final_state.is_none();
        text.push_str(&constants(&[("SINGLE", usize::from(single))]));
        if !single {
            let mut arguments = inputs(order.clone());
            arguments.extend([
                ("const float*", at(0)),
                ("float*", at(states)),
                ("float*", at(0)),
                ("float*", at(decays)),
            ]);
            self.launch(
                Family::Scan,
                "scan_states<S, false>",
                &text,
                z.blocks,
                z.state_shared(false),
                arguments,
                scratch,
            );
            self.pass(&z, &text, operands, None, [states, 0, decays], final_state, None, scratch);
        }
        let mut arguments = inputs(order);
        let target = if summed { at(pieces) } else { Argument::of(output) };
        let before = if single { operands.get(5).map_or(at(0), Argument::of) } else { at(states) };
        arguments.extend([("const float*", before), ("float*", target)]);
        self.launch(Family::Scan, "scan_output", &text, z.blocks, z.output_shared(), arguments, scratch);
        if summed {
            let arguments = vec![("const float*", at(pieces)), ("float*", Argument::of(output))];
            self.launch(
                Family::Scan,
                "sum_directions<S, false>",
                &text,
                shape.signal().count().div_ceil(256),
                0,
                arguments,
                scratch,
            );
        }
    }

    #[allow(clippy::too_many_arguments)] // the kernel's own
    fn pass(
        &mut self,
        z: &ScanSizes,
        text: &str,
        operands: &[Place],
        final_cotangent: Option<&Place>,
        [states, adjoints, decays]: [usize; 3],
        final_state: Option<&Place>,
        initial_gradient: Option<&Place>,
        scratch: usize,
    ) {
        let or_scratch = |place: Option<&Place>| place.map_or(Argument::Scratch(0), Argument::of);
        let adjoint = adjoints > 0;
        let arguments = vec![
            ("const float*", or_scratch(operands.get(5))),
            ("const float*", or_scratch(final_cotangent)),
            ("const float*", Argument::Scratch(decays)),
            ("float*", Argument::Scratch(states)),
            ("float*", Argument::Scratch(adjoints)),
            ("float*", or_scratch(final_state)),
            ("float*", or_scratch(initial_gradient)),
        ];
        let count = z.shape.state().count();
        self.launch(
            Family::Scan,
            &format!("scan_pass<S, {adjoint}>"),
            text,
            count.div_ceil(256),
            0,
            arguments,
            scratch,
        );
    }

    /// Offsets of a result that every direction writes apart when there are several.
    fn piece(&self, name: &str, apart: bool, shape: &ScanShape, place: &Place) -> String {
        let signal = shape.signal();
        let [_, tokens, heads, channels] =
            [signal.0[0], signal.0[1], signal.0[2], signal.0[3]].map(|extent| extent as isize);
        let own = [tokens * heads * channels, heads * channels, channels, 1];
        let strides = if apart { own } else { [0, 1, 2, 3].map(|axis| place.layout.strides[axis]) };
        let direction = if apart { own[0] * shape.batch as isize } else { 0 };
        let list = [direction, strides[0], strides[1], strides[2], strides[3]];
        offset(
            name,
            &list,
            shape.directions * signal.count() >= 1 << 30 || self.plan.buffers[place.buffer].length >= 1 << 30,
        )
    }

    fn scan_gradient(
        &mut self,
        shape: &ScanShape,
        order: &Arc<[u32]>,
        operands: &[Place],
        cotangent: &Place,
        final_cotangent: Option<&Place>,
        to: &[Place],
    ) {
        let z = ScanSizes::new(shape);
        let mut text = self.scan_shape(&z, operands);
        let (summed, spread) = (shape.directions > 1, z.units > shape.groups);
        text.push_str(&constants(&[("FINAL", usize::from(final_cotangent.is_some()))]));
        text.push_str(
            &final_cotangent
                .map_or_else(|| offset("final_state", &[0; 4], false), |place| self.offset("final_state", place)),
        );
        text.push_str(&self.offset("cotangent", cotangent));
        text.push_str(&constants(&[("COTANGENT_4", usize::from(is_vector(cotangent)))]));
        text.push_str(&self.piece("signal_piece", summed, shape, &to[0]));
        text.push_str(&self.offset("signal_gradient", &to[0]));
        text.push_str(&offset("summed", &[0; 4], false));
        text.push_str(&self.offset("decay_gradient", &to[1]));
        text.push_str(&self.offset("gain_gradient", &to[2]));
        text.push_str(&to.get(5).map_or_else(
            || offset("initial_gradient", &[0; 4], false),
            |place| self.offset("initial_gradient", place),
        ));
        for (name, place) in [("write", &to[3]), ("read", &to[4])] {
            let strides = &place.layout.strides;
            let (n, l) = (shape.states as isize, shape.tokens as isize);
            let own = [shape.batch as isize * l * n, l * n, n, 1];
            let list = if spread { own } else { [strides[2], strides[0], strides[1], strides[3]] };
            text.push_str(&offset(&format!("{name}_gradient"), &list, false));
            text.push_str(&self.offset(&format!("{name}_summed"), place));
        }
        let order = self.table(order);
        let (states, adjoints) = (0, z.states);
        let decays = adjoints + z.states;
        let pieces = decays + z.decays;
        let writes = pieces + if summed { shape.directions * shape.signal().count() } else { 0 };
        let unit_pieces = if spread { z.units * shape.batch * shape.tokens * shape.states } else { 0 };
        let reads = writes + unit_pieces;
        let scratch = reads + unit_pieces;
        let at = Argument::Scratch;
        let mut inputs = vec![("const uint32*", order)];
        inputs.extend(operands[..5].iter().map(|place| ("const float*", Argument::of(place))));
        inputs.push(("const float*", Argument::of(cotangent)));
        let single = z.single && final_cotangent.is_none();
        text.push_str(&constants(&[("SINGLE", usize::from(single))]));
        if !single {
            let mut arguments = inputs.clone();
            arguments.extend([("float*", at(states)), ("float*", at(adjoints)), ("float*", at(decays))]);
            self.launch(
                Family::Scan,
                "scan_states<S, true>",
                &text,
                z.blocks,
                z.state_shared(true),
                arguments,
                scratch,
            );
            self.pass(&z, &text, operands, final_cotangent, [states, adjoints, decays], None, to.get(5), scratch);
        }
        let mut arguments = inputs;
        let own = |apart: bool, offset: usize, place: &Place| if apart { at(offset) } else { Argument::of(place) };
        arguments.extend([
            ("const float*", if single { operands.get(5).map_or(at(0), Argument::of) } else { at(states) }),
            ("const float*", at(adjoints)),
            ("float*", own(summed, pieces, &to[0])),
            ("float*", Argument::of(&to[1])),
            ("float*", Argument::of(&to[2])),
            ("float*", own(spread, writes, &to[3])),
            ("float*", own(spread, reads, &to[4])),
            ("float*", to.get(5).map_or(at(0), Argument::of)),
        ]);
        self.launch(Family::Scan, "scan_gradients", &text, z.blocks, z.gradient_shared(), arguments, scratch);
        if summed {
            let arguments = vec![("const float*", at(pieces)), ("float*", Argument::of(&to[0]))];
            self.launch(
                Family::Scan,
                "sum_directions<S, true>",
                &text,
                shape.signal().count().div_ceil(256),
                0,
                arguments,
                scratch,
            );
        }
        if spread {
            for (kind, offset, place) in [("false", writes, &to[3]), ("true", reads, &to[4])] {
                let arguments = vec![("const float*", at(offset)), ("float*", Argument::of(place))];
                let count = shape.per_group().count();
                self.launch(
                    Family::Scan,
                    &format!("sum_units<S, {kind}>"),
                    &text,
                    count.div_ceil(256),
                    0,
                    arguments,
                    scratch,
                );
            }
        }
    }
}

/// How a scan is cut.
struct ScanSizes {
    shape: ScanShape,
    /// Heads that share direction and group.
    unit: usize,
    units: usize,
    blocks: usize,
    /// One chunk holds all tokens.
    single: bool,
    /// Floats for the states of all chunks, and for their decays.
    states: usize,
    decays: usize,
}

impl ScanSizes {
    const CHUNK: usize = 64;

    fn new(shape: &ScanShape) -> ScanSizes {
        let heads = shape.scan_heads();
        let unit = greatest_common_divisor(heads / shape.groups, shape.heads);
        let (units, chunks) = (heads / unit, shape.tokens.div_ceil(Self::CHUNK));
        ScanSizes {
            shape: *shape,
            unit,
            units,
            blocks: shape.batch * units * chunks,
            single: chunks == 1,
            states: shape.state().count() * (chunks + 1),
            decays: (shape.batch * heads * chunks).next_multiple_of(4),
        }
    }

    fn padded(&self) -> [usize; 2] {
        [self.shape.states.next_multiple_of(16), self.shape.channels.next_multiple_of(16)]
    }

    /// Bytes of shared memory of the kernels in `scan.cu`.
    fn state_shared(&self, adjoint: bool) -> usize {
        let [n, p] = self.padded();
        Self::CHUNK * (n + 8 + p + 8) * (1 + usize::from(adjoint)) * 4
    }

    fn output_shared(&self) -> usize {
        let [n, p] = self.padded();
        (2 * Self::CHUNK * (n + 4) + Self::CHUNK * (Self::CHUNK + 4) + Self::CHUNK * (p + 8) + p * (n + 4)) * 4
    }

    fn gradient_shared(&self) -> usize {
        let [n, p] = self.padded();
        (2 * Self::CHUNK * (n + 8) + Self::CHUNK * (Self::CHUNK + 8) + 2 * Self::CHUNK * (p + 8) + 2 * p * (n + 8)) * 4
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl Product {
    fn transpose(&mut self) {
        let turned = |matrix: &Matrix| Matrix {
            strides: [matrix.strides[1], matrix.strides[0], matrix.strides[2]],
            ..matrix.clone()
        };
        let (left, right) = (turned(&self.right), turned(&self.left));
        self.to = turned(&self.to);
        (self.left, self.right) = (left, right);
        self.extents.swap(0, 1);
        self.to_is_transposed = !self.to_is_transposed;
    }

    /// Each matrix has a contiguous axis whose rows start at multiples of four elements, and the result its columns.
    fn is_aligned(&self, axes: &[[isize; 4]]) -> bool {
        let [m, n, k] = self.extents;
        let four = |number: isize| number % 4 == 0;
        let operand = |matrix: &Matrix, rows: usize, columns: usize| {
            let [r, c, _] = matrix.strides;
            four(matrix.offset)
                && ((c == 1 && four(r) && columns.is_multiple_of(4))
                    || (r == 1 && c != 1 && four(c) && rows.is_multiple_of(4)))
        };
        operand(&self.left, m, k)
            && operand(&self.right, k, n)
            && self.to.strides[1] == 1
            && self.to.offset % 2 == 0
            && self.to.strides[0] % 2 == 0
            && n.is_multiple_of(2)
            && axes.iter().all(|axis| four(axis[1]) && four(axis[2]) && axis[3] % 2 == 0)
    }

    /// Each matrix has a contiguous axis, and the other steps over it.
    fn suits_the_library(&self) -> bool {
        let [m, n, k] = self.extents;
        let suits = |matrix: &Matrix, rows: usize, columns: usize| {
            let [r, c, _] = matrix.strides;
            (c == 1 || columns == 1) && (rows == 1 || r >= columns as isize)
                || (r == 1 || rows == 1) && (columns == 1 || c >= rows as isize)
        };
        let to = self.to.strides;
        suits(&self.left, m, k) && suits(&self.right, k, n) && (to[1] == 1 || n == 1) && (m == 1 || to[0] >= n as isize)
    }
}

/// Whether rows are contiguous and start at multiples of four elements.
fn is_vector(place: &Place) -> bool {
    let strides = &place.layout.strides;
    let last = strides.len() - 1;
    strides[last] == 1 && place.layout.offset % 4 == 0 && strides[..last].iter().all(|stride| stride % 4 == 0)
}

fn constants(list: &[(&str, usize)]) -> String {
    list.iter().map(|(name, value)| format!("  static constexpr int {name} = {value};\n")).collect()
}

fn signed(list: &[(&str, isize)]) -> String {
    list.iter().map(|(name, value)| format!("  static constexpr int {name} = {value};\n")).collect()
}

fn offset(name: &str, strides: &[isize], wide: bool) -> String {
    let index = if wide { "long long" } else { "int" };
    let parameters: Vec<String> = (0..strides.len()).map(|axis| format!("{index} i{axis}")).collect();
    let terms: Vec<String> = strides
        .iter()
        .enumerate()
        .filter(|(_, stride)| **stride != 0)
        .map(|(axis, stride)| format!("i{axis} * ({stride})"))
        .collect();
    let sum = if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") };
    format!("  __device__ static {index} {name}({}) {{ return {sum}; }}\n", parameters.join(", "))
}
