//! Loops as CUDA C++. A group of lanes computes a row; elementwise loops are flat.
//!
//! ```text
//! flat    one thread per `width` neighbouring elements
//! rows    `lanes` threads per row, `each` elements per lane in registers; sums along rows by shuffles, and through shared
//!         memory where several warps share a row
//! across  the same over chunks of rows; each block adds its chunk, a second kernel adds the chunks in order
//! ```
//! Strides are constants in the text and addresses are arguments, so that the layers of a network share their kernels.

mod across;

use super::kernel::{Argument, Family, Kernel};
use crate::compile::plan::{Across, Instruction, Level, Loop, Operand, Place};
use crate::ops::Reduction;

/// Most elements of a row that a thread holds, as long as a block has threads for the row.
const LARGEST_EACH: usize = 32;
/// Largest index for 32 bits; with a stride added it still fits.
const NARROW: usize = 1 << 30;

/// The kernels of a loop: the loop itself, and the sum of its chunks if it has several.
pub(crate) fn kernels(body: &Loop, lengths: &[usize]) -> Vec<Kernel> {
    let sums = Generator::new(body, lengths).sum_chunks();
    let mut kernels = vec![Generator::new(body, lengths).write()];
    kernels.extend(sums);
    kernels
}

struct Generator<'a> {
    body: &'a Loop,
    columns: usize,
    /// Neighbouring elements of one access.
    width: usize,
    /// Threads per row; 0 for a flat loop.
    lanes: usize,
    /// Elements per lane.
    each: usize,
    threads: usize,
    tiles: usize,
    chunks: usize,
    written: Vec<usize>,
    arguments: Vec<Argument>,
    text: String,
    index: &'static str,
}

impl<'a> Generator<'a> {
    fn new(body: &'a Loop, lengths: &[usize]) -> Self {
        let columns = body.dims[body.dims.len() - 1];
        let mut places = Vec::new();
        let mut written: Vec<usize> = body.across.iter().map(|across| across.to.buffer).collect();
        let mut reduces = false;
        for instruction in &body.instructions {
            match instruction {
                Instruction::Load { from, .. } => places.push(from),
                Instruction::Store { to, .. } => {
                    written.push(to.buffer);
                    places.push(to);
                }
                Instruction::ReduceRow { .. } => reduces = true,
                _ => {}
            }
        }
        let widest =
            places.iter().map(|place| lengths[place.buffer]).max().unwrap_or(0).max(body.dims.iter().product());
        let index = if widest < NARROW { "int" } else { "long long" };
        let along = |place: &&Place| side_by_side(place, columns);
        let mut width = places.iter().map(along).min().unwrap_or(4);
        let [outer, reduced, inner] = body.split;
        let mut generator = Generator {
            body,
            columns,
            width,
            lanes: 0,
            each: width,
            threads: 256,
            tiles: 1,
            chunks: 1,
            written,
            arguments: Vec::new(),
            text: String::new(),
            index,
        };
        if reduces || !body.across.is_empty() {
            let longest = columns.div_ceil(width);
            let mut lanes = longest.next_power_of_two().min(32);
            while reduces && lanes >= 32 && lanes < generator.threads && columns > lanes * LARGEST_EACH {
                lanes *= 2;
            }
            let mut each = columns.div_ceil(lanes * width) * width;
            if !reduces && each > 8 {
                // No instruction needs the whole row.
                each = 8;
            }
            if columns < 32 {
                width = 1;
                lanes = columns.next_power_of_two().min(32);
                each = columns.div_ceil(lanes);
            }
            generator.width = width;
            generator.lanes = lanes;
            generator.each = each;
            generator.tiles = columns.div_ceil(lanes * each);
            while !body.across.is_empty() && generator.threads * each * 4 > 40 * 1024 && generator.threads > 32 {
                generator.threads /= 2;
            }
            let slots = generator.threads / lanes;
            let all = reduced.div_ceil(slots);
            generator.chunks = match body.across.is_empty() {
                true => all,
                // Several rows per slot, so that the partial sums are few compared with the rows.
                false => (all / 4).clamp(264, 1056).div_ceil(outer * inner * generator.tiles).min(all),
            };
        }
        generator
    }

    fn argument(&mut self, argument: Argument) -> usize {
        let known = self.arguments.iter().position(|other| *other == argument);
        known.unwrap_or_else(|| {
            self.arguments.push(argument);
            self.arguments.len() - 1
        })
    }

    fn line(&mut self, text: &str) {
        self.text.push_str("  ");
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn write(mut self) -> Kernel {
        let flat = self.lanes == 0;
        if flat {
            self.flat();
        } else {
            self.rows();
        }
        let parameters: Vec<String> = self
            .arguments
            .iter()
            .enumerate()
            .map(|(position, argument)| match argument {
                Argument::Buffer { buffer, .. } if !self.written.contains(buffer) => {
                    format!("const float* p{position}")
                }
                Argument::Buffer { .. } => format!("float* p{position}"),
                Argument::Scratch(_) => "float* scratch".into(),
                Argument::Counters | Argument::Table(_) => "unsigned* counters".into(),
            })
            .collect();
        let count: usize = self.body.dims.iter().product();
        let [outer, _, inner] = self.body.split;
        let (blocks, scratch) = match flat {
            true => ((count / self.width).div_ceil(256), 0),
            false => (outer * inner * self.tiles * self.chunks, self.left_before(self.body.across.len())),
        };
        Kernel {
            family: Family::Loop,
            before: String::new(),
            text: format!("({}) {{\n{}}}\n", parameters.join(", "), self.text),
            arguments: self.arguments,
            grid: [u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1],
            block: if flat { 256 } else { self.threads as u32 },
            resident: 1,
            shared: 0,
            scratch,
        }
    }

    fn flat(&mut self) {
        let count: usize = self.body.dims.iter().product();
        let (index, width) = (self.index, self.width);
        self.line(&format!("{index} i = ({index})blockIdx.x * 256 + threadIdx.x;"));
        self.line(&format!("if (i >= {}) return;", count / width));
        self.line(&format!(
            "{index} row = i / {}, column = i % {} * {width};",
            self.columns / width,
            self.columns / width
        ));
        self.line("const bool live = true;");
        self.indices();
        self.instructions();
    }

    /// Computes the indices `d0 …` from `row`.
    fn indices(&mut self) {
        let dims = &self.body.dims[..self.body.dims.len() - 1];
        let index = self.index;
        let mut lines = Vec::new();
        let mut rest = "row".to_owned();
        for (axis, &extent) in dims.iter().enumerate().rev() {
            if axis == 0 {
                lines.push(format!("const {index} d0 = {rest};"));
            } else {
                lines.push(format!("const {index} d{axis} = {rest} % {extent}, q{axis} = {rest} / {extent};"));
                rest = format!("q{axis}");
            }
        }
        lines.iter().for_each(|line| self.line(line));
    }

    fn rows(&mut self) {
        let [_, reduced, inner] = self.body.split;
        let (index, lanes, each, threads) = (self.index, self.lanes, self.each, self.threads);
        let (tiles, chunks, slots) = (self.tiles, self.chunks, threads / lanes);
        let across: Vec<Across> = self.body.across.clone();
        self.line(&format!("const int lane = threadIdx.x % {lanes}, slot = threadIdx.x / {lanes};"));
        self.line(&format!("const int chunk = blockIdx.x % {chunks}, tile = blockIdx.x / {chunks} % {tiles};"));
        self.line(&format!("const {index} group = blockIdx.x / {};", chunks * tiles));
        self.line(&format!("const {index} outer = group / {inner}, inner = group % {inner};"));
        self.line(&format!("const int first = tile * {};", lanes * each));
        for (number, across) in across.iter().enumerate() {
            let start = identity(across.kind);
            match across.whole_rows {
                true => self.line(&format!("float a{number} = {start};")),
                false => {
                    let starts = vec![start; each].join(", ");
                    self.line(&format!("float a{number}[{each}] = {{{starts}}};"));
                }
            }
        }
        self.line(&format!(
            "for ({index} from = ({index})chunk * {slots}; from < {reduced}; from += {}) {{",
            chunks * slots
        ));
        self.line(&format!(
            "{index} m = from + slot; const bool live = m < {reduced}; if (!live) m = {};",
            reduced - 1
        ));
        self.line(&format!("const {index} row = (outer * {reduced} + m) * {inner} + inner;"));
        self.indices();
        self.instructions();
        if lanes > 32 {
            self.line("__syncthreads();"); // the next row overwrites the sums of the warps
        }
        self.line("}");
        if across.is_empty() {
            return;
        }
        self.line(&format!("__shared__ float pile[{}];", threads * each));
        for (number, across) in across.iter().enumerate() {
            self.combine(number, across);
            if !self.is_partial(across) {
                self.deliver(across);
            } else {
                self.argument(Argument::Scratch(0));
                let (left, start) = (self.left(across), self.left_before(number));
                self.line(&format!(
                    "for (int t = threadIdx.x; t < {left}; t += {threads}) scratch[(size_t){start} + (size_t)blockIdx.x * {left} + t] = pile[t];"
                ));
            }
            self.line("__syncthreads();");
        }
    }

    fn column_of(&self, e: &str, lane: &str) -> String {
        match self.width {
            1 => format!("{e} * {} + {lane}", self.lanes),
            width => format!("{e} / {width} * {} + {lane} * {width} + {e} % {width}", self.lanes * width),
        }
    }

    /// The column of element `e` of this thread.
    fn column(&self) -> String {
        match self.lanes {
            0 => "column + e".into(),
            _ => format!("first + {}", self.column_of("e", "lane")),
        }
    }

    /// Whether every element of every lane is a column.
    fn full(&self) -> bool {
        self.lanes == 0 || self.columns.is_multiple_of(self.lanes * self.each)
    }

    fn each_element(&mut self, body: &str) {
        let each = self.each;
        self.line(&format!("#pragma unroll\n  for (int e = 0; e < {each}; e++) {body}"));
    }

    fn inside(&self) -> String {
        if self.full() { String::new() } else { format!("if ({} < {}) ", self.column(), self.columns) }
    }

    fn row_address(&self, place: &Place) -> String {
        let last = place.layout.strides.len() - 1;
        let index = self.index;
        let terms: Vec<String> = place.layout.strides[..last]
            .iter()
            .zip(&place.layout.dims)
            .enumerate()
            .filter(|(_, (stride, extent))| **stride != 0 && **extent > 1)
            .map(|(axis, (stride, _))| format!("d{axis} * ({index}){stride}"))
            .collect();
        if terms.is_empty() { "0".into() } else { terms.join(" + ") }
    }

    fn instructions(&mut self) {
        let body = self.body;
        for instruction in &body.instructions {
            match instruction {
                Instruction::Load { from, to } => self.load(from, *to),
                Instruction::Map { map, operands, to } => {
                    let level = body.levels[*to];
                    let list: Vec<String> =
                        operands[..map.arity()].iter().map(|operand| self.operand(operand, level)).collect();
                    let call = format!("map_{map:?}({})", list.join(", "));
                    match level {
                        Level::Row => self.line(&format!("const float r{to} = {call};")),
                        Level::Element => {
                            let each = self.each;
                            self.line(&format!("float r{to}[{each}];"));
                            self.each_element(&format!("r{to}[e] = {call};"));
                        }
                    }
                }
                Instruction::ReduceRow { kind, operand, to } => {
                    let value = self.operand(operand, Level::Element);
                    let (start, inside) = (identity(*kind), self.inside());
                    let one = combine(*kind, &format!("r{to}"), &value);
                    let other = combine(*kind, &format!("r{to}"), "other");
                    self.line(&format!("float r{to} = {start};"));
                    self.each_element(&format!("{inside}r{to} = {one};"));
                    if self.lanes > 1 {
                        let half = self.lanes.min(32) / 2;
                        self.line(&format!("#pragma unroll\n  for (int o = {half}; o; o >>= 1) {{ float other = __shfl_xor_sync(~0u, r{to}, o); r{to} = {other}; }}"));
                    }
                    if self.lanes > 32 {
                        let (all, warps) = (self.threads / 32, self.lanes / 32);
                        self.line(&format!("__shared__ float w{to}[{all}];"));
                        self.line(&format!("if (threadIdx.x % 32 == 0) w{to}[threadIdx.x / 32] = r{to};"));
                        self.line("__syncthreads();");
                        self.line(&format!("r{to} = w{to}[slot * {warps}];"));
                        self.line(&format!("#pragma unroll\n  for (int o = 1; o < {warps}; o++) {{ float other = w{to}[slot * {warps} + o]; r{to} = {other}; }}"));
                    }
                }
                Instruction::Store { operand, to } => self.store(operand, to),
                Instruction::Accumulate { operand, across } => {
                    let value = self.operand(operand, Level::Element);
                    let kind = body.across[*across].kind;
                    let target =
                        if body.across[*across].whole_rows { format!("a{across}") } else { format!("a{across}[e]") };
                    let (sum, inside) = (combine(kind, &target, &value), self.inside());
                    self.each_element(&format!("{inside}if (live) {target} = {sum};"));
                }
            }
        }
    }

    fn operand(&self, operand: &Operand, level: Level) -> String {
        match operand {
            Operand::Number(number) => format!("__int_as_float({:#x})", number.to_bits()),
            Operand::Register(register) => match (self.body.levels[*register], level) {
                (Level::Element, Level::Element) => format!("r{register}[e]"),
                _ => format!("r{register}"),
            },
        }
    }

    fn load(&mut self, from: &Place, to: usize) {
        let pointer = self.argument(Argument::of(from));
        let (address, stride) = (self.row_address(from), from.layout.strides[from.layout.strides.len() - 1]);
        if self.body.levels[to] == Level::Row {
            self.line(&format!("const float r{to} = p{pointer}[{address}];"));
            return;
        }
        let (each, width, index) = (self.each, self.width, self.index);
        self.line(&format!("float r{to}[{each}]; const {index} l{to} = {address};"));
        let column = self.column();
        if width > 1 && stride == 1 && self.aligned(from) {
            let inside = self.inside();
            let vector = format!("float{width}");
            let parts: String = ["x", "y", "z", "w"][..width]
                .iter()
                .enumerate()
                .map(|(part, name)| format!("r{to}[e + {part}] = v.{name}; "))
                .collect();
            let zero = if self.full() { String::new() } else { format!("{vector} v = {{}}; ") };
            let declare = if self.full() { format!("{vector} ") } else { String::new() };
            self.line(&format!(
                "#pragma unroll\n  for (int e = 0; e < {each}; e += {width}) {{ {zero}{inside}{declare}v = *(const {vector}*)(p{pointer} + l{to} + {column}); {parts}}}"
            ));
        } else {
            let zero = if self.full() { String::new() } else { format!("r{to}[e] = 0; ") };
            let inside = self.inside();
            self.each_element(&format!(
                "{{ {zero}{inside}r{to}[e] = p{pointer}[l{to} + ({column}) * ({index}){stride}]; }}"
            ));
        }
    }

    fn aligned(&self, place: &Place) -> bool {
        side_by_side(place, self.columns) >= self.width && place.layout.strides[place.layout.strides.len() - 1] == 1
    }

    fn store(&mut self, operand: &Operand, to: &Place) {
        let pointer = self.argument(Argument::of(to));
        let (address, stride) = (self.row_address(to), to.layout.strides[to.layout.strides.len() - 1]);
        let (each, width, index) = (self.each, self.width, self.index);
        let live = if self.lanes == 0 { "" } else { "if (live) " };
        if stride == 0 && self.columns > 1 {
            // One number per row.
            let value = self.operand(operand, Level::Row).replace("[e]", "[0]");
            let once = if self.lanes == 0 { "if (column == 0) " } else { "if (lane == 0 && first == 0) " };
            self.line(&format!("{live}{once}p{pointer}[{address}] = {value};"));
            return;
        }
        let value = self.operand(operand, Level::Element);
        let column = self.column();
        let inside = self.inside();
        self.line(&format!("{live}{{ const {index} s = {address};"));
        if width > 1 && stride == 1 && self.aligned(to) {
            let vector = format!("float{width}");
            let parts: Vec<String> = (0..width).map(|part| value.replace("[e]", &format!("[e + {part}]"))).collect();
            self.line(&format!(
                "#pragma unroll\n  for (int e = 0; e < {each}; e += {width}) {{ {inside}*({vector}*)(p{pointer} + s + {column}) = make_{vector}({}); }} }}",
                parts.join(", ")
            ));
        } else {
            self.each_element(&format!("{{ {inside}p{pointer}[s + ({column}) * ({index}){stride}] = {value}; }} }}"));
        }
    }
}

/// How many neighbouring columns one access can have: 4 if rows are contiguous, aligned and multiples of 4; else 2 or 1.
fn side_by_side(place: &Place, columns: usize) -> usize {
    let last = place.layout.strides.len() - 1;
    let stride = place.layout.strides[last];
    if stride == 0 {
        return 4.min(if columns.is_multiple_of(4) {
            4
        } else if columns.is_multiple_of(2) {
            2
        } else {
            1
        });
    }
    for width in [4, 2] {
        let even = |number: isize| number % width as isize == 0;
        let outer = place.layout.strides[..last]
            .iter()
            .zip(&place.layout.dims)
            .all(|(&stride, &extent)| extent == 1 || even(stride));
        if stride == 1 && columns.is_multiple_of(width) && outer && even(place.layout.offset) {
            return width;
        }
    }
    1
}

fn identity(kind: Reduction) -> &'static str {
    match kind {
        Reduction::Sum => "0.0f",
        Reduction::Max => "__int_as_float(0xff800000)",
    }
}

fn combine(kind: Reduction, left: &str, right: &str) -> String {
    match kind {
        Reduction::Sum => format!("{left} + {right}"),
        Reduction::Max => format!("map_Maximum({left}, {right})"),
    }
}
