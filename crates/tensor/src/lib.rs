//! Tensor programs: build a graph of static shapes, differentiate it, compile it once, run it many times.
//!
//! [`Graph`] records operators through [`Tensor`] handles; [`Graph::gradient`] adds the operators of a gradient;
//! [`Program::compile_on`] fuses operators, plans memory and prepares the result to run on a CPU or a GPU;
//! [`mod@reference`] evaluates the same graph in f64 and defines what is correct. [`attempt`] ends building and compiling
//! with an error when sizes are impossible or the caller wants to stop.
#![allow(unsafe_code)] // kernels work on planned memory; see `cpu::memory` for the contract

mod cache;
mod compile;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod gradient;
mod graph;
mod limits;
mod memory;
mod ops;
mod program;
pub mod reference;
mod shape;
mod snapshot;
mod walk;

pub use cache::cache_folder;
pub use cpu::simd::{Level, level};
#[cfg(feature = "cuda")]
pub use cuda::{CudaDevice, CudaReport, report as cuda_report};
pub use device::{Device, DeviceError, DeviceErrorKind};
pub use graph::{Graph, Index, MODEL_STATES, PARAMETERS, Section, Tensor};
pub use limits::attempt;
pub use ops::{ConvolutionOptions, Map, Membership, Precision, RANDOM_WORDS, Random, ScanInput};
pub use program::{Culprit, Options, Program};
pub use shape::{Layout, Shape, ShapeError, Span, for_each_index};
pub use snapshot::Snapshot;
pub use walk::{Operation, Step};

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn no_source_file_has_more_than_600_lines() {
        let files = files(&Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("src"));
        assert!(files.len() > 50, "{} files found", files.len());
        for path in files {
            let lines = std::fs::read_to_string(&path).unwrap().lines().count();
            assert!(lines <= 600, "{} has {lines} lines", path.display());
        }
    }
}
