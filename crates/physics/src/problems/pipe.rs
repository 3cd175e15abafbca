//! Flow through a bent pipe: (u·∇)u − ν Δu + ∇p = 0, ∇·u = 0 (Li et al. 2023, the Geo-FNO benchmark).
//!
//! The pipe is 10 long and, measured upright, 1 wide. Its centreline is a chain of four cubic Hermite elements from
//! y(0) = 0 with heights U[−1, 1] and slopes U[−2, 2] per element, drawn as slope₀, height₁, slope₁, …, slope₄. Water
//! enters with u_x = t (1 − t) over the width, 0 ≤ t ≤ 1, sticks to the walls and leaves freely. In: where the nodes of
//! 64 × 64 cells lie, x evenly spaced, y evenly across. Out: u_x, u_y and p there; p is linear within cells.
//!
//! A flow that does not converge is an error that ends the data set with a sentence and never enters it. At the
//! default viscosity, a Reynolds number of 50, none has been seen.

use super::{FieldKind, Problem, Role, Row, Sample, SpatialOrder};
use crate::Error;
use crate::mesh::Mesh;
use crate::parameters::{Kind, Parameter, Settings};
use crate::random_field::stream;
use crate::taylor_hood::{Flow, TaylorHood};
use lamo_geometry::Grid;
use rand::RngCore;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "pipe",
    equation: "(u.grad) u - nu lap u + grad p = 0, div u = 0 in a bent pipe",
    version: 1,
    parameters: PARAMETERS,
    small: &["resolution=6"],
    build: |settings| Ok(Box::new(Pipe::new(settings)?)),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "resolution",
        kind: Kind::Whole { default: 64, least: 2, most: 512 },
        unit: "1",
        meaning: "cells along and across the pipe; twice as many nodes and one are stored",
    },
    Parameter { name: "viscosity", kind: Kind::Positive { default: 0.005 }, unit: "1", meaning: "nu" },
    Parameter {
        name: "height",
        kind: Kind::NonNegative { default: 1.0 },
        unit: "1",
        meaning: "the centreline's knots lie between minus and plus this",
    },
    Parameter {
        name: "slope",
        kind: Kind::NonNegative { default: 2.0 },
        unit: "1",
        meaning: "the slopes there, per element of length 2.5, lie between minus and plus this",
    },
];

/// Length of the pipe.
const LENGTH: f64 = 10.0;
/// Hermite elements of the centreline.
const ELEMENTS: usize = 4;

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
        let system = TaylorHood::new(mesh, |node| is_held(mesh, node), false)?;
        Ok(Self { settings, mesh, system })
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

    /// Of the velocity; pressure has one order less.
    fn spatial_order(&self) -> SpatialOrder {
        SpatialOrder::Algebraic(3.0)
    }

    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error> {
        let mut random = stream(seed, index);
        let mut draw = |most: f64| most * uniform(&mut random);
        let (height, slope) = (self.settings.real("height"), self.settings.real("slope"));
        let first = [0.0, draw(slope)];
        let rest: [[f64; 2]; ELEMENTS] = std::array::from_fn(|_| [draw(height), draw(slope)]);
        let knots: Vec<[f64; 2]> = std::iter::once(first).chain(rest).collect();
        let nodes = bent(self.mesh, |x| centreline(&knots, x));
        let points = self.mesh.quadrature(&nodes)?;
        let viscosity = self.settings.real("viscosity");
        let flow = self.system.solve(viscosity, &points, |_| [0.0; 2], at_rest(self.mesh))?;
        let part = |axis: usize| flow.velocity.iter().map(|velocity| velocity[axis]).collect();
        let positions = nodes.as_flattened().to_vec();
        Ok(Sample::new(self.fields(), [positions, part(0), part(1), self.mesh.at_nodes(&flow.pressure)]))
    }
}

/// A number from −1 to 1.
fn uniform(random: &mut impl RngCore) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) * (-52f64).exp2() - 1.0
}

/// y of the centreline through knots of height and slope (per element), evenly spaced along the pipe.
pub fn centreline(knots: &[[f64; 2]], x: f64) -> f64 {
    let way = x / LENGTH * (knots.len() - 1) as f64;
    let element = (way as usize).min(knots.len() - 2);
    let (t, [before, rise], [after, fall]) = (way - element as f64, knots[element], knots[element + 1]);
    let back = 1.0 - t;
    before * back * back * (1.0 + 2.0 * t) + after * t * t * (1.0 + 2.0 * back) + t * back * (rise * back - fall * t)
}

/// `[nodes]` of a pipe around a centreline.
pub fn bent(mesh: Mesh, centre: impl Fn(f64) -> f64) -> Vec<[f64; 2]> {
    mesh.place(|row, column| {
        let x = LENGTH * row as f64 / (mesh.node_rows() - 1) as f64;
        [x, centre(x) - 0.5 + across(mesh, column)]
    })
}

/// t of a column of nodes, from 0 at the lower wall to 1 at the upper one.
fn across(mesh: Mesh, column: usize) -> f64 {
    column as f64 / (mesh.node_columns() - 1) as f64
}

/// Whether the velocity of a node is given: at the inlet and on the walls.
pub fn is_held(mesh: Mesh, node: usize) -> bool {
    let (row, column) = (node / mesh.node_columns(), node % mesh.node_columns());
    row == 0 || column == 0 || column == mesh.node_columns() - 1
}

/// Water that stands still behind the inlet, where u_x = t (1 − t).
pub fn at_rest(mesh: Mesh) -> Flow {
    let inlet = |column: usize| [across(mesh, column) * (1.0 - across(mesh, column)), 0.0];
    let velocity = mesh.place(|row, column| if row == 0 { inlet(column) } else { [0.0; 2] });
    Flow { velocity, pressure: vec![0.0; mesh.vertices()] }
}
