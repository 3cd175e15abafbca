//! The recurrence alone, and the orders in which the tokens of a plane are scanned.

use super::super::{
    Arguments, Comparison, DOUBLE, Error, GRADIENT, OUTPUT, compare_gradients, double, output_pullback, single,
};
use crate::network::layers::cross_orders;
use lamo_tensor::reference;
use lamo_tensor::{Graph, ScanInput, Tensor};
use std::collections::BTreeMap;

/// Compares y, the last state, and the pullback of `dout` to all inputs.
pub(super) fn recurrence(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let graph = Graph::new();
    let mut leaves = BTreeMap::new();
    for key in ["x", "dt", "A", "B", "C", "D", "dt_bias", "initial_states"] {
        if ["x", "dt", "A", "B", "C"].contains(&key) || io.tensors.contains_key(key) {
            leaves.insert(key, io.input(&graph, key)?);
        }
    }
    let (y, state) = scan(&leaves, fixture.table["softplus"] == true);
    graph.output("y_f64", y);
    graph.output("final_state_f64", state);
    let wanted: Vec<_> = leaves.iter().map(|(key, leaf)| (format!("grad.{key}_f64"), *leaf)).collect();
    output_pullback((y, io.input(&graph, "dout")?), &wanted);
    let bindings = io.bindings(leaves.keys().copied().chain(["dout"]))?;
    let program = io.run(&graph, &bindings)?;
    for (key, exact) in ["y_f64", "final_state_f64"].iter().zip(reference::evaluate(&graph, &bindings, &[y, state])) {
        io.compare("output", key, &double(program.read(key)), OUTPUT)?;
        io.compare("double", key, &exact.values, DOUBLE)?;
    }
    Ok(compare_gradients(&program, &wanted, &[], GRADIENT, io)?)
}

/// y and the last state of `mamba_ssm`'s scan; Δ is taken before its softplus.
fn scan<'g>(leaves: &BTreeMap<&str, Tensor<'g>>, softplus: bool) -> (Tensor<'g>, Tensor<'g>) {
    let signal = leaves["x"];
    let shifted = leaves.get("dt_bias").map_or(leaves["dt"], |&bias| leaves["dt"] + bias);
    let step = if softplus { shifted.softplus() } else { shifted };
    let scan = ScanInput {
        signal,
        log_decay: step * leaves["A"],
        gain: step,
        write: leaves["B"],
        read: leaves["C"],
        initial: leaves.get("initial_states").copied(),
    };
    let (y, state) = scan.scan(&[(0..signal.shape().dims()[1] as u32).collect()]);
    let Some(&skip) = leaves.get("D") else { return (y, state) };
    let per_head = skip.shape().rank() == 1;
    (y + signal * if per_head { skip.reshape([skip.shape().count(), 1]) } else { skip }, state)
}

/// The token that each direction reads at each step, and the sum over directions of sequences in these orders.
pub(super) fn orders(_: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    for [rows, columns] in [[5, 7], [4, 4], [1, 6], [6, 1]] {
        let orders = cross_orders(rows, columns);
        let flat: Vec<f64> = orders.concat().into_iter().map(f64::from).collect();
        io.compare_absolute("order", &format!("scan_src_{rows}x{columns}"), &flat, 0.0)?;

        let graph = Graph::new();
        let key = format!("merge_in_{rows}x{columns}");
        let sequences = io.input(&graph, &key)?; // [batch, steps, directions, channels]
        let [batch, steps, directions, channels] = sequences.dims();
        let names: Vec<_> = (0..directions).map(|direction| format!("order {direction}")).collect();
        let merged = names.iter().enumerate().map(|(direction, name)| {
            let sequence = sequences.slice(2, direction, direction + 1).reshape([batch, steps, channels]);
            sequence.scatter_add(1, graph.index_input(name, steps), steps)
        });
        graph.output("merged", merged.reduce(|sum, next| sum + next).unwrap_or(sequences));
        let mut program = io.compile(&graph)?;
        program.write(&key, &single(&io.tensor(&key)?.1));
        names.iter().zip(&orders).for_each(|(name, order)| program.write_index(name, order));
        program.run();
        io.compare("output", &format!("merge_out_{rows}x{columns}"), &double(program.read("merged")), OUTPUT)?;
    }
    Ok(())
}
