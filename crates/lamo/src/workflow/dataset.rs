//! `data make`, `data import`, `data check`, and the data set of an experiment: the folder it names, or one that its problem
//! makes once in the cache.

use super::Event;
use super::Session;
use crate::data::dataset::{Dataset, FieldEntry, MANIFEST, Manifest, Outcome, Split, Statistics};
use crate::data::import::{self, Import, Own, catalogue};
use crate::error::{Error, Kind, Refusal, counted, require};
#[cfg(feature = "solvers")]
use crate::experiment::Preset;
use crate::experiment::{self, Data, Experiment, OWN};
use crate::run::Environment;
use lamo_geometry::Grid;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A data set whose hashes hold, with the statistics of its fields.
#[derive(Debug)]
pub struct CheckedDataset {
    /// The data set.
    pub dataset: Dataset,
    /// Each field with the statistics of its values.
    pub fields: Vec<(FieldEntry, Statistics)>,
}

impl CheckedDataset {
    /// Refuses values that are not finite.
    pub fn require_finite(&self) -> Result<(), Error> {
        let odd = self.fields.iter().filter(|(_, found)| found.missing + found.infinite > 0);
        let odd: Vec<_> =
            odd.map(|(field, found)| format!("{} of `{}`", found.missing + found.infinite, field.name)).collect();
        require(odd.is_empty(), || {
            let found = format!("NaN or infinity in {}", odd.join(" and "));
            Refusal::new(self.dataset.folder().display().to_string(), "finite values only", found)
                .advise("make the data set again")
        })?;
        Ok(())
    }
}

/// Verifies the hashes of a data set and takes statistics of its fields.
pub fn check(folder: &Path) -> Result<CheckedDataset, Error> {
    let dataset = Dataset::open(folder)?;
    for field in &dataset.manifest().fields {
        field.on(dataset.manifest().grid)?;
    }
    dataset.verify()?;
    let fields = dataset.manifest().fields.clone().into_iter();
    let fields = fields.map(|field| dataset.statistics(&field.name).map(|statistics| (field, statistics)));
    Ok(CheckedDataset { fields: fields.collect::<Result<_, _>>()?, dataset })
}

/// Solves some samples of a data set on a finer discretisation, evenly chosen, and says how far the stored ones are.
#[cfg(feature = "solvers")]
pub fn converge(folder: &Path, samples: usize, session: &Session<'_>) -> Result<crate::data::Convergence, Error> {
    let dataset = Dataset::open(folder)?;
    let count = dataset.samples();
    require((1..=count).contains(&samples), || {
        Refusal::new("--converge", format!("1 to {count} samples"), samples.to_string())
    })?;
    let numbers: Vec<usize> = (0..samples).map(|place| place * count / samples).collect();
    let problem = dataset.manifest().problem.clone();
    let done = crate::data::converge::converge(&dataset, &numbers, session.threads, &|progress| {
        (session.listener)(Event::Making { problem: &problem, progress });
        session.cancel.flow()
    })?;
    Ok(done.ok_or_else(|| Refusal::said("stopped").of(Kind::Cancelled))?)
}

/// A data set to make with a solver.
#[derive(Clone, Debug)]
pub struct MakeRequest {
    /// Name of the problem.
    pub problem: String,
    /// `key=value` texts for its parameters; the last one wins.
    pub changes: Vec<String>,
    /// Seed of the sequence of samples.
    pub seed: u64,
    /// Number of samples.
    pub samples: usize,
    /// The folder to make.
    pub out: PathBuf,
}

/// Makes a data set, or completes an interrupted one.
#[cfg(feature = "solvers")]
pub fn make(request: &MakeRequest, session: &Session<'_>) -> Result<Outcome, Error> {
    let MakeRequest { problem, changes, seed, samples, out } = request;
    make_recipe(&crate::data::Recipe::named(problem, changes, *seed, *samples)?, out, session)
}

/// Says that this library cannot make data.
#[cfg(not(feature = "solvers"))]
pub fn make(request: &MakeRequest, _session: &Session<'_>) -> Result<Outcome, Error> {
    Err(without_solvers(&request.problem).into())
}

/// The folder in the cache where the data of a problem are made once; a training with the same data finds them there.
#[cfg(feature = "solvers")]
pub fn cache_of(problem: &str, changes: &[String], seed: u64, samples: usize) -> Result<PathBuf, Error> {
    let recipe = crate::data::Recipe::named(problem, changes, seed, samples)?;
    Ok(cache::folder()?.join(cache::name(recipe.manifest())?))
}

#[cfg(feature = "solvers")]
fn make_recipe(recipe: &crate::data::Recipe, out: &Path, session: &Session<'_>) -> Result<Outcome, Error> {
    let problem = &recipe.manifest().problem;
    let watch = |progress| {
        (session.listener)(Event::Making { problem, progress });
        session.cancel.flow()
    };
    let warn = |text: &str| (session.listener)(Event::Warning(text));
    Ok(recipe.make_and_warn(out, session.threads, &watch, &warn)?)
}

#[cfg(not(feature = "solvers"))]
fn without_solvers(problem: &str) -> Refusal {
    Refusal::about(problem, "this lamo was built without solvers")
        .advise("give a data set, or build with feature solvers")
}

/// Where the values of an import come from.
#[derive(Clone, Debug)]
pub enum ImportSource {
    /// The public files of a benchmark, given one by one or as folders that hold them.
    Public {
        /// The benchmark.
        benchmark: String,
        /// Files or folders.
        files: Vec<PathBuf>,
        /// Every sample, not only those of the official split.
        all: bool,
    },
    /// Your own arrays.
    Own(Box<Own>),
}

/// A data set to import from files.
#[derive(Clone, Debug)]
pub struct ImportRequest {
    /// Where the values come from.
    pub source: ImportSource,
    /// The folder to make.
    pub out: PathBuf,
}

impl ImportRequest {
    /// Opens every array, finds its axes and compares the sizes; nothing is written yet.
    pub fn plan(&self) -> Result<Import, Error> {
        Ok(match &self.source {
            ImportSource::Public { benchmark, files, all } => catalogue::find(benchmark)?.import(files, *all)?,
            ImportSource::Own(own) => own.import()?,
        })
    }
}

/// Imports files as a data set, or completes an interrupted one.
pub fn import(request: &ImportRequest, session: &Session<'_>) -> Result<Outcome, Error> {
    let plan = request.plan()?;
    (session.listener)(Event::Planned { samples: plan.manifest().samples });
    let listen = |transfer| {
        (session.listener)(Event::Importing(transfer));
        session.cancel.flow()
    };
    plan.notes().iter().for_each(|note| (session.listener)(Event::Note(note)));
    let warn = |text: &str| (session.listener)(Event::Warning(text));
    let outcome = plan.write_and_warn(&request.out, &listen, &warn)?;
    if let (ImportSource::Own(_), Outcome::Made(dataset) | Outcome::AlreadyThere(dataset)) = (&request.source, &outcome)
    {
        dataset.at_rest().iter().for_each(|text| warn(text));
        tell_sweep(dataset, &dataset.split()?, session, true)?;
    }
    Ok(outcome)
}

/// Says that the samples are a sweep: a warning where the test samples lie beyond the training samples, else a note if
/// `notes`. Windows of a time series follow each other by their nature.
fn tell_sweep(dataset: &Dataset, split: &Split, session: &Session<'_>, notes: bool) -> Result<(), Error> {
    let ends = |list: &[usize]| Some((*list.iter().min()?, *list.iter().max()?));
    let beyond = match (ends(&split.train), ends(&split.test)) {
        (Some((first, last)), Some((from, to))) => last < from || to < first,
        _ => false,
    };
    if dataset.manifest().parameters.contains_key("window") || !(beyond || notes) {
        return Ok(());
    }
    let Some(sweep) = import::sweep(dataset)? else { return Ok(()) };
    if beyond {
        let warning = format!(
            "{sweep}; the test samples lie beyond the training samples, so the test error is one of extrapolation; \
             import without --ordered to draw them"
        );
        (session.listener)(Event::Warning(&warning));
    } else {
        let note = format!("{sweep}; the test samples lie between the training samples");
        (session.listener)(Event::Note(&note));
    }
    Ok(())
}

/// A data set to write as the public files of a benchmark.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    /// The data set.
    pub dataset: PathBuf,
    /// The benchmark whose files are written; the problem of the data set unless given.
    pub benchmark: Option<String>,
    /// The folder to write into.
    pub out: PathBuf,
}

/// Writes the public files of a benchmark from a data set; their paths.
pub fn export(request: &ExportRequest, session: &Session<'_>) -> Result<Vec<PathBuf>, Error> {
    let dataset = Dataset::open(&request.dataset)?;
    dataset.verify()?;
    let benchmark = request.benchmark.clone().unwrap_or_else(|| dataset.manifest().problem.clone());
    let written = catalogue::find(&benchmark)?.export(&dataset, &request.out, &|transfer| {
        (session.listener)(Event::Exporting(transfer));
        session.cancel.flow()
    })?;
    Ok(written.ok_or_else(|| Refusal::said("stopped; nothing was written").of(Kind::Cancelled))?)
}

/// The data set of an experiment, verified: the folder it names, or one that is made in the cache.
pub(super) fn of_experiment(experiment: &Experiment, session: &Session<'_>) -> Result<Dataset, Error> {
    let started = Instant::now();
    // Trainings that run side by side may want the same data: the first makes them, the others wait and find them.
    static MAKING: Mutex<()> = Mutex::new(());
    let made = {
        let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        open_or_make(&experiment.data, session)?
    };
    let (dataset, made_in) = match made {
        Outcome::Made(dataset) => (dataset, Some(started.elapsed())),
        Outcome::AlreadyThere(dataset) => (dataset, None),
        Outcome::Stopped(progress) => {
            let samples = counted(progress.samples, "sample");
            let sentence = format!("stopped with {} of {samples} saved", progress.complete);
            let advice = "run the same command again to continue";
            return Err(Refusal::said(sentence).advise(advice).of(Kind::Cancelled).into());
        }
    };
    if made_in.is_none() {
        dataset.verify()?; // runs and receipts name these hashes
    }
    if let Some(warning) = older_generator(dataset.manifest(), dataset.folder()) {
        (session.listener)(Event::Warning(&warning));
    }
    if let Some(warning) = other_settings(experiment, dataset.manifest(), dataset.folder()) {
        (session.listener)(Event::Warning(&warning));
    }
    if let (OWN, true, Ok(split)) =
        (experiment.benchmark.as_str(), dataset.is_imported(), experiment::split(experiment, &dataset))
    {
        tell_sweep(&dataset, &split, session, false)?;
    }
    (session.listener)(Event::Data { dataset: &dataset, made_in });
    Ok(dataset)
}

/// What the user should know about data that another version of their solver made.
#[cfg(feature = "solvers")]
fn older_generator(manifest: &Manifest, folder: &Path) -> Option<String> {
    let now = lamo_physics::problems::find(&manifest.problem).ok()?.version;
    let Manifest { generator: then, problem, .. } = manifest;
    // Values from files have generator 0.
    (*then > 0 && *then != now).then(|| {
        let folder = folder.display();
        format!("{folder} was made by version {then} of the solver of {problem}; this lamo has version {now}")
    })
}

/// What the user should know about data that a benchmark's solver made with other settings than those of the published recipe.
#[cfg(feature = "solvers")]
fn other_settings(experiment: &Experiment, manifest: &Manifest, folder: &Path) -> Option<String> {
    let made_for_it = manifest.generator > 0 && manifest.problem == experiment.data.problem;
    if experiment.benchmark == OWN || experiment.preset == Preset::Quick || !made_for_it {
        return None;
    }
    let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
    let differs = |(key, wanted): &(&String, &toml::Value)| {
        let equal =
            |found: &toml::Value| found == *wanted || (number(found).is_some() && number(found) == number(wanted));
        manifest.parameters.get(key.as_str()).is_some_and(|found| !equal(found))
    };
    let others: Vec<_> = experiment.data.settings.iter().filter(differs).collect();
    if others.is_empty() {
        return None;
    }
    let found = others.iter().map(|(key, _)| format!("{key}={}", manifest.parameters[key.as_str()]));
    let wanted: Vec<_> = others.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Some(format!(
        "{} was made with {}, and this experiment is about data with {}: its error does not compare with those of others; \
         lamo data make {} --set {} makes such data",
        folder.display(),
        found.collect::<Vec<_>>().join(" and "),
        wanted.join(" and "),
        manifest.problem,
        wanted.join(" --set "),
    ))
}

#[cfg(not(feature = "solvers"))]
fn other_settings(_experiment: &Experiment, _manifest: &Manifest, _folder: &Path) -> Option<String> {
    None
}

#[cfg(not(feature = "solvers"))]
fn older_generator(_manifest: &Manifest, _folder: &Path) -> Option<String> {
    None
}

/// The data of a run that made its own and that are no longer in the cache: where they were, if they are still there. A new
/// version of their solver would make others.
pub(super) fn recorded_folder(data: &mut Data, environment: &Environment) {
    let made = environment.data.as_ref().map(|data| data.folder.as_path());
    if data.folder.is_none() && cached(data).is_none() {
        data.folder = made.filter(|folder| Dataset::open(folder).is_ok()).map(Path::to_owned);
    }
}

/// The folder of the data of an experiment that have been made.
#[cfg(feature = "solvers")]
fn cached(data: &Data) -> Option<PathBuf> {
    let place = || Ok::<_, Error>(cache::folder()?.join(cache::name(cache::recipe(data)?.manifest())?));
    place().ok().filter(|folder| folder.exists())
}

#[cfg(not(feature = "solvers"))]
fn cached(_data: &Data) -> Option<PathBuf> {
    None
}

/// The data set of an experiment where it is at hand; nothing is made.
pub(super) fn at_hand(experiment: &Experiment) -> Result<Dataset, Error> {
    require_present(experiment)?;
    let folder = experiment.data.folder.clone().or_else(|| cached(&experiment.data));
    let folder = folder.ok_or_else(|| {
        Refusal::about("the data of the model", "they have not been made on this machine")
            .advise("lamo evaluate makes them")
            .of(Kind::Missing)
    })?;
    Ok(Dataset::open(&folder)?)
}

fn open_or_make(data: &Data, session: &Session<'_>) -> Result<Outcome, Error> {
    if let Some(folder) = &data.folder {
        return Ok(Outcome::AlreadyThere(Dataset::open(folder)?));
    }
    #[cfg(feature = "solvers")]
    {
        let recipe = cache::recipe(data)?;
        make_recipe(&recipe, &cache::folder()?.join(cache::name(recipe.manifest())?), session)
    }
    #[cfg(not(feature = "solvers"))]
    {
        let _ = session;
        Err(without_solvers(&data.problem).into())
    }
}

/// Refuses a run whose data folder no longer exists, and a model that came without its data and cannot make them.
pub(super) fn require_present(experiment: &Experiment) -> Result<(), Error> {
    let data = &experiment.data;
    require(data.folder.is_some() || data.train + data.test > 0, || {
        Refusal::about("the model", "it comes without the data that it was trained on")
            .advise("say with --data DIR which samples to take; lamo data make and lamo data import make such a folder")
            .of(Kind::Missing)
    })?;
    let gone = experiment.data.folder.as_ref().filter(|folder| !folder.exists());
    require(gone.is_none(), || {
        let folder = gone.map(|folder| folder.display().to_string()).unwrap_or_default();
        Refusal::new(folder, "the data of the run", "nothing")
            .advise("say where they are with --data DIR")
            .of(Kind::Missing)
    })?;
    Ok(())
}

/// The grid of the data, before they are made; `None` where it is not known yet.
pub(super) fn grid_ahead(experiment: &Experiment) -> Result<Option<Grid>, Error> {
    if let Some(folder) = &experiment.data.folder {
        let there = folder.join(MANIFEST).is_file();
        return Ok(if there { Some(Dataset::open(folder)?.manifest().grid) } else { None });
    }
    #[cfg(feature = "solvers")]
    return Ok(Some(cache::recipe(&experiment.data)?.manifest().grid));
    #[cfg(not(feature = "solvers"))]
    Ok(None)
}

/// Refuses, before data are made for it, a model that their grid does not allow, and settings that the problem lacks.
pub(super) fn check_before_making(experiment: &Experiment) -> Result<(), Error> {
    #[cfg(feature = "solvers")]
    experiment::Symmetries::check_ahead(experiment)?;
    #[cfg(feature = "solvers")]
    if experiment.data.folder.is_none() {
        let grid = cache::recipe(&experiment.data)?.manifest().grid;
        if let Ok(benchmark) = experiment.benchmark() {
            let Experiment { model, .. } = experiment;
            let row = crate::network::models::find(&model.name)?;
            row.parameter_count(&benchmark.task().on(grid), &model.settings)?;
        }
    }
    let _ = experiment;
    Ok(())
}

/// Cache of data sets that were made for experiments.
#[cfg(feature = "solvers")]
mod cache {
    use crate::data::Recipe;
    use crate::data::dataset::Manifest;
    use crate::error::{Error, Kind, Refusal, require};
    use crate::experiment::Data;
    use sha2::{Digest, Sha256};
    use std::path::PathBuf;
    use toml::Value;

    /// Where data sets that can be made again are kept.
    pub(super) fn folder() -> Result<PathBuf, Refusal> {
        lamo_tensor::cache_folder().ok_or_else(|| {
            Refusal::new("the folder for data sets", "one of LAMO_CACHE, XDG_CACHE_HOME or HOME", "none of them")
                .advise("set LAMO_CACHE to a folder of your own, or give a data set with --data DIR")
                .of(Kind::Missing)
        })
    }

    /// The folder of a recipe: the same for every version of lamo, as the generator has a version of its own.
    pub(super) fn name(recipe: &Manifest) -> Result<String, Error> {
        // A better measurement of the labels makes no other labels.
        let timeless = Manifest { lamo: String::new(), label_errors: Default::default(), ..recipe.clone() };
        let text = toml::to_string(&timeless).map_err(|error| Refusal::said(error.to_string()))?;
        let hash = Sha256::digest(text.as_bytes());
        let hash: String = hash[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{}-{hash}", recipe.problem))
    }

    /// How the data of an experiment are made.
    pub(super) fn recipe(data: &Data) -> Result<Recipe, Error> {
        require(!data.problem.is_empty(), || {
            Refusal::new("the experiment", "data", "none")
                .advise("give a data set with --data DIR or a problem with data.problem")
        })?;
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned); // no quotes
        let changes: Vec<String> = data.settings.iter().map(|(key, value)| format!("{key}={}", text(value))).collect();
        Ok(Recipe::named(&data.problem, &changes, data.seed, data.samples())?)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_recipe_keeps_its_folder_in_a_new_version_of_lamo_and_loses_it_with_a_new_generator() {
            let recipe = Recipe::named("darcy", &["resolution=8"], 0, 2).unwrap();
            let now = recipe.manifest().clone();
            let newer = Manifest { lamo: "99.0.0".into(), ..now.clone() };
            assert_eq!(name(&newer).unwrap(), name(&now).unwrap());
            let solved_again = Manifest { generator: now.generator + 1, ..now.clone() };
            assert_ne!(name(&solved_again).unwrap(), name(&now).unwrap());
        }
    }
}
