//! Darcy flow −∇·(a ∇u) = f on the unit square, u = 0 on its border (Li et al. 2021, the FNO benchmark).
//!
//! In: a, which has one value where a Gaussian random field is below zero and another value elsewhere. Out: u at the
//! cell centres (i + 1/2) / resolution. The solver uses cell-centred finite volumes with harmonic means of a on the
//! faces; the walls are half a cell away from the outermost centres. `canonical=true` repeats the recipe of the public
//! files (`solve_gwf.m`) instead, which is less accurate: splines from centres to nodes, a five-point scheme with
//! arithmetic means on faces, and splines back to the centres.

use super::{FieldKind, Problem, Refined, Role, Row, Sample, SpatialOrder, thinned};
use crate::Error;
use crate::five_point::{Conductances, FivePoint};
use crate::parameters::{Kind, Parameter, Settings};
use crate::random_field::{Covariance, stream};
use crate::spline::Spline;
use crate::symmetry::Symmetry;
use lamo_geometry::Grid;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "darcy",
    equation: "-div(a grad u) = f on the unit square, u = 0 on the border",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["resolution=24"],
    build: |settings| Ok(Box::new(Darcy::new(settings)?)),
    symmetries,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "resolution",
        kind: Kind::Whole { default: 421, least: 4, most: 4096 },
        unit: "1",
        meaning: "cells along each side",
    },
    Parameter {
        name: "stride",
        kind: Kind::Whole { default: 1, least: 1, most: 4096 },
        unit: "1",
        meaning: "store every stride-th row and column, starting with the first one",
    },
    Parameter {
        name: "high",
        kind: Kind::Positive { default: 12.0 },
        unit: "1",
        meaning: "value of a where the random field is 0 or above",
    },
    Parameter {
        name: "low",
        kind: Kind::Positive { default: 3.0 },
        unit: "1",
        meaning: "value of a where the random field is below 0",
    },
    Parameter {
        name: "alpha",
        kind: Kind::Positive { default: 2.0 },
        unit: "1",
        meaning: "smoothness of the random field, covariance tau^(2 alpha - 2) (-Laplacian + tau^2)^(-alpha)",
    },
    Parameter {
        name: "tau",
        kind: Kind::Positive { default: 3.0 },
        unit: "1",
        meaning: "inverse correlation length of the random field",
    },
    Parameter { name: "forcing", kind: Kind::Real { default: 1.0 }, unit: "1", meaning: "f, a constant" },
    Parameter {
        name: "canonical",
        kind: Kind::Switch { default: false },
        unit: "1",
        meaning: "solve as in the public files: splines to a grid of nodes, a five-point scheme, splines back",
    },
];

/// The mirrors and turns of the square. Where the stored rows do not lie evenly in it, only the exchange of x and y maps
/// them onto each other.
fn symmetries(settings: &Settings) -> (usize, Vec<Symmetry>) {
    let (resolution, stride) = (settings.whole("resolution"), settings.whole("stride"));
    let side = resolution.div_ceil(stride);
    let plane = |source: fn(usize, usize, usize) -> [usize; 2]| {
        Symmetry::of_plane([side; 2], |row, column| source(side - 1, row, column), Vec::new())
    };
    let mut generators = vec![plane(|_, row, column| [column, row])];
    if (resolution - 1).is_multiple_of(stride) {
        generators.push(plane(|last, row, column| [last - row, column]));
    }
    (side * side, generators)
}

/// The problem with its parameters fixed and its matrix pattern analysed.
#[derive(Debug)]
pub struct Darcy {
    settings: Settings,
    resolution: usize,
    stride: usize,
    scheme: Scheme,
}

#[derive(Debug)]
enum Scheme {
    Volumes(Volumes),
    Canonical(Canonical),
}

impl Darcy {
    fn new(settings: Settings) -> Result<Self, Error> {
        let (resolution, stride) = (settings.whole("resolution"), settings.whole("stride"));
        if stride > resolution {
            return Err(settings.refuse("stride", format!("at most the resolution, {resolution}"), stride));
        }
        let scheme = if settings.switch("canonical") {
            Scheme::Canonical(Canonical::new(resolution)?)
        } else {
            Scheme::Volumes(Volumes::new(resolution)?)
        };
        Ok(Self { settings, resolution, stride, scheme })
    }

    /// The problem with some of its parameters changed, as `key=value`.
    pub fn with<Text: AsRef<str>>(changes: &[Text]) -> Result<Self, Error> {
        Self::new(Settings::new(ROW.name, PARAMETERS, changes)?)
    }

    /// Cells along each side.
    pub fn resolution(&self) -> usize {
        self.resolution
    }

    /// The pressure at the stored points, where the permeability > 0 of all cells is given, `[resolution, resolution]`.
    pub fn pressure(&self, permeability: &[f64]) -> Result<Vec<f64>, Error> {
        let source = vec![self.settings.real("forcing"); permeability.len()];
        let pressure = match &self.scheme {
            Scheme::Volumes(volumes) => volumes.solve(permeability, &source)?,
            Scheme::Canonical(canonical) => canonical.solve(permeability, &source)?,
        };
        Ok(thinned(&pressure, self.resolution, self.stride))
    }
}

impl Problem for Darcy {
    fn name(&self) -> &'static str {
        ROW.name
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn grid(&self) -> Grid {
        let points = self.resolution.div_ceil(self.stride);
        Grid::Plane { rows: points, columns: points }
    }

    fn fields(&self) -> Vec<FieldKind> {
        let shape = self.grid().shape();
        vec![
            FieldKind { name: "permeability", unit: "1", role: Role::Input, shape: shape.clone() },
            FieldKind { name: "pressure", unit: "1", role: Role::Output, shape },
        ]
    }

    fn spatial_order(&self) -> SpatialOrder {
        SpatialOrder::Algebraic(2.0)
    }

    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error> {
        let permeability = medium(&self.settings, seed, index);
        let pressure = self.pressure(&permeability)?;
        Ok(Sample::new(self.fields(), [thinned(&permeability, self.resolution, self.stride), pressure]))
    }

    fn refined(&self) -> Result<Option<Refined>, Error> {
        let (settings, kinds) = (self.settings.clone(), self.fields());
        let (cells, stride) = (self.resolution, self.stride);
        let volumes = Volumes::new(2 * cells)?;
        let discretisation = "finite volumes, each cell of the same medium divided into four";
        Ok(Some(Refined::new(discretisation, move |seed, index| {
            let permeability = medium(&settings, seed, index);
            let pressure = divided(&volumes, &permeability, settings.real("forcing"))?;
            let store = |plane: &[f64]| thinned(plane, cells, stride);
            Ok(Sample::new(kinds.clone(), [store(&permeability), store(&pressure)]))
        })))
    }
}

/// `[resolution, resolution]` the permeability of a sample.
fn medium(settings: &Settings, seed: u64, index: u64) -> Vec<f64> {
    let real = |key| settings.real(key);
    let covariance = Covariance { alpha: real("alpha"), tau: real("tau") };
    let level = covariance.neumann(settings.whole("resolution"), &mut stream(seed, index));
    let (high, low) = (real("high"), real("low"));
    level.iter().map(|&value| if value >= 0.0 { high } else { low }).collect()
}

/// u at the centres of the cells of a medium, solved with each cell divided into four.
///
/// The centre is the common corner of its four parts. Their mean is u + h² Δu / 32 up to h⁴, and Δu = −f / a because a is
/// constant in the cell.
pub fn divided(volumes: &Volumes, permeability: &[f64], forcing: f64) -> Result<Vec<f64>, Error> {
    let fine = volumes.cells;
    let cells = fine / 2;
    let parts: Vec<f64> =
        (0..fine * fine).map(|part| permeability[part / fine / 2 * cells + part % fine / 2]).collect();
    let solved = volumes.solve(&parts, &vec![forcing; fine * fine])?;
    let centre = |cell: usize| {
        let first = 2 * (cell / cells) * fine + 2 * (cell % cells);
        let mean =
            [first, first + 1, first + fine, first + fine + 1].map(|part| solved[part]).iter().sum::<f64>() / 4.0;
        mean + forcing / permeability[cell] / (32 * cells * cells) as f64
    };
    Ok((0..cells * cells).map(centre).collect())
}

/// Finite volumes on `cells` × `cells` squares.
#[derive(Debug)]
pub struct Volumes {
    cells: usize,
    system: FivePoint,
}

impl Volumes {
    /// Analyses the matrix pattern; one analysis serves all coefficients.
    pub fn new(cells: usize) -> Result<Self, Error> {
        Ok(Self { cells, system: FivePoint::new(cells, cells)? })
    }

    /// `[cells, cells]` u at the cell centres, where a > 0 and f are given.
    pub fn solve(&self, permeability: &[f64], forcing: &[f64]) -> Result<Vec<f64>, Error> {
        let volume = (self.cells as f64).powi(-2);
        let source: Vec<f64> = forcing.iter().map(|value| value * volume).collect();
        self.system.solve_positive(&self.conductances(permeability), &source)
    }

    /// The resistance of half a cell is 1 / 2a. Two half cells in series meet at a face, one half cell at a wall.
    pub fn conductances(&self, permeability: &[f64]) -> Conductances {
        let cells = self.cells;
        let resistance = |row: usize, column: usize| {
            let inside = row < cells && column < cells; // the index before 0 wraps around to a huge number
            if inside { 0.5 / permeability[row * cells + column] } else { 0.0 }
        };
        Conductances::new(
            cells,
            cells,
            |row, column| 1.0 / (resistance(row.wrapping_sub(1), column) + resistance(row, column)),
            |row, column| 1.0 / (resistance(row, column.wrapping_sub(1)) + resistance(row, column)),
        )
    }
}

/// The recipe of the public files on `points` × `points` values.
#[derive(Debug)]
pub struct Canonical {
    points: usize,
    to_nodes: Spline,
    to_centres: Spline,
    system: FivePoint,
}

impl Canonical {
    /// Prepares the splines and analyses the matrix pattern.
    pub fn new(points: usize) -> Result<Self, Error> {
        let (cell, spacing) = (1.0 / points as f64, 1.0 / (points - 1) as f64);
        Ok(Self {
            points,
            to_nodes: Spline::new(points, 0.5 * cell, cell, (0..points).map(|i| i as f64 * spacing)),
            to_centres: Spline::new(points, 0.0, spacing, (0..points).map(|i| (i as f64 + 0.5) * cell)),
            system: FivePoint::new(points - 2, points - 2)?, // u is zero at the border nodes
        })
    }

    /// `[points, points]` u at the cell centres, where a and f are given.
    pub fn solve(&self, permeability: &[f64], forcing: &[f64]) -> Result<Vec<f64>, Error> {
        let points = self.points;
        let inside = points - 2;
        let volume = ((points - 1) as f64).powi(-2);
        let node_permeability = self.to_nodes.plane(permeability);
        let node_forcing = self.to_nodes.plane(forcing);
        let interior = || (0..inside * inside).map(|k| (k / inside + 1) * points + k % inside + 1);
        let source: Vec<f64> = interior().map(|node| node_forcing[node] * volume).collect();
        let solution = self.system.solve_indefinite(&mean_conductances(points, &node_permeability), &source)?;
        let mut nodes = vec![0.0; points * points];
        interior().zip(solution).for_each(|(node, value)| nodes[node] = value);
        Ok(self.to_centres.plane(&nodes))
    }
}

/// Arithmetic means of neighbouring nodes, for the (points − 2)² inner nodes; overshooting splines can make them
/// negative.
fn mean_conductances(points: usize, permeability: &[f64]) -> Conductances {
    let mean = |first: usize, second: usize| 0.5 * (permeability[first] + permeability[second]);
    Conductances::new(
        points - 2,
        points - 2,
        |row, column| mean(row * points + column + 1, (row + 1) * points + column + 1),
        |row, column| mean((row + 1) * points + column, (row + 1) * points + column + 1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problems::Field;

    /// Both schemes on media of their own; the factorisations round in another order, by a few hundred units of 1e-16.
    #[test]
    fn the_pressure_in_a_mirrored_or_turned_medium_is_mirrored_or_turned() {
        for canonical in [false, true] {
            let changes = [format!("canonical={canonical}"), "resolution=21".to_owned()];
            let settings = Settings::new(ROW.name, PARAMETERS, &changes).unwrap();
            let problem = Darcy::new(settings.clone()).unwrap();
            let all = ROW.symmetries(&changes).unwrap();
            assert_eq!(all.len(), 8);
            let sample = problem.sample(3, 1).unwrap();
            for symmetry in &all {
                let moved = symmetry.apply(problem.grid(), &sample);
                let source = vec![settings.real("forcing"); 21 * 21];
                let found = match &problem.scheme {
                    Scheme::Volumes(volumes) => volumes.solve(&moved.fields[0].values, &source),
                    Scheme::Canonical(canonical) => canonical.solve(&moved.fields[0].values, &source),
                };
                let found = Field { values: found.unwrap(), ..moved.fields[1].clone() };
                let error = found.relative_error(&moved.fields[1]);
                assert!(error < 1e-12, "canonical {canonical}: {error:e}");
            }
        }
    }

    #[test]
    fn only_rows_that_lie_evenly_in_the_square_can_be_mirrored() {
        let order = |changes: &[&str]| ROW.symmetries(changes).unwrap().len();
        assert_eq!(order(&["resolution=421", "stride=5"]), 8);
        assert_eq!(order(&["resolution=24", "stride=5"]), 2);
        let plane: Vec<f64> = (0..441).map(f64::from).collect();
        let fine = ROW.symmetries(&["resolution=21"]).unwrap();
        let field = |values| Field { name: "pressure", shape: Vec::new(), values };
        for (fine, coarse) in fine.iter().zip(ROW.symmetries(&["resolution=21", "stride=5"]).unwrap()) {
            let moved: Vec<f64> = fine.points.iter().map(|&point| plane[point as usize]).collect();
            let stored = thinned(&plane, 21, 5);
            let then: Vec<f64> = coarse.points.iter().map(|&point| stored[point as usize]).collect();
            assert_eq!(field(thinned(&moved, 21, 5)), field(then));
        }
    }
}
