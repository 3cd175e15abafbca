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

/// How an evaluation in f64 sees the numbers of a table. A program in f32 rounds them once in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Rounded to f32, as in authors' code whose tables are f32 also in a model in double precision.
    Single,
    /// As they are.
    Double,
}

/// Points of a lattice on the unit cube of as many axes, the last axis fastest; an axis of one point lies at 0.
fn lattice(extents: &[usize]) -> Vec<Vec<f64>> {
    let at = |index: usize, extent: usize| if extent > 1 { index as f64 / (extent - 1) as f64 } else { 0.0 };
    let point = |mut number: usize| {
        let mut place: Vec<f64> = Vec::with_capacity(extents.len());
        for &extent in extents.iter().rev() {
            place.push(at(number % extent, extent));
            number /= extent;
        }
        place.reverse();
        place
    };
    (0..extents.iter().product()).map(point).collect()
}

/// Distances from the points of a grid, laid on the unit cube, to a lattice with `side` points along each axis:
/// `[points, side^axes]`, a constant.
fn grid_distances<'g>(graph: &'g Graph, extents: &[usize], side: usize, table: Table) -> Tensor<'g> {
    let (points, lattice) = (lattice(extents), lattice(&vec![side; extents.len()]));
    let distance =
        |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).fold(0.0, |sum, x| sum + x).sqrt();
    let distances = points.iter().flat_map(|x| lattice.iter().map(move |y| distance(x, y)));
    let distances: Vec<f64> = match table {
        Table::Single => distances.map(|distance| f64::from(distance as f32)).collect(),
        Table::Double => distances.collect(),
    };
    graph.constant_numbers(&distances, [points.len(), lattice.len()])
}

/// Distances from given points to the lattice: `[batch, points, 2]` → `[batch, points, side²]`.
pub fn cloud_distances(positions: Tensor<'_>, side: usize) -> Tensor<'_> {
    let [batch, points, _] = positions.dims();
    let coordinate = |axis: usize| {
        let values: Vec<f32> = lattice(&[side; 2]).iter().map(|point| point[axis] as f32).collect();
        let lattice = positions.graph().constant(&values, [side * side]);
        let own = positions.slice(2, axis, axis + 1).broadcast_to([batch, points, side * side]);
        (own - lattice).square()
    };
    (coordinate(0) + coordinate(1)).sqrt()
}

/// Whether the points lie on axes of their own. A line of points with two coordinates is a curve in the plane of the lattice.
fn has_axes(grid: Grid, space: usize) -> bool {
    match grid {
        Grid::Line { .. } => space != 2,
        Grid::Plane { .. } | Grid::Volume { .. } => true,
        Grid::Cloud { .. } => false,
    }
}

/// Points of the lattice that [`unified_positions`] measures to, `side` along each axis.
pub fn lattice_points(grid: Grid, space: usize, side: usize) -> usize {
    let axes = if has_axes(grid, space) { grid.shape().len() } else { 2 };
    (0..axes).fold(1, |points: usize, _| points.saturating_mul(side))
}

/// What a model sees in place of the positions: distances to a lattice, `[batch, points, lattice points]`.
pub fn unified_positions<'g>(positions: Tensor<'g>, grid: Grid, side: usize, table: Table) -> Tensor<'g> {
    let [batch, points, space] = positions.dims();
    if !has_axes(grid, space) {
        return cloud_distances(positions, side);
    }
    let distances = grid_distances(positions.graph(), &grid.shape(), side, table);
    distances.broadcast_to([batch, points, lattice_points(grid, space, side)])
}
