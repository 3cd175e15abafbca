//! Time and memory: Figures 4 and 7 from the receipts of trainings, Table 10 from those at several resolutions.

use super::Cell;
use super::artifact::{Content, Growth, Spending};
use super::effort::{Effort, Length, Options};
use super::published;
use super::sweeps::resolutions;
use super::tables::BOTH;

/// Epochs of trainings that are only timed.
const TIMED: usize = 2;

/// The training that is timed: that of Table 1 where it is trained, else a short one.
fn timed(options: &Options, benchmark: &'static str, model: &'static str) -> Cell {
    let cell = options.cell(benchmark, model, Length::Main);
    match options.effort == Effort::Full || BOTH.contains(&model) {
        true => cell,
        false => cell.with(format!("train.epochs={}", if options.effort == Effort::Smoke { 1 } else { TIMED })),
    }
}

/// F7, in its order of benchmarks.
pub(super) fn bars(options: &Options) -> (Content, Vec<String>) {
    let order = ["darcy", "navier-stokes", "airfoil", "plasticity", "elasticity", "pipe"];
    let one = |benchmark: &'static str, model: &'static str| {
        let key = benchmark.replace('-', "_");
        let number = |what: &str| published::number(&format!("efficiency.{key}.{what}.{model}"));
        Spending {
            benchmark,
            model,
            cell: timed(options, benchmark, model),
            training: number("training_seconds_per_epoch"),
            inference: number("inference_seconds_per_epoch"),
            memory: number("memory_gb"),
            million: None,
        }
    };
    let all = order.into_iter().flat_map(|benchmark| BOTH.map(|model| one(benchmark, model))).collect();
    let notes = [
        "Ours: seconds of training per epoch without tests and checkpoints; one pass over the test samples after the program is \
         compiled; memory of the training step without the samples.",
        "The published times are of an A100 and launch-bound: compare ratios of the two models, not seconds.",
    ];
    (Content::Bars(all), notes.map(str::to_owned).into())
}

/// F4.
pub(super) fn bubbles(options: &Options) -> (Content, Vec<String>) {
    let models = ["lamo", "oformer", "galerkin", "transolver", "gnot", "ono"];
    let one = |benchmark: &'static str, model: &'static str| {
        let number = |what: &str| published::number(&format!("efficiency_scatter.{benchmark}.{model}.{what}"));
        Spending {
            benchmark,
            model,
            cell: timed(options, benchmark, model),
            training: number("training_seconds_per_epoch"),
            inference: None,
            memory: number("memory_gb"),
            million: number("derived_million"),
        }
    };
    let all =
        ["darcy", "airfoil"].into_iter().flat_map(|benchmark| models.map(|model| one(benchmark, model))).collect();
    let note = "Radii are in proportion to parameters, as in the paper; its millions are read off its radii.";
    (Content::Bubbles(all), vec![note.to_owned()])
}

/// T10.
pub(super) fn growth(options: &Options) -> (Content, Vec<String>) {
    let rows = [
        ("fno", "FNO", "fno"),
        ("transolver", "Transformer (ours: Transolver, whose attention is between slices)", "transformer"),
        ("lamo", "LaMO", "lamo"),
    ];
    let row = |(model, label, key): (&'static str, &'static str, &str)| {
        let word = |what: &str| published::text(&format!("complexity.{key}.{what}")).unwrap_or_default();
        let cell = |(points, cell): (f64, Cell)| match BOTH.contains(&model) {
            true => (points, cell),
            false => {
                (points, cell.with(format!("train.epochs={}", if options.effort == Effort::Smoke { 1 } else { TIMED })))
            }
        };
        Growth {
            label,
            range: word("range"),
            kernel: word("kernel"),
            order: word("order"),
            cells: resolutions(options, model).into_iter().map(cell).collect(),
        }
    };
    let notes = [
        "Nothing is measured in the paper. Ours are exponents p of seconds per epoch ∝ points^p and of memory over the resolutions of \
         Figure 2 (b); launches and small sizes lower them.",
    ];
    (Content::Growth(rows.map(row).into()), notes.map(str::to_owned).into())
}
