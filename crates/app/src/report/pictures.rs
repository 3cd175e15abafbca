//! What a sample looks like: what was given, the truth, the prediction and the error, on the mesh they live on.

use crate::plot::{Figure, Map, Place, Scale, Window};
use lamo::case::{Case, Course};
use lamo::field::{Field, Spread};
use lamo::samples::Samples;
use lamo_physics::Grid;

/// Frames drawn of a film.
const FRAMES: usize = 4;
/// Functions drawn of those given, and of those asked for.
const CHANNELS: usize = 3;
/// Channels of a deformed mesh: x, y and both displacements.
const DEFORMATION: usize = 4;

/// One test sample with its prediction.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) case: &'a Case,
    pub(super) samples: &'a Samples,
    /// Its place among the samples.
    pub(super) place: usize,
    /// `[times, points, outputs]`
    pub(super) prediction: &'a [f32],
}

impl View<'_> {
    /// All maps of the sample under a title.
    pub(super) fn figure(&self, title: String) -> Figure {
        let rows = match self.case.course {
            Course::Steady => self.steady(),
            Course::Frames { .. } | Course::Times { .. } => self.film(),
        };
        Figure { title, rows }
    }

    fn truth(&self) -> &[f32] {
        self.samples.target_of(self.place)
    }

    /// Where the points of the sample lie; a lattice is drawn as squares.
    fn mesh(&self) -> Place {
        let Samples { grid, space, .. } = *self.samples;
        let positions = || -> Vec<[f32; 2]> {
            self.samples.positions_of(self.place).chunks_exact(space).map(|point| [point[0], point[1]]).collect()
        };
        match grid {
            Grid::Plane { rows, columns } if self.case.lattice || space < 2 => Place::Grid([rows, columns]),
            Grid::Plane { rows, columns } => Place::Mesh([rows, columns], positions()),
            Grid::Cloud { .. } if space > 1 => Place::Cloud(positions()),
            Grid::Line { points } | Grid::Cloud { points } => Place::Grid([points, 1]),
        }
    }

    /// One channel at one time of `[times, points, outputs]` values.
    fn channel(&self, values: &[f32], time: usize, channel: usize) -> Vec<f32> {
        let (outputs, size) = (self.samples.outputs, self.samples.grid.points() * self.samples.outputs);
        values[time * size..][..size].iter().skip(channel).step_by(outputs).copied().collect()
    }

    /// What is given, then a row of truth, prediction and error for each output.
    fn steady(&self) -> Vec<Vec<Map>> {
        let mesh = self.mesh();
        let window = window(&[&mesh]);
        let names = channel_names(&self.case.outputs);
        let mut rows = Vec::new();
        for (output, name) in names.iter().enumerate().take(CHANNELS) {
            let [truth, found] = [self.truth(), self.prediction].map(|values| self.channel(values, 0, output));
            let error: Vec<f32> = found.iter().zip(&truth).map(|(found, truth)| found - truth).collect();
            let scale = Scale::of(truth.iter().copied());
            let map = |title: String, values: Vec<f32>, scale: Scale| Map {
                title,
                place: mesh.clone(),
                window,
                values,
                scale,
            };
            let mut row = if output == 0 { self.given(&mesh) } else { Vec::new() };
            let error_scale = Scale::signed(error.iter().copied());
            row.push(map(format!("{name}, truth"), truth, scale));
            row.push(map(format!("{name}, prediction"), found, scale));
            row.push(map("prediction - truth".into(), error, error_scale));
            rows.push(row);
        }
        rows
    }

    /// Maps of the functions given; the mesh itself where there are none.
    fn given(&self, mesh: &Place) -> Vec<Map> {
        let functions = self.samples.functions;
        if functions == 0 {
            let (place, values) = (mesh.clone().bare(), vec![0.0; self.samples.grid.points()]);
            let title = if matches!(place, Place::Cloud(_)) { "points" } else { "mesh" };
            return vec![Map { title: title.into(), window: window(&[mesh]), place, values, scale: Scale::plain() }];
        }
        let names = channel_names(&self.case.inputs);
        let one = |function: usize| {
            let values = self.samples.input_of(self.place).iter().skip(function).step_by(functions).copied();
            let values: Vec<f32> = values.collect();
            let title = format!("{}, given", names.get(function).map_or("input", |name| name));
            let rows = self.case.inputs.first().filter(|field| field.spread == Spread::Rows);
            let (place, values) = match (rows, self.samples.grid) {
                (Some(_), Grid::Plane { rows, columns }) => {
                    (Place::Grid([rows, 1]), values.iter().step_by(columns).copied().collect())
                }
                _ => (mesh.clone(), values),
            };
            let scale = Scale::of(values.iter().copied());
            Map { title, window: window(&[&place]), place, values, scale }
        };
        (0..functions.min(CHANNELS)).map(one).collect()
    }

    /// Rows of truth, prediction and error, a column for each of a few times; above them what is given.
    fn film(&self) -> Vec<Vec<Map>> {
        let times = crate::commands::spread(self.samples.times, FRAMES);
        let name = self.case.outputs.first().map_or_else(String::new, |field| field.name.replace('_', " "));
        let deformed = self.samples.outputs == DEFORMATION && matches!(self.case.course, Course::Times { .. });
        let states = |values: &[f32]| -> Vec<(Place, Vec<f32>)> {
            times
                .iter()
                .map(|&time| if deformed { self.deformed(values, time) } else { self.still(values, time) })
                .collect()
        };
        let (truth, found) = (states(self.truth()), states(self.prediction));
        let errors: Vec<Vec<f32>> = times.iter().map(|&time| self.error(time, deformed)).collect();
        let places: Vec<&Place> = truth.iter().chain(&found).map(|(place, _)| place).collect();
        let window = window(&places);
        let scale = Scale::of(truth.iter().flat_map(|(_, values)| values).copied());
        let error_scale = if deformed { Scale::of } else { Scale::signed }(errors.iter().flatten().copied());
        let labels = |what: &str| -> Vec<String> {
            let label = |&time: &usize| format!("{what}, {}/{}", time + 1, self.samples.times);
            times.iter().map(label).collect()
        };
        let row = |titles: Vec<String>, states: Vec<(Place, Vec<f32>)>, scale: Scale| -> Vec<Map> {
            let map = |(title, (place, values))| Map { title, place, window, values, scale };
            titles.into_iter().zip(states).map(map).collect()
        };
        let error_states = truth.iter().map(|(place, _)| place.clone()).zip(errors).collect();
        let (name, error) = if deformed { ("displacement".to_owned(), "distance") } else { (name, "difference") };
        vec![
            self.before(),
            row(labels(&format!("{name}, truth")), truth, scale),
            row(labels("prediction"), found, scale),
            row(labels(error), error_states, error_scale),
        ]
    }

    /// What a film starts from: of given frames the first and the last, else the functions given.
    fn before(&self) -> Vec<Map> {
        let Course::Frames { past, .. } = self.case.course else { return self.given(&self.mesh()) };
        let (mesh, functions) = (self.mesh(), self.samples.functions);
        let width = functions / past.max(1);
        let frame = |frame: usize| -> Vec<f32> {
            self.samples.input_of(self.place).iter().skip(frame * width).step_by(functions).copied().collect()
        };
        let frames: Vec<(usize, Vec<f32>)> =
            crate::commands::spread(past, FRAMES).into_iter().map(|number| (number, frame(number))).collect();
        let scale = Scale::of(frames.iter().flat_map(|(_, values)| values).copied());
        let map = |(number, values)| {
            let title = format!("given, {}/{past}", number + 1);
            Map { title, place: mesh.clone(), window: window(&[&mesh]), values, scale }
        };
        frames.into_iter().map(map).collect()
    }

    fn still(&self, values: &[f32], time: usize) -> (Place, Vec<f32>) {
        (self.mesh(), self.channel(values, time, 0))
    }

    /// The mesh where it has moved to, with the length of the displacement.
    fn deformed(&self, values: &[f32], time: usize) -> (Place, Vec<f32>) {
        let [x, y, right, up] = [0, 1, 2, 3].map(|channel| self.channel(values, time, channel));
        let positions = x.into_iter().zip(y).map(|(x, y)| [x, y]).collect();
        let place = match self.samples.grid {
            Grid::Plane { rows, columns } => Place::Mesh([rows, columns], positions),
            Grid::Line { .. } | Grid::Cloud { .. } => Place::Cloud(positions),
        };
        (place, right.iter().zip(&up).map(|(right, up)| right.hypot(*up)).collect())
    }

    /// Prediction minus truth, or how far a point of a deformed mesh is from where it should be.
    fn error(&self, time: usize, deformed: bool) -> Vec<f32> {
        let gap = |channel: usize| -> Vec<f32> {
            let [truth, found] = [self.truth(), self.prediction].map(|values| self.channel(values, time, channel));
            found.iter().zip(truth).map(|(found, truth)| found - truth).collect()
        };
        if deformed { gap(0).iter().zip(gap(1)).map(|(x, y)| x.hypot(y)).collect() } else { gap(0) }
    }
}

/// The part of the domain that maps on these places share.
fn window(places: &[&Place]) -> Option<Window> {
    let positions: Option<Vec<_>> = places.iter().map(|place| Some(place.positions()?.to_vec())).collect();
    let mut positions = positions?;
    if matches!(places, [Place::Cloud(_), ..]) {
        positions.push(corners(&positions)); // discs at the edge are drawn whole
    }
    Some(Window::around(&positions))
}

/// The corners of a box a little larger than the one around the points.
fn corners(positions: &[Vec<[f32; 2]>]) -> Vec<[f32; 2]> {
    const BEYOND: f32 = 0.03;
    let ends = [0, 1].map(|axis| {
        let places = positions.iter().flatten().map(|place| place[axis]).filter(|place| place.is_finite());
        let (least, most) = (places.clone().fold(f32::INFINITY, f32::min), places.fold(f32::NEG_INFINITY, f32::max));
        [least - BEYOND * (most - least), most + BEYOND * (most - least)]
    });
    vec![[ends[0][0], ends[1][0]], [ends[0][1], ends[1][1]]]
}

/// A name for each function of some fields.
fn channel_names(fields: &[Field]) -> Vec<String> {
    let names = fields.iter().flat_map(|field| {
        let (name, count) = (field.name.replace('_', " "), field.width() * field.length());
        (0..count).map(move |k| if count == 1 { name.clone() } else { format!("{name} {}", k + 1) })
    });
    names.collect()
}
