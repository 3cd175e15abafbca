//! The maps of a test sample: inputs, truth, prediction and error. All samples of a page are drawn with the same colours, at the
//! same size and in the same part of the domain, so that they can be compared.

use super::scene::{Given, Output, SNAPSHOTS, Scene, State};
use crate::commands::evenly;
use crate::plot::{Figure, Layout, Map, Scale, Window, ends, number, window};

/// What all samples of a page share. Fields are counted as in [`Scene`].
pub(super) struct Shared {
    /// Colours of each field given.
    pub(super) given: Vec<Scale>,
    /// Colours of the truth and the prediction of each output, and of its error.
    pub(super) outputs: Vec<[Scale; 2]>,
    /// The part of the domain that is drawn.
    pub(super) window: Option<Window>,
}

impl Shared {
    /// The colours of truth and prediction have the range of the truth. Curves have the range of both, as a curve outside its
    /// range cannot be seen.
    pub(super) fn of(scenes: &[Scene]) -> Shared {
        let given = |field: usize| {
            let group = scenes.iter().find_map(|scene| scene.given.get(field)).map(|given| given.group);
            let all = || scenes.iter().flat_map(|scene| &scene.given).filter(|given| Some(given.group) == group);
            let states = all().flat_map(|given| &given.states);
            match all().any(|given| given.has_values) {
                true => Scale::of(states.flat_map(|state| &state.values).copied()),
                false => Scale::plain(),
            }
        };
        let output = |output: usize| {
            let group = scenes.iter().find_map(|scene| scene.outputs.get(output)).map(|output| output.group);
            let all = || scenes.iter().flat_map(|scene| &scene.outputs).filter(|output| Some(output.group) == group);
            let truth = all().flat_map(|output| output.past.iter().map(|(_, state)| state).chain(&output.truth));
            let prediction = all().filter(|output| output.is_curve()).flat_map(|output| &output.prediction);
            let errors = all().flat_map(|output| &output.error).flat_map(|state| &state.values).copied();
            let is_distance = all().any(|output| output.is_distance);
            let scale = Scale::of(truth.chain(prediction).flat_map(|state| &state.values).copied());
            [scale, if is_distance { Scale::of(errors) } else { Scale::signed(errors) }]
        };
        let most = |count: fn(&Scene) -> usize| scenes.iter().map(count).max().unwrap_or(0);
        let layouts: Vec<&Layout> = scenes.iter().flat_map(Scene::layouts).collect();
        Shared {
            given: (0..most(|scene| scene.given.len())).map(given).collect(),
            outputs: (0..most(|scene| scene.outputs.len())).map(output).collect(),
            window: if layouts.is_empty() { None } else { window(&layouts) },
        }
    }
}

impl Scene {
    /// All layouts with positions.
    fn layouts(&self) -> impl Iterator<Item = &Layout> {
        let given = self.given.iter().flat_map(|given| &given.states);
        let outputs = self.outputs.iter().flat_map(|output| output.truth.iter().chain(&output.prediction));
        given.chain(outputs).map(|state| &*state.layout).filter(|layout| layout.positions().is_some())
    }

    /// All maps of the sample.
    pub(super) fn figure(&self, title: String, shared: &Shared) -> Figure {
        let fields = self.given.iter().zip(&shared.given).enumerate();
        let inputs = fields.map(|(field, (given, scale))| given.maps(field, *scale, shared));
        let mut rows: Vec<Vec<Map>> = match self.given.iter().all(|given| given.states.len() == 1) {
            true if !self.cuts.is_empty() => {
                let mut rows: Vec<Vec<Map>> = Vec::new();
                let groups = self.given.chunk_by(|one, other| one.group == other.group).map(<[Given]>::len);
                let mut maps = inputs.flatten();
                rows.extend(groups.map(|count| maps.by_ref().take(count).collect()));
                rows
            }
            true => vec![inputs.flatten().collect()],
            false => inputs.collect(),
        };
        for (output, (series, scales)) in self.outputs.iter().zip(&shared.outputs).enumerate() {
            let mut maps = series.rows(self.given.len() + output, *scales, shared);
            match (&mut rows[..], &mut maps[..]) {
                ([inputs], [only]) if output == 0 && inputs.len() <= 1 => inputs.append(only), // side by side
                _ => rows.append(&mut maps),
            }
        }
        rows.retain(|row| !row.is_empty());
        Figure { title, notes: self.notes(&rows), rows }
    }

    /// Notes for all maps: the axes, functions that are not drawn, values outside the range of the colours.
    fn notes(&self, rows: &[Vec<Map>]) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        if !self.cuts.is_empty() {
            notes.push(self.cuts.clone());
        }
        let is_cut = |map: &&Map| !self.cuts.is_empty() && matches!(map.layout, Layout::Grid(_));
        for map in rows.iter().flatten().filter(|map| !is_cut(map)) {
            let axes = map.layout.axes(map.window.as_ref(), &self.unit);
            if !notes.contains(&axes) {
                notes.push(axes);
            }
        }
        if rows.iter().flatten().any(|map| map.over.is_some()) {
            notes.push("truth blue, prediction orange".into());
        }
        if !self.lengths.is_empty() {
            let names: Vec<_> = self.lengths.iter().map(|name| format!("|{name}|")).collect();
            notes.push(format!("{}: length of the vector", names.join(", ")));
        }
        if !self.omitted.is_empty() {
            notes.push(format!("{} are drawn", self.omitted.join(" and ")));
        }
        let outside = |map: &Map| map.has_bar() && ends(std::slice::from_ref(map), number).concat().contains('<');
        if rows.iter().flatten().any(outside) {
            notes.push("a < b at a colour bar: some values are outside the range of its colours".into());
        }
        notes
    }
}

impl Given {
    fn maps(&self, field: usize, scale: Scale, shared: &Shared) -> Vec<Map> {
        let map = |(time, (title, state)): (usize, (&String, &State))| Map {
            source: self.has_values.then_some([field, time, 0]),
            ..map(title.clone(), state, scale, shared)
        };
        self.titles.iter().zip(&self.states).enumerate().map(map).collect()
    }
}

impl Output {
    /// The times that are drawn side by side, spread over the whole time.
    pub(super) fn drawn_times(&self) -> Vec<usize> {
        evenly(self.times.len(), SNAPSHOTS)
    }

    /// The maps of an animation at its first time: truth, prediction and error; curves of truth and prediction are one map.
    pub(super) fn first_maps(&self, [scale, error_scale]: [Scale; 2], shared: &Shared) -> Vec<Map> {
        let Output { name, unit, .. } = self;
        let error = if self.is_distance { "distance to the truth" } else { "prediction - truth" };
        let first =
            |what: String, states: &[State], scale: Scale| map(format!("{what}{unit}"), &states[0], scale, shared);
        let error = first(error.to_owned(), &self.error, error_scale);
        if self.is_curve() {
            let over = Some(self.prediction[0].values.clone());
            let both = first(name.clone(), &self.truth, scale);
            return vec![Map { over, ..both }, error];
        }
        let truth = first(format!("{name}, truth"), &self.truth, scale);
        vec![truth, first(format!("{name}, prediction"), &self.prediction, scale), error]
    }

    /// Rows for the past, the truth, the prediction and the error, with a column for each of a few times. Curves of truth and
    /// prediction lie over each other. A steady output is a single row.
    fn rows(&self, field: usize, [scale, error_scale]: [Scale; 2], shared: &Shared) -> Vec<Vec<Map>> {
        let Output { name, unit, .. } = self;
        let title = |what: &str, time: usize| match self.times[time].as_str() {
            "" => format!("{what}{unit}"),
            when => format!("{what}, {when}{unit}"),
        };
        let row = |what: &str, states: &[State], scale: Scale, set: usize| -> Vec<Map> {
            let drawn = |&time: &usize| Map {
                source: Some([field, time, set]),
                ..map(title(what, time), &states[time], scale, shared)
            };
            self.drawn_times().iter().map(drawn).collect()
        };
        let past = |(when, state): &(String, State)| map(format!("{name}, input, {when}{unit}"), state, scale, shared);
        let past: Vec<Map> = self.past.iter().map(past).collect();
        let error = if self.is_distance { "distance to the truth" } else { "prediction - truth" };
        let error = row(error, &self.error, error_scale, 2);
        let rows = if self.is_curve() {
            let mut both = row(name, &self.truth, scale, 0);
            for (map, &time) in both.iter_mut().zip(&self.drawn_times()) {
                map.over = Some(self.prediction[time].values.clone());
            }
            vec![past, both, error]
        } else {
            let truth = row(&format!("{name}, truth"), &self.truth, scale, 0);
            let prediction = row(&format!("{name}, prediction"), &self.prediction, scale, 1);
            vec![past, truth, prediction, error]
        };
        let rows: Vec<Vec<Map>> = rows.into_iter().filter(|row| !row.is_empty()).collect();
        if self.times.len() == 1 { vec![rows.into_iter().flatten().collect()] } else { rows }
    }
}

/// A map of a state.
fn map(title: String, state: &State, scale: Scale, shared: &Shared) -> Map {
    let layout = Layout::clone(&state.layout);
    let window = layout.positions().and(shared.window);
    Map { title, layout, window, values: state.values.clone(), over: None, scale, source: None }
}

#[cfg(test)]
mod tests {
    use super::super::scene::tests::scene;
    use super::*;
    use lamo::data::Samples;
    use lamo::task::{Field, Positions, Task, TimeMode};
    use lamo_geometry::Grid;

    const PLANE: Grid = Grid::Plane { rows: 2, columns: 2 };

    fn samples(grid: Grid, outputs: usize, input: &[f32], times: usize, truth: &[f32]) -> Samples {
        let (inputs, targets) = (input.to_vec(), truth.to_vec());
        let functions = inputs.len() / grid.points();
        let positions = vec![0.0; 2 * grid.points()];
        Samples { count: 1, grid, offsets: Vec::new(), space: 2, positions, functions, inputs, times, outputs, targets }
    }

    /// The figure of a time series with one input snapshot and `times` output snapshots.
    fn figure(name: &str, outputs: usize, [input, truth, prediction]: [&[f32]; 3], times: usize) -> Figure {
        let task = Task {
            positions: Positions::Lattice,
            outputs: vec![Field { unit: "1/s".into(), ..Field::plain(name, outputs) }],
            time: TimeMode::RollOut { past: 1 }.of(times, &[]).unwrap(),
            ..Task::plain(PLANE, 2, 0, outputs)
        };
        let scene = scene(&task, &samples(PLANE, outputs, input, times, truth), prediction, &[]);
        let shared = Shared::of(std::slice::from_ref(&scene));
        scene.figure(String::new(), &shared)
    }

    #[test]
    fn input_and_truth_of_a_series_share_their_colours_and_values_outside_are_noted() {
        let figure = figure("w", 1, [&[1.0, 2.0, 3.0, 4.0], &[2.0, 2.0, 2.0, 3.0], &[2.0, 2.0, 2.0, 9.0]], 1);
        let titles: Vec<_> = figure.rows[0].iter().map(|map| map.title.as_str()).collect();
        let last = "snapshot 2/2 (1/s)";
        assert_eq!(titles[0], "w, input, snapshot 1/2 (1/s)");
        assert_eq!(titles[1..3], [format!("w, truth, {last}"), format!("w, prediction, {last}")]);
        assert!(figure.rows[0][..3].iter().all(|map| map.scale == figure.rows[0][0].scale));
        assert_eq!(ends(&figure.rows[0][2..3], number), ["1", "4 < 9"]);
        assert!(figure.notes[0].contains("row 0 on top") && figure.notes[1].contains("outside the range"));
    }

    #[test]
    fn snapshots_are_spread_over_the_whole_time() {
        let (input, series): (Vec<f32>, Vec<f32>) = (vec![1.0; 4], (0..68).map(|value| value as f32).collect());
        let figure = figure("w", 1, [&input, &series, &series], 17);
        let titles: Vec<_> = figure.rows[2].iter().map(|map| map.title.as_str()).collect();
        let wanted = [2, 7, 12, 18].map(|snapshot| format!("w, prediction, snapshot {snapshot}/18 (1/s)"));
        assert_eq!(titles, wanted);
        assert_eq!(figure.rows[3][3].source, Some([0, 16, 2]));
    }

    #[test]
    fn only_a_deformation_is_drawn_on_its_own_positions() {
        let values: Vec<f32> = (1..=16).map(|value| value as f32).collect();
        let drawn = |name: &str| figure(name, 4, [&values, &values, &values], 1);
        let last = |name: &str| drawn(name).rows.pop().and_then(|mut row| row.pop()).map(|map| map.layout);
        assert!(matches!(last("deformation"), Some(Layout::Mesh(..))));
        assert!(matches!(last("flow"), Some(Layout::Grid(..))));
        assert!(drawn("flow").notes.contains(&"3 of 4 outputs are drawn".to_owned()));
    }

    #[test]
    fn truth_and_prediction_of_a_line_lie_over_each_other() {
        let grid = Grid::Line { points: 4 };
        let task = Task { positions: Positions::Lattice, ..Task::plain(grid, 2, 1, 1) };
        let (truth, prediction) = ([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 5.0]);
        let scene = scene(&task, &samples(grid, 1, &[1.0; 4], 1, &truth), &prediction, &[]);
        let figure = scene.figure(String::new(), &Shared::of(std::slice::from_ref(&scene)));
        let titles: Vec<_> = figure.rows.iter().flatten().map(|map| map.title.as_str()).collect();
        assert_eq!(titles, ["inputs, input", "outputs", "prediction - truth"]);
        assert!(figure.notes.contains(&"truth blue, prediction orange".to_owned()), "{:?}", figure.notes);
        let map = &figure.rows[0][1];
        assert_eq!((map.values.as_slice(), map.over.as_deref()), (&truth[..], Some(&prediction[..])));
        assert_eq!(map.scale.most, 5.0, "the scale holds both curves");
    }

    #[test]
    fn all_samples_of_a_page_have_the_same_colours_and_the_same_size() {
        let task = Task::plain(PLANE, 2, 1, 1);
        let sample = |size: f32, most: f32| {
            let mut samples = samples(PLANE, 1, &[0.0, 1.0, 2.0, most], 1, &[0.0, 1.0, 2.0, most]);
            samples.positions = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]].as_flattened().to_vec();
            samples.positions.iter_mut().for_each(|position| *position *= size);
            scene(&task, &samples, &[0.0; 4], &[])
        };
        let scenes = [sample(1.0, 3.0), sample(2.0, 30.0)];
        let shared = Shared::of(&scenes);
        let figures = scenes.each_ref().map(|scene| scene.figure(String::new(), &shared));
        for column in 0..4 {
            let [one, other] = figures.each_ref().map(|figure| &figure.rows[0][column]);
            assert_eq!((one.scale, one.size(), one.window), (other.scale, other.size(), other.window), "{}", one.title);
        }
        assert_eq!(figures[0].rows[0][1].scale.most, 30.0);
    }
}
