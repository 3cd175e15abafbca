//! Explicit dynamics of a rectangular block: central differences with a lumped mass, in steps of several lengths.
//!
//! v⁺ = v⁻ − M⁻¹ f(x) Δ, x⁺ = x + v⁺ (t⁺ − t). Each element gives its nodes the impulse of its force f over its own step
//! Δ: stiff elements often, the others seldom, and all at the ends of a cycle (asynchronous variational integrator; Lew,
//! Marsden, Ortiz and West 2003). Momentum is preserved to rounding. The limits of the steps change as the elements are
//! compressed, so cycles and levels follow the deformation. Supports and tools correct v⁺ before x⁺ is computed.

use std::ops::Range;

use crate::Error;
use crate::plane_stress::Metal;
use crate::quadrilateral::{Elements, Run, StepSummary};
use crate::rates::Rates;
use crate::stable_step::stable_steps;
use lamo_geometry::Grid;

/// Length of the steps relative to the limit of stability, unless it is set.
const FRACTION: f64 = 0.9;
/// The same near tools, relative to that. Steps at the limit would make contact forces inaccurate.
const NEAR_TOOLS: f64 = 0.5;
/// Cycles after which the steps are chosen again. An element is compressed by less than 3 % in so many cycles.
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
    /// Length of the steps relative to the limit of stability, which holds for the positions at which it was computed.
    pub fraction: f64,
    /// Nodes near tools, around which the steps are half as long.
    pub near_tools: Range<usize>,
    /// Number of steps so far; of the shortest ones where they differ.
    pub steps: usize,
    /// Work and energies since t = 0.
    pub energy: Energy,
    elements: Elements,
    mass: Vec<f64>,
    /// 1 / mass
    mobility: Vec<f64>,
    rates: Rates,
    /// For each level, the elements that have it.
    levels: Vec<Level>,
    /// Impulse of the elements on the nodes in this step; between two cycles, the half that belongs to the last one.
    impulse: Nodal,
    cycles: usize,
    shortest_step: f64,
}

/// Two components for each node.
type Nodal = [Vec<f64>; 2];

/// Elements that are advanced together.
#[derive(Clone, Debug)]
struct Level {
    runs: Vec<Run>,
    /// The rows of nodes around them.
    nodes: Range<usize>,
    /// Positions of the nodes when the elements were last advanced.
    before: Nodal,
    /// Forces of the elements on the nodes at that time.
    force: Nodal,
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
        let elements = Elements::new(metal, counts);
        let limits = stable_steps(&elements, &positions, &mass);
        let rates = Rates::new(counts, &limits);
        let levels = levels(&rates, &positions);
        Self {
            positions,
            velocity: zeros(),
            time: 0.0,
            fraction: FRACTION,
            near_tools: 0..0,
            steps: 0,
            energy: Energy::default(),
            elements,
            mobility: mass.iter().map(|mass| 1.0 / mass).collect(),
            mass,
            shortest_step: SHORTEST * least(&limits),
            rates,
            levels,
            impulse: zeros(),
            cycles: 0,
        }
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
            let cycles = (remaining / (self.fraction * self.rates.cycle) - 1e-9).ceil().max(1.0);
            self.cycle(remaining / cycles, constrain)?;
            if cycles == 1.0 {
                self.time = until; // removes the round-off of the sum of steps
            }
        }
        let kinetic = self.kinetic();
        if kinetic.is_finite() { Ok(()) } else { Err(self.unphysical("a finite kinetic energy", kinetic)) }
    }

    /// Advances by `length`, in as many steps as the stiffest elements need.
    fn cycle(&mut self, length: f64, constrain: &impl Fn(&mut Motion<'_>)) -> Result<(), Error> {
        let highest = self.rates.highest();
        let (count, step_of) = (1 << highest, |level: usize| length / f64::from(1 << level));
        let step = step_of(highest as usize);
        // the other half of the impulses at the end of the last cycle
        for (index, level) in self.levels.iter().enumerate() {
            level.add_force(&mut self.impulse, 0.5 * step_of(index));
        }
        self.step(step, 0..self.mass.len(), constrain);
        for number in 1..count {
            let due = |index: &usize| number % (count >> index) == 0;
            let mut nodes = self.mass.len()..0; // around the elements that are advanced
            for index in (0..self.levels.len()).filter(due) {
                self.advance_level(index)?;
                self.levels[index].add_force(&mut self.impulse, step_of(index));
                let level = &self.levels[index].nodes;
                nodes = nodes.start.min(level.start)..nodes.end.max(level.end);
            }
            self.step(step, nodes, constrain);
        }
        self.cycles += 1;
        self.settle(length)
    }

    /// Moves the nodes, after the impulse of the elements has changed the velocity of `pushed`; then there is no impulse.
    fn step(&mut self, step: f64, pushed: Range<usize>, constrain: &impl Fn(&mut Motion<'_>)) {
        let mobility = &self.mobility[pushed.clone()];
        for (velocity, impulse) in self.velocity.iter_mut().zip(&self.impulse) {
            let nodes = velocity[pushed.clone()].iter_mut().zip(impulse[pushed.clone()].iter().zip(mobility));
            nodes.for_each(|(velocity, (impulse, mobility))| *velocity -= impulse * mobility);
        }
        self.time += step;
        self.steps += 1;
        constrain(&mut Motion {
            positions: &self.positions,
            velocity: &mut self.velocity,
            impulse: &self.impulse,
            mass: &self.mass,
            energy: &mut self.energy,
            time: self.time,
            step,
        });
        for (positions, velocity) in self.positions.iter_mut().zip(&self.velocity) {
            positions.iter_mut().zip(velocity).for_each(|(x, v)| *x += step * v);
        }
        self.impulse.iter_mut().for_each(|axis| axis[pushed.clone()].fill(0.0));
    }

    /// Advances all elements to the end of a cycle, keeps half of their impulse, and chooses new steps from time to time.
    fn settle(&mut self, length: f64) -> Result<(), Error> {
        let half = |index: usize| 0.5 * length / f64::from(1 << index);
        if !self.cycles.is_multiple_of(REFRESH) {
            for index in 0..self.levels.len() {
                self.advance_level(index)?;
                self.levels[index].add_force(&mut self.impulse, half(index));
            }
            return Ok(());
        }
        let mut limits = stable_steps(&self.elements, &self.positions, &self.mass);
        let shortest = least(&limits);
        limits[self.near_tools.clone()].iter_mut().for_each(|limit| *limit *= NEAR_TOOLS);
        let rates = Rates::new(self.elements.counts, &limits);
        let mut next = levels(&rates, &self.positions);
        for index in 0..self.levels.len() {
            let before = self.levels[index].before.clone();
            for (new_index, new_level) in next.iter_mut().enumerate() {
                let runs = self.rates.runs(index as u32, &rates, new_index as u32);
                // the part of this level that goes over to the new one
                self.levels[index] = Level { before: before.clone(), ..Level::new(runs, &self.positions) };
                self.advance_level(index)?;
                self.levels[index].add_force(&mut self.impulse, half(index));
                self.levels[index].add_force(&mut new_level.force, 1.0);
            }
        }
        (self.rates, self.levels) = (rates, next);
        if shortest < self.shortest_step {
            return Err(self.distorted("a stable step", self.shortest_step, shortest));
        }
        Ok(())
    }

    /// Advances the elements of a level to the positions of the nodes, counts their work, and refuses folded ones.
    fn advance_level(&mut self, index: usize) -> Result<(), Error> {
        let summary = self.levels[index].advance(&mut self.elements, &self.positions);
        self.energy.internal += summary.internal;
        let found = summary.least_area;
        if found <= 0.0 { Err(self.distorted("an area at each Gauss point", 0.0, found)) } else { Ok(()) }
    }

    fn distorted(&self, expected: &'static str, least: f64, found: f64) -> Error {
        Error::Distorted { system: "block", time: self.time, expected, least, found }
    }

    pub(crate) fn unphysical(&self, expected: &'static str, found: f64) -> Error {
        Error::Unphysical { system: "block", time: self.time, expected, found }
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The elements of each level of `rates`, advanced to `positions`, with no force yet.
fn levels(rates: &Rates, positions: &Nodal) -> Vec<Level> {
    (0..=rates.highest()).map(|level| Level::new(rates.runs(level, rates, level), positions)).collect()
}

impl Level {
    /// Elements at `positions`, with no force yet. Runs are in the order of their rows.
    fn new(runs: Vec<Run>, positions: &Nodal) -> Self {
        let count = positions[0].len();
        let first = runs.first().map_or(0, |run| run.nodes.start);
        let last = runs.last().map_or(0, |run| run.nodes.end);
        Self { runs, nodes: first..last, before: positions.clone(), force: [vec![0.0; count], vec![0.0; count]] }
    }

    /// Advances the elements to `positions` and computes their forces there.
    fn advance(&mut self, elements: &mut Elements, positions: &Nodal) -> StepSummary {
        let nodes = self.nodes.clone();
        self.force.iter_mut().for_each(|axis| axis[nodes.clone()].fill(0.0));
        let summary = elements.advance(&self.runs, positions, &self.before, &mut self.force);
        let both = self.before.iter_mut().zip(positions);
        both.for_each(|(before, now)| before[nodes.clone()].copy_from_slice(&now[nodes.clone()]));
        summary
    }

    /// sum += factor · force
    fn add_force(&self, sum: &mut Nodal, factor: f64) {
        for (sum, force) in sum.iter_mut().zip(&self.force) {
            let forces = &force[self.nodes.clone()];
            sum[self.nodes.clone()].iter_mut().zip(forces).for_each(|(sum, force)| *sum += factor * force);
        }
    }
}

/// The nodes within a step, after the new velocities and before the new positions.
#[derive(Debug)]
pub struct Motion<'a> {
    positions: &'a [Vec<f64>; 2],
    velocity: &'a mut [Vec<f64>; 2],
    /// Impulse of the elements at the start of the step, already in the velocity
    impulse: &'a Nodal,
    mass: &'a [f64],
    energy: &'a mut Energy,
    /// t⁺
    pub time: f64,
    step: f64,
}

impl Motion<'_> {
    /// Position of `node` after the step if its velocity does not change.
    pub fn next_position(&self, node: usize) -> [f64; 2] {
        let [x, y] = self.positions;
        [x[node] + self.step * self.velocity[0][node], y[node] + self.step * self.velocity[1][node]]
    }

    /// Prescribes the velocity of `node` along `axis`; zero fixes the node.
    pub fn set_velocity(&mut self, node: usize, axis: usize, velocity: f64) {
        self.push(node, axis, velocity, velocity);
    }

    /// Where a point of the edge between two nodes is after the step; `share` is its position along the edge, 0 at the
    /// first node and 1 at the second.
    pub fn next_point(&self, [first, second]: [usize; 2], share: f64) -> [f64; 2] {
        let (start, end) = (self.next_position(first), self.next_position(second));
        [start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])]
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
        // The sum over the pushes is m (v⁺ − v*) (v⁻ + v⁺) / 2, where v* = v⁻ − impulse / m is the velocity without pushes.
        self.energy.impact += impulse * (tool - 0.5 * (now + after + self.impulse[axis][node] / mass));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elastic: the energy must be preserved.
    const GLASS: Metal = Metal { young: 70e3, poisson: 0.2, yield_stress: 1e9, density: 2.5e-9 };

    /// A free block in motion, one column of which has a fiftieth of the width of the others.
    fn squeezed() -> Block {
        let mut block = Block::new(GLASS, [60, 20], [0.0, 0.0], [60.0, 20.0]);
        block.positions[0].iter_mut().filter(|x| **x > 30.5).for_each(|x| *x -= 0.98);
        let [x, y] = &block.positions;
        let wave = |phase: f64| x.iter().zip(y).map(|(x, y)| 50.0 * (0.4 * x + 0.3 * y + phase).sin()).collect();
        block.velocity = [wave(0.0), wave(1.0)];
        let limits = stable_steps(&block.elements, &block.positions, &block.mass);
        block.rates = Rates::new(block.elements.counts, &limits);
        block.levels = levels(&block.rates, &block.positions);
        block
    }

    fn momentum(block: &Block) -> [f64; 2] {
        let sum = |velocity: &Vec<f64>| velocity.iter().zip(&block.mass).map(|(v, m)| v * m).sum();
        [sum(&block.velocity[0]), sum(&block.velocity[1])]
    }

    #[test]
    fn steps_of_several_lengths_preserve_momentum_and_energy() {
        let mut block = squeezed();
        assert!(block.rates.highest() >= 2, "levels up to {}", block.rates.highest());
        let (start, kinetic) = (momentum(&block), block.kinetic());
        block.advance(400.0 * block.rates.shortest(), &|_: &mut Motion<'_>| {}).unwrap();
        let moved = block.mass.iter().sum::<f64>() * 50.0;
        for (now, start) in momentum(&block).into_iter().zip(start) {
            assert!((now - start).abs() < 1e-12 * moved, "momentum from {start:e} to {now:e}");
        }
        let lost = 1.0 - (block.kinetic() + block.energy.internal) / kinetic;
        assert!(block.energy.internal > 0.2 * kinetic, "the motion must have become stress");
        assert!(lost.abs() < 0.02, "{lost:.4} of the energy is lost"); // the kinetic energy is half a step behind
    }

    /// The positions after some time with steps of several lengths, and the number of steps.
    fn with_several(fraction: f64, end: f64) -> ([Vec<f64>; 2], usize) {
        let mut block = squeezed();
        block.fraction = fraction;
        block.advance(end, &|_: &mut Motion<'_>| {}).unwrap();
        (block.positions, block.steps)
    }

    /// The same with steps of a fifteenth of the limit for all elements.
    fn with_short(end: f64) -> ([Vec<f64>; 2], usize) {
        let mut block = squeezed();
        let limit = vec![block.rates.shortest() / 16.0; block.mass.len()];
        block.rates = Rates::new(block.elements.counts, &limit);
        block.levels = levels(&block.rates, &block.positions);
        while block.time < end {
            block.cycles = 1; // no other steps are chosen
            let until = (block.time + 8.0 * block.fraction * block.rates.cycle).min(end);
            block.advance(until, &|_: &mut Motion<'_>| {}).unwrap();
        }
        (block.positions, block.steps)
    }

    #[test]
    fn steps_of_several_lengths_move_the_block_as_short_steps_do() {
        let start = squeezed();
        let end = 200.0 * start.rates.shortest();
        let distance = |one: &Nodal, other: &Nodal| {
            let pairs = one.iter().flatten().zip(other.iter().flatten());
            pairs.map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt()
        };
        let (exact, most) = with_short(end);
        let errors = [0.5, 0.25].map(|fraction| {
            let (positions, steps) = with_several(fraction, end);
            assert!(2 * steps < most, "{steps} against {most} steps");
            distance(&positions, &exact) / distance(&start.positions, &exact)
        });
        assert!(errors[0] < 0.03 && errors[1] < 0.4 * errors[0], "{errors:.4?} apart: order 2 gives a quarter");
    }
}
