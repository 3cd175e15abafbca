//! From graph to plan: simplify → assemble → fuse → place → schedule → plan memory. Each pass has a file of its own.
//!
//! The plan lists buffers, layouts and kernels and does not depend on the device; a backend runs it.

mod assemble;
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
}

impl Default for Options {
    fn default() -> Self {
        Options { fuse: true }
    }
}

/// Compiles the outputs and assignments of a graph. Memory is used again `slack` steps after its last use: on a device that
/// runs steps side by side, a step would otherwise wait for the readers of the memory that it writes.
///
/// Every pass asks whether it should stop, see [`attempt`](crate::attempt).
pub(crate) fn compile(graph: &Graph, options: Options, slack: usize) -> Result<Plan, DeviceError> {
    let simple = simplify::simplify(graph)?;
    let assembled = assemble::assemble(simple)?;
    let mut fused = fuse::fuse(&assembled, options)?;
    let placed = place::place(&assembled, &mut fused)?;
    let steps = schedule::schedule(&assembled, &fused, &placed)?;
    memory::plan(placed, steps, slack)
}
