//! From graph to plan: simplify → assemble → fuse → place → schedule → group into blocks → plan memory. Each pass has a file of its own.
//!
//! The plan lists buffers, layouts and kernels and does not depend on the device; a backend runs it.

mod assemble;
pub(crate) mod blocks;
pub(crate) mod cost;
pub(crate) mod explain;
pub(crate) mod fuse;
mod loops;
pub(crate) mod memory;
mod place;
pub(crate) mod plan;
mod schedule;
mod simplify;

use crate::device::DeviceError;
use crate::graph::Graph;
use plan::Plan;

/// Options of the compiler.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Fuse maps, views and reductions into shared loops. Without it every operator is a pass of its own: slower, and useful
    /// to find errors in the fused form.
    pub fuse: bool,
    /// Most elements that a kernel of a block writes: on a CPU, kernels that treat many points one by one run block by block, so
    /// that what one writes the next reads from the cache. 0 runs each kernel over all points before the next. Without `fuse`
    /// there are no blocks.
    pub block: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { fuse: true, block: 1 << 16 }
    }
}

/// What a device asks of its plans.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceTraits {
    /// Memory is used again this many steps after its last use: on a device that runs steps side by side, a step would
    /// otherwise wait for the readers of the memory that it writes.
    pub(crate) slack: usize,
    /// Longest row that a loop can hold, to reduce it and use the result in the same pass.
    pub(crate) longest_row: usize,
    /// Whether to arrange large parameters again in the backward pass instead of keeping the arrangement of the forward pass.
    pub(crate) remake: bool,
    /// Whether the device runs blocks.
    pub(crate) blocks: bool,
}

/// Compiles the outputs and assignments of a graph.
///
/// Every pass asks whether it should stop, see [`attempt`](crate::attempt).
pub(crate) fn compile(graph: &Graph, options: Options, traits: DeviceTraits) -> Result<Plan, DeviceError> {
    let simple = simplify::simplify(graph)?;
    let assembled = assemble::assemble(simple, traits.remake)?;
    let mut fused = fuse::fuse(&assembled, options, traits.longest_row)?;
    let mut placed = place::place(&assembled, &mut fused)?;
    let mut steps = schedule::schedule(&assembled, &fused, &placed)?;
    if traits.blocks {
        steps = blocks::group(&mut placed, steps, options)?;
    }
    memory::plan(placed, steps, traits.slack)
}
