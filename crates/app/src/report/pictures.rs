//! What a sample looks like: what was given, the truth, the prediction and the error, on the mesh they live on.

use super::names::{Function, functions, moment, moves, unit};
use crate::commands::spread;
use crate::plot::{Figure, Map, Place, Scale, ends, number, strides, window};
use lamo::data::Samples;
use lamo::task::{Positions, Spread, Task};
use lamo_geometry::Grid;

/// Frames drawn of a film.
const FRAMES: usize = 4;
/// Functions drawn of those given, and of those asked for.
const CHANNELS: usize = 3;

/// One test sample with its prediction.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) task: &'a Task,
    pub(super) samples: &'a Samples,
    /// Its place among the samples.
    pub(super) place: usize,
    /// `[times, points, outputs]`
    pub(super) prediction: &'a [f32],
    /// When the frames of films are, where it is known.
    pub(super) times: &'a [f64],
    /// Unit of the positions.
    pub(super) unit: &'a str,
}

/// A field at one time: where its values lie, and the values.
type State = (Place, Vec<f32>);

impl View<'_> {
    /// All maps of the sample under a title.
    pub(super) fn figure(&self, title: String) -> Figure {
        let rows = match (self.task.time.is_series(), self.deforms()) {
            (false, _) => self.steady(),
            (true, true) => self.deformation(),
            (true, false) => self.time_series(),
        };
        Figure { title, notes: self.notes(&rows), rows }
    }

    /// What the maps have in common: their axes, what was left out, what lies beyond their colours.
    fn notes(&self, rows: &[Vec<Map>]) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(map) = rows.last().and_then(|row| row.last()) {
            let unit = unit(if self.deforms() { &self.task.outputs[0].unit } else { self.unit });
            notes.push(map.place.axes(map.window.as_ref(), &unit));
        }
        let (inputs, outputs) = (self.samples.functions, self.samples.outputs);
        let few = |count: usize, what: &str| (count > CHANNELS).then(|| format!("{CHANNELS} of {count} {what}"));
        let inputs = if self.past() > 0 { None } else { few(inputs, "inputs") };
        let outputs = if self.deforms() { None } else { few(outputs, "outputs") };
        let few: Vec<_> = inputs.into_iter().chain(outputs).collect();
        if !few.is_empty() {
            notes.push(format!("{} are drawn", few.join(" and ")));
        }
        let beyond = |map: &Map| map.has_bar() && ends(std::slice::from_ref(map), number).concat().contains('<');
        if rows.iter().flatten().any(beyond) {
            notes.push("a < b at a colour bar: values reach beyond its colours".into());
        }
        notes
    }

    fn truth(&self) -> &[f32] {
        self.samples.target_of(self.place)
    }

    /// Whether the only output says where the points are.
    fn deforms(&self) -> bool {
        let series = self.task.time.is_series();
        matches!(&self.task.outputs[..], [field] if series && moves(&field.name, field.width()))
    }

    /// Where the points of the sample lie; a lattice is drawn as squares.
    fn mesh(&self) -> Place {
        let Samples { grid, space, .. } = *self.samples;
        let positions = self.samples.positions_of(self.place);
        match grid {
            Grid::Plane { rows, columns } if (self.task.positions != Positions::Given) || space < 2 => {
                Place::Grid([rows, columns])
            }
            Grid::Plane { rows, columns } => {
                let positions = positions.chunks_exact(space).map(|point| [point[0], point[1]]).collect();
                Place::Mesh([rows, columns], positions)
            }
            Grid::Cloud { .. } if space > 1 => Place::cloud(positions, space),
            Grid::Line { points } | Grid::Cloud { points } => Place::Grid([points, 1]),
        }
    }

    /// One channel at one time of `[times, points, outputs]` values.
    fn channel(&self, values: &[f32], time: usize, channel: usize) -> Vec<f32> {
        let (outputs, size) = (self.samples.outputs, self.samples.grid.points() * self.samples.outputs);
        values[time * size..][..size].iter().skip(channel).step_by(outputs).copied().collect()
    }

    /// Colours for truth and prediction: those of the truth. A curve that leaves its range cannot be seen, so curves
    /// take the range of both.
    fn scale(&self, truth: &[State], found: &[State]) -> Scale {
        let curves = truth.iter().any(|(place, _)| place.is_curve());
        let found = if curves { found } else { &[] };
        Scale::of(truth.iter().chain(found).flat_map(|(_, values)| values).copied())
    }

    /// What is given, then a row of truth, prediction and error for each output.
    fn steady(&self) -> Vec<Vec<Map>> {
        let mesh = self.mesh();
        let functions = functions(&self.task.outputs, true);
        let mut rows = Vec::new();
        for (output, Function { name, unit, .. }) in functions.iter().enumerate().take(CHANNELS) {
            let [truth, found] = [self.truth(), self.prediction].map(|values| self.channel(values, 0, output));
            let error = difference(&found, &truth);
            let [truth, found, error] = [truth, found, error].map(|values| vec![(mesh.clone(), values)]);
            let scale = self.scale(&truth, &found);
            let error_scale = Scale::signed(error[0].1.iter().copied());
            let mut row = if output == 0 { self.given(&mesh) } else { Vec::new() };
            row.extend(maps(vec![format!("{name}, truth{unit}")], truth, scale));
            row.extend(maps(vec![format!("{name}, prediction{unit}")], found, scale));
            row.extend(maps(vec![format!("prediction - truth{unit}")], error, error_scale));
            rows.push(row);
        }
        rows
    }

    /// Maps of the functions given; the mesh itself where there are none.
    fn given(&self, mesh: &Place) -> Vec<Map> {
        let count = self.samples.functions;
        if count == 0 {
            let (place, values) = (mesh.clone().bare(), vec![0.0; self.samples.grid.points()]);
            return maps(vec![bare_title(&place)], vec![(place, values)], Scale::plain());
        }
        let functions = functions(&self.task.inputs, true);
        let one = |(input, Function { name, unit, spread }): (usize, &Function)| {
            let values = self.samples.input_of(self.place).iter().skip(input).step_by(count).copied();
            let (title, place, values): (_, _, Vec<f32>) = match (spread, self.samples.grid) {
                (Spread::Rows, Grid::Plane { rows, columns }) => {
                    let title = format!("{name} along the rows, given{unit}");
                    (title, Place::Grid([rows, 1]), values.step_by(columns).collect())
                }
                _ => (format!("{name}, given{unit}"), mesh.clone(), values.collect()),
            };
            let scale = Scale::of(values.iter().copied());
            maps(vec![title], vec![(place, values)], scale)
        };
        functions.iter().enumerate().take(count.min(CHANNELS)).flat_map(one).collect()
    }

    /// Frames of the film before the first one asked for.
    fn past(&self) -> usize {
        self.task.time.past()
    }

    /// When a frame of the film is, those given counted.
    fn moment(&self, frame: usize) -> String {
        moment(frame, self.past() + self.samples.times, self.times)
    }

    /// What is given, then the first few outputs.
    fn time_series(&self) -> Vec<Vec<Map>> {
        let mut rows = if self.past() > 0 { Vec::new() } else { vec![self.given(&self.mesh())] };
        for (output, function) in functions(&self.task.outputs, false).iter().enumerate().take(CHANNELS) {
            rows.extend(self.film_of(output, function));
        }
        rows
    }

    /// Rows of the frames given, the truth, the prediction and the error of one output, a column for each of a few times.
    fn film_of(&self, output: usize, Function { name, unit, .. }: &Function) -> Vec<Vec<Map>> {
        let mesh = self.mesh();
        let times = spread(self.samples.times, FRAMES);
        let states = |values: &[f32]| -> Vec<State> {
            times.iter().map(|&time| (mesh.clone(), self.channel(values, time, output))).collect()
        };
        let (truth, found) = (states(self.truth()), states(self.prediction));
        let error = |(found, truth): (&State, &State)| (mesh.clone(), difference(&found.1, &truth.1));
        let errors: Vec<State> = found.iter().zip(&truth).map(error).collect();
        let before = spread(self.past(), FRAMES);
        let given: Vec<State> = before.iter().map(|&frame| (mesh.clone(), self.frame_given(frame, output))).collect();
        let scale = self.scale(&[given.as_slice(), &truth].concat(), &found);
        let error_scale = Scale::signed(errors.iter().flat_map(|(_, values)| values).copied());
        let titles = |what: &str, frames: &[usize]| -> Vec<String> {
            frames.iter().map(|&frame| format!("{what}, {}{unit}", self.moment(frame))).collect()
        };
        let asked: Vec<usize> = times.iter().map(|time| self.past() + time).collect();
        let rows = [
            maps(titles(&format!("{name}, given"), &before), given, scale),
            maps(titles(&format!("{name}, truth"), &asked), truth, scale),
            maps(titles(&format!("{name}, prediction"), &asked), found, scale),
            maps(titles("prediction - truth", &asked), errors, error_scale),
        ];
        rows.into_iter().filter(|row| !row.is_empty()).collect()
    }

    /// One output of a frame given.
    fn frame_given(&self, frame: usize, output: usize) -> Vec<f32> {
        let (functions, outputs) = (self.samples.functions, self.samples.outputs);
        self.samples.input_of(self.place).iter().skip(frame * outputs + output).step_by(functions).copied().collect()
    }

    /// What is given, then the body where it has moved to, with the length of the displacement, and how far each point is
    /// from where it should be.
    fn deformation(&self) -> Vec<Vec<Map>> {
        let times = spread(self.samples.times, FRAMES);
        let states = |values: &[f32]| -> Vec<State> { times.iter().map(|&time| self.deformed(values, time)).collect() };
        let (truth, found) = (states(self.truth()), states(self.prediction));
        let away = |(truth, &time): (&State, &usize)| (truth.0.clone(), self.distance(time));
        let distances: Vec<State> = truth.iter().zip(&times).map(away).collect();
        let scale = self.scale(&truth, &found);
        let distance_scale = Scale::of(distances.iter().flat_map(|(_, values)| values).copied());
        let unit = unit(&self.task.outputs[0].unit);
        let titles = |what: &str| -> Vec<String> {
            times.iter().map(|&time| format!("{what}, {}{unit}", self.moment(self.past() + time))).collect()
        };
        let shared = window(&truth.iter().chain(&found).map(|(place, _)| place).collect::<Vec<_>>());
        let mut rows = vec![
            maps(titles("displacement, truth"), truth, scale),
            maps(titles("displacement, prediction"), found, scale),
            maps(titles("distance"), distances, distance_scale),
        ];
        rows.iter_mut().flatten().for_each(|map| map.window = shared);
        if self.past() == 0 {
            rows.insert(0, self.given(&self.mesh()));
        }
        rows
    }

    /// The mesh where it has moved to, with the length of the displacement.
    fn deformed(&self, values: &[f32], time: usize) -> State {
        let [x, y, right, up] = [0, 1, 2, 3].map(|channel| self.channel(values, time, channel));
        let positions = x.into_iter().zip(y).map(|(x, y)| [x, y]).collect();
        let place = match self.samples.grid {
            Grid::Plane { rows, columns } => Place::Mesh([rows, columns], positions),
            Grid::Line { .. } | Grid::Cloud { .. } => Place::Cloud(positions, Vec::new()),
        };
        (place, right.iter().zip(&up).map(|(right, up)| right.hypot(*up)).collect())
    }

    /// How far each point of a deformed mesh is from where it should be.
    fn distance(&self, time: usize) -> Vec<f32> {
        let [x, y] = [0, 1].map(|channel| {
            difference(&self.channel(self.prediction, time, channel), &self.channel(self.truth(), time, channel))
        });
        x.iter().zip(y).map(|(x, y)| x.hypot(y)).collect()
    }
}

/// Prediction minus truth.
fn difference(found: &[f32], truth: &[f32]) -> Vec<f32> {
    found.iter().zip(truth).map(|(found, truth)| found - truth).collect()
}

/// Maps that share their colours and their window.
fn maps(titles: Vec<String>, states: Vec<State>, scale: Scale) -> Vec<Map> {
    let window = window(&states.iter().map(|(place, _)| place).collect::<Vec<_>>());
    let map = |(title, (place, values))| Map { title, place, window, values, scale };
    titles.into_iter().zip(states).map(map).collect()
}

/// What is drawn of a mesh without a field on it.
fn bare_title(place: &Place) -> String {
    match place {
        Place::Wire(plane, _) if strides(*plane) != [1, 1] => {
            let [rows, columns] = strides(*plane);
            format!("mesh, every {rows} rows, {columns} columns")
        }
        Place::Cloud(..) => "points".into(),
        Place::Grid(_) | Place::Mesh(..) | Place::Wire(..) => "mesh".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lamo::task::{Field, TimeMode};

    const PLANE: Grid = Grid::Plane { rows: 2, columns: 2 };

    /// The figure of a film of one given and one asked frame.
    fn film(name: &str, outputs: usize, given: &[f32], truth: &[f32], found: &[f32]) -> Figure {
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
            inputs: given.to_vec(),
            times: 1,
            outputs,
            targets: truth.to_vec(),
        };
        View { task: &task, samples: &samples, place: 0, prediction: found, times: &[], unit: "" }.figure(String::new())
    }

    #[test]
    fn given_and_truth_of_a_film_share_their_colours_and_what_leaves_them_is_told() {
        let figure = film("w", 1, &[1.0, 2.0, 3.0, 4.0], &[2.0, 2.0, 2.0, 3.0], &[2.0, 2.0, 2.0, 9.0]);
        let titles: Vec<_> = figure.rows.iter().map(|row| row[0].title.as_str()).collect();
        let last = "frame 2/2 (1/s)";
        assert_eq!(titles[0], "w, given, frame 1/2 (1/s)");
        assert_eq!(titles[1..3], [format!("w, truth, {last}"), format!("w, prediction, {last}")]);
        assert!(figure.rows[..3].iter().all(|row| row[0].scale == figure.rows[0][0].scale));
        assert_eq!(ends(&figure.rows[2], number), ["1", "4 < 9"]);
        assert!(figure.notes[0].contains("2 rows to the right") && figure.notes[1].contains("beyond its colours"));
    }

    #[test]
    fn only_a_deformation_is_drawn_where_its_points_are() {
        let values: Vec<f32> = (1..=16).map(|value| value as f32).collect();
        let place = |name: &str| film(name, 4, &values, &values, &values).rows.pop().map(|row| row[0].place.clone());
        assert!(matches!(place("deformation"), Some(Place::Mesh(..))));
        assert!(matches!(place("flow"), Some(Place::Grid(..))));
        assert!(film("flow", 4, &values, &values, &values).notes.contains(&"3 of 4 outputs are drawn".to_owned()));
    }
}
