//! `lamo import` and `lamo export-weights`: state dicts in and out of model folders, float32 bit for bit.

use super::say;
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::run;
use lamo::trained::Trained;
use lamo::weights::{self, Description, Stored};
use lamo_tensor::Section;
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
    let stored = Stored::import(Description::read(&options.config)?, &options.weights)?;
    if let Some(parent) = options.out.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("{}: cannot be made", parent.display()))?;
    }
    stored.write(&options.out)?;
    say(&summary(&options.out, &stored.description.model.name, &stored.sections, &stored.parameters))
}

pub(crate) fn export(options: &Export) -> Result<()> {
    if options.out.extension().is_none_or(|ending| ending != "safetensors") {
        bail!("--out {}: expected a name that ends in .safetensors, found another", options.out.display());
    }
    let (name, sections, parameters) = if Stored::is_at(&options.model) {
        let stored = Stored::read(&options.model)?;
        (stored.description.model.name, stored.sections, stored.parameters)
    } else if !options.model.is_file() && run::kept(&options.model).is_none() {
        let found = if options.model.is_dir() { "a folder without them" } else { "nothing" };
        let path = options.model.display();
        bail!("{path}: expected a model folder with model.toml, a run folder or a checkpoint, found {found}");
    } else {
        let trained = Trained::open(&options.model)?;
        trained.spare(&options.out)?;
        (trained.experiment.model.name, trained.sections, trained.parameters)
    };
    weights::write(&options.out, &sections, &parameters, &BTreeMap::new())?;
    say(&summary(&options.out, &name, &sections, &parameters))
}

fn summary(path: &Path, model: &str, sections: &[Section], parameters: &[f32]) -> String {
    format!("{}: {model}, {} tensors, {} parameters", path.display(), sections.len(), parameters.len())
}
