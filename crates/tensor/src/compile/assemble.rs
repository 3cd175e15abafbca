//! Assemble: every value gets a base, memory of its own or a part of a concatenation, that strides can address.
//!
//! A copy is inserted below a reshape that strides cannot express. A concatenation claims its pieces: the kernel that
//! computes a piece writes it directly into the whole. A piece that cannot be claimed is copied.
//!
//! A large parameter in another order of axes is copied, too. Where memory is scarcer than time, the backward pass copies it
//! again ([`Assembler::remake`]), so that the copy of the forward pass does not wait for it in memory.

use super::simplify::Simple;
use crate::device::DeviceError;
use crate::graph::{Node, NodeId};
use crate::limits::{poll, poll_at};
use crate::ops::{Map, Op};
use crate::shape::{Layout, Span};
use std::collections::{HashMap, HashSet};

/// A graph in which strides can express every view, and every output and assignment has a node of its own.
pub(crate) struct Assembled {
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: Vec<(String, NodeId)>,
    /// `(state, first element, value after the step)`
    pub(crate) assignments: Vec<(NodeId, usize, NodeId)>,
    /// Users of each node, without repeats.
    pub(crate) users: Vec<Vec<NodeId>>,
    /// `piece → (concatenation, layout of the piece inside it)`
    pub(crate) claims: HashMap<NodeId, (NodeId, Layout)>,
}

impl Assembled {
    /// The node below all views.
    pub(crate) fn base(&self, node: NodeId) -> NodeId {
        base(&self.nodes, node)
    }

    /// Layout of a node, from the layout of its base through all views; `None` if strides cannot express it.
    pub(crate) fn layout_of(&self, node: NodeId, base_layout: &Layout) -> Option<Layout> {
        let views: Vec<NodeId> = std::iter::successors(Some(node), |&id| self.nodes[id].operands.first().copied())
            .take_while(|&id| self.nodes[id].op.is_view())
            .collect();
        let mut layout = base_layout.clone();
        for Node { op, shape, .. } in views.into_iter().rev().map(|id| &self.nodes[id]) {
            layout = apply(op, &shape.0, &layout)?;
        }
        Some(layout)
    }
}

fn base(nodes: &[Node], mut node: NodeId) -> NodeId {
    while nodes[node].op.is_view() {
        node = nodes[node].operands[0];
    }
    node
}

fn apply(view: &Op, dims: &[usize], layout: &Layout) -> Option<Layout> {
    match view {
        Op::Reshape => layout.reshaped(dims),
        Op::Permute { order } => Some(layout.permuted(order)),
        Op::Expand => Some(layout.expanded(dims)),
        Op::Slice { spans } => Some(layout.sliced(spans)),
        Op::Detach | Op::Softmaxed => Some(layout.clone()),
        _ => unreachable!("{view:?} is no view"),
    }
}

/// The layout that the base must have so that `node`, a chain of reshapes and permutations of it, has `layout`.
fn invert(nodes: &[Node], mut node: NodeId, layout: &Layout) -> Option<Layout> {
    let mut layout = layout.clone();
    loop {
        let Node { op, operands, .. } = &nodes[node];
        layout = match op {
            Op::Reshape => layout.reshaped(&nodes[operands[0]].shape.0)?,
            Op::Permute { order } => {
                let mut inverse = vec![0; order.len()];
                order.iter().enumerate().for_each(|(position, &axis)| inverse[axis] = position);
                layout.permuted(&inverse)
            }
            op if op.is_view() => return None,
            _ => return Some(layout),
        };
        node = operands[0];
    }
}

/// Elements from which a copy of a state is made again where it is used much later.
const WORTH_REMAKING: usize = 1 << 22;
/// A user is much later if this share of all operators lies between it and the first user.
const MUCH_LATER: usize = 8;

/// `remake`: see [`DeviceTraits`](super::DeviceTraits).
pub(crate) fn assemble(simple: Simple, remake: bool) -> Result<Assembled, DeviceError> {
    let mut assembler =
        Assembler { nodes: Vec::new(), layouts: Vec::new(), readable: HashMap::new(), copies: HashMap::new() };
    let mut renamed = Vec::with_capacity(simple.nodes.len());
    for (id, node) in simple.nodes.into_iter().enumerate() {
        poll_at(id)?;
        let operands = node.operands.iter().map(|&operand| renamed[operand]).collect();
        renamed.push(assembler.add(Node { operands, ..node }));
    }
    let mut delivered = HashSet::new();
    let mut deliver = |assembler: &mut Assembler, node: NodeId| {
        let own = matches!(assembler.nodes[node].op, Op::Map(_) | Op::Reduce { .. } | Op::MatMul { .. });
        let node = if own && !delivered.contains(&node) { node } else { assembler.copy(node) };
        delivered.insert(node);
        node
    };
    let outputs = simple
        .outputs
        .into_iter()
        .map(|(name, node)| (name, deliver(&mut assembler, renamed[node])))
        .collect::<Vec<_>>();
    let assignments = simple
        .assignments
        .into_iter()
        .map(|(state, start, value)| (renamed[state], start, deliver(&mut assembler, renamed[value])))
        .collect::<Vec<_>>();
    if remake {
        assembler.remake(&delivered)?;
    }
    let claims = assembler.claim_pieces(&delivered)?;
    let (nodes, renamed) = in_order(&assembler.nodes);
    let mut users = vec![Vec::new(); nodes.len()];
    for (id, node) in nodes.iter().enumerate() {
        for &operand in &node.operands {
            if users[operand].last() != Some(&id) {
                users[operand].push(id);
            }
        }
    }
    Ok(Assembled {
        users,
        outputs: outputs.into_iter().map(|(name, node)| (name, renamed[node])).collect(),
        assignments: assignments.into_iter().map(|(s, start, v)| (renamed[s], start, renamed[v])).collect(),
        claims: claims.into_iter().map(|(p, (whole, layout))| (renamed[p], (renamed[whole], layout))).collect(),
        nodes,
    })
}

/// Copies were appended after their users: this puts operands before users again and keeps the order otherwise.
fn in_order(nodes: &[Node]) -> (Vec<Node>, Vec<NodeId>) {
    fn visit(id: NodeId, nodes: &[Node], renamed: &mut [NodeId], ordered: &mut Vec<Node>) {
        if renamed[id] != usize::MAX {
            return;
        }
        for &operand in &nodes[id].operands {
            visit(operand, nodes, renamed, ordered);
        }
        let operands = nodes[id].operands.iter().map(|&operand| renamed[operand]).collect();
        renamed[id] = ordered.len();
        ordered.push(Node { operands, ..nodes[id].clone() });
    }
    let mut renamed = vec![usize::MAX; nodes.len()];
    let mut ordered = Vec::with_capacity(nodes.len());
    for id in 0..nodes.len() {
        visit(id, nodes, &mut renamed, &mut ordered);
    }
    (ordered, renamed)
}

struct Assembler {
    nodes: Vec<Node>,
    /// Layout of each node if its base is contiguous; `None` for a reshape that strides cannot express. Only a
    /// concatenation may read such a node, because it can choose another layout for the base.
    layouts: Vec<Option<Layout>>,
    /// The same reshape of a copy, for each node without a layout that is read.
    readable: HashMap<NodeId, NodeId>,
    /// The copy of a node that its readers share.
    copies: HashMap<NodeId, NodeId>,
}

impl Assembler {
    fn add(&mut self, mut node: Node) -> NodeId {
        let in_loops = matches!(node.op, Op::Map(_) | Op::Reduce { .. }) || node.op.is_view();
        if !matches!(node.op, Op::Concatenate { .. }) {
            node.operands = node.operands.iter().map(|&operand| self.readable(operand)).collect();
        }
        if !in_loops {
            node.operands = node.operands.iter().map(|&operand| self.in_memory(operand)).collect();
        }
        let layout = match self.layouts.get(node.operands.first().copied().unwrap_or(usize::MAX)) {
            Some(below) if node.op.is_view() => {
                apply(&node.op, &node.shape.0, below.as_ref().expect("readable operands have a layout"))
            }
            _ => Some(Layout::contiguous(&node.shape)),
        };
        self.nodes.push(node);
        self.layouts.push(layout);
        self.nodes.len() - 1
    }

    /// The node itself, or the same reshape of a copy of its operand.
    fn readable(&mut self, node: NodeId) -> NodeId {
        if self.layouts[node].is_some() {
            return node;
        }
        if let Some(&known) = self.readable.get(&node) {
            return known;
        }
        let copy = self.shared_copy(self.nodes[node].operands[0]);
        let reshaped = self.add(Node { operands: vec![copy], ..self.nodes[node].clone() });
        self.readable.insert(node, reshaped);
        reshaped
    }

    /// A constant number exists in loops only; other kernels need a copy of it in memory. Each has its own: one for all would be
    /// written before the first of them, and where they are concatenations, the memory of all of these would be taken from then on.
    fn in_memory(&mut self, node: NodeId) -> NodeId {
        let is_number = matches!(self.nodes[base(&self.nodes, node)].op, Op::Fill { .. });
        if is_number { self.copy(node) } else { node }
    }

    fn shared_copy(&mut self, operand: NodeId) -> NodeId {
        if let Some(&known) = self.copies.get(&operand) {
            return known;
        }
        let copy = self.copy(operand);
        self.copies.insert(operand, copy);
        copy
    }

    fn copy(&mut self, operand: NodeId) -> NodeId {
        let shape = self.nodes[operand].shape.clone();
        self.add(Node { op: Op::Map(Map::Copy), operands: vec![operand], shape })
    }

    /// Gives users that come much later a copy of their own of a large rearranged state. States change after all other work, so
    /// that both copies are equal.
    fn remake(&mut self, delivered: &HashSet<NodeId>) -> Result<(), DeviceError> {
        let (count, gap) = (self.nodes.len(), self.nodes.len() / MUCH_LATER);
        let large: Vec<NodeId> = (0..count)
            .filter(|&id| self.nodes[id].shape.count() >= WORTH_REMAKING && !delivered.contains(&id))
            .filter(|&id| !self.nodes[id].op.is_view() && self.rearranges_states(id))
            .collect();
        for copied in large {
            poll()?;
            let users: Vec<NodeId> = (0..count)
                .filter(|&id| !self.nodes[id].op.is_view())
                .filter(|&id| self.nodes[id].operands.iter().any(|&operand| base(&self.nodes, operand) == copied))
                .collect();
            let later = users.iter().filter(|&&user| user > users[0] + gap);
            for &user in later {
                let operands = self.nodes[user].operands.clone();
                let again = operands.into_iter().map(|operand| match base(&self.nodes, operand) == copied {
                    true => self.again(operand),
                    false => operand,
                });
                self.nodes[user].operands = again.collect();
            }
        }
        Ok(())
    }

    /// Whether a node is a copy or a concatenation of parts of states, and of copies and concatenations of them.
    fn rearranges_states(&self, node: NodeId) -> bool {
        let Node { op, operands, .. } = &self.nodes[node];
        let of_states = |&operand: &NodeId| {
            let below = base(&self.nodes, operand);
            matches!(self.nodes[below].op, Op::State { .. }) || self.rearranges_states(below)
        };
        matches!(op, Op::Map(Map::Copy) | Op::Concatenate { .. }) && operands.iter().all(of_states)
    }

    /// The same node, computed again from the states.
    fn again(&mut self, node: NodeId) -> NodeId {
        let Node { op, operands, shape } = self.nodes[node].clone();
        if matches!(op, Op::State { .. }) {
            return node;
        }
        let operands = operands.into_iter().map(|operand| self.again(operand)).collect();
        self.nodes.push(Node { op, operands, shape });
        self.layouts.push(self.layouts[node].clone());
        self.nodes.len() - 1
    }

    fn claim_pieces(&mut self, delivered: &HashSet<NodeId>) -> Result<HashMap<NodeId, (NodeId, Layout)>, DeviceError> {
        let mut claims = HashMap::new();
        let wholes: Vec<NodeId> =
            (0..self.nodes.len()).filter(|&id| matches!(self.nodes[id].op, Op::Concatenate { .. })).collect();
        for whole in wholes {
            let Op::Concatenate { axis } = self.nodes[whole].op else { unreachable!("filtered above") };
            let dims = self.nodes[whole].shape.0.clone();
            let mut start = 0;
            for position in 0..self.nodes[whole].operands.len() {
                poll()?;
                let piece = self.nodes[whole].operands[position];
                let length = self.nodes[piece].shape.0[axis];
                let mut spans: Vec<_> = dims.iter().map(|&extent| Span::all(extent)).collect();
                spans[axis] = Span::range(start, start + length);
                start += length;
                let place = Layout::contiguous(&self.nodes[whole].shape).sliced(&spans);
                let home = base(&self.nodes, piece);
                let claimed = match invert(&self.nodes, piece, &place) {
                    Some(layout) if self.may_move(home, &layout, delivered) && !claims.contains_key(&home) => {
                        (home, layout)
                    }
                    _ => {
                        let copy = self.copy(piece);
                        self.nodes[whole].operands[position] = copy;
                        (copy, place)
                    }
                };
                claims.insert(claimed.0, (whole, claimed.1));
            }
        }
        Ok(claims)
    }

    /// Whether a value may have a strided layout: a kernel computes it, it is no output, and strides can express all its views.
    fn may_move(&self, home: NodeId, layout: &Layout, delivered: &HashSet<NodeId>) -> bool {
        let computed = matches!(
            self.nodes[home].op,
            Op::Map(_)
                | Op::Reduce { .. }
                | Op::MatMul { .. }
                | Op::Part { .. }
                | Op::Collect(_)
                | Op::Spread(_)
                | Op::Convolution(_)
                | Op::ConvolutionInputGradient(_)
                | Op::ConvolutionWeightGradient(_)
        );
        // A reduction writes its result contiguously.
        let fits = !matches!(self.nodes[home].op, Op::Reduce { .. }) || layout.is_contiguous();
        if !computed || !fits || delivered.contains(&home) {
            return false;
        }
        let mut layouts: HashMap<NodeId, Layout> = HashMap::from([(home, layout.clone())]);
        for id in home + 1..self.nodes.len() {
            let node = &self.nodes[id];
            if !node.op.is_view() {
                continue;
            }
            if let Some(below) = layouts.get(&node.operands[0]) {
                match apply(&node.op, &node.shape.0, below) {
                    Some(layout) => layouts.insert(id, layout),
                    None => return false,
                };
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::compile::{DeviceTraits, Options, compile};
    use crate::cpu::{Cpu, TRAITS};
    use crate::program::Backend;
    use crate::{Graph, PARAMETERS, Program, Tensor};

    /// A step with two weights whose matrices lie across memory, one after the other.
    fn step(graph: &Graph) {
        let halves = ["first", "second"].map(|name| graph.parameter(name, [32, 32, 2100]).permute(&[2, 0, 1]));
        let weight = Tensor::concatenate(&halves, 0); // [4200, 32, 32]
        let mut field = graph.parameter("field", [4200, 2, 32]).matmul(weight);
        for _ in 0..20 {
            field = field.slice(0, 0, field.dims::<3>()[0] - 7).tanh().flip(0);
        }
        let rows = field.shape().count() / 32;
        let wide = field.reshape([rows, 32]).matmul(graph.parameter("wide", [32, 800])).tanh(); // fills the memory
        let slope = graph.gradient(wide.sum_all(), &[graph.parameters()])[0].expect("the loss depends on them");
        graph.assign(graph.parameters(), graph.parameters() - slope * 0.1);
    }

    #[test]
    fn a_large_rearranged_parameter_is_made_again_for_late_users_with_less_memory_and_the_same_bits() {
        let run = |remake: bool| {
            let graph = Graph::new();
            step(&graph);
            let plan = compile(&graph, Options::default(), DeviceTraits { remake, ..TRAITS }).unwrap();
            let (arena, steps) = (plan.arena, plan.steps.len());
            let mut program = Program::new(&graph, Backend::Cpu(Cpu::new(plan).unwrap()));
            let wave = |count: usize| (0..count).map(|i| (0.37 * i as f32).sin()).collect::<Vec<f32>>();
            program.write(PARAMETERS, &wave(4200 * 32 * (32 + 2) + 32 * 800));
            program.run();
            (arena, steps, program.read(PARAMETERS).to_vec())
        };
        let ((kept, fewer, expected), (remade, more, found)) = (run(false), run(true));
        assert!(remade < kept && more > fewer, "{remade} of {kept} numbers, {more} and {fewer} steps");
        assert!(expected.iter().zip(&found).all(|(one, other)| one.to_bits() == other.to_bits()));
    }
}
