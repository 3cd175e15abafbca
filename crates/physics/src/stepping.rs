//! Integrating-factor Runge-Kutta for y' = L y + N(y) with L diagonal: order 4, step size by an embedded order 3.
//!
//! With E = exp(h L / 2), the four classical stages act on exp(−t L) y, so L limits neither accuracy nor stability. The
//! first stage of the next step, N(y⁺), completes a third-order formula, which differs from y⁺ by h/10 (k₄ − N(y⁺)).
//! The error estimate therefore needs no extra evaluation (Balac & Mahé 2013, ERK4(3)).

use rustfft::num_complex::Complex;

use crate::Error;

/// A semilinear system in a basis in which its linear part is diagonal and real.
pub trait Semilinear {
    /// Writes exp(duration · L) for every component.
    fn propagator(&self, duration: f64, factors: &mut [f64]);

    /// Writes N(state).
    fn nonlinear(&mut self, state: &[Complex<f64>], rate: &mut [Complex<f64>]);
}

/// A trajectory: the current state, its time, and the working memory of the stages.
#[derive(Debug)]
pub struct Trajectory<System> {
    /// The right-hand side.
    pub system: System,
    /// y
    pub state: Vec<Complex<f64>>,
    /// t
    pub time: f64,
    /// Number of evaluations of N so far.
    pub evaluations: usize,
    step: f64,
    first_rate: Vec<Complex<f64>>,
    last_rate: Vec<Complex<f64>>,
    stage: Vec<Complex<f64>>,
    stage_rate: Vec<Complex<f64>>,
    next: Vec<Complex<f64>>,
    /// E for the step `half_of`.
    half: Vec<f64>,
    half_of: f64,
}

impl<System: Semilinear> Trajectory<System> {
    /// Starts at t = 0.
    pub fn new(mut system: System, state: Vec<Complex<f64>>) -> Self {
        let zeros = vec![Complex::default(); state.len()];
        let mut first_rate = zeros.clone();
        system.nonlinear(&state, &mut first_rate);
        Self {
            system,
            time: 0.0,
            evaluations: 1,
            step: f64::INFINITY,
            first_rate,
            last_rate: zeros.clone(),
            stage: zeros.clone(),
            stage_rate: zeros.clone(),
            next: zeros,
            half: vec![0.0; state.len()],
            half_of: f64::NAN,
            state,
        }
    }

    /// Advances by `duration` with steps whose estimated relative error per unit of time stays below `tolerance`.
    ///
    /// The third-order formula gives the estimate; the fourth-order formula gives the solution.
    pub fn advance(&mut self, duration: f64, tolerance: f64) -> Result<(), Error> {
        const SAFETY: f64 = 0.85;
        let (start, shortest) = (self.time, 1e-9 * duration);
        let mut remaining = duration;
        while remaining > 0.0 {
            let longest = self.step.min(remaining);
            let steps = (remaining / longest - 1e-9).ceil().max(1.0);
            let step = remaining / steps; // equal steps that end exactly at the end of the duration
            let ratio = self.attempt(step) / (step * tolerance);
            // The step was so long that the state overflowed.
            let error = if ratio.is_nan() { f64::INFINITY } else { ratio };
            self.step = step * (SAFETY * error.powf(-1.0 / 3.0)).clamp(0.2, 1.5);
            if self.step < shortest {
                return Err(Error::StepTooSmall { time: self.time, expected: shortest, found: self.step });
            }
            if error <= 1.0 {
                self.accept();
                remaining = if steps == 1.0 { 0.0 } else { remaining - step };
                self.time = start + (duration - remaining);
            }
        }
        Ok(())
    }

    /// Advances by `count` equal steps of length `step`, without error control.
    pub fn advance_fixed(&mut self, step: f64, count: usize) {
        for _ in 0..count {
            self.attempt(step);
            self.accept();
            self.time += step;
        }
    }

    /// Computes y⁺ into `next` and N(y⁺) into `stage_rate`; returns the relative error estimate.
    fn attempt(&mut self, step: f64) -> f64 {
        if step != self.half_of {
            self.system.propagator(0.5 * step, &mut self.half);
            self.half_of = step;
        }
        let Self { state, first_rate, last_rate, stage, stage_rate, next, half, .. } = self;
        for index in 0..state.len() {
            let (decayed, rate) = (state[index] * half[index], first_rate[index] * half[index]);
            stage[index] = decayed + rate * (0.5 * step); // E (y + h/2 k₁)
            next[index] = (decayed + rate * (step / 6.0)) * half[index];
        }
        self.system.nonlinear(stage, stage_rate); // k₂
        for index in 0..state.len() {
            stage[index] = state[index] * half[index] + stage_rate[index] * (0.5 * step); // E y + h/2 k₂
            next[index] += stage_rate[index] * (half[index] * step / 3.0);
        }
        self.system.nonlinear(stage, stage_rate); // k₃
        for index in 0..state.len() {
            let rate = stage_rate[index] * step;
            stage[index] = (state[index] * half[index] + rate) * half[index]; // E (E y + h k₃)
            next[index] += rate * (half[index] / 3.0);
        }
        self.system.nonlinear(stage, last_rate); // k₄
        next.iter_mut().zip(last_rate.iter()).for_each(|(value, rate)| *value += rate * (step / 6.0));
        self.system.nonlinear(next, stage_rate); // N(y⁺)
        self.evaluations += 4;
        let error: f64 =
            last_rate.iter().zip(stage_rate.iter()).map(|(fourth, fifth)| (fourth - fifth).norm_sqr()).sum();
        let size: f64 = next.iter().map(Complex::norm_sqr).sum();
        if error == 0.0 { 0.0 } else { step / 10.0 * (error / size).sqrt() }
    }

    /// Makes y⁺ the current state.
    fn accept(&mut self) {
        std::mem::swap(&mut self.state, &mut self.next);
        std::mem::swap(&mut self.first_rate, &mut self.stage_rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// y' = −λ y + y²: y = λ / (1 + (λ/y₀ − 1) exp(λ t)).
    struct Riccati;
    const RATE: f64 = 2.0;

    impl Semilinear for Riccati {
        fn propagator(&self, duration: f64, factors: &mut [f64]) {
            factors.fill((-RATE * duration).exp());
        }

        fn nonlinear(&mut self, state: &[Complex<f64>], rate: &mut [Complex<f64>]) {
            rate.iter_mut().zip(state).for_each(|(rate, value)| *rate = value * value);
        }
    }

    fn start() -> Trajectory<Riccati> {
        Trajectory::new(Riccati, vec![Complex::new(1.2, 0.0)])
    }

    fn error(trajectory: &Trajectory<Riccati>) -> f64 {
        let exact = RATE / (1.0 + (RATE / 1.2 - 1.0) * (RATE * trajectory.time).exp());
        (trajectory.state[0].re - exact).abs() / exact
    }

    #[test]
    fn equal_steps_converge_with_order_four() {
        let after = |steps: usize| {
            let mut trajectory = start();
            trajectory.advance_fixed(2.0 / steps as f64, steps);
            error(&trajectory)
        };
        let observed = (after(64) / after(128)).log2();
        assert!((observed - 4.0).abs() < 0.1, "observed order {observed:.3}");
    }

    #[test]
    fn adaptive_steps_keep_the_error_below_tolerance_times_time() {
        for tolerance in [1e-3, 1e-5, 1e-7] {
            let mut trajectory = start();
            (0..4).for_each(|_| trajectory.advance(0.5, tolerance).unwrap());
            assert_eq!(trajectory.time, 2.0);
            assert!(error(&trajectory) < 2.0 * tolerance, "tolerance {tolerance:e}: error {:e}", error(&trajectory));
        }
    }

    /// y' = −y⁹: y = (y₀⁻⁸ + 8t)^(−1/8); a first step over the whole duration overflows.
    struct Stiffening;

    impl Semilinear for Stiffening {
        fn propagator(&self, _duration: f64, factors: &mut [f64]) {
            factors.fill(1.0);
        }

        fn nonlinear(&mut self, state: &[Complex<f64>], rate: &mut [Complex<f64>]) {
            rate.iter_mut().zip(state).for_each(|(rate, value)| *rate = -value.powi(9));
        }
    }

    #[test]
    fn a_first_step_that_overflows_is_shortened() {
        let (duration, tolerance) = (10.0, 1e-6);
        let mut trajectory = Trajectory::new(Stiffening, vec![Complex::new(2.0, 0.0)]);
        trajectory.advance(duration, tolerance).unwrap();
        let exact = (2f64.powi(-8) + 8.0 * duration).powf(-0.125);
        let error = (trajectory.state[0].re - exact).abs() / exact;
        assert!(error < tolerance * duration, "error {error:e}");
    }

    #[test]
    fn a_solution_that_blows_up_is_a_typed_error() {
        let mut trajectory = Trajectory::new(Riccati, vec![Complex::new(4.0, 0.0)]); // infinite at t = ln(2) / 2
        let error = trajectory.advance(1.0, 1e-6).unwrap_err();
        assert!(matches!(error, Error::StepTooSmall { time, .. } if (0.3..0.36).contains(&time)), "{error}");
    }
}
