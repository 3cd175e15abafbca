//! From a request to an experiment: layers of the same keys, one on top of the other.

use super::{Experiment, OWN, Preset, benchmarks, best, keys};
use crate::error::Refusal;
use crate::network::models::{self, MODELS, OwnData, RETIRED, Row};
use lamo_geometry::Grid;
use toml::{Table, Value};

pub(super) const DEFAULTS: &str = include_str!("defaults.toml");
/// Keys that all experiments on a user's data share.
pub(super) const OWN_KEYS: &str = include_str!("../../../../experiments/own.toml");

/// An experiment before it is resolved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// A benchmark, which may be left to the file.
    pub benchmark: Option<&'a str>,
    /// A model; unless the file says otherwise, FNO on lines of a user's data and LaMO elsewhere.
    pub model: Option<&'a str>,
    /// Size; the published recipe unless the file says otherwise.
    pub preset: Option<Preset>,
    /// `(name for errors, text)` of an experiment file.
    pub file: Option<(&'a str, &'a str)>,
    /// The grid of a user's data, from which some settings of a model follow.
    pub grid: Option<Grid>,
    /// `key=value` texts for any key; the last one wins.
    pub changes: &'a [String],
    /// True when the file is the record of a run, which has every key.
    pub recorded: bool,
}

impl Request<'_> {
    /// Whether the file or a change sets a key.
    pub(crate) fn says(&self, path: &[&str]) -> bool {
        Said::by(self).is_ok_and(|said| said.0.iter().any(|(_, layer)| keys::has(layer, path)))
    }

    /// The text that the file or a change gives a key, the last one; `None` where none does or where they cannot be read.
    pub(crate) fn text(&self, path: &[&str]) -> Option<String> {
        Said::by(self).ok()?.text(path).map(str::to_owned)
    }

    /// All layers, one on top of the other.
    pub fn resolve(&self) -> Result<Experiment, Refusal> {
        let said = Said::by(self)?;
        let text = |given: Option<&str>, path: &[&str]| given.or_else(|| said.text(path)).map(str::to_owned);
        let benchmark = text(self.benchmark, &["benchmark"]).unwrap_or(OWN.into());
        // Without changes, whatever does not fit stands in the file.
        let about = |refusal: Refusal| match self.file {
            Some((name, _)) if self.changes.is_empty() => refusal.within(format!("experiment {name}")),
            _ => refusal,
        };
        let name = text(self.model, &["model", "name"]);
        let name = name.unwrap_or_else(|| default_model(&benchmark, self.grid).into());
        let model = models::find(&name).map_err(about)?;
        let preset = text(self.preset.map(Preset::name), &["preset"]).unwrap_or("paper".into());
        let timed = said.text(&["train", "loss"]) == Some("relative-l2-of-times")
            || said.text(&["data", "time"]) == Some("by-time");
        // A record has every key, also those that were the best of its time.
        let layer = if self.recorded && preset == Preset::Best.name() { Preset::Paper.name() } else { preset.as_str() };
        let table =
            base(&benchmark, model, &OwnData { grid: self.grid, timed, quick: layer == Preset::Quick.name() }, layer);
        let mut table = table.map_err(about)?;
        if self.recorded {
            // What the preset sets today says nothing about a run of an earlier version that did not know the key.
            keys::merge(&mut table, defaults(model)?, false);
        }
        let problem = said.text(&["data", "problem"]).or_else(|| keys::text(&table, &["data", "problem"]));
        let problem = problem.unwrap_or_default();
        let removed = removed_settings(problem, model.name).map_err(about)?;
        let problem_settings = problem_settings(problem).map_err(about)?;
        keys::merge(&mut table, problem_settings, true);
        let published = keys::whole(&table, &["data", "train"]);
        let mut known = keys::flatten(&table);
        if self.recorded {
            known.extend(keys::flatten(&removed)); // a run of an earlier version recorded them
        }
        if cfg!(not(feature = "solvers")) {
            known.push("data.settings".to_owned()); // an open table: the parameters of problems are unknown
        }
        said.lay_on(&mut table, &known)?;
        if !self.recorded && benchmark != OWN {
            keep_test_samples(&mut table, published)?;
        }
        for (key, value) in [("benchmark", benchmark), ("preset", preset)] {
            table.insert(key.into(), Value::String(value));
        }
        keys::merge(&mut table, keys::change(&format!("model.name={}", model.name))?, false);
        let parsed = table.try_into::<Experiment>();
        let name = self.file.map_or_else(String::new, |(name, _)| format!(" {name}"));
        let experiment =
            parsed.map_err(|error| Refusal::said(format!("experiment{name}: {}", keys::plain(&error.to_string()))))?;
        experiment.check().map_err(about)?;
        Ok(experiment)
    }
}

/// The model where none is named. On lines FNO learns faster and better than LaMO: 0.6 % against 3.6 % on Burgers' equation
/// after 30 epochs, in half the time.
fn default_model(benchmark: &str, grid: Option<Grid>) -> &'static str {
    let row = benchmarks::find(benchmark).ok();
    let grid = if benchmark == OWN { grid } else { row.filter(|row| !row.published).map(benchmarks::Benchmark::grid) };
    if let Some(Grid::Line { .. }) = grid { "fno" } else { "lamo" }
}

/// The user's layers, the file first, each with its name for errors.
struct Said(Vec<(String, Table)>);

impl Said {
    /// Refuses a key whose value in a layer differs from the value in the request.
    fn by(request: &Request<'_>) -> Result<Said, Refusal> {
        let mut layers = Vec::new();
        if let Some((name, text)) = request.file {
            layers.push((format!("experiment {name}"), keys::parse(name, text)?));
        }
        for change in request.changes {
            layers.push((format!("--set {change}"), keys::change(change)?));
        }
        let given = [
            ("benchmark", &["benchmark"][..], request.benchmark),
            ("model.name", &["model", "name"], request.model),
            ("preset", &["preset"], request.preset.map(Preset::name)),
        ];
        for ((source, layer), (key, path, value)) in layers.iter().flat_map(|layer| given.map(|given| (layer, given))) {
            if let (Some(other), Some(value)) = (keys::text(layer, path), value)
                && other != value
            {
                return Err(Refusal::said(format!(
                    "{source}: expected one {key}, found {other} here and {value} in the request; leave one out"
                )));
            }
        }
        Ok(Said(layers))
    }

    /// The last value of a key.
    fn text(&self, path: &[&str]) -> Option<&str> {
        self.0.iter().rev().find_map(|(_, layer)| keys::text(layer, path))
    }

    /// Refuses keys that are not `known`.
    fn lay_on(self, table: &mut Table, known: &[String]) -> Result<(), Refusal> {
        for (source, layer) in self.0 {
            keys::check(&source, &layer, known)?;
            keys::merge(table, layer, false);
        }
        Ok(())
    }
}

/// Sets `data.first_test` where the number of training samples is not the published one, so that runs with fewer or more
/// training samples share their test samples.
fn keep_test_samples(table: &mut Table, published: Option<i64>) -> Result<(), Refusal> {
    let chosen = keys::whole(table, &["data", "train"]);
    if keys::text(table, &["data", "folder"]).is_none()
        && let (Some(published), Some(chosen), Some(0)) =
            (published, chosen, keys::whole(table, &["data", "first_test"]))
        && ![0, published].contains(&chosen)
    {
        keys::merge(table, keys::change(&format!("data.first_test={published}"))?, false);
    }
    Ok(())
}

/// The library's defaults, with those of a model.
pub(super) fn defaults(model: &Row) -> Result<Table, Refusal> {
    let mut table = keys::parse("defaults", DEFAULTS)?;
    keys::merge(&mut table, model_settings(model.defaults()), false);
    Ok(table)
}

fn model_settings(settings: Table) -> Table {
    let model = Table::from_iter([("settings".to_owned(), Value::Table(settings))]);
    Table::from_iter([("model".to_owned(), Value::Table(model))])
}

/// The layers below the user's: defaults, the benchmark's keys, the model's recipe, the preset.
fn base(benchmark: &str, model: &Row, own: &OwnData, preset: &str) -> Result<Table, Refusal> {
    let mut table = defaults(model)?;
    let row = if benchmark == OWN { None } else { Some(benchmarks::find(benchmark)?) };
    let mut shared = keys::parse(benchmark, row.map_or(OWN_KEYS, |row| row.keys))?;
    let [smaller, better] = ["quick", best::TABLE].map(|preset| shared.remove(preset));
    keys::merge(&mut table, shared, false);
    let recipe = match (row, (model.recipe)(benchmark)) {
        (Some(_), Some(recipe)) => keys::parse(&format!("{benchmark}-{}", model.name), recipe)?,
        (Some(row), None) if row.published => return Err(no_recipe(benchmark, model.name)),
        // A problem that is not of the paper trains like a user's data.
        (row, _) => {
            let like = row.map_or(*own, |row| row.as_own(own));
            let mut keys = keys::parse(&format!("{OWN}-{}", model.name), (model.recipe)(OWN).unwrap_or_default())?;
            keys::merge(&mut keys, model_settings((model.own)(&like)), false);
            keys
        }
    };
    keys::merge(&mut table, recipe, false);
    if preset == Preset::Best.name() {
        keys::merge(&mut table, best::layer(benchmark, model.name, better)?, false);
    }
    if preset == Preset::Quick.name() {
        if let Some(Value::Table(smaller)) = smaller {
            keys::merge(&mut table, smaller, false);
        }
        let like_own = || row.filter(|row| !row.published).and_then(|_| (model.quick)(OWN));
        let sizes = (model.quick)(benchmark).or_else(like_own).unwrap_or_default();
        keys::merge(&mut table, keys::parse(benchmark, sizes)?, false);
    }
    Ok(table)
}

fn no_recipe(benchmark: &str, model: &str) -> Refusal {
    let able: Vec<_> = MODELS.iter().filter(|row| (row.recipe)(benchmark).is_some()).map(|row| row.name).collect();
    Refusal::said(format!("{benchmark}: there is no recipe for model {model}; there are {}", able.join(", ")))
}

/// `data.settings` with the problem's defaults; empty where no problem is named.
#[cfg(feature = "solvers")]
pub(super) fn problem_settings(problem: &str) -> Result<Table, Refusal> {
    let mut table = Table::new();
    if problem.is_empty() {
        return Ok(table);
    }
    let row = lamo_physics::problems::find(problem);
    let row = row.map_err(|error| Refusal::about("data.problem", error.to_string()))?;
    for parameter in row.parameters {
        let (name, value) = (parameter.name, parameter.kind.default_value());
        keys::merge(&mut table, keys::change(&format!("data.settings.{name}={value}"))?, false);
    }
    Ok(table)
}

/// `data.settings` and `model.settings` that earlier versions of the problem and of the model had, with their last defaults.
pub(super) fn removed_settings(problem: &str, model: &str) -> Result<Table, Refusal> {
    let of_model = RETIRED.iter().filter(|(of, ..)| *of == model);
    let mut changes: Vec<String> = of_model.map(|(_, key, off)| format!("model.settings.{key}={off}")).collect();
    changes.extend(removed_parameters(problem));
    let mut table = Table::new();
    for change in changes {
        keys::merge(&mut table, keys::change(&change)?, false);
    }
    Ok(table)
}

#[cfg(feature = "solvers")]
fn removed_parameters(problem: &str) -> Vec<String> {
    let removed = lamo_physics::problems::find(problem).map_or(&[][..], |row| row.removed);
    removed.iter().map(|gone| format!("data.settings.{}={}", gone.name, gone.default)).collect()
}

/// Without solvers, the parameters of problems are unknown, so any setting is accepted.
#[cfg(not(feature = "solvers"))]
fn removed_parameters(_problem: &str) -> Vec<String> {
    Vec::new()
}

/// Without solvers, the parameters of problems are unknown, so any setting is accepted.
#[cfg(not(feature = "solvers"))]
pub(super) fn problem_settings(_problem: &str) -> Result<Table, Refusal> {
    Ok(Table::new())
}
