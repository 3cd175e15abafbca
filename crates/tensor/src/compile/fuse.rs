//! Fuse: which values are stored in memory, and which of them one loop computes together.
//!
//! A map is computed where it is needed, unless that would read more memory than loading its result. Loops over the same
//! extents merge if they share memory, or if one uses the rows of the other. So a norm or a softmax is one pass, and so is
//! its gradient together with the sums over rows that it needs.

use super::Options;
use super::assemble::Assembled;
use crate::device::DeviceError;
use crate::graph::NodeId;
use crate::limits::poll_at;
use crate::ops::{Map, Op, Reduction};
use std::collections::{BTreeSet, HashMap};

/// A value that takes more operators than this is stored instead of computed at each use.
const LARGEST_INLINE: usize = 24;
/// A value that takes more operators than this is stored even if it is used once: later passes follow operands by recursion.
pub(crate) const DEEPEST_INLINE: usize = 512;
/// Elements of a copy from which it has a loop of its own.
const LARGE_COPY: usize = 1 << 20;
/// Most operators of one loop: all its strips must fit the first-level cache.
const LARGEST_GROUP: usize = 96;

/// How a loop makes a root, a node that it computes for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// Stores one element per element, or per row, of the loop.
    Each,
    /// Reduces each row; the loop may use the result.
    Row,
    /// Reduces across rows; the result exists only after the loop.
    Across,
}

/// Rows of a loop as `[outer, reduced, inner]`; a reduction across rows adds over the middle.
pub(crate) type Split = [usize; 3];

#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) dims: Vec<usize>,
    pub(crate) roots: Vec<(NodeId, Root)>,
    pub(crate) split: Option<Split>,
    size: usize,
}

#[derive(Debug)]
pub(crate) enum Unit {
    Loop(Group),
    Operator(NodeId),
}

pub(crate) struct Fused {
    pub(crate) units: Vec<Unit>,
    /// Units that must run before a unit.
    pub(crate) after: Vec<BTreeSet<usize>>,
    /// The unit that computes a stored node.
    pub(crate) unit_of: HashMap<NodeId, usize>,
    /// Nodes with a place in memory.
    pub(crate) stored: Vec<bool>,
}

impl Fused {
    /// Whether `unit` must run after `earlier`, directly or through other units.
    pub(crate) fn depends(&self, unit: usize, earlier: usize) -> bool {
        let mut seen = vec![false; self.units.len()];
        let mut stack = vec![unit];
        while let Some(next) = stack.pop() {
            for &before in &self.after[next] {
                if before == earlier {
                    return true;
                }
                if !std::mem::replace(&mut seen[before], true) {
                    stack.push(before);
                }
            }
        }
        false
    }
}

/// `longest_row`: see [`DeviceTraits`](super::DeviceTraits).
pub(crate) fn fuse(graph: &Assembled, options: Options, longest_row: usize) -> Result<Fused, DeviceError> {
    let mut fuser = Fuser {
        graph,
        options,
        longest_row,
        fused: Fused { units: Vec::new(), after: Vec::new(), unit_of: HashMap::new(), stored: stored(graph, options)? },
        touching: HashMap::new(),
    };
    for id in 0..graph.nodes.len() {
        poll_at(id)?;
        fuser.place(id);
    }
    Ok(fuser.fused)
}

/// Whether `node` repeats its operand along the last axis only: one number per row, used for the whole row.
pub(crate) fn is_row_expansion(graph: &Assembled, node: NodeId) -> bool {
    let wide = &graph.nodes[node];
    if wide.op != Op::Expand {
        return false;
    }
    let narrow = &graph.nodes[wide.operands[0]];
    let last = wide.shape.rank() - 1;
    !narrow.op.is_view() && wide.shape.0[..last] == narrow.shape.0[..last] && narrow.shape.0[last] == 1
}

fn is_number(graph: &Assembled, node: NodeId) -> bool {
    matches!(graph.nodes[graph.base(node)].op, Op::Fill { .. })
}

/// Which nodes are stored in memory.
fn stored(graph: &Assembled, options: Options) -> Result<Vec<bool>, DeviceError> {
    let mut stored: Vec<bool> =
        graph.nodes.iter().map(|node| !node.op.is_view() && !matches!(node.op, Op::Map(_) | Op::Fill { .. })).collect();
    let delivered = graph.outputs.iter().map(|(_, node)| *node).chain(graph.assignments.iter().map(|a| a.2));
    for id in delivered.chain(graph.claims.keys().copied()) {
        stored[id] = true;
    }
    for node in &graph.nodes {
        let loops = matches!(node.op, Op::Map(_) | Op::Reduce { .. });
        for &operand in node.operands.iter().filter(|_| !node.op.is_view()) {
            let through_view = graph.nodes[operand].op.is_view() && !is_row_expansion(graph, operand);
            if (!loops || through_view) && !is_number(graph, operand) {
                stored[graph.base(operand)] = true;
            }
        }
    }
    for value in compared_with_their_largest(graph) {
        stored[value] = true;
    }
    let mut costs: Vec<Cost> = Vec::with_capacity(graph.nodes.len());
    for (id, node) in graph.nodes.iter().enumerate() {
        poll_at(id)?;
        let mut cost = Cost::default();
        if let Op::Map(map) = node.op {
            node.operands.iter().for_each(|&operand| cost.add(graph, &stored, &costs, operand, node.shape.count()));
            let shared = graph.users[id].len() > 1;
            let heavy = cost.loads.len() > 1 || cost.operators > LARGEST_INLINE;
            stored[id] |= map == Map::Copy || !options.fuse || (shared && heavy) || cost.operators > DEEPEST_INLINE;
        }
        costs.push(cost);
    }
    Ok(stored)
}

/// Values that a gradient compares with their largest one. They are computed once: two loops may round the same value differently,
/// and then none would be the largest.
fn compared_with_their_largest(graph: &Assembled) -> Vec<NodeId> {
    let mut found = Vec::new();
    for node in graph.nodes.iter().filter(|node| node.op == Op::Map(Map::Equal)) {
        let [one, other] = [0, 1].map(|place| graph.base(node.operands[place]));
        for (value, largest) in [(one, &graph.nodes[other]), (other, &graph.nodes[one])] {
            let is_largest = matches!(largest.op, Op::Reduce { kind: Reduction::Max, .. });
            if is_largest && graph.base(largest.operands[0]) == value && matches!(graph.nodes[value].op, Op::Map(_)) {
                found.push(value);
            }
        }
    }
    found
}

/// What it takes to compute a value where it is used.
#[derive(Clone, Default)]
struct Cost {
    /// Stored values that must be read, those that are at least a quarter as large as the result.
    loads: BTreeSet<NodeId>,
    operators: usize,
}

impl Cost {
    fn add(&mut self, graph: &Assembled, stored: &[bool], costs: &[Cost], operand: NodeId, count: usize) {
        let base = graph.base(operand);
        if stored[base] {
            if graph.nodes[base].shape.count() * 4 > count {
                self.loads.insert(base);
            }
        } else if graph.nodes[base].shape.count() * 4 > count {
            self.loads.extend(&costs[base].loads);
        }
        self.operators += 1 + if stored[base] { 0 } else { costs[base].operators };
    }
}

/// How a root reads memory.
#[derive(Default)]
struct Reads {
    /// `(stored node, whether the loop reads it in its own order, element by element or row by row)`
    accesses: BTreeSet<(NodeId, bool)>,
    operators: usize,
}

struct Fuser<'a> {
    graph: &'a Assembled,
    options: Options,
    longest_row: usize,
    fused: Fused,
    /// Loops that read or write a stored node.
    touching: HashMap<NodeId, BTreeSet<usize>>,
}

impl Fuser<'_> {
    fn place(&mut self, id: NodeId) {
        let node = &self.graph.nodes[id];
        match &node.op {
            Op::Map(_) if self.fused.stored[id] => self.place_root(id, Root::Each, None),
            Op::Reduce { first, end, .. } => {
                let dims = &self.graph.nodes[node.operands[0]].shape.0;
                let (root, split) = reduction(dims, *first, *end, self.longest_row);
                self.place_root(id, root, split);
            }
            Op::Map(_) | Op::Fill { .. } => {}
            Op::Part { .. } => {
                let unit = self.fused.unit_of[&node.operands[0]];
                self.fused.unit_of.insert(id, unit);
            }
            op if op.is_view() => {}
            op if op.leaf_name().is_some() || matches!(op, Op::Constant { .. } | Op::IndexTable { .. }) => {}
            _ => {
                let mut after = BTreeSet::new();
                for &operand in &node.operands {
                    after.extend(self.fused.unit_of.get(&self.graph.base(operand)));
                }
                self.new_unit(Unit::Operator(id), after);
                self.fused.unit_of.insert(id, self.fused.units.len() - 1);
            }
        }
    }

    fn new_unit(&mut self, unit: Unit, after: BTreeSet<usize>) {
        self.fused.units.push(unit);
        self.fused.after.push(after);
    }

    fn place_root(&mut self, id: NodeId, root: Root, split: Option<Split>) {
        let node = &self.graph.nodes[id];
        let dims = match node.op {
            Op::Reduce { .. } => self.graph.nodes[node.operands[0]].shape.0.clone(),
            _ => node.shape.0.clone(),
        };
        let mut reads = Reads::default();
        node.operands.iter().for_each(|&operand| self.read(operand, true, &mut reads));
        let partner = if self.is_large_copy(id) { None } else { self.partner(&dims, root, split, &reads) };
        let unit = partner.unwrap_or_else(|| {
            let group = Group { dims: dims.clone(), roots: Vec::new(), split: None, size: 0 };
            self.new_unit(Unit::Loop(group), BTreeSet::new());
            self.fused.units.len() - 1
        });
        let Unit::Loop(group) = &mut self.fused.units[unit] else { unreachable!("partners are loops") };
        group.roots.push((id, root));
        group.split = group.split.or(split);
        group.size += reads.operators + 1;
        self.fused.unit_of.insert(id, unit);
        self.touching.entry(id).or_default().insert(unit);
        for (source, _) in reads.accesses {
            self.touching.entry(source).or_default().insert(unit);
            let producer = self.fused.unit_of.get(&source).copied();
            self.fused.after[unit].extend(producer.filter(|&producer| producer != unit));
        }
    }

    /// Collects the stored nodes that are read if `node` is computed inside a loop.
    fn read(&self, node: NodeId, direct: bool, reads: &mut Reads) {
        let base = self.graph.base(node);
        let in_own_order = direct && (base == node || is_row_expansion(self.graph, node));
        if self.fused.stored[base] {
            reads.accesses.insert((base, in_own_order));
        } else if matches!(self.graph.nodes[base].op, Op::Map(_)) {
            reads.operators += 1;
            for &operand in &self.graph.nodes[base].operands {
                self.read(operand, in_own_order, reads);
            }
        }
    }

    /// Whether a node rearranges a large part of a state. Beside the copy of another part, it would be made long before its use.
    fn is_large_copy(&self, id: NodeId) -> bool {
        let node = &self.graph.nodes[id];
        node.op == Op::Map(Map::Copy)
            && node.shape.count() >= LARGE_COPY
            && matches!(self.graph.nodes[self.graph.base(node.operands[0])].op, Op::State { .. })
    }

    /// A loop that this root can join.
    fn partner(&self, dims: &[usize], root: Root, split: Option<Split>, reads: &Reads) -> Option<usize> {
        if !self.options.fuse {
            return None;
        }
        let related: BTreeSet<usize> =
            reads.accesses.iter().filter_map(|(source, _)| self.touching.get(source)).flatten().copied().collect();
        related.into_iter().rev().find(|&unit| self.may_join(unit, dims, root, split, reads))
    }

    fn may_join(&self, unit: usize, dims: &[usize], root: Root, split: Option<Split>, reads: &Reads) -> bool {
        let Unit::Loop(group) = &self.fused.units[unit] else { return false };
        let per_row = root == Root::Each && is_row_shape(dims, &group.dims);
        let same_split = split.is_none() || group.split.is_none() || split == group.split;
        if (group.dims != dims && !per_row) || !same_split || group.size + reads.operators > LARGEST_GROUP {
            return false;
        }
        let own = |source: NodeId| group.roots.iter().find(|(node, _)| *node == source);
        let usable = reads.accesses.iter().all(|&(source, direct)| match own(source) {
            Some(&(node, kind)) => {
                direct && kind != Root::Across && self.is_usable_inside(node, kind, per_row, &group.dims)
            }
            None => true,
        });
        usable
            && reads.accesses.iter().all(|(source, _)| match self.fused.unit_of.get(source) {
                Some(&producer) => producer == unit || !self.fused.depends(producer, unit),
                None => true,
            })
    }

    /// Whether the loop can use a root of its own: a value per element for elements, a value per row for rows and elements.
    fn is_usable_inside(&self, node: NodeId, kind: Root, per_row: bool, dims: &[usize]) -> bool {
        let row = kind == Root::Row || (is_row_shape(&self.graph.nodes[node].shape.0, dims) && dims.last() != Some(&1));
        row || !per_row
    }
}

fn is_row_shape(dims: &[usize], of: &[usize]) -> bool {
    let last = of.len().saturating_sub(1);
    dims.len() == of.len() && !of.is_empty() && dims[last] == 1 && dims[..last] == of[..last]
}

/// Whether a reduction is along rows or across them, and how it splits the rows.
fn reduction(dims: &[usize], first: usize, end: usize, longest_row: usize) -> (Root, Option<Split>) {
    let rank = dims.len();
    let product = |range: std::ops::Range<usize>| dims[range].iter().product::<usize>();
    if end == rank && first + 1 == rank && dims[first] <= longest_row {
        return (Root::Row, None);
    }
    if end == rank {
        return (Root::Across, Some([product(0..first), product(first..rank - 1), 1]));
    }
    (Root::Across, Some([product(0..first), product(first..end), product(end..rank - 1)]))
}
