//! Slices: N points softly sorted into M tokens, and back.
//!
//! w_{nhm} = softmax_m(slice(x_{nh}) / τ_h),  token_{mh} = Σ_n w_{nhm} f_{nh} / (Σ_n w_{nhm} + 10⁻⁵),
//! point_{nh} = Σ_m w_{nhm} token′_{mh}. Cost and memory are linear in N.
//!
//! With [`Queries::Conditioned`], slice(x_{nh})_m = q_{hm}·x_{nh} with queries that depend on the sample ([`Latents`]); with
//! [`Decoder::Attention`], the way back is a cross-attention of its own ([`TokenDecoder`]).

use super::latents::Latents;
use super::sorted::Sorted;
use super::token_decoder::TokenDecoder;
use super::{Linear, convolve_volume, split_heads};
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
    /// By attention from the points to the mixed tokens.
    Attention,
}

/// What a slice is compared with the points by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Queries {
    /// Learned vectors, the same for all samples and heads.
    #[default]
    Fixed,
    /// Learned vectors of each head, moved by what they find in the sample.
    Conditioned,
}

/// How points are sorted into slices, and back; the default is the authors'.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SliceMaps {
    /// What points are compared with in the encoder, and in the decoder if it has its own maps.
    pub queries: Queries,
    /// How tokens become points again.
    pub decoder: Decoder,
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

/// What the points are compared with.
enum Asked<'g> {
    Fixed(Linear<'g>),
    Conditioned(Latents<'g>),
}

/// How much each point belongs to each slice.
struct Sorter<'g> {
    shape: SliceShape,
    project: Projection<'g>,
    slice: Asked<'g>,
    /// `[1, heads, 1, 1]` τ
    temperature: Tensor<'g>,
}

impl<'g> Sorter<'g> {
    fn new(scope: &Scope<'_, 'g>, shape: SliceShape, queries: Queries, orthogonal: bool) -> Self {
        let SliceShape { heads, tokens, width, .. } = shape;
        let (head_width, slice) = (width / heads, scope.enter("in_project_slice"));
        Sorter {
            project: Projection::new(&scope.enter("in_project_x"), &shape),
            slice: match (queries, orthogonal) {
                (Queries::Fixed, true) => Asked::Fixed(Linear::orthogonal(&slice, head_width, tokens)),
                (Queries::Fixed, false) => Asked::Fixed(Linear::new(&slice, head_width, tokens)),
                (Queries::Conditioned, _) => {
                    Asked::Conditioned(Latents::new(&scope.enter("latents"), heads, tokens, head_width))
                }
            },
            temperature: scope.parameter("temperature", [1, heads, 1, 1], Initial::Constant(0.5)),
            shape,
        }
    }

    /// w of points that project to `queries` + bias β: (slice(q + β) / τ)_{hm} = q·k_{hm} + b_{hm} with k = W/τ, b = bias/τ + k·β.
    fn sorted(&self, queries: Tensor<'g>, mask: Option<Tensor<'g>>) -> Sorted<'g> {
        let SliceShape { heads, tokens, width, grid } = self.shape;
        let temperature = match grid {
            Grid::Plane { .. } | Grid::Volume { .. } => self.temperature.clamp(0.1, 5.0),
            Grid::Line { .. } | Grid::Cloud { .. } => self.temperature, // the authors do not clamp it on clouds
        };
        let inverse = temperature.reshape([heads, 1]).reciprocal();
        let slice = match &self.slice {
            Asked::Fixed(slice) => slice,
            Asked::Conditioned(latents) => {
                let points = queries + self.project.bias(heads);
                return Sorted::by_sample(points, latents.forward(points, mask) * inverse.reshape([heads, 1, 1]));
            }
        };
        let [weight, bias] = slice.affine();
        let keys = weight.reshape([1, tokens, width / heads]) * inverse.reshape([heads, 1, 1]);
        let shift = self.project.bias(heads).reshape([heads, 1, width / heads]);
        let offsets = bias * inverse + (keys * shift).sum(&[2]).reshape([heads, tokens]);
        Sorted::Alike(Membership { queries, keys, offsets })
    }
}

/// A decoder that does not reuse the encoder's weights.
enum OwnDecoder<'g> {
    Sorter(Sorter<'g>),
    Attention(TokenDecoder<'g>),
}

/// Encoder and decoder of one block, or of all blocks.
pub struct Slices<'g> {
    sorter: Sorter<'g>,
    values: Projection<'g>,
    decoder: Option<OwnDecoder<'g>>,
    pass: Pass<'g>,
}

/// How the tokens of a block get back to its points.
#[derive(Clone, Copy)]
enum Back<'g> {
    Sorted {
        heads: usize,
        sorted: Sorted<'g>,
    },
    /// With the points `[batch, points, width]`.
    Attention {
        decoder: TokenDecoder<'g>,
        points: Tensor<'g>,
    },
}

/// A block's points sorted into tokens.
pub struct Sliced<'g> {
    /// `[batch, tokens, width]`
    pub tokens: Tensor<'g>,
    back: Back<'g>,
}

impl<'g> Slices<'g> {
    /// Slice maps of one block.
    pub fn own(scope: &Scope<'_, 'g>, shape: SliceShape, maps: SliceMaps) -> Self {
        Slices::new(scope, shape, maps, false)
    }

    /// Slice maps that all blocks share. The authors make them after their common initialisation, so it does not apply here.
    pub fn shared(scope: &Scope<'_, 'g>, shape: SliceShape, maps: SliceMaps) -> Self {
        Slices::new(&scope.with_style(Style::FanIn), shape, maps, true)
    }

    fn new(
        scope: &Scope<'_, 'g>,
        shape: SliceShape,
        SliceMaps { queries, decoder }: SliceMaps,
        orthogonal: bool,
    ) -> Self {
        let own = scope.enter("decoder");
        Slices {
            sorter: Sorter::new(scope, shape, queries, orthogonal),
            values: Projection::new(&scope.enter("in_project_fx"), &shape),
            decoder: match decoder {
                Decoder::Tied => None,
                Decoder::Own => Some(OwnDecoder::Sorter(Sorter::new(&own, shape, queries, orthogonal))),
                Decoder::Attention => Some(OwnDecoder::Attention(TokenDecoder::new(&own, shape.heads, shape.width))),
            },
            pass: scope.pass(),
        }
    }

    /// Points `[batch, points, width]` to tokens.
    pub fn encode(&self, features: Tensor<'g>) -> Sliced<'g> {
        self.encode_masked(features, None)
    }

    /// The same; with a mask `[batch, points]`, only of the points where it is 1.
    pub fn encode_masked(&self, features: Tensor<'g>, mask: Option<Tensor<'g>>) -> Sliced<'g> {
        let heads = self.sorter.shape.heads;
        let mut maps = vec![&self.sorter.project, &self.values];
        if let Some(OwnDecoder::Sorter(decoder)) = &self.decoder {
            maps.push(&decoder.project);
        }
        let projected = project(&maps, &self.sorter.shape, features);
        let sorted = self.sorter.sorted(projected[0], mask);
        self.pass.show_places(|| sorted.places());
        let collected = sorted.collect(projected[1], mask); // [batch, heads, tokens, head width + 1]
        Sliced {
            tokens: self.tokens(collected),
            back: match &self.decoder {
                None => Back::Sorted { heads, sorted },
                Some(OwnDecoder::Sorter(decoder)) => Back::Sorted { heads, sorted: decoder.sorted(projected[2], mask) },
                Some(OwnDecoder::Attention(decoder)) => Back::Attention { decoder: *decoder, points: features },
            },
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
        self.sorter.sorted(projected[0], Some(mask)).collect(projected[1], Some(mask))
    }

    /// Mixed tokens `[batch, tokens, width]` back to points, which may be a piece of all.
    pub(super) fn spread(&self, features: Tensor<'g>, tokens: Tensor<'g>) -> Tensor<'g> {
        let (sorter, shape) = match &self.decoder {
            Some(OwnDecoder::Attention(decoder)) => return decoder.forward(features, tokens),
            Some(OwnDecoder::Sorter(own)) => (own, &own.shape),
            None => (&self.sorter, &self.sorter.shape),
        };
        let sorted = sorter.sorted(project(&[&sorter.project], shape, features)[0], None);
        Sliced { tokens, back: Back::Sorted { heads: shape.heads, sorted } }.decode(tokens)
    }

    /// Whether points are sorted one by one: with queries of the sample, all points decide on them, and on planes and volumes neighbours do.
    pub(super) fn is_pointwise(&self) -> bool {
        let on_cloud = matches!(self.sorter.shape.grid, Grid::Line { .. } | Grid::Cloud { .. });
        on_cloud && matches!(self.sorter.slice, Asked::Fixed(_))
    }
}

impl<'g> Sliced<'g> {
    /// Mixed tokens `[batch, tokens, width]` back to points `[batch, points, width]`.
    pub fn decode(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let (heads, sorted) = match self.back {
            Back::Sorted { heads, sorted } => (heads, sorted),
            Back::Attention { decoder, points } => return decoder.forward(points, tokens),
        };
        let [batch, _, width] = tokens.dims();
        let spread = sorted.spread(split_heads(tokens, heads));
        let [_, points, _, _] = spread.dims();
        spread.reshape([batch, points, width])
    }
}
