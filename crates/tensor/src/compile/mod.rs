//! From graph to plan: simplify → assemble → fuse → place → schedule → plan memory. Each pass is a function of its own file.
//!
//! The plan names buffers, layouts and kernels, and knows no machine; a backend runs it.

mod assemble;
pub(crate) mod cost;
pub(crate) mod explain;
pub(crate) mod fuse;
mod loops;
mod memory;
mod place;
pub(crate) mod plan;
mod schedule;
mod simplify;

use crate::graph::Graph;
use plan::Plan;

/// What the compiler may do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Fuse maps, views and reductions into shared loops. Without it every operator is a pass of its own, which is
    /// slower and good for finding errors in the fused form.
    pub fuse: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { fuse: true }
    }
}

/// Compiles the outputs and assignments of a graph. Memory is free for other use `slack` steps after its last: a machine that
/// runs steps side by side would otherwise wait for readers on its way to writing.
pub(crate) fn compile(graph: &Graph, options: Options, slack: usize) -> Plan {
    let simple = simplify::simplify(graph);
    let assembled = assemble::assemble(simple);
    let mut fused = fuse::fuse(&assembled, options);
    let placed = place::place(&assembled, &mut fused);
    let steps = schedule::schedule(&assembled, &fused, &placed);
    memory::plan(placed, steps, slack)
}
