//! Explicit dynamics of a rectangular block: central differences with a lumped mass.
//!
//! v⁺ = v⁻ − M⁻¹ f(x) (t⁺ − t⁻)/2, x⁺ = x + v⁺ (t⁺ − t): stable below 2 / ω of the stiffest element, which changes as the
//! elements are squeezed, so each step takes its own length. Whatever holds or pushes nodes corrects v⁺ before x⁺ is taken.

use crate::Error;
use crate::plane_stress::Metal;
use crate::quadrilateral::Elements;

/// Share of the stable step that is used: its bound is that of single elements at the last positions.
const SAFETY: f64 = 0.9;
/// A block whose stable step has fallen by this factor is crushed beyond what its elements can describe.
const SHORTEST: f64 = 1e-3;

/// A block of metal: positions and velocities of its nodes, stress in its elements, and where the work went.
#[derive(Clone, Debug)]
pub struct Block {
    /// x and y, row by row from the bottom, `[rows + 1, columns + 1]` each
    pub positions: [Vec<f64>; 2],
    /// Half a step behind the positions.
    pub velocity: [Vec<f64>; 2],
    /// t
    pub time: f64,
    /// Steps so far: the cost.
    pub steps: usize,
    /// Where the work went since t = 0.
    pub energy: Energy,
    elements: Elements,
    before: [Vec<f64>; 2],
    force: [Vec<f64>; 2],
    mass: Vec<f64>,
    step: f64,
    stable_step: f64,
    shortest_step: f64,
}

/// Work and energies, for a thickness of 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Work of whatever drives nodes: force times the way of the driver.
    pub work: f64,
    /// Lost where a driver hits nodes: it is rigid, and their mass is lumped.
    pub shock: f64,
    /// Elastic energy and plastic dissipation together.
    pub internal: f64,
    /// In the hourglass springs.
    pub hourglass: f64,
}

impl Energy {
    /// Work that is nowhere to be found, given the energy of motion: an error of the time steps.
    pub fn missing(&self, kinetic: f64) -> f64 {
        self.work - (self.shock + self.internal + self.hourglass + kinetic)
    }
}

impl Block {
    /// `counts` columns and rows of elements at rest on the rectangle of `size` whose lower left corner is `corner`.
    pub fn new(metal: Metal, counts: [usize; 2], corner: [f64; 2], size: [f64; 2], hourglass: f64) -> Self {
        let [columns, rows] = counts;
        let width = columns + 1;
        let nodes = width * (rows + 1);
        let place = |axis: usize, index: usize| corner[axis] + size[axis] * index as f64 / counts[axis] as f64;
        let positions = [
            (0..nodes).map(|node| place(0, node % width)).collect(),
            (0..nodes).map(|node| place(1, node / width)).collect(),
        ];
        let element_mass = metal.density * size[0] * size[1] / (columns * rows) as f64;
        let mut mass = vec![0.0; nodes];
        for element in 0..columns * rows {
            let first = element / columns * width + element % columns;
            for node in [first, first + 1, first + width, first + width + 1] {
                mass[node] += 0.25 * element_mass;
            }
        }
        let zeros = || [vec![0.0; nodes], vec![0.0; nodes]];
        let mut block = Self {
            positions,
            velocity: zeros(),
            time: 0.0,
            steps: 0,
            energy: Energy::default(),
            elements: Elements::new(metal, counts, element_mass, hourglass),
            before: zeros(),
            force: zeros(),
            mass,
            step: 0.0,
            stable_step: 0.0,
            shortest_step: 0.0,
        };
        let answer = block.elements.advance(&block.positions, &block.velocity, 0.0, &mut block.force);
        block.stable_step = 2.0 / answer.frequency_squared.sqrt();
        block.shortest_step = SHORTEST * block.stable_step;
        block
    }

    /// Columns and rows of nodes.
    pub fn nodes(&self) -> [usize; 2] {
        self.elements.counts.map(|count| count + 1)
    }

    /// (σxx, σyy, σxy) in the middle of the elements, `[rows, columns]` each
    pub fn stress(&self) -> &[Vec<f64>; 3] {
        &self.elements.stress
    }

    /// h, `[rows, columns]`; 1 at first
    pub fn thickness(&self) -> &[f64] {
        &self.elements.thickness
    }

    /// Energy of motion.
    pub fn kinetic(&self) -> f64 {
        let axis = |velocity: &Vec<f64>| -> f64 { velocity.iter().zip(&self.mass).map(|(v, m)| 0.5 * m * v * v).sum() };
        self.velocity.iter().map(axis).sum()
    }

    /// Advances to t = `until`; `drive` holds and pushes nodes, once per step.
    pub fn advance(&mut self, until: f64, drive: &impl Fn(&mut Motion<'_>)) -> Result<(), Error> {
        while self.time < until {
            let remaining = until - self.time;
            let steps = (remaining / (SAFETY * self.stable_step) - 1e-9).ceil().max(1.0);
            self.single_step(remaining / steps, drive)?;
            if steps == 1.0 {
                self.time = until; // without the round-off of the sum
            }
        }
        let kinetic = self.kinetic();
        if kinetic.is_finite() { Ok(()) } else { Err(self.unphysical("a finite kinetic energy", kinetic)) }
    }

    fn single_step(&mut self, step: f64, drive: &impl Fn(&mut Motion<'_>)) -> Result<(), Error> {
        let span = 0.5 * (self.step + step); // the first one starts from rest at t = 0, half a step late
        for axis in 0..2 {
            self.before[axis].copy_from_slice(&self.velocity[axis]);
            let forces = self.force[axis].iter().zip(&self.mass);
            self.velocity[axis].iter_mut().zip(forces).for_each(|(v, (f, m))| *v -= span * f / m);
        }
        self.time += step;
        drive(&mut Motion {
            positions: &self.positions,
            velocity: &mut self.velocity,
            before: &self.before,
            mass: &self.mass,
            energy: &mut self.energy,
            time: self.time,
            step,
        });
        for (positions, velocity) in self.positions.iter_mut().zip(&self.velocity) {
            positions.iter_mut().zip(velocity).for_each(|(x, v)| *x += step * v);
        }
        let answer = self.elements.advance(&self.positions, &self.velocity, step, &mut self.force);
        self.energy.internal += answer.internal;
        self.energy.hourglass += answer.hourglass;
        self.step = step;
        self.steps += 1;
        self.stable_step = 2.0 / answer.frequency_squared.sqrt();
        if answer.least_area <= 0.0 {
            return Err(self.unphysical("elements of positive area", answer.least_area));
        }
        if self.stable_step < self.shortest_step {
            let (expected, found) = (self.shortest_step, self.stable_step);
            return Err(Error::StepTooSmall { time: self.time, expected, found });
        }
        Ok(())
    }

    pub(crate) fn unphysical(&self, expected: &'static str, found: f64) -> Error {
        Error::Unphysical { system: "block", time: self.time, expected, found }
    }
}

/// The nodes within a step, between the new velocity and the new positions.
#[derive(Debug)]
pub struct Motion<'a> {
    positions: &'a [Vec<f64>; 2],
    velocity: &'a mut [Vec<f64>; 2],
    before: &'a [Vec<f64>; 2],
    mass: &'a [f64],
    energy: &'a mut Energy,
    /// t⁺
    pub time: f64,
    step: f64,
}

impl Motion<'_> {
    /// Where `node` goes unless someone acts.
    pub fn next(&self, node: usize) -> [f64; 2] {
        [0, 1].map(|axis| self.positions[axis][node] + self.step * self.velocity[axis][node])
    }

    /// Gives `node` the velocity `drive` along `axis`; zero holds it.
    pub fn drive(&mut self, node: usize, axis: usize, drive: f64) {
        self.push(node, axis, drive, drive);
    }

    /// Lets `node` arrive at `place`, pushed by something that moves with the velocity `driver`.
    pub fn place(&mut self, node: usize, place: [f64; 2], driver: [f64; 2]) {
        for axis in 0..2 {
            self.push(node, axis, (place[axis] - self.positions[axis][node]) / self.step, driver[axis]);
        }
    }

    /// The impulse does the work force × way of the node, midway between the velocities before and after the step.
    fn push(&mut self, node: usize, axis: usize, after: f64, driver: f64) {
        let impulse = self.mass[node] * (after - self.velocity[axis][node]);
        self.velocity[axis][node] = after;
        self.energy.work += impulse * driver;
        self.energy.shock += impulse * (driver - 0.5 * (self.before[axis][node] + after));
    }
}
