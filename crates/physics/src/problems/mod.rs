//! The equations: one file and one row of [`PROBLEMS`] each; a row enrols its problem in every claim of the tests.

pub mod airfoil;
pub mod darcy;
pub mod elasticity;
pub mod navier_stokes;
pub mod pipe;
pub mod plasticity;

use std::fmt;
use std::ops::Range;

use rayon::prelude::*;

use crate::Error;
use crate::parameters::{Parameter, Settings};
use lamo_geometry::Grid;

/// One row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name people type.
    pub name: &'static str,
    /// The equation in one line.
    pub equation: &'static str,
    /// Raised whenever (seed, index, settings) would give other numbers than before.
    pub version: u32,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Settings under which a sample takes milliseconds, for tests and first looks.
    pub small: &'static [&'static str],
    build: fn(Settings) -> Result<Box<dyn Problem>, Error>,
}

/// Every problem there is.
pub const PROBLEMS: &[Row] =
    &[darcy::ROW, navier_stokes::ROW, elasticity::ROW, plasticity::ROW, airfoil::ROW, pipe::ROW];

/// The row called `name`.
pub fn find(name: &str) -> Result<&'static Row, Error> {
    PROBLEMS.iter().find(|row| row.name == name).ok_or_else(|| {
        let names: Vec<_> = PROBLEMS.iter().map(|row| row.name).collect();
        Error::UnknownProblem { expected: names.join(", "), found: name.into() }
    })
}

impl Row {
    /// The problem with its defaults changed by `key=value` texts.
    pub fn problem<Text: AsRef<str>>(&self, changes: &[Text]) -> Result<Box<dyn Problem>, Error> {
        (self.build)(Settings::new(self.name, self.parameters, changes)?)
    }
}

/// A solver with all parameters fixed, ready to make samples.
pub trait Problem: fmt::Debug + Send + Sync {
    /// The name in the registry.
    fn name(&self) -> &'static str;

    /// The value of every parameter.
    fn settings(&self) -> &Settings;

    /// Where the stored values sit.
    fn grid(&self) -> Grid;

    /// The fields of every sample, in order.
    fn fields(&self) -> Vec<FieldKind>;

    /// How fast the solution converges as the grid is refined, for smooth data.
    fn spatial_order(&self) -> SpatialOrder;

    /// Sample `index` of the sequence `seed`: the same bits whatever else is computed and on however many threads.
    ///
    /// Processors with other vector instructions may round differently, by about 1e-15.
    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error>;
}

/// Convergence of a space discretisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpatialOrder {
    /// The error falls as spacing to this power.
    Algebraic(f64),
    /// The error of an analytic solution falls faster than any power.
    Spectral,
}

/// What an operator learns from, and what it learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Given: where the points of the grid lie, x and y as the last axis.
    Position,
    /// Given.
    Input,
    /// Computed by the solver.
    Output,
}

/// Name, unit, role and shape of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldKind {
    /// Name in whole words.
    pub name: &'static str,
    /// Unit; `1` for dimensionless equations.
    pub unit: &'static str,
    /// Given or computed.
    pub role: Role,
    /// `[rows, columns]` or `[points]`, after `frames` for a film, before 2 for positions or the number of channels;
    /// `[rows]` for a profile along x
    pub shape: Vec<usize>,
}

/// The values of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// As in [`FieldKind`].
    pub name: &'static str,
    /// As in [`FieldKind`].
    pub shape: Vec<usize>,
    /// Row by row.
    pub values: Vec<f64>,
}

/// One draw: its fields in the order of [`Problem::fields`].
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Inputs and outputs.
    pub fields: Vec<Field>,
    /// How often it was drawn until the solver found a solution: 1 where the first draw had one.
    pub draws: usize,
}

impl Sample {
    /// Joins values with the kinds they belong to; panics when they do not fit, which is the solver's fault.
    pub(crate) fn new<const COUNT: usize>(kinds: Vec<FieldKind>, values: [Vec<f64>; COUNT]) -> Self {
        assert_eq!(kinds.len(), COUNT, "one array per field");
        let join = |(kind, values): (FieldKind, Vec<f64>)| {
            assert_eq!(kind.shape.iter().product::<usize>(), values.len(), "values of {}", kind.name);
            Field { name: kind.name, shape: kind.shape, values }
        };
        Self { fields: kinds.into_iter().zip(values).map(join).collect(), draws: 1 }
    }

    /// The field called `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// The samples `indices` of the sequence `seed`, on all threads of the current rayon pool.
pub fn samples(problem: &dyn Problem, seed: u64, indices: Range<u64>) -> Result<Vec<Sample>, Error> {
    indices.into_par_iter().map(|index| problem.sample(seed, index)).collect()
}

/// Every `stride`-th row and column of a square plane.
pub(crate) fn thinned(plane: &[f64], points: usize, stride: usize) -> Vec<f64> {
    let kept = move || (0..points).step_by(stride);
    kept().flat_map(|row| kept().map(move |column| plane[row * points + column])).collect()
}
