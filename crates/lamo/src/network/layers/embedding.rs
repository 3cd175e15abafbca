//! Embeddings: times as sines, positions as distances to a lattice.

use super::Linear;
use crate::network::Scope;
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Tensor};

/// second(SiLU(first(e(T)))) with e of [`time_embedding`]. Models add it to the features of all points.
pub struct TimeEmbedding<'g> {
    width: usize,
    first: Linear<'g>,
    second: Linear<'g>,
}

impl<'g> TimeEmbedding<'g> {
    /// `time_fc` inside `scope`: `width` → `hidden` → `width`.
    pub fn new(scope: &Scope<'_, 'g>, width: usize, hidden: usize) -> Self {
        let scope = scope.enter("time_fc");
        TimeEmbedding {
            width,
            first: Linear::new(&scope.enter("0"), width, hidden),
            second: Linear::new(&scope.enter("2"), hidden, width),
        }
    }

    /// `[batch, 1]` → `[batch, width]`
    pub fn forward(&self, time: Tensor<'g>) -> Tensor<'g> {
        self.second.forward(self.first.forward(time_embedding(time, self.width)).silu())
    }
}

/// [cos(T ω₀) … | sin(T ω₀) …] with ω_k = 10000^{−k/half}, half = ⌊width/2⌋ ≥ 1: `[batch, 1]` → `[batch, width]`; an odd
/// width ends in a zero.
pub fn time_embedding<'g>(time: Tensor<'g>, width: usize) -> Tensor<'g> {
    let half = width / 2;
    // The authors compute in f32. Values rounded once from f64 would differ from theirs in the last digit.
    let slope = -(10000.0_f64.ln()) as f32;
    let frequencies: Vec<f32> = (0..half).map(|k| (slope * k as f32 / half as f32).exp()).collect();
    let phase = time * time.graph().constant(&frequencies, [half]);
    let pairs = Tensor::concatenate(&[phase.cos(), phase.sin()], 1);
    if width.is_multiple_of(2) { pairs } else { pairs.pad(1, 0, 1) }
}

/// Points of a side × side lattice on the unit square, row by row.
fn lattice(side: usize) -> Vec<[f64; 2]> {
    let at = |index: usize| index as f64 / (side - 1) as f64;
    (0..side * side).map(|index| [at(index / side), at(index % side)]).collect()
}

/// Distances from the points of a plane, laid on the unit square, to the lattice: `[points, side²]`, a constant.
pub fn plane_distances(graph: &Graph, rows: usize, columns: usize, side: usize) -> Tensor<'_> {
    let at = |index: usize, extent: usize| index as f64 / (extent - 1) as f64;
    let distances: Vec<f32> = (0..rows * columns)
        .flat_map(|point| {
            let [x, y] = [at(point / columns, rows), at(point % columns, columns)];
            lattice(side).into_iter().map(move |[a, b]| ((x - a).powi(2) + (y - b).powi(2)).sqrt() as f32)
        })
        .collect();
    graph.constant(&distances, [rows * columns, side * side])
}

/// Distances from given points to the lattice: `[batch, points, 2]` → `[batch, points, side²]`.
pub fn cloud_distances(positions: Tensor<'_>, side: usize) -> Tensor<'_> {
    let [batch, points, _] = positions.dims();
    let coordinate = |axis: usize| {
        let values: Vec<f32> = lattice(side).iter().map(|point| point[axis] as f32).collect();
        let lattice = positions.graph().constant(&values, [side * side]);
        let own = positions.slice(2, axis, axis + 1).broadcast_to([batch, points, side * side]);
        (own - lattice).square()
    };
    (coordinate(0) + coordinate(1)).sqrt()
}

/// What a model sees in place of the positions: distances to a lattice, `[batch, points, side²]`.
pub fn unified_positions<'g>(positions: Tensor<'g>, grid: Grid, side: usize) -> Tensor<'g> {
    let [batch, points, _] = positions.dims();
    match grid {
        Grid::Plane { rows, columns } => {
            plane_distances(positions.graph(), rows, columns, side).broadcast_to([batch, points, side * side])
        }
        Grid::Line { .. } | Grid::Volume { .. } | Grid::Cloud { .. } => cloud_distances(positions, side),
    }
}
