//! One-point quadrilaterals in plane stress with hourglass control (Flanagan and Belytschko 1981), on a mapped grid.
//!
//! The stress is known at the centre of an element. It follows the Jaumann rate: it rotates with the spin of the step,
//! then the strain increment changes it. The hourglass mode Γ = (1, −1, 1, −1) has no strain at the centre, so a spring
//! of stiffness `hourglass` · h (C + G) / 12 · (a² + b²) / A acts against γ·u, where γ is Γ minus its linear part. With
//! `hourglass` = 1 an elastic square is as stiff as with full integration. The thickness h follows the strain across
//! the plane.
//!
//! With the half diagonals a = (corner 2 − corner 4) / 2 and b = (corner 3 − corner 1) / 2 of positions (X, Y) and of
//! displacement increments (U, V): A = 2 (Xa Yb − Xb Ya) and ∂u/∂x = 2 (Ua Yb − Ub Ya) / A, ∂u/∂y = 2 (Xa Ub − Xb Ua) /
//! A.

use crate::lanes::Lanes;
use crate::plane_stress::{Metal, Stress};

/// The elements `[rows, columns]` of a mapped grid, and the state of each.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    pub(crate) metal: Metal,
    /// columns, rows
    pub(crate) counts: [usize; 2],
    /// Relative stiffness of the hourglass springs; 1 is that of full integration.
    pub(crate) hourglass: f64,
    /// σxx, σyy, σxy
    pub(crate) stress: [Vec<f64>; 3],
    /// Forces of the hourglass springs along x and y.
    spring: [Vec<f64>; 2],
    /// h
    pub(crate) thickness: Vec<f64>,
    /// Mass of one element; all elements have the same mass.
    pub(crate) mass: f64,
    /// Forces of one row of elements on their corners, `[axis][corner][column]`
    corners: [[Vec<f64>; 4]; 2],
}

/// Stability limit, smallest area and work of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StepSummary {
    /// Upper bound on ω² of all elements; it limits the next step.
    pub(crate) frequency_squared: f64,
    /// Smallest area; zero or negative when an element is folded.
    pub(crate) least_area: f64,
    /// Work of the stresses during the step.
    pub(crate) internal: f64,
    /// Work of the hourglass springs during the step.
    pub(crate) hourglass: f64,
}

/// The parts of a [`StepSummary`] in lanes, over all blocks of one width.
#[derive(Clone, Copy)]
struct Tally<const COUNT: usize> {
    frequency_squared: Lanes<COUNT>,
    least_area: Lanes<COUNT>,
    internal: Lanes<COUNT>,
    hourglass: Lanes<COUNT>,
}

impl<const COUNT: usize> Tally<COUNT> {
    #[inline(always)]
    fn new() -> Self {
        let [zero, infinity] = [0.0, f64::INFINITY].map(Lanes::splat);
        Self { frequency_squared: zero, least_area: infinity, internal: zero, hourglass: zero }
    }

    #[inline(always)]
    fn merge(self, summary: &mut StepSummary) {
        summary.frequency_squared = self.frequency_squared.0.into_iter().fold(summary.frequency_squared, f64::max);
        summary.least_area = self.least_area.0.into_iter().fold(summary.least_area, f64::min);
        summary.internal += self.internal.sum();
        summary.hourglass += self.hourglass.sum();
    }
}

/// A vector field at the corners of an element, without its mean. Positions and displacements enter an element this
/// way.
#[derive(Clone, Copy)]
struct CornerField<const COUNT: usize> {
    /// Half diagonal a, along x and y.
    a: [Lanes<COUNT>; 2],
    /// Half diagonal b, along x and y.
    b: [Lanes<COUNT>; 2],
    /// Hourglass amplitude Γ·u, along x and y.
    amplitude: [Lanes<COUNT>; 2],
}

impl<const COUNT: usize> CornerField<COUNT> {
    /// The field of `COUNT` consecutive elements; `first` is the lower left node of the first one, and a row has
    /// `width` nodes.
    #[inline(always)]
    fn load(field: &[Vec<f64>; 2], first: usize, width: usize) -> Self {
        let corners = [0, 1].map(|axis| {
            [first, first + 1, first + width + 1, first + width].map(|node| Lanes::load(&field[axis], node))
        });
        Self {
            a: corners.map(|[_, two, _, four]| (two - four) * 0.5),
            b: corners.map(|[one, _, three, _]| (three - one) * 0.5),
            amplitude: corners.map(|[one, two, three, four]| (one - two) + (three - four)),
        }
    }

    #[inline(always)]
    fn scaled(self, factor: f64) -> Self {
        let scale = |part: [Lanes<COUNT>; 2]| part.map(|value| value * factor);
        Self { a: scale(self.a), b: scale(self.b), amplitude: scale(self.amplitude) }
    }

    /// The positions half a step ago: these positions minus half the `motion`.
    #[inline(always)]
    fn midpoint(&self, motion: &Self) -> Self {
        let half_back = |now: [Lanes<COUNT>; 2], by: [Lanes<COUNT>; 2]| [now[0] - by[0] * 0.5, now[1] - by[1] * 0.5];
        Self {
            a: half_back(self.a, motion.a),
            b: half_back(self.b, motion.b),
            amplitude: half_back(self.amplitude, motion.amplitude),
        }
    }

    /// A / 2
    #[inline(always)]
    fn half_area(&self) -> Lanes<COUNT> {
        self.a[0] * self.b[1] - self.b[0] * self.a[1]
    }

    /// ∂/∂x and ∂/∂y of each component of `motion`.
    #[inline(always)]
    fn gradient(&self, motion: &Self) -> [[Lanes<COUNT>; 2]; 2] {
        let per_area = self.half_area().recip();
        [0, 1].map(|axis| {
            let (a, b) = (motion.a[axis], motion.b[axis]);
            [(a * self.b[1] - b * self.a[1]) * per_area, (self.a[0] * b - self.b[0] * a) * per_area]
        })
    }

    /// γ·u: the hourglass amplitude of `motion` minus that of its linear part, which has the `gradient`.
    #[inline(always)]
    fn hourglass_motion(&self, motion: &Self, gradient: [[Lanes<COUNT>; 2]; 2]) -> [Lanes<COUNT>; 2] {
        let [x, y] = self.amplitude;
        [0, 1].map(|axis| motion.amplitude[axis] - x * gradient[axis][0] - y * gradient[axis][1])
    }

    /// Forces on the four corners along one axis, from the stresses (as forces per length) and from the hourglass
    /// spring.
    #[inline(always)]
    fn forces(&self, [along_x, along_y]: [Lanes<COUNT>; 2], spring: Lanes<COUNT>) -> [Lanes<COUNT>; 4] {
        let (zero, per_area) = (Lanes::splat(0.0), (self.half_area() * 2.0).recip());
        let one = along_x * self.a[1] - along_y * self.a[0];
        let two = along_x * self.b[1] - along_y * self.b[0];
        let linear_one = (self.a[1] * self.amplitude[0] - self.a[0] * self.amplitude[1]) * per_area;
        let linear_two = (self.b[1] * self.amplitude[0] - self.b[0] * self.amplitude[1]) * per_area;
        [
            one + spring * (zero - linear_one + 1.0),
            two - spring * (linear_two + 1.0),
            spring * (linear_one + 1.0) - one,
            spring * (linear_two - 1.0) - two,
        ]
    }
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
    pub(crate) fn new(metal: Metal, counts: [usize; 2], element_mass: f64, hourglass: f64) -> Self {
        let [columns, rows] = counts;
        let zeros = || vec![0.0; rows * columns];
        let line = || vec![0.0; columns];
        Self {
            metal,
            counts,
            hourglass,
            stress: [zeros(), zeros(), zeros()],
            spring: [zeros(), zeros()],
            thickness: vec![1.0; rows * columns],
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
        let mut summary =
            StepSummary { frequency_squared: 0.0, least_area: f64::INFINITY, internal: 0.0, hourglass: 0.0 };
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
        let (first, element) = (row * width + column, row * self.counts[0] + column);
        let shape = CornerField::<COUNT>::load(positions, first, width);
        let motion = CornerField::load(velocity, first, width).scaled(step);
        let midpoint = shape.midpoint(&motion); // there a rotation causes no strain
        let gradient @ [[ux, uy], [vx, vy]] = midpoint.gradient(&motion);
        let (strain, spin) = ([ux, vy, (uy + vx) * 0.5], (uy - vx) * 0.5);

        let stress = [0, 1, 2].map(|part| Lanes::load(&self.stress[part], element));
        let before = rotated(stress, spin);
        let (stress, thickness_strain) = self.metal.update_stress(before, strain);
        let thickness_before = Lanes::load(&self.thickness, element);
        let thickness = thickness_before + thickness_before * thickness_strain;

        let area = shape.half_area() * 2.0;
        let [[xa, ya], [xb, yb]] = [shape.a, shape.b];
        let stiffness_factor = (xa * xa + ya * ya + xb * xb + yb * yb) * area.recip() * thickness; // h (a² + b²) / A
        let [spring_x, spring_y] = [0, 1].map(|axis| Lanes::load(&self.spring[axis], element));
        let spring_before = [spring_x + spin * spring_y, spring_y - spin * spring_x]; // rotated
        let hourglass_motion = midpoint.hourglass_motion(&motion, gradient);
        let modulus = self.hourglass * (self.metal.plate_modulus() + self.metal.shear_modulus()) / 12.0;
        let spring = [0, 1].map(|axis| spring_before[axis] + stiffness_factor * modulus * hourglass_motion[axis]);

        let [xx, yy, xy] = stress.map(|part| part * thickness);
        for (axis, tractions) in [[xx, xy], [xy, yy]].into_iter().enumerate() {
            let forces = shape.forces(tractions, spring[axis]);
            forces.into_iter().zip(&mut self.corners[axis]).for_each(|(force, line)| force.store(line, column));
        }

        let twice_work = |part: usize| (before[part] + stress[part]) * strain[part];
        let work = twice_work(0) + twice_work(1) + twice_work(2) * 2.0;
        let twice_spring_work = |axis: usize| (spring_before[axis] + spring[axis]) * hourglass_motion[axis];
        let spring_work = twice_spring_work(0) + twice_spring_work(1);
        tally.internal = tally.internal + midpoint.half_area() * thickness_before * work;
        tally.hourglass = tally.hourglass + spring_work * 0.5;
        let frequency_squared = stiffness_factor * (8.0 * self.metal.plate_modulus() / self.mass);
        tally.frequency_squared = tally.frequency_squared.max(frequency_squared);
        tally.least_area = tally.least_area.min(area);

        stress.into_iter().zip(&mut self.stress).for_each(|(part, stored)| part.store(stored, element));
        spring.into_iter().zip(&mut self.spring).for_each(|(part, stored)| part.store(stored, element));
        thickness.store(&mut self.thickness, element);
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
}
