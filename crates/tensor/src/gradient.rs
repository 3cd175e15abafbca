//! Reverse-mode differentiation: the gradient of a program is more operators in the same graph.

use crate::graph::{Graph, Node, NodeId, PARAMETERS, Section, Tensor};
use crate::ops::membership::Waiting;
use crate::ops::{self, Cotangent, Op, scan};
use crate::shape::{Shape, Span};
use std::collections::HashMap;

impl Graph {
    /// ∂`loss`/∂w for each w in `wanted`, or `None` where the loss does not depend on it. The loss has one element.
    pub fn gradient<'g>(&'g self, loss: Tensor<'g>, wanted: &[Tensor<'g>]) -> Vec<Option<Tensor<'g>>> {
        let shape = loss.shape();
        assert_eq!(shape.count(), 1, "gradient: a loss has one element, found shape {shape}");
        self.pullback(&[(loss, self.fill(1.0, shape))], wanted)
    }

    /// Σ over `seeds` of (∂output/∂w)ᵀ·cotangent for each w in `wanted`.
    pub fn pullback<'g>(
        &'g self,
        seeds: &[(Tensor<'g>, Tensor<'g>)],
        wanted: &[Tensor<'g>],
    ) -> Vec<Option<Tensor<'g>>> {
        wanted.iter().for_each(|tensor| self.check_owner(*tensor));
        let mut sweep = Sweep::new(self, wanted);
        for &(output, cotangent) in seeds {
            self.check_owner(output);
            self.check_owner(cotangent);
            let (expected, found) = (output.shape(), cotangent.shape());
            assert!(expected == found, "pullback: the output has shape {expected}, its cotangent {found}");
            sweep.add(output.node, Cotangent::Whole(cotangent));
        }
        sweep.run();
        wanted.iter().map(|tensor| sweep.finished.get(&tensor.node).copied()).collect()
    }
}

impl Graph {
    /// The sections of θ that `loss` depends on through differentiable paths.
    pub fn sections_behind(&self, loss: Tensor<'_>) -> Vec<Section> {
        self.check_owner(loss);
        self.seal(); // the sections have their places from here on
        let inner = self.inner.borrow();
        let mut reached = vec![false; inner.nodes.len()];
        reached[loss.node] = true;
        for id in (0..=loss.node).rev() {
            if reached[id] && inner.nodes[id].op != Op::Detach {
                inner.nodes[id].operands.iter().for_each(|&operand| reached[operand] = true);
            }
        }
        let starts = |section: &&Section| {
            let is_slice = |(id, node): (NodeId, &Node)| match &node.op {
                Op::Slice { spans } if reached[id] => {
                    spans.len() == 1
                        && spans[0] == Span::range(section.start, section.range().end)
                        && inner.nodes[node.operands[0]].op.leaf_name() == Some(PARAMETERS)
                }
                _ => false,
            };
            inner.nodes.iter().enumerate().any(is_slice)
        };
        inner.sections.iter().filter(starts).cloned().collect()
    }
}

impl<'g> Tensor<'g> {
    /// The same value, through which no gradient flows.
    pub fn detach(self) -> Tensor<'g> {
        self.graph.add(Op::Detach, &[self.node], self.shape())
    }
}

struct Sweep<'g> {
    graph: &'g Graph,
    /// Nodes that depend on one of the wanted tensors.
    influenced: Vec<bool>,
    wanted: Vec<NodeId>,
    pending: HashMap<NodeId, Vec<Cotangent<'g>>>,
    finished: HashMap<NodeId, Tensor<'g>>,
    memberships: Waiting<'g>,
}

impl<'g> Sweep<'g> {
    fn new(graph: &'g Graph, wanted: &[Tensor<'g>]) -> Self {
        let inner = graph.inner.borrow();
        let mut influenced = vec![false; inner.nodes.len()];
        wanted.iter().for_each(|tensor| influenced[tensor.node] = true);
        for (id, node) in inner.nodes.iter().enumerate() {
            let from_operands = node.operands.iter().any(|&operand| influenced[operand]) && node.op != Op::Detach;
            influenced[id] |= from_operands;
        }
        let wanted = wanted.iter().map(|tensor| tensor.node).collect();
        Sweep {
            graph,
            influenced,
            wanted,
            pending: HashMap::new(),
            finished: HashMap::new(),
            memberships: Waiting::default(),
        }
    }

    fn add(&mut self, node: NodeId, cotangent: Cotangent<'g>) {
        if !self.influenced[node] {
            return;
        }
        let Node { op, operands, .. } = self.graph.node(node);
        match (&op, &cotangent) {
            // A broadcast operand is summed at each use: then small results are added up instead of whole fields.
            (Op::Expand, Cotangent::Whole(tensor)) if !self.wanted.contains(&node) => {
                let gradients = ops::gradient(self.graph.tensor(node), *tensor, &[true]);
                gradients.into_iter().flatten().for_each(|gradient| self.add(operands[0], gradient));
            }
            _ => self.pending.entry(node).or_default().push(cotangent),
        }
    }

    fn run(&mut self) {
        let mut parts: HashMap<(NodeId, usize), Tensor<'g>> = HashMap::new();
        for id in (0..self.influenced.len()).rev() {
            let node = self.graph.node(id);
            for (operand, gradient) in self.memberships.release(id) {
                self.add(operand, Cotangent::Whole(gradient));
            }
            if let Op::Scan { .. } = node.op {
                let (output, state) = (parts.remove(&(id, 0)), parts.remove(&(id, 1)));
                if output.is_some() || state.is_some() {
                    let gradients = scan::gradient(self.graph.tensor(id), output, state);
                    for (&operand, gradient) in node.operands.iter().zip(gradients) {
                        self.add(operand, Cotangent::Whole(gradient));
                    }
                }
                continue;
            }
            let Some(contributions) = self.pending.remove(&id) else { continue };
            let cotangent = total(self.graph, &node.shape, contributions);
            self.finished.insert(id, cotangent);
            if let Op::Part { index } = node.op {
                let whole = node.operands[0];
                let is_scan = matches!(self.graph.node(whole).op, Op::Scan { .. });
                assert!(
                    is_scan || !self.influenced[whole],
                    "gradient: a scan or a membership has no second derivatives"
                );
                parts.insert((whole, index), cotangent);
                continue;
            }
            let useful: Vec<_> = node.operands.iter().map(|&operand| self.influenced[operand]).collect();
            if !useful.contains(&true) || node.op == Op::Detach {
                continue;
            }
            if matches!(node.op, Op::Collect(_) | Op::Spread(_)) {
                if let Some(gradient) = self.memberships.add(&node, cotangent, &useful) {
                    self.add(node.operands[3], Cotangent::Whole(gradient));
                }
                continue;
            }
            let gradients = ops::gradient(self.graph.tensor(id), cotangent, &useful);
            for (&operand, gradient) in node.operands.iter().zip(gradients) {
                if let Some(gradient) = gradient {
                    self.add(operand, gradient);
                }
            }
        }
    }
}

/// Sums contributions. Parts that tile one axis become one concatenation, so that each producer can write its result
/// directly into the whole: the gradients of θ and of a split projection are assembled in this way.
fn total<'g>(graph: &'g Graph, shape: &Shape, contributions: Vec<Cotangent<'g>>) -> Tensor<'g> {
    let mut whole: Vec<Tensor<'g>> = Vec::new();
    let mut parts: Vec<(Vec<Span>, Tensor<'g>)> = Vec::new();
    for contribution in contributions {
        match contribution {
            Cotangent::Whole(tensor) => whole.push(tensor),
            Cotangent::Part(spans, tensor) => match parts.iter_mut().find(|(known, _)| *known == spans) {
                Some((_, sum)) => *sum = *sum + tensor,
                None => parts.push((spans, tensor)),
            },
        }
    }
    match tiles_of_one_axis(shape, &mut parts) {
        Some(axis) => whole.push(concatenation(graph, shape, axis, &parts)),
        None => whole.extend(parts.into_iter().map(|(spans, tensor)| tensor.embed(&spans, shape.clone()))),
    }
    whole.into_iter().reduce(|sum, next| sum + next).expect("a pending node has a contribution")
}

/// The axis along which all parts are disjoint ascending ranges, while each covers all other axes; sorts the parts along
/// that axis.
fn tiles_of_one_axis(shape: &Shape, parts: &mut [(Vec<Span>, Tensor<'_>)]) -> Option<usize> {
    if parts.is_empty() {
        return None;
    }
    let cut = |spans: &[Span]| -> Vec<usize> {
        (0..shape.rank()).filter(|&axis| spans[axis] != Span::all(shape.0[axis])).collect()
    };
    let axis = match cut(&parts[0].0).as_slice() {
        [axis] => *axis,
        _ => return None,
    };
    let along = |spans: &[Span]| cut(spans) == [axis] && spans[axis].step == 1;
    if !parts.iter().all(|(spans, _)| along(spans)) {
        return None;
    }
    parts.sort_by_key(|(spans, _)| spans[axis].start);
    let disjoint = parts.windows(2).all(|pair| {
        let (first, second) = (pair[0].0[axis], pair[1].0[axis]);
        first.start + first.length <= second.start
    });
    disjoint.then_some(axis)
}

fn concatenation<'g>(graph: &'g Graph, shape: &Shape, axis: usize, parts: &[(Vec<Span>, Tensor<'g>)]) -> Tensor<'g> {
    let zeros = |length: usize| {
        let mut dims = shape.0.clone();
        dims[axis] = length;
        graph.fill(0.0, dims)
    };
    let mut pieces = Vec::new();
    let mut end = 0;
    for (spans, tensor) in parts {
        let span = spans[axis];
        if span.start > end {
            pieces.push(zeros(span.start - end));
        }
        pieces.push(*tensor);
        end = span.start + span.length;
    }
    if end < shape.0[axis] {
        pieces.push(zeros(shape.0[axis] - end));
    }
    Tensor::concatenate(&pieces, axis)
}
