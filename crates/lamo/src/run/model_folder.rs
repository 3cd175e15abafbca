//! Model folders: `model.toml` (which model, on which task) and `weights.safetensors`, for weights of the authors' code.
//!
//! ```toml
//! [model]
//! name = "lamo"
//! settings = { latent = "slices", mixer = "hydra", directions = 2, width = 128 }
//!
//! [task]
//! grid = { kind = "plane", rows = 221, columns = 51 }
//! space = 2                     # coordinates of a point
//! functions = 1                 # given at each point
//! outputs = 1                   # asked for at each point
//! times = 20                    # or absent: number of times, each predicted by itself
//! past = 10                     # or absent: number of snapshots that a roll-out is given
//!
//! [task.normalisers.outputs]    # or absent: the model sees values as they are; also positions, inputs
//! mean = [0.1]
//! deviation = [0.3]
//! ```

use super::operator::Operator;
use crate::data::state_dict;
use crate::error::{Error, Kind, Refusal, require};
use crate::files::{self, atomic};
use crate::network::models::{self, Choice};
use crate::network::{Layout, ModelStates};
use crate::task::{Normalisers, Positions, Task, Time};
use lamo_geometry::Grid;
use lamo_tensor::Precision;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// File of a model folder that says which model it is.
pub const DESCRIPTION: &str = "model.toml";
/// File of a model folder that holds the parameters.
pub const WEIGHTS: &str = "weights.safetensors";
/// Samples per forward pass.
const BATCH: usize = 4;
/// Key of the weights' metadata: the SHA-256 of the description that they belong to.
const DESCRIBED: &str = "sha256_of_description";

/// `model.toml`: a model and its task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The model and its settings.
    pub model: Choice,
    /// What it maps.
    task: TaskTable,
}

/// A [`Task`] by its sizes; the fields are called `inputs` and `outputs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskTable {
    space: usize,
    #[serde(default)]
    functions: usize,
    outputs: usize,
    /// True when a time is an input; `times` implies it and gives the number of times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    time: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    past: Option<usize>,
    grid: Grid,
    #[serde(default, skip_serializing_if = "is_default")]
    normalisers: Normalisers,
}

fn is_default(normalisers: &Normalisers) -> bool {
    *normalisers == Normalisers::default()
}

impl TaskTable {
    fn task(&self) -> Task {
        let TaskTable { space, functions, outputs, time, times, past, grid, .. } = *self;
        let clock = Vec::new();
        let (functions, time) = match (past, times) {
            (Some(past), snapshots) => (
                functions.saturating_sub(past.saturating_mul(outputs)),
                Time::RollOut { past, snapshots: snapshots.unwrap_or(1), clock },
            ),
            (None, Some(count)) => (functions, Time::ByTime { count, clock }),
            (None, None) if time => (functions, Time::ByTime { count: 1, clock }),
            (None, None) => (functions, Time::Steady),
        };
        let positions = match grid {
            Grid::Cloud { .. } => Positions::Given,
            // On a lattice without functions, all samples would have equal inputs and equal predictions.
            Grid::Volume { .. } | Grid::Plane { .. } | Grid::Line { .. } if functions == 0 && past.is_none() => {
                Positions::Given
            }
            Grid::Volume { .. } | Grid::Plane { .. } | Grid::Line { .. } => {
                if grid.axes() == Some(space) {
                    Positions::Lattice
                } else {
                    Positions::Given
                }
            }
        };
        Task { time, positions, normalisers: self.normalisers.clone(), ..Task::plain(grid, space, functions, outputs) }
    }
}

impl Description {
    /// Reads a `model.toml`; unknown keys are refused.
    pub fn read(path: &Path) -> Result<Description, Error> {
        let text = files::read_to_string(path).map_err(|reason| state_dict::Error::file(path, reason))?;
        Description::parse(path, &text)
    }

    pub(super) fn parse(path: &Path, text: &str) -> Result<Description, Error> {
        let description: Description = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].lines().count().max(1));
            let place = line.map_or(String::new(), |line| format!(", line {line}"));
            let message = error.message().trim().replace('\n', ", ");
            state_dict::Error::malformed(path, format!("is no description of a model{place}: {message}"))
        })?;
        let TaskTable { functions, outputs, past, .. } = description.task;
        require(past.is_none_or(|past| functions >= past.saturating_mul(outputs)), || {
            let expected = format!("at least past x outputs = {}", past.unwrap_or_default().saturating_mul(outputs));
            Refusal::new("task.functions", expected, functions.to_string()).within(path.display())
        })?;
        let task = description.task();
        let built = task.check().and_then(|()| Layout::of(&description.model, &task).map(|_| ()));
        built.map_err(|refusal| refusal.within(path.display()))?;
        Ok(description)
    }

    /// What the model maps.
    pub fn task(&self) -> Task {
        self.task.task()
    }
}

/// A described model with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFolder {
    /// Which model, on which task.
    pub description: Description,
    /// The model with its parameters.
    pub operator: Operator,
    /// A warning for the user: the checksum of an older folder does not cover its description.
    pub note: Option<String>,
}

impl ModelFolder {
    /// A described model with the parameters of a weights file. The description lists every setting, so that a later
    /// change of a default does not change the model.
    pub fn import(description: Description, weights: &Path) -> Result<ModelFolder, Error> {
        ModelFolder::fill(description, &state_dict::Contents::read(weights)?)
    }

    pub(super) fn fill(mut description: Description, contents: &state_dict::Contents) -> Result<ModelFolder, Error> {
        let task = description.task();
        let layout = Layout::of(&description.model, &task)?;
        for (key, value) in models::find(&description.model.name)?.defaults() {
            description.model.settings.entry(key).or_insert(value);
        }
        let (parameters, values) = contents.model(&layout)?;
        let Layout { sections, states, .. } = layout;
        let states = ModelStates { values, ..states };
        let broken = |values: &[f32]| values.iter().any(|value| !value.is_finite());
        let of_parameters = sections.iter().find(|section| broken(&parameters[section.range()]));
        let of_states = states.sections.iter().find(|section| broken(&states.values[section.range()]));
        if let Some(section) = of_parameters.or(of_states) {
            let found = format!("NaN or infinity in {}", section.name);
            let refusal = Refusal::new(contents.path().display().to_string(), "finite numbers", found);
            return Err(refusal.advise("export it again").into());
        }
        let (model, precision) = (description.model.clone(), Precision::F32);
        let operator = Operator { model, task, precision, batch: BATCH, sections, parameters, states };
        Ok(ModelFolder { description, operator, note: None })
    }

    /// Whether a folder is a model folder.
    pub fn is_at(folder: &Path) -> bool {
        folder.join(DESCRIPTION).is_file()
    }

    /// Reads a model folder and compares both files with their checksums.
    pub fn read(folder: &Path) -> Result<ModelFolder, Error> {
        let path = folder.join(DESCRIPTION);
        let text = files::read_to_string(&path).map_err(|reason| state_dict::Error::file(&path, reason))?;
        let description = Description::parse(&path, &text)?;
        let weights = state_dict::Contents::read(&folder.join(WEIGHTS))?;
        let described = weights.metadata().get(DESCRIBED);
        require(described.is_none_or(|hash| *hash == state_dict::checksum(&[text.as_bytes()])), || {
            let sentence = "is not the description that was imported with the weights";
            let advice = "restore it, or import the weights again with lamo import --config";
            Refusal::about(path.display().to_string(), sentence).advise(advice)
        })?;
        let note = described.is_none().then(|| {
            format!("{} was written by an older lamo; no checksum covers its {DESCRIPTION}", folder.display())
        });
        let read = ModelFolder::fill(description, &weights);
        Ok(ModelFolder { note, ..read? })
    }

    /// Writes a model folder, which must not exist or be empty.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let occupied = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        require(!occupied && !folder.is_file(), || {
            Refusal::about(folder.display().to_string(), "exists already")
                .advise("choose another name")
                .of(Kind::Conflict)
        })?;
        let named = atomic::partial(folder);
        let partial = named.ok_or_else(|| Refusal::about(folder.display().to_string(), "names no folder to write"))?;
        let told = |reason| Error::from(state_dict::Error::file(folder, reason));
        std::fs::create_dir(&partial).map_err(told)?;
        let written = self.store(&partial).and_then(|()| std::fs::rename(&partial, folder).map_err(told));
        if written.is_err() {
            let _ = std::fs::remove_dir_all(&partial); // best effort: the first error is the one to report
        }
        written
    }

    fn store(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(DESCRIPTION);
        let text = toml::to_string(&self.description);
        let text = text.map_err(|error| state_dict::Error::malformed(&path, error.to_string()))?;
        let described = BTreeMap::from([(DESCRIBED.to_owned(), state_dict::checksum(&[text.as_bytes()]))]);
        self.operator.write_weights(&folder.join(WEIGHTS), &described)?;
        atomic::fill(&path, text.as_bytes()).map_err(|reason| state_dict::Error::file(&path, reason).into())
    }
}
