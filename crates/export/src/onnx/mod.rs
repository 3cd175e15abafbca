//! ONNX: standard operators of opset 17 in one file, for any number of samples, and of points in a cloud.

mod builder;
mod cholesky;
mod evaluate;
mod kernels;
mod maps;
mod scan;
mod schema;
mod translate;
mod value;

use crate::metadata::Metadata;
use crate::plan::{Extent, Plan};
use crate::refusal::require;
use crate::verify::{Arrays, Runs};
use evaluate::{Array, Evaluator};
use lamo::error::{Error, Kind, Refusal};
use prost::Message;
use schema::{ModelProto, OperatorSetIdProto, StringStringEntryProto};

/// LayerNormalization came with 17; the axes of ReduceMax are an attribute until 17.
const OPSET: i64 = 17;
const IR_VERSION: i64 = 8;
/// The largest protobuf message.
const LARGEST: usize = (1 << 31) - 1;

/// A translated model.
pub(crate) struct OnnxModel {
    model: ModelProto,
    /// Their places among all arrays of a sample, names and extents.
    inputs: Vec<(usize, String, Vec<Extent>)>,
}

impl OnnxModel {
    pub(crate) fn of(plan: &Plan) -> Result<OnnxModel, Refusal> {
        let mut graph = translate::translate(plan)?.graph;
        graph.name = Some("lamo".into());
        let model = ModelProto {
            ir_version: Some(IR_VERSION),
            producer_name: Some("lamo".into()),
            producer_version: Some(env!("CARGO_PKG_VERSION").into()),
            doc_string: None,
            graph: Some(graph),
            opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(OPSET) }],
            metadata_props: Vec::new(),
        };
        let all = &plan.physical.inputs;
        let place = |name: &str| all.iter().position(|port| port.name == name);
        let inputs = plan
            .inputs
            .iter()
            .filter_map(|(port, node)| Some((place(&port.name)?, port.name.clone(), plan.nodes[*node].dims.clone())));
        let inputs = inputs.collect();
        Ok(OnnxModel { model, inputs })
    }

    /// Number of operators.
    pub(crate) fn operators(&self) -> usize {
        self.model.graph.as_ref().map_or(0, |graph| graph.node.len())
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self, metadata: &Metadata) -> Result<Vec<u8>, Refusal> {
        let pair = |(key, value): &(String, String)| StringStringEntryProto {
            key: Some(key.clone()),
            value: Some(value.clone()),
        };
        let model = ModelProto { metadata_props: metadata.iter().map(pair).collect(), ..self.model.clone() };
        let size = model.encoded_len();
        require(size <= LARGEST, || {
            Refusal::new("--onnx", "a model of at most 2 GB, which is the limit of the format", format!("{size} bytes"))
                .advise("choose a smaller model or grid")
                .of(Kind::OutOfSpace)
        })?;
        Ok(model.encode_to_vec())
    }

    /// The file, read back.
    pub(crate) fn read_back(&self, bytes: &[u8]) -> Result<ReadBack<'_>, Refusal> {
        Ok(ReadBack { model: self, evaluator: Evaluator::new(bytes)? })
    }
}

/// A file that was read back, to be compared.
pub(crate) struct ReadBack<'a> {
    model: &'a OnnxModel,
    evaluator: Evaluator,
}

impl Runs for ReadBack<'_> {
    fn run(&self, given: &[Arrays]) -> Result<Vec<Arrays>, Error> {
        let free = |(_, _, dims): &&(usize, String, Vec<Extent>)| dims.contains(&Extent::Points(1));
        let points = self.model.inputs.iter().find(free).map_or(1, |(place, _, dims)| {
            given[0][*place].len() / dims.iter().map(|extent| extent.of_one()).product::<usize>()
        });
        let input = |(place, name, dims): &(usize, String, Vec<Extent>)| {
            let own = dims.iter().skip(1).map(|extent| extent.with(points));
            let dims = std::iter::once(given.len()).chain(own).collect();
            let values = given.iter().flat_map(|arrays| arrays[*place].iter().map(|&value| f64::from(value))).collect();
            (name.clone(), Array::new(dims, values))
        };
        let inputs: Vec<(String, Array)> = self.model.inputs.iter().map(input).collect();
        let outputs = self.evaluator.run(&inputs)?;
        let of_sample = |sample: usize| {
            let part = |array: &Array| {
                let length = array.values.len() / given.len();
                array.values[sample * length..(sample + 1) * length].iter().map(|&value| value as f32).collect()
            };
            outputs.iter().map(part).collect()
        };
        Ok((0..given.len()).map(of_sample).collect())
    }
}
