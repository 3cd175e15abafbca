//! Decaying turbulence in two dimensions: ω_t + u·∇ω = ν Δω on a torus of side 2π.
//!
//! In: ω at t = 0, a random field with the energy spectrum k⁶ / (k + 2 k₀)¹⁸, whose peak is at k₀,
//! scaled to a root mean square. Out: ω at `frames` later times. The solver has a unit torus:
//! lengths are divided by 2π, ν by (2π)², and vorticities stay.

use std::f64::consts::TAU;

use rustfft::num_complex::Complex;

use super::Row;
use super::navier_stokes::Flow;
use super::series::{real, sizes_of_flow, symmetries};
use super::vortices::{Setup, Vortices};
use crate::parameters::{Kind, Parameter};
use crate::random_field::normal_pair;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "turbulence",
    equation: "w_t + u.grad w = nu Laplacian w on a torus of side 2 pi, from a random field",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["resolution=32", "stride=2", "frames=3", "interval=0.05", "viscosity=0.02"],
    build: |settings| Ok(Box::new(Vortices::new(SETUP, settings)?)),
    symmetries: |settings| symmetries(settings, 2, &[], false),
};

const SIZES: [Parameter; 5] = sizes_of_flow([256, 4, 20], 0.2);
const PARAMETERS: &[Parameter] = &[
    SIZES[0],
    SIZES[1],
    SIZES[2],
    SIZES[3],
    SIZES[4],
    real("viscosity", Kind::Positive { default: 2e-3 }, "viscosity nu"),
    real("peak", Kind::Positive { default: 5.0 }, "k0, the wave number with the most energy"),
    real("vorticity", Kind::Positive { default: 5.0 }, "root mean square of the vorticity at t = 0"),
];

/// The largest wave number of the first state; it does not depend on the resolution.
const MOST: i64 = 40;

pub(super) const SETUP: Setup = Setup {
    name: "turbulence",
    flow: |settings, resolution| Flow::new(resolution, settings.real("viscosity") / (TAU * TAU)),
    prior: |settings, torus, random| {
        let peak = settings.real("peak");
        let mut drawn = Vec::new(); // [ky, kx] for ky from 0 to MOST and kx from −MOST to MOST
        for (kx, ky) in (0..=MOST).flat_map(|ky| (-MOST..=MOST).map(move |kx| (kx, ky))) {
            let [real, imaginary] = normal_pair(random);
            let wave = ((kx * kx + ky * ky) as f64).sqrt();
            // Energy of a ring of circumference 2π k over its circumference, times k² for the vorticity.
            let spectrum = (wave / peak).powi(6) / ((wave / peak + 2.0) / 3.0).powi(18);
            let deviation = if wave == 0.0 { 0.0 } else { (spectrum * wave).sqrt() };
            drawn.push(Complex::new(real, imaginary) * deviation);
        }
        let at = |kx: i64, ky: i64| drawn[(ky * (2 * MOST + 1) + kx + MOST) as usize];
        let value = |(kx, ky): (i64, i64)| match () {
            () if kx.abs() > MOST || ky > MOST => Complex::default(),
            () if ky == 0 && kx < 0 => at(-kx, 0).conj(),
            () => at(kx, ky),
        };
        let field: Vec<Complex<f64>> = torus.half_wave_numbers().map(value).collect();
        let size: f64 = torus.half_weights().zip(&field).map(|(weight, value)| weight * value.norm_sqr()).sum();
        field.into_iter().map(|value| value * (settings.real("vorticity") / size.sqrt())).collect()
    },
};
