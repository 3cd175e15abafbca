//! The Euler equations in node-centred finite volumes on a [`DualMesh`]; the residual R is the net outflow.
//!
//! Roe's flux acts between states that are reconstructed along each edge (MUSCL, β = 1/3) from least-squares gradients,
//! with limited slopes of ρ, u, v, p. Walls have the pressure of their nodes; the outer border has the flux of Steger
//! and Warming.

use crate::block_sparse::BlockSparse;
use crate::dual_mesh::{Border, DualMesh};
use crate::euler::{self, Conserved, Face, Primitive};
use crate::krylov::Field;
use crate::lanes::{Lanes, MOST};
use crate::real::Real;
use pulp::{Arch, Simd, WithSimd};

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
    #[inline(always)]
    fn limit<R: Real>(self, a: R, b: R) -> R {
        match self {
            Self::VanAlbada { smoothing } => (a * b + smoothing) * (a + b) / (a * a + b * b + 2.0 * smoothing),
            Self::Minmod => a.minmod(b),
        }
    }
}

/// What the flux through the face of an edge depends on: both nodes have a side.
#[derive(Clone, Copy)]
struct Reconstruction<R> {
    states: [[R; 4]; 2],
    /// ∂/∂x, then ∂/∂y, at each node.
    gradients: [[[R; 4]; 2]; 2],
    /// From the first node to the second.
    along: [R; 2],
    face: Face<R>,
}

/// (1 − 4β) Δ + 4β ∇·d of quantity `k`
#[inline(always)]
fn slope<R: Real>([by_x, by_y]: &[[R; 4]; 2], k: usize, [x, y]: [R; 2], difference: R) -> R {
    ((by_x[k] * x + by_y[k] * y) * 4.0 - difference) / 3.0
}

/// The net outflow of each volume through its faces inside the mesh.
struct Inside<'a> {
    flow: &'a Flow,
    primitives: &'a [Primitive],
}

impl WithSimd for Inside<'_> {
    type Output = Field;

    #[inline(always)]
    fn with_simd<S: Simd>(self, unit: S) -> Field {
        let Inside { flow, primitives } = self;
        let mesh = &flow.mesh;
        let gradients = flow.gradients(primitives);
        let mut residual = vec![[0.0; 4]; primitives.len()];
        let mut add = |index: usize, flux: Conserved| {
            let [first, second] = mesh.edges[index].nodes;
            for k in 0..4 {
                residual[first][k] += flux[k];
                residual[second][k] -= flux[k];
            }
        };
        let count = Lanes::<S>::COUNT;
        let whole = mesh.edges.len() / count * count;
        for start in (0..whole).step_by(count) {
            let nodes = |lane: usize| mesh.edges[start + lane].nodes;
            let [x, y, ..] = Lanes::columns(unit, |lane| {
                let [x, y] = mesh.along(&mesh.edges[start + lane]);
                [x, y, 0.0, 0.0]
            });
            let [length, normal_x, normal_y, _] = Lanes::columns(unit, |lane| {
                let Face { length, normal: [x, y] } = mesh.faces[start + lane];
                [length, x, y, 0.0]
            });
            let flux = flow.through(&Reconstruction {
                states: [
                    Lanes::columns(unit, |lane| primitives[nodes(lane)[0]]),
                    Lanes::columns(unit, |lane| primitives[nodes(lane)[1]]),
                ],
                gradients: [
                    [
                        Lanes::columns(unit, |lane| gradients[nodes(lane)[0]][0]),
                        Lanes::columns(unit, |lane| gradients[nodes(lane)[0]][1]),
                    ],
                    [
                        Lanes::columns(unit, |lane| gradients[nodes(lane)[1]][0]),
                        Lanes::columns(unit, |lane| gradients[nodes(lane)[1]][1]),
                    ],
                ],
                along: [x, y],
                face: Face { length, normal: [normal_x, normal_y] },
            });
            let mut fluxes = [[0.0; MOST]; 4];
            for k in 0..4 {
                flux[k].store(&mut fluxes[k], 0);
            }
            let [a, b, c, d] = fluxes;
            for (lane, (((a, b), c), d)) in a.into_iter().zip(b).zip(c).zip(d).enumerate().take(count) {
                add(start + lane, [a, b, c, d]);
            }
        }
        for index in whole..mesh.edges.len() {
            let edge = &mesh.edges[index];
            let flux = flow.through(&Reconstruction {
                states: edge.nodes.map(|node| primitives[node]),
                gradients: edge.nodes.map(|node| gradients[node]),
                along: mesh.along(edge),
                face: mesh.faces[index],
            });
            add(index, flux);
        }
        residual
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
        let mut residual = Arch::new().dispatch(Inside { flow: self, primitives: &primitives });
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

    /// `[nodes]` ∂/∂x, then ∂/∂y, of ρ, u, v, p by least squares over the edges of a node.
    #[inline(always)]
    fn gradients(&self, primitives: &[Primitive]) -> Vec<[Primitive; 2]> {
        let mut sums = vec![[[0.0; 4]; 2]; primitives.len()];
        for edge in &self.mesh.edges {
            let [first, second] = edge.nodes;
            let [x, y] = self.mesh.along(edge);
            let difference = [0, 1, 2, 3].map(|k| primitives[second][k] - primitives[first][k]);
            for node in edge.nodes {
                let [by_x, by_y] = &mut sums[node];
                for k in 0..4 {
                    by_x[k] += difference[k] * x;
                    by_y[k] += difference[k] * y;
                }
            }
        }
        for (gradient, [xx, xy, yy]) in sums.iter_mut().zip(&self.mesh.moments) {
            let [by_x, by_y] = *gradient;
            *gradient = [[xx, xy], [xy, yy]].map(|[x, y]| [0, 1, 2, 3].map(|k| x * by_x[k] + y * by_y[k]));
        }
        sums
    }

    /// The flux through the face of an edge, or of several.
    #[inline(always)]
    fn through<R: Real>(&self, edge: &Reconstruction<R>) -> [R; 4] {
        let Reconstruction { states: [mut left, mut right], gradients, along: [x, y], face } = *edge;
        for k in 0..4 {
            let difference = right[k] - left[k];
            let [slope, other] =
                [slope(&gradients[0], k, [x, y], difference), slope(&gradients[1], k, [x, y], difference)];
            left[k] = left[k] + self.limiter.limit(difference, slope) / 2.0;
            right[k] = right[k] - self.limiter.limit(difference, other) / 2.0;
        }
        euler::roe_flux(left, right, face)
    }

    /// The Jacobian of the first-order residual, plus `inertia` `[nodes]` on its diagonal.
    pub fn jacobian(&self, primitives: &[Primitive], inertia: &[f64], matrix: &mut BlockSparse) {
        matrix.clear();
        for (index, edge) in self.mesh.edges.iter().enumerate() {
            let [left, right] = edge.nodes.map(|node| primitives[node]);
            matrix.add_flux(index, edge, &euler::roe_blocks(left, right, self.mesh.faces[index]));
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
    use pulp::Scalar;

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
    fn fluxes_in_vectors_have_the_bits_of_single_ones() {
        for limiter in LIMITERS {
            let flow = Flow { mesh: curved(7, 6), stream: euler::stream(0.8, 0.3), limiter };
            let wave = |node: usize, k: usize| (1.7 * node as f64 + k as f64).sin();
            let state =
                |node: usize| [1.2, 0.5, -0.2, 1.0].map(|mean| mean * (1.0 + 0.2 * wave(node, (mean * 10.0) as usize)));
            let primitives: Vec<Primitive> = (0..flow.mesh.nodes()).map(state).collect();
            let inside = || Inside { flow: &flow, primitives: &primitives };
            let (vectors, single) = (Arch::new().dispatch(inside()), inside().with_simd(Scalar::new()));
            let bits = |field: &Field| field.iter().flatten().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert!(norm(&single) > 0.1);
            assert_eq!(bits(&vectors), bits(&single), "{limiter:?}");
        }
    }

    #[test]
    fn gradients_of_linear_fields_are_exact() {
        let flow = Flow { mesh: curved(3, 5), stream: euler::stream(0.8, 0.0), limiter: Limiter::Minmod };
        let field = |[x, y]: [f64; 2]| [1.0 + x, 2.0 * x - y, 3.0 * y, 4.0];
        let values: Vec<Primitive> = flow.mesh.positions.iter().map(|&position| field(position)).collect();
        for gradient in flow.gradients(&values) {
            let wanted = [[1.0, 2.0, 0.0, 0.0], [0.0, -1.0, 3.0, 0.0]];
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
