//! Mesh files: what VTK and meshio write is read equal, what lamo writes they read equal, and damage ends in a sentence.

use crate::support::Folder;
use lamo::data::mesh::{self, ByteOrder, Encoding, Options, Shape};
use std::path::{Path, PathBuf};
use std::process::Command;

fn tests() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests/mesh")
}

/// Every way in which a VTK file is written.
fn variants() -> Vec<(String, Options)> {
    let mut all = Vec::new();
    for encoding in [Encoding::Ascii, Encoding::Base64, Encoding::AppendedRaw, Encoding::AppendedBase64] {
        for packed in [false, true] {
            for long_sizes in [false, true] {
                for order in [ByteOrder::Little, ByteOrder::Big] {
                    let options = Options { encoding, packed, long_sizes, order };
                    all.push((format!("{encoding:?}-{packed}-{long_sizes}-{order:?}"), options));
                }
            }
        }
    }
    all
}

/// The ending of the XML file that keeps the shape of a mesh.
fn own_ending(shape: &Shape) -> &'static str {
    match shape {
        Shape::Unstructured { .. } => "vtu",
        Shape::Surface { .. } => "vtp",
        Shape::Image { .. } => "vti",
        Shape::Rectilinear { .. } => "vtr",
        Shape::Structured { .. } => "vts",
    }
}

/// Python with meshio and pyvista: `LAMO_PYTHON`, or the first python3.
fn python() -> Option<String> {
    let python = std::env::var("LAMO_PYTHON").unwrap_or_else(|_| "python3".into());
    let found = Command::new(&python).args(["-c", "import meshio, pyvista"]).output();
    found.is_ok_and(|output| output.status.success()).then_some(python)
}

fn run(python: &str, job: &str, folder: &Path) -> String {
    let output = Command::new(python).arg(tests().join("outside.py")).arg(job).arg(folder).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{job}: {}", told.lines().last().unwrap_or_default());
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
#[allow(clippy::print_stdout)] // it says why it did not run, and how much it compared
fn vtk_and_meshio_read_what_lamo_made_of_their_files_as_the_same_mesh() {
    let Some(python) = python() else {
        return println!("skipped: set LAMO_PYTHON to a Python that has meshio and pyvista");
    };
    let folder = Folder::new("outside");
    run(&python, "write", folder.path());
    std::fs::create_dir(folder.at("made")).unwrap();
    for path in files(folder.path()) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let read = mesh::read(&path).unwrap_or_else(|error| panic!("{error}"));
        let made = |variant: &str, ending: &str| folder.at(&format!("made/{name}.{variant}.{ending}"));
        mesh::write(&made("default", "vtu"), &read, &Options::default()).unwrap();
        mesh::write(&made("default", "vtk"), &read, &Options::default()).unwrap();
        mesh::write(&made("text", "vtk"), &read, &Options { encoding: Encoding::Ascii, ..Options::default() }).unwrap();
        if name.contains("_ascii.vt") {
            for (variant, options) in variants() {
                mesh::write(&made(&variant, own_ending(&read.shape)), &read, &options).unwrap();
            }
        }
    }
    println!("{}", run(&python, "compare", folder.path()));
}

/// The files of a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}
