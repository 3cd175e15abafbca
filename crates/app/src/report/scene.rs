//! What is drawn of a test sample: its scalars as numbers, the fields given, and each output at all its times.

use super::chosen::{Chosen, View, all_of, choose, length_of, name_of};
use super::names::{is_deformation, snapshot_name, unit};
use super::parts::{Part, of_spread, place, volume};
use crate::commands::evenly;
use crate::plot::{Layout, note_on_cuts, strides};
use lamo::data::{Drawn, Samples};
use lamo::task::{Field, Spread, Task};
use lamo_geometry::Grid;
use std::rc::Rc;

/// Snapshots of a time series that are drawn side by side, the first and the last included.
pub(super) const SNAPSHOTS: usize = 4;
/// Scalars shown.
const NUMBERS: usize = 24;

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
    /// The triangles as which it is drawn; none where no cells are known.
    pub(super) drawn: &'a Drawn,
}

/// A field at one time: the layout of its points, and its values.
#[derive(Clone)]
pub(super) struct State {
    pub(super) layout: Rc<Layout>,
    pub(super) values: Vec<f32>,
}

/// A scalar: one value if it is given, the truth and the prediction if it is an output.
#[derive(Debug, PartialEq)]
pub(super) struct Number {
    /// With its unit.
    pub(super) name: String,
    pub(super) values: Vec<f32>,
}

/// A field that is given, at a few of its times.
pub(super) struct Given {
    /// Number of the field; cuts of one field have the same, and share their colours.
    pub(super) group: usize,
    /// Down and across in a cut of a volume.
    pub(super) axes: Option<[&'static str; 2]>,
    /// With its unit.
    pub(super) titles: Vec<String>,
    pub(super) states: Vec<State>,
    /// Whether it has values; a mesh alone has none.
    pub(super) has_values: bool,
}

/// An output at all its times.
pub(super) struct Output {
    /// Number of the output; cuts of one output have the same, and share their colours.
    pub(super) group: usize,
    /// Down and across in a cut of a volume.
    pub(super) axes: Option<[&'static str; 2]>,
    pub(super) name: String,
    /// As in ` (kPa)`, or empty.
    pub(super) unit: String,
    /// Names of the times; a steady output has one time without a name.
    pub(super) times: Vec<String>,
    /// Snapshots that are given, with their names.
    pub(super) past: Vec<(String, State)>,
    pub(super) truth: Vec<State>,
    pub(super) prediction: Vec<State>,
    /// Prediction minus truth, or the distance of each point from its true position.
    pub(super) error: Vec<State>,
    pub(super) is_distance: bool,
}

impl Output {
    /// Whether it is drawn as curves.
    pub(super) fn is_curve(&self) -> bool {
        self.truth.first().is_some_and(|state| state.layout.is_curve())
    }
}

/// All that is drawn of a sample.
pub(super) struct Scene {
    pub(super) numbers: Vec<Number>,
    pub(super) given: Vec<Given>,
    pub(super) outputs: Vec<Output>,
    /// What the cuts of a volume show; empty for other grids.
    pub(super) cuts: String,
    /// Channels and scalars that are not drawn.
    pub(super) omitted: Vec<String>,
    /// Names of vectors that are drawn by their lengths.
    pub(super) lengths: Vec<String>,
    /// Unit of the positions, as in ` (mm)`.
    pub(super) unit: String,
}

/// A function of an output field, whose channels begin at `first`, at `length` times.
struct Asked<'a> {
    field: &'a Field,
    view: View,
    first: usize,
    length: usize,
}

impl SampleView<'_> {
    /// All that is drawn of the sample.
    pub(super) fn scene(&self) -> Scene {
        let parts = Part::of(self.task, self.samples, self.index, self.drawn);
        let mut scene = Scene {
            numbers: Vec::new(),
            given: Vec::new(),
            outputs: Vec::new(),
            cuts: volume(self.samples.grid).map_or_else(String::new, note_on_cuts),
            omitted: Vec::new(),
            lengths: Vec::new(),
            unit: unit(if self.deforms() { &self.task.outputs[0].unit } else { self.unit }),
        };
        self.add_given(&mut scene, &parts);
        if self.deforms() {
            scene.outputs.push(self.deformation());
        } else {
            self.add_outputs(&mut scene, &parts);
        }
        if scene.numbers.len() > NUMBERS {
            scene.omitted.push(format!("{NUMBERS} of {} scalars", scene.numbers.len()));
            scene.numbers.truncate(NUMBERS);
        }
        scene
    }

    /// Whether the only output holds the positions to which the points have moved.
    fn deforms(&self) -> bool {
        let series = self.task.time.is_series();
        matches!(&self.task.outputs[..], [field] if series && is_deformation(&field.name, field.width()))
    }

    /// Values of the points in the order of the layout: a curve runs from the left to the right.
    fn along(&self, layout: &Layout, values: Vec<f32>) -> Vec<f32> {
        let Layout::Line(_) = layout else { return values };
        let positions = self.samples.positions_of(self.index);
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&one, &other| positions[one].total_cmp(&positions[other]));
        order.into_iter().map(|point| values[point]).collect()
    }

    /// Values of the points as the field spreads them: at the points, along the rows, or one for the whole sample.
    fn state(&self, part: &Part, spread: Spread, values: Vec<f32>) -> State {
        match (spread, self.samples.grid) {
            (Spread::Rows, Grid::Plane { rows, columns }) => {
                let values = values.chunks_exact(columns).map(mean).collect();
                State { layout: Rc::new(Layout::Grid([rows, 1])), values }
            }
            (Spread::Sample, _) => State { layout: Rc::new(Layout::Grid([1, 1])), values: vec![mean(&values)] },
            _ => {
                let values = match &part.points {
                    Some(points) => points.iter().map(|&point| values[point]).collect(),
                    None => self.along(&part.layout, values),
                };
                State { layout: part.layout.clone(), values }
            }
        }
    }

    /// One of the input functions.
    fn input(&self, function: usize) -> Vec<f32> {
        self.samples.input_of(self.index).iter().skip(function).step_by(self.samples.functions).copied().collect()
    }

    /// One channel at one time of `[times, points, outputs]` values.
    pub(super) fn channel(&self, values: &[f32], time: usize, channel: usize) -> Vec<f32> {
        let (outputs, size) = (self.samples.outputs, self.samples.points_of(self.index) * self.samples.outputs);
        values[time * size..][..size].iter().skip(channel).step_by(outputs).copied().collect()
    }

    /// One function of a field whose channels have these values.
    fn view(view: View, width: usize, values: impl Fn(usize) -> Vec<f32>) -> Vec<f32> {
        match view {
            View::Channel(channel) => values(channel),
            View::Length => length_of((0..width).map(values)),
        }
    }

    /// Adds the fields given; the mesh itself if there are none.
    fn add_given(&self, scene: &mut Scene, parts: &[Part]) {
        let mut first = self.past() * self.samples.outputs;
        let mut count = 0;
        let are_drawn = |field: &&Field| field.spread != Spread::Sample;
        let Chosen { views, counts } = choose(self.task.inputs.iter().filter(are_drawn));
        let mut views = views.into_iter();
        for field in &self.task.inputs {
            let width = field.width();
            let shown = if are_drawn(&field) { views.next().unwrap_or_default() } else { all_of(field) };
            for view in shown {
                let name = name_of(field, view);
                let chosen = evenly(field.length(), SNAPSHOTS);
                let given = |part: &Part, group: usize| {
                    let state = |&snapshot: &usize| {
                        let values = |channel: usize| self.input(first + snapshot * width + channel);
                        self.state(part, field.spread, Self::view(view, width, values))
                    };
                    let place = place(field.spread, part);
                    let title = |&snapshot: &usize| {
                        let when = self.when(field, snapshot);
                        format!("{name}{place}, input{when}{}", unit(&field.unit))
                    };
                    let (titles, states) = (chosen.iter().map(title).collect(), chosen.iter().map(state).collect());
                    Given { group, axes: part.axes, titles, states, has_values: true }
                };
                let parts = of_spread(parts, field.spread);
                let Given { titles, states, .. } = given(&parts[0], count);
                if states.iter().all(|state| state.layout.is_number()) {
                    let number = |(name, state): (String, State)| Number { name, values: state.values };
                    scene.numbers.extend(titles.into_iter().zip(states).map(number));
                    continue;
                }
                count += 1;
                scene.given.extend(parts.iter().map(|part| given(part, count)));
                scene.note_length(field, view);
            }
            first += field.functions();
        }
        scene.note_count(counts, "inputs");
        let is_shape = |layout: &&Rc<Layout>| layout.positions().is_some() && !layout.is_solid(); // a shaded surface shows itself
        let whole = parts.first().map(|part| &part.layout);
        let shape = if self.deforms() { None } else { whole.filter(is_shape) };
        if let (true, Some(shape)) = (self.samples.functions == 0 || (count == 0 && self.past() == 0), shape) {
            let layout = Rc::new(Layout::clone(shape).without_field());
            let (title, values) = (mesh_title(&layout), vec![0.0; layout.points()]);
            let states = vec![State { layout, values }];
            scene.given.push(Given { group: count + 1, axes: None, titles: vec![title], states, has_values: false });
        }
    }

    /// The name of a snapshot of a field in a title; nothing if it has only one.
    fn when(&self, field: &Field, snapshot: usize) -> String {
        match field.length() {
            1 => String::new(),
            length => format!(", {}", snapshot_name(snapshot, length, self.times)),
        }
    }

    /// Snapshots of a time series that are input.
    pub(super) fn past(&self) -> usize {
        self.task.time.past()
    }

    /// The name of a snapshot of a series; the input snapshots count.
    pub(super) fn snapshot_name(&self, snapshot: usize) -> String {
        snapshot_name(snapshot, self.past() + self.samples.times, self.times)
    }

    /// Adds the outputs. A field with several snapshots is a time series, also if the task asks for all of them at once.
    fn add_outputs(&self, scene: &mut Scene, parts: &[Part]) {
        let series = self.task.time.is_series();
        let length = |field: &Field| if series { self.samples.times } else { field.length() };
        let are_drawn = |field: &&Field| field.spread != Spread::Sample || length(field) > 1;
        let Chosen { views, counts } = choose(self.task.outputs.iter().filter(are_drawn));
        let mut views = views.into_iter();
        let (mut first, mut count) = (0, 0);
        for field in &self.task.outputs {
            let shown = if are_drawn(&field) { views.next().unwrap_or_default() } else { all_of(field) };
            for view in shown {
                let asked = Asked { field, view, first, length: length(field) };
                let parts = of_spread(parts, field.spread);
                let whole = self.output(&asked, &parts[0], count + 1);
                if let ([truth], [prediction]) = (&whole.truth[..], &whole.prediction[..])
                    && truth.layout.is_number()
                {
                    let values = vec![truth.values[0], prediction.values[0]];
                    let name = format!("{}{}", name_of(field, view), unit(&field.unit));
                    scene.numbers.push(Number { name, values });
                    continue;
                }
                count += 1;
                scene.note_length(field, view);
                let rest = parts[1..].iter().map(|part| self.output(&asked, part, count));
                let is_number = whole.truth[0].layout.is_number();
                let shown = [if is_number { whole.over_time() } else { whole }].into_iter().chain(rest);
                scene.outputs.extend(shown);
            }
            first += if series { field.width() } else { field.functions() };
        }
        scene.note_count(counts, "outputs");
    }

    /// One function of an output field in one part of the points, at all its times.
    fn output(&self, asked: &Asked, part: &Part, group: usize) -> Output {
        let Asked { field, view, first, length } = *asked;
        let (series, width) = (self.task.time.is_series(), field.width());
        let channel = |values: &[f32], time: usize, channel: usize| match series {
            true => self.channel(values, time, first + channel),
            false => self.channel(values, 0, first + time * width + channel),
        };
        let states = |values: &[f32]| -> Vec<State> {
            let at = |time: usize| Self::view(view, width, |number| channel(values, time, number));
            (0..length).map(|time| self.state(part, field.spread, at(time))).collect()
        };
        let target = self.samples.target_of(self.index);
        let (truth, prediction) = (states(target), states(self.prediction));
        let error = match view {
            View::Channel(_) => truth.iter().zip(&prediction).map(difference).collect(),
            View::Length => {
                let apart: Vec<f32> = self.prediction.iter().zip(target).map(|(one, other)| one - other).collect();
                states(&apart)
            }
        };
        let name = match field.spread {
            Spread::Points => format!("{}{}", name_of(field, view), part.name),
            Spread::Rows | Spread::Sample => name_of(field, view),
        };
        let times = match (series, length) {
            (true, _) => (0..length).map(|time| self.snapshot_name(self.past() + time)).collect(),
            (false, 1) => vec![String::new()],
            (false, _) => (0..length).map(|snapshot| snapshot_name(snapshot, length, self.times)).collect(),
        };
        let past = if series { self.past_of(part, field, first, view) } else { Vec::new() };
        let (axes, unit, is_distance) = (part.axes, unit(&field.unit), view == View::Length);
        Output { group, axes, name, unit, times, past, truth, prediction, error, is_distance }
    }

    /// A few of the input snapshots of one function of a field whose channels begin at `first`, with their names.
    fn past_of(&self, part: &Part, field: &Field, first: usize, view: View) -> Vec<(String, State)> {
        let state = |snapshot: usize| {
            let values = |channel: usize| self.input(snapshot * self.samples.outputs + first + channel);
            let values = Self::view(view, field.width(), values);
            (self.snapshot_name(snapshot), self.state(part, field.spread, values))
        };
        evenly(self.past(), SNAPSHOTS).into_iter().map(state).collect()
    }
}

impl Scene {
    /// Notes a vector that is drawn by its length.
    fn note_length(&mut self, field: &Field, view: View) {
        let name = field.name.replace('_', " ");
        if view == View::Length && !self.lengths.contains(&name) {
            self.lengths.push(name);
        }
    }

    /// Notes that some channels are not drawn.
    fn note_count(&mut self, [drawn, all]: [usize; 2], what: &str) {
        if drawn < all {
            self.omitted.push(format!("{drawn} of {all} {what}"));
        }
    }
}

impl Output {
    /// A scalar at several times as one curve over the snapshots.
    fn over_time(self) -> Output {
        let curve = |states: &[State]| {
            let values: Vec<f32> = states.iter().flat_map(|state| &state.values).copied().collect();
            vec![State { layout: Rc::new(Layout::Grid([values.len(), 1])), values }]
        };
        Output {
            name: format!("{} over time", self.name),
            times: vec![String::new()],
            past: Vec::new(),
            truth: curve(&self.truth),
            prediction: curve(&self.prediction),
            error: curve(&self.error),
            ..self
        }
    }
}

/// The mean of values; that of equal values is their value.
fn mean(values: &[f32]) -> f32 {
    (values.iter().map(|value| f64::from(*value)).sum::<f64>() / values.len() as f64) as f32
}

/// Prediction minus truth.
fn difference((truth, prediction): (&State, &State)) -> State {
    let values = prediction.values.iter().zip(&truth.values).map(|(prediction, truth)| prediction - truth).collect();
    State { layout: truth.layout.clone(), values }
}

/// The title of a mesh without a field.
fn mesh_title(layout: &Layout) -> String {
    match layout {
        Layout::Wire(plane, _) if strides(*plane) != [1, 1] => {
            let [rows, columns] = strides(*plane);
            format!("mesh, a line every {rows} rows and {columns} columns")
        }
        Layout::Cloud(..) => "points".into(),
        Layout::Triangles(_, skin) if !skin.shows_edges() => "outline of the mesh".into(),
        Layout::Grid(_) | Layout::Line(_) | Layout::Mesh(..) | Layout::Wire(..) | Layout::Triangles(..) => {
            "mesh".into()
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use lamo::task::{Positions, TimeMode};

    /// The scene of the first sample of a task.
    pub(in crate::report) fn scene(task: &Task, samples: &Samples, prediction: &[f32], times: &[f64]) -> Scene {
        let drawn = Drawn::default();
        SampleView { task, samples, index: 0, prediction, times, unit: "m", drawn: &drawn }.scene()
    }

    /// Values 1, 2, 3, ...
    fn count(values: usize) -> Vec<f32> {
        (1..=values).map(|value| value as f32).collect()
    }

    fn samples(grid: Grid, functions: usize, [times, outputs]: [usize; 2]) -> Samples {
        let points = grid.points();
        Samples {
            offsets: Vec::new(),
            count: 1,
            grid,
            space: 1,
            positions: (0..points).map(|point| -(point as f32)).collect(), // from the right to the left
            functions,
            inputs: count(points * functions),
            times,
            outputs,
            targets: count(times * points * outputs),
        }
    }

    #[test]
    fn a_field_with_snapshots_is_a_time_series_also_if_all_are_asked_for_at_once() {
        let grid = Grid::Line { points: 2 };
        let field = Field { snapshots: Some(17), ..Field::plain("u", 1) };
        let task = Task { positions: Positions::Lattice, outputs: vec![field], ..Task::plain(grid, 1, 1, 1) };
        let samples = samples(grid, 1, [1, 17]);
        let clock: Vec<f64> = (0..17).map(|time| f64::from(time) / 16.0).collect();
        let scene = scene(&task, &samples, &samples.targets, &clock);
        let output = &scene.outputs[0];
        assert_eq!((output.times.len(), &*output.times[0], &*output.times[16]), (17, "t = 0", "t = 1"));
        assert_eq!(output.truth[16].values, [17.0, 34.0], "[points, snapshots]");
        assert!(scene.omitted.is_empty(), "{:?}", scene.omitted);
    }

    #[test]
    fn scalars_are_numbers_and_scalars_over_time_are_curves() {
        let grid = Grid::Line { points: 3 };
        let given = Field { spread: Spread::Sample, unit: "Pa".into(), ..Field::plain("load", 2) };
        let asked = Field { spread: Spread::Sample, ..Field::plain("drag", 1) };
        let mut task = Task { inputs: vec![given], outputs: vec![asked], ..Task::plain(grid, 1, 2, 1) };
        let mut samples = samples(grid, 2, [1, 1]);
        samples.targets = vec![4.0; 3];
        let steady = scene(&task, &samples, &[5.0, 5.0, 8.0], &[]);
        let number = |name: &str, values: &[f32]| Number { name: name.into(), values: values.to_vec() };
        let wanted =
            [number("load 1, input (Pa)", &[3.0]), number("load 2, input (Pa)", &[4.0]), number("drag", &[4.0, 6.0])];
        assert_eq!(steady.numbers, wanted);
        assert!(steady.outputs.is_empty() && steady.given.is_empty());
        task.time = TimeMode::ByTime.of(4, &[]).unwrap();
        (samples.times, samples.targets) = (4, count(4).into_iter().flat_map(|value| [value; 3]).collect());
        let series = scene(&task, &samples, &samples.targets, &[]);
        assert_eq!((&*series.outputs[0].name, series.outputs[0].times.len()), ("drag over time", 1));
        assert_eq!(series.outputs[0].truth[0].values, count(4));
    }

    #[test]
    fn a_curve_runs_from_the_left_to_the_right_whatever_the_order_of_its_points() {
        let grid = Grid::Cloud { points: 3 };
        let (task, samples) = (Task::plain(grid, 1, 0, 1), samples(grid, 0, [1, 1]));
        let output = &scene(&task, &samples, &samples.targets, &[]).outputs[0];
        assert_eq!(*output.truth[0].layout, Layout::Line(vec![-2.0, -1.0, 0.0]));
        assert_eq!(output.truth[0].values, [3.0, 2.0, 1.0]);
    }

    #[test]
    fn fields_beside_the_past_of_a_roll_out_are_drawn_too() {
        let grid = Grid::Line { points: 2 };
        let time = TimeMode::RollOut { past: 2 }.of(3, &[]).unwrap();
        let task = Task { positions: Positions::Lattice, time, ..Task::plain(grid, 1, 1, 1) };
        let samples = samples(grid, 3, [3, 1]);
        let scene = scene(&task, &samples, &samples.targets, &[]);
        let past: Vec<_> = scene.outputs[0].past.iter().map(|(name, state)| (&**name, &*state.values)).collect();
        assert_eq!(past, [("snapshot 1/5", &[1.0, 4.0][..]), ("snapshot 2/5", &[2.0, 5.0][..])]);
        assert_eq!((&*scene.given[0].titles[0], &*scene.given[0].states[0].values), ("inputs, input", &[3.0, 6.0][..]));
    }
}
