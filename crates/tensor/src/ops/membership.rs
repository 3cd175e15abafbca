//! Soft membership of points in slices, computed where it is used and never stored.
//!
//! For each batch and head, w_{nm} = softmax_m(x_n·k_m + b_m) says how much point n belongs to slice m. Points are
//! collected into slices, Σ_n w_{nm} [v_n | 1], and tokens of slices are spread to points, Σ_m w_{nm} t_m. The two are each
//! other's transpose, so ∂t is a collection and ∂v a spread. The gradient of w itself,
//!
//! ∂w_{nm} = p_n·t_m + s_m,  ∂ℓ_{nm} = w_{nm} (∂w_{nm} − Σ_j w_{nj} ∂w_{nj}),  ∂x = ∂ℓ k,  ∂k = ∂ℓᵀ x,  ∂b = ∂ℓᵀ 1,
//!
//! is the third operator. For a spread, p is the cotangent and t the tokens; for a collection, p is the values, t the
//! cotangent, and s the cotangent of the mass Σ_n w_{nm}. Every operator computes w from x, k, b again: memory is linear in
//! points, not in points times slices.

use super::Op;
use crate::graph::Tensor;
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

    /// Shapes of the gradients, in operand order.
    fn operand(&self, index: usize) -> Shape {
        match index {
            0 => self.queries(),
            1 => self.keys(),
            _ => self.offsets(),
        }
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

/// Gradients of queries, keys, offsets and of the values or tokens. `wanted` says which are needed.
pub(crate) fn gradient<'g>(
    op: &Op,
    operands: &[Tensor<'g>],
    cotangent: Tensor<'g>,
    wanted: &[bool],
) -> Vec<Option<Tensor<'g>>> {
    let membership = Membership { queries: operands[0], keys: operands[1], offsets: operands[2] };
    let (shape, mass, [on_points, on_slices]) = match op {
        Op::Collect(shape) => (*shape, true, [operands[3], cotangent]),
        Op::Spread(shape) => (*shape, false, [cotangent, operands[3]]),
        _ => unreachable!("{op:?} moves nothing between points and slices"),
    };
    let mut gradients = vec![None; 4];
    if wanted[..3].contains(&true) {
        let nodes = [operands[0].node, operands[1].node, operands[2].node, on_points.node, on_slices.node];
        let graph = cotangent.graph;
        let all = graph.add(Op::MembershipGradient { shape, mass }, &nodes, shape.queries());
        for (index, gradient) in gradients[..3].iter_mut().enumerate() {
            *gradient = Some(graph.add(Op::Part { index }, &[all.node], shape.operand(index)));
        }
    }
    gradients[3] = wanted[3].then(|| match mass {
        true => membership.spread(cotangent.slice(3, 0, shape.width)),
        false => membership.collect(cotangent).slice(3, 0, shape.width),
    });
    gradients
}

/// One point of one head.
struct Visit<'a> {
    /// Indices into the arrays: first query of the point, first key and offset of the head, first value of the point, first
    /// token of the head.
    query: usize,
    keys: usize,
    offsets: usize,
    value: usize,
    tokens: usize,
    /// w
    weights: &'a [f64],
}

fn for_each_point(shape: &MembershipShape, operands: &[&Array], mass: bool, mut visit: impl FnMut(Visit<'_>)) {
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
        let tokens = (entry * heads + head) * slices * (width + usize::from(mass));
        visit(Visit { query, keys, offsets, value: row * width, tokens, weights: &weights });
    }
}

pub(crate) fn collect_reference(shape: &MembershipShape, operands: &[&Array]) -> Vec<f64> {
    let mut result = vec![0.0; shape.tokens(true).count()];
    for_each_point(shape, operands, true, |at| {
        for (token, weight) in result[at.tokens..].chunks_mut(shape.width + 1).zip(at.weights) {
            for (p, sum) in token.iter_mut().enumerate() {
                *sum += weight * if p < shape.width { operands[3].values[at.value + p] } else { 1.0 };
            }
        }
    });
    result
}

pub(crate) fn spread_reference(shape: &MembershipShape, operands: &[&Array]) -> Vec<f64> {
    let mut result = vec![0.0; shape.values().count()];
    for_each_point(shape, operands, false, |at| {
        for (token, weight) in operands[3].values[at.tokens..].chunks(shape.width).zip(at.weights) {
            for (p, value) in token.iter().enumerate() {
                result[at.value + p] += weight * value;
            }
        }
    });
    result
}

pub(crate) fn gradient_reference(shape: &MembershipShape, mass: bool, operands: &[&Array]) -> Vec<Array> {
    let MembershipShape { slices, channels, width, .. } = *shape;
    let mut gradients: Vec<_> = (0..3).map(|index| Array::zeros(shape.operand(index))).collect();
    for_each_point(shape, operands, mass, |at| {
        let moved = |slice: usize| {
            let token = &operands[4].values[at.tokens + slice * (width + usize::from(mass))..];
            let product: f64 = (0..width).map(|p| operands[3].values[at.value + p] * token[p]).sum();
            product + if mass { token[width] } else { 0.0 }
        };
        let moved: Vec<f64> = (0..slices).map(moved).collect();
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
