//! Cost: how much arithmetic a plan does, counted from its kernels.

use super::plan::{Plan, Step};

/// Floating-point operations of one run in products, convolutions, scans and memberships. A multiply-add counts as two; a scan
/// counts as five operations per state and token forwards and fourteen backwards. Maps, norms,
/// reductions, Cholesky factors and the weights of memberships are not counted.
pub(crate) fn flops(plan: &Plan) -> f64 {
    plan.steps.iter().map(step_flops).sum()
}

/// Products of extents of several operands can be larger than a `usize`.
fn product(extents: &[usize]) -> f64 {
    extents.iter().map(|&extent| extent as f64).product()
}

fn step_flops(step: &Step) -> f64 {
    let scan = |shape: &crate::ops::scan::ScanShape| {
        product(&[shape.batch, shape.tokens, shape.scan_heads(), shape.channels, shape.states])
    };
    let pairs = |shape: &crate::ops::membership::MembershipShape| {
        product(&[shape.batch, shape.points, shape.heads, shape.slices])
    };
    match step {
        Step::MatMul { left, to, .. } => {
            let inner = left.layout.dims[left.layout.dims.len() - 1];
            2.0 * product(&to.layout.dims) * inner as f64
        }
        Step::Convolution { shape, .. }
        | Step::ConvolutionInputGradient { shape, .. }
        | Step::ConvolutionWeightGradient { shape, .. } => {
            let taps = product(&[shape.kernel[0], shape.kernel[1], shape.in_channels / shape.groups]);
            2.0 * shape.output().count() as f64 * taps
        }
        Step::Collect { shape, .. } | Step::Spread { shape, .. } => 2.0 * pairs(shape) * shape.width as f64,
        Step::MembershipGradient(step) => {
            let uses = [step.collection.is_some(), step.spread.is_some(), step.values.is_some()];
            let widths = uses.map(usize::from).iter().sum::<usize>() * step.shape.width + 2 * step.shape.channels;
            2.0 * pairs(&step.shape) * widths as f64
        }
        Step::Scan { shape, .. } => 5.0 * scan(shape),
        Step::ScanGradient { shape, .. } => 14.0 * scan(shape),
        Step::Blocks(blocks) => blocks.members.iter().map(step_flops).sum(),
        Step::Loop(_)
        | Step::Clear { .. }
        | Step::InverseCholesky { .. }
        | Step::Gather { .. }
        | Step::ScatterAdd { .. } => 0.0,
    }
}
