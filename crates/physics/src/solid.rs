//! Small strains of an isotropic solid, −div σ = f, σ = λ tr ε I + 2 μ ε, on hexahedra of 27 nodes.
//!
//! Displacements are prescribed at some nodes; tractions and body forces come as forces on nodes. The matrix is factored
//! as LLᵀ. Stresses are computed at the 2 × 2 × 2 Gauss points of each cell, extrapolated to its nodes and averaged
//! over the cells that share a node.

use crate::Error;
use crate::hexahedron::{Lattice, NODES, Point, SIDE_NODES, barlow_points, dot, extrapolated, points, side_points};
use crate::sparse::{Assembly, Cholesky, Numbering, PRESCRIBED, Part};

/// Unknowns of a cell.
const UNKNOWNS: usize = 3 * NODES;
/// Largest imbalance of forces, relative to their sizes, that is accepted.
pub const LARGEST_IMBALANCE: f64 = 1e-10;

/// An isotropic material.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Material {
    /// Young's modulus E
    pub modulus: f64,
    /// Poisson's ratio ν, below 1/2
    pub ratio: f64,
}

impl Material {
    /// λ
    pub fn lame(&self) -> f64 {
        self.modulus * self.ratio / ((1.0 + self.ratio) * (1.0 - 2.0 * self.ratio))
    }

    /// μ
    pub fn shear(&self) -> f64 {
        0.5 * self.modulus / (1.0 + self.ratio)
    }

    /// σ of ∇u, whose row i is the gradient of u_i: xx, yy, zz, yz, xz, xy.
    pub fn stress(&self, gradient: [[f64; 3]; 3]) -> [f64; 6] {
        let (lame, shear) = (self.lame(), self.shear());
        let pressure = lame * (gradient[0][0] + gradient[1][1] + gradient[2][2]);
        let direct = |axis: usize| pressure + 2.0 * shear * gradient[axis][axis];
        let sliding = |one: usize, two: usize| shear * (gradient[one][two] + gradient[two][one]);
        [direct(0), direct(1), direct(2), sliding(1, 2), sliding(0, 2), sliding(0, 1)]
    }
}

/// √(3/2 s : s), s the deviator of σ.
pub fn von_mises([x, y, z, yz, xz, xy]: [f64; 6]) -> f64 {
    let direct = (x - y).powi(2) + (y - z).powi(2) + (z - x).powi(2);
    (0.5 * direct + 3.0 * (yz * yz + xz * xz + xy * xy)).sqrt()
}

/// σ n
pub fn traction([x, y, z, yz, xz, xy]: [f64; 6], normal: [f64; 3]) -> [f64; 3] {
    [dot([x, xy, xz], normal), dot([xy, y, yz], normal), dot([xz, yz, z], normal)]
}

/// A body of hexahedra with its material.
#[derive(Debug)]
pub struct Solid<'a> {
    /// The cells.
    pub lattice: Lattice,
    /// `[nodes]`
    pub positions: &'a [[f64; 3]],
    /// The material.
    pub material: Material,
}

/// A solved body.
#[derive(Clone, Debug)]
pub struct Solved {
    /// `[nodes]` u
    pub displacement: Vec<[f64; 3]>,
    /// ‖imbalance of forces‖ / ‖sizes of the forces‖ at the free nodes.
    pub imbalance: f64,
}

impl Solid<'_> {
    /// Adds ∫ t N dA over sides of cells; `traction` gives t at a position with the unit normal times the area, times
    /// that area.
    pub fn add_traction(
        &self,
        load: &mut [[f64; 3]],
        sides: &[[usize; SIDE_NODES]],
        traction: impl Fn([f64; 3], [f64; 3]) -> [f64; 3],
    ) {
        for side in sides {
            for point in side_points(&side.map(|node| self.positions[node])) {
                let force = traction(point.position, point.normal);
                for (&node, value) in side.iter().zip(point.values) {
                    (0..3).for_each(|axis| load[node][axis] += value * force[axis]);
                }
            }
        }
    }

    /// Adds ∫ f N dV.
    pub fn add_body_force(&self, load: &mut [[f64; 3]], force: impl Fn([f64; 3]) -> [f64; 3]) -> Result<(), Error> {
        for (cell, nodes) in self.lattice.cell_nodes().iter().enumerate() {
            for point in points(cell, &nodes.map(|node| self.positions[node]))? {
                let density = force(point.position);
                for (&node, value) in nodes.iter().zip(point.values) {
                    (0..3).for_each(|axis| load[node][axis] += point.volume * value * density[axis]);
                }
            }
        }
        Ok(())
    }

    /// u under the forces `load` on nodes; `prescribed` gives the displacement of nodes that are held.
    pub fn solve(&self, load: &[[f64; 3]], prescribed: impl Fn(usize) -> Option<[f64; 3]>) -> Result<Solved, Error> {
        let (mut numbering, count) = (Numbering::default(), self.lattice.nodes());
        let held: Vec<Option<[f64; 3]>> = (0..count).map(prescribed).collect();
        let numbers: Vec<[usize; 3]> =
            held.iter().map(|held| std::array::from_fn(|_| numbering.next(held.is_some()))).collect();
        let cells = self.lattice.cell_nodes();
        let unknowns: Vec<[usize; UNKNOWNS]> =
            cells.iter().map(|nodes| std::array::from_fn(|place| numbers[nodes[place / 3]][place % 3])).collect();
        let assembly = Assembly::new(numbering.count, unknowns, Part::Lower);
        let gauss = cells.iter().enumerate();
        let gauss = gauss.map(|(cell, nodes)| points(cell, &nodes.map(|node| self.positions[node])));
        let gauss: Vec<[Point; NODES]> = gauss.collect::<Result<_, _>>()?;
        let mut displacement: Vec<[f64; 3]> = held.iter().map(|held| held.unwrap_or_default()).collect();
        let balance = |displacement: &[[f64; 3]], with_matrix: bool| {
            let mut summed = assembly.sum(|cell, matrix, forces| {
                if with_matrix {
                    self.add_stiffness(&gauss[cell], matrix);
                }
                self.add_forces(&gauss[cell], &cells[cell].map(|node| displacement[node]), forces);
            });
            for (number, load) in numbers.iter().zip(load) {
                (0..3).for_each(|axis| summed.load(number[axis], load[axis]));
            }
            summed
        };
        let start = balance(&displacement, true);
        let mut change: Vec<f64> = start.forces.iter().map(|force| -force).collect();
        Cholesky::new("solid", &assembly)?.solve(&assembly, &start.matrix, &mut change)?;
        for (number, node) in numbers.iter().zip(&mut displacement) {
            for axis in (0..3).filter(|&axis| number[axis] != PRESCRIBED) {
                node[axis] += change[number[axis]];
            }
        }
        let imbalance = balance(&displacement, false).imbalance();
        if imbalance > LARGEST_IMBALANCE || imbalance.is_nan() {
            return Err(Error::Residual { system: "solid", expected: LARGEST_IMBALANCE, found: imbalance });
        }
        Ok(Solved { displacement, imbalance })
    }

    /// K of a cell: with G_ab = ∫ ∇N_a ∇N_bᵀ, K_ab = λ G_ab + μ G_abᵀ + μ tr G_ab I.
    fn add_stiffness(&self, points: &[Point; NODES], matrix: &mut [[f64; UNKNOWNS]; UNKNOWNS]) {
        let (lame, shear) = (self.material.lame(), self.material.shear());
        for (a, b) in (0..NODES).flat_map(|a| (0..=a).map(move |b| (a, b))) {
            let mut products = [[0.0; 3]; 3];
            for point in points {
                for (row, slope) in products.iter_mut().zip(point.slopes[a]) {
                    (0..3).for_each(|j| row[j] += point.volume * slope * point.slopes[b][j]);
                }
            }
            let trace = products[0][0] + products[1][1] + products[2][2];
            for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
                let same = if i == j { shear * trace } else { 0.0 };
                let entry = lame * products[i][j] + shear * products[j][i] + same;
                matrix[3 * a + i][3 * b + j] = entry;
                matrix[3 * b + j][3 * a + i] = entry;
            }
        }
    }

    /// ∫ σ ∇N of a cell.
    fn add_forces(&self, points: &[Point; NODES], displacement: &[[f64; 3]; NODES], forces: &mut [f64; UNKNOWNS]) {
        if displacement.iter().flatten().all(|&value| value == 0.0) {
            return;
        }
        for point in points {
            let stress = self.material.stress(gradient(point, displacement));
            for (node, &slope) in point.slopes.iter().enumerate() {
                let force = traction(stress, slope);
                (0..3).for_each(|axis| forces[3 * node + axis] += point.volume * force[axis]);
            }
        }
    }

    /// `[nodes]` σ: xx, yy, zz, yz, xz, xy.
    pub fn stresses(&self, displacement: &[[f64; 3]]) -> Vec<[f64; 6]> {
        let mut sums = vec![([0.0; 6], 0.0); self.lattice.nodes()];
        for nodes in self.lattice.cell_nodes() {
            let moved = nodes.map(|node| displacement[node]);
            let known = barlow_points(&nodes.map(|node| self.positions[node]))
                .map(|point| self.material.stress(gradient(&point, &moved)));
            for (node, stress) in nodes.into_iter().zip(extrapolated(&known)) {
                let (sum, count) = &mut sums[node];
                (0..6).for_each(|part| sum[part] += stress[part]);
                *count += 1.0;
            }
        }
        sums.into_iter().map(|(sum, count)| sum.map(|part| part / count)).collect()
    }
}

/// ∇u at a point of a cell; row i is the gradient of u_i.
fn gradient(point: &Point, displacement: &[[f64; 3]; NODES]) -> [[f64; 3]; 3] {
    let mut gradient = [[0.0; 3]; 3];
    for (slope, moved) in point.slopes.iter().zip(displacement) {
        for i in 0..3 {
            (0..3).for_each(|j| gradient[i][j] += moved[i] * slope[j]);
        }
    }
    gradient
}
