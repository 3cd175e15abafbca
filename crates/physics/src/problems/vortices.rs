//! Two-dimensional flows on a torus as time series of their vorticity: Navier–Stokes, Kolmogorov flow, decaying turbulence.
//!
//! They share the solver, [`Flow`] with adaptive steps, and differ in forcing, friction and first state.

use rand_chacha::ChaCha8Rng;
use rustfft::num_complex::Complex;

use super::navier_stokes::Flow;
use super::{FieldKind, Problem, Refined, Role, Sample, SpatialOrder, thinned};
use crate::Error;
use crate::parameters::Settings;
use crate::random_field::stream;
use crate::spectral::Torus;
use crate::stepping::Trajectory;
use lamo_geometry::Grid;

/// What distinguishes one flow from another.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The name in the registry.
    pub name: &'static str,
    /// The equation at a resolution.
    pub flow: fn(&Settings, usize) -> Flow,
    /// Half spectrum of the random first vorticity.
    pub prior: fn(&Settings, &Torus, &mut ChaCha8Rng) -> Vec<Complex<f64>>,
}

/// The problem with its parameters fixed and its transforms planned.
#[derive(Debug)]
pub struct Vortices {
    setup: Setup,
    settings: Settings,
    stride: usize,
    flow: Flow,
}

impl Vortices {
    /// Refuses a stride that does not divide the resolution.
    pub(super) fn new(setup: Setup, settings: Settings) -> Result<Self, Error> {
        let (resolution, stride) = (settings.whole("resolution"), settings.whole("stride"));
        if resolution % stride != 0 {
            return Err(settings.refuse("stride", format!("a divisor of the resolution, {resolution}"), stride));
        }
        let flow = (setup.flow)(&settings, resolution);
        Ok(Self { setup, settings, stride, flow })
    }
}

impl Problem for Vortices {
    fn name(&self) -> &'static str {
        self.setup.name
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn grid(&self) -> Grid {
        let points = self.flow.torus.points() / self.stride;
        Grid::Plane { rows: points, columns: points }
    }

    fn fields(&self) -> Vec<FieldKind> {
        let plane = self.grid().shape();
        let time_series = [vec![self.settings.whole("frames")], plane.clone()].concat();
        vec![
            FieldKind { name: "initial_vorticity", unit: "1", role: Role::Input, shape: plane },
            FieldKind { name: "vorticity", unit: "1", role: Role::Output, shape: time_series },
        ]
    }

    fn spatial_order(&self) -> SpatialOrder {
        SpatialOrder::Spectral
    }

    fn sample(&self, seed: u64, index: u64) -> Result<Sample, Error> {
        self.continued(self.initial(seed, index)?)
    }

    /// Three halves of the points keep the stored ones if resolution and stride are even; otherwise twice the points do.
    fn refined(&self) -> Result<Option<Refined>, Error> {
        let (resolution, stride) = (self.flow.torus.points(), self.stride);
        let even = resolution % 2 == 0 && stride % 2 == 0;
        let (discretisation, [points, step]) = if even {
            (
                "three halves of the points along each side, the same initial field",
                [resolution, stride].map(|n| 3 * n / 2),
            )
        } else {
            ("twice the points along each side, the same initial field", [resolution, stride].map(|n| 2 * n))
        };
        let fine =
            Self::new(self.setup, self.settings.with("stride", 1)?.with("resolution", points)?.with("stride", step)?)?;
        let stored = Self::new(self.setup, self.settings.clone())?;
        Ok(Some(Refined::new(discretisation, move |seed, index| {
            fine.continued(fine.flow.torus.extended(&stored.flow.torus, &stored.initial(seed, index)?))
        })))
    }
}

impl Vortices {
    /// Half spectrum of ω at t = 0: the prior, after the time `spin_up` where the problem has it.
    fn initial(&self, seed: u64, index: u64) -> Result<Vec<Complex<f64>>, Error> {
        let prior = (self.setup.prior)(&self.settings, &self.flow.torus, &mut stream(seed, index));
        if !self.settings.iter().any(|(parameter, _)| parameter.name == "spin_up") {
            return Ok(prior);
        }
        let mut trajectory = Trajectory::new(self.flow.clone(), prior);
        let duration = self.settings.real("spin_up");
        if duration > 0.0 {
            trajectory.advance(duration, self.settings.real("tolerance"))?;
        }
        Ok(trajectory.state)
    }

    /// The sample that starts from this half spectrum.
    fn continued(&self, initial: Vec<Complex<f64>>) -> Result<Sample, Error> {
        let torus = &self.flow.torus;
        let store = |half: &[Complex<f64>]| thinned(&torus.values(half), torus.points(), self.stride);
        let mut trajectory = Trajectory::new(self.flow.clone(), initial);
        let initial = store(&trajectory.state);
        let mut snapshots = Vec::new();
        for _snapshot in 0..self.settings.whole("frames") {
            trajectory.advance(self.settings.real("interval"), self.settings.real("tolerance"))?;
            snapshots.extend(store(&trajectory.state));
        }
        Ok(Sample::new(self.fields(), [initial, snapshots]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problems::{kolmogorov, turbulence};

    /// Shifts keep all norms, so the steps are the same; the shifted flow differs by rounding alone.
    #[test]
    fn the_flow_from_a_shifted_start_is_the_shifted_flow() {
        for (row, setup) in [(kolmogorov::ROW, kolmogorov::SETUP), (turbulence::ROW, turbulence::SETUP)] {
            let changes: Vec<&str> = row.small.iter().copied().chain(["stride=1"]).collect();
            let problem = Vortices::new(setup, Settings::new(row.name, row.parameters, &changes).unwrap()).unwrap();
            let torus = &problem.flow.torus;
            let start = problem.initial(3, 1).unwrap();
            let plain = problem.continued(start.clone()).unwrap();
            let all = row.symmetries(&changes).unwrap();
            assert!(all.len() > 1);
            for symmetry in all.iter().step_by(3) {
                let values = torus.values(&start);
                let moved: Vec<f64> = symmetry.points.iter().map(|&point| values[point as usize]).collect();
                let found = problem.continued(torus.spectrum(&moved)).unwrap();
                let wanted = symmetry.apply(problem.grid(), &plain);
                for (found, wanted) in found.fields.iter().zip(&wanted.fields) {
                    let error = found.relative_error(wanted);
                    assert!(error < 1e-10, "{} {}: {error:e}", row.name, found.name);
                }
            }
        }
    }
}
