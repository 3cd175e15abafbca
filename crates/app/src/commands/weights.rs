//! `lamo import` and `lamo export-weights`: state dicts in and out of model folders, float32 bit for bit.

use super::say;
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::data::state_dict;
use lamo::run::Operator;
use lamo::run::model_folder::{Description, ModelFolder};
use lamo::workflow::Model;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a configuration looks like.
pub(crate) const CONFIGURATION: &str = r#"The configuration reads, for example,
  [model]
  name = "lamo"
  settings = { latent = "slices", mixer = "hydra", directions = 2, width = 128 }
  [task]
  space = 2
  functions = 1
  outputs = 1
  grid = { kind = "plane", rows = 221, columns = 51 }
Settings that are not given take their defaults (lamo list --json); points without rows are
  grid = { kind = "cloud", points = 972 }"#;

/// `lamo import`
#[derive(Args)]
pub(crate) struct Import {
    /// State dict, a safetensors file with the authors' parameter names.
    weights: PathBuf,
    /// Which model it belongs to: a toml file with the tables `model` and `task`.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Model folder to write; must not exist or be empty.
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
}

/// `lamo export-weights`
#[derive(Args)]
pub(crate) struct Export {
    /// Model folder, run folder or checkpoint.
    model: PathBuf,
    /// Safetensors file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn import(options: &Import) -> Result<()> {
    let imported = ModelFolder::import(Description::read(&options.config)?, &options.weights)?;
    if let Some(parent) = options.out.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("{}: cannot be made", parent.display()))?;
    }
    imported.write(&options.out)?;
    say(&summary(&options.out, &imported.operator))
}

pub(crate) fn export(options: &Export) -> Result<()> {
    if options.out.extension().is_none_or(|ending| ending != "safetensors") {
        bail!("--out {}: expected a name that ends in .safetensors, found another", options.out.display());
    }
    let model = Model::open(&options.model)?;
    model.protect(&options.out)?;
    let operator = model.operator();
    state_dict::write(&options.out, &operator.sections, &operator.parameters, &BTreeMap::new())?;
    say(&summary(&options.out, operator))
}

fn summary(path: &Path, operator: &Operator) -> String {
    let Operator { model, sections, parameters, .. } = operator;
    format!("{}: {}, {} tensors, {} parameters", path.display(), model.name, sections.len(), parameters.len())
}
