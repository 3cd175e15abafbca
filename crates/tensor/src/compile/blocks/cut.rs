//! Cut: the kernels of a group for one block. A kernel for a block is the same kernel with fewer points; what is only of use inside
//! the group lies in the workspace of a task.

use super::axes::{Points, Walk};
use super::members::{Access, Draft, Form, Matrix, Member, Program, is_local, touches};
use super::{Arranged, BlockStep, Blocks, FEWEST_BLOCKS, MOST_SUMS, MOST_TASKS, Sum, View, least_rows};
use crate::compile::loops::coalesce;
use crate::compile::memory::{ALIGNMENT, Life, lowest_gap, meet};
use crate::compile::plan::{Instruction, Loop, Place, Step};
use crate::ops::Reduction;
use crate::shape::{Layout, contiguous_strides};
use std::collections::HashMap;
use std::ops::Range;

/// Points of a block are a multiple of this where they can be, so that products have whole panels.
const PANEL: usize = 8;

/// The kernels of a draft, in blocks for which no kernel writes more than `block` elements; `None` if they are too few.
pub(super) fn cut(program: &Program<'_>, draft: &Draft, block: usize, workspace: usize) -> Option<Blocks> {
    let Points { batch, points } = draft.points;
    let widest = draft.orders.values().map(|order| order.before * order.after).max()?;
    let most = (block / widest).max(least_rows(block)).min(points);
    let even = points.div_ceil(points.div_ceil(most));
    let rows = if even < PANEL { even } else { even.next_multiple_of(PANEL).min(points) };
    if batch * points.div_ceil(rows) < FEWEST_BLOCKS {
        return None;
    }
    let mut cutter = Cutter {
        program,
        draft,
        rows,
        tasks: 0,
        slots: 0,
        workspace,
        local: HashMap::new(),
        sums: Vec::new(),
        views: Vec::new(),
        arranged: Vec::new(),
        slot_length: 0,
        sums_length: 0,
    };
    cutter.place_local_buffers();
    cutter.place_sums();
    let blocks = batch * points.div_ceil(rows);
    cutter.tasks = blocks.min(MOST_TASKS).min((MOST_SUMS / cutter.sums_length.max(1)).max(1));
    cutter.slots = cutter.tasks.min(threads());
    let last = (points - 1) % rows + 1;
    let kernels = [rows, last].map(|rows| cutter.kernels(rows));
    let [Some(whole), Some(last)] = kernels else { return None };
    Some(Blocks {
        batch,
        points,
        rows,
        tasks: cutter.tasks,
        views: cutter.views,
        kernels: [whole, last],
        sums: cutter.sums,
        workspace,
        slots: cutter.slots,
        slot_length: cutter.slot_length,
        sums_length: cutter.sums_length,
        arranged: cutter.arranged,
        members: draft.members.iter().map(|member| program.steps[member.step].clone()).collect(),
        local: cutter.local.into_keys().collect(),
    })
}

/// Threads that may run a program. With more of them, some wait for a slot; the results do not depend on the number.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).max(rayon::current_num_threads())
}

struct Cutter<'a> {
    program: &'a Program<'a>,
    draft: &'a Draft,
    rows: usize,
    tasks: usize,
    slots: usize,
    workspace: usize,
    /// Positions of local buffers in a slot of the workspace.
    local: HashMap<usize, usize>,
    /// In the order of the members' sums.
    sums: Vec<Sum>,
    views: Vec<View>,
    arranged: Vec<Arranged>,
    slot_length: usize,
    sums_length: usize,
}

impl Cutter<'_> {
    /// Every access of the members to a buffer, with the number of the member.
    fn accesses(&self) -> impl Iterator<Item = (usize, &Place, bool, &Access)> {
        self.draft.members.iter().enumerate().flat_map(|(number, member)| {
            let touched = touches(&self.program.steps[member.step]).into_iter().flatten();
            touched.zip(&member.accesses).map(move |(touch, access)| (number, touch.place, touch.writes, access))
        })
    }

    fn place_local_buffers(&mut self) {
        let mut lives: Vec<(usize, Life)> = Vec::new();
        let mut refused = Vec::new();
        for (number, place, _, access) in self.accesses() {
            let buffer = place.buffer;
            if !is_local(self.program, self.draft, buffer) {
                continue;
            }
            match lives.iter_mut().find(|(other, _)| *other == buffer) {
                Some((_, life)) => life.1 = number,
                None => lives.push((buffer, (number, number))),
            }
            let order = self.draft.orders[&buffer];
            let inside = matches!(access, Access::Rows(walk) if walk.within_block(order, self.draft.points, self.rows).is_some());
            if !inside {
                refused.push(buffer);
            }
        }
        lives.retain(|(buffer, _)| !refused.contains(buffer));
        let mut placed: Vec<(Range<usize>, Life)> = Vec::new();
        for (buffer, life) in lives {
            let length = self.draft.orders[&buffer].length(self.rows);
            let taken = placed.iter().filter(|(_, other)| meet(*other, life)).map(|(range, _)| range.clone()).collect();
            let start = lowest_gap(0, length, ALIGNMENT, taken);
            placed.push((start..start + length, life));
            self.local.insert(buffer, start);
            self.slot_length = self.slot_length.max((start + length).next_multiple_of(ALIGNMENT));
        }
    }

    fn place_sums(&mut self) {
        let mut sums = Vec::new();
        let mut length = 0;
        for member in &self.draft.members {
            let step = &self.program.steps[member.step];
            let touched = touches(step).into_iter().flatten();
            let summed = touched.zip(&member.accesses).filter(|(_, access)| matches!(access, Access::Sum { .. }));
            for (position, (touch, _)) in summed.enumerate() {
                let kind = match step {
                    Step::Loop(body) => body.across[position].kind,
                    _ => Reduction::Sum,
                };
                sums.push(Sum { kind, start: length, to: touch.place.clone() });
                length = (length + touch.place.layout.dims.iter().product::<usize>()).next_multiple_of(ALIGNMENT);
            }
        }
        (self.sums, self.sums_length) = (sums, length);
    }

    /// All kernels for a block of `rows` points.
    fn kernels(&mut self, rows: usize) -> Option<Vec<BlockStep>> {
        let draft = self.draft;
        let mut sum = 0;
        draft.members.iter().map(|member| self.kernel(member, rows, &mut sum)).collect()
    }

    fn kernel(&mut self, member: &Member, rows: usize, sum: &mut usize) -> Option<BlockStep> {
        match (&self.program.steps[member.step], &member.form) {
            (Step::Loop(body), Form::Loop(_)) => self.cut_loop(body, &member.accesses, rows, sum),
            (Step::MatMul { exact, left, right, to }, Form::Product(axis)) => {
                let adds = matches!(member.accesses[2], Access::Sum { .. });
                let mut places = Vec::new();
                for ((place, access), along) in
                    [left, right, to].into_iter().zip(&member.accesses).zip(axis.positions())
                {
                    places.push(match access {
                        Access::Rows(walk) if *axis == Matrix::Rows && along.is_none() && is_turned(walk) => {
                            self.arrange(place)
                        }
                        Access::Rows(walk) => {
                            let (walk, view) = self.view(place.buffer, walk, rows)?;
                            Place { buffer: view, layout: matrices(&walk, along, rows) }
                        }
                        Access::Sum { batch } => {
                            let outer: Vec<usize> = match &member.accesses[0] {
                                Access::Rows(walk) => walk.before.iter().map(|axis| axis.0).collect(),
                                Access::Sum { .. } => return None,
                            };
                            let rank = place.layout.dims.len();
                            let dims: Vec<usize> =
                                outer.into_iter().chain(place.layout.dims[rank - 2..].iter().copied()).collect();
                            self.sum_view(*batch, &dims, sum)
                        }
                    });
                }
                let [left, right, to] = places.try_into().ok()?;
                Some(BlockStep { step: Step::MatMul { exact: *exact, left, right, to }, adds: vec![adds] })
            }
            _ => None,
        }
    }

    fn cut_loop(&mut self, body: &Loop, accesses: &[Access], rows: usize, sum: &mut usize) -> Option<BlockStep> {
        let Some(Access::Rows(first)) = accesses.first() else { return None };
        let extents = |axes: &[(usize, isize)]| axes.iter().map(|axis| axis.0).collect::<Vec<_>>();
        let dims = [extents(&first.before), vec![rows], extents(&first.after)].concat();
        let mut cut = Loop { dims, ..body.clone() };
        let mut next = accesses.iter();
        for instruction in &mut cut.instructions {
            if let Instruction::Load { from: place, .. } | Instruction::Store { to: place, .. } = instruction {
                let Some(Access::Rows(walk)) = next.next() else { return None };
                let (walk, view) = self.view(place.buffer, walk, rows)?;
                *place = Place { buffer: view, layout: along_points(&walk, rows) };
            }
        }
        let count: usize = cut.dims[..cut.dims.len() - 1].iter().product();
        let [outer, reduced, inner] = body.split;
        cut.split = [1, count, 1];
        let mut adds = Vec::new();
        for (across, access) in cut.across.iter_mut().zip(next) {
            let result = [across.to.layout.dims[1], across.to.layout.dims[2]];
            let Points { batch, points } = self.draft.points;
            match access {
                Access::Rows(walk) => {
                    let outer = outer / (batch * points) * rows;
                    let (walk, view) = self.view(across.to.buffer, walk, rows)?;
                    let dims = vec![outer, result[0], result[1]];
                    let layout = Layout { offset: walk.offset, strides: contiguous_strides(&dims), dims };
                    (across.to, cut.split) = (Place { buffer: view, layout }, [outer, reduced, inner]);
                    adds.push(false);
                }
                Access::Sum { batch: step } => {
                    let outer = if outer == 1 { 1 } else { outer / batch };
                    across.to = self.sum_view(*step, &[outer, result[0], result[1]], sum);
                    cut.split = [outer, count / outer / inner, inner];
                    adds.push(true);
                }
            }
        }
        coalesce(&mut cut);
        Some(BlockStep { step: Step::Loop(cut), adds })
    }

    /// An access to a block, and the view that it goes through.
    fn view(&mut self, buffer: usize, walk: &Walk, rows: usize) -> Option<(Walk, usize)> {
        match self.local.get(&buffer) {
            None => {
                let view = View { buffer, moves: [walk.batch, walk.point, 0, 0], of: buffer };
                Some((walk.clone(), self.number(view)))
            }
            Some(&start) => {
                let mut walk = walk.within_block(self.draft.orders[&buffer], self.draft.points, rows)?;
                walk.offset += start as isize;
                let view = View { buffer: self.workspace, moves: [0, 0, 0, self.slot_length as isize], of: buffer };
                Some((walk, self.number(view)))
            }
        }
    }

    /// A matrix for all blocks, arranged once.
    fn arrange(&mut self, place: &Place) -> Place {
        let dims = place.layout.dims[place.layout.dims.len() - 2..].to_vec();
        let from = Place { layout: matrix_of(&place.layout), ..place.clone() };
        let known = self.arranged.iter().find(|arranged| arranged.from == from).map(|arranged| arranged.start);
        let start = known.unwrap_or_else(|| {
            let behind = |last: &Arranged| last.start + last.from.layout.dims.iter().product::<usize>();
            let start = self
                .arranged
                .last()
                .map_or(self.sums_start() + self.tasks * self.sums_length, behind)
                .next_multiple_of(ALIGNMENT);
            self.arranged.push(Arranged { from, start });
            start
        });
        let view = self.number(View { buffer: self.workspace, moves: [0; 4], of: place.buffer });
        Place { buffer: view, layout: Layout { offset: start as isize, strides: contiguous_strides(&dims), dims } }
    }

    /// The task's part of a sum.
    fn sum_view(&mut self, batch: isize, dims: &[usize], sum: &mut usize) -> Place {
        let of = self.sums[*sum].to.buffer;
        let moves = [batch, 0, self.sums_length as isize, 0];
        let view = self.number(View { buffer: self.workspace, moves, of });
        let offset = (self.sums_start() + self.sums[*sum].start) as isize;
        *sum += 1;
        Place { buffer: view, layout: Layout { offset, dims: dims.to_vec(), strides: contiguous_strides(dims) } }
    }

    /// Where the sums begin in the workspace.
    fn sums_start(&self) -> usize {
        self.slots * self.slot_length
    }

    fn number(&mut self, view: View) -> usize {
        self.views.iter().position(|other| *other == view).unwrap_or_else(|| {
            self.views.push(view);
            self.views.len() - 1
        })
    }
}

/// Whether an operand is one matrix for all blocks whose rows are not contiguous: each product would arrange it again.
fn is_turned(walk: &Walk) -> bool {
    let one = [walk.batch, walk.point] == [0, 0] && walk.before.is_empty();
    one && walk.after.iter().all(|axis| axis.0 > 1) && walk.after[1].1 != 1
}

/// The last two axes.
fn matrix_of(layout: &Layout) -> Layout {
    let first = layout.dims.len() - 2;
    Layout { offset: layout.offset, dims: layout.dims[first..].to_vec(), strides: layout.strides[first..].to_vec() }
}

/// The layout of a block in a loop: what lies before the points, the points, what lies behind them.
fn along_points(walk: &Walk, rows: usize) -> Layout {
    let axes: Vec<(usize, isize)> = [&walk.before[..], &[(rows, walk.point)], &walk.after[..]].concat();
    let (dims, strides) = axes.into_iter().unzip();
    Layout { offset: walk.offset, dims, strides }
}

/// The layout of a block in a product, with the points along an axis of the matrices.
fn matrices(walk: &Walk, along: Option<usize>, rows: usize) -> Layout {
    let mut axes = walk.after.clone();
    if let Some(along) = along {
        axes.insert(along, (rows, walk.point));
    }
    let (dims, strides) = walk.before.iter().copied().chain(axes).unzip();
    Layout { offset: walk.offset, dims, strides }
}
