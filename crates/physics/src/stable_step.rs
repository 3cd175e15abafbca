//! The longest stable steps of central differences: 2 / ω, with a rigorous upper bound on ω.
//!
//! Let μ_e be the largest eigenvalue of the elastic stiffness of element e, and M_i the mass of node i. Then
//! uᵀKu ≤ Σ_e μ_e |u_e|² = Σ_i S_i |u_i|², where S_i is the sum of μ_e over the elements around node i. So ω² is at most
//! the largest S_i / M_i. On a uniform mesh this equals the bound by single elements; it is up to four times smaller
//! where one element is much stiffer than its neighbours, as below the point of a die. Plastic flow only softens.

use pulp::{Arch, Scalar, Simd, WithSimd};

use crate::lanes::Lanes;
use crate::quadrilateral::{Bilinear, Elements, GAUSS, determinant};

/// A symmetric matrix over the six modes ξ, η, ξη of u, then of v; only row ≤ column is used.
type Matrix<S> = [[Lanes<S>; MODES]; MODES];
const MODES: usize = 6;
/// Times that the matrix is squared. The bound is at most 6^(1/16) times the largest eigenvalue, and usually much closer.
const SQUARINGS: usize = 3;

/// The longest stable step around each node; `mass` belongs to the nodes.
pub(crate) fn stable_steps(elements: &Elements, positions: &[Vec<f64>; 2], mass: &[f64]) -> Vec<f64> {
    let stiffness = Arch::new().dispatch(Stiffnesses { elements, positions });
    let mut sums = vec![0.0; mass.len()];
    let [columns, rows] = elements.counts;
    for (element, stiffness) in stiffness.into_iter().enumerate() {
        let first = element + element / columns; // its lower left node
        for node in [first, first + 1, first + columns + 1, first + columns + 2] {
            sums[node] += stiffness;
        }
    }
    debug_assert_eq!(sums.len(), (columns + 1) * (rows + 1));
    sums.iter().zip(mass).map(|(sum, mass)| 2.0 / (sum / mass).sqrt()).collect()
}

/// Upper bounds on μ_e, `[rows, columns]`.
struct Stiffnesses<'a> {
    elements: &'a Elements,
    positions: &'a [Vec<f64>; 2],
}

impl WithSimd for Stiffnesses<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, unit: S) -> Vec<f64> {
        let Self { elements, positions } = self;
        let [columns, rows] = elements.counts;
        let mut found = vec![0.0; rows * columns];
        for row in 0..rows {
            let mut column = 0;
            while column + Lanes::<S>::COUNT <= columns {
                largest_eigenvalue(unit, elements, positions, [row, column]).store(&mut found, row * columns + column);
                column += Lanes::<S>::COUNT;
            }
            while column < columns {
                let single = largest_eigenvalue(Scalar::new(), elements, positions, [row, column]);
                single.store(&mut found, row * columns + column);
                column += 1;
            }
        }
        found
    }
}

/// Upper bound on μ_e of some consecutive elements: (Σ λ¹⁶)^(1/16) over the eigenvalues λ of the stiffness.
#[inline(always)]
fn largest_eigenvalue<S: Simd>(unit: S, elements: &Elements, positions: &[Vec<f64>; 2], place: [usize; 2]) -> Lanes<S> {
    let mut matrix = stiffness(unit, elements, positions, place);
    for _ in 0..SQUARINGS {
        matrix = square(unit, &matrix);
    }
    let mut sum = Lanes::splat(unit, 0.0);
    for (row, entries) in matrix.iter().enumerate() {
        sum = sum + entries[row] * entries[row];
        for &beside in &entries[row + 1..] {
            sum = sum + beside * beside * 2.0;
        }
    }
    sum.sqrt().sqrt().sqrt().sqrt() * elements.metal.plate_modulus()
}

/// The stiffness of some consecutive elements for E / (1 − ν²) = 1. The modes have the norm 1 over the corners.
#[inline(always)]
fn stiffness<S: Simd>(unit: S, elements: &Elements, positions: &[Vec<f64>; 2], place: [usize; 2]) -> Matrix<S> {
    let width = elements.counts[0] + 1;
    let shape = Bilinear::load(unit, positions, place[0] * width + place[1], width);
    let (poisson, shear) = (elements.metal.poisson, 0.5 * (1.0 - elements.metal.poisson));
    let mut matrix = [[Lanes::splat(unit, 0.0); MODES]; MODES];
    for (point, [xi, eta]) in GAUSS.into_iter().enumerate() {
        let at_point = shape.derivatives([xi, eta]);
        let [[xs, ys], [xt, yt]] = at_point;
        let thickness = Lanes::load(unit, &elements.thickness, elements.index(point, place));
        let factor = thickness * determinant(at_point).recip() * 0.25;
        // D times ∂/∂x and ∂/∂y of ξ, η, ξη
        let along_x = [yt, ys * -1.0, yt * eta - ys * xi];
        let along_y = [xt * -1.0, xs, xs * xi - xt * eta];
        for row in 0..3 {
            let (x, y) = (along_x[row] * factor, along_y[row] * factor);
            for column in row..3 {
                let (xx, yy) = (x * along_x[column], y * along_y[column]);
                matrix[row][column] = matrix[row][column] + (xx + yy * shear);
                matrix[row + 3][column + 3] = matrix[row + 3][column + 3] + (yy + xx * shear);
            }
            for column in 0..3 {
                let mixed = x * along_y[column] * poisson + y * along_x[column] * shear;
                matrix[row][column + 3] = matrix[row][column + 3] + mixed;
            }
        }
    }
    matrix
}

/// The square of a symmetric matrix.
#[inline(always)]
fn square<S: Simd>(unit: S, matrix: &Matrix<S>) -> Matrix<S> {
    let mut product = [[Lanes::splat(unit, 0.0); MODES]; MODES];
    for row in 0..MODES {
        for column in row..MODES {
            for between in 0..MODES {
                let left = matrix[row.min(between)][row.max(between)];
                let right = matrix[between.min(column)][between.max(column)];
                product[row][column] = product[row][column] + left * right;
            }
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane_stress::Metal;
    use crate::quadrilateral::Run;

    const STEEL: Metal = Metal { young: 200e3, poisson: 0.3, yield_stress: f64::MAX, density: 7.85e-9 };
    const COUNTS: [usize; 2] = [6, 3];
    const WIDTH: usize = COUNTS[0] + 1;
    const NODES: usize = WIDTH * (COUNTS[1] + 1);

    fn positions(place: impl Fn([f64; 2]) -> [f64; 2]) -> [Vec<f64>; 2] {
        let node = |node: usize| place([(node % WIDTH) as f64, (node / WIDTH) as f64]);
        [0, 1].map(|axis| (0..NODES).map(|number| node(number)[axis]).collect())
    }

    /// Masses of the nodes for elements of the mass 1.
    fn masses() -> Vec<f64> {
        let inner = |index: usize, last: usize| if index == 0 || index == last { 0.5 } else { 1.0 };
        (0..NODES).map(|node| inner(node % WIDTH, COUNTS[0]) * inner(node / WIDTH, COUNTS[1])).collect()
    }

    /// Largest ω² by power iteration, with the forces of small displacements from rest.
    fn largest_frequency(at: &[Vec<f64>; 2]) -> f64 {
        let runs: Vec<Run> = (0..COUNTS[1])
            .map(|row| Run { row, columns: 0..COUNTS[0], nodes: row * WIDTH..(row + 2) * WIDTH })
            .collect();
        let (small, mass) = (1e-7, masses());
        let mut mode =
            [0, 1].map(|axis| (0..NODES).map(|node| ((7 * node + 3 * axis) as f64).sin()).collect::<Vec<f64>>());
        let mut square = 0.0;
        for _ in 0..300 {
            let moved = [0, 1].map(|axis| (0..NODES).map(|node| at[axis][node] + small * mode[axis][node]).collect());
            let mut force = [vec![0.0; NODES], vec![0.0; NODES]];
            Elements::new(STEEL, COUNTS).advance(&runs, &moved, at, &mut force);
            let next = force.map(|axis| axis.iter().zip(&mass).map(|(f, m)| f / (small * m)).collect::<Vec<f64>>());
            square = next.iter().flatten().map(|value| value * value).sum::<f64>().sqrt();
            mode = next.map(|axis| axis.iter().map(|value| value / square).collect());
        }
        square
    }

    fn shortest(at: &[Vec<f64>; 2]) -> f64 {
        stable_steps(&Elements::new(STEEL, COUNTS), at, &masses()).into_iter().fold(f64::INFINITY, f64::min)
    }

    /// The stiffest mode of a square is an expansion in both directions: μ = E / (1 − ν), ω² ≤ 4 μ / m.
    #[test]
    fn the_limit_of_squares_is_known() {
        let (found, wanted) = (shortest(&positions(|at| at)), (0.7_f64 / 200e3).sqrt());
        assert!((found / wanted - 1.0).abs() < 1e-3, "found {found:e}, wanted {wanted:e}");
    }

    #[test]
    fn the_limit_is_below_the_true_one_and_close_to_it_on_any_mesh() {
        let squeezed = |[x, y]: [f64; 2]| [if x > 2.0 { x - 0.9 } else { x }, y]; // one column has a tenth of its width
        let flat = |[x, y]: [f64; 2]| [x, if y > 2.0 { 2.2 } else { y }]; // the top row has a fifth of its height
        let sheared = |[x, y]: [f64; 2]| [x + 0.6 * y + 0.1 * (3.0 * y).sin(), y + 0.2 * (2.0 * x).sin()];
        for (name, at) in
            [("squeezed", positions(squeezed)), ("flat", positions(flat)), ("sheared", positions(sheared))]
        {
            let ratio = shortest(&at) * largest_frequency(&at).sqrt() / 2.0;
            assert!((0.75..1.0).contains(&ratio), "{name}: {ratio:.3} of the true limit");
        }
    }
}
