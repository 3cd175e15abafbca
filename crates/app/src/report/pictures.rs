//! The pictures of a test sample: input, truth, prediction and error, on the mesh of the sample.

use super::names::{Function, functions, is_deformation, snapshot_name, unit};
use crate::commands::evenly;
use crate::plot::{Figure, Layout, Map, Scale, ends, number, strides, window};
use lamo::data::Samples;
use lamo::task::{Positions, Spread, Task};
use lamo_geometry::Grid;

/// Snapshots drawn of a time series.
const SNAPSHOTS: usize = 4;
/// Functions drawn of the input, and of the output.
const CHANNELS: usize = 3;

/// One test sample with its prediction.
#[derive(Clone, Copy)]
pub(super) struct SampleView<'a> {
    pub(super) task: &'a Task,
    pub(super) samples: &'a Samples,
    /// Which of the samples.
    pub(super) index: usize,
    /// `[times, points, outputs]`
    pub(super) prediction: &'a [f32],
    /// Times of the snapshots of a time series, if known.
    pub(super) times: &'a [f64],
    /// Unit of the positions.
    pub(super) unit: &'a str,
}

/// A field at one time: the layout of its points, and its values.
type State = (Layout, Vec<f32>);

impl SampleView<'_> {
    /// All maps of the sample.
    pub(super) fn figure(&self, title: String) -> Figure {
        let rows = match (self.task.time.is_series(), self.deforms()) {
            (false, _) => self.steady(),
            (true, true) => self.deformation(),
            (true, false) => self.time_series(),
        };
        Figure { title, notes: self.notes(&rows), rows }
    }

    /// Notes for all maps: the axes, functions that are not drawn, values outside the range of the colours.
    fn notes(&self, rows: &[Vec<Map>]) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(map) = rows.last().and_then(|row| row.last()) {
            let unit = unit(if self.deforms() { &self.task.outputs[0].unit } else { self.unit });
            notes.push(map.layout.axes(map.window.as_ref(), &unit));
        }
        let (inputs, outputs) = (self.samples.functions, self.samples.outputs);
        let few = |count: usize, what: &str| (count > CHANNELS).then(|| format!("{CHANNELS} of {count} {what}"));
        let inputs = if self.past() > 0 { None } else { few(inputs, "inputs") };
        let outputs = if self.deforms() { None } else { few(outputs, "outputs") };
        let few: Vec<_> = inputs.into_iter().chain(outputs).collect();
        if !few.is_empty() {
            notes.push(format!("{} are drawn", few.join(" and ")));
        }
        let outside = |map: &Map| map.has_bar() && ends(std::slice::from_ref(map), number).concat().contains('<');
        if rows.iter().flatten().any(outside) {
            notes.push("a < b at a colour bar: some values are outside the range of its colours".into());
        }
        notes
    }

    fn truth(&self) -> &[f32] {
        self.samples.target_of(self.index)
    }

    /// Whether the only output holds the positions to which the points have moved.
    fn deforms(&self) -> bool {
        let series = self.task.time.is_series();
        matches!(&self.task.outputs[..], [field] if series && is_deformation(&field.name, field.width()))
    }

    /// The layout of the points of the sample; a lattice is drawn as squares.
    fn layout(&self) -> Layout {
        let Samples { grid, space, .. } = *self.samples;
        let positions = self.samples.positions_of(self.index);
        match grid {
            Grid::Plane { rows, columns } if (self.task.positions != Positions::Given) || space < 2 => {
                Layout::Grid([rows, columns])
            }
            Grid::Plane { rows, columns } => {
                let positions = positions.chunks_exact(space).map(|point| [point[0], point[1]]).collect();
                Layout::Mesh([rows, columns], positions)
            }
            Grid::Cloud { .. } if space > 1 => Layout::cloud(positions, space),
            Grid::Line { points } | Grid::Cloud { points } => Layout::Grid([points, 1]),
        }
    }

    /// One channel at one time of `[times, points, outputs]` values.
    fn channel(&self, values: &[f32], time: usize, channel: usize) -> Vec<f32> {
        let (outputs, size) = (self.samples.outputs, self.samples.grid.points() * self.samples.outputs);
        values[time * size..][..size].iter().skip(channel).step_by(outputs).copied().collect()
    }

    /// The colours of truth and prediction have the range of the truth. Curves have the range of both, as a curve outside its
    /// range cannot be seen.
    fn scale(&self, truth: &[State], prediction: &[State]) -> Scale {
        let curves = truth.iter().any(|(layout, _)| layout.is_curve());
        let prediction = if curves { prediction } else { &[] };
        Scale::of(truth.iter().chain(prediction).flat_map(|(_, values)| values).copied())
    }

    /// The inputs, then truth, prediction and error in a row for each output.
    fn steady(&self) -> Vec<Vec<Map>> {
        let layout = self.layout();
        let functions = functions(&self.task.outputs, true);
        let mut rows = Vec::new();
        for (output, Function { name, unit, .. }) in functions.iter().enumerate().take(CHANNELS) {
            let [truth, prediction] = [self.truth(), self.prediction].map(|values| self.channel(values, 0, output));
            let error = difference(&prediction, &truth);
            let [truth, prediction, error] = [truth, prediction, error].map(|values| vec![(layout.clone(), values)]);
            let scale = self.scale(&truth, &prediction);
            let error_scale = Scale::signed(error[0].1.iter().copied());
            let mut row = if output == 0 { self.inputs(&layout) } else { Vec::new() };
            row.extend(maps(vec![format!("{name}, truth{unit}")], truth, scale));
            row.extend(maps(vec![format!("{name}, prediction{unit}")], prediction, scale));
            row.extend(maps(vec![format!("prediction - truth{unit}")], error, error_scale));
            rows.push(row);
        }
        rows
    }

    /// Maps of the input functions; the mesh itself if there are none.
    fn inputs(&self, layout: &Layout) -> Vec<Map> {
        let count = self.samples.functions;
        if count == 0 {
            let (layout, values) = (layout.clone().without_field(), vec![0.0; self.samples.grid.points()]);
            return maps(vec![mesh_title(&layout)], vec![(layout, values)], Scale::plain());
        }
        let functions = functions(&self.task.inputs, true);
        let one = |(input, Function { name, unit, spread }): (usize, &Function)| {
            let values = self.samples.input_of(self.index).iter().skip(input).step_by(count).copied();
            let (title, layout, values): (_, _, Vec<f32>) = match (spread, self.samples.grid) {
                (Spread::Rows, Grid::Plane { rows, columns }) => {
                    let title = format!("{name} along the rows, input{unit}");
                    (title, Layout::Grid([rows, 1]), values.step_by(columns).collect())
                }
                _ => (format!("{name}, input{unit}"), layout.clone(), values.collect()),
            };
            let scale = Scale::of(values.iter().copied());
            maps(vec![title], vec![(layout, values)], scale)
        };
        functions.iter().enumerate().take(count.min(CHANNELS)).flat_map(one).collect()
    }

    /// Snapshots of a time series that are input.
    fn past(&self) -> usize {
        self.task.time.past()
    }

    /// The name of a snapshot; the input snapshots count.
    fn snapshot_name(&self, snapshot: usize) -> String {
        snapshot_name(snapshot, self.past() + self.samples.times, self.times)
    }

    /// The inputs, then the first few outputs.
    fn time_series(&self) -> Vec<Vec<Map>> {
        let mut rows = if self.past() > 0 { Vec::new() } else { vec![self.inputs(&self.layout())] };
        for (output, function) in functions(&self.task.outputs, false).iter().enumerate().take(CHANNELS) {
            rows.extend(self.series_of(output, function));
        }
        rows
    }

    /// Rows for the input snapshots, the truth, the prediction and the error of one output, with a column for each of a few
    /// snapshots.
    fn series_of(&self, output: usize, Function { name, unit, .. }: &Function) -> Vec<Vec<Map>> {
        let layout = self.layout();
        let times = evenly(self.samples.times, SNAPSHOTS);
        let states = |values: &[f32]| -> Vec<State> {
            times.iter().map(|&time| (layout.clone(), self.channel(values, time, output))).collect()
        };
        let (truth, prediction) = (states(self.truth()), states(self.prediction));
        let error = |(prediction, truth): (&State, &State)| (layout.clone(), difference(&prediction.1, &truth.1));
        let errors: Vec<State> = prediction.iter().zip(&truth).map(error).collect();
        let past = evenly(self.past(), SNAPSHOTS);
        let input: Vec<State> = past.iter().map(|&snapshot| (layout.clone(), self.input(snapshot, output))).collect();
        let scale = self.scale(&[input.as_slice(), &truth].concat(), &prediction);
        let error_scale = Scale::signed(errors.iter().flat_map(|(_, values)| values).copied());
        let titles = |what: &str, snapshots: &[usize]| -> Vec<String> {
            snapshots.iter().map(|&snapshot| format!("{what}, {}{unit}", self.snapshot_name(snapshot))).collect()
        };
        let predicted: Vec<usize> = times.iter().map(|time| self.past() + time).collect();
        let rows = [
            maps(titles(&format!("{name}, input"), &past), input, scale),
            maps(titles(&format!("{name}, truth"), &predicted), truth, scale),
            maps(titles(&format!("{name}, prediction"), &predicted), prediction, scale),
            maps(titles("prediction - truth", &predicted), errors, error_scale),
        ];
        rows.into_iter().filter(|row| !row.is_empty()).collect()
    }

    /// One channel of an input snapshot.
    fn input(&self, snapshot: usize, output: usize) -> Vec<f32> {
        let (functions, outputs) = (self.samples.functions, self.samples.outputs);
        let first = snapshot * outputs + output;
        self.samples.input_of(self.index).iter().skip(first).step_by(functions).copied().collect()
    }

    /// The inputs, then the deformed body coloured by the length of the displacement, and the distance of each point from its
    /// true position.
    fn deformation(&self) -> Vec<Vec<Map>> {
        let times = evenly(self.samples.times, SNAPSHOTS);
        let states = |values: &[f32]| -> Vec<State> { times.iter().map(|&time| self.deformed(values, time)).collect() };
        let (truth, prediction) = (states(self.truth()), states(self.prediction));
        let distance = |(truth, &time): (&State, &usize)| (truth.0.clone(), self.distance(time));
        let distances: Vec<State> = truth.iter().zip(&times).map(distance).collect();
        let scale = self.scale(&truth, &prediction);
        let distance_scale = Scale::of(distances.iter().flat_map(|(_, values)| values).copied());
        let unit = unit(&self.task.outputs[0].unit);
        let titles = |what: &str| -> Vec<String> {
            times.iter().map(|&time| format!("{what}, {}{unit}", self.snapshot_name(self.past() + time))).collect()
        };
        let shared = window(&truth.iter().chain(&prediction).map(|(layout, _)| layout).collect::<Vec<_>>());
        let mut rows = vec![
            maps(titles("displacement, truth"), truth, scale),
            maps(titles("displacement, prediction"), prediction, scale),
            maps(titles("distance to the truth"), distances, distance_scale),
        ];
        rows.iter_mut().flatten().for_each(|map| map.window = shared);
        if self.past() == 0 {
            rows.insert(0, self.inputs(&self.layout()));
        }
        rows
    }

    /// The deformed mesh, with the length of the displacement.
    fn deformed(&self, values: &[f32], time: usize) -> State {
        let [x, y, right, up] = [0, 1, 2, 3].map(|channel| self.channel(values, time, channel));
        let positions = x.into_iter().zip(y).map(|(x, y)| [x, y]).collect();
        let layout = match self.samples.grid {
            Grid::Plane { rows, columns } => Layout::Mesh([rows, columns], positions),
            Grid::Line { .. } | Grid::Cloud { .. } => Layout::Cloud(positions, Vec::new()),
        };
        (layout, right.iter().zip(&up).map(|(right, up)| right.hypot(*up)).collect())
    }

    /// The distance of each point of a deformed mesh from its true position.
    fn distance(&self, time: usize) -> Vec<f32> {
        let [x, y] = [0, 1].map(|channel| {
            difference(&self.channel(self.prediction, time, channel), &self.channel(self.truth(), time, channel))
        });
        x.iter().zip(y).map(|(x, y)| x.hypot(y)).collect()
    }
}

/// Prediction minus truth.
fn difference(prediction: &[f32], truth: &[f32]) -> Vec<f32> {
    prediction.iter().zip(truth).map(|(prediction, truth)| prediction - truth).collect()
}

/// Maps that share their colours and their window.
fn maps(titles: Vec<String>, states: Vec<State>, scale: Scale) -> Vec<Map> {
    let window = window(&states.iter().map(|(layout, _)| layout).collect::<Vec<_>>());
    let map = |(title, (layout, values))| Map { title, layout, window, values, scale };
    titles.into_iter().zip(states).map(map).collect()
}

/// The title of a mesh without a field.
fn mesh_title(layout: &Layout) -> String {
    match layout {
        Layout::Wire(plane, _) if strides(*plane) != [1, 1] => {
            let [rows, columns] = strides(*plane);
            format!("mesh, a line every {rows} rows and {columns} columns")
        }
        Layout::Cloud(..) => "points".into(),
        Layout::Grid(_) | Layout::Mesh(..) | Layout::Wire(..) => "mesh".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lamo::task::{Field, TimeMode};

    const PLANE: Grid = Grid::Plane { rows: 2, columns: 2 };

    /// The figure of a time series with one input snapshot and one output snapshot.
    fn figure(name: &str, outputs: usize, input: &[f32], truth: &[f32], prediction: &[f32]) -> Figure {
        let task = Task {
            positions: Positions::Lattice,
            outputs: vec![Field { unit: "1/s".into(), ..Field::plain(name, outputs) }],
            time: TimeMode::RollOut { past: 1 }.of(1, &[]).unwrap(),
            ..Task::plain(PLANE, 2, 0, outputs)
        };
        let samples = Samples {
            count: 1,
            grid: PLANE,
            space: 2,
            positions: vec![0.0; 8],
            functions: outputs,
            inputs: input.to_vec(),
            times: 1,
            outputs,
            targets: truth.to_vec(),
        };
        let view = SampleView { task: &task, samples: &samples, index: 0, prediction, times: &[], unit: "" };
        view.figure(String::new())
    }

    #[test]
    fn input_and_truth_of_a_series_share_their_colours_and_values_outside_are_noted() {
        let figure = figure("w", 1, &[1.0, 2.0, 3.0, 4.0], &[2.0, 2.0, 2.0, 3.0], &[2.0, 2.0, 2.0, 9.0]);
        let titles: Vec<_> = figure.rows.iter().map(|row| row[0].title.as_str()).collect();
        let last = "snapshot 2/2 (1/s)";
        assert_eq!(titles[0], "w, input, snapshot 1/2 (1/s)");
        assert_eq!(titles[1..3], [format!("w, truth, {last}"), format!("w, prediction, {last}")]);
        assert!(figure.rows[..3].iter().all(|row| row[0].scale == figure.rows[0][0].scale));
        assert_eq!(ends(&figure.rows[2], number), ["1", "4 < 9"]);
        assert!(figure.notes[0].contains("2 rows to the right") && figure.notes[1].contains("outside the range"));
    }

    #[test]
    fn only_a_deformation_is_drawn_on_its_own_positions() {
        let values: Vec<f32> = (1..=16).map(|value| value as f32).collect();
        let layout =
            |name: &str| figure(name, 4, &values, &values, &values).rows.pop().map(|row| row[0].layout.clone());
        assert!(matches!(layout("deformation"), Some(Layout::Mesh(..))));
        assert!(matches!(layout("flow"), Some(Layout::Grid(..))));
        assert!(figure("flow", 4, &values, &values, &values).notes.contains(&"3 of 4 outputs are drawn".to_owned()));
    }
}
