//! Loops: the instructions of a fused group.

use super::assemble::Assembled;
use super::fuse::{Fused, Group, Root, is_row_expansion};
use super::place::Placed;
use super::plan::{Across, Instruction, Level, Loop, Operand, Place, Register};
use crate::graph::NodeId;
use crate::ops::{Map, Op};
use crate::shape::Layout;
use std::collections::{HashMap, HashSet};

/// Writes the loop of one group.
pub(crate) fn write_loop(graph: &Assembled, fused: &Fused, placed: &Placed, group: &Group) -> Loop {
    let mut dims = group.dims.clone();
    if dims.is_empty() {
        dims.push(1);
    }
    let rows = dims[..dims.len() - 1].iter().product();
    let body = Loop {
        split: group.split.unwrap_or([1, rows, 1]),
        dims,
        levels: Vec::new(),
        instructions: Vec::new(),
        across: Vec::new(),
    };
    let mut writer = Writer { graph, fused, placed, group, body, known: HashMap::new() };
    for &(root, kind) in &group.roots {
        writer.root(root, kind);
    }
    let mut body = writer.body;
    store_last(&mut body);
    coalesce(&mut body);
    body
}

/// Moves stores into buffers that the loop also reads behind all reads: these see the buffer as it was before.
fn store_last(body: &mut Loop) {
    let read: HashSet<usize> = body
        .instructions
        .iter()
        .filter_map(|instruction| match instruction {
            Instruction::Load { from, .. } => Some(from.buffer),
            _ => None,
        })
        .collect();
    body.instructions // the sort is stable
        .sort_by_key(|instruction| matches!(instruction, Instruction::Store { to, .. } if read.contains(&to.buffer)));
}

/// A loop that copies one place to another.
pub(crate) fn write_copy(from: Place, to: Place) -> Loop {
    let mut dims = from.layout.dims.clone();
    if dims.is_empty() {
        dims.push(1);
    }
    let widened = |place: Place| Place { layout: widen(place.layout, dims.len()), ..place };
    let rows = dims[..dims.len() - 1].iter().product();
    let instructions = vec![
        Instruction::Load { from: widened(from), to: 0 },
        Instruction::Store { operand: Operand::Register(0), to: widened(to) },
    ];
    let levels = vec![Level::Element];
    let mut body = Loop { split: [1, rows, 1], dims, levels, instructions, across: Vec::new() };
    coalesce(&mut body);
    body
}

fn widen(mut layout: Layout, rank: usize) -> Layout {
    while layout.dims.len() < rank {
        layout.dims.insert(0, 1);
        layout.strides.insert(0, 0);
    }
    layout
}

struct Writer<'a> {
    graph: &'a Assembled,
    fused: &'a Fused,
    placed: &'a Placed,
    group: &'a Group,
    body: Loop,
    known: HashMap<NodeId, Operand>,
}

impl Writer<'_> {
    fn root(&mut self, id: NodeId, kind: Root) {
        let node = &self.graph.nodes[id];
        let operand = match (&node.op, kind) {
            (Op::Reduce { kind: reduction, end, .. }, Root::Across) => {
                let operand = self.value(node.operands[0]);
                let whole_rows = *end == self.body.dims.len();
                let [outer, _, inner] = self.body.split;
                let columns = self.body.dims[self.body.dims.len() - 1];
                let result = if whole_rows { [outer, 1, 1] } else { [outer, inner, columns] };
                let place = self.placed.address(self.graph, id);
                let layout =
                    place.layout.reshaped(&result).expect("the assembler gives reductions a contiguous layout");
                self.body.across.push(Across { kind: *reduction, whole_rows, to: Place { layout, ..place } });
                let across = self.body.across.len() - 1;
                self.body.instructions.push(Instruction::Accumulate { operand, across });
                return;
            }
            (Op::Reduce { kind: reduction, .. }, _) => {
                let operand = self.value(node.operands[0]);
                let to = self.register(Level::Row);
                self.body.instructions.push(Instruction::ReduceRow { kind: *reduction, operand, to });
                Operand::Register(to)
            }
            (Op::Map(map), _) => self.map(*map, &node.operands),
            (op, _) => unreachable!("{op:?} is no root of a loop"),
        };
        self.known.insert(id, operand);
        if self.is_read_outside(id) {
            let to = self.address(id);
            self.body.instructions.push(Instruction::Store { operand, to });
        }
    }

    /// Whether something outside this loop reads a root. The sum of a row that only this loop uses needs no memory.
    fn is_read_outside(&self, id: NodeId) -> bool {
        let delivered = self.graph.outputs.iter().any(|(_, node)| *node == id)
            || self.graph.assignments.iter().any(|(_, _, value)| *value == id)
            || self.graph.claims.contains_key(&id);
        let here = self.fused.unit_of[&id];
        let mut stack = vec![id];
        let mut outside = delivered;
        while let Some(node) = stack.pop() {
            for &user in &self.graph.users[node] {
                match self.fused.unit_of.get(&user) {
                    Some(&unit) => outside |= unit != here,
                    None => stack.push(user), // a view, or a map that is computed where it is used
                }
            }
        }
        outside
    }

    /// The place of a node, with the extents of this loop.
    fn address(&self, id: NodeId) -> Place {
        let place = self.placed.address(self.graph, id);
        let layout = widen(place.layout, self.body.dims.len());
        // An axis of extent 1 has stride 0 in the loop.
        Place { layout: layout.expanded(&self.body.dims), ..place }
    }

    fn register(&mut self, level: Level) -> Register {
        self.body.levels.push(level);
        self.body.levels.len() - 1
    }

    fn value(&mut self, id: NodeId) -> Operand {
        if let Some(&operand) = self.known.get(&id) {
            return operand;
        }
        let base = self.graph.base(id);
        let node = &self.graph.nodes[base];
        let own_row = base != id && is_row_expansion(self.graph, id) && self.graph.nodes[id].operands[0] == base;
        let operand = match &node.op {
            Op::Fill { bits } => Operand::Number(f64::from_bits(*bits) as f32),
            _ if own_row && self.is_own(base) => self.value(base),
            _ if self.fused.stored[base] => self.load(id),
            Op::Map(map) => self.map(*map, &node.operands),
            op => unreachable!("{op:?} is neither stored nor computed in place"),
        };
        self.known.insert(id, operand);
        operand
    }

    /// Whether this loop computes a node, as a root or where it is used.
    fn is_own(&self, id: NodeId) -> bool {
        !self.fused.stored[id] || self.group.roots.iter().any(|(root, kind)| *root == id && *kind != Root::Across)
    }

    fn load(&mut self, id: NodeId) -> Operand {
        let from = self.address(id);
        let columns = self.body.dims.len() - 1;
        let per_row = from.layout.strides[columns] == 0 && self.body.dims[columns] != 1;
        let to = self.register(if per_row { Level::Row } else { Level::Element });
        self.body.instructions.push(Instruction::Load { from, to });
        Operand::Register(to)
    }

    fn map(&mut self, map: Map, nodes: &[NodeId]) -> Operand {
        let mut operands = [Operand::Number(0.0); 3];
        for (operand, &node) in operands.iter_mut().zip(nodes) {
            *operand = self.value(node);
        }
        if map == Map::Copy {
            return operands[0];
        }
        let level = operands.iter().filter_map(|operand| match operand {
            Operand::Register(register) => Some(self.body.levels[*register]),
            Operand::Number(_) => None,
        });
        let to = match level.max() {
            Some(level) => self.register(level),
            None => {
                let [a, b, c] = operands.map(|operand| match operand {
                    Operand::Number(number) => f64::from(number),
                    Operand::Register(_) => unreachable!("no operand has a level"),
                });
                return Operand::Number(map.evaluate(a, b, c) as f32);
            }
        };
        self.body.instructions.push(Instruction::Map { map, operands, to });
        Operand::Register(to)
    }
}

/// Merges neighbouring axes that have one common stride in every access, so that rows are long and addresses simple.
pub(super) fn coalesce(body: &mut Loop) {
    let mut axis = body.dims.len() - 1;
    while axis > 0 {
        if may_merge(body, axis) {
            merge(body, axis);
        }
        axis -= 1;
    }
}

fn accesses(body: &mut Loop) -> impl Iterator<Item = &mut Layout> {
    body.instructions.iter_mut().filter_map(|instruction| match instruction {
        Instruction::Load { from: place, .. } | Instruction::Store { to: place, .. } => Some(&mut place.layout),
        _ => None,
    })
}

/// Whether `axis − 1` and `axis` may become one.
fn may_merge(body: &mut Loop, axis: usize) -> bool {
    let dims = body.dims.clone();
    let last = dims.len() - 1;
    // A row must stay a row if it is reduced, or if an operand has one number per row.
    let has_rows = body.levels.contains(&Level::Row) || !body.across.is_empty();
    if axis == last && has_rows {
        return false;
    }
    let extent = dims[axis] as isize;
    accesses(body)
        .all(|layout| dims[axis - 1] == 1 || extent == 1 || layout.strides[axis - 1] == layout.strides[axis] * extent)
}

fn merge(body: &mut Loop, axis: usize) {
    let (outer, inner) = (body.dims[axis - 1], body.dims[axis]);
    let last = axis == body.dims.len() - 1;
    body.dims[axis - 1] = outer * inner;
    body.dims.remove(axis);
    for layout in accesses(body) {
        let stride = if inner == 1 { layout.strides[axis - 1] } else { layout.strides[axis] };
        layout.strides.remove(axis);
        layout.dims.remove(axis);
        layout.dims[axis - 1] = outer * inner;
        layout.strides[axis - 1] = stride;
    }
    if last {
        let rows = body.dims[..body.dims.len() - 1].iter().product();
        body.split = [1, rows, 1];
    }
}
