//! A read-only view of a graph for translators: each operator with its operands and its shape, operands first.
//!
//! A translator writes the same computation in another language. Whatever follows from the shapes is left out: the extents of a
//! scan, of a membership and of a convolution are those of their operands.

use crate::graph::{Graph, Tensor};
use crate::ops::{ConvolutionOptions, Map, Op, Reduction};
use crate::shape::{Shape, Span};
use std::sync::Arc;

/// One operator of a graph.
pub struct Step<'g> {
    /// What it computes.
    pub operation: Operation,
    /// Positions of its operands in the walk.
    pub operands: Vec<usize>,
    /// Shape of its result; that of the first part where it has several.
    pub shape: Shape,
    /// Its result, for [`reference::evaluate`](crate::reference::evaluate).
    pub tensor: Tensor<'g>,
}

/// What a step computes from its operands.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Values that the caller writes.
    Input(String),
    /// Values that the program keeps; parameters are slices of the state [`PARAMETERS`](crate::PARAMETERS).
    State(String),
    /// Fixed numbers.
    Constant,
    /// One number, shape `[]`.
    Fill(f64),
    /// Row numbers that the caller writes.
    IndexInput(String),
    /// Fixed row numbers.
    IndexTable(Arc<[u32]>),
    /// An elementwise function; all operands have the shape of the result.
    Map(Map),
    /// The same elements in row-major order.
    Reshape,
    /// Axis `i` of the result is axis `order[i]` of the operand.
    Permute(Vec<usize>),
    /// Repeats axes of extent 1.
    Expand,
    /// The part that one span per axis selects.
    Slice(Vec<Span>),
    /// The first operand itself.
    Same,
    /// Zeros with the operand at the spans.
    Embed(Vec<Span>),
    /// The operands end to end along an axis.
    Concatenate(usize),
    /// Row `i` along an axis is row `index[i]` of the first operand; the second operand is the index.
    Gather(usize),
    /// Adds row `i` along an axis to row `index[i]` of zeros.
    ScatterAdd(usize),
    /// Sum over the axes `first..end`, which remain with extent 1.
    Sum {
        /// First axis.
        first: usize,
        /// Axis behind the last one.
        end: usize,
    },
    /// Largest element over the axes `first..end`, which remain with extent 1.
    Max {
        /// First axis.
        first: usize,
        /// Axis behind the last one.
        end: usize,
    },
    /// `[batch…, m, k] × [batch…, k, n]`
    MatMul,
    /// [`Tensor::inverse_cholesky`] of `[matrices, n, n]` with its smallest jitter.
    InverseCholesky(f64),
    /// [`Tensor::convolve`]: input and weight.
    Convolution(ConvolutionOptions),
    /// [`Membership::collect`](crate::Membership::collect): queries, keys, offsets, values.
    Collect,
    /// [`Membership::spread`](crate::Membership::spread): queries, keys, offsets, tokens.
    Spread,
    /// [`ScanInput::scan`](crate::ScanInput::scan): signal, log decay, gain, write, read and perhaps the initial state. Part 0 is
    /// the output, part 1 the last state.
    Scan {
        /// `[directions, tokens]` the tokens in the sequence that each direction visits them.
        order: Arc<[u32]>,
        /// Number of directions.
        directions: usize,
    },
    /// One result of an operator that has several.
    Part(usize),
    /// An operator of gradients, in words.
    Gradient(&'static str),
}

impl Graph {
    /// All operators in the order they were written. No parameter can be declared afterwards.
    pub fn walk(&self) -> Vec<Step<'_>> {
        self.seal();
        let inner = self.inner.borrow();
        let step = |(node, found): (usize, &crate::graph::Node)| Step {
            operation: operation(&found.op),
            operands: found.operands.clone(),
            shape: found.shape.clone(),
            tensor: Tensor { graph: self, node },
        };
        inner.nodes.iter().enumerate().map(step).collect()
    }

    /// The outputs by name, each with its position in [`Graph::walk`].
    pub fn outputs(&self) -> Vec<(String, usize)> {
        self.inner.borrow().outputs.clone()
    }
}

fn operation(op: &Op) -> Operation {
    match op {
        Op::Input { name } => Operation::Input(name.clone()),
        Op::State { name } => Operation::State(name.clone()),
        Op::Constant { .. } => Operation::Constant,
        Op::Fill { bits } => Operation::Fill(f64::from_bits(*bits)),
        Op::IndexInput { name } => Operation::IndexInput(name.clone()),
        Op::IndexTable { rows } => Operation::IndexTable(rows.clone()),
        Op::Map(map) => Operation::Map(*map),
        Op::Reshape => Operation::Reshape,
        Op::Permute { order } => Operation::Permute(order.clone()),
        Op::Expand => Operation::Expand,
        Op::Slice { spans } => Operation::Slice(spans.clone()),
        Op::Detach | Op::Softmaxed => Operation::Same,
        Op::Embed { spans } => Operation::Embed(spans.clone()),
        Op::Concatenate { axis } => Operation::Concatenate(*axis),
        Op::Gather { axis } => Operation::Gather(*axis),
        Op::ScatterAdd { axis } => Operation::ScatterAdd(*axis),
        Op::Reduce { kind: Reduction::Sum, first, end } => Operation::Sum { first: *first, end: *end },
        Op::Reduce { kind: Reduction::Max, first, end } => Operation::Max { first: *first, end: *end },
        Op::MatMul { .. } => Operation::MatMul,
        Op::InverseCholesky { jitter } => Operation::InverseCholesky(f64::from_bits(*jitter)),
        Op::Convolution(shape) => Operation::Convolution(ConvolutionOptions {
            groups: shape.groups,
            stride: shape.stride,
            padding: shape.padding,
        }),
        Op::Collect(_) => Operation::Collect,
        Op::Spread(_) => Operation::Spread,
        Op::Scan { shape, order } => Operation::Scan { order: order.clone(), directions: shape.directions },
        Op::Part { index } => Operation::Part(*index),
        Op::ConvolutionInputGradient(_) => Operation::Gradient("the gradient of a convolution's input"),
        Op::ConvolutionWeightGradient(_) => Operation::Gradient("the gradient of a convolution's weight"),
        Op::MembershipGradient { .. } => Operation::Gradient("the gradient of a membership"),
        Op::ScanGradient { .. } => Operation::Gradient("the gradient of a scan"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_shows_operators_operands_and_shapes_in_the_order_they_were_written() {
        let graph = Graph::new();
        let x = graph.input("x", [2, 3]);
        let weight = graph.parameter("weight", [3, 4]);
        graph.output("y", x.matmul(weight).tanh());
        let walk = graph.walk();
        let outputs = graph.outputs();
        assert_eq!(outputs, [("y".to_owned(), walk.len() - 1)]);
        let last = &walk[outputs[0].1];
        assert_eq!((&last.operation, last.shape.dims()), (&Operation::Map(Map::Tanh), &[2, 4][..]));
        let product = &walk[last.operands[0]];
        assert_eq!(product.operation, Operation::MatMul);
        assert_eq!(walk[product.operands[0]].operation, Operation::Input("x".into()));
        assert!(walk.iter().enumerate().all(|(place, step)| step.operands.iter().all(|&operand| operand < place)));
    }
}
