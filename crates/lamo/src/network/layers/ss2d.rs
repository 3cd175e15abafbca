//! The mixer of regular grids (SS2D on the state-space dual; `mamba_4D` in the authors' code).
//!
//! Tokens of a rows × columns grid are scanned row by row, column by column, and both ways back; those of a line, which is
//! one row, forwards and backwards. The results are summed. Step Δ, write B and read C are functions of the token, one set per direction:
//!
//! h = e^{ΔA} h + B̄ x,  y = h C + D ∘ x,  A = −e^{A_log}.

use super::selective::{discretise, shown};
use super::{LayerNorm, Linear, Selection};
use crate::network::probe::Kernel;
use crate::network::{Initial, Pass, Scope};
use lamo_tensor::{ConvolutionOptions, ScanInput, Tensor};

/// The mixer of one block.
pub struct Ss2d<'g> {
    selection: Selection,
    in_projection: Linear<'g>,
    /// `[inner, 1, k, k]`, on a line `[inner, 1, 1, k]`
    kernel: Tensor<'g>,
    /// `[inner]`
    kernel_bias: Tensor<'g>,
    /// `[directions, heads + 2 states, inner]`: one row per Δ of a head, then B, then C.
    selectors: Tensor<'g>,
    /// `[directions, heads]`
    step_bias: Tensor<'g>,
    /// `[directions, heads]` A_log
    decay: Tensor<'g>,
    /// `[directions, heads, channels]` D
    skip: Tensor<'g>,
    norm: LayerNorm<'g>,
    out_projection: Linear<'g>,
    pass: Pass<'g>,
}

impl<'g> Ss2d<'g> {
    /// Mixes tokens of `width` channels on a plane; heads and groups follow from the width and the directions.
    pub fn new(scope: &Scope<'_, 'g>, width: usize, selection: Selection) -> Self {
        Ss2d::with_kernel(scope, width, selection, [selection.convolution; 2])
    }

    /// Mixes tokens along a line, in one direction or in both. The kernel of its convolution has one row.
    pub fn on_line(scope: &Scope<'_, 'g>, width: usize, selection: Selection) -> Self {
        Ss2d::with_kernel(scope, width, selection, [1, selection.convolution])
    }

    fn with_kernel(scope: &Scope<'_, 'g>, width: usize, selection: Selection, [high, long]: [usize; 2]) -> Self {
        let Selection { states, directions, .. } = selection;
        let (inner, heads) = (selection.inner(width), selection.cross_heads(width));
        let taps = Initial::fan_in(high * long);
        let convolution = scope.enter("conv2d").enter("1");
        let initial_step = Initial::Uniform { low: 0.0, high: 0.1 };
        let rows = heads + 2 * states;
        Ss2d {
            selectors: scope.parameter("x_proj_weight", [directions, rows, inner], Initial::fan_in(inner)),
            skip: scope.parameter("Ds", [directions, heads, inner / heads], Initial::Constant(1.0)),
            decay: scope.parameter("A_logs", [directions, heads], Initial::Constant(0.0)),
            step_bias: scope.parameter("dt_projs_bias", [directions, heads], initial_step),
            norm: LayerNorm::new(&scope.enter("out_norm"), inner),
            in_projection: Linear::without_bias(&scope.enter("in_proj"), width, 2 * inner),
            kernel: convolution.parameter("weight", [inner, 1, high, long], taps),
            kernel_bias: convolution.parameter("bias", [inner], taps),
            out_projection: Linear::without_bias(&scope.enter("out_proj"), inner, width),
            pass: scope.pass(),
            selection,
        }
    }

    /// Mixes `[batch, rows · columns, width]` over the grid.
    pub fn forward(&self, tokens: Tensor<'g>, rows: usize, columns: usize) -> Tensor<'g> {
        let [batch, length, width] = tokens.dims();
        let Selection { states, directions, discretisation, .. } = self.selection;
        let (inner, heads) = (self.selection.inner(width), self.selection.cross_heads(width));
        let [x, z] = self.in_projection.forward(tokens).split(2, [inner, inner]); // [batch, tokens, inner]
        let [_, _, high, long] = self.kernel.dims();
        let padding = [high, long].map(|taps| [taps / 2; 2]);
        let around = ConvolutionOptions { groups: inner, padding, ..ConvolutionOptions::default() };
        let image = x.reshape([batch, rows, columns, inner]).convolve(self.kernel, around) + self.kernel_bias;
        let x = image.gelu().reshape([batch, length, inner]);

        // A projection acts on each token separately, so one product serves all directions before the tokens are reordered.
        let selectors = self.selectors.reshape([directions * (heads + 2 * states), inner]);
        let selected = x.matmul(selectors.transpose()).reshape([batch, length, directions, heads + 2 * states]);
        let [step, write, read] = selected.split(3, [heads, states, states]); // [batch, tokens, directions, ·]
        let step = (step + self.step_bias).softplus(); // Δ > 0
        let (log_decay, gain) = discretise(discretisation, step, -self.decay.exp());

        let scan_heads = [batch, length, directions * heads];
        let scan = ScanInput {
            signal: x.reshape([batch, length, heads, inner / heads]),
            log_decay: log_decay.reshape(scan_heads),
            gain: gain.reshape(scan_heads),
            write,
            read,
            initial: None,
        };
        let orders = directed(&cross_orders(rows, columns), directions);
        let (y, _) = scan.scan(&orders);
        let skip = self.skip.sum(&[0]).reshape([inner]); // each direction adds its own D ∘ x
        let y = y.reshape([batch, length, inner]) + x * skip;
        let y = self.pass.show_mixing(y, || Kernel::Scans {
            scans: vec![shown(scan, &orders, None, false)],
            skip: skip.reshape([1, 1, heads, inner / heads]),
        });
        self.out_projection.forward(self.norm.forward(y) * z.gelu())
    }
}

/// Orders of 1, 2 or 4 directions: row by row; row by row and its reverse; all four.
fn directed(orders: &[Vec<u32>], directions: usize) -> Vec<Vec<u32>> {
    let chosen: &[usize] = match directions {
        1 => &[0],
        2 => &[0, 2],
        _ => &[0, 1, 2, 3],
    };
    chosen.iter().map(|&number| orders[number].clone()).collect()
}

/// Token visited at each step: row by row, column by column, and both backwards.
pub fn cross_orders(rows: usize, columns: usize) -> Vec<Vec<u32>> {
    let by_rows: Vec<u32> = (0..(rows * columns) as u32).collect();
    let by_columns: Vec<u32> = (0..rows * columns).map(|step| (step % rows * columns + step / rows) as u32).collect();
    let reversed = |order: &[u32]| order.iter().rev().copied().collect::<Vec<_>>();
    vec![by_rows.clone(), by_columns.clone(), reversed(&by_rows), reversed(&by_columns)]
}
