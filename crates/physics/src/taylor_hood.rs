//! Steady incompressible flow (u·∇)u − ν Δu + ∇p = f, ∇·u = 0 in cells of Taylor and Hood (1973): velocity
//! biquadratic at nine nodes, pressure bilinear at four vertices.
//!
//! Where velocity is not held the flow leaves freely: ν ∂u/∂n = p n ("do nothing"). Two steps of Picard's method, which
//! carries the flow with its last velocity, bring Newton's method close enough to converge quadratically.

use faer::sparse::linalg::lu::NumericLu;

use crate::Error;
use crate::finite_element::{POINTS, bilinear, biquadratic, gauss};
use crate::mesh::{Mesh, Point};
use crate::sparse::{Assembly, Lu, PRESCRIBED, Part};

const SYSTEM: &str = "steady flow";
/// Imbalance of forces at which the iteration has arrived; round-off leaves about 1e-14.
const BALANCE: f64 = 1e-11;
const PICARD: usize = 2;
const STEPS: usize = 20;
/// Unknowns of a cell: nine u_x, nine u_y, four p.
const SIDE: usize = 22;

/// A mesh, which velocities are held on it, and the analysed pattern of its matrix.
#[derive(Debug)]
pub struct TaylorHood {
    mesh: Mesh,
    /// `[nodes]` unknowns u_x, u_y
    velocity: Vec<[usize; 2]>,
    /// `[vertices]`
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
    /// Analyses the pattern once; `held` says at which nodes velocity is prescribed. `enclosed` flow has no outlet, so
    /// that its pressure is known up to a constant: it is zero at the first vertex.
    pub fn new(mesh: Mesh, held: impl Fn(usize) -> bool, enclosed: bool) -> Result<Self, Error> {
        let mut count = 0;
        let mut number = |held: bool| {
            count += usize::from(!held);
            if held { PRESCRIBED } else { count - 1 }
        };
        let velocity: Vec<[usize; 2]> = (0..mesh.nodes()).map(|node| [held(node); 2].map(&mut number)).collect();
        let pressure: Vec<usize> = (0..mesh.vertices()).map(|vertex| number(enclosed && vertex == 0)).collect();
        let cell = |cell: usize| {
            let (nodes, vertices) = (mesh.cell_nodes(cell), mesh.cell_vertices(cell));
            std::array::from_fn(|place| match place {
                18.. => pressure[vertices[place - 18]],
                _ => velocity[nodes[place % 9]][place / 9],
            })
        };
        let assembly = Assembly::new(count, (0..mesh.cells()).map(cell).collect(), Part::Whole);
        let factor = Lu::new(SYSTEM, &assembly)?;
        Ok(Self { mesh, velocity, pressure, assembly, factor })
    }

    /// The steady flow of viscosity ν under the force `force(x)` per area, from `start`, which also gives the held
    /// velocities.
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
            let newton = step >= PICARD;
            let summed = self.assembly.sum(|cell, matrix, forces| {
                let state = self.of_cell(cell, &flow);
                add_cell(viscosity, newton, &points[cell], &force, &state, matrix, forces);
            });
            let found = summed.imbalance();
            if found <= BALANCE {
                break;
            }
            if step == STEPS || !found.is_finite() {
                return Err(Error::NotConverged { system: SYSTEM, steps: step, expected: BALANCE, found });
            }
            let mut change = summed.forces;
            self.factor.solve(&self.assembly, &summed.matrix, &mut change, &mut numeric)?;
            let of = |unknown: usize| if unknown == PRESCRIBED { 0.0 } else { change[unknown] };
            for (values, unknowns) in flow.velocity.iter_mut().zip(&self.velocity) {
                (0..2).for_each(|axis| values[axis] -= of(unknowns[axis]));
            }
            flow.pressure.iter_mut().zip(&self.pressure).for_each(|(value, &unknown)| *value -= of(unknown));
        }
        Ok(flow)
    }

    /// u_x, u_y and p of a cell, in the order of its unknowns.
    fn of_cell(&self, cell: usize, flow: &Flow) -> [f64; SIDE] {
        let (nodes, vertices) = (self.mesh.cell_nodes(cell), self.mesh.cell_vertices(cell));
        std::array::from_fn(|place| match place {
            18.. => flow.pressure[vertices[place - 18]],
            _ => flow.velocity[nodes[place % 9]][place / 9],
        })
    }
}

/// Adds ∫ ((u·∇)u − f)·v + ν ∇u : ∇v − p ∇·v − q ∇·u to `forces` and its derivative to `matrix`, for Picard's method
/// without that of the carrying velocity.
fn add_cell(
    viscosity: f64,
    newton: bool,
    points: &[Point; POINTS],
    force: &impl Fn([f64; 2]) -> [f64; 2],
    state: &[f64; SIDE],
    matrix: &mut [[f64; SIDE]; SIDE],
    forces: &mut [f64; SIDE],
) {
    for (point, (place, _)) in points.iter().zip(gauss()) {
        let (values, vertex_values) = (biquadratic(place).values, bilinear(place).values);
        let (slopes, area, outer) = (&point.slopes, point.area, force(point.position));
        let velocity = [0, 1].map(|axis| (0..9).map(|node| values[node] * state[9 * axis + node]).sum::<f64>());
        // ∂u_i / ∂x_j
        let gradient = [0, 1].map(|i| [0, 1].map(|j| (0..9).map(|k| slopes[k][j] * state[9 * i + k]).sum::<f64>()));
        let pressure: f64 = (0..4).map(|vertex| vertex_values[vertex] * state[18 + vertex]).sum();
        let carried: [f64; 9] =
            std::array::from_fn(|node| velocity[0] * slopes[node][0] + velocity[1] * slopes[node][1]);
        for (node, slope) in slopes.iter().enumerate() {
            let value = area * values[node];
            for i in 0..2 {
                let row = 9 * i + node;
                let inertia = velocity[0] * gradient[i][0] + velocity[1] * gradient[i][1] - outer[i];
                let friction = viscosity * (gradient[i][0] * slope[0] + gradient[i][1] * slope[1]);
                forces[row] += value * inertia + area * (friction - pressure * slope[i]);
                for other in 0..9 {
                    let rub = slope[0] * slopes[other][0] + slope[1] * slopes[other][1];
                    matrix[row][9 * i + other] += value * carried[other] + area * viscosity * rub;
                }
                if newton {
                    for (j, other) in [0, 1].into_iter().flat_map(|j| (0..9).map(move |other| (j, other))) {
                        matrix[row][9 * j + other] += value * values[other] * gradient[i][j];
                    }
                }
                for (vertex, share) in vertex_values.iter().enumerate() {
                    matrix[row][18 + vertex] -= area * slope[i] * share;
                    matrix[18 + vertex][row] -= area * slope[i] * share;
                }
            }
        }
        let divergence = gradient[0][0] + gradient[1][1];
        (0..4).for_each(|vertex| forces[18 + vertex] -= area * vertex_values[vertex] * divergence);
    }
}
