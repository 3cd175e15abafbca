//! The names of fields, channels and snapshots in pictures and tables.

use lamo::inference::Series;
use lamo::task::{Field, Task};

/// The field of a deforming body, and its channels: the position of a point and its displacement.
const DEFORMATION: &str = "deformation";
const DEFORMATION_CHANNELS: [&str; 4] = ["x", "y", "u_x", "u_y"];

/// Whether a field holds the positions to which its points have moved.
pub(crate) fn is_deformation(field: &str, channels: usize) -> bool {
    field == DEFORMATION && channels == DEFORMATION_CHANNELS.len()
}

/// A name for each channel of a field.
pub(crate) fn channels(field: &str, count: usize) -> Vec<String> {
    let name = field.replace('_', " ");
    match count {
        _ if is_deformation(field, count) => DEFORMATION_CHANNELS.map(str::to_owned).into(),
        1 => vec![name],
        _ => (1..=count).map(|channel| format!("{name} {channel}")).collect(),
    }
}

/// The unit after a name, as in `pressure (kPa)`; nothing for dimensionless fields.
pub(crate) fn unit(unit: &str) -> String {
    if matches!(unit, "" | "1") { String::new() } else { format!(" ({unit})") }
}

/// The unit after a number, as in `3.2 kPa`; nothing for dimensionless fields.
pub(crate) fn in_unit(unit: &str) -> String {
    if matches!(unit, "" | "1") { String::new() } else { format!(" {unit}") }
}

/// A snapshot of a time series: its time if the times are known, else its number.
pub(crate) fn snapshot_name(snapshot: usize, snapshots: usize, times: &[f64]) -> String {
    match times.get(snapshot).filter(|_| times.len() == snapshots) {
        Some(&time) => format!("t = {}", format!("{time:.4e}").parse().unwrap_or(time)), // five digits at most
        None => format!("snapshot {}/{snapshots}", snapshot + 1),
    }
}

/// The names of the functions that fields consist of, in their order. With `steady`, each snapshot of a field is a function of
/// its own.
fn functions(fields: &[Field], steady: bool) -> Vec<String> {
    let mut functions = Vec::new();
    for field in fields {
        let snapshots = if steady { field.length() } else { 1 };
        for snapshot in 0..snapshots {
            for name in channels(&field.name, field.width()) {
                functions.push(match snapshots {
                    1 => name,
                    _ => format!("{name} at {}", snapshot_name(snapshot, snapshots, &[])),
                });
            }
        }
    }
    functions
}

/// A name for each output of a task, in the order of its errors: those of a time series have one for all snapshots.
pub(crate) fn outputs(task: &Task) -> Vec<String> {
    functions(&task.outputs, !task.time.is_series() && Series::task_of(task).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_deformation_moves_its_points() {
        let found = [is_deformation("deformation", 4), is_deformation("deformation", 3), is_deformation("flow", 4)];
        assert_eq!(found, [true, false, false]);
        assert_eq!(channels("deformation", 4), ["x", "y", "u_x", "u_y"]);
        assert_eq!(channels("mean_flow", 4)[3], "mean flow 4");
    }

    #[test]
    fn functions_have_a_name_and_a_snapshot() {
        let series = Field { snapshots: Some(2), ..Field::plain("p", 1) };
        let names = functions(&[series.clone(), Field::plain("u", 2)], true);
        assert_eq!(names, ["p at snapshot 1/2", "p at snapshot 2/2", "u 1", "u 2"]);
        assert_eq!([unit("kPa"), unit("1"), unit("")], [" (kPa)", "", ""]);
        assert_eq!(functions(&[series], false).len(), 1);
    }

    #[test]
    fn a_snapshot_is_named_by_its_time_if_that_is_known() {
        assert_eq!([snapshot_name(1, 3, &[0.0, 0.25, 1.0]), snapshot_name(1, 3, &[])], ["t = 0.25", "snapshot 2/3"]);
    }
}
