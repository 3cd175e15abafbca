//! Slices: N points softly sorted into M tokens, and back.
//!
//! w_{nhm} = softmax_m(slice(x_{nh}) / τ_h),  token_{mh} = Σ_n w_{nhm} f_{nh} / (Σ_n w_{nhm} + 10⁻⁵),
//! point_{nh} = Σ_m w_{nhm} token′_{mh}. Cost and memory are linear in N.
//!
//! The memberships w are not stored: they are computed where they are used ([`Membership`]).

use super::{Linear, convolve_volume, split_heads};
use crate::network::probe::Places;
use crate::network::{Initial, Pass, Scope, Style};
use lamo_geometry::Grid;
use lamo_tensor::{ConvolutionOptions, Membership, Tensor};
use serde::{Deserialize, Serialize};

/// How tokens become points again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decoder {
    /// By the encoder's weights, as in the authors' code.
    #[default]
    Tied,
    /// By W = softmax(Linear(·)) of its own, as in the paper's text.
    Own,
}

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

/// A map of point features without its bias: 3 × 3 convolution on planes, 3 × 3 × 3 in volumes, linear elsewhere.
struct Projection<'g> {
    /// `[width, width, 3, 3]`, `[width, width, 3, 3, 3]` or `[width, width]`
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
            Grid::Volume { .. } => Projection {
                weight: scope.parameter("weight", [width, width, 3, 3, 3], Initial::fan_in(27 * width)),
                bias: scope.parameter("bias", [width], Initial::fan_in(27 * width)),
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
        Grid::Volume { rows, columns, layers } => {
            convolve_volume(features.reshape([batch, rows, columns, layers, width]), weight, 1)
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
        let SliceShape { heads, tokens, width, .. } = shape;
        let (head_width, slice) = (width / heads, scope.enter("in_project_slice"));
        Sorter {
            project: Projection::new(&scope.enter("in_project_x"), &shape),
            slice: match orthogonal {
                true => Linear::orthogonal(&slice, head_width, tokens),
                false => Linear::new(&slice, head_width, tokens),
            },
            temperature: scope.parameter("temperature", [1, heads, 1, 1], Initial::Constant(0.5)),
            shape,
        }
    }

    /// w of points that project to `queries` + bias β: (slice(q + β) / τ)_{hm} = q·k_{hm} + b_{hm} with k = W/τ, b = bias/τ + k·β.
    fn sorted(&self, queries: Tensor<'g>) -> Membership<'g> {
        let SliceShape { heads, tokens, width, grid } = self.shape;
        let temperature = match grid {
            Grid::Plane { .. } | Grid::Volume { .. } => self.temperature.clamp(0.1, 5.0),
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

/// Σ_n w_{nm} [v_n | 1]: `[batch, points, heads, width]` → `[batch, heads, slices, width + 1]`, the sum over the points of the
/// mask `[batch, points]` where there is one.
fn collect<'g>(sorted: Membership<'g>, values: Tensor<'g>, mask: Option<Tensor<'g>>) -> Tensor<'g> {
    let Some(mask) = mask else { return sorted.collect(values) };
    let [batch, points, heads, width] = values.dims();
    let real = mask.reshape([batch, points, 1, 1]);
    let ones = real.broadcast_to([batch, points, heads, 1]);
    sorted.collect(Tensor::concatenate(&[values * real, ones], 3)).slice(3, 0, width + 1)
}

/// Encoder and decoder of one block, or of all blocks.
pub struct Slices<'g> {
    sorter: Sorter<'g>,
    values: Projection<'g>,
    /// The decoder's own maps.
    decoder: Option<Sorter<'g>>,
    pass: Pass<'g>,
}

/// A block's points sorted into tokens.
pub struct Sliced<'g> {
    /// `[batch, tokens, width]`
    pub tokens: Tensor<'g>,
    heads: usize,
    /// How the tokens get back to the points.
    back: Membership<'g>,
}

impl<'g> Slices<'g> {
    /// Slice maps of one block.
    pub fn own(scope: &Scope<'_, 'g>, shape: SliceShape, decoder: Decoder) -> Self {
        Slices::new(scope, shape, decoder, false)
    }

    /// Slice maps that all blocks share. The authors make them after their common initialisation, so it does not apply here.
    pub fn shared(scope: &Scope<'_, 'g>, shape: SliceShape, decoder: Decoder) -> Self {
        Slices::new(&scope.with_style(Style::FanIn), shape, decoder, true)
    }

    fn new(scope: &Scope<'_, 'g>, shape: SliceShape, decoder: Decoder, orthogonal: bool) -> Self {
        let own = || Sorter::new(&scope.enter("decoder"), shape, orthogonal);
        Slices {
            sorter: Sorter::new(scope, shape, orthogonal),
            values: Projection::new(&scope.enter("in_project_fx"), &shape),
            decoder: (decoder == Decoder::Own).then(own),
            pass: scope.pass(),
        }
    }

    /// Points `[batch, points, width]` to tokens.
    pub fn encode(&self, features: Tensor<'g>) -> Sliced<'g> {
        self.encode_masked(features, None)
    }

    /// The same; with a mask `[batch, points]`, only of the points where it is 1.
    pub fn encode_masked(&self, features: Tensor<'g>, mask: Option<Tensor<'g>>) -> Sliced<'g> {
        let mut maps = vec![&self.sorter.project, &self.values];
        maps.extend(self.decoder.as_ref().map(|decoder| &decoder.project));
        let projected = project(&maps, &self.sorter.shape, features);
        let sorted = self.sorter.sorted(projected[0]);
        self.pass.show_places(|| {
            let Membership { queries, keys, offsets } = sorted;
            Places::Slices { queries, keys, offsets }
        });
        let collected = collect(sorted, projected[1], mask); // [batch, heads, tokens, head width + 1]
        Sliced {
            tokens: self.tokens(collected),
            heads: self.sorter.shape.heads,
            back: self.decoder.as_ref().map_or(sorted, |decoder| decoder.sorted(projected[2])),
        }
    }
}

impl<'g> Slices<'g> {
    /// The tokens `[batch, tokens, width]` of sums `[batch, heads, tokens, head width + 1]` over the points.
    pub(super) fn tokens(&self, sums: Tensor<'g>) -> Tensor<'g> {
        let SliceShape { heads, tokens, width, .. } = self.sorter.shape;
        let [batch, _, _, _] = sums.dims();
        let (sums, mass) = (sums.slice(3, 0, width / heads), sums.slice(3, width / heads, width / heads + 1));
        let bias = self.values.bias(heads).reshape([heads, 1, width / heads]);
        let means = (sums + mass * bias) / (mass + 1e-5); // an empty slice has no mass
        means.permute(&[0, 2, 1, 3]).reshape([batch, tokens, width])
    }

    /// The sums of [`Slices::tokens`] over the points where the mask is 1, which add up over pieces of the points.
    pub(super) fn sums(&self, features: Tensor<'g>, mask: Tensor<'g>) -> Tensor<'g> {
        let projected = project(&[&self.sorter.project, &self.values], &self.sorter.shape, features);
        collect(self.sorter.sorted(projected[0]), projected[1], Some(mask))
    }

    /// Mixed tokens `[batch, tokens, width]` back to points, which may be a piece of all.
    pub(super) fn spread(&self, features: Tensor<'g>, tokens: Tensor<'g>) -> Tensor<'g> {
        let sorter = self.decoder.as_ref().unwrap_or(&self.sorter);
        let back = sorter.sorted(project(&[&sorter.project], &sorter.shape, features)[0]);
        Sliced { tokens, heads: sorter.shape.heads, back }.decode(tokens)
    }

    /// Whether points are sorted one by one: on planes and volumes their neighbours count.
    pub(super) fn is_pointwise(&self) -> bool {
        matches!(self.sorter.shape.grid, Grid::Line { .. } | Grid::Cloud { .. })
    }
}

impl<'g> Sliced<'g> {
    /// Mixed tokens `[batch, tokens, width]` back to points `[batch, points, width]`.
    pub fn decode(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let [batch, _, width] = tokens.dims();
        let spread = self.back.spread(split_heads(tokens, self.heads));
        let [_, points, _, _] = spread.dims();
        spread.reshape([batch, points, width])
    }
}
