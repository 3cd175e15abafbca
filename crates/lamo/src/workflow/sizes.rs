//! Keys of an experiment that follow from its data set where the user does not choose them.

use crate::data::dataset::Dataset;
use crate::error::{Error, Refusal, counted, require};
use crate::experiment::{self, Experiment, OWN};

/// Most minutes of a training: a year.
pub(super) const MOST_MINUTES: f64 = 525_600.0;

/// Which of these keys the user chose.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    pub(super) batch: bool,
    pub(super) validation: bool,
    pub(super) epochs: bool,
    /// Also true with `train.patience`, which counts tests.
    pub(super) evaluate: bool,
    pub(super) change: bool,
}

/// Sets what follows from the data set, unless the user chose it: your own data get validation samples, a batch and a number
/// of epochs, your own time series are learned by their changes, and a batch has no more samples than there are to train on. A
/// larger batch that was chosen is refused.
pub(super) fn fit_sizes(experiment: &mut Experiment, dataset: &Dataset, chosen: Chosen) -> Result<(), Error> {
    let own = experiment.benchmark == OWN;
    if own && !chosen.change {
        experiment.data.change = experiment.time_mode().is_roll_out();
    }
    if own && !chosen.validation {
        let train = experiment::split(experiment, dataset)?.train.len();
        experiment.data.validation = experiment::default_validation(train);
    }
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
