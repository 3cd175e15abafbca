//! The loops of a C program as data: written as C by `emit`, and run as they are by `run`.

use super::view::View;
use lamo::tensor::Map;
use std::sync::Arc;

/// An elementwise function of several operands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    /// An element of an operand.
    Load(usize),
    Number(f32),
    Map(Map, Vec<Expression>),
}

impl Expression {
    /// Number of functions.
    pub(crate) fn size(&self) -> usize {
        match self {
            Expression::Load(_) | Expression::Number(_) => 1,
            Expression::Map(_, operands) => 1 + operands.iter().map(Expression::size).sum::<usize>(),
        }
    }

    /// The same with its operands numbered anew.
    pub(crate) fn renumbered(&self, numbers: &[usize]) -> Expression {
        match self {
            Expression::Load(operand) => Expression::Load(numbers[*operand]),
            Expression::Number(number) => Expression::Number(*number),
            Expression::Map(map, operands) => {
                Expression::Map(*map, operands.iter().map(|operand| operand.renumbered(numbers)).collect())
            }
        }
    }
}

/// Extents of a convolution, channels last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) input: [usize; 3],
    pub(crate) output: [usize; 3],
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    /// Zeros before each axis.
    pub(crate) before: [usize; 2],
    pub(crate) groups: usize,
}

/// Extents of a membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slices {
    pub(crate) points: usize,
    pub(crate) heads: usize,
    pub(crate) slices: usize,
    pub(crate) channels: usize,
    pub(crate) width: usize,
}

/// Extents of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recurrence {
    pub(crate) tokens: usize,
    pub(crate) heads: usize,
    pub(crate) channels: usize,
    pub(crate) groups: usize,
    pub(crate) states: usize,
    pub(crate) directions: usize,
    /// `[directions, tokens]`
    pub(crate) order: Arc<[u32]>,
}

/// One loop nest. Operands other than those of `Loop`, `Sum`, `Max` and the left side of `Product` are contiguous.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kernel {
    /// `out` gets the expression of the operands, which have its shape.
    Loop { out: View, expression: Expression, operands: Vec<View> },
    /// Sum or maximum of the expression over the axes `first..end` of the operands; `out` has the others.
    Reduce { out: View, expression: Expression, operands: Vec<View>, first: usize, end: usize, sum: bool },
    /// `[blocks, rows, inner] × [blocks, inner, columns]`; the columns of the right side and of the result lie side by side.
    Product { out: View, left: View, right: View },
    /// The weight is `[kernel rows, kernel columns, in/groups, out]`.
    Convolution { out: View, input: View, weight: View, window: Window },
    /// Queries `[points, heads, channels]`, keys `[heads, channels, slices]`, offsets, values `[points, heads, width]`, to
    /// `[heads, slices, width + 1]`.
    Collect { out: View, operands: [View; 4], slices: Slices },
    /// The same with tokens `[heads, slices, width]`, to `[points, heads, width]`.
    Spread { out: View, operands: [View; 4], slices: Slices },
    /// Signal, log decay, gain, write, read; the output and the state `[scan heads, states, channels]`.
    Scan { out: View, state: View, initial: Option<View>, operands: Box<[View; 5]>, scan: Recurrence },
    /// Λ⁻¹ of `[matrices, side, side]`.
    InverseCholesky { out: View, matrix: View, jitter: f64 },
    /// Rows of one axis in the order of a list: `[blocks, from, inner]` to `[blocks, rows, inner]`.
    Gather { out: View, input: View, axis: usize, rows: Arc<[u32]> },
    /// Zeros.
    Zero { out: View },
}

impl Kernel {
    /// The views that it reads.
    pub(crate) fn reads(&self) -> Vec<&View> {
        match self {
            Kernel::Loop { operands, .. } | Kernel::Reduce { operands, .. } => operands.iter().collect(),
            Kernel::Product { left, right, .. } => vec![left, right],
            Kernel::Convolution { input, weight, .. } => vec![input, weight],
            Kernel::Collect { operands, .. } | Kernel::Spread { operands, .. } => operands.iter().collect(),
            Kernel::Scan { operands, initial, .. } => operands.iter().chain(initial).collect(),
            Kernel::InverseCholesky { matrix, .. } => vec![matrix],
            Kernel::Gather { input, .. } => vec![input],
            Kernel::Zero { .. } => Vec::new(),
        }
    }

    /// The views that it writes.
    pub(crate) fn writes(&self) -> Vec<&View> {
        match self {
            Kernel::Scan { out, state, .. } => vec![out, state],
            Kernel::Loop { out, .. }
            | Kernel::Reduce { out, .. }
            | Kernel::Product { out, .. }
            | Kernel::Convolution { out, .. }
            | Kernel::Collect { out, .. }
            | Kernel::Spread { out, .. }
            | Kernel::InverseCholesky { out, .. }
            | Kernel::Gather { out, .. }
            | Kernel::Zero { out } => vec![out],
        }
    }
}
