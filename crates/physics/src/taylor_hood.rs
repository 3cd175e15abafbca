//! Steady incompressible flow (u·∇)u − ν Δu + ∇p = f, ∇·u = 0 in cells of Taylor and Hood (1973): velocity
//! biquadratic at nine nodes, pressure bilinear at four vertices.
//!
//! A border without prescribed velocity is a free outlet: ν ∂u/∂n = p n ("do nothing"). The iteration starts with two
//! steps of Picard's method, which advects the flow with its last velocity; then Newton's method converges
//! quadratically.

use faer::sparse::linalg::lu::NumericLu;

use crate::Error;
use crate::finite_element::{POINTS, bilinear, biquadratic, gauss};
use crate::mesh::{Mesh, Point};
use crate::sparse::{Assembly, Lu, Numbering, PRESCRIBED, Part};

const SYSTEM: &str = "steady flow";
/// Relative imbalance of forces at which the iteration has converged; round-off alone is about 1e-14.
const TOLERANCE: f64 = 1e-11;
const PICARD_STEPS: usize = 2;
const MOST_STEPS: usize = 20;
/// Unknowns of a cell: nine u_x, nine u_y, four p.
const SIDE: usize = 22;

/// A mesh, its prescribed velocities, and the symbolic factor of its matrix.
#[derive(Debug)]
pub struct TaylorHood {
    mesh: Mesh,
    /// `[nodes]` numbers of the unknowns u_x, u_y
    velocity: Vec<[usize; 2]>,
    /// `[vertices]` numbers of the unknowns p
    pressure: Vec<usize>,
    assembly: Assembly<SIDE>,
    factor: Lu,
}

/// A flow on the mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// `[nodes]` u
    pub velocity: Vec<[f64; 2]>,
    /// `[vertices]` p
    pub pressure: Vec<f64>,
}

impl TaylorHood {
    /// Analyses the pattern once; `prescribed` tells at which nodes the velocity is prescribed. An `enclosed` flow has
    /// no outlet, so its pressure is determined up to a constant: it is zero at the first vertex.
    pub fn new(mesh: Mesh, prescribed: impl Fn(usize) -> bool, enclosed: bool) -> Result<Self, Error> {
        let mut numbering = Numbering::default();
        let velocity: Vec<[usize; 2]> =
            (0..mesh.nodes()).map(|node| [prescribed(node); 2].map(|fixed| numbering.next(fixed))).collect();
        let pressure: Vec<usize> = (0..mesh.vertices()).map(|vertex| numbering.next(enclosed && vertex == 0)).collect();
        let cell = |cell: usize| {
            let (nodes, vertices) = (mesh.cell_nodes(cell), mesh.cell_vertices(cell));
            std::array::from_fn(|local| match local {
                18.. => pressure[vertices[local - 18]],
                _ => velocity[nodes[local % 9]][local / 9],
            })
        };
        let assembly = Assembly::new(numbering.count, (0..mesh.cells()).map(cell).collect(), Part::Whole);
        let factor = Lu::new(SYSTEM, &assembly)?;
        Ok(Self { mesh, velocity, pressure, assembly, factor })
    }

    /// The steady flow with viscosity ν and the force `force(x)` per area; `start` holds the prescribed velocities and
    /// a first guess.
    pub fn solve(
        &self,
        viscosity: f64,
        points: &[[Point; POINTS]],
        force: impl Fn([f64; 2]) -> [f64; 2],
        start: Flow,
    ) -> Result<Flow, Error> {
        let mut flow = start;
        let mut numeric = NumericLu::new();
        for step in 0.. {
            let newton = step >= PICARD_STEPS;
            let summed = self.assembly.sum(|cell, matrix, forces| {
                let state = self.cell_state(cell, &flow);
                add_cell(viscosity, newton, &points[cell], &force, &state, matrix, forces);
            });
            let found = summed.imbalance();
            if found <= TOLERANCE {
                break;
            }
            if step == MOST_STEPS || !found.is_finite() {
                return Err(Error::NotConverged { system: SYSTEM, steps: step, expected: TOLERANCE, found });
            }
            let mut change = summed.forces;
            self.factor.solve(&self.assembly, &summed.matrix, &mut change, &mut numeric)?;
            let change_of = |unknown: usize| if unknown == PRESCRIBED { 0.0 } else { change[unknown] };
            for (values, unknowns) in flow.velocity.iter_mut().zip(&self.velocity) {
                (0..2).for_each(|axis| values[axis] -= change_of(unknowns[axis]));
            }
            flow.pressure.iter_mut().zip(&self.pressure).for_each(|(value, &unknown)| *value -= change_of(unknown));
        }
        Ok(flow)
    }

    /// u_x, u_y and p of a cell, in the order of its unknowns.
    fn cell_state(&self, cell: usize, flow: &Flow) -> [f64; SIDE] {
        let (nodes, vertices) = (self.mesh.cell_nodes(cell), self.mesh.cell_vertices(cell));
        std::array::from_fn(|local| match local {
            18.. => flow.pressure[vertices[local - 18]],
            _ => flow.velocity[nodes[local % 9]][local / 9],
        })
    }
}

/// Adds ∫ ((u·∇)u − f)·v + ν ∇u : ∇v − p ∇·v − q ∇·u to `forces` and its derivative to `matrix`. For Picard's method
/// the derivative with respect to the advecting velocity is left out.
fn add_cell(
    viscosity: f64,
    newton: bool,
    points: &[Point; POINTS],
    force: &impl Fn([f64; 2]) -> [f64; 2],
    state: &[f64; SIDE],
    matrix: &mut [[f64; SIDE]; SIDE],
    forces: &mut [f64; SIDE],
) {
    for (point, (reference, _)) in points.iter().zip(gauss()) {
        let (values, vertex_values) = (biquadratic(reference).values, bilinear(reference).values);
        let (slopes, area, body_force) = (&point.slopes, point.area, force(point.position));
        let velocity = [0, 1].map(|axis| (0..9).map(|node| values[node] * state[9 * axis + node]).sum::<f64>());
        // ∂u_i / ∂x_j
        let gradient = [0, 1].map(|i| [0, 1].map(|j| (0..9).map(|k| slopes[k][j] * state[9 * i + k]).sum::<f64>()));
        let pressure: f64 = (0..4).map(|vertex| vertex_values[vertex] * state[18 + vertex]).sum();
        let advected: [f64; 9] =
            std::array::from_fn(|node| velocity[0] * slopes[node][0] + velocity[1] * slopes[node][1]);
        for (node, slope) in slopes.iter().enumerate() {
            let value = area * values[node];
            for i in 0..2 {
                let row = 9 * i + node;
                let inertia = velocity[0] * gradient[i][0] + velocity[1] * gradient[i][1] - body_force[i];
                let friction = viscosity * (gradient[i][0] * slope[0] + gradient[i][1] * slope[1]);
                forces[row] += value * inertia + area * (friction - pressure * slope[i]);
                for other in 0..9 {
                    let diffusion = slope[0] * slopes[other][0] + slope[1] * slopes[other][1];
                    matrix[row][9 * i + other] += value * advected[other] + area * viscosity * diffusion;
                }
                if newton {
                    for (j, other) in [0, 1].into_iter().flat_map(|j| (0..9).map(move |other| (j, other))) {
                        matrix[row][9 * j + other] += value * values[other] * gradient[i][j];
                    }
                }
                for (vertex, vertex_value) in vertex_values.iter().enumerate() {
                    matrix[row][18 + vertex] -= area * slope[i] * vertex_value;
                    matrix[18 + vertex][row] -= area * slope[i] * vertex_value;
                }
            }
        }
        let divergence = gradient[0][0] + gradient[1][1];
        (0..4).for_each(|vertex| forces[18 + vertex] -= area * vertex_values[vertex] * divergence);
    }
}
