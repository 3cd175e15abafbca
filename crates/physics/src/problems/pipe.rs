//! Flow through a bent pipe: (u·∇)u − ν Δu + ∇p = 0, ∇·u = 0 (Li et al. 2023, the Geo-FNO benchmark).
//!
//! The pipe is 10 long and has the vertical width 1. Its centreline consists of four cubic Hermite elements from y(0) =
//! 0 with heights U[−1, 1] and slopes U[−2, 2] per element, drawn in the order slope₀, height₁, slope₁, …, slope₄.
//! Water enters with u_x = t (1 − t) across the inlet, 0 ≤ t ≤ 1. It sticks to the walls. In: the positions of the
//! nodes of 64 × 64 cells, evenly spaced in x and across the pipe. Out: u_x, u_y and p there; p is bilinear within
//! cells.
//!
//! The outlet is do-nothing, ν ∂u/∂n = p n. `canonical=true` repeats the public file instead, whose outlet has no
//! condition: [`Outlet::Free`]. Its flow loses water in the upper corner of the outlet.
//!
//! With do-nothing, a solver that does not converge is an error: it ends the making of the dataset, and the dataset
//! never contains the sample. This has not happened at the default viscosity, a Reynolds number of 50. With the
//! free outlet, Newton's method fails for some pipes; then the next pipe is drawn from the same random stream, and
//! [`Sample::draws`] counts them.

use rand::Rng;

use super::{FieldKind, Problem, Refined, Role, Row, Sample, SpatialOrder};
use crate::Error;
use crate::mesh::Mesh;
use crate::parameters::{Kind, Parameter, Settings};
use crate::random_field::{stream, uniform};
use crate::symmetry::{Component, Symmetry};
use crate::taylor_hood::{Flow, Outlet, TaylorHood};
use lamo_geometry::Grid;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "pipe",
    equation: "(u.grad) u - nu lap u + grad p = 0, div u = 0 in a bent pipe",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["resolution=6"],
    build: |settings| Ok(Box::new(Pipe::new(settings)?)),
    symmetries,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "resolution",
        kind: Kind::Whole { default: 64, least: 2, most: 512 },
        unit: "1",
        meaning: "cells along and across the pipe; the stored mesh has 2 resolution + 1 nodes per side",
    },
    Parameter { name: "viscosity", kind: Kind::Positive { default: 0.005 }, unit: "1", meaning: "viscosity nu" },
    Parameter {
        name: "height",
        kind: Kind::NonNegative { default: 1.0 },
        unit: "1",
        meaning: "largest height of a knot of the centreline, up or down",
    },
    Parameter {
        name: "slope",
        kind: Kind::NonNegative { default: 2.0 },
        unit: "1",
        meaning: "largest slope at a knot, up or down, per element of length 2.5",
    },
    Parameter {
        name: "canonical",
        kind: Kind::Switch { default: false },
        unit: "1",
        meaning: "true: outlet without a condition, as in the public file, with its sink of water in a corner",
    },
];

/// Length of the pipe.
const LENGTH: f64 = 10.0;
/// Hermite elements of the centreline.
const ELEMENTS: usize = 4;
/// Pipes drawn for one sample of `canonical` before the sample is an error.
const MOST_DRAWS: usize = 8;

/// The mirror y → −y. The outlet without a condition has none: its sink of water is in the upper corner.
fn symmetries(settings: &Settings) -> (usize, Vec<Symmetry>) {
    let side = 2 * settings.whole("resolution") + 1;
    let upside_down = Component::mirrored(0, 0.0);
    let fields =
        vec![("positions", vec![Component::kept(0), Component::mirrored(1, 0.0)]), ("velocity_y", vec![upside_down])];
    let mirror = Symmetry::of_plane([side; 2], |row, column| [row, side - 1 - column], fields);
    (side * side, if settings.switch("canonical") { Vec::new() } else { vec![mirror] })
}

/// The problem with its parameters fixed and its matrix pattern analysed.
#[derive(Debug)]
pub struct Pipe {
    settings: Settings,
    mesh: Mesh,
    system: TaylorHood,
}

impl Pipe {
    fn new(settings: Settings) -> Result<Self, Error> {
        let cells = settings.whole("resolution");
        let mesh = Mesh { rows: cells, columns: cells, ring: false };
        let outlet = if settings.switch("canonical") { Outlet::Free } else { Outlet::DoNothing };
        let system = TaylorHood::new(mesh, |node| is_prescribed(mesh, node), outlet)?;
        Ok(Self { settings, mesh, system })
    }

    /// Heights and slopes of the knots of the centreline.
    fn draw(&self, random: &mut impl Rng) -> Vec<[f64; 2]> {
        let mut draw = |largest: f64| largest * (2.0 * uniform(random) - 1.0);
        let (height, slope) = (self.settings.real("height"), self.settings.real("slope"));
        let first = [0.0, draw(slope)];
        let rest: [[f64; 2]; ELEMENTS] = std::array::from_fn(|_| [draw(height), draw(slope)]);
        std::iter::once(first).chain(rest).collect()
    }

    /// Positions of the nodes, and u_x, u_y and p there.
    fn solve(&self, knots: &[[f64; 2]]) -> Result<[Vec<f64>; 4], Error> {
        let nodes = positions(self.mesh, |x| centreline(knots, x));
        let flow = self.system.solve(self.settings.real("viscosity"), &nodes, |_| [0.0; 2], start(self.mesh))?;
        let part = |axis: usize| flow.velocity.iter().map(|velocity| velocity[axis]).collect();
        Ok([nodes.as_flattened().to_vec(), part(0), part(1), self.mesh.at_nodes(&flow.pressure)])
    }
}

impl Problem for Pipe {
    fn name(&self) -> &'static str {
        ROW.name
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn grid(&self) -> Grid {
        Grid::Plane { rows: self.mesh.node_rows(), columns: self.mesh.node_columns() }
    }

    fn fields(&self) -> Vec<FieldKind> {
        let shape = self.grid().shape();
        let output = |name| FieldKind { name, unit: "1", role: Role::Output, shape: shape.clone() };
        let positions = [shape.clone(), vec![2]].concat();
        vec![
            FieldKind { name: "positions", unit: "1", role: Role::Position, shape: positions },
            output("velocity_x"),
            output("velocity_y"),
            output("pressure"),
        ]
    }

    /// Order of the velocity; the order of the pressure is one less.
    fn spatial_order(&self) -> SpatialOrder {
        SpatialOrder::Algebraic(3.0)
    }

    /// When the solver finds no flow with `canonical`, the next pipe is drawn from the same random stream.
    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error> {
        let mut random = stream(seed, index);
        let most = if self.settings.switch("canonical") { MOST_DRAWS } else { 1 };
        let mut draws = 1;
        let mut found = self.solve(&self.draw(&mut random));
        while found.is_err() && draws < most {
            found = self.solve(&self.draw(&mut random));
            draws += 1;
        }
        Ok(Sample { draws, ..Sample::new(self.fields(), found?) })
    }

    fn refined(&self) -> Result<Option<Refined>, Error> {
        let (stored, kinds) = (Self::new(self.settings.clone())?, self.fields());
        let fine = Self::new(self.settings.with("resolution", 2 * self.settings.whole("resolution"))?)?;
        Ok(Some(Refined::new("each cell divided into four", move |seed, index| {
            let draws = stored.sample(seed, index)?.draws;
            let mut random = stream(seed, index);
            let knots = (0..draws).fold(Vec::new(), |_, _| stored.draw(&mut random)); // the pipe of the stored sample
            let sample = Sample { draws, ..Sample::new(fine.fields(), fine.solve(&knots)?) };
            Ok(sample.at_every_second_node(&kinds))
        })))
    }
}

/// y of the centreline at `x`. The knots are evenly spaced along the pipe; each has a height and a slope per element.
pub fn centreline(knots: &[[f64; 2]], x: f64) -> f64 {
    let scaled = x / LENGTH * (knots.len() - 1) as f64;
    let element = (scaled as usize).min(knots.len() - 2);
    let (t, [y0, slope0], [y1, slope1]) = (scaled - element as f64, knots[element], knots[element + 1]);
    let s = 1.0 - t;
    y0 * s * s * (1.0 + 2.0 * t) + y1 * t * t * (1.0 + 2.0 * s) + t * s * (slope0 * s - slope1 * t)
}

/// `[nodes]` positions in the pipe around a centreline.
pub fn positions(mesh: Mesh, centre: impl Fn(f64) -> f64) -> Vec<[f64; 2]> {
    mesh.nodal_vectors(|row, column| {
        let x = LENGTH * row as f64 / (mesh.node_rows() - 1) as f64;
        [x, centre(x) - 0.5 + across(mesh, column)]
    })
}

/// t of a column of nodes, from 0 at the lower wall to 1 at the upper wall.
fn across(mesh: Mesh, column: usize) -> f64 {
    column as f64 / (mesh.node_columns() - 1) as f64
}

/// Whether the velocity of a node is prescribed: at the inlet and on the walls.
pub fn is_prescribed(mesh: Mesh, node: usize) -> bool {
    let (row, column) = (node / mesh.node_columns(), node % mesh.node_columns());
    row == 0 || column == 0 || column == mesh.node_columns() - 1
}

/// The start of the iteration: u_x = t (1 − t) at the inlet, and zero everywhere else.
pub fn start(mesh: Mesh) -> Flow {
    let inlet = |column: usize| [across(mesh, column) * (1.0 - across(mesh, column)), 0.0];
    let velocity = mesh.nodal_vectors(|row, column| if row == 0 { inlet(column) } else { [0.0; 2] });
    Flow { velocity, pressure: vec![0.0; mesh.vertices()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flow in a pipe, and how far the mirrored flow is from the flow in the mirrored pipe, for each field.
    fn mirrored(changes: &[&str], index: u64) -> Vec<(&'static str, f64)> {
        let problem = Pipe::new(Settings::new(ROW.name, PARAMETERS, changes).unwrap()).unwrap();
        let knots = problem.draw(&mut stream(2, index));
        let turned: Vec<[f64; 2]> = knots.iter().map(|knot| knot.map(|value| -value)).collect();
        let solve = |knots: &[[f64; 2]]| Sample::new(problem.fields(), problem.solve(knots).unwrap());
        let (_, generators) = symmetries(&problem.settings.with("canonical", false).unwrap());
        let wanted = generators[0].apply(problem.grid(), &solve(&knots));
        let pairs = solve(&turned).fields.into_iter().zip(wanted.fields);
        pairs.map(|(found, wanted)| (found.name, found.relative_error(&wanted))).collect()
    }

    /// Newton's method ends at a residual of 1e-10.
    #[test]
    fn the_flow_in_a_mirrored_pipe_is_the_mirrored_flow() {
        assert_eq!(ROW.symmetries(ROW.small).unwrap().len(), 2);
        for (name, error) in (0..3).flat_map(|index| mirrored(&["resolution=8"], index)) {
            assert!(error < 1e-8, "{name}: {error:e}");
        }
    }

    #[test]
    fn the_outlet_without_a_condition_has_no_mirror() {
        assert_eq!(ROW.symmetries(&["resolution=6", "canonical=true"]).unwrap().len(), 1);
        let errors = mirrored(&["resolution=8", "canonical=true"], 0);
        assert!(errors.iter().any(|(name, error)| *name == "velocity_x" && *error > 1e-3), "{errors:?}");
    }
}
