//! From files of arrays to a file of predictions: fields shaped as in a data set, one sample or several.
//!
//! The files hold the input fields by name, and the positions where the task has no lattice. If one array is enough, it
//! may have any name. Several files of the same field are samples one after another. The grid may differ from the one
//! trained on, if the model allows it. Shapes are compared before any value is read: a small packed file may promise more
//! values than memory holds.

mod part;
mod partners;

pub(crate) use partners::check_partners;

use part::{Part, part};

use crate::data::Samples;
use crate::data::formats::{self, ArrayFile, Named};
use crate::data::import::{self, ArrayName};
use crate::error::{Error, Kind, Refusal, counted, require};
use crate::files::memory;
use crate::task::{Field, POSITIONS, Spread, Task};
use lamo_geometry::Grid;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Where the arrays of a prediction are: `FILE`, `FILE:VARIABLE`, or `NAME=FILE:VARIABLE` for the field called NAME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The field, where it is named.
    pub field: Option<String>,
    /// The file, and which of its arrays.
    pub array: ArrayName,
    /// A letter for each axis of the array, as in an import; without it, they are those of the data set.
    pub axes: Option<String>,
}

impl Source {
    /// Parses an argument. A text that names an existing file is taken as that file.
    pub fn parse(text: &str) -> Source {
        let name = |field: &str| field.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter));
        match text.split_once('=') {
            Some((field, array)) if name(field) && !field.is_empty() && !Path::new(text).exists() => {
                Source { field: Some(field.to_owned()), array: ArrayName::parse(array), axes: None }
            }
            _ => Source { field: None, array: ArrayName::parse(text), axes: None },
        }
    }

    /// The same, once for each file of a pattern such as `NAME=case_*.npy`, in the order of their names.
    pub fn parse_all(text: &str) -> Result<Vec<Source>, Error> {
        let pattern = Source::parse(text);
        let files = import::expand(&pattern.array)?.into_iter();
        Ok(files.map(|array| Source { array, ..pattern.clone() }).collect())
    }
}

/// Samples read from files, without targets.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictionInput {
    /// The samples, with the number of times to predict.
    pub samples: Samples,
    /// Whether the files hold one sample without an axis for samples.
    pub single: bool,
    /// The files one after another, and how many samples each holds.
    pub files: Vec<SampleFile>,
}

/// A file of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleFile {
    /// The file.
    pub path: PathBuf,
    /// Its samples; `None` where it holds one without an axis for samples.
    pub samples: Option<usize>,
}

/// A field and its arrays, which hold samples one after another.
#[derive(Debug)]
struct Given {
    field: Field,
    /// Shape of one sample on the training grid.
    trained: Vec<usize>,
    /// At least one.
    parts: Vec<Part>,
}

impl Given {
    /// Number of samples, unless there is one array without an axis for samples.
    fn samples(&self) -> Option<usize> {
        let axes = self.trained.len();
        match &self.parts[..] {
            [only] => only.samples(axes),
            parts => Some(parts.iter().map(|part| part.samples(axes).unwrap_or(1)).sum()),
        }
    }

    /// Shape of one sample of the first array.
    fn sample(&self) -> &[usize] {
        self.parts[0].sample(self.trained.len())
    }

    fn refuse(&self, expected: impl Into<String>) -> Refusal {
        self.refuse_part(&self.parts[0], expected)
    }

    fn refuse_part(&self, part: &Part, expected: impl Into<String>) -> Refusal {
        let thing = format!("array `{}`", self.field.name);
        let thing = if self.parts.len() > 1 { format!("{thing} of {}", part.file.path().display()) } else { thing };
        let cut = part.series.map_or_else(String::new, |series| format!(", the last of {series} snapshots"));
        Refusal::new(thing, expected, format!("shape {:?}{cut}", part.shape))
    }

    /// Letters that fit an array whose points come before its snapshots or samples, as MATLAB writes them; else `LETTERS`.
    fn letters(&self, trained: Grid) -> String {
        let points = match trained {
            Grid::Plane { .. } => "xy",
            Grid::Volume { .. } => "xyz",
            Grid::Line { .. } | Grid::Cloud { .. } => "p",
        };
        let (part, series) = (&self.parts[0], self.field.snapshots.is_some());
        let inner = self.trained.get(usize::from(series)..).unwrap_or_default();
        let (places, channels) = inner.split_at(points.len().min(inner.len()));
        let complex = part.file.describe(part.variable.as_deref()).is_ok_and(|info| info.kind.is_complex());
        let c = if channels.is_empty() || complex { "" } else { "c" };
        let found = match (series, part.shape.len().checked_sub(self.trained.len())) {
            (true, Some(0)) => format!("{points}t{c}"),
            (true, Some(1)) => format!("{points}t{c}n"),
            (false, Some(1)) => format!("{points}{c}n"),
            _ => return "LETTERS".to_owned(),
        };
        let after = points.len() + usize::from(series);
        let fits = part.shape.starts_with(places) && part.shape.get(after..).unwrap_or_default().starts_with(channels);
        if fits { found } else { "LETTERS".to_owned() }
    }

    /// The grid of the array. Fields without a value at every point fit any grid.
    fn grid(&self, trained: Grid) -> Result<Grid, Refusal> {
        let several = matches!(trained, Grid::Plane { .. } | Grid::Volume { .. });
        let as_trained = || {
            let expected = format!("samples of shape {:?}, on this or another grid", self.trained);
            let (name, letters) = (&self.field.name, self.letters(trained));
            self.refuse(expected)
                .advise(format!("bring it into that shape, or name its axes with --axes {name}={letters}"))
        };
        let flattened = || self.refuse(format!("samples of shape {:?}", self.trained)).advise("reshape it");
        let shape = &self.parts[0].shape;
        let (axes, found) = (self.trained.len(), shape.len());
        let samples = self.parts[0].samples(axes);
        require(axes <= found || !several || !shape.contains(&trained.points()), flattened)?;
        require(found == axes || found == axes + 1, as_trained)?;
        require(samples != Some(0), || self.refuse("at least one sample"))?;
        require(!shape.contains(&0), as_trained)?; // else the points may be more than a number can count
        let grid = match (trained, &self.sample()[usize::from(self.field.snapshots.is_some())..]) {
            (Grid::Plane { .. }, [rows, columns, ..]) => Grid::Plane { rows: *rows, columns: *columns },
            (Grid::Volume { .. }, [rows, columns, layers, ..]) => {
                Grid::Volume { rows: *rows, columns: *columns, layers: *layers }
            }
            (Grid::Line { .. }, [points, ..]) => Grid::Line { points: *points },
            (Grid::Cloud { .. }, [points, ..]) => Grid::Cloud { points: *points },
            _ => trained,
        };
        let flat = |grid: Grid| match grid {
            // With an axis for samples, a square sample is a finer grid even if its side is the number of training points.
            Grid::Plane { rows, columns } if rows == columns && samples.is_some() => false,
            Grid::Plane { rows, columns } => [rows, columns].contains(&trained.points()),
            Grid::Volume { rows, columns, layers } => [rows, columns, layers].contains(&trained.points()),
            Grid::Line { .. } | Grid::Cloud { .. } => false,
        };
        require(grid == trained || !flat(grid), flattened)?;
        require(self.sample() == self.field.shape(grid), as_trained)?;
        Ok(grid)
    }

    /// Its files, for sentences and outputs.
    fn files(&self) -> Vec<SampleFile> {
        let axes = self.trained.len();
        let file = |part: &Part| SampleFile { path: part.file.path().to_owned(), samples: part.samples(axes) };
        self.parts.iter().map(file).collect()
    }

    fn read(&self) -> Result<Vec<f32>, Error> {
        let mut values = Vec::new();
        for part in &self.parts {
            let read = self.read_part(part)?;
            if values.is_empty() {
                values = read;
            } else {
                values.extend_from_slice(&read);
            }
        }
        Ok(values)
    }

    fn read_part(&self, part: &Part) -> Result<Vec<f32>, Error> {
        let array = part.read()?;
        if let Some(value) = array.beyond {
            let thing = format!("{}: array `{}`", part.file.path().display(), self.field.name);
            let refusal = Refusal::new(thing, "values up to 3.4e38, as float32 has", format!("{value:e}"));
            return Err(refusal.advise("give it in another unit").into());
        }
        let (samples, sample) = (part.samples(self.trained.len()).unwrap_or(1), part.sample(self.trained.len()));
        let used: usize = sample.iter().product();
        if let Some(place) = array.values.iter().position(|value| !value.is_finite()) {
            let each = (array.values.len() / samples.max(1)).max(1);
            let thing = format!("{}: array `{}`", part.file.path().display(), self.field.name);
            let found = format!("{} at index {} of sample {}", array.values[place], place % each, place / each);
            return Err(Refusal::new(thing, "finite numbers", found)
                .advise("correct it, or leave the sample out")
                .into());
        }
        let whole = part.series.map_or(used, |series| used / sample[0] * series);
        require(array.values.len() == samples * whole, || {
            Refusal::about(part.file.path().display().to_string(), "it changed while it was read").of(Kind::Conflict)
        })?;
        if part.series.is_none() {
            return Ok(array.values);
        }
        Ok(array.values.chunks_exact(whole).flat_map(|sample| &sample[whole - used..]).copied().collect())
    }
}

/// The arrays of a prediction, found in their files and checked by their shapes. No value has been read.
#[derive(Debug)]
pub struct PlannedInput<'a> {
    task: &'a Task,
    arrays: Vec<Given>,
    /// The files, for a sentence.
    files: String,
    /// The grid of the arrays, which may differ from the one trained on.
    pub grid: Grid,
    /// Number of samples.
    pub count: usize,
    single: bool,
    /// Number of times that are predicted.
    pub times: usize,
    /// Steps for which the fields that drive a roll-out are given.
    steps: usize,
    /// The files of the samples.
    pub samples: Vec<SampleFile>,
}

impl PredictionInput {
    /// Reads the inputs of a task. A roll-out predicts `snapshots` of them, by default as many as in training.
    pub fn read(task: &Task, sources: &[Source], snapshots: Option<usize>) -> Result<PredictionInput, Error> {
        PredictionInput::plan(task, sources, snapshots)?.read()
    }

    /// Finds the inputs of a task and compares their shapes, which the headers of the files hold.
    pub fn plan<'a>(task: &'a Task, sources: &[Source], snapshots: Option<usize>) -> Result<PlannedInput<'a>, Error> {
        PlannedInput::found(task, find_arrays(task, sources)?, sources, snapshots)
    }

    /// The same for one npy or npz file that is open already, such as one in memory.
    pub fn plan_file(task: &Task, file: ArrayFile, snapshots: Option<usize>) -> Result<PlannedInput<'_>, Error> {
        let array = ArrayName { path: file.path().to_owned(), variable: None };
        let source = Source { field: None, array, axes: None };
        let fields = task.given_fields();
        let files = [(&source, Rc::new(file))];
        let arrays = fields.iter().map(|field| find_array(task, field, &fields, &files)).collect::<Result<_, _>>()?;
        PlannedInput::found(task, arrays, std::slice::from_ref(&source), snapshots)
    }

    /// The predictions `[count, times, points, outputs]` as arrays of the output fields; refused where they are not finite.
    pub fn output_fields(&self, task: &Task, prediction: &[f32]) -> Result<Vec<Named>, Refusal> {
        let Samples { count, grid, times, .. } = self.samples;
        let length = (times * grid.points() * task.output_channels()).max(1);
        let broken = prediction.chunks(length).position(|sample| sample.iter().any(|value| !value.is_finite()));
        require(broken.is_none(), || {
            let thing = format!("sample {}", broken.unwrap_or_default());
            Refusal::new(thing, "a prediction of finite numbers", "NaN or infinity")
                .advise("give inputs nearer to those of the training")
        })?;
        let fields = task.time.predicted_fields(&task.outputs, times, grid.points(), prediction);
        let named = fields.into_iter().map(|(field, values)| {
            let samples = (!self.single).then_some(count);
            let shape = samples.into_iter().chain(field.shape(grid)).collect();
            Named { name: field.name, shape, values }
        });
        Ok(named.collect())
    }
}

impl<'a> PlannedInput<'a> {
    fn found(
        task: &'a Task,
        arrays: Vec<Given>,
        sources: &[Source],
        snapshots: Option<usize>,
    ) -> Result<PlannedInput<'a>, Error> {
        let mut names: Vec<_> = sources.iter().map(|source| source.array.path.display().to_string()).collect();
        names.dedup();
        let more = names.len().saturating_sub(FILES_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let files = format!("{}{more}", names[..names.len().min(FILES_NAMED)].join(", "));
        let planned = PlannedInput::of(task, arrays, files.clone(), snapshots);
        planned.map_err(|refusal| refusal.within(files).into())
    }

    fn of(
        task: &'a Task,
        arrays: Vec<Given>,
        files: String,
        snapshots: Option<usize>,
    ) -> Result<PlannedInput<'a>, Refusal> {
        let grid = find_grid(task, &arrays)?;
        let leading = arrays.iter().find(|given| !is_position(task, given)).or(arrays.first());
        let leading = leading.ok_or_else(|| Refusal::said("the task has no input"))?;
        for given in &arrays {
            // Positions may be given once for all samples.
            let shared = is_position(task, given) && given.samples().is_none();
            require(shared || given.samples() == leading.samples(), || {
                let one = || "one sample without an axis for samples".to_owned();
                let expected = leading.samples().map_or_else(one, |count| counted(count, "sample"));
                given.refuse(format!("{expected} as in `{}`", leading.field.name))
            })?;
        }
        partners::check_files(leading, &arrays)?;
        let (single, count) = (leading.samples().is_none(), leading.samples().unwrap_or(1));
        let steps = driven_steps(task, &arrays)?;
        check_beginnings(&arrays, steps)?;
        let times = task.time.predicted_times(snapshots.or(steps))?;
        check_horizon(task, times, steps)?;
        let (samples, steps) = (leading.files(), steps.unwrap_or(1));
        Ok(PlannedInput { task, arrays, files, grid, count, single, times, steps, samples })
    }

    /// What the user should know about the arrays: time series of which only the last snapshots are used.
    pub fn notes(&self) -> Vec<String> {
        let series = self.arrays.iter().filter_map(|given| {
            let (field, past) = (&given.field.name, given.field.snapshots?);
            let series = given.parts.iter().find_map(|part| part.series)?;
            Some(format!("{field}: the prediction continues the last {past} of {series} snapshots"))
        });
        series.collect()
    }

    /// How many values are read, those of a series that are not used included.
    pub fn values(&self) -> u64 {
        let counts =
            self.arrays.iter().flat_map(|given| given.parts.iter().map(|part| part.count(given.trained.len())));
        counts.fold(0, u64::saturating_add)
    }

    /// Refuses arrays that do not fit into memory: their values, the samples made of them, and the positions.
    fn require_memory(&self) -> Result<(), Refusal> {
        let Task { space, .. } = self.task;
        let points = self.grid.points() as u64;
        let functions = self.task.given_channels(self.steps) as u64;
        let samples = points.saturating_mul((self.count as u64).saturating_mul(functions));
        let values = self.values().saturating_add(samples).saturating_add(points.saturating_mul(*space as u64));
        memory::require(values.saturating_mul(4)).map_err(|reason| {
            Refusal::about(self.files.as_str(), reason.to_string())
                .advise("give fewer samples at a time, or end other programs")
                .of(Kind::OutOfSpace)
        })
    }

    /// A failure that the grid of the arrays causes, with the names of their files.
    pub fn blame(&self, error: &Error) -> Refusal {
        Refusal::about(self.files.as_str(), error.to_string()).of(error.kind())
    }

    /// Reads the values.
    pub fn read(self) -> Result<PredictionInput, Error> {
        self.require_memory()?;
        let PlannedInput { task, arrays, files, grid, count, single, times, steps, samples: sample_files } = self;
        let (mut positions, mut fields, mut values) = (None, Vec::new(), Vec::new());
        for given in arrays {
            let read = given.read()?;
            if is_position(task, &given) {
                positions = Some(read);
            } else {
                fields.push(given.field);
                values.push(read);
            }
        }
        let within = |refusal: Refusal| Error::from(refusal.within(&files));
        let outputs = task.output_channels();
        let samples = Samples {
            count,
            grid,
            offsets: Vec::new(),
            space: task.space,
            positions: positions.map_or_else(|| task.lattice(grid), Ok).map_err(within)?,
            functions: task.given_channels(steps),
            inputs: task.time.arrange_given((&fields, &values), outputs, grid),
            times,
            outputs,
            targets: Vec::new(),
        };
        samples.check_for(task).map_err(within)?;
        Ok(PredictionInput { samples, single, files: sample_files })
    }
}

/// The steps for which the fields that drive a roll-out have snapshots; `None` where none does.
fn driven_steps(task: &Task, arrays: &[Given]) -> Result<Option<usize>, Refusal> {
    let past = task.time.past();
    let drives =
        |given: &&Given| task.inputs.iter().any(|field| field.name == given.field.name && task.is_driven_by(field));
    let mut found: Option<(&Given, usize)> = None;
    for given in arrays.iter().filter(drives) {
        let count = given.field.length();
        require(count > past, || {
            let expected = format!(
                "at least {}: {past} before the prediction and one for each step",
                counted(past + 1, "snapshot")
            );
            given.refuse(expected)
        })?;
        if let Some((other, steps)) = found {
            require(count - past == steps, || {
                given.refuse(format!("{} as in `{}`", counted(past + steps, "snapshot"), other.field.name))
            })?;
        }
        found = Some((given, count - past));
    }
    Ok(found.map(|(_, steps)| steps))
}

/// Refuses a series of which only the last snapshots are continued beside a field that drives them: where the two begin at the same
/// time, the first snapshots of the other would be those of another time.
fn check_beginnings(arrays: &[Given], steps: Option<usize>) -> Result<(), Refusal> {
    let longer = arrays.iter().find_map(|given| Some((given, given.parts.iter().find_map(|part| part.series)?)));
    let (Some((given, series)), Some(_)) = (longer, steps) else { return Ok(()) };
    let (name, past) = (&given.field.name, given.field.length());
    let expected = format!("{past} snapshots, which the other inputs begin with, too");
    Err(Refusal::new(format!("array `{name}`"), expected, format!("{series} snapshots"))
        .advise("give its last snapshots, and the other inputs from the same time on"))
}

/// Refuses more steps of a roll-out than an input with a snapshot for each of them has.
fn check_horizon(task: &Task, times: usize, steps: Option<usize>) -> Result<(), Refusal> {
    let most = steps.unwrap_or(task.time.count());
    let series = |field: &&Field| field.snapshots == Some(task.time.past() + task.time.count());
    let (Some(input), true) = (task.inputs.iter().find(series), task.time.past() > 0 && times > most) else {
        return Ok(());
    };
    let expected = format!("at most {most}, because `{}` has its snapshots for no more", input.name);
    let refusal = Refusal::new("the snapshots to predict", expected, times.to_string());
    Err(match steps {
        Some(_) => refusal.advise(format!("give `{}` with {} snapshots", input.name, task.time.past() + times)),
        None => refusal.advise(
            "train the model again: this one was trained by an earlier version, which shows all of them to each step",
        ),
    })
}

fn is_position(task: &Task, given: &Given) -> bool {
    task.needs_positions() && given.field.name == POSITIONS
}

/// Files that a sentence names at most.
const FILES_NAMED: usize = 4;

/// The arrays that a task needs, positions first.
fn find_arrays(task: &Task, sources: &[Source]) -> Result<Vec<Given>, Error> {
    let fields = task.given_fields();
    for source in sources {
        let known = source.field.as_ref().is_none_or(|name| fields.iter().any(|field| field.name == *name));
        require(known, || {
            let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
            let found = source.field.clone().unwrap_or_default();
            Refusal::new("--input", format!("one of the fields {}", names.join(", ")), found)
        })?;
    }
    let mut files: Vec<(&Source, Rc<ArrayFile>)> = Vec::new();
    for source in sources {
        let known = files.iter().find(|(_, file)| file.path() == source.array.path);
        let file =
            known.map_or_else(|| ArrayFile::open(&source.array.path).map(Rc::new), |(_, file)| Ok(file.clone()))?;
        files.push((source, file));
    }
    fields.iter().map(|field| find_array(task, field, &fields, &files)).collect()
}

/// Finds one field: in the sources that name it, else in all files with an array of its name, else in files with one
/// array each.
fn find_array(
    task: &Task,
    field: &Field,
    fields: &[Field],
    sources: &[(&Source, Rc<ArrayFile>)],
) -> Result<Given, Error> {
    let mut found: Vec<String> = sources.iter().filter_map(|(source, _)| source.field.clone()).collect();
    let named = sources.iter().filter(|(source, _)| source.field.as_deref() == Some(&field.name));
    let mut chosen: Vec<_> =
        named.map(|(source, file)| (file, source.array.variable.clone(), source.axes.as_deref())).collect();
    let by_name = !chosen.is_empty();
    let is_output = |name: &str| task.outputs.iter().any(|output| output.name == name);
    for (source, file) in sources.iter().filter(|(source, _)| source.field.is_none()) {
        let known = file.list();
        if known.is_empty() {
            file.describe(None)?; // its error names the type of the array
        }
        let alone = fields.len() == 1;
        let variable = match &source.array.variable {
            Some(variable) if alone || *variable == field.name => Some(Some(variable.clone())),
            Some(_) => None,
            None if known.iter().any(|array| array.name == field.name) => Some(Some(field.name.clone())),
            None if alone && known.len() == 1 && !is_output(&known[0].name) => Some(None),
            None => None,
        };
        found.extend(known.into_iter().map(|array| array.name));
        let variable = variable.filter(|_| !by_name);
        chosen.extend(variable.map(|variable| (file, variable, source.axes.as_deref())));
    }
    if chosen.is_empty() {
        let names: Vec<_> = fields.iter().map(|field| format!("`{}`", field.name)).collect();
        let files: Vec<_> = sources.iter().map(|(_, file)| file.path().display().to_string()).collect();
        let refusal =
            Refusal::new(files.join(", "), format!("arrays named {}", names.join(", ")), formats::listed(&found));
        let advice = format!("save the file with these names, or say --input {}=FILE:VARIABLE", field.name);
        return Err(refusal.advise(advice).into());
    }
    let trained = field.shape(task.grid);
    let parts = chosen.into_iter().map(|(file, variable, axes)| part(task, field, &trained, file, variable, axes));
    let parts = parts.collect::<Result<Vec<Part>, _>>()?;
    let driven = task.is_driven_by(field).then(|| parts[0].snapshots(trained.len())).flatten();
    Ok(Given { field: Field { snapshots: driven.or(field.snapshots), ..field.clone() }, parts, trained })
}

/// The grid of the arrays: that of the first array with a value at every point, else the training grid.
fn find_grid(task: &Task, arrays: &[Given]) -> Result<Grid, Refusal> {
    let spread = arrays.iter().find(|given| given.field.spread == Spread::Points);
    let grid = spread.map_or(Ok(task.grid), |given| given.grid(task.grid))?;
    for given in arrays {
        let (expected, axes) = (given.field.shape(grid), given.trained.len());
        for part in &given.parts {
            require(part.samples(axes) != Some(0), || given.refuse_part(part, "at least one sample"))?;
            require(part.sample(axes) == expected, || {
                let advice =
                    format!("bring it into that shape, or name its axes with --axes {}=LETTERS", given.field.name);
                given.refuse_part(part, format!("samples of shape {expected:?}")).advise(advice)
            })?;
        }
    }
    Ok(grid)
}
