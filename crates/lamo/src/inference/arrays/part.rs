//! One array of a field: which of its axes are those of the data set, and which of its snapshots are used.

use crate::data::formats::{ArrayFile, Single};
use crate::data::import::{self, ArrayName};
use crate::error::{Error, Refusal, require};
use crate::task::{Field, POSITIONS, Task};
use std::rc::Rc;

/// One array.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) file: Rc<ArrayFile>,
    pub(super) variable: Option<String>,
    /// Arrays of the file that are its channels, such as the columns `x,y` of a table; empty where it is one array.
    pub(super) side_by_side: Vec<String>,
    /// The axes of the file in the order of the data set.
    pub(super) order: Option<Vec<usize>>,
    /// Shape in the order of the data set, with the snapshots that are used.
    pub(super) shape: Vec<usize>,
    /// Snapshots of the file, of which the last ones are used.
    pub(super) series: Option<usize>,
}

impl Part {
    /// The file, and the array in it.
    pub(super) fn title(&self) -> String {
        ArrayName { path: self.file.path().to_owned(), variable: self.variable.clone() }.title()
    }

    /// Number of samples, if the array has an axis for samples; a sample has `axes` axes.
    pub(super) fn samples(&self, axes: usize) -> Option<usize> {
        (self.shape.len() > axes).then(|| self.shape[0])
    }

    /// Shape of one sample.
    pub(super) fn sample(&self, axes: usize) -> &[usize] {
        &self.shape[usize::from(self.samples(axes).is_some())..]
    }

    /// Its snapshots, if it is a time series, where a sample is `[snapshots, ...]` and has `axes` axes.
    pub(super) fn snapshots(&self, axes: usize) -> Option<usize> {
        let sample = self.sample(axes);
        (sample.len() == axes).then(|| sample[0])
    }

    /// All its values.
    pub(super) fn read(&self) -> Result<Single, Error> {
        let read = |name: Option<&str>| self.file.read_single(name, self.order.as_deref(), None, &mut |_| {});
        if self.side_by_side.is_empty() {
            return Ok(read(self.variable.as_deref())?);
        }
        let columns: Vec<Single> = self.side_by_side.iter().map(|name| read(Some(name))).collect::<Result<_, _>>()?;
        let count = columns.iter().map(|column| column.values.len()).min().unwrap_or(0);
        let values = (0..count).flat_map(|row| columns.iter().map(move |column| column.values[row])).collect();
        let beyond = columns.iter().find_map(|column| column.beyond);
        let first = columns.into_iter().next();
        first.map(|first| Single { values, beyond, ..first }).ok_or_else(|| Refusal::said("no array is named").into())
    }

    /// How many values are read; a sample has `axes` axes.
    pub(super) fn count(&self, axes: usize) -> u64 {
        let used = self.shape.iter().fold(1, |count: u64, &extent| count.saturating_mul(extent as u64));
        let past = self.sample(axes).first().map_or(1, |&past| past.max(1) as u64);
        self.series.map_or(used, |series| (used / past).saturating_mul(series as u64))
    }
}

/// The shape of positions without what means nothing: the points of a line need no axis for their one coordinate, and
/// beside other inputs one sample of positions is that of all samples.
fn plain_positions(shape: &mut Vec<usize>, trained: &[usize], beside: bool) {
    if trained.len() == 2 && trained[1] == 1 && shape.last() != Some(&1) {
        shape.push(1);
    }
    if beside && shape.len() == trained.len() + 1 && shape[0] == 1 {
        shape.remove(0);
    }
}

/// The shape of an array whose axes have letters with the axes of its field, which may have one of length 1 more or less: letters
/// decide which axes an array has, whatever its extents.
fn lettered_axes(shape: &mut Vec<usize>, field: &Field, axes: &str) {
    match (field.channels, axes.contains('c')) {
        (None, true) if shape.last() == Some(&1) => drop(shape.pop()),
        (Some(1), false) => shape.push(1),
        _ => {}
    }
    if field.snapshots.is_some() && !axes.contains('t') {
        shape.insert(usize::from(axes.contains('n')), 1);
    }
}

/// The shape of an array on the grid of the training without an axis for one channel, or with it, as its field: `[rows, columns, 1]`
/// is one sample, and not many on planes of one column.
fn plain_channel(shape: &mut Vec<usize>, field: &Field, trained: &[usize]) {
    let is_sample = |shape: &[usize], sample: &[usize]| shape == sample || shape.get(1..) == Some(sample);
    match (field.channels, shape.split_last(), trained.split_last()) {
        (None, Some((1, others)), _) if !trained.is_empty() && is_sample(others, trained) => drop(shape.pop()),
        (Some(1), _, Some((_, sample))) if !sample.is_empty() && is_sample(shape, sample) => shape.push(1),
        _ => {}
    }
}

/// The arrays of `X,Y`, where the file has no array of this name: they must have the same shape, and are channels side by side.
fn side_by_side(file: &ArrayFile, variable: Option<&str>, axes: Option<&str>) -> Result<Vec<String>, Error> {
    let Some(names) = variable.filter(|name| name.contains(',') && file.describe(Some(name)).is_err()) else {
        return Ok(Vec::new());
    };
    let names: Vec<String> = names.split(',').map(str::to_owned).collect();
    let infos = names.iter().map(|name| file.describe(Some(name))).collect::<Result<Vec<_>, _>>()?;
    let thing = || file.path().display().to_string();
    require(axes.is_none(), || Refusal::new(thing(), "no --axes for arrays side by side", names.join(",")))?;
    let other = infos.iter().position(|info| info.shape != infos[0].shape || info.kind.is_complex());
    other.map_or(Ok(()), |other| {
        let expected = format!("real numbers of shape {:?}, as `{}`", infos[0].shape, names[0]);
        Err(Refusal::new(thing(), expected, format!("{:?} in `{}`", infos[other].shape, names[other])))
    })?;
    Ok(names)
}

/// One array of a field: its axes in the order of the data set, and the last snapshots of a longer time series.
pub(super) fn part(
    task: &Task,
    field: &Field,
    trained: &[usize],
    file: &Rc<ArrayFile>,
    variable: Option<String>,
    axes: Option<&str>,
) -> Result<Part, Error> {
    let side_by_side = side_by_side(file, variable.as_deref(), axes)?;
    let info = file.describe(side_by_side.first().map(String::as_str).or(variable.as_deref()))?;
    let complex = info.kind.is_complex();
    // A complex number has two channels.
    require(!complex || trained.last() == Some(&2), || {
        let shape = &info.shape[..info.shape.len() - 1];
        let thing = format!("`{}` of {}", field.name, file.path().display());
        Refusal::new(thing, "real numbers", format!("complex numbers of shape {shape:?}"))
            .advise("give their real part")
    })?;
    let (mut shape, mut order) = (info.shape.clone(), None);
    if !side_by_side.is_empty() {
        shape.push(side_by_side.len());
    }
    if let Some(axes) = axes {
        // The parts of complex numbers are the last axis of the array, which no letter names.
        let letters = if complex { format!("{axes}c") } else { axes.to_owned() };
        let found = import::order(&letters, &shape, &task.grid).map_err(|(expected, found)| {
            let thing = format!("{} with --axes {}={axes}", file.path().display(), field.name);
            Refusal::new(thing, expected, found)
        })?;
        let used = found.len() - axes.matches('1').count();
        shape = found[..used].iter().map(|&axis| info.shape[axis]).collect();
        order = Some(found);
    }
    if task.needs_positions() && field.name == POSITIONS {
        plain_positions(&mut shape, trained, task.input_channels() > 0);
    } else {
        match axes {
            Some(axes) => lettered_axes(&mut shape, field, axes),
            None => plain_channel(&mut shape, field, trained),
        }
    }
    let mut part = Part { file: Rc::clone(file), variable, side_by_side, order, shape, series: None };
    let axis = usize::from(part.samples(trained.len()).is_some());
    // Without letters for its axes, only an array on the grid of the training is surely a longer time series.
    let fits =
        part.shape.len() == trained.len() + axis && (axes.is_some() || part.shape.get(axis + 1..) == trained.get(1..));
    // Another input has as many snapshots as in training.
    let continued = task.time.past() > 0 && task.outputs.iter().any(|output| output.name == field.name);
    let past = field.snapshots.filter(|_| fits && continued);
    if let Some((past, snapshots)) = past.zip(part.shape.get_mut(axis)).filter(|(past, snapshots)| *past < **snapshots)
    {
        part.series = Some(std::mem::replace(snapshots, past));
    }
    Ok(part)
}
