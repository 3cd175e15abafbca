//! Learning-rate schedules, as in PyTorch: learning rate and β₁ of the optimiser step number k, counted from 0.

use std::f64::consts::PI;

/// Values that a schedule sets for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Learning rate.
    pub rate: f64,
    /// β₁, the decay of Adam's running mean.
    pub beta1: f64,
}

/// How the learning rate changes over training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// One cycle in two cosine phases: up from `peak`/25 over 30 % of the steps, then down to `peak`/25/10⁴, while β₁
    /// runs 0.95 → 0.85 → 0.95 (PyTorch cycles the momentum unless told not to).
    OneCycle {
        /// Largest learning rate.
        peak: f64,
        /// Length of the cycle.
        steps: usize,
    },
    /// Half a cosine from `peak` to 0 over `steps`; β₁ stays 0.9.
    Cosine {
        /// First learning rate.
        peak: f64,
        /// Steps to zero.
        steps: usize,
    },
    /// Halved after every `interval` steps; β₁ stays 0.9.
    Halving {
        /// First learning rate.
        first: f64,
        /// Steps with the same rate.
        interval: usize,
    },
    /// A constant rate; β₁ stays 0.9.
    Constant {
        /// Learning rate.
        rate: f64,
    },
}

/// From `start` at 0 to `end` at 1 along half a cosine.
fn cosine(start: f64, end: f64, fraction: f64) -> f64 {
    end + (start - end) / 2.0 * (1.0 + (PI * fraction).cos())
}

impl Schedule {
    /// The pace of optimiser step `step`. Past the end of the schedule the last pace holds.
    pub fn at(&self, step: usize) -> Pace {
        match *self {
            Schedule::Constant { rate } => Pace { rate, beta1: 0.9 },
            Schedule::Halving { first, interval } => {
                Pace { rate: first * 0.5_f64.powf((step / interval) as f64), beta1: 0.9 }
            }
            Schedule::Cosine { peak, steps } => {
                Pace { rate: cosine(peak, 0.0, step.min(steps) as f64 / steps as f64), beta1: 0.9 }
            }
            Schedule::OneCycle { peak, steps } => {
                let (first, last) = (peak / 25.0, peak / 25.0 / 1e4);
                let top = 0.3 * steps as f64 - 1.0;
                let end = steps as f64 - 1.0;
                let step = (step as f64).min(end);
                if step <= top {
                    let fraction = step / top;
                    Pace { rate: cosine(first, peak, fraction), beta1: cosine(0.95, 0.85, fraction) }
                } else {
                    let fraction = (step - top) / (end - top);
                    Pace { rate: cosine(peak, last, fraction), beta1: cosine(0.85, 0.95, fraction) }
                }
            }
        }
    }
}
