//! Whether a training had visibly not converged when it ended, or stopped learning on the way, seen from the errors and losses of
//! its epochs.

use crate::run::Line;

/// Epochs below which nothing is said: the error of a handful of epochs always falls.
const FEWEST: usize = 10;
/// An error that fell by more than this share from the last but one tenth of the epochs to the last tenth is still falling.
/// An error of 1/epoch falls by a tenth between them; twice the epochs would halve it.
const STEEP: f64 = 0.1;
/// The same share where the rate has gone to nearly 0: this alone lowers the error, as the steps become quieter. A fifth was
/// seen.
const STEEP_WITHOUT_RATE: f64 = 0.3;
/// A last rate below this share of the largest is nearly 0.
const NO_RATE: f64 = 0.01;
/// A loss that fell by less than this share since the first epoch shows that nothing was learned.
const STUCK: f64 = 0.1;
/// Where the mean error of the last tenth exceeds the smallest error by this share, the model has learned its samples by heart.
const BY_HEART: f64 = 0.2;
/// So many epochs in a row with the same loss, above an earlier one, show that a model has stopped learning.
const STILL: usize = 5;
/// Losses that differ by less than this share are the same. Samples in another order change the loss of a model that learns by more.
const SAME: f64 = 1e-3;
/// The loss was lower before by at least this share.
const LOWER_BEFORE: f64 = 0.1;

/// A sentence where the error was still falling steeply in the last epochs, where it rose while the loss fell, or where the loss
/// never fell; `None` otherwise.
/// The error is that on the validation or test samples; the loss takes its place where too few epochs were tested, because it
/// also falls when a model only learns its samples by heart.
pub fn doubt(history: &[Line]) -> Option<String> {
    let losses: Vec<f64> = history.iter().map(|line| line.train).collect();
    let errors: Vec<f64> = history.iter().filter_map(Line::error).collect();
    let (what, values) = if errors.len() < FEWEST { ("loss", &losses) } else { ("error", &errors) };
    let strange = |value: &f64| !(value.is_finite() && *value > 0.0);
    if losses.len() < FEWEST || losses.iter().chain(values).any(strange) {
        return None;
    }
    let (fallen, first, last) = (fall(values), losses[0], losses[losses.len() - 1]);
    let largest = history.iter().map(|line| line.rate).fold(0.0, f64::max);
    let quiet = history.last().is_some_and(|line| line.rate < NO_RATE * largest);
    let steep = if quiet { STEEP_WITHOUT_RATE } else { STEEP };
    match () {
        () if last > (1.0 - STUCK) * first => Some(format!(
            "the training has learned next to nothing: its loss went from {first:.3e} to {last:.3e}; try another train.rate, and \
             check that the inputs determine the outputs"
        )),
        () if fallen > steep => Some(format!(
            "the training has not converged: its {what} still fell by {:.0} % over the last tenth of the epochs; train longer with \
             a larger train.epochs",
            100.0 * fallen
        )),
        () => learned_by_heart(history, fall(&losses) > 0.0),
    }
}

/// A sentence where the loss no longer changes and was clearly lower before: a large step has switched the network off, so that
/// its output is the same number everywhere.
pub fn collapse(history: &[Line]) -> Option<String> {
    let last = history.last()?.train;
    let same = |line: &&Line| (line.train - last).abs() <= SAME * last;
    let still = history.iter().rev().take_while(same).count();
    let (before, since) = history.split_at(history.len() - still);
    let lowest = before.iter().map(|line| line.train).fold(f64::INFINITY, f64::min);
    (still >= STILL && last > (1.0 + LOWER_BEFORE) * lowest).then(|| {
        format!(
            "the model has stopped learning: its loss has been {last:.4} since epoch {}, and was {lowest:.4} before; its output may no \
             longer depend on its input; stop this training and try a smaller train.rate or another --seed",
            since[0].epoch
        )
    })
}

/// A sentence where the validation error rose again while the loss went on falling.
fn learned_by_heart(history: &[Line], falls: bool) -> Option<String> {
    let errors: Vec<(usize, f64)> = history.iter().filter_map(|line| Some((line.epoch, line.validation?))).collect();
    let &(epoch, best) = errors.iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
    let tail = &errors[errors.len() - errors.len().div_ceil(10)..];
    let last = tail.iter().map(|(_, error)| error).sum::<f64>() / tail.len() as f64;
    let risen = last / best - 1.0;
    (falls && errors.len() >= FEWEST && risen > BY_HEART).then(|| {
        format!(
            "the model has learned its samples by heart since epoch {epoch}: the validation error rose by {:.0} % while the loss fell; \
             that epoch is saved; more samples, a smaller model or a larger train.weight_decay may help",
            100.0 * risen
        )
    })
}

/// The share by which the mean over the last tenth of the values lies below the mean over the tenth before.
fn fall(values: &[f64]) -> f64 {
    let tenth = values.len().div_ceil(10);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let end = values.len() - tenth;
    1.0 - mean(&values[end..]) / mean(&values[end - tenth..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(loss: impl Fn(f64) -> f64, epochs: usize) -> Vec<Line> {
        let line = |epoch: usize| Line {
            epoch,
            step: epoch,
            train: loss(epoch as f64),
            validation: None,
            test: None,
            rate: 1e-3,
            seconds: 1.0,
        };
        (1..=epochs).map(line).collect()
    }

    #[test]
    fn a_loss_that_still_falls_as_fast_as_one_over_the_epochs_has_not_converged() {
        for epochs in [10, 37, 500] {
            let said = doubt(&history(|epoch| 1.0 / epoch.powf(1.2), epochs)).unwrap();
            assert!(said.contains("not converged") && said.contains("train.epochs"), "{said}");
            assert_eq!(doubt(&history(|epoch| 1.0 / epoch.sqrt(), epochs)), None, "{epochs} epochs of a slow loss");
            assert_eq!(doubt(&history(|epoch| 0.05 + (-epoch).exp(), epochs)), None, "{epochs} epochs to a plateau");
        }
    }

    #[test]
    fn a_loss_that_never_fell_was_not_learned() {
        let said = doubt(&history(|epoch| 1.0 - 1e-3 * epoch, 20)).unwrap();
        assert!(said.contains("learned next to nothing") && said.contains("9.99"), "{said}");
        assert!(doubt(&history(|_| 1.0, 20)).is_some());
    }

    #[test]
    fn a_loss_that_rose_and_then_stands_still_is_told_after_five_epochs() {
        let switched_off =
            |epoch: f64| if epoch < 8.0 { 0.5 / epoch.sqrt() } else { 0.5666 + 1e-4 * (5.1 * epoch).sin() };
        assert_eq!(collapse(&history(switched_off, 11)), None, "four epochs decide nothing");
        let said = collapse(&history(switched_off, 12)).unwrap();
        assert!(
            said.contains("0.566") && said.contains("since epoch 8,") && said.contains("was 0.1890 before"),
            "{said}"
        );
    }

    #[test]
    fn a_plateau_below_all_earlier_losses_and_a_loss_that_moves_are_no_collapse() {
        assert_eq!(collapse(&history(|epoch| 0.05 + (-epoch).exp(), 40)), None, "converged");
        assert_eq!(collapse(&history(|_| 1.0, 40)), None, "never learned, which is told at the end");
        assert_eq!(
            collapse(&history(|epoch| 0.2 + 0.01 * (2.0 * epoch).sin() + 0.01 * epoch, 40)),
            None,
            "a loss that rises"
        );
        assert_eq!(collapse(&history(|_| f64::NAN, 40)), None);
        assert_eq!(collapse(&[]), None);
    }

    #[test]
    fn an_error_that_no_longer_falls_has_converged_whatever_the_loss_does() {
        let overfitted = |error: fn(f64) -> f64| -> Vec<Line> {
            let lines = history(|epoch| 1.0 / epoch.powi(2), 40).into_iter();
            lines.map(|line| Line { validation: Some(error(line.epoch as f64)), ..line }).collect()
        };
        assert_eq!(doubt(&overfitted(|epoch| 0.1 + 0.2 / epoch.powi(2))), None);
        assert!(doubt(&overfitted(|epoch| 1.0 / epoch.powf(1.2))).is_some_and(|said| said.contains("its error")));
        let rarely: Vec<Line> = overfitted(|_| 0.1)
            .into_iter()
            .map(|line| Line { validation: line.validation.filter(|_| line.epoch % 10 == 0), ..line })
            .collect();
        assert!(doubt(&rarely).is_some_and(|said| said.contains("its loss")), "four errors decide nothing");
    }

    #[test]
    fn an_error_that_rises_while_the_loss_falls_is_learning_by_heart() {
        let lines = |rise: f64| -> Vec<Line> {
            let lines = history(|epoch| 1.0 / epoch, 40).into_iter();
            let error = |epoch: usize| 0.1 + 0.1 * rise * (epoch as f64 - 10.0).max(-1.0) / 28.5;
            lines.map(|line| Line { validation: Some(error(line.epoch)), ..line }).collect()
        };
        let said = doubt(&lines(0.5)).unwrap();
        assert!(said.contains("by heart since epoch 1:") && said.contains("rose by"), "{said}");
        assert_eq!(doubt(&lines(0.1)), None, "a tenth is noise");
        let tested: Vec<Line> =
            lines(0.5).into_iter().map(|line| Line { test: line.validation, validation: None, ..line }).collect();
        assert_eq!(doubt(&tested), None, "test samples choose no epoch");
    }

    #[test]
    fn a_rate_that_goes_to_zero_may_lower_the_error_by_itself() {
        let quiet = |power: f64| -> Vec<Line> {
            let lines = history(|epoch| 1.0 / epoch.powf(power), 40).into_iter();
            lines.map(|line| Line { rate: 1e-3 * (1.0 - line.epoch as f64 / 40.0), ..line }).collect()
        };
        assert_eq!(doubt(&quiet(2.0)), None, "a fifth");
        assert!(doubt(&quiet(5.0)).is_some_and(|said| said.contains("not converged")), "nearly a half");
    }

    #[test]
    fn a_handful_of_epochs_and_numbers_that_are_none_say_nothing() {
        assert_eq!(doubt(&history(|epoch| 1.0 / epoch.powi(2), 9)), None);
        assert_eq!(doubt(&history(|_| f64::NAN, 20)), None);
        assert_eq!(doubt(&history(|_| 0.0, 20)), None);
        assert_eq!(doubt(&[]), None);
    }

    #[test]
    fn noise_of_a_few_percent_raises_no_doubt() {
        let noisy = |epoch: f64| (0.1 + 0.9 * (-epoch / 3.0).exp()) * (1.0 + 0.04 * (7.3 * epoch).sin());
        for epochs in [15, 40, 200] {
            assert_eq!(doubt(&history(noisy, epochs)), None, "{epochs} epochs");
        }
    }
}
