//! The graph: a tensor program as a list of operators in the order they were written.
//!
//! Shapes are static and checked when an operator is added; a wrong shape is a bug in the caller and panics with a
//! sentence. Equal operators on equal operands are the same node, so common subexpressions never exist twice.

use crate::limits::one_more_operator;
use crate::ops::Op;
use crate::shape::{Shape, Span};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// Position of a node in its graph; operands always come before their users.
pub(crate) type NodeId = usize;

/// One operator with its operands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) op: Op,
    pub(crate) operands: Vec<NodeId>,
    pub(crate) shape: Shape,
}

/// A named part of the parameter vector θ, or of the model states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name as in a weights file.
    pub name: String,
    /// Shape of the tensor.
    pub shape: Shape,
    /// First element inside the whole.
    pub start: usize,
}

impl Section {
    /// The elements of the whole that belong to this tensor.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.shape.count()
    }
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) nodes: Vec<Node>,
    known: HashMap<(Op, Vec<NodeId>, Shape), NodeId>,
    /// Names of inputs, states and index inputs; and those of parameters and model states.
    leaf_names: HashSet<String>,
    parameter_names: HashSet<String>,
    parameters: Option<NodeId>,
    parameters_sealed: bool,
    pub(crate) sections: Vec<Section>,
    model_states: Option<NodeId>,
    pub(crate) state_sections: Vec<Section>,
    pub(crate) outputs: Vec<(String, NodeId)>,
    /// `(part of a state, its value after the step)`
    pub(crate) assignments: Vec<(NodeId, NodeId)>,
}

impl Inner {
    /// The state that an assignment's target is or is a part of, and the place of its first element there.
    pub(crate) fn place(&self, target: NodeId) -> (NodeId, usize) {
        let node = &self.nodes[target];
        match &node.op {
            Op::Slice { spans } => {
                let is_range = spans.len() == 1 && spans[0].step == 1;
                assert!(is_range, "assign: a part of a state must be a range of its only axis");
                (node.operands[0], spans[0].start)
            }
            Op::Reshape => (node.operands[0], 0),
            _ => (target, 0),
        }
    }

    /// A state that grows with each of its sections.
    fn growing_state(&mut self, name: &str) -> NodeId {
        let is_new = self.leaf_names.insert(name.to_owned());
        assert!(is_new, "an input or state has the name {name:?}, which the parameters of a model need");
        let op = Op::State { name: name.to_owned() };
        self.nodes.push(Node { op, operands: Vec::new(), shape: Shape::from([1]) });
        self.nodes.len() - 1
    }

    /// Adds a section at the end of a growing state.
    fn extend(
        &mut self,
        state: NodeId,
        (name, shape): (&str, Shape),
        sections: impl FnOnce(&mut Inner) -> &mut Vec<Section>,
    ) -> Section {
        let known = sections(self);
        let start = known.last().map_or(0, |last| last.range().end);
        let section = Section { name: name.to_owned(), shape, start };
        known.push(section.clone());
        self.nodes[state].shape = Shape::from([section.range().end]);
        section
    }

    /// Orders the sections of θ by the power of two that divides their length (up to 64), so that each section starts at a
    /// multiple of its own power: a product reads a matrix half as fast if it starts at an odd element.
    fn seal(&mut self) {
        let Some(theta) = self.parameters.filter(|_| !std::mem::replace(&mut self.parameters_sealed, true)) else {
            return;
        };
        let mut order: Vec<usize> = (0..self.sections.len()).collect();
        order.sort_by_key(|&section| std::cmp::Reverse(self.sections[section].shape.count().trailing_zeros().min(6)));
        let mut starts = HashMap::new();
        let mut end = 0;
        for section in order {
            let section = &mut self.sections[section];
            starts.insert(section.start, end);
            section.start = end;
            end = section.range().end;
        }
        for node in self.nodes.iter_mut().filter(|node| node.operands == [theta]) {
            if let Op::Slice { spans } = &mut node.op {
                spans[0].start = starts[&spans[0].start];
            }
        }
        let key = |(id, node): (NodeId, &Node)| ((node.op.clone(), node.operands.clone(), node.shape.clone()), id);
        self.known = self.nodes.iter().enumerate().map(key).collect();
    }
}

/// A tensor program under construction.
///
/// ```
/// use lamo_tensor::{Graph, Program};
/// let graph = Graph::new();
/// let x = graph.input("x", [3]);
/// let energy = (x * x).sum(&[0]);
/// let slope = graph.gradient(energy, &[x])[0].expect("the energy depends on x");
/// graph.output("slope", slope);
/// let mut program = Program::compile(&graph);
/// program.write("x", &[1.0, 2.0, 3.0]);
/// program.run();
/// assert_eq!(program.read("slope"), [2.0, 4.0, 6.0]);
/// ```
#[derive(Default)]
pub struct Graph {
    pub(crate) inner: RefCell<Inner>,
}

/// Name of the state that holds all parameters end to end.
pub const PARAMETERS: &str = "parameters";
/// Name of the state that holds all model states end to end.
pub const MODEL_STATES: &str = "model.states";

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Values that the caller writes before a run.
    pub fn input(&self, name: &str, shape: impl Into<Shape>) -> Tensor<'_> {
        self.named_leaf(Op::Input { name: name.to_owned() }, shape.into())
    }

    /// Values that the program keeps from run to run; zero until written.
    pub fn state(&self, name: &str, shape: impl Into<Shape>) -> Tensor<'_> {
        self.named_leaf(Op::State { name: name.to_owned() }, shape.into())
    }

    /// A trainable parameter: a named section of the parameter vector θ.
    pub fn parameter(&self, name: &str, shape: impl Into<Shape>) -> Tensor<'_> {
        let shape = shape.into();
        let mut inner = self.inner.borrow_mut();
        assert!(!inner.parameters_sealed, "parameter {name}: θ was already used as a whole, so its length is fixed");
        assert!(inner.parameter_names.insert(name.to_owned()), "parameter {name} is declared twice");
        let theta = inner.parameters.unwrap_or_else(|| inner.growing_state(PARAMETERS));
        inner.parameters = Some(theta);
        let section = inner.extend(theta, (name, shape), |inner| &mut inner.sections);
        drop(inner);
        self.part(theta, &section).reshape(section.shape)
    }

    /// A tensor of the model that no optimiser changes: a running statistic, or a constant that belongs to the weights file.
    /// It is a named section of one vector, the state [`MODEL_STATES`]. It has one axis, so that it can be the target of
    /// [`Graph::assign`].
    pub fn model_state(&self, name: &str, shape: impl Into<Shape>) -> Tensor<'_> {
        let mut inner = self.inner.borrow_mut();
        assert!(inner.parameter_names.insert(name.to_owned()), "model state {name} is declared twice");
        let whole = inner.model_states.unwrap_or_else(|| inner.growing_state(MODEL_STATES));
        inner.model_states = Some(whole);
        let section = inner.extend(whole, (name, shape.into()), |inner| &mut inner.state_sections);
        drop(inner);
        self.part(whole, &section)
    }

    fn part(&self, whole: NodeId, section: &Section) -> Tensor<'_> {
        let range = section.range();
        let spans = vec![Span::range(range.start, range.end)];
        self.add(Op::Slice { spans }, &[whole], Shape::from([range.len()]))
    }

    /// The named sections of the model states in the order they were declared.
    pub fn state_sections(&self) -> Vec<Section> {
        self.inner.borrow().state_sections.clone()
    }

    /// θ, all parameters end to end; no parameter can be declared afterwards.
    pub fn parameters(&self) -> Tensor<'_> {
        self.seal();
        let node = self.inner.borrow().parameters.expect("a graph without parameters has no parameter vector");
        Tensor { graph: self, node }
    }

    /// The named sections of θ in the order they were declared; no parameter can be declared afterwards.
    pub fn sections(&self) -> Vec<Section> {
        self.seal();
        self.inner.borrow().sections.clone()
    }

    /// Fixes the position of every parameter in θ; no parameter can be declared afterwards.
    pub(crate) fn seal(&self) {
        self.inner.borrow_mut().seal();
    }

    /// Row numbers that the caller writes before a run.
    pub fn index_input(&self, name: &str, length: usize) -> Index<'_> {
        let node = self.named_leaf(Op::IndexInput { name: name.to_owned() }, Shape::from([length])).node;
        Index { graph: self, node }
    }

    /// Row numbers fixed in the program.
    pub fn index_table(&self, rows: &[u32]) -> Index<'_> {
        let node = self.add(Op::IndexTable { rows: rows.into() }, &[], Shape::from([rows.len()])).node;
        Index { graph: self, node }
    }

    /// Values fixed in the program.
    pub fn constant(&self, values: &[f32], shape: impl Into<Shape>) -> Tensor<'_> {
        let values: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
        self.constant_numbers(&values, shape)
    }

    /// Numbers fixed in the program. It rounds them to its precision; the f64 definition takes them as they are.
    pub fn constant_numbers(&self, values: &[f64], shape: impl Into<Shape>) -> Tensor<'_> {
        let shape = shape.into();
        assert_eq!(values.len(), shape.count(), "constant: {} values do not fill shape {shape}", values.len());
        let bits = values.iter().map(|value| value.to_bits()).collect();
        self.add(Op::Constant { bits }, &[], shape)
    }

    /// A tensor with the same number in every element.
    pub fn fill(&self, value: f64, shape: impl Into<Shape>) -> Tensor<'_> {
        let scalar = self.add(Op::Fill { bits: value.to_bits() }, &[], Shape::from([]));
        scalar.broadcast_to(shape.into())
    }

    /// Makes `value` readable under `name` after each run.
    pub fn output(&self, name: &str, value: Tensor<'_>) {
        self.check_owner(value);
        let mut inner = self.inner.borrow_mut();
        assert!(inner.outputs.iter().all(|(known, _)| known != name), "output {name} is declared twice");
        assert!(!inner.leaf_names.contains(name), "output {name}: an input or state has this name");
        inner.outputs.push((name.to_owned(), value.node));
    }

    /// After each run the state, or the range of its only axis that `target` is, holds `value`. Each element is assigned once.
    /// All reads inside the program see the state as it was before the run.
    pub fn assign(&self, target: Tensor<'_>, value: Tensor<'_>) {
        self.check_owner(target);
        self.check_owner(value);
        let (expected, found) = (target.shape(), value.shape());
        assert!(expected == found, "assign: the target has shape {expected}, the value {found}");
        let mut inner = self.inner.borrow_mut();
        let (state, first) = inner.place(target.node);
        let is_state = matches!(inner.nodes[state].op, Op::State { .. });
        assert!(is_state, "assign: the target must be a state or a slice of one");
        let is_taken = |&(other, _): &(NodeId, NodeId)| {
            let ((known, start), count) = (inner.place(other), inner.nodes[other].shape.count());
            known == state && first < start + count && start < first + expected.count()
        };
        assert!(!inner.assignments.iter().any(is_taken), "assign: a part of a state is assigned twice");
        inner.assignments.push((target.node, value.node));
    }

    /// Number of operators added so far.
    pub fn len(&self) -> usize {
        self.inner.borrow().nodes.len()
    }

    /// Whether no operator was added yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn named_leaf(&self, op: Op, shape: Shape) -> Tensor<'_> {
        let name = op.leaf_name().unwrap_or_default();
        let is_new = self.inner.borrow_mut().leaf_names.insert(name.to_owned());
        assert!(is_new, "{name}: an input or state of this name exists already");
        let is_output = self.inner.borrow().outputs.iter().any(|(known, _)| known == name);
        assert!(!is_output, "{name}: an output of this name exists already");
        self.add(op, &[], shape)
    }

    pub(crate) fn add(&self, op: Op, operands: &[NodeId], shape: Shape) -> Tensor<'_> {
        let mut inner = self.inner.borrow_mut();
        let key = (op, operands.to_vec(), shape);
        if let Some(&node) = inner.known.get(&key) {
            return Tensor { graph: self, node };
        }
        one_more_operator(inner.nodes.len());
        let (op, operands, shape) = key.clone();
        inner.nodes.push(Node { op, operands, shape });
        let node = inner.nodes.len() - 1;
        inner.known.insert(key, node);
        Tensor { graph: self, node }
    }

    pub(crate) fn node(&self, node: NodeId) -> Node {
        self.inner.borrow().nodes[node].clone()
    }

    pub(crate) fn tensor(&self, node: NodeId) -> Tensor<'_> {
        Tensor { graph: self, node }
    }

    pub(crate) fn check_owner(&self, tensor: Tensor<'_>) {
        assert!(std::ptr::eq(self, tensor.graph), "the tensor belongs to another graph");
    }
}

/// A handle to a value of the graph; a copy of the handle refers to the same value.
#[derive(Clone, Copy)]
pub struct Tensor<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) node: NodeId,
}

impl<'g> Tensor<'g> {
    /// Extents of the axes.
    pub fn shape(&self) -> Shape {
        self.graph.inner.borrow().nodes[self.node].shape.clone()
    }

    /// Extents as an array; panics if the tensor has another number of axes.
    pub fn dims<const RANK: usize>(&self) -> [usize; RANK] {
        let shape = self.shape();
        shape.0.as_slice().try_into().unwrap_or_else(|_| panic!("expected {RANK} axes, found shape {shape}"))
    }

    /// The graph this value belongs to.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Whether both handles refer to the same value.
    pub fn is_same(&self, other: &Tensor<'g>) -> bool {
        std::ptr::eq(self.graph, other.graph) && self.node == other.node
    }

    pub(crate) fn same_graph(&self, other: &Tensor<'g>) {
        assert!(std::ptr::eq(self.graph, other.graph), "the operands belong to different graphs");
    }
}

impl std::fmt::Debug for Tensor<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Tensor #{} {}", self.node, self.shape())
    }
}

/// A list of row numbers in the graph, for [`Tensor::gather`] and [`Tensor::scatter_add`].
#[derive(Clone, Copy)]
pub struct Index<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) node: NodeId,
}

impl Index<'_> {
    /// How many row numbers it has.
    pub fn length(&self) -> usize {
        self.graph.inner.borrow().nodes[self.node].shape.count()
    }
}
