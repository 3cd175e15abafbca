//! Matrix products: by cuBLASLt if there is at most one batch axis and the matrices are neither small nor tall; small ones and
//! several batch axes by `product.cu`, tall ones as convolutions with one tap.

use super::{Action, Argument, Family, Lowering, constants, signed};
use crate::compile::plan::Place;
use crate::ops::Precision;
use crate::ops::convolution::ConvolutionShape;
use crate::shape::Layout;
use std::fmt::Write;

/// `to[batch, m, n] = left[batch, m, k] · right[batch, k, n]`
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) left: Matrix,
    pub(crate) right: Matrix,
    pub(crate) to: Matrix,
    /// m, n, k
    pub(crate) extents: [usize; 3],
    pub(crate) batch: usize,
    pub(crate) precision: Precision,
    /// Whether left and right were exchanged.
    to_is_transposed: bool,
}

/// A matrix in memory, one per batch.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) buffer: usize,
    pub(crate) offset: isize,
    /// Strides of the two axes, then of the batch.
    pub(crate) strides: [isize; 3],
}

impl Lowering<'_> {
    /// A product in the precision of the program, or in f32 if `exact`.
    pub(super) fn product(&mut self, exact: bool, left: &Place, right: &Place, to: &Place) {
        let precision = self.precision;
        if exact {
            self.precision = Precision::F32;
        }
        self.rounded_product(left, right, to);
        self.precision = precision;
    }

    fn rounded_product(&mut self, left: &Place, right: &Place, to: &Place) {
        let rank = to.layout.dims.len();
        let mut axes: Vec<[isize; 4]> = Vec::new(); // extent, left, right, to
        for axis in (0..rank - 2).filter(|&axis| to.layout.dims[axis] > 1) {
            let next = [
                to.layout.dims[axis] as isize,
                left.layout.strides[axis],
                right.layout.strides[axis],
                to.layout.strides[axis],
            ];
            match axes.last_mut() {
                Some(last) if (1..4).all(|i| last[i] == next[0] * next[i]) => {
                    *last = [last[0] * next[0], next[1], next[2], next[3]];
                }
                _ => axes.push(next),
            }
        }
        let [m, k] = [left.layout.dims[rank - 2], left.layout.dims[rank - 1]];
        let n = right.layout.dims[rank - 1];
        let matrix = |place: &Place, which: usize| Matrix {
            buffer: place.buffer,
            offset: place.layout.offset,
            strides: [
                place.layout.strides[rank - 2],
                place.layout.strides[rank - 1],
                axes.first().map_or(0, |axis| axis[which]),
            ],
        };
        let batch = axes.iter().map(|axis| axis[0] as usize).product();
        let mut product = Product {
            left: matrix(left, 1),
            right: matrix(right, 2),
            to: matrix(to, 3),
            extents: [m, n, k],
            batch,
            precision: self.precision,
            to_is_transposed: false,
        };
        // The columns of the result should be contiguous: Cᵀ = Bᵀ·Aᵀ.
        if product.to.strides[1] != 1 && product.to.strides[0] == 1 {
            product.transpose();
        }
        let long = product.extents[0] * product.extents[1] <= 64 * 64 && k >= 2048;
        // cuBLASLt supports one batch axis. Two axes, and long sums into small matrices, are faster by our own kernels.
        let rows = product.left.strides[1] == 1 || product.extents[1] > 32;
        if product.is_small() {
            self.small_product(&product, &axes);
        } else if product.is_tall() && self.has_warp_groups() {
            self.tall_product(&product);
        } else if product.is_aligned(&axes) && rows && (axes.len() > 1 || (long && batch > 1)) {
            self.aligned_product(&product, &axes);
        } else if axes.len() <= 1 && product.suits_the_library() && !(long && batch > 1) {
            self.actions.push(Action::Product(product));
        } else {
            self.own_product(&product, &axes, k);
        }
    }

    /// Extents and strides as constants, and a function that returns the offsets of a batch.
    fn product_shape(&self, product: &Product, axes: &[[isize; 4]], tiles: &[(&str, usize)]) -> String {
        let [m, n, k] = product.extents;
        let mut shape = constants(&[("M", m), ("N", n), ("K", k), ("PRECISION", usize::from(self.number()))]);
        shape.push_str(&constants(tiles));
        let (left, right, to) = (&product.left.strides, &product.right.strides, &product.to.strides);
        shape.push_str(&signed(&[
            ("LEFT_M", left[0]),
            ("LEFT_K", left[1]),
            ("RIGHT_K", right[0]),
            ("RIGHT_N", right[1]),
            ("TO_M", to[0]),
            ("TO_N", to[1]),
            ("LEFT_K1", isize::from(left[1] == 1)),
            ("RIGHT_N1", isize::from(right[1] == 1)),
        ]));
        shape.push_str(
            "  __device__ static void batch(int i, long long& l, long long& r, long long& t) { l = r = t = 0;",
        );
        for axis in axes.iter().rev() {
            let (l, r) = if product.to_is_transposed { (axis[2], axis[1]) } else { (axis[1], axis[2]) };
            let _ = write!(
                shape,
                " {{ const int d = i % {}; i /= {}; l += d * {l}LL; r += d * {r}LL; t += d * {}LL; }}",
                axis[0], axis[0], axis[3]
            );
        }
        shape.push_str(" }\n");
        shape
    }

    fn aligned_product(&mut self, product: &Product, axes: &[[isize; 4]]) {
        let [m, n, k] = product.extents;
        let tn: usize = if n > 64 { 128 } else { 64 };
        let tiles = m.div_ceil(128) * n.div_ceil(tn) * product.batch;
        let split = (264 / tiles).clamp(1, k.div_ceil(256));
        let of = |matrix: &Matrix| Argument::Buffer { buffer: matrix.buffer, offset: matrix.offset };
        let a = if product.left.strides[1] == 1 { 128 * 36 } else { 32 * 136 };
        let b = if product.right.strides[1] == 1 { 32 * (tn + 8) } else { tn * 36 };
        let stages = k.div_ceil(split).div_ceil(32).min(3).min(self.shared / ((a + b) * 4));
        let shape = self.product_shape(product, axes, &[("TN", tn), ("SPLIT", split), ("STAGES", stages)]);
        let scratch = if split > 1 { tiles * split * 128 * tn } else { 0 };
        let arguments = vec![
            ("const float*", of(&product.left)),
            ("const float*", of(&product.right)),
            ("float*", of(&product.to)),
            ("float*", Argument::Scratch(0)),
        ];
        self.launch(
            Family::Product,
            "product_aligned",
            &shape,
            tiles * split,
            stages * (a + b) * 4,
            arguments,
            scratch,
        );
        if split > 1 {
            let arguments = vec![("const float*", Argument::Scratch(0)), ("float*", of(&product.to))];
            self.launch(Family::Product, "sum_splits", &shape, tiles * 128 * tn / 256, 0, arguments, scratch);
        }
    }

    fn small_product(&mut self, product: &Product, axes: &[[isize; 4]]) {
        let shape = self.product_shape(product, axes, &[("BATCH", product.batch)]);
        let of = |matrix: &Matrix| Argument::Buffer { buffer: matrix.buffer, offset: matrix.offset };
        let arguments = vec![
            ("const float*", of(&product.left)),
            ("const float*", of(&product.right)),
            ("float*", of(&product.to)),
        ];
        let blocks = product.small_tiles().div_ceil(4);
        self.launch(Family::Product, "product_small", &shape, blocks, 0, arguments, 0);
    }

    /// Many rows and a short sum: each row is a pixel, and the right operand is a kernel with one tap.
    fn tall_product(&mut self, product: &Product) {
        let [m, n, k] = product.extents;
        let rows = |matrix: &Matrix, columns: usize| Place {
            buffer: matrix.buffer,
            layout: Layout {
                offset: matrix.offset,
                dims: vec![1, 1, m, columns],
                strides: vec![0, 0, matrix.strides[0], 1],
            },
        };
        let [along_k, along_n, _] = product.right.strides;
        let weight = Place {
            buffer: product.right.buffer,
            layout: Layout {
                offset: product.right.offset,
                dims: vec![n, k, 1, 1],
                strides: vec![along_n, along_k, 0, 0],
            },
        };
        let shape = ConvolutionShape {
            batch: 1,
            rows: 1,
            columns: m,
            in_channels: k,
            out_channels: n,
            groups: 1,
            kernel: [1, 1],
            stride: [1, 1],
            padding: [[0, 0]; 2],
        };
        self.convolution(&shape, &rows(&product.left, k), &weight, &rows(&product.to, n));
    }

    fn own_product(&mut self, product: &Product, axes: &[[isize; 4]], k: usize) {
        let [m, n, _] = product.extents;
        let fit = |extent: usize| if extent > 32 { 64 } else { extent.next_power_of_two().max(16) };
        let (tm, tn) = (fit(m), fit(n));
        let tiles = m.div_ceil(tm) * n.div_ceil(tn) * product.batch;
        let split = (528 / tiles).clamp(1, k.div_ceil(128)).max(1);
        let shape = self.product_shape(product, axes, &[("TM", tm), ("TN", tn), ("SPLIT", split)]);
        let of = |matrix: &Matrix| Argument::Buffer { buffer: matrix.buffer, offset: matrix.offset };
        let arguments = vec![
            ("const float*", of(&product.left)),
            ("const float*", of(&product.right)),
            ("float*", of(&product.to)),
            ("float*", Argument::Scratch(0)),
            ("uint32*", Argument::Counters),
        ];
        let scratch = if split > 1 { tiles * split * tm * tn } else { 0 };
        self.launch(Family::Product, "product", &shape, tiles * split, 0, arguments, scratch);
    }
}

impl Product {
    fn transpose(&mut self) {
        let transposed = |matrix: &Matrix| Matrix {
            strides: [matrix.strides[1], matrix.strides[0], matrix.strides[2]],
            ..matrix.clone()
        };
        let (left, right) = (transposed(&self.right), transposed(&self.left));
        self.to = transposed(&self.to);
        (self.left, self.right) = (left, right);
        self.extents.swap(0, 1);
        self.to_is_transposed = !self.to_is_transposed;
    }

    /// Tiles of 16 × 16.
    fn small_tiles(&self) -> usize {
        let [m, n, _] = self.extents;
        m.div_ceil(16) * n.div_ceil(16) * self.batch
    }

    /// Whether sums are short, and matrices so small, or so few, that the start of a product takes longer than the product.
    fn is_small(&self) -> bool {
        let [m, n, k] = self.extents;
        k <= 64 && ((m <= 32 && n <= 32) || self.small_tiles() * k <= 1 << 16)
    }

    /// Whether there is one product of so many rows, and so short a sum, that memory traffic takes most of its time. Then our kernel
    /// is faster than cuBLASLt's, on rows that start at multiples of four elements.
    fn is_tall(&self) -> bool {
        let [m, n, k] = self.extents;
        let aligned = |matrix: &Matrix| matrix.strides[1] == 1 && matrix.strides[0] % 4 == 0 && matrix.offset % 4 == 0;
        let channels = |count: usize| count >= 16 && count.is_multiple_of(4);
        self.batch == 1
            && m >= 1 << 16
            && k <= 128
            && channels(k)
            && channels(n)
            && aligned(&self.left)
            && aligned(&self.to)
    }

    /// Whether both operands have a contiguous axis with rows that start at multiples of four elements, and the result has
    /// contiguous columns.
    fn is_aligned(&self, axes: &[[isize; 4]]) -> bool {
        let [m, n, k] = self.extents;
        let four = |number: isize| number % 4 == 0;
        let operand = |matrix: &Matrix, rows: usize, columns: usize| {
            let [r, c, _] = matrix.strides;
            four(matrix.offset)
                && ((c == 1 && four(r) && columns.is_multiple_of(4))
                    || (r == 1 && c != 1 && four(c) && rows.is_multiple_of(4)))
        };
        operand(&self.left, m, k)
            && operand(&self.right, k, n)
            && self.to.strides[1] == 1
            && self.to.offset % 2 == 0
            && self.to.strides[0] % 2 == 0
            && n.is_multiple_of(2)
            && axes.iter().all(|axis| four(axis[1]) && four(axis[2]) && axis[3] % 2 == 0)
    }

    /// Whether each matrix has a contiguous axis and a larger stride along the other, as cuBLASLt needs.
    fn suits_the_library(&self) -> bool {
        let [m, n, k] = self.extents;
        let suits = |matrix: &Matrix, rows: usize, columns: usize| {
            let [r, c, _] = matrix.strides;
            (c == 1 || columns == 1) && (rows == 1 || r >= columns as isize)
                || (r == 1 || rows == 1) && (columns == 1 || c >= rows as isize)
        };
        let to = self.to.strides;
        suits(&self.left, m, k) && suits(&self.right, k, n) && (to[1] == 1 || n == 1) && (m == 1 || to[0] >= n as isize)
    }
}
