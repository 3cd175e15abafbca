//! Navier-Stokes vorticity on the unit torus: ω_t + u·∇ω = ν Δω + f, u = (ψ_y, −ψ_x), −Δψ = ω (Li et al. 2021).
//!
//! In: ω at t = 0, a Gaussian random field. Out: ω at `frames` later times. f = forcing · (sin + cos) 2π(x + y). The
//! discretisation is Fourier-Galerkin with 2/3 dealiasing. With the complex velocity z = u + iv and the complex wave
//! number κ = kx + i ky,
//!   ẑ = κ ω̂ / |κ|²   and   (−u·∇ω)^ = (g(k) − conj g(−k)) / 4i,  g = κ̄² (z²)^,
//! because −∇·(uω) = (∂yy − ∂xx)(uv) − ∂xy(v² − u²): one complex transform each way per evaluation.

use std::f64::consts::TAU;

use rustfft::num_complex::Complex;

use super::Row;
use super::vortices::{Setup, Vortices};
use crate::parameters::{Kind, Parameter, Settings};
use crate::random_field::Covariance;
use crate::spectral::{Torus, Workspace};
use crate::stepping::Semilinear;
use crate::symmetry::{Component, Symmetry};

/// The row of the registry.
pub const ROW: Row = Row {
    name: "navier-stokes",
    equation: "w_t + u.grad w = nu Laplacian w + f on the unit torus, u = (psi_y, -psi_x), -Laplacian psi = w",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["resolution=32", "stride=2", "frames=3", "interval=0.1", "viscosity=1e-3"],
    build: |settings| Ok(Box::new(Vortices::new(SETUP, settings)?)),
    symmetries,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "resolution",
        kind: Kind::Whole { default: 256, least: 8, most: 4096 },
        unit: "1",
        meaning: "points of the solver along each side; it resolves wave numbers up to a third of this",
    },
    Parameter {
        name: "stride",
        kind: Kind::Whole { default: 4, least: 1, most: 4096 },
        unit: "1",
        meaning: "store every stride-th row and column; it must divide the resolution",
    },
    Parameter { name: "viscosity", kind: Kind::NonNegative { default: 1e-5 }, unit: "1", meaning: "viscosity nu" },
    Parameter {
        name: "frames",
        kind: Kind::Whole { default: 20, least: 1, most: 100_000 },
        unit: "1",
        meaning: "number of snapshots after the initial one",
    },
    Parameter {
        name: "interval",
        kind: Kind::Positive { default: 1.0 },
        unit: "1",
        meaning: "time between two snapshots",
    },
    Parameter {
        name: "forcing",
        kind: Kind::Real { default: 0.1 },
        unit: "1",
        meaning: "amplitude of the steady forcing (sin + cos)(2 pi (x + y))",
    },
    Parameter {
        name: "alpha",
        kind: Kind::Positive { default: 2.5 },
        unit: "1",
        meaning: "smoothness of the initial field, covariance 2 tau^(2 alpha - 2) (-Laplacian + tau^2)^(-alpha)",
    },
    Parameter {
        name: "tau",
        kind: Kind::Positive { default: 7.0 },
        unit: "1",
        meaning: "inverse correlation length of the initial field",
    },
    Parameter {
        name: "tolerance",
        kind: Kind::Positive { default: 1e-4 },
        unit: "1",
        meaning: "largest relative error per unit of time that the step control accepts",
    },
];

/// The symmetries of the forcing f(x + y), f(s + 1/2) = −f(s) = −f(−s − 1/4 ± 1/2): shifts by (a, −a),
/// ω′(x, y) = ω(1/4 − x, −y), and ω′(x, y) = −ω(y + 1/2, x), as an exchange of x and y turns the vorticity over.
/// 4 n of them map a lattice of n × n points onto itself, fewer where n is no multiple of 4.
fn symmetries(settings: &Settings) -> (usize, Vec<Symmetry>) {
    let side = settings.whole("resolution") / settings.whole("stride");
    let plane = |source: &dyn Fn(usize, usize) -> [usize; 2], sign: f64| {
        let sign = Component { source: 0, sign, shift: 0.0 };
        let both = if sign.sign < 0.0 {
            vec![("initial_vorticity", vec![sign]), ("vorticity", vec![sign])]
        } else {
            Vec::new()
        };
        Symmetry::of_plane([side; 2], |row, column| source(row, column).map(|place| place % side), both)
    };
    let mut generators = vec![plane(&|row, column| [row + 1, column + side - 1], 1.0)];
    if side.is_multiple_of(2) {
        generators.push(plane(&|row, column| [column + side / 2, row], -1.0));
    }
    if side.is_multiple_of(4) {
        generators.push(plane(&|row, column| [side / 4 + side - row, side - column], 1.0));
    }
    (side * side, generators)
}

const SETUP: Setup = Setup {
    name: ROW.name,
    flow: |settings, resolution| {
        let mut flow = Flow::new(resolution, settings.real("viscosity"));
        flow.force(settings.real("forcing"));
        flow
    },
    // The random field without the wave numbers above the 2/3 limit (0.1 to 0.2 % of it at 256²).
    prior: |settings, torus, random| {
        let covariance = Covariance { alpha: settings.real("alpha"), tau: settings.real("tau") };
        torus.spectrum(&covariance.periodic(torus.points(), random))
    },
};

/// The equation in Fourier space.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The transforms.
    pub torus: Torus,
    viscosity: f64,
    /// Rate at which friction with the ground slows the flow down.
    drag: f64,
    /// κ / |κ|²: maps ω̂ to ẑ
    velocity: Vec<Complex<f64>>,
    /// κ̄² / (4i points²): maps (z²)^ to the advection term
    advection: Vec<Complex<f64>>,
    forcing: Vec<Complex<f64>>,
    work: Workspace,
}

impl Flow {
    /// A flow without forcing on `points` × `points` points.
    pub fn new(points: usize, viscosity: f64) -> Self {
        let torus = Torus::new(points);
        let normalisation = Complex::i() * 4.0 * (points * points) as f64;
        let wave_numbers: Vec<_> =
            torus.half_wave_numbers().map(|(kx, ky)| Complex::new(kx as f64, ky as f64) * TAU).collect();
        let inverse = |kappa: &Complex<f64>| if kappa.norm_sqr() == 0.0 { 0.0 } else { kappa.norm_sqr().recip() };
        Self {
            viscosity,
            drag: 0.0,
            velocity: wave_numbers.iter().map(|kappa| kappa * inverse(kappa)).collect(),
            advection: wave_numbers.iter().map(|kappa| kappa.conj().powi(2) / normalisation).collect(),
            forcing: vec![Complex::default(); torus.half_length()],
            work: torus.workspace(),
            torus,
        }
    }

    /// Adds the forcing `amplitude` · (sin 2π(x + y) + cos 2π(x + y)).
    pub fn force(&mut self, amplitude: f64) {
        let coefficient = Complex::new(0.5, -0.5) * amplitude;
        for (wave, value) in self.torus.half_wave_numbers().zip(&mut self.forcing) {
            if wave == (1, 1) {
                *value += coefficient;
            }
        }
    }

    /// Adds `amplitude` · cos 2π(kx x + ky y), ky > 0.
    pub fn force_wave(&mut self, wave: (i64, i64), amplitude: f64) {
        for (found, value) in self.torus.half_wave_numbers().zip(&mut self.forcing) {
            if found == wave {
                *value += 0.5 * amplitude;
            }
        }
    }

    /// Adds the friction −`rate` · ω.
    pub fn slow(&mut self, rate: f64) {
        self.drag += rate;
    }

    /// Mean over the torus of the product of two real fields given as half spectra (Parseval).
    pub fn mean_product(&self, first: &[Complex<f64>], second: &[Complex<f64>]) -> f64 {
        let weights = self.torus.half_weights();
        weights.zip(first.iter().zip(second)).map(|(weight, (a, b))| weight * (a * b.conj()).re).sum()
    }

    /// ψ from ω.
    pub fn stream_function(&self, vorticity: &[Complex<f64>]) -> Vec<Complex<f64>> {
        vorticity.iter().zip(&self.velocity).map(|(value, factor)| value * factor.norm_sqr()).collect()
    }

    /// f as a half spectrum.
    pub fn forcing(&self) -> &[Complex<f64>] {
        &self.forcing
    }
}

impl Semilinear for Flow {
    /// exp(−(ν |κ|² + drag) t), as a product of one factor per axis.
    fn propagator(&self, duration: f64, factors: &mut [f64]) {
        let modes = self.torus.half_wave_numbers().map(|(kx, _)| kx).max().unwrap_or(0);
        let slowed = (-self.drag * duration).exp();
        let axis: Vec<f64> =
            (0..=modes).map(|k| (-self.viscosity * (TAU * k as f64).powi(2) * duration).exp()).collect();
        for (factor, (kx, ky)) in factors.iter_mut().zip(self.torus.half_wave_numbers()) {
            *factor = axis[kx.unsigned_abs() as usize] * axis[ky as usize] * slowed;
        }
    }

    /// −u·∇ω + f
    fn nonlinear(&mut self, vorticity: &[Complex<f64>], rate: &mut [Complex<f64>]) {
        let Self { torus, velocity, advection, forcing, work, .. } = self;
        torus.load_odd(vorticity, velocity, work); // ẑ
        torus.through_space(work, |_, row| row.iter_mut().for_each(|z| *z *= *z));
        torus.collect(work, rate, |mode, square, opposite| {
            advection[mode] * square + advection[mode].conj() * opposite + forcing[mode]
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_field::stream;
    use crate::stepping::Trajectory;

    /// ω one unit of time later, by equal steps: the step control weighs the waves along x twice, so that exchanged
    /// starts take other steps and agree within its tolerance only.
    fn continued(values: &[f64]) -> Vec<f64> {
        let mut flow = Flow::new(values.len().isqrt(), 1e-3);
        flow.force(0.1);
        let start = flow.torus.spectrum(values);
        let mut trajectory = Trajectory::new(flow, start);
        trajectory.advance_fixed(0.005, 200);
        trajectory.system.torus.values(&trajectory.state)
    }

    fn miss(found: &[f64], wanted: &[f64]) -> f64 {
        let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
        norm(&mut found.iter().zip(wanted).map(|(one, two)| one - two)) / norm(&mut wanted.iter().copied())
    }

    /// Roundings of 1e-16 grow in 200 steps; maps that are no symmetries miss by more than a hundredth.
    #[test]
    fn the_flow_from_a_transformed_start_is_the_transformed_flow() {
        let changes = ["resolution=32", "stride=1"];
        let all = ROW.symmetries(&changes).unwrap();
        assert_eq!(all.len(), 4 * 32);
        assert_eq!(ROW.symmetries(&["resolution=256"]).unwrap().len(), 256);
        let start = Covariance { alpha: 2.5, tau: 7.0 }.periodic(32, &mut stream(4, 2));
        let start = Flow::new(32, 0.0).torus.values(&Flow::new(32, 0.0).torus.spectrum(&start));
        let end = continued(&start);
        let apply = |symmetry: &Symmetry, values: &[f64]| -> Vec<f64> {
            let sign = symmetry.components("vorticity").map_or(1.0, |components| components[0].sign);
            symmetry.points.iter().map(|&point| sign * values[point as usize]).collect()
        };
        for symmetry in all.iter().step_by(5) {
            let error = miss(&continued(&apply(symmetry, &start)), &apply(symmetry, &end));
            assert!(error < 1e-11, "{error:e}");
        }
        let others: [fn(usize, usize) -> [usize; 2]; 4] = [
            |row, column| [(row + 1) % 32, column],
            |row, column| [31 - row, column],
            |row, column| [column, row],
            |row, column| [column, 31 - row],
        ];
        for other in others {
            let other = Symmetry::of_plane([32; 2], other, Vec::new());
            let error = miss(&continued(&apply(&other, &start)), &apply(&other, &end));
            assert!(error > 1e-2, "{error:e}");
        }
    }

    #[test]
    fn coarse_lattices_have_the_symmetries_that_map_them_onto_themselves() {
        for (side, order) in [(8, 32), (10, 20), (9, 9)] {
            assert_eq!(ROW.symmetries(&[format!("resolution={side}"), "stride=1".to_owned()]).unwrap().len(), order);
        }
    }
}
