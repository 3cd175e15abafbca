//! The CPU backend: one arena, and one prepared kernel per step. Kernels run one after the other; each uses all threads.

mod arena;
pub(crate) mod blocks;
mod cholesky;
pub(crate) mod convolution;
mod copy;
mod interpreter;
pub(crate) mod math;
pub(crate) mod matmul;
mod membership;
pub(crate) mod memory;
mod rows;
pub(crate) mod scan;
pub(crate) mod simd;
mod strip;
mod team;

use crate::compile::DeviceTraits;
use crate::compile::explain::describe;
use crate::compile::plan::{Place, Plan, Role, Step};
use crate::device::DeviceError;
use crate::limits::poll_at;
use crate::ops::convolution::ConvolutionShape;
use crate::ops::membership::MembershipShape;
use crate::ops::scan::ScanShape;
use arena::Arena;
use blocks::BlockKernel;
use copy::CopyKernel;
use interpreter::LoopKernel;
use matmul::MatMul;
use membership::{MembershipGradients, MembershipInputs, MembershipUses};
use memory::{Source, Target};
use rows::Rows;
use scan::{ScanGradients, ScanInputs};
use std::sync::Arc;

/// Kernels run one after the other, so that memory is free after its last use.
pub(crate) const TRAITS: DeviceTraits =
    DeviceTraits { slack: 0, longest_row: interpreter::LONGEST_ROW, remake: false, blocks: true };

#[allow(clippy::large_enum_variant)] // a program has some hundred kernels, made once
enum Kernel {
    Loop(LoopKernel),
    /// A loop that only moves numbers.
    Copies(Vec<CopyKernel>),
    Clear(Target<1>, usize),
    MatMul(MatMul),
    InverseCholesky {
        /// Matrices, and rows of each.
        extents: [usize; 2],
        jitter: f64,
        from: Source<3>,
        to: Target<3>,
    },
    Convolution {
        shape: ConvolutionShape,
        input: Source<4>,
        weight: Source<4>,
        to: Target<4>,
    },
    ConvolutionInputGradient {
        shape: ConvolutionShape,
        cotangent: Source<4>,
        weight: Source<4>,
        to: Target<4>,
    },
    ConvolutionWeightGradient {
        shape: ConvolutionShape,
        input: Source<4>,
        cotangent: Source<4>,
        to: Target<4>,
    },
    Collect {
        shape: MembershipShape,
        inputs: MembershipInputs,
        values: Source<4>,
        to: Target<4>,
    },
    Spread {
        shape: MembershipShape,
        inputs: MembershipInputs,
        tokens: Source<4>,
        to: Target<4>,
    },
    MembershipGradient {
        shape: MembershipShape,
        inputs: MembershipInputs,
        uses: MembershipUses,
        gradients: MembershipGradients,
    },
    Scan {
        shape: ScanShape,
        order: Arc<[u32]>,
        inputs: ScanInputs,
        output: Target<4>,
        final_state: Option<Target<4>>,
    },
    ScanGradient {
        shape: ScanShape,
        order: Arc<[u32]>,
        inputs: ScanInputs,
        cotangent: Source<4>,
        final_cotangent: Option<Source<4>>,
        gradients: ScanGradients,
    },
    Gather(Rows),
    ScatterAdd(Rows),
    Blocks(BlockKernel),
}

/// A plan ready to run.
pub(crate) struct Cpu {
    plan: Plan,
    kernels: Vec<Kernel>,
    arena: Arena,
    scratch: Arena,
}

// SAFETY: the pointers inside the kernels point into the arena, which moves with its owner and is used by `&mut self`.
unsafe impl Send for Cpu {}

fn source<const RANK: usize>(place: &Place, base: &impl Fn(&Place) -> *mut f32) -> Source<RANK> {
    let strides = place.layout.strides.as_slice().try_into().expect("the operator fixes the rank");
    Source { pointer: base(place), strides }
}

fn target<const RANK: usize>(place: &Place, base: &impl Fn(&Place) -> *mut f32) -> Target<RANK> {
    let Source { pointer, strides } = source(place, base);
    Target { pointer: pointer.cast_mut(), strides }
}

impl Cpu {
    pub(crate) fn new(plan: Plan) -> Result<Cpu, DeviceError> {
        let arena = Arena::zeros(plan.arena, 0)?;
        let start = arena.start();
        let base = |place: &Place| {
            let offset = plan.buffers[place.buffer].offset as isize + place.layout.offset;
            // SAFETY: the planner keeps every place inside the arena.
            unsafe { start.offset(offset) }
        };
        let mut kernels = Vec::with_capacity(plan.steps.len());
        for (position, step) in plan.steps.iter().enumerate() {
            poll_at(position)?;
            kernels.push(prepare(&plan, step, &base)?);
        }
        let scratch = Arena::zeros(kernels.iter().map(Kernel::scratch).max().unwrap_or(0), plan.arena)?;
        let mut cpu = Cpu { kernels, arena, scratch, plan };
        for id in 0..cpu.plan.buffers.len() {
            if let Role::Constant(bits) = cpu.plan.buffers[id].role.clone() {
                cpu.values_mut(id).iter_mut().zip(bits.iter()).for_each(|(value, bits)| *value = f32::from_bits(*bits));
            }
        }
        Ok(cpu)
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.arena.count() + self.scratch.count()) * size_of::<f32>()
    }

    pub(crate) fn values(&self, buffer: usize) -> &[f32] {
        let buffer = &self.plan.buffers[buffer];
        // SAFETY: the planner keeps every buffer inside the arena.
        unsafe { std::slice::from_raw_parts(self.arena.start().add(buffer.offset), buffer.length) }
    }

    fn values_mut(&mut self, buffer: usize) -> &mut [f32] {
        let buffer = &self.plan.buffers[buffer];
        // SAFETY: the planner keeps every buffer inside the arena.
        unsafe { std::slice::from_raw_parts_mut(self.arena.start().add(buffer.offset), buffer.length) }
    }

    pub(crate) fn write(&mut self, buffer: usize, values: &[f32]) {
        self.values_mut(buffer).copy_from_slice(values);
    }

    pub(crate) fn write_part(&mut self, buffer: usize, start: usize, values: &[f32]) {
        self.values_mut(buffer)[start..start + values.len()].copy_from_slice(values);
    }

    pub(crate) fn write_rows(&mut self, buffer: usize, rows: &[u32]) {
        self.values_mut(buffer).iter_mut().zip(rows).for_each(|(value, row)| *value = f32::from_bits(*row));
    }

    pub(crate) fn launches(&self) -> usize {
        self.kernels.len()
    }

    pub(crate) fn run(&mut self) {
        team::lead(|| (0..self.kernels.len()).for_each(|position| self.run_kernel(position)));
    }

    fn run_kernel(&mut self, position: usize) {
        let (scratch, length) = (self.scratch.start(), self.scratch.count());
        // SAFETY: `&mut self` makes this the only run; the planner keeps places valid and disjoint.
        unsafe { self.kernels[position].run(std::slice::from_raw_parts_mut(scratch, length)) };
    }

    /// The first kernel whose result is not finite, its number among those that run block by block with it, and one such value.
    pub(crate) fn run_checked(&mut self) -> Option<(usize, usize, f32)> {
        for position in 0..self.kernels.len() {
            self.run_kernel(position);
            for (number, step) in self.plan.steps[position].members().iter().enumerate() {
                let (_, written) = step.buffers();
                for buffer in written.into_iter().filter(|&buffer| self.plan.is_placed(buffer)) {
                    let bad = |value: &&f32| !value.is_finite();
                    if let Some(&value) = self.values(buffer).iter().find(bad) {
                        return Some((position, number, value));
                    }
                }
            }
        }
        None
    }

    pub(crate) fn profile(&mut self) -> Vec<(String, f64)> {
        (0..self.kernels.len())
            .map(|position| {
                let start = std::time::Instant::now();
                self.run_kernel(position);
                (describe(&self.plan.steps[position]), start.elapsed().as_secs_f64())
            })
            .collect()
    }
}

fn prepare(plan: &Plan, step: &Step, base: &impl Fn(&Place) -> *mut f32) -> Result<Kernel, DeviceError> {
    let index = |buffer: usize| {
        let layout = crate::shape::Layout { offset: 0, dims: Vec::new(), strides: Vec::new() };
        base(&Place { buffer, layout }).cast_const().cast::<u32>()
    };
    Ok(match step {
        Step::Loop(body) => match copy::copies(body, base) {
            Some(copies) => Kernel::Copies(copies),
            None => Kernel::Loop(LoopKernel::new(body, base)?),
        },
        Step::Clear { buffer } => {
            let pointer = index(*buffer).cast::<f32>().cast_mut();
            Kernel::Clear(Target { pointer, strides: [1] }, plan.buffers[*buffer].length)
        }
        Step::MatMul { left, right, to, .. } => Kernel::MatMul(MatMul::new(left, right, to, base)?),
        Step::InverseCholesky { jitter, from, to } => Kernel::InverseCholesky {
            extents: [from.layout.dims[0], from.layout.dims[1]],
            jitter: *jitter,
            from: source(from, base),
            to: target(to, base),
        },
        Step::Convolution { shape, input, weight, to } => Kernel::Convolution {
            shape: *shape,
            input: source(input, base),
            weight: source(weight, base),
            to: target(to, base),
        },
        Step::ConvolutionInputGradient { shape, cotangent, weight, to } => Kernel::ConvolutionInputGradient {
            shape: *shape,
            cotangent: source(cotangent, base),
            weight: source(weight, base),
            to: target(to, base),
        },
        Step::ConvolutionWeightGradient { shape, input, cotangent, to } => Kernel::ConvolutionWeightGradient {
            shape: *shape,
            input: source(input, base),
            cotangent: source(cotangent, base),
            to: target(to, base),
        },
        Step::Collect { shape, membership, values, to } => Kernel::Collect {
            shape: *shape,
            inputs: membership_inputs(membership, base),
            values: source(values, base),
            to: target(to, base),
        },
        Step::Spread { shape, membership, tokens, to } => Kernel::Spread {
            shape: *shape,
            inputs: membership_inputs(membership, base),
            tokens: source(tokens, base),
            to: target(to, base),
        },
        Step::MembershipGradient(step) => {
            let both = |places: &[Place; 2]| places.each_ref().map(|place| source(place, base));
            let [queries, keys, offsets] = &step.to;
            Kernel::MembershipGradient {
                shape: step.shape,
                inputs: membership_inputs(&step.membership, base),
                uses: MembershipUses {
                    collection: step.collection.as_ref().map(both),
                    spread: step.spread.as_ref().map(both),
                },
                gradients: MembershipGradients {
                    queries: target(queries, base),
                    keys: target(keys, base),
                    offsets: target(offsets, base),
                    values: step.values.as_ref().map(|place| target(place, base)),
                },
            }
        }
        Step::Scan { shape, order, operands, output, final_state } => Kernel::Scan {
            shape: *shape,
            order: order.clone(),
            inputs: scan_inputs(operands, base),
            output: target(output, base),
            final_state: final_state.as_ref().map(|place| target(place, base)),
        },
        Step::ScanGradient { shape, order, operands, cotangent, final_cotangent, to } => Kernel::ScanGradient {
            shape: *shape,
            order: order.clone(),
            inputs: scan_inputs(operands, base),
            cotangent: source(cotangent, base),
            final_cotangent: final_cotangent.as_ref().map(|place| source(place, base)),
            gradients: ScanGradients {
                signal: target(&to[0], base),
                log_decay: target(&to[1], base),
                gain: target(&to[2], base),
                write: target(&to[3], base),
                read: target(&to[4], base),
                initial: to.get(5).map(|place| target(place, base)),
            },
        },
        Step::Gather { axis, from, index: rows, to } => Kernel::Gather(Rows::new(*axis, from, to, index(*rows), base)),
        Step::ScatterAdd { axis, from, index: rows, to } => {
            Kernel::ScatterAdd(Rows::new(*axis, to, from, index(*rows), base))
        }
        Step::Blocks(blocks) => Kernel::Blocks(BlockKernel::new(blocks, base)?),
    })
}

fn membership_inputs(membership: &[Place; 3], base: &impl Fn(&Place) -> *mut f32) -> MembershipInputs {
    MembershipInputs {
        queries: source(&membership[0], base),
        keys: source(&membership[1], base),
        offsets: source(&membership[2], base),
    }
}

fn scan_inputs(operands: &[Place], base: &impl Fn(&Place) -> *mut f32) -> ScanInputs {
    ScanInputs {
        signal: source(&operands[0], base),
        log_decay: source(&operands[1], base),
        gain: source(&operands[2], base),
        write: source(&operands[3], base),
        read: source(&operands[4], base),
        initial: operands.get(5).map(|place| source(place, base)),
    }
}

impl Kernel {
    /// Floats of shared scratch memory; the largest number if there are more.
    fn scratch(&self) -> usize {
        match self {
            Kernel::Loop(kernel) => kernel.scratch(),
            Kernel::MatMul(product) => product.scratch(),
            Kernel::Convolution { shape, .. } => convolution::forward_scratch(shape),
            Kernel::ConvolutionInputGradient { shape, .. } => convolution::input_gradient_scratch(shape),
            Kernel::ConvolutionWeightGradient { shape, .. } => convolution::weight_gradient_scratch(shape),
            Kernel::Collect { shape, .. } => membership::collect_scratch(shape),
            Kernel::Spread { shape, .. } => membership::spread_scratch(shape),
            Kernel::MembershipGradient { shape, .. } => membership::gradient_scratch(shape),
            Kernel::Scan { shape, .. } => scan::forward_scratch(shape),
            Kernel::ScanGradient { shape, .. } => scan::backward_scratch(shape),
            Kernel::Copies(_)
            | Kernel::Clear(..)
            | Kernel::InverseCholesky { .. }
            | Kernel::Gather(_)
            | Kernel::ScatterAdd(_)
            | Kernel::Blocks(_) => 0,
        }
    }

    /// # Safety
    /// All places are valid and in no other use; `scratch` is long enough.
    unsafe fn run(&self, scratch: &mut [f32]) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Kernel::Loop(kernel) => kernel.run(scratch.as_mut_ptr()),
                Kernel::Copies(copies) => copies.iter().for_each(|copy| copy.run()),
                Kernel::Clear(to, length) => std::slice::from_raw_parts_mut(to.pointer, *length).fill(0.0),
                Kernel::MatMul(product) => product.run(scratch.as_mut_ptr()),
                Kernel::InverseCholesky { extents, jitter, from, to } => {
                    cholesky::inverse_cholesky(*extents, *jitter, *from, *to);
                }
                Kernel::Convolution { shape, input, weight, to } => {
                    convolution::forward(shape, *input, *weight, *to, scratch);
                }
                Kernel::ConvolutionInputGradient { shape, cotangent, weight, to } => {
                    convolution::input_gradient(shape, *cotangent, *weight, *to, scratch);
                }
                Kernel::ConvolutionWeightGradient { shape, input, cotangent, to } => {
                    convolution::weight_gradient(shape, *input, *cotangent, *to, scratch);
                }
                Kernel::Collect { shape, inputs, values, to } => {
                    membership::collect(shape, inputs, *values, *to, scratch);
                }
                Kernel::Spread { shape, inputs, tokens, to } => {
                    membership::spread(shape, inputs, *tokens, *to, scratch);
                }
                Kernel::MembershipGradient { shape, inputs, uses, gradients } => {
                    membership::gradient(shape, inputs, uses, gradients, scratch);
                }
                Kernel::Scan { shape, order, inputs, output, final_state } => {
                    scan::forward(shape, order, inputs, *output, *final_state, scratch);
                }
                Kernel::ScanGradient { shape, order, inputs, cotangent, final_cotangent, gradients } => {
                    scan::backward(shape, order, inputs, *cotangent, *final_cotangent, gradients, scratch);
                }
                Kernel::Gather(rows) => rows.gather(),
                Kernel::ScatterAdd(rows) => rows.scatter_add(),
                Kernel::Blocks(blocks) => blocks.run(),
            }
        }
    }
}
