//! Blocks: neighbouring kernels that treat the points of a program one by one run block by block: all of them on the first points,
//! then all of them on the next. What one writes the others read from the cache, and what no other kernel reads is never in memory.
//!
//! Linear maps, norms over channels, softmaxes of channels and activations are such kernels. A sum over points (the gradient of a
//! weight, or of a bias) is one too: tasks add up their blocks, and the parts of all tasks are added in their order.

mod axes;
mod cut;
mod members;

use super::Options;
use super::place::Placed;
use super::plan::{Place, Role, Step};
use crate::device::DeviceError;
use crate::limits::poll_at;
use crate::ops::Reduction;
use axes::Points;
use members::{Draft, Program};

/// Fewest blocks for which a group is worth it: less than that fits the caches anyway.
const FEWEST_BLOCKS: usize = 16;
/// Elements of a point for which a block still has a point.
const WIDEST_POINT: usize = 1 << 10;
/// Most tasks of a group. Each adds up its own sums.
const MOST_TASKS: usize = 32;
/// Most elements of the sums of all tasks.
const MOST_SUMS: usize = 1 << 24;
/// Largest step, in elements that it writes, that may run before a group instead of behind it.
const SMALL: usize = 1 << 16;

/// How the address of an access changes: from sample to sample, from point to point, from task to task, from slot to slot.
pub(crate) type Moves = [isize; 4];

/// What a kernel of a block accesses: a buffer of the program, or the workspace of the group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) buffer: usize,
    pub(crate) moves: Moves,
    /// The buffer of the program that this is a view of. A loop asks whether it reads what it writes.
    pub(crate) of: usize,
}

/// A kernel for one block. Its places name views in place of buffers.
#[derive(Clone, Debug)]
pub(crate) struct BlockStep {
    pub(crate) step: Step,
    /// Which results of the kernel (those across rows of a loop, or that of a product) are added to what is there.
    pub(crate) adds: Vec<bool>,
}

/// A sum over points, of which every task has a part.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    pub(crate) kind: Reduction,
    /// Position in the sums of a task.
    pub(crate) start: usize,
    pub(crate) to: Place,
}

/// A matrix that all blocks multiply with, arranged once so that its rows are contiguous.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arranged {
    pub(crate) from: Place,
    /// Position in the workspace.
    pub(crate) start: usize,
}

/// Kernels that run block by block.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    pub(crate) batch: usize,
    pub(crate) points: usize,
    /// Points of a block.
    pub(crate) rows: usize,
    pub(crate) tasks: usize,
    pub(crate) views: Vec<View>,
    /// The kernels for a whole block, and for the last one of a sample if that is shorter.
    pub(crate) kernels: [Vec<BlockStep>; 2],
    pub(crate) sums: Vec<Sum>,
    /// The buffer with, one after the other: the values of a block that no other kernel reads, for each of the tasks that run at
    /// the same time; the sums of each task; arranged matrices.
    pub(crate) workspace: usize,
    pub(crate) slots: usize,
    pub(crate) slot_length: usize,
    pub(crate) sums_length: usize,
    pub(crate) arranged: Vec<Arranged>,
    /// The kernels before they were cut.
    pub(crate) members: Vec<Step>,
    /// Buffers of the members that only exist in workspaces.
    pub(crate) local: Vec<usize>,
}

/// Groups the steps of a plan.
pub(crate) fn group(placed: &mut Placed, steps: Vec<Step>, options: Options) -> Result<Vec<Step>, DeviceError> {
    if options.block == 0 || !options.fuse {
        return Ok(steps);
    }
    let buffers = placed.buffers.clone();
    let program = Program::new(&steps, &buffers);
    let candidates = candidates(&steps, least_rows(options.block) * FEWEST_BLOCKS);
    let mut grouped = Vec::with_capacity(steps.len());
    let mut next = 0;
    while next < steps.len() {
        poll_at(next)?;
        let drafts = candidates.iter().map(|&points| Draft::grow(&program, next, points));
        let best = drafts.filter(Draft::is_worth_it).max_by_key(Draft::gain);
        let Some(draft) = best else {
            grouped.push(steps[next].clone());
            next += 1;
            continue;
        };
        grouped.extend(draft.ahead.iter().map(|&step| steps[step].clone()));
        next = draft.end;
        let workspace = placed.buffers.len();
        match cut::cut(&program, &draft, options.block, workspace) {
            Some(blocks) => {
                let elements = |matrix: &Arranged| matrix.from.layout.dims.iter().product::<usize>();
                let behind = blocks.arranged.last().map(|last| last.start + elements(last));
                let length = blocks.slots * blocks.slot_length + blocks.tasks * blocks.sums_length;
                placed.add_workspace(behind.unwrap_or(length).max(1));
                grouped.push(Step::Blocks(Box::new(blocks)));
            }
            None => grouped.extend(draft.members.iter().map(|member| steps[member.step].clone())),
        }
    }
    Ok(grouped)
}

/// Fewest points of a block whose kernels write `block` elements.
fn least_rows(block: usize) -> usize {
    (block / WIDEST_POINT).max(1)
}

/// Numbers of points by which the steps of a program may be grouped.
fn candidates(steps: &[Step], fewest: usize) -> Vec<Points> {
    let mut found = Vec::new();
    for step in steps {
        if let Step::MatMul { left, to, .. } = step {
            let rank = to.layout.dims.len();
            let matrices: usize = to.layout.dims[..rank - 2].iter().product();
            let extents = [to.layout.dims[rank - 2], to.layout.dims[rank - 1], left.layout.dims[rank - 1]];
            for points in extents.into_iter().filter(|&points| points >= fewest) {
                found.push(Points { batch: 1, points });
                let batches = (2..=matrices).filter(|&batch| matrices.is_multiple_of(batch));
                found.extend(batches.map(|batch| Points { batch, points }));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    // A division into samples is of use if other kernels have all points in one axis.
    let flat: Vec<usize> = found.iter().filter(|points| points.batch == 1).map(|points| points.points).collect();
    found.retain(|points| points.batch == 1 || flat.contains(&points.count()));
    found
}

impl Placed {
    /// The workspace of a group.
    fn add_workspace(&mut self, length: usize) {
        self.buffers.push(super::plan::Buffer { name: None, role: Role::Temporary, length, offset: 0 });
    }
}
