//! The reaction of Gray and Scott: u_t = D_u Δu − u v² + F (1 − u), v_t = D_v Δv + u v² − (F + k) v on a torus.
//!
//! In: u and v at t = 0, Gaussian spots of v on u = 1. Out: both at `frames` later times. Sizes and coefficients are close
//! to those of The Well (Ohana et al. 2024): side 2, D_u = 2e-5, D_v = 1e-5; F = 0.029 and k = 0.057 grow a maze.

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
    name: "gray-scott",
    equation: "u_t = Du Laplacian u - u v^2 + F (1 - u), v_t = Dv Laplacian v + u v^2 - (F + k) v on a torus",
    version: 1,
    parameters: PARAMETERS,
    removed: &[],
    small: &["resolution=24", "stride=2", "frames=2", "steps=5", "interval=10.0", "extent=0.5", "spin_up=1"],
    build: |settings| Ok(Box::new(Series::new(EQUATION, settings, 2)?)),
    symmetries: |settings| symmetries(settings, 2, EQUATION.fields, false),
};

const SIZES: [Parameter; 5] = sizes([192, 3, 20, 25], 50.0);
const PARAMETERS: &[Parameter] = &[
    SIZES[0],
    SIZES[1],
    SIZES[2],
    SIZES[3],
    SIZES[4],
    real("extent", Kind::Positive { default: 2.0 }, "side of the torus"),
    real("feed", Kind::NonNegative { default: 0.029 }, "F"),
    real("kill", Kind::NonNegative { default: 0.057 }, "k"),
    real("diffusion_u", Kind::NonNegative { default: 2e-5 }, "Du"),
    real("diffusion_v", Kind::NonNegative { default: 1e-5 }, "Dv"),
    real("spots", Kind::Whole { default: 12, least: 1, most: 1000 }, "Gaussian spots of the first state"),
    real("spin_up", Kind::Whole { default: 4, least: 0, most: 1_000_000 }, "intervals that pass before t = 0"),
];

/// Symbol, nonlinear term and first state.
pub const EQUATION: Equation = Equation {
    name: "gray-scott",
    fields: &[["initial_u", "u"], ["initial_v", "v"]],
    right_side: |settings, domain| {
        let (feed, kill) = (settings.real("feed"), settings.real("kill"));
        let scale = (TAU / settings.real("extent")).powi(2);
        let waves = domain.wave_numbers();
        let decay = |diffusion: f64, rate: f64| {
            waves.iter().map(move |[x, y]| Complex::new(-diffusion * scale * (x * x + y * y) - rate, 0.0))
        };
        let symbol = decay(settings.real("diffusion_u"), feed).chain(decay(settings.real("diffusion_v"), feed + kill));
        Box::new(Reaction { domain: domain.clone(), symbol: symbol.collect(), feed })
    },
    start: |settings, domain, random| {
        let extent = settings.real("extent");
        let mut number = || uniform(random);
        let spots: Vec<[f64; 3]> =
            (0..settings.whole("spots")).map(|_| [number(), number(), (0.04 + 0.04 * number()) / extent]).collect();
        // Two images to each side of a spot.
        let along = |a: f64, b: f64, width: f64| -> f64 {
            (-2..=2).map(|image| (-0.5 * ((a - b + f64::from(image)) / width).powi(2)).exp()).sum()
        };
        let spot = |[x, y]: [f64; 2], &[across, up, width]: &[f64; 3]| along(x, across, width) * along(y, up, width);
        // 1 − Π (1 − spot): overlapping spots join smoothly.
        let cover = domain.sampled(|place| 1.0 - spots.iter().map(|one| 1.0 - spot(place, one)).product::<f64>());
        vec![cover.iter().map(|cover| 1.0 - 0.5 * cover).collect(), cover.iter().map(|cover| 0.25 * cover).collect()]
    },
    exact: false,
};

#[derive(Debug)]
struct Reaction {
    domain: Domain,
    symbol: Vec<Complex<f64>>,
    feed: f64,
}

impl Nonlinear for Reaction {
    fn rate(&self, state: &[Complex<f64>], rate: &mut [Complex<f64>]) {
        let length = self.domain.half_length();
        let [u, v] = [&state[..length], &state[length..]].map(|half| self.domain.values(half));
        let reaction: Vec<f64> = u.iter().zip(&v).map(|(u, v)| u * v * v).collect();
        let reaction = self.domain.spectrum(&reaction);
        let (first, second) = rate.split_at_mut(length);
        first.iter_mut().zip(&reaction).for_each(|(rate, value)| *rate = -value);
        first[0] += self.feed;
        second.copy_from_slice(&reaction);
    }
}

impl RightSide for Reaction {
    fn symbol(&self) -> Vec<Complex<f64>> {
        self.symbol.clone()
    }
}
