//! What a written model says about itself.

use crate::plan::Plan;
use crate::verify::{Origin, Verified};
use lamo::inference::Port;
use lamo::inference::evaluate::RECEIPT;
use lamo::workflow::Model;
use lamo::{Operator, Receipt};
use std::path::Path;

/// Pairs of names and values, in the order in which they are written.
pub(crate) type Metadata = Vec<(String, String)>;

/// What is known before a comparison.
pub(crate) fn metadata(operator: &Operator, plan: &Plan, source: Option<(&Model, &Path)>) -> Metadata {
    let task = &plan.physical.task;
    let names = |fields: &[lamo::Field]| fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ");
    let units = |ports: &mut dyn Iterator<Item = &Port>| {
        ports.map(|port| format!("{}: {}", port.name, port.unit)).collect::<Vec<_>>().join(", ")
    };
    let mut pairs: Metadata = Vec::new();
    let mut add = |key: &str, value: String| pairs.push((key.to_owned(), value));
    add("model", operator.model.name.clone());
    add("parameters", operator.parameters.len().to_string());
    add("task", task.time.describe(&names(&task.inputs), &names(&task.outputs)));
    add("grid", task.grid.to_string());
    if plan.has_any_points() {
        add("points", "any number".to_owned());
    }
    add("units", units(&mut plan.inputs.iter().map(|(port, _)| port).chain(plan.outputs.iter().map(|(port, _)| port))));
    add("normalisation", "inside: fields in and out are in their units".to_owned());
    if task.time.mode().is_roll_out() {
        add("time", "one step of a roll-out: the last snapshots in, the next one out".to_owned());
    } else if task.time.is_input() {
        let known = task.time.clock().len() > 1;
        let clock = if known { format!("{:?}", task.time.clock()) } else { "0 to 1 over the series".to_owned() };
        add("time", format!("asked for by the input `time`: {clock}"));
    }
    if let Some((Model::Trained(trained), path)) = source {
        add("benchmark", trained.experiment.benchmark.clone());
        add("epochs", trained.epoch.to_string());
        if let Some(error) =
            lamo::run::history(path).ok().and_then(|lines| lines.iter().filter_map(lamo::Line::error).next_back())
        {
            add("training error", format!("{error:.6} (mean relative L2 of the last tested epoch)"));
        }
        // A run that was resumed after its report has other weights, and what is written predicts without symmetries.
        let receipt = Receipt::read(&path.join(RECEIPT)).ok();
        if let Some(receipt) = receipt.filter(|receipt| receipt.is_of(operator, false)) {
            add("test error", format!("{:.6}", receipt.evaluation.headline()));
            add("receipt (SHA-256 of the weights)", receipt.hashes.weights.clone());
        }
    }
    add("lamo", env!("CARGO_PKG_VERSION").to_owned());
    pairs
}

/// What a comparison found.
pub(crate) fn verification(verified: &Verified) -> Metadata {
    let origin = match verified.origin {
        Origin::Test => "test samples",
        Origin::Drawn => "samples drawn with the mean and the deviation of the training samples",
    };
    let mut pairs = vec![
        ("verified on".to_owned(), format!("{} {origin}", verified.samples)),
        (
            "verification error".to_owned(),
            format!(
                "{:.2e} relative L2, {:.2e} of the largest element",
                verified.relative_l2, verified.relative_maximum
            ),
        ),
    ];
    if let Some([fewest, most]) = verified.points {
        pairs.push(("verified points".to_owned(), format!("{fewest} to {most} of a sample")));
    }
    if let Some(rounding) = verified.rounding {
        pairs.push(("rounding of lamo".to_owned(), format!("{rounding:.2e} relative L2 beside f64")));
    }
    if let Some((steps, error)) = verified.rolled_out {
        pairs.push(("verification of the roll-out".to_owned(), format!("{error:.2e} relative L2 after {steps} steps")));
    }
    pairs
}
