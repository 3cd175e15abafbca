//! A clamped bar of random shape, pulled at its end: −div σ = 0 with small strains in three dimensions.
//!
//! The body is a bent, twisted and tapered bar with a waist ([`crate::body`]). Its face at s = 0 is clamped, its face at
//! s = 1 carries an even traction with a random total force, and its sides are free. In: the positions of the nodes of
//! hexahedra of 27 nodes, their distance from the clamp along the centre line, the force, and its moment about each node. Out:
//! the displacement and the von Mises stress at the nodes. The number of cells is random, so samples have different numbers of points.

use std::f64::consts::TAU;

use rand::Rng;

use super::{FieldKind, Problem, Refined, Role, Row, Sample, SpatialOrder};
use crate::Error;
use crate::body::{Body, Ranges};
use crate::hexahedron::{Lattice, cross, side_points};
use crate::parameters::{Kind, Parameter, Settings};
use crate::random_field::{stream, uniform};
use crate::solid::{Material, Solid, Solved, von_mises};
use lamo_geometry::Grid;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "beam",
    equation: "-div sigma = 0 in a clamped bar of random shape, pulled at its end, in three dimensions",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["along=3", "across=2"],
    build: |settings| Ok(Box::new(Beam::new(settings)?)),
    symmetries: |settings| (Beam::largest(settings).nodes(), Vec::new()),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "along",
        kind: Kind::Whole { default: 12, least: 1, most: 256 },
        unit: "1",
        meaning: "cells along the bar, at most; a sample has at least half of them",
    },
    Parameter {
        name: "across",
        kind: Kind::Whole { default: 3, least: 1, most: 64 },
        unit: "1",
        meaning: "cells across the bar in both directions, at most; a sample has at least half of them",
    },
    Parameter {
        name: "varied",
        kind: Kind::Switch { default: true },
        unit: "1",
        meaning: "draw the numbers of cells of each sample; false: all samples have the most, and equally many points",
    },
    Parameter {
        name: "length",
        kind: Kind::Positive { default: 1.0 },
        unit: "m",
        meaning: "length of the centre line",
    },
    Parameter {
        name: "thinnest",
        kind: Kind::Positive { default: 0.08 },
        unit: "m",
        meaning: "least half width and half height at the clamp",
    },
    Parameter {
        name: "thickest",
        kind: Kind::Positive { default: 0.12 },
        unit: "m",
        meaning: "greatest half width and half height at the clamp",
    },
    Parameter {
        name: "taper",
        kind: Kind::Within { default: 0.4, least: 0.0, most: 0.8 },
        unit: "1",
        meaning: "greatest relative loss of width and height from the clamp to the end",
    },
    Parameter {
        name: "waist",
        kind: Kind::Within { default: 0.3, least: 0.0, most: 0.6 },
        unit: "1",
        meaning: "greatest depth of the waist, relative to the width",
    },
    Parameter {
        name: "bend",
        kind: Kind::Within { default: 1.2, least: 0.0, most: 3.0 },
        unit: "1",
        meaning: "greatest angle between the centre line at the clamp and at the end, in radians",
    },
    Parameter {
        name: "twist",
        kind: Kind::Within { default: 1.0, least: 0.0, most: 6.0 },
        unit: "1",
        meaning: "greatest angle by which the end is turned about the centre line, in radians",
    },
    Parameter {
        name: "force",
        kind: Kind::Positive { default: 1.0 },
        unit: "N",
        meaning: "greatest force at the end; a sample has at least half of it, in a random direction",
    },
    Parameter { name: "modulus", kind: Kind::Positive { default: 2e4 }, unit: "Pa", meaning: "Young's modulus" },
    Parameter {
        name: "ratio",
        kind: Kind::Within { default: 0.3, least: 0.0, most: 0.45 },
        unit: "1",
        meaning: "Poisson's ratio",
    },
];

/// The problem with its parameters fixed.
#[derive(Debug)]
pub struct Beam {
    settings: Settings,
}

/// What is random in a sample.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// The cells.
    pub lattice: Lattice,
    /// The shape.
    pub body: Body,
    /// The force at the end.
    pub force: [f64; 3],
}

impl Beam {
    fn new(settings: Settings) -> Result<Self, Error> {
        let (thinnest, thickest) = (settings.real("thinnest"), settings.real("thickest"));
        if thickest < thinnest {
            return Err(settings.refuse("thickest", format!("at least `thinnest`, {thinnest}"), thickest));
        }
        let (bend, length) = (settings.real("bend"), settings.real("length"));
        // The inner side of the arc, at most √2 `thickest` from its centre line, must not reach the centre of the arc.
        if 2f64.sqrt() * thickest * bend > 0.8 * length {
            let most = 0.8 * length / (2f64.sqrt() * thickest);
            return Err(settings.refuse("bend", format!("at most {most:.3} for this length and `thickest`"), bend));
        }
        Ok(Self { settings })
    }

    fn largest(settings: &Settings) -> Lattice {
        let (along, across) = (settings.whole("along"), settings.whole("across"));
        Lattice { cells: [along, across, across] }
    }

    fn kinds(points: usize) -> Vec<FieldKind> {
        vec![
            FieldKind { name: "positions", unit: "m", role: Role::Position, shape: vec![points, 3] },
            FieldKind { name: "distance", unit: "m", role: Role::Input, shape: vec![points] },
            FieldKind { name: "force", unit: "N", role: Role::Input, shape: vec![3] },
            FieldKind { name: "moment", unit: "N m", role: Role::Input, shape: vec![points, 3] },
            FieldKind { name: "displacement", unit: "m", role: Role::Output, shape: vec![points, 3] },
            FieldKind { name: "stress", unit: "Pa", role: Role::Output, shape: vec![points] },
        ]
    }

    /// The random numbers of a sample.
    pub fn draw(&self, seed: u64, index: u64) -> Draw {
        let mut random = stream(seed, index);
        let lattice = drawn_lattice(Self::largest(&self.settings), self.settings.switch("varied"), &mut random);
        let real = |key: &str| self.settings.real(key);
        let ranges = Ranges {
            length: real("length"),
            half: [real("thinnest"), real("thickest")],
            taper: real("taper"),
            waist: real("waist"),
            bend: real("bend"),
            twist: real("twist"),
        };
        let body = Body::draw(&ranges, &mut random);
        let size = real("force") * (0.5 + 0.5 * uniform(&mut random));
        // Even on the sphere: the height is even, and so is the angle around the axis.
        let (height, angle) = (2.0 * uniform(&mut random) - 1.0, TAU * uniform(&mut random));
        let radius = (1.0 - height * height).sqrt();
        Draw { lattice, body, force: [radius * angle.cos(), radius * angle.sin(), height].map(|part| size * part) }
    }

    /// The nodes `kept` of the sample that is solved on `lattice`.
    fn stored(&self, draw: &Draw, lattice: Lattice, kept: &[usize]) -> Result<Sample, Error> {
        let positions = lattice.mapped(|place| draw.body.position(place));
        let material = Material { modulus: self.settings.real("modulus"), ratio: self.settings.real("ratio") };
        let solved = clamped(lattice, &positions, material, draw.force)?;
        let solid = Solid { lattice, positions: &positions, material };
        let stress: Vec<f64> = solid.stresses(&solved.displacement).into_iter().map(von_mises).collect();
        let along = (lattice.extents()[0] - 1) as f64;
        let vectors = |values: &[[f64; 3]]| kept.iter().flat_map(|&node| values[node]).collect::<Vec<f64>>();
        let distance = kept.iter().map(|&node| draw.body.length * lattice.place(node)[0] as f64 / along).collect();
        let stress = kept.iter().map(|&node| stress[node]).collect();
        let end = draw.body.position([1.0, 0.5, 0.5]);
        let moment = |&node: &usize| cross(std::array::from_fn(|axis| end[axis] - positions[node][axis]), draw.force);
        let moment = kept.iter().flat_map(moment).collect();
        let (places, moved) = (vectors(&positions), vectors(&solved.displacement));
        let values = [places, distance, draw.force.to_vec(), moment, moved, stress];
        Ok(Sample::new(Self::kinds(kept.len()), values))
    }
}

/// The displacement of a body whose first face is clamped and whose last face carries an even traction of a total force.
pub fn clamped(lattice: Lattice, positions: &[[f64; 3]], material: Material, force: [f64; 3]) -> Result<Solved, Error> {
    let solid = Solid { lattice, positions, material };
    let end = lattice.sides(0, true);
    let areas = end.iter().flat_map(|side| side_points(&side.map(|node| positions[node])));
    let area: f64 = areas.map(|point| point.area()).sum();
    let mut load = vec![[0.0; 3]; positions.len()];
    solid.add_traction(&mut load, &end, |_, normal| {
        let part = normal.iter().map(|n| n * n).sum::<f64>().sqrt() / area;
        force.map(|component| component * part)
    });
    solid.solve(&load, |node| (lattice.place(node)[0] == 0).then_some([0.0; 3]))
}

/// Numbers of cells from half of the most to the most, if they are varied.
pub(super) fn drawn_lattice(largest: Lattice, varied: bool, random: &mut impl Rng) -> Lattice {
    if !varied {
        return largest;
    }
    let cells = largest.cells.map(|most| {
        let least = most.div_ceil(2);
        (least + ((most - least + 1) as f64 * uniform(random)) as usize).min(most)
    });
    Lattice { cells }
}

/// The lattice with twice the cells, and its nodes that are nodes of `lattice`, in the order of `lattice`.
pub(super) fn doubled(lattice: Lattice) -> (Lattice, Vec<usize>) {
    let fine = Lattice { cells: lattice.cells.map(|cells| 2 * cells) };
    let kept = (0..lattice.nodes()).map(|node| fine.node(lattice.place(node).map(|place| 2 * place))).collect();
    (fine, kept)
}

impl Problem for Beam {
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
        Self::kinds(self.grid().points())
    }

    fn points_of(&self, seed: u64, index: u64) -> Option<usize> {
        let varied = self.settings.switch("varied");
        varied.then(|| drawn_lattice(Self::largest(&self.settings), varied, &mut stream(seed, index)).nodes())
    }

    fn triangles(&self, seed: u64, index: u64) -> Vec<[u32; 3]> {
        let varied = self.settings.switch("varied");
        drawn_lattice(Self::largest(&self.settings), varied, &mut stream(seed, index)).surface()
    }

    /// Order of the displacement; the order of the stress is one less.
    fn spatial_order(&self) -> SpatialOrder {
        SpatialOrder::Algebraic(3.0)
    }

    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error> {
        let draw = self.draw(seed, index);
        self.stored(&draw, draw.lattice, &(0..draw.lattice.nodes()).collect::<Vec<_>>())
    }

    fn refined(&self) -> Result<Option<Refined>, Error> {
        let fine = Self { settings: self.settings.clone() };
        Ok(Some(Refined::new("each cell divided into eight", move |seed, index| {
            let draw = fine.draw(seed, index);
            let (lattice, kept) = doubled(draw.lattice);
            fine.stored(&draw, lattice, &kept)
        })))
    }
}
