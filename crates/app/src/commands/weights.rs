//! `lamo import` and `lamo export-weights`: state dicts in and out of model folders, bit for bit.

use super::say;
use anyhow::Result;
use clap::Args;
use lamo::weights::{self, Description, Stored};
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
    /// Model folder.
    model: PathBuf,
    /// Safetensors file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn import(options: &Import) -> Result<()> {
    let stored = Stored::import(Description::read(&options.config)?, &options.weights)?;
    stored.write(&options.out)?;
    say(&summary(&options.out, &stored))
}

pub(crate) fn export(options: &Export) -> Result<()> {
    let stored = Stored::read(&options.model)?;
    weights::write(&options.out, &stored.sections, &stored.parameters, &BTreeMap::new())?;
    say(&summary(&options.out, &stored))
}

fn summary(path: &Path, stored: &Stored) -> String {
    let (tensors, parameters) = (stored.sections.len(), stored.parameters.len());
    format!("{}: {}, {tensors} tensors, {parameters} parameters", path.display(), stored.description.model.name)
}
