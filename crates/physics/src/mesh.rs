//! Structured meshes of nine-node cells: a plane of `rows` × `columns` cells, or a ring whose last row joins the first.
//!
//! Nodes are stored row by row, with two nodes per cell in each direction. Every second node of every second row is a
//! vertex.

use crate::Error;
use crate::finite_element::{GAUSS, POINTS, Shape, biquadratic, gauss};

/// A Gauss point of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// x and y
    pub position: [f64; 2],
    /// The area that it stands for: weight times Jacobian.
    pub area: f64,
    /// ∇N of the nodes of the cell.
    pub slopes: [[f64; 2]; 9],
}

/// A Gauss point on the border of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BorderPoint {
    /// Outward normal, as long as the piece of border that the point stands for.
    pub normal: [f64; 2],
    /// ∇N of the nodes of the cell.
    pub slopes: [[f64; 2]; 9],
}

/// The cells and their nodes; the positions of the nodes are different for each sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Cells along the first direction.
    pub rows: usize,
    /// Cells along the second direction.
    pub columns: usize,
    /// Whether the last row of cells joins the first.
    pub ring: bool,
}

impl Mesh {
    /// Rows of nodes.
    pub fn node_rows(&self) -> usize {
        2 * self.rows + usize::from(!self.ring)
    }

    /// Columns of nodes.
    pub fn node_columns(&self) -> usize {
        2 * self.columns + 1
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.node_rows() * self.node_columns()
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        (self.rows + usize::from(!self.ring)) * (self.columns + 1)
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.rows * self.columns
    }

    /// Number of the node at a row and column; on a ring the row wraps around.
    pub fn node(&self, row: usize, column: usize) -> usize {
        row % self.node_rows() * self.node_columns() + column
    }

    /// Number of the vertex at a row and column of vertices; on a ring the row wraps around.
    pub fn vertex(&self, row: usize, column: usize) -> usize {
        let rows = self.rows + usize::from(!self.ring);
        row % rows * (self.columns + 1) + column
    }

    /// The nodes of a cell, row by row.
    pub fn cell_nodes(&self, cell: usize) -> [usize; 9] {
        let (row, column) = (cell / self.columns, cell % self.columns);
        std::array::from_fn(|node| self.node(2 * row + node / 3, 2 * column + node % 3))
    }

    /// The vertices of a cell, row by row.
    pub fn cell_vertices(&self, cell: usize) -> [usize; 4] {
        let (row, column) = (cell / self.columns, cell % self.columns);
        std::array::from_fn(|vertex| self.vertex(row + vertex / 2, column + vertex % 2))
    }

    /// `[nodes]` vectors from a function of the row and column of the node.
    pub fn nodal_vectors(&self, vector: impl Fn(usize, usize) -> [f64; 2]) -> Vec<[f64; 2]> {
        let columns = self.node_columns();
        (0..self.nodes()).map(|node| vector(node / columns, node % columns)).collect()
    }

    /// `[nodes]` values of a field that is bilinear within cells and given at the vertices.
    pub fn at_nodes(&self, values: &[f64]) -> Vec<f64> {
        assert_eq!(values.len(), self.vertices(), "one value per vertex");
        let columns = self.node_columns();
        let mean = |node: usize| {
            let (row, column) = (node / columns, node % columns);
            let [first, last] = [0, 1].map(|step| (row + step) / 2);
            let [left, right] = [0, 1].map(|step| (column + step) / 2);
            let corners = [(first, left), (first, right), (last, left), (last, right)];
            0.25 * corners.map(|(row, column)| values[self.vertex(row, column)]).iter().sum::<f64>()
        };
        (0..self.nodes()).map(mean).collect()
    }

    /// `[cells, points]` Gauss points of all cells; refuses folded cells.
    pub fn quadrature(&self, positions: &[[f64; 2]]) -> Result<Vec<[Point; POINTS]>, Error> {
        assert_eq!(positions.len(), self.nodes(), "one position per node");
        let shapes: [(Shape<9>, f64); POINTS] = gauss().map(|(point, weight)| (biquadratic(point), weight));
        let cell = |cell: usize| {
            let nodes = self.cell_nodes(cell).map(|node| positions[node]);
            let points = shapes.map(|(shape, weight)| {
                let mapped = shape.mapped(&nodes);
                Point { position: mapped.position, area: weight * mapped.jacobian, slopes: mapped.slopes }
            });
            let least = points.iter().map(|point| point.area).fold(f64::INFINITY, f64::min);
            let valid = least > 0.0 && points.iter().all(|point| point.area.is_finite());
            if valid { Ok(points) } else { Err(Error::FoldedCell { cell, found: least }) }
        };
        (0..self.cells()).map(cell).collect()
    }

    /// `[columns, 3]` Gauss points on the last row of nodes, cell by cell. The mesh must have no folded cells.
    pub fn last_border(&self, positions: &[[f64; 2]]) -> Vec<[BorderPoint; 3]> {
        assert_eq!(positions.len(), self.nodes(), "one position per node");
        let cell = |cell: usize| {
            let nodes = self.cell_nodes(cell).map(|node| positions[node]);
            GAUSS.map(|[place, weight]| {
                let shape = biquadratic([1.0, place]);
                // ∂x / ∂η along the border
                let tangent = |axis: usize| (0..9).map(|node| nodes[node][axis] * shape.slopes[node][1]).sum::<f64>();
                let normal = [weight * tangent(1), -weight * tangent(0)];
                BorderPoint { normal, slopes: shape.mapped(&nodes).slopes }
            })
        };
        (self.cells() - self.columns..self.cells()).map(cell).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_cells_share_the_nodes_of_their_common_edge() {
        let plane = Mesh { rows: 3, columns: 2, ring: false };
        assert_eq!((plane.nodes(), plane.cells()), (7 * 5, 6));
        let [lower, upper] = [plane.cell_nodes(0), plane.cell_nodes(2)];
        assert_eq!(lower[6..], upper[..3]);
        assert_eq!(plane.cell_vertices(0)[2..], plane.cell_vertices(2)[..2]);
        let ring = Mesh { ring: true, ..plane };
        assert_eq!(ring.nodes(), 6 * 5);
        assert_eq!(ring.cell_nodes(4)[6..], ring.cell_nodes(0)[..3]);
        assert_eq!(ring.cell_vertices(4)[2..], ring.cell_vertices(0)[..2]);
    }

    #[test]
    fn bilinear_values_are_exact_at_every_node() {
        let mesh = Mesh { rows: 3, columns: 2, ring: false };
        let plane = |x: f64, y: f64| 1.0 + 2.0 * x - y + 3.0 * x * y;
        let vertices: Vec<f64> = (0..12).map(|vertex| plane(f64::from(vertex / 3), f64::from(vertex % 3))).collect();
        let wanted: Vec<f64> =
            (0..35).map(|node| plane(0.5 * f64::from(node / 5), 0.5 * f64::from(node % 5))).collect();
        assert_eq!(mesh.at_nodes(&vertices), wanted);
    }

    #[test]
    fn the_areas_of_the_gauss_points_sum_to_the_area_and_a_folded_cell_is_refused() {
        let mesh = Mesh { rows: 4, columns: 3, ring: false };
        let mut positions = mesh.nodal_vectors(|row, column| [row as f64 / 8.0, column as f64 / 6.0]);
        let points = mesh.quadrature(&positions).unwrap();
        let area: f64 = points.iter().flatten().map(|point| point.area).sum();
        assert!((area - 1.0).abs() < 1e-14);
        // The border from (1, 0) to (1, 1) has the normal (1, 0).
        let normals = mesh.last_border(&positions).into_iter().flatten().map(|point| point.normal);
        let [across, along] = normals.fold([0.0; 2], |sum, normal| [sum[0] + normal[0], sum[1] + normal[1]]);
        assert!((across - 1.0).abs() < 1e-14 && along.abs() < 1e-14, "{across} {along}");
        positions[mesh.node(4, 2)] = [2.0, 0.2];
        let message = mesh.quadrature(&positions).unwrap_err().to_string();
        assert!(message.starts_with("finite-element mesh: expected a positive area at every Gauss point"), "{message}");
    }
}
