//! The reference evaluator: every node of a graph in f64, one after the other. It is slow and simple, and it defines what is
//! correct; compiled programs are compared with it.

use crate::graph::{Graph, NodeId, Tensor};
use crate::ops::{self, Op, membership, scan};
use crate::shape::Shape;
use std::collections::HashMap;

/// A dense f64 array in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Extents.
    pub shape: Shape,
    /// Elements, last axis fastest.
    pub values: Vec<f64>,
}

impl Array {
    pub(crate) fn zeros(shape: Shape) -> Array {
        Array { values: vec![0.0; shape.count()], shape }
    }
}

/// Values of inputs and states by name; index inputs hold whole numbers.
pub type Bindings<'a> = HashMap<&'a str, Vec<f64>>;

/// Evaluates `wanted` and returns their values in order. Panics if a leaf has no binding.
pub fn evaluate(graph: &Graph, bindings: &Bindings<'_>, wanted: &[Tensor<'_>]) -> Vec<Array> {
    let roots: Vec<NodeId> = wanted.iter().map(|tensor| tensor.node).collect();
    let values = evaluate_nodes(graph, bindings, &roots);
    roots.iter().map(|root| values[root][0].clone()).collect()
}

/// Runs the whole program once: returns the named outputs and the states after the assignments.
pub fn run<'a>(graph: &Graph, bindings: &Bindings<'a>) -> (HashMap<String, Array>, Bindings<'a>) {
    let inner = graph.inner.borrow();
    let mut roots: Vec<NodeId> = inner.outputs.iter().map(|(_, node)| *node).collect();
    roots.extend(inner.assignments.iter().map(|(_, value)| *value));
    let (outputs, assignments) = (inner.outputs.clone(), inner.assignments.clone());
    drop(inner);
    let values = evaluate_nodes(graph, bindings, &roots);
    let mut states = bindings.clone();
    for (target, value) in assignments {
        let (state, start) = graph.inner.borrow().place(target);
        let state = graph.node(state);
        let name = state.op.leaf_name().expect("assign checked that the target is a state");
        let stored = states.get_mut(name).unwrap_or_else(|| panic!("no value bound to {name}"));
        let new = &values[&value][0].values;
        stored[start..start + new.len()].copy_from_slice(new);
    }
    let named = outputs.into_iter().map(|(name, node)| (name, values[&node][0].clone())).collect();
    (named, states)
}

/// Evaluates the roots and everything they depend on. Each node has one array, or one per part if it has several results.
fn evaluate_nodes(graph: &Graph, bindings: &Bindings<'_>, roots: &[NodeId]) -> HashMap<NodeId, Vec<Array>> {
    graph.seal();
    let inner = graph.inner.borrow();
    let mut needed = vec![false; inner.nodes.len()];
    for &root in roots {
        needed[root] = true;
    }
    for id in (0..inner.nodes.len()).rev() {
        if needed[id] {
            inner.nodes[id].operands.iter().for_each(|&operand| needed[operand] = true);
        }
    }
    let mut values: HashMap<NodeId, Vec<Array>> = HashMap::new();
    for (id, node) in inner.nodes.iter().enumerate().filter(|(id, _)| needed[*id]) {
        let result = match &node.op {
            Op::Part { index } => vec![values[&node.operands[0]][*index].clone()],
            op => {
                let operands: Vec<&Array> = node.operands.iter().map(|operand| &values[operand][0]).collect();
                match op {
                    Op::Scan { shape, order } => scan::reference(shape, order, &operands),
                    Op::ScanGradient { shape, order, initial } => {
                        scan::gradient_reference(shape, order, *initial, &operands)
                    }
                    Op::MembershipGradient { shape, uses } => membership::gradient_reference(shape, *uses, &operands),
                    Op::Input { name } | Op::State { name } | Op::IndexInput { name } => {
                        let bound = bindings.get(name.as_str()).unwrap_or_else(|| panic!("no value bound to {name}"));
                        let (expected, found) = (node.shape.count(), bound.len());
                        assert!(expected == found, "{name}: shape {} needs {expected} values, got {found}", node.shape);
                        vec![Array { shape: node.shape.clone(), values: bound.clone() }]
                    }
                    _ => vec![Array { shape: node.shape.clone(), values: ops::reference(node, &operands) }],
                }
            }
        };
        values.insert(id, result);
    }
    values
}
