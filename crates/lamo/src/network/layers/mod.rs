//! Layers that models are built from. A layer declares its parameters under the authors' names and says how each is
//! drawn; its `forward` is a function of tensors.

mod attention;
mod efficient_attention;
pub mod embedding;
mod grid_norm;
mod hydra;
mod lifting;
mod linear;
mod linear_attention;
mod mamba2;
mod mlp;
mod norm;
mod nystrom;
mod orthogonal;
mod patches;
mod resample;
mod selective;
mod slice_stack;
mod slices;
mod spectral;
mod ss2d;

pub use attention::{Attention, attention_scores, join_heads, split_heads};
pub use efficient_attention::EfficientAttention;
pub use embedding::TimeEmbedding;
pub use grid_norm::{BatchNorm, GridNorm, GridNormKind, InstanceNorm};
pub use hydra::Hydra;
pub use lifting::{LIBRARY_MLP, Lifting, LiftingShape};
pub use linear::Linear;
pub use linear_attention::{LinearAttention, LinearScale};
pub use mamba2::Mamba2;
pub use mlp::Mlp;
pub use norm::LayerNorm;
pub use nystrom::NystromAttention;
pub(crate) use nystrom::{FILTER, ITERATIONS};
pub use orthogonal::OrthogonalKernel;
pub use patches::{Depatchify, Patchify};
pub use resample::resample;
pub use selective::{Discretisation, Selection, discretise};
pub use slice_stack::{SliceStack, StackShape, TokenMixer};
pub use slices::{SliceShape, Sliced, Slices};
pub use spectral::{LineConvolution, Pointwise, SpectralConvolution, analyse, synthesise};
pub use ss2d::{Ss2d, cross_heads, cross_orders};
