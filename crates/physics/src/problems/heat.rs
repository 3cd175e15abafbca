//! Heat in a body of random shape: u_t = ∇·(k ∇u) + q in three dimensions, with exchange h u through its border.
//!
//! The body is a bent, twisted and tapered block with a waist ([`crate::body`]). ln k and the temperature at t = 0 are
//! smooth random fields; q is a sum of one to three hot spots. In: k, q and the initial temperature at the nodes of
//! hexahedra of 27 nodes. Out: the temperature at `frames` later times. The number of cells is random, so samples have
//! different numbers of points.

use std::f64::consts::TAU;

use rand::Rng;

use super::beam::{doubled, drawn_lattice};
use super::{FieldKind, Problem, Refined, Role, Row, Sample, SpatialOrder};
use crate::Error;
use crate::body::{Body, Ranges};
use crate::conduction::Conduction;
use crate::hexahedron::{Lattice, dot};
use crate::parameters::{Kind, Parameter, Settings};
use crate::random_field::{normal_pair, stream, uniform};
use lamo_geometry::Grid;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "heat",
    equation: "u_t = div(k grad u) + q in a body of random shape, in three dimensions, with exchange h u at its border",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["along=3", "across=2", "frames=2", "steps=2"],
    build: |settings| Ok(Box::new(Heat::new(settings)?)),
    symmetries: |settings| (Heat::largest(settings).nodes(), Vec::new()),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "along",
        kind: Kind::Whole { default: 8, least: 1, most: 256 },
        unit: "1",
        meaning: "cells along the body, at most; a sample has at least half of them",
    },
    Parameter {
        name: "across",
        kind: Kind::Whole { default: 4, least: 1, most: 64 },
        unit: "1",
        meaning: "cells across the body in both directions, at most; a sample has at least half of them",
    },
    Parameter {
        name: "varied",
        kind: Kind::Switch { default: true },
        unit: "1",
        meaning: "draw the numbers of cells of each sample; false: all samples have the most, and equally many points",
    },
    Parameter {
        name: "frames",
        kind: Kind::Whole { default: 5, least: 1, most: 26 },
        unit: "1",
        meaning: "number of snapshots after the initial one",
    },
    Parameter {
        name: "interval",
        kind: Kind::Positive { default: 0.02 },
        unit: "1",
        meaning: "time between two snapshots",
    },
    Parameter {
        name: "steps",
        kind: Kind::Whole { default: 8, least: 1, most: 100_000 },
        unit: "1",
        meaning: "time steps from one snapshot to the next",
    },
    Parameter {
        name: "contrast",
        kind: Kind::NonNegative { default: 0.7 },
        unit: "1",
        meaning: "standard deviation of the logarithm of the conductivity",
    },
    Parameter {
        name: "correlation",
        kind: Kind::Positive { default: 0.3 },
        unit: "1",
        meaning: "correlation length of conductivity and initial temperature; the body has the length 1",
    },
    Parameter {
        name: "initial",
        kind: Kind::NonNegative { default: 0.5 },
        unit: "1",
        meaning: "standard deviation of the initial temperature",
    },
    Parameter {
        name: "source",
        kind: Kind::NonNegative { default: 40.0 },
        unit: "1",
        meaning: "greatest heat per volume and time in the middle of a hot spot",
    },
    Parameter {
        name: "exchange",
        kind: Kind::NonNegative { default: 1.0 },
        unit: "1",
        meaning: "heat per area and time through the border, per degree; 0 insulates",
    },
    Parameter {
        name: "bend",
        kind: Kind::Within { default: 0.8, least: 0.0, most: 1.4 },
        unit: "1",
        meaning: "greatest angle between the centre line at both ends, in radians",
    },
    Parameter {
        name: "twist",
        kind: Kind::Within { default: 1.0, least: 0.0, most: 6.0 },
        unit: "1",
        meaning: "greatest angle by which the end is turned about the centre line, in radians",
    },
];

/// Waves of a random field.
const WAVES: usize = 24;
/// Least and greatest half width and half height.
const HALF: [f64; 2] = [0.2, 0.35];

/// A smooth random field with unit variance and the covariance exp(−|x − y|² / 2ℓ²): a sum of cosines whose wave vectors
/// are normal with deviation 1/ℓ (Rahimi and Recht 2007).
#[derive(Clone, Debug)]
pub struct Smooth([([f64; 3], f64); WAVES]);

impl Smooth {
    /// Draws the waves of a field of this correlation length.
    pub fn draw(correlation: f64, random: &mut impl Rng) -> Self {
        Self(std::array::from_fn(|_| {
            let ([x, y], [z, _]) = (normal_pair(random), normal_pair(random));
            ([x, y, z].map(|k| k / correlation), TAU * uniform(random))
        }))
    }

    /// The value at a position.
    pub fn at(&self, position: [f64; 3]) -> f64 {
        let sum: f64 = self.0.iter().map(|&(wave, phase)| (dot(wave, position) + phase).cos()).sum();
        (2.0 / WAVES as f64).sqrt() * sum
    }
}

/// A hot spot: its centre, its width and its strength.
type Spot = ([f64; 3], f64, f64);

/// What is random in a sample.
#[derive(Clone, Debug)]
struct Draw {
    lattice: Lattice,
    body: Body,
    conductivity: Smooth,
    initial: Smooth,
    spots: Vec<Spot>,
}

/// The problem with its parameters fixed.
#[derive(Debug)]
pub struct Heat {
    settings: Settings,
}

impl Heat {
    #[expect(clippy::unnecessary_wraps, reason = "the registry builds problems that may refuse")]
    fn new(settings: Settings) -> Result<Self, Error> {
        Ok(Self { settings })
    }

    fn largest(settings: &Settings) -> Lattice {
        let (along, across) = (settings.whole("along"), settings.whole("across"));
        Lattice { cells: [along, across, across] }
    }

    fn kinds(&self, points: usize) -> Vec<FieldKind> {
        let frames = self.settings.whole("frames");
        let given = |name| FieldKind { name, unit: "1", role: Role::Input, shape: vec![points] };
        vec![
            FieldKind { name: "positions", unit: "1", role: Role::Position, shape: vec![points, 3] },
            given("conductivity"),
            given("source"),
            given("initial_temperature"),
            FieldKind { name: "temperature", unit: "1", role: Role::Output, shape: vec![frames, points] },
        ]
    }

    fn draw(&self, seed: u64, index: u64) -> Draw {
        let mut random = stream(seed, index);
        let lattice = drawn_lattice(Self::largest(&self.settings), self.settings.switch("varied"), &mut random);
        let real = |key: &str| self.settings.real(key);
        let ranges =
            Ranges { length: 1.0, half: HALF, taper: 0.4, waist: 0.3, bend: real("bend"), twist: real("twist") };
        let body = Body::draw(&ranges, &mut random);
        let [conductivity, initial] = [(); 2].map(|()| Smooth::draw(real("correlation"), &mut random));
        let count = 1 + (3.0 * uniform(&mut random)) as usize;
        let spots = (0..count.min(3)).map(|_| {
            let centre = [(); 3].map(|()| uniform(&mut random));
            let (width, strength) = (0.1 + 0.15 * uniform(&mut random), 0.25 + 0.75 * uniform(&mut random));
            (body.position(centre), width, real("source") * strength)
        });
        let spots = spots.collect();
        Draw { lattice, body, conductivity, initial, spots }
    }

    /// The nodes `kept` of the sample that is solved on `lattice` with `steps` steps for each snapshot.
    fn solved(&self, draw: &Draw, lattice: Lattice, kept: &[usize], steps: usize) -> Result<Sample, Error> {
        let real = |key: &str| self.settings.real(key);
        let positions = lattice.mapped(|place| draw.body.position(place));
        let conductivity = |position: [f64; 3]| (real("contrast") * draw.conductivity.at(position)).exp();
        let source = |position: [f64; 3]| draw.spots.iter().map(|spot| strength(spot, position)).sum::<f64>();
        let initial: Vec<f64> = positions.iter().map(|&at| real("initial") * draw.initial.at(at)).collect();
        let stored = |value: &dyn Fn([f64; 3]) -> f64| kept.iter().map(|&node| value(positions[node])).collect();
        let (given, supplied): (Vec<f64>, Vec<f64>) = (stored(&conductivity), stored(&source));
        let places: Vec<f64> = kept.iter().flat_map(|&node| positions[node]).collect();
        let conduction = Conduction::new(lattice, positions.clone(), conductivity, real("exchange"))?;
        let load = conduction.load(source, None)?;
        let frames = self.settings.whole("frames");
        let start: Vec<f64> = kept.iter().map(|&node| initial[node]).collect();
        let series = conduction.advance(initial, [0.0, real("interval")], [frames, steps], |_| Ok(load.clone()))?;
        let series = series.iter().flat_map(|state| kept.iter().map(|&node| state[node])).collect();
        Ok(Sample::new(self.kinds(kept.len()), [places, given, supplied, start, series]))
    }
}

/// Heat of a hot spot per volume and time.
fn strength((centre, width, strength): &Spot, position: [f64; 3]) -> f64 {
    let away: [f64; 3] = std::array::from_fn(|axis| position[axis] - centre[axis]);
    strength * (-0.5 * dot(away, away) / (width * width)).exp()
}

impl Problem for Heat {
    fn name(&self) -> &'static str {
        ROW.name
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn grid(&self) -> Grid {
        Grid::Cloud { points: Self::largest(&self.settings).nodes() }
    }

    fn fields(&self) -> Vec<FieldKind> {
        self.kinds(self.grid().points())
    }

    fn points_of(&self, seed: u64, index: u64) -> Option<usize> {
        let varied = self.settings.switch("varied");
        varied.then(|| drawn_lattice(Self::largest(&self.settings), varied, &mut stream(seed, index)).nodes())
    }

    fn triangles(&self, seed: u64, index: u64) -> Vec<[u32; 3]> {
        let varied = self.settings.switch("varied");
        drawn_lattice(Self::largest(&self.settings), varied, &mut stream(seed, index)).surface()
    }

    fn spatial_order(&self) -> SpatialOrder {
        SpatialOrder::Algebraic(3.0)
    }

    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error> {
        let draw = self.draw(seed, index);
        let all: Vec<usize> = (0..draw.lattice.nodes()).collect();
        self.solved(&draw, draw.lattice, &all, self.settings.whole("steps"))
    }

    fn refined(&self) -> Result<Option<Refined>, Error> {
        let (fine, steps) = (Self { settings: self.settings.clone() }, 2 * self.settings.whole("steps"));
        Ok(Some(Refined::new("each cell divided into eight, half of the time step", move |seed, index| {
            let draw = fine.draw(seed, index);
            let (lattice, kept) = doubled(draw.lattice);
            fine.solved(&draw, lattice, &kept, steps)
        })))
    }
}
