//! Operator fixtures: parts of the models and of the training, each on its own. The `.json` names what was run as `op` and
//! gives its arguments; [`CHECKS`] has a row for every name.

mod layers;
mod maps;
mod recipe;
mod scan;
mod training;

use super::{Arguments, Comparison, Error};

type Check = fn(&Arguments<'_>, &mut Comparison) -> Result<(), Error>;

/// Operators that a fixture may name, each with its check.
const CHECKS: [(&str, Check); 17] = [
    ("mixer", layers::mixer),
    ("patchify", layers::patchify),
    ("depatchify", layers::depatchify),
    ("slice -> identity mixer -> deslice -> to_out", layers::slices),
    ("embeddings", layers::embeddings),
    ("elementwise", maps::elementwise),
    ("rmsnorm_gated", maps::gated_norm),
    ("ssd_scan", scan::recurrence),
    ("cross_scan", scan::orders),
    ("rel_l2", recipe::loss),
    ("darcy_loss", recipe::darcy_loss),
    ("UnitTransformer", recipe::normaliser),
    ("adamw", recipe::optimiser),
    ("schedule", recipe::schedule),
    ("train_darcy", training::darcy),
    ("train_ns", training::navier_stokes),
    ("train_plasticity", training::plasticity),
];

/// Checks a fixture; false when its operator is unknown.
pub(super) fn check_operator(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<bool, Error> {
    let name = fixture.table["op"].as_str().unwrap_or_default();
    match CHECKS.iter().find(|(known, _)| *known == name) {
        Some((_, check)) => check(fixture, io).map(|()| true),
        None => Ok(false),
    }
}
