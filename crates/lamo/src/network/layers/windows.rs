//! Attention inside w × w windows of a plane (Swin, Liu et al. 2021), with a learned bias for each offset of two points:
//!
//! scores = s q kᵀ + β[Δrow + w − 1, Δcolumn + w − 1];  y = softmax(scores) v with s = 1/√c, or y = scores · v with s = 1/w²
//! (HT-Net, Liu et al. 2022).
//!
//! Between two blocks the plane is rolled by half a window; a mask then keeps points apart that are no neighbours.

use super::{Linear, join_heads, split_heads};
use crate::network::{Initial, Scope};
use lamo_tensor::{Graph, Tensor};

/// A plane cut into windows.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Extents of the plane, multiples of `side`.
    pub extents: [usize; 2],
    /// w, points along a side of a window.
    pub side: usize,
}

impl Windows {
    fn counts(self) -> [usize; 2] {
        self.extents.map(|extent| extent / self.side)
    }

    /// `[batch, rows, columns, width]` → `[batch · windows, w², width]`, windows and points in them row by row.
    pub fn cut(self, image: Tensor<'_>) -> Tensor<'_> {
        let ([batch, _, _, width], [down, across], side) = (image.dims(), self.counts(), self.side);
        let cut = image.reshape([batch, down, side, across, side, width]).permute(&[0, 1, 3, 2, 4, 5]);
        cut.reshape([batch * down * across, side * side, width])
    }

    /// The inverse of [`Windows::cut`].
    pub fn join(self, windows: Tensor<'_>) -> Tensor<'_> {
        let ([count, _, width], [down, across], side) = (windows.dims(), self.counts(), self.side);
        let cut = windows.reshape([count / (down * across), down, across, side, side, width]);
        let [rows, columns] = self.extents;
        cut.permute(&[0, 1, 3, 2, 4, 5]).reshape([count / (down * across), rows, columns, width])
    }

    /// [`Windows::cut`] of the plane whose first `shift` rows and columns are moved behind the last.
    pub fn cut_rolled(self, image: Tensor<'_>, shift: usize) -> Tensor<'_> {
        let ([batch, rows, columns, width], points) = (image.dims(), self.side * self.side);
        let index = image.graph().index_table(&self.rolled_points(shift));
        let windows = image.reshape([batch, rows * columns, width]).gather(1, index);
        windows.reshape([batch * rows * columns / points, points, width])
    }

    /// The inverse of [`Windows::cut_rolled`].
    pub fn join_rolled(self, windows: Tensor<'_>, shift: usize) -> Tensor<'_> {
        let ([count, points, width], [rows, columns]) = (windows.dims(), self.extents);
        let index = windows.graph().index_table(&inverse(&self.rolled_points(shift)));
        let batch = count * points / (rows * columns);
        let image = windows.reshape([batch, rows * columns, width]).gather(1, index);
        image.reshape([batch, rows, columns, width])
    }

    /// The points of the plane, numbered row by row, in the order of the windows of the rolled plane.
    fn rolled_points(self, shift: usize) -> Vec<u32> {
        let ([rows, columns], [_, across], side) = (self.extents, self.counts(), self.side);
        let point = |place: usize| {
            let (window, inside) = (place / (side * side), place % (side * side));
            let row = window / across * side + inside / side;
            let column = window % across * side + inside % side;
            ((row + shift) % rows * columns + (column + shift) % columns) as u32
        };
        (0..rows * columns).map(point).collect()
    }

    /// What keeps apart the points of a plane that was rolled by `shift`: −100 for pairs that were no neighbours, else 0,
    /// `[windows, w², w²]`.
    pub fn mask(self, shift: usize) -> Vec<f32> {
        let ([_, across], side) = (self.counts(), self.side);
        let part = |place: usize, extent: usize| match place {
            place if place < extent - side => 0,
            place if place < extent - shift => 1,
            _ => 2,
        };
        let label = |window: usize, point: usize| {
            let row = window / across * side + point / side;
            let column = window % across * side + point % side;
            (part(row, self.extents[0]), part(column, self.extents[1]))
        };
        let (windows, points) = (self.counts().iter().product::<usize>(), side * side);
        let pair = |window: usize, query: usize, key: usize| {
            if label(window, query) == label(window, key) { 0.0 } else { -100.0 }
        };
        (0..windows * points * points)
            .map(|place| pair(place / (points * points), place / points % points, place % points))
            .collect()
    }
}

/// The inverse of a permutation.
fn inverse(order: &[u32]) -> Vec<u32> {
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(position, &place)| inverse[place as usize] = position as u32);
    inverse
}

/// How scores become weights of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowWeights {
    /// softmax(q kᵀ/√c + β)
    Softmax,
    /// q kᵀ/w² + β
    Plain,
}

/// Attention among the points of each window.
pub struct WindowAttention<'g> {
    side: usize,
    heads: usize,
    weights: WindowWeights,
    /// `[(2w − 1)², heads]` β
    table: Tensor<'g>,
    joined: Linear<'g>,
    project: Linear<'g>,
}

impl<'g> WindowAttention<'g> {
    /// Windows of `side` × `side` points with `width` channels in `heads` heads.
    pub fn new(scope: &Scope<'_, 'g>, weights: WindowWeights, side: usize, heads: usize, width: usize) -> Self {
        let offsets = (2 * side - 1) * (2 * side - 1);
        let normal = Initial::Normal { deviation: 0.02 };
        let table = scope.parameter("relative_position_bias_table", [offsets, heads], normal);
        let rows = offset_rows(side).iter().map(|&row| row as f32).collect();
        scope.table("relative_position_index", [side * side, side * side], rows);
        WindowAttention {
            side,
            heads,
            weights,
            table,
            joined: Linear::new(&scope.enter("qkv"), width, 3 * width),
            project: Linear::new(&scope.enter("proj"), width, width),
        }
    }

    /// `[batch · windows, w², width]` → the same; the mask is `[windows, w², w²]`.
    pub fn forward(&self, windows: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
        let [count, points, width] = windows.dims();
        let parts = self.joined.forward(windows).split(2, [width; 3]);
        let [query, key, value] = parts.map(|part| split_heads(part, self.heads)); // [count, heads, w², c]
        let scale = match self.weights {
            WindowWeights::Softmax => 1.0 / ((width / self.heads) as f64).sqrt(),
            WindowWeights::Plain => 1.0 / points as f64,
        };
        let mut scores = query.matmul(key.transpose()) * scale + self.bias(); // [count, heads, w², w²]
        if let Some(mask) = mask {
            let [masks, ..] = mask.dims::<3>();
            let by_window = scores.reshape([count / masks, masks, self.heads, points, points]);
            scores =
                (by_window + mask.reshape([masks, 1, points, points])).reshape([count, self.heads, points, points]);
        }
        let weights = if self.weights == WindowWeights::Softmax { scores.lean_softmax() } else { scores };
        self.project.forward(join_heads(weights.matmul(value)))
    }

    /// β of all pairs: `[heads, w², w²]`.
    fn bias(&self) -> Tensor<'g> {
        let (graph, points): (&'g Graph, usize) = (self.table.graph(), self.side * self.side);
        let rows = self.table.gather(0, graph.index_table(&offset_rows(self.side)));
        rows.reshape([points, points, self.heads]).permute(&[2, 0, 1])
    }
}

/// The row of β for each pair of a query and a key, `[w², w²]`.
fn offset_rows(side: usize) -> Vec<u32> {
    let offset = |query: usize, key: usize| query + side - 1 - key;
    let row = |pair: usize| {
        let (query, key) = (pair / (side * side), pair % (side * side));
        let (down, across) = (offset(query / side, key / side), offset(query % side, key % side));
        (down * (2 * side - 1) + across) as u32
    };
    (0..side * side * side * side).map(row).collect()
}
