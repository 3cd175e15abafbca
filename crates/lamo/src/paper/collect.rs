//! What is there: receipts in run folders and in folders of receipts, found by the hash of their experiment.

use super::artifact::Entry;
use super::cell::{Cell, Resolved};
use crate::error::Error;
use crate::experiment::Experiment;
use crate::inference::evaluate::{RECEIPT, Receipt};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A receipt and where it lies.
#[derive(Clone, Debug)]
struct Found {
    receipt: Receipt,
    path: PathBuf,
}

/// The receipts of some folders.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// By the SHA-256 of the experiment.
    found: HashMap<String, Vec<Found>>,
}

/// Our value of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Mean over the runs that are there.
    pub mean: f64,
    /// Deviation of the runs, dividing by n − 1; `None` for one run.
    pub deviation: Option<f64>,
    /// Runs that are there.
    pub runs: usize,
    /// Runs that the grid asks for.
    pub asked: usize,
    /// Epochs of the runs.
    pub epochs: usize,
}

impl Results {
    /// Reads all receipts of the folders: `FOLDER/receipt.json`, `FOLDER/*.json` and `FOLDER/*/receipt.json`. Other files are
    /// left alone.
    pub fn gather(folders: &[PathBuf]) -> Results {
        let mut results = Results::default();
        for folder in folders {
            let mut paths: Vec<PathBuf> = entries(folder);
            paths.extend(entries(folder).iter().filter(|path| path.is_dir()).map(|path| path.join(RECEIPT)));
            let receipt = |path: &PathBuf| {
                let name = path.to_string_lossy();
                let beside = [".view.json", ".insight.json"].iter().any(|ending| name.ends_with(ending));
                name.ends_with(".json") && !beside && path.is_file()
            };
            paths.retain(receipt);
            paths.iter().for_each(|path| results.read(path));
        }
        results
    }

    /// Adds one receipt. Files that are not receipts are skipped.
    pub(super) fn read(&mut self, path: &Path) {
        if let Ok(receipt) = Receipt::read(path) {
            let known = self.found.entry(receipt.hashes.experiment.clone()).or_default();
            known.push(Found { receipt, path: path.to_owned() });
        }
    }

    /// All receipts.
    pub fn count(&self) -> usize {
        self.found.values().map(Vec::len).sum()
    }

    /// The receipt of a cell whose training is finished.
    pub fn of(&self, resolved: &Resolved) -> Option<&Receipt> {
        self.find(resolved).map(|found| &found.receipt)
    }

    /// The file of that receipt.
    pub fn path(&self, resolved: &Resolved) -> Option<&Path> {
        self.find(resolved).map(|found| found.path.as_path())
    }

    fn find(&self, resolved: &Resolved) -> Option<&Found> {
        let Experiment { data, train, .. } = &resolved.experiment;
        let of = |key: &String| self.found.get(key).into_iter().flatten();
        let stated = std::iter::once(&resolved.key).chain(&resolved.aliases).flat_map(of);
        let as_many = |found: &&Found| {
            let Receipt { costs, evaluation, .. } = &found.receipt;
            costs.steps == train.epochs * data.train.div_ceil(train.batch) && evaluation.samples.len() == data.test
        };
        let by_split = resolved.by_split.iter().flat_map(of).filter(as_many);
        stated.chain(by_split).find(|found| found.receipt.epoch == train.epochs)
    }

    /// Our value of an entry from the receipts that are there; `None` without any.
    pub fn measure(&self, entry: &Entry) -> Result<Option<Measured>, Error> {
        self.measure_by(&entry.cells, |receipt| receipt.evaluation.relative_l2)
    }

    /// Mean and deviation over cells of a value of their receipts.
    pub fn measure_by(&self, cells: &[Cell], value: impl Fn(&Receipt) -> f64) -> Result<Option<Measured>, Error> {
        let resolved = cells.iter().map(Cell::resolve).collect::<Result<Vec<_>, _>>()?;
        let values: Vec<f64> = resolved.iter().filter_map(|cell| self.of(cell)).map(value).collect();
        let (runs, asked) = (values.len(), cells.len());
        let Some(first) = resolved.first().filter(|_| runs > 0) else { return Ok(None) };
        let mean = values.iter().sum::<f64>() / runs as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (runs > 1).then(|| (squares / (runs - 1) as f64).sqrt());
        Ok(Some(Measured { mean, deviation, runs, asked, epochs: first.experiment.train.epochs }))
    }

    /// Seconds that a finished cell took on a kind of device, if it had the device for itself.
    pub(super) fn speed(&self, resolved: &Resolved, device: &str) -> Option<f64> {
        let receipt = self.of(resolved)?;
        let kind = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
        let alone = receipt.costs.together.is_none();
        (alone && kind(&receipt.training_device().device) == kind(device)).then_some(receipt.costs.training_seconds)
    }
}

/// What lies in a folder, sorted, so that results do not depend on the order of the file system.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
