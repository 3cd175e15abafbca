//! Steady flow: backward Euler in local time, w ← w + δ with (V/Δt + ∂R/∂w) δ = −R, until the residual R is small.
//!
//! Δt = C · shortest edge / (|v| + c). Each step solves its linear system by GMRES. Differences of the second-order
//! residual give the products with the Jacobian, and ILU(0) of the first-order Jacobian is the preconditioner. The
//! Courant number C grows with each accepted step, so the last steps are Newton steps.

use crate::block_sparse::BlockSparse;
use crate::euler::{self, Conserved, Primitive};
use crate::finite_volume::Flow;
use crate::krylov::{Field, gmres, norm};

/// Steps after which the solver gives up.
const MOST_STEPS: usize = 200;
/// Courant number of the first step.
const FIRST_COURANT: f64 = 5.0;
/// Smallest and largest growth of the Courant number per full step; in between it grows as the residual falls.
const COURANT_GROWTH: [f64; 2] = [1.5, 2.0];
/// Largest relative change of density and pressure in a step.
const LARGEST_CHANGE: f64 = 0.3;
/// Largest growth of the residual in a step; it must be able to grow while a shock moves to its final position.
const LARGEST_RISE: f64 = 1.5;
/// The solver gives up when it would have to shorten a step to less than this fraction.
const SMALLEST_FRACTION: f64 = 1e-4;
/// Relative residual at which GMRES stops.
const GMRES_TOLERANCE: f64 = 0.1;
/// Largest number of GMRES steps per linear system.
const GMRES_STEPS: usize = 60;

/// The last state of the iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// `[nodes]` ρ, u, v, p
    pub states: Vec<Primitive>,
    /// Euclidean norm of R over all nodes and equations.
    pub residual: f64,
    /// Steps taken.
    pub steps: usize,
}

/// Iterates from the free stream until the norm of the residual is at most `tolerance`; the error is the state in which
/// the iteration stopped without converging.
pub fn solve(flow: &Flow, tolerance: f64) -> Result<Steady, Steady> {
    let mut states = vec![euler::conserved(flow.stream); flow.mesh.nodes()];
    let mut matrix = BlockSparse::new(flow.mesh.nodes(), &flow.mesh.edges);
    let mut residual = flow.residual(&states);
    let mut size = norm(&residual);
    let mut courant = FIRST_COURANT;
    let mut steps = 0;
    'steps: while size > tolerance && steps < MOST_STEPS {
        let change = step(flow, &states, &residual, courant, &mut matrix);
        let full = largest_fraction(&states, &change);
        let mut fraction = full;
        loop {
            let next = moved(&states, &change, fraction);
            let next_residual = flow.residual(&next);
            let next_size = norm(&next_residual);
            if next_size < LARGEST_RISE * size {
                if fraction == 1.0 {
                    let [least, most] = COURANT_GROWTH;
                    courant *= (size / next_size).clamp(least, most);
                }
                (states, residual, size) = (next, next_residual, next_size);
                break;
            }
            (fraction, courant) = (fraction / 2.0, courant / 2.0);
            if fraction < SMALLEST_FRACTION * full {
                break 'steps;
            }
        }
        steps += 1;
    }
    let steady = Steady { states: states.into_iter().map(euler::primitive).collect(), residual: size, steps };
    if size <= tolerance { Ok(steady) } else { Err(steady) }
}

/// δ of one backward Euler step.
fn step(flow: &Flow, states: &Field, residual: &Field, courant: f64, matrix: &mut BlockSparse) -> Field {
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
        let epsilon = 1e-8 * size / norm(direction); // about the square root of the round-off
        let mut image = flow.residual(&moved(states, direction, epsilon));
        for (node, values) in image.iter_mut().enumerate() {
            for k in 0..4 {
                values[k] = (values[k] - residual[node][k]) / epsilon + inertia[node] * direction[node][k];
            }
        }
        image
    };
    let right_side: Field = residual.iter().map(|values| values.map(|value| -value)).collect();
    gmres(&right_side, GMRES_TOLERANCE, GMRES_STEPS, apply, |field| matrix.solve(field))
}

/// The largest fraction of `change`, at most 1, that changes each density and pressure by at most [`LARGEST_CHANGE`].
fn largest_fraction(states: &[Conserved], change: &[Conserved]) -> f64 {
    states.iter().zip(moved(states, change, 1.0)).fold(1.0, |fraction: f64, (&before, after)| {
        let (before, after) = (euler::primitive(before), euler::primitive(after));
        [0, 3]
            .into_iter()
            .fold(fraction, |fraction, k| fraction.min(LARGEST_CHANGE / (after[k] / before[k] - 1.0).abs()))
    })
}

/// `states` + `fraction` · `change`
fn moved(states: &[Conserved], change: &[Conserved], fraction: f64) -> Field {
    let add = |(state, change): (&Conserved, &Conserved)| [0, 1, 2, 3].map(|k| state[k] + fraction * change[k]);
    states.iter().zip(change).map(add).collect()
}
