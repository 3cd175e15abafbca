//! Predict: arrays in, the fields of a trained or imported model out; from mesh files to mesh files in `meshes`.

mod meshes;

pub use meshes::{mesh_sources, predict_meshes, predicted_mesh};

use crate::data::Samples;
use crate::data::formats::{self, Named};
use crate::error::{Error, Kind, Refusal, require};
use crate::experiment::Symmetries;
use crate::inference::{Pieces, PredictionInput, SampleFile, Source, check_partners};
use crate::run::model_folder::{DESCRIPTION, ModelFolder};
use crate::run::{self, Operator, Trained, forward_batch, pretrained};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An operator from a run, a checkpoint or a model folder.
#[derive(Clone, Debug)]
pub enum Model {
    /// A model from a training.
    Trained(Box<Trained>),
    /// A model with weights of the authors' code.
    Imported(Box<ModelFolder>),
}

impl Model {
    /// Opens a run folder, a checkpoint file, a model folder, or a pretrained model by its name.
    pub fn open(path: &Path) -> Result<Model, Error> {
        if ModelFolder::is_at(path) {
            return Ok(Model::Imported(Box::new(ModelFolder::read(path)?)));
        }
        if !path.exists()
            && let Some(pretrained) = pretrained::open(path, std::env::var_os(pretrained::FOLDER).map(PathBuf::from))
        {
            return Ok(Model::Trained(Box::new(pretrained?)));
        }
        require(path.is_file() || run::latest(path).is_some(), || {
            let expected = "a run folder, a checkpoint or a model folder with model.toml";
            let found = if path.is_dir() { "a folder without them" } else { "nothing" };
            Refusal::new(path.display().to_string(), expected, found).of(Kind::Missing)
        })?;
        Ok(Model::Trained(Box::new(Trained::open(path)?)))
    }

    /// The model with its parameters and its task.
    pub fn operator(&self) -> &Operator {
        match self {
            Model::Trained(trained) => &trained.operator,
            Model::Imported(folder) => &folder.operator,
        }
    }

    /// The symmetries of the problem that the model was trained on; those of an imported model are unknown.
    pub fn symmetries(&self) -> Result<Symmetries, Refusal> {
        match self {
            Model::Trained(trained) => Symmetries::of(&trained.experiment, &trained.operator.task, "--symmetries"),
            Model::Imported(_) => {
                Err(Refusal::new("--symmetries", "a run, which knows its problem", "imported weights"))
            }
        }
    }

    /// A warning for the user about the files of the model.
    pub fn note(&self) -> Option<&str> {
        match self {
            Model::Trained(trained) => trained.note.as_deref(),
            Model::Imported(folder) => folder.note.as_deref(),
        }
    }

    /// Refuses an output that would overwrite the model's own files.
    pub fn protect(&self, output: &Path) -> Result<(), Error> {
        match self {
            Model::Trained(trained) => trained.protect(output),
            Model::Imported(_) => {
                let place = |path: &Path| std::path::absolute(path).ok()?.parent()?.canonicalize().ok();
                let inside = place(output).is_some_and(|folder| folder.join(DESCRIPTION).is_file());
                require(!inside, || {
                    Refusal::new(
                        output.display().to_string(),
                        "a file outside of model folders",
                        "a file inside a model folder",
                    )
                    .advise("choose another name")
                    .of(Kind::Conflict)
                })?;
                Ok(())
            }
        }
    }
}

/// Predictions to make.
#[derive(Clone, Debug)]
pub struct PredictRequest {
    /// A run folder, a checkpoint file or a model folder.
    pub model: PathBuf,
    /// Where the input fields are.
    pub inputs: Vec<Source>,
    /// File to write: .npy, .npz, .mat or .safetensors. A `*` in its name stands for the name of an input file without its
    /// ending: then each input file has an output file of its own.
    pub output: PathBuf,
    /// Snapshots to continue a time series by; as many as in training unless given.
    pub snapshots: Option<usize>,
    /// Whether a prediction is the mean over the symmetries of the problem.
    pub symmetries: bool,
    /// Bytes of memory that a prediction may take, whose points then come in pieces; `None` predicts all points at once.
    pub memory: Option<u64>,
    /// Where to compute.
    pub device: Device,
}

/// Predictions that were written.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// The output fields.
    pub arrays: Vec<Named>,
    /// The files.
    pub files: Vec<PathBuf>,
    /// Number of samples.
    pub samples: usize,
    /// How the inputs were understood.
    pub notes: Vec<String>,
    /// How long the predictions took, compiling included.
    pub elapsed: Duration,
    /// What the user should know about the model.
    pub note: Option<String>,
    /// What the user should know where the grid is not that of the training.
    pub note_on_grid: Option<String>,
}

/// Reads arrays, predicts, writes the output fields.
pub fn predict(request: &PredictRequest) -> Result<Predicted, Error> {
    predict_to(request, &|file, _, arrays| Ok(formats::write(file, arrays)?))
}

/// Writes the output fields of the samples of an input file.
type WriteFields<'a> = &'a dyn Fn(&Path, &SampleFile, &[Named]) -> Result<(), Error>;

fn predict_to(request: &PredictRequest, write: WriteFields) -> Result<Predicted, Error> {
    let PredictRequest { model, inputs, output, snapshots, symmetries, memory, device } = request;
    require(memory.is_none() || !symmetries, || Refusal::new("--memory", "no --symmetries beside it", "both"))?;
    require(*snapshots != Some(0), || Refusal::new("--frames", "at least 1", "0"))?;
    require_new(output, inputs)?;
    let model = Model::open(model)?;
    model.protect(output)?;
    let operator = model.operator();
    let group = symmetries.then(|| model.symmetries()).transpose()?;
    let planned = match PredictionInput::plan(&operator.task, inputs, *snapshots) {
        Err(error) => match clouds(&operator.task, inputs, output) {
            Some(clouds) => return predict_clouds(request, &model, &clouds, write),
            None => return Err(error),
        },
        planned => planned?,
    };
    let files = output_files(output, &planned.samples)?;
    for file in &files {
        require_new(file, inputs)?;
        model.protect(file)?;
    }
    let notes = planned.notes();
    let measure = "`lamo evaluate --data DIR` measures it on samples of that grid";
    let note_on_grid = operator.note_on_grid(planned.grid).map(|note| format!("{note}, and {measure}"));
    let started = Instant::now();
    let batch = forward_batch(operator.batch, *device).min(planned.count);
    let predictor = match memory {
        Some(_) => operator.check_grid(planned.grid).map(|()| None).map_err(Error::from),
        None => operator.predictor(*device, planned.grid, batch).map(Some), // refuses the grid before values are read
    };
    let predictor = predictor
        .map_err(|error| if planned.grid == operator.task.grid { error } else { planned.blame(&error).into() })?;
    let compiled_in = started.elapsed();
    let given = planned.read()?;
    let started = Instant::now();
    let prediction = match (predictor, &group) {
        (Some(mut predictor), Some(group)) => predictor.predict_mean(&given.samples, group)?,
        (Some(mut predictor), None) => predictor.predict(&given.samples)?,
        (None, _) => in_pieces(operator, &given.samples, memory.unwrap_or(u64::MAX), *device)?,
    };
    let elapsed = compiled_in + started.elapsed();
    make_folders(&files)?;
    let names: Vec<_> = inputs.iter().map(|input| input.array.path.display().to_string()).collect();
    let arrays = given.output_fields(&operator.task, &prediction);
    let arrays = arrays.map_err(|refusal| refusal.within(names.join(", ")))?;
    match &files[..] {
        [only] => write(only, &given.files[0], &arrays)?,
        files => {
            let mut first = 0;
            for (file, input) in files.iter().zip(&given.files) {
                let (samples, count) = (input.samples, input.samples.unwrap_or(1));
                let part: Vec<Named> = arrays.iter().map(|array| rows(array, first..first + count, samples)).collect();
                write(file, input, &part)?;
                first += count;
            }
        }
    }
    let note = model.note().map(str::to_owned);
    Ok(Predicted { arrays, files, samples: given.samples.count, notes, elapsed, note, note_on_grid })
}

/// A prediction that takes about so many bytes.
fn in_pieces(operator: &Operator, samples: &Samples, memory: u64, device: Device) -> Result<Vec<f32>, Error> {
    let pieces = Pieces::within(memory, operator, samples, device)?;
    operator.predict_in_pieces(samples, &pieces, device)
}

/// The inputs of each cloud where every field has a file for each of several clouds, and each cloud an output file of its own.
fn clouds(task: &Task, inputs: &[Source], output: &Path) -> Option<Vec<Vec<Source>>> {
    let several = output.file_name().is_some_and(|name| name.to_string_lossy().contains('*'));
    let mut fields: Vec<(&Option<String>, Vec<&Source>)> = Vec::new();
    for input in inputs {
        match fields.iter_mut().find(|(field, _)| **field == input.field) {
            Some((_, sources)) => sources.push(input),
            None => fields.push((&input.field, vec![input])),
        }
    }
    let count = fields.first().map_or(0, |(_, sources)| sources.len());
    let fits = count > 1 && several && matches!(task.grid, Grid::Cloud { .. });
    let fits = fits && fields.iter().all(|(_, sources)| sources.len() == count);
    let cloud = |number: usize| fields.iter().map(|(_, sources)| sources[number].clone()).collect();
    fits.then(|| (0..count).map(cloud).collect())
}

/// Predicts clouds of different sizes, each from its own files to its own file.
fn predict_clouds(
    request: &PredictRequest,
    model: &Model,
    clouds: &[Vec<Source>],
    write: WriteFields,
) -> Result<Predicted, Error> {
    let PredictRequest { output, snapshots, symmetries, device, inputs, .. } = request;
    let operator = model.operator();
    require(!symmetries, || Refusal::new("--symmetries", "samples of equal size", "different sizes"))?;
    let fields = clouds.first().map_or(0, Vec::len);
    let names = |field: usize| clouds.iter().map(|cloud| cloud[field].array.title()).collect();
    check_partners((0..fields).map(names))?;
    let read = |sources: &Vec<Source>| PredictionInput::read(&operator.task, sources, *snapshots);
    let given: Vec<PredictionInput> = clouds.iter().map(read).collect::<Result<_, _>>()?;
    let sample_files: Vec<SampleFile> = given.iter().flat_map(|given| given.files.clone()).collect();
    let files = output_files(output, &sample_files)?;
    require(files.len() == given.len(), || {
        Refusal::new("--input", "one sample in each file", format!("{} files", sample_files.len()))
    })?;
    for file in &files {
        require_new(file, inputs)?;
        model.protect(file)?;
    }
    let started = Instant::now();
    let sets: Vec<Samples> = given.iter().map(|given| given.samples.clone()).collect();
    let Some(samples) = Samples::joined(&sets) else { return Err(Refusal::said("there is no input").into()) };
    let prediction = match request.memory {
        Some(memory) => in_pieces(operator, &samples, memory, *device)?,
        None => operator.predict(&samples, *device)?,
    };
    let elapsed = started.elapsed();
    make_folders(&files)?;
    let (mut first, mut arrays) = (0, Vec::new());
    for ((given, file), input) in given.iter().zip(&files).zip(&sample_files) {
        let length: usize = given.samples.total_points() * samples.times * samples.outputs;
        let fields = given.output_fields(&operator.task, &prediction[first..first + length]);
        let fields = fields.map_err(|refusal| refusal.within(file.display()))?;
        write(file, input, &fields)?;
        arrays = fields;
        first += length;
    }
    let note = model.note().map(str::to_owned);
    Ok(Predicted { arrays, files, samples: samples.count, notes: Vec::new(), elapsed, note, note_on_grid: None })
}

/// Makes the folders of files that are about to be written.
fn make_folders(files: &[PathBuf]) -> Result<(), Error> {
    for folder in files.iter().filter_map(|file| file.parent()).filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|reason| Error::writing(folder, reason))?;
    }
    Ok(())
}

/// Refuses to overwrite an input.
fn require_new(output: &Path, inputs: &[Source]) -> Result<(), Refusal> {
    let place = |path: &Path| path.canonicalize().ok();
    let same = |input: &Source| place(output).is_some_and(|output| place(&input.array.path) == Some(output));
    require(!inputs.iter().any(same), || {
        Refusal::new(format!("--output {}", output.display()), "another file than --input", "the same")
            .of(Kind::Conflict)
    })
}

/// The files to write: one, or one for each input file where the name has a `*`.
fn output_files(output: &Path, inputs: &[SampleFile]) -> Result<Vec<PathBuf>, Refusal> {
    let name = output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !name.contains('*') {
        return Ok(vec![output.to_owned()]);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for input in inputs {
        let stem = input.path.file_stem().unwrap_or_default().to_string_lossy();
        let file = output.with_file_name(name.replace('*', &stem));
        require(!files.contains(&file), || {
            let thing = format!("--output {}", output.display());
            Refusal::new(thing, "input files of different names", format!("`{stem}` twice")).of(Kind::Conflict)
        })?;
        files.push(file);
    }
    Ok(files)
}

/// Some samples of an array; without an axis for samples where there are `None`.
fn rows(array: &Named, samples: Range<usize>, axis: Option<usize>) -> Named {
    let shape = array.shape.get(1..).unwrap_or_default();
    let length: usize = shape.iter().product();
    let shape = axis.into_iter().chain(shape.iter().copied()).collect();
    let values = array.values[samples.start * length..samples.end * length].to_vec();
    Named { name: array.name.clone(), shape, values }
}
