//! Soft membership of points in slices, computed where it is used and never stored.
//!
//! For each batch and head, w_{nm} = softmax_m(x_n·k_m + b_m) says how much point n belongs to slice m. Points are
//! collected into slices, Σ_n w_{nm} [v_n | 1], and tokens of slices are spread to points, Σ_m w_{nm} t_m. The two are each
//! other's transpose, so ∂t is a collection and ∂v a spread. The gradient of w itself,
//!
//! ∂w_{nm} = p_n·t_m + s_m,  ∂ℓ_{nm} = w_{nm} (∂w_{nm} − Σ_j w_{nj} ∂w_{nj}),  ∂x = ∂ℓ k,  ∂k = ∂ℓᵀ x,  ∂b = ∂ℓᵀ 1,
//!
//! is the third operator. For a spread, p is the cotangent and t the tokens; for a collection, p is the values, t the
//! cotangent, and s the cotangent of the mass Σ_n w_{nm}. A network collects and spreads with the same w: then ∂w is the sum of
//! both, and one operator computes all gradients, ∂v of the collection among them ([`Waiting`]). Every operator computes w from
//! x, k, b again: memory is linear in points, not in points times slices.

use super::Op;
use crate::graph::{Node, NodeId, Tensor};
use crate::reference::Array;
use crate::shape::Shape;

/// The queries, keys and offsets that define the weights w.
#[derive(Clone, Copy)]
pub struct Membership<'g> {
    /// x `[batch, points, heads, channels]`
    pub queries: Tensor<'g>,
    /// k `[heads, slices, channels]`
    pub keys: Tensor<'g>,
    /// b `[heads, slices]`
    pub offsets: Tensor<'g>,
}

/// All extents of a membership and of its values or tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MembershipShape {
    pub(crate) batch: usize,
    pub(crate) points: usize,
    pub(crate) heads: usize,
    pub(crate) slices: usize,
    /// Channels of queries and keys.
    pub(crate) channels: usize,
    /// Channels of values and tokens.
    pub(crate) width: usize,
}

impl MembershipShape {
    pub(crate) fn queries(&self) -> Shape {
        Shape::from([self.batch, self.points, self.heads, self.channels])
    }

    pub(crate) fn keys(&self) -> Shape {
        Shape::from([self.heads, self.slices, self.channels])
    }

    pub(crate) fn offsets(&self) -> Shape {
        Shape::from([self.heads, self.slices])
    }

    /// Values on points.
    pub(crate) fn values(&self) -> Shape {
        Shape::from([self.batch, self.points, self.heads, self.width])
    }

    /// Tokens of slices; those of a collection have the mass as last channel.
    pub(crate) fn tokens(&self, mass: bool) -> Shape {
        Shape::from([self.batch, self.heads, self.slices, self.width + usize::from(mass)])
    }

    /// Shapes of the gradients: those of queries, keys, offsets, values.
    fn part(&self, index: usize) -> Shape {
        match index {
            0 => self.queries(),
            1 => self.keys(),
            2 => self.offsets(),
            _ => self.values(),
        }
    }
}

/// What a membership was used for, of which the gradients are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Uses {
    pub(crate) collected: bool,
    pub(crate) spread: bool,
    /// The gradient of the collected values is computed, too.
    pub(crate) values: bool,
}

impl Uses {
    /// How many gradients there are.
    pub(crate) fn parts(self) -> usize {
        3 + usize::from(self.values)
    }
}

impl<'g> Membership<'g> {
    /// Σ_n w_{nm} [v_n | 1]: values `[batch, points, heads, width]` to `[batch, heads, slices, width + 1]`, the mass last.
    pub fn collect(self, values: Tensor<'g>) -> Tensor<'g> {
        let [_, _, _, width] = values.dims();
        let shape = self.shape("collect", width);
        self.queries.same_graph(&values);
        expect("collect", "values", values, &shape.values());
        self.add(Op::Collect(shape), values, shape.tokens(true))
    }

    /// Σ_m w_{nm} t_m: tokens `[batch, heads, slices, width]` to `[batch, points, heads, width]`.
    pub fn spread(self, tokens: Tensor<'g>) -> Tensor<'g> {
        let [_, _, _, width] = tokens.dims();
        let shape = self.shape("spread", width);
        self.queries.same_graph(&tokens);
        expect("spread", "tokens", tokens, &shape.tokens(false));
        self.add(Op::Spread(shape), tokens, shape.values())
    }

    fn shape(&self, operation: &str, width: usize) -> MembershipShape {
        let [batch, points, heads, channels] = self.queries.dims();
        let [_, slices, _] = self.keys.dims();
        let shape = MembershipShape { batch, points, heads, slices, channels, width };
        self.queries.same_graph(&self.keys);
        self.queries.same_graph(&self.offsets);
        expect(operation, "keys", self.keys, &shape.keys());
        expect(operation, "offsets", self.offsets, &shape.offsets());
        shape
    }

    fn add(self, op: Op, moved: Tensor<'g>, result: Shape) -> Tensor<'g> {
        self.queries.graph.add(op, &[self.queries.node, self.keys.node, self.offsets.node, moved.node], result)
    }
}

fn expect(operation: &str, role: &str, tensor: Tensor<'_>, expected: &Shape) {
    let found = tensor.shape();
    assert!(found == *expected, "{operation}: {role} have shape {found}, expected {expected}");
}

/// Uses of memberships in a reverse sweep. Their gradients wait until an operand is reached, so that all uses of a membership are
/// known by then.
#[derive(Default)]
pub(crate) struct Waiting<'g> {
    uses: Vec<Use<'g>>,
}

struct Use<'g> {
    /// Queries, keys, offsets.
    membership: [NodeId; 3],
    shape: MembershipShape,
    collected: bool,
    /// Of a collection the values, of a spread the cotangent.
    on_points: Tensor<'g>,
    /// Of a collection the cotangent, of a spread the tokens.
    on_slices: Tensor<'g>,
    /// The gradient of the collected values is wanted.
    values: bool,
}

impl<'g> Waiting<'g> {
    /// Takes the cotangent of a collection or a spread. `wanted` says which gradients are needed: those of queries, keys, offsets
    /// wait, and that of the values with them. The gradient of the tokens is returned, and that of values if nothing waits.
    pub(crate) fn add(&mut self, node: &Node, cotangent: Tensor<'g>, wanted: &[bool]) -> Option<Tensor<'g>> {
        let graph = cotangent.graph;
        let [queries, keys, offsets, moved] = [0, 1, 2, 3].map(|position| graph.tensor(node.operands[position]));
        let membership = Membership { queries, keys, offsets };
        let waits = wanted[..3].contains(&true);
        let (shape, collected) = match node.op {
            Op::Collect(shape) => (shape, true),
            Op::Spread(shape) => (shape, false),
            _ => unreachable!("{:?} moves nothing between points and slices", node.op),
        };
        if waits {
            let [on_points, on_slices] = if collected { [moved, cotangent] } else { [cotangent, moved] };
            let membership = [queries.node, keys.node, offsets.node];
            let values = collected && wanted[3];
            self.uses.push(Use { membership, shape, collected, on_points, on_slices, values });
        }
        match collected {
            true if waits || !wanted[3] => None,
            true => Some(membership.spread(cotangent.slice(3, 0, shape.width))),
            false => wanted[3].then(|| membership.collect(cotangent).slice(3, 0, shape.width)),
        }
    }

    /// The gradients of the memberships that have `node` as an operand, or as values of which the gradient is wanted: operands and
    /// what each of them gets.
    pub(crate) fn release(&mut self, node: NodeId) -> Vec<(NodeId, Tensor<'g>)> {
        let mut gradients = Vec::new();
        let reached = |one: &Use<'_>| one.membership.contains(&node) || one.values && one.on_points.node == node;
        while let Some(membership) = self.uses.iter().find(|one| reached(one)).map(|one| one.membership) {
            let (mut uses, others) =
                std::mem::take(&mut self.uses).into_iter().partition(|one| one.membership == membership);
            self.uses = others;
            while let Some([collection, spread]) = next_uses(&mut uses) {
                gradients.extend(joint_gradients(membership, collection, spread));
            }
        }
        gradients
    }
}

/// A collection and a spread of the same shape, or one use that has no such partner.
fn next_uses<'g>(uses: &mut Vec<Use<'g>>) -> Option<[Option<Use<'g>>; 2]> {
    let first = uses.pop()?;
    let partner = uses.iter().position(|other| other.collected != first.collected && other.shape == first.shape);
    let partner = partner.map(|position| uses.remove(position));
    Some(if first.collected { [Some(first), partner] } else { [partner, Some(first)] })
}

fn joint_gradients<'g>(
    membership: [NodeId; 3],
    collection: Option<Use<'g>>,
    spread: Option<Use<'g>>,
) -> Vec<(NodeId, Tensor<'g>)> {
    let values = collection.as_ref().is_some_and(|one| one.values);
    let uses = Uses { collected: collection.is_some(), spread: spread.is_some(), values };
    let mut operands = membership.to_vec();
    let mut receivers = membership.to_vec();
    if let Some(collection) = &collection {
        receivers.extend(values.then_some(collection.on_points.node));
    }
    let all = [collection, spread];
    let one = all.iter().flatten().next().expect("a gradient has a use");
    let (graph, shape) = (one.on_points.graph, one.shape);
    operands.extend(all.iter().flatten().flat_map(|one| [one.on_points.node, one.on_slices.node]));
    let gradients = graph.add(Op::MembershipGradient { shape, uses }, &operands, shape.queries());
    let part = |(index, receiver)| (receiver, graph.add(Op::Part { index }, &[gradients.node], shape.part(index)));
    receivers.into_iter().enumerate().map(part).collect()
}

/// One point of one head.
struct Visit<'a> {
    /// Indices into the arrays: first query of the point, first key and offset of the head, first value of the point.
    query: usize,
    keys: usize,
    offsets: usize,
    value: usize,
    /// The first token of the head; each has several channels.
    token: usize,
    /// w
    weights: &'a [f64],
}

fn for_each_point(shape: &MembershipShape, operands: &[&Array], mut visit: impl FnMut(Visit<'_>)) {
    let MembershipShape { batch, points, heads, slices, channels, width } = *shape;
    let mut weights = vec![0.0; slices];
    for row in 0..batch * points * heads {
        let (head, entry) = (row % heads, row / heads / points);
        let (query, keys, offsets) = (row * channels, head * slices * channels, head * slices);
        for (slice, weight) in weights.iter_mut().enumerate() {
            let product = |c: usize| operands[0].values[query + c] * operands[1].values[keys + slice * channels + c];
            *weight = operands[2].values[offsets + slice] + (0..channels).map(product).sum::<f64>();
        }
        let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights.iter_mut().for_each(|weight| *weight = (*weight - largest).exp());
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        let token = (entry * heads + head) * slices;
        visit(Visit { query, keys, offsets, value: row * width, token, weights: &weights });
    }
}

pub(crate) fn collect_reference(shape: &MembershipShape, operands: &[&Array]) -> Vec<f64> {
    let mut result = vec![0.0; shape.tokens(true).count()];
    for_each_point(shape, operands, |at| {
        for (token, weight) in result[at.token * (shape.width + 1)..].chunks_mut(shape.width + 1).zip(at.weights) {
            for (p, sum) in token.iter_mut().enumerate() {
                *sum += weight * if p < shape.width { operands[3].values[at.value + p] } else { 1.0 };
            }
        }
    });
    result
}

pub(crate) fn spread_reference(shape: &MembershipShape, operands: &[&Array]) -> Vec<f64> {
    let mut result = vec![0.0; shape.values().count()];
    for_each_point(shape, operands, |at| {
        for (token, weight) in operands[3].values[at.token * shape.width..].chunks(shape.width).zip(at.weights) {
            for (p, value) in token.iter().enumerate() {
                result[at.value + p] += weight * value;
            }
        }
    });
    result
}

pub(crate) fn gradient_reference(shape: &MembershipShape, uses: Uses, operands: &[&Array]) -> Vec<Array> {
    let MembershipShape { slices, channels, width, .. } = *shape;
    let mut gradients: Vec<_> = (0..uses.parts()).map(|index| Array::zeros(shape.part(index))).collect();
    for_each_point(shape, operands, |at| {
        let mut moved = vec![0.0; slices]; // ∂w
        let mut pairs = operands[3..].chunks_exact(2);
        for mass in [uses.collected.then_some(true), uses.spread.then_some(false)].into_iter().flatten() {
            let [on_points, on_slices] = pairs.next().expect("each use has two operands") else { unreachable!() };
            let length = width + usize::from(mass);
            let tokens = &on_slices.values[at.token * length..][..slices * length];
            for (slice, (moved, token)) in moved.iter_mut().zip(tokens.chunks_exact(length)).enumerate() {
                *moved += (0..width).map(|p| on_points.values[at.value + p] * token[p]).sum::<f64>();
                *moved += if mass { token[width] } else { 0.0 };
                if mass && uses.values {
                    let gradient = &mut gradients[3].values[at.value..][..width];
                    gradient.iter_mut().zip(token).for_each(|(sum, token)| *sum += at.weights[slice] * token);
                }
            }
        }
        let mean: f64 = moved.iter().zip(at.weights).map(|(moved, weight)| moved * weight).sum();
        for (slice, (moved, weight)) in moved.iter().zip(at.weights).enumerate() {
            let logit = weight * (moved - mean);
            for c in 0..channels {
                let key = at.keys + slice * channels + c;
                gradients[0].values[at.query + c] += logit * operands[1].values[key];
                gradients[1].values[key] += logit * operands[0].values[at.query + c];
            }
            gradients[2].values[at.offsets + slice] += logit;
        }
    });
    gradients
}
