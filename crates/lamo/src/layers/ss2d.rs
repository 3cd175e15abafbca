//! The four-direction mixer of regular grids (SS2D on the state-space dual; `mamba_4D` in the authors' code).
//!
//! Tokens of a rows × columns grid are scanned row by row, column by column, and both ways back; the four results are
//! summed. Step Δ, write B and read C are functions of the token, one set per direction:
//!
//! h = e^{ΔA} h + Δ x ⊗ B,  y = h C + D ∘ x,  A = −e^{A_log}.

use super::{Initial, LayerNorm, Linear, Scope};
use lamo_tensor::{ConvolutionOptions, ScanInput, Tensor};

/// Row-major, column-major, and their reverses.
const DIRECTIONS: usize = 4;

/// The mixer of one block.
pub struct Ss2d<'g> {
    inner: usize,
    heads: usize,
    states: usize,
    in_projection: Linear<'g>,
    /// `[inner, 1, 3, 3]`
    kernel: Tensor<'g>,
    /// `[inner]`
    kernel_bias: Tensor<'g>,
    /// `[directions, heads + 2 states, inner]`: one row per Δ of a head, then B, then C.
    selection: Tensor<'g>,
    /// `[directions, heads]`
    step_bias: Tensor<'g>,
    /// `[directions, heads]` A_log
    decay: Tensor<'g>,
    /// `[directions, heads, channels]` D
    skip: Tensor<'g>,
    norm: LayerNorm<'g>,
    out_projection: Linear<'g>,
}

impl<'g> Ss2d<'g> {
    /// `expand · width` inner channels in ⌈width/16⌉ heads per direction.
    pub fn new(scope: &Scope<'_, 'g>, width: usize, expand: usize, states: usize) -> Self {
        let inner = expand * width;
        let heads = width.div_ceil(16);
        assert!(inner.is_multiple_of(heads), "SS2D: {inner} channels do not divide into {heads} heads");
        let rows = heads + 2 * states;
        let convolution = scope.enter("conv2d").enter("1");
        Ss2d {
            inner,
            heads,
            states,
            selection: scope.parameter("x_proj_weight", [DIRECTIONS, rows, inner], Initial::fan_in(inner)),
            skip: scope.parameter("Ds", [DIRECTIONS, heads, inner / heads], Initial::Constant(1.0)),
            decay: scope.parameter("A_logs", [DIRECTIONS, heads], Initial::Constant(0.0)),
            step_bias: scope.parameter("dt_projs_bias", [DIRECTIONS, heads], Initial::Uniform { low: 0.0, high: 0.1 }),
            norm: LayerNorm::new(&scope.enter("out_norm"), inner),
            in_projection: Linear::without_bias(&scope.enter("in_proj"), width, 2 * inner),
            kernel: convolution.parameter("weight", [inner, 1, 3, 3], Initial::fan_in(9)),
            kernel_bias: convolution.parameter("bias", [inner], Initial::fan_in(9)),
            out_projection: Linear::without_bias(&scope.enter("out_proj"), inner, width),
        }
    }

    /// Mixes `[batch, rows · columns, width]` over the grid.
    pub fn forward(&self, tokens: Tensor<'g>, rows: usize, columns: usize) -> Tensor<'g> {
        let [batch, length, _] = tokens.dims();
        let Ss2d { inner, heads, states, .. } = *self;
        let [x, z] = self.in_projection.forward(tokens).split(2, [inner, inner]); // [batch, tokens, inner]
        let around = ConvolutionOptions { groups: inner, padding: [[1, 1]; 2], ..ConvolutionOptions::default() };
        let image = x.reshape([batch, rows, columns, inner]).convolve(self.kernel, around) + self.kernel_bias;
        let x = image.gelu().reshape([batch, length, inner]);

        let selection = self.selection.reshape([DIRECTIONS * (heads + 2 * states), inner]);
        let selected = x.matmul(selection.transpose()).reshape([batch, length, DIRECTIONS, heads + 2 * states]);
        let [step, write, read] = selected.split(3, [heads, states, states]); // [batch, tokens, directions, ·]
        let step = (step + self.step_bias).softplus(); // Δ > 0
        let log_decay = step * -self.decay.exp(); // Δ A

        let scan = ScanInput {
            signal: x.reshape([batch, length, heads, inner / heads]),
            log_decay: log_decay.reshape([batch, length, DIRECTIONS * heads]),
            gain: step.reshape([batch, length, DIRECTIONS * heads]), // B̄ = Δ B, as the authors' kernels do
            write,
            read,
            initial: None,
        };
        let (y, _) = scan.scan(&cross_orders(rows, columns));
        let skip = self.skip.sum(&[0]).reshape([inner]); // each direction adds its own D ∘ x
        let y = y.reshape([batch, length, inner]) + x * skip;
        self.out_projection.forward(self.norm.forward(y) * z.gelu())
    }
}

/// Token visited at each step: row by row, column by column, and both backwards.
pub fn cross_orders(rows: usize, columns: usize) -> Vec<Vec<u32>> {
    let by_rows: Vec<u32> = (0..(rows * columns) as u32).collect();
    let by_columns: Vec<u32> = (0..rows * columns).map(|step| (step % rows * columns + step / rows) as u32).collect();
    let reversed = |order: &[u32]| order.iter().rev().copied().collect::<Vec<_>>();
    vec![by_rows.clone(), by_columns.clone(), reversed(&by_rows), reversed(&by_columns)]
}
