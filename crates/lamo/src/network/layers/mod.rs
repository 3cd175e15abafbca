//! Layers that models are built from. A layer declares its parameters under the authors' names and says how each is
//! drawn; its `forward` is a function of tensors.

mod attention;
mod axial_attention;
pub mod embedding;
mod grid_norm;
mod hydra;
mod lifting;
mod linear;
mod linear_attention;
mod mamba2;
mod mlp;
mod norm;
mod patches;
mod point_stack;
mod resample;
mod rotary;
mod selective;
mod slice_stack;
mod slices;
mod spectral;
mod ss2d;
mod windows;

pub use attention::{Attention, attention_scores, join_heads, split_heads};
pub use axial_attention::AxialAttention;
pub use embedding::TimeEmbedding;
pub use grid_norm::{BatchNorm, GridNorm, GridNormKind, InstanceNorm};
pub use hydra::Hydra;
pub use lifting::{LIBRARY_MLP, Lifting, LiftingShape};
pub use linear::Linear;
pub use linear_attention::{LinearAttention, LinearScale};
pub use mamba2::Mamba2;
pub use mlp::{Mlp, ResidualMlp};
pub use norm::LayerNorm;
pub use patches::{Depatchify, Patchify};
pub use point_stack::{PointMixer, PointStack, PointStackShape};
pub use resample::resample;
pub use rotary::{Angles, RotaryCrossAttention, RotarySelfAttention, turned_channels};
pub use selective::{Discretisation, Selection, discretise};
pub use slice_stack::{SliceStack, StackShape, TokenMixer};
pub use slices::{SliceShape, Sliced, Slices};
pub use spectral::{LineConvolution, Pointwise, SpectralConvolution, analyse, synthesise};
pub use ss2d::{Ss2d, cross_heads, cross_orders};
pub use windows::{WindowAttention, WindowWeights, Windows, rolled};
