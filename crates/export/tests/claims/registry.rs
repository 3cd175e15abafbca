//! Every model of the registry exports, as ONNX and as C, and what was written equals its predictions.

use crate::support::{Folder, operator, surroundings, tasks};
use lamo::Operator;
use lamo::network::models::MODELS;
use lamo::task::Task;
use lamo_export::{ExportRequest, Exported, export_operator};
use std::path::PathBuf;

/// What f32 programs may differ by from the same computation in f64: some ten thousand roundings of 6·10⁻⁸ that do not all have
/// the same sign.
const ROUNDING: f64 = 1e-5;

fn export(operator: &Operator, files: [Option<PathBuf>; 2], samples: usize) -> Result<Exported, lamo::Error> {
    let [onnx, c] = files;
    let request = ExportRequest { model: PathBuf::new(), onnx, c, grid: None, samples };
    export_operator(operator, &request, None, None)
}

fn check(operator: &Operator, about: &str, batches: &[usize]) {
    let folder = Folder::in_memory("export");
    for &samples in batches {
        let exported = export(operator, [Some(folder.at("model.onnx")), None], samples);
        let exported = exported.unwrap_or_else(|error| panic!("{about}: {error}"));
        let error = exported.written[0].verified.relative_l2;
        assert!(error < ROUNDING, "{about}, ONNX, {samples} samples: {error:.1e}");
    }
    let exported = export(operator, [None, Some(folder.at("model.c"))], 2);
    let exported = exported.unwrap_or_else(|error| panic!("{about}: {error}"));
    let error = exported.written[0].verified.relative_l2;
    assert!(error < ROUNDING, "{about}, C: {error:.1e}");
}

fn about(name: &str, task: &Task) -> String {
    format!("{name} on {:?}, {:?}, {} inputs", task.grid, task.time, task.input_channels())
}

#[test]
fn every_model_exports_on_every_task_that_it_supports_for_any_number_of_samples() {
    let mut count = 0;
    for (row, task) in MODELS.iter().flat_map(|row| tasks().into_iter().map(move |task| (row, task))) {
        if row.supports.allows(&task) {
            let batches: &[usize] = if task.input_channels() > 0 { &[1, 2, 5] } else { &[3] };
            check(&operator(row, &task, (row.tiny)(&task)), &about(row.name, &task), batches);
            count += 1;
        }
    }
    assert!(count > 150, "{count} pairs of models and tasks");
}

#[test]
fn lattices_fields_trends_clocks_and_roll_outs_are_inside_what_is_exported() {
    for name in ["lamo", "transolver", "fno"] {
        let row = crate::support::row(name);
        for task in surroundings() {
            check(&operator(row, &task, (row.tiny)(&task)), &about(name, &task), &[1, 3]);
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
    let planes = Task::plain(lamo::Grid::Plane { rows: 13, columns: 11 }, 2, 1, 1);
    let clouds = Task::plain(lamo::Grid::Cloud { points: 90 }, 2, 1, 1);
    for (task, settings) in
        [(&planes, "patch = 1\nwidth = 16\nheads = 2"), (&clouds, "slices = 70\nwidth = 16\nheads = 2")]
    {
        let mut all = (row.tiny)(task);
        all.extend(settings.parse::<toml::Table>().unwrap());
        check(&operator(row, task, all), &about("lamo", task), &[1, 2]);
    }
}
