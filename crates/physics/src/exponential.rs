//! Exponential time differencing of order 4 for y' = L y + N(y) with L diagonal: ETDRK4 (Cox & Matthews 2002).
//!
//! The linear part is exact, so its stiffness limits no step. The coefficients are means over a circle around each
//! h L, which avoids the cancellation near h L = 0 (Kassam & Trefethen 2005).

use std::f64::consts::TAU;

use rustfft::num_complex::Complex;

/// Points of the circle over which the coefficients are averaged.
const CIRCLE: usize = 64;

/// The nonlinear part of an equation.
pub trait Nonlinear {
    /// Writes N(state).
    fn rate(&self, state: &[Complex<f64>], rate: &mut [Complex<f64>]);
}

/// The method for one equation and one step length.
#[derive(Clone, Debug)]
pub struct Exponential {
    /// exp(h L)
    whole: Vec<Complex<f64>>,
    /// exp(h L / 2)
    half: Vec<Complex<f64>>,
    /// Coefficients of the stages, and of N in the three terms of the step (Cox & Matthews, Eq. 26 to 29).
    stage: Vec<Complex<f64>>,
    terms: [Vec<Complex<f64>>; 3],
}

impl Exponential {
    /// Steps of length `step` with the linear part `symbol`, L of each component.
    pub fn new(symbol: &[Complex<f64>], step: f64) -> Self {
        let scaled: Vec<Complex<f64>> = symbol.iter().map(|&rate| rate * step).collect();
        let mean = |function: &dyn Fn(Complex<f64>) -> Complex<f64>| {
            let around = |&centre: &Complex<f64>| {
                let points =
                    (0..CIRCLE).map(|point| Complex::from_polar(1.0, TAU * (point as f64 + 0.5) / CIRCLE as f64));
                points.map(|offset| function(centre + offset)).sum::<Complex<f64>>() * (step / CIRCLE as f64)
            };
            scaled.iter().map(around).collect::<Vec<_>>()
        };
        Self {
            whole: scaled.iter().map(|z| z.exp()).collect(),
            half: scaled.iter().map(|z| (z * 0.5).exp()).collect(),
            stage: mean(&|z| ((z * 0.5).exp() - 1.0) / z),
            terms: [
                mean(&|z| (-4.0 - z + z.exp() * (4.0 - z * 3.0 + z * z)) / (z * z * z)),
                mean(&|z| (2.0 + z + z.exp() * (z - 2.0)) / (z * z * z)),
                mean(&|z| (-4.0 - z * 3.0 - z * z + z.exp() * (4.0 - z)) / (z * z * z)),
            ],
        }
    }

    /// Advances the state by `count` steps.
    pub fn advance(&self, equation: &(impl Nonlinear + ?Sized), state: &mut [Complex<f64>], count: usize) {
        let zeros = || vec![Complex::default(); state.len()];
        let (mut first, mut second, mut third, mut fourth) = (zeros(), zeros(), zeros(), zeros());
        let (mut halfway, mut stage) = (zeros(), zeros());
        let Self { whole, half, stage: weight, terms: [outer, inner, last] } = self;
        for _step in 0..count {
            equation.rate(state, &mut first);
            for k in 0..state.len() {
                halfway[k] = half[k] * state[k] + weight[k] * first[k]; // a
            }
            equation.rate(&halfway, &mut second);
            for k in 0..state.len() {
                stage[k] = half[k] * state[k] + weight[k] * second[k]; // b
            }
            equation.rate(&stage, &mut third);
            for k in 0..state.len() {
                stage[k] = half[k] * halfway[k] + weight[k] * (third[k] * 2.0 - first[k]); // c
            }
            equation.rate(&stage, &mut fourth);
            for k in 0..state.len() {
                state[k] = whole[k] * state[k]
                    + outer[k] * first[k]
                    + inner[k] * (second[k] + third[k]) * 2.0
                    + last[k] * fourth[k];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// y' = λ y + y²: y = λ / ((λ/y₀ + 1) exp(−λ t) − 1).
    struct Square;

    impl Nonlinear for Square {
        fn rate(&self, state: &[Complex<f64>], rate: &mut [Complex<f64>]) {
            rate.iter_mut().zip(state).for_each(|(rate, value)| *rate = value * value);
        }
    }

    fn exact(rate: Complex<f64>, start: f64, time: f64) -> Complex<f64> {
        rate / ((rate / start + 1.0) * (-rate * time).exp() - 1.0)
    }

    #[test]
    fn steps_converge_with_order_four_for_stiff_and_oscillating_parts() {
        for rate in
            [Complex::new(-1.0, 0.0), Complex::new(-30.0, 0.0), Complex::new(0.0, 5.0), Complex::new(-1e-4, 0.0)]
        {
            let error = |steps: usize| {
                let mut state = [Complex::new(0.5, 0.0)];
                Exponential::new(&[rate], 1.0 / steps as f64).advance(&Square, &mut state, steps);
                (state[0] - exact(rate, 0.5, 1.0)).norm() / exact(rate, 0.5, 1.0).norm()
            };
            let (coarse, fine) = (error(32), error(64));
            let observed = (coarse / fine).log2();
            assert!(observed > 3.8, "λ = {rate}: observed order {observed:.2} from {coarse:e} to {fine:e}");
        }
    }

    struct Nothing;

    impl Nonlinear for Nothing {
        fn rate(&self, _: &[Complex<f64>], rate: &mut [Complex<f64>]) {
            rate.fill(Complex::default());
        }
    }

    #[test]
    fn a_linear_equation_is_exact_in_one_step() {
        let symbol =
            [Complex::new(-1e4, 0.0), Complex::new(0.0, 300.0), Complex::new(0.0, 0.0), Complex::new(2.0, 1.0)];
        let mut state = [Complex::new(1.0, 0.0); 4];
        Exponential::new(&symbol, 0.7).advance(&Nothing, &mut state, 1);
        for (found, rate) in state.iter().zip(symbol) {
            assert!((found - (rate * 0.7).exp()).norm() < 1e-13, "{found}");
        }
    }

    /// A constant rate under λ = 0 adds h: the coefficients add up without cancellation.
    #[test]
    fn coefficients_add_up_where_the_linear_part_vanishes() {
        for rate in [0.0, 1e-12, 1e-6] {
            let Exponential { stage, terms: [outer, inner, last], .. } =
                Exponential::new(&[Complex::new(rate, 0.0)], 1.0);
            let sum = outer[0] + inner[0] * 4.0 + last[0];
            // They are 1 + λ/2 + … and 1/2 + λ/8 + …
            assert!((sum - 1.0).norm() < rate + 1e-13, "{sum}");
            assert!((stage[0] - 0.5).norm() < rate + 1e-13, "{}", stage[0]);
        }
    }
}
