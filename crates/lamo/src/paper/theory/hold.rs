//! From the zero-order hold to Euler's rule: B̄ = (e^{ΔA} − 1)/A · B = Δ B + O(Δ²), and over a fixed time the states of
//! h′ = A h + B x differ by O(Δ).

use super::{Check, Proposition, largest, order};
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, ScanInput};

/// A
const RATE: f64 = -2.0;

/// (e^{ΔA} − 1)/A
fn hold(step: f64) -> f64 {
    (RATE * step).exp_m1() / RATE
}

/// The state at time 1 after scans of `tokens` tokens with a gain, of the signal 1 + sin t held over each step.
fn state(tokens: usize, gain: f64) -> f64 {
    let step = 1.0 / tokens as f64;
    let graph = Graph::new();
    let constant = |value: f64| graph.fill(value, [1, tokens, 1]);
    let signal: Vec<f64> = (0..tokens).map(|token| 1.0 + (token as f64 * step).sin()).collect();
    let one = graph.fill(1.0, [1, tokens, 1, 1]);
    let scan = ScanInput {
        signal: graph.constant_numbers(&signal, [1, tokens, 1, 1]),
        log_decay: constant(step * RATE),
        gain: constant(gain),
        write: one,
        read: one,
        initial: None,
    };
    let (_, last) = scan.scan(&[(0..tokens as u32).collect()]);
    reference::evaluate(&graph, &Bindings::new(), &[last])[0].values[0]
}

/// The solution at time 1 for the same held signal, step by step in closed form.
fn solution(tokens: usize) -> f64 {
    let step = 1.0 / tokens as f64;
    (0..tokens).fold(0.0, |state: f64, token| {
        let signal = 1.0 + (token as f64 * step).sin();
        (state + signal / RATE) * (RATE * step).exp() - signal / RATE // h′ = A h + x with constant x
    })
}

/// ∫₀¹ e^{A(1−t)} (1 + sin t) dt
fn exact() -> f64 {
    let decay = RATE.exp();
    let constant = (decay - 1.0) / RATE;
    let (sin, cos) = (1f64.sin(), 1f64.cos());
    constant + (decay - cos - RATE * sin) / (1.0 + RATE * RATE)
}

const SIZES: [usize; 4] = [32, 64, 128, 256];

fn over_steps(error: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
    SIZES.iter().map(|tokens| (1.0 / *tokens as f64, error(*tokens).abs())).collect()
}

pub(super) fn proposition() -> Proposition {
    let step = |tokens: usize| 1.0 / tokens as f64;
    let held = over_steps(|tokens| state(tokens, hold(step(tokens))) - solution(tokens));
    let rounding = largest(held.iter().map(|(_, error)| *error));
    Proposition {
        title: "Zero-order hold and Euler's rule",
        statement: "B̄ = (e^{ΔA} − 1)/A · B = Δ B + O(Δ²); over a fixed time the states differ by O(Δ).",
        checks: vec![
            Check::vanishes("zero-order hold against the solution for a held signal", rounding, 1e-13),
            Check::order(
                "order of the gain of the hold minus the step",
                2.0,
                order(&over_steps(|n| hold(step(n)) - step(n))),
                0.05,
            ),
            Check::order(
                "order of the difference of the states at a fixed time",
                1.0,
                order(&over_steps(|n| state(n, hold(step(n))) - state(n, step(n)))),
                0.05,
            ),
            Check::order(
                "order of Euler's state against the integral of the smooth signal",
                1.0,
                order(&over_steps(|n| state(n, step(n)) - exact())),
                0.1,
            ),
            Check::order(
                "order of the gain as Equation 4 writes it minus the step; 0: it stays",
                0.0,
                order(&over_steps(|n| hold(step(n)) / step(n) - step(n))),
                0.1,
            ),
        ],
    }
}
