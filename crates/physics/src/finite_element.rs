//! Square elements: Lagrange shape functions on [−1, 1]², Gauss points, and the map to a cell of the mesh.
//!
//! Nodes are numbered row by row. Rows run along the first reference coordinate ξ, columns along the second one, η.

/// Coordinate and weight of the Gauss points along one axis. Three points integrate degree 5 exactly, which is enough
/// for a product of biquadratics.
pub const GAUSS: [[f64; 2]; 3] =
    [[-0.774_596_669_241_483_4, 5.0 / 9.0], [0.0, 8.0 / 9.0], [0.774_596_669_241_483_4, 5.0 / 9.0]];
/// Number of Gauss points in a cell.
pub const POINTS: usize = 9;

/// The shape functions at one point of the reference square.
#[derive(Clone, Copy, Debug)]
pub struct Shape<const NODES: usize> {
    /// N of each node.
    pub values: [f64; NODES],
    /// ∇N of each node: ∂/∂ξ and ∂/∂η.
    pub slopes: [[f64; 2]; NODES],
}

/// The four bilinear functions, one per corner.
pub fn bilinear(point: [f64; 2]) -> Shape<4> {
    product(point.map(|x| ([0.5 * (1.0 - x), 0.5 * (1.0 + x)], [-0.5, 0.5])))
}

/// The nine biquadratic functions of the corners, the middles of the sides and the centre.
pub fn biquadratic(point: [f64; 2]) -> Shape<9> {
    product(point.map(quadratic))
}

/// Values and slopes of the three quadratic functions along one axis.
pub fn quadratic(x: f64) -> ([f64; 3], [f64; 3]) {
    ([0.5 * x * (x - 1.0), 1.0 - x * x, 0.5 * x * (x + 1.0)], [x - 0.5, -2.0 * x, x + 0.5])
}

/// The products of functions of ξ and functions of η; both come as values and slopes.
fn product<const SIDE: usize, const NODES: usize>(along: [([f64; SIDE], [f64; SIDE]); 2]) -> Shape<NODES> {
    let [(first, first_slope), (second, second_slope)] = along;
    Shape {
        values: std::array::from_fn(|node| first[node / SIDE] * second[node % SIDE]),
        slopes: std::array::from_fn(|node| {
            let (i, j) = (node / SIDE, node % SIDE);
            [first_slope[i] * second[j], first[i] * second_slope[j]]
        }),
    }
}

/// Position and weight of the nine Gauss points of the reference square.
pub fn gauss() -> [([f64; 2], f64); POINTS] {
    std::array::from_fn(|point| {
        let ([x, first], [y, second]) = (GAUSS[point / 3], GAUSS[point % 3]);
        ([x, y], first * second)
    })
}

/// The shape functions at one point of a cell of the mesh.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// x and y of the point.
    pub position: [f64; 2],
    /// Area in the mesh per area in the reference square; zero or negative where the cell is folded.
    pub jacobian: f64,
    /// ∇N of each node: ∂/∂x and ∂/∂y.
    pub slopes: [[f64; 2]; 9],
}

impl Shape<9> {
    /// Maps the point to the cell with these nodes: x = Σ N x_node (isoparametric).
    pub fn mapped(&self, nodes: &[[f64; 2]; 9]) -> Mapped {
        let mut position = [0.0; 2];
        let mut tangent = [[0.0; 2]; 2]; // ∂x_i / ∂ξ_j
        for ((node, value), slope) in nodes.iter().zip(self.values).zip(self.slopes) {
            for i in 0..2 {
                position[i] += value * node[i];
                (0..2).for_each(|j| tangent[i][j] += node[i] * slope[j]);
            }
        }
        let [[a, b], [c, d]] = tangent;
        let jacobian = a * d - b * c;
        let slopes = self.slopes.map(|[x, y]| [(d * x - c * y) / jacobian, (a * y - b * x) / jacobian]);
        Mapped { position, jacobian, slopes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_one_at_its_own_node_and_zero_at_all_different_nodes() {
        for node in 0..9 {
            let position = [(node / 3) as f64 - 1.0, (node % 3) as f64 - 1.0];
            for (other, value) in biquadratic(position).values.into_iter().enumerate() {
                assert_eq!(value, f64::from(node == other), "biquadratic {other} at node {node}");
            }
        }
        for node in 0..4 {
            let position = [2.0 * (node / 2) as f64 - 1.0, 2.0 * (node % 2) as f64 - 1.0];
            for (other, value) in bilinear(position).values.into_iter().enumerate() {
                assert_eq!(value, f64::from(node == other), "bilinear {other} at node {node}");
            }
        }
    }

    #[test]
    fn gauss_points_integrate_degree_five_along_each_side() {
        for (first, second) in (0..6).flat_map(|i| (0..6).map(move |j| (i, j))) {
            let found: f64 = gauss().iter().map(|([x, y], weight)| weight * x.powi(first) * y.powi(second)).sum();
            let side = |power: i32| if power % 2 == 0 { 2.0 / f64::from(power + 1) } else { 0.0 };
            assert!((found - side(first) * side(second)).abs() < 1e-15, "degrees {first} and {second}: {found}");
        }
    }

    /// In a cell with one curved side, the slopes of a linear function are exact at every point, and so is the area.
    #[test]
    fn a_curved_cell_has_exact_slopes_of_linear_functions_and_its_exact_area() {
        let mut nodes: [[f64; 2]; 9] = std::array::from_fn(|node| [(node / 3) as f64, 0.5 * (node % 3) as f64]);
        nodes[1][0] -= 0.2; // a parabola of height 0.2 over length 1 adds the area 2/3 · 0.2
        let mut area = 0.0;
        for (point, weight) in gauss() {
            let mapped = biquadratic(point).mapped(&nodes);
            area += weight * mapped.jacobian;
            let slope = |axis: usize| -> f64 {
                nodes.iter().zip(mapped.slopes).map(|(node, slope)| (3.0 * node[0] - node[1]) * slope[axis]).sum()
            };
            assert!((slope(0) - 3.0).abs() < 1e-13 && (slope(1) + 1.0).abs() < 1e-13);
        }
        assert!((area - (2.0 + 0.4 / 3.0)).abs() < 1e-14, "{area}");
    }
}
