//! The figures of fields: the runs of Table 1 on one test sample.

use super::artifact::{Content, Portrait, Subject};
use super::effort::{Length, Options};
use super::tables::BOTH;

fn portrait(options: &Options, benchmark: &'static str, title: &'static str) -> Portrait {
    Portrait { title, cells: BOTH.map(|model| options.cell(benchmark, model, Length::Main)) }
}

/// The choice of the sample, then `errors`: what the printed errors are.
fn notes(errors: &str) -> Vec<String> {
    let note = "The test sample in the middle of the list, the same for both models; the paper does not say how it chose. Errors \
                are drawn as lengths, on one colour scale for both models.";
    vec![note.to_owned(), errors.to_owned()]
}

/// F3.
pub(super) fn errors(options: &Options) -> (Content, Vec<String>) {
    let all = [("darcy", "Darcy"), ("plasticity", "Plasticity"), ("navier-stokes", "Navier–Stokes")];
    let portraits = all.map(|(benchmark, title)| portrait(options, benchmark, title));
    (
        Content::Fields(Subject::Errors, portraits.into()),
        notes("The numbers are errors of the sample, with all its snapshots."),
    )
}

/// F5.
pub(super) fn tasks(options: &Options) -> (Content, Vec<String>) {
    let all = [
        ("darcy", "Darcy"),
        ("airfoil", "Airfoil"),
        ("elasticity", "Elasticity"),
        ("navier-stokes", "Navier–Stokes"),
        ("pipe", "Pipe"),
        ("plasticity", "Plasticity"),
    ];
    let portraits = all.map(|(benchmark, title)| portrait(options, benchmark, title));
    let note = "Above what is given, below what is asked, of the test sample in the middle of the list; a series shows its last snapshot.";
    (Content::Fields(Subject::Task, portraits.into()), vec![note.to_owned()])
}

/// F12.
pub(super) fn darcy(options: &Options) -> (Content, Vec<String>) {
    (
        Content::Fields(Subject::Predictions, vec![portrait(options, "darcy", "Darcy")]),
        notes("The numbers are errors of the sample."),
    )
}

/// F13.
pub(super) fn navier_stokes(options: &Options) -> (Content, Vec<String>) {
    let portraits = vec![portrait(options, "navier-stokes", "Navier–Stokes")];
    (Content::Fields(Subject::Predictions, portraits), notes("The numbers are errors of the snapshots."))
}

/// What Figure 6 leaves open.
pub(super) fn order_notes() -> Vec<String> {
    let note =
        "The orders of the released code: rows, columns, and both backwards. The paper's remark says four corners.";
    vec![note.to_owned()]
}
