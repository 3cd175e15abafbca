//! The equation of Kuramoto and Sivashinsky, u_t + u u_x + u_xx + u_xxxx = 0, on a circle: chaos in one dimension.
//!
//! In: u at t = 0, on the attractor: a random sum of sines that has run for `spin_up` intervals. Out: u at `frames` later
//! times. The default length of 64 has a largest Lyapunov exponent of about 0.09 (Edson et al. 2019).

use rustfft::num_complex::Complex;

use super::Row;
use super::convective::{Convective, sines};
use super::series::{Equation, Series, real, sizes, symmetries};
use crate::parameters::{Kind, Parameter};

/// The row of the registry.
pub const ROW: Row = Row {
    name: "kuramoto-sivashinsky",
    equation: "u_t + u u_x + u_xx + u_xxxx = 0 on a circle",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["resolution=64", "stride=2", "frames=3", "steps=5", "spin_up=10", "extent=22"],
    build: |settings| Ok(Box::new(Series::new(EQUATION, settings, 1)?)),
    symmetries: |settings| symmetries(settings, 1, EQUATION.fields, true),
};

const SIZES: [Parameter; 5] = sizes([256, 2, 40, 10], 0.5);
const PARAMETERS: &[Parameter] = &[
    SIZES[0],
    SIZES[1],
    SIZES[2],
    SIZES[3],
    SIZES[4],
    real("extent", Kind::Positive { default: 64.0 }, "length of the circle"),
    real("spin_up", Kind::Whole { default: 200, least: 0, most: 1_000_000 }, "intervals that pass before t = 0"),
];

/// Symbol, nonlinear term and first state.
pub const EQUATION: Equation = Equation {
    name: "kuramoto-sivashinsky",
    fields: &[["initial_height", "height"]],
    right_side: |settings, domain| {
        Convective::boxed(domain, settings.real("extent"), |wave| Complex::new(wave.powi(2) - wave.powi(4), 0.0))
    },
    start: |_, domain, random| vec![sines(domain, random, 10, 3, [-0.5, 0.5])],
    exact: false,
};
