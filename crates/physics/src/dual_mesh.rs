//! Control volumes around the nodes of a mesh of quadrilaterals: the median dual.
//!
//! The face of an edge runs from the centre of one neighbouring quadrilateral over the midpoint of the edge to the
//! centre of the other. The faces of every volume are therefore closed, and a constant flux has no net outflow.

use crate::euler::Face;

/// The boundary condition of a border edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// A solid surface; the flow is parallel to it.
    Wall,
    /// The free stream.
    FarField,
}

/// The face between the volumes of two neighbouring nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The two nodes, in ascending order.
    pub nodes: [usize; 2],
    /// Normal of the face, from the first node to the second; its length is that of the face.
    pub normal: [f64; 2],
}

/// The half of a border edge that bounds the volume of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BorderFace {
    /// The node.
    pub node: usize,
    /// Outward normal; its length is that of the face.
    pub normal: [f64; 2],
    /// The boundary condition.
    pub border: Border,
}

/// Volumes, faces and the weights of least-squares gradients.
#[derive(Clone, Debug)]
pub struct DualMesh {
    /// `[nodes]` x and y
    pub positions: Vec<[f64; 2]>,
    /// `[nodes]` areas
    pub volumes: Vec<f64>,
    /// Faces between neighbouring nodes, sorted by their nodes.
    pub edges: Vec<Edge>,
    /// `[edges]` length and direction of each face
    pub faces: Vec<Face<f64>>,
    /// Border faces, two per border edge.
    pub border: Vec<BorderFace>,
    /// `[nodes]` length of the shortest edge of the node
    pub shortest: Vec<f64>,
    /// `[nodes]` (Σ d dᵀ)⁻¹ over the edges d of a node: its xx, xy and yy entries
    pub moments: Vec<[f64; 3]>,
}

/// One side of a quadrilateral.
struct Side {
    /// The nodes in ascending order.
    nodes: [usize; 2],
    /// Normal of the half of the face inside this quadrilateral, from the first node to the second.
    half: [f64; 2],
    /// Whether the quadrilateral lists these nodes in ascending order.
    ascending: bool,
}

impl DualMesh {
    /// Builds the volumes from quadrilaterals with counter-clockwise nodes; `border` gives the boundary condition of an
    /// edge that belongs to one quadrilateral only.
    pub fn new(positions: Vec<[f64; 2]>, quadrilaterals: &[[usize; 4]], border: impl Fn([usize; 2]) -> Border) -> Self {
        let mut volumes = vec![0.0; positions.len()];
        let mut sides = Vec::with_capacity(4 * quadrilaterals.len());
        for nodes in quadrilaterals {
            let corners = nodes.map(|node| positions[node]);
            let centre = [0, 1].map(|axis| corners.iter().map(|corner| corner[axis]).sum::<f64>() / 4.0);
            for side in 0..4 {
                let (first, second) = (nodes[side], nodes[(side + 1) % 4]);
                let (from, to) = (positions[first], positions[second]);
                let triangle = cross(minus(to, from), minus(centre, from)) / 2.0;
                volumes[first] += triangle / 2.0;
                volumes[second] += triangle / 2.0;
                let middle = [0, 1].map(|axis| (from[axis] + to[axis]) / 2.0);
                let [x, y] = minus(centre, middle);
                let ascending = first < second;
                let sign = if ascending { 1.0 } else { -1.0 };
                let nodes = if ascending { [first, second] } else { [second, first] };
                sides.push(Side { nodes, half: [sign * y, -sign * x], ascending });
            }
        }
        sides.sort_by_key(|side| side.nodes);
        let (edges, border) = faces(&positions, &sides, border);
        let (shortest, moments) = lengths(&positions, &edges);
        let faces = edges.iter().map(|edge| Face::new(edge.normal)).collect();
        Self { positions, volumes, edges, faces, border, shortest, moments }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.positions.len()
    }

    /// The vector from the first node of an edge to its second.
    pub fn along(&self, edge: &Edge) -> [f64; 2] {
        minus(self.positions[edge.nodes[1]], self.positions[edge.nodes[0]])
    }
}

/// Joins the two half faces of each edge; an edge of one quadrilateral only is a border edge.
fn faces(
    positions: &[[f64; 2]],
    sides: &[Side],
    border: impl Fn([usize; 2]) -> Border,
) -> (Vec<Edge>, Vec<BorderFace>) {
    let (mut edges, mut outer) = (Vec::new(), Vec::new());
    for same_edge in sides.chunk_by(|one, other| one.nodes == other.nodes) {
        let nodes = same_edge[0].nodes;
        let normal = [0, 1].map(|axis| same_edge.iter().map(|side| side.half[axis]).sum());
        edges.push(Edge { nodes, normal });
        if let [side] = same_edge {
            let [x, y] = minus(positions[nodes[1]], positions[nodes[0]]);
            let half = if side.ascending { 0.5 } else { -0.5 }; // a quadrilateral lies to the left of its sides
            let normal = [half * y, -half * x];
            outer.extend(nodes.map(|node| BorderFace { node, normal, border: border(nodes) }));
        }
    }
    (edges, outer)
}

/// Length of the shortest edge of each node, and the inverse second moments of its edges.
fn lengths(positions: &[[f64; 2]], edges: &[Edge]) -> (Vec<f64>, Vec<[f64; 3]>) {
    let mut shortest = vec![f64::INFINITY; positions.len()];
    let mut moments = vec![[0.0; 3]; positions.len()];
    for edge in edges {
        let [x, y] = minus(positions[edge.nodes[1]], positions[edge.nodes[0]]);
        for node in edge.nodes {
            shortest[node] = x.hypot(y).min(shortest[node]);
            let [xx, xy, yy] = moments[node];
            moments[node] = [xx + x * x, xy + x * y, yy + y * y];
        }
    }
    for moment in &mut moments {
        let [xx, xy, yy] = *moment;
        let determinant = xx * yy - xy * xy;
        *moment = [yy / determinant, -xy / determinant, xx / determinant];
    }
    (shortest, moments)
}

fn minus(one: [f64; 2], other: [f64; 2]) -> [f64; 2] {
    [one[0] - other[0], one[1] - other[1]]
}

fn cross(one: [f64; 2], other: [f64; 2]) -> f64 {
    one[0] * other[1] - one[1] * other[0]
}

/// A mesh of `rows` × `columns` quadrilaterals on a sheared and curved unit square.
#[cfg(test)]
pub(crate) fn curved(rows: usize, columns: usize) -> DualMesh {
    let position = |node: usize| {
        let (i, j) = (node / (columns + 1), node % (columns + 1));
        let (x, y) = (i as f64 / rows as f64, j as f64 / columns as f64);
        [x + 0.3 * y * y, y + 0.2 * x * x]
    };
    let grid = lamo_geometry::Grid::Plane { rows: rows + 1, columns: columns + 1 };
    DualMesh::new((0..grid.points()).map(position).collect(), &grid.cells(), |_| Border::FarField)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faces_of_every_volume_are_closed() {
        let mesh = curved(5, 3);
        let mut sums = vec![[0.0; 2]; mesh.nodes()];
        for edge in &mesh.edges {
            for (node, sign) in edge.nodes.into_iter().zip([1.0, -1.0]) {
                (0..2).for_each(|axis| sums[node][axis] += sign * edge.normal[axis]);
            }
        }
        for face in &mesh.border {
            (0..2).for_each(|axis| sums[face.node][axis] += face.normal[axis]);
        }
        assert!(sums.iter().flatten().all(|sum| sum.abs() < 1e-15), "{sums:?}");
        assert_eq!((mesh.edges.len(), mesh.border.len()), (5 * 4 + 3 * 6, 2 * 2 * (5 + 3)));
    }

    /// Σ x·n over the border is twice the area, because the divergence of x is 2.
    #[test]
    fn the_volumes_fill_the_domain() {
        let mesh = curved(4, 7);
        let area: f64 = mesh.volumes.iter().sum();
        let middle = |face: &BorderFace, other: &BorderFace| {
            let [one, two] = [face, other].map(|face| mesh.positions[face.node]);
            [0, 1].map(|axis| (one[axis] + two[axis]) * face.normal[axis]).iter().sum::<f64>()
        };
        let around: f64 = mesh.border.chunks(2).map(|pair| middle(&pair[0], &pair[1])).sum();
        assert!((area - around / 2.0).abs() < 1e-14, "{area} against {}", around / 2.0);
        assert!(mesh.volumes.iter().all(|&volume| volume > 0.0));
    }
}
