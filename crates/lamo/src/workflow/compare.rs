//! Compare: the receipts of several runs side by side.

use crate::error::{Error, Kind, Refusal};
use crate::experiment::OWN;
use crate::inference::evaluate::{RECEIPT, Receipt};
use crate::run::{self, EXPERIMENT};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// One run of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Name of the run folder.
    pub run: String,
    /// Name of the benchmark.
    pub benchmark: String,
    /// The benchmark, or the name of your own data.
    pub data: String,
    /// Name of the model.
    pub model: String,
    /// Device of the evaluation.
    pub device: String,
    /// Mean relative L2 over the test samples, all outputs together.
    pub relative_l2: f64,
    /// The error that the runs are compared by.
    pub error: f64,
    /// Median over the test samples.
    pub median: f64,
    /// The worst test sample.
    pub worst: f64,
    /// Numbers that were learned.
    pub parameters: usize,
    /// Epochs of the training; where the run lies elsewhere, those up to the evaluated checkpoint.
    pub epochs: usize,
    /// The epoch of the evaluated checkpoint.
    pub evaluated_epoch: usize,
    /// Wall time of these epochs.
    pub training_seconds: f64,
    /// Wall time of a step.
    pub step_seconds: f64,
    /// Bytes of a step, where it is known.
    pub step_bytes: Option<usize>,
}

/// Runs side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// True when all runs were evaluated on the same test samples.
    pub same_test: bool,
    /// What [`Entry::error`] is: the headline of the runs where all have the same, else the mean relative L2 error.
    pub metric: &'static str,
    /// The runs.
    pub runs: Vec<Entry>,
    /// What their trainings do not share, besides epochs; empty where a receipt lies outside its run folder.
    pub differences: Vec<Difference>,
}

/// A key of the training with which runs differ.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// The key, as `train.rate`.
    pub key: String,
    /// Its value in each run.
    pub values: Vec<String>,
}

/// A key of `[train]` that a table of runs shows, unless a training ended early.
const EPOCHS: &str = "epochs";
/// A key of `[train]` that changes nothing that is trained.
const EVALUATE: &str = "evaluate";

/// Compares evaluated run folders, or receipts.
pub fn compare(runs: &[PathBuf]) -> Result<Comparison, Error> {
    let receipts = runs.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let same_test = receipts.iter().all(|receipt| receipt.same_test(&receipts[0]));
    let name = receipts.first().map_or("", |receipt| receipt.evaluation.headline_name());
    let alike = receipts.iter().all(|receipt| receipt.evaluation.headline_name() == name);
    let entries = runs.iter().zip(&receipts).map(|(path, receipt)| Entry {
        error: if alike { receipt.evaluation.headline() } else { receipt.evaluation.relative_l2 },
        ..entry(path, receipt)
    });
    let entries: Vec<Entry> = entries.collect();
    let metric = if alike { name } else { "mean relative L2 error" };
    let differences = differences(runs, &entries);
    Ok(Comparison { same_test, metric, runs: entries, differences })
}

fn differences(runs: &[PathBuf], entries: &[Entry]) -> Vec<Difference> {
    let train = |path: &PathBuf| Table::try_from(run::experiment(folder(path)).ok()?.train).ok();
    let Some(trainings) = runs.iter().map(train).collect::<Option<Vec<Table>>>() else { return Vec::new() };
    let asked = |training: &Table| training.get(EPOCHS).and_then(Value::as_integer);
    let full = entries.iter().zip(&trainings).all(|(entry, training)| asked(training) == Some(entry.epochs as i64));
    let values = |key: &str| -> Vec<String> {
        let shown = |value: Option<&Value>| value.map_or("none".to_owned(), |value| value.to_string().replace('"', ""));
        trainings.iter().map(|training| shown(training.get(key))).collect()
    };
    let differ = |values: &[String]| values.iter().any(|value| *value != values[0]);
    let orthogonal = !differ(&values("optimiser")); // keys of Muon say nothing about AdamW
    let keys: BTreeSet<&String> = trainings.iter().flat_map(Table::keys).collect();
    let keys = keys.into_iter().filter(|key| *key != EVALUATE && !(full && *key == EPOCHS));
    let keys = keys.filter(|key| orthogonal || !key.starts_with("matrix_"));
    let found = keys.map(|key| Difference { key: format!("train.{key}"), values: values(key) });
    let origin = |path: &PathBuf| run::environment(folder(path)).ok().and_then(|environment| environment.init);
    let origins =
        runs.iter().map(|path| origin(path).map_or("none".to_owned(), |origin| origin.path.display().to_string()));
    let init = Difference { key: "--init".to_owned(), values: origins.collect() };
    found.chain([init]).filter(|difference| differ(&difference.values)).collect()
}

/// The folder of a run or of a receipt.
fn folder(path: &Path) -> &Path {
    if path.is_dir() { path } else { path.parent().unwrap_or(path) }
}

fn read(path: &Path) -> Result<Receipt, Error> {
    let file = if path.is_dir() { path.join(RECEIPT) } else { path.to_owned() };
    if path.is_dir() && !file.is_file() {
        let name = path.display().to_string();
        let refusal =
            |found: &str| Refusal::new(&name, format!("an evaluated run with {RECEIPT}"), found).of(Kind::Missing);
        return Err(match path.join(EXPERIMENT).is_file() {
            true => refusal("none").advise(format!("run `lamo evaluate {name}` first")).into(),
            false => refusal("another folder").into(),
        });
    }
    Receipt::read(&file)
}

fn entry(path: &Path, receipt: &Receipt) -> Entry {
    let folder = folder(path);
    // The receipt of a run has the name of its folder, one of a collection its own.
    let of_run = path.is_dir() || path.file_name().is_some_and(|name| name == RECEIPT);
    let name = if of_run { folder.file_name() } else { path.file_stem() };
    let name = name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    let spread = &receipt.evaluation.distribution;
    let last = run::history(folder).ok().and_then(|history| history.last().copied());
    let last = last.filter(|last| last.epoch >= receipt.epoch);
    Entry {
        run: name,
        benchmark: receipt.benchmark.clone(),
        data: data(folder, receipt),
        model: receipt.model.clone(),
        device: receipt.machine.device.clone(),
        relative_l2: receipt.evaluation.relative_l2,
        error: receipt.evaluation.headline(),
        median: spread.median(),
        worst: spread.most(),
        parameters: receipt.costs.parameters,
        epochs: last.map_or(receipt.epoch, |last| last.epoch),
        evaluated_epoch: receipt.epoch,
        training_seconds: last.map_or(receipt.costs.training_seconds, |last| last.seconds),
        step_seconds: receipt.costs.step_seconds(),
        step_bytes: receipt.costs.step_bytes,
    }
}

/// The benchmark, or the name of your own data where the run lies beside the receipt.
fn data(folder: &Path, receipt: &Receipt) -> String {
    let own = (receipt.benchmark == OWN).then(|| run::experiment(folder).ok()?.data.folder).flatten();
    let name = own.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| receipt.benchmark.clone())
}

impl Comparison {
    /// The model of a run, with the name of its data where the runs have different data.
    pub fn label(&self, run: &Entry) -> String {
        let alike = self.same_test || self.runs.iter().all(|other| other.data == run.data);
        if alike { run.model.clone() } else { format!("{} on {}", run.model, run.data) }
    }
}
