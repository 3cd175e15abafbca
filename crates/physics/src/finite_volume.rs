//! The Euler equations in node-centred finite volumes on a [`DualMesh`]; the residual R is the net outflow.
//!
//! Roe's flux acts between states that are reconstructed along each edge (MUSCL, β = 1/3) from least-squares gradients,
//! with limited slopes of ρ, u, v, p. Walls have the pressure of their nodes; the outer border has the flux of Steger
//! and Warming.

use crate::block_sparse::BlockSparse;
use crate::dual_mesh::{Border, DualMesh};
use crate::euler::{self, Conserved, Primitive};
use crate::krylov::Field;

/// Combines two slopes into one that does not overshoot at an extremum or a shock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limiter {
    /// (ab + ε)(a + b) / (a² + b² + 2ε), van Albada et al. (1982): smooth, so Newton's method converges fast.
    VanAlbada {
        /// ε: slopes far below √ε are not limited
        smoothing: f64,
    },
    /// The smaller slope where both have the same sign, and zero elsewhere; the public files use it.
    Minmod,
}

impl Limiter {
    fn limit(self, a: f64, b: f64) -> f64 {
        match self {
            Self::VanAlbada { smoothing } => (a * b + smoothing) * (a + b) / (a * a + b * b + 2.0 * smoothing),
            Self::Minmod if a * b <= 0.0 => 0.0,
            Self::Minmod => a.signum() * a.abs().min(b.abs()),
        }
    }
}

/// A mesh in a free stream.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The control volumes.
    pub mesh: DualMesh,
    /// The free stream.
    pub stream: Primitive,
    /// Limiter of the slopes.
    pub limiter: Limiter,
}

impl Flow {
    /// `[nodes]` R: net outflow of mass, momentum and energy.
    pub fn residual(&self, states: &[Conserved]) -> Field {
        let primitives: Vec<Primitive> = states.iter().map(|&state| euler::primitive(state)).collect();
        let gradients = self.gradients(&primitives);
        let mut residual = vec![[0.0; 4]; states.len()];
        for edge in &self.mesh.edges {
            let [first, second] = edge.nodes;
            let [x, y] = self.mesh.along(edge);
            let (mut left, mut right) = (primitives[first], primitives[second]);
            for k in 0..4 {
                let difference = right[k] - left[k];
                let slope = |node: usize| {
                    let [by_x, by_y]: [f64; 2] = gradients[node][k];
                    (4.0 * (by_x * x + by_y * y) - difference) / 3.0 // (1 − 4β) Δ + 4β ∇·d
                };
                left[k] += self.limiter.limit(difference, slope(first)) / 2.0;
                right[k] -= self.limiter.limit(difference, slope(second)) / 2.0;
            }
            let flux = euler::roe_flux(left, right, edge.normal);
            for k in 0..4 {
                residual[first][k] += flux[k];
                residual[second][k] -= flux[k];
            }
        }
        for face in &self.mesh.border {
            let inner = primitives[face.node];
            let flux = match face.border {
                Border::Wall => euler::wall_flux(inner, face.normal),
                Border::FarField => euler::far_field_flux(inner, self.stream, face.normal),
            };
            (0..4).for_each(|k| residual[face.node][k] += flux[k]);
        }
        residual
    }

    /// `[nodes]` ∂/∂x and ∂/∂y of ρ, u, v, p by least squares over the edges of a node.
    fn gradients(&self, primitives: &[Primitive]) -> Vec<[[f64; 2]; 4]> {
        let mut sums = vec![[[0.0; 2]; 4]; primitives.len()];
        for edge in &self.mesh.edges {
            let [first, second] = edge.nodes;
            let [x, y] = self.mesh.along(edge);
            for k in 0..4 {
                let difference = primitives[second][k] - primitives[first][k];
                for node in edge.nodes {
                    sums[node][k][0] += difference * x;
                    sums[node][k][1] += difference * y;
                }
            }
        }
        for (gradient, [xx, xy, yy]) in sums.iter_mut().zip(&self.mesh.moments) {
            *gradient = gradient.map(|[x, y]| [xx * x + xy * y, xy * x + yy * y]);
        }
        sums
    }

    /// The Jacobian of the first-order residual, plus `inertia` `[nodes]` on its diagonal.
    pub fn jacobian(&self, primitives: &[Primitive], inertia: &[f64], matrix: &mut BlockSparse) {
        matrix.clear();
        for (index, edge) in self.mesh.edges.iter().enumerate() {
            let [left, right] = edge.nodes.map(|node| primitives[node]);
            matrix.add_flux(index, edge, &euler::roe_blocks(left, right, edge.normal));
        }
        for face in &self.mesh.border {
            let inner = primitives[face.node];
            let block = match face.border {
                Border::Wall => euler::wall_block(inner, face.normal),
                Border::FarField => euler::far_field_block(inner, face.normal),
            };
            matrix.add_diagonal(face.node, &block);
        }
        for (node, &inertia) in inertia.iter().enumerate() {
            let mut block = [[0.0; 4]; 4];
            (0..4).for_each(|k| block[k][k] = inertia);
            matrix.add_diagonal(node, &block);
        }
    }

    /// Drag and lift coefficients: force on all walls divided by γ p∞ M² / 2, for chord 1 and a free stream along the x
    /// axis.
    pub fn force(&self, primitives: &[Primitive]) -> [f64; 2] {
        let [density, u, v, _] = self.stream;
        let pressure = density * (u * u + v * v) / 2.0;
        let walls = self.mesh.border.iter().filter(|face| face.border == Border::Wall);
        walls.fold([0.0; 2], |sum, face| {
            [0, 1].map(|axis| sum[axis] + primitives[face.node][3] * face.normal[axis] / pressure)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dual_mesh::curved;
    use crate::krylov::norm;

    const LIMITERS: [Limiter; 2] = [Limiter::VanAlbada { smoothing: 1e-4 }, Limiter::Minmod];

    #[test]
    fn the_free_stream_has_no_residual_on_a_curved_mesh() {
        for limiter in LIMITERS {
            let flow = Flow { mesh: curved(6, 4), stream: euler::stream(0.8, 0.3), limiter };
            let residual = norm(&flow.residual(&vec![euler::conserved(flow.stream); flow.mesh.nodes()]));
            assert!(residual < 1e-14, "{limiter:?}: {residual:e}");
        }
    }

    #[test]
    fn gradients_of_linear_fields_are_exact() {
        let flow = Flow { mesh: curved(3, 5), stream: euler::stream(0.8, 0.0), limiter: Limiter::Minmod };
        let field = |[x, y]: [f64; 2]| [1.0 + x, 2.0 * x - y, 3.0 * y, 4.0];
        let values: Vec<Primitive> = flow.mesh.positions.iter().map(|&position| field(position)).collect();
        for gradient in flow.gradients(&values) {
            let wanted = [[1.0, 0.0], [2.0, -1.0], [0.0, 3.0], [0.0, 0.0]];
            let errors = gradient.iter().flatten().zip(wanted.iter().flatten()).map(|(a, b)| (a - b).abs());
            assert!(errors.fold(0.0, f64::max) < 1e-13, "{gradient:?}");
        }
    }

    #[test]
    fn limiters_return_equal_slopes_unchanged_and_zero_for_opposite_slopes() {
        for limiter in LIMITERS {
            assert!((limiter.limit(0.7, 0.7) - 0.7).abs() < 1e-15, "{limiter:?}");
            assert_eq!(limiter.limit(0.7, -0.7), 0.0, "{limiter:?}");
            assert_eq!(limiter.limit(0.0, 0.0), 0.0, "{limiter:?}");
            assert!((limiter.limit(-0.2, -0.5) + limiter.limit(0.5, 0.2)).abs() < 1e-15, "{limiter:?}");
        }
    }
}
