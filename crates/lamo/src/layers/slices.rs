//! Slices: N points softly sorted into M tokens, and back.
//!
//! w_{nhm} = softmax_m(slice(x_{nh}) / τ_h),  token_{mh} = Σ_n w_{nhm} f_{nh} / (Σ_n w_{nhm} + 10⁻⁵),
//! point_{nh} = Σ_m w_{nhm} token′_{mh}. Cost and memory are linear in N.

use super::{Initial, Linear, Scope, Style};
use lamo_physics::Grid;
use lamo_tensor::{ConvolutionOptions, Tensor};

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

/// A map of point features: 3 × 3 convolution on planes, linear elsewhere.
enum Projection<'g> {
    Linear(Linear<'g>),
    Convolution { weight: Tensor<'g>, bias: Tensor<'g>, rows: usize, columns: usize },
}

impl<'g> Projection<'g> {
    fn new(scope: &Scope<'_, 'g>, shape: &SliceShape) -> Self {
        let width = shape.width;
        match shape.grid {
            Grid::Plane { rows, columns } => Projection::Convolution {
                weight: scope.parameter("weight", [width, width, 3, 3], Initial::fan_in(9 * width)),
                bias: scope.parameter("bias", [width], Initial::fan_in(9 * width)),
                rows,
                columns,
            },
            Grid::Line { .. } | Grid::Cloud { .. } => Projection::Linear(Linear::new(scope, width, width)),
        }
    }

    /// `[batch, points, width]` → the same
    fn forward(&self, features: Tensor<'g>) -> Tensor<'g> {
        let [batch, points, width] = features.dims();
        match self {
            Projection::Linear(linear) => linear.forward(features),
            Projection::Convolution { weight, bias, rows, columns } => {
                let around = ConvolutionOptions { padding: [[1, 1]; 2], ..ConvolutionOptions::default() };
                let image = features.reshape([batch, *rows, *columns, width]).convolve(*weight, around) + *bias;
                image.reshape([batch, points, width])
            }
        }
    }
}

/// How much each point belongs to each slice.
struct Membership<'g> {
    shape: SliceShape,
    project: Projection<'g>,
    slice: Linear<'g>,
    /// `[1, heads, 1, 1]` τ
    temperature: Tensor<'g>,
}

impl<'g> Membership<'g> {
    fn new(scope: &Scope<'_, 'g>, shape: SliceShape, orthogonal: bool) -> Self {
        let head_width = shape.width / shape.heads;
        let slice = scope.enter("in_project_slice");
        Membership {
            project: Projection::new(&scope.enter("in_project_x"), &shape),
            slice: match orthogonal {
                true => Linear::orthogonal(&slice, head_width, shape.tokens),
                false => Linear::new(&slice, head_width, shape.tokens),
            },
            temperature: scope.parameter("temperature", [1, shape.heads, 1, 1], Initial::Constant(0.5)),
            shape,
        }
    }

    /// w `[batch, points, heads, tokens]`
    fn forward(&self, features: Tensor<'g>) -> Tensor<'g> {
        let [batch, points, width] = features.dims();
        let heads = self.shape.heads;
        let temperature = match self.shape.grid {
            Grid::Plane { .. } => self.temperature.clamp(0.1, 5.0),
            Grid::Line { .. } | Grid::Cloud { .. } => self.temperature, // the authors leave it free on clouds
        };
        let projected = self.project.forward(features).reshape([batch, points, heads, width / heads]);
        (self.slice.forward(projected) * temperature.reshape([heads, 1]).reciprocal()).softmax()
    }
}

/// Encoder and decoder of one block, or of all.
pub struct Slices<'g> {
    membership: Membership<'g>,
    values: Projection<'g>,
    /// Weights of the decoder where it does not reuse the encoder's.
    decoder: Option<Membership<'g>>,
}

/// A block's points sorted into tokens.
pub struct Sliced<'g> {
    /// `[batch, tokens, width]`
    pub tokens: Tensor<'g>,
    /// `[batch, points, heads, tokens]`
    weights: Tensor<'g>,
}

impl<'g> Slices<'g> {
    /// A set for one block.
    pub fn own(scope: &Scope<'_, 'g>, shape: SliceShape, own_decoder: bool) -> Self {
        Slices::new(scope, shape, own_decoder, false)
    }

    /// One set for all blocks. It is made last, so the authors' common start does not reach it.
    pub fn shared(scope: &Scope<'_, 'g>, shape: SliceShape, own_decoder: bool) -> Self {
        Slices::new(&scope.with_style(Style::FanIn), shape, own_decoder, true)
    }

    fn new(scope: &Scope<'_, 'g>, shape: SliceShape, own_decoder: bool, orthogonal: bool) -> Self {
        Slices {
            membership: Membership::new(scope, shape, orthogonal),
            values: Projection::new(&scope.enter("in_project_fx"), &shape),
            decoder: own_decoder.then(|| Membership::new(&scope.enter("decoder"), shape, orthogonal)),
        }
    }

    /// Points `[batch, points, width]` to tokens.
    pub fn encode(&self, features: Tensor<'g>) -> Sliced<'g> {
        let [batch, points, width] = features.dims();
        let SliceShape { heads, tokens, .. } = self.membership.shape;
        let weights = self.membership.forward(features);
        let values = self.values.forward(features).reshape([batch, points, heads, width / heads]);
        let gathered = weights.permute(&[0, 2, 3, 1]).matmul(values.permute(&[0, 2, 1, 3])); // [batch, heads, M, c]
        let mass = weights.sum(&[1]).reshape([batch, heads, tokens, 1]);
        let means = gathered / (mass + 1e-5); // an empty slice has no mass
        let tokens = means.permute(&[0, 2, 1, 3]).reshape([batch, tokens, width]);
        Sliced { tokens, weights: self.decoder.as_ref().map_or(weights, |decoder| decoder.forward(features)) }
    }
}

impl<'g> Sliced<'g> {
    /// Mixed tokens `[batch, tokens, width]` back to points `[batch, points, width]`.
    pub fn decode(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let [batch, points, heads, count] = self.weights.dims();
        let [_, _, width] = tokens.dims();
        let by_head = tokens.reshape([batch, count, heads, width / heads]).permute(&[0, 2, 1, 3]);
        let spread = self.weights.permute(&[0, 2, 1, 3]).matmul(by_head); // [batch, heads, points, c]
        spread.permute(&[0, 2, 1, 3]).reshape([batch, points, width])
    }
}
