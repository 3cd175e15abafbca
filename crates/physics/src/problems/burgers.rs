//! Burgers' equation u_t + u u_x = ν u_xx on a circle of length 1 (as in PDEBench, Takamoto et al. 2022).
//!
//! In: u at t = 0, a sum of `waves` sines with wave numbers 1 to `highest`, amplitudes even on [0, 1] and random phases.
//! Out: u at `frames` later times. PDEBench has two sines with wave numbers up to 8, and divides its viscosities by π. Here
//! nothing is divided, and waves are longer, so that no sample decays to nothing.

use rustfft::num_complex::Complex;

use super::Row;
use super::convective::{Convective, sines};
use super::series::{Equation, Series, real, sizes, symmetries};
use crate::parameters::{Kind, Parameter};

/// The row of the registry.
pub const ROW: Row = Row {
    name: "burgers",
    equation: "u_t + u u_x = nu u_xx on a circle of length 1",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["resolution=64", "stride=2", "frames=3", "steps=20", "viscosity=0.02"],
    build: |settings| Ok(Box::new(Series::new(EQUATION, settings, 1)?)),
    symmetries: |settings| symmetries(settings, 1, EQUATION.fields, true),
};

const SIZES: [Parameter; 5] = sizes([1024, 4, 40, 100], 0.05);
const PARAMETERS: &[Parameter] = &[
    SIZES[0],
    SIZES[1],
    SIZES[2],
    SIZES[3],
    SIZES[4],
    real("viscosity", Kind::Positive { default: 0.01 }, "viscosity nu"),
    real("waves", Kind::Whole { default: 3, least: 1, most: 64 }, "sines of the first state"),
    real("highest", Kind::Whole { default: 3, least: 1, most: 1000 }, "largest wave number of the first state"),
];

/// Symbol, nonlinear term and first state.
pub const EQUATION: Equation = Equation {
    name: "burgers",
    fields: &[["initial_velocity", "velocity"]],
    right_side: |settings, domain| {
        let viscosity = settings.real("viscosity");
        Convective::boxed(domain, 1.0, |wave| Complex::new(-viscosity * wave * wave, 0.0))
    },
    start: |settings, domain, random| {
        vec![sines(domain, random, settings.whole("waves"), settings.whole("highest"), [0.0, 1.0])]
    },
    exact: false,
};
