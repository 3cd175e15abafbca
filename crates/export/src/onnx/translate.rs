//! From the operators of a plan to those of ONNX (opset 17).

use super::builder::Builder;
use super::cholesky::inverse_cholesky;
use super::maps;
use super::scan::{Operands, Scan};
use super::schema::{
    AttributeProto, DimensionProto, FLOAT, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use super::value::{Counts, Value, repeated, shape};
use crate::patterns::{Pattern, patterns};
use crate::plan::{Cut, Extent, Node, Plan};
use crate::refusal::cannot;
use lamo::error::Refusal;
use lamo::inference::Port;
use lamo::tensor::{ConvolutionOptions, Operation};

/// Names of the extents that count samples and points.
const BATCH: &str = "batch";
const POINTS: &str = "points";

/// Translates a plan.
pub(crate) fn translate(plan: &Plan) -> Result<Builder, Refusal> {
    let mut translator = Translator {
        plan,
        builder: Builder::default(),
        values: vec![None; plan.nodes.len()],
        counts: Counts::default(),
    };
    translator.declare();
    let patterns = patterns(plan);
    for (place, node) in plan.nodes.iter().enumerate().filter(|(place, _)| patterns.needed[*place]) {
        let value = match patterns.found.get(&place) {
            Some(pattern) => translator.pattern(pattern, node),
            None => translator.node(place, node)?,
        };
        translator.values[place] = value;
    }
    for (port, place) in &plan.outputs {
        let value = translator.value(*place);
        let whole = translator.all(&value);
        translator.builder.rename(&whole, &port.name);
        let info = described(port, &plan.nodes[*place].dims);
        translator.builder.graph.output.push(info);
    }
    Ok(translator.builder)
}

struct Translator<'a> {
    plan: &'a Plan,
    builder: Builder,
    values: Vec<Option<Value>>,
    counts: Counts,
}

/// Name, type and shape of an array.
fn described(port: &Port, dims: &[Extent]) -> ValueInfoProto {
    let named = |name: &str| DimensionProto { dim_param: Some(name.into()), dim_value: None };
    let extent = |extent: &Extent| match *extent {
        Extent::Fixed(extent) => DimensionProto { dim_value: Some(extent as i64), dim_param: None },
        Extent::Samples(_) | Extent::Both(_) => named(BATCH), // arrays of all samples have an axis of samples alone
        Extent::Points(_) => named(POINTS),
    };
    let dim = dims.iter().map(extent).collect();
    let tensor = TensorTypeProto { elem_type: Some(FLOAT), shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto {
        name: Some(port.name.clone()),
        r#type: Some(TypeProto { tensor_type: Some(tensor) }),
        doc_string: Some(format!("unit: {}", port.unit)),
    }
}

impl Translator<'_> {
    fn declare(&mut self) {
        for (port, place) in &self.plan.inputs {
            let dims = &self.plan.nodes[*place].dims;
            self.builder.graph.input.push(described(port, dims));
            self.values[*place] = Some(Value::whole(port.name.clone(), dims));
            let counts = [(&mut self.counts.batch, Extent::Samples(1)), (&mut self.counts.points, Extent::Points(1))];
            for (name, extent) in counts {
                if let (true, Some(axis)) = (name.is_empty(), dims.iter().position(|found| *found == extent)) {
                    let shape = self.builder.op("Shape", &[&port.name], &[]);
                    *name = self.builder.slice(&shape, 0, [axis as i64, axis as i64 + 1, 1]);
                }
            }
        }
    }

    fn value(&self, place: usize) -> Value {
        self.values[place].clone().expect("operands come before their users")
    }

    /// The name of a value with all its elements.
    fn all(&mut self, value: &Value) -> String {
        repeated(&mut self.builder, value, &self.counts, |_| true).name
    }

    /// The value of a node; `None` for one that has several results or is no tensor.
    fn node(&mut self, place: usize, node: &Node) -> Result<Option<Value>, Refusal> {
        if let Some(constant) = &node.constant {
            if matches!(node.operation, Operation::IndexTable(_)) {
                return Ok(None);
            }
            let dims: Vec<usize> = node.dims.iter().map(|extent| extent.of_one()).collect();
            let name = self.builder.floats(&constant.values, &dims, constant.name.as_deref());
            return Ok(Some(Value::whole(name, &node.dims)));
        }
        let operands: Vec<Option<Value>> = node.operands.iter().map(|&operand| self.values[operand].clone()).collect();
        let first = || operands[0].clone().expect("it has an operand");
        let whole = |name: String| Value::whole(name, &node.dims);
        let value = match &node.operation {
            Operation::Input(_) => self.value(place),
            Operation::Map(map) => {
                let values: Vec<Value> = operands.iter().flatten().cloned().collect();
                let names: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
                let name = maps::map(&mut self.builder, *map, &names).ok_or_else(|| cannot(&node.operation, "ONNX"))?;
                Value::broadcast(name, &values.iter().collect::<Vec<_>>(), &node.dims)
            }
            Operation::Same => first(),
            Operation::Expand => Value { dims: node.dims.clone(), ..first() },
            Operation::Reshape => {
                let name = self.all(&first());
                whole(self.counts.reshape(&mut self.builder, &name, &node.dims))
            }
            Operation::Permute(order) => {
                let value = first();
                let name = self.builder.transpose(&value.name, order);
                let stored = order.iter().map(|&axis| value.stored[axis]).collect();
                Value { name, stored, dims: node.dims.clone() }
            }
            Operation::Slice(_) => self.slice(&first(), node),
            Operation::Embed(_) => {
                let name = self.all(&first());
                whole(self.embed(name, node)?)
            }
            Operation::Concatenate(axis) => {
                let values: Vec<Value> = operands.iter().flatten().cloned().collect();
                let names: Vec<String> = values.iter().map(|value| self.all(value)).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                whole(self.builder.op("Concat", &names, &[AttributeProto::int("axis", *axis as i64)]))
            }
            Operation::Gather(axis) => {
                let Operation::IndexTable(rows) = &self.plan.nodes[node.operands[1]].operation else {
                    return Err(cannot(&node.operation, "ONNX"));
                };
                let name = self.all(&first());
                let rows: Vec<i64> = rows.iter().map(|&row| row.into()).collect();
                whole(self.builder.gather(&name, *axis, &rows))
            }
            Operation::Sum { first: from, end } | Operation::Max { first: from, end } => {
                let axes: Vec<usize> = (*from..*end).collect();
                let value = repeated(&mut self.builder, &first(), &self.counts, |axis| axes.contains(&axis));
                let name = match node.operation {
                    Operation::Sum { .. } => self.builder.sum(&value.name, &axes, true),
                    _ => self.builder.op("ReduceMax", &[&value.name], &[AttributeProto::ints("axes", &axes)]),
                };
                let stored = (0..node.dims.len())
                    .map(|axis| if axes.contains(&axis) { Extent::ONE } else { value.stored[axis] });
                Value { name, stored: stored.collect(), dims: node.dims.clone() }
            }
            Operation::MatMul => self.product(&operands, node),
            Operation::InverseCholesky(jitter) => {
                let name = self.all(&first());
                whole(inverse_cholesky(&mut self.builder, &name, node.dims[1].of_one(), *jitter))
            }
            Operation::Convolution(options) => whole(self.convolution(&operands, options)),
            Operation::Collect | Operation::Spread => whole(self.membership(&operands, node)),
            Operation::Scan { .. } => return Ok(None),
            Operation::Part(index) => whole(self.scan(node.operands[0], *index)?),
            Operation::State(_)
            | Operation::Constant
            | Operation::Fill(_)
            | Operation::IndexInput(_)
            | Operation::IndexTable(_)
            | Operation::ScatterAdd(_)
            | Operation::Gradient(_) => return Err(cannot(&node.operation, "ONNX")),
        };
        Ok(Some(value))
    }

    fn slice(&mut self, value: &Value, node: &Node) -> Value {
        let (mut name, mut stored) = (value.name.clone(), value.stored.clone());
        for (axis, cut) in node.cuts.iter().enumerate().filter(|(axis, _)| !value.is_short(*axis)) {
            name = match *cut {
                Cut::Whole => continue,
                Cut::Fixed(span) => {
                    let (start, step) = (span.start as i64, span.step as i64);
                    let end = start + step * span.length as i64;
                    let end = if end < 0 { i64::MIN + 1 } else { end }; // a negative end would count from the back
                    self.builder.slice(&name, axis, [start, end, step])
                }
                Cut::Counted { start, length } => {
                    let [start, length] = [start, length].map(|extent| self.counts.of(&mut self.builder, extent));
                    let end = self.builder.op("Add", &[&start, &length], &[]);
                    let [axis, step] = [axis as i64, 1].map(|number| self.builder.ints(&[number]));
                    self.builder.op("Slice", &[&name, &start, &end, &axis, &step], &[])
                }
            };
            stored[axis] = node.dims[axis];
        }
        Value { name, stored, dims: node.dims.clone() }
    }

    /// Zeros with the value at the cuts: steps are zeros between the elements.
    fn embed(&mut self, mut name: String, node: &Node) -> Result<String, Refusal> {
        let rank = node.cuts.len();
        for (axis, cut) in node.cuts.iter().enumerate() {
            let span = match *cut {
                Cut::Whole => continue,
                Cut::Fixed(span) if self.can_embed(node, axis, span.step) => span,
                _ => return Err(cannot(&node.operation, "ONNX")),
            };
            let (length, step) = (span.length, span.step.unsigned_abs());
            if span.step < 0 {
                name = self.builder.slice(&name, axis, [-1, i64::MIN + 1, -1]);
            }
            let covered = (length - 1) * step + 1;
            if step > 1 {
                // [.., length, ..] → [.., length, step, ..] → [.., length · step, ..]; later axes are not embedded yet.
                let mut dims: Vec<i64> = shape(&node.dims);
                for (place, cut) in dims.iter_mut().zip(&node.cuts).skip(axis) {
                    if let Cut::Fixed(span) = cut {
                        *place = span.length as i64;
                    }
                }
                let mut apart = dims.clone();
                apart.insert(axis + 1, 1);
                name = self.builder.reshape(&name, &apart);
                name = self.builder.pad(&name, rank + 1, axis + 1, [0, step - 1]);
                dims[axis] = (length * step) as i64;
                name = self.builder.reshape(&name, &dims);
                name = self.builder.slice(&name, axis, [0, covered as i64, 1]);
            }
            let before = if span.step < 0 { span.start + 1 - covered } else { span.start };
            name = self.builder.pad(&name, rank, axis, [before, node.dims[axis].of_one() - before - covered]);
        }
        Ok(name)
    }

    /// The axis has a fixed extent. Zeros between elements need a reshape, in which one axis may be free.
    fn can_embed(&self, node: &Node, axis: usize, step: isize) -> bool {
        let is_fixed = |extent: &Extent| matches!(extent, Extent::Fixed(_));
        let free = node.dims.iter().filter(|extent| !is_fixed(extent)).count();
        is_fixed(&node.dims[axis]) && (step.unsigned_abs() == 1 || free <= 1)
    }

    fn product(&mut self, operands: &[Option<Value>], node: &Node) -> Value {
        let rank = node.dims.len();
        let values: Vec<Value> = operands
            .iter()
            .flatten()
            .map(|value| repeated(&mut self.builder, value, &self.counts, |axis| axis + 2 >= rank))
            .collect();
        let name = self.builder.op("MatMul", &[&values[0].name, &values[1].name], &[]);
        let stored = (0..rank).map(|axis| {
            let longest = values.iter().map(|value| value.stored[axis]).find(|&extent| extent != Extent::ONE);
            if axis + 2 < rank { longest.unwrap_or(Extent::ONE) } else { node.dims[axis] }
        });
        Value { name, stored: stored.collect(), dims: node.dims.clone() }
    }

    /// `[batch, rows, columns, channels]`, which ONNX has with the channels in front.
    fn convolution(&mut self, operands: &[Option<Value>], options: &ConvolutionOptions) -> String {
        let names: Vec<String> = operands.iter().flatten().map(|value| self.all(value)).collect();
        let input = self.builder.transpose(&names[0], &[0, 3, 1, 2]);
        let [rows, columns] = options.padding;
        let attributes = [
            AttributeProto::int("group", options.groups as i64),
            AttributeProto::ints("strides", &options.stride),
            AttributeProto::ints("pads", &[rows[0], columns[0], rows[1], columns[1]]),
        ];
        let output = self.builder.op("Conv", &[&input, &names[1]], &attributes);
        self.builder.transpose(&output, &[0, 2, 3, 1])
    }

    /// Softmax of queries · keys + offsets, then its product with the values or the tokens.
    fn membership(&mut self, operands: &[Option<Value>], node: &Node) -> String {
        let names: Vec<String> = operands.iter().flatten().map(|value| self.all(value)).collect();
        let builder = &mut self.builder;
        let queries = builder.transpose(&names[0], &[0, 2, 1, 3]); // [batch, heads, points, channels]
        let keys = builder.transpose(&names[1], &[0, 2, 1]); // [heads, channels, slices]
        let (heads, slices) = match &operands[2] {
            Some(offsets) => (offsets.dims[0].of_one() as i64, offsets.dims[1].of_one() as i64),
            None => (1, 1),
        };
        let offsets = builder.reshape(&names[2], &[heads, 1, slices]);
        let logits = builder.op("MatMul", &[&queries, &keys], &[]);
        let logits = builder.op("Add", &[&logits, &offsets], &[]);
        let weights = builder.op("Softmax", &[&logits], &[AttributeProto::int("axis", -1)]); // [batch, heads, points, slices]
        if node.operation == Operation::Spread {
            let points = builder.op("MatMul", &[&weights, &names[3]], &[]);
            return builder.transpose(&points, &[0, 2, 1, 3]);
        }
        let values = builder.transpose(&names[3], &[0, 2, 1, 3]);
        let turned = builder.transpose(&weights, &[0, 1, 3, 2]);
        let sums = builder.op("MatMul", &[&turned, &values], &[]);
        let mass = builder.sum(&turned, &[3], true);
        builder.op("Concat", &[&sums, &mass], &[AttributeProto::int("axis", 3)])
    }

    /// A part of a scan.
    fn scan(&mut self, place: usize, part: usize) -> Result<String, Refusal> {
        let plan = self.plan;
        let node = &plan.nodes[place];
        let Operation::Scan { order, directions } = &node.operation else {
            return Err(cannot(&node.operation, "ONNX"));
        };
        let dims =
            |operand: usize| plan.nodes[node.operands[operand]].dims.iter().map(|extent| extent.of_one()).collect();
        let (signal, write): (Vec<usize>, Vec<usize>) = (dims(0), dims(3));
        let names: Vec<String> = node
            .operands
            .iter()
            .map(|&operand| {
                let value = self.value(operand);
                self.all(&value)
            })
            .collect();
        let scan = Scan {
            tokens: signal[1],
            heads: signal[2],
            channels: signal[3],
            groups: write[2],
            states: write[3],
            directions: *directions,
            order,
        };
        let operands = Operands {
            signal: &names[0],
            log_decay: &names[1],
            gain: &names[2],
            write: &names[3],
            read: &names[4],
            initial: names.get(5).map(String::as_str),
        };
        let (output, last) = scan.write(&mut self.builder, &operands, part == 1);
        last.map_or_else(|| if part == 0 { Ok(output) } else { Err(cannot(&node.operation, "ONNX")) }, Ok)
    }

    /// A group of operators that ONNX has as one.
    fn pattern(&mut self, pattern: &Pattern, node: &Node) -> Option<Value> {
        let name = match pattern {
            Pattern::Softmax { value } => {
                let value = self.value(*value);
                let name = self.all(&value);
                self.builder.op("Softmax", &[&name], &[AttributeProto::int("axis", -1)])
            }
            Pattern::LayerNorm { value, weight, bias, epsilon } => {
                let value = self.value(*value);
                let name = self.all(&value);
                let width = node.dims.last().map_or(1, |extent| extent.of_one());
                let [weight, bias] = [weight, bias].map(|place| {
                    let value = self.value(*place);
                    self.builder.reshape(&value.name, &[width as i64])
                });
                let attributes = [AttributeProto::int("axis", -1), AttributeProto::float("epsilon", *epsilon as f32)];
                self.builder.op("LayerNormalization", &[&name, &weight, &bias], &attributes)
            }
        };
        Some(Value::whole(name, &node.dims))
    }
}
