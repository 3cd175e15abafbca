//! Steady flow: backward Euler in local time, w ← w + δ with (V/Δt + ∂R/∂w) δ = −R, until the balance R is small.
//!
//! Δt = C · shortest edge / (|v| + c). Each step solves its system by GMRES on differences of the second-order balance,
//! preconditioned by ILU(0) of the first-order Jacobian; the Courant number C grows as steps succeed, and in the end
//! the steps are Newton's.

use crate::block_sparse::BlockSparse;
use crate::euler::{self, Conserved, Primitive};
use crate::finite_volume::Flow;
use crate::krylov::{Field, gmres, norm};

/// Steps after which a flow is called unsteady.
const MOST_STEPS: usize = 200;
/// Courant number of the first step.
const FIRST_COURANT: f64 = 5.0;
/// Growth of the Courant number per accepted step: as the balance falls, within these bounds.
const COURANT_GROWTH: [f64; 2] = [1.5, 2.0];
/// Largest relative change of density and pressure in a step.
const LARGEST_CHANGE: f64 = 0.3;
/// Largest growth of the balance in a step: a shock on its way to its place passes through larger balances.
const LARGEST_RISE: f64 = 1.5;
/// A step cut below this share of itself gets nowhere.
const SMALLEST_SHARE: f64 = 1e-4;
/// Relative residual of each linear system, and the largest number of GMRES steps spent on it.
const LINEAR: (f64, usize) = (0.1, 60);

/// Where an iteration ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// `[nodes]` ρ, u, v, p
    pub states: Vec<Primitive>,
    /// Euclidean norm of the balance over all nodes and equations.
    pub residual: f64,
    /// Steps taken.
    pub steps: usize,
}

/// From the undisturbed stream until the norm of the balance is at most `tolerance`; else the state it is stuck in.
pub fn settle(flow: &Flow, tolerance: f64) -> Result<Steady, Steady> {
    let mut states = vec![euler::conserved(flow.stream); flow.mesh.nodes()];
    let mut matrix = BlockSparse::new(flow.mesh.nodes(), &flow.mesh.edges);
    let mut balance = flow.balance(&states);
    let mut residual = norm(&balance);
    let mut courant = FIRST_COURANT;
    let mut steps = 0;
    'steps: while residual > tolerance && steps < MOST_STEPS {
        let change = step(flow, &states, &balance, courant, &mut matrix);
        let full = admissible(&states, &change);
        let mut share = full;
        loop {
            let next = moved(&states, &change, share);
            let next_balance = flow.balance(&next);
            let next_residual = norm(&next_balance);
            if next_residual < LARGEST_RISE * residual {
                if share == 1.0 {
                    let [least, most] = COURANT_GROWTH;
                    courant *= (residual / next_residual).clamp(least, most);
                }
                (states, balance, residual) = (next, next_balance, next_residual);
                break;
            }
            (share, courant) = (share / 2.0, courant / 2.0);
            if share < SMALLEST_SHARE * full {
                break 'steps;
            }
        }
        steps += 1;
    }
    let steady = Steady { states: states.into_iter().map(euler::primitive).collect(), residual, steps };
    if residual <= tolerance { Ok(steady) } else { Err(steady) }
}

/// δ of one backward Euler step.
fn step(flow: &Flow, states: &Field, balance: &Field, courant: f64, matrix: &mut BlockSparse) -> Field {
    let primitives: Vec<Primitive> = states.iter().map(|&state| euler::primitive(state)).collect();
    let cells = flow.mesh.volumes.iter().zip(&flow.mesh.shortest);
    let inertia: Vec<f64> = cells
        .zip(&primitives)
        .map(|((volume, length), &state)| {
            let speed = state[1].hypot(state[2]) + euler::sound_speed(state);
            volume * speed / (courant * length) // V/Δt
        })
        .collect();
    flow.jacobian(&primitives, &inertia, matrix);
    matrix.factor();
    let size = norm(states);
    let apply = |direction: &Field| {
        let nudge = 1e-8 * size / norm(direction); // half the digits to each side of the difference
        let mut image = flow.balance(&moved(states, direction, nudge));
        for (node, values) in image.iter_mut().enumerate() {
            for k in 0..4 {
                values[k] = (values[k] - balance[node][k]) / nudge + inertia[node] * direction[node][k];
            }
        }
        image
    };
    let inflow: Field = balance.iter().map(|values| values.map(|value| -value)).collect();
    gmres(&inflow, LINEAR.0, LINEAR.1, apply, |field| matrix.solve(field))
}

/// The share of `change`, at most 1, that alters no density or pressure by more than [`LARGEST_CHANGE`].
fn admissible(states: &[Conserved], change: &[Conserved]) -> f64 {
    states.iter().zip(moved(states, change, 1.0)).fold(1.0, |share: f64, (&before, after)| {
        let (before, after) = (euler::primitive(before), euler::primitive(after));
        [0, 3].into_iter().fold(share, |share, k| share.min(LARGEST_CHANGE / (after[k] / before[k] - 1.0).abs()))
    })
}

/// `states` + `share` · `change`
fn moved(states: &[Conserved], change: &[Conserved], share: f64) -> Field {
    let add = |(state, change): (&Conserved, &Conserved)| [0, 1, 2, 3].map(|k| state[k] + share * change[k]);
    states.iter().zip(change).map(add).collect()
}
