//! Writes the operators of an ONNX graph. Equal operators on equal inputs are written once.

use super::schema::{AttributeProto, DOUBLE, FLOAT, GraphProto, INT64, NodeProto, TensorProto};
use std::collections::HashMap;

/// A graph under construction; values are referred to by name.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) graph: GraphProto,
    known: HashMap<(String, Vec<String>, String), String>,
    tensors: HashMap<(i32, Vec<i64>, Vec<u8>), String>,
}

impl Builder {
    /// Adds an operator with one result.
    pub(crate) fn op(&mut self, kind: &str, inputs: &[&str], attributes: &[AttributeProto]) -> String {
        let inputs: Vec<String> = inputs.iter().map(|&name| name.to_owned()).collect();
        let key = (kind.to_owned(), inputs.clone(), format!("{attributes:?}"));
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let name = format!("{}_{}", kind.to_lowercase(), self.graph.node.len());
        self.graph.node.push(NodeProto {
            input: inputs,
            output: vec![name.clone()],
            name: Some(name.clone()),
            op_type: Some(kind.to_owned()),
            attribute: attributes.to_vec(),
        });
        self.known.insert(key, name.clone());
        name
    }

    /// Gives a value the name of an output of the graph.
    pub(crate) fn rename(&mut self, value: &str, output: &str) {
        let node = NodeProto {
            input: vec![value.to_owned()],
            output: vec![output.to_owned()],
            name: Some(format!("output_{}", self.graph.node.len())),
            op_type: Some("Identity".to_owned()),
            attribute: Vec::new(),
        };
        self.graph.node.push(node);
    }

    /// Fixed numbers in f32, under a name of their own if it is given and free.
    pub(crate) fn floats(&mut self, values: &[f32], dims: &[usize], name: Option<&str>) -> String {
        self.tensor(FLOAT, dims, values.iter().flat_map(|value| value.to_le_bytes()).collect(), name)
    }

    /// Fixed numbers in f64.
    pub(crate) fn doubles(&mut self, values: &[f64], dims: &[usize]) -> String {
        self.tensor(DOUBLE, dims, values.iter().flat_map(|value| value.to_le_bytes()).collect(), None)
    }

    /// A fixed list of whole numbers.
    pub(crate) fn ints(&mut self, values: &[i64]) -> String {
        self.tensor(INT64, &[values.len()], values.iter().flat_map(|value| value.to_le_bytes()).collect(), None)
    }

    /// One number in f32, shape `[]`.
    pub(crate) fn number(&mut self, value: f64) -> String {
        self.floats(&[value as f32], &[], None)
    }

    fn tensor(&mut self, kind: i32, dims: &[usize], bytes: Vec<u8>, name: Option<&str>) -> String {
        let dims: Vec<i64> = dims.iter().map(|&extent| extent as i64).collect();
        let key = (kind, dims, bytes);
        if let Some(known) = self.tensors.get(&key) {
            return known.clone();
        }
        let taken = |name: &str| self.tensors.values().any(|known| known == name);
        let given = name.filter(|name| !taken(name)).map(ToOwned::to_owned);
        let name = given.unwrap_or_else(|| format!("constant_{}", self.graph.initializer.len()));
        self.graph.initializer.push(TensorProto {
            dims: key.1.clone(),
            data_type: Some(kind),
            name: Some(name.clone()),
            raw_data: Some(key.2.clone()),
        });
        self.tensors.insert(key, name.clone());
        name
    }

    /// The same elements under another shape; -1 stands for what is left.
    pub(crate) fn reshape(&mut self, value: &str, dims: &[i64]) -> String {
        let shape = self.ints(dims);
        self.op("Reshape", &[value, &shape], &[])
    }

    pub(crate) fn transpose(&mut self, value: &str, order: &[usize]) -> String {
        if order.iter().enumerate().all(|(place, &axis)| place == axis) {
            return value.to_owned();
        }
        self.op("Transpose", &[value], &[AttributeProto::ints("perm", order)])
    }

    /// Elements `start..end` of an axis in steps.
    pub(crate) fn slice(&mut self, value: &str, axis: usize, [start, end, step]: [i64; 3]) -> String {
        let [start, end, axis, step] = [start, end, axis as i64, step].map(|number| self.ints(&[number]));
        self.op("Slice", &[value, &start, &end, &axis, &step], &[])
    }

    /// Zeros before and after the elements of one of `rank` axes.
    pub(crate) fn pad(&mut self, value: &str, rank: usize, axis: usize, [before, after]: [usize; 2]) -> String {
        if before == 0 && after == 0 {
            return value.to_owned();
        }
        let mut pads = vec![0; 2 * rank];
        (pads[axis], pads[rank + axis]) = (before as i64, after as i64);
        let pads = self.ints(&pads);
        self.op("Pad", &[value, &pads], &[])
    }

    pub(crate) fn gather(&mut self, value: &str, axis: usize, rows: &[i64]) -> String {
        let rows = self.ints(rows);
        self.op("Gather", &[value, &rows], &[AttributeProto::int("axis", axis as i64)])
    }

    /// Sum over an axis, which remains with extent 1 if it is kept.
    pub(crate) fn sum(&mut self, value: &str, axes: &[usize], keep: bool) -> String {
        let axes = self.ints(&axes.iter().map(|&axis| axis as i64).collect::<Vec<_>>());
        self.op("ReduceSum", &[value, &axes], &[AttributeProto::int("keepdims", keep.into())])
    }

    pub(crate) fn cast(&mut self, value: &str, kind: i32) -> String {
        self.op("Cast", &[value], &[AttributeProto::int("to", kind.into())])
    }
}
