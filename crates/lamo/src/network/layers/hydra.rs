//! Hydra (Hwang et al. 2024): a quasiseparable mixer. A scan forwards and one backwards, each shifted by one token so
//! that neither sees the token itself, plus a skip whose weight depends on the token:
//!
//! y_t = h⃗_{t−1} C⃗_{t−1} + h⃖_{t+1} C⃖_{t+1} + (fc_D(x_t) + D) ∘ x_t.
//!
//! With four directions the tokens fill a square: two scans follow its rows, two its columns.

use super::selective::{TokenConvolution, by_columns, column_order, discretise, shown};
use super::{Linear, Selection};
use crate::network::probe::Kernel;
use crate::network::{Initial, Pass, Scope};
use lamo_tensor::{ScanInput, Tensor};

/// The mixer of one block.
pub struct Hydra<'g> {
    selection: Selection,
    in_projection: Linear<'g>,
    convolution: TokenConvolution<'g>,
    /// `[heads]`, one for both directions.
    step_bias: Tensor<'g>,
    /// `[heads]` A_log, one for both directions.
    decay: Tensor<'g>,
    /// `[heads, channels, states]`, one for both directions.
    initial: Tensor<'g>,
    /// `[heads]` D
    skip: Tensor<'g>,
    skip_projection: Linear<'g>,
    norm: Tensor<'g>,
    out_projection: Linear<'g>,
    pass: Pass<'g>,
}

impl<'g> Hydra<'g> {
    /// Mixes tokens of `width` channels.
    pub fn new(scope: &Scope<'_, 'g>, width: usize, selection: Selection) -> Self {
        let Selection { groups, states, directions, .. } = selection;
        let (inner, heads) = (selection.inner(width), selection.heads(width));
        let per_group = 2 * groups * states * directions; // B and C of each direction
        let channels = inner / heads;
        Hydra {
            in_projection: Linear::without_bias(
                &scope.enter("in_proj"),
                width,
                2 * inner + per_group + directions * heads,
            ),
            convolution: TokenConvolution::new(&scope.enter("conv1d"), inner + per_group, selection.convolution),
            step_bias: scope.parameter("dt_bias", [heads], Initial::StepBias),
            decay: scope.parameter("A_log", [heads], Initial::Constant(0.0)),
            initial: scope.parameter("init_states", [heads, channels, states], Initial::Constant(0.0)),
            skip: scope.parameter("D", [heads], Initial::Constant(1.0)),
            skip_projection: Linear::without_bias(&scope.enter("fc_D"), inner, heads),
            norm: scope.parameter("norm.weight", [inner], Initial::Constant(1.0)),
            out_projection: Linear::without_bias(&scope.enter("out_proj"), inner, width),
            pass: scope.pass(),
            selection,
        }
    }

    /// `[batch, tokens, width]` → the same
    pub fn forward(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let [batch, length, width] = tokens.dims();
        let Selection { groups, states, directions, discretisation, .. } = self.selection;
        let (inner, heads) = (self.selection.inner(width), self.selection.heads(width));
        let per_group = 2 * groups * states * directions;
        let projected = self.in_projection.forward(tokens);
        let [z, mixed, steps] = projected.split(2, [inner, inner + per_group, directions * heads]);
        let mixed = self.convolution.centred(mixed).silu();
        let x = mixed.slice(2, 0, inner);
        let signal = x.reshape([batch, length, heads, inner / heads]);

        let rate = -self.decay.exp(); // A
        let skip = (self.skip_projection.forward(x) + self.skip).reshape([batch, length, heads, 1]);
        let mut y = signal * skip;
        let mut scans = Vec::new();
        for direction in 0..directions {
            let turned = |tokens: Tensor<'g>| if direction < 2 { tokens } else { by_columns(tokens) };
            // B and C of this direction, each `[batch, tokens, groups, states]`
            let size = groups * states;
            let group = |position: usize| {
                let start = inner + (2 * direction + position) * size;
                turned(mixed.slice(2, start, start + size)).reshape([batch, length, groups, states])
            };
            let signal = turned(x).reshape([batch, length, heads, inner / heads]);
            let steps = turned(steps.slice(2, direction * heads, (direction + 1) * heads));
            let step = (steps + self.step_bias).softplus();
            let (log_decay, gain) = discretise(discretisation, step, rate);
            let initial = self.initial.broadcast_to([batch, heads, inner / heads, states]);
            let scan = ScanInput { signal, log_decay, gain, write: group(0), read: group(1), initial: Some(initial) };
            let orders = [order(length, direction % 2)];
            let (scanned, _) = scan.scan(&orders);
            scans.push((scan, orders, (direction >= 2).then(|| column_order(length))));
            if let Some(shifted) = shift(scanned, direction % 2) {
                y = y + match direction {
                    0 | 1 => shifted,
                    _ => turned(shifted.reshape([batch, length, inner])).reshape(shifted.shape()),
                };
            }
        }
        let y = self.pass.show_mixing(y, || {
            let scans = scans.into_iter().map(|(scan, orders, tokens)| shown(scan, &orders, tokens, true));
            Kernel::Scans { scans: scans.collect(), skip }
        });
        let y = y.reshape([batch, length, inner]).rms_norm(self.norm, 1e-5) * z.silu(); // norm first, then the gate
        self.out_projection.forward(y)
    }
}

/// Forwards for direction 0, backwards for direction 1.
fn order(length: usize, direction: usize) -> Vec<u32> {
    let tokens = 0..length as u32;
    if direction == 0 { tokens.collect() } else { tokens.rev().collect() }
}

/// Shifts by one token along the direction; `None` for a single token.
fn shift(scanned: Tensor<'_>, direction: usize) -> Option<Tensor<'_>> {
    let [_, length, _, _] = scanned.dims();
    match (length, direction) {
        (1, _) => None,
        (_, 0) => Some(scanned.slice(1, 0, length - 1).pad(1, 1, 0)),
        _ => Some(scanned.slice(1, 1, length).pad(1, 0, 1)),
    }
}
