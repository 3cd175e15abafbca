//! The symmetries of an experiment: maps of samples to samples that are as true as the samples.
//!
//! A benchmark has the exact symmetries that its problem declares beside its solver. Your own data on a line, a plane or in a
//! volume have those of the box: reflections, and also rotations where sides are equal. A symmetry moves values from point to point and maps
//! the channels of positions, inputs and outputs by v′ = ± v + c, in physical units.

#[cfg(feature = "solvers")]
use super::Data;
use super::{Experiment, OWN};
use crate::data::Samples;
use crate::data::dataset::Manifest;
use crate::error::{Refusal, require};
use crate::task::{Field, Normaliser, Positions, Spread, Task};
use lamo_geometry::Grid;
use toml::{Table, Value};

/// What a channel becomes: gain · value of the channel `source` + shift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Channel {
    pub(crate) source: usize,
    /// 1 or −1 in physical units.
    pub(crate) gain: f64,
    pub(crate) shift: f64,
}

/// What all channels of positions, inputs or outputs become.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Channels(pub(crate) Vec<Channel>);

/// One map of samples to samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Symmetry {
    /// `[points]` the point whose values each point takes.
    pub(crate) points: Vec<u32>,
    pub(crate) positions: Channels,
    pub(crate) inputs: Channels,
    pub(crate) outputs: Channels,
}

/// A group of symmetries, the identity first.
#[derive(Clone, Debug)]
pub struct Symmetries {
    pub(crate) elements: Vec<Symmetry>,
    /// Whether each sample of a batch has a symmetry of its own; the symmetries of a plane are drawn for a whole batch.
    pub(crate) of_samples: bool,
    /// The grid whose points they move.
    pub(crate) grid: Grid,
}

impl Channels {
    pub(crate) fn kept(count: usize) -> Channels {
        Channels((0..count).map(|source| Channel { source, gain: 1.0, shift: 0.0 }).collect())
    }

    /// Whether nothing changes.
    pub(crate) fn is_kept(&self) -> bool {
        *self == Channels::kept(self.0.len())
    }

    /// Whether a channel takes the value of another one.
    pub(crate) fn exchanges(&self) -> bool {
        self.0.iter().enumerate().any(|(place, channel)| channel.source != place)
    }

    /// The same map of values that a normaliser has shifted and scaled: with v = σ e + μ,
    /// e′ = (± (σₛ e + μₛ) + c − μ) / σ.
    pub(crate) fn normalised(&self, normaliser: Option<&Normaliser>) -> Channels {
        let Some(Normaliser { mean, deviation }) = normaliser else { return self.clone() };
        let map = |(place, &Channel { source, gain, shift }): (usize, &Channel)| {
            let value = |values: &[f32], place: usize| f64::from(values[place]);
            let (unit, origin) = (value(deviation, place), value(mean, place));
            Channel {
                source,
                gain: gain * (value(deviation, source) / unit),
                shift: (gain * value(mean, source) + shift - origin) / unit,
            }
        };
        Channels(self.0.iter().enumerate().map(map).collect())
    }
}

#[cfg(feature = "solvers")]
impl Channels {
    /// These channels `count` times.
    fn repeated(&self, count: usize) -> Channels {
        let width = self.0.len();
        let at = |turn: usize| {
            self.0.iter().map(move |channel| Channel { source: channel.source + turn * width, ..*channel })
        };
        Channels((0..count).flat_map(at).collect())
    }

    /// These channels, then others.
    fn and(mut self, other: Channels) -> Channels {
        let width = self.0.len();
        self.0.extend(other.0.into_iter().map(|channel| Channel { source: channel.source + width, ..channel }));
        self
    }
}

impl Symmetry {
    /// Number of points.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// `[..., points, channels]` values, moved and changed.
    fn moved(&self, values: &[f32], channels: &Channels) -> Vec<f32> {
        let width = channels.0.len();
        let mut moved = Vec::with_capacity(values.len());
        for block in values.chunks_exact((self.points.len() * width).max(1)) {
            for &source in &self.points {
                let point = &block[source as usize * width..][..width];
                let change = |channel: &Channel| channel.gain * f64::from(point[channel.source]) + channel.shift;
                moved.extend(channels.0.iter().map(|channel| change(channel) as f32));
            }
        }
        moved
    }

    /// The transformed samples. Points of a lattice stay where they are and take the values of other points.
    pub fn apply(&self, task: &Task, samples: &Samples) -> Samples {
        let positions = match task.positions {
            Positions::Given => self.moved(&samples.positions, &self.positions),
            Positions::Lattice | Positions::Scrambled => samples.positions.clone(),
        };
        let inputs = self.moved(&samples.inputs, &self.inputs);
        let targets = self.moved(&samples.targets, &self.outputs);
        Samples { positions, inputs, targets, ..samples.clone() }
    }

    /// Outputs `[..., points, channels]` of transformed samples, transformed back.
    pub fn undo(&self, outputs: &[f32]) -> Vec<f32> {
        let width = self.outputs.0.len();
        let mut undone = vec![0.0; outputs.len()];
        let length = self.points.len() * width;
        for (block, undone) in outputs.chunks_exact(length).zip(undone.chunks_exact_mut(length)) {
            for (point, &source) in block.chunks_exact(width).zip(&self.points) {
                for (value, channel) in point.iter().zip(&self.outputs.0) {
                    let before = (f64::from(*value) - channel.shift) / channel.gain;
                    undone[source as usize * width + channel.source] = before as f32;
                }
            }
        }
        undone
    }
}

impl Symmetries {
    /// The symmetries of an experiment, for its task; refused where it has none. `asked` names the key or option that asks
    /// for them.
    pub fn of(experiment: &Experiment, task: &Task, asked: &str) -> Result<Symmetries, Refusal> {
        if experiment.benchmark == OWN {
            return of_box(task, asked);
        }
        Ok(Symmetries { elements: of_problem(experiment, task, asked)?, of_samples: true, grid: task.grid })
    }

    /// Refuses a recipe with symmetries for a problem that has none, before its data are made.
    #[cfg(feature = "solvers")]
    pub(crate) fn check_ahead(experiment: &Experiment) -> Result<(), Refusal> {
        // The settings of a data set that is there decide, and are not known yet.
        if experiment.train.symmetries && experiment.benchmark != OWN && experiment.data.folder.is_none() {
            declared(&experiment.data, "train.symmetries")?;
        }
        Ok(())
    }

    /// The settings of a data set, where the problem has other symmetries with them than with those of the experiment. Files of a
    /// published benchmark count as `canonical`, the setting that repeats them.
    #[cfg(feature = "solvers")]
    pub(crate) fn settings_of(experiment: &Experiment, manifest: &Manifest) -> Option<Table> {
        let data = &experiment.data;
        if experiment.benchmark == OWN || (manifest.generator > 0 && manifest.problem != data.problem) {
            return None;
        }
        let row = lamo_physics::problems::find(&data.problem).ok()?;
        let mut settings = data.settings.clone();
        for parameter in row.parameters {
            let stated = manifest.parameters.get(parameter.name).filter(|_| manifest.generator > 0).cloned();
            let public = (manifest.generator == 0 && parameter.name == "canonical").then(|| true.into());
            stated.or(public).map(|value| settings.insert(parameter.name.to_owned(), value));
        }
        let group = |settings: &Table| row.symmetries(&changes(row, settings)).ok();
        (settings != data.settings && group(&settings) != group(&data.settings)).then_some(settings)
    }

    /// Without solvers no symmetries are known.
    #[cfg(not(feature = "solvers"))]
    pub(crate) fn settings_of(_experiment: &Experiment, _manifest: &Manifest) -> Option<Table> {
        None
    }

    /// Refuses to go on with symmetries that the data do not have.
    pub(crate) fn check_data(experiment: &Experiment, manifest: &Manifest) -> Result<(), Refusal> {
        let Some(settings) = Symmetries::settings_of(experiment, manifest).filter(|_| experiment.train.symmetries)
        else {
            return Ok(());
        };
        let ours = &experiment.data.settings;
        let differs = |(key, value): &(&String, &Value)| ours.get(*key) != Some(*value);
        let (expected, found): (Vec<_>, Vec<_>) = settings
            .iter()
            .filter(differs)
            .map(|(key, value)| {
                let found = ours.get(key).map_or_else(|| "nothing".to_owned(), Value::to_string);
                (format!("{key}={value}"), format!("{key}={found}"))
            })
            .unzip();
        let expected = format!("data.settings as the data have them, {}", expected.join(", "));
        Err(Refusal::new("train.symmetries", expected, found.join(", "))
            .advise("train a new run, which takes them from the data"))
    }

    /// Number of elements.
    pub fn order(&self) -> usize {
        self.elements.len()
    }

    /// The grid of the training, whose points they move.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The elements, the identity first.
    pub fn elements(&self) -> &[Symmetry] {
        &self.elements
    }
}

/// The symmetries of a line, a plane or a volume with scalar fields.
fn of_box(task: &Task, asked: &str) -> Result<Symmetries, Refusal> {
    let odd = |field: &&Field| field.width() != 1 || field.spread != Spread::Points;
    let odd: Vec<_> = task.inputs.iter().chain(&task.outputs).filter(odd).collect();
    require(task.positions != Positions::Given && odd.is_empty(), || {
        let odd: Vec<_> = odd.iter().map(|field| format!("`{}` {:?}", field.name, field.shape(task.grid))).collect();
        let found = if odd.is_empty() { "points elsewhere".to_owned() } else { odd.join(", ") };
        Refusal::new(asked, "fields of one value at every point of a lattice", found)
    })?;
    let element = |points| Symmetry {
        points,
        positions: Channels::kept(task.space),
        inputs: Channels::kept(task.given_channels(task.time.count())),
        outputs: Channels::kept(task.output_channels()),
    };
    let elements = sides(task.grid).into_iter().map(element).collect();
    Ok(Symmetries { elements, of_samples: false, grid: task.grid })
}

/// For each symmetry, the point that moves to each position; only the identity on a cloud.
fn sides(grid: Grid) -> Vec<Vec<u32>> {
    let (rows, columns) = match grid {
        Grid::Plane { rows, columns } => (rows, columns),
        Grid::Volume { rows, columns, layers } => return sides_of_volume([rows, columns, layers]),
        Grid::Line { points } => return vec![(0..points as u32).collect(), (0..points as u32).rev().collect()],
        Grid::Cloud { points } => return vec![(0..points as u32).collect()],
    };
    let swaps: &[bool] = if rows == columns { &[false, true] } else { &[false] };
    let mut all = Vec::new();
    for &swap in swaps {
        for mirror in 0..4 {
            let point = |place: usize| {
                let (mut row, mut column) = (place / columns, place % columns);
                if mirror & 1 != 0 {
                    row = rows - 1 - row;
                }
                if mirror & 2 != 0 {
                    column = columns - 1 - column;
                }
                let (row, column) = if swap { (column, row) } else { (row, column) };
                (row * columns + column) as u32
            };
            all.push((0..rows * columns).map(point).collect());
        }
    }
    all
}

/// The symmetries of a box: each of its reflections, after each exchange of sides of equal length.
fn sides_of_volume(extents: [usize; 3]) -> Vec<Vec<u32>> {
    const EXCHANGES: [[usize; 3]; 6] = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]];
    let [_, columns, layers] = extents;
    let alike = |exchange: &[usize; 3]| (0..3).all(|axis| extents[exchange[axis]] == extents[axis]);
    let mut all = Vec::new();
    for exchange in EXCHANGES.into_iter().filter(alike) {
        for mirror in 0..8 {
            let point = |place: usize| {
                let places = [place / (columns * layers), place / layers % columns, place % layers];
                let mirrored = |axis: usize| match mirror >> axis & 1 {
                    0 => places[axis],
                    _ => extents[axis] - 1 - places[axis],
                };
                let [row, column, layer] = exchange.map(mirrored);
                ((row * columns + column) * layers + layer) as u32
            };
            all.push((0..extents.iter().product()).map(point).collect());
        }
    }
    all
}

/// The settings that a problem knows, as changes of its defaults.
#[cfg(feature = "solvers")]
fn changes(row: &lamo_physics::problems::Row, settings: &Table) -> Vec<String> {
    let known = settings.iter().filter(|(key, _)| row.parameters.iter().any(|parameter| parameter.name == *key));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned); // no quotes
    known.map(|(key, value)| format!("{key}={}", text(value))).collect()
}

/// The symmetries that a problem declares; refused where it has none.
#[cfg(feature = "solvers")]
fn declared(data: &Data, asked: &str) -> Result<Vec<lamo_physics::symmetry::Symmetry>, Refusal> {
    let about = |error: lamo_physics::Error| Refusal::about(asked, error.to_string());
    let row = lamo_physics::problems::find(&data.problem).map_err(about)?;
    let declared = row.symmetries(&changes(row, &data.settings)).map_err(about)?;
    require(declared.len() > 1, || {
        let found = format!("{}, which has none with these settings", data.problem);
        Refusal::new(asked, "a problem with symmetries", found)
            .advise("docs/problems.md lists the symmetries and the settings that break them")
    })?;
    Ok(declared)
}

/// The symmetries of the problem for a task.
#[cfg(feature = "solvers")]
fn of_problem(experiment: &Experiment, task: &Task, asked: &str) -> Result<Vec<Symmetry>, Refusal> {
    use lamo_physics::symmetry::Symmetry as Declared;
    let declared = declared(&experiment.data, asked)?;
    let points = declared[0].points.len();
    require(points == task.grid.points(), || {
        let expected = format!("the {points} points of {} with its settings", experiment.data.problem);
        Refusal::new(asked, expected, format!("a {}", task.grid))
    })?;
    let channels = |declared: &Declared, name: &str, width: usize| match declared.components(name) {
        None => Channels::kept(width),
        Some(components) => {
            let channel =
                |c: &lamo_physics::symmetry::Component| Channel { source: c.source, gain: c.sign, shift: c.shift };
            Channels(components.iter().map(channel).collect())
        }
    };
    let element = |declared: &Declared| {
        let side_by_side = |fields: &[Field], count: &dyn Fn(&Field) -> usize| {
            fields.iter().fold(Channels::kept(0), |all, field| {
                all.and(channels(declared, &field.name, field.width()).repeated(count(field) / field.width()))
            })
        };
        let asked = |field: &Field| task.time.output_channels(std::slice::from_ref(field));
        let outputs = side_by_side(&task.outputs, &asked);
        // A roll-out is given its past snapshots, then the other fields.
        let past = outputs.repeated(task.time.past());
        let inputs = past.and(side_by_side(&task.inputs, &Field::functions));
        let positions = channels(declared, "positions", task.space);
        Symmetry { points: declared.points.clone(), positions, inputs, outputs }
    };
    Ok(declared.iter().map(element).collect())
}

#[cfg(not(feature = "solvers"))]
fn of_problem(experiment: &Experiment, _task: &Task, asked: &str) -> Result<Vec<Symmetry>, Refusal> {
    let found = "a lamo that was built without solvers, beside which they are declared";
    Err(Refusal::new(asked, format!("the symmetries of {}", experiment.data.problem), found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_two_sides_a_square_eight_a_rectangle_four_a_cube_48_and_one_after_another_is_one_of_them() {
        let plane = |rows, columns| Grid::Plane { rows, columns };
        let volume = |rows, columns, layers| Grid::Volume { rows, columns, layers };
        for (grid, count) in [
            (Grid::Line { points: 5 }, 2),
            (plane(3, 3), 8),
            (plane(2, 3), 4),
            (plane(4, 4), 8),
            (volume(3, 3, 3), 48),
            (volume(2, 3, 3), 16),
            (volume(3, 2, 3), 16),
            (volume(2, 3, 4), 8),
        ] {
            let all = sides(grid);
            assert_eq!(all.len(), count, "{grid}");
            assert!(all[0].iter().enumerate().all(|(place, &point)| place == point as usize));
            for first in &all {
                let mut sorted = first.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, all[0], "every point is seen once");
                for second in &all {
                    let both: Vec<u32> = second.iter().map(|&place| first[place as usize]).collect();
                    assert!(all.contains(&both));
                }
            }
        }
        assert_eq!(sides(Grid::Cloud { points: 3 }), [[0, 1, 2]]);
    }

    #[test]
    fn a_sign_flip_of_normalised_values_is_the_flip_in_physical_units() {
        let normaliser = Normaliser { mean: vec![3.0, -1.0], deviation: vec![2.0, 0.5] };
        let flip =
            Channels(vec![Channel { source: 0, gain: -1.0, shift: 0.5 }, Channel { source: 1, gain: 1.0, shift: 0.0 }]);
        let normalised = flip.normalised(Some(&normaliser));
        assert_eq!(normalised.0[1], Channel { source: 1, gain: 1.0, shift: 0.0 }, "what stays stays to the bit");
        let map = Symmetry {
            points: vec![1, 0],
            positions: Channels::kept(1),
            inputs: normalised.clone(),
            outputs: flip.clone(),
        };
        let values = [1.0, 2.0, -4.0, 7.0];
        let mut encoded = values;
        normaliser.encode(&mut encoded);
        let mut found = map.moved(&encoded, &normalised);
        normaliser.decode(&mut found);
        assert_eq!(found, map.moved(&values, &flip));
        assert_eq!(map.undo(&map.moved(&values, &flip)), values);
    }
}
