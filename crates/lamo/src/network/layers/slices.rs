//! Slices: N points softly sorted into M tokens, and back.
//!
//! w_{nhm} = softmax_m(slice(x_{nh}) / τ_h),  token_{mh} = Σ_n w_{nhm} f_{nh} / (Σ_n w_{nhm} + 10⁻⁵),
//! point_{nh} = Σ_m w_{nhm} token′_{mh}. Cost and memory are linear in N.

use super::Linear;
use crate::network::{Initial, Scope, Style};
use lamo_geometry::Grid;
use lamo_tensor::{ConvolutionOptions, Membership, Tensor};

/// Sizes of slice maps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SliceShape {
    /// Where the points are.
    pub grid: Grid,
    /// C, channels of points and tokens.
    pub width: usize,
    /// Heads with slices of their own.
    pub heads: usize,
    /// M, slices per head.
    pub tokens: usize,
}

/// A map of point features without its bias: 3 × 3 convolution on planes, linear elsewhere.
struct Projection<'g> {
    /// `[width, width, 3, 3]` or `[width, width]`
    weight: Tensor<'g>,
    /// `[width]`
    bias: Tensor<'g>,
}

impl<'g> Projection<'g> {
    fn new(scope: &Scope<'_, 'g>, shape: &SliceShape) -> Self {
        let width = shape.width;
        match shape.grid {
            Grid::Plane { .. } => Projection {
                weight: scope.parameter("weight", [width, width, 3, 3], Initial::fan_in(9 * width)),
                bias: scope.parameter("bias", [width], Initial::fan_in(9 * width)),
            },
            Grid::Line { .. } | Grid::Cloud { .. } => {
                let [weight, bias] = Linear::new(scope, width, width).affine();
                Projection { weight, bias }
            }
        }
    }

    /// The bias as `[heads, head width]`.
    fn bias(&self, heads: usize) -> Tensor<'g> {
        let [width] = self.bias.dims();
        self.bias.reshape([heads, width / heads])
    }
}

/// All maps of the same features in one product: `[batch, points, heads, head width]` each, biases left out.
fn project<'g>(maps: &[&Projection<'g>], shape: &SliceShape, features: Tensor<'g>) -> Vec<Tensor<'g>> {
    let ([batch, points, width], heads) = (features.dims(), shape.heads);
    let weight = Tensor::concatenate(&maps.iter().map(|map| map.weight).collect::<Vec<_>>(), 0);
    let projected = match shape.grid {
        Grid::Plane { rows, columns } => {
            let around = ConvolutionOptions { padding: [[1, 1]; 2], ..ConvolutionOptions::default() };
            features.reshape([batch, rows, columns, width]).convolve(weight, around)
        }
        Grid::Line { .. } | Grid::Cloud { .. } => features.matmul(weight.transpose()),
    };
    let projected = projected.reshape([batch, points, maps.len() * heads, width / heads]);
    (0..maps.len()).map(|map| projected.slice(2, map * heads, (map + 1) * heads)).collect()
}

/// How much each point belongs to each slice.
struct Sorter<'g> {
    shape: SliceShape,
    project: Projection<'g>,
    slice: Linear<'g>,
    /// `[1, heads, 1, 1]` τ
    temperature: Tensor<'g>,
}

impl<'g> Sorter<'g> {
    fn new(scope: &Scope<'_, 'g>, shape: SliceShape, orthogonal: bool) -> Self {
        let head_width = shape.width / shape.heads;
        let slice = scope.enter("in_project_slice");
        Sorter {
            project: Projection::new(&scope.enter("in_project_x"), &shape),
            slice: match orthogonal {
                true => Linear::orthogonal(&slice, head_width, shape.tokens),
                false => Linear::new(&slice, head_width, shape.tokens),
            },
            temperature: scope.parameter("temperature", [1, shape.heads, 1, 1], Initial::Constant(0.5)),
            shape,
        }
    }

    /// w of points that project to `queries` + bias: (slice(q + β) / τ)_{hm} = q·k_{hm} + b_{hm} with k = W/τ, b = bias/τ + k·β.
    fn membership(&self, queries: Tensor<'g>) -> Membership<'g> {
        let SliceShape { heads, tokens, width, grid } = self.shape;
        let temperature = match grid {
            Grid::Plane { .. } => self.temperature.clamp(0.1, 5.0),
            Grid::Line { .. } | Grid::Cloud { .. } => self.temperature, // the authors do not clamp it on clouds
        };
        let inverse = temperature.reshape([heads, 1]).reciprocal();
        let [weight, bias] = self.slice.affine();
        let keys = weight.reshape([1, tokens, width / heads]) * inverse.reshape([heads, 1, 1]);
        let shift = self.project.bias(heads).reshape([heads, 1, width / heads]);
        let offsets = bias * inverse + (keys * shift).sum(&[2]).reshape([heads, tokens]);
        Membership { queries, keys, offsets }
    }
}

/// Encoder and decoder of one block, or of all blocks.
pub struct Slices<'g> {
    sorter: Sorter<'g>,
    values: Projection<'g>,
    /// Weights of the decoder where it does not reuse the encoder's.
    decoder: Option<Sorter<'g>>,
}

/// A block's points sorted into tokens.
pub struct Sliced<'g> {
    /// `[batch, tokens, width]`
    pub tokens: Tensor<'g>,
    membership: Membership<'g>,
}

impl<'g> Slices<'g> {
    /// Slice maps of one block.
    pub fn own(scope: &Scope<'_, 'g>, shape: SliceShape, own_decoder: bool) -> Self {
        Slices::new(scope, shape, own_decoder, false)
    }

    /// Slice maps that all blocks share. The authors make them after their common initialisation, so it does not apply here.
    pub fn shared(scope: &Scope<'_, 'g>, shape: SliceShape, own_decoder: bool) -> Self {
        Slices::new(&scope.with_style(Style::FanIn), shape, own_decoder, true)
    }

    fn new(scope: &Scope<'_, 'g>, shape: SliceShape, own_decoder: bool, orthogonal: bool) -> Self {
        Slices {
            sorter: Sorter::new(scope, shape, orthogonal),
            values: Projection::new(&scope.enter("in_project_fx"), &shape),
            decoder: own_decoder.then(|| Sorter::new(&scope.enter("decoder"), shape, orthogonal)),
        }
    }

    /// Points `[batch, points, width]` to tokens.
    pub fn encode(&self, features: Tensor<'g>) -> Sliced<'g> {
        let [batch, _, width] = features.dims();
        let SliceShape { heads, tokens, .. } = self.sorter.shape;
        let mut maps = vec![&self.sorter.project, &self.values];
        maps.extend(self.decoder.as_ref().map(|decoder| &decoder.project));
        let projected = project(&maps, &self.sorter.shape, features);
        let membership = self.sorter.membership(projected[0]);
        let collected = membership.collect(projected[1]); // [batch, heads, tokens, head width + 1]
        let (sums, mass) = (collected.slice(3, 0, width / heads), collected.slice(3, width / heads, width / heads + 1));
        let bias = self.values.bias(heads).reshape([heads, 1, width / heads]);
        let means = (sums + mass * bias) / (mass + 1e-5); // an empty slice has no mass
        Sliced {
            tokens: means.permute(&[0, 2, 1, 3]).reshape([batch, tokens, width]),
            membership: self.decoder.as_ref().map_or(membership, |decoder| decoder.membership(projected[2])),
        }
    }
}

impl<'g> Sliced<'g> {
    /// Mixed tokens `[batch, tokens, width]` back to points `[batch, points, width]`.
    pub fn decode(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let [batch, points, heads, _] = self.membership.queries.dims();
        let [_, count, width] = tokens.dims();
        let by_head = tokens.reshape([batch, count, heads, width / heads]).permute(&[0, 2, 1, 3]);
        self.membership.spread(by_head).reshape([batch, points, width])
    }
}
