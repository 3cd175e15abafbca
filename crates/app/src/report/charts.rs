//! The charts of the page: the training, and where the error is.

use super::svg::{Chart, Series, Shape};
use crate::plot::Scaling;
use crate::text::percent;
use lamo::inference::evaluate::Evaluation;
use lamo::inference::evaluate::spectrum::Spectrum;
use lamo::run::Line;

/// Bars of the histogram.
const BARS: usize = 24;

fn line(name: &'static str, points: Vec<(f64, f64)>) -> Series {
    Series { name, shape: Shape::Line, points }
}

/// The epoch with the least validation error, the first of several; `None` without validation samples.
fn best(history: &[Line]) -> Option<usize> {
    let errors = history.iter().filter_map(|line| Some((line.epoch, line.validation?)));
    errors.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(epoch, _)| epoch)
}

/// Loss, errors on validation and test samples, and learning rate over the epochs; nothing without a history.
pub(super) fn training(history: &[Line]) -> String {
    if history.is_empty() {
        return String::new();
    }
    let points = |value: &dyn Fn(&Line) -> Option<f64>| -> Vec<(f64, f64)> {
        history.iter().filter_map(|line| Some((line.epoch as f64, value(line)?))).collect()
    };
    let losses = Chart {
        title: "Loss and error",
        horizontal: "epoch",
        scaling: Scaling::Logarithmic,
        percent: false,
        integers: [true, false],
        series: [
            line("training loss", points(&|line| Some(line.train))),
            line("validation error", points(&|line| line.validation)),
            line("test error", points(&|line| line.test)),
        ]
        .into_iter()
        .filter(|series| !series.points.is_empty())
        .collect(),
        mark: best(history).map(|epoch| (epoch as f64, "best".to_owned())),
    };
    let rate = Chart {
        title: "Learning rate",
        horizontal: "epoch",
        scaling: Scaling::Linear,
        percent: false,
        integers: [true, false],
        series: vec![line("rate", points(&|line| Some(line.rate)))],
        mark: None,
    };
    losses.draw() + &rate.draw()
}

/// The number of test samples over their errors.
pub(super) fn histogram(evaluation: &Evaluation) -> String {
    let [least, most] = [evaluation.distribution.least(), evaluation.distribution.most()];
    let width = (most - least) / BARS as f64;
    if !(width.is_finite() && width > 0.0) {
        return String::new();
    }
    let mut counts = [0.0; BARS];
    for sample in &evaluation.samples {
        counts[(((sample.error - least) / width) as usize).min(BARS - 1)] += 1.0;
    }
    let bar = |(index, count): (usize, &f64)| (100.0 * (least + (index as f64 + 0.5) * width), *count);
    Chart {
        title: "Errors of the test samples",
        horizontal: "relative L2 in percent",
        scaling: Scaling::Linear,
        percent: false,
        integers: [false, true],
        series: vec![Series {
            name: "samples",
            shape: Shape::Bars,
            points: counts.iter().enumerate().map(bar).collect(),
        }],
        mark: Some((100.0 * evaluation.relative_l2, format!("mean {}", percent(evaluation.relative_l2)))),
    }
    .draw()
}

/// The error of each snapshot of a time series, of which the first `past` are input; nothing for steady fields.
pub(super) fn snapshots(errors: &[f64], past: usize) -> String {
    let point = |(snapshot, error): (usize, &f64)| ((past + snapshot + 1) as f64, *error);
    Chart {
        title: "Error of each snapshot",
        horizontal: "snapshot",
        scaling: Scaling::Linear,
        percent: true,
        integers: [true, false],
        series: vec![Series {
            name: "error",
            shape: Shape::Bars,
            points: errors.iter().enumerate().map(point).collect(),
        }],
        mark: None,
    }
    .draw()
}

/// Error and truth over the wave number.
pub(super) fn waves(spectrum: &Spectrum) -> String {
    let rings = |energies: &[f64]| -> Vec<(f64, f64)> {
        energies.iter().enumerate().map(|(wave, energy)| (wave as f64, energy.sqrt())).collect()
    };
    Chart {
        title: "Spectrum",
        horizontal: "waves per side",
        scaling: Scaling::Logarithmic,
        percent: false,
        integers: [true, false],
        series: vec![line("error", rings(&spectrum.error)), line("truth", rings(&spectrum.truth))],
        mark: None,
    }
    .draw()
}
