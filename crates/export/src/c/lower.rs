//! From the operators of a plan for one sample to loops.
//!
//! Reordered, repeated and cut tensors are strides, not copies. An elementwise function that one other function or reduction
//! reads is computed there, so that it needs no memory.

use super::kernel::{Expression, Kernel, Recurrence, Slices, Window};
use super::memory::{Buffer, Place};
use super::view::View;
use crate::plan::{Cut, Node, Plan};
use crate::refusal::cannot;
use lamo::error::Refusal;
use lamo::tensor::{ConvolutionOptions, Operation, for_each_index};
use std::collections::HashMap;

/// Functions of an expression, at most.
const LARGEST: usize = 24;

/// The loops of a plan.
#[derive(Default)]
pub(crate) struct Lowered {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) weights: Vec<f32>,
}

/// What is known of a value.
#[derive(Clone)]
enum Held {
    Stored(View),
    /// Not computed yet: an expression of operands that have the shape of the value.
    Pending(Expression, Vec<View>),
}

struct Lowering<'a> {
    plan: &'a Plan,
    lowered: Lowered,
    values: Vec<Option<Held>>,
    /// The nodes that read each node.
    users: Vec<Vec<usize>>,
    /// Constants of one element, by buffer.
    numbers: HashMap<usize, f32>,
    /// Constants that were brought in another order.
    ordered: HashMap<String, View>,
}

/// Lowers a plan for one sample.
pub(crate) fn lower(plan: &Plan) -> Result<Lowered, Refusal> {
    let mut users = vec![Vec::new(); plan.nodes.len()];
    for (place, node) in plan.nodes.iter().enumerate().filter(|(_, node)| node.needed && node.constant.is_none()) {
        node.operands.iter().for_each(|&operand| users[operand].push(place));
    }
    let mut lowering = Lowering {
        plan,
        lowered: Lowered::default(),
        values: vec![None; plan.nodes.len()],
        users,
        numbers: HashMap::new(),
        ordered: HashMap::new(),
    };
    for (number, (_, place)) in plan.inputs.iter().enumerate() {
        let dims = dims(&plan.nodes[*place]);
        let view = lowering.buffer(&dims, Place::Input(number));
        lowering.values[*place] = Some(Held::Stored(view));
    }
    for (place, node) in plan.nodes.iter().enumerate().filter(|(_, node)| node.needed) {
        if lowering.values[place].is_none() {
            lowering.values[place] = lowering.node(place, node)?;
        }
    }
    for (number, (_, place)) in plan.outputs.iter().enumerate() {
        let out = lowering.buffer(&dims(&plan.nodes[*place]), Place::Output(number));
        let (expression, operands) = lowering.expression(*place);
        lowering.lowered.kernels.push(Kernel::Loop { out, expression, operands });
    }
    Ok(lowering.lowered)
}

fn dims(node: &Node) -> Vec<usize> {
    node.dims.iter().map(|extent| extent.of_one()).collect()
}

impl Lowering<'_> {
    fn buffer(&mut self, dims: &[usize], place: Place) -> View {
        self.lowered.buffers.push(Buffer { length: dims.iter().product(), place });
        View::whole(self.lowered.buffers.len() - 1, dims)
    }

    fn temporary(&mut self, dims: &[usize]) -> View {
        self.buffer(dims, Place::Work(0))
    }

    fn constant(&mut self, values: &[f32], dims: &[usize]) -> View {
        let start = self.lowered.weights.len();
        self.lowered.weights.extend_from_slice(values);
        let view = self.buffer(dims, Place::Weights(start));
        if let [number] = values {
            self.numbers.insert(view.buffer, *number);
        }
        view
    }

    /// The view of a value, computed if it was not yet.
    fn stored(&mut self, place: usize) -> View {
        match self.values[place].clone() {
            Some(Held::Stored(view)) => view,
            Some(Held::Pending(expression, operands)) => {
                let out = self.temporary(&dims(&self.plan.nodes[place]));
                self.lowered.kernels.push(Kernel::Loop { out: out.clone(), expression, operands });
                self.values[place] = Some(Held::Stored(out.clone()));
                out
            }
            None => unreachable!("operands come before their users"),
        }
    }

    /// A value as an expression.
    fn expression(&mut self, place: usize) -> (Expression, Vec<View>) {
        match self.values[place].clone() {
            Some(Held::Pending(expression, operands)) => (expression, operands),
            _ => {
                let view = self.stored(place);
                match self.numbers.get(&view.buffer) {
                    Some(&number) => (Expression::Number(number), vec![view]),
                    None => (Expression::Load(0), vec![view]),
                }
            }
        }
    }

    /// The elements of a view one after the other.
    fn contiguous(&mut self, view: &View) -> View {
        if view.is_contiguous() {
            return view.clone();
        }
        if let Place::Weights(start) = self.lowered.buffers[view.buffer].place {
            let key = format!("{view:?}");
            if let Some(known) = self.ordered.get(&key) {
                return known.clone();
            }
            let mut values = Vec::with_capacity(view.count());
            for_each_index(&view.dims, |index| values.push(self.lowered.weights[start + view.at(index)]));
            let ordered = self.constant(&values, &view.dims);
            self.ordered.insert(key, ordered.clone());
            return ordered;
        }
        let out = self.temporary(&view.dims);
        let (expression, operands) = (Expression::Load(0), vec![view.clone()]);
        self.lowered.kernels.push(Kernel::Loop { out: out.clone(), expression, operands });
        out
    }

    fn node(&mut self, place: usize, node: &Node) -> Result<Option<Held>, Refusal> {
        let shape = dims(node);
        if matches!(node.operation, Operation::IndexTable(_)) {
            return Ok(None); // its gather writes it down
        }
        if let Some(constant) = &node.constant {
            return Ok(Some(Held::Stored(self.constant(&constant.values, &shape))));
        }
        let first = node.operands.first().copied().unwrap_or_default();
        let view = match &node.operation {
            Operation::Map(map) => return self.map(place, *map, node).map(Some),
            Operation::Same => self.stored(first),
            Operation::Expand => self.stored(first).expanded(&shape),
            Operation::Permute(order) => self.stored(first).permuted(order),
            Operation::Slice(_) => cut(&self.stored(first), &node.cuts),
            Operation::Reshape => {
                let view = self.stored(first);
                match view.reshaped(&shape) {
                    Some(view) => view,
                    None => {
                        let strides = View::whole(0, &shape).layout.strides;
                        self.contiguous(&view).axes(shape, strides)
                    }
                }
            }
            Operation::Embed(_) => {
                let out = self.temporary(&shape);
                self.lowered.kernels.push(Kernel::Zero { out: out.clone() });
                let (expression, operands) = self.expression(first);
                self.lowered.kernels.push(Kernel::Loop { out: cut(&out, &node.cuts), expression, operands });
                out
            }
            Operation::Concatenate(axis) => {
                let out = self.temporary(&shape);
                let mut start = 0;
                for &operand in &node.operands {
                    let length = self.plan.nodes[operand].dims[*axis].of_one();
                    let (expression, operands) = self.expression(operand);
                    let out = out.cut(*axis, start, 1, length);
                    self.lowered.kernels.push(Kernel::Loop { out, expression, operands });
                    start += length;
                }
                out
            }
            Operation::Sum { first: from, end } | Operation::Max { first: from, end } => {
                let sum = matches!(node.operation, Operation::Sum { .. });
                let (expression, operands) = self.expression(first);
                let out = self.temporary(&shape);
                let reduced = Kernel::Reduce { out: out.clone(), expression, operands, first: *from, end: *end, sum };
                self.lowered.kernels.push(reduced);
                out
            }
            Operation::MatMul => {
                let (left, mut right) = (self.stored(first), self.stored(node.operands[1]));
                if right.strides.last() != Some(&1) && right.dims.last() != Some(&1) {
                    right = self.contiguous(&right);
                }
                let out = self.temporary(&shape);
                self.lowered.kernels.push(Kernel::Product { out: out.clone(), left, right });
                out
            }
            Operation::InverseCholesky(jitter) => {
                let matrix = self.stored(first);
                let matrix = self.contiguous(&matrix);
                let out = self.temporary(&shape);
                self.lowered.kernels.push(Kernel::InverseCholesky { out: out.clone(), matrix, jitter: *jitter });
                out
            }
            Operation::Gather(axis) => {
                let Operation::IndexTable(rows) = &self.plan.nodes[node.operands[1]].operation else {
                    return Err(cannot(&node.operation, "C"));
                };
                let (axis, rows, input) = (*axis, rows.clone(), self.stored(first));
                let input = self.contiguous(&input);
                let out = self.temporary(&shape);
                self.lowered.kernels.push(Kernel::Gather { out: out.clone(), input, axis, rows });
                out
            }
            Operation::Convolution(options) => self.convolution(node, options),
            Operation::Collect | Operation::Spread => self.membership(node),
            Operation::Scan { .. } => return Ok(Some(Held::Stored(self.scan(node)?))),
            Operation::Part(index) => {
                let out = self.stored(first);
                match index {
                    0 => out,
                    _ => {
                        // The state of the scan is the buffer behind its output: [scan heads, states, channels].
                        let [batch, heads, channels, states] = [0, 1, 2, 3].map(|axis| shape[axis]);
                        View::whole(out.buffer + 1, &[batch, heads, states, channels]).permuted(&[0, 1, 3, 2])
                    }
                }
            }
            other => return Err(cannot(other, "C")),
        };
        Ok(Some(Held::Stored(view)))
    }

    /// A function of expressions; it is stored unless one other function or reduction reads it.
    fn map(&mut self, place: usize, map: lamo::tensor::Map, node: &Node) -> Result<Held, Refusal> {
        if super::emit::function(map).is_none() {
            return Err(cannot(&node.operation, "C"));
        }
        let (mut views, mut parts): (Vec<View>, Vec<Expression>) = (Vec::new(), Vec::new());
        for &operand in &node.operands {
            let (mut expression, mut operands) = self.expression(operand);
            if expression.size() > LARGEST {
                let view = self.stored(operand);
                (expression, operands) = (Expression::Load(0), vec![view]);
            }
            let mut number = |view: &View| {
                views.iter().position(|known| known == view).unwrap_or_else(|| {
                    views.push(view.clone());
                    views.len() - 1
                })
            };
            let numbers: Vec<usize> = operands.iter().map(&mut number).collect();
            parts.push(expression.renumbered(&numbers));
        }
        let expression = Expression::Map(map, parts);
        let shape = dims(node);
        let one_reader = match &self.users[place][..] {
            [user] => matches!(
                self.plan.nodes[*user].operation,
                Operation::Map(_) | Operation::Sum { .. } | Operation::Max { .. } | Operation::Concatenate(_)
            ),
            [] => true, // an output
            _ => false,
        };
        let is_output = self.plan.outputs.iter().any(|(_, output)| *output == place);
        if one_reader && (!is_output || self.users[place].is_empty()) && expression.size() <= LARGEST {
            return Ok(Held::Pending(expression, views));
        }
        let out = self.temporary(&shape);
        self.lowered.kernels.push(Kernel::Loop { out: out.clone(), expression, operands: views });
        Ok(Held::Stored(out))
    }

    fn convolution(&mut self, node: &Node, options: &ConvolutionOptions) -> View {
        let (input, weight) = (self.stored(node.operands[0]), self.stored(node.operands[1]));
        let (input, shape) = (self.contiguous(&input), dims(node));
        let kernel = [weight.dims[2], weight.dims[3]];
        let weight = self.contiguous(&weight.permuted(&[2, 3, 1, 0]));
        let window = Window {
            input: [input.dims[1], input.dims[2], input.dims[3]],
            output: [shape[1], shape[2], shape[3]],
            kernel,
            stride: options.stride,
            before: [options.padding[0][0], options.padding[1][0]],
            groups: options.groups,
        };
        let out = self.temporary(&shape);
        for block in 0..shape[0] {
            let [out, input] = [&out, &input].map(|view| view.cut(0, block, 1, 1));
            self.lowered.kernels.push(Kernel::Convolution { out, input, weight: weight.clone(), window });
        }
        out
    }

    fn membership(&mut self, node: &Node) -> View {
        let [queries, keys, offsets, moved] = [0, 1, 2, 3].map(|operand| self.stored(node.operands[operand]));
        let slices = Slices {
            points: queries.dims[1],
            heads: queries.dims[2],
            slices: keys.dims[1],
            channels: keys.dims[2],
            width: moved.dims[3],
        };
        let keys = keys.permuted(&[0, 2, 1]);
        let operands = [queries, keys, offsets, moved].map(|view| self.contiguous(&view));
        let out = self.temporary(&dims(node));
        for block in 0..out.dims[0] {
            let [queries, keys, offsets, moved] = operands.clone();
            let [queries, moved] = [queries, moved].map(|view| view.cut(0, block, 1, 1));
            let (out, operands) = (out.cut(0, block, 1, 1), [queries, keys, offsets, moved]);
            self.lowered.kernels.push(match node.operation {
                Operation::Collect => Kernel::Collect { out, operands, slices },
                _ => Kernel::Spread { out, operands, slices },
            });
        }
        out
    }

    fn scan(&mut self, node: &Node) -> Result<View, Refusal> {
        let Operation::Scan { order, directions } = &node.operation else { return Err(cannot(&node.operation, "C")) };
        let all: Vec<View> = node.operands.iter().map(|&operand| self.stored(operand)).collect();
        let operands = [0, 1, 2, 3, 4].map(|operand| self.contiguous(&all[operand]));
        let initial = all.get(5).map(|initial| self.contiguous(&initial.permuted(&[0, 1, 3, 2])));
        let (signal, write) = (&operands[0].dims, &operands[3].dims);
        let scan = Recurrence {
            tokens: signal[1],
            heads: signal[2],
            channels: signal[3],
            groups: write[2],
            states: write[3],
            directions: *directions,
            order: order.clone(),
        };
        let out = self.temporary(&dims(node));
        let state = [out.dims[0], scan.directions * scan.heads, scan.states, scan.channels];
        let state = self.temporary(&state); // the buffer behind the output, where the last state is looked for
        for block in 0..out.dims[0] {
            let one = |view: &View| view.cut(0, block, 1, 1);
            let (operands, initial) = (Box::new(operands.each_ref().map(one)), initial.as_ref().map(one));
            let kernel = Kernel::Scan { out: one(&out), state: one(&state), initial, operands, scan: scan.clone() };
            self.lowered.kernels.push(kernel);
        }
        Ok(out)
    }
}

/// The part that cuts select. One sample is a fixed number of them.
fn cut(view: &View, cuts: &[Cut]) -> View {
    cuts.iter().enumerate().fold(view.clone(), |view, (axis, cut)| match *cut {
        Cut::Whole => view,
        Cut::Fixed(span) => view.cut(axis, span.start, span.step, span.length),
        Cut::Counted { start, length } => view.cut(axis, start.of_one(), 1, length.of_one()),
    })
}
