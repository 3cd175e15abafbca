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

use crate::lanes::Lanes;
use crate::plane_stress::{Metal, Stress};

/// ξ and η of the Gauss points; all have the weight 1.
const GAUSS: [[f64; 2]; 4] = [[-ROOT, -ROOT], [ROOT, -ROOT], [ROOT, ROOT], [-ROOT, ROOT]];
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
    /// Mass of one element; all elements have the same mass.
    pub(crate) mass: f64,
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
struct Tally<const COUNT: usize> {
    least_area: Lanes<COUNT>,
    internal: Lanes<COUNT>,
}

impl<const COUNT: usize> Tally<COUNT> {
    #[inline(always)]
    fn new() -> Self {
        Self { least_area: Lanes::splat(f64::INFINITY), internal: Lanes::splat(0.0) }
    }

    #[inline(always)]
    fn merge(self, summary: &mut StepSummary) {
        summary.least_area = self.least_area.0.into_iter().fold(summary.least_area, f64::min);
        summary.internal += self.internal.sum();
    }
}

/// A vector field in an element, without its mean. Positions and displacements enter an element this way.
#[derive(Clone, Copy)]
struct Bilinear<const COUNT: usize> {
    /// Factors of ξ, along x and y.
    xi: [Lanes<COUNT>; 2],
    /// Factors of η, along x and y.
    eta: [Lanes<COUNT>; 2],
    /// Factors of ξη, along x and y.
    twist: [Lanes<COUNT>; 2],
}

impl<const COUNT: usize> Bilinear<COUNT> {
    /// The field of `COUNT` consecutive elements, times `factor`; `first` is the lower left node of the first one, and a
    /// row has `width` nodes.
    #[inline(always)]
    fn load(field: &[Vec<f64>; 2], first: usize, width: usize, factor: f64) -> Self {
        let ([xi_x, eta_x, twist_x], [xi_y, eta_y, twist_y]) =
            (factors(&field[0], first, width, factor), factors(&field[1], first, width, factor));
        Self { xi: [xi_x, xi_y], eta: [eta_x, eta_y], twist: [twist_x, twist_y] }
    }

    /// Adds forces s and t, conjugate to ∂/∂ξ and ∂/∂η of one component at a Gauss point.
    #[inline(always)]
    fn add(&mut self, axis: usize, s: Lanes<COUNT>, t: Lanes<COUNT>, [xi, eta]: [f64; 2]) {
        self.xi[axis] = self.xi[axis] + s;
        self.eta[axis] = self.eta[axis] + t;
        self.twist[axis] = self.twist[axis] + (s * eta + t * xi);
    }

    /// The positions half a step ago: these positions minus half the `motion`.
    #[inline(always)]
    fn midpoint(&self, motion: &Self) -> Self {
        let half_back = |now: [Lanes<COUNT>; 2], by: [Lanes<COUNT>; 2]| [now[0] - by[0] * 0.5, now[1] - by[1] * 0.5];
        Self {
            xi: half_back(self.xi, motion.xi),
            eta: half_back(self.eta, motion.eta),
            twist: half_back(self.twist, motion.twist),
        }
    }

    /// ∂/∂ξ and ∂/∂η of x and y at a Gauss point.
    #[inline(always)]
    fn derivatives(&self, [xi, eta]: [f64; 2]) -> [[Lanes<COUNT>; 2]; 2] {
        [
            [self.xi[0] + self.twist[0] * eta, self.xi[1] + self.twist[1] * eta],
            [self.eta[0] + self.twist[0] * xi, self.eta[1] + self.twist[1] * xi],
        ]
    }
}

/// Factors of ξ, η and ξη of one component. Written out: arrays of lanes that are mapped go through memory.
#[inline(always)]
fn factors<const COUNT: usize>(values: &[f64], first: usize, width: usize, factor: f64) -> [Lanes<COUNT>; 3] {
    let quarter = 0.25 * factor;
    let (one, two) = (Lanes::load(values, first), Lanes::load(values, first + 1));
    let (four, three) = (Lanes::load(values, first + width), Lanes::load(values, first + width + 1));
    [
        ((two - one) + (three - four)) * quarter,
        ((four - one) + (three - two)) * quarter,
        ((one - two) + (three - four)) * quarter,
    ]
}

/// D from the derivatives of the positions.
#[inline(always)]
fn determinant<const COUNT: usize>([[xs, ys], [xt, yt]]: [[Lanes<COUNT>; 2]; 2]) -> Lanes<COUNT> {
    xs * yt - xt * ys
}

/// The stress rotated clockwise by the angle whose tangent is `spin`.
#[inline(always)]
fn rotated<const COUNT: usize>([xx, yy, xy]: Stress<COUNT>, spin: Lanes<COUNT>) -> Stress<COUNT> {
    let factor = (spin * spin + 1.0).recip() * 2.0;
    let (cosine, sine) = (factor - 1.0, factor * spin); // of twice the angle
    let (mean, half) = ((xx + yy) * 0.5, (xx - yy) * 0.5);
    let (half, xy) = (half * cosine + xy * sine, xy * cosine - half * sine);
    [mean + half, mean - half, xy]
}

impl Elements {
    /// `counts` columns and rows of elements with zero stress and thickness 1.
    pub(crate) fn new(metal: Metal, counts: [usize; 2], element_mass: f64) -> Self {
        let [columns, rows] = counts;
        let points = GAUSS.len() * rows * columns;
        let zeros = || vec![0.0; points];
        let line = || vec![0.0; columns];
        Self {
            metal,
            counts,
            stress: [zeros(), zeros(), zeros()],
            thickness: vec![1.0; points],
            mass: element_mass,
            corners: [0, 1].map(|_axis| [line(), line(), line(), line()]),
        }
    }

    /// Moves the elements to the new nodal `positions`, which the nodes reached with `velocity` in `step`. Writes the
    /// internal `force` of each node; it accelerates the node in the opposite direction.
    pub(crate) fn advance(
        &mut self,
        positions: &[Vec<f64>; 2],
        velocity: &[Vec<f64>; 2],
        step: f64,
        force: &mut [Vec<f64>; 2],
    ) -> StepSummary {
        let [columns, rows] = self.counts;
        let mut summary = StepSummary { least_area: f64::INFINITY, internal: 0.0 };
        let (mut wide, mut narrow, mut single) = (Tally::<8>::new(), Tally::<4>::new(), Tally::<1>::new());
        force.iter_mut().for_each(|axis| axis.fill(0.0));
        for row in 0..rows {
            let mut column = 0;
            while column + 8 <= columns {
                self.block(positions, velocity, step, [row, column], &mut wide);
                column += 8;
            }
            while column + 4 <= columns {
                self.block(positions, velocity, step, [row, column], &mut narrow);
                column += 4;
            }
            while column < columns {
                self.block(positions, velocity, step, [row, column], &mut single);
                column += 1;
            }
            self.assemble(row, force);
        }
        wide.merge(&mut summary);
        narrow.merge(&mut summary);
        single.merge(&mut summary);
        summary
    }

    /// Advances `COUNT` consecutive elements of a row.
    #[inline(always)]
    fn block<const COUNT: usize>(
        &mut self,
        positions: &[Vec<f64>; 2],
        velocity: &[Vec<f64>; 2],
        step: f64,
        [row, column]: [usize; 2],
        tally: &mut Tally<COUNT>,
    ) {
        let width = self.counts[0] + 1;
        let first = row * width + column;
        let shape = Bilinear::<COUNT>::load(positions, first, width, 1.0);
        let motion = Bilinear::load(velocity, first, width, step);
        let midpoint = shape.midpoint(&motion); // there a rotation causes no strain
        let zero = [Lanes::splat(0.0); 2];
        let mut forces = Bilinear { xi: zero, eta: zero, twist: zero }; // conjugate to the factors of ξ, η, ξη
        for (point, location) in GAUSS.into_iter().enumerate() {
            let element = (point * self.counts[1] + row) * self.counts[0] + column;
            let before = midpoint.derivatives(location);
            let (area, [[xs, ys], [xt, yt]]) = (determinant(before), before);
            let [[us, vs], [ut, vt]] = motion.derivatives(location);
            let per_area = area.recip();
            let [ux, uy] = [(us * yt - ut * ys) * per_area, (ut * xs - us * xt) * per_area];
            let [vx, vy] = [(vs * yt - vt * ys) * per_area, (vt * xs - vs * xt) * per_area];
            let (strain, spin) = ([ux, vy, (uy + vx) * 0.5], (uy - vx) * 0.5);

            let [xx, yy, xy] = &self.stress;
            let stress_before =
                rotated([Lanes::load(xx, element), Lanes::load(yy, element), Lanes::load(xy, element)], spin);
            let (stress, thickness_strain) = self.metal.update_stress(stress_before, strain);
            let thickness_before = Lanes::load(&self.thickness, element);
            let thickness = thickness_before + thickness_before * thickness_strain;
            let half_work = |part: usize| (stress_before[part] + stress[part]) * strain[part];
            let work = (half_work(0) + half_work(1)) * 0.5 + half_work(2);
            tally.internal = tally.internal + area * thickness_before * work;

            let now = shape.derivatives(location);
            tally.least_area = tally.least_area.min(determinant(now));
            let [[xs, ys], [xt, yt]] = now;
            let (xx, yy, xy) = (stress[0] * thickness, stress[1] * thickness, stress[2] * thickness);
            // Along each axis the work is s u_s + t u_t.
            forces.add(0, xx * yt - xy * xt, xy * xs - xx * ys, location);
            forces.add(1, xy * yt - yy * xt, yy * xs - xy * ys, location);
            let [xx, yy, xy] = &mut self.stress;
            stress[0].store(xx, element);
            stress[1].store(yy, element);
            stress[2].store(xy, element);
            thickness.store(&mut self.thickness, element);
        }
        for (axis, [one, two, three, four]) in self.corners.iter_mut().enumerate() {
            let (xi, eta, twist) = (forces.xi[axis] * 0.25, forces.eta[axis] * 0.25, forces.twist[axis] * 0.25);
            (twist - xi - eta).store(one, column);
            (xi - eta - twist).store(two, column);
            (xi + eta + twist).store(three, column);
            (eta - xi - twist).store(four, column);
        }
    }

    /// Adds the corner forces of a row of elements to the nodes.
    #[inline(always)]
    fn assemble(&self, row: usize, force: &mut [Vec<f64>; 2]) {
        let width = self.counts[0] + 1;
        for (corners, force) in self.corners.iter().zip(force) {
            let first_nodes = [row * width, row * width + 1, (row + 1) * width + 1, (row + 1) * width];
            for (corner, first) in corners.iter().zip(first_nodes) {
                force[first..].iter_mut().zip(corner).for_each(|(sum, part)| *sum += part);
            }
        }
    }

    /// A stable step at `positions`: 2 / ω, with an upper bound on ω² of all elements.
    ///
    /// The stiffness of an element is at most E / (1 − ν) times that of the Laplacian for each component. Trace and norm
    /// of the Laplacian on ξ, η and ξη bound its largest eigenvalue (Wolkowicz and Styan 1980); for a square the bound
    /// on ω² is 1.11 times the exact value.
    pub(crate) fn stable_step(&self, positions: &[Vec<f64>; 2]) -> f64 {
        let [columns, rows] = self.counts;
        let largest = (0..rows * columns).map(|element| self.laplacian(positions, element)).fold(0.0, f64::max);
        2.0 / (4.0 / self.mass * self.metal.young / (1.0 - self.metal.poisson) * largest).sqrt()
    }

    /// Upper bound on the largest eigenvalue of h ∇N·∇N, integrated over one element.
    fn laplacian(&self, positions: &[Vec<f64>; 2], element: usize) -> f64 {
        let [columns, rows] = self.counts;
        let shape = Bilinear::<1>::load(positions, element + element / columns, columns + 1, 1.0);
        let mut entries = [0.0; 6]; // ξξ, ηη, hh, ξη, ξh, ηh, where h = ξη
        for (point, [xi, eta]) in GAUSS.into_iter().enumerate() {
            let at_point = shape.derivatives([xi, eta]);
            let [[xs, ys], [xt, yt]] = at_point.map(|part| part.map(|value| value.0[0]));
            let factor = 0.25 * self.thickness[point * rows * columns + element] / determinant(at_point).0[0];
            let [first, second, mixed] = [xt * xt + yt * yt, xs * xs + ys * ys, -xs * xt - ys * yt].map(|v| v * factor);
            let both = eta * eta * first + 2.0 * xi * eta * mixed + xi * xi * second;
            let parts = [first, second, both, mixed, eta * first + xi * mixed, eta * mixed + xi * second];
            entries.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
        let square = |range: &[f64]| range.iter().map(|entry| entry * entry).sum::<f64>();
        let mean = entries[..3].iter().sum::<f64>() / 3.0;
        let variance = (square(&entries[..3]) + 2.0 * square(&entries[3..])) / 3.0 - mean * mean;
        mean + (2.0 * variance.max(0.0)).sqrt()
    }
}
