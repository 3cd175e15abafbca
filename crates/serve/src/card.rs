//! The card of a served model: that of the library, with its receipt and what this server does with it.

use crate::catalogue::Source;
use lamo::inference::evaluate::RECEIPT;
use lamo::run::{self, pretrained};
use lamo::workflow::Model;
use lamo::{Device, Operator, Receipt};
use serde_json::{Value, json};
use std::path::Path;

/// The card of a model with so many test samples at hand.
pub(crate) fn card(source: &Source, model: &Model, device: Device, samples: usize, solvable: bool) -> Value {
    let trained = match model {
        Model::Trained(trained) => Some(trained.as_ref()),
        Model::Imported(_) => None,
    };
    let receipt = receipt(&source.path, model.operator());
    let mut card = run::card(model.operator(), trained);
    card["name"] = json!(source.name);
    card["version"] = json!(source.version);
    card["device"] = json!(device.to_string());
    card["error"] = json!(receipt.as_ref().map(|(_, error)| *error));
    card["receipt"] = json!(receipt.map(|(receipt, _)| receipt));
    card["solvable"] = json!(solvable);
    card["samples"] = json!(samples);
    card["note"] = json!(model.note());
    card
}

/// The receipt of a run or of a pretrained model, and its headline; `None` where it is of other weights or of symmetric predictions.
fn receipt(path: &Path, operator: &Operator) -> Option<(Value, f64)> {
    let text = match path.exists() {
        true => std::fs::read_to_string(path.join(RECEIPT)).ok()?,
        false => pretrained::receipt(path.to_str()?)?,
    };
    let receipt: Value = serde_json::from_str(&text).ok()?;
    let stated = serde_json::from_value::<Receipt>(receipt.clone()).ok()?;
    stated.is_of(operator, false).then(|| (receipt, stated.evaluation.headline()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_that_comes_with_the_library_has_its_receipt() {
        for (name, _) in pretrained::MODELS {
            let model = Model::open(name.as_ref()).unwrap();
            let found = receipt(name.as_ref(), model.operator());
            let (_, error) = found.unwrap_or_else(|| panic!("there is no receipt of {name}"));
            assert!((0.0..0.1).contains(&error), "{name}: {error}");
        }
    }
}
