//! Reductions: sums and maxima over axes, which remain with extent 1; means derive from them.

use super::{Map, Op, Reduction};
use crate::graph::Tensor;
use crate::ops::view::around;
use crate::reference::Array;
use crate::shape::Shape;

impl<'g> Tensor<'g> {
    fn reduce(self, kind: Reduction, axes: &[usize]) -> Tensor<'g> {
        let mut shape = self.shape();
        let mut axes = axes.to_vec();
        axes.sort_unstable();
        axes.dedup();
        assert!(axes.iter().all(|&axis| axis < shape.rank()), "{kind:?} over axes {axes:?} of shape {shape}");
        let mut result = self;
        // One operator per group of neighbouring axes, last group first.
        while let Some(&last) = axes.last() {
            let mut first = last;
            while axes.pop().is_some() && axes.last().is_some_and(|&axis| axis + 1 == first) {
                first -= 1;
            }
            if shape.0[first..=last].iter().all(|&extent| extent == 1) {
                continue;
            }
            shape.0[first..=last].fill(1);
            let op = Op::Reduce { kind, first, end: last + 1 };
            result = self.graph.add(op, &[result.node], shape.clone());
        }
        result
    }

    /// Sum over `axes`, which remain with extent 1.
    pub fn sum(self, axes: &[usize]) -> Tensor<'g> {
        // A factor that is the same for all elements is cheaper after the sum; `None` stands for a negation.
        let mut factors: Vec<Option<f64>> = Vec::new();
        let mut summed = self;
        loop {
            let node = self.graph.node(summed.node);
            let operand = |position: usize| self.graph.tensor(node.operands[position]);
            factors.push(match node.op {
                Op::Map(Map::Negate) => None,
                Op::Map(Map::Multiply) if operand(1).number().is_some() => operand(1).number(),
                _ => break,
            });
            summed = operand(0);
        }
        let sum = summed.reduce(Reduction::Sum, axes);
        factors.into_iter().rev().fold(sum, |sum, factor| factor.map_or(-sum, |factor| sum * factor))
    }

    /// Largest element over `axes`, which remain with extent 1. Equal largest elements share the gradient evenly.
    pub fn max(self, axes: &[usize]) -> Tensor<'g> {
        self.reduce(Reduction::Max, axes)
    }

    /// Mean over `axes`, which remain with extent 1.
    pub fn mean(self, axes: &[usize]) -> Tensor<'g> {
        let shape = self.shape();
        let sum = self.sum(axes);
        sum * (1.0 / (shape.count() / sum.shape().count()) as f64)
    }

    /// Sum of all elements, shape `[]`.
    pub fn sum_all(self) -> Tensor<'g> {
        let axes: Vec<_> = (0..self.shape().rank()).collect();
        self.sum(&axes).reshape(Shape::from([]))
    }
}

pub(crate) fn gradient<'g>(
    kind: Reduction,
    operand: Tensor<'g>,
    result: Tensor<'g>,
    cotangent: Tensor<'g>,
) -> Tensor<'g> {
    match kind {
        Reduction::Sum => cotangent.broadcast_to(operand.shape()),
        Reduction::Max => {
            let is_largest = operand.equal(result);
            let shape = operand.shape();
            let reduced: Vec<_> = (0..shape.rank()).filter(|&axis| shape.0[axis] != result.shape().0[axis]).collect();
            is_largest * (cotangent / is_largest.sum(&reduced))
        }
    }
}

pub(crate) fn reference(kind: Reduction, first: usize, end: usize, operand: &Array) -> Vec<f64> {
    let dims = &operand.shape.0;
    let run: usize = dims[first..end].iter().product();
    let [outer, _, inner] = around(dims, first);
    let inner = inner * dims[first] / run;
    let element = |block: usize, row: usize, column: usize| operand.values[(block * run + row) * inner + column];
    let mut values = Vec::with_capacity(outer * inner);
    for block in 0..outer {
        for column in 0..inner {
            let rows = (0..run).map(|row| element(block, row, column));
            values.push(match kind {
                Reduction::Sum => rows.sum(),
                Reduction::Max => rows.fold(f64::NEG_INFINITY, |a, b| if a > b || a.is_nan() { a } else { b }),
            });
        }
    }
    values
}
