//! A unit cell with a void, pulled at its top: −div σ = 0 in plane stress (Li et al. 2023, the Geo-FNO benchmark).
//!
//! The unit square is clamped at its bottom and carries the traction (0, 100) at its top. Its sides are free, and so is
//! the void around its centre, r(φ) = 0.2 + 0.2 / (1 + exp g), g = Σ_{m=1..5} (θ₂ₘ₋₁ cos mφ + θ₂ₘ sin mφ) / ((m² + 9)
//! √π), θ ~ N(0, 16²). In: the positions of the Gauss points of a body-fitted ring of 36 × 3 nine-node cells. Out: the
//! von Mises stress there. The public data come from the incompressible law of Mooney and Rivlin. At this traction
//! strains are about 1e-4, so the default is linear elasticity with ν = 1/2, whose stress does not depend on the
//! modulus. `law=hyperelastic` solves the law of Mooney and Rivlin by Newton's method.

use std::f64::consts::{FRAC_PI_4, PI, TAU};

use super::{FieldKind, Problem, Refined, Role, Row, Sample, SpatialOrder};
use crate::Error;
use crate::finite_element::{POINTS, biquadratic, gauss};
use crate::mesh::{Mesh, Point};
use crate::parameters::{Kind, Parameter, Settings};
use crate::plate::{Law, Plate, add_traction, von_mises};
use crate::random_field::{normal_pair, stream};
use crate::symmetry::{Component, Symmetry};
use lamo_geometry::Grid;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "elasticity",
    equation: "-div sigma = 0 in a square with a void, plane stress, clamped below and pulled above",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["around=12", "layers=2"],
    build: |settings| Ok(Box::new(Elasticity::new(settings)?)),
    symmetries,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "around",
        kind: Kind::Whole { default: 36, least: 4, most: 1024 },
        unit: "1",
        meaning: "cells around the void, a multiple of 4",
    },
    Parameter {
        name: "layers",
        kind: Kind::Whole { default: 3, least: 1, most: 256 },
        unit: "1",
        meaning: "cells from the void to the border",
    },
    Parameter {
        name: "roughness",
        kind: Kind::NonNegative { default: 16.0 },
        unit: "1",
        meaning: "standard deviation of theta, the coefficients of the outline of the void",
    },
    Parameter {
        name: "traction",
        kind: Kind::Real { default: 100.0 },
        unit: "1",
        meaning: "upward force per unit length of the top",
    },
    Parameter {
        name: "law",
        kind: Kind::Choice { default: "linear", words: &["linear", "hyperelastic"] },
        unit: "1",
        meaning: "linear: small strains; hyperelastic: the incompressible law of Mooney and Rivlin",
    },
    Parameter {
        name: "first_constant",
        kind: Kind::Positive { default: 1.863e5 },
        unit: "1",
        meaning: "C1 of W = C1 (I1 - 3) + C2 (I2 - 3)",
    },
    Parameter {
        name: "second_constant",
        kind: Kind::NonNegative { default: 9.79e3 },
        unit: "1",
        meaning: "C2 of W = C1 (I1 - 3) + C2 (I2 - 3)",
    },
];

/// The mirror x → 1 − x. It maps the spokes of the ring onto each other: the first node of a row lies at the angle
/// π/4 − 2π row / rows, its mirror image at π minus that, the row −rows/4 − row. Gauss points of a cell are mirrored along.
fn symmetries(settings: &Settings) -> (usize, Vec<Symmetry>) {
    let (around, layers) = (settings.whole("around"), settings.whole("layers"));
    let point = |place: usize| {
        let (cell, inside) = (place / POINTS, place % POINTS);
        let (row, layer) = (cell / layers, cell % layers);
        // Cell k lies between the node rows 2k and 2k + 2.
        let opposite = (2 * around - around / 4 - 1 - row) % around;
        ((opposite * layers + layer) * POINTS + 3 * (2 - inside / 3) + inside % 3) as u32
    };
    let points = around * layers * POINTS;
    let positions = ("positions", vec![Component::mirrored(0, 1.0), Component::kept(1)]);
    (points, vec![Symmetry { points: (0..points).map(point).collect(), fields: vec![positions] }])
}

/// The problem with its parameters fixed and its matrix pattern analysed.
#[derive(Debug)]
pub struct Elasticity {
    settings: Settings,
    mesh: Mesh,
    plate: Plate,
    law: Law,
}

impl Elasticity {
    fn new(settings: Settings) -> Result<Self, Error> {
        let around = settings.whole("around");
        if !around.is_multiple_of(4) {
            return Err(settings.refuse("around", "a multiple of 4".into(), around));
        }
        let mesh = Mesh { rows: around, columns: settings.whole("layers"), ring: true };
        let plate = Plate::new(mesh, |node| [on_side(mesh, node, Side::Bottom); 2])?;
        let (first, second) = (settings.real("first_constant"), settings.real("second_constant"));
        let law = match settings.choice("law") {
            "linear" => Law::Linear { modulus: 6.0 * (first + second), ratio: 0.5 },
            _ => Law::MooneyRivlin { first, second },
        };
        Ok(Self { settings, mesh, plate, law })
    }
}

impl Problem for Elasticity {
    fn name(&self) -> &'static str {
        ROW.name
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn grid(&self) -> Grid {
        Grid::Cloud { points: self.mesh.cells() * POINTS }
    }

    fn fields(&self) -> Vec<FieldKind> {
        let points = self.grid().points();
        vec![
            FieldKind { name: "positions", unit: "1", role: Role::Position, shape: vec![points, 2] },
            FieldKind { name: "stress", unit: "1", role: Role::Output, shape: vec![points] },
        ]
    }

    /// Order of the displacement; the order of the stress is one less.
    fn spatial_order(&self) -> SpatialOrder {
        SpatialOrder::Algebraic(3.0)
    }

    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error> {
        self.stored(&self.coefficients(seed, index))
    }

    /// The Gauss points of all cells form a ring of three times the rows and columns of the cells.
    fn triangles(&self, _seed: u64, _index: u64) -> Vec<[u32; 3]> {
        let Mesh { rows, columns, .. } = self.mesh;
        let point = |row: usize, column: usize| {
            let (row, cell_row) = (row % (3 * rows), row % (3 * rows) / 3);
            ((cell_row * columns + column / 3) * POINTS + 3 * (row % 3) + column % 3) as u32
        };
        let square = |row: usize, column: usize| {
            let corners = [(row, column), (row + 1, column), (row + 1, column + 1), (row, column + 1)];
            let [a, b, c, d] = corners.map(|(row, column)| point(row, column));
            [[a, b, c], [a, c, d]]
        };
        let squares = (0..3 * rows).flat_map(|row| (0..3 * columns - 1).map(move |column| (row, column)));
        squares.flat_map(|(row, column)| square(row, column)).collect()
    }

    /// With three times the cells, the central Gauss points of the stored cells are centres of cells again. With twice
    /// the cells they would lie on edges, where the stress jumps.
    fn refined(&self) -> Result<Option<Refined>, Error> {
        let finer = |key| 3 * self.settings.whole(key);
        let fine = Self::new(self.settings.with("around", finer("around"))?.with("layers", finer("layers"))?)?;
        let (mesh, kinds) = (self.mesh, self.fields());
        Ok(Some(Refined::new("three times the cells around the void and across", move |seed, index| {
            let coefficients = fine.coefficients(seed, index);
            let stored = mesh.quadrature(&unit_cell(mesh, |angle| void(&coefficients, angle)))?;
            let positions: Vec<[f64; 2]> = stored.iter().flatten().map(|point| point.position).collect();
            let solution = fine.solve(&coefficients)?;
            let stress = positions.iter().enumerate().map(|(point, &position)| {
                let (cell, [along, across]) = (point / POINTS, gauss()[point % POINTS].0);
                // Position in the ring in units of the stored cells.
                let ring = [
                    (cell / mesh.columns) as f64 + 0.5 + along / 2.0,
                    (cell % mesh.columns) as f64 + 0.5 + across / 2.0,
                ];
                von_mises(fine.stress_at(&solution, ring.map(|place| 3.0 * place), position))
            });
            Ok(Sample::new(kinds.clone(), [positions.as_flattened().to_vec(), stress.collect()]))
        })))
    }
}

/// A solved plate.
struct Solution {
    /// `[nodes]` x and y
    nodes: Vec<[f64; 2]>,
    points: Vec<[Point; POINTS]>,
    /// `[nodes]` u_x and u_y
    displacement: Vec<[f64; 2]>,
}

impl Elasticity {
    /// The sample of a void.
    fn stored(&self, coefficients: &[[f64; 2]; 5]) -> Result<Sample, Error> {
        let Solution { points, displacement, .. } = self.solve(coefficients)?;
        let stresses = self.plate.stresses(&self.law, &points, &displacement);
        let positions = points.iter().flatten().flat_map(|point| point.position).collect();
        let stress = stresses.into_iter().flatten().map(von_mises).collect();
        Ok(Sample::new(self.fields(), [positions, stress]))
    }

    /// θ₁ … θ₁₀ in pairs.
    fn coefficients(&self, seed: u64, index: u64) -> [[f64; 2]; 5] {
        let mut random = stream(seed, index);
        let roughness = self.settings.real("roughness");
        std::array::from_fn(|_| normal_pair(&mut random).map(|n| roughness * n))
    }

    fn solve(&self, coefficients: &[[f64; 2]; 5]) -> Result<Solution, Error> {
        let nodes = unit_cell(self.mesh, |angle| void(coefficients, angle));
        let points = self.mesh.quadrature(&nodes)?;
        let traction = [0.0, self.settings.real("traction")];
        let mut load = vec![[0.0; 2]; nodes.len()];
        edges(self.mesh, Side::Top).for_each(|edge| add_traction(&mut load, &nodes, edge, |_| traction));
        let displacement = self.plate.solve(&self.law, &points, &load, vec![[0.0; 2]; nodes.len()])?;
        Ok(Solution { nodes, points, displacement })
    }

    /// The stress at a position near `ring`, a place in the ring in units of cells: around the void and across.
    ///
    /// Newton's method finds the point of the cell of `ring` at this position; its start is off by the difference between
    /// two approximations of the outline of the void.
    fn stress_at(&self, solution: &Solution, ring: [f64; 2], position: [f64; 2]) -> [f64; 3] {
        let cell = ring[0] as usize * self.mesh.columns + ring[1] as usize;
        let nodes = self.mesh.cell_nodes(cell).map(|node| solution.nodes[node]);
        let mut place = ring.map(|place| 2.0 * place.fract() - 1.0); // in the reference square
        for _step in 0..5 {
            let mapped = biquadratic(place).mapped(&nodes);
            let missing = [0, 1].map(|axis| position[axis] - mapped.position[axis]);
            for (node, slope) in mapped.slopes.iter().enumerate() {
                let change = slope[0] * missing[0] + slope[1] * missing[1];
                place[0] += (node / 3) as f64 * change; // the reference coordinates are Σ N (node / 3, node % 3) − 1
                place[1] += (node % 3) as f64 * change;
            }
        }
        let mapped = biquadratic(place).mapped(&nodes);
        let point = Point { position: mapped.position, area: mapped.jacobian, slopes: mapped.slopes };
        self.plate.stress(&self.law, cell, &point, &solution.displacement)
    }
}

/// r(φ) for θ₁ … θ₁₀ in pairs.
pub fn void(coefficients: &[[f64; 2]; 5], angle: f64) -> f64 {
    let mode = |(order, [cosine, sine]): (u32, &[f64; 2])| {
        let order = f64::from(order);
        (cosine * (order * angle).cos() + sine * (order * angle).sin()) / ((order * order + 9.0) * PI.sqrt())
    };
    let level: f64 = (1..).zip(coefficients).map(mode).sum();
    0.2 + 0.2 / (1.0 + level.exp())
}

/// A side of the square.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// x = 1
    Right,
    /// y = 0
    Bottom,
    /// x = 0
    Left,
    /// y = 1
    Top,
}

/// `[nodes]` positions in a ring of cells between a hole of radius r(φ) and the border of the unit square. Straight,
/// evenly divided spokes lead from the hole to points that are evenly spaced along the border. Rows run clockwise from
/// the corner (1, 1), so that the area of the cells is positive.
pub fn unit_cell(mesh: Mesh, radius: impl Fn(f64) -> f64) -> Vec<[f64; 2]> {
    mesh.nodal_vectors(|row, column| {
        let angle = FRAC_PI_4 - TAU * row as f64 / mesh.node_rows() as f64;
        let fraction = column as f64 / (mesh.node_columns() - 1) as f64;
        let inner = [0.5 + radius(angle) * angle.cos(), 0.5 + radius(angle) * angle.sin()];
        let outer = border(4.0 * row as f64 / mesh.node_rows() as f64);
        [0, 1].map(|axis| (1.0 - fraction) * inner[axis] + fraction * outer[axis])
    })
}

/// The point of the border of the unit square at `distance`, counted clockwise from the corner (1, 1).
fn border(distance: f64) -> [f64; 2] {
    let along = distance.fract();
    match distance as usize % 4 {
        0 => [1.0, 1.0 - along],
        1 => [1.0 - along, 0.0],
        2 => [0.0, along],
        _ => [along, 1.0],
    }
}

/// The outer edges of the cells along a side of the square, three nodes each.
pub fn edges(mesh: Mesh, side: Side) -> impl Iterator<Item = [usize; 3]> {
    let (quarter, last) = (mesh.rows / 4, mesh.node_columns() - 1);
    let first = side as usize * quarter;
    (first..first + quarter).map(move |row| [0, 1, 2].map(|node| mesh.node(2 * row + node, last)))
}

/// Whether a node lies on a side of the square.
pub fn on_side(mesh: Mesh, node: usize, side: Side) -> bool {
    edges(mesh, side).flatten().any(|other| other == node)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// θ of the mirrored void: cos m(π − φ) = (−1)ᵐ cos mφ and sin m(π − φ) = −(−1)ᵐ sin mφ.
    #[test]
    fn the_stress_in_the_mirrored_cell_is_the_mirrored_stress() {
        for changes in [ROW.small, &["around=12", "layers=2", "law=hyperelastic"]] {
            let problem = Elasticity::new(Settings::new(ROW.name, PARAMETERS, changes).unwrap()).unwrap();
            let all = ROW.symmetries(changes).unwrap();
            assert_eq!(all.len(), 2);
            let coefficients = problem.coefficients(5, 2);
            let mut sign = 1.0;
            let mirrored = coefficients.map(|[cosine, sine]| {
                sign = -sign;
                [sign * cosine, -sign * sine]
            });
            let wanted = all[1].apply(problem.grid(), &problem.stored(&coefficients).unwrap());
            let found = problem.stored(&mirrored).unwrap();
            for (found, wanted) in found.fields.iter().zip(&wanted.fields) {
                let error = found.relative_error(wanted);
                assert!(error < 1e-10, "{changes:?}, {}: {error:e}", found.name);
            }
        }
    }
}
