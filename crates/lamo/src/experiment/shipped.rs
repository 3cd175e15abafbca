//! The experiments that come with the library: each benchmark with each model that has a recipe for it, and the models'
//! variants.

use super::benchmarks::BENCHMARKS;
use super::keys;
use crate::error::{Kind, Refusal};
use crate::network::models::{MODELS, Row, Variant};
use std::sync::LazyLock;

/// A shipped experiment.
#[derive(Debug)]
pub struct Shipped {
    /// `BENCHMARK-MODEL`, or `BENCHMARK-MODEL-VARIANT`.
    pub name: String,
    /// Description in one line.
    pub summary: &'static str,
    /// The experiment file.
    pub text: String,
}

/// All shipped experiments, model by model.
pub static EXPERIMENTS: LazyLock<Vec<Shipped>> = LazyLock::new(|| MODELS.iter().flat_map(of_model).collect());

fn of_model(row: &'static Row) -> impl Iterator<Item = Shipped> {
    let recipe = |benchmark: &str| {
        (row.recipe)(benchmark).map(|text| shipped(format!("{benchmark}-{}", row.name), benchmark, row.name, text))
    };
    let variant = |Variant { benchmark, name, text }: &'static Variant| {
        shipped(format!("{benchmark}-{}-{name}", row.name), benchmark, row.name, text)
    };
    BENCHMARKS.iter().filter_map(move |row| recipe(row.name)).chain(row.variants.iter().map(variant))
}

/// The first line of a recipe's text says what it is; the rest are keys of an experiment file.
fn shipped(name: String, benchmark: &str, model: &str, text: &'static str) -> Shipped {
    let (comment, keys) = text.split_once('\n').unwrap_or((text, ""));
    let text = format!("{comment}\nbenchmark = \"{benchmark}\"\nmodel.name = \"{model}\"\n{keys}");
    Shipped { name, summary: comment.trim_start_matches("# "), text }
}

/// The benchmark or shipped experiment whose name is nearest to a word, if one is near.
pub fn nearest(word: &str) -> Option<&'static str> {
    let benchmarks = BENCHMARKS.iter().map(|row| row.name);
    keys::nearest(word, benchmarks.chain(EXPERIMENTS.iter().map(|shipped| shipped.name.as_str())))
}

/// The text of a shipped experiment.
pub fn shipped_text(name: &str) -> Result<&'static str, Refusal> {
    let found = EXPERIMENTS.iter().find(|shipped| shipped.name == name);
    found.map(|shipped| shipped.text.as_str()).ok_or_else(|| {
        let known: Vec<_> = EXPERIMENTS.iter().map(|shipped| shipped.name.as_str()).collect();
        Refusal::said(format!("experiment {name:?} does not exist; there are {}", known.join(", "))).of(Kind::Missing)
    })
}
