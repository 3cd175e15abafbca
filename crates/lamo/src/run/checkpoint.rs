//! Checkpoints: one safetensors file. It holds the parameters and the states of the model under the authors' names and the
//! other states of the training under their own names. Its metadata hold the experiment, the task and the counters.

use super::legacy;
use super::operator::Operator;
use super::trained::Trained;
use crate::data::Storage;
use crate::data::state_dict::{self, Group};
use crate::error::{Error, Refusal, require};
use crate::experiment::Experiment;
use crate::network::{Layout, ModelStates, end_to_end};
use crate::task::Task;
use lamo_tensor::{MODEL_STATES, PARAMETERS, Precision, Section, Shape};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Raised whenever older versions of lamo could not read the file, or newer ones may rely on more. 0.1 wrote 1; from 3 on a
/// checksum covers the whole file.
const FORMAT: u32 = 3;
/// Format of a file without the other states of the training, which can be used but not resumed.
const MODEL_FORMAT: u32 = 4;
/// Seconds of a training at most, thirty thousand years.
const MOST_SECONDS: f64 = 1e12;
/// Steps at most: whole numbers up to here are exact in f64.
const MOST_STEPS: u64 = 1 << 53;

/// The best epoch so far: the one with the least error on the validation samples, or on the test samples where a run has no
/// validation samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// Its error.
    #[serde(rename = "test")] // the key of earlier versions, which had test samples only
    pub error: f64,
}

/// A training, stopped between two steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The model as it is.
    pub trained: Trained,
    /// Every other state of the training program by its name: moments and running sums.
    pub states: BTreeMap<String, Vec<f32>>,
    /// The best epoch so far.
    pub best: Option<Best>,
    /// Epochs whose end, with its test, `best` takes into account; `None` in files of earlier versions.
    pub tested: Option<usize>,
}

/// The metadata that are stored as JSON.
#[derive(Serialize, Deserialize)]
struct Counters {
    epoch: usize,
    step: usize,
    seconds: f64,
    #[serde(default)]
    paused: f64,
    #[serde(default)]
    step_bytes: Option<usize>,
    best: Option<Best>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tested: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changed: Vec<usize>,
}

impl Counters {
    /// Refuses numbers that no training reaches.
    fn check(&self) -> Result<(), Refusal> {
        let Counters { epoch, step, seconds, paused, best, tested, changed, .. } = self;
        for (key, time) in [("seconds", *seconds), ("paused", *paused)] {
            require((0.0..=MOST_SECONDS).contains(&time), || {
                Refusal::new(key, format!("a number from 0 to {MOST_SECONDS:e}"), time.to_string())
            })?;
        }
        let latest = changed.iter().chain(best.as_ref().map(|best| &best.epoch)).chain(tested).chain([epoch]).max();
        require(latest <= Some(step) && *step as u64 <= MOST_STEPS, || {
            let found = format!("epoch {epoch}, step {step}, best {best:?}, changed {changed:?}");
            Refusal::new("counters", format!("at most {MOST_STEPS} steps, and nothing after the last step"), found)
        })?;
        require(best.is_none_or(|best| best.error.is_finite() && best.error >= 0.0), || {
            Refusal::new("best", "an error not below 0", format!("{best:?}"))
        })
    }
}

impl Checkpoint {
    /// The values of a state by name, those of the model included.
    pub(crate) fn state(&self, name: &str) -> Option<&[f32]> {
        let Operator { parameters, states, .. } = &self.trained.operator;
        match name {
            PARAMETERS => Some(parameters),
            MODEL_STATES => Some(&states.values),
            _ => self.states.get(name).map(Vec::as_slice),
        }
    }

    /// Writes the file: it appears complete under its name, or not at all.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let lengths: BTreeMap<&str, usize> =
            self.states.iter().map(|(name, values)| (name.as_str(), values.len())).collect();
        let metadata = self.metadata(path, FORMAT, &lengths)?;
        let operator = &self.trained.operator;
        let others = self.states.values().map(Vec::as_slice);
        let model = [operator.parameters.as_slice(), operator.states.values.as_slice()];
        let parts: Vec<&[f32]> = model.into_iter().chain(others).collect();
        let sections = end_to_end(&operator.sections, &operator.states.sections);
        let lengths = lengths.into_iter().map(|(name, length)| (name.to_owned(), length));
        state_dict::write_parts(path, &with_states(&sections, lengths), &parts, &metadata)?;
        Ok(())
    }

    /// The bytes of a file that has the model alone, with its parameters in a smaller storage; `path` is for errors. Moments
    /// are left out: the file can be evaluated and predicted with, and not be resumed. Running statistics keep 32 bits.
    pub fn model_bytes(&self, path: &Path, storage: Storage) -> Result<Vec<u8>, Error> {
        let metadata = self.metadata(path, MODEL_FORMAT, &BTreeMap::new())?;
        let Operator { sections, parameters, states, .. } = &self.trained.operator;
        let groups: [Group<'_>; 2] =
            [(sections, parameters, storage), (&states.sections, &states.values, Storage::F32)];
        Ok(state_dict::stored(path, &groups, &metadata)?)
    }

    /// Whether the training can go on from here.
    pub fn has_moments(&self) -> bool {
        !self.states.is_empty()
    }

    /// All that a file says beside its tensors.
    fn metadata(
        &self,
        path: &Path,
        format: u32,
        lengths: &BTreeMap<&str, usize>,
    ) -> Result<BTreeMap<String, String>, Error> {
        let Trained { experiment, operator, epoch, step, seconds, paused, step_bytes, changed, .. } = &self.trained;
        let counters = Counters {
            epoch: *epoch,
            step: *step,
            seconds: *seconds,
            paused: *paused,
            step_bytes: *step_bytes,
            best: self.best,
            tested: self.tested,
            changed: changed.clone(),
        };
        let json = |error: serde_json::Error| state_dict::Error::malformed(path, error.to_string());
        Ok(BTreeMap::from([
            ("lamo".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("format".to_owned(), format.to_string()),
            ("experiment".to_owned(), experiment.text()),
            ("task".to_owned(), serde_json::to_string(&operator.task).map_err(json)?),
            ("states".to_owned(), serde_json::to_string(lengths).map_err(json)?),
            ("counters".to_owned(), serde_json::to_string(&counters).map_err(json)?),
        ]))
    }

    /// Reads a file and compares it with its own checksum. All that it says is checked before anything is built from it.
    pub fn read(path: &Path) -> Result<Checkpoint, Error> {
        Checkpoint::parse(path, &state_dict::Contents::read(path)?)
    }

    /// [`Checkpoint::read`] of bytes in memory; `path` is for errors.
    pub fn of(path: &Path, bytes: Vec<u8>) -> Result<Checkpoint, Error> {
        Checkpoint::parse(path, &state_dict::Contents::of(path, bytes)?)
    }

    fn parse(path: &Path, file: &state_dict::Contents) -> Result<Checkpoint, Error> {
        let refuse = |what: String| state_dict::Error::malformed(path, what);
        let about = |refusal: Refusal| refusal.within(path.display());
        let text = |key: &str| {
            let found = file.metadata().get(key);
            found.ok_or_else(|| {
                let advice = "lamo import makes a model of other weights";
                refuse(format!("is no checkpoint of lamo: its metadata lack {key:?}; {advice}"))
            })
        };
        let damaged = |error: serde_json::Error| refuse(format!("is damaged: {error}"));
        let format = text("format")?.as_str();
        let (task, lengths): (Task, BTreeMap<String, usize>) = match format {
            "2" | "3" | "4" => (
                serde_json::from_str(text("task")?).map_err(damaged)?,
                serde_json::from_str(text("states")?).map_err(damaged)?,
            ),
            "1" => (legacy::task(text("case")?).map_err(damaged)?, BTreeMap::new()),
            format => {
                let expected =
                    format!("has format {format}, expected {MODEL_FORMAT} or lower; use the lamo that wrote it");
                return Err(refuse(expected).into());
            }
        };
        if !file.is_sealed() && ["3", "4"].contains(&format) {
            return Err(refuse("is damaged: its metadata lack the checksum of the file".to_owned()).into());
        }
        task.check().map_err(about)?;
        let experiment = Experiment::recorded(&path.display().to_string(), text("experiment")?)?;
        let (stated, learned) = (experiment.time_mode(), task.time.mode());
        let alike = stated.is_series() == learned.is_series() && stated.is_roll_out() == learned.is_roll_out();
        require(alike, || {
            let found = format!("{stated:?} and {learned:?}");
            about(Refusal::new("experiment and task", "the same role of time", found))
        })?;
        let counters: Counters = serde_json::from_str(text("counters")?).map_err(damaged)?;
        counters.check().map_err(about)?;
        let Counters { epoch, step, seconds, paused, step_bytes, best, tested, changed } = counters;
        let Layout { sections, states: ModelStates { sections: state_sections, .. }, .. } =
            Layout::of(&experiment.model, &task).map_err(about)?;
        let count: usize = sections.iter().map(|section| section.shape.count()).sum();
        let lengths = if lengths.is_empty() && format != "4" { legacy::states(count) } else { lengths };
        let wrong = lengths.iter().find(|(_, length)| !(1..=file.numbers()).contains(*length));
        if let Some((name, length)) = wrong {
            return Err(refuse(format!("is damaged: its state {name:?} has {length} values")).into());
        }
        let of_model = end_to_end(&sections, &state_sections);
        let mut parameters = file.values(&with_states(&of_model, lengths.clone().into_iter()))?;
        let mut values = parameters.split_off(count);
        let mut rest = values.split_off(state_sections.iter().map(|section| section.shape.count()).sum());
        let states = lengths.into_iter().map(|(name, length)| {
            let tail = rest.split_off(length);
            (name, std::mem::replace(&mut rest, tail))
        });
        let others = states.collect();
        let states = ModelStates { sections: state_sections, values };
        let note = (!file.is_sealed()).then(|| unsealed(path, file.metadata().get("lamo")));
        let (model, precision, batch) = (experiment.model.clone(), Precision::F32, experiment.train.batch);
        let operator = Operator { model, task, precision, batch, sections, parameters, states };
        let path = path.to_owned();
        let trained = Trained { path, experiment, operator, epoch, step, seconds, paused, step_bytes, changed, note };
        Ok(Checkpoint { trained, states: others, best, tested })
    }
}

/// What a reader of an older file should know.
fn unsealed(path: &Path, version: Option<&String>) -> String {
    let version = version.map_or("an older version", String::as_str);
    let path = path.display();
    format!("{path} was written by lamo {version}, whose checksum covers the values but not the settings in the header")
}

/// The tensors of the model, then the other states, end to end.
fn with_states(sections: &[Section], states: impl Iterator<Item = (String, usize)>) -> Vec<Section> {
    let mut start: usize = sections.iter().map(|section| section.shape.count()).sum();
    let states = states.map(|(name, length)| {
        let section = Section { name, shape: Shape::from([length]), start };
        start += length;
        section
    });
    let states: Vec<Section> = states.collect();
    sections.iter().cloned().chain(states).collect()
}
