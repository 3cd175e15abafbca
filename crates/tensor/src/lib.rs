//! Tensor programs: build a graph of static shapes, differentiate it, compile it once, run it many times.
//!
//! [`Graph`] records operators through [`Tensor`] handles; [`Graph::gradient`] adds the operators of a gradient;
//! [`Program::compile`] fuses, plans memory and runs the result on the CPU; [`mod@reference`] evaluates the same graph in
//! f64 and defines what is correct.
#![allow(unsafe_code)] // kernels work on planned memory; see `cpu::memory` for the contract

mod compile;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod gradient;
mod graph;
mod kept;
mod ops;
mod program;
pub mod reference;
mod shape;

pub use cpu::simd::{Level, level};
#[cfg(feature = "cuda")]
pub use cuda::{CudaDevice, CudaReport, report as cuda_report};
pub use device::{Device, Unavailable};
pub use graph::{Graph, Index, PARAMETERS, Section, Tensor};
pub use kept::Kept;
pub use ops::{ConvolutionOptions, Map, Membership, Precision, ScanInput};
pub use program::{Options, Program};
pub use shape::{Shape, Span};
