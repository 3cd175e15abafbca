//! The equation of Korteweg and de Vries, u_t + u u_x + u_xxx = 0, on a circle: solitons.
//!
//! In: u at t = 0, a sum of ten sines with wave numbers 1 to 3 and amplitudes even on [−1/2, 1/2] (as Brandstetter et al.
//! 2022). Out: u at `frames` later times. A soliton is u = 3c sech²(√c/2 (x − c t)).

use rustfft::num_complex::Complex;

use super::Row;
use super::convective::{Convective, sines};
use super::series::{Equation, Series, real, sizes, symmetries};
use crate::parameters::{Kind, Parameter};

/// The row of the registry.
pub const ROW: Row = Row {
    name: "kdv",
    equation: "u_t + u u_x + u_xxx = 0 on a circle",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["resolution=64", "stride=2", "frames=3", "steps=10", "extent=64"],
    build: |settings| Ok(Box::new(Series::new(EQUATION, settings, 1)?)),
    symmetries: |settings| symmetries(settings, 1, EQUATION.fields, false),
};

const SIZES: [Parameter; 5] = sizes([512, 4, 40, 100], 2.0);
const PARAMETERS: &[Parameter] = &[
    SIZES[0],
    SIZES[1],
    SIZES[2],
    SIZES[3],
    SIZES[4],
    real("extent", Kind::Positive { default: 128.0 }, "length of the circle"),
];

/// Symbol, nonlinear term and first state.
pub const EQUATION: Equation = Equation {
    name: "kdv",
    fields: &[["initial_height", "height"]],
    right_side: |settings, domain| {
        // −∂xxx of exp(iκx) is i κ³.
        Convective::boxed(domain, settings.real("extent"), |wave| Complex::new(0.0, wave.powi(3)))
    },
    start: |_, domain, random| vec![sines(domain, random, 10, 3, [-0.5, 0.5])],
    exact: false,
};
