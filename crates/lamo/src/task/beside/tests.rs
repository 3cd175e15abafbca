use crate::task::{Field, Normaliser, Normalisers, Task, Time};
use lamo_geometry::Grid;

/// Two past snapshots of u, then a still field of one function and a force of two channels; three steps are trained on.
fn task() -> Task {
    let grid = Grid::Line { points: 1 };
    let force = Field { snapshots: Some(5), channels: Some(2), ..Field::plain("force", 1) };
    let time = Time::RollOut { past: 2, snapshots: 3, clock: Vec::new() };
    Task { time, inputs: vec![Field::plain("still", 1), force], driven: true, ..Task::plain(grid, 1, 0, 1) }
}

/// The functions of a sample with three steps: 0 and 1 are past snapshots, 2 is the still field, the force has 10 and 11, 20 and 21, ...
const GIVEN: [f32; 13] = [0., 1., 2., 10., 11., 20., 21., 30., 31., 40., 41., 50., 51.];

#[test]
fn a_step_is_shown_the_snapshots_of_its_window_and_its_own() {
    let task = task();
    assert_eq!((task.input_channels(), task.given_channels(3), task.driving()), (9, 13, 2));
    assert_eq!((task.steps_of(9), task.steps_of(13), task.steps_of(21)), (1, 3, 7));
    assert_eq!(task.shown(&GIVEN, 13, 0), [0., 1., 2., 10., 11., 20., 21., 30., 31.]);
    assert_eq!(task.shown(&GIVEN, 13, 2), [0., 1., 2., 30., 31., 40., 41., 50., 51.]);
    assert_eq!([0, 1, 2].map(|step| task.entering(&GIVEN, 13, step)), [[40., 41.], [50., 51.], [50., 51.]]);
    assert_eq!(task.held(&task.shown(&GIVEN, 13, 0), 3)[7..], [30., 31., 30., 31., 30., 31.]);
}

#[test]
fn a_field_of_another_length_stays_and_so_do_all_fields_of_models_of_earlier_versions() {
    let mut other = task();
    other.inputs[1].snapshots = Some(4);
    assert_eq!((other.driving(), other.input_channels(), other.given_channels(3)), (0, 11, 11));
    let earlier = Task { driven: false, ..task() };
    assert_eq!((earlier.driving(), earlier.input_channels(), earlier.given_channels(3)), (0, 13, 13));
    assert_eq!(earlier.shown(&GIVEN, 13, 2), GIVEN);
}

#[test]
fn all_snapshots_of_a_driving_field_have_one_normaliser() {
    let inputs = Normaliser { mean: GIVEN.to_vec(), deviation: vec![1.0; 13] };
    let normalisers = Normalisers { inputs: Some(inputs), ..Normalisers::default() };
    let mut task = Task { driven: false, normalisers, ..task() };
    let again: Vec<f32> = GIVEN.iter().map(|value| value + 4.0).collect();
    task.drive(&[&GIVEN[..], &again].concat(), 13, true).unwrap();
    let Normaliser { mean, deviation } = task.normalisers.inputs.clone().unwrap();
    assert_eq!(mean, [0., 1., 2., 32., 33., 32., 33., 32., 33.]); // 10, ..., 50 and 14, ..., 54
    assert!(task.driven && deviation[3] > 14.0 && deviation[3] == deviation[8] && deviation[2] == 1.0);
    task.check().unwrap();
    assert_eq!(task.encode_inputs(&GIVEN, 13)[11..], [(50. - 32.) / deviation[3], (51. - 33.) / deviation[3]]);
    let odd = task.normalisers.inputs.as_mut().unwrap();
    odd.mean[7] = 0.0;
    let told = task.check().unwrap_err().to_string();
    assert!(told.contains("`force`, which drives the roll-out: expected the same mean"), "{told}");
}
