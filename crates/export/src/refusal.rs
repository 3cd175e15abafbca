//! What cannot be written exactly, in a sentence.

use lamo::error::Refusal;
use lamo::tensor::{Map, Operation};

/// The refusal of an operator.
pub(crate) fn cannot(operation: &Operation, language: &str) -> Refusal {
    let words = match operation {
        Operation::Map(Map::Philox) => "a random number".to_owned(),
        Operation::Map(map) => format!("the map {map:?}"),
        Operation::Gather(_) => "a gather of rows that are not fixed".to_owned(),
        Operation::ScatterAdd(_) => "a sum of rows by an index".to_owned(),
        Operation::State(name) => format!("the state {name}"),
        Operation::IndexInput(name) => format!("the row numbers {name}"),
        Operation::Gradient(words) => (*words).to_owned(),
        other => format!("the operator {other:?}"),
    };
    Refusal::about("export", format!("{words} has no exact form in {language}"))
        .advise("every model of `lamo list` is made of operators that have one; leave out what the model adds to them")
}

/// Refuses where a claim does not hold.
pub(crate) fn require(claim: bool, refusal: impl FnOnce() -> Refusal) -> Result<(), Refusal> {
    if claim { Ok(()) } else { Err(refusal()) }
}
