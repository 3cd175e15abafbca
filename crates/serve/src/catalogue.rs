//! The models of a server, by name and version.

use crate::card;
use crate::engine::{Compute, Engine, Programs};
use crate::failure::Failure;
use crate::metrics::Metrics;
use crate::own::solver::Solver;
use crate::settings::Settings;
use lamo::error::Refusal;
use lamo::workflow::{Model, TestSet};
use lamo::{Error, Kind, Samples, Task};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A model to serve: `PATH`, `NAME=PATH` or `NAME=PATH@VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name in addresses: letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// Version in addresses.
    pub version: String,
    /// A run folder, a checkpoint, a model folder or the name of a pretrained model.
    pub path: PathBuf,
}

impl Source {
    /// Parses an argument. Without a name, the model has that of its folder or file.
    pub fn parse(text: &str) -> Result<Source, Error> {
        // A path may hold an equals sign; a name holds no slash.
        let named = text.split_once('=').filter(|(name, _)| !name.contains(['/', '\\']) && !Path::new(text).exists());
        if let Some((name, path)) = named.filter(|(name, path)| !is_name(name) || path.is_empty()) {
            return Err(misnamed(text, name, path).into());
        }
        let (name, rest) = named.map_or((None, text), |(name, path)| (Some(name), path));
        let versioned = rest.rsplit_once('@').filter(|(path, version)| !path.is_empty() && is_name(version));
        let (path, version) = match versioned {
            Some((path, version)) if !Path::new(rest).exists() => (path, version),
            _ => (rest, "1"),
        };
        let path = PathBuf::from(path);
        // A path that does not exist has a name, too: the sentence about it says that nothing is there.
        let own = || {
            let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
            whole.file_stem().map(|stem| stem.to_string_lossy().into_owned())
        };
        let name = name.map(str::to_owned).or_else(own).unwrap_or_default();
        if !is_name(&name) {
            return Err(misnamed(text, &name, rest).into());
        }
        Ok(Source { name, version: version.to_owned(), path })
    }
}

/// The refusal of an argument by its name, with a form of it that is taken.
fn misnamed(text: &str, name: &str, path: &str) -> Refusal {
    let model = format!("model {text}");
    let words = name.split(|letter: char| !is_plain(letter)).filter(|word| !word.is_empty());
    let plain = words.collect::<Vec<_>>().join("-").trim_start_matches('.').to_owned();
    let plain = if is_name(&plain) { plain } else { "NAME".to_owned() };
    if path.is_empty() {
        let advice = format!("write {plain}=PATH");
        return Refusal::new(model, "a path or the name of a pretrained model after the =", "nothing").advise(advice);
    }
    let form = format!("{plain}={path}");
    let form = if form.contains(char::is_whitespace) { format!("\"{form}\"") } else { form };
    let expected = "a name of letters, digits, dots, dashes and underscores";
    Refusal::new(model, expected, format!("the name `{name}`")).advise(format!("write {form}"))
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._-".contains(letter)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128 && text.chars().all(is_plain) && !text.starts_with('.')
}

/// A model that is served.
pub(crate) struct Served {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) model: Arc<Model>,
    pub(crate) engine: Engine,
    /// What the page and programs are told about it.
    pub(crate) card: Value,
    /// Its test samples, or why there are none.
    pub(crate) test: Result<TestSet, String>,
    /// Their values, read when first asked for.
    pub(crate) samples: Mutex<Option<Arc<Samples>>>,
    /// The solver of its problem, or a sentence that says why it has no solver.
    pub(crate) solver: Result<Solver, String>,
}

impl Served {
    fn open(source: &Source, settings: &Settings, metrics: &Metrics) -> Result<Served, Error> {
        let Source { name, version, path } = source;
        let model = Arc::new(Model::open(path)?);
        let test = TestSet::open(&model, path).map_err(|error| error.to_string());
        let solver = Solver::of(&model, test.as_ref().ok().map(TestSet::dataset));
        let card = card::card(source, &model, settings.device, test.as_ref().map_or(0, TestSet::count), solver.is_ok());
        let (own, given) = (Arc::clone(&model), settings.clone());
        let make = Box::new(move || -> Box<dyn Compute> { Box::new(Programs::new(Arc::clone(&own), &given)) });
        let engine =
            Engine::start(name, (settings.batch, settings.limits.points), metrics.of_model(name, version), make)?;
        let samples = Mutex::default();
        Ok(Served { name: name.clone(), version: version.clone(), model, engine, card, test, samples, solver })
    }

    pub(crate) fn task(&self) -> &Task {
        &self.model.operator().task
    }
}

/// All models.
pub(crate) struct Catalogue {
    models: Vec<Arc<Served>>,
}

impl Catalogue {
    pub(crate) fn open(sources: &[Source], settings: &Settings, metrics: &Metrics) -> Result<Catalogue, Error> {
        if sources.is_empty() {
            return Err(Refusal::new("models to serve", "at least one", "none").into());
        }
        for (place, source) in sources.iter().enumerate() {
            let Source { name, version, .. } = source;
            if sources[..place].iter().any(|other| other.name == *name && other.version == *version) {
                let refusal = Refusal::new("models to serve", "one model for each name and version", "two");
                let refusal = refusal.within(format!("{name} version {version}")).of(Kind::Conflict);
                return Err(refusal.advise(format!("give one another name or version: NAME={name}@2")).into());
            }
        }
        let models = sources.iter().map(|source| Served::open(source, settings, metrics).map(Arc::new));
        Ok(Catalogue { models: models.collect::<Result<_, _>>()? })
    }

    pub(crate) fn all(&self) -> &[Arc<Served>] {
        &self.models
    }

    /// A model by its name; without a version, the one with the greatest. The name may be `NAME@VERSION`.
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Result<Arc<Served>, Failure> {
        let (name, version) = match (name.split_once('@'), version) {
            (Some((name, version)), None) => (name, Some(version)),
            _ => (name, version),
        };
        let of_name = || self.models.iter().filter(|served| served.name == name);
        let found = match version {
            Some(version) => of_name().find(|served| served.version == version),
            None => of_name().max_by_key(|served| (served.version.parse::<u64>().ok(), &served.version)),
        };
        found.cloned().ok_or_else(|| {
            let known: Vec<String> =
                self.models.iter().map(|served| format!("{} version {}", served.name, served.version)).collect();
            let asked = version.map_or_else(String::new, |version| format!(" version {version}"));
            Failure::missing(format!("there is no model {name}{asked}; there is {}", known.join(", ")))
        })
    }

    /// The versions of a name.
    pub(crate) fn versions(&self, name: &str) -> Vec<&str> {
        self.models.iter().filter(|served| served.name == name).map(|served| served.version.as_str()).collect()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.models.iter().all(|served| served.engine.is_ready())
    }

    pub(crate) fn stop(&self) {
        self.models.iter().for_each(|served| served.engine.stop());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_the_name_of_its_folder_unless_it_is_given_one() {
        let parsed = |text: &str| Source::parse(text).map(|source| (source.name, source.version, source.path));
        let folder = std::env::temp_dir().join(format!("lamo-source-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("run-1")).unwrap();
        let run = folder.join("run-1");
        let text = run.display().to_string();
        assert_eq!(parsed(&text).unwrap(), ("run-1".into(), "1".into(), run.clone()));
        assert_eq!(parsed(&format!("{text}@3")).unwrap(), ("run-1".into(), "3".into(), run.clone()));
        assert_eq!(parsed(&format!("mine={text}@v2")).unwrap(), ("mine".into(), "v2".into(), run));
        assert_eq!(parsed("darcy").unwrap(), ("darcy".into(), "1".into(), "darcy".into()));
        assert_eq!(parsed("a=darcy").unwrap(), ("a".into(), "1".into(), "darcy".into()));
        assert_eq!(parsed("runs/none").unwrap(), ("none".into(), "1".into(), "runs/none".into()));
        assert_eq!(parsed("runs/rate=1/none").unwrap(), ("none".into(), "1".into(), "runs/rate=1/none".into()));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_name_that_no_address_can_have_is_refused_with_a_form_that_is_taken() {
        for (text, found, form) in [
            ("my run=r/full", "found the name `my run`", "my-run=r/full"),
            ("my run=r/full@2", "found the name `my run`", "my-run=r/full@2"),
            ("=darcy", "found the name ``", "NAME=darcy"),
            ("..=darcy", "found the name `..`", "NAME=darcy"),
            ("é ü=a b", "found the name `é ü`", "\"NAME=a b\""),
            ("my models/x y", "found the name `x y`", "\"x-y=my models/x y\""),
            ("a=", "after the =, found nothing", "a=PATH"),
        ] {
            let told = Source::parse(text).unwrap_err().to_string();
            assert!(told.contains(found) && told.ends_with(&format!("; write {form}")), "{told}");
            Source::parse(form.trim_matches('"')).unwrap();
        }
    }
}
