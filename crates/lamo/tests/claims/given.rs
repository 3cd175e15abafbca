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

/// A roll-out of three snapshots from two, beside an input with two snapshots of its own.
fn forced() -> Task {
    let grid = Grid::Plane { rows: 3, columns: 2 };
    let mut task = Task { positions: Positions::Lattice, ..Task::plain(grid, 2, 1, 1) };
    task.inputs = vec![Field { snapshots: Some(2), ..Field::plain("forcing", 1) }];
    task.outputs = vec![Field { snapshots: Some(5), ..Field::plain("u", 1) }];
    task.time = Time::RollOut { past: 2, snapshots: 3, clock: Vec::new() };
    task
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
    let (folder, task) = (Folder::new("given-series"), forced());
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

#[test]
fn a_roll_out_is_not_longer_than_the_snapshots_of_its_inputs_are_for() {
    let (folder, whole) = (Folder::new("given-horizon"), forced());
    let inputs = vec![Field { snapshots: Some(5), ..Field::plain("forcing", 1) }];
    let task = Task { inputs, ..whole.clone() }; // of an earlier version: all steps are shown all snapshots
    save(&folder, "u.npy", &[2, 3, 2], (0..12).map(f64::from));
    save(&folder, "forcing.npy", &[5, 3, 2], (0..30).map(f64::from));
    save(&folder, "whole.npy", &[2, 3, 2], (0..12).map(f64::from));
    let plan = |task: &Task, given: &[&str], steps: usize| {
        let sources = given.iter().flat_map(|given| {
            let (field, name) = given.split_once('=').unwrap();
            Source::parse_all(&format!("{field}={}", folder.at(name).display())).unwrap()
        });
        let sources: Vec<Source> = sources.collect();
        PredictionInput::read(task, &sources, Some(steps)).map(|_| ()).map_err(|error| error.to_string())
    };
    let given = ["u=u.npy", "forcing=forcing.npy"];
    assert_eq!(plan(&task, &given, 3), Ok(()));
    let told = plan(&task, &given, 4).unwrap_err();
    assert!(told.contains("expected at most 3, because `forcing` has its snapshots for no more, found 4"), "{told}");
    let given_whole = ["u=u.npy", "forcing=whole.npy"];
    assert_eq!(plan(&whole, &given_whole, 40), Ok(()), "an input that stays is the same at any step");
    let free = Task { inputs: Vec::new(), ..task };
    assert_eq!(plan(&free, &given[..1], 40), Ok(()), "a roll-out without such an input may be longer");
}

#[test]
fn a_field_that_drives_a_roll_out_says_how_many_steps_are_predicted() {
    let (folder, task) = (Folder::new("given-driven"), Task { driven: true, ..forced() });
    let forced = Task { inputs: vec![Field { snapshots: Some(5), ..Field::plain("forcing", 1) }], ..task };
    save(&folder, "u.npy", &[2, 3, 2], (0..12).map(f64::from));
    for snapshots in [2, 5, 9] {
        save(&folder, &format!("f{snapshots}.npy"), &[snapshots, 3, 2], (0..6 * snapshots as i32).map(f64::from));
    }
    let given = |snapshots: usize, asked: Option<usize>| {
        let sources = [format!("u={}", folder.at("u.npy").display()), {
            format!("forcing={}", folder.at(&format!("f{snapshots}.npy")).display())
        }];
        let sources: Vec<Source> = sources.iter().flat_map(|source| Source::parse_all(source).unwrap()).collect();
        PredictionInput::read(&forced, &sources, asked).map_err(|error| error.to_string())
    };
    for (snapshots, asked, times) in [(5, None, 3), (9, None, 7), (9, Some(4), 4)] {
        let samples = given(snapshots, asked).unwrap().samples;
        assert_eq!((samples.times, samples.functions), (times, 2 + snapshots), "{snapshots} {asked:?}");
        let first = &samples.input_of(0)[..2 + snapshots];
        assert_eq!((first[0], first[1], first[2], first[1 + snapshots]), (0.0, 6.0, 0.0, 6.0 * (snapshots - 1) as f32));
    }
    // On another grid, too; and a series that begins before the force is refused.
    save(&folder, "finer_u.npy", &[2, 5, 4], (0..40).map(f64::from));
    save(&folder, "finer_f.npy", &[9, 5, 4], (0..180).map(f64::from));
    save(&folder, "longer_u.npy", &[4, 3, 2], (0..24).map(f64::from));
    assert_eq!(read(&folder, &forced, &["u=finer_u.npy", "forcing=finer_f.npy"]).unwrap().samples.times, 7);
    let told = read(&folder, &forced, &["u=longer_u.npy", "forcing=f9.npy"]).unwrap_err();
    assert!(
        told.contains("array `u`: expected 2 snapshots, which the other inputs begin with, too, found 4"),
        "{told}"
    );
    let told = given(9, Some(8)).unwrap_err();
    assert!(told.contains("expected at most 7, because `forcing`") && told.contains("with 10 snapshots"), "{told}");
    let told = given(2, None).unwrap_err();
    assert!(told.contains("at least 3 snapshots: 2 before the prediction and one for each step"), "{told}");
}

#[test]
fn an_array_with_or_without_an_axis_for_its_one_channel_is_the_same_sample() {
    let folder = Folder::new("given-channel");
    let grid = Grid::Plane { rows: 3, columns: 1 };
    let without = Task { positions: Positions::Lattice, ..Task::plain(grid, 2, 1, 1) };
    let without = Task { inputs: vec![Field::plain("a", 1)], ..without };
    let with = Task { inputs: vec![Field { channels: Some(1), ..Field::plain("a", 1) }], ..without.clone() };
    for (name, shape) in
        [("a.npy", vec![3, 1]), ("b.npy", vec![3, 1, 1]), ("c.npy", vec![2, 3, 1]), ("d.npy", vec![2, 3, 1, 1])]
    {
        save(&folder, name, &shape, (0..shape.iter().product::<usize>() as i32).map(f64::from));
        let count = if name < "c" { 1 } else { 2 };
        for task in [&without, &with] {
            let samples = read(&folder, task, &[&format!("a={name}")]).unwrap().samples;
            assert_eq!((samples.count, samples.input_of(count - 1)[2]), (count, 3.0 * count as f32 - 1.0), "{name}");
        }
    }
    save(&folder, "turned.npy", &[1, 1, 3], (0..3).map(f64::from));
    for (task, letters) in [(&without, "cyx"), (&with, "cyx")] {
        let source = format!("a={}", folder.at("turned.npy").display());
        let mut sources = Source::parse_all(&source).unwrap();
        sources[0].axes = Some(letters.to_owned());
        let samples = PredictionInput::read(task, &sources, None).unwrap().samples;
        assert_eq!((samples.count, samples.input_of(0)), (1, [0.0, 1.0, 2.0].as_slice()));
    }
}

#[test]
fn a_file_that_holds_an_output_alone_is_no_input() {
    let folder = Folder::new("given-output");
    let task = Task { positions: Positions::Lattice, ..Task::plain(Grid::Line { points: 3 }, 1, 1, 1) };
    let task = Task { inputs: vec![Field::plain("a", 1)], outputs: vec![Field::plain("u", 1)], ..task };
    for name in ["u", "b"] {
        std::fs::write(folder.at(&format!("{name}.csv")), format!("{name}\n0.5\n1.5\n2.5\n")).unwrap();
    }
    let taken = read(&folder, &task, &["b.csv"]).unwrap();
    assert_eq!(taken.samples.input_of(0), [0.5, 1.5, 2.5], "the only array of a file is taken whatever its name");
    let told = read(&folder, &task, &["u.csv"]).unwrap_err();
    assert!(told.contains("`a`, found `u`"), "{told}");
}
