//! Schedule: units in an order in which each runs after those it depends on, written as kernels.

use super::assemble::Assembled;
use super::fuse::{Fused, Unit};
use super::loops::{write_copy, write_loop};
use super::place::Placed;
use super::plan::{MembershipGradient, Place, Step};
use crate::device::DeviceError;
use crate::graph::NodeId;
use crate::limits::poll;
use crate::ops::Op;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(crate) fn schedule(graph: &Assembled, fused: &Fused, placed: &Placed) -> Result<Vec<Step>, DeviceError> {
    let mut steps = Vec::new();
    for unit in order(fused) {
        poll()?;
        match &fused.units[unit] {
            Unit::Loop(group) => steps.push(Step::Loop(write_loop(graph, fused, placed, group))),
            Unit::Operator(id) => write_operator(graph, placed, *id, &mut steps),
        }
    }
    steps.extend(placed.late_copies.iter().map(|(from, to)| Step::Loop(write_copy(from.clone(), to.clone()))));
    Ok(steps)
}

/// Among the units that are ready, the one that comes first in the graph runs first.
fn order(fused: &Fused) -> Vec<usize> {
    let mut waiting: Vec<usize> = fused.after.iter().map(std::collections::BTreeSet::len).collect();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); fused.units.len()];
    for (unit, earlier) in fused.after.iter().enumerate() {
        earlier.iter().for_each(|&other| before[other].push(unit));
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..waiting.len()).filter(|&unit| waiting[unit] == 0).map(Reverse).collect();
    let mut ordered = Vec::with_capacity(waiting.len());
    while let Some(Reverse(unit)) = ready.pop() {
        ordered.push(unit);
        for &later in &before[unit] {
            waiting[later] -= 1;
            if waiting[later] == 0 {
                ready.push(Reverse(later));
            }
        }
    }
    assert_eq!(ordered.len(), fused.units.len(), "fusion made a cycle");
    ordered
}

fn write_operator(graph: &Assembled, placed: &Placed, id: NodeId, steps: &mut Vec<Step>) {
    let node = &graph.nodes[id];
    let place = |node: NodeId| placed.address(graph, node);
    let operand = |position: usize| place(node.operands[position]);
    let part = |index: usize| -> Option<Place> {
        let is_part = |user: &&NodeId| graph.nodes[**user].op == Op::Part { index };
        graph.users[id].iter().find(is_part).map(|&user| place(user))
    };
    match &node.op {
        Op::Concatenate { .. } => {} // the kernels of its pieces wrote it
        Op::Embed { spans } => {
            let to = place(id);
            steps.push(Step::Clear { buffer: to.buffer });
            let inside = Place { layout: to.layout.sliced(spans), ..to };
            steps.push(Step::Loop(write_copy(operand(0), inside)));
        }
        Op::MatMul { exact } => {
            steps.push(Step::MatMul { exact: *exact, left: operand(0), right: operand(1), to: place(id) });
        }
        Op::InverseCholesky { jitter } => {
            let jitter = f64::from_bits(*jitter);
            steps.push(Step::InverseCholesky { jitter, from: operand(0), to: place(id) });
        }
        Op::Convolution(shape) => {
            steps.push(Step::Convolution { shape: *shape, input: operand(0), weight: operand(1), to: place(id) });
        }
        Op::ConvolutionInputGradient(shape) => {
            let (cotangent, weight) = (operand(0), operand(1));
            steps.push(Step::ConvolutionInputGradient { shape: *shape, cotangent, weight, to: place(id) });
        }
        Op::ConvolutionWeightGradient(shape) => {
            let (input, cotangent) = (operand(0), operand(1));
            steps.push(Step::ConvolutionWeightGradient { shape: *shape, input, cotangent, to: place(id) });
        }
        Op::Gather { axis } => {
            let index = operand(1).buffer;
            steps.push(Step::Gather { axis: *axis, from: operand(0), index, to: place(id) });
        }
        Op::ScatterAdd { axis } => {
            let index = operand(1).buffer;
            steps.push(Step::ScatterAdd { axis: *axis, from: operand(0), index, to: place(id) });
        }
        Op::Collect(shape) => {
            let membership = [operand(0), operand(1), operand(2)];
            steps.push(Step::Collect { shape: *shape, membership, values: operand(3), to: place(id) });
        }
        Op::Spread(shape) => {
            let membership = [operand(0), operand(1), operand(2)];
            steps.push(Step::Spread { shape: *shape, membership, tokens: operand(3), to: place(id) });
        }
        Op::MembershipGradient { shape, uses } => {
            let last = node.operands.len() - 2;
            steps.push(Step::MembershipGradient(Box::new(MembershipGradient {
                shape: *shape,
                membership: [operand(0), operand(1), operand(2)],
                collection: uses.collected.then(|| [operand(3), operand(4)]),
                spread: uses.spread.then(|| [operand(last), operand(last + 1)]),
                to: [0, 1, 2].map(|index| part(index).expect("every gradient has a place")),
                values: part(3),
            })));
        }
        Op::Scan { shape, order } => steps.push(Step::Scan {
            shape: *shape,
            order: order.clone(),
            operands: node.operands.iter().map(|&node| place(node)).collect(),
            output: part(0).expect("the output of a scan is always live"),
            final_state: part(1),
        }),
        Op::ScanGradient { shape, order, initial } => {
            let inputs = if *initial { 6 } else { 5 };
            steps.push(Step::ScanGradient {
                shape: *shape,
                order: order.clone(),
                operands: (0..inputs).map(operand).collect(),
                cotangent: operand(inputs),
                final_cotangent: (node.operands.len() > inputs + 1).then(|| operand(inputs + 1)),
                to: (0..inputs).map(|index| part(index).expect("every gradient has a place")).collect(),
            });
        }
        op => unreachable!("{op:?} is computed by a loop"),
    }
}
