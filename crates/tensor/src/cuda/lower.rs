//! From the steps of a plan to launches: which kernel, with which constants, over which grid.

mod cholesky;
mod convolution;
mod convolution_warp_group;
mod membership;
mod product;
mod scan;

use super::generate;
use super::kernel::{Argument, Family, Kernel};
use crate::compile::plan::{Place, Plan, Step};
use crate::ops::Precision;
use std::fmt::Write;
use std::sync::Arc;

pub(crate) use product::{Matrix, Product};
pub(crate) use scan::SCAN_DECLARES;

/// One launch, fill or product on the GPU.
pub(crate) enum Action {
    Launch(Kernel),
    Clear {
        buffer: usize,
        length: usize,
    },
    /// A product for cuBLASLt.
    Product(Product),
}

/// Threads of a block of a hand-written kernel, unless its lowering changes them.
const THREADS: u32 = 256;

pub(crate) struct Lowering<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) precision: Precision,
    /// Compute capability, 90 for 9.0.
    pub(crate) architecture: u32,
    /// Bytes of shared memory that a block may have.
    pub(crate) shared: usize,
    pub(crate) tables: Vec<Arc<[u32]>>,
    pub(crate) actions: Vec<Action>,
    /// How many actions of a scan gradient do not need its cotangent and may start early.
    pub(crate) head: usize,
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
            Step::MatMul { exact, left, right, to } => self.product(*exact, left, right, to),
            Step::InverseCholesky { jitter, from, to } => self.inverse_cholesky(*jitter, from, to),
            Step::Convolution { shape, input, weight, to } => self.convolution(shape, input, weight, to),
            Step::ConvolutionInputGradient { shape, cotangent, weight, to } => {
                self.input_gradient(shape, cotangent, weight, to);
            }
            Step::ConvolutionWeightGradient { shape, input, cotangent, to } => {
                self.weight_gradient(shape, input, cotangent, to);
            }
            Step::Collect { shape, membership, values, to } => self.collect(shape, membership, values, to),
            Step::Spread { shape, membership, tokens, to } => self.spread(shape, membership, tokens, to),
            Step::MembershipGradient(step) => self.membership_gradient(step),
            Step::Scan { shape, order, operands, output, final_state } => {
                self.scan(shape, order, operands, output, final_state.as_ref());
            }
            Step::ScanGradient { shape, order, operands, cotangent, final_cotangent, to } => {
                self.scan_gradient(shape, order, operands, cotangent, final_cotangent.as_ref(), to);
            }
            Step::Blocks(_) => unreachable!("a GPU has no blocks"),
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

    /// Adds a launch of `function<$S>`, where the struct `$S` has the members `shape`.
    #[allow(clippy::too_many_arguments)] // the parts of a launch
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
            grid: [u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1],
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
            // o and n each combine several axes.
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

    /// A function `name(i0, i1, …)` that returns the offset of an element.
    fn offset(&self, name: &str, place: &Place) -> String {
        let wide = self.plan.buffers[place.buffer].length >= 1 << 30;
        offset(name, &place.layout.strides, wide)
    }
}

/// Whether rows are contiguous and start at multiples of four elements.
fn is_vector(place: &Place) -> bool {
    let strides = &place.layout.strides;
    let last = strides.len() - 1;
    strides[last] == 1 && place.layout.offset % 4 == 0 && strides[..last].iter().all(|stride| stride % 4 == 0)
}

fn constants(list: &[(&str, usize)]) -> String {
    list.iter().map(|(name, value)| constant(name, i32::try_from(*value).ok())).collect()
}

fn signed(list: &[(&str, isize)]) -> String {
    list.iter().map(|(name, value)| constant(name, i32::try_from(*value).ok())).collect()
}

/// A number that an `int` cannot hold becomes a name that the compiler does not know. Its error is better than a kernel with
/// a number that wrapped.
fn constant(name: &str, value: Option<i32>) -> String {
    let value = value.map_or("LARGER_THAN_AN_INT".to_owned(), |value| value.to_string());
    format!("  static constexpr int {name} = {value};\n")
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
