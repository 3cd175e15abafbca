//! Samples with different numbers of points: import, check, train, evaluate, report, predict, bench.

use crate::support::{Folder, contains, write_npy};
use std::fmt::Write as _;

const SIZES: [usize; 8] = [12, 31, 18, 24, 12, 28, 20, 26];
const TINY: &str = "--set=model.settings={ width = 16, depth = 1, slice_heads = 2, tokens = 4, states = 4, mlp_ratio = 1, head_width = 8, groups = 1 }";

/// A table with x, y and p for each sample, and an array of its positions.
fn tables(folder: &Folder) {
    for (sample, &points) in SIZES.iter().enumerate() {
        let (mut text, mut positions) = ("x,y,p\n".to_owned(), Vec::new());
        for point in 0..points {
            let turn = 0.7 * point as f64 + sample as f64;
            let (x, y) = (turn.cos() * (1.0 + 0.1 * sample as f64), turn.sin());
            writeln!(text, "{x},{y},{}", 1.0 + x * y).unwrap();
            positions.extend([x as f32, y as f32]);
        }
        folder.write(&format!("case_{sample}.csv"), text);
        write_npy(&folder.at(&format!("xy_{sample}.npy")), &[points, 2], positions.into_iter());
    }
}

#[test]
fn tables_of_different_lengths_are_imported_checked_learned_and_predicted() {
    let folder = Folder::new("ragged");
    tables(&folder);
    let arrays = ["--positions=case_*.csv:x,y", "--output=p=case_*.csv:p", "--test=2", "--out=set"];
    let import = |grid: &'static str| [&["data", "import", grid][..], &arrays].concat();
    let text = folder.ok(&import("--grid=cloud"));
    contains(&text, &["p: 12 points in the first of 8 files of different sizes (axes p"]);
    contains(&folder.ok(&["data", "check", "set"]), &["8 samples on clouds of 12 to 31 points", "verified"]);
    assert!(folder.is_png("set-check.png"));
    let checked = folder.ok_json(&["data", "check", "set", "--json"]);
    assert_eq!(checked["ragged"]["points"], SIZES.iter().sum::<usize>());
    assert_eq!((checked["ragged"]["least"].as_u64(), checked["ragged"]["most"].as_u64()), (Some(12), Some(31)));
    let text = folder.ok(&["train", "set", TINY, "--set=train={ epochs = 2, batch = 2 }", "--out=run"]);
    contains(&text, &["mean of the training outputs"]);
    assert!(!text.contains("nearest training sample"), "{text}");
    contains(&folder.text("run/report.html"), &["there is no nearest training sample"]);
    contains(&folder.ok(&["train", "--resume", "run"]), &["run"]);
    folder.ok(&["evaluate", "run", "--out=evaluated"]);
    folder.ok(&["evaluate", "--verify", "run/receipt.json"]);
    let text = folder.ok(&["predict", "run", "--input=positions=xy_*.npy", "--output=out_*.npy"]);
    contains(&text, &["out_*.npy (8 files)", "of 8 samples"]);
    folder.ok(&["predict", "run", "--input=positions=case_*.csv:x,y", "--output=table_*.npy"]);
    let values = |name: &str| {
        folder.read(name)[128..].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
    };
    let (from_arrays, from_tables) = (values("out_xy_3.npy"), values("table_case_3.npy"));
    let near = from_arrays.iter().zip(&from_tables).all(|(one, other)| (one - other).abs() < 1e-4);
    assert!(from_arrays.len() == 24 && from_tables.len() == 24 && near, "{from_arrays:?} {from_tables:?}");
    let refusal = folder.fails(&["train", "set", "--model=unet"]);
    contains(&refusal, &["model unet: expected samples of equal size", "use lamo, transolver"]);
    // A number of points is a promise.
    let refusal = folder.fails(&[&import("--grid=cloud:12")[..3], &arrays[..3], &["--out=other"]].concat());
    contains(&refusal, &["case_1.csv", "12 points"]);
}

#[test]
fn the_cost_of_a_point_is_compared_with_that_at_equal_size() {
    let folder = Folder::new("ragged-bench");
    let bench = ["bench", "step", "--benchmark=elasticity", "--ragged=0.5", "--batch=2", "--repeat=1", "--json", TINY];
    let report = folder.ok_json(&bench);
    assert_eq!((report["points"][0].as_u64(), report["points"][1].as_u64()), (Some(486), Some(1458)));
    let number = |key: &str| report[key].as_f64().unwrap();
    assert!(number("buckets") > 2.0 && number("padded") < 1.15 && number("ratio") > 0.1, "{report}");
}
