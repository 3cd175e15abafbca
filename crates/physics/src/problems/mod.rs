//! The equations: each has one file and one row of [`PROBLEMS`]. The tests check every claim for every row.

pub mod advection_diffusion;
pub mod airfoil;
pub mod beam;
pub mod burgers;
mod convective;
pub mod darcy;
pub mod elasticity;
pub mod gray_scott;
pub mod heat;
pub mod kdv;
pub mod kolmogorov;
pub mod kuramoto_sivashinsky;
mod labels;
pub mod navier_stokes;
pub mod pipe;
pub mod plasticity;
pub mod series;
pub mod shallow_water;
pub mod turbulence;
pub mod vortices;

pub use labels::{LABELS, Labels, label_errors};

use std::fmt;
use std::ops::Range;

use rayon::prelude::*;

use crate::Error;
use crate::parameters::{Parameter, Removed, Settings};
use crate::symmetry::{Symmetry, group};
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
    /// Number of stored points, and symmetries that generate all declared ones.
    symmetries: fn(&Settings) -> (usize, Vec<Symmetry>),
}

/// All problems.
pub const PROBLEMS: &[Row] = &[
    darcy::ROW,
    navier_stokes::ROW,
    elasticity::ROW,
    plasticity::ROW,
    airfoil::ROW,
    pipe::ROW,
    beam::ROW,
    heat::ROW,
    advection_diffusion::ROW,
    burgers::ROW,
    kdv::ROW,
    kuramoto_sivashinsky::ROW,
    kolmogorov::ROW,
    turbulence::ROW,
    gray_scott::ROW,
    shallow_water::ROW,
];

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

    /// The exact symmetries of the problem with its defaults changed by `key=value` texts: a group, the identity first.
    pub fn symmetries<Text: AsRef<str>>(&self, changes: &[Text]) -> Result<Vec<Symmetry>, Error> {
        let (points, generators) = (self.symmetries)(&Settings::new(self.name, self.parameters, changes)?);
        Ok(group(points, &generators))
    }
}

/// A solver with all parameters fixed, ready to make samples.
pub trait Problem: fmt::Debug + Send + Sync {
    /// The name in the registry.
    fn name(&self) -> &'static str;

    /// The value of every parameter.
    fn settings(&self) -> &Settings;

    /// The grid of the stored values; where samples have different numbers of points, a cloud of the most that one has.
    fn grid(&self) -> Grid;

    /// The fields of every sample, in order, on the points of [`Problem::grid`].
    fn fields(&self) -> Vec<FieldKind>;

    /// Points of sample `index` of the sequence `seed`, where samples have different numbers of points; it costs little.
    /// `None` where all have those of the grid.
    fn points_of(&self, _seed: u64, _index: u64) -> Option<usize> {
        None
    }

    /// How fast the error of a smooth solution falls as the grid is refined.
    fn spatial_order(&self) -> SpatialOrder;

    /// Sample `index` of the sequence `seed`. Its bits depend on `seed`, `index` and the settings, and on nothing else:
    /// neither on the number of threads nor on the samples computed before.
    ///
    /// Processors with different vector instructions may round differently, by about 1e-15.
    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error>;

    /// The triangles between the points of sample `index` of the sequence `seed` on a cloud, as which it is drawn: of a body, those of
    /// its surface. None where the points are not joined, and on grids.
    fn triangles(&self, _seed: u64, _index: u64) -> Vec<[u32; 3]> {
        Vec::new()
    }

    /// What has a label error: the fields to predict, and their parts that are better judged alone.
    fn quantities(&self) -> Vec<Quantity> {
        let outputs = self.fields().into_iter().filter(|field| field.role == Role::Output);
        outputs.map(|field| Quantity { name: field.name, field: field.name, channels: None }).collect()
    }

    /// The solver of the same samples on a finer discretisation; the difference of the two is the error of the labels.
    fn refined(&self) -> Result<Option<Refined>, Error> {
        Ok(None)
    }
}

/// Something whose label error is stated: a field to predict, or some of its channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Its name.
    pub name: &'static str,
    /// The field that holds it.
    pub field: &'static str,
    /// The channels, along the last axis; `None` for the whole field.
    pub channels: Option<Range<usize>>,
}

/// Solves the samples of a problem on a finer discretisation and gives them at the stored points.
///
/// The fields have the shapes of [`Problem::fields`], and the inputs and positions are those of [`Problem::sample`].
pub struct Refined {
    /// The finer discretisation in words.
    pub discretisation: &'static str,
    sample: Box<dyn Fn(u64, u64) -> Result<Sample, Error> + Send + Sync>,
}

impl Refined {
    pub(crate) fn new(
        discretisation: &'static str,
        sample: impl Fn(u64, u64) -> Result<Sample, Error> + Send + Sync + 'static,
    ) -> Self {
        Self { discretisation, sample: Box::new(sample) }
    }

    /// Sample `index` of the sequence `seed`, solved finer.
    pub fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error> {
        (self.sample)(seed, index)
    }
}

impl fmt::Debug for Refined {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Refined {{ {} }}", self.discretisation)
    }
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
    /// Given: the positions of the grid points; the last axis holds x and y, and z in three dimensions.
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
    /// The shape of the grid, or `[channels]` for numbers of the whole sample. A time series has the number of snapshots as an additional first axis; positions have x
    /// and y as an additional last axis, and fields of several channels have their number. A profile along x has
    /// `[rows]`.
    pub shape: Vec<usize>,
}

impl FieldKind {
    /// The same field where a cloud of `most` points has `points`; numbers of the whole sample stay. A cloud has more points
    /// than any of its fields has channels.
    #[must_use]
    pub fn on_points(&self, most: usize, points: usize) -> Self {
        let mut kind = self.clone();
        if let Some(extent) = kind.shape.iter_mut().rfind(|extent| **extent == most) {
            *extent = points;
        }
        kind
    }
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

impl Field {
    /// ‖self − reference‖ / ‖reference‖, the relative L2 error against a field of the same shape.
    pub fn relative_error(&self, reference: &Self) -> f64 {
        assert_eq!(self.shape, reference.shape, "the fields {} and {}", self.name, reference.name);
        let size = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
        let pairs = self.values.iter().zip(&reference.values);
        size(&mut pairs.map(|(found, wanted)| found - wanted)) / size(&mut reference.values.iter().copied())
    }
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

    /// This sample at every second node of each refined axis: the axes of a mesh with twice the cells have 2 n − 1 nodes
    /// for the n of `kinds`; all different axes have the same length in both.
    pub(crate) fn at_every_second_node(&self, kinds: &[FieldKind]) -> Self {
        let fields = self.fields.iter().zip(kinds).map(|(fine, kind)| {
            let values = every_second_node(fine, &kind.shape);
            Field { name: kind.name, shape: kind.shape.clone(), values }
        });
        Self { fields: fields.collect(), draws: self.draws }
    }
}

/// The values of `fine` in the shape of a mesh with half the cells; panics if an axis is neither equal nor refined.
fn every_second_node(fine: &Field, shape: &[usize]) -> Vec<f64> {
    assert_eq!(fine.shape.len(), shape.len(), "axes of {}", fine.name);
    let steps: Vec<usize> =
        shape.iter().zip(&fine.shape).map(|(&nodes, &fine)| 1 + usize::from(fine != nodes)).collect();
    for ((nodes, step), &found) in shape.iter().zip(&steps).zip(&fine.shape) {
        assert_eq!(step * (nodes - 1) + 1, found, "nodes of {}", fine.name);
    }
    let position = |mut point: usize| {
        let (mut position, mut size) = (0, 1);
        for axis in (0..shape.len()).rev() {
            position += point % shape[axis] * steps[axis] * size;
            (point, size) = (point / shape[axis], size * fine.shape[axis]);
        }
        position
    };
    (0..shape.iter().product()).map(|point| fine.values[position(point)]).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_node_of_a_refined_mesh_has_the_values_of_the_coarse_mesh() {
        // [times, rows, columns, channels]: two refined axes between two axes that stay
        let at = |shape: [usize; 4], step: usize| {
            let mut values = Vec::new();
            for time in 0..shape[0] {
                for row in 0..shape[1] {
                    for column in 0..shape[2] {
                        values.extend(
                            (0..shape[3]).map(|c| (1000 * time + 100 * row * step + 10 * column * step + c) as f64),
                        );
                    }
                }
            }
            Field { name: "field", shape: shape.to_vec(), values }
        };
        let (coarse, fine) = (at([2, 3, 4, 2], 2), at([2, 5, 7, 2], 1));
        assert_eq!(every_second_node(&fine, &coarse.shape), coarse.values);
        assert_eq!(coarse.relative_error(&coarse), 0.0);
    }
}
