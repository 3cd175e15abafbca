//! The operators, one file per family: meaning, shape rule, gradient rule and f64 reference side by side.

pub(crate) mod cholesky;
pub(crate) mod convolution;
pub(crate) mod map;
pub(crate) mod matmul;
pub(crate) mod membership;
pub(crate) mod random;
pub(crate) mod reduce;
mod row;
pub(crate) mod scan;
pub(crate) mod view;

pub use convolution::ConvolutionOptions;
pub use map::Map;
pub use matmul::Precision;
pub use membership::Membership;
pub use random::{RANDOM_WORDS, Random};
pub use scan::ScanInput;

use crate::graph::{Node, Tensor};
use crate::reference::Array;
use crate::shape::Span;
use convolution::ConvolutionShape;
use membership::{MembershipShape, Uses};
use scan::ScanShape;
use std::sync::Arc;

/// All operators, with the settings that do not follow from the shape of the node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    // leaves
    Input {
        name: String,
    },
    State {
        name: String,
    },
    Constant {
        bits: Arc<[u64]>,
    },
    Fill {
        bits: u64,
    },
    IndexInput {
        name: String,
    },
    IndexTable {
        rows: Arc<[u32]>,
    },
    /// Elementwise; all operands have the result's shape.
    Map(Map),
    // views: elements of the operand, reordered, repeated or left out
    Reshape,
    Permute {
        order: Vec<usize>,
    },
    Expand,
    Slice {
        spans: Vec<Span>,
    },
    /// The operand itself, through which no gradient flows.
    Detach,
    /// The first operand, which is the softmax of the second: the gradient of the second follows from the value.
    Softmaxed,
    // assemblies
    /// Zeros with the operand at `spans`: the transpose of `Slice`.
    Embed {
        spans: Vec<Span>,
    },
    Concatenate {
        axis: usize,
    },
    Gather {
        axis: usize,
    },
    /// The transpose of `Gather`: adds rows that share an index.
    ScatterAdd {
        axis: usize,
    },
    /// Over the axes `first..end`, which remain with extent 1.
    Reduce {
        kind: Reduction,
        first: usize,
        end: usize,
    },
    /// `[batch…, m, k] × [batch…, k, n]`; in f32 on every device if `exact`.
    MatMul {
        exact: bool,
    },
    /// Λ⁻¹ of `[matrices, n, n]`; the bits of the smallest jitter.
    InverseCholesky {
        jitter: u64,
    },
    Convolution(ConvolutionShape),
    ConvolutionInputGradient(ConvolutionShape),
    ConvolutionWeightGradient(ConvolutionShape),
    /// Points to slices: operands queries, keys, offsets, values.
    Collect(MembershipShape),
    /// Slices to points: operands queries, keys, offsets, tokens.
    Spread(MembershipShape),
    /// Operands: queries, keys, offsets; of a collection, values and the cotangent; of a spread, the cotangent and tokens.
    /// Parts: gradients of queries, keys, offsets and, where `uses` has them, of the values.
    MembershipGradient {
        shape: MembershipShape,
        uses: Uses,
    },
    /// Parts: 0 output, 1 final state.
    Scan {
        shape: ScanShape,
        order: Arc<[u32]>,
    },
    /// Parts: gradients of signal, log decay, gain, write, read and, if there is one, the initial state.
    ScanGradient {
        shape: ScanShape,
        order: Arc<[u32]>,
        initial: bool,
    },
    /// One result of an operator that has several.
    Part {
        index: usize,
    },
}

/// How a reduction combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reduction {
    Sum,
    Max,
}

impl Op {
    pub(crate) fn leaf_name(&self) -> Option<&str> {
        match self {
            Op::Input { name } | Op::State { name } | Op::IndexInput { name } => Some(name),
            _ => None,
        }
    }

    /// Whether it has several results, its parts.
    pub(crate) fn has_parts(&self) -> bool {
        matches!(self, Op::Scan { .. } | Op::ScanGradient { .. } | Op::MembershipGradient { .. })
    }

    pub(crate) fn is_view(&self) -> bool {
        matches!(self, Op::Reshape | Op::Permute { .. } | Op::Expand | Op::Slice { .. } | Op::Detach | Op::Softmaxed)
    }
}

/// A contribution to the gradient of one operand.
pub(crate) enum Cotangent<'g> {
    /// The operand's whole shape.
    Whole(Tensor<'g>),
    /// The part of the operand that `spans` selects; zero elsewhere.
    Part(Vec<Span>, Tensor<'g>),
}

/// Gradient of each operand, given the gradient of the result. `wanted` says which are needed.
pub(crate) fn gradient<'g>(result: Tensor<'g>, cotangent: Tensor<'g>, wanted: &[bool]) -> Vec<Option<Cotangent<'g>>> {
    let graph = result.graph;
    let node = graph.node(result.node);
    let operands: Vec<_> = node.operands.iter().map(|&operand| graph.tensor(operand)).collect();
    let whole = |gradients: Vec<Option<Tensor<'g>>>| gradients.into_iter().map(|g| g.map(Cotangent::Whole)).collect();
    match &node.op {
        Op::Map(map) => whole(map::gradient(*map, &operands, result, cotangent, wanted)),
        Op::Reshape
        | Op::Permute { .. }
        | Op::Expand
        | Op::Embed { .. }
        | Op::Gather { .. }
        | Op::ScatterAdd { .. } => whole(vec![Some(view::gradient(&node.op, &operands, cotangent))]),
        Op::Softmaxed => whole(vec![None, Some(row::softmax_gradient(result, cotangent))]),
        Op::Slice { spans } => vec![Some(Cotangent::Part(spans.clone(), cotangent))],
        Op::Concatenate { axis } => whole(view::concatenate_gradient(*axis, &operands, cotangent)),
        Op::Reduce { kind, .. } => whole(vec![Some(reduce::gradient(*kind, operands[0], result, cotangent))]),
        Op::MatMul { exact } => whole(matmul::gradient(*exact, &operands, cotangent, wanted)),
        Op::InverseCholesky { .. } => whole(vec![Some(cholesky::gradient(result, cotangent))]),
        Op::Convolution(shape) => whole(convolution::gradient(shape, &operands, cotangent, wanted)),
        Op::ConvolutionInputGradient(shape) => whole(convolution::input_gradient_gradient(shape, &operands, cotangent)),
        Op::ConvolutionWeightGradient(shape) => {
            whole(convolution::weight_gradient_gradient(shape, &operands, cotangent))
        }
        Op::ScanGradient { .. } | Op::MembershipGradient { .. } => {
            panic!("second derivatives through a scan or a membership are not supported")
        }
        Op::Scan { .. } | Op::Part { .. } => unreachable!("the reverse sweep gathers the parts of a scan itself"),
        Op::Collect(_) | Op::Spread(_) => unreachable!("the reverse sweep gathers the uses of a membership itself"),
        Op::Detach | Op::Input { .. } | Op::State { .. } | Op::Constant { .. } | Op::Fill { .. } => Vec::new(),
        Op::IndexInput { .. } | Op::IndexTable { .. } => Vec::new(),
    }
}

/// The value of a node in f64, by its definition.
pub(crate) fn reference(node: &Node, operands: &[&Array]) -> Vec<f64> {
    match &node.op {
        Op::Constant { bits } => bits.iter().map(|&bits| f64::from_bits(bits)).collect(),
        Op::Fill { bits } => vec![f64::from_bits(*bits)],
        Op::IndexTable { rows } => rows.iter().map(|&row| f64::from(row)).collect(),
        Op::Map(map) => map::reference(*map, operands),
        Op::Reshape
        | Op::Permute { .. }
        | Op::Expand
        | Op::Slice { .. }
        | Op::Detach
        | Op::Softmaxed
        | Op::Embed { .. }
        | Op::Concatenate { .. }
        | Op::Gather { .. }
        | Op::ScatterAdd { .. } => view::reference(&node.op, &node.shape, operands),
        Op::Reduce { kind, first, end } => reduce::reference(*kind, *first, *end, operands[0]),
        Op::MatMul { .. } => matmul::reference(operands[0], operands[1]),
        Op::InverseCholesky { jitter } => cholesky::reference(f64::from_bits(*jitter), operands[0]),
        Op::Convolution(shape) => convolution::reference(shape, operands[0], operands[1]),
        Op::ConvolutionInputGradient(shape) => convolution::input_reference(shape, operands[0], operands[1]),
        Op::ConvolutionWeightGradient(shape) => convolution::weight_reference(shape, operands[0], operands[1]),
        Op::Collect(shape) => membership::collect_reference(shape, operands),
        Op::Spread(shape) => membership::spread_reference(shape, operands),
        Op::Input { .. } | Op::State { .. } | Op::IndexInput { .. } => unreachable!("leaves are bound, not computed"),
        Op::Scan { .. } | Op::ScanGradient { .. } | Op::MembershipGradient { .. } | Op::Part { .. } => {
            unreachable!("the evaluator computes all parts at once")
        }
    }
}
