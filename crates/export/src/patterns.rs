//! Groups of operators that are one operator elsewhere: softmax and layer norm over the last axis.

use crate::plan::{Node, Plan};
use lamo::tensor::{Map, Operation};
use std::collections::HashMap;

/// A group of operators; its last node is replaced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pattern {
    /// exp(x − max x) / Σ exp(x − max x)
    Softmax { value: usize },
    /// (x − mean) / √(variance + ε) · weight + bias
    LayerNorm { value: usize, weight: usize, bias: usize, epsilon: f64 },
}

/// The patterns of a plan by their last node, and the nodes that are needed beside them.
pub(crate) struct Patterns {
    pub(crate) found: HashMap<usize, Pattern>,
    pub(crate) needed: Vec<bool>,
}

/// Finds the patterns of a plan.
pub(crate) fn patterns(plan: &Plan) -> Patterns {
    let find = |place: usize| softmax(plan, place).or_else(|| layer_norm(plan, place)).map(|pattern| (place, pattern));
    let live = (0..plan.nodes.len()).filter(|&place| plan.nodes[place].needed && plan.nodes[place].constant.is_none());
    let found: HashMap<usize, Pattern> = live.filter_map(find).collect();
    let mut needed = vec![false; plan.nodes.len()];
    plan.outputs.iter().for_each(|(_, place)| needed[*place] = true);
    for place in (0..plan.nodes.len()).rev() {
        if !needed[place] || plan.nodes[place].constant.is_some() {
            continue;
        }
        let operands = match found.get(&place) {
            Some(Pattern::Softmax { value }) => vec![*value],
            Some(Pattern::LayerNorm { value, weight, bias, .. }) => vec![*value, *weight, *bias],
            None => plan.nodes[place].operands.clone(),
        };
        operands.into_iter().for_each(|operand| needed[operand] = true);
    }
    Patterns { found, needed }
}

/// The operands of a map.
fn operands(plan: &Plan, place: usize, map: Map) -> Option<&[usize]> {
    let node = &plan.nodes[place];
    (node.operation == Operation::Map(map) && node.constant.is_none()).then_some(&node.operands)
}

/// The node that is repeated or passed on.
fn source(plan: &Plan, mut place: usize) -> usize {
    while matches!(plan.nodes[place].operation, Operation::Expand | Operation::Same)
        && plan.nodes[place].constant.is_none()
    {
        place = plan.nodes[place].operands[0];
    }
    place
}

/// The number that all elements of a constant are.
fn number(plan: &Plan, place: usize) -> Option<f64> {
    let values = &plan.nodes[source(plan, place)].constant.as_ref()?.values;
    let first = *values.first()?;
    values.iter().all(|value| *value == first).then_some(f64::from(first))
}

/// Whether a node is a reduction over the last axis; its operand.
fn over_last(plan: &Plan, place: usize, sum: bool) -> Option<usize> {
    let Node { operation, dims, operands, .. } = &plan.nodes[place];
    match operation {
        Operation::Sum { first, end } if sum && first + 1 == *end && *end == dims.len() => Some(operands[0]),
        Operation::Max { first, end } if !sum && first + 1 == *end && *end == dims.len() => Some(operands[0]),
        _ => None,
    }
}

/// The operand of a mean over the last axis, which is a sum times 1/n.
fn mean(plan: &Plan, place: usize) -> Option<usize> {
    let [sum, factor] = operands(plan, place, Map::Multiply)? else { return None };
    let value = over_last(plan, *sum, true)?;
    let count = plan.nodes[value].dims.last()?.of_one() as f64;
    ((number(plan, *factor)? * count - 1.0).abs() < 1e-6).then_some(value)
}

fn softmax(plan: &Plan, place: usize) -> Option<Pattern> {
    let [weight, scale] = operands(plan, place, Map::Multiply)? else { return None };
    let [sum] = operands(plan, source(plan, *scale), Map::Reciprocal)? else { return None };
    let same = over_last(plan, *sum, true)? == *weight;
    let [shifted] = operands(plan, *weight, Map::Exp)? else { return None };
    let [value, largest] = operands(plan, *shifted, Map::Subtract)? else { return None };
    let largest = over_last(plan, source(plan, *largest), false)?;
    (same && largest == *value).then_some(Pattern::Softmax { value: *value })
}

fn layer_norm(plan: &Plan, place: usize) -> Option<Pattern> {
    let [scaled, bias] = operands(plan, place, Map::Add)? else { return None };
    let [norm, weight] = operands(plan, *scaled, Map::Multiply)? else { return None };
    let [centred, scale] = operands(plan, *norm, Map::Multiply)? else { return None };
    let [deviation] = operands(plan, source(plan, *scale), Map::Reciprocal)? else { return None };
    let [shifted] = operands(plan, *deviation, Map::Sqrt)? else { return None };
    let [variance, epsilon] = operands(plan, *shifted, Map::Add)? else { return None };
    let [one, two] = operands(plan, mean(plan, *variance)?, Map::Multiply)? else { return None };
    let [value, average] = operands(plan, *centred, Map::Subtract)? else { return None };
    let fits = one == centred && two == centred && mean(plan, source(plan, *average))? == *value;
    let (weight, bias, epsilon) = (source(plan, *weight), source(plan, *bias), number(plan, *epsilon)?);
    let width = plan.nodes[place].dims.last()?.of_one();
    let is_row = |place: usize| {
        let node = &plan.nodes[place];
        let last = node.dims.last().map(|extent| extent.of_one());
        node.constant.as_ref().is_some_and(|constant| constant.values.len() == width) && last == Some(width)
    };
    (fits && is_row(weight) && is_row(bias)).then_some(Pattern::LayerNorm { value: *value, weight, bias, epsilon })
}
