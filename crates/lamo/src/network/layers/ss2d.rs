//! The mixer of regular grids (SS2D on the state-space dual; `mamba_4D` in the authors' code).
//!
//! Tokens of a rows × columns grid are scanned row by row, column by column, and both ways back; those of a line, which is
//! one row, forwards and backwards; those of a volume in three orders, each with another axis fastest, and back. The results are summed. Step Δ, write B and read C are functions of the token, one set per direction:
//!
//! h = e^{ΔA} h + B̄ x,  y = h C + D ∘ x,  A = −e^{A_log}.

use super::selective::{discretise, shown};
use super::{LayerNorm, Linear, Selection, convolve_volume};
use crate::network::probe::Kernel;
use crate::network::{Initial, Pass, Scope};
use lamo_tensor::{ConvolutionOptions, ScanInput, Tensor};

/// The mixer of one block.
pub struct Ss2d<'g> {
    selection: Selection,
    in_projection: Linear<'g>,
    /// `[inner, 1, k, k]`, on a line `[inner, 1, 1, k]`, in a volume `[inner, 1, k, k, k]`
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
    /// Mixes tokens of `width` channels on a grid of `axes` axes; heads and groups follow from the width and the directions. The
    /// kernel of its convolution has one row on a line.
    pub fn new(scope: &Scope<'_, 'g>, axes: usize, width: usize, selection: Selection) -> Self {
        let side = selection.convolution;
        let (name, taps) = match axes {
            1 => ("conv2d", vec![1, side]),
            2 => ("conv2d", vec![side; 2]),
            _ => ("conv3d", vec![side; 3]),
        };
        let Selection { states, directions, .. } = selection;
        let (inner, heads) = (selection.inner(width), selection.cross_heads(width));
        let initial_taps = Initial::fan_in(taps.iter().product());
        let convolution = scope.enter(name).enter("1");
        let initial_step = Initial::Uniform { low: 0.0, high: 0.1 };
        let rows = heads + 2 * states;
        Ss2d {
            selectors: scope.parameter("x_proj_weight", [directions, rows, inner], Initial::fan_in(inner)),
            skip: scope.parameter("Ds", [directions, heads, inner / heads], Initial::Constant(1.0)),
            decay: scope.parameter("A_logs", [directions, heads], Initial::Constant(0.0)),
            step_bias: scope.parameter("dt_projs_bias", [directions, heads], initial_step),
            norm: LayerNorm::new(&scope.enter("out_norm"), inner),
            in_projection: Linear::without_bias(&scope.enter("in_proj"), width, 2 * inner),
            kernel: convolution.parameter("weight", [vec![inner, 1], taps].concat(), initial_taps),
            kernel_bias: convolution.parameter("bias", [inner], initial_taps),
            out_projection: Linear::without_bias(&scope.enter("out_proj"), inner, width),
            pass: scope.pass(),
            selection,
        }
    }

    /// Mixes `[batch, tokens, width]` over a box of tokens; a plane is `[1, rows, columns]`.
    pub fn forward(&self, tokens: Tensor<'g>, extents: [usize; 3]) -> Tensor<'g> {
        let [batch, length, width] = tokens.dims();
        let Selection { states, directions, discretisation, .. } = self.selection;
        let (inner, heads) = (self.selection.inner(width), self.selection.cross_heads(width));
        let [x, z] = self.in_projection.forward(tokens).split(2, [inner, inner]); // [batch, tokens, inner]
        let image = self.convolved(x, extents) + self.kernel_bias;
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
        let orders = directed(extents, directions);
        let (y, _) = scan.scan(&orders);
        let skip = self.skip.sum(&[0]).reshape([inner]); // each direction adds its own D ∘ x
        let y = y.reshape([batch, length, inner]) + x * skip;
        let y = self.pass.show_mixing(y, || Kernel::Scans {
            scans: vec![shown(scan, &orders, None, false)],
            skip: skip.reshape([1, 1, heads, inner / heads]),
        });
        self.out_projection.forward(self.norm.forward(y) * z.gelu())
    }

    /// `[batch, tokens, inner]` convolved over the neighbours of each token: `[batch, …, inner]`.
    fn convolved(&self, tokens: Tensor<'g>, [rows, columns, layers]: [usize; 3]) -> Tensor<'g> {
        let [batch, _, inner] = tokens.dims();
        let shape = self.kernel.shape();
        let &[_, _, high, long] = shape.dims() else {
            return convolve_volume(tokens.reshape([batch, rows, columns, layers, inner]), self.kernel, inner);
        };
        let padding = [high, long].map(|taps| [taps / 2; 2]);
        let around = ConvolutionOptions { groups: inner, padding, ..ConvolutionOptions::default() };
        tokens.reshape([batch, columns, layers, inner]).convolve(self.kernel, around)
    }
}

/// Orders of 1, 2, 4 or 6 directions: row by row; row by row and its reverse; all of a plane; all of a volume.
fn directed(extents: [usize; 3], directions: usize) -> Vec<Vec<u32>> {
    let [_, rows, columns] = extents;
    let orders = if directions == 6 { volume_orders(extents) } else { cross_orders(rows, columns) };
    match directions {
        1 | 2 => {
            let forwards: Vec<u32> = (0..extents.iter().product::<usize>() as u32).collect();
            [forwards.clone(), reversed(&forwards)][..directions].to_vec()
        }
        _ => orders,
    }
}

fn reversed(order: &[u32]) -> Vec<u32> {
    order.iter().rev().copied().collect()
}

/// Token visited at each step: row by row, column by column, and both backwards.
pub fn cross_orders(rows: usize, columns: usize) -> Vec<Vec<u32>> {
    let by_rows: Vec<u32> = (0..(rows * columns) as u32).collect();
    let by_columns: Vec<u32> = (0..rows * columns).map(|step| (step % rows * columns + step / rows) as u32).collect();
    vec![by_rows.clone(), by_columns.clone(), reversed(&by_rows), reversed(&by_columns)]
}

/// Token visited at each step in a volume: with the layers fastest, with the rows fastest, with the columns fastest, and all three
/// backwards. The axis after the fastest, in the circle of the axes, is the slowest.
pub fn volume_orders(extents: [usize; 3]) -> Vec<Vec<u32>> {
    let strides = [extents[1] * extents[2], extents[2], 1];
    let order = |[slow, middle, fast]: [usize; 3]| -> Vec<u32> {
        let token = |step: usize| {
            let places = [
                step / (extents[middle] * extents[fast]),
                step / extents[fast] % extents[middle],
                step % extents[fast],
            ];
            [slow, middle, fast].iter().zip(places).map(|(&axis, place)| place * strides[axis]).sum::<usize>() as u32
        };
        (0..extents.iter().product()).map(token).collect()
    };
    let forwards = [[0, 1, 2], [1, 2, 0], [2, 0, 1]].map(order);
    let backwards = [0, 1, 2].map(|number| reversed(&forwards[number]));
    forwards.into_iter().chain(backwards).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orders_of_a_volume_visit_every_token_once_and_take_steps_along_each_axis() {
        let orders = volume_orders([2, 3, 4]);
        let steps: Vec<[u32; 3]> = orders.iter().map(|order| [order[0], order[1], order[23]]).collect();
        assert_eq!(steps, [[0, 1, 23], [0, 12, 23], [0, 4, 23], [23, 22, 0], [23, 11, 0], [23, 19, 0]]);
        for mut order in orders {
            order.sort_unstable();
            assert_eq!(order, (0..24).collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_and_two_directions_are_the_same_in_planes_and_volumes() {
        assert_eq!(directed([1, 2, 3], 2), directed([2, 3, 1], 2));
        assert_eq!(directed([1, 2, 3], 2), [cross_orders(2, 3)[0].clone(), cross_orders(2, 3)[2].clone()]);
        assert_eq!(directed([1, 2, 3], 4), cross_orders(2, 3));
    }
}
