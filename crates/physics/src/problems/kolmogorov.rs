//! Kolmogorov flow: ω_t + u·∇ω = ν Δω − μ ω − n cos(n y) on a torus of side 2π, driven by the force sin(n y) along x.
//!
//! In: ω at t = 0, on the attractor: a random field that has run for `spin_up`. Out: ω at `frames` later times. With the
//! friction μ = 0.1 and n = 4 this is the flow of Kochkov et al. (2021), there with ν = 1e-3. The solver has a unit torus:
//! lengths are divided by 2π, ν by (2π)², and vorticities stay.

use std::f64::consts::TAU;

use super::Row;
use super::navier_stokes::Flow;
use super::series::{real, sizes_of_flow, symmetries};
use super::vortices::{Setup, Vortices};
use crate::parameters::{Kind, Parameter};
use crate::random_field::Covariance;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "kolmogorov",
    equation: "w_t + u.grad w = nu Laplacian w - mu w - n cos(n y) on a torus of side 2 pi",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["resolution=32", "stride=2", "frames=3", "interval=0.1", "viscosity=0.02", "spin_up=0.5"],
    build: |settings| Ok(Box::new(Vortices::new(SETUP, settings)?)),
    symmetries: |settings| {
        // The force depends on y: shifts along x alone.
        let (points, mut shifts) = symmetries(settings, 2, &[], false);
        shifts.truncate(1);
        (points, shifts)
    },
};

const SIZES: [Parameter; 5] = sizes_of_flow([128, 2, 20], 0.25);
const PARAMETERS: &[Parameter] = &[
    SIZES[0],
    SIZES[1],
    SIZES[2],
    SIZES[3],
    SIZES[4],
    real("viscosity", Kind::Positive { default: 4e-3 }, "viscosity nu; the Reynolds number is about its inverse"),
    real("friction", Kind::NonNegative { default: 0.1 }, "mu"),
    real("waves", Kind::Whole { default: 4, least: 1, most: 1024 }, "n, waves of the force"),
    real("spin_up", Kind::NonNegative { default: 20.0 }, "time that passes before t = 0"),
];

pub(super) const SETUP: Setup = Setup {
    name: "kolmogorov",
    flow: |settings, resolution| {
        let waves = settings.whole("waves");
        let mut flow = Flow::new(resolution, settings.real("viscosity") / (TAU * TAU));
        flow.force_wave((0, waves as i64), -(waves as f64));
        flow.slow(settings.real("friction"));
        flow
    },
    prior: |_, torus, random| {
        let field = Covariance { alpha: 2.5, tau: 7.0 }.periodic(torus.points(), random);
        torus.spectrum(&field.iter().map(|value| 10.0 * value).collect::<Vec<_>>())
    },
};
