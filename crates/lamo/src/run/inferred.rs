//! The description of a state dict from the shapes of its tensors and from what the user says.

use super::model_folder::{Description, ModelFolder};
use crate::data::state_dict::Contents;
use crate::error::{Error, Refusal, require};
use crate::experiment;
use crate::network::models::{self, Hints, Inferred, MODELS, Shapes};
use lamo_geometry::Grid;
use std::path::Path;
use toml::{Table, Value};

impl ModelFolder {
    /// A state dict whose model and task are read off its shapes. `changes` are `key=value` texts for the keys of
    /// `model.toml`; they win. Also returns what the shapes do not tell and was assumed.
    pub fn infer(weights: &Path, changes: &[String]) -> Result<(ModelFolder, Vec<String>), Error> {
        let contents = Contents::read(weights)?;
        let (description, assumed) = describe(&contents, changes)?;
        Ok((ModelFolder::fill(description, &contents)?, assumed))
    }
}

fn describe(contents: &Contents, changes: &[String]) -> Result<(Description, Vec<String>), Error> {
    let mut said = Table::new();
    for change in changes {
        experiment::merge(&mut said, experiment::change(change)?, false);
    }
    let table = |key: &str| said.get(key).and_then(Value::as_table).cloned().unwrap_or_default();
    let (mut model, mut task) = (table("model"), table("task"));
    let grid = task.get("grid").map(read_grid).transpose()?;
    let whole = |key: &str| task.get(key).and_then(Value::as_integer).and_then(|number| usize::try_from(number).ok());
    let hints = Hints {
        settings: model.get("settings").and_then(Value::as_table).cloned().unwrap_or_default(),
        grid,
        space: whole("space"),
        functions: whole("functions"),
    };
    let name = model.get("name").and_then(Value::as_str);
    let (name, inferred) =
        infer(name, &contents.shapes()?, &hints).map_err(|refusal| refusal.within(contents.path().display()))?;
    let Inferred { settings, grid, space, functions, outputs, time, assumed } = inferred;
    task.remove("grid");
    said.remove("model");
    said.remove("task");
    let mut known = Table::from_iter([
        ("grid".to_owned(), Value::try_from(grid).unwrap_or(Value::Boolean(false))),
        ("space".to_owned(), number(space)),
        ("functions".to_owned(), number(functions)),
        ("outputs".to_owned(), number(outputs)),
    ]);
    if time {
        known.insert("time".to_owned(), Value::Boolean(true));
    }
    experiment::merge(&mut known, task, false);
    let mut chosen = Table::from_iter([("settings".to_owned(), Value::Table(settings))]);
    model.insert("name".to_owned(), Value::String(name.to_owned()));
    experiment::merge(&mut chosen, model, false);
    said.extend([("model".to_owned(), Value::Table(chosen)), ("task".to_owned(), Value::Table(known))]);
    let unknown = said.keys().find(|key| !["model", "task"].contains(&key.as_str()));
    require(unknown.is_none(), || {
        Refusal::new("--set", "a key of model or task", unknown.map_or("none", String::as_str))
    })?;
    Ok((Description::parse(contents.path(), &said.to_string())?, assumed))
}

fn number(value: usize) -> Value {
    Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

/// The model whose tensors these are, and all that is known about it.
fn infer(name: Option<&str>, shapes: &Shapes, hints: &Hints) -> Result<(&'static str, Inferred), Refusal> {
    let rows = match name {
        Some(name) => std::slice::from_ref(models::find(name)?),
        None => MODELS,
    };
    let found = rows.iter().find_map(|row| row.infer(shapes, hints).map(|inferred| (row.name, inferred)));
    let (name, inferred) = found.ok_or_else(|| {
        let known: Vec<_> = rows.iter().map(|row| row.name).collect();
        Refusal::new("the weights", format!("names of tensors of {}", known.join(", ")), "other names")
            .advise("describe the model with --config")
    })?;
    Ok((name, inferred?))
}

/// A grid as in `model.toml`, or as a text: ROWSxCOLUMNS, ROWSxCOLUMNSxLAYERS, line:POINTS or cloud:POINTS.
fn read_grid(value: &Value) -> Result<Grid, Refusal> {
    let expected = "ROWSxCOLUMNS, ROWSxCOLUMNSxLAYERS, line:POINTS or cloud:POINTS";
    let refuse = || Refusal::new("task.grid", expected, value.to_string());
    let count = |text: &str| text.trim().parse().ok().filter(|&count: &usize| count > 0).ok_or_else(refuse);
    let Some(text) = value.as_str() else { return value.clone().try_into().map_err(|_| refuse()) };
    match text.split_once(':') {
        Some(("line", points)) => Ok(Grid::Line { points: count(points)? }),
        Some(("cloud", points)) => Ok(Grid::Cloud { points: count(points)? }),
        _ => Grid::parse_lattice(text).ok_or_else(refuse),
    }
}
