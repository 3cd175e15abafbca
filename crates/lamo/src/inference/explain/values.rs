//! What a probe saw, as arrays: in f64 by the reference evaluator, or from a program that has run.

use super::matrix;
use crate::network::Parameters;
use crate::network::probe::{Layer, Probe};
use lamo_tensor::reference::{self, Array, Bindings};
use lamo_tensor::{DeviceError, Graph, Program, Shape, Tensor};

/// The values of all blocks in f64.
pub fn evaluated(graph: &Graph, bindings: &Bindings<'_>, layers: &[Layer<Tensor<'_>>]) -> Vec<Layer<Array>> {
    let mut tensors = Vec::new();
    layers.iter().for_each(|layer| drop(layer.map(&mut |tensor| tensors.push(*tensor))));
    let mut arrays = reference::evaluate(graph, bindings, &tensors).into_iter();
    let mut next = |tensor: &Tensor<'_>| arrays.next().unwrap_or_else(|| unvalued(tensor));
    layers.iter().map(|layer| layer.map(&mut next)).collect()
}

fn unvalued(tensor: &Tensor<'_>) -> Array {
    unreachable!("every tensor has been evaluated, also that of shape {}", tensor.shape())
}

/// Makes everything that the blocks show an output of the program: the name and the shape of each.
pub(super) fn output(graph: &Graph, layers: &[Layer<Tensor<'_>>]) -> Vec<Layer<(String, Shape)>> {
    let mut number = 0;
    let mut name = |tensor: &Tensor<'_>| {
        let name = format!("shown {number}");
        number += 1;
        graph.output(&name, *tensor);
        (name, tensor.shape())
    };
    layers.iter().map(|layer| layer.map(&mut name)).collect()
}

/// Reads the outputs of a program that has run.
pub(super) fn read(program: &Program, layers: &[Layer<(String, Shape)>]) -> Result<Vec<Layer<Array>>, DeviceError> {
    let mut failed = None;
    let mut array = |(name, shape): &(String, Shape)| {
        let values = program.try_read(name).unwrap_or_else(|error| {
            failed = Some(error);
            &[]
        });
        Array { shape: shape.clone(), values: values.iter().map(|value| f64::from(*value)).collect() }
    };
    let layers = layers.iter().map(|layer| layer.map(&mut array)).collect();
    failed.map_or(Ok(layers), Err)
}

/// The result of a model in f64 with the products of its hidden matrices in place of its mixings; `None` without mixings.
/// `build` builds the model and applies it, twice.
pub fn by_matrices<E>(
    bindings: &Bindings<'_>,
    build: impl for<'g> Fn(&'g Graph, &Parameters<'g>) -> Result<Tensor<'g>, E>,
) -> Result<Option<Vec<f64>>, E> {
    let products = {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let probe = parameters.probe(false);
        build(&graph, &parameters)?;
        let layers = evaluated(&graph, bindings, &probe.layers());
        let mixings = layers.iter().flat_map(|layer| &layer.mixings);
        mixings.map(|mixing| matrix::product(&mixing.kernel)).collect::<Vec<_>>()
    };
    if products.is_empty() {
        return Ok(None);
    }
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    parameters.probe(true);
    let result = build(&graph, &parameters)?;
    let names: Vec<String> = (0..products.len()).map(Probe::replacement).collect();
    let mut bindings: Bindings<'_> = bindings.iter().map(|(name, values)| (*name, values.clone())).collect();
    bindings.extend(names.iter().map(String::as_str).zip(products));
    Ok(reference::evaluate(&graph, &bindings, &[result]).pop().map(|array| array.values))
}
