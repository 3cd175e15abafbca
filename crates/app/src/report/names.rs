//! What fields are called in pictures and tables, of data sets and of reports alike.

use lamo::task::{Field, Spread, Task};

/// The field of a body that deforms, and its channels: where a point is and how far it has come.
const MOVING: &str = "deformation";
const MOVING_CHANNELS: [&str; 4] = ["x", "y", "u_x", "u_y"];

/// Whether a field says where its points have moved to.
pub(crate) fn moves(field: &str, channels: usize) -> bool {
    field == MOVING && channels == MOVING_CHANNELS.len()
}

/// A name for each channel of a field.
pub(crate) fn channels(field: &str, count: usize) -> Vec<String> {
    let name = field.replace('_', " ");
    match count {
        _ if moves(field, count) => MOVING_CHANNELS.map(str::to_owned).into(),
        1 => vec![name],
        _ => (1..=count).map(|channel| format!("{name} {channel}")).collect(),
    }
}

/// The unit behind a name, as in `pressure (kPa)`; nothing for plain numbers.
pub(crate) fn unit(unit: &str) -> String {
    if matches!(unit, "" | "1") { String::new() } else { format!(" ({unit})") }
}

/// When a frame of a film is: by its time where the times are known, else by its number.
pub(crate) fn moment(frame: usize, frames: usize, times: &[f64]) -> String {
    match times.get(frame).filter(|_| times.len() == frames) {
        Some(&time) => format!("t = {}", format!("{time:.4e}").parse().unwrap_or(time)), // five digits at most
        None => format!("frame {}/{frames}", frame + 1),
    }
}

/// One function of the points.
pub(super) struct Function {
    pub(super) name: String,
    /// In brackets after a blank, or nothing.
    pub(super) unit: String,
    pub(super) spread: Spread,
}

/// The functions that fields consist of, in their order; `still` fields give one for each of their frames.
pub(super) fn functions(fields: &[Field], still: bool) -> Vec<Function> {
    let mut functions = Vec::new();
    for field in fields {
        let frames = if still { field.length() } else { 1 };
        for frame in 0..frames {
            for name in channels(&field.name, field.width()) {
                let name = if frames > 1 { format!("{name} at {}", moment(frame, frames, &[])) } else { name };
                functions.push(Function { name, unit: unit(&field.unit), spread: field.spread });
            }
        }
    }
    functions
}

/// A name for each output of a task, as its errors are listed.
pub(crate) fn outputs(task: &Task) -> Vec<String> {
    functions(&task.outputs, !task.time.is_series()).into_iter().map(|function| function.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_field_of_that_name_moves_its_points() {
        assert!(moves("deformation", 4) && !moves("deformation", 3) && !moves("flow", 4));
        assert_eq!(channels("deformation", 4), ["x", "y", "u_x", "u_y"]);
        assert_eq!(channels("mean_flow", 4)[3], "mean flow 4");
    }

    #[test]
    fn functions_carry_name_frame_and_unit() {
        let film = Field { unit: "kPa".into(), frames: Some(2), ..Field::plain("p", 1) };
        let title = |function: &Function| format!("{}{}", function.name, function.unit);
        let titles: Vec<_> = functions(&[film.clone(), Field::plain("u", 2)], true).iter().map(title).collect();
        assert_eq!(titles, ["p at frame 1/2 (kPa)", "p at frame 2/2 (kPa)", "u 1", "u 2"]);
        assert_eq!(functions(&[film], false).len(), 1);
    }

    #[test]
    fn a_frame_is_named_by_its_time_where_that_is_known() {
        assert_eq!([moment(1, 3, &[0.0, 0.25, 1.0]), moment(1, 3, &[])], ["t = 0.25", "frame 2/3"]);
    }
}
