//! Equations on a circle or torus as time series: u_t = L u + N(u) by Fourier series and ETDRK4.
//!
//! A file of an equation gives its [`Equation`]: the linear symbol, the nonlinear term and the random first state.
//! This file makes samples of it: it draws the first state, lets it run for a while if the equation asks for it, and
//! stores the fields at t = 0 and in `frames` snapshots, at every `stride`-th point.

use rand_chacha::ChaCha8Rng;
use rustfft::num_complex::Complex;

use super::{Field, FieldKind, Problem, Refined, Role, Sample, SpatialOrder};
use crate::Error;
use crate::exponential::{Exponential, Nonlinear};
use crate::parameters::{Kind, Parameter, Settings};
use crate::periodic::Domain;
use crate::random_field::stream;
use crate::symmetry::{Component, Symmetry};
use lamo_geometry::Grid;

/// The right-hand side of an equation on a domain, for fields that stand one after the other.
pub trait RightSide: Nonlinear + std::fmt::Debug + Send + Sync {
    /// L of each coefficient of each field.
    fn symbol(&self) -> Vec<Complex<f64>>;
}

/// What distinguishes one equation from another.
#[derive(Clone, Copy, Debug)]
pub struct Equation {
    /// The name in the registry.
    pub name: &'static str,
    /// Name of each field at t = 0, and in the snapshots.
    pub fields: &'static [[&'static str; 2]],
    /// The right-hand side on a domain.
    pub right_side: fn(&Settings, &Domain) -> Box<dyn RightSide>,
    /// Random values of each field at the points of a domain.
    pub start: fn(&Settings, &Domain, &mut ChaCha8Rng) -> Vec<Vec<f64>>,
    /// Whether one step of any length is exact, so that no finer discretisation is closer.
    pub exact: bool,
}

/// The parameters that all these equations have, with their defaults. `steps` counts time steps per snapshot.
pub(super) const fn sizes([points, stride, frames, steps]: [usize; 4], interval: f64) -> [Parameter; 5] {
    [
        Parameter {
            name: "resolution",
            kind: Kind::Whole { default: points, least: 8, most: 65_536 },
            unit: "1",
            meaning: "points of the solver along each side; it resolves wave numbers up to a third of this",
        },
        Parameter {
            name: "stride",
            kind: Kind::Whole { default: stride, least: 1, most: 65_536 },
            unit: "1",
            meaning: "store every stride-th point along each side; it must divide the resolution",
        },
        Parameter {
            name: "frames",
            kind: Kind::Whole { default: frames, least: 1, most: 100_000 },
            unit: "1",
            meaning: "number of snapshots after the initial one",
        },
        Parameter {
            name: "interval",
            kind: Kind::Positive { default: interval },
            unit: "1",
            meaning: "time between two snapshots",
        },
        Parameter {
            name: "steps",
            kind: Kind::Whole { default: steps, least: 1, most: 1_000_000 },
            unit: "1",
            meaning: "time steps from one snapshot to the next",
        },
    ]
}

/// The parameters that all two-dimensional flows have; their steps are adaptive.
pub(super) const fn sizes_of_flow([points, stride, frames]: [usize; 3], interval: f64) -> [Parameter; 5] {
    let [points, stride, frames, interval, _] = sizes([points, stride, frames, 1], interval);
    let tolerance = Parameter {
        name: "tolerance",
        kind: Kind::Positive { default: 1e-4 },
        unit: "1",
        meaning: "largest relative error per unit of time that the step control accepts",
    };
    [points, stride, frames, interval, tolerance]
}

/// A parameter without a unit.
pub(super) const fn real(name: &'static str, kind: Kind, meaning: &'static str) -> Parameter {
    Parameter { name, kind, unit: "1", meaning }
}

/// An equation with its parameters fixed.
#[derive(Debug)]
pub struct Series {
    equation: Equation,
    settings: Settings,
    domain: Domain,
    stride: usize,
    right_side: Box<dyn RightSide>,
    exponential: Exponential,
}

/// 1 on a line, 2 on a plane, where an equation has the parameter.
pub(super) fn dimensions(settings: &Settings) -> usize {
    if settings.iter().any(|(parameter, _)| parameter.name == "dimensions") { settings.whole("dimensions") } else { 1 }
}

impl Series {
    /// Refuses a stride that does not divide the resolution.
    pub(super) fn new(equation: Equation, settings: Settings, dimensions: usize) -> Result<Self, Error> {
        let (resolution, stride) = (settings.whole("resolution"), settings.whole("stride"));
        if resolution % stride != 0 {
            return Err(settings.refuse("stride", format!("a divisor of the resolution, {resolution}"), stride));
        }
        let frames = settings.whole("frames");
        // An array [frames, points] could not be told from [points, channels].
        if dimensions == 1 && frames == resolution / stride {
            return Err(settings.refuse("frames", format!("another number than the {frames} stored points"), frames));
        }
        let domain = Domain::new(dimensions, resolution);
        let right_side = (equation.right_side)(&settings, &domain);
        let step = settings.real("interval") / settings.whole("steps") as f64;
        let exponential = Exponential::new(&right_side.symbol(), step);
        Ok(Self { equation, settings, domain, stride, right_side, exponential })
    }

    /// The first state as half spectra, one field after the other.
    fn start(&self, seed: u64, index: u64) -> Vec<Complex<f64>> {
        let values = (self.equation.start)(&self.settings, &self.domain, &mut stream(seed, index));
        values.iter().flat_map(|field| self.domain.spectrum(field)).collect()
    }

    /// Every `stride`-th point of one field.
    fn stored(&self, half: &[Complex<f64>]) -> Vec<f64> {
        let (values, side) = (self.domain.values(half), self.domain.side());
        if self.domain.dimensions() == 2 {
            return super::thinned(&values, side, self.stride);
        }
        values.into_iter().step_by(self.stride).collect()
    }

    /// The sample that starts from these half spectra.
    fn continued(&self, mut state: Vec<Complex<f64>>) -> Result<Sample, Error> {
        let (length, snapshots) = (self.domain.half_length(), self.settings.whole("frames"));
        self.spin_up(&mut state)?;
        let parts = |state: &[Complex<f64>]| state.chunks(length).map(|half| self.stored(half)).collect::<Vec<_>>();
        let initial = parts(&state);
        let mut series = vec![Vec::new(); initial.len()];
        for snapshot in 1..=snapshots {
            self.exponential.advance(self.right_side.as_ref(), &mut state, self.settings.whole("steps"));
            self.check(&state, snapshot as f64 * self.settings.real("interval"))?;
            series.iter_mut().zip(parts(&state)).for_each(|(series, part)| series.extend(part));
        }
        let values = initial.into_iter().chain(series);
        let fields = self.fields().into_iter().zip(values);
        let fields = fields.map(|(kind, values)| Field { name: kind.name, shape: kind.shape, values }).collect();
        Ok(Sample { fields, draws: 1 })
    }

    /// Lets the state run for as many intervals as `spin_up` says, where the equation has it.
    fn spin_up(&self, state: &mut [Complex<f64>]) -> Result<(), Error> {
        let has = self.settings.iter().any(|(parameter, _)| parameter.name == "spin_up");
        let intervals = if has { self.settings.whole("spin_up") } else { 0 };
        self.exponential.advance(self.right_side.as_ref(), state, intervals * self.settings.whole("steps"));
        self.check(state, 0.0)
    }

    /// Refuses a state that has overflowed: the steps were too long.
    fn check(&self, state: &[Complex<f64>], time: f64) -> Result<(), Error> {
        let size = state.iter().map(Complex::norm_sqr).sum::<f64>();
        if size.is_finite() {
            return Ok(());
        }
        let expected = "a finite state; give more `steps`";
        Err(Error::Unphysical { system: self.equation.name, time, expected, found: size })
    }
}

impl Problem for Series {
    fn name(&self) -> &'static str {
        self.equation.name
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn grid(&self) -> Grid {
        let side = self.domain.side() / self.stride;
        match self.domain {
            Domain::Circle(_) => Grid::Line { points: side },
            Domain::Torus(_) => Grid::Plane { rows: side, columns: side },
        }
    }

    fn fields(&self) -> Vec<FieldKind> {
        let (grid, names) = (self.grid().shape(), self.equation.fields.iter());
        let series = [vec![self.settings.whole("frames")], grid.clone()].concat();
        let given = names.clone().map(|[name, _]| (name, Role::Input, &grid));
        let asked = names.map(|[_, name]| (name, Role::Output, &series));
        given
            .chain(asked)
            .map(|(name, role, shape)| FieldKind { name, unit: "1", role, shape: shape.clone() })
            .collect()
    }

    fn spatial_order(&self) -> SpatialOrder {
        SpatialOrder::Spectral
    }

    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error> {
        self.continued(self.start(seed, index))
    }

    /// Three halves of the points keep the stored ones if resolution and stride are even; otherwise twice the points do.
    fn refined(&self) -> Result<Option<Refined>, Error> {
        if self.equation.exact {
            return Ok(None);
        }
        let (resolution, stride) = (self.domain.side(), self.stride);
        let even = resolution % 2 == 0 && stride % 2 == 0;
        let (discretisation, [points, thin]) = if even {
            (
                "three halves of the points along each side, half of the time step",
                [resolution, stride].map(|n| 3 * n / 2),
            )
        } else {
            ("twice the points along each side, half of the time step", [resolution, stride].map(|n| 2 * n))
        };
        let settings = self.settings.with("stride", 1)?.with("resolution", points)?.with("stride", thin)?;
        let dimensions = self.domain.dimensions();
        let fine = Self::new(self.equation, settings.with("steps", 2 * self.settings.whole("steps"))?, dimensions)?;
        let stored = Self::new(self.equation, self.settings.clone(), dimensions)?;
        Ok(Some(Refined::new(discretisation, move |seed, index| {
            // The run before t = 0 is part of the first state: chaos would make another one of it.
            let mut start = stored.start(seed, index);
            stored.spin_up(&mut start)?;
            let parts = start.chunks(stored.domain.half_length());
            fine.begun_at(parts.flat_map(|half| fine.domain.extended(&stored.domain, half)).collect())
        })))
    }
}

impl Series {
    /// The sample whose state at t = 0 is this one.
    fn begun_at(&self, state: Vec<Complex<f64>>) -> Result<Sample, Error> {
        let has = self.settings.iter().any(|(parameter, _)| parameter.name == "spin_up");
        let settings = if has { self.settings.with("spin_up", 0)? } else { self.settings.clone() };
        Self::new(self.equation, settings, self.domain.dimensions())?.continued(state)
    }
}

/// Shifts along each axis, and where `odd`, the mirror x → −x with u → −u of all fields.
///
/// Shifts by any number of points are symmetries. The declared ones are by a 64th of a circle and by an eighth of each
/// side of a torus, or by one point where these are no whole numbers of points, so that their number stays small.
pub(super) fn symmetries(
    settings: &Settings,
    dimensions: usize,
    fields: &[[&'static str; 2]],
    odd: bool,
) -> (usize, Vec<Symmetry>) {
    let side = settings.whole("resolution") / settings.whole("stride").max(1);
    let parts = if dimensions == 2 { 8 } else { 64 };
    let step = if side.is_multiple_of(parts) { side / parts } else { 1 };
    if dimensions == 2 {
        let shift = |rows: usize, columns: usize| {
            let source = move |row: usize, column: usize| [(row + rows) % side, (column + columns) % side];
            Symmetry::of_plane([side; 2], source, Vec::new())
        };
        return (side * side, vec![shift(step, 0), shift(0, step)]);
    }
    let map = |source: &dyn Fn(usize) -> usize, fields| Symmetry {
        points: (0..side).map(|point| source(point) as u32).collect(),
        fields,
    };
    let mut generators = vec![map(&|point| (point + step) % side, Vec::new())];
    if odd {
        let turned = Component { source: 0, sign: -1.0, shift: 0.0 };
        let fields = fields.iter().flatten().map(|name| (*name, vec![turned])).collect();
        generators.push(map(&|point| (side - point) % side, fields));
    }
    (side, generators)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problems::{Row, advection_diffusion, burgers, gray_scott, kdv, kuramoto_sivashinsky, shallow_water};

    /// Series from transformed first states; roundings of 1e-16 grow in chaos and in a few hundred steps.
    #[test]
    fn the_series_from_a_transformed_start_is_the_transformed_series() {
        let rows: [(Row, usize); 6] = [
            (advection_diffusion::ROW, 1),
            (burgers::ROW, 1),
            (kdv::ROW, 1),
            (kuramoto_sivashinsky::ROW, 1),
            (gray_scott::ROW, 2),
            (shallow_water::ROW, 2),
        ];
        for (row, dimensions) in rows {
            let changes: Vec<&str> = row.small.iter().copied().chain(["stride=1"]).collect();
            let settings = Settings::new(row.name, row.parameters, &changes).unwrap();
            let equation = match row.name {
                "advection-diffusion" => advection_diffusion::EQUATION,
                "burgers" => burgers::EQUATION,
                "kdv" => kdv::EQUATION,
                "kuramoto-sivashinsky" => kuramoto_sivashinsky::EQUATION,
                "gray-scott" => gray_scott::EQUATION,
                _ => shallow_water::EQUATION,
            };
            let series = Series::new(equation, settings, dimensions).unwrap();
            let (start, length) = (series.start(2, 1), series.domain.half_length());
            let plain = series.continued(start.clone()).unwrap();
            let all = row.symmetries(&changes).unwrap();
            assert!(all.len() > 1, "{}", row.name);
            for symmetry in all.iter().step_by(7) {
                let turned = start.chunks(length).zip(equation.fields).flat_map(|(half, [name, _])| {
                    let values = series.domain.values(half);
                    let sign = symmetry.components(name).map_or(1.0, |components| components[0].sign);
                    let moved: Vec<f64> = symmetry.points.iter().map(|&point| sign * values[point as usize]).collect();
                    series.domain.spectrum(&moved)
                });
                let found = series.continued(turned.collect()).unwrap();
                let wanted = symmetry.apply(series.grid(), &plain);
                for (found, wanted) in found.fields.iter().zip(&wanted.fields) {
                    let sum: f64 = wanted.values.iter().map(|value| value * value).sum();
                    let error = if sum == 0.0 { 0.0 } else { found.relative_error(wanted) };
                    assert!(error < 1e-9, "{} {}: {error:e}", row.name, found.name);
                }
            }
        }
    }
}
