//! Divergence of a training: the value that is not finite, the first step where it happened, and the step to resume from.

use crate::error::{Failure, Kind};
use crate::experiment::{Optimiser, Training};

/// The value that is no longer finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The loss is not finite or far too large.
    Loss,
    /// A parameter.
    Parameter,
    /// The error on the validation samples.
    Validation,
    /// The error on the test samples.
    Test,
}

/// Where and how a training diverged.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// The value that is not finite.
    pub broken: Broken,
    /// Optimiser step, counted from 1.
    pub step: usize,
    /// Its epoch, counted from 1.
    pub epoch: usize,
    /// The loss of that step.
    pub loss: f64,
    /// The first kernel whose result is not finite, if it was found.
    pub culprit: Option<String>,
    /// Step of the last good checkpoint.
    pub good: usize,
    /// What to change in the recipe.
    pub advice: String,
}

/// The settings of a recipe that may have broken it at this learning rate, the likeliest first.
pub(super) fn steadier(recipe: &Training, rate: f64) -> String {
    let Training { weight_decay, clip, matrix_rate, noise, ref optimiser, .. } = *recipe;
    let (muon, coupled) = (*optimiser == Optimiser::Muon, *optimiser == Optimiser::Adam);
    let smaller = |key: &str, found: f64| format!("a smaller train.{key} than {}", brief(found));
    // Beside the step, the decay multiplies a parameter by 1 − rate · λ.
    let decays = weight_decay > 1.0 && (coupled || rate * weight_decay > 0.5);
    let mut changes = Vec::new();
    changes.extend(decays.then(|| smaller("weight_decay", weight_decay)));
    changes.extend((noise > 1.0).then(|| smaller("noise", noise)));
    changes.extend((muon && matrix_rate > 8.0).then(|| smaller("matrix_rate", matrix_rate)));
    changes.push(smaller("rate", rate));
    changes.push(if clip > 0.0 { smaller("clip", clip) } else { "train.clip = 1, which is off".to_owned() });
    format!("try {}", changes.join(", or "))
}

/// Three digits, in powers of ten where the number is far from 1.
fn brief(number: f64) -> String {
    let brief = format!("{number:.2e}");
    let plain = brief.parse::<f64>().ok().filter(|rounded| (0.01..1e4).contains(rounded));
    plain.map_or(brief, |rounded| rounded.to_string())
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Divergence { broken, step, epoch, loss, culprit, good, advice } = self;
        let what = match broken {
            Broken::Loss if loss.is_finite() && *step == 1 => format!("the loss begins with {loss:.3e}"),
            Broken::Loss if loss.is_finite() => format!("the loss grew to {loss:.3e}"),
            Broken::Loss => "the loss is not finite".into(),
            Broken::Parameter => "a parameter is not finite".into(),
            Broken::Validation => "the error on the validation samples is not finite".into(),
            Broken::Test => "the error on the test samples is not finite".into(),
        };
        write!(out, "{what} at step {step} in epoch {epoch}")?;
        if let Some(culprit) = culprit {
            write!(out, ", first in {culprit}")?;
        }
        if *step == 1 && *broken == Broken::Loss {
            let advice = "fields whose size is far from 1 need to be normalised (no --raw), nearly constant ones need their mean removed";
            return write!(out, "; check the units of the data: {advice}");
        }
        write!(out, "; the checkpoint of step {good} is saved; {advice}")
    }
}

impl std::error::Error for Divergence {}

impl Failure for Divergence {
    fn kind(&self) -> Kind {
        Kind::Diverged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn the_advice_names_the_setting_that_is_far_from_usual_first() {
        let usual = Experiment::shipped("darcy-lamo").unwrap().train;
        let told = |recipe: Training| steadier(&recipe, 1e-3);
        assert_eq!(told(usual.clone()), "try a smaller train.rate than 1.00e-3, or a smaller train.clip than 0.1");
        let unclipped = told(Training { clip: 0.0, ..usual.clone() });
        assert_eq!(unclipped, "try a smaller train.rate than 1.00e-3, or train.clip = 1, which is off");
        let muon = Training { optimiser: Optimiser::Muon, matrix_rate: 100.0, ..usual.clone() };
        assert!(told(muon).starts_with("try a smaller train.matrix_rate than 100, or a smaller train.rate"));
        assert!(told(Training { noise: 20.0, ..usual.clone() }).starts_with("try a smaller train.noise than 20, or "));
        let decay = told(Training { weight_decay: 3000.0, ..usual });
        assert!(decay.starts_with("try a smaller train.weight_decay than 3000, or "), "{decay}");
    }
}
