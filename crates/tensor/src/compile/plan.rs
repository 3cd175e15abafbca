//! The plan: buffers, and the kernels that run over them in order. It is the same for all backends.

use super::blocks::Blocks;
use crate::ops::convolution::ConvolutionShape;
use crate::ops::membership::MembershipShape;
use crate::ops::scan::ScanShape;
use crate::ops::{Map, Reduction};
use crate::shape::Layout;
use std::ops::Range;
use std::sync::Arc;

/// The position of a value in memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) buffer: usize,
    pub(crate) layout: Layout,
}

/// What a buffer is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Role {
    /// Written by the caller; runs do not change it.
    Input,
    /// Updated by runs; keeps its value from run to run.
    State,
    /// Row numbers written by the caller.
    IndexInput,
    /// Set once; the bits of floats, or row numbers.
    Constant(Arc<[u32]>),
    /// Read by the caller after a run.
    Output,
    /// Used from its first to its last kernel; its memory is shared.
    Temporary,
}

/// A part of the arena, in elements of four bytes.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) name: Option<String>,
    pub(crate) role: Role,
    pub(crate) length: usize,
    /// Position in the arena, set by the memory planner.
    pub(crate) offset: usize,
}

impl Buffer {
    /// Its elements of the arena.
    pub(crate) fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.length
    }
}

/// A value inside a loop, one number per element or per row of the current strip.
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
    /// Reads memory; the layout has the extents of the loop.
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

/// A reduction across the rows of a loop: over the middle of its split and, if `whole_rows`, along rows too.
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
        exact: bool,
        left: Place,
        right: Place,
        to: Place,
    },
    /// From `[matrices, n, n]`.
    InverseCholesky {
        jitter: f64,
        from: Place,
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
    /// `membership`, here and below: queries, keys, offsets.
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
    MembershipGradient(Box<MembershipGradient>),
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
    /// Kernels that run together, block by block.
    Blocks(Box<Blocks>),
}

/// Where the gradients of what a membership was used for come from and go to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MembershipGradient {
    pub(crate) shape: MembershipShape,
    pub(crate) membership: [Place; 3],
    /// Values, and the cotangent of their collection, whose last channel is that of the mass.
    pub(crate) collection: Option<[Place; 2]>,
    /// The cotangent of a spread, and its tokens.
    pub(crate) spread: Option<[Place; 2]>,
    /// The gradients of queries, keys, offsets.
    pub(crate) to: [Place; 3],
    /// The gradient of the collected values.
    pub(crate) values: Option<Place>,
}

/// A part of a buffer, or all of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) buffer: usize,
    /// Elements from the first to the last; `None` for all.
    pub(crate) range: Option<Range<usize>>,
}

impl From<&Place> for Stretch {
    fn from(place: &Place) -> Stretch {
        let Layout { offset, dims, strides } = &place.layout;
        let reach = |sign: isize| -> isize {
            let along = dims.iter().zip(strides).map(|(&extent, &stride)| (extent as isize - 1) * stride);
            along.filter(|distance| distance * sign > 0).sum()
        };
        let range = (offset + reach(-1)) as usize..(offset + reach(1)) as usize + 1;
        Stretch { buffer: place.buffer, range: Some(range) }
    }
}

impl Step {
    /// The parts of buffers that are read, and those that are written.
    pub(crate) fn stretches(&self) -> [Vec<Stretch>; 2] {
        let of = |places: &[&Place]| places.iter().map(|&place| Stretch::from(place)).collect::<Vec<_>>();
        let whole = |buffer: usize| Stretch { buffer, range: None };
        match self {
            Step::Loop(body) => {
                let mut read = Vec::new();
                let mut written: Vec<Stretch> = body.across.iter().map(|across| Stretch::from(&across.to)).collect();
                for instruction in &body.instructions {
                    match instruction {
                        Instruction::Load { from, .. } => read.push(from.into()),
                        Instruction::Store { to, .. } => written.push(to.into()),
                        _ => {}
                    }
                }
                [read, written]
            }
            Step::Clear { buffer } => [Vec::new(), vec![whole(*buffer)]],
            Step::MatMul { left, right, to, .. } => [of(&[left, right]), of(&[to])],
            Step::InverseCholesky { from, to, .. } => [of(&[from]), of(&[to])],
            Step::Convolution { input, weight, to, .. } => [of(&[input, weight]), of(&[to])],
            Step::ConvolutionInputGradient { cotangent, weight, to, .. } => [of(&[cotangent, weight]), of(&[to])],
            Step::ConvolutionWeightGradient { input, cotangent, to, .. } => [of(&[input, cotangent]), of(&[to])],
            Step::Collect { membership: [x, k, b], values: moved, to, .. }
            | Step::Spread { membership: [x, k, b], tokens: moved, to, .. } => [of(&[x, k, b, moved]), of(&[to])],
            Step::MembershipGradient(step) => {
                let moved = [&step.collection, &step.spread].into_iter().flatten().flatten();
                let read = step.membership.iter().chain(moved).map(Stretch::from).collect();
                [read, step.to.iter().chain(&step.values).map(Stretch::from).collect()]
            }
            Step::Scan { operands, output, final_state, .. } => {
                let mut written = of(&[output]);
                written.extend(final_state.iter().map(Stretch::from));
                [operands.iter().map(Stretch::from).collect(), written]
            }
            Step::ScanGradient { operands, cotangent, final_cotangent, to, .. } => {
                let mut read: Vec<Stretch> = operands.iter().map(Stretch::from).collect();
                read.push(cotangent.into());
                read.extend(final_cotangent.iter().map(Stretch::from));
                [read, to.iter().map(Stretch::from).collect()]
            }
            Step::Gather { from, index, to, .. } | Step::ScatterAdd { from, index, to, .. } => {
                [vec![from.into(), whole(*index)], of(&[to])]
            }
            Step::Blocks(blocks) => {
                let mut stretches = [Vec::new(), vec![whole(blocks.workspace)]];
                for member in &blocks.members {
                    for (all, own) in stretches.iter_mut().zip(member.stretches()) {
                        all.extend(own.into_iter().filter(|stretch| !blocks.local.contains(&stretch.buffer)));
                    }
                }
                stretches
            }
        }
    }

    /// The product of all extents of the operator, or the largest number if it does not fit.
    pub(crate) fn work(&self) -> usize {
        let product = |extents: &[usize]| extents.iter().copied().fold(1, usize::saturating_mul);
        let membership = |shape: &MembershipShape| {
            let MembershipShape { batch, points, heads, slices, channels, width } = *shape;
            product(&[batch, points, heads, slices, channels + 1, width + 1])
        };
        match self {
            Step::Loop(body) => product(&body.dims).saturating_mul(body.across.len().max(1)),
            Step::Clear { .. } => 1,
            Step::MatMul { left, to, .. } => {
                let inner = left.layout.dims[left.layout.dims.len() - 1];
                product(&to.layout.dims).saturating_mul(inner)
            }
            Step::InverseCholesky { from, .. } => product(&from.layout.dims).saturating_mul(from.layout.dims[1]),
            Step::Convolution { shape, .. }
            | Step::ConvolutionInputGradient { shape, .. }
            | Step::ConvolutionWeightGradient { shape, .. } => {
                let padded = |extent: usize, padding: [usize; 2]| extent + padding[0] + padding[1];
                let plane = [padded(shape.rows, shape.padding[0]), padded(shape.columns, shape.padding[1])];
                let taps = product(&shape.kernel).saturating_mul(product(&plane));
                product(&[shape.batch, shape.in_channels / shape.groups.max(1), shape.out_channels, taps])
            }
            Step::Collect { shape, .. } | Step::Spread { shape, .. } => membership(shape),
            Step::MembershipGradient(step) => membership(&step.shape),
            Step::Scan { shape, .. } | Step::ScanGradient { shape, .. } => {
                let ScanShape { batch, tokens, heads, channels, states, directions, .. } = *shape;
                product(&[batch, tokens, heads, channels, states, directions])
            }
            Step::Gather { from, to, .. } | Step::ScatterAdd { from, to, .. } => {
                product(&from.layout.dims).max(product(&to.layout.dims))
            }
            Step::Blocks(blocks) => blocks.members.iter().map(Step::work).max().unwrap_or(1),
        }
    }

    /// The kernels of a group, or the kernel itself.
    pub(crate) fn members(&self) -> &[Step] {
        match self {
            Step::Blocks(blocks) => &blocks.members,
            step => std::slice::from_ref(step),
        }
    }

    /// Buffers read and written, in that order.
    pub(crate) fn buffers(&self) -> (Vec<usize>, Vec<usize>) {
        let [read, written] = self.stretches().map(|list| list.into_iter().map(|stretch| stretch.buffer).collect());
        (read, written)
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

impl Plan {
    /// Whether a buffer is in the arena. Some only exist block by block.
    pub(crate) fn is_placed(&self, buffer: usize) -> bool {
        !self.steps.iter().any(|step| matches!(step, Step::Blocks(blocks) if blocks.local.contains(&buffer)))
    }
}
