//! Data sets made on the way: each recipe has its folder in the user's cache, made once.

use crate::dataset::{Dataset, Manifest, Outcome, Recipe, Watch};
use crate::error::Error;
use crate::experiment::{Data, Experiment};
use crate::models::{self, Refusal, Task, require};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use toml::Value;

/// `LAMO_CACHE`, or `lamo` in the system's folder for caches.
pub fn folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("LAMO_CACHE").unwrap_or_else(|| {
        let home = || variable("HOME").map(|home| home.join(".cache"));
        let caches = variable("XDG_CACHE_HOME").or_else(home).or_else(|| variable("LOCALAPPDATA"));
        caches.unwrap_or_else(std::env::temp_dir).join("lamo")
    })
}

/// The data set of an experiment: the folder it names, or one made by its problem on `threads` threads and kept.
pub fn dataset(data: &Data, threads: usize, watch: Watch) -> Result<Outcome, Error> {
    if let Some(folder) = &data.folder {
        return Ok(Outcome::AlreadyThere(Dataset::open(folder)?));
    }
    let recipe = recipe(data)?;
    Ok(recipe.make(&folder().join(name(recipe.manifest())?), threads, watch)?)
}

/// Of the folder of a recipe: the same for every version of lamo, as the generator has a version of its own.
fn name(recipe: &Manifest) -> Result<String, Error> {
    let timeless = Manifest { lamo: String::new(), ..recipe.clone() };
    let text = toml::to_string(&timeless).map_err(|error| Refusal(error.to_string()))?;
    let hash = Sha256::digest(text.as_bytes());
    let hash: String = hash[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{}-{hash}", recipe.problem))
}

/// Refuses, before data are made for it, a model that their grid does not allow, and settings that the problem does not have.
pub fn check_ahead(experiment: &Experiment) -> Result<(), Error> {
    let Experiment { data, model, train, .. } = experiment;
    if data.folder.is_none() {
        let grid = recipe(data)?.manifest().grid.into();
        if let Ok(benchmark) = experiment.benchmark() {
            let task = Task { grid, ..benchmark.task(train.batch) };
            models::find(&model.name)?.parameter_count(&task, &model.settings)?;
        }
    }
    Ok(())
}

/// How the data of an experiment are made.
fn recipe(data: &Data) -> Result<Recipe, Error> {
    require(!data.problem.is_empty(), || {
        "the experiment names no data; give a data set with --data DIR or a problem with data.problem".to_owned()
    })?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned); // a word has no quotes
    let changes: Vec<String> = data.settings.iter().map(|(key, value)| format!("{key}={}", text(value))).collect();
    Ok(Recipe::named(&data.problem, &changes, data.seed, data.train.saturating_add(data.test))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_keeps_its_folder_when_lamo_has_a_new_version_and_loses_it_when_the_generator_has() {
        let recipe = Recipe::named("darcy", &["resolution=8"], 0, 2).unwrap();
        let now = recipe.manifest().clone();
        let newer = Manifest { lamo: "99.0.0".into(), ..now.clone() };
        assert_eq!(name(&newer).unwrap(), name(&now).unwrap());
        let solved_anew = Manifest { generator: now.generator + 1, ..now.clone() };
        assert_ne!(name(&solved_anew).unwrap(), name(&now).unwrap());
    }
}
