//! First values from another model: a tensor is taken where its name and its shape agree. An embedding of the patches of
//! another lattice is interpolated, as [`resample`] interpolates fields.

use super::Operator;
use crate::error::{Error, Refusal, counted, require};
use crate::network::ModelStates;
use crate::network::layers::resample;
use crate::network::models::{self, Choice, Embedding};
use crate::task::Task;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, Section};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A tensor that is drawn as usual, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drawn {
    /// Name of the tensor.
    pub name: String,
    /// Why the source has no values for it.
    pub reason: String,
}

/// Which parameters of a model start with values of another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Tensors that were taken and tensors of the model; interpolated ones count as taken.
    pub tensors: [usize; 2],
    /// Numbers that were taken and numbers of the model.
    pub parameters: [usize; 2],
    /// Tensors that were interpolated to another lattice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interpolated: Vec<String>,
    /// Tensors that were drawn as usual.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drawn: Vec<Drawn>,
    /// Tensors of the source that the model does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
}

/// The model that a run started from: the `init` of `environment.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The file with the weights.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub sha256: String,
    /// What was taken.
    pub transfer: Transfer,
}

/// Names shown in a sentence at most.
const SHOWN: usize = 4;

impl fmt::Display for Transfer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([taken, tensors], [numbers, parameters]) = (self.tensors, self.parameters);
        write!(out, "{taken} of {tensors} tensors taken, {numbers} of {parameters} parameters")?;
        let drawn: Vec<String> = self.drawn.iter().map(|Drawn { name, reason }| format!("{name} ({reason})")).collect();
        for (what, names) in
            [("interpolated", &self.interpolated), ("drawn as without --init", &drawn), ("not used", &self.unused)]
        {
            if !names.is_empty() {
                let shown = names[..names.len().min(SHOWN)].join(", ");
                let rest = names.len().saturating_sub(SHOWN);
                let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
                write!(out, "; {what}: {shown}{more}")?;
            }
        }
        Ok(())
    }
}

/// Overwrites the first values of a model, whose tensors are `sections`, where the source has values for them. Refuses a
/// source of which nothing fits.
pub(crate) fn transfer(
    source: &Operator,
    (model, task): (&Choice, &Task),
    (sections, values): (&[Section], &mut [f32]),
    states: &mut ModelStates,
) -> Result<Transfer, Error> {
    source.check()?;
    let given: BTreeMap<&str, &Section> = source.sections.iter().map(|one| (one.name.as_str(), one)).collect();
    let lattices = [(&source.model, &source.task), (model, task)].map(|(model, task)| embedding(model, task));
    let mut done = Transfer::default();
    for section in sections {
        let count = section.shape.count();
        (done.tensors[1], done.parameters[1]) = (done.tensors[1] + 1, done.parameters[1] + count);
        let found = given.get(section.name.as_str());
        let fits = found.filter(|found| found.shape == section.shape).map(|found| found.range());
        let moved = found.and_then(|found| interpolated(&lattices, found, section, &source.parameters));
        if let Some(range) = fits {
            values[section.range()].copy_from_slice(&source.parameters[range]);
        } else if let Some(moved) = moved {
            values[section.range()].copy_from_slice(&moved);
            done.interpolated.push(section.name.clone());
        } else {
            let expected = section.shape.dims();
            let reason = found.map_or_else(
                || "the source lacks it".to_owned(),
                |found| format!("its shape is {expected:?}, that of the source {:?}", found.shape.dims()),
            );
            done.drawn.push(Drawn { name: section.name.clone(), reason });
            continue;
        }
        (done.tensors[0], done.parameters[0]) = (done.tensors[0] + 1, done.parameters[0] + count);
    }
    let known = |name: &str| sections.iter().any(|section| section.name == name);
    done.unused = given.keys().filter(|name| !known(name)).map(|&name| name.to_owned()).collect();
    take_states(&source.states, states, &mut done);
    require(done.tensors[0] > 0, || {
        let expected = format!("a tensor with name and shape of one of the {} of model {}", sections.len(), model.name);
        let found =
            format!("none among the {} of a model {}", counted(source.sections.len(), "tensor"), source.model.name);
        Refusal::new("--init", expected, found).advise("start from a model of the same kind, or leave out --model")
    })?;
    Ok(done)
}

/// Takes the states of the source where names and shapes agree. They count as no parameters.
fn take_states(source: &ModelStates, states: &mut ModelStates, done: &mut Transfer) {
    let ModelStates { sections, values } = states;
    for section in sections.iter() {
        match source.sections.iter().find(|given| given.name == section.name) {
            Some(given) if given.shape == section.shape => {
                values[section.range()].copy_from_slice(&source.values[given.range()]);
            }
            Some(given) => {
                let (expected, found) = (section.shape.dims(), given.shape.dims());
                let reason = format!("its shape is {expected:?}, that of the source {found:?}");
                done.drawn.push(Drawn { name: section.name.clone(), reason });
            }
            None => {
                done.drawn.push(Drawn { name: section.name.clone(), reason: "the source lacks it".to_owned() });
            }
        }
    }
    let unknown = source.sections.iter().filter(|given| sections.iter().all(|section| section.name != given.name));
    done.unused.extend(unknown.map(|given| given.name.clone()));
}

/// The position embedding of a model, where it has one.
fn embedding(model: &Choice, task: &Task) -> Option<Embedding> {
    models::find(&model.name).ok().and_then(|row| row.embedding(&model.settings, task.grid))
}

/// The values of an embedding `[1, patches, channels]` on the lattice of the second model.
fn interpolated(
    lattices: &[Option<Embedding>; 2],
    from: &Section,
    to: &Section,
    parameters: &[f32],
) -> Option<Vec<f32>> {
    let [Some((name, before)), Some((same, after))] = *lattices else { return None };
    let (&[1, patches, channels], &[1, wanted, width]) = (from.shape.dims(), to.shape.dims()) else { return None };
    let counts = [before, after].map(|extents| extents.iter().product::<usize>());
    if name != from.name || same != to.name || channels != width || counts != [patches, wanted] {
        return None;
    }
    let graph = Graph::new();
    let image = graph.input("embedding", [1, before[0], before[1], before[2], channels]);
    let moved = resample(image, after);
    let values = parameters[from.range()].iter().map(|&value| f64::from(value)).collect();
    let found = reference::evaluate(&graph, &Bindings::from([("embedding", values)]), &[moved]);
    Some(found.first()?.values.iter().map(|&value| value as f32).collect())
}
