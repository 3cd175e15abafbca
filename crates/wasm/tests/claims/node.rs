//! The page's own worker and `lamo.wasm`, run by Node, against the native prediction.
//!
//! Both compute in f32 with the same sums in the same order but for three things: matrix products are cut to other vector
//! lengths, a native multiply-add rounds once and WebAssembly's twice, and so do the elementary functions. Each operator then
//! differs by a few roundings of 6·10⁻⁸; through the layers of the model this stays below the stated 10⁻⁵ of the largest value,
//! which is also the bound of exported models.
//! The solver works in f64, and its answer is rounded to f32 once.

#![allow(clippy::print_stdout)] // says what it measured

use super::{CELLS, SIDE, darcy, npy, permeabilities};
use lamo::data::formats::ArrayFile;
use lamo_wasm::Model;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Largest difference of a value, relative to the largest value of the field, as the documentation states it.
const STATED: f32 = 5e-6;

fn browser() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/browser")
}

/// What the worker answers to requests with files of arrays, one after the other: bytes, or sentences.
fn worker(inputs: &[(&str, Vec<u8>)]) -> Option<Vec<Result<Vec<u8>, String>>> {
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/drive.mjs");
    let folder = std::env::temp_dir().join(format!("lamo-wasm-{}-{}", std::process::id(), inputs.len()));
    std::fs::create_dir_all(&folder).unwrap();
    for (number, (_, input)) in inputs.iter().enumerate() {
        std::fs::write(folder.join(format!("{number}.in")), input).unwrap();
    }
    let run =
        Command::new("node").arg(driver).args([&browser(), &folder]).args(inputs.iter().map(|(kind, _)| kind)).output();
    let Ok(run) = run else {
        println!("skipped: there is no node to run docs/browser/lamo.wasm.gz");
        return None;
    };
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{told}");
    println!("{}", String::from_utf8_lossy(&run.stdout));
    let read = |number: usize| match std::fs::read(folder.join(format!("{number}.out"))) {
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(std::fs::read_to_string(folder.join(format!("{number}.err"))).unwrap()),
    };
    let answers = (0..inputs.len()).map(read).collect();
    std::fs::remove_dir_all(&folder).unwrap();
    Some(answers)
}

fn values(file: Vec<u8>) -> Vec<f32> {
    ArrayFile::in_memory("a file", file).unwrap().read(None).unwrap().values.into_f32()
}

/// The largest difference of values, relative to the largest value of the first field.
fn apart(expected: &[f32], found: &[f32]) -> f32 {
    assert_eq!(expected.len(), found.len());
    let scale = expected.iter().fold(0.0_f32, |scale, value| scale.max(value.abs()));
    let each = expected.iter().zip(found).map(|(expected, found)| (expected - found).abs() / scale);
    each.fold(0.0, |largest, apart| if apart > largest || apart.is_nan() { apart } else { largest })
}

#[test]
fn webassembly_computes_what_this_machine_computes_within_the_stated_rounding() {
    let constant = |value: f32| npy(&[SIDE, SIDE], vec![value; SIDE * SIDE]);
    let oblong = npy(&[50, 40], permeabilities(1, 50)[..50 * 40].to_vec()); // a grid that is not that of the training
    let inputs = [
        ("predict", npy(&[4, SIDE, SIDE], permeabilities(4, SIDE))),
        ("predict", constant(3.0)),
        ("predict", constant(12.0)),
        ("predict", oblong),
        ("solve", npy(&[CELLS, CELLS], permeabilities(1, CELLS))),
    ];
    let Some(answers) = worker(&inputs) else { return };
    let mut native = Model::open(darcy()).unwrap();
    for ((kind, input), answer) in inputs.into_iter().zip(answers) {
        let expected = if kind == "solve" { native.solve(input) } else { native.predict(input) };
        let apart = apart(&values(expected.unwrap()), &values(answer.unwrap()));
        println!("{kind}: native and WebAssembly differ by {apart:.1e} of the largest pressure");
        assert!(apart <= if kind == "solve" { f32::EPSILON } else { STATED }, "{kind}: {apart:e}");
    }
}

#[test]
fn a_worker_refuses_bad_files_in_a_sentence_and_goes_on() {
    let good = npy(&[SIDE, SIDE], permeabilities(1, SIDE));
    let bad = [("predict", b"no array".to_vec()), ("solve", good.clone())];
    let Some(answers) = worker(&[bad[0].clone(), bad[1].clone(), ("predict", good)]) else { return };
    assert!(answers[0].as_ref().unwrap_err().contains("the inputs"), "{:?}", answers[0]);
    assert!(answers[1].as_ref().unwrap_err().contains("421 x 421"), "{:?}", answers[1]);
    assert!(answers[2].is_ok());
}

#[test]
fn the_folder_of_the_page_is_smaller_than_5_megabytes() {
    fn size(path: &Path) -> u64 {
        let size = |entry: std::io::Result<std::fs::DirEntry>| size(&entry.unwrap().path());
        if path.is_dir() { std::fs::read_dir(path).unwrap().map(size).sum() } else { path.metadata().unwrap().len() }
    }
    let bytes = size(&browser()); // follows links: what a browser loads lies in other folders, too
    assert!((2_000_000..5_000_000).contains(&bytes), "{bytes} bytes");
}
