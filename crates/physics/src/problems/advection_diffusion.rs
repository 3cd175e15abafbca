//! Advection and diffusion, u_t + c · ∇u = ν Δu, on a circle or a torus of side 1, solved exactly.
//!
//! In: u at t = 0, a sum of `waves` sines with wave numbers 1 to 8. Out: u at `frames` later times. c has the same component
//! along each axis. The series is finite and the equation linear, so each snapshot is exact to rounding.

use std::f64::consts::TAU;

use rustfft::num_complex::Complex;

use super::Row;
use super::convective::sines;
use super::series::{Equation, RightSide, Series, dimensions, real, sizes, symmetries};
use crate::exponential::Nonlinear;
use crate::parameters::{Kind, Parameter};

/// The row of the registry.
pub const ROW: Row = Row {
    name: "advection-diffusion",
    equation: "u_t + c . grad u = nu Laplacian u on a circle or torus of side 1",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["resolution=64", "stride=2", "frames=3"],
    build: |settings| {
        let dimensions = dimensions(&settings);
        Ok(Box::new(Series::new(EQUATION, settings, dimensions)?))
    },
    symmetries: |settings| symmetries(settings, dimensions(settings), EQUATION.fields, false),
};

const SIZES: [Parameter; 5] = sizes([128, 1, 20, 1], 0.1);
const PARAMETERS: &[Parameter] = &[
    SIZES[0],
    SIZES[1],
    SIZES[2],
    SIZES[3],
    SIZES[4],
    real("dimensions", Kind::Whole { default: 1, least: 1, most: 2 }, "1: a circle, 2: a torus"),
    real("speed", Kind::Real { default: 0.4 }, "c along each axis"),
    real("viscosity", Kind::NonNegative { default: 1e-3 }, "diffusivity nu"),
    real("waves", Kind::Whole { default: 3, least: 1, most: 64 }, "sines of the first state"),
];

/// Symbol, nonlinear term and first state.
pub const EQUATION: Equation = Equation {
    name: "advection-diffusion",
    fields: &[["initial_concentration", "concentration"]],
    right_side: |settings, domain| {
        let (speed, viscosity) = (settings.real("speed"), settings.real("viscosity"));
        let symbol = |[x, y]: &[f64; 2]| Complex::new(-viscosity * TAU * TAU * (x * x + y * y), -speed * TAU * (x + y));
        Box::new(Linear(domain.wave_numbers().iter().map(symbol).collect()))
    },
    start: |settings, domain, random| vec![sines(domain, random, settings.whole("waves"), 8, [0.0, 1.0])],
    exact: true,
};

/// A linear part alone.
#[derive(Debug)]
struct Linear(Vec<Complex<f64>>);

impl Nonlinear for Linear {
    fn rate(&self, _: &[Complex<f64>], rate: &mut [Complex<f64>]) {
        rate.fill(Complex::default());
    }
}

impl RightSide for Linear {
    fn symbol(&self) -> Vec<Complex<f64>> {
        self.0.clone()
    }
}
