//! Place: a buffer and a layout for every stored value. A state is updated in place if no other reader needs its old value.

use super::assemble::Assembled;
use super::fuse::{Fused, Unit};
use super::plan::{Buffer, Place, Role};
use crate::device::DeviceError;
use crate::graph::NodeId;
use crate::limits::poll;
use crate::ops::Op;
use crate::shape::{Layout, Shape};
use std::collections::HashMap;

pub(crate) struct Placed {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) places: HashMap<NodeId, Place>,
    /// `(from, to)`: new values of states that are not updated in place, copied after all other steps.
    pub(crate) late_copies: Vec<(Place, Place)>,
}

impl Placed {
    /// The place of a stored value, or of a view of one.
    pub(crate) fn address(&self, graph: &Assembled, node: NodeId) -> Place {
        let base = &self.places[&graph.base(node)];
        let layout = graph.layout_of(node, &base.layout).expect("the assembler copied what strides cannot express");
        Place { buffer: base.buffer, layout }
    }

    fn add(&mut self, name: Option<&str>, role: Role, shape: &Shape) -> Place {
        let length = shape.count();
        self.buffers.push(Buffer { name: name.map(str::to_owned), role, length, offset: 0 });
        Place { buffer: self.buffers.len() - 1, layout: Layout::contiguous(shape) }
    }
}

/// Bits of the f32 that is nearest to a constant.
fn single(bits: u64) -> u32 {
    (f64::from_bits(bits) as f32).to_bits()
}

pub(crate) fn place(graph: &Assembled, fused: &mut Fused) -> Result<Placed, DeviceError> {
    let mut placed = Placed { buffers: Vec::new(), places: HashMap::new(), late_copies: Vec::new() };
    for (id, node) in graph.nodes.iter().enumerate() {
        let (name, role) = match &node.op {
            Op::Input { name } => (Some(name), Role::Input),
            Op::State { name } => (Some(name), Role::State),
            Op::IndexInput { name } => (Some(name), Role::IndexInput),
            Op::Constant { bits } => (None, Role::Constant(bits.iter().map(|&bits| single(bits)).collect())),
            Op::IndexTable { rows } => (None, Role::Constant(rows.clone())),
            _ => continue,
        };
        let place = placed.add(name.map(String::as_str), role, &node.shape);
        placed.places.insert(id, place);
    }
    for (name, node) in &graph.outputs {
        let place = placed.add(Some(name), Role::Output, &graph.nodes[*node].shape);
        placed.places.insert(*node, place);
    }
    let mut copies = Vec::new();
    for &(state, start, value) in &graph.assignments {
        poll()?;
        let home = &placed.places[&state];
        let shape = &graph.nodes[value].shape;
        let layout = Layout { offset: home.layout.offset + start as isize, ..Layout::contiguous(shape) };
        let target = Place { buffer: home.buffer, layout };
        if updates_in_place(graph, fused, state, value, &target.layout) {
            placed.places.insert(value, target);
        } else {
            copies.push((value, target));
        }
    }
    for (id, node) in graph.nodes.iter().enumerate() {
        let has_home = placed.places.contains_key(&id) || graph.claims.contains_key(&id);
        if fused.stored[id] && !node.op.has_parts() && !has_home {
            let place = placed.add(None, Role::Temporary, &node.shape);
            placed.places.insert(id, place);
        }
    }
    for (&piece, (whole, layout)) in &graph.claims {
        let buffer = placed.places[whole].buffer;
        placed.places.insert(piece, Place { buffer, layout: layout.clone() });
    }
    placed.late_copies = copies.into_iter().map(|(value, target)| (placed.places[&value].clone(), target)).collect();
    Ok(placed)
}

/// Whether a loop may overwrite a state: all other readers can run first, and the loop reads each element only where it
/// writes it. If so, the other readers are ordered before the loop.
fn updates_in_place(graph: &Assembled, fused: &mut Fused, state: NodeId, value: NodeId, target: &Layout) -> bool {
    let Some(&unit) = fused.unit_of.get(&value) else { return false };
    let Unit::Loop(group) = &fused.units[unit] else { return false };
    if graph.nodes[value].shape.0 != group.dims {
        return false;
    }
    let home = Layout::contiguous(&graph.nodes[state].shape);
    let mut readers = Vec::new();
    for (other, body) in fused.units.iter().enumerate() {
        for layout in reads_of(graph, fused, body, state, &home) {
            if !overlap(&layout, target) {
                continue;
            }
            if other != unit {
                readers.push(other);
            } else if layout != *target {
                return false;
            }
        }
    }
    if readers.iter().any(|&reader| fused.depends(reader, unit)) {
        return false;
    }
    fused.after[unit].extend(readers);
    true
}

fn overlap(first: &Layout, second: &Layout) -> bool {
    let range = |layout: &Layout| {
        let mut range = (layout.offset, layout.offset);
        for (&extent, &stride) in layout.dims.iter().zip(&layout.strides) {
            let reach = (extent as isize - 1) * stride;
            range = (range.0 + reach.min(0), range.1 + reach.max(0));
        }
        range
    };
    let (a, b) = (range(first), range(second));
    a.0 <= b.1 && b.0 <= a.1
}

/// Layouts with which a unit reads a leaf.
fn reads_of(graph: &Assembled, fused: &Fused, unit: &Unit, leaf: NodeId, home: &Layout) -> Vec<Layout> {
    let mut found = Vec::new();
    let mut stack: Vec<NodeId> = match unit {
        Unit::Operator(id) => graph.nodes[*id].operands.clone(),
        Unit::Loop(group) => group.roots.iter().flat_map(|(id, _)| graph.nodes[*id].operands.clone()).collect(),
    };
    while let Some(node) = stack.pop() {
        let base = graph.base(node);
        if base == leaf {
            found.extend(graph.layout_of(node, home));
        } else if !fused.stored[base] && matches!(graph.nodes[base].op, Op::Map(_)) {
            stack.extend(&graph.nodes[base].operands);
        }
    }
    found
}
