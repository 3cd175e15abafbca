//! Results: the receipts of a folder as one table, the published numbers beside them, gaps included.

use crate::error::{Error, Refusal};
use crate::experiment::benchmarks::BENCHMARKS;
use crate::experiment::{Experiment, Preset, Request};
use crate::files;
use crate::inference::evaluate::Receipt;
use crate::network::models::MODELS;
use std::path::Path;

/// The order of the columns of [`PUBLISHED`].
const COLUMNS: [&str; 6] = ["elasticity", "navier-stokes", "darcy", "plasticity", "airfoil", "pipe"];

/// Mean relative L2 errors of Table 1 of the paper, on the public files; 0 where it has none.
const PUBLISHED: &[(&str, [f64; 6])] = &[
    ("lamo", [0.0050, 0.0460, 0.0039, 0.0007, 0.0041, 0.0038]),
    ("transolver", [0.0064, 0.0957, 0.0059, 0.0013, 0.0053, 0.0046]),
    ("ono", [0.0118, 0.1195, 0.0076, 0.0048, 0.0061, 0.0052]),
    ("factformer", [0.0, 0.1214, 0.0109, 0.0312, 0.0071, 0.0060]),
    ("gnot", [0.0086, 0.1380, 0.0105, 0.0336, 0.0076, 0.0047]),
    ("oformer", [0.0183, 0.1705, 0.0124, 0.0017, 0.0183, 0.0168]),
    ("htnet", [0.0, 0.1847, 0.0079, 0.0333, 0.0065, 0.0059]),
    ("galerkin", [0.0240, 0.1401, 0.0084, 0.0120, 0.0118, 0.0098]),
    ("lsm", [0.0218, 0.1535, 0.0065, 0.0025, 0.0059, 0.0050]),
    ("ffno", [0.0263, 0.2322, 0.0077, 0.0047, 0.0078, 0.0070]),
    ("uno", [0.0258, 0.1713, 0.0113, 0.0034, 0.0078, 0.0100]),
    ("fno", [0.0229, 0.1556, 0.0108, 0.0074, 0.0138, 0.0067]),
    ("ufno", [0.0239, 0.2231, 0.0183, 0.0039, 0.0269, 0.0056]),
    ("mwt", [0.0359, 0.1541, 0.0082, 0.0076, 0.0075, 0.0077]),
    ("deeponet", [0.0965, 0.2972, 0.0588, 0.0135, 0.0385, 0.0097]),
    ("swin", [0.0283, 0.2248, 0.0397, 0.0170, 0.0270, 0.0109]),
    ("resnet", [0.0262, 0.2753, 0.0587, 0.0233, 0.0391, 0.0120]),
    ("unet", [0.0235, 0.1982, 0.0080, 0.0051, 0.0079, 0.0065]),
];

/// Rows that every benchmark has, with or without receipts.
const EXPECTED: [(&str, &str); 3] = [("lamo", "paper"), ("lamo", "best"), ("transolver", "paper")];
/// Keys that change when the error is computed, or take the split of a data set that was made before, and not what is trained.
const UNIMPORTANT: [&str; 3] = ["train.evaluate=", "data.train=0", "data.test=0"];

/// One receipt of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Name of the file.
    pub file: String,
    /// What it states.
    pub receipt: Receipt,
}

/// One row of the table: a model with one recipe on one benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultRow {
    /// Name of the benchmark.
    pub benchmark: &'static str,
    /// Name of the model.
    pub model: &'static str,
    /// Name of the preset.
    pub preset: String,
    /// Keys that differ from the preset.
    pub changes: Vec<String>,
    /// How the model was evaluated, where it was not one prediction on the grid of the training.
    pub evaluated: Option<String>,
    /// The receipts, one for each seed, in their order; none is a gap.
    pub sources: Vec<Source>,
    /// The paper's number for the model; `None` where it has none.
    pub published: Option<f64>,
    /// Whether the receipts have the same test samples as the first receipt of the benchmark.
    pub same_test: bool,
}

impl ResultRow {
    /// Mean error over the receipts.
    pub fn mean(&self) -> Option<f64> {
        let count = self.sources.len() as f64;
        (count > 0.0).then(|| self.errors().sum::<f64>() / count)
    }

    /// Standard deviation of the error over seeds; `None` for fewer than two.
    pub fn deviation(&self) -> Option<f64> {
        let (mean, count) = (self.mean()?, self.sources.len() as f64);
        let sum: f64 = self.errors().map(|error| (error - mean).powi(2)).sum();
        (count > 1.0).then(|| (sum / (count - 1.0)).sqrt())
    }

    fn errors(&self) -> impl Iterator<Item = f64> {
        self.sources.iter().map(|source| source.receipt.evaluation.relative_l2)
    }

    /// The command of a run of the row, with a seed.
    pub fn command(&self, seed: u64) -> String {
        let ResultRow { benchmark, model, preset, changes, sources, .. } = self;
        let mut words = vec![format!("lamo train {benchmark} --model {model} --preset {preset}")];
        words.extend((seed > 0).then(|| format!("--seed {seed}")));
        let device = sources.first().map_or("cuda".to_owned(), |source| source.receipt.training_device().device);
        words.extend((device != "cpu").then(|| format!("--device {device}")));
        words.extend(changes.iter().map(|change| match change.chars().all(|letter| !" \"'[]{}*".contains(letter)) {
            true => format!("--set {change}"),
            false => format!("--set '{change}'"),
        }));
        words.join(" ")
    }
}

/// All rows: the expected ones of every benchmark first, then those of other receipts. Receipts of your own data and of the
/// preset `quick` are skipped, and so are other files in the folder.
pub fn results(folder: &Path) -> Result<Vec<ResultRow>, Error> {
    let sources = read(folder)?;
    let mut rows = Vec::new();
    for benchmark in BENCHMARKS.iter().filter(|row| row.published).map(|row| row.name) {
        let of_benchmark: Vec<&Source> =
            sources.iter().filter(|source| source.receipt.benchmark == benchmark).collect();
        let mut found: Vec<ResultRow> =
            EXPECTED.iter().map(|(model, preset)| row(benchmark, model, preset, &[])).collect();
        for source in &of_benchmark {
            place(&mut found, benchmark, source);
        }
        for row in &mut found {
            row.sources.sort_by_key(|source| source.receipt.seed);
            let first = of_benchmark.first().map(|source| &source.receipt);
            let same = |source: &Source| first.is_none_or(|first| source.receipt.same_test(first));
            row.same_test = row.sources.iter().all(same);
        }
        let place = |row: &ResultRow| MODELS.iter().position(|model| model.name == row.model);
        found[EXPECTED.len()..]
            .sort_by_key(|row| (place(row), row.preset.clone(), row.changes.clone(), row.evaluated.clone()));
        rows.extend(found);
    }
    Ok(rows)
}

/// Adds a receipt to its row, and makes the row first if it is new. The receipts of a row have the same test samples and
/// different seeds; a second receipt of the same run and samples is left out.
fn place(rows: &mut Vec<ResultRow>, benchmark: &'static str, source: &Source) {
    let Some((model, preset, changes)) = recipe(source) else { return };
    let receipt = &source.receipt;
    let evaluated = evaluated(receipt);
    let alike = |row: &ResultRow| {
        (row.model, &row.preset, &row.changes, &row.evaluated) == (model, &preset, &changes, &evaluated)
    };
    let run = |receipt: &Receipt| (receipt.seed, receipt.hashes.weights.clone());
    let again = |other: &Source| run(&other.receipt) == run(receipt) && other.receipt.same_test(receipt);
    if rows.iter().filter(|row| alike(row)).any(|row| row.sources.iter().any(again)) {
        return;
    }
    let joins = |other: &Source| other.receipt.seed != receipt.seed && other.receipt.same_test(receipt);
    let known = rows.iter().position(|row| alike(row) && row.sources.iter().all(joins));
    let place = known.unwrap_or_else(|| {
        rows.push(ResultRow { evaluated, ..row(benchmark, model, &preset, &changes) });
        rows.len() - 1
    });
    rows[place].sources.push(source.clone());
}

/// How a receipt was evaluated, in words, where it was not one prediction on the grid of the training.
fn evaluated(receipt: &Receipt) -> Option<String> {
    let symmetries = receipt.symmetries.map(|count| format!("mean over {count} symmetries"));
    let grid = receipt.trained_on.as_ref().map(|grid| format!("trained on a {grid}"));
    let words: Vec<String> = symmetries.into_iter().chain(grid).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Model, preset and changes of a receipt. Earlier versions did not state the preset; their file `BENCHMARK-MODEL.json` is the
/// authors' recipe. A run of the authors' recipe with all that the preset `best` changes, and nothing else, is a run of `best`;
/// and what a run of `best` changed before the preset did is no change.
fn recipe(source: &Source) -> Option<(&'static str, String, Vec<String>)> {
    let Receipt { benchmark, model, preset, changes, .. } = &source.receipt;
    let model = MODELS.iter().find(|row| row.name == model)?.name;
    let named = || (source.file == format!("{benchmark}-{model}.json")).then(|| "paper".to_owned());
    let preset = preset.clone().or_else(named).filter(|preset| preset != "quick")?;
    let counts = |change: &&String| !UNIMPORTANT.iter().any(|start| change.starts_with(start));
    let mut changes: Vec<String> = changes.iter().filter(counts).cloned().collect();
    let best = if changes.is_empty() { None } else { best_changes(benchmark, model) };
    match (preset.as_str(), best) {
        ("paper", Some(best)) if best == changes => return Some((model, "best".to_owned(), Vec::new())),
        ("best", Some(best)) => changes.retain(|change| !best.contains(change)),
        _ => {}
    }
    Some((model, preset, changes))
}

/// What the preset `best` changes in the authors' recipe.
fn best_changes(benchmark: &str, model: &str) -> Option<Vec<String>> {
    let request =
        Request { benchmark: Some(benchmark), model: Some(model), preset: Some(Preset::Best), ..Request::default() };
    Experiment { preset: Preset::Paper, ..request.resolve().ok()? }.changes()
}

fn row(benchmark: &'static str, model: &'static str, preset: &str, changes: &[String]) -> ResultRow {
    let column = COLUMNS.iter().position(|name| *name == benchmark);
    let published = PUBLISHED.iter().find(|(name, _)| *name == model);
    let published = published.zip(column).map(|((_, errors), column)| errors[column]).filter(|error| *error > 0.0);
    let (preset, changes) = (preset.to_owned(), changes.to_vec());
    let (evaluated, sources) = (None, Vec::new());
    ResultRow { benchmark, model, preset, changes, evaluated, sources, published, same_test: true }
}

/// The receipts among the json files of a folder, in the order of their names.
fn read(folder: &Path) -> Result<Vec<Source>, Error> {
    let entries = std::fs::read_dir(folder).map_err(|reason| Error::reading(folder, reason))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    let mut sources = Vec::new();
    for path in paths {
        let text = files::read_to_string(&path).map_err(|reason| Error::reading(&path, reason))?;
        let value: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| Refusal::about(path.display().to_string(), format!("is no JSON: {error}")))?;
        if value.get("evaluation").is_some() && value.get("hashes").is_some() {
            let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            sources.push(Source { file, receipt: Receipt::read(&path)? });
        }
    }
    Ok(sources)
}
