//! Forging: a rigid frictionless die comes down on a block of metal (Li et al. 2023, the Geo-FNO benchmark).
//!
//! ρ u_tt = ∇·σ in plane stress, elastic and perfectly plastic, with large deformations. The block of 50 × 15 mm slides
//! on its bottom; its sides are free. In: the profile of the die. Out: x, y, u_x, u_y of every node at `frames` times.
//! The first snapshot is undeformed, and the die moves down by 0.3 mm from one snapshot to the next. The values are
//! stored as in the public file: node [i, j] starts at (0.35 − 50 i / (rows − 1), 14.9 − 15 j / (columns − 1)), while
//! the profile of the die starts at x = −49.65 and runs in the opposite direction.

use rand::Rng;

use super::{FieldKind, Problem, Quantity, Refined, Role, Row, Sample, SpatialOrder};
use crate::Error;
use crate::contact::Contact;
use crate::die::{self, Die};
use crate::explicit::{Block, Motion};
use crate::hermite::Profile;
use crate::parameters::{Kind, Parameter, Removed, Settings, Value};
use crate::plane_stress::Metal;
use crate::random_field::stream;
use crate::symmetry::{Component, Symmetry};
use lamo_geometry::Grid;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "plasticity",
    equation: "rho u_tt = div sigma, von Mises plasticity in plane stress, a block under a rigid die",
    version: 3,
    parameters: PARAMETERS,
    removed: &[HOURGLASS],
    small: &["resolution=2", "frames=4"],
    build: |settings| Ok(Box::new(Plasticity::new(settings)?)),
    symmetries,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "resolution",
        kind: Kind::Whole { default: 10, least: 1, most: 40 },
        unit: "1",
        meaning: "elements per 5 mm; the mesh has 10 resolution + 1 by 3 resolution + 1 nodes",
    },
    Parameter {
        name: "frames",
        kind: Kind::Whole { default: 20, least: 1, most: 20 },
        unit: "1",
        meaning: "number of snapshots; the first one is undeformed",
    },
    Parameter {
        name: "yield_stress",
        kind: Kind::Within { default: 70.0, least: 1.0, most: 2000.0 },
        unit: "MPa",
        meaning: "von Mises stress at which the block yields, in MPa",
    },
    Parameter {
        name: "speed",
        kind: Kind::Within { default: 3.0, least: 0.1, most: 100.0 },
        unit: "m/s",
        meaning: "speed of the die in m/s; it moves 0.3 mm between two snapshots",
    },
    Parameter {
        name: "amplitude",
        kind: Kind::Within { default: 7.5, least: 0.0, most: 30.0 },
        unit: "mm",
        meaning: "height of both ends of the die above its lowest knot, in mm",
    },
    Parameter {
        name: "step",
        kind: Kind::Within { default: 0.9, least: 0.05, most: 0.95 },
        unit: "1",
        meaning: "length of the time steps relative to the limit of stability; near the die they are half as long",
    },
    Parameter {
        name: "mass_scaling",
        kind: Kind::Within { default: 1.0, least: 1.0, most: 1000.0 },
        unit: "1",
        meaning: "factor on the density; its square root divides the number of time steps, but it adds inertia",
    },
];

const HOURGLASS: Removed = Removed {
    name: "hourglass",
    default: Value::Real(0.05),
    reason: "the elements are fully integrated and have no hourglass modes",
};

/// Lower left corner of the block, in mm.
const CORNER: [f64; 2] = [-49.65, -0.1];
/// Length and height of the block, in mm.
const SIZE: [f64; 2] = [50.0, 15.0];
/// Height of the lowest point of the die at t = 0, in mm: 0.1 above the block.
const LOWEST: f64 = 15.0;
/// Distance that the die moves between two snapshots, in mm.
const DROP: f64 = 0.3;
/// Rows of nodes from the top for which the die counts as near.
const NEAR_DIE: usize = 4;
/// E of steel, in MPa.
const YOUNG: f64 = 200e3;
/// ν of steel.
const POISSON: f64 = 0.3;
/// ρ of steel, in tonne / mm³.
const DENSITY: f64 = 7.85e-9;
/// Largest ρ v² relative to the yield stress; at higher speeds inertia shapes the block more than the die does.
const LARGEST_INERTIA: f64 = 0.1;
/// Largest missing energy relative to the work of the die.
const LARGEST_MISSING: f64 = 0.01;
/// Dies drawn for one sample before the sample is an error.
const MOST_DRAWS: usize = 8;

/// The mirror at the middle of the block. Mirrored dies are dies of the same kind, but not as likely: the slopes of the
/// prior of [`die`] prefer a side.
fn symmetries(settings: &Settings) -> (usize, Vec<Symmetry>) {
    let [rows, columns] = [10, 3].map(|count| count * settings.whole("resolution") + 1);
    let ends = 2.0 * CORNER[0] + SIZE[0]; // x of both ends together
    let deformation =
        vec![Component::mirrored(0, ends), Component::kept(1), Component::mirrored(2, 0.0), Component::kept(3)];
    let fields = vec![("deformation", deformation)];
    (rows * columns, vec![Symmetry::of_plane([rows, columns], |row, column| [rows - 1 - row, column], fields)])
}

/// The problem with its parameters fixed.
#[derive(Debug)]
pub struct Plasticity {
    settings: Settings,
    /// Columns and rows of elements.
    counts: [usize; 2],
    metal: Metal,
}

impl Plasticity {
    /// Refuses speeds at which inertia dominates.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let real = |key| settings.real(key);
        let density = DENSITY * real("mass_scaling");
        let metal = Metal { young: YOUNG, poisson: POISSON, yield_stress: real("yield_stress"), density };
        let fastest = 1e-3 * (LARGEST_INERTIA * metal.yield_stress / density).sqrt();
        if real("speed") > fastest {
            let reason = "at which mass_scaling * density * speed^2 is a tenth of the yield stress";
            return Err(settings.refuse("speed", format!("at most {fastest:.3}, {reason}"), real("speed")));
        }
        let counts = [10, 3].map(|count| count * settings.whole("resolution"));
        Ok(Self { settings, counts, metal })
    }

    /// A die that starts 0.1 mm above the block.
    fn draw(&self, random: &mut impl Rng) -> Profile {
        let amplitude = self.settings.real("amplitude");
        let profile = die::profile(CORNER[0], SIZE[0], amplitude, die::draw(amplitude, random));
        let lowest = profile.lowest();
        profile.raised(LOWEST - lowest)
    }

    /// A block at rest under a die with this profile.
    pub fn forging(&self, profile: Profile) -> Forging {
        let mut block = Block::new(self.metal, self.counts, CORNER, SIZE);
        block.fraction = self.settings.real("step");
        let [width, height] = block.nodes();
        block.near_tools = width * height.saturating_sub(NEAR_DIE)..width * height;
        Forging { block, die: Die { profile, speed: 1e3 * self.settings.real("speed") } }
    }

    /// `[rows]` heights of the die, and `[snapshots, rows, columns, 4]` deformation of the block.
    fn solve(&self, profile: Profile) -> Result<[Vec<f64>; 2], Error> {
        let mut forging = self.forging(profile);
        let start = forging.block.positions.clone();
        let [width, height] = forging.block.nodes();
        let stored = || (0..width).rev().flat_map(|column| (0..height).rev().map(move |row| row * width + column));
        let die = (0..width).map(|node| forging.die.profile.at(start[0][node]).0).collect();
        let mut snapshots = Vec::new();
        for snapshot in 0..self.settings.whole("frames") {
            forging.press(DROP * snapshot as f64)?;
            let [x, y] = &forging.block.positions;
            snapshots.extend(
                stored().flat_map(|node| [x[node], y[node], x[node] - start[0][node], y[node] - start[1][node]]),
            );
        }
        forging.check_energy()?;
        Ok([die, snapshots])
    }
}

impl Problem for Plasticity {
    fn name(&self) -> &'static str {
        ROW.name
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn grid(&self) -> Grid {
        Grid::Plane { rows: self.counts[0] + 1, columns: self.counts[1] + 1 }
    }

    fn fields(&self) -> Vec<FieldKind> {
        let plane = self.grid().shape();
        let profile = vec![plane[0]];
        let time_series = [vec![self.settings.whole("frames")], plane, vec![4]].concat();
        vec![
            FieldKind { name: "die", unit: "mm", role: Role::Input, shape: profile },
            FieldKind { name: "deformation", unit: "mm", role: Role::Output, shape: time_series },
        ]
    }

    /// Order for smooth solutions; plastic flow has kinks.
    fn spatial_order(&self) -> SpatialOrder {
        SpatialOrder::Algebraic(2.0)
    }

    /// When a die folds or crushes an element, the next die is drawn from the same random stream. Every other error is
    /// an error of the sample.
    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error> {
        let mut random = stream(seed, index);
        let mut draws = 1;
        let mut found = self.solve(self.draw(&mut random));
        while draws < MOST_DRAWS && found.as_ref().is_err_and(Error::is_distorted) {
            found = self.solve(self.draw(&mut random));
            draws += 1;
        }
        Ok(Sample { draws, ..Sample::new(self.fields(), found?) })
    }

    /// The positions hide the error of the displacements, which are far smaller.
    fn quantities(&self) -> Vec<Quantity> {
        let quantity = |name, channels| Quantity { name, field: "deformation", channels };
        vec![quantity("deformation", None), quantity("displacement", Some(2..4))]
    }

    fn refined(&self) -> Result<Option<Refined>, Error> {
        let (stored, kinds) = (Self::new(self.settings.clone())?, self.fields());
        let fine = Self::new(self.settings.with("resolution", 2 * self.settings.whole("resolution"))?)?;
        Ok(Some(Refined::new("each element divided into four", move |seed, index| {
            let draws = stored.sample(seed, index)?.draws;
            let mut random = stream(seed, index);
            (1..draws).for_each(|_| drop(stored.draw(&mut random)));
            let profile = stored.draw(&mut random); // the die of the stored sample
            let sample = Sample { draws, ..Sample::new(fine.fields(), fine.solve(profile)?) };
            Ok(sample.at_every_second_node(&kinds))
        })))
    }
}

/// A block and the die that comes down on it.
#[derive(Clone, Debug)]
pub struct Forging {
    /// The block, in mm, s, tonne, MPa.
    pub block: Block,
    /// The die, in mm and s.
    pub die: Die,
}

impl Forging {
    /// Moves the die down until it is `drop` mm below its start; the bottom of the block slides.
    pub fn press(&mut self, drop: f64) -> Result<(), Error> {
        let Self { block, die } = self;
        let [width, height] = block.nodes();
        let contact = Contact::new(die, width * (height - 1), width * height - 1);
        block.advance(drop / die.speed, &|motion: &mut Motion<'_>| {
            (0..width).for_each(|node| motion.set_velocity(node, 1, 0.0));
            contact.push_out(motion);
        })
    }

    /// Refuses a block whose energy does not match the work of the die.
    fn check_energy(&self) -> Result<(), Error> {
        let (block, energy) = (&self.block, self.block.energy);
        let missing = energy.missing(block.kinetic()).abs();
        if missing <= LARGEST_MISSING * energy.work {
            Ok(())
        } else {
            Err(block.unphysical("at most 0.01 of the work of the die to be missing", missing / energy.work))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problems::Field;

    /// The die turned around: heights in reverse order, slopes in reverse order and negated.
    fn turned(profile: &Profile) -> Profile {
        let spacing = SIZE[0] / (die::KNOTS - 1) as f64;
        let inside = |knot: usize| match knot {
            0 => 1e-9,
            knot if knot == die::KNOTS - 1 => SIZE[0] - 1e-9,
            knot => knot as f64 * spacing,
        };
        let knots = (0..die::KNOTS).rev().map(|knot| profile.at(CORNER[0] + inside(knot)));
        let (heights, slopes): (Vec<f64>, Vec<f64>) = knots.map(|(height, slope)| (height, -slope)).unzip();
        Profile::new(CORNER[0], spacing, heights, &slopes)
    }

    #[test]
    fn the_block_under_a_mirrored_die_is_the_mirrored_block() {
        let settings = Settings::new(ROW.name, PARAMETERS, &["resolution=3", "frames=8"]).unwrap();
        let problem = Plasticity::new(settings.clone()).unwrap();
        let (points, generators) = symmetries(&settings);
        assert_eq!(crate::symmetry::group(points, &generators).len(), 2);
        let profile = problem.draw(&mut stream(6, 1));
        let solve = |profile| Sample::new(problem.fields(), problem.solve(profile).unwrap());
        let wanted = generators[0].apply(problem.grid(), &solve(profile.clone()));
        let found = solve(turned(&profile));
        for (found, wanted) in found.fields.iter().zip(&wanted.fields) {
            let error = found.relative_error(wanted);
            assert!(error < 1e-6, "{}: {error:e}", found.name);
        }
        let displacement = |sample: &Sample| -> Field {
            let values = sample.fields[1].values.chunks_exact(4).flat_map(|node| [node[2], node[3]]).collect();
            Field { name: "displacement", shape: Vec::new(), values }
        };
        let error = displacement(&found).relative_error(&displacement(&wanted));
        assert!(error < 1e-4, "displacement: {error:e}");
    }
}
