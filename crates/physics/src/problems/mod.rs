//! The equations: each has one file and one row of [`PROBLEMS`]. The tests check every claim for every row.

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
use crate::parameters::{Parameter, Removed, Settings};
use lamo_geometry::Grid;

/// One row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name on the command line.
    pub name: &'static str,
    /// The equation in one line.
    pub equation: &'static str,
    /// Version of the solver: it grows whenever the same seed, index and settings give different numbers than before.
    pub version: u32,
    /// The parameters that a user can set.
    pub parameters: &'static [Parameter],
    /// The parameters of earlier versions.
    pub removed: &'static [Removed],
    /// Settings with which a sample takes milliseconds, for tests and first trials.
    pub small: &'static [&'static str],
    build: fn(Settings) -> Result<Box<dyn Problem>, Error>,
}

/// All problems.
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
        let keys = || changes.iter().filter_map(|change| change.as_ref().split_once('=')).map(|(key, _)| key.trim());
        if let Some(&Removed { name, reason, .. }) = self.removed.iter().find(|gone| keys().any(|key| key == gone.name))
        {
            return Err(Error::RemovedParameter { problem: self.name, found: name, reason });
        }
        (self.build)(Settings::new(self.name, self.parameters, changes)?)
    }
}

/// A solver with all parameters fixed, ready to make samples.
pub trait Problem: fmt::Debug + Send + Sync {
    /// The name in the registry.
    fn name(&self) -> &'static str;

    /// The value of every parameter.
    fn settings(&self) -> &Settings;

    /// The grid of the stored values.
    fn grid(&self) -> Grid;

    /// The fields of every sample, in order.
    fn fields(&self) -> Vec<FieldKind>;

    /// How fast the error of a smooth solution falls as the grid is refined.
    fn spatial_order(&self) -> SpatialOrder;

    /// Sample `index` of the sequence `seed`. Its bits depend on `seed`, `index` and the settings, and on nothing else:
    /// neither on the number of threads nor on the samples computed before.
    ///
    /// Processors with different vector instructions may round differently, by about 1e-15.
    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error>;
}

/// Order of accuracy of a space discretisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpatialOrder {
    /// The error is proportional to this power of the spacing.
    Algebraic(f64),
    /// The error of an analytic solution falls faster than any power of the spacing.
    Spectral,
}

/// Whether a field is given to the operator or learned by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Given: the positions of the grid points; the last axis holds x and y.
    Position,
    /// Given: values at the grid points or along a profile.
    Input,
    /// Learned: values that the solver computes.
    Output,
}

/// Name, unit, role and shape of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldKind {
    /// Name in whole words.
    pub name: &'static str,
    /// Unit; `1` for dimensionless equations.
    pub unit: &'static str,
    /// Given or learned.
    pub role: Role,
    /// The shape of the grid. A time series has the number of snapshots as an additional first axis; positions have x
    /// and y as an additional last axis, and fields of several channels have their number. A profile along x has
    /// `[rows]`.
    pub shape: Vec<usize>,
}

/// The values of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name of its [`FieldKind`].
    pub name: &'static str,
    /// Shape of its [`FieldKind`].
    pub shape: Vec<usize>,
    /// Values, the last axis running fastest.
    pub values: Vec<f64>,
}

/// One sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its fields in the order of [`Problem::fields`].
    pub fields: Vec<Field>,
    /// Number of draws until the solver found a solution; 1 when it solved the first draw.
    pub draws: usize,
}

impl Sample {
    /// Gives each array the name and shape of its field; panics on a wrong length, which is a bug of the solver.
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

/// The samples `indices` of the sequence `seed`, computed on all threads of the current rayon pool.
pub fn samples(problem: &dyn Problem, seed: u64, indices: Range<u64>) -> Result<Vec<Sample>, Error> {
    indices.into_par_iter().map(|index| problem.sample(seed, index)).collect()
}

/// Every `stride`-th row and column of a square plane.
pub(crate) fn thinned(plane: &[f64], points: usize, stride: usize) -> Vec<f64> {
    let stored = move || (0..points).step_by(stride);
    stored().flat_map(|row| stored().map(move |column| plane[row * points + column])).collect()
}
