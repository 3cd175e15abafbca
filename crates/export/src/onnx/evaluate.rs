//! An evaluator of the ONNX files that this crate writes: reads a file back and computes its standard operators in f64.
//!
//! It shares no code with the translation, so that a file is judged by what it says. Numbers of every type are held as f64, which
//! has all the f32, the truth values and the indices of a model.

use super::kernels;
use super::schema::{BOOL, DOUBLE, FLOAT, INT64, ModelProto, NodeProto, TensorProto};
use lamo::error::Refusal;
use lamo::tensor::Map;
use prost::Message;
use std::collections::HashMap;

/// An array in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    pub(crate) dims: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

impl Array {
    pub(crate) fn new(dims: Vec<usize>, values: Vec<f64>) -> Array {
        debug_assert_eq!(dims.iter().product::<usize>(), values.len());
        Array { dims, values }
    }

    /// The numbers of a list.
    pub(crate) fn whole(&self) -> Vec<i64> {
        self.values.iter().map(|&value| value as i64).collect()
    }
}

/// A file that was read back.
pub(crate) struct Evaluator {
    model: ModelProto,
    constants: HashMap<String, Array>,
    /// The last operator that reads each value.
    last: HashMap<String, usize>,
}

impl Evaluator {
    /// Reads the bytes of a file.
    pub(crate) fn new(bytes: &[u8]) -> Result<Evaluator, Refusal> {
        let model = ModelProto::decode(bytes).map_err(|error| broken(&error.to_string()))?;
        let graph = model.graph.as_ref().ok_or_else(|| broken("it has no graph"))?;
        let mut constants = HashMap::new();
        for tensor in &graph.initializer {
            constants.insert(tensor.name.clone().unwrap_or_default(), array(tensor)?);
        }
        let mut last = HashMap::new();
        for (place, node) in graph.node.iter().enumerate() {
            node.input.iter().for_each(|name| {
                last.insert(name.clone(), place);
            });
        }
        Ok(Evaluator { model, constants, last })
    }

    /// Computes the outputs in the order of the file from inputs by name.
    pub(crate) fn run(&self, inputs: &[(String, Array)]) -> Result<Vec<Array>, Refusal> {
        let graph = self.model.graph.as_ref().ok_or_else(|| broken("it has no graph"))?;
        let mut values: HashMap<&str, Array> =
            inputs.iter().map(|(name, array)| (name.as_str(), array.clone())).collect();
        let outputs: Vec<&str> = graph.output.iter().filter_map(|info| info.name.as_deref()).collect();
        for (place, node) in graph.node.iter().enumerate() {
            let operands: Vec<&Array> = node
                .input
                .iter()
                .map(|name| {
                    let found = values.get(name.as_str()).or_else(|| self.constants.get(name));
                    found.ok_or_else(|| broken(&format!("{name} is not defined")))
                })
                .collect::<Result<_, _>>()?;
            let found = compute(node, &operands)?;
            for name in &node.input {
                if self.last.get(name) == Some(&place) && !outputs.contains(&name.as_str()) {
                    values.remove(name.as_str());
                }
            }
            values.insert(&node.output[0], found);
        }
        let output = |name: &str| values.get(name).cloned().ok_or_else(|| broken(&format!("{name} is not defined")));
        outputs.into_iter().map(output).collect()
    }
}

fn broken(reason: &str) -> Refusal {
    Refusal::about("the ONNX file that was written", reason.to_owned())
}

fn array(tensor: &TensorProto) -> Result<Array, Refusal> {
    let bytes = tensor.raw_data.as_deref().unwrap_or_default();
    let values: Vec<f64> = match tensor.data_type {
        Some(FLOAT) => bytes.as_chunks::<4>().0.iter().map(|&bytes| f64::from(f32::from_le_bytes(bytes))).collect(),
        Some(DOUBLE) => bytes.as_chunks::<8>().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect(),
        Some(INT64) => bytes.as_chunks::<8>().0.iter().map(|&bytes| i64::from_le_bytes(bytes) as f64).collect(),
        kind => return Err(broken(&format!("a tensor has the type {kind:?}"))),
    };
    let dims: Vec<usize> = tensor.dims.iter().map(|&extent| extent as usize).collect();
    if dims.iter().product::<usize>() != values.len() {
        return Err(broken(&format!("a tensor of shape {dims:?} has {} values", values.len())));
    }
    Ok(Array::new(dims, values))
}

fn compute(node: &NodeProto, operands: &[&Array]) -> Result<Array, Refusal> {
    let kind = node.op_type.as_deref().unwrap_or_default();
    let one = |function: fn(f64) -> f64| Ok(kernels::each(operands[0], function));
    let two = |function: fn(f64, f64) -> f64| Ok(kernels::both(operands[0], operands[1], function));
    match kind {
        "Identity" | "Cast" if node.int("to", 1) != i64::from(BOOL) => Ok(operands[0].clone()),
        "Cast" => one(|x| f64::from(u8::from(x != 0.0))),
        "Neg" => one(|x| -x),
        "Abs" => one(f64::abs),
        "Sign" => one(|x| {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                0.0
            }
        }),
        "Exp" => one(f64::exp),
        "Log" => one(f64::ln),
        "Sqrt" => one(f64::sqrt),
        "Reciprocal" => one(f64::recip),
        "Tanh" => one(f64::tanh),
        "Erf" => one(|x| Map::Erf.evaluate(x, 0.0, 0.0)),
        "Sin" => one(f64::sin),
        "Cos" => one(f64::cos),
        "Atan" => one(f64::atan),
        "Sigmoid" => one(|x| 1.0 / (1.0 + (-x).exp())),
        "Softplus" => one(|x| if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }),
        "Add" => two(|x, y| x + y),
        "Sub" => two(|x, y| x - y),
        "Mul" => two(|x, y| x * y),
        "Div" => two(|x, y| x / y),
        "Max" => two(f64::max),
        "Min" => two(f64::min),
        "Less" => two(|x, y| f64::from(u8::from(x < y))),
        "Greater" => two(|x, y| f64::from(u8::from(x > y))),
        "Equal" => two(|x, y| f64::from(u8::from(x == y))),
        "And" => two(|x, y| f64::from(u8::from(x != 0.0 && y != 0.0))),
        "Where" => {
            let claim = kernels::both(operands[0], &kernels::both(operands[1], operands[2], |_, _| 1.0), |x, _| x);
            let [yes, no] = [1, 2].map(|operand| kernels::both(&claim, operands[operand], |_, y| y));
            let values = claim.values.iter().zip(yes.values.iter().zip(&no.values));
            let values = values.map(|(claim, (yes, no))| if *claim != 0.0 { *yes } else { *no }).collect();
            Ok(Array::new(claim.dims, values))
        }
        "Shape" => {
            let dims = &operands[0].dims;
            Ok(Array::new(vec![dims.len()], dims.iter().map(|&extent| extent as f64).collect()))
        }
        "Reshape" => kernels::reshape(operands[0], &operands[1].whole()).ok_or_else(|| broken("a shape does not fit")),
        "Transpose" => Ok(kernels::transpose(operands[0], &node.ints("perm"))),
        "Expand" => {
            let dims: Vec<usize> = operands[1].values.iter().map(|&extent| extent as usize).collect();
            let ones = Array::new(dims.clone(), vec![0.0; dims.iter().product()]);
            Ok(kernels::both(operands[0], &ones, |x, _| x))
        }
        "Slice" => {
            let [start, end, axis, step] = [1, 2, 3, 4].map(|operand| operands[operand].whole()[0]);
            Ok(kernels::slice(operands[0], axis as usize, [start, end, step]))
        }
        "Pad" => Ok(kernels::pad(operands[0], &operands[1].whole())),
        "Concat" => Ok(kernels::concatenate(operands, node.int("axis", 0) as usize)),
        "Gather" => Ok(kernels::gather(operands[0], operands[1], node.int("axis", 0) as usize)),
        "ReduceSum" => {
            let sum = kernels::reduce(operands[0], &operands[1].whole(), 0.0, |x, y| x + y);
            Ok(if node.int("keepdims", 1) == 1 { sum } else { kernels::without(sum, &operands[1].whole()) })
        }
        "ReduceMax" => Ok(kernels::reduce(operands[0], &node.ints("axes"), f64::NEG_INFINITY, f64::max)),
        "ArgMax" => Ok(kernels::first_largest(operands[0], node.int("axis", 0) as usize)),
        "MatMul" => Ok(kernels::product(operands[0], operands[1])),
        "Conv" => Ok(kernels::convolution(
            operands[0],
            operands[1],
            &node.ints("strides"),
            &node.ints("pads"),
            node.int("group", 1),
        )),
        "Softmax" => Ok(kernels::softmax(operands[0])),
        "LayerNormalization" => {
            let epsilon = node.attribute("epsilon").and_then(|attribute| attribute.f).unwrap_or(1e-5);
            Ok(kernels::layer_norm(operands[0], &operands[1].values, &operands[2].values, f64::from(epsilon)))
        }
        other => Err(broken(&format!("the operator {other} is unknown to the evaluator"))),
    }
}
