//! Thin plates in plane stress: ∫ P(∇u) : ∇v dA = ∫ t · v ds with nine-node cells, solved by Newton's method.
//!
//! P is the first Piola stress, ∇u the displacement gradient on the undeformed plate. The linear law needs one step.

use crate::Error;
use crate::finite_element::{GAUSS, POINTS, quadratic};
use crate::mesh::{Mesh, Point};
use crate::sparse::{Assembly, Cholesky, Numbering, PRESCRIBED, Part};

const SYSTEM: &str = "plane stress";
/// Relative imbalance of forces at which Newton's method has converged; round-off alone is about 1e-14.
const TOLERANCE: f64 = 1e-11;
const MOST_STEPS: usize = 25;

/// A second-order tensor in the plane, row by row.
type Tensor = [[f64; 2]; 2];

/// The relation between strain and stress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Hooke's law for small strains.
    Linear {
        /// E, Young's modulus.
        modulus: f64,
        /// ν, Poisson's ratio.
        ratio: f64,
    },
    /// The incompressible law of Mooney and Rivlin: W = C₁ (I₁ − 3) + C₂ (I₂ − 3).
    MooneyRivlin {
        /// C₁.
        first: f64,
        /// C₂.
        second: f64,
    },
}

impl Law {
    /// P and A = ∂P/∂(∇u); the index pair (i, j) is stored at 2i + j.
    fn stress_and_tangent(&self, gradient: Tensor) -> ([f64; 4], [[f64; 4]; 4]) {
        match *self {
            Self::Linear { modulus, ratio } => {
                let (shear, plane) = (0.5 * modulus / (1.0 + ratio), modulus / (1.0 - ratio * ratio));
                let mut tangent = [[0.0; 4]; 4];
                tangent[0] = [plane, 0.0, 0.0, ratio * plane];
                tangent[1] = [0.0, shear, shear, 0.0];
                tangent[2] = tangent[1];
                tangent[3] = [ratio * plane, 0.0, 0.0, plane];
                let stress = tangent.map(|row| row.iter().zip(gradient.as_flattened()).map(|(a, g)| a * g).sum());
                (stress, tangent)
            }
            Self::MooneyRivlin { first, second } => mooney_rivlin(first, second, gradient),
        }
    }

    /// True (Cauchy) stresses σ_xx, σ_yy, σ_xy.
    fn cauchy(&self, gradient: Tensor) -> [f64; 3] {
        let (piola, _) = self.stress_and_tangent(gradient);
        match self {
            Self::Linear { .. } => [piola[0], piola[3], piola[1]],
            Self::MooneyRivlin { .. } => {
                let [[a, b], [c, d]] = deformation(gradient);
                // σ = P Fᵀ / J, and J = 1 because the law is incompressible.
                [piola[0] * a + piola[1] * b, piola[2] * c + piola[3] * d, piola[0] * c + piola[1] * d]
            }
        }
    }
}

/// F = 1 + ∇u
fn deformation(gradient: Tensor) -> Tensor {
    [[1.0 + gradient[0][0], gradient[0][1]], [gradient[1][0], 1.0 + gradient[1][1]]]
}

/// P = F S with S = 2 ∂W/∂C. The thickness stretch is C₃₃ = 1 / det C, so W depends only on t = tr C and d = det C in
/// the plane: W = C₁ (t + 1/d − 3) + C₂ (d + t/d − 3).
fn mooney_rivlin(first: f64, second: f64, gradient: Tensor) -> ([f64; 4], [[f64; 4]; 4]) {
    let stretch = deformation(gradient);
    let strain: Tensor =
        std::array::from_fn(|i| std::array::from_fn(|j| (0..2).map(|k| stretch[k][i] * stretch[k][j]).sum()));
    let (trace, determinant) = (strain[0][0] + strain[1][1], strain[0][0] * strain[1][1] - strain[0][1] * strain[1][0]);
    let inverse: Tensor = [
        [strain[1][1] / determinant, -strain[0][1] / determinant],
        [-strain[1][0] / determinant, strain[0][0] / determinant],
    ];
    // S = 2 (∂W/∂t 1 + d ∂W/∂d C⁻¹)
    let by_trace = first + second / determinant;
    let by_determinant = -first / determinant + second * (determinant - trace / determinant);
    let identity = |i: usize, j: usize| f64::from(i == j);
    let stress = |i: usize, j: usize| 2.0 * (by_trace * identity(i, j) + by_determinant * inverse[i][j]);
    // ∂S/∂C, from ∂d/∂C = d C⁻¹ and ∂C⁻¹/∂C = −(C⁻¹ ⊗ C⁻¹), symmetric in both pairs.
    let mixed = -second / determinant;
    let bulk = first / determinant + second * (determinant + trace / determinant);
    let modulus = |i: usize, j: usize, k: usize, l: usize| {
        let symmetric = 0.5 * (inverse[i][k] * inverse[j][l] + inverse[i][l] * inverse[j][k]);
        2.0 * (mixed * (identity(i, j) * inverse[k][l] + inverse[i][j] * identity(k, l))
            + bulk * inverse[i][j] * inverse[k][l]
            - by_determinant * symmetric)
    };
    let pairs: [(usize, usize); 4] = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let piola = pairs.map(|(i, j)| (0..2).map(|m| stretch[i][m] * stress(m, j)).sum());
    // A_ijkl = δ_ik S_jl + 2 F_im F_kn ∂S_mj/∂C_nl
    let tangent = pairs.map(|(i, j)| {
        pairs.map(|(k, l)| {
            let geometric = identity(i, k) * stress(j, l);
            let material: f64 = pairs.iter().map(|&(m, n)| stretch[i][m] * stretch[k][n] * modulus(m, j, n, l)).sum();
            geometric + 2.0 * material
        })
    });
    (piola, tangent)
}

/// The von Mises stress of σ_xx, σ_yy, σ_xy in plane stress.
pub fn von_mises([x, y, shear]: [f64; 3]) -> f64 {
    (x * x - x * y + y * y + 3.0 * shear * shear).sqrt()
}

/// A plate: its mesh, its prescribed displacements, and the symbolic factor of its matrix.
#[derive(Debug)]
pub struct Plate {
    mesh: Mesh,
    /// `[nodes]` numbers of the unknowns u_x, u_y
    unknowns: Vec<[usize; 2]>,
    assembly: Assembly<18>,
    factor: Cholesky,
}

impl Plate {
    /// Analyses the pattern once; `prescribed` tells for each node whether u_x and u_y are prescribed.
    pub fn new(mesh: Mesh, prescribed: impl Fn(usize) -> [bool; 2]) -> Result<Self, Error> {
        let mut numbering = Numbering::default();
        let unknowns: Vec<[usize; 2]> =
            (0..mesh.nodes()).map(|node| prescribed(node).map(|fixed| numbering.next(fixed))).collect();
        let cell = |cell: usize| {
            let nodes = mesh.cell_nodes(cell);
            std::array::from_fn(|local| unknowns[nodes[local / 2]][local % 2])
        };
        let assembly = Assembly::new(numbering.count, (0..mesh.cells()).map(cell).collect(), Part::Lower);
        let factor = Cholesky::new(SYSTEM, &assembly)?;
        Ok(Self { mesh, unknowns, assembly, factor })
    }

    /// `[nodes]` displacements in equilibrium with `load`; `start` holds the prescribed displacements and a first
    /// guess.
    pub fn solve(
        &self,
        law: &Law,
        points: &[[Point; POINTS]],
        load: &[[f64; 2]],
        start: Vec<[f64; 2]>,
    ) -> Result<Vec<[f64; 2]>, Error> {
        let mut displacement = start;
        for step in 0.. {
            let mut summed = self.assembly.sum(|cell, matrix, forces| {
                add_cell(law, &points[cell], &self.cell_displacements(cell, &displacement), matrix, forces);
            });
            for (unknowns, force) in self.unknowns.iter().zip(load) {
                (0..2).for_each(|axis| summed.load(unknowns[axis], force[axis]));
            }
            let found = summed.imbalance();
            if found <= TOLERANCE {
                break;
            }
            if step == MOST_STEPS || !found.is_finite() {
                return Err(Error::NotConverged { system: SYSTEM, steps: step, expected: TOLERANCE, found });
            }
            let mut change = summed.forces;
            self.factor.solve(&self.assembly, &summed.matrix, &mut change)?;
            for (values, unknowns) in displacement.iter_mut().zip(&self.unknowns) {
                for (value, &unknown) in values.iter_mut().zip(unknowns) {
                    *value -= if unknown == PRESCRIBED { 0.0 } else { change[unknown] };
                }
            }
        }
        Ok(displacement)
    }

    /// `[nodes]` forces that the plate exerts on its nodes; at prescribed displacements they are the reactions.
    pub fn forces(&self, law: &Law, points: &[[Point; POINTS]], displacement: &[[f64; 2]]) -> Vec<[f64; 2]> {
        let mut nodal = vec![[0.0; 2]; self.mesh.nodes()];
        for (cell, points) in points.iter().enumerate() {
            let (mut matrix, mut forces) = ([[0.0; 18]; 18], [0.0; 18]);
            add_cell(law, points, &self.cell_displacements(cell, displacement), &mut matrix, &mut forces);
            for (node, force) in self.mesh.cell_nodes(cell).into_iter().zip(forces.as_chunks::<2>().0) {
                (0..2).for_each(|axis| nodal[node][axis] += force[axis]);
            }
        }
        nodal
    }

    /// `[cells, points]` true stresses σ_xx, σ_yy, σ_xy.
    pub fn stresses(
        &self,
        law: &Law,
        points: &[[Point; POINTS]],
        displacement: &[[f64; 2]],
    ) -> Vec<[[f64; 3]; POINTS]> {
        let cell = |cell: usize| points[cell].map(|point| self.stress(law, cell, &point, displacement));
        (0..points.len()).map(cell).collect()
    }

    /// True stresses σ_xx, σ_yy, σ_xy at any point of a cell.
    pub fn stress(&self, law: &Law, cell: usize, point: &Point, displacement: &[[f64; 2]]) -> [f64; 3] {
        law.cauchy(gradient(point, &self.cell_displacements(cell, displacement)))
    }

    fn cell_displacements(&self, cell: usize, displacement: &[[f64; 2]]) -> [[f64; 2]; 9] {
        self.mesh.cell_nodes(cell).map(|node| displacement[node])
    }
}

/// Adds ∫ P : ∇N to `forces` and ∫ ∇N : A : ∇N to `matrix`.
fn add_cell(
    law: &Law,
    points: &[Point; POINTS],
    displacement: &[[f64; 2]; 9],
    matrix: &mut [[f64; 18]; 18],
    forces: &mut [f64; 18],
) {
    for point in points {
        let (stress, tangent) = law.stress_and_tangent(gradient(point, displacement));
        for (node, slope) in point.slopes.iter().enumerate() {
            for i in 0..2 {
                forces[2 * node + i] += point.area * (stress[2 * i] * slope[0] + stress[2 * i + 1] * slope[1]);
                let row: [f64; 4] = std::array::from_fn(|pair| {
                    point.area * (slope[0] * tangent[2 * i][pair] + slope[1] * tangent[2 * i + 1][pair])
                });
                for (other, other_slope) in point.slopes.iter().enumerate() {
                    matrix[2 * node + i][2 * other] += row[0] * other_slope[0] + row[1] * other_slope[1];
                    matrix[2 * node + i][2 * other + 1] += row[2] * other_slope[0] + row[3] * other_slope[1];
                }
            }
        }
    }
}

/// ∇u at a Gauss point.
fn gradient(point: &Point, displacement: &[[f64; 2]; 9]) -> Tensor {
    let entry = |i: usize, j: usize| displacement.iter().zip(&point.slopes).map(|(u, slope)| u[i] * slope[j]).sum();
    [[entry(0, 0), entry(0, 1)], [entry(1, 0), entry(1, 1)]]
}

/// Adds ∫ t N ds to the nodal loads: the traction t on the undeformed edge with the nodes `edge`.
pub fn add_traction(
    load: &mut [[f64; 2]],
    positions: &[[f64; 2]],
    edge: [usize; 3],
    traction: impl Fn([f64; 2]) -> [f64; 2],
) {
    let nodes = edge.map(|node| positions[node]);
    let sum = |factors: [f64; 3]| [0, 1].map(|axis| (0..3).map(|node| factors[node] * nodes[node][axis]).sum::<f64>());
    for [coordinate, weight] in GAUSS {
        let (values, slopes) = quadratic(coordinate);
        let ([x, y], force) = (sum(slopes), traction(sum(values))); // tangent, and traction at the Gauss point
        for (value, node) in values.into_iter().zip(edge) {
            (0..2).for_each(|axis| load[node][axis] += weight * x.hypot(y) * value * force[axis]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAWS: [Law; 2] = [Law::Linear { modulus: 2.0, ratio: 0.3 }, Law::MooneyRivlin { first: 0.3, second: 0.05 }];

    /// The error of central differences is about step² = 1e-10 times third derivatives of order 10.
    #[test]
    fn the_tangent_is_the_derivative_of_the_stress() {
        let strain = [[0.11, -0.07], [0.05, 0.2]];
        for law in LAWS {
            let (_, tangent) = law.stress_and_tangent(strain);
            for (k, l) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let moved = |step: f64| {
                    let mut gradient = strain;
                    gradient[k][l] += step;
                    law.stress_and_tangent(gradient).0
                };
                let (more, less) = (moved(1e-5), moved(-1e-5));
                for pair in 0..4 {
                    let (found, wanted) = (tangent[pair][2 * k + l], (more[pair] - less[pair]) / 2e-5);
                    assert!((found - wanted).abs() < 1e-8, "{law:?} {pair} {k}{l}: {found} against {wanted}");
                }
            }
        }
    }

    /// At small strains the incompressible law is Hooke's law with E = 6 (C₁ + C₂), ν = 1/2.
    #[test]
    fn the_hyperelastic_law_is_linear_at_small_strains() {
        let rubber = Law::MooneyRivlin { first: 0.3, second: 0.05 }.stress_and_tangent([[0.0; 2]; 2]);
        let linear = Law::Linear { modulus: 6.0 * 0.35, ratio: 0.5 }.stress_and_tangent([[0.0; 2]; 2]);
        assert!(rubber.0.iter().all(|stress| stress.abs() < 1e-15));
        for (found, wanted) in rubber.1.as_flattened().iter().zip(linear.1.as_flattened()) {
            assert!((found - wanted).abs() < 1e-14, "{found} against {wanted}");
        }
    }

    /// Uniaxial stretch λ: σ = 2 (λ² − 1/λ) (C₁ + C₂/λ) (Rivlin 1948).
    #[test]
    fn a_stretched_strip_has_the_stress_of_rivlins_formula() {
        let (first, second, stretch): (f64, f64, f64) = (0.3, 0.05, 1.7);
        let law = Law::MooneyRivlin { first, second };
        let [along, across, shear] = law.cauchy([[stretch - 1.0, 0.0], [0.0, stretch.sqrt().recip() - 1.0]]);
        let wanted = 2.0 * (stretch * stretch - 1.0 / stretch) * (first + second / stretch);
        assert!((along - wanted).abs() < 1e-14 && across.abs() < 1e-14 && shear == 0.0, "{along} {across}");
    }
}
