//! `lamo bench`: reports of small measurements.

use crate::support::{Folder, contains};

#[test]
fn bench_step_measures_a_training_step_and_a_forward_pass() {
    let folder = Folder::new("bench-step");
    let small = ["--set=model.settings.depth=1", "--set=train.batch=1", "--repeat=1", "--threads=1", "--json"];
    let step = [&["bench", "step", "--benchmark=darcy"], &small[..]].concat();
    let report = folder.ok_json(&step);
    assert_eq!((&report["experiment"], &report["batch"]), (&"darcy-lamo".into(), &1.into()));
    for key in ["median_seconds", "samples_per_second", "flops", "parameters", "kernels", "program_bytes"] {
        assert!(report[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {report}");
    }
    let forward = folder.ok_json(&[&step[..], &["--infer"]].concat());
    assert_eq!((&forward["infer"], &forward["parameters"]), (&true.into(), &report["parameters"]));
    assert!(forward["flops"].as_f64() < report["flops"].as_f64(), "a step contains the forward pass");
}

#[test]
fn bench_points_measures_each_number_of_points() {
    let folder = Folder::new("bench-points");
    let report =
        folder.ok_json(&["bench", "points", "--model=transolver", "--from=100", "--to=400", "--repeat=1", "--json"]);
    let rows = report["rows"].as_array().unwrap();
    let points: Vec<_> = rows.iter().map(|row| row["points"].as_u64().unwrap()).collect();
    assert_eq!(points, [100, 200, 400]);
    assert!(rows.is_sorted_by_key(|row| row["bytes"].as_u64()), "more points need more memory: {report}");
    assert!(report["time_slope"].is_f64() && report["memory_slope"].is_f64(), "{report}");
}

#[test]
fn numbers_that_cannot_be_measured_are_refused() {
    let folder = Folder::new("bench-refused");
    let fails = |arguments: &[&str]| folder.fails(&[&["bench"], arguments].concat());
    contains(&fails(&["step", "--benchmark=darcy", "--repeat=0"]), &["--repeat: expected at least 1, found 0"]);
    contains(&fails(&["step", "--benchmark=darcy", "--batch=0"]), &["--batch: expected at least 1, found 0"]);
    contains(&fails(&["points", "--from=9", "--to=9"]), &["--to: expected more points than --from 9, found 9"]);
    contains(&fails(&["cpu", "--alone", "--case=scna"]), &["--case: expected one of matmul, ", "found scna"]);
    contains(&fails(&["step", "--benchmark=dracy"]), &["dracy"]);
}
