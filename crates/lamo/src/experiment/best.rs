//! The preset `best`: our own recipe for a benchmark, on top of the published one.
//!
//! The table `best` in the file of a benchmark holds what was chosen by the error on validation samples. Its keys are for all
//! models, those under the name of a model for this one alone:
//!
//! ```toml
//! [best.train]
//! symmetries = true
//! [best.lamo.model.settings]
//! mlp = "swiglu"
//! ```
//!
//! A benchmark without choices has no preset `best`: a copy of the published recipe would claim a choice that was not made.

use super::{OWN, keys};
use crate::error::{Kind, Refusal};
use crate::network::models::MODELS;
use toml::{Table, Value};

/// Name of the table in the file of a benchmark.
pub(super) const TABLE: &str = "best";

/// The keys that were chosen for a model; refuses a benchmark or model without any.
pub(super) fn layer(benchmark: &str, model: &str, best: Option<Value>) -> Result<Table, Refusal> {
    let Some(Value::Table(mut layer)) = best else { return Err(undecided(benchmark, model)) };
    let mut own = Table::new();
    for row in MODELS {
        if let Some(Value::Table(keys)) = layer.remove(row.name)
            && row.name == model
        {
            own = keys;
        }
    }
    keys::merge(&mut layer, own, false);
    if layer.is_empty() { Err(undecided(benchmark, model)) } else { Ok(layer) }
}

fn undecided(benchmark: &str, model: &str) -> Refusal {
    let sentence = match benchmark {
        OWN => "your own data have no preset best".to_owned(),
        _ => format!("{benchmark} has no preset best for model {model} yet: nothing was chosen by validation error"),
    };
    Refusal::said(sentence).advise("use --preset paper, the published recipe").of(Kind::Missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(text: &str, model: &str) -> Result<Table, String> {
        let best = text.parse::<Table>().unwrap().remove(TABLE);
        layer("darcy", model, best).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn keys_are_for_all_models_or_for_the_one_that_they_name() {
        let text = "[best.train]\nepochs = 800\n[best.lamo.model.settings]\ndepth = 2\n[best.lamo.train]\nrate = 1.0";
        let lamo = chosen(text, "lamo").unwrap();
        assert_eq!(lamo, "train = { epochs = 800, rate = 1.0 }\nmodel.settings.depth = 2".parse::<Table>().unwrap());
        assert_eq!(chosen(text, "fno").unwrap(), "train.epochs = 800".parse::<Table>().unwrap());
    }

    #[test]
    fn a_benchmark_or_model_without_choices_is_refused() {
        for (text, model) in [("", "lamo"), ("[best.lamo.train]\nrate = 1.0", "fno"), ("[best]", "lamo")] {
            let told = chosen(text, model).unwrap_err();
            assert!(
                told.contains("no preset best") && told.contains(model) && told.contains("--preset paper"),
                "{told}"
            );
        }
        assert!(layer(OWN, "lamo", None).unwrap_err().to_string().contains("your own data"));
    }
}
