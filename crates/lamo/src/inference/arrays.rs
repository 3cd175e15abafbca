//! From files of arrays to a file of predictions: fields shaped as in a data set, one sample or several.
//!
//! The files hold the input fields by name, and the positions where the task has no lattice. If one array is enough, it
//! may have any name. The grid may differ from the one trained on, if the model allows it. Shapes are compared before any
//! value is read: a small packed file may promise more values than memory holds.

use crate::data::Samples;
use crate::data::formats::{self, ArrayFile, Named};
use crate::data::import::ArrayName;
use crate::error::{Error, Kind, Refusal, counted, require};
use crate::files::memory;
use crate::task::{Field, Spread, Task};
use lamo_geometry::Grid;
use std::rc::Rc;

/// Where the arrays of a prediction are: `FILE`, `FILE:VARIABLE`, or `NAME=FILE:VARIABLE` for the field called NAME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The field, where it is named.
    pub field: Option<String>,
    /// The file, and which of its arrays.
    pub array: ArrayName,
}

impl Source {
    /// Parses an argument. A text that names an existing file is taken as that file.
    pub fn parse(text: &str) -> Source {
        let name = |field: &str| field.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter));
        match text.split_once('=') {
            Some((field, array)) if name(field) && !field.is_empty() && !std::path::Path::new(text).exists() => {
                Source { field: Some(field.to_owned()), array: ArrayName::parse(array) }
            }
            _ => Source { field: None, array: ArrayName::parse(text) },
        }
    }
}

/// Samples read from files, without targets.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictionInput {
    /// The samples, with the number of times to predict.
    pub samples: Samples,
    /// Whether the files hold one sample without an axis for samples.
    pub single: bool,
}

/// One array and its field.
#[derive(Debug)]
struct Given {
    field: Field,
    /// Shape of one sample on the training grid.
    trained: Vec<usize>,
    shape: Vec<usize>,
    file: Rc<ArrayFile>,
    variable: Option<String>,
}

impl Given {
    /// Number of samples, if the array has an axis for samples.
    fn samples(&self) -> Option<usize> {
        (self.shape.len() > self.trained.len()).then(|| self.shape[0])
    }

    /// Shape of one sample.
    fn sample(&self) -> &[usize] {
        &self.shape[usize::from(self.samples().is_some())..]
    }

    fn refuse(&self, expected: impl Into<String>) -> Refusal {
        Refusal::new(format!("array `{}`", self.field.name), expected, format!("shape {:?}", self.shape))
    }

    /// The grid of the array. Fields without a value at every point fit any grid.
    fn grid(&self, trained: Grid) -> Result<Grid, Refusal> {
        let plane = matches!(trained, Grid::Plane { .. });
        let as_trained = || {
            let expected = format!("samples of shape {:?}, on this or another grid", self.trained);
            self.refuse(expected).advise("bring it into that shape")
        };
        let flattened = || self.refuse(format!("samples of shape {:?}", self.trained)).advise("reshape it");
        let (axes, found) = (self.trained.len(), self.shape.len());
        require(axes <= found || !plane || !self.shape.contains(&trained.points()), flattened)?;
        require(found == axes || found == axes + 1, as_trained)?;
        require(self.samples() != Some(0), || self.refuse("at least one sample"))?;
        require(!self.shape.contains(&0), as_trained)?; // else the points may be more than a number can count
        let grid = match (trained, &self.sample()[usize::from(self.field.snapshots.is_some())..]) {
            (Grid::Plane { .. }, [rows, columns, ..]) => Grid::Plane { rows: *rows, columns: *columns },
            (Grid::Line { .. }, [points, ..]) => Grid::Line { points: *points },
            (Grid::Cloud { .. }, [points, ..]) => Grid::Cloud { points: *points },
            _ => trained,
        };
        let flat = |grid: Grid| match grid {
            // With an axis for samples, a square sample is a finer grid even if its side is the number of training points.
            Grid::Plane { rows, columns } if rows == columns && self.samples().is_some() => false,
            Grid::Plane { rows, columns } => [rows, columns].contains(&trained.points()),
            Grid::Line { .. } | Grid::Cloud { .. } => false,
        };
        require(grid == trained || !flat(grid), flattened)?;
        require(self.sample() == self.field.shape(grid), as_trained)?;
        Ok(grid)
    }

    /// How many values it has.
    fn count(&self) -> u64 {
        self.shape.iter().fold(1, |count: u64, &extent| count.saturating_mul(extent as u64))
    }

    fn read(&self) -> Result<Vec<f32>, Error> {
        let array = self.file.read_single(self.variable.as_deref(), None, None, &mut |_| {})?;
        if let Some(value) = array.beyond {
            let thing = format!("{}: array `{}`", self.file.path().display(), self.field.name);
            let refusal = Refusal::new(thing, "values up to 3.4e38, as float32 has", format!("{value:e}"));
            return Err(refusal.advise("give it in another unit").into());
        }
        require(array.shape == self.shape, || {
            Refusal::about(self.file.path().display().to_string(), "it changed while it was read").of(Kind::Conflict)
        })?;
        Ok(array.values)
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
    times: usize,
}

impl PredictionInput {
    /// Reads the inputs of a task. A roll-out predicts `snapshots` of them, by default as many as in training.
    pub fn read(task: &Task, sources: &[Source], snapshots: Option<usize>) -> Result<PredictionInput, Error> {
        PredictionInput::plan(task, sources, snapshots)?.read()
    }

    /// Finds the inputs of a task and compares their shapes, which the headers of the files hold.
    pub fn plan<'a>(task: &'a Task, sources: &[Source], snapshots: Option<usize>) -> Result<PlannedInput<'a>, Error> {
        let arrays = find_arrays(task, sources)?;
        let names: Vec<_> = sources.iter().map(|source| source.array.path.display().to_string()).collect();
        let files = names.join(", ");
        let planned = PlannedInput::of(task, arrays, files.clone(), snapshots);
        planned.map_err(|refusal| refusal.within(files).into())
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
        let (single, count) = (leading.samples().is_none(), leading.samples().unwrap_or(1));
        let times = task.time.predicted_times(snapshots)?;
        Ok(PlannedInput { task, arrays, files, grid, count, single, times })
    }

    /// Refuses arrays that do not fit into memory: their values, the samples made of them, and the positions.
    fn require_memory(&self) -> Result<(), Refusal> {
        let Task { space, .. } = self.task;
        let points = self.grid.points() as u64;
        let samples = points.saturating_mul((self.count as u64).saturating_mul(self.task.input_channels() as u64));
        let arrays = self.arrays.iter().map(Given::count).fold(0, u64::saturating_add);
        let values = arrays.saturating_add(samples).saturating_add(points.saturating_mul(*space as u64));
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
        let PlannedInput { task, arrays, files, grid, count, single, times } = self;
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
            space: task.space,
            positions: positions.map_or_else(|| task.lattice(grid), Ok).map_err(within)?,
            functions: task.input_channels(),
            inputs: task.time.arrange_given((&fields, &values), outputs, grid),
            times,
            outputs,
            targets: Vec::new(),
        };
        samples.check_for(task).map_err(within)?;
        Ok(PredictionInput { samples, single })
    }
}

fn is_position(task: &Task, given: &Given) -> bool {
    task.needs_positions() && given.field.name == POSITIONS
}

/// Name of the positions in a file.
const POSITIONS: &str = "positions";

/// The arrays that a task needs, positions first.
fn find_arrays(task: &Task, sources: &[Source]) -> Result<Vec<Given>, Error> {
    let positions = Field { channels: Some(task.space), ..Field::plain(POSITIONS, 1) };
    let positions = task.needs_positions().then_some(positions);
    let fields: Vec<Field> = positions.into_iter().chain(task.time.given_fields(&task.inputs, &task.outputs)).collect();
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

/// Finds one field: in the source that names it, else in the first file with an array of its name, else the only array.
fn find_array(
    task: &Task,
    field: &Field,
    fields: &[Field],
    sources: &[(&Source, Rc<ArrayFile>)],
) -> Result<Given, Error> {
    let named = sources.iter().find(|(source, _)| source.field.as_deref() == Some(&field.name));
    let unnamed = || sources.iter().filter(|(source, _)| source.field.is_none());
    let mut found: Vec<String> = sources.iter().filter_map(|(source, _)| source.field.clone()).collect();
    let mut chosen = named.map(|(source, file)| (file, source.array.variable.clone()));
    for (source, file) in unnamed() {
        let known = file.list();
        if known.is_empty() {
            file.describe(None)?; // its error names the type of the array
        }
        let alone = fields.len() == 1 && unnamed().count() == 1;
        let variable = match &source.array.variable {
            Some(variable) if alone || *variable == field.name => Some(Some(variable.clone())),
            Some(_) => None,
            None if known.iter().any(|array| array.name == field.name) => Some(Some(field.name.clone())),
            None if alone && known.len() == 1 => Some(None),
            None => None,
        };
        found.extend(known.into_iter().map(|array| array.name));
        chosen = chosen.or(variable.map(|variable| (file, variable)));
    }
    let Some((file, variable)) = chosen else {
        let names: Vec<_> = fields.iter().map(|field| format!("`{}`", field.name)).collect();
        let files: Vec<_> = sources.iter().map(|(_, file)| file.path().display().to_string()).collect();
        let refusal =
            Refusal::new(files.join(", "), format!("arrays named {}", names.join(", ")), formats::listed(&found));
        let advice = format!("save the file with these names, or say --input {}=FILE:VARIABLE", field.name);
        return Err(refusal.advise(advice).into());
    };
    let shape = file.describe(variable.as_deref())?.shape;
    Ok(Given { field: field.clone(), trained: field.shape(task.grid), shape, file: Rc::clone(file), variable })
}

/// The grid of the arrays: that of the first array with a value at every point, else the training grid.
fn find_grid(task: &Task, arrays: &[Given]) -> Result<Grid, Refusal> {
    let spread = arrays.iter().find(|given| given.field.spread == Spread::Points);
    let grid = spread.map_or(Ok(task.grid), |given| given.grid(task.grid))?;
    for given in arrays {
        let expected = given.field.shape(grid);
        require(given.samples() != Some(0), || given.refuse("at least one sample"))?;
        require(given.sample() == expected, || given.refuse(format!("samples of shape {expected:?}")))?;
    }
    Ok(grid)
}
