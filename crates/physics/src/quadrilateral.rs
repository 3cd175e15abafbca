//! One-point quadrilaterals in plane stress with hourglass control (Flanagan and Belytschko 1981), on a mapped grid.
//!
//! The stress sits in the middle of an element and follows the Jaumann rate: it turns with the spin of the step, then
//! answers the strain increment. One point sees no strain in the hourglass pattern Γ = (1, −1, 1, −1); a spring of
//! stiffness `hourglass` · h (C + G) / 12 · (a² + b²) / A against γ·u, γ being Γ less its linear part, holds it. At 1 it is
//! as stiff as full integration makes an elastic square. The thickness h follows the strain across the plane.
//!
//! With the half diagonals a = (corner 2 − corner 4) / 2 and b = (corner 3 − corner 1) / 2 of positions (X, Y) and of
//! displacement increments (U, V): A = 2 (Xa Yb − Xb Ya) and ∂u/∂x = 2 (Ua Yb − Ub Ya) / A, ∂u/∂y = 2 (Xa Ub − Xb Ua) / A.

use crate::lanes::Lanes;
use crate::plane_stress::{Metal, Stress};

/// Elements along the rows of a grid, `[rows, columns]`, each with its state of stress.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    pub(crate) metal: Metal,
    /// columns, rows
    pub(crate) counts: [usize; 2],
    /// Stiffness of the hourglass springs, 1 as in full integration.
    pub(crate) hourglass: f64,
    /// σxx, σyy, σxy
    pub(crate) stress: [Vec<f64>; 3],
    /// Forces of the hourglass springs along x and y.
    spring: [Vec<f64>; 2],
    /// h
    pub(crate) thickness: Vec<f64>,
    /// Mass of each element, all alike.
    pub(crate) mass: f64,
    /// Forces of one row of elements on their corners: `[axis][corner][column]`
    corners: [[Vec<f64>; 4]; 2],
}

/// What the elements say about a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Largest ω² any element can reach: bounds the next step.
    pub(crate) frequency_squared: f64,
    /// Smallest area; not positive when an element has turned inside out.
    pub(crate) least_area: f64,
    /// Work of the stresses during the step.
    pub(crate) internal: f64,
    /// Work of the hourglass springs during the step.
    pub(crate) hourglass: f64,
}

/// Sums and extremes over the blocks of one width.
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
        let [zero, far] = [0.0, f64::INFINITY].map(Lanes::splat);
        Self { frequency_squared: zero, least_area: far, internal: zero, hourglass: zero }
    }

    #[inline(always)]
    fn merge(self, answer: &mut Answer) {
        answer.frequency_squared = self.frequency_squared.0.into_iter().fold(answer.frequency_squared, f64::max);
        answer.least_area = self.least_area.0.into_iter().fold(answer.least_area, f64::min);
        answer.internal += self.internal.sum();
        answer.hourglass += self.hourglass.sum();
    }
}

/// A vector field on the corners, its mean left out: all that an element sees of positions and displacements.
#[derive(Clone, Copy)]
struct Figure<const COUNT: usize> {
    /// half diagonal a, along x and y
    a: [Lanes<COUNT>; 2],
    /// half diagonal b
    b: [Lanes<COUNT>; 2],
    /// Γ·u
    pattern: [Lanes<COUNT>; 2],
}

impl<const COUNT: usize> Figure<COUNT> {
    /// Of the elements whose lower left nodes follow each other from `first`, `width` nodes being a row.
    #[inline(always)]
    fn of(field: &[Vec<f64>; 2], first: usize, width: usize) -> Self {
        let corners = [0, 1].map(|axis| {
            [first, first + 1, first + width + 1, first + width].map(|node| Lanes::load(&field[axis], node))
        });
        Self {
            a: corners.map(|[_, two, _, four]| (two - four) * 0.5),
            b: corners.map(|[one, _, three, _]| (three - one) * 0.5),
            pattern: corners.map(|[one, two, three, four]| (one - two) + (three - four)),
        }
    }

    #[inline(always)]
    fn scaled(self, factor: f64) -> Self {
        let scale = |part: [Lanes<COUNT>; 2]| part.map(|value| value * factor);
        Self { a: scale(self.a), b: scale(self.b), pattern: scale(self.pattern) }
    }

    /// Half the motion back.
    #[inline(always)]
    fn middle(&self, motion: &Self) -> Self {
        let back = |now: [Lanes<COUNT>; 2], by: [Lanes<COUNT>; 2]| [now[0] - by[0] * 0.5, now[1] - by[1] * 0.5];
        Self { a: back(self.a, motion.a), b: back(self.b, motion.b), pattern: back(self.pattern, motion.pattern) }
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

    /// γ·u: the pattern of `motion` that its `gradient` does not explain.
    #[inline(always)]
    fn stretch(&self, motion: &Self, gradient: [[Lanes<COUNT>; 2]; 2]) -> [Lanes<COUNT>; 2] {
        let [x, y] = self.pattern;
        [0, 1].map(|axis| motion.pattern[axis] - x * gradient[axis][0] - y * gradient[axis][1])
    }

    /// Forces along `axis` on the four corners: of the stresses, given as forces per length, and of a spring.
    #[inline(always)]
    fn forces(&self, [along_x, along_y]: [Lanes<COUNT>; 2], pull: Lanes<COUNT>) -> [Lanes<COUNT>; 4] {
        let (zero, per_area) = (Lanes::splat(0.0), (self.half_area() * 2.0).recip());
        let one = along_x * self.a[1] - along_y * self.a[0];
        let two = along_x * self.b[1] - along_y * self.b[0];
        let linear_one = (self.a[1] * self.pattern[0] - self.a[0] * self.pattern[1]) * per_area;
        let linear_two = (self.b[1] * self.pattern[0] - self.b[0] * self.pattern[1]) * per_area;
        [
            one + pull * (zero - linear_one + 1.0),
            two - pull * (linear_two + 1.0),
            pull * (linear_one + 1.0) - one,
            pull * (linear_two - 1.0) - two,
        ]
    }
}

/// The stress in axes that turn by the angle whose tangent is `spin`.
#[inline(always)]
fn turned<const COUNT: usize>([xx, yy, xy]: Stress<COUNT>, spin: Lanes<COUNT>) -> Stress<COUNT> {
    let share = (spin * spin + 1.0).recip() * 2.0;
    let (cosine, sine) = (share - 1.0, share * spin); // of twice the angle
    let (mean, half) = ((xx + yy) * 0.5, (xx - yy) * 0.5);
    let (half, xy) = (half * cosine + xy * sine, xy * cosine - half * sine);
    [mean + half, mean - half, xy]
}

impl Elements {
    /// `counts` columns and rows of elements without stress, of thickness 1.
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

    /// Takes the elements to the new nodal `positions`, reached with `velocity` in `step`, and adds up `force` on the
    /// nodes: the resistance, opposite to the acceleration it causes.
    pub(crate) fn advance(
        &mut self,
        positions: &[Vec<f64>; 2],
        velocity: &[Vec<f64>; 2],
        step: f64,
        force: &mut [Vec<f64>; 2],
    ) -> Answer {
        let [columns, rows] = self.counts;
        let mut answer = Answer { frequency_squared: 0.0, least_area: f64::INFINITY, internal: 0.0, hourglass: 0.0 };
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
        wide.merge(&mut answer);
        narrow.merge(&mut answer);
        single.merge(&mut answer);
        answer
    }

    /// A few elements of a row side by side.
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
        let figure = Figure::<COUNT>::of(positions, first, width);
        let motion = Figure::of(velocity, first, width).scaled(step);
        let middle = figure.middle(&motion); // where a rotation strains nothing
        let gradient @ [[ux, uy], [vx, vy]] = middle.gradient(&motion);
        let (strain, spin) = ([ux, vy, (uy + vx) * 0.5], (uy - vx) * 0.5);

        let stress = [0, 1, 2].map(|part| Lanes::load(&self.stress[part], element));
        let before = turned(stress, spin);
        let (stress, thickness_strain) = self.metal.strained(before, strain);
        let thickness_before = Lanes::load(&self.thickness, element);
        let thickness = thickness_before + thickness_before * thickness_strain;

        let area = figure.half_area() * 2.0;
        let [[xa, ya], [xb, yb]] = [figure.a, figure.b];
        let slenderness = (xa * xa + ya * ya + xb * xb + yb * yb) * area.recip() * thickness;
        let [spring_x, spring_y] = [0, 1].map(|axis| Lanes::load(&self.spring[axis], element));
        let spring = [spring_x + spin * spring_y, spring_y - spin * spring_x];
        let stretch = middle.stretch(&motion, gradient);
        let modulus = self.hourglass * (self.metal.plate_modulus() + self.metal.shear_modulus()) / 12.0;
        let pull = [0, 1].map(|axis| spring[axis] + slenderness * modulus * stretch[axis]);

        let [xx, yy, xy] = stress.map(|part| part * thickness);
        for (axis, tractions) in [[xx, xy], [xy, yy]].into_iter().enumerate() {
            let forces = figure.forces(tractions, pull[axis]);
            forces.into_iter().zip(&mut self.corners[axis]).for_each(|(force, line)| force.store(line, column));
        }

        let twice = |part: usize| (before[part] + stress[part]) * strain[part];
        let work = twice(0) + twice(1) + twice(2) * 2.0;
        let spring_work = (spring[0] + pull[0]) * stretch[0] + (spring[1] + pull[1]) * stretch[1];
        tally.internal = tally.internal + middle.half_area() * thickness_before * work;
        tally.hourglass = tally.hourglass + spring_work * 0.5;
        let stiffest = slenderness * (8.0 * self.metal.plate_modulus() / self.mass);
        tally.frequency_squared = tally.frequency_squared.max(stiffest);
        tally.least_area = tally.least_area.min(area);

        stress.into_iter().zip(&mut self.stress).for_each(|(part, stored)| part.store(stored, element));
        pull.into_iter().zip(&mut self.spring).for_each(|(part, stored)| part.store(stored, element));
        thickness.store(&mut self.thickness, element);
    }

    /// Adds what the corners of a row of elements feel to the nodes.
    #[inline(always)]
    fn assemble(&self, row: usize, force: &mut [Vec<f64>; 2]) {
        let width = self.counts[0] + 1;
        for (corners, force) in self.corners.iter().zip(force) {
            let places = [row * width, row * width + 1, (row + 1) * width + 1, (row + 1) * width];
            for (corner, place) in corners.iter().zip(places) {
                force[place..].iter_mut().zip(corner).for_each(|(sum, part)| *sum += part);
            }
        }
    }
}
