//! Scans and their gradients: how they are divided into chunks and units, and where their results are; see `scan.cu`, and
//! `scan_tf32.cu` for the sizes that have faster kernels.

use super::{Argument, Family, Lowering, constants, is_vector, offset};
use crate::compile::plan::Place;
use crate::ops::scan::ScanShape;
use std::sync::Arc;

impl Lowering<'_> {
    fn table(&mut self, order: &Arc<[u32]>) -> Argument {
        let known = self.tables.iter().position(|table| table == order);
        Argument::Table(known.unwrap_or_else(|| {
            self.tables.push(order.clone());
            self.tables.len() - 1
        }))
    }

    /// Scans use tf32 under bf16: for long steps, the gradient of a decay is a small difference of large sums.
    fn scan_precision(&self) -> usize {
        usize::from(self.number().min(1))
    }

    fn scan_shape(&self, z: &ScanSizes, operands: &[Place]) -> String {
        let shape = &z.shape;
        let mut text = constants(&[
            ("T", z.chunk),
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
            ("PRECISION", self.scan_precision()),
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

    pub(super) fn scan(
        &mut self,
        shape: &ScanShape,
        order: &Arc<[u32]>,
        operands: &[Place],
        output: &Place,
        final_state: Option<&Place>,
    ) {
        let z = ScanSizes::new(shape, self.shared);
        let mut text = self.scan_shape(&z, operands);
        let summed = shape.directions > 1;
        text.push_str(&constants(&[("FINAL", usize::from(final_state.is_some())), ("GRADIENT", 0)]));
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
        let mut rows = vec![&operands[0], &operands[3], &operands[4]];
        rows.extend((!summed).then_some(output));
        let tf32 = !single && self.scan_precision() == 1 && z.suits_tf32(&rows, self.shared);
        text.push_str(&constants(&[("SINGLE", usize::from(single)), ("TURNED", usize::from(tf32))]));
        if tf32 {
            let mut arguments = inputs(order.clone());
            arguments.push(("const float*", at(0)));
            let ends = [None, None, final_state];
            self.chain(&z, &mut text, arguments, operands, ends, [states, 0, decays], scratch);
        } else if !single {
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
        let (kernel, shared) =
            if tf32 { ("scan_output_tf32", z.tf32_shared()) } else { ("scan_output", z.output_shared()) };
        self.launch(Family::Scan, kernel, &text, z.blocks, shared, arguments, scratch);
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

    #[allow(clippy::too_many_arguments)] // those of the kernel
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

    /// The states before all chunks or, if `adjoints` is not 0, the adjoints after all chunks.
    #[allow(clippy::too_many_arguments)] // those of the kernel
    fn chain(
        &mut self,
        z: &ScanSizes,
        text: &mut String,
        mut arguments: Vec<(&'static str, Argument)>,
        operands: &[Place],
        [final_cotangent, initial_gradient, final_state]: [Option<&Place>; 3],
        [states, adjoints, decays]: [usize; 3],
        scratch: usize,
    ) {
        let adjoint = adjoints > 0;
        let chain = z.chain(self.shared);
        if !text.contains(" CHAIN =") {
            text.push_str(&constants(&[("CHAIN", chain.heads), ("SPAN", chain.span), ("STAGES", chain.stages)]));
        }
        let or_scratch = |place: Option<&Place>| place.map_or(Argument::Scratch(0), Argument::of);
        arguments.extend([
            ("const float*", or_scratch(operands.get(5))),
            ("const float*", or_scratch(final_cotangent)),
            ("float*", Argument::Scratch(states)),
            ("float*", Argument::Scratch(adjoints)),
            ("float*", Argument::Scratch(decays)),
            ("float*", or_scratch(final_state)),
            ("float*", or_scratch(initial_gradient)),
        ]);
        let function = format!("scan_chain<S, {adjoint}>");
        self.launch(Family::Scan, &function, text, chain.blocks, chain.shared, arguments, scratch);
        if chain.span < z.chunks {
            let places = [states, adjoints, decays];
            self.pass(z, text, operands, final_cotangent, places, final_state, initial_gradient, scratch);
        }
    }

    /// Offsets of a result. If there are several directions (`apart`), each writes its own copy.
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

    pub(super) fn scan_gradient(
        &mut self,
        shape: &ScanShape,
        order: &Arc<[u32]>,
        operands: &[Place],
        cotangent: &Place,
        final_cotangent: Option<&Place>,
        to: &[Place],
    ) {
        let z = ScanSizes::new(shape, self.shared);
        let mut text = self.scan_shape(&z, operands);
        let (summed, spread) = (shape.directions > 1, z.units > shape.groups);
        text.push_str(&constants(&[("FINAL", usize::from(final_cotangent.is_some())), ("GRADIENT", 1)]));
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
        let mut rows = vec![&operands[0], &operands[3], &operands[4], cotangent];
        rows.extend((!summed).then_some(&to[0]));
        rows.extend((!spread).then_some([&to[3], &to[4]]).into_iter().flatten());
        let tf32 = !single && self.scan_precision() == 1 && z.suits_tf32(&rows, self.shared);
        text.push_str(&constants(&[("SINGLE", usize::from(single)), ("TURNED", usize::from(tf32))]));
        if tf32 {
            // The states h do not need the cotangent: their kernels can run while the cotangent is still computed.
            self.chain(&z, &mut text, inputs.clone(), operands, [None; 3], [states, 0, decays], scratch);
            self.head = self.actions.len();
            let ends = [final_cotangent, to.get(5), None];
            self.chain(&z, &mut text, inputs.clone(), operands, ends, [states, adjoints, decays], scratch);
        } else if !single {
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
            self.pass(&z, &text, operands, None, [states, 0, decays], None, None, scratch);
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
        ]);
        if tf32 {
            self.launch(Family::Scan, "scan_gradients_tf32", &text, z.blocks, z.tf32_shared(), arguments, scratch);
        } else {
            arguments.push(("float*", to.get(5).map_or(at(0), Argument::of)));
            self.launch(Family::Scan, "scan_gradients", &text, z.blocks, z.gradient_shared(), arguments, scratch);
        }
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

/// Most bytes of static shared memory of a kernel of a scan, in addition to the dynamic ones.
pub(crate) const SCAN_DECLARES: usize = 6 * 1024;

/// How a scan is divided.
struct ScanSizes {
    shape: ScanShape,
    /// Tokens of a chunk.
    chunk: usize,
    /// Heads that share direction and group.
    unit: usize,
    units: usize,
    chunks: usize,
    blocks: usize,
    /// One chunk holds all tokens.
    single: bool,
    /// Floats for the states of all chunks, and for their decays.
    states: usize,
    decays: usize,
}

impl ScanSizes {
    /// Tokens of a chunk: usually, and if shared memory is small.
    const CHUNKS: [usize; 2] = [64, 32];
    /// With fewer blocks, half of a large GPU would be idle.
    const FEW: usize = 64;

    /// The sizes for this many bytes of shared memory.
    fn new(shape: &ScanShape, shared: usize) -> ScanSizes {
        let [long, short] = Self::CHUNKS.map(|chunk| ScanSizes::of(shape, chunk));
        if long.gradient_shared() + SCAN_DECLARES <= shared { long } else { short }
    }

    fn of(shape: &ScanShape, chunk: usize) -> ScanSizes {
        let heads = shape.scan_heads();
        let chunks = shape.tokens.div_ceil(chunk);
        let mut unit = greatest_common_divisor(heads / shape.groups, shape.heads);
        // A short sequence has few blocks, so that its heads are divided among more blocks.
        while chunks == 1 && unit > 1 && shape.batch * heads / unit < Self::FEW {
            unit = (1..unit).rev().find(|&part| unit.is_multiple_of(part)).unwrap_or(1);
        }
        let units = heads / unit;
        ScanSizes {
            shape: *shape,
            chunk,
            unit,
            units,
            chunks,
            blocks: shape.batch * units * chunks,
            single: chunks == 1,
            states: shape.state().count() * (chunks + 1),
            decays: (shape.batch * heads * chunks).next_multiple_of(4),
        }
    }

    fn padded(&self) -> [usize; 2] {
        [self.shape.states.next_multiple_of(16), self.shape.channels.next_multiple_of(16)]
    }

    /// Bytes of shared memory of `scan_states`.
    fn state_shared(&self, adjoint: bool) -> usize {
        let [n, p] = self.padded();
        self.chunk * (n + 8 + p + 8) * (1 + usize::from(adjoint)) * 4
    }

    fn output_shared(&self) -> usize {
        let [n, p] = self.padded();
        (2 * self.chunk * (n + 4) + self.chunk * (self.chunk + 4) + self.chunk * (p + 8) + p * (n + 4)) * 4
    }

    /// Whether `scan_tf32.cu` supports these sizes and the rows of these places with this many bytes of shared memory.
    fn suits_tf32(&self, rows: &[&Place], shared: usize) -> bool {
        self.chunk == 64
            && self.shape.channels == 32
            && [32, 48, 64].contains(&self.shape.states)
            && rows.iter().all(|place| is_vector(place))
            && self.tf32_shared() + SCAN_DECLARES <= shared
    }

    fn tf32_shared(&self) -> usize {
        let ScanShape { states: n, channels: p, .. } = self.shape;
        (2 * self.chunk * (n + 4) + 4 * (self.chunk + n) * (p + 4)) * 4
    }

    /// How to launch `scan_chain`: blocks that run through all chunks avoid a pass over the states, if they are enough for a GPU.
    fn chain(&self, shared: usize) -> Chain {
        let ScanShape { states: n, channels: p, batch, .. } = self.shape;
        let all = batch * self.shape.scan_heads();
        let of = |heads: usize, span: usize, stages: usize| {
            let stage = self.chunk * (n + 4 + heads * p + 4);
            let shared = (stages * stage + span * (self.chunk * (1 + 2 * heads) + heads)) * 4;
            Chain { heads, span, stages, blocks: all / heads * (self.chunks / span), shared }
        };
        let pair = if self.unit.is_multiple_of(2) { 2 } else { 1 };
        let several = of(2, self.chunks, 2);
        let one = of(1, self.chunks, 3);
        let most = shared.min(Chain::SHARED);
        if pair == 2 && several.blocks >= 256 && several.shared <= most {
            several
        } else if one.blocks >= 128 && one.shared <= most {
            one
        } else {
            of(pair, 1, 1)
        }
    }

    fn gradient_shared(&self) -> usize {
        let [n, p] = self.padded();
        (2 * self.chunk * (n + 8) + self.chunk * (self.chunk + 8) + 2 * self.chunk * (p + 8) + 2 * p * (n + 8)) * 4
    }
}

/// How `scan_chain` is launched.
struct Chain {
    /// Heads of a block.
    heads: usize,
    /// Chunks of a block.
    span: usize,
    /// Chunks in shared memory at a time.
    stages: usize,
    blocks: usize,
    shared: usize,
}

impl Chain {
    /// Bytes that let a multiprocessor hold two blocks.
    const SHARED: usize = 113 * 1024;
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::{SCAN_DECLARES, ScanShape, ScanSizes};

    #[test]
    fn a_scan_uses_shorter_chunks_on_a_gpu_with_little_shared_memory() {
        let shape = |channels: usize, states: usize| ScanShape {
            batch: 1,
            tokens: 64,
            heads: 4,
            channels,
            groups: 1,
            states,
            directions: 1,
        };
        for (channels, states, kilobytes, chunk) in
            [(64, 64, 227, 64), (64, 64, 99, 32), (32, 64, 99, 64), (64, 128, 227, 64), (64, 128, 163, 32)]
        {
            let sizes = ScanSizes::new(&shape(channels, states), kilobytes * 1024);
            assert_eq!(sizes.chunk, chunk, "{channels} channels, {states} states, {kilobytes} KB");
            assert!(sizes.gradient_shared() + SCAN_DECLARES <= kilobytes * 1024);
        }
    }
}
