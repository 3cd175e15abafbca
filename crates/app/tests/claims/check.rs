//! `lamo data check`: statistics and pictures of data sets and of array files; damaged data are found.

use crate::support::{Folder, contains, write_npy};
use std::fs;

#[test]
fn check_prints_every_field_and_draws_a_picture() {
    let folder = Folder::new("check");
    let small =
        ["--set=resolution=16", "--set=stride=1", "--set=frames=3", "--set=viscosity=1e-3", "--set=interval=0.1"];
    folder.ok(&[&["data", "make", "navier-stokes", "--samples=2", "--out=ns"], &small[..]].concat());
    let report = folder.ok(&["data", "check", "ns"]);
    contains(
        &report,
        &["navier-stokes: 2 samples, seed 0", "viscosity=0.001", "[3, 16, 16]", "verified", "ns-check.png"],
    );
    assert!(folder.is_png("ns-check.png"));
}

#[test]
fn check_draws_a_deformed_body() {
    let folder = Folder::new("deformed");
    folder.ok(&["data", "make", "plasticity", "--samples=2", "--resolution=2", "--set=frames=3", "--out=block"]);
    let report = folder.ok(&["data", "check", "block"]);
    contains(&report, &["die                input    [21] ", "deformation        output   [3, 21, 7, 4]"]);
    assert!(folder.is_png("block-check.png"));
}

#[test]
fn check_draws_clouds_and_curved_meshes_on_their_positions() {
    let folder = Folder::new("positions");
    for (problem, setting, shape) in [("elasticity", "around=12", "[324, 2]"), ("pipe", "resolution=4", "[9, 9, 2]")] {
        folder.ok(&["data", "make", problem, "--samples=2", "--set", setting, "--out", problem]);
        let report = folder.ok(&["data", "check", problem]);
        contains(&report, &[&format!("positions          position {shape}")]);
        assert!(folder.is_png(&format!("{problem}-check.png")));
    }
}

#[test]
fn check_finds_changed_bytes_missing_bytes_and_values_that_are_not_finite() {
    let folder = Folder::new("damage");
    folder.ok(&["data", "make", "darcy", "--samples=2", "--resolution=8", "--out=set"]);
    let whole = folder.read("set/pressure.npy");
    let mut changed = whole.clone();
    changed[128..132].copy_from_slice(&f32::NAN.to_le_bytes());
    folder.write("set/pressure.npy", &changed);
    let sentence = folder.fails(&["data", "check", "set"]);
    let hashes: Vec<&str> = sentence.split(&[' ', ',', ';']).filter(|word| word.len() == 64).collect();
    assert!(sentence.contains("pressure.npy: expected SHA-256") && hashes.len() == 2, "{sentence}");

    let manifest = folder.text("set/dataset.toml");
    folder.write("set/dataset.toml", manifest.replace(hashes[0], hashes[1]));
    contains(&folder.fails(&["data", "check", "set"]), &["NaN or infinity in 1 of `pressure`"]);

    folder.write("set/pressure.npy", &whole[..whole.len() - 1]);
    contains(&folder.fails(&["data", "check", "set"]), &["pressure.npy", "640 bytes", "639"]);

    folder.write("set/pressure.npy", &whole);
    folder.write("set/dataset.toml", manifest.replace("rows = 8", "rows = 9"));
    contains(&folder.fails(&["data", "check", "set"]), &["`permeability`", "9, 8", "[8, 8]"]);
}

#[test]
fn check_lists_and_draws_the_arrays_of_a_file() {
    let folder = Folder::new("file");
    write_npy(&folder.at("series.npy"), &[5, 3, 16, 8], (0..).map(|index| index as f32));
    let report = folder.ok(&["data", "check", "series.npy"]);
    contains(
        &report,
        &["series.npy: 1 array\n", "(unnamed)", "float32", "[5, 3, 16, 8]", "1.9190e3", "series.npy-check.png"],
    );
    assert!(folder.is_png("series.npy-check.png"));
    let report = folder.ok_json(&["data", "check", "series.npy", "--json"]);
    assert_eq!((&report["arrays"][0]["least"], &report["arrays"][0]["most"]), (&0.0.into(), &1919.0.into()));
    assert_eq!(report["arrays"][0]["type"], "float32");
    folder.write("series.npy", "text");
    contains(&folder.fails(&["data", "check", "series.npy"]), &["series.npy", "npy, PyTorch, npz, MAT", "safetensors"]);
}

#[test]
fn values_too_large_for_a_deviation_have_none() {
    let folder = Folder::new("large");
    let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n";
    let mut bytes = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    bytes.extend([1e308, -1e308].iter().flat_map(|value: &f64| value.to_le_bytes()));
    folder.write("large.npy", bytes);
    let report = folder.ok(&["data", "check", "large.npy"]);
    let line = report.lines().find(|line| line.starts_with("(unnamed)")).unwrap();
    assert!(line.contains(" - ") && !line.contains("NaN") && line.trim_end().ends_with('0'), "{report}");
}

#[test]
fn check_writes_no_picture_for_a_script_and_only_png() {
    let folder = Folder::new("pictures");
    folder.make_darcy("0", "set");
    let report = folder.ok_json(&["data", "check", "set", "--json"]);
    assert!(report["picture"].is_null() && report["verified"] == true, "{report}");
    let sentence = folder.fails(&["data", "check", "set", "--picture", "set.jpg"]);
    assert_eq!(sentence, "set.jpg: expected a file name that ends in .png, found .jpg");
    contains(&folder.fails(&["data", "check", "set", "--picture", "no/set.png"]), &["no/set.png: cannot be written"]);
    fs::create_dir(folder.at("no")).unwrap();
    folder.ok(&["data", "check", "set", "--picture", "no/set.png"]);
    assert!(folder.is_png("no/set.png"));
}
