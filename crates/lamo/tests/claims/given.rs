//! The files that a prediction is given: files of several fields belong together, and only a series that is continued may be
//! longer than in the training.

use crate::support::{Folder, save};
use lamo::inference::{PredictionInput, Source};
use lamo::task::{Field, Positions, Task, Time};
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
    assert!(
        told.contains("load_3.npy: expected the partner of ") && told.contains("pos_4.npy, found another case"),
        "{told}"
    );
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

#[test]
fn an_input_with_snapshots_of_its_own_is_not_cut_in_a_roll_out() {
    let folder = Folder::new("given-series");
    let grid = Grid::Plane { rows: 3, columns: 2 };
    let mut task = Task { positions: Positions::Lattice, ..Task::plain(grid, 2, 1, 1) };
    task.inputs = vec![Field { snapshots: Some(2), ..Field::plain("forcing", 1) }];
    task.outputs = vec![Field { snapshots: Some(5), ..Field::plain("u", 1) }];
    task.time = Time::RollOut { past: 2, snapshots: 3, clock: Vec::new() };
    let values = |snapshots: usize| (0..6 * snapshots as i32).map(f64::from);
    save(&folder, "u.npy", &[4, 3, 2], values(4));
    save(&folder, "forcing.npy", &[2, 3, 2], values(2));
    save(&folder, "longer.npy", &[4, 3, 2], values(4));
    let given = read(&folder, &task, &["u=u.npy", "forcing=forcing.npy"]).unwrap();
    // The last two of four snapshots of u, then both of the forcing, at the first point.
    assert_eq!(given.samples.input_of(0)[..4], [12.0, 18.0, 0.0, 6.0]);
    let told = read(&folder, &task, &["u=u.npy", "forcing=longer.npy"]).unwrap_err();
    assert!(told.contains("array `forcing`: expected samples of shape [2, 3, 2], found shape [4, 3, 2]"), "{told}");
}
