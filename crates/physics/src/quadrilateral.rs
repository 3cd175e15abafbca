//! Bilinear quadrilaterals in plane stress with 2 × 2 Gauss points, on a mapped grid.
//!
//! All terms are integrated with the full rule, so no deformation of an element is free of stress, and no stabilisation
//! is needed. The thickness of a plate in plane stress is free. Incompressible plastic flow therefore does not constrain
//! the motion in the plane, and full integration does not lock. The stress of a Gauss point follows the Jaumann rate: it
//! rotates with the spin of the step, then the strain increment changes it. The thickness h of a Gauss point follows the
//! strain across the plane.
//!
//! With the bilinear map x = x₀ + ξ x_ξ + η x_η + ξη x_h and s = ∂/∂ξ, t = ∂/∂η of positions (x, y) and displacement
//! increments (u, v): D = x_s y_t − x_t y_s, ∂u/∂x = (u_s y_t − u_t y_s) / D, ∂u/∂y = (u_t x_s − u_s x_t) / D.

use std::ops::{Range, Sub};

use pulp::{Arch, Scalar, Simd, WithSimd};

use crate::lanes::Lanes;
use crate::plane_stress::{Metal, Stress};

/// ξ and η of the Gauss points; all have the weight 1.
pub(crate) const GAUSS: [[f64; 2]; 4] = [[-ROOT, -ROOT], [ROOT, -ROOT], [ROOT, ROOT], [-ROOT, ROOT]];
/// 1 / √3
const ROOT: f64 = 0.577_350_269_189_625_8;

/// The elements `[rows, columns]` of a mapped grid, and the state of their Gauss points.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    pub(crate) metal: Metal,
    /// columns, rows
    pub(crate) counts: [usize; 2],
    /// σxx, σyy, σxy, `[Gauss points, rows, columns]` each
    pub(crate) stress: [Vec<f64>; 3],
    /// h, `[Gauss points, rows, columns]`
    pub(crate) thickness: Vec<f64>,
    /// Forces of one row of elements on their corners, `[axis][corner][column]`
    corners: [[Vec<f64>; 4]; 2],
}

/// Smallest area and work of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StepSummary {
    /// Smallest D of all Gauss points, a quarter of an area; zero or negative when an element is folded.
    pub(crate) least_area: f64,
    /// Work of the stresses during the step.
    pub(crate) internal: f64,
}

/// The parts of a [`StepSummary`] in lanes, over all blocks of one width.
#[derive(Clone, Copy)]
struct Tally<S: Simd> {
    least_area: Lanes<S>,
    internal: Lanes<S>,
}

impl<S: Simd> Tally<S> {
    #[inline(always)]
    fn new(unit: S) -> Self {
        Self { least_area: Lanes::splat(unit, f64::INFINITY), internal: Lanes::splat(unit, 0.0) }
    }

    #[inline(always)]
    fn merge(self, summary: &mut StepSummary) {
        summary.least_area = summary.least_area.min(self.least_area.least());
        summary.internal += self.internal.sum();
    }
}

/// A vector field in an element, without its mean. Positions and displacements enter an element this way.
#[derive(Clone, Copy)]
pub(crate) struct Bilinear<S: Simd> {
    /// Factors of ξ, along x and y.
    xi: [Lanes<S>; 2],
    /// Factors of η, along x and y.
    eta: [Lanes<S>; 2],
    /// Factors of ξη, along x and y.
    twist: [Lanes<S>; 2],
}

impl<S: Simd> Bilinear<S> {
    #[inline(always)]
    fn zero(unit: S) -> Self {
        let zero = [Lanes::splat(unit, 0.0); 2];
        Self { xi: zero, eta: zero, twist: zero }
    }

    /// The field of consecutive elements; `first` is the lower left node of the first one, and a row has `width` nodes.
    #[inline(always)]
    pub(crate) fn load(unit: S, field: &[Vec<f64>; 2], first: usize, width: usize) -> Self {
        let ([xi_x, eta_x, twist_x], [xi_y, eta_y, twist_y]) =
            (factors(unit, &field[0], first, width), factors(unit, &field[1], first, width));
        Self { xi: [xi_x, xi_y], eta: [eta_x, eta_y], twist: [twist_x, twist_y] }
    }

    /// Adds forces s and t, conjugate to ∂/∂ξ and ∂/∂η of one component at a Gauss point.
    #[inline(always)]
    fn add(&mut self, axis: usize, s: Lanes<S>, t: Lanes<S>, [xi, eta]: [f64; 2]) {
        self.xi[axis] = self.xi[axis] + s;
        self.eta[axis] = self.eta[axis] + t;
        self.twist[axis] = self.twist[axis] + (s * eta + t * xi);
    }

    /// ∂/∂ξ and ∂/∂η of x and y at a Gauss point.
    #[inline(always)]
    pub(crate) fn derivatives(&self, [xi, eta]: [f64; 2]) -> [[Lanes<S>; 2]; 2] {
        [
            [self.xi[0] + self.twist[0] * eta, self.xi[1] + self.twist[1] * eta],
            [self.eta[0] + self.twist[0] * xi, self.eta[1] + self.twist[1] * xi],
        ]
    }
}

impl<S: Simd> Sub for Bilinear<S> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let less = |one: [Lanes<S>; 2], two: [Lanes<S>; 2]| [one[0] - two[0], one[1] - two[1]];
        Self { xi: less(self.xi, other.xi), eta: less(self.eta, other.eta), twist: less(self.twist, other.twist) }
    }
}

/// Factors of ξ, η and ξη of one component.
#[inline(always)]
fn factors<S: Simd>(unit: S, values: &[f64], first: usize, width: usize) -> [Lanes<S>; 3] {
    let (one, two) = (Lanes::load(unit, values, first), Lanes::load(unit, values, first + 1));
    let (four, three) = (Lanes::load(unit, values, first + width), Lanes::load(unit, values, first + width + 1));
    [
        ((two - one) + (three - four)) * 0.25,
        ((four - one) + (three - two)) * 0.25,
        ((one - two) + (three - four)) * 0.25,
    ]
}

/// D from the derivatives of the positions.
#[inline(always)]
pub(crate) fn determinant<S: Simd>([[xs, ys], [xt, yt]]: [[Lanes<S>; 2]; 2]) -> Lanes<S> {
    xs * yt - xt * ys
}

/// The strain increment, and cos and sin of twice the angle by which the step turns a point clockwise.
struct Increment<S: Simd> {
    strain: Stress<S>,
    turn: [Lanes<S>; 2],
}

impl<S: Simd> Increment<S> {
    /// From the derivatives of the positions in the middle of the step, their determinant `area`, and the derivatives of
    /// the displacement. With r = ∂u/∂y − ∂v/∂x, tan of the angle is r/2; one division serves 1/D and cos.
    #[inline(always)]
    fn new([[xs, ys], [xt, yt]]: [[Lanes<S>; 2]; 2], area: Lanes<S>, [[us, vs], [ut, vt]]: [[Lanes<S>; 2]; 2]) -> Self {
        let [uy, vx] = [ut * xs - us * xt, vs * yt - vt * ys]; // times D
        let (half_spin, square) = ((uy - vx) * 0.5, area * area);
        let sum = square + half_spin * half_spin;
        let inverse = (sum * area).recip();
        let (per_area, twice) = (sum * inverse, square * area * inverse * 2.0); // 1/D, 2 cos² of the angle
        let strain = [(us * yt - ut * ys) * per_area, (vt * xs - vs * xt) * per_area, (uy + vx) * 0.5 * per_area];
        Self { strain, turn: [twice - 1.0, twice * (half_spin * per_area)] }
    }

    /// The stress turned with the point.
    #[inline(always)]
    fn turned(&self, [xx, yy, xy]: Stress<S>) -> Stress<S> {
        let [cosine, sine] = self.turn;
        let (mean, half) = ((xx + yy) * 0.5, (xx - yy) * 0.5);
        let (half, xy) = (half * cosine + xy * sine, xy * cosine - half * sine);
        [mean + half, mean - half, xy]
    }
}

/// Consecutive elements of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) row: usize,
    pub(crate) columns: Range<usize>,
    /// All nodes of the two rows around them.
    pub(crate) nodes: Range<usize>,
}

/// One step of some elements, compiled for each vector unit; the machine chooses at run time.
struct Sweep<'a> {
    elements: &'a mut Elements,
    runs: &'a [Run],
    positions: &'a [Vec<f64>; 2],
    before: &'a [Vec<f64>; 2],
    force: &'a mut [Vec<f64>; 2],
}

impl WithSimd for Sweep<'_> {
    type Output = StepSummary;

    #[inline(always)]
    fn with_simd<S: Simd>(self, unit: S) -> StepSummary {
        let Self { elements, runs, positions, before, force } = self;
        let mut summary = StepSummary { least_area: f64::INFINITY, internal: 0.0 };
        let (mut wide, mut single) = (Tally::new(unit), Tally::new(Scalar::new()));
        for Run { row, columns, .. } in runs {
            let mut column = columns.start;
            while column + Lanes::<S>::COUNT <= columns.end {
                elements.block(unit, positions, before, [*row, column], &mut wide);
                column += Lanes::<S>::COUNT;
            }
            while column < columns.end {
                elements.block(Scalar::new(), positions, before, [*row, column], &mut single);
                column += 1;
            }
            elements.assemble(*row, columns, force);
        }
        wide.merge(&mut summary);
        single.merge(&mut summary);
        summary
    }
}

impl Elements {
    /// `counts` columns and rows of elements with zero stress and thickness 1.
    pub(crate) fn new(metal: Metal, counts: [usize; 2]) -> Self {
        let [columns, rows] = counts;
        let points = GAUSS.len() * rows * columns;
        let zeros = || vec![0.0; points];
        let line = || vec![0.0; columns];
        Self {
            metal,
            counts,
            stress: [zeros(), zeros(), zeros()],
            thickness: vec![1.0; points],
            corners: [0, 1].map(|_axis| [line(), line(), line(), line()]),
        }
    }

    /// Moves the elements of `runs` to the new nodal `positions`; at their last step the nodes were at `before`. Adds their
    /// internal forces to `force`, which accelerates the nodes in the opposite direction.
    pub(crate) fn advance(
        &mut self,
        runs: &[Run],
        positions: &[Vec<f64>; 2],
        before: &[Vec<f64>; 2],
        force: &mut [Vec<f64>; 2],
    ) -> StepSummary {
        Arch::new().dispatch(Sweep { elements: self, runs, positions, before, force })
    }

    /// Index of the Gauss point `point` of the element `[row, column]`.
    #[inline(always)]
    pub(crate) fn index(&self, point: usize, [row, column]: [usize; 2]) -> usize {
        (point * self.counts[1] + row) * self.counts[0] + column
    }

    /// Advances as many consecutive elements of a row as `unit` takes at once; `place` is row and column of the first.
    #[inline(always)]
    fn block<S: Simd>(
        &mut self,
        unit: S,
        positions: &[Vec<f64>; 2],
        before: &[Vec<f64>; 2],
        place: [usize; 2],
        tally: &mut Tally<S>,
    ) {
        let [row, column] = place;
        let width = self.counts[0] + 1;
        let first = row * width + column;
        let shape = Bilinear::load(unit, positions, first, width);
        let motion = shape - Bilinear::load(unit, before, first, width);
        let mut forces = Bilinear::zero(unit); // conjugate to the factors of ξ, η, ξη
        for (point, location) in GAUSS.into_iter().enumerate() {
            let index = self.index(point, place);
            let ([[xs, ys], [xt, yt]], moved) = (shape.derivatives(location), motion.derivatives(location));
            let [[us, vs], [ut, vt]] = moved;
            // In the middle of the step a rotation causes no strain.
            let middle = [[xs - us * 0.5, ys - vs * 0.5], [xt - ut * 0.5, yt - vt * 0.5]];
            let area = determinant(middle);
            let increment = Increment::new(middle, area, moved);

            let [xx, yy, xy] = &self.stress;
            let stress_before = increment.turned([
                Lanes::load(unit, xx, index),
                Lanes::load(unit, yy, index),
                Lanes::load(unit, xy, index),
            ]);
            let strain = increment.strain;
            let (stress, thickness_strain) = self.metal.update_stress(stress_before, strain);
            let thickness_before = Lanes::load(unit, &self.thickness, index);
            let thickness = thickness_before + thickness_before * thickness_strain;
            let work = ((stress_before[0] + stress[0]) * strain[0] + (stress_before[1] + stress[1]) * strain[1]) * 0.5
                + (stress_before[2] + stress[2]) * strain[2];
            tally.internal = tally.internal + area * thickness_before * work;
            tally.least_area = tally.least_area.min(determinant([[xs, ys], [xt, yt]]));

            let (pull_x, pull_y, shear) = (stress[0] * thickness, stress[1] * thickness, stress[2] * thickness);
            // Along each axis the work is s u_s + t u_t.
            forces.add(0, pull_x * yt - shear * xt, shear * xs - pull_x * ys, location);
            forces.add(1, shear * yt - pull_y * xt, pull_y * xs - shear * ys, location);
            let [xx, yy, xy] = &mut self.stress;
            stress[0].store(xx, index);
            stress[1].store(yy, index);
            stress[2].store(xy, index);
            thickness.store(&mut self.thickness, index);
        }
        for (axis, [one, two, three, four]) in self.corners.iter_mut().enumerate() {
            let (xi, eta, twist) = (forces.xi[axis] * 0.25, forces.eta[axis] * 0.25, forces.twist[axis] * 0.25);
            (twist - xi - eta).store(one, column);
            (xi - eta - twist).store(two, column);
            (xi + eta + twist).store(three, column);
            (eta - xi - twist).store(four, column);
        }
    }

    /// Adds the corner forces of some elements of a row to the nodes.
    #[inline(always)]
    fn assemble(&self, row: usize, columns: &Range<usize>, force: &mut [Vec<f64>; 2]) {
        let width = self.counts[0] + 1;
        for (corners, force) in self.corners.iter().zip(force) {
            let first_nodes = [row * width, row * width + 1, (row + 1) * width + 1, (row + 1) * width];
            for (corner, first) in corners.iter().zip(first_nodes) {
                let nodes = force[first + columns.start..].iter_mut();
                nodes.zip(&corner[columns.clone()]).for_each(|(sum, part)| *sum += part);
            }
        }
    }
}
