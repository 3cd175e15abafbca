//! The plan: buffers, and the kernels that run over them in order. Backends execute it; nothing here is theirs.

use crate::ops::convolution::ConvolutionShape;
use crate::ops::membership::MembershipShape;
use crate::ops::scan::ScanShape;
use crate::ops::{Map, Reduction};
use crate::shape::Layout;
use std::sync::Arc;

/// Where a value lies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) buffer: usize,
    pub(crate) layout: Layout,
}

/// Why a buffer exists.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Role {
    /// Written by the caller, kept between runs.
    Input,
    /// Kept between runs, updated by them.
    State,
    /// Row numbers written by the caller.
    IndexInput,
    /// Set once; indices by their bits.
    Constant(Arc<[u32]>),
    /// Read by the caller after a run.
    Output,
    /// Alive between its first and last kernel.
    Temporary,
}

/// A stretch of memory, in elements of four bytes.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) name: Option<String>,
    pub(crate) role: Role,
    pub(crate) length: usize,
    /// Position in the arena, set by the memory planner.
    pub(crate) offset: usize,
}

/// A value inside a loop, for the elements or rows under way.
pub(crate) type Register = usize;

/// One number per element of the strip, or per row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Row,
    Element,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operand {
    Register(Register),
    Number(f32),
}

#[derive(Clone, Debug)]
pub(crate) enum Instruction {
    /// Reads memory; the layout walks the loop's extents.
    Load {
        from: Place,
        to: Register,
    },
    Map {
        map: Map,
        operands: [Operand; 3],
        to: Register,
    },
    /// Reduces each row to one number.
    ReduceRow {
        kind: Reduction,
        operand: Operand,
        to: Register,
    },
    Store {
        operand: Operand,
        to: Place,
    },
    /// Adds to the reduction across rows with this number.
    Accumulate {
        operand: Operand,
        across: usize,
    },
}

/// A reduction across the rows of a loop: over the middle of its split and, where `whole_rows`, along rows too.
#[derive(Clone, Debug)]
pub(crate) struct Across {
    pub(crate) kind: Reduction,
    pub(crate) whole_rows: bool,
    /// `[outer, inner, columns]`, or `[outer, 1, 1]` for whole rows.
    pub(crate) to: Place,
}

/// One pass over `dims`, last axis innermost.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) dims: Vec<usize>,
    /// Rows as `[outer, reduced, inner]`.
    pub(crate) split: [usize; 3],
    pub(crate) levels: Vec<Level>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) across: Vec<Across>,
}

/// One kernel.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Loop(Loop),
    /// Sets a whole buffer to zero.
    Clear {
        buffer: usize,
    },
    MatMul {
        left: Place,
        right: Place,
        to: Place,
    },
    Convolution {
        shape: ConvolutionShape,
        input: Place,
        weight: Place,
        to: Place,
    },
    ConvolutionInputGradient {
        shape: ConvolutionShape,
        cotangent: Place,
        weight: Place,
        to: Place,
    },
    ConvolutionWeightGradient {
        shape: ConvolutionShape,
        input: Place,
        cotangent: Place,
        to: Place,
    },
    /// `membership` is queries, keys, offsets, here and below.
    Collect {
        shape: MembershipShape,
        membership: [Place; 3],
        values: Place,
        to: Place,
    },
    Spread {
        shape: MembershipShape,
        membership: [Place; 3],
        tokens: Place,
        to: Place,
    },
    MembershipGradient {
        shape: MembershipShape,
        /// The tokens have the cotangent of the mass behind them.
        mass: bool,
        membership: [Place; 3],
        values: Place,
        tokens: Place,
        to: [Place; 3],
    },
    Scan {
        shape: ScanShape,
        order: Arc<[u32]>,
        operands: Vec<Place>,
        output: Place,
        final_state: Option<Place>,
    },
    ScanGradient {
        shape: ScanShape,
        order: Arc<[u32]>,
        operands: Vec<Place>,
        cotangent: Place,
        final_cotangent: Option<Place>,
        to: Vec<Place>,
    },
    /// `to[outer, i, inner] = from[outer, index[i], inner]`
    Gather {
        axis: usize,
        from: Place,
        index: usize,
        to: Place,
    },
    ScatterAdd {
        axis: usize,
        from: Place,
        index: usize,
        to: Place,
    },
}

impl Step {
    /// Buffers read and written, in that order.
    pub(crate) fn buffers(&self) -> (Vec<usize>, Vec<usize>) {
        let ids = |places: &[&Place]| places.iter().map(|place| place.buffer).collect::<Vec<_>>();
        match self {
            Step::Loop(body) => {
                let mut read = Vec::new();
                let mut written: Vec<usize> = body.across.iter().map(|across| across.to.buffer).collect();
                for instruction in &body.instructions {
                    match instruction {
                        Instruction::Load { from, .. } => read.push(from.buffer),
                        Instruction::Store { to, .. } => written.push(to.buffer),
                        _ => {}
                    }
                }
                (read, written)
            }
            Step::Clear { buffer } => (Vec::new(), vec![*buffer]),
            Step::MatMul { left, right, to } => (ids(&[left, right]), ids(&[to])),
            Step::Convolution { input, weight, to, .. } => (ids(&[input, weight]), ids(&[to])),
            Step::ConvolutionInputGradient { cotangent, weight, to, .. } => (ids(&[cotangent, weight]), ids(&[to])),
            Step::ConvolutionWeightGradient { input, cotangent, to, .. } => (ids(&[input, cotangent]), ids(&[to])),
            Step::Collect { membership: [x, k, b], values: moved, to, .. }
            | Step::Spread { membership: [x, k, b], tokens: moved, to, .. } => (ids(&[x, k, b, moved]), ids(&[to])),
            Step::MembershipGradient { membership: [x, k, b], values, tokens, to, .. } => {
                (ids(&[x, k, b, values, tokens]), to.iter().map(|place| place.buffer).collect())
            }
            Step::Scan { operands, output, final_state, .. } => {
                let mut written = ids(&[output]);
                written.extend(final_state.iter().map(|place| place.buffer));
                (operands.iter().map(|place| place.buffer).collect(), written)
            }
            Step::ScanGradient { operands, cotangent, final_cotangent, to, .. } => {
                let mut read: Vec<usize> = operands.iter().map(|place| place.buffer).collect();
                read.push(cotangent.buffer);
                read.extend(final_cotangent.iter().map(|place| place.buffer));
                (read, to.iter().map(|place| place.buffer).collect())
            }
            Step::Gather { from, index, to, .. } | Step::ScatterAdd { from, index, to, .. } => {
                (vec![from.buffer, *index], ids(&[to]))
            }
        }
    }
}

/// A compiled program.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) steps: Vec<Step>,
    /// Elements of four bytes in the arena that all buffers share.
    pub(crate) arena: usize,
}
