//! Every model of the registry exports, as ONNX and as C, and what was written equals its predictions.

use crate::support::{Folder, operator, surroundings, tasks};
use lamo::network::models::{MODELS, Row, Settings};
use lamo::task::Task;
use lamo::{Grid, Operator, Samples};
use lamo_export::{ExportRequest, Exported, Origin, export_operator};
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

/// The others depend on the number of points: a factor 1/points, or tables of points.
#[test]
fn an_onnx_file_of_clouds_takes_any_number_of_points_unless_the_model_depends_on_it() {
    let folder = Folder::in_memory("export");
    let task = Task::plain(Grid::Cloud { points: 30 }, 2, 1, 1);
    let (mut any, mut fixed) = (Vec::new(), Vec::new());
    for row in MODELS.iter().filter(|row| row.supports.allows(&task)) {
        let operator = operator(row, &task, (row.tiny)(&task));
        let exported = export(&operator, [Some(folder.at("model.onnx")), None], 2).unwrap();
        let (file, shape) = (&exported.written[0], &exported.written[0].inputs[0].shape);
        match file.verified.points {
            Some(points) => {
                assert_eq!((points, &shape[..]), ([21, 30], &[None, Some(2)][..]), "{}", row.name);
                any.push(row.name);
            }
            None => {
                assert_eq!(shape[..], [Some(30), Some(2)], "{}", row.name);
                fixed.push(row.name);
            }
        }
        // A number that is asked for is fixed.
        let request = ExportRequest { grid: Some(task.grid), ..request(Some(folder.at("fixed.onnx"))) };
        let exported = export_operator(&operator, &request, None, None).unwrap();
        assert_eq!(exported.written[0].inputs[0].shape[0], Some(30));
    }
    assert!(["lamo", "transolver", "fno", "gnot"].iter().all(|name| any.contains(name)), "{any:?}, {fixed:?}");
}

#[test]
fn samples_of_different_sizes_are_compared_each_at_its_own() {
    let folder = Folder::in_memory("export");
    let task = Task::plain(Grid::Cloud { points: 30 }, 2, 1, 1);
    let operator = operator(crate::support::row("lamo"), &task, (crate::support::row("lamo").tiny)(&task));
    let sample = |points: usize| {
        let wave = |index: usize| (index as f32 * 0.7).sin();
        ((0..2 * points).map(wave).collect::<Vec<f32>>(), (0..points).map(wave).collect::<Vec<f32>>())
    };
    let sizes = [30, 17, 24];
    let (positions, inputs): (Vec<_>, Vec<_>) = sizes.map(sample).into_iter().unzip();
    let (positions, inputs) = (positions.concat(), inputs.concat());
    let samples = Samples::ragged(&sizes, (2, positions), (1, inputs), (1, Vec::new())).unwrap();
    let request = ExportRequest { c: Some(folder.at("model.c")), ..request(Some(folder.at("model.onnx"))) };
    let exported = export_operator(&operator, &request, Some(&samples), None).unwrap();
    let [onnx, c] = &exported.written[..] else { panic!("{exported:?}") };
    assert!(onnx.verified.origin == Origin::Test && onnx.verified.samples == 3, "{onnx:?}");
    assert!(onnx.verified.points == Some([17, 30]) && onnx.verified.relative_l2 < ROUNDING, "{onnx:?}");
    assert!(c.verified.origin == Origin::Drawn && c.inputs[0].shape == [Some(30), Some(2)], "{c:?}");
}

fn request(onnx: Option<PathBuf>) -> ExportRequest {
    ExportRequest { model: PathBuf::new(), onnx, c: None, grid: None, samples: 2 }
}
