//! A training for a given time: the sizes of the model and the number of epochs follow from the speed of this machine.

use super::{Job, TrainRequest};
use crate::data::dataset::Dataset;
use crate::error::{Error, counted};
use crate::experiment::{Experiment, OWN, Preset};
use crate::training::{Length, Trainer};
use crate::workflow::event::Event;
use crate::workflow::sizes::{Chosen, fit_sizes};
use crate::workflow::{Session, dataset};
use std::time::Instant;

/// The larger sizes are tried where the smaller ones could be trained for so many times their default epochs.
const SPARE: usize = 3;

impl TrainRequest {
    /// The experiment with the sizes of the preset `paper` and its default epochs, where `experiment` has those of `quick` and
    /// the user chose neither preset nor model settings: on your own data.
    fn larger(&self, experiment: &Experiment, dataset: &Dataset) -> Result<Option<Experiment>, Error> {
        let chosen = self.preset.is_some() || self.init.is_some() || self.says("model.") || self.says("model=");
        if chosen || experiment.benchmark != OWN || experiment.preset != Preset::Quick {
            return Ok(None);
        }
        let request = TrainRequest { preset: Some(Preset::Paper), ..self.clone() };
        let (mut larger, chosen) = request.resolve()?;
        fit_sizes(&mut larger, dataset, chosen)?;
        Ok(Some(larger))
    }
}

/// The same training with a number of epochs instead of its minutes: as many as it would have alone on this machine. For
/// trainings that will run side by side, where none can be timed any more.
pub fn in_minutes(request: &TrainRequest, session: &Session<'_>) -> Result<TrainRequest, Error> {
    let Some(minutes) = request.minutes else { return Ok(request.clone()) };
    let (mut experiment, chosen, _) = request.resolve_start()?;
    let job = Job { device: request.device, saving: request.saving, session };
    job.check_ahead(&experiment, request.out.as_deref())?;
    let dataset = dataset::of_experiment(&experiment, session)?;
    let begun = Instant::now();
    fit_sizes(&mut experiment, &dataset, chosen)?;
    let preset = experiment.preset;
    let length = job.choose(request, (minutes, begun), &mut experiment, &dataset, chosen)?;
    let note = format!("{}{} alone", counted(length.epochs, "epoch"), about(length.seconds / 60.0));
    (session.listener)(Event::Note(&note));
    let mut fixed = TrainRequest { minutes: None, ..request.clone() };
    if experiment.preset != preset {
        fixed.preset = Some(experiment.preset);
    }
    fixed.changes.push(format!("train.epochs={}", length.epochs));
    if !chosen.evaluate {
        fixed.changes.push(format!("train.evaluate={}", length.evaluate));
    }
    Ok(fixed)
}

/// `, about 5 min`
fn about(minutes: f64) -> String {
    match minutes < 1.0 {
        true => format!(", about {}", counted((60.0 * minutes).ceil() as usize, "second")),
        false => format!(", about {minutes:.0} min"),
    }
}

/// Whether half of the default epochs fit into the time.
fn is_enough(length: &Length, default: usize) -> bool {
    2 * length.epochs >= default
}

impl Job<'_> {
    /// A trainer whose programs are compiled and whose epochs take the minutes on this machine, counted from `begun`. The steps
    /// that are measured are not part of the training: its trainer starts from the first parameters. Where the time allows, your
    /// own data get the sizes of the preset `paper`.
    pub(super) fn compile_for(
        &self,
        request: &TrainRequest,
        (minutes, begun): (f64, Instant),
        experiment: &mut Experiment,
        dataset: &Dataset,
        chosen: Chosen,
    ) -> Result<Trainer, Error> {
        let length = self.choose(request, (minutes, begun), experiment, dataset, chosen)?;
        let trainer = self.compile(experiment, dataset)?;
        self.say_length(experiment, &trainer, Some(length.seconds / 60.0));
        Ok(trainer)
    }

    /// Sets the epochs that take the minutes on this machine, and with your own data the sizes of the model.
    fn choose(
        &self,
        request: &TrainRequest,
        (minutes, begun): (f64, Instant),
        experiment: &mut Experiment,
        dataset: &Dataset,
        chosen: Chosen,
    ) -> Result<Length, Error> {
        let mut length = self.length_for((minutes, begun), experiment, dataset, chosen)?;
        if length.epochs >= SPARE.saturating_mul(experiment.train.epochs)
            && let Some(larger) = request.larger(experiment, dataset)?
            && let Ok(longer) = self.length_for((minutes, begun), &larger, dataset, chosen)
            && is_enough(&longer, larger.train.epochs)
        {
            (*experiment, length) = (larger, longer);
            (self.session.listener)(Event::Note("the time is enough for the sizes of the preset paper"));
        }
        (experiment.train.epochs, experiment.train.evaluate) = (length.epochs, length.evaluate);
        if length.seconds > 60.0 * minutes {
            let warning = format!(
                "one epoch with its test takes about {:.1} minutes on this machine, more than the {minutes} of --minutes; the training \
                 has one epoch",
                length.seconds / 60.0
            );
            (self.session.listener)(Event::Warning(&warning));
        }
        Ok(length)
    }

    /// The epochs that fit into what is left of the minutes.
    fn length_for(
        &self,
        (minutes, begun): (f64, Instant),
        experiment: &Experiment,
        dataset: &Dataset,
        chosen: Chosen,
    ) -> Result<Length, Error> {
        let started = Instant::now();
        let mut trial = self.build(experiment, dataset)?;
        let compiling = started.elapsed();
        let speed = trial.measure(60.0 * minutes, || self.session.cancel.is_cancelled())?;
        let left = 60.0 * minutes - begun.elapsed().as_secs_f64() - compiling.as_secs_f64();
        Ok(speed.length(left, chosen.evaluate.then_some(experiment.train.evaluate)))
    }

    /// Reports the number of epochs that was chosen for the user.
    pub(super) fn say_length(&self, experiment: &Experiment, trainer: &Trainer, minutes: Option<f64>) {
        let (epochs, steps) = (experiment.train.epochs, trainer.epoch_steps());
        let time = minutes.map_or(String::new(), about);
        let note = format!("training for {} of {}{time}", counted(epochs, "epoch"), counted(steps, "step"));
        (self.session.listener)(Event::Note(&note));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_sizes_are_taken_when_half_of_their_default_epochs_fit() {
        let length = |epochs| Length { epochs, evaluate: 1, seconds: 1.0 };
        assert!(is_enough(&length(50), 100) && is_enough(&length(1000), 100));
        assert!(!is_enough(&length(49), 100));
    }
}
