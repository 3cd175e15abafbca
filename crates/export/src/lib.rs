//! Trained operators for other runtimes: an ONNX file, or a C program that needs nothing but libm.
//!
//! Every model is a static graph of tensor operators, so models are not translated one by one: the graph of a forward pass in
//! physical units ([`Operator::physical`]) is translated operator by operator. What is written takes fields as they are in a
//! data set and returns fields as `lamo predict` does; positions on a lattice, normalisers and the trend are inside.
//!
//! What is written is verified before it gets its name: an ONNX file is read back and evaluated in f64, the kernels of a C program
//! are run one by one on the memory that the program will have, and both are compared with the library's own predictions.

mod c;
mod export;
mod metadata;
mod onnx;
mod patterns;
mod plan;
mod refusal;
mod verify;

pub use export::{ExportRequest, Exported, ExportedFile, FieldInfo, export, export_operator};
pub use verify::{Origin, Verified};

#[cfg(doc)]
use lamo::Operator;

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn no_source_file_has_more_than_600_lines() {
        let files = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        assert!(files.len() > 15, "{} files found", files.len());
        for path in files {
            let lines = std::fs::read_to_string(&path).unwrap().lines().count();
            assert!(lines <= 600, "{} has {lines} lines", path.display());
        }
    }
}
