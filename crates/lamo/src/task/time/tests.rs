use super::*;
use crate::task::{Moments, Normalisers, Task};

#[test]
fn times_are_fractions_of_the_way_from_first_to_last() {
    let time = |clock: &[f64]| TimeMode::ByTime.of(3, clock).unwrap();
    let fractions = |time: &Time| [0, 1, 2].map(|index| time.fraction(index));
    assert_eq!(fractions(&time(&[])), [0.0, 0.5, 1.0]);
    assert_eq!(fractions(&time(&[2.0, 3.0, 4.0])), [0.0, 0.5, 1.0]);
    assert_eq!(fractions(&time(&[2.0, 3.0, 6.0])), [0.0, 0.25, 1.0]);
    for mode in [TimeMode::ByTime, TimeMode::RollOut { past: 1 }] {
        let refused = |clock: &[f64]| mode.of(clock.len(), clock).unwrap_err().to_string();
        let expected = "times: expected finite times, each later than the one before";
        assert_eq!(refused(&[2.0, 2.0, 6.0]), format!("{expected}, found 2 after 2"));
        assert_eq!(refused(&[2.0, f64::NAN, 6.0]), format!("{expected}, found NaN"));
    }
}

#[test]
fn a_roll_out_takes_any_length_of_the_same_interval_and_by_time_the_same_times() {
    let roll_out = TimeMode::RollOut { past: 1 }.of(2, &[0.0, 0.5, 1.0]).unwrap();
    assert!(roll_out.check_clock(9, &[3.0, 3.5]).is_ok() && roll_out.check_clock(9, &[3.0, 4.0]).is_err());
    let by_time = TimeMode::ByTime.of(3, &[0.0, 0.5, 1.0]).unwrap();
    assert!(by_time.check_clock(3, &[0.0, 0.5, 1.0]).is_ok());
    assert!(by_time.check_clock(2, &[0.0, 0.5]).is_err() && by_time.check_clock(3, &[0.0, 0.6, 1.0]).is_err());
}

#[test]
fn fields_that_stay_stand_behind_the_past_snapshots() {
    let grid = Grid::Line { points: 2 };
    let field = |name: &str, shape: &[usize]| Field::on(grid, name, "1", shape).unwrap();
    let (series, still) = ([field("u", &[3, 2])], [field("a", &[2])]);
    let values = [vec![0., 1., 10., 11., 20., 21.]];
    let arranged = TimeMode::RollOut { past: 2 }.arrange((&still, &[vec![7., 8.]]), (&series, &values), grid).unwrap();
    assert_eq!((arranged.functions, arranged.times, arranged.outputs), (3, 1, 1));
    assert_eq!((arranged.inputs, arranged.targets), (vec![0., 10., 7., 1., 11., 8.], vec![20., 21.]));
    let time = TimeMode::RollOut { past: 2 }.of(1, &[]).unwrap();
    let given = time.given_fields(&still, &series);
    let names: Vec<_> = given.iter().map(|field| (field.name.as_str(), field.snapshots)).collect();
    assert_eq!(names, [("u", Some(2)), ("a", None)]);
    let arranged = time.arrange_given((&given, &[vec![0., 1., 10., 11.], vec![7., 8.]]), 1, grid);
    assert_eq!(arranged, [0., 10., 7., 1., 11., 8.]);
}

#[test]
fn a_roll_out_carries_the_normaliser_of_its_outputs() {
    let time = TimeMode::RollOut { past: 2 }.of(1, &[]).unwrap();
    let outputs = Normaliser { mean: vec![1.0], deviation: vec![2.0] };
    let fitted = time.fit_inputs(&[0., 0., 3., 0., 0., 5.], 3, (1, Some(&outputs)), true).unwrap().unwrap();
    assert_eq!((fitted.mean, &fitted.deviation[..2]), (vec![1.0, 1.0, 4.0], &[2.0, 2.0][..]));
    assert_eq!(time.fit_inputs(&[0.; 4], 2, (1, None), true).unwrap(), None);
}

/// Series of two samples on two points: 0, 1, 3 and 10, 10, 16 at the first point, ten times that at the second.
#[test]
fn the_change_from_the_last_snapshot_is_scaled_back_and_added_to_it() {
    let time = TimeMode::RollOut { past: 1 }.of(2, &[]).unwrap();
    let (inputs, targets) = ([0., 0., 10., 100.], [1., 10., 3., 30., 10., 100., 16., 160.]);
    let samples = || inputs.chunks(2).zip(targets.chunks(4));
    let change = time.fit_change(samples(), [1, 1]).unwrap().unwrap();
    let changes = [1.0_f64, 10., 2., 20., 0., 0., 6., 60.];
    let moments = Moments::of(changes.into_iter());
    assert!((f64::from(change.mean[0]) - moments.mean()).abs() < 1e-5, "{change:?}");
    assert!((f64::from(change.deviation[0]) - moments.deviation()).abs() < 1e-5, "{change:?}");
    assert_eq!(TimeMode::Steady.of(1, &[]).unwrap().fit_change(samples(), [1, 1]).unwrap(), None);

    let outputs = Normaliser { mean: vec![5.0], deviation: vec![4.0] };
    let normalisers = Normalisers { outputs: Some(outputs), change: Some(change.clone()), ..Normalisers::default() };
    let task = Task { time, normalisers, ..Task::plain(Grid::Line { points: 2 }, 1, 0, 1) };
    task.check().unwrap();
    let graph = Graph::new();
    let [result, positions, functions] = ["result", "positions", "functions"].map(|name| graph.input(name, [1, 2, 1]));
    let found = task.decoded(task.found(result, positions, Some(functions)), None);
    graph.output("found", found);
    let mut program = lamo_tensor::Program::compile(&graph);
    program.write("result", &[0.0, 2.0]);
    program.write("functions", &[-1.0, 0.5]); // the snapshot 1, 7 in physical units
    program.run();
    let expected = [1.0 + change.mean[0], 7.0 + change.mean[0] + 2.0 * change.deviation[0]];
    for (found, expected) in program.read("found").iter().zip(expected) {
        assert!((found - expected).abs() < 1e-4 * expected.abs(), "{found} and {expected}");
    }
    let without = Task { time: Time::Steady, ..task };
    assert!(without.check().unwrap_err().to_string().contains("roll-out"));
}
