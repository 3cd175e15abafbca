//! Evaluate a run on its test samples and write a receipt; verify a receipt against its run.

mod imported;

use super::{Event, Session, dataset};
use crate::data::dataset::Split;
use crate::data::{Dataset, Samples};
use crate::error::{Error, Kind, Refusal, require};
use crate::experiment::{self, Experiment, Symmetries};
use crate::inference::evaluate::{Evaluation, Receipt, TrainingDevice};
use crate::run::model_folder::ModelFolder;
use crate::run::{self, Environment, Line, Provenance, Trained, pretrained};
use crate::task::{Field, Task};
use lamo_tensor::{Device, Precision, attempt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A run to evaluate.
#[derive(Clone, Debug)]
pub struct EvaluateRequest {
    /// Run folder, checkpoint file, or a model folder, which needs `data`.
    pub run: PathBuf,
    /// A data set to use in place of the run's data; its own test samples are evaluated, or those of the run where it holds the
    /// data of the run.
    pub data: Option<PathBuf>,
    /// Whether a prediction is the mean over the symmetries of the problem.
    pub symmetries: bool,
    /// Where to compute.
    pub device: Device,
}

/// A run with its predictions of the test samples.
#[derive(Debug)]
pub struct Evaluated {
    /// The model.
    pub trained: Trained,
    /// The data.
    pub dataset: Dataset,
    /// The test samples.
    pub test: Samples,
    /// `[count, times, points, outputs]` predictions in physical units.
    pub prediction: Vec<f32>,
    /// Number of training samples, if it is known.
    pub train_samples: Option<usize>,
    /// The numbers, with everything that is needed to verify them.
    pub receipt: Receipt,
    /// The epochs of the run; empty for a checkpoint file.
    pub history: Vec<Line>,
}

/// Predicts the test samples of a run and measures the errors. Data that are gone are made again. A warning says where the
/// model is not better than a predictor that learns nothing.
pub fn evaluate(request: &EvaluateRequest, session: &Session<'_>) -> Result<Evaluated, Error> {
    let evaluated = measure(request, None, session)?;
    if let Some(doubt) = doubt(&evaluated.receipt.evaluation) {
        (session.listener)(Event::Warning(&doubt));
    }
    Ok(evaluated)
}

/// A model with the test samples of its data.
pub(super) struct Opened {
    pub(super) trained: Trained,
    pub(super) experiment: Experiment,
    pub(super) dataset: Dataset,
    pub(super) split: Split,
    pub(super) environment: Environment,
    pub(super) test: Samples,
    /// Where a run was trained.
    pub(super) trained_with: Option<TrainingDevice>,
    /// Whether the data are those of the run, wherever they lie now.
    pub(super) own: bool,
}

/// A run folder or a checkpoint file; what does not exist may be the name of a pretrained model.
fn trained_at(path: &Path) -> Result<Trained, Error> {
    let named = if path.exists() {
        None
    } else {
        pretrained::open(path, std::env::var_os(pretrained::FOLDER).map(PathBuf::from))
    };
    named.unwrap_or_else(|| Trained::open(path))
}

/// Opens a run, a checkpoint, a model folder or a pretrained model, and its test samples or those of other data. Data that are
/// gone are made again.
pub(super) fn open(path: &Path, data: Option<&Path>, device: Device, session: &Session<'_>) -> Result<Opened, Error> {
    let own = data.map_or(Ok(true), |folder| are_of_run(path, folder))?;
    open_as((path, data), own, device, session)
}

/// Whether a folder holds the arrays that a run was trained on.
fn are_of_run(path: &Path, folder: &Path) -> Result<bool, Error> {
    let begun = path.join(run::ENVIRONMENT).is_file().then(|| run::environment(path)).transpose()?;
    let Some(begun) = begun.and_then(|begun| begun.data) else { return Ok(false) };
    Ok(Dataset::open(folder)
        .is_ok_and(|dataset| Provenance::of(&dataset, &Split::of(Vec::new(), Vec::new())).fields == begun.fields))
}

/// Opens a model with the samples of its experiment where the data are its `own`, and else with the test samples of the data.
fn open_as(
    (path, data): (&Path, Option<&Path>),
    own: bool,
    device: Device,
    session: &Session<'_>,
) -> Result<Opened, Error> {
    let foreign = ModelFolder::is_at(path);
    let trained = match foreign {
        true => imported::with_data(path, data)?,
        false => trained_at(path)?,
    };
    if let Some(note) = &trained.note {
        (session.listener)(Event::Warning(note));
    }
    let mut experiment = trained.experiment.clone();
    if path.is_dir() && !foreign {
        experiment.data.folder = run::experiment(path)?.data.folder;
    }
    match data {
        Some(folder) => {
            experiment.data.folder = Some(folder.to_owned());
            if !own {
                (experiment.data.train, experiment.data.test, experiment.data.validation) = (0, 0, 0);
            }
            let names = |fields: &[Field]| fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
            let task = &trained.operator.task;
            experiment.data.outputs = names(&task.outputs);
            experiment.data.inputs = names(&task.inputs);
            if task.time.mode().is_roll_out() && task.inputs.is_empty() {
                experiment.data.inputs = names(&task.outputs); // nothing beside the series itself
            }
        }
        None => {
            dataset::require_present(&experiment)?;
            if let Ok(environment) = run::environment(path) {
                dataset::recorded_folder(&mut experiment.data, &environment);
            }
        }
    }
    let dataset = dataset::of_experiment(&experiment, session)?;
    if data.is_some() && !foreign {
        check_units(&trained.operator.task, &dataset)?;
    }
    let split = experiment::split(&experiment, &dataset)?;
    let mut environment = Environment::here(device, session.threads, Some(Provenance::of(&dataset, &split)));
    let recorded = own && path.join(run::ENVIRONMENT).is_file();
    let begun = recorded.then(|| run::environment(path)).transpose()?;
    if let (Some(folder), Some(begun)) = (data, &begun)
        && !environment.sees_the_same(begun)
    {
        let folder = folder.display();
        let warning = format!(
            "{folder} has the samples of the run with another split; it may test on samples that were trained on"
        );
        (session.listener)(Event::Warning(&warning));
        return open_as((path, data), false, device, session);
    }
    environment.together = begun.as_ref().and_then(|begun| begun.together);
    require(begun.is_none_or(|begun| environment.sees_the_same(&begun)), || {
        Refusal::about(dataset.folder().display().to_string(), "the data are not those the run began with")
            .advise("to evaluate the run on them say --data DIR")
            .of(Kind::Conflict)
    })?;
    if let Some(folder) = data {
        let fits = trained.operator.check_grid(dataset.manifest().grid);
        fits.map_err(|refusal| refusal.within(folder.display()))?; // before any value is read
    }
    let test = experiment::test_samples(&experiment, &dataset)?;
    if let Some(folder) = data {
        let checked = trained.operator.task.time.check_clock(test.times, &dataset.manifest().times);
        checked.map_err(|refusal| refusal.within(folder.display()))?;
    }
    let trained_with = path.join(run::ENVIRONMENT).is_file().then(|| run::environment(path)).transpose()?;
    let trained_with = trained_with.map(|Environment { device, gpu, .. }| TrainingDevice { device, gpu });
    Ok(Opened { trained, experiment, dataset, split, environment, test, trained_with, own })
}

/// Refuses data in other units than those that the model learned: its errors would carry a wrong unit.
fn check_units(task: &Task, dataset: &Dataset) -> Result<(), Refusal> {
    for field in task.inputs.iter().chain(&task.outputs) {
        let entry = dataset.manifest().fields.iter().find(|entry| entry.name == field.name);
        let other = entry.filter(|entry| entry.unit != field.unit);
        require(other.is_none(), || {
            let found = other.map(|entry| entry.unit.clone()).unwrap_or_default();
            let thing = format!("{}: field `{}`", dataset.folder().display(), field.name);
            Refusal::new(thing, format!("the unit of the training, {}", field.unit), found)
                .advise("import the data in that unit")
        })?;
    }
    Ok(())
}

/// Predicts and measures, in a given precision if there is one.
fn measure(request: &EvaluateRequest, precision: Option<Precision>, session: &Session<'_>) -> Result<Evaluated, Error> {
    let opened = open(&request.run, request.data.as_deref(), request.device, session)?;
    measure_opened(opened, request, precision, session)
}

fn measure_opened(
    opened: Opened,
    request: &EvaluateRequest,
    precision: Option<Precision>,
    session: &Session<'_>,
) -> Result<Evaluated, Error> {
    let EvaluateRequest { run: path, symmetries, device, .. } = request;
    let Opened { mut trained, experiment, dataset, split, environment, test, trained_with, own } = opened;
    trained.operator.precision = precision.unwrap_or(trained.operator.precision);
    let group = || {
        let mut experiment = trained.experiment.clone();
        let settings = Symmetries::settings_of(&experiment, dataset.manifest());
        settings.into_iter().for_each(|settings| experiment.data.settings = settings);
        Symmetries::of(&experiment, &trained.operator.task, "--symmetries")
    };
    let group = symmetries.then(group).transpose()?;
    let started = Instant::now();
    let predict = || trained.operator.predict_mean(&test, group.as_ref(), *device);
    let prediction = attempt(|| session.cancel.is_cancelled(), predict)??;
    let seconds = started.elapsed().as_secs_f64();
    // The training samples of other data did not train this model.
    let train = if own { known(experiment::train_samples(&experiment, &dataset))? } else { None };
    let subject = (&trained.experiment, &trained.operator.task);
    let evaluation = Evaluation::of_task(subject, train.as_ref(), (&test, &split.test), &prediction);
    require(evaluation.relative_l2.is_finite(), || {
        Refusal::about(path.display().to_string(), "its predictions are not finite")
            .advise("train again with a smaller train.rate")
            .of(Kind::Failed)
    })?;
    let receipt = Receipt::new(&trained, &dataset, (&split, &test), &environment, evaluation, seconds)?;
    let note = trained.operator.note_on_grid(test.grid);
    note.iter().for_each(|note| (session.listener)(Event::Warning(note)));
    let trained_on = note.map(|_| trained.operator.task.grid.to_string());
    let receipt = Receipt { symmetries: group.map(|group| group.order()), trained_on, trained_with, ..receipt };
    let stated = trained.experiment.data.train;
    let train_samples = if own { Some(split.train.len()) } else { (stated > 0).then_some(stated) };
    let history = if path.is_dir() { run::history(path)? } else { Vec::new() };
    Ok(Evaluated { trained, dataset, test, prediction, train_samples, receipt, history })
}

/// Training samples that do not fit into memory are unknown; the trivial predictors are then left out.
fn known(samples: Result<Samples, Error>) -> Result<Option<Samples>, Error> {
    match samples {
        Err(error) if error.kind() == Kind::OutOfSpace => Ok(None),
        samples => samples.map(Some),
    }
}

/// A sentence where the model is not better than a predictor that learns nothing.
fn doubt(evaluation: &Evaluation) -> Option<String> {
    let (name, trivial) = evaluation.trivial.as_ref()?.best()?;
    let error = evaluation.headline();
    let percent = |error: f64| format!("{:.2} %", 100.0 * error);
    (error >= trivial).then(|| {
        let (error, trivial) = (percent(error), percent(trivial));
        let name = if name == "persistence" { name.to_owned() } else { format!("the {name}") };
        format!(
            "the model is not better than a predictor that learns nothing: its error is {error}, that of {name} {trivial}; train \
             longer, or check that the inputs determine the outputs"
        )
    })
}

/// A receipt that holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verified {
    /// Mean relative L2, computed again.
    pub relative_l2: f64,
    /// Allowed relative difference of the error on this machine; 0 means bit for bit.
    pub tolerance: f64,
}

/// A receipt to check.
#[derive(Clone, Debug)]
pub struct VerifyRequest {
    /// The receipt.
    pub receipt: PathBuf,
    /// Its run; the folder of the receipt unless given.
    pub run: Option<PathBuf>,
    /// The data, where the receipt was made with other data than the run's own.
    pub data: Option<PathBuf>,
    /// Where to compute.
    pub device: Device,
}

/// Computes the numbers of a receipt again and compares them.
pub fn verify(request: &VerifyRequest, session: &Session<'_>) -> Result<Verified, Error> {
    let VerifyRequest { receipt, run, data, device } = request;
    let stated = Receipt::read(receipt)?;
    let beside = receipt.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    require(run.is_some() || beside.join(run::EXPERIMENT).is_file(), || {
        let path = receipt.display();
        Refusal::new(path.to_string(), "a receipt inside its run folder", "a receipt outside a run folder")
            .advise(format!("say lamo evaluate RUN --verify {path}"))
            .of(Kind::Missing)
    })?;
    let run = run.as_deref().unwrap_or(beside).to_owned();
    let symmetries = stated.symmetries.is_some();
    let precision = stated.machine.precision.parse().ok(); // earlier versions predicted in the precision of the training
    let again = EvaluateRequest { run, data: data.clone(), symmetries, device: *device };
    let mut evaluated = measure(&again, precision, session)?;
    if evaluated.receipt.hashes.split != stated.hashes.split && again.data.is_some() {
        // Earlier versions took the split of the data set with --data, also where the data are those of the run.
        let opened = open_as((&again.run, again.data.as_deref()), false, *device, session)?;
        evaluated = measure_opened(opened, &again, precision, session)?;
    }
    if let Some(difference) = stated.difference(&evaluated.receipt) {
        let hint = if data.is_none() { " (if it was made with --data, give it again)" } else { "" };
        let advice = format!("the receipt is not of this run and data{hint}, or something has changed");
        return Err(Refusal::about(receipt.display().to_string(), difference).advise(advice).of(Kind::Failed).into());
    }
    let tolerance = stated.tolerance(&evaluated.receipt);
    Ok(Verified { relative_l2: evaluated.receipt.evaluation.relative_l2, tolerance })
}
