//! A training that starts from another model: its settings, its parameters, and the record of where they come from.

use super::{Chosen, Job, ResumeRequest, TrainRequest};
use crate::data::dataset::MANIFEST;
use crate::data::state_dict::checksum;
use crate::error::{Error, Kind, Refusal, require};
use crate::experiment::{self, Experiment, Request};
use crate::files;
use crate::network::models::{self, GridKind};
use crate::run::model_folder::WEIGHTS;
use crate::run::{Operator, Origin, Run, pretrained};
use crate::training::Trainer;
use crate::workflow::{Event, Model, dataset};
use lamo_tensor::attempt;
use std::path::{Path, PathBuf};

/// The model that a training starts from.
pub(super) struct Start {
    model: Model,
    path: PathBuf,
    sha256: String,
}

impl Start {
    /// Opens a run folder, a checkpoint file, a model folder, or a pretrained model by its name.
    fn open(path: &Path) -> Result<Start, Error> {
        let model = Model::open(path)?;
        let file = match &model {
            Model::Trained(trained) => trained.path.clone(),
            Model::Imported(_) => path.join(WEIGHTS),
        };
        let Operator { parameters, states, .. } = model.operator();
        let broken = parameters.iter().chain(&states.values).any(|value| !value.is_finite());
        require(!broken, || Refusal::new(file.display().to_string(), "finite parameters", "NaN or infinity"))?;
        if let Some(bytes) = pretrained::included(&file).filter(|_| !file.exists()) {
            return Ok(Start { model, path: file, sha256: checksum(&[bytes]) });
        }
        let bytes = files::read(&file).map_err(|reason| Error::reading(&file, reason))?;
        let path = std::path::absolute(&file).unwrap_or(file);
        Ok(Start { model, path, sha256: checksum(&[&bytes]) })
    }

    /// The request with the model and the settings of the source below the changes of the user.
    fn adopted(&self, request: &TrainRequest) -> TrainRequest {
        let source = &self.model.operator().model;
        let settings = source.settings.iter().map(|(key, value)| format!("model.settings.{key}={value}"));
        let changes = settings.chain(request.changes.iter().cloned()).collect();
        TrainRequest { model: Some(source.name.clone()), changes, ..request.clone() }
    }

    /// On another grid, changes the settings so that the parameters keep their meaning, as for predictions there. A setting
    /// that the user chose stays.
    fn fit(&self, experiment: &mut Experiment, request: &TrainRequest) -> Result<(), Error> {
        let source = self.model.operator();
        let Some(grid) = dataset::grid_ahead(experiment)? else { return Ok(()) };
        if grid == source.task.grid || GridKind::of(grid) != GridKind::of(source.task.grid) {
            return Ok(());
        }
        let row = models::find(&source.model.name)?;
        let user = Request { changes: &request.changes, ..Request::default() };
        for (key, value) in row.moved(&source.model.settings, [source.task.grid, grid]).unwrap_or_default() {
            if source.model.settings.get(&key) != Some(&value) && !user.says(&["model", "settings", &key]) {
                experiment.model.settings.insert(key, value);
            }
        }
        Ok(())
    }

    /// Writes the parameters of the source into the trainer. The listener hears what was taken, and the error before the
    /// first step.
    pub(super) fn lay(&self, job: &Job<'_>, trainer: &mut Trainer) -> Result<Origin, Error> {
        let transfer = trainer.start_from(self.model.operator())?;
        let error = attempt(|| job.session.cancel.is_cancelled(), || trainer.test_error())??;
        let origin = Origin { path: self.path.clone(), sha256: self.sha256.clone(), transfer };
        if let Some(note) = self.model.note() {
            (job.session.listener)(Event::Warning(note));
        }
        (job.session.listener)(Event::Init { origin: &origin, error });
        Ok(origin)
    }
}

impl TrainRequest {
    /// The experiment, which sizes the user chose, and the model to start from.
    pub(super) fn resolve_start(&self) -> Result<(Experiment, Chosen, Option<Start>), Error> {
        let Some(path) = &self.init else {
            let (experiment, chosen) = self.resolve()?;
            return Ok((experiment, chosen, None));
        };
        let start = Start::open(path).map_err(|error| within("--init", &error))?;
        let named = self.names_model()?;
        let (mut experiment, mut chosen) = if named { self.resolve()? } else { start.adopted(self).resolve()? };
        if !named {
            start.fit(&mut experiment, self)?;
        }
        // Parameters that learned the next snapshot would be wrong for the change to it.
        if experiment.time_mode().is_roll_out() && !chosen.change {
            experiment.data.change = start.model.operator().task.normalisers.change.is_some();
            chosen.change = true;
        }
        if !experiment.time_mode().is_roll_out() && !chosen.trend {
            experiment.data.trend = start.model.operator().task.normalisers.trend.is_some();
        }
        Ok((experiment, chosen, Some(start)))
    }

    /// Whether the user names a model: as an option, in a change or in a file.
    fn names_model(&self) -> Result<bool, Error> {
        let path = Path::new(&self.what);
        let text = match experiment::shipped_text(&self.what) {
            _ if path.join(MANIFEST).is_file() => None,
            Ok(text) => Some(text.to_owned()),
            Err(_) if path.is_file() => {
                Some(files::read_to_string(path).map_err(|reason| Error::reading(path, reason))?)
            }
            Err(_) => None,
        };
        let file = text.as_deref().map(|text| (self.what.as_str(), text));
        let said = Request { file, changes: &self.changes, ..Request::default() }.says(&["model", "name"]);
        Ok(self.model.is_some() || said)
    }
}

/// A run that has no checkpoint yet begins again from its source, which must be the same as then.
pub(super) fn begin_again(
    request: &ResumeRequest,
    (job, run): (&Job<'_>, &Run),
    origin: &Origin,
    trainer: &mut Trainer,
) -> Result<(), Error> {
    let Origin { path, sha256, .. } = origin;
    let refuse = |what: &str| {
        let sentence = format!("has no checkpoint yet, and {} {what}", path.display());
        let advice = "start a new run with --init";
        Refusal::about(request.run.display().to_string(), sentence).advise(advice).of(Kind::Conflict)
    };
    require(path.is_file() || pretrained::included(path).is_some(), || refuse("that it starts from is gone"))?;
    // The weights of a model folder are described beside them.
    let folder = path.parent().filter(|folder| path.ends_with(WEIGHTS) && !folder.as_os_str().is_empty());
    let start = Start::open(folder.unwrap_or(path)).map_err(|error| within("the source of the run", &error))?;
    require(start.sha256 == *sha256, || refuse("that it starts from has changed"))?;
    start.lay(job, trainer)?;
    trainer.save_first(run)
}

/// An error about a thing that the user named.
fn within(thing: &str, error: &Error) -> Error {
    Refusal::said(format!("{thing}: {error}")).of(error.kind()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_comes_with_the_library_has_the_hash_of_its_bytes() {
        for (name, bytes) in pretrained::MODELS {
            let start = Start::open(Path::new(name)).unwrap();
            assert_eq!((start.path.as_path(), start.sha256), (Path::new(name), checksum(&[bytes])));
        }
    }
}
