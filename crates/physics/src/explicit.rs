//! Explicit dynamics of a rectangular block: central differences with a lumped mass.
//!
//! v⁺ = v⁻ − M⁻¹ f(x) (t⁺ − t⁻)/2, x⁺ = x + v⁺ (t⁺ − t). The scheme is stable for steps below 2 / ω of the stiffest
//! element. This limit changes as the elements are compressed, so each step has its own length. Supports and tools
//! correct v⁺ before x⁺ is computed.

use crate::Error;
use crate::plane_stress::Metal;
use crate::quadrilateral::Elements;
use lamo_geometry::Grid;

/// Fraction of the stable step that is used; the bound holds for single elements at the last positions.
const SAFETY: f64 = 0.9;
/// Steps after which the stable step is computed again. The block deforms by less than 1 % of an element in so many steps.
const REFRESH: usize = 16;
/// Smallest stable step relative to that of the undeformed block; below it the elements are too distorted.
const SHORTEST: f64 = 1e-3;

/// A block of metal: the positions and velocities of its nodes, the stress in its elements, and its energies.
#[derive(Clone, Debug)]
pub struct Block {
    /// x and y of the nodes, `[rows + 1, columns + 1]` each; the first row is the bottom
    pub positions: [Vec<f64>; 2],
    /// Velocities along x and y, half a step behind the positions.
    pub velocity: [Vec<f64>; 2],
    /// t
    pub time: f64,
    /// Number of steps so far.
    pub steps: usize,
    /// Work and energies since t = 0.
    pub energy: Energy,
    elements: Elements,
    force: [Vec<f64>; 2],
    mass: Vec<f64>,
    step: f64,
    stable_step: f64,
    shortest_step: f64,
}

/// Work and energies, for a thickness of 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Work of the tools: force times the distance that the tool moves.
    pub work: f64,
    /// Energy lost in impacts of a rigid tool on nodes with lumped mass; negative where the tool pushes nodes off itself.
    pub impact: f64,
    /// Sum of elastic energy and plastic dissipation.
    pub internal: f64,
}

impl Energy {
    /// Work minus the sum of all energies: the error of the time steps.
    pub fn missing(&self, kinetic: f64) -> f64 {
        self.work - (self.impact + self.internal + kinetic)
    }
}

impl Block {
    /// A block at rest with `counts` columns and rows of elements. `corner` is its lower left corner; `size` is its
    /// length and height.
    pub fn new(metal: Metal, counts: [usize; 2], corner: [f64; 2], size: [f64; 2]) -> Self {
        let [columns, rows] = counts;
        let width = columns + 1;
        let nodes = width * (rows + 1);
        let coordinate = |axis: usize, index: usize| corner[axis] + size[axis] * index as f64 / counts[axis] as f64;
        let positions = [
            (0..nodes).map(|node| coordinate(0, node % width)).collect(),
            (0..nodes).map(|node| coordinate(1, node / width)).collect(),
        ];
        let element_mass = metal.density * size[0] * size[1] / (columns * rows) as f64;
        let mut mass = vec![0.0; nodes];
        let elements = Grid::Plane { rows: rows + 1, columns: width }.cells();
        elements.into_iter().flatten().for_each(|node| mass[node] += 0.25 * element_mass);
        let zeros = || [vec![0.0; nodes], vec![0.0; nodes]];
        let mut block = Self {
            positions,
            velocity: zeros(),
            time: 0.0,
            steps: 0,
            energy: Energy::default(),
            elements: Elements::new(metal, counts, element_mass),
            force: zeros(),
            mass,
            step: 0.0,
            stable_step: 0.0,
            shortest_step: 0.0,
        };
        block.stable_step = block.elements.stable_step(&block.positions);
        block.shortest_step = SHORTEST * block.stable_step;
        block
    }

    /// Columns and rows of nodes.
    pub fn nodes(&self) -> [usize; 2] {
        self.elements.counts.map(|count| count + 1)
    }

    /// σxx, σyy, σxy at the Gauss points of the elements, `[Gauss points, rows, columns]` each
    pub fn stress(&self) -> &[Vec<f64>; 3] {
        &self.elements.stress
    }

    /// Thickness h at the Gauss points, `[Gauss points, rows, columns]`; it is 1 at t = 0.
    pub fn thickness(&self) -> &[f64] {
        &self.elements.thickness
    }

    /// Kinetic energy.
    pub fn kinetic(&self) -> f64 {
        let axis = |velocity: &Vec<f64>| -> f64 { velocity.iter().zip(&self.mass).map(|(v, m)| 0.5 * m * v * v).sum() };
        self.velocity.iter().map(axis).sum()
    }

    /// Advances to t = `until`. Each step calls `constrain` once, which prescribes velocities and positions of nodes.
    pub fn advance(&mut self, until: f64, constrain: &impl Fn(&mut Motion<'_>)) -> Result<(), Error> {
        while self.time < until {
            let remaining = until - self.time;
            let steps = (remaining / (SAFETY * self.stable_step) - 1e-9).ceil().max(1.0);
            self.single_step(remaining / steps, constrain)?;
            if steps == 1.0 {
                self.time = until; // removes the round-off of the sum of steps
            }
        }
        let kinetic = self.kinetic();
        if kinetic.is_finite() { Ok(()) } else { Err(self.unphysical("a finite kinetic energy", kinetic)) }
    }

    fn single_step(&mut self, step: f64, constrain: &impl Fn(&mut Motion<'_>)) -> Result<(), Error> {
        let span = 0.5 * (self.step + step); // the first step starts at t = 0 and has half the length
        for axis in 0..2 {
            let forces = self.force[axis].iter().zip(&self.mass);
            self.velocity[axis].iter_mut().zip(forces).for_each(|(v, (f, m))| *v -= span * f / m);
        }
        self.time += step;
        constrain(&mut Motion {
            positions: &self.positions,
            velocity: &mut self.velocity,
            force: &self.force,
            mass: &self.mass,
            energy: &mut self.energy,
            time: self.time,
            step,
            span,
        });
        for (positions, velocity) in self.positions.iter_mut().zip(&self.velocity) {
            positions.iter_mut().zip(velocity).for_each(|(x, v)| *x += step * v);
        }
        let summary = self.elements.advance(&self.positions, &self.velocity, step, &mut self.force);
        self.energy.internal += summary.internal;
        self.step = step;
        self.steps += 1;
        if summary.least_area <= 0.0 {
            return Err(self.distorted("an area at each Gauss point", 0.0, summary.least_area));
        }
        if self.steps.is_multiple_of(REFRESH) {
            self.stable_step = self.elements.stable_step(&self.positions);
        }
        if self.stable_step < self.shortest_step {
            return Err(self.distorted("a stable step", self.shortest_step, self.stable_step));
        }
        Ok(())
    }

    fn distorted(&self, expected: &'static str, least: f64, found: f64) -> Error {
        Error::Distorted { system: "block", time: self.time, expected, least, found }
    }

    pub(crate) fn unphysical(&self, expected: &'static str, found: f64) -> Error {
        Error::Unphysical { system: "block", time: self.time, expected, found }
    }
}

/// The nodes within a step, after the new velocities and before the new positions.
#[derive(Debug)]
pub struct Motion<'a> {
    positions: &'a [Vec<f64>; 2],
    velocity: &'a mut [Vec<f64>; 2],
    force: &'a [Vec<f64>; 2],
    mass: &'a [f64],
    energy: &'a mut Energy,
    /// t⁺
    pub time: f64,
    step: f64,
    /// (t⁺ − t⁻) / 2
    span: f64,
}

impl Motion<'_> {
    /// Position of `node` after the step if its velocity does not change.
    pub fn next_position(&self, node: usize) -> [f64; 2] {
        [0, 1].map(|axis| self.positions[axis][node] + self.step * self.velocity[axis][node])
    }

    /// Prescribes the velocity of `node` along `axis`; zero fixes the node.
    pub fn set_velocity(&mut self, node: usize, axis: usize, velocity: f64) {
        self.push(node, axis, velocity, velocity);
    }

    /// Where a point of the edge between two nodes is after the step; `share` is its position along the edge, 0 at the
    /// first node and 1 at the second.
    pub fn next_point(&self, [first, second]: [usize; 2], share: f64) -> [f64; 2] {
        let [start, end] = [first, second].map(|node| self.next_position(node));
        [0, 1].map(|axis| start[axis] + share * (end[axis] - start[axis]))
    }

    /// Displaces a point of the edge between two nodes by `distance` in this step; a tool with the velocity `tool` pushes
    /// it. The impulse acts at the point, so the nodes share it as the point divides the edge.
    pub fn push_point(&mut self, nodes: [usize; 2], share: f64, distance: [f64; 2], tool: [f64; 2]) {
        let shares = [1.0 - share, share];
        let mobility: f64 = (0..2).map(|end| shares[end] * shares[end] / self.mass[nodes[end]]).sum();
        for (node, share) in nodes.into_iter().zip(shares).filter(|&(_, share)| share > 0.0) {
            for axis in 0..2 {
                let impulse = share * distance[axis] / (self.step * mobility);
                self.push(node, axis, self.velocity[axis][node] + impulse / self.mass[node], tool[axis]);
            }
        }
    }

    /// Sets the velocity of `node` to `after`. A node can be pushed several times in a step. All impulses of a step work
    /// with the mean of the velocities before and after the step; the rest of the work of the tool is lost in the impact.
    fn push(&mut self, node: usize, axis: usize, after: f64, tool: f64) {
        let (mass, now) = (self.mass[node], self.velocity[axis][node]);
        let impulse = mass * (after - now);
        self.velocity[axis][node] = after;
        self.energy.work += impulse * tool;
        // The sum over the pushes is m (v⁺ − v*) (v⁻ + v⁺) / 2, where v* = v⁻ − span f / m is the velocity without pushes.
        self.energy.impact += impulse * (tool - 0.5 * (now + after + self.span * self.force[axis][node] / mass));
    }
}
