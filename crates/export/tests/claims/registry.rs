//! Every model of the registry exports, as ONNX and as C, and what was written equals its predictions.

use crate::support::{Folder, operator, surroundings, tasks};
use lamo::network::models::{MODELS, Row, Settings};
use lamo::task::Task;
use lamo::{Grid, Operator};
use lamo_export::{ExportRequest, Exported, export_operator};
use std::path::PathBuf;

/// Relative error that f32 programs may have beside the same computation in f64: some ten thousand roundings of 6·10⁻⁸ that do not all have
/// the same sign.
const ROUNDING: f64 = 1e-5;

fn export(operator: &Operator, files: [Option<PathBuf>; 2], samples: usize) -> Result<Exported, lamo::Error> {
    let [onnx, c] = files;
    let request = ExportRequest { model: PathBuf::new(), onnx, c, grid: None, samples };
    export_operator(operator, &request, None, None)
}

/// What is wrong with what was written, in words.
fn check(row: &Row, task: &Task, settings: Settings, batches: &[usize]) -> Vec<String> {
    let (folder, operator) = (Folder::in_memory("export"), operator(row, task, settings));
    let mut jobs: Vec<(usize, [Option<PathBuf>; 2])> =
        batches.iter().map(|&samples| (samples, [Some(folder.at("model.onnx")), None])).collect();
    jobs.push((2, [None, Some(folder.at("model.c"))]));
    let about = format!("{} on {:?}, {:?}, {} inputs", row.name, task.grid, task.time, task.input_channels());
    let wrong = |(samples, files): (usize, [Option<PathBuf>; 2])| match export(&operator, files, samples) {
        Ok(exported) => {
            let (form, verified) = (exported.written[0].form, exported.written[0].verified);
            // Norms over a few points that are nearly equal magnify the rounding of f32.
            let (error, own) = (verified.relative_l2, verified.rounding.unwrap_or(0.0));
            (error.is_nan() || error > ROUNDING.max(4.0 * own) || error > 1e-2)
                .then(|| format!("{about}, {form}, {samples} samples: {error:.1e}"))
        }
        Err(error) => Some(format!("{about}: {error}")),
    };
    jobs.into_iter().filter_map(wrong).collect()
}

#[test]
fn every_model_exports_on_every_task_that_it_supports_for_any_number_of_samples() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (row, task) in MODELS.iter().flat_map(|row| tasks().into_iter().map(move |task| (row, task))) {
        if row.supports.allows(&task) {
            let batches: &[usize] = if task.input_channels() > 0 { &[1, 2, 5] } else { &[3] };
            wrong.extend(check(row, &task, (row.tiny)(&task), batches));
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 150, "{count} pairs of models and tasks");
}

#[test]
fn lattices_fields_trends_clocks_and_roll_outs_are_inside_what_is_exported() {
    for name in ["lamo", "transolver", "fno"] {
        let row = crate::support::row(name);
        for task in surroundings() {
            assert_eq!(check(row, &task, (row.tiny)(&task), &[1, 3]), [""; 0]);
        }
    }
}

#[test]
fn a_roll_out_is_verified_through_all_its_snapshots() {
    let row = crate::support::row("lamo");
    let folder = Folder::in_memory("export");
    for task in surroundings().into_iter().filter(|task| task.time.mode().is_roll_out()) {
        let operator = operator(row, &task, (row.tiny)(&task));
        let exported = export(&operator, [Some(folder.at("model.onnx")), Some(folder.at("model.c"))], 2).unwrap();
        for written in exported.written {
            let (steps, error) = written.verified.rolled_out.unwrap();
            assert!(steps == 4 && error < 10.0 * ROUNDING, "{}: {error:.1e} after {steps} steps", written.form);
        }
    }
}

/// More tokens than a chunk of the scan has, and a number that no chunk divides.
#[test]
fn long_scans_and_many_slices_export() {
    let row = crate::support::row("lamo");
    let planes = Task::plain(Grid::Plane { rows: 13, columns: 11 }, 2, 1, 1);
    let clouds = Task::plain(Grid::Cloud { points: 90 }, 2, 1, 1);
    for (task, settings) in [
        (
            &planes,
            "patch = 1
width = 16",
        ),
        (
            &clouds,
            "tokens = 70
width = 16",
        ),
    ] {
        let mut all = (row.tiny)(task);
        all.extend(settings.parse::<Settings>().unwrap());
        assert_eq!(check(row, task, all, &[1, 2]), [""; 0]);
    }
}
