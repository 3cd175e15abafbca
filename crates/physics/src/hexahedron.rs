//! Hexahedra of 27 nodes: triquadratic shape functions on [−1, 1]³, Gauss points, and a box of cells mapped to a body.
//!
//! The box is the unit cube, divided into cells along its three axes. Nodes and cells are numbered with the last axis
//! running fastest. A smooth map of the cube to space gives the positions of the nodes; cells are isoparametric.

use crate::Error;
use crate::finite_element::{GAUSS, quadratic};

/// Nodes of a cell, and Gauss points in it.
pub const NODES: usize = 27;
/// Nodes of a side of a cell, and Gauss points on it.
pub const SIDE_NODES: usize = 9;

/// The shape functions at one point of a cell.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// x, y and z
    pub position: [f64; 3],
    /// Volume that the point stands for: its weight times the determinant of the map.
    pub volume: f64,
    /// N of each node.
    pub values: [f64; NODES],
    /// ∇N of each node: ∂/∂x, ∂/∂y and ∂/∂z.
    pub slopes: [[f64; 3]; NODES],
}

/// The shape functions at one point of a side of a cell.
#[derive(Clone, Copy, Debug)]
pub struct SidePoint {
    /// x, y and z
    pub position: [f64; 3],
    /// Unit normal times the area that the point stands for; outwards for the sides of [`Lattice::sides`].
    pub normal: [f64; 3],
    /// N of each node of the side.
    pub values: [f64; SIDE_NODES],
}

impl SidePoint {
    /// The area that the point stands for.
    pub fn area(&self) -> f64 {
        dot(self.normal, self.normal).sqrt()
    }
}

/// A box of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lattice {
    /// Cells along each axis.
    pub cells: [usize; 3],
}

impl Lattice {
    /// Nodes along each axis.
    pub fn extents(&self) -> [usize; 3] {
        self.cells.map(|cells| 2 * cells + 1)
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.extents().iter().product()
    }

    /// The number of a node.
    pub fn node(&self, [i, j, k]: [usize; 3]) -> usize {
        let [_, second, third] = self.extents();
        (i * second + j) * third + k
    }

    /// Where a node stands along each axis.
    pub fn place(&self, node: usize) -> [usize; 3] {
        let [_, second, third] = self.extents();
        [node / (second * third), node / third % second, node % third]
    }

    /// `[nodes]` the images of the nodes under a map of the unit cube.
    pub fn mapped(&self, map: impl Fn([f64; 3]) -> [f64; 3]) -> Vec<[f64; 3]> {
        let extents = self.extents();
        let coordinate =
            |place: [usize; 3]| std::array::from_fn(|axis| place[axis] as f64 / (extents[axis] - 1) as f64);
        (0..self.nodes()).map(|node| map(coordinate(self.place(node)))).collect()
    }

    /// The nodes of each cell.
    pub fn cell_nodes(&self) -> Vec<[usize; NODES]> {
        let [along, across, up] = self.cells;
        let cell = |cell: usize| {
            let first = [cell / (across * up), cell / up % across, cell % up];
            std::array::from_fn(|node| {
                let place = [node / 9, node / 3 % 3, node % 3];
                self.node(std::array::from_fn(|axis| 2 * first[axis] + place[axis]))
            })
        };
        (0..along * across * up).map(cell).collect()
    }

    /// The triangles between the nodes of the six faces of the box, two for each square of four nodes.
    pub fn surface(&self) -> Vec<[u32; 3]> {
        let extents = self.extents();
        let mut triangles = Vec::new();
        for axis in 0..3 {
            let [first, second] = [(axis + 1) % 3, (axis + 2) % 3];
            for end in [0, extents[axis] - 1] {
                for (i, j) in (1..extents[first]).flat_map(|i| (1..extents[second]).map(move |j| (i, j))) {
                    let corner = |(i, j): (usize, usize)| {
                        let mut place = [end; 3];
                        (place[first], place[second]) = (i, j);
                        self.node(place) as u32
                    };
                    let [a, b, c, d] = [(i - 1, j - 1), (i, j - 1), (i, j), (i - 1, j)].map(corner);
                    triangles.extend([[a, b, c], [a, c, d]]);
                }
            }
        }
        triangles
    }

    /// The sides of cells on the face of the box where `axis` is 0, or 1 for `end`. Normals point outwards.
    pub fn sides(&self, axis: usize, end: bool) -> Vec<[usize; SIDE_NODES]> {
        let (second, third) = ((axis + 1) % 3, (axis + 2) % 3);
        let level = if end { 2 * self.cells[axis] } else { 0 };
        let mut sides = Vec::new();
        for (first, other) in (0..self.cells[second]).flat_map(|i| (0..self.cells[third]).map(move |j| (i, j))) {
            sides.push(std::array::from_fn(|node| {
                let (row, column) = (node / 3, node % 3);
                // Exchanged axes turn the normal round.
                let (row, column) = if end { (row, column) } else { (column, row) };
                let mut place = [level; 3];
                place[second] = 2 * first + row;
                place[third] = 2 * other + column;
                self.node(place)
            }));
        }
        sides
    }

    /// The sides of all six faces.
    pub fn border(&self) -> Vec<[usize; SIDE_NODES]> {
        (0..3).flat_map(|axis| [false, true].map(|end| self.sides(axis, end))).flatten().collect()
    }

    /// Whether a node lies on a face of the box.
    pub fn on_border(&self, node: usize) -> bool {
        self.place(node).iter().zip(self.extents()).any(|(&place, extent)| place == 0 || place == extent - 1)
    }
}

/// The point of a cell with these nodes at a place of the reference cube, with the volume that belongs to `weight`.
pub fn point(nodes: &[[f64; 3]; NODES], place: [f64; 3], weight: f64) -> Point {
    let [first, second, third] = place.map(quadratic);
    let split = |node: usize| [node / 9, node / 3 % 3, node % 3];
    let values = std::array::from_fn(|node| {
        let [i, j, k] = split(node);
        first.0[i] * second.0[j] * third.0[k]
    });
    let reference: [[f64; 3]; NODES] = std::array::from_fn(|node| {
        let [i, j, k] = split(node);
        [
            first.1[i] * second.0[j] * third.0[k],
            first.0[i] * second.1[j] * third.0[k],
            first.0[i] * second.0[j] * third.1[k],
        ]
    });
    let mut tangents = [[0.0; 3]; 3]; // row ξ_j holds ∂x / ∂ξ_j
    let mut position = [0.0; 3];
    for (node, at) in nodes.iter().enumerate() {
        for axis in 0..3 {
            position[axis] += values[node] * at[axis];
            (0..3).for_each(|j| tangents[j][axis] += reference[node][j] * at[axis]);
        }
    }
    let [x, y, z] = tangents;
    let cofactors = [cross(y, z), cross(z, x), cross(x, y)]; // row j is determinant · ∇ξ_j
    let determinant = dot(x, cofactors[0]);
    let slopes = reference.map(|slope| {
        let along = |axis: usize| (0..3).map(|j| cofactors[j][axis] * slope[j]).sum::<f64>() / determinant;
        [along(0), along(1), along(2)]
    });
    Point { position, volume: weight * determinant, values, slopes }
}

/// The Gauss points of a cell; refuses a cell that is folded.
pub fn points(cell: usize, nodes: &[[f64; 3]; NODES]) -> Result<[Point; NODES], Error> {
    let found: [Point; NODES] = std::array::from_fn(|place| {
        let [first, second, third] = [place / 9, place / 3 % 3, place % 3].map(|index| GAUSS[index]);
        point(nodes, [first[0], second[0], third[0]], first[1] * second[1] * third[1])
    });
    let least = found.iter().map(|point| point.volume).fold(f64::INFINITY, f64::min);
    if least > 0.0 { Ok(found) } else { Err(Error::FoldedCell { cell, found: least }) }
}

/// The Gauss points of a side of a cell.
pub fn side_points(nodes: &[[f64; 3]; SIDE_NODES]) -> [SidePoint; SIDE_NODES] {
    std::array::from_fn(|place| {
        let ([row, row_weight], [column, column_weight]) = (GAUSS[place / 3], GAUSS[place % 3]);
        let [first, second] = [quadratic(row), quadratic(column)];
        let values = std::array::from_fn(|node| first.0[node / 3] * second.0[node % 3]);
        let (mut position, mut tangents) = ([0.0; 3], [[0.0; 3]; 2]);
        for (node, at) in nodes.iter().enumerate() {
            let (i, j) = (node / 3, node % 3);
            for axis in 0..3 {
                position[axis] += first.0[i] * second.0[j] * at[axis];
                tangents[0][axis] += first.1[i] * second.0[j] * at[axis];
                tangents[1][axis] += first.0[i] * second.1[j] * at[axis];
            }
        }
        let normal = cross(tangents[0], tangents[1]).map(|part| row_weight * column_weight * part);
        SidePoint { position, normal, values }
    })
}

/// Values at the 27 nodes of a cell of the trilinear function with these values at the 2 × 2 × 2 Gauss points.
pub fn extrapolated<const CHANNELS: usize>(gauss: &[[f64; CHANNELS]; 8]) -> [[f64; CHANNELS]; NODES] {
    let factor = |place: usize, point: usize| {
        let side = if point == 0 { -1.0 } else { 1.0 };
        0.5 * (1.0 + side * 3f64.sqrt() * (place as f64 - 1.0)) // 1 at its Gauss point, 0 at the opposite one
    };
    std::array::from_fn(|node| {
        let mut values = [0.0; CHANNELS];
        for (point, known) in gauss.iter().enumerate() {
            let weight =
                factor(node / 9, point / 4) * factor(node / 3 % 3, point / 2 % 2) * factor(node % 3, point % 2);
            (0..CHANNELS).for_each(|channel| values[channel] += weight * known[channel]);
        }
        values
    })
}

/// The 2 × 2 × 2 Gauss points of a cell, where the slopes of quadratic functions are most accurate (Barlow 1976).
pub fn barlow_points(nodes: &[[f64; 3]; NODES]) -> [Point; 8] {
    let coordinate = |index: usize| if index == 0 { -(1.0 / 3f64).sqrt() } else { (1.0 / 3f64).sqrt() };
    std::array::from_fn(|place| point(nodes, [place / 4, place / 2 % 2, place % 2].map(coordinate), 1.0))
}

/// a · b
pub fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// a × b
pub fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Lattice = Lattice { cells: [2, 1, 3] };

    /// The divergence theorem on curved cells: ∫ div x dV = ∫ x · n dA = 3 V.
    #[test]
    fn volumes_and_outward_normals_of_curved_cells_agree() {
        let bend = |[s, a, b]: [f64; 3]| [s + 0.2 * a * b, a + 0.1 * s * s, 2.0 * b - 0.2 * s * a];
        let positions = BOX.mapped(bend);
        let mut volume = 0.0;
        for (cell, nodes) in BOX.cell_nodes().iter().enumerate() {
            volume += points(cell, &nodes.map(|node| positions[node])).unwrap().iter().map(|p| p.volume).sum::<f64>();
        }
        let mut flux = 0.0;
        for side in BOX.border() {
            flux +=
                side_points(&side.map(|node| positions[node])).iter().map(|p| dot(p.position, p.normal)).sum::<f64>();
        }
        assert!((flux - 3.0 * volume).abs() < 1e-13 && volume > 1.0, "{flux} {volume}");
    }

    #[test]
    fn slopes_of_quadratic_functions_are_exact_in_straight_cells() {
        let positions = BOX.mapped(|[s, a, b]| [2.0 * s + a, a - 0.5 * b, b + 0.25 * s]);
        let function = |[x, y, z]: [f64; 3]| x * x - 3.0 * x * y + z * y;
        for (cell, nodes) in BOX.cell_nodes().iter().enumerate() {
            for point in points(cell, &nodes.map(|node| positions[node])).unwrap() {
                let [x, y, z] = point.position;
                let wanted = [2.0 * x - 3.0 * y, z - 3.0 * x, y];
                for axis in 0..3 {
                    let slope: f64 =
                        nodes.iter().zip(point.slopes).map(|(&n, slope)| function(positions[n]) * slope[axis]).sum();
                    assert!((slope - wanted[axis]).abs() < 1e-12, "{slope} {}", wanted[axis]);
                }
            }
        }
    }

    #[test]
    fn a_trilinear_function_is_extrapolated_exactly() {
        let corners: [[f64; 3]; NODES] =
            std::array::from_fn(|n| [n / 9, n / 3 % 3, n % 3].map(|place| place as f64 - 1.0));
        let function = |[x, y, z]: [f64; 3]| [1.0 + x - 2.0 * y * z, x * y * z];
        let known = barlow_points(&corners).map(|point| function(point.position));
        for (found, corner) in extrapolated(&known).iter().zip(corners) {
            let wanted = function(corner);
            assert!((0..2).all(|channel| (found[channel] - wanted[channel]).abs() < 1e-14), "{found:?} {wanted:?}");
        }
    }

    #[test]
    fn a_folded_cell_is_a_typed_error() {
        let positions = BOX.mapped(|[s, a, b]| [s, -a, b]);
        let nodes = BOX.cell_nodes()[0].map(|node| positions[node]);
        assert!(matches!(points(0, &nodes), Err(Error::FoldedCell { cell: 0, .. })));
    }
}
