//! Views and assemblies: elements reordered, repeated, left out or joined. The only arithmetic is the addition of rows that
//! have the same index.

use super::Op;
use crate::graph::{Index, Tensor};
use crate::reference::Array;
use crate::shape::{Shape, Span, contiguous_strides, for_each_index};

impl<'g> Tensor<'g> {
    /// The same elements in row-major order under another shape.
    pub fn reshape(self, shape: impl Into<Shape>) -> Tensor<'g> {
        let (from, to) = (self.shape(), shape.into());
        assert_eq!(from.count(), to.count(), "reshape: {from} has {} elements, {to} {}", from.count(), to.count());
        if from == to {
            return self;
        }
        let node = self.graph.node(self.node);
        let base = if node.op == Op::Reshape { node.operands[0] } else { self.node };
        if self.graph.node(base).shape == to {
            return self.graph.tensor(base);
        }
        self.graph.add(Op::Reshape, &[base], to)
    }

    /// Axis `i` of the result is axis `order[i]` of the operand.
    pub fn permute(self, order: &[usize]) -> Tensor<'g> {
        let shape = self.shape();
        let mut seen = vec![false; shape.rank()];
        let valid = order.len() == shape.rank()
            && order.iter().all(|&axis| axis < seen.len() && !std::mem::replace(&mut seen[axis], true));
        assert!(valid, "permute: {order:?} is no permutation of the {} axes of {shape}", shape.rank());
        if order.iter().enumerate().all(|(position, &axis)| position == axis) {
            return self;
        }
        let node = self.graph.node(self.node);
        if let Op::Permute { order: inner } = node.op {
            let composed: Vec<_> = order.iter().map(|&axis| inner[axis]).collect();
            return self.graph.tensor(node.operands[0]).permute(&composed);
        }
        let dims: Vec<_> = order.iter().map(|&axis| shape.0[axis]).collect();
        self.graph.add(Op::Permute { order: order.to_vec() }, &[self.node], Shape::from(dims))
    }

    /// Exchanges two axes.
    pub fn swap(self, first: usize, second: usize) -> Tensor<'g> {
        let mut order: Vec<_> = (0..self.shape().rank()).collect();
        order.swap(first, second);
        self.permute(&order)
    }

    /// Repeats axes of extent 1; leading axes are added as needed.
    pub fn broadcast_to(self, shape: impl Into<Shape>) -> Tensor<'g> {
        let (from, to) = (self.shape(), shape.into());
        if from == to {
            return self;
        }
        let fits = from.broadcast(&to).as_ref() == Some(&to);
        assert!(fits, "broadcast: {from} does not stretch to {to}");
        let mut aligned = vec![1; to.rank() - from.rank()];
        aligned.extend_from_slice(&from.0);
        let aligned = self.reshape(aligned);
        if aligned.shape() == to {
            return aligned;
        }
        self.graph.add(Op::Expand, &[aligned.node], to)
    }

    /// The part that one [`Span`] per axis selects.
    pub fn spans(self, spans: &[Span]) -> Tensor<'g> {
        let shape = self.shape();
        let fits = spans.len() == shape.rank() && spans.iter().zip(&shape.0).all(|(span, &extent)| span.fits(extent));
        assert!(fits, "slice: {spans:?} does not fit shape {shape}");
        let spans: Vec<_> = spans.iter().map(|span| span.normalised()).collect();
        if spans.iter().zip(&shape.0).all(|(span, &extent)| *span == Span::all(extent)) {
            return self;
        }
        let dims: Vec<_> = spans.iter().map(|span| span.length).collect();
        self.graph.add(Op::Slice { spans }, &[self.node], Shape::from(dims))
    }

    /// Elements `start..end` of one axis.
    pub fn slice(self, axis: usize, start: usize, end: usize) -> Tensor<'g> {
        let shape = self.shape();
        let fits = axis < shape.rank() && start < end && end <= shape.0[axis];
        assert!(fits, "slice: {start}..{end} of axis {axis} does not fit shape {shape}");
        let mut spans: Vec<_> = shape.0.iter().map(|&extent| Span::all(extent)).collect();
        spans[axis] = Span::range(start, end);
        self.spans(&spans)
    }

    /// One axis backwards.
    pub fn flip(self, axis: usize) -> Tensor<'g> {
        let shape = self.shape();
        assert!(axis < shape.rank(), "flip: shape {shape} has no axis {axis}");
        let mut spans: Vec<_> = shape.0.iter().map(|&extent| Span::all(extent)).collect();
        spans[axis] = Span::flipped(shape.0[axis]);
        self.spans(&spans)
    }

    /// Divides one axis into consecutive pieces of the given lengths.
    pub fn split<const PIECES: usize>(self, axis: usize, lengths: [usize; PIECES]) -> [Tensor<'g>; PIECES] {
        let shape = self.shape();
        let total = lengths.iter().try_fold(0_usize, |total, &length| total.checked_add(length));
        assert!(
            total.is_some() && shape.0.get(axis) == total.as_ref(),
            "split: {lengths:?} does not add up to axis {axis} of {shape}"
        );
        let mut start = 0;
        lengths.map(|length| {
            start += length;
            self.slice(axis, start - length, start)
        })
    }

    /// Zeros of shape `shape` with the tensor at `spans`: the transpose of [`Tensor::spans`].
    pub fn embed(self, spans: &[Span], shape: impl Into<Shape>) -> Tensor<'g> {
        let (from, to) = (self.shape(), shape.into());
        let fits = spans.len() == to.rank()
            && from.rank() == to.rank()
            && spans.iter().zip(&to.0).all(|(span, &extent)| span.fits(extent))
            && spans.iter().zip(&from.0).all(|(span, &extent)| span.length == extent);
        assert!(fits, "embed: {spans:?} does not place shape {from} inside {to}");
        let spans: Vec<_> = spans.iter().map(|span| span.normalised()).collect();
        if from == to && spans.iter().all(|span| span.step == 1) {
            return self;
        }
        // Two embeddings in a row become one.
        let node = self.graph.node(self.node);
        if let Op::Embed { spans: inner } = &node.op {
            let through = |(outer, inner): (&Span, &Span)| Span {
                start: outer.at(inner.start) as usize,
                step: outer.step * inner.step,
                length: inner.length,
            };
            let spans = spans.iter().zip(inner).map(through).map(Span::normalised).collect();
            return self.graph.add(Op::Embed { spans }, &node.operands, to);
        }
        self.graph.add(Op::Embed { spans }, &[self.node], to)
    }

    /// Adds `before` and `after` zeros at the ends of one axis.
    pub fn pad(self, axis: usize, before: usize, after: usize) -> Tensor<'g> {
        let mut dims = self.shape().0;
        assert!(axis < dims.len(), "pad: shape {dims:?} has no axis {axis}");
        let mut spans: Vec<_> = dims.iter().map(|&extent| Span::all(extent)).collect();
        let extent = dims[axis];
        dims[axis] = extent.saturating_add(before).saturating_add(after);
        let padded = Shape::from(dims);
        spans[axis] = Span::range(before, before + extent);
        self.embed(&spans, padded)
    }

    /// Joins tensors end to end along one axis.
    pub fn concatenate(pieces: &[Tensor<'g>], axis: usize) -> Tensor<'g> {
        let first = pieces.first().expect("concatenate needs at least one tensor");
        if pieces.len() == 1 {
            return *first;
        }
        let mut dims = first.shape().0;
        assert!(axis < dims.len(), "concatenate: shape {dims:?} has no axis {axis}");
        dims[axis] = 0;
        for piece in pieces {
            first.same_graph(piece);
            let shape = piece.shape();
            let agrees = shape.rank() == dims.len() && (0..dims.len()).all(|a| a == axis || shape.0[a] == dims[a]);
            assert!(agrees, "concatenate along axis {axis}: shapes {} and {shape} differ elsewhere", first.shape());
            dims[axis] = dims[axis].saturating_add(shape.0[axis]);
        }
        let nodes: Vec<_> = pieces.iter().map(|piece| piece.node).collect();
        first.graph.add(Op::Concatenate { axis }, &nodes, Shape::from(dims))
    }

    /// Row `i` of the result is row `index[i]` of the operand along one axis. An index beyond the axis panics when the
    /// program runs.
    pub fn gather(self, axis: usize, index: Index<'g>) -> Tensor<'g> {
        self.same_graph(&index.graph.tensor(index.node));
        let mut dims = self.shape().0;
        assert!(axis < dims.len(), "gather: shape {dims:?} has no axis {axis}");
        dims[axis] = index.length();
        self.graph.add(Op::Gather { axis }, &[self.node, index.node], Shape::from(dims))
    }

    /// Adds row `i` of the operand to row `index[i]` of zeros with `rows` rows: the transpose of [`Tensor::gather`].
    pub fn scatter_add(self, axis: usize, index: Index<'g>, rows: usize) -> Tensor<'g> {
        self.same_graph(&index.graph.tensor(index.node));
        let mut dims = self.shape().0;
        assert!(axis < dims.len(), "scatter_add: shape {dims:?} has no axis {axis}");
        let (extent, named) = (dims[axis], index.length());
        assert!(extent == named, "scatter_add: axis {axis} has {extent} rows, the index names {named}");
        dims[axis] = rows;
        self.graph.add(Op::ScatterAdd { axis }, &[self.node, index.node], Shape::from(dims))
    }
}

/// Gradient of the first operand.
pub(crate) fn gradient<'g>(op: &Op, operands: &[Tensor<'g>], cotangent: Tensor<'g>) -> Tensor<'g> {
    let shape = operands[0].shape();
    let index = || Index { graph: cotangent.graph, node: operands[1].node };
    match op {
        Op::Reshape => cotangent.reshape(shape),
        Op::Permute { order } => {
            let mut inverse = vec![0; order.len()];
            for (position, &axis) in order.iter().enumerate() {
                inverse[axis] = position;
            }
            cotangent.permute(&inverse)
        }
        Op::Expand => {
            let stretched: Vec<_> = (0..shape.rank()).filter(|&a| shape.0[a] != cotangent.shape().0[a]).collect();
            cotangent.sum(&stretched)
        }
        Op::Embed { spans } => cotangent.spans(spans),
        Op::Gather { axis } => match inverse_table(operands[1], shape.0[*axis]) {
            Some(inverse) => cotangent.gather(*axis, inverse),
            None => cotangent.scatter_add(*axis, index(), shape.0[*axis]),
        },
        Op::ScatterAdd { axis } => cotangent.gather(*axis, index()),
        _ => unreachable!("{op:?} has its gradient elsewhere"),
    }
}

/// The inverse of an index that is fixed in the program and names each of `rows` rows once.
fn inverse_table<'g>(index: Tensor<'g>, rows: usize) -> Option<Index<'g>> {
    let Op::IndexTable { rows: table } = index.graph.node(index.node).op else { return None };
    if table.len() != rows {
        return None;
    }
    let mut inverse = vec![u32::MAX; rows];
    for (position, &row) in table.iter().enumerate() {
        let place = inverse.get_mut(row as usize)?;
        if *place != u32::MAX {
            return None;
        }
        *place = position as u32;
    }
    Some(index.graph.index_table(&inverse))
}

pub(crate) fn concatenate_gradient<'g>(
    axis: usize,
    operands: &[Tensor<'g>],
    cotangent: Tensor<'g>,
) -> Vec<Option<Tensor<'g>>> {
    let mut start = 0;
    let part = |operand: &Tensor<'g>| {
        let length = operand.shape().0[axis];
        start += length;
        Some(cotangent.slice(axis, start - length, start))
    };
    operands.iter().map(part).collect()
}

pub(crate) fn reference(op: &Op, shape: &Shape, operands: &[&Array]) -> Vec<f64> {
    let operand = operands[0];
    let strides = contiguous_strides(&operand.shape.0);
    let read = |address: isize| operand.values[address as usize];
    let mut values = vec![0.0; shape.count()];
    let mut next = 0;
    match op {
        Op::Reshape | Op::Detach | Op::Softmaxed => return operand.values.clone(),
        Op::Concatenate { axis } => return concatenate_reference(*axis, shape, operands),
        Op::Gather { axis } | Op::ScatterAdd { axis } => return rows_reference(op, *axis, shape, operands),
        Op::Permute { order } => for_each_index(&shape.0, |index| {
            values[next] = read(index.iter().zip(order).map(|(&i, &axis)| i as isize * strides[axis]).sum());
            next += 1;
        }),
        Op::Expand => for_each_index(&shape.0, |index| {
            let inside = |axis: usize| if operand.shape.0[axis] == 1 { 0 } else { index[axis] as isize };
            values[next] = read((0..index.len()).map(|axis| inside(axis) * strides[axis]).sum());
            next += 1;
        }),
        Op::Slice { spans } => for_each_index(&shape.0, |index| {
            values[next] = read((0..index.len()).map(|axis| spans[axis].at(index[axis]) * strides[axis]).sum());
            next += 1;
        }),
        Op::Embed { spans } => {
            let strides = contiguous_strides(&shape.0);
            for_each_index(&operand.shape.0, |index| {
                let place: isize = (0..index.len()).map(|axis| spans[axis].at(index[axis]) * strides[axis]).sum();
                values[place as usize] = operand.values[next];
                next += 1;
            });
        }
        _ => unreachable!("{op:?} is no view"),
    }
    values
}

/// `[outer, axis, inner]` extents around an axis.
pub(crate) fn around(dims: &[usize], axis: usize) -> [usize; 3] {
    [dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product()]
}

fn concatenate_reference(axis: usize, shape: &Shape, operands: &[&Array]) -> Vec<f64> {
    let [outer, ..] = around(&shape.0, axis);
    let mut values = Vec::with_capacity(shape.count());
    for block in 0..outer {
        for operand in operands {
            let length = operand.values.len() / outer;
            values.extend_from_slice(&operand.values[block * length..(block + 1) * length]);
        }
    }
    values
}

fn rows_reference(op: &Op, axis: usize, shape: &Shape, operands: &[&Array]) -> Vec<f64> {
    let [outer, to_rows, inner] = around(&shape.0, axis);
    let from_rows = operands[0].shape.0[axis];
    let mut values = vec![0.0; shape.count()];
    for block in 0..outer {
        for (position, &row) in operands[1].values.iter().enumerate() {
            for element in 0..inner {
                let row = row as usize;
                if matches!(op, Op::Gather { .. }) {
                    let from = (block * from_rows + row) * inner + element;
                    values[(block * to_rows + position) * inner + element] = operands[0].values[from];
                } else {
                    let from = (block * from_rows + position) * inner + element;
                    values[(block * to_rows + row) * inner + element] += operands[0].values[from];
                }
            }
        }
    }
    values
}
