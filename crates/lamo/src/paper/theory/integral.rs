//! A scan over random tokens is a Monte-Carlo sum of a kernel integral: with tokens at sorted random places t_1 < … < t_N of
//! [0, 1], decays e^{A(t_j − t_{j−1})} and gains 1/N,
//!
//! y(t) = 1/N Σ_{t_j ≤ t} C(t) e^{A(t − t_j)} B(t_j) x(t_j)  →  ∫₀ᵗ C(t) e^{A(t − s)} B(s) x(s) ds,
//!
//! and the root mean square of the error is O(N^{−1/2}).

use super::{Check, Proposition, order};
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, ScanInput};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;

/// A
const RATE: f64 = -3.0;
/// Draws of the tokens for each number of them.
const DRAWS: usize = 400;
const SIZES: [usize; 4] = [16, 64, 256, 1024];

/// B(s) x(s)
fn written(s: f64) -> f64 {
    (1.0 + s) * (5.0 * s).sin()
}

/// ∫₀¹ e^{A(1 − s)} B(s) x(s) ds by Simpson's rule, whose error is 10⁻¹².
fn integral() -> f64 {
    let panels = 4000;
    let value = |k: usize| {
        let s = k as f64 / panels as f64;
        let weight = if k == 0 || k == panels { 1.0 } else { 2.0 + 2.0 * (k % 2) as f64 };
        weight * (RATE * (1.0 - s)).exp() * written(s)
    };
    (0..=panels).map(value).sum::<f64>() / (3.0 * panels as f64)
}

/// The scan at t = 1 for each row of sorted places `[draws, tokens]`.
fn scanned(places: &[Vec<f64>]) -> Vec<f64> {
    let (draws, tokens) = (places.len(), places[0].len() + 1);
    let graph = Graph::new();
    // A last token at t = 1 writes nothing and reads.
    let steps = places.iter().flat_map(|row| {
        let ends = row.iter().copied().chain([1.0]);
        let starts = std::iter::once(0.0).chain(row.iter().copied());
        starts.zip(ends).map(|(from, to)| RATE * (to - from))
    });
    let signal = places.iter().flat_map(|row| row.iter().map(|place| written(*place)).chain([0.0]));
    let one = graph.fill(1.0, [draws, tokens, 1, 1]);
    let scan = ScanInput {
        signal: graph.constant_numbers(&signal.collect::<Vec<_>>(), [draws, tokens, 1, 1]),
        log_decay: graph.constant_numbers(&steps.collect::<Vec<_>>(), [draws, tokens, 1]),
        gain: graph.fill(1.0 / places[0].len() as f64, [draws, tokens, 1]),
        write: one,
        read: one,
        initial: None,
    };
    let (y, _) = scan.scan(&[(0..tokens as u32).collect()]);
    let y = &reference::evaluate(&graph, &Bindings::new(), &[y])[0].values;
    y.chunks_exact(tokens).map(|row| row[tokens - 1]).collect()
}

/// Root mean square of the errors over draws of random places.
fn random(tokens: usize) -> f64 {
    let mut numbers = ChaCha12Rng::seed_from_u64(tokens as u64);
    let draw = |_: usize| {
        let mut row: Vec<f64> = (0..tokens).map(|_| numbers.random::<f64>()).collect();
        row.sort_by(f64::total_cmp);
        row
    };
    let places: Vec<Vec<f64>> = (0..DRAWS).map(draw).collect();
    let exact = integral();
    let squares: f64 = scanned(&places).iter().map(|found| (found - exact).powi(2)).sum();
    (squares / DRAWS as f64).sqrt()
}

/// The error of evenly spaced places.
fn even(tokens: usize) -> f64 {
    let row = (0..tokens).map(|token| (token as f64 + 1.0) / tokens as f64).collect();
    (scanned(&[row])[0] - integral()).abs()
}

/// The deviation of one error over that of the mean, as the theorem says: √N · RMS is the deviation of the integrand.
fn deviation() -> f64 {
    let count = 100_000;
    let value = |k: usize| {
        let s = (k as f64 + 0.5) / count as f64;
        (RATE * (1.0 - s)).exp() * written(s)
    };
    let mean = (0..count).map(value).sum::<f64>() / count as f64;
    ((0..count).map(|k| (value(k) - mean).powi(2)).sum::<f64>() / count as f64).sqrt()
}

pub(super) fn proposition() -> Proposition {
    let errors = |error: fn(usize) -> f64| -> Vec<(f64, f64)> {
        SIZES.iter().map(|tokens| (1.0 / *tokens as f64, error(*tokens))).collect()
    };
    let found = errors(random);
    let scaled = found.iter().map(|(h, error)| error / h.sqrt()).sum::<f64>() / found.len() as f64;
    Proposition {
        title: "The Monte-Carlo rate of the kernel integral",
        statement: "With N random tokens a scan approximates ∫ κ(t, s) x(s) ds with an error of O(N^{−1/2}).",
        checks: vec![
            // 400 draws leave 3.5 % of each root mean square, and 0.01 of the slope over a range of 64.
            Check::order("order in 1/N of the root mean square error, random tokens", 0.5, order(&found), 0.04),
            Check::order(
                "error times the root of N, over the deviation of the integrand",
                1.0,
                scaled / deviation(),
                0.06,
            ),
            Check::order("order in 1/N with evenly spaced tokens", 1.0, order(&errors(even)), 0.05),
        ],
    }
}
