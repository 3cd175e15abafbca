//! Checkpoints: one safetensors file with the parameters under the authors' names, the optimiser's moments, and in its
//! metadata everything else: the experiment, the case, the counters.

use crate::case::Case;
use crate::error::Error;
use crate::experiment::Experiment;
use crate::optimiser::{MEAN, SQUARE};
use crate::trained::Trained;
use crate::weights::{self, Description};
use lamo_tensor::{Section, Shape};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Raised whenever older versions of lamo could not read the file.
const FORMAT: u32 = 1;

/// State: the losses of the epoch so far.
pub(crate) const TOTAL: &str = "train.total";

/// The best test error so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// After which epoch.
    pub epoch: usize,
    /// Mean relative L2 over the test samples.
    pub test: f64,
}

/// A training, stopped between two steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The model as it is.
    pub trained: Trained,
    /// m of AdamW.
    pub mean: Vec<f32>,
    /// v of AdamW.
    pub square: Vec<f32>,
    /// The losses of the epoch so far, summed.
    pub total: f32,
    /// The best test error so far.
    pub best: Option<Best>,
}

/// The metadata that is not text by itself.
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changed: Vec<usize>,
}

impl Checkpoint {
    /// Writes the file: complete under its name, or not at all.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let Trained {
            experiment, case, epoch, step, seconds, paused, step_bytes, changed, sections, parameters, ..
        } = &self.trained;
        let counters = Counters {
            epoch: *epoch,
            step: *step,
            seconds: *seconds,
            paused: *paused,
            step_bytes: *step_bytes,
            best: self.best,
            changed: changed.clone(),
        };
        let json = |error: serde_json::Error| weights::Error::malformed(path, error.to_string());
        let metadata = BTreeMap::from([
            ("lamo".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("format".to_owned(), FORMAT.to_string()),
            ("experiment".to_owned(), experiment.text()),
            ("case".to_owned(), serde_json::to_string(case).map_err(json)?),
            ("counters".to_owned(), serde_json::to_string(&counters).map_err(json)?),
        ]);
        let values = [parameters, &self.mean, &self.square, &[self.total][..]].concat();
        weights::write(path, &with_state(sections), &values, &metadata)?;
        Ok(())
    }

    /// Reads a file and compares it with its own checksum.
    pub fn read(path: &Path) -> Result<Checkpoint, Error> {
        let file = weights::Contents::read(path)?;
        let refuse = |what: String| weights::Error::malformed(path, what);
        let text = |key: &str| {
            let found = file.metadata().get(key);
            found.ok_or_else(|| refuse(format!("is no checkpoint of lamo: its metadata lack {key:?}")))
        };
        let format = text("format")?;
        if *format != FORMAT.to_string() {
            return Err(refuse(format!("has format {format}, expected {FORMAT}; use the lamo that wrote it")).into());
        }
        let broken = |error: serde_json::Error| refuse(format!("is damaged: {error}"));
        let experiment = Experiment::parse(&path.display().to_string(), text("experiment")?)?;
        let case: Case = serde_json::from_str(text("case")?).map_err(broken)?;
        let Counters { epoch, step, seconds, paused, step_bytes, best, changed } =
            serde_json::from_str(text("counters")?).map_err(broken)?;
        let sections = Description { model: experiment.model.clone(), task: case.domain }.sections()?;
        let mut values = file.values(&with_state(&sections))?;
        let count = count(&sections);
        let total = values[3 * count];
        let square = values[2 * count..3 * count].to_vec();
        let mean = values[count..2 * count].to_vec();
        values.truncate(count);
        let trained = Trained {
            path: path.to_owned(),
            experiment,
            case,
            epoch,
            step,
            seconds,
            paused,
            step_bytes,
            changed,
            sections,
            parameters: values,
        };
        Ok(Checkpoint { trained, mean, square, total, best })
    }
}

fn count(sections: &[Section]) -> usize {
    sections.iter().map(|section| section.shape.count()).sum()
}

/// The parameters, then what the training keeps beside them.
fn with_state(sections: &[Section]) -> Vec<Section> {
    let count = count(sections);
    let state = |name: &str, length: usize, start: usize| Section {
        name: name.to_owned(),
        shape: Shape::from([length]),
        start,
    };
    let states = [state(MEAN, count, count), state(SQUARE, count, 2 * count), state(TOTAL, 1, 3 * count)];
    sections.iter().cloned().chain(states).collect()
}
