//! Steady incompressible flow (u·∇)u − ν Δu + ∇p = f, ∇·u = 0 in cells of Taylor and Hood (1973): velocity
//! biquadratic at nine nodes, pressure bilinear at four vertices.
//!
//! [`Outlet`] says what holds on a border without prescribed velocity. The iteration starts with two steps of Picard's
//! method, which advects the flow with its last velocity; then Newton's method converges quadratically. A free outlet
//! needs Newton's method from the start, see there.

use faer::sparse::linalg::lu::NumericLu;

use crate::Error;
use crate::finite_element::{GAUSS, POINTS, bilinear, biquadratic, gauss};
use crate::mesh::{BorderPoint, Mesh, Point};
use crate::sparse::{Assembly, Lu, Numbering, PRESCRIBED, Part};

const SYSTEM: &str = "steady flow";
/// Relative imbalance of forces at which the iteration has converged; round-off alone is about 1e-14.
const TOLERANCE: f64 = 1e-11;
const PICARD_STEPS: usize = 2;
const MOST_STEPS: usize = 20;
/// Unknowns of a cell: nine u_x, nine u_y, four p.
const SIDE: usize = 22;

/// What holds on a border without prescribed velocity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlet {
    /// There is no such border: p is determined up to a constant, and it is zero at the first vertex.
    Closed,
    /// ν ∂u/∂n = p n ("do nothing").
    DoNothing,
    /// The last row of nodes carries the traction of the flow itself (Papanastasiou, Malamataris and Ellwood 1992), so
    /// the border has no condition. p is again determined up to a constant: it is zero at the last vertex, and the
    /// continuity equation of that vertex is left out, although no other equation implies it. The vertex is a sink or
    /// a source of water. Friction is ν (∇u + ∇uᵀ). Without a condition the flow is not unique: Newton's method from
    /// the start selects one.
    Free,
}

/// A mesh, its prescribed velocities, and the symbolic factor of its matrix.
#[derive(Debug)]
pub struct TaylorHood {
    mesh: Mesh,
    outlet: Outlet,
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
    /// Analyses the pattern once; `prescribed` tells at which nodes the velocity is prescribed.
    pub fn new(mesh: Mesh, prescribed: impl Fn(usize) -> bool, outlet: Outlet) -> Result<Self, Error> {
        let mut numbering = Numbering::default();
        let velocity: Vec<[usize; 2]> =
            (0..mesh.nodes()).map(|node| [prescribed(node); 2].map(|fixed| numbering.next(fixed))).collect();
        let zero = match outlet {
            Outlet::Closed => Some(0),
            Outlet::DoNothing => None,
            Outlet::Free => Some(mesh.vertices() - 1),
        };
        let pressure: Vec<usize> = (0..mesh.vertices()).map(|vertex| numbering.next(zero == Some(vertex))).collect();
        let cell = |cell: usize| {
            let (nodes, vertices) = (mesh.cell_nodes(cell), mesh.cell_vertices(cell));
            std::array::from_fn(|local| match local {
                18.. => pressure[vertices[local - 18]],
                _ => velocity[nodes[local % 9]][local / 9],
            })
        };
        let assembly = Assembly::new(numbering.count, (0..mesh.cells()).map(cell).collect(), Part::Whole);
        let factor = Lu::new(SYSTEM, &assembly)?;
        Ok(Self { mesh, outlet, velocity, pressure, assembly, factor })
    }

    /// The steady flow with viscosity ν and the force `force(x)` per area in the mesh with nodes at `positions`;
    /// `start` holds the prescribed velocities and a first guess.
    pub fn solve(
        &self,
        viscosity: f64,
        positions: &[[f64; 2]],
        force: impl Fn([f64; 2]) -> [f64; 2],
        start: Flow,
    ) -> Result<Flow, Error> {
        let points = self.mesh.quadrature(positions)?;
        let free = self.outlet == Outlet::Free;
        let border = if free { self.mesh.last_border(positions) } else { Vec::new() };
        let picard_steps = if free { 0 } else { PICARD_STEPS };
        let mut flow = start;
        let mut numeric = NumericLu::new();
        for step in 0.. {
            let terms = Terms { viscosity, newton: step >= picard_steps, strain: free };
            let summed = self.assembly.sum(|cell, matrix, forces| {
                let state = self.cell_state(cell, &flow);
                terms.add_cell(&points[cell], &force, &state, matrix, forces);
                let last_row = (cell + border.len()).checked_sub(self.mesh.cells());
                if let Some(points) = last_row.and_then(|column| border.get(column)) {
                    terms.add_border(points, &state, matrix, forces);
                }
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

/// The terms of the equations.
#[derive(Clone, Copy, Debug)]
struct Terms {
    viscosity: f64,
    /// Newton's method; Picard's method leaves out the derivative with respect to the advecting velocity.
    newton: bool,
    /// Friction ν (∇u + ∇uᵀ) instead of ν ∇u.
    strain: bool,
}

impl Terms {
    /// Adds ∫ ((u·∇)u − f)·v + ν ∇u : ∇v − p ∇·v − q ∇·u to `forces` and its derivative to `matrix`.
    fn add_cell(
        &self,
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
                    let friction = self.viscosity * (gradient[i][0] * slope[0] + gradient[i][1] * slope[1]);
                    forces[row] += value * inertia + area * (friction - pressure * slope[i]);
                    for other in 0..9 {
                        let diffusion = slope[0] * slopes[other][0] + slope[1] * slopes[other][1];
                        matrix[row][9 * i + other] += value * advected[other] + area * self.viscosity * diffusion;
                    }
                    if self.newton {
                        for (j, other) in [0, 1].into_iter().flat_map(|j| (0..9).map(move |other| (j, other))) {
                            matrix[row][9 * j + other] += value * values[other] * gradient[i][j];
                        }
                    }
                    if self.strain {
                        let transposed = gradient[0][i] * slope[0] + gradient[1][i] * slope[1];
                        forces[row] += area * self.viscosity * transposed;
                        for (j, other) in [0, 1].into_iter().flat_map(|j| (0..9).map(move |other| (j, other))) {
                            matrix[row][9 * j + other] += area * self.viscosity * slopes[other][i] * slope[j];
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

    /// Subtracts ∮ (ν (∇u + ∇uᵀ) − p) n · v over the last row of nodes.
    fn add_border(
        &self,
        points: &[BorderPoint; 3],
        state: &[f64; SIDE],
        matrix: &mut [[f64; SIDE]; SIDE],
        forces: &mut [f64; SIDE],
    ) {
        for (point, [place, _]) in points.iter().zip(GAUSS) {
            let reference = [1.0, place];
            let (values, vertex_values) = (biquadratic(reference).values, bilinear(reference).values);
            let (slopes, normal) = (&point.slopes, point.normal);
            // ∂u_i / ∂x_j
            let gradient = [0, 1].map(|i| [0, 1].map(|j| (0..9).map(|k| slopes[k][j] * state[9 * i + k]).sum::<f64>()));
            let pressure: f64 = (0..4).map(|vertex| vertex_values[vertex] * state[18 + vertex]).sum();
            for (i, node) in [0, 1].into_iter().flat_map(|i| (0..9).map(move |node| (i, node))) {
                let (row, value) = (9 * i + node, values[node]);
                let strain = [0, 1].map(|j| (gradient[i][j] + gradient[j][i]) * normal[j]);
                forces[row] -= value * (self.viscosity * (strain[0] + strain[1]) - pressure * normal[i]);
                for (other, slope) in slopes.iter().enumerate() {
                    let along_normal = slope[0] * normal[0] + slope[1] * normal[1];
                    matrix[row][9 * i + other] -= value * self.viscosity * along_normal;
                    (0..2).for_each(|j| matrix[row][9 * j + other] -= value * self.viscosity * slope[i] * normal[j]);
                }
                for (vertex, vertex_value) in vertex_values.iter().enumerate() {
                    matrix[row][18 + vertex] += value * vertex_value * normal[i];
                }
            }
        }
    }
}
