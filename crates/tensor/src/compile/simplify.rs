//! Simplify: drop nodes that no output needs, and move views below maps that have one reader. A view of stored values costs
//! nothing, because it only changes strides.

use super::fuse::DEEPEST_INLINE;
use crate::device::DeviceError;
use crate::graph::{Graph, Node, NodeId};
use crate::limits::poll_at;
use crate::ops::Op;
use crate::shape::Shape;
use std::collections::HashMap;

/// The live nodes, operands first, with the outputs and assignments of the program.
pub(crate) struct Simple {
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: Vec<(String, NodeId)>,
    /// `(state, first element, value after the step)`
    pub(crate) assignments: Vec<(NodeId, usize, NodeId)>,
}

struct Rewriter<'a> {
    old: &'a [Node],
    uses: Vec<usize>,
    /// Whether all readers are maps, reductions or views.
    feeds_loops: Vec<bool>,
    nodes: Vec<Node>,
    known: HashMap<(Op, Vec<NodeId>, Shape), NodeId>,
    /// New node of an old one.
    renamed: HashMap<NodeId, NodeId>,
    /// Old node of a new one, if it has one.
    origin: HashMap<NodeId, NodeId>,
}

pub(crate) fn simplify(graph: &Graph) -> Result<Simple, DeviceError> {
    graph.seal();
    let inner = graph.inner.borrow();
    let mut uses = vec![0; inner.nodes.len()];
    let mut feeds_loops = vec![true; inner.nodes.len()];
    let mut live = vec![false; inner.nodes.len()];
    let delivered = inner.outputs.iter().map(|(_, node)| *node).chain(inner.assignments.iter().map(|(_, v)| *v));
    for node in delivered {
        live[node] = true;
        uses[node] += 2; // an output is stored as it is
    }
    mark_live(&inner.nodes, &mut live);
    for node in inner.nodes.iter().enumerate().filter(|(id, _)| live[*id]).map(|(_, node)| node) {
        let loops = matches!(node.op, Op::Map(_) | Op::Reduce { .. }) || node.op.is_view();
        // A softmax is its value; it reads the operand of its gradient no more.
        let read = if node.op == Op::Softmaxed { 1 } else { node.operands.len() };
        for &operand in &node.operands[..read] {
            uses[operand] += 1;
            feeds_loops[operand] &= loops;
        }
    }
    for (id, node) in inner.nodes.iter().enumerate().filter(|(_, node)| node.op == Op::Softmaxed) {
        let (users, in_loops) = (uses[id], feeds_loops[id]);
        uses[node.operands[0]] += users;
        feeds_loops[node.operands[0]] &= in_loops;
    }
    let mut rewriter = Rewriter {
        old: &inner.nodes,
        uses,
        feeds_loops,
        nodes: Vec::new(),
        known: HashMap::new(),
        renamed: HashMap::new(),
        origin: HashMap::new(),
    };
    // Unused named leaves stay, because the caller may write them.
    for id in (0..inner.nodes.len()).filter(|&id| live[id] || inner.nodes[id].op.leaf_name().is_some()) {
        poll_at(id)?;
        let new = rewriter.rewrite(id);
        rewriter.renamed.insert(id, new);
        rewriter.origin.entry(new).or_insert(id);
    }
    let renamed = rewriter.renamed;
    let outputs = inner.outputs.iter().map(|(name, node)| (name.clone(), renamed[node])).collect();
    let assignments = inner
        .assignments
        .iter()
        .map(|(target, value)| {
            let (state, start) = inner.place(*target);
            (renamed[&state], start, renamed[value])
        })
        .collect();
    Ok(finish(rewriter.nodes, outputs, assignments))
}

/// Operands of live nodes are live, and so are the results that a kernel writes even if they have no reader.
fn mark_live(nodes: &[Node], live: &mut [bool]) {
    for id in (0..nodes.len()).rev() {
        if live[id] {
            nodes[id].operands.iter().for_each(|&operand| live[operand] = true);
        }
    }
    for (id, node) in nodes.iter().enumerate() {
        if let Op::Part { index } = node.op {
            let always = index == 0 || !matches!(nodes[node.operands[0]].op, Op::Scan { .. });
            live[id] |= live[node.operands[0]] && always;
        }
    }
}

/// Drops the maps that have no reader after the rewriting.
fn finish(nodes: Vec<Node>, outputs: Vec<(String, NodeId)>, assignments: Vec<(NodeId, usize, NodeId)>) -> Simple {
    let mut live: Vec<bool> = nodes.iter().map(|node| node.op.leaf_name().is_some()).collect();
    outputs.iter().for_each(|(_, node)| live[*node] = true);
    assignments.iter().for_each(|(_, _, value)| live[*value] = true);
    mark_live(&nodes, &mut live);
    let mut renamed = vec![usize::MAX; nodes.len()];
    let mut remaining: Vec<Node> = Vec::new();
    for (id, mut node) in nodes.into_iter().enumerate().filter(|(id, _)| live[*id]) {
        node.operands.iter_mut().for_each(|operand| *operand = renamed[*operand]);
        renamed[id] = remaining.len();
        remaining.push(node);
    }
    Simple {
        outputs: outputs.into_iter().map(|(name, node)| (name, renamed[node])).collect(),
        assignments: assignments.into_iter().map(|(s, start, v)| (renamed[s], start, renamed[v])).collect(),
        nodes: remaining,
    }
}

impl Rewriter<'_> {
    fn rewrite(&mut self, id: NodeId) -> NodeId {
        let node = &self.old[id];
        let operands: Vec<_> = node.operands.iter().map(|operand| self.renamed[operand]).collect();
        match &node.op {
            Op::Detach | Op::Softmaxed => operands[0],
            // The operand of a matrix product is stored anyway, and a reshape of stored values costs nothing.
            Op::Reshape if !self.feeds_loops[id] => self.add(Op::Reshape, operands, node.shape.clone()),
            Op::Reshape | Op::Permute { .. } | Op::Slice { .. } => self.sink(&node.op, &node.shape, operands[0]),
            op => self.add(op.clone(), operands, node.shape.clone()),
        }
    }

    /// Applies a view; below the maps that only this view reads.
    fn sink(&mut self, view: &Op, shape: &Shape, operand: NodeId) -> NodeId {
        let below = self.nodes[operand].clone();
        if matches!(below.op, Op::Map(_)) && self.sinks(operand) {
            let operands = below.operands.iter().map(|&inner| self.sink(view, shape, inner)).collect();
            return self.add(below.op, operands, shape.clone());
        }
        if let (Op::Reshape, Op::Reshape) = (view, &below.op) {
            return self.sink(view, shape, below.operands[0]);
        }
        if below.shape == *shape && *view == Op::Reshape {
            return operand;
        }
        self.add(view.clone(), vec![operand], shape.clone())
    }

    /// Whether a view can move below all maps from this node down. It cannot pass a map with other readers.
    fn sinks(&self, node: NodeId) -> bool {
        let mut maps = 0;
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            if let Node { op: Op::Map(_), operands, .. } = &self.nodes[node] {
                let single_use = self.origin.get(&node).is_none_or(|&old| self.uses[old] <= 1);
                maps += 1;
                if !single_use || maps > DEEPEST_INLINE {
                    return false;
                }
                stack.extend(operands);
            }
        }
        true
    }

    fn add(&mut self, op: Op, operands: Vec<NodeId>, shape: Shape) -> NodeId {
        let key = (op, operands, shape);
        if let Some(&node) = self.known.get(&key) {
            return node;
        }
        let (op, operands, shape) = key.clone();
        self.nodes.push(Node { op, operands, shape });
        self.known.insert(key, self.nodes.len() - 1);
        self.nodes.len() - 1
    }
}
