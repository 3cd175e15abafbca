//! Members: which steps may run block by block together, and how each of them walks over the points.

use super::axes::{Cuts, Order, Points, Walk, one_stride};
use super::{MOST_SUMS, SMALL};
use crate::compile::plan::{Buffer, Instruction, Level, Loop, Place, Role, Step};
use crate::shape::Layout;
use std::collections::{HashMap, HashSet};

/// The steps of a program, and who touches which buffer.
pub(super) struct Program<'a> {
    pub(super) steps: &'a [Step],
    pub(super) buffers: &'a [Buffer],
    /// Buffers that each step reads and writes.
    touched: Vec<(Vec<usize>, Vec<usize>)>,
    /// Number of steps that touch a buffer.
    pub(super) users: Vec<usize>,
}

impl<'a> Program<'a> {
    pub(super) fn new(steps: &'a [Step], buffers: &'a [Buffer]) -> Self {
        let touched: Vec<_> = steps.iter().map(Step::buffers).collect();
        let mut users = vec![0; buffers.len()];
        for (read, written) in &touched {
            let all: HashSet<usize> = read.iter().chain(written).copied().collect();
            all.into_iter().for_each(|buffer| users[buffer] += 1);
        }
        Program { steps, buffers, touched, users }
    }
}

/// What an access is to the points.
#[derive(Clone, Debug)]
pub(super) enum Access {
    /// Each point has its own elements.
    Rows(Walk),
    /// A sum over the points, of which block b begins this many elements behind block b − 1.
    Sum { batch: isize },
}

/// How a step is cut into blocks.
#[derive(Clone, Debug)]
pub(super) enum Form {
    Loop(Cuts),
    /// The axis of the points: rows, columns, or the inner one.
    Product(Matrix),
}

/// An axis of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matrix {
    Rows,
    Columns,
    Inner,
}

/// A step of a group.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) step: usize,
    pub(super) form: Form,
    /// The accesses of the step, in the order of [`touches`].
    pub(super) accesses: Vec<Access>,
}

/// A place that a step reads or writes.
pub(super) struct Touch<'a> {
    pub(super) place: &'a Place,
    pub(super) writes: bool,
}

/// The places of a loop (those of its instructions, then the results across rows) or of a product (left, right, result).
pub(super) fn touches(step: &Step) -> Option<Vec<Touch<'_>>> {
    let read = |place| Touch { place, writes: false };
    let write = |place| Touch { place, writes: true };
    match step {
        Step::Loop(body) => Some(instructed(body).chain(body.across.iter().map(|across| write(&across.to))).collect()),
        Step::MatMul { left, right, to, .. } => Some(vec![read(left), read(right), write(to)]),
        _ => None,
    }
}

/// The places of the instructions of a loop.
fn instructed(body: &Loop) -> impl Iterator<Item = Touch<'_>> {
    body.instructions.iter().filter_map(|instruction| match instruction {
        Instruction::Load { from, .. } => Some(Touch { place: from, writes: false }),
        Instruction::Store { to, .. } => Some(Touch { place: to, writes: true }),
        _ => None,
    })
}

/// A group while it grows.
pub(super) struct Draft {
    pub(super) points: Points,
    pub(super) members: Vec<Member>,
    /// Steps that run before the group.
    pub(super) ahead: Vec<usize>,
    /// The first step behind the group.
    pub(super) end: usize,
    /// Orders of the buffers that the group writes point by point.
    pub(super) orders: HashMap<usize, Order>,
    summed: HashSet<usize>,
    read: HashSet<usize>,
    /// Elements of all sums.
    sums: usize,
    /// Elements that a member writes and another reads.
    passed: usize,
}

impl Draft {
    /// The group that begins with a step.
    pub(super) fn grow(program: &Program<'_>, first: usize, points: Points) -> Draft {
        let mut draft = Draft {
            points,
            members: Vec::new(),
            ahead: Vec::new(),
            end: first,
            orders: HashMap::new(),
            summed: HashSet::new(),
            read: HashSet::new(),
            sums: 0,
            passed: 0,
        };
        let mut ahead = Vec::new();
        for step in first..program.steps.len() {
            if draft.join(program, step) {
                draft.ahead.append(&mut ahead);
                draft.end = step + 1;
            } else if !draft.members.is_empty() && draft.is_apart(program, step) {
                ahead.push(step);
            } else {
                break;
            }
        }
        draft
    }

    /// Whether a value stays in the cache. Products whose points are columns gain nothing by themselves.
    pub(super) fn is_worth_it(&self) -> bool {
        let by_rows = |member: &Member| matches!(member.form, Form::Product(Matrix::Rows | Matrix::Inner));
        self.passed > 0 && self.members.iter().any(by_rows)
    }

    /// What blocks save, to compare drafts.
    pub(super) fn gain(&self) -> (usize, usize) {
        (self.members.len(), self.passed)
    }

    /// Whether a step has nothing to do with the group and writes little, so that it may run before.
    fn is_apart(&self, program: &Program<'_>, step: usize) -> bool {
        let (read, written) = &program.touched[step];
        let written_here = |buffer: &usize| self.orders.contains_key(buffer) || self.summed.contains(buffer);
        let elements: usize = written.iter().map(|&buffer| program.buffers[buffer].length).sum();
        elements <= SMALL
            && !read.iter().any(written_here)
            && !written.iter().any(|buffer| written_here(buffer) || self.read.contains(buffer))
    }

    /// Makes a step the next member, if it can be one.
    fn join(&mut self, program: &Program<'_>, number: usize) -> bool {
        let step = &program.steps[number];
        let Some(member) = self.forms(step).into_iter().find_map(|form| self.member(program, number, form)) else {
            return false;
        };
        for (touch, access) in touches(step).expect("members are loops and products").iter().zip(&member.accesses) {
            let buffer = touch.place.buffer;
            match access {
                _ if !touch.writes => {
                    self.passed += self.orders.get(&buffer).map_or(0, |_| program.buffers[buffer].length);
                    self.read.insert(buffer);
                }
                Access::Rows(walk) => {
                    let order = || walk.order(program.buffers[buffer].length, self.points).expect("checked before");
                    self.orders.entry(buffer).or_insert_with(order);
                }
                Access::Sum { .. } => {
                    self.sums += touch.place.layout.dims.iter().product::<usize>();
                    self.summed.insert(buffer);
                }
            }
        }
        self.members.push(member);
        true
    }

    /// The ways in which a step may walk over the points, the most likely first.
    fn forms(&self, step: &Step) -> Vec<Form> {
        let Points { batch, points } = self.points;
        match step {
            Step::Loop(body) => {
                let named = (0..body.dims.len())
                    .filter(|&axis| body.dims[axis] == points)
                    .map(|axis| body.dims[..axis].iter().product::<usize>())
                    .filter(|before| before % batch == 0)
                    .map(|before| before / batch);
                let known = touches(step).into_iter().flatten();
                let known = known.filter_map(|touch| Some(self.orders.get(&touch.place.buffer)?.before));
                let mut all: Vec<usize> = Vec::new();
                named.chain(known).chain([1]).for_each(|before| {
                    if !all.contains(&before) {
                        all.push(before);
                    }
                });
                all.into_iter()
                    .filter_map(|before| Some(Form::Loop(Cuts::new(&body.dims, self.points, before)?)))
                    .collect()
            }
            Step::MatMul { .. } => [Matrix::Rows, Matrix::Columns, Matrix::Inner].map(Form::Product).into(),
            _ => Vec::new(),
        }
    }

    /// A step as a member with this form.
    fn member(&self, program: &Program<'_>, number: usize, form: Form) -> Option<Member> {
        let step = &program.steps[number];
        let accesses = match (&form, step) {
            (Form::Loop(cuts), Step::Loop(body)) => self.loop_accesses(body, cuts)?,
            (Form::Product(axis), Step::MatMul { left, right, to, .. }) => {
                self.product_accesses(*axis, [left, right, to])?
            }
            _ => return None,
        };
        let touches = touches(step)?;
        let mut written: Vec<(usize, Order)> = Vec::new();
        for (touch, access) in touches.iter().zip(&accesses) {
            let buffer = touch.place.buffer;
            let known = self.orders.get(&buffer).or(written.iter().find(|(other, _)| *other == buffer).map(|(_, o)| o));
            let other_role = touches.iter().any(|other| other.place.buffer == buffer && other.writes != touch.writes);
            let fits = match access {
                _ if other_role => false, // what is updated in place keeps its loop
                _ if !touch.writes && self.summed.contains(&buffer) => false,
                Access::Rows(walk) => match known {
                    Some(order) => walk.stays(*order, self.points),
                    None if !touch.writes => true,
                    None => {
                        let order = walk.order(program.buffers[buffer].length, self.points);
                        written.extend(order.map(|order| (buffer, order)));
                        order.is_some() && !self.read.contains(&buffer) && !self.summed.contains(&buffer)
                    }
                },
                Access::Sum { .. } => known.is_none() && !self.read.contains(&buffer),
            };
            if !fits {
                return None;
            }
        }
        Some(Member { step: number, form, accesses })
    }

    fn loop_accesses(&self, body: &Loop, cuts: &Cuts) -> Option<Vec<Access>> {
        let columns = *body.dims.last()?;
        // Numbers per row exist where a row belongs to one point.
        let whole_rows = cuts.after().is_multiple_of(columns);
        let has_rows = body.levels.contains(&Level::Row) || !body.across.is_empty();
        let reduces = body.instructions.iter().any(|instruction| matches!(instruction, Instruction::ReduceRow { .. }));
        if !whole_rows && (has_rows || reduces) {
            return None;
        }
        let mut accesses = Vec::new();
        for touch in instructed(body) {
            accesses.push(Access::Rows(cuts.walk(&touch.place.layout)?));
        }
        for across in &body.across {
            accesses.push(self.across(body, cuts, &across.to)?);
        }
        Some(accesses)
    }

    /// A reduction across rows: of the rows of each point, or over points.
    fn across(&self, body: &Loop, cuts: &Cuts, to: &Place) -> Option<Access> {
        let Points { batch, points } = self.points;
        let [outer, reduced, inner] = body.split;
        let columns = *body.dims.last()?;
        let rows_of_point = cuts.after() / columns;
        let before = cuts.before();
        let own = to.layout.dims[1] * to.layout.dims[2]; // elements of one outer index
        if outer % (batch * points) == 0 && before == 1 {
            let result = [outer, to.layout.dims[1], to.layout.dims[2]];
            let walk = Cuts::new(&result, self.points, 1)?.walk(&to.layout)?;
            return Some(Access::Rows(walk));
        }
        let whole = rows_of_point.is_multiple_of(inner);
        let per_sample = |outer: usize| outer == batch * before && reduced * inner == points * rows_of_point;
        let all = outer == 1;
        let sample = outer == batch && reduced * inner == before * points * rows_of_point;
        let fits =
            whole && (all || per_sample(outer) || sample) && outer * own <= MOST_SUMS / 4 && to.layout.is_contiguous();
        let batch_step = if all { 0 } else { (outer / batch * own) as isize };
        (fits && self.sums + outer * own <= MOST_SUMS).then_some(Access::Sum { batch: batch_step })
    }

    /// The walks of left, right and result of a product whose points are along `axis`.
    fn product_accesses(&self, axis: Matrix, places: [&Place; 3]) -> Option<Vec<Access>> {
        let rank = places[2].layout.dims.len();
        let dims = &places[2].layout.dims;
        let extent = match axis {
            Matrix::Rows => dims[rank - 2],
            Matrix::Columns => dims[rank - 1],
            Matrix::Inner => places[0].layout.dims[rank - 1],
        };
        let mut accesses = Vec::new();
        for (place, position) in places.iter().zip(axis.positions()) {
            let along = position.map(|position| rank - 2 + position);
            accesses.push(Access::Rows(self.product_walk(&place.layout, along, extent)?));
        }
        if axis == Matrix::Inner {
            let elements: usize = dims.iter().product();
            if self.sums + elements > MOST_SUMS {
                return None;
            }
            let per_sample = if extent == self.points.points { elements / self.points.batch } else { 0 };
            accesses[2] = Access::Sum { batch: per_sample as isize };
        }
        Some(accesses)
    }

    /// `along`: the axis of the points, if this matrix has them.
    fn product_walk(&self, layout: &Layout, along: Option<usize>, extent: usize) -> Option<Walk> {
        let Points { batch, points } = self.points;
        let matrices = layout.dims.len() - 2;
        let count: usize = layout.dims[..matrices].iter().product();
        let axes = |from: usize, to: usize| (from..to).map(|axis| (layout.dims[axis], layout.strides[axis]));
        let after = axes(matrices, matrices + 2).enumerate().filter(|(at, _)| along != Some(matrices + at));
        let after: Vec<_> = after.map(|(_, axis)| axis).collect();
        let along = along.map_or(0, |axis| layout.strides[axis]);
        if extent == batch * points && count == 1 {
            let before = axes(0, matrices).map(|(extent, _)| (extent, 0)).collect();
            return Some(Walk { offset: layout.offset, batch: along * points as isize, point: along, before, after });
        }
        if extent != points || !count.is_multiple_of(batch) {
            return None;
        }
        // The first axes of the stack of matrices are samples.
        let (mut samples, mut rest) = (Vec::new(), batch);
        let mut before: Vec<(usize, isize)> = Vec::new();
        for (extent, stride) in axes(0, matrices) {
            if rest == 1 {
                before.push((extent, stride));
            } else if rest % extent == 0 {
                samples.push((extent, stride));
                rest /= extent;
            } else if extent % rest == 0 {
                samples.push((rest, stride * (extent / rest) as isize));
                before.push((extent / rest, stride));
                rest = 1;
            } else {
                return None;
            }
        }
        Some(Walk { offset: layout.offset, batch: one_stride(&samples)?, point: along, before, after })
    }
}

impl Matrix {
    /// The axis of the points in left, right and result: 0 for rows, 1 for columns.
    pub(super) fn positions(self) -> [Option<usize>; 3] {
        match self {
            Matrix::Rows => [Some(0), None, Some(0)],
            Matrix::Columns => [None, Some(1), Some(1)],
            Matrix::Inner => [Some(1), Some(0), None],
        }
    }
}

/// Whether a buffer is only of use between members of a group.
pub(super) fn is_local(program: &Program<'_>, draft: &Draft, buffer: usize) -> bool {
    let touched_here = |member: &&Member| {
        let (read, written) = &program.touched[member.step];
        read.contains(&buffer) || written.contains(&buffer)
    };
    let here = draft.members.iter().filter(touched_here).count();
    program.buffers[buffer].role == Role::Temporary
        && draft.orders.contains_key(&buffer)
        && here == program.users[buffer]
}
