//! Keys of an experiment that follow from its data set where the user does not choose them.

use crate::data::dataset::Dataset;
use crate::error::{Error, Refusal, counted, require};
use crate::experiment::{self, Experiment, OWN, Symmetries};

/// Most minutes of a training: a year.
pub(super) const MOST_MINUTES: f64 = 525_600.0;

/// Which of these keys the user chose.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    pub(super) batch: bool,
    pub(super) validation: bool,
    pub(super) gap: bool,
    pub(super) epochs: bool,
    /// Also true with `train.patience`, which counts tests.
    pub(super) evaluate: bool,
    pub(super) change: bool,
    pub(super) trend: bool,
}

/// Keeps the validation windows of time series apart from those to train on. Where more than half of the windows would be
/// lost, there are no validation samples unless the user chose them.
fn set_gap(experiment: &mut Experiment, dataset: &Dataset, chosen: Chosen) -> Result<(), Error> {
    let Some(gap) = dataset.manifest().window_gap().filter(|_| experiment.data.validation > 0 && !chosen.gap) else {
        return Ok(());
    };
    let before = experiment::split(experiment, dataset)?; // drawn one by one, none is dropped
    experiment.data.gap = gap;
    if chosen.validation {
        return Ok(());
    }
    let left = experiment::split(experiment, dataset).map_or(0, |split| split.train.len());
    if 2 * left < before.train.len() + before.validation.len() {
        (experiment.data.validation, experiment.data.gap) = (0, 0);
    }
    Ok(())
}

/// Sets what follows from the data set, unless the user chose it: your own data get validation samples, a batch and a number
/// of epochs, your own time series are learned by their changes, and a batch has no more samples than there are to train on. A
/// larger batch that was chosen is refused. The settings of a problem are those of its data where its symmetries depend on them.
pub(super) fn fit_sizes(experiment: &mut Experiment, dataset: &Dataset, chosen: Chosen) -> Result<(), Error> {
    let own = experiment.benchmark == OWN;
    if let Some(settings) = Symmetries::settings_of(experiment, dataset.manifest()) {
        experiment.data.settings = settings;
    }
    if own && !chosen.change {
        experiment.data.change = experiment.time_mode().is_roll_out();
    }
    if own && !chosen.validation {
        let train = experiment::split(experiment, dataset)?.train.len();
        experiment.data.validation = experiment::default_validation(train);
    }
    set_gap(experiment, dataset, chosen)?;
    let (batch, count) = (experiment.train.batch, experiment::split(experiment, dataset)?.train.len());
    require(batch <= count || !chosen.batch, || {
        let expected = format!("at most the {} to train on", counted(count, "sample"));
        Refusal::new("train.batch", expected, batch.to_string()).advise(format!("set train.batch={count}"))
    })?;
    experiment.train.batch = match own && !chosen.batch {
        true => experiment::default_batch(batch, count),
        false => batch.min(count.max(1)),
    };
    if own && !chosen.epochs {
        experiment.train.epochs = experiment::default_epochs(experiment, dataset, count)?;
        if !chosen.evaluate {
            experiment.train.evaluate = experiment::default_evaluate(experiment.train.epochs);
        }
    }
    Ok(())
}
