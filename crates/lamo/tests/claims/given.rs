//! The files that a prediction is given: files of several fields belong together, and only a series that is continued may be
//! longer than in the training.

use crate::support::{Folder, save};
use lamo::inference::{PredictionInput, Source};
use lamo::task::{Field, Task};
use lamo_geometry::Grid;

/// Points and a load on a cloud of 4 points.
fn cloud() -> Task {
    let grid = Grid::Cloud { points: 4 };
    Task { inputs: vec![Field::plain("load", 1)], ..Task::plain(grid, 2, 1, 1) }
}

/// Reads the files of some patterns such as `load=load_*.npy`.
fn read(folder: &Folder, task: &Task, patterns: &[&str]) -> Result<PredictionInput, String> {
    let at = |pattern: &str| match pattern.split_once('=') {
        Some((field, name)) => format!("{field}={}", folder.at(name).display()),
        None => folder.at(pattern).display().to_string(),
    };
    let sources = patterns.iter().flat_map(|pattern| Source::parse_all(&at(pattern)).unwrap()).collect::<Vec<_>>();
    PredictionInput::read(task, &sources, None).map_err(|error| error.to_string())
}

#[test]
fn files_of_several_fields_whose_numbers_do_not_agree_are_refused() {
    let (folder, task) = (Folder::new("given-numbers"), cloud());
    for number in (0..9).filter(|number| *number != 3) {
        save(&folder, &format!("pos_{number}.npy"), &[1, 4, 2], (0..8).map(f64::from));
    }
    for number in (0..9).filter(|number| *number != 7) {
        save(&folder, &format!("load_{number}.npy"), &[1, 4], (0..4).map(f64::from));
        save(&folder, &format!("from_one_{}.npy", number + 1), &[1, 4], (0..4).map(f64::from));
    }
    let told = read(&folder, &task, &["positions=pos_*.npy", "load=load_*.npy"]).unwrap_err();
    assert!(told.contains("load_3.npy: expected the partner of pos_4.npy, found another number in its name"), "{told}");
    for number in [3, 7] {
        save(&folder, &format!("pos_{number}.npy"), &[1, 4, 2], (0..8).map(f64::from));
        save(&folder, &format!("load_{number}.npy"), &[1, 4], (0..4).map(f64::from));
        save(&folder, &format!("from_one_{}.npy", number + 1), &[1, 4], (0..4).map(f64::from));
    }
    for load in ["load=load_*.npy", "load=from_one_*.npy"] {
        assert_eq!(read(&folder, &task, &["positions=pos_*.npy", load]).unwrap().samples.count, 9, "{load}");
    }
    let first = read(&folder, &task, &["positions=pos_0.npy", "load=load_*.npy"]).unwrap();
    assert!(
        first.samples.count == 9 && first.samples.share_positions(),
        "one file of positions is that of all samples"
    );
}

#[test]
fn files_of_several_fields_with_other_counts_of_samples_are_refused() {
    let (folder, task) = (Folder::new("given-counts"), cloud());
    for (number, [one, other]) in [[2, 3], [3, 2]].into_iter().enumerate() {
        save(&folder, &format!("pos_{number}.npy"), &[one, 4, 2], (0..8 * one as i32).map(f64::from));
        save(&folder, &format!("load_{number}.npy"), &[other, 4], (0..4 * other as i32).map(f64::from));
    }
    save(&folder, "all.npy", &[5, 4], (0..20).map(f64::from));
    let told = read(&folder, &task, &["positions=pos_*.npy", "load=load_*.npy"]).unwrap_err();
    assert!(told.contains("pos_0.npy: expected 3 samples as in load_0.npy, found 2"), "{told}");
    assert_eq!(read(&folder, &task, &["positions=pos_*.npy", "load=all.npy"]).unwrap().samples.count, 5);
}
