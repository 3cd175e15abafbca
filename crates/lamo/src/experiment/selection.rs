//! From a data set to the samples, fields and task of a training.

use super::{Experiment, Normalised, OWN};
use crate::data::Dataset;
use crate::data::dataset::{FieldEntry, Normalise, Role, Rule, Split};
use crate::data::samples::{Samples, offsets};
use crate::error::{Error, Kind, Refusal, counted, require};
use crate::files::memory;
use crate::task::task::lattice;
use crate::task::time::Arranged;
use crate::task::trend::{Seen, Trend};
use crate::task::{Field, Normaliser, Normalisers, Positions, Spread, Task, Time, TimeMode, spacing};
use lamo_geometry::Grid;
use std::ops::Range;

/// The fields that an experiment uses, and the samples of each part of the split.
#[derive(Debug)]
pub struct ExperimentData {
    /// Fields given.
    pub inputs: Vec<Field>,
    /// Fields asked for.
    pub outputs: Vec<Field>,
    /// Samples to train on.
    pub train: Samples,
    /// Samples that decide the best epoch, where the experiment has them.
    pub validation: Option<Samples>,
    /// Samples to test on.
    pub test: Samples,
    /// Times of the snapshots; empty where they are unknown.
    pub clock: Vec<f64>,
}

impl ExperimentData {
    /// Reads what the experiment needs of a data set.
    pub fn read(experiment: &Experiment, dataset: &Dataset) -> Result<ExperimentData, Error> {
        let split = split(experiment, dataset)?;
        require(!split.train.is_empty(), || {
            Refusal::new(dataset.folder().display().to_string(), "samples to train on", "none")
        })?;
        let (inputs, outputs) = fields(experiment, dataset)?;
        let read = |samples: &[usize]| read(experiment, dataset, &inputs, &outputs, samples);
        let (train, test) = (read(&split.train)?, read(&split.test)?);
        let validation = (!split.validation.is_empty()).then(|| read(&split.validation)).transpose()?;
        if experiment.time_mode().is_series() {
            train.check_norms_of_snapshots(|sample| split.train[sample])?;
        }
        Ok(ExperimentData { train, validation, test, inputs, outputs, clock: dataset.manifest().times.clone() })
    }

    /// The task that the experiment learns from these samples.
    pub fn task(&self, experiment: &Experiment) -> Result<Task, Error> {
        let mut task = fitted(experiment, experiment.time_mode(), &self.train, &self.clock)?;
        task.inputs = self.inputs.clone();
        task.outputs = self.outputs.clone();
        let normalised = experiment.data.normalise.contains(&Normalised::Inputs);
        task.drive(&self.train.inputs, self.train.functions, normalised)?;
        task.leave_raw();
        with_trend(task, experiment, &self.train)
    }
}

impl Experiment {
    /// The task that it learns from samples whose fields have no names; the past snapshots of a roll-out stand
    /// before the functions that stay.
    pub fn task(&self, train: &Samples) -> Result<Task, Error> {
        let Samples { functions, outputs, .. } = *train;
        let mode = self.time_mode();
        if !mode.is_roll_out() {
            return with_trend(fitted(self, mode, train, &[])?, self, train);
        }
        // All whole snapshots are past snapshots, unless data.past is smaller.
        let past = match self.data.past {
            1 if functions.is_multiple_of(outputs) => functions / outputs,
            past => past,
        };
        require(past > 0 && functions >= past * outputs, || {
            let expected = format!("inputs of at least one snapshot of {outputs} functions");
            Refusal::new("a roll-out", expected, functions.to_string())
        })?;
        fitted(self, TimeMode::RollOut { past }, train, &[])
    }
}

fn fitted(experiment: &Experiment, mode: TimeMode, train: &Samples, clock: &[f64]) -> Result<Task, Error> {
    train.check()?;
    let Samples { grid, space, functions, outputs, times, .. } = *train;
    if mode.is_series() {
        train.check_norms_of_snapshots(|sample| sample)?;
    }
    require(functions > 0 || !train.share_positions(), || {
        Refusal::new("samples", "inputs, or points that differ between samples", "neither")
            .advise("name an input, or continue a time series with data.time = roll-out")
    })?;
    let time = mode.of(times, clock)?;
    let regular = spacing(grid, space, &train.positions).is_some();
    experiment.train.loss.check(grid, outputs, regular)?;
    let snapshots = (0..if train.targets.is_empty() { 0 } else { train.count })
        .flat_map(|sample| train.target_of(sample).chunks((train.points_of(sample) * outputs).max(1)));
    experiment.train.loss.check_targets(snapshots, outputs)?;
    let scrambled = experiment.data.scrambled;
    let on_lattice = lattice(grid, scrambled).is_ok_and(|lattice| lattice == train.positions);
    let positions = match (on_lattice, scrambled) {
        (false, _) => Positions::Given,
        (true, false) => Positions::Lattice,
        (true, true) => Positions::Scrambled,
    };
    let beside = functions - time.input_channels(&[], &[Field::plain("outputs", outputs)]);
    Ok(Task {
        inputs: if beside > 0 { vec![Field::plain("inputs", beside)] } else { Vec::new() },
        positions,
        normalisers: fit(experiment, train, &time)?,
        time,
        ..Task::plain(grid, space, 0, outputs)
    })
}

/// Mean and deviation of each channel of the training samples.
fn fit(experiment: &Experiment, train: &Samples, time: &Time) -> Result<Normalisers, Error> {
    let wanted = |what: Normalised| experiment.data.normalise.contains(&what);
    let mut points = train.targets.chunks(train.outputs.max(1));
    let first = points.next();
    require(train.targets.is_empty() || points.any(|point| Some(point) != first), || {
        Refusal::new("targets", "values that differ", "the same at all points").advise("there is nothing to learn")
    })?;
    let normalised = wanted(Normalised::Outputs) && train.outputs > 0;
    let outputs = normalised.then(|| Normaliser::fit(&train.targets, train.outputs)).transpose()?;
    let inputs =
        time.fit_inputs(&train.inputs, train.functions, (train.outputs, outputs.as_ref()), wanted(Normalised::Inputs))?;
    let positions = wanted(Normalised::Positions) && train.space > 0;
    let positions = positions.then(|| Normaliser::fit_given(&train.positions, train.space)).transpose()?;
    let change = match experiment.data.change {
        true => {
            let samples = (0..train.count).map(|sample| (train.input_of(sample), train.target_of(sample)));
            time.fit_change(samples, [train.functions, train.outputs])?
        }
        false => None,
    };
    Ok(Normalisers { positions, inputs, outputs, change, trend: None })
}

/// The task with the linear function of what is known at a point, in normalised numbers, where the experiment asks for it.
fn with_trend(mut task: Task, experiment: &Experiment, train: &Samples) -> Result<Task, Error> {
    if !experiment.data.trend {
        return Ok(task);
    }
    let (positions, inputs) =
        (task.encode_positions(&train.positions), task.encode_inputs(&train.inputs, train.functions));
    let mut targets = train.targets.clone();
    task.normalisers.outputs.iter().for_each(|normaliser| normaliser.encode(&mut targets));
    fn part<'a>(train: &Samples, [positions, inputs, targets]: [&'a [f32]; 3], points: usize) -> Seen<'a> {
        Seen {
            positions: (positions, train.space),
            inputs: (inputs, train.functions),
            targets: (targets, train.outputs),
            points,
            times: train.times,
        }
    }
    let seen: Vec<Seen<'_>> = match train.is_ragged() {
        true => (0..train.count)
            .map(|sample| {
                let places = [train.space, train.functions, train.times * train.outputs];
                let [one, two, three] = places.map(|each| train.range_of(sample, each));
                part(train, [&positions[one], &inputs[two], &targets[three]], train.points_of(sample))
            })
            .collect(),
        false => vec![part(train, [&positions, &inputs, &targets], train.grid.points())],
    };
    task.normalisers.trend = Some(Trend::fit(&seen));
    Ok(task)
}

/// The samples an experiment is tested on.
pub fn test_samples(experiment: &Experiment, dataset: &Dataset) -> Result<Samples, Error> {
    let (inputs, outputs) = fields(experiment, dataset)?;
    read(experiment, dataset, &inputs, &outputs, &split(experiment, dataset)?.test)
}

/// The samples an experiment is trained on, without its validation samples.
pub fn train_samples(experiment: &Experiment, dataset: &Dataset) -> Result<Samples, Error> {
    let (inputs, outputs) = fields(experiment, dataset)?;
    read(experiment, dataset, &inputs, &outputs, &split(experiment, dataset)?.train)
}

/// Number of validation samples of a user's own data with so many training samples: a tenth, none where a tenth is too few
/// to decide anything.
pub(crate) fn default_validation(train: usize) -> usize {
    if train < 40 { 0 } else { train / 10 }
}

/// Samples for training, for validation and for testing. The split of the data set counts where its sizes are those of the experiment; an
/// official split need not be the first and the last samples. Otherwise training takes the first samples and testing those
/// from `first_test` on, or the last; where the split of an own data set is not the first and the last samples, it is
/// shortened, so that a sample to test on is never one to train on. Validation samples are drawn from the training samples;
/// where `data.gap` is above 0, they are windows of time series that share no snapshots with those to train on.
pub fn split(experiment: &Experiment, dataset: &Dataset) -> Result<Split, Error> {
    let data = &experiment.data;
    let stated = dataset.split()?;
    let as_stated = data.train == 0 || [stated.train.len(), stated.test.len()] == [data.train, data.test];
    let test = data.first_test..data.first_test.saturating_add(data.test);
    let named = data.first_test > 0 && data.train > 0 && data.test > 0;
    let split = if named && !(as_stated && test.end > dataset.samples()) {
        tested_from(experiment, dataset, test)?
    } else if as_stated {
        stated
    } else if experiment.benchmark == OWN && !matches!(dataset.manifest().split, Rule::Ends { .. }) {
        shortened(&stated, data.train, data.test)?
    } else {
        Rule::Ends { train: data.train, test: data.test }.split(dataset.samples())?
    };
    require(!split.test.is_empty(), || {
        Refusal::new(dataset.folder().display().to_string(), "samples to test on", "none")
    })?;
    Ok(match data.gap {
        0 => split.validated(data.validation, data.seed)?,
        gap => split.validated_in_time(data.validation, data.seed, gap, &dataset.manifest().series())?,
    })
}

/// The samples `test` to test on, and the first others to train on; windows of time series share no snapshots with those to test on.
fn tested_from(experiment: &Experiment, dataset: &Dataset, test: Range<usize>) -> Result<Split, Error> {
    let (data, series) = (&experiment.data, dataset.manifest().series());
    let gap = data.gap.max(dataset.manifest().window_gap().unwrap_or(0));
    let near = |&sample: &usize| {
        gap > 0 && test.clone().any(|t| series.of(t) == series.of(sample) && t.abs_diff(sample) <= gap)
    };
    let others = (0..dataset.samples()).filter(|sample| !test.contains(sample) && !near(sample));
    let train: Vec<usize> = others.take(data.train).collect();
    require(gap == 0 || train.len() == data.train, || {
        let expected = format!("at most {}, those that share no snapshots with the samples to test on", train.len());
        Refusal::new("data.train", expected, data.train.to_string())
    })?;
    Ok(Rule::Indices { train, test: test.collect() }.split(dataset.samples())?)
}

/// The first samples of both lists of a split; 0 to test on means all.
fn shortened(stated: &Split, train: usize, test: usize) -> Result<Split, Refusal> {
    let test = if test == 0 { stated.test.len() } else { test };
    for (key, wanted, list) in [("data.train", train, &stated.train), ("data.test", test, &stated.test)] {
        require(wanted <= list.len(), || {
            let expected = format!("at most {}, as the split of the data set has", counted(list.len(), "sample"));
            Refusal::new(key, expected, wanted.to_string())
        })?;
    }
    Ok(Split::of(stated.train[..train].to_vec(), stated.test[..test].to_vec()))
}

/// The fields given and asked for.
pub(crate) fn fields(experiment: &Experiment, dataset: &Dataset) -> Result<(Vec<Field>, Vec<Field>), Error> {
    let own = experiment.benchmark == OWN;
    for (key, names) in [("data.inputs", &experiment.data.inputs), ("data.outputs", &experiment.data.outputs)] {
        let twice = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name));
        require(twice.is_none(), || {
            let name = twice.map(|(_, name)| name.as_str()).unwrap_or_default();
            Refusal::new(key, "each field once", format!("`{name}` twice"))
        })?;
    }
    let entries = |names: &[String], role: Role, by_role: bool| -> Result<Vec<&FieldEntry>, Error> {
        let all = dataset.manifest().fields.iter();
        match names {
            [] => Ok(all.filter(|field| by_role && field.role == role).collect()),
            names => Ok(names.iter().map(|name| dataset.field(name)).collect::<Result<_, _>>()?),
        }
    };
    let on_grid = |entry: &&FieldEntry| -> Result<Field, Error> {
        // The recipe of a benchmark decides what is normalised.
        let raw = own && entry.normalise == Normalise::None;
        let field = entry.on(dataset.manifest().grid)?;
        Ok(Field { raw, ..field })
    };
    let outputs = entries(&experiment.data.outputs, Role::Output, true)?;
    let outputs = outputs.iter().map(on_grid).collect::<Result<Vec<_>, _>>()?;
    let is_output = |name: &str| outputs.iter().any(|output| output.name == name);
    // A roll-out is given its own past. The recipe of a benchmark ignores further inputs of its data set.
    let roll_out = experiment.time_mode().is_roll_out();
    let mut inputs = entries(&experiment.data.inputs, Role::Input, own || !roll_out)?;
    if roll_out {
        inputs.retain(|entry| !is_output(&entry.name));
    }
    let inputs = inputs.iter().map(on_grid).collect::<Result<Vec<_>, _>>()?;
    let both = inputs.iter().find(|input| is_output(&input.name));
    require(both.is_none(), || {
        let name = both.map(|field| field.name.as_str()).unwrap_or_default();
        Refusal::new("data.inputs", "fields that are not asked for", format!("`{name}`, which is an output too"))
    })?;
    let series = experiment.time_mode().is_series();
    let fits = |field: &Field| match field.spread {
        Spread::Points => true,
        Spread::Sample => !series,
        Spread::Rows => false,
    };
    require(!outputs.is_empty() && outputs.iter().all(fits), || {
        let found: Vec<_> = outputs
            .iter()
            .map(|field| format!("`{}` {:?}", field.name, field.shape(dataset.manifest().grid)))
            .collect();
        let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
        let expected = match series {
            true => "at least one output, with a value at every point",
            false => "at least one output, with a value at every point or for every sample",
        };
        Refusal::new(dataset.folder().display().to_string(), expected, found)
    })?;
    Ok((inputs, outputs))
}

/// The samples listed.
fn read(
    experiment: &Experiment,
    dataset: &Dataset,
    inputs: &[Field],
    outputs: &[Field],
    samples: &[usize],
) -> Result<Samples, Error> {
    let grid = dataset.manifest().grid;
    let values = |fields: &[Field]| -> Result<Vec<Vec<f32>>, Error> {
        Ok(fields.iter().map(|field| dataset.gather(&field.name, samples)).collect::<Result<_, _>>()?)
    };
    require_memory(dataset, inputs.iter().chain(outputs), samples.len())?;
    let (space, positions) = positions(experiment, dataset, grid, samples)?;
    let (given, asked) = (values(inputs)?, values(outputs)?);
    let sizes: Vec<usize> = samples.iter().map(|&sample| dataset.points_of(sample)).collect();
    let arranged = match dataset.ragged() {
        Some(_) => arranged_one_by_one(experiment.time_mode(), (inputs, &given), (outputs, &asked), &sizes)?,
        None => experiment.time_mode().arrange((inputs, &given), (outputs, &asked), grid)?,
    };
    let (grid, offsets) = match dataset.ragged() {
        Some(_) => (Grid::Cloud { points: sizes.iter().copied().max().unwrap_or(0) }, offsets(&sizes)),
        None => (grid, Vec::new()),
    };
    let read = Samples {
        count: samples.len(),
        grid,
        offsets,
        space,
        positions,
        functions: arranged.functions,
        inputs: arranged.inputs,
        times: arranged.times,
        outputs: arranged.outputs,
        targets: arranged.targets,
    };
    let norms = read.check_norms_of_samples(|sample| samples[sample]).map_err(|refusal| {
        let numbers = outputs.iter().all(|field| field.spread == Spread::Sample);
        let advice = "leave it out, or add a constant to the numbers of all samples";
        if numbers { refusal.advise(advice) } else { refusal }
    });
    let checked = norms.and_then(|()| read.check());
    checked.map_err(|refusal| refusal.within(dataset.folder().display()))?;
    Ok(read)
}

/// Arranges samples of different sizes one by one, each on a cloud of its own, and joins them.
fn arranged_one_by_one(
    mode: TimeMode,
    (inputs, given): (&[Field], &[Vec<f32>]),
    (outputs, asked): (&[Field], &[Vec<f32>]),
    sizes: &[usize],
) -> Result<Arranged, Refusal> {
    let mut starts = vec![0; inputs.len() + outputs.len()];
    let mut all: Option<Arranged> = None;
    for &points in sizes {
        let grid = Grid::Cloud { points };
        let next = |fields: &[Field], values: &[Vec<f32>], starts: &mut [usize]| -> Vec<Vec<f32>> {
            let part = |((field, values), start): ((&Field, &Vec<f32>), &mut usize)| {
                let length: usize = field.shape(grid).iter().product();
                let part = values[*start..*start + length].to_vec();
                *start += length;
                part
            };
            fields.iter().zip(values).zip(starts).map(part).collect()
        };
        let (of_inputs, of_outputs) = starts.split_at_mut(inputs.len());
        let (given, asked) = (next(inputs, given, of_inputs), next(outputs, asked, of_outputs));
        let one = mode.arrange((inputs, &given), (outputs, &asked), grid)?;
        match &mut all {
            Some(all) => {
                all.inputs.extend(one.inputs);
                all.targets.extend(one.targets);
            }
            None => all = Some(one),
        }
    }
    all.ok_or_else(|| Refusal::new("samples", "at least one", "none"))
}

/// Refuses samples that do not fit into memory: as they are read, arranged for the task, and inside a program.
fn require_memory<'a>(
    dataset: &Dataset,
    fields: impl Iterator<Item = &'a Field>,
    samples: usize,
) -> Result<(), Refusal> {
    let points = dataset.mean_points();
    let numbers: usize = fields.map(|field| field.functions().saturating_mul(points)).sum();
    let bytes = numbers.saturating_mul(samples).saturating_mul(3 * size_of::<f32>());
    memory::require(bytes as u64).map_err(|reason| {
        Refusal::about(format!("{}: {}", dataset.folder().display(), counted(samples, "sample")), reason.to_string())
            .advise("use fewer samples")
            .of(Kind::OutOfSpace)
    })
}

/// Coordinates per point, and the positions: from the data set, or the lattice where it has no positions.
fn positions(
    experiment: &Experiment,
    dataset: &Dataset,
    grid: Grid,
    samples: &[usize],
) -> Result<(usize, Vec<f32>), Error> {
    let Some(entry) = dataset.manifest().fields.iter().find(|field| field.role == Role::Position) else {
        let positions = lattice(grid, experiment.data.scrambled).map_err(|refusal| refusal.of(Kind::Missing))?;
        return Ok((positions.len() / grid.points(), positions));
    };
    let field = entry.on(grid)?;
    require(field.spread == Spread::Points && field.snapshots.is_none(), || {
        let thing = format!("field `{}`", entry.name);
        Refusal::new(thing, "positions of shape [...grid, space]", format!("{:?}", entry.shape))
    })?;
    let owners = if entry.common { &samples[..1] } else { samples };
    Ok((field.width(), dataset.gather(&entry.name, owners)?))
}
