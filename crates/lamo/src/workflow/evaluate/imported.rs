//! A model folder to evaluate: the folder has the model, its normalisers and its role of time, the data set has the fields.

use crate::data::Dataset;
use crate::error::{Error, Kind, Refusal, counted, require};
use crate::experiment;
use crate::run::Trained;
use crate::run::model_folder::{ModelFolder, WEIGHTS};
use crate::task::Task;
use crate::workflow::TrainRequest;
use std::path::Path;

/// The model of a folder with the fields of a data set.
pub(super) fn with_data(path: &Path, data: Option<&Path>) -> Result<Trained, Error> {
    let ModelFolder { mut operator, note, .. } = ModelFolder::read(path)?;
    let data = data.ok_or_else(|| {
        Refusal::about(path.display().to_string(), "a model folder has no data of its own")
            .advise("name a data set with --data DIR")
            .of(Kind::Missing)
    })?;
    let settings = operator.model.settings.iter().map(|(key, value)| format!("model.settings.{key}={value}"));
    let mut changes: Vec<String> = settings.collect();
    let time = &operator.task.time;
    if time.is_input() {
        changes.push("train.loss=relative-l2-of-times".to_owned());
    } else if time.mode().is_roll_out() {
        changes.extend(["train.loss=relative-l2-of-frames".to_owned(), format!("data.past={}", time.past())]);
    }
    let model = Some(operator.model.name.clone());
    let request = TrainRequest { model, changes, ..TrainRequest::new(data.display().to_string()) };
    let experiment = request.experiment()?;
    let dataset = Dataset::open(data)?;
    let (inputs, outputs) = experiment::fields(&experiment, &dataset)?;
    let task = Task { inputs, outputs, ..operator.task.clone() };
    let channels = |task: &Task| {
        let [given, asked] = [task.input_channels(), task.output_channels()];
        format!("{} and {}", counted(given, "input channel"), counted(asked, "output channel"))
    };
    let (expected, found) = (channels(&operator.task), channels(&task));
    require(expected == found, || {
        Refusal::new(data.display().to_string(), format!("the {expected} of {}", path.display()), found)
    })?;
    operator.task = task;
    Ok(Trained {
        path: path.join(WEIGHTS),
        experiment,
        operator,
        epoch: 0,
        step: 0,
        seconds: 0.0,
        paused: 0.0,
        step_bytes: None,
        changed: Vec::new(),
        note,
    })
}
