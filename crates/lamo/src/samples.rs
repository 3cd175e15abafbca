//! Samples in memory, in physical units: where the points lie, what is given there, what is asked.

use crate::dataset::{Dataset, FieldEntry, Normalise, RoleEntry, Rule, Split};
use crate::error::{Error, counted};
use crate::experiment::{Data, Experiment, Loss, OWN};
use crate::field::{self, Field, Spread};
use crate::models::{Refusal, require};
use lamo_geometry::Grid;
use std::ops::RangeInclusive;

/// Norms whose squares an f32 holds, those of errors far below and above them too.
const NORMS: RangeInclusive<f64> = 1e-15..=1e17;

/// Arrays of `count` samples on one grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// Number of samples.
    pub count: usize,
    /// Where the points are.
    pub grid: Grid,
    /// Coordinates of a point.
    pub space: usize,
    /// `[count, points, space]`, or `[points, space]` where all samples share them
    pub positions: Vec<f32>,
    /// Functions given at each point.
    pub functions: usize,
    /// `[count, points, functions]`
    pub inputs: Vec<f32>,
    /// Times at which the outputs are asked for, one where time plays no part.
    pub times: usize,
    /// Functions asked for at each point and time.
    pub outputs: usize,
    /// `[count, times, points, outputs]`, empty where the truth is not known
    pub targets: Vec<f32>,
}

impl Samples {
    /// One's own arrays on a grid: `inputs` `[count, points, functions]`, `targets` `[count, points, outputs]`; the points
    /// lie on a lattice of the unit square (or interval).
    pub fn new(
        grid: Grid,
        functions: usize,
        inputs: Vec<f32>,
        outputs: usize,
        targets: Vec<f32>,
    ) -> Result<Samples, Refusal> {
        let count = targets.len() / (grid.points() * outputs).max(1);
        let positions = lattice(grid, false)?;
        let space = positions.len() / grid.points().max(1);
        let samples = Samples { count, grid, space, positions, functions, inputs, times: 1, outputs, targets };
        samples.check()?;
        Ok(samples)
    }

    /// The same with points that lie elsewhere: `[points, space]` for all samples or `[count, points, space]`.
    pub fn at(self, space: usize, positions: Vec<f32>) -> Result<Samples, Refusal> {
        let samples = Samples { space, positions, ..self };
        samples.check()?;
        Ok(samples)
    }

    /// Whether all samples have the same points.
    pub fn share_positions(&self) -> bool {
        self.positions.len() == self.grid.points() * self.space
    }

    /// `[points, space]` where the points of one sample lie.
    pub fn positions_of(&self, sample: usize) -> &[f32] {
        let length = self.grid.points() * self.space;
        let start = if self.share_positions() { 0 } else { sample * length };
        &self.positions[start..start + length]
    }

    /// `[times, points, outputs]` of one sample.
    pub fn target_of(&self, sample: usize) -> &[f32] {
        let length = self.times * self.grid.points() * self.outputs;
        &self.targets[sample * length..(sample + 1) * length]
    }

    /// `[points, functions]` of one sample.
    pub fn input_of(&self, sample: usize) -> &[f32] {
        let length = self.grid.points() * self.functions;
        &self.inputs[sample * length..(sample + 1) * length]
    }

    /// Relative L2 of each sample, ‖prediction − target‖₂ / ‖target‖₂ over all its times, points and functions. Panics where
    /// predictions are not as many as targets.
    pub fn errors(&self, prediction: &[f32]) -> Vec<f64> {
        assert_eq!(prediction.len(), self.targets.len(), "a prediction for each target");
        let length = self.times * self.grid.points() * self.outputs;
        let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
        let error = |(found, truth): (&[f32], &[f32])| {
            let pairs = found.iter().zip(truth);
            let miss = norm(&mut pairs.map(|(found, truth)| f64::from(*found) - f64::from(*truth)));
            miss / norm(&mut truth.iter().map(|truth| f64::from(*truth)))
        };
        prediction.chunks_exact(length).zip(self.targets.chunks_exact(length)).map(error).collect()
    }

    /// The first so many samples.
    pub fn first(mut self, count: usize) -> Samples {
        let points = self.grid.points();
        if !self.share_positions() {
            self.positions.truncate(count * points * self.space);
        }
        self.inputs.truncate(count * points * self.functions);
        self.targets.truncate(count * self.times * points * self.outputs);
        Samples { count: count.min(self.count), ..self }
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let Samples { count, space, functions, times, outputs, .. } = *self;
        let points = self.grid.points();
        require(count > 0, || "samples: expected at least one, found none".to_owned())?;
        require(points > 0 && outputs > 0 && times > 0, || {
            format!("samples: expected points, outputs and times, found {points}, {outputs} and {times}")
        })?;
        require(self.positions.iter().all(|value| value.is_finite()), || {
            "positions: expected finite numbers, found NaN or infinity; clean the data".to_owned()
        })?;
        require(self.share_positions() || self.positions.len() == count * points * space, || {
            let found = self.positions.len();
            format!(
                "positions: expected {points} points of {space} coordinates, once or for each of {}, found {found} values",
                counted(count, "sample")
            )
        })?;
        let arrays = [
            ("inputs", &self.inputs, format!("{points} points of {functions} functions"), points * functions),
            (
                "targets",
                &self.targets,
                format!("{times} times {points} points of {outputs} functions"),
                times * points * outputs,
            ),
        ];
        for (name, values, words, each) in arrays {
            let found = values.len();
            let unknown = name == "targets" && found == 0;
            require(unknown || found == count * each, || {
                let samples = counted(count, "sample");
                format!("{name}: expected {samples} of {words}, {} values, found {found}", count * each)
            })?;
            require(values.iter().all(|value| value.is_finite()), || {
                format!("{name}: expected finite numbers, found NaN or infinity; clean the data")
            })?;
        }
        self.check_errors(|sample| sample)
    }

    /// Refuses targets without a relative error; `number` is what a sample is called.
    fn check_errors(&self, number: impl Fn(usize) -> usize) -> Result<(), Refusal> {
        let length = self.times * self.grid.points() * self.outputs;
        check_norms("fields", &self.targets, length, |place| format!("sample {}", number(place)))
    }

    /// The same for each frame of a film.
    pub(crate) fn check_frames(&self, number: impl Fn(usize) -> usize) -> Result<(), Refusal> {
        check_norms("frames", &self.targets, self.grid.points() * self.outputs, |place| {
            format!("frame {} of sample {}", place % self.times, number(place / self.times))
        })
    }
}

/// Refuses a part of the targets, `length` values each, that no error can be relative to.
fn check_norms(parts: &str, targets: &[f32], length: usize, name: impl Fn(usize) -> String) -> Result<(), Refusal> {
    let norm = |part: &[f32]| part.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
    let unfit = targets.chunks(length.max(1)).map(norm).enumerate().find(|(_, norm)| !NORMS.contains(norm));
    let Some((place, norm)) = unfit else { return Ok(()) };
    let name = name(place);
    Err(Refusal(if norm == 0.0 {
        format!(
            "targets: expected {parts} that are not zero everywhere, which have no relative error, found {name}; leave it out"
        )
    } else {
        let [least, most] = [NORMS.start(), NORMS.end()];
        format!(
            "targets: expected {parts} of a norm between {least:e} and {most:e}, found {norm:.1e} in {name}; give them in another unit"
        )
    }))
}

/// Equal spacing from 0 to 1 along each axis, the column's coordinate first. `scrambled` counts along the rows of a plane
/// as if they were its columns: on square planes the same, elsewhere the authors' Plasticity positions.
pub(crate) fn lattice(grid: Grid, scrambled: bool) -> Result<Vec<f32>, Refusal> {
    let step = |index: usize, extent: usize| if extent > 1 { index as f64 / (extent - 1) as f64 } else { 0.0 } as f32;
    match grid {
        Grid::Line { points } => Ok((0..points).map(|point| step(point, points)).collect()),
        Grid::Plane { rows, columns } => {
            let (fast, slow) = if scrambled { (rows, columns) } else { (columns, rows) };
            Ok((0..rows * columns).flat_map(|n| [step(n % fast, fast), step(n / fast, slow)]).collect())
        }
        Grid::Cloud { .. } => {
            Err(Refusal("a cloud of points needs their positions; the data set has no field of that role".to_owned()))
        }
    }
}

/// The fields an experiment uses, and the arrays of both splits.
#[derive(Debug)]
pub struct Material {
    /// What is given.
    pub inputs: Vec<Field>,
    /// What is asked for.
    pub outputs: Vec<Field>,
    /// To learn from.
    pub train: Samples,
    /// To be judged by.
    pub test: Samples,
    /// When the frames of films are, where it is known.
    pub times: Vec<f64>,
}

impl Material {
    /// Reads what the experiment needs of a data set.
    pub fn read(experiment: &Experiment, dataset: &Dataset) -> Result<Material, Error> {
        let split = split(&experiment.data, dataset)?;
        require(!split.train.is_empty(), || {
            format!("{}: expected samples to train on, found none", dataset.folder().display())
        })?;
        let (inputs, outputs) = fields(experiment, dataset)?;
        let read = |samples: &[usize]| read(experiment, dataset, &inputs, &outputs, samples);
        let (train, test) = (read(&split.train)?, read(&split.test)?);
        if matches!(experiment.train.loss, Loss::RelativeL2OfFrames | Loss::RelativeL2OfTimes) {
            train.check_frames(|sample| split.train[sample])?;
        }
        Ok(Material { train, test, inputs, outputs, times: dataset.manifest().times.clone() })
    }
}

/// What an experiment is judged by.
pub fn test(experiment: &Experiment, dataset: &Dataset) -> Result<Samples, Error> {
    let (inputs, outputs) = fields(experiment, dataset)?;
    read(experiment, dataset, &inputs, &outputs, &split(&experiment.data, dataset)?.test)
}

/// Which samples an experiment trains and tests on: the split that the data set states where it has the size asked for (an
/// official one need not be the two ends), else the first and the last.
pub fn split(data: &Data, dataset: &Dataset) -> Result<Split, Error> {
    let stated = dataset.split()?;
    let split = if data.train == 0 || [stated.train.len(), stated.test.len()] == [data.train, data.test] {
        stated
    } else {
        Rule::Ends { train: data.train, test: data.test }.split(dataset.samples())?
    };
    require(!split.test.is_empty(), || {
        format!("{}: expected samples to test on, found none", dataset.folder().display())
    })?;
    Ok(split)
}

/// The fields given and asked for.
fn fields(experiment: &Experiment, dataset: &Dataset) -> Result<(Vec<Field>, Vec<Field>), Error> {
    let grid = Grid::from(dataset.manifest().grid);
    let choose = |names: &[String], role: RoleEntry| -> Result<Vec<Field>, Error> {
        let all = dataset.manifest().fields.iter();
        let entries: Vec<&FieldEntry> = match names {
            [] => all.filter(|field| field.role == role).collect(),
            names => names.iter().map(|name| dataset.field(name)).collect::<Result<_, _>>()?,
        };
        // a benchmark's recipe says itself what is normalised
        let raw = |entry: &FieldEntry| experiment.benchmark == OWN && entry.normalise == Normalise::None;
        let axes = |entry: &&FieldEntry| {
            let field = Field::on(grid, &entry.name, &entry.unit, &entry.shape)?;
            Ok::<_, Refusal>(Field { raw: raw(entry), ..field })
        };
        Ok(entries.iter().map(axes).collect::<Result<_, _>>()?)
    };
    let outputs = choose(&experiment.data.outputs, RoleEntry::Output)?;
    let inputs = match experiment.train.loss {
        Loss::RelativeL2OfFrames => {
            check_film(experiment, dataset, &outputs)?;
            Vec::new()
        }
        _ => choose(&experiment.data.inputs, RoleEntry::Input)?,
    };
    let both = inputs.iter().find(|input| outputs.iter().any(|output| output.name == input.name));
    require(both.is_none(), || {
        let name = both.map(|field| field.name.as_str()).unwrap_or_default();
        format!("data.inputs: expected fields that are not asked for, found `{name}`, which is an output too")
    })?;
    require(!outputs.is_empty() && outputs.iter().all(|field| field.spread == Spread::Points), || {
        format!("{}: expected at least one output with a value at every point", dataset.folder().display())
    })?;
    Ok((inputs, outputs))
}

/// A film is continued from its own frames: refuses anything else that is given, unless the film is named in its place. The
/// recipe of a benchmark knows what its data set has beside the film.
fn check_film(experiment: &Experiment, dataset: &Dataset, outputs: &[Field]) -> Result<(), Refusal> {
    let names = &experiment.data.inputs;
    let all = dataset.manifest().fields.iter();
    let inputs = all.filter(|field| field.role == RoleEntry::Input && experiment.benchmark == OWN);
    let inputs: Vec<&str> = inputs.map(|field| field.name.as_str()).collect();
    let given = if names.is_empty() { inputs } else { names.iter().map(String::as_str).collect() };
    let other = given.iter().find(|name| outputs.iter().all(|output| output.name != **name));
    require(other.is_none(), || {
        let films: Vec<_> = outputs.iter().map(|output| format!("\"{}\"", output.name)).collect();
        format!(
            "train.loss = relative-l2-of-frames: expected nothing given but the first frames of the film, found input `{}`; \
             leave it out with --set 'data.inputs=[{}]', or take train.loss = relative-l2-of-times",
            other.unwrap_or(&""),
            films.join(", ")
        )
    })
}

/// The samples listed.
fn read(
    experiment: &Experiment,
    dataset: &Dataset,
    inputs: &[Field],
    outputs: &[Field],
    samples: &[usize],
) -> Result<Samples, Error> {
    let grid = Grid::from(dataset.manifest().grid);
    let count = samples.len();
    let values = |fields: &[Field]| -> Result<Vec<Vec<f32>>, Error> {
        Ok(fields.iter().map(|field| dataset.gather(&field.name, samples)).collect::<Result<_, _>>()?)
    };
    let place = dataset.manifest().fields.iter().find(|field| field.role == RoleEntry::Position);
    let (space, positions) = match place {
        Some(field) => {
            let place = Field::on(grid, &field.name, &field.unit, &field.shape)?;
            let fits = place.spread == Spread::Points && place.frames.is_none();
            require(fits, || {
                format!("field `{}`: expected positions of shape [...grid, space], found {:?}", field.name, field.shape)
            })?;
            let owners = if field.common { &samples[..1] } else { samples };
            (place.width(), dataset.gather(&field.name, owners)?)
        }
        None => {
            let positions = lattice(grid, experiment.data.scrambled)?;
            (positions.len() / grid.points(), positions)
        }
    };
    let given = values(inputs)?;
    let asked = values(outputs)?;
    let read = arrange(experiment, grid, (inputs, &given), (outputs, &asked))?;
    let read = Samples { count, grid, space, positions, ..read };
    let sound = read.check_errors(|sample| samples[sample]).and_then(|()| read.check());
    sound.map_err(|refusal| Refusal(format!("{}: {refusal}", dataset.folder().display())))?;
    Ok(read)
}

/// Fields and their values.
pub(crate) type Valued<'a> = (&'a [Field], &'a [Vec<f32>]);

/// Inputs and targets from the values of fields, by the way time enters.
fn arrange(experiment: &Experiment, grid: Grid, given: Valued<'_>, asked: Valued<'_>) -> Result<Samples, Refusal> {
    let points = grid.points();
    let (mut inputs, functions) = functions(given, grid);
    let width: usize = asked.0.iter().map(Field::width).sum();
    let frames = asked.0[0].length();
    let film = |what: &str, least: usize| {
        require(asked.0.iter().all(|field| field.length() == frames) && frames >= least, || {
            format!(
                "{what}: expected outputs of at least {least} frames, the same for all, found {frames} in `{}`",
                asked.0[0].name
            )
        })
    };
    let (functions, times, outputs, targets) = match experiment.train.loss {
        Loss::RelativeL2 | Loss::RelativeL2WithGradient => {
            let (targets, outputs) = self::functions(asked, grid);
            (functions, 1, outputs, targets)
        }
        Loss::RelativeL2OfTimes => {
            film("train.loss = relative-l2-of-times", 2)?;
            (functions, frames, width, field::gather(asked.0, asked.1, grid, [0, frames]))
        }
        Loss::RelativeL2OfFrames => {
            let past = experiment.data.past;
            require(past > 0, || "data.past: expected at least 1 frame, found 0".to_owned())?;
            film("data.past", past + 1)?;
            inputs = field::stack(&field::gather(asked.0, asked.1, grid, [0, past]), [past, points, width]);
            (past * width, frames - past, width, field::gather(asked.0, asked.1, grid, [past, frames]))
        }
    };
    Ok(Samples { count: 0, grid, space: 0, positions: Vec::new(), functions, inputs, times, outputs, targets })
}

/// Fields as functions of the point, films with one function per frame: `[count, points, functions]` and how many.
pub(crate) fn functions((fields, values): Valued<'_>, grid: Grid) -> (Vec<f32>, usize) {
    let points = grid.points();
    let parts: Vec<(Vec<f32>, usize)> = fields
        .iter()
        .zip(values)
        .map(|(field, values)| {
            let (frames, width) = (field.length(), field.width());
            let film = field::gather(std::slice::from_ref(field), std::slice::from_ref(values), grid, [0, frames]);
            (field::stack(&film, [frames, points, width]), frames * width)
        })
        .collect();
    let total: usize = parts.iter().map(|(_, width)| width).sum();
    if let [(values, _)] = parts.as_slice() {
        return (values.clone(), total);
    }
    let rows = parts.first().map_or(0, |(values, width)| values.len() / width);
    let row = |row: usize| {
        parts.iter().flat_map(move |(values, width)| values[row * width..(row + 1) * width].iter().copied())
    };
    ((0..rows).flat_map(row).collect(), total)
}
