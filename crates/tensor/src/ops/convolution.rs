//! Convolution over the plane, channels last:
//! `out[b,i,j,o] = Σ_{c,u,v} w[o,c,u,v] · in[b, i·s + u − p, j·s + v − p, c]`, zero outside.
//!
//! One dimension is the plane with one row; depthwise is one group per channel.

use super::Op;
use crate::graph::Tensor;
use crate::reference::Array;
use crate::shape::Shape;

/// Groups, stride and padding of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvolutionOptions {
    /// Channels are divided into this many independent groups.
    pub groups: usize,
    /// Distance between neighbouring outputs, per axis.
    pub stride: [usize; 2],
    /// Zeros before and after each axis.
    pub padding: [[usize; 2]; 2],
}

impl Default for ConvolutionOptions {
    fn default() -> Self {
        ConvolutionOptions { groups: 1, stride: [1, 1], padding: [[0, 0]; 2] }
    }
}

/// All extents of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConvolutionShape {
    pub(crate) batch: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) in_channels: usize,
    pub(crate) out_channels: usize,
    pub(crate) groups: usize,
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [[usize; 2]; 2],
}

impl ConvolutionShape {
    pub(crate) fn out_rows(&self) -> usize {
        let [before, after] = self.padding[0];
        (self.rows + before + after - self.kernel[0]) / self.stride[0] + 1
    }

    pub(crate) fn out_columns(&self) -> usize {
        let [before, after] = self.padding[1];
        (self.columns + before + after - self.kernel[1]) / self.stride[1] + 1
    }

    pub(crate) fn input(&self) -> Shape {
        Shape::from([self.batch, self.rows, self.columns, self.in_channels])
    }

    pub(crate) fn weight(&self) -> Shape {
        Shape::from([self.out_channels, self.in_channels / self.groups, self.kernel[0], self.kernel[1]])
    }

    pub(crate) fn output(&self) -> Shape {
        Shape::from([self.batch, self.out_rows(), self.out_columns(), self.out_channels])
    }
}

impl<'g> Tensor<'g> {
    /// Convolves `[batch, rows, columns, in]` with `weight` `[out, in/groups, kernel rows, kernel columns]`.
    pub fn convolve(self, weight: Tensor<'g>, options: ConvolutionOptions) -> Tensor<'g> {
        self.same_graph(&weight);
        let (input, kernel) = (self.shape(), weight.shape());
        let ranks = input.rank() == 4 && kernel.rank() == 4;
        assert!(ranks, "convolve: expected four axes each, found input {input} and weight {kernel}");
        let ConvolutionOptions { groups, stride, padding } = options;
        let channels =
            groups > 0 && Some(input.0[3]) == kernel.0[1].checked_mul(groups) && kernel.0[0].is_multiple_of(groups);
        assert!(channels, "convolve: {groups} groups do not match input {input} and weight {kernel}");
        let padded = |axis: usize| input.0[axis + 1].saturating_add(padding[axis][0]).saturating_add(padding[axis][1]);
        let _ = Shape::from([padded(0), padded(1)]); // refused if positions inside the padded input would wrap
        let covers = |axis: usize| padded(axis) >= kernel.0[axis + 2];
        assert!(covers(0) && covers(1), "convolve: weight {kernel} is larger than the padded input {input}");
        assert!(stride[0] > 0 && stride[1] > 0, "convolve: a stride is at least 1, got {stride:?}");
        let shape = ConvolutionShape {
            batch: input.0[0],
            rows: input.0[1],
            columns: input.0[2],
            in_channels: input.0[3],
            out_channels: kernel.0[0],
            groups,
            kernel: [kernel.0[2], kernel.0[3]],
            stride,
            padding,
        };
        self.graph.add(Op::Convolution(shape), &[self.node, weight.node], shape.output())
    }
}

fn input_gradient<'g>(shape: &ConvolutionShape, cotangent: Tensor<'g>, weight: Tensor<'g>) -> Tensor<'g> {
    let op = Op::ConvolutionInputGradient(*shape);
    cotangent.graph.add(op, &[cotangent.node, weight.node], shape.input())
}

fn weight_gradient<'g>(shape: &ConvolutionShape, input: Tensor<'g>, cotangent: Tensor<'g>) -> Tensor<'g> {
    let op = Op::ConvolutionWeightGradient(*shape);
    cotangent.graph.add(op, &[input.node, cotangent.node], shape.weight())
}

fn convolution<'g>(shape: &ConvolutionShape, input: Tensor<'g>, weight: Tensor<'g>) -> Tensor<'g> {
    input.graph.add(Op::Convolution(*shape), &[input.node, weight.node], shape.output())
}

pub(crate) fn gradient<'g>(
    shape: &ConvolutionShape,
    operands: &[Tensor<'g>],
    cotangent: Tensor<'g>,
    wanted: &[bool],
) -> Vec<Option<Tensor<'g>>> {
    vec![
        wanted[0].then(|| input_gradient(shape, cotangent, operands[1])),
        wanted[1].then(|| weight_gradient(shape, operands[0], cotangent)),
    ]
}

/// The input gradient is linear in (∂out, w), so its own gradients are the two other operators again.
pub(crate) fn input_gradient_gradient<'g>(
    shape: &ConvolutionShape,
    operands: &[Tensor<'g>],
    cotangent: Tensor<'g>,
) -> Vec<Option<Tensor<'g>>> {
    vec![Some(convolution(shape, cotangent, operands[1])), Some(weight_gradient(shape, cotangent, operands[0]))]
}

/// The weight gradient is linear in (in, ∂out).
pub(crate) fn weight_gradient_gradient<'g>(
    shape: &ConvolutionShape,
    operands: &[Tensor<'g>],
    cotangent: Tensor<'g>,
) -> Vec<Option<Tensor<'g>>> {
    vec![Some(input_gradient(shape, operands[1], cotangent)), Some(convolution(shape, operands[0], cotangent))]
}

/// Calls `visit(output element, input element, weight element)` for every product in the sum.
fn for_each_product(shape: &ConvolutionShape, mut visit: impl FnMut(usize, usize, usize)) {
    let inputs = shape.in_channels / shape.groups;
    let outputs = shape.out_channels / shape.groups;
    let output_shape = shape.output();
    let weight_shape = shape.weight();
    let mut out = 0;
    crate::shape::for_each_index(&output_shape.0, |index| {
        let [b, i, j, o] = [index[0], index[1], index[2], index[3]];
        let group = o / outputs;
        crate::shape::for_each_index(&weight_shape.0[1..], |tap| {
            let [c, u, v] = [tap[0], tap[1], tap[2]];
            let row = (i * shape.stride[0] + u).checked_sub(shape.padding[0][0]).filter(|&row| row < shape.rows);
            let column =
                (j * shape.stride[1] + v).checked_sub(shape.padding[1][0]).filter(|&column| column < shape.columns);
            if let (Some(row), Some(column)) = (row, column) {
                let input = ((b * shape.rows + row) * shape.columns + column) * shape.in_channels + group * inputs + c;
                let weight = ((o * inputs + c) * shape.kernel[0] + u) * shape.kernel[1] + v;
                visit(out, input, weight);
            }
        });
        out += 1;
    });
}

pub(crate) fn reference(shape: &ConvolutionShape, input: &Array, weight: &Array) -> Vec<f64> {
    let mut values = vec![0.0; shape.output().count()];
    for_each_product(shape, |out, from, tap| values[out] += input.values[from] * weight.values[tap]);
    values
}

pub(crate) fn input_reference(shape: &ConvolutionShape, cotangent: &Array, weight: &Array) -> Vec<f64> {
    let mut values = vec![0.0; shape.input().count()];
    for_each_product(shape, |out, from, tap| values[from] += cotangent.values[out] * weight.values[tap]);
    values
}

pub(crate) fn weight_reference(shape: &ConvolutionShape, input: &Array, cotangent: &Array) -> Vec<f64> {
    let mut values = vec![0.0; shape.weight().count()];
    for_each_product(shape, |out, from, tap| values[tap] += cotangent.values[out] * input.values[from]);
    values
}
