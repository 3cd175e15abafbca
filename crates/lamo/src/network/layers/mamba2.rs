//! Mamba-2 (Dao & Gu 2024), forwards and backwards over one projection; the result is the mean of both directions:
//!
//! y = RMSNorm((h C + D ∘ x) ∘ SiLU(z)),  x, B, C = SiLU(conv(·)).
//!
//! With four directions the tokens fill a square: two scans follow its rows, two its columns, and the result is the mean of all.

use super::selective::{TokenConvolution, by_columns, column_order, discretise, shown};
use super::{Linear, Selection};
use crate::network::probe::Kernel;
use crate::network::{Initial, Pass, Scope};
use lamo_tensor::{ScanInput, Tensor};

/// What the names of parameters end in: forwards and backwards along the rows, as in the authors' code, and along the columns.
const ENDINGS: [&str; 4] = ["", "_b", "_c", "_d"];

/// Parameters of one direction.
struct Direction<'g> {
    convolution: TokenConvolution<'g>,
    /// `[heads]`
    step_bias: Tensor<'g>,
    /// `[heads]` A_log
    decay: Tensor<'g>,
    /// `[heads]` D
    skip: Tensor<'g>,
}

/// The mixer of one block.
pub struct Mamba2<'g> {
    selection: Selection,
    in_projection: Linear<'g>,
    directions: Vec<Direction<'g>>,
    norm: Tensor<'g>,
    out_projection: Linear<'g>,
    pass: Pass<'g>,
}

impl<'g> Mamba2<'g> {
    /// Mixes tokens of `width` channels.
    pub fn new(scope: &Scope<'_, 'g>, width: usize, selection: Selection) -> Self {
        let Selection { groups, states, .. } = selection;
        let (inner, heads) = (selection.inner(width), selection.heads(width));
        let mixed = inner + 2 * groups * states;
        // Two directions start with equal values; only their convolutions are drawn separately.
        let step_bias = scope.all(selection, "dt_bias", heads, Initial::StepBias);
        let decay = scope.all(selection, "A_log", heads, Initial::LogUniform { low: 1.0, high: 16.0 });
        let skip = scope.all(selection, "D", heads, Initial::Constant(1.0));
        let direction = |number: usize| Direction {
            convolution: TokenConvolution::new(
                &scope.enter(&format!("conv1d{}", ENDINGS[number])),
                mixed,
                selection.convolution,
            ),
            step_bias: step_bias[number],
            decay: decay[number],
            skip: skip[number],
        };
        Mamba2 {
            in_projection: Linear::without_bias(&scope.enter("in_proj"), width, inner + mixed + heads),
            directions: (0..selection.directions).map(direction).collect(),
            norm: scope.parameter("norm.weight", [inner], Initial::Constant(1.0)),
            out_projection: Linear::without_bias(&scope.enter("out_proj"), inner, width),
            pass: scope.pass(),
            selection,
        }
    }

    /// `[batch, tokens, width]` → the same
    pub fn forward(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let [batch, length, width] = tokens.dims();
        let Selection { groups, states, .. } = self.selection;
        let (inner, heads) = (self.selection.inner(width), self.selection.heads(width));
        let projected = self.in_projection.forward(tokens);
        let [z, mixed, step] = projected.split(2, [inner, inner + 2 * groups * states, heads]);
        let by_groups = [batch, length, groups, inner / groups];
        let norm = self.norm.reshape([groups, inner / groups]);
        let mut sum: Option<Tensor<'g>> = None;
        for (number, direction) in self.directions.iter().enumerate() {
            let turned = |tokens: Tensor<'g>| if number < 2 { tokens } else { by_columns(tokens) };
            let scanned = self.scan(direction, number, turned(mixed), turned(step));
            let gated = scanned * z.silu(); // the gate first, then the norm
            let y = gated.reshape(by_groups).rms_norm(norm, 1e-5).reshape([batch, length, inner]);
            sum = Some(sum.map_or(y, |sum| sum + y));
        }
        let sum = sum.expect("a mixer has a direction");
        self.out_projection.forward(sum * (1.0 / self.directions.len() as f64))
    }

    /// y = h C + D ∘ x along direction `number`, `[batch, tokens, inner]`. What is given of a direction along the
    /// columns is turned, the result is not.
    fn scan(&self, direction: &Direction<'g>, number: usize, mixed: Tensor<'g>, step: Tensor<'g>) -> Tensor<'g> {
        let [batch, length, heads] = step.dims();
        let Selection { groups, states, discretisation, .. } = self.selection;
        let [_, _, channels] = mixed.dims();
        let inner = channels - 2 * groups * states;
        let backwards = number % 2 == 1;
        let convolved = match backwards {
            false => direction.convolution.causal(mixed),
            true => direction.convolution.anticausal(mixed),
        };
        let [x, write, read] = convolved.silu().split(2, [inner, groups * states, groups * states]);
        let signal = x.reshape([batch, length, heads, inner / heads]);
        let step = (step + direction.step_bias).softplus();
        let (log_decay, gain) = discretise(discretisation, step, -direction.decay.exp());
        let by_groups = [batch, length, groups, states];
        let (write, read) = (write.reshape(by_groups), read.reshape(by_groups));
        let tokens = 0..length as u32;
        let order = if backwards { tokens.rev().collect() } else { tokens.collect() };
        let (scan, orders) = (ScanInput { signal, log_decay, gain, write, read, initial: None }, [order]);
        let (y, _) = scan.scan(&orders);
        let skip = direction.skip.reshape([heads, 1]);
        let y = (y + signal * skip).reshape([batch, length, inner]);
        let y = if number < 2 { y } else { by_columns(y) };
        self.pass.show_mixing(y, || Kernel::Scans {
            scans: vec![shown(scan, &orders, (number >= 2).then(|| column_order(length)), false)],
            skip: skip.reshape([1, 1, heads, 1]),
        })
    }
}

impl<'g> Scope<'_, 'g> {
    /// One parameter per direction; those of a direction and its reverse have equal first values.
    fn all(&self, selection: Selection, name: &str, heads: usize, initial: Initial) -> Vec<Tensor<'g>> {
        let names = ENDINGS.map(|ending| format!("{name}{ending}"));
        match selection.directions {
            1 => vec![self.parameter(name, [heads], initial)],
            directions => {
                let pairs = names[..directions].chunks_exact(2);
                pairs.flat_map(|pair| self.twins([&pair[0], &pair[1]], [heads], initial)).collect()
            }
        }
    }
}
