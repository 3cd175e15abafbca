//! Matrix products over the last two axes; the axes before them are batches.

use super::Op;
use crate::graph::Tensor;
use crate::ops::view::around;
use crate::reference::Array;
use crate::shape::Shape;

/// How products, convolutions and scans may round their operands on a GPU. Sums are always in f32, and a CPU computes
/// everything in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 24 bits of significand.
    #[default]
    F32,
    /// 11 bits on tensor cores.
    Tf32,
    /// 8 bits on tensor cores.
    Bf16,
}

impl<'g> Tensor<'g> {
    /// `[batch…, m, k] × [batch…, k, n]`. Batches must agree; a right side of two axes is used for every batch.
    pub fn matmul(self, right: Tensor<'g>) -> Tensor<'g> {
        self.product(right, false)
    }

    /// [`Tensor::matmul`] in f32 whatever the [`Precision`] of the program, and so are its gradients: for small products whose
    /// errors a badly conditioned matrix makes large.
    pub fn matmul_in_f32(self, right: Tensor<'g>) -> Tensor<'g> {
        self.product(right, true)
    }

    fn product(self, right: Tensor<'g>, exact: bool) -> Tensor<'g> {
        self.same_graph(&right);
        let (a, b) = (self.shape(), right.shape());
        let fits = a.rank() >= 2 && b.rank() >= 2 && a.0[a.rank() - 1] == b.0[b.rank() - 2];
        assert!(fits, "matmul: inner extents of {a} and {b} differ, or one has fewer than two axes");
        let columns = b.0[b.rank() - 1];
        if b.rank() == 2 && a.rank() > 2 {
            let (inner, rows) = (b.0[0], a.count() / b.0[0]);
            let mut dims = a.0;
            *dims.last_mut().expect("rank is above 2") = columns;
            return self.reshape([rows, inner]).product(right, exact).reshape(dims);
        }
        let batch = a.rank() - 2;
        assert!(a.rank() == b.rank() && a.0[..batch] == b.0[..batch], "matmul: batches of {a} and {b} differ");
        let mut dims = a.0;
        dims[batch + 1] = columns;
        self.graph.add(Op::MatMul { exact }, &[self.node, right.node], Shape::from(dims))
    }

    /// Exchanges the last two axes.
    pub fn transpose(self) -> Tensor<'g> {
        let rank = self.shape().rank();
        assert!(rank >= 2, "transpose: shape {} has fewer than two axes", self.shape());
        self.swap(rank - 2, rank - 1)
    }
}

/// C = A B:  ∂A = ∂C Bᵀ,  ∂B = Aᵀ ∂C.
pub(crate) fn gradient<'g>(
    exact: bool,
    operands: &[Tensor<'g>],
    cotangent: Tensor<'g>,
    wanted: &[bool],
) -> Vec<Option<Tensor<'g>>> {
    let (a, b) = (operands[0], operands[1]);
    vec![
        wanted[0].then(|| cotangent.product(b.transpose(), exact)),
        wanted[1].then(|| a.transpose().product(cotangent, exact)),
    ]
}

pub(crate) fn reference(a: &Array, b: &Array) -> Vec<f64> {
    let rank = a.shape.rank();
    let [batch, rows, inner] = around(&a.shape.0, rank - 2);
    let columns = b.shape.0[rank - 1];
    let mut values = Vec::with_capacity(batch * rows * columns);
    for block in 0..batch {
        for row in 0..rows {
            for column in 0..columns {
                let left = |k: usize| a.values[(block * rows + row) * inner + k];
                let right = |k: usize| b.values[(block * inner + k) * columns + column];
                values.push((0..inner).map(|k| left(k) * right(k)).sum());
            }
        }
    }
    values
}
