//! The state-space-dual scan (Mamba-2), in several directions at once.
//!
//! For each batch, direction k and head, along the token order of k:
//!
//! hₗ = exp(ℓₜ) hₗ₋₁ + gₜ xₜ ⊗ Bₜ,  yₜ = Σₖ hₗ Cₜ,  t = orderₖ(l),  h ∈ R^{channels × states}.
//!
//! ℓ is the logarithm of the decay (Δ·A), g the gain of the input (Δ for Euler's rule, (e^{ΔA} − 1)/A for the exact
//! zero-order hold). All directions read one signal and write one output, so nothing is permuted or copied in memory.

use super::Op;
use crate::graph::Tensor;
use crate::reference::Array;
use crate::shape::Shape;
use std::sync::Arc;

/// The operands of a scan. "Scan heads" are directions × heads, direction outermost.
#[derive(Clone, Copy)]
pub struct ScanInput<'g> {
    /// x `[batch, tokens, heads, channels]`
    pub signal: Tensor<'g>,
    /// ℓ `[batch, tokens, directions·heads]`
    pub log_decay: Tensor<'g>,
    /// g `[batch, tokens, directions·heads]`
    pub gain: Tensor<'g>,
    /// B `[batch, tokens, groups, states]`; scan head q reads group ⌊q · groups / (directions·heads)⌋.
    pub write: Tensor<'g>,
    /// C `[batch, tokens, groups, states]`
    pub read: Tensor<'g>,
    /// h before the first token `[batch, directions·heads, channels, states]`; zero if absent.
    pub initial: Option<Tensor<'g>>,
}

/// All extents of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScanShape {
    pub(crate) batch: usize,
    pub(crate) tokens: usize,
    pub(crate) heads: usize,
    pub(crate) channels: usize,
    pub(crate) groups: usize,
    pub(crate) states: usize,
    pub(crate) directions: usize,
}

impl ScanShape {
    pub(crate) fn scan_heads(&self) -> usize {
        self.directions * self.heads
    }

    pub(crate) fn signal(&self) -> Shape {
        Shape::from([self.batch, self.tokens, self.heads, self.channels])
    }

    pub(crate) fn per_head(&self) -> Shape {
        Shape::from([self.batch, self.tokens, self.scan_heads()])
    }

    pub(crate) fn per_group(&self) -> Shape {
        Shape::from([self.batch, self.tokens, self.groups, self.states])
    }

    pub(crate) fn state(&self) -> Shape {
        Shape::from([self.batch, self.scan_heads(), self.channels, self.states])
    }

    /// Shapes of the gradients, in operand order.
    pub(crate) fn operand(&self, index: usize) -> Shape {
        match index {
            0 => self.signal(),
            1 | 2 => self.per_head(),
            3 | 4 => self.per_group(),
            _ => self.state(),
        }
    }
}

impl<'g> ScanInput<'g> {
    /// Runs the scan; each order lists the tokens in the sequence its direction visits them.
    /// Returns y `[batch, tokens, heads, channels]` and the last state `[batch, directions·heads, channels, states]`.
    pub fn scan(self, orders: &[Vec<u32>]) -> (Tensor<'g>, Tensor<'g>) {
        let [batch, tokens, heads, channels] = self.signal.dims();
        let [_, _, groups, states] = self.write.dims();
        let scan_heads = heads.saturating_mul(orders.len());
        let _ = Shape::from([batch, tokens, scan_heads]); // refused if the product of heads and directions would wrap
        let shape = ScanShape { batch, tokens, heads, channels, groups, states, directions: orders.len() };
        let expect = |role: &str, tensor: Tensor<'g>, expected: Shape| {
            self.signal.same_graph(&tensor);
            let found = tensor.shape();
            assert!(found == expected, "scan: {role} has shape {found}, expected {expected}");
        };
        expect("log decay", self.log_decay, shape.per_head());
        expect("gain", self.gain, shape.per_head());
        expect("write", self.write, shape.per_group());
        expect("read", self.read, shape.per_group());
        assert!(
            scan_heads > 0 && scan_heads.is_multiple_of(groups),
            "scan: {scan_heads} scan heads do not divide into {groups} groups"
        );
        for order in orders {
            let mut seen = vec![false; tokens];
            let each_once = order.len() == tokens
                && order.iter().all(|&t| (t as usize) < tokens && !std::mem::replace(&mut seen[t as usize], true));
            assert!(each_once, "scan: an order must visit each of the {tokens} tokens once");
        }
        let mut operands = vec![self.signal.node, self.log_decay.node, self.gain.node, self.write.node, self.read.node];
        if let Some(initial) = self.initial {
            expect("initial state", initial, shape.state());
            operands.push(initial.node);
        }
        let order: Arc<[u32]> = orders.concat().into();
        let graph = self.signal.graph;
        let scan = graph.add(Op::Scan { shape, order }, &operands, shape.signal());
        (
            graph.add(Op::Part { index: 0 }, &[scan.node], shape.signal()),
            graph.add(Op::Part { index: 1 }, &[scan.node], shape.state()),
        )
    }
}

/// Gradients of all operands, given those of the output and the final state.
pub(crate) fn gradient<'g>(
    scan: Tensor<'g>,
    output: Option<Tensor<'g>>,
    final_state: Option<Tensor<'g>>,
) -> Vec<Tensor<'g>> {
    let graph = scan.graph;
    let node = graph.node(scan.node);
    let Op::Scan { shape, order } = node.op else { unreachable!("the sweep passes scans") };
    let initial = node.operands.len() == 6;
    let mut operands = node.operands.clone();
    operands.push(output.unwrap_or_else(|| graph.fill(0.0, shape.signal())).node);
    operands.extend(final_state.map(|tensor| tensor.node));
    let gradients = graph.add(Op::ScanGradient { shape, order, initial }, &operands, shape.signal());
    (0..node.operands.len())
        .map(|index| graph.add(Op::Part { index }, &[gradients.node], shape.operand(index)))
        .collect()
}

/// One scan head of one batch: positions of its elements in the flat arrays.
struct Sequence<'a> {
    shape: &'a ScanShape,
    order: &'a [u32],
    batch: usize,
    head: usize,
}

impl<'a> Sequence<'a> {
    /// Every scan head of every batch.
    fn all(shape: &'a ScanShape, order: &'a [u32]) -> impl Iterator<Item = Sequence<'a>> {
        let heads = shape.scan_heads();
        (0..shape.batch * heads).map(move |i| Sequence { shape, order, batch: i / heads, head: i % heads })
    }

    fn token(&self, step: usize) -> usize {
        self.order[self.head / self.shape.heads * self.shape.tokens + step] as usize
    }

    /// First channel of x and y at a token.
    fn signal(&self, token: usize) -> usize {
        let position = self.batch * self.shape.tokens + token;
        (position * self.shape.heads + self.head % self.shape.heads) * self.shape.channels
    }

    fn per_head(&self, token: usize) -> usize {
        (self.batch * self.shape.tokens + token) * self.shape.scan_heads() + self.head
    }

    /// First state of B and C at a token.
    fn per_group(&self, token: usize) -> usize {
        let group = self.head / (self.shape.scan_heads() / self.shape.groups);
        ((self.batch * self.shape.tokens + token) * self.shape.groups + group) * self.shape.states
    }

    /// First element of h.
    fn state(&self) -> usize {
        (self.batch * self.shape.scan_heads() + self.head) * self.shape.channels * self.shape.states
    }

    /// All states h₀ … h_tokens, `[channels, states]` each.
    fn states(&self, operands: &[&Array]) -> Vec<Vec<f64>> {
        let (channels, states) = (self.shape.channels, self.shape.states);
        let start = match operands.get(5) {
            Some(initial) => initial.values[self.state()..self.state() + channels * states].to_vec(),
            None => vec![0.0; channels * states],
        };
        let mut history = vec![start];
        for step in 0..self.shape.tokens {
            let token = self.token(step);
            let decay = operands[1].values[self.per_head(token)].exp();
            let gain = operands[2].values[self.per_head(token)];
            let mut state = history[step].clone();
            for c in 0..channels {
                for n in 0..states {
                    let input = gain * operands[0].values[self.signal(token) + c];
                    let h = &mut state[c * states + n];
                    *h = decay * *h + input * operands[3].values[self.per_group(token) + n];
                }
            }
            history.push(state);
        }
        history
    }
}

/// Output and final state by the recurrence itself.
pub(crate) fn reference(shape: &ScanShape, order: &[u32], operands: &[&Array]) -> Vec<Array> {
    let mut output = Array::zeros(shape.signal());
    let mut final_state = Array::zeros(shape.state());
    for sequence in Sequence::all(shape, order) {
        let history = sequence.states(operands);
        for step in 0..shape.tokens {
            let token = sequence.token(step);
            for c in 0..shape.channels {
                let read = |n: usize| operands[4].values[sequence.per_group(token) + n];
                let sum: f64 = (0..shape.states).map(|n| history[step + 1][c * shape.states + n] * read(n)).sum();
                output.values[sequence.signal(token) + c] += sum;
            }
        }
        let last = &history[shape.tokens];
        final_state.values[sequence.state()..sequence.state() + last.len()].copy_from_slice(last);
    }
    vec![output, final_state]
}

/// The adjoint recurrence: λₗ = exp(ℓ) λₗ₊₁ + ∂yₗ ⊗ Cₗ backwards along each direction.
pub(crate) fn gradient_reference(shape: &ScanShape, order: &[u32], initial: bool, operands: &[&Array]) -> Vec<Array> {
    let count = if initial { 6 } else { 5 };
    let (inputs, cotangents) = operands.split_at(count);
    let mut gradients: Vec<_> = (0..count).map(|index| Array::zeros(shape.operand(index))).collect();
    for sequence in Sequence::all(shape, order) {
        let history = sequence.states(inputs);
        let size = shape.channels * shape.states;
        let mut adjoint = match cotangents.get(1) {
            Some(final_state) => final_state.values[sequence.state()..sequence.state() + size].to_vec(),
            None => vec![0.0; size],
        };
        for step in (0..shape.tokens).rev() {
            let token = sequence.token(step);
            let (head, signal, group) = (sequence.per_head(token), sequence.signal(token), sequence.per_group(token));
            let (decay, gain) = (inputs[1].values[head].exp(), inputs[2].values[head]);
            for c in 0..shape.channels {
                for n in 0..shape.states {
                    let at = c * shape.states + n;
                    let (x, write, read) =
                        (inputs[0].values[signal + c], inputs[3].values[group + n], inputs[4].values[group + n]);
                    let output = cotangents[0].values[signal + c];
                    gradients[4].values[group + n] += output * history[step + 1][at];
                    adjoint[at] += output * read;
                    gradients[0].values[signal + c] += gain * write * adjoint[at];
                    gradients[1].values[head] += adjoint[at] * decay * history[step][at];
                    gradients[2].values[head] += adjoint[at] * x * write;
                    gradients[3].values[group + n] += gain * x * adjoint[at];
                    adjoint[at] *= decay;
                }
            }
        }
        if initial {
            gradients[5].values[sequence.state()..sequence.state() + size].copy_from_slice(&adjoint);
        }
    }
    gradients
}
