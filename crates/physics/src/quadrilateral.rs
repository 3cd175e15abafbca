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

    /// The field, or zero where `active` is not positive.
    #[inline(always)]
    fn or_zero(self, active: Option<Lanes<S>>) -> Self {
        let Some(active) = active else { return self };
        let zero = active * 0.0;
        let [xi, eta, twist] = [self.xi, self.eta, self.twist];
        Self {
            xi: [xi[0].where_above(active, 0.0, zero), xi[1].where_above(active, 0.0, zero)],
            eta: [eta[0].where_above(active, 0.0, zero), eta[1].where_above(active, 0.0, zero)],
            twist: [twist[0].where_above(active, 0.0, zero), twist[1].where_above(active, 0.0, zero)],
        }
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
                elements.block(unit, positions, before, [*row, column], None, &mut wide);
                column += Lanes::<S>::COUNT;
            }
            let rest = column..columns.end;
            if !rest.is_empty() && Lanes::<S>::COUNT <= elements.counts[0] {
                // A whole vector that lies in the row, in which only the rest is advanced.
                let first = column.min(elements.counts[0] - Lanes::<S>::COUNT);
                let active = Lanes::within(unit, rest.start - first..rest.end - first);
                elements.block(unit, positions, before, [*row, first], Some(active), &mut wide);
            } else {
                for column in rest {
                    elements.block(Scalar::new(), positions, before, [*row, column], None, &mut single);
                }
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

    /// Advances as many consecutive elements of a row as `unit` takes at once, or those of them where `active` is positive;
    /// `place` is row and column of the first.
    #[inline(always)]
    fn block<S: Simd>(
        &mut self,
        unit: S,
        positions: &[Vec<f64>; 2],
        before: &[Vec<f64>; 2],
        place: [usize; 2],
        active: Option<Lanes<S>>,
        tally: &mut Tally<S>,
    ) {
        // Elements that are not advanced do not move and keep what they have.
        let [row, column] = place;
        let width = self.counts[0] + 1;
        let first = row * width + column;
        let shape = Bilinear::load(unit, positions, first, width);
        let motion = (shape - Bilinear::load(unit, before, first, width)).or_zero(active);
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
            tally.least_area = tally.least_area.min(determinant([[xs, ys], [xt, yt]]).or(tally.least_area, active));

            let (pull_x, pull_y, shear) = (stress[0] * thickness, stress[1] * thickness, stress[2] * thickness);
            // Along each axis the work is s u_s + t u_t.
            forces.add(0, pull_x * yt - shear * xt, shear * xs - pull_x * ys, location);
            forces.add(1, shear * yt - pull_y * xt, pull_y * xs - shear * ys, location);
            let [xx, yy, xy] = &mut self.stress;
            stress[0].store_where(active, xx, index);
            stress[1].store_where(active, yy, index);
            stress[2].store_where(active, xy, index);
            thickness.store_where(active, &mut self.thickness, index);
        }
        for (axis, [one, two, three, four]) in self.corners.iter_mut().enumerate() {
            let (xi, eta, twist) = (forces.xi[axis] * 0.25, forces.eta[axis] * 0.25, forces.twist[axis] * 0.25);
            (twist - xi - eta).store_where(active, one, column);
            (xi - eta - twist).store_where(active, two, column);
            (xi + eta + twist).store_where(active, three, column);
            (eta - xi - twist).store_where(active, four, column);
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

#[cfg(test)]
mod tests {
    use super::*;

    const STEEL: Metal = Metal { young: 200e3, poisson: 0.3, yield_stress: 70.0, density: 7.85e-9 };

    /// Nodes of a grid with spacing 1, each up to 0.02 away from its place; a step of such a size is plastic almost everywhere.
    fn nodes([columns, rows]: [usize; 2], phase: f64) -> [Vec<f64>; 2] {
        let place = |node: usize| [node % (columns + 1), node / (columns + 1)].map(|index| index as f64);
        let along = |axis: usize| {
            let shift = |node: usize| 0.02 * (phase + 1.7 * node as f64 + 0.9 * axis as f64).sin();
            (0..(columns + 1) * (rows + 1)).map(|node| place(node)[axis] + shift(node)).collect()
        };
        [along(0), along(1)]
    }

    /// Runs of all lengths: whole vectors, parts of one at both ends of a row and inside, rows shorter than a vector.
    #[test]
    fn elements_have_the_same_bits_in_vectors_and_one_by_one() {
        for (columns, parts) in
            [(21, vec![0..13, 13..21]), (21, vec![0..4, 4..9, 13..21]), (8, vec![0..3, 7..8]), (5, vec![0..2, 2..5])]
        {
            let counts = [columns, 2];
            let run = |row: usize, columns: &Range<usize>| Run { row, columns: columns.clone(), nodes: 0..0 };
            let runs: Vec<Run> = (0..2).flat_map(|row| parts.iter().map(move |part| run(row, part))).collect();
            let [mut wide, mut single] = [0, 1].map(|_| Elements::new(STEEL, counts));
            for step in 0..3 {
                let (before, positions) = (nodes(counts, f64::from(step)), nodes(counts, f64::from(step + 1)));
                let [mut force, mut wanted] = [0, 1].map(|_| [0, 1].map(|_| vec![0.0; positions[0].len()]));
                let summary = wide.advance(&runs, &positions, &before, &mut force);
                let (elements, positions, before) = (&mut single, &positions, &before);
                let twin = Sweep { elements, runs: &runs, positions, before, force: &mut wanted };
                let told = twin.with_simd(Scalar::new());
                assert_eq!((&wide.stress, &wide.thickness, &force), (&single.stress, &single.thickness, &wanted));
                assert_eq!(summary.least_area, told.least_area);
                assert!(
                    (summary.internal - told.internal).abs() <= 1e-12 * told.internal.abs(),
                    "another order of sums"
                );
                assert!(force[0].iter().any(|force| *force != 0.0) && wide.thickness.iter().any(|h| *h != 1.0));
            }
        }
    }
}
