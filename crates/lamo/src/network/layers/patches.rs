//! Patches: a plane cut into p × p squares, a volume into p × p × p cubes, or a line into p points, each a token, and back. A line
//! and a plane are boxes that are one point thick.

use super::LayerNorm;
use crate::network::{Initial, Scope};
use lamo_tensor::Tensor;

/// Points along each axis of a box and of its patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchShape {
    /// Number of axes of the grid: 1 or 2 with a kernel of two axes, or 3.
    pub axes: usize,
    /// Points along each axis of a patch; an axis that the grid lacks has one.
    pub patch: [usize; 3],
}

impl PatchShape {
    /// The kernel's taps: `[p, p]` on a plane, `[1, p]` on a line, `[p, p, p]` in a volume.
    fn taps(&self) -> &[usize] {
        if self.axes == 3 { &self.patch } else { &self.patch[1..] }
    }

    fn points(&self) -> usize {
        self.patch.iter().product()
    }

    /// The authors draw the weights from N(0, 1), so that the first outputs are about ten times the targets. Volumes are not theirs,
    /// and their steps are dear: there, the first outputs are of the size of the targets.
    fn initial(&self, fan_in: usize) -> Initial {
        if self.axes == 3 { Initial::fan_in(fan_in) } else { Initial::Normal { deviation: 1.0 } }
    }

    /// Patches along each axis of a box, which the patch divides.
    fn count(&self, extents: [usize; 3]) -> [usize; 3] {
        [0, 1, 2].map(|axis| extents[axis] / self.patch[axis])
    }
}

/// `t_e = LN(Σ_{c,u,v} W[e,c,u,v] · f[c, i p + u, j p + v] + b_e)`: every patch becomes a token.
pub struct Patchify<'g> {
    shape: PatchShape,
    /// `[width, inputs, p, p]`, in a volume `[width, inputs, p, p, p]`
    weight: Tensor<'g>,
    /// `[width]`
    bias: Tensor<'g>,
    norm: LayerNorm<'g>,
}

impl<'g> Patchify<'g> {
    /// `inputs` channels to `width`.
    pub fn new(scope: &Scope<'_, 'g>, shape: PatchShape, inputs: usize, width: usize) -> Self {
        let initial = shape.initial(inputs * shape.points());
        Patchify {
            shape,
            weight: scope.parameter("WE", [&[width, inputs], shape.taps()].concat(), initial),
            bias: scope.parameter("bE", [width], initial),
            norm: LayerNorm::new(&scope.enter("layer_norm"), width),
        }
    }

    /// `[batch, …extents, inputs]` → `[batch, tokens, width]`; the patch divides the extents.
    pub fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let [batch, rows, columns, layers, inputs] = image.dims();
        let ([high, long, deep], [width]) = (self.shape.patch, self.bias.dims());
        let [down, across, behind] = self.shape.count([rows, columns, layers]);
        let blocks = image.reshape([batch, down, high, across, long, behind, deep, inputs]);
        let patches = blocks.permute(&[0, 1, 3, 5, 7, 2, 4, 6]); // channel, then row, then column, then layer
        let numbers = inputs * self.shape.points();
        let flat = patches.reshape([batch, down * across * behind, numbers]);
        let weight = self.weight.reshape([width, numbers]);
        self.norm.forward(flat.matmul(weight.transpose()) + self.bias)
    }
}

/// `o[ch, i p + u, j p + v] = Σ_e s_e W[e,ch,u,v]`, `s = LN(t) + b`: every token becomes a patch.
pub struct Depatchify<'g> {
    shape: PatchShape,
    /// `[width, outputs, p, p]`, in a volume `[width, outputs, p, p, p]`
    weight: Tensor<'g>,
    /// `[width]`, added to the token before it is projected.
    bias: Tensor<'g>,
    norm: LayerNorm<'g>,
    outputs: usize,
}

impl<'g> Depatchify<'g> {
    /// `width` channels to `outputs`.
    pub fn new(scope: &Scope<'_, 'g>, shape: PatchShape, width: usize, outputs: usize) -> Self {
        let initial = shape.initial(width);
        Depatchify {
            shape,
            weight: scope.parameter("WE", [&[width, outputs], shape.taps()].concat(), initial),
            bias: scope.parameter("bE", [width], initial),
            norm: LayerNorm::new(&scope.enter("layer_norm"), width),
            outputs,
        }
    }

    /// `[batch, tokens, width]` → `[batch, …extents, outputs]`
    pub fn forward(&self, tokens: Tensor<'g>, extents: [usize; 3]) -> Tensor<'g> {
        let [batch, _, width] = tokens.dims();
        let ([high, long, deep], outputs) = (self.shape.patch, self.outputs);
        let [down, across, behind] = self.shape.count(extents);
        let shifted = self.norm.forward(tokens) + self.bias;
        let flat = shifted.matmul(self.weight.reshape([width, outputs * self.shape.points()]));
        let patches = flat.reshape([batch, down, across, behind, outputs, high, long, deep]);
        let blocks = patches.permute(&[0, 1, 5, 2, 6, 3, 7, 4]);
        blocks.reshape([batch, extents[0], extents[1], extents[2], outputs])
    }
}
