//! Shallow water on a torus of side 1: h_t + ∇·(h u) = ν Δh, u_t + (u·∇) u + g ∇h = ν Δu.
//!
//! In: h and u at t = 0, humps of water at rest on a depth of 1. Out: h and u at `frames` later times. PDEBench (Takamoto et
//! al. 2022) has one sudden hump with shocks; here humps are Gaussian and a small viscosity keeps the waves smooth, so that
//! the series converges. The mean of h is constant to the last bit.

use std::f64::consts::TAU;

use rustfft::num_complex::Complex;

use super::Row;
use super::series::{Equation, RightSide, Series, real, sizes, symmetries};
use crate::exponential::Nonlinear;
use crate::parameters::{Kind, Parameter};
use crate::periodic::Domain;
use crate::random_field::uniform;

/// The row of the registry.
pub const ROW: Row = Row {
    name: "shallow-water",
    equation: "h_t + div(h u) = nu Laplacian h, u_t + u.grad u + g grad h = nu Laplacian u on a torus of side 1",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["resolution=24", "stride=2", "frames=2", "steps=4", "viscosity=0.005"],
    build: |settings| Ok(Box::new(Series::new(EQUATION, settings, 2)?)),
    symmetries: |settings| symmetries(settings, 2, EQUATION.fields, false),
};

const SIZES: [Parameter; 5] = sizes([64, 1, 20, 10], 0.05);
const PARAMETERS: &[Parameter] = &[
    SIZES[0],
    SIZES[1],
    SIZES[2],
    SIZES[3],
    SIZES[4],
    real("gravity", Kind::Positive { default: 1.0 }, "g"),
    real("viscosity", Kind::Positive { default: 1e-3 }, "nu"),
    real(
        "humps",
        Kind::Whole { default: 3, least: 1, most: 100 },
        "most humps of the first state; a sample has 1 to this",
    ),
    real("height", Kind::Positive { default: 0.3 }, "greatest height of a hump; the depth is 1"),
];

/// Symbol, nonlinear term and first state.
pub const EQUATION: Equation = Equation {
    name: "shallow-water",
    fields: &[["initial_height", "height"], ["initial_velocity_x", "velocity_x"], ["initial_velocity_y", "velocity_y"]],
    right_side: |settings, domain| {
        let waves = domain.wave_numbers();
        let viscosity = settings.real("viscosity");
        let decay = waves.iter().map(|[x, y]| Complex::new(-viscosity * TAU * TAU * (x * x + y * y), 0.0));
        Box::new(Water {
            domain: domain.clone(),
            symbol: decay.collect(),
            slopes: waves.iter().map(|wave| wave.map(|k| Complex::new(0.0, TAU * k))).collect(),
            gravity: settings.real("gravity"),
        })
    },
    start: |settings, domain, random| {
        let mut number = || uniform(random);
        let count = 1 + (settings.whole("humps") as f64 * number()) as usize;
        let humps: Vec<[f64; 4]> = (0..count.min(settings.whole("humps")))
            .map(|_| [number(), number(), 0.06 + 0.06 * number(), settings.real("height") * (0.3 + 0.7 * number())])
            .collect();
        // Two images to each side: the last one is exp(−100) high.
        let along = |a: f64, b: f64, width: f64| -> f64 {
            (-2..=2).map(|image| (-0.5 * ((a - b + f64::from(image)) / width).powi(2)).exp()).sum()
        };
        let hump = |[x, y]: [f64; 2], &[across, up, width, height]: &[f64; 4]| {
            height * along(x, across, width) * along(y, up, width)
        };
        let height = domain.sampled(|place| 1.0 + humps.iter().map(|one| hump(place, one)).sum::<f64>());
        let still = vec![0.0; height.len()];
        vec![height, still.clone(), still]
    },
    exact: false,
};

#[derive(Debug)]
struct Water {
    domain: Domain,
    /// −ν |κ|², the same for all three fields.
    symbol: Vec<Complex<f64>>,
    /// i κ along x and y.
    slopes: Vec<[Complex<f64>; 2]>,
    gravity: f64,
}

impl Water {
    /// Values of the derivative of a half spectrum along an axis.
    fn slope(&self, half: &[Complex<f64>], axis: usize) -> Vec<f64> {
        let derived: Vec<Complex<f64>> =
            half.iter().zip(&self.slopes).map(|(value, slope)| value * slope[axis]).collect();
        self.domain.values(&derived)
    }
}

impl Nonlinear for Water {
    fn rate(&self, state: &[Complex<f64>], rate: &mut [Complex<f64>]) {
        let (length, domain) = (self.domain.half_length(), &self.domain);
        let halves: Vec<&[Complex<f64>]> = state.chunks(length).collect();
        let fields: Vec<Vec<f64>> = halves.iter().map(|half| domain.values(half)).collect();
        let (height, velocity) = (&fields[0], [&fields[1], &fields[2]]);
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).collect::<Vec<f64>>();
        let fluxes = velocity.map(|velocity| domain.spectrum(&product(height, velocity)));
        for (k, slope) in self.slopes.iter().enumerate() {
            rate[k] = -(slope[0] * fluxes[0][k] + slope[1] * fluxes[1][k]);
        }
        for axis in 0..2 {
            let half = halves[1 + axis];
            let carried = product(velocity[0], &self.slope(half, 0));
            let carried: Vec<f64> =
                carried.iter().zip(product(velocity[1], &self.slope(half, 1))).map(|(a, b)| a + b).collect();
            let carried = domain.spectrum(&carried);
            for k in 0..length {
                rate[(1 + axis) * length + k] = -carried[k] - self.slopes[k][axis] * halves[0][k] * self.gravity;
            }
        }
    }
}

impl RightSide for Water {
    fn symbol(&self) -> Vec<Complex<f64>> {
        self.symbol.repeat(3)
    }
}
