//! `lamo import` and `lamo export-weights`: state dicts in and out of model folders, float32 bit for bit.

use super::{make_folder, require_extension, say, warn};
use anyhow::Result;
use clap::Args;
use lamo::error::counted;
use lamo::run::Operator;
use lamo::run::model_folder::{Description, ModelFolder};
use lamo::workflow::Model;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An example of a configuration, for the long help.
pub(crate) const CONFIGURATION: &str = r#"An example of a configuration:
  [model]
  name = "lamo"
  settings = { latent = "slices", mixer = "hydra", directions = 2, width = 128 }
  [task]
  space = 2
  functions = 1
  outputs = 1
  grid = { kind = "plane", rows = 221, columns = 51 }
A setting that is not given has its default (lamo list --json). The grid of a point cloud is
  grid = { kind = "cloud", points = 972 }
Without --config, all that the shapes of the tensors tell is read off them, and --set gives the rest:
  lamo import darcy.safetensors --set task.grid=85x85 --out darcy-model"#;

/// `lamo import`
#[derive(Args)]
pub(crate) struct Import {
    /// State dict: a safetensors file with the authors' parameter names.
    weights: PathBuf,
    /// The model that the state dict belongs to: a toml file with the tables `model` and `task`. Without it, the model and its
    /// settings are read off the shapes of the tensors.
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    config: Option<PathBuf>,
    /// What the shapes do not tell, such as task.grid=85x85, task.space=3 or model.settings.groups=2; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Model folder to write; it must be empty or not exist.
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
}

/// `lamo export-weights`
#[derive(Args)]
pub(crate) struct Export {
    /// Model folder, run folder or checkpoint file.
    model: PathBuf,
    /// Safetensors file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn import(options: &Import) -> Result<()> {
    let (imported, assumed) = match &options.config {
        Some(config) => (ModelFolder::import(Description::read(config)?, &options.weights)?, Vec::new()),
        None => ModelFolder::infer(&options.weights, &options.set)?,
    };
    if let Some(parent) = options.out.parent() {
        make_folder(parent)?;
    }
    imported.write(&options.out)?;
    say_summary(&options.out, &imported.operator)?;
    if options.config.is_none() {
        say(&format!("settings: {}", settings(&imported.operator)))?;
    }
    assumed.iter().try_for_each(|sentence| say(&format!("assumed: {sentence}")))
}

pub(crate) fn export(options: &Export) -> Result<()> {
    require_extension(&options.out, "safetensors").map_err(|refusal| refusal.within("--out"))?;
    let model = Model::open(&options.model)?;
    model.protect(&options.out)?;
    if let Some(note) = model.note() {
        warn(&format!("warning: {note}"));
    }
    let operator = model.operator();
    operator.write_weights(&options.out, &BTreeMap::new())?;
    say_summary(&options.out, operator)
}

/// The settings and the sizes of the task.
fn settings(operator: &Operator) -> String {
    let Operator { model, task, .. } = operator;
    let settings = model.settings.iter().map(|(key, value)| format!("{key} = {value}"));
    let settings: Vec<_> = settings.collect();
    let sizes = [
        (task.space, "coordinate"),
        (task.input_channels(), "input channel"),
        (task.output_channels(), "output channel"),
    ];
    let sizes = sizes.map(|(count, what)| counted(count, what));
    format!("{}; {}", settings.join(", "), sizes.join(", "))
}

fn say_summary(path: &Path, operator: &Operator) -> Result<()> {
    let Operator { model, sections, parameters, .. } = operator;
    let (tensors, parameters) = (sections.len(), parameters.len());
    say(&format!("{}: {}, {tensors} tensors, {parameters} parameters", path.display(), model.name))
}
