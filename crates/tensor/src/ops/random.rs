//! Random numbers by a counter: Philox 2×32 with ten rounds (Salmon et al. 2011), a function of a key and a counter alone.
//! With M = 0xD256D193 and the key k, which grows by 0x9E3779B9 after each round,
//!
//! (a, b) ← (high(M a) ⊕ k ⊕ b, low(M a)).
//!
//! It is the map [`Map::Philox`] of three whole numbers below 2²⁴, which f32 holds exactly: the result is the same on every
//! device. A number is computed where it is used, forwards and backwards, and no memory holds it.
//!
//! The counter of an element is (its index, one word of its place), the key is another word. Both words of a place are numbers of
//! the same kind, of the place and of four words that the caller writes before a run: a resumed training that writes the same
//! words draws the same numbers.

use super::{Map, Op};
use crate::graph::{Graph, Tensor};
use crate::shape::Shape;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// Numbers are whole and below this.
const RANGE: usize = 1 << 24;

/// Words that the caller writes before a run.
pub const RANDOM_WORDS: usize = 4;

/// The upper 24 bits of the first word.
#[inline(always)]
pub(crate) fn philox(index: u32, word: u32, key: u32) -> u32 {
    let (mut a, mut b, mut key) = (index, word, key);
    for _ in 0..10 {
        let product = u64::from(a) * 0xD256_D193;
        a = (product >> 32) as u32 ^ key ^ b;
        b = product as u32;
        key = key.wrapping_add(0x9E37_79B9);
    }
    a >> 8
}

/// Random numbers of a graph. Each request has places of its own, so that no two requests share numbers.
///
/// ```
/// use lamo_tensor::{Graph, Program, RANDOM_WORDS, Random};
/// let graph = Graph::new();
/// let random = Random::new(&graph, "random");
/// graph.output("y", graph.fill(1.0, [1000]).dropout(0.25, &random));
/// let mut program = Program::compile(&graph);
/// program.write("random", &[7.0, 11.0, 13.0, 17.0]);
/// program.run();
/// let kept = program.read("y").iter().filter(|&&value| value != 0.0).count();
/// assert!((700..800).contains(&kept));
/// ```
#[derive(Clone)]
pub struct Random<'g>(Rc<Source<'g>>);

struct Source<'g> {
    graph: &'g Graph,
    name: String,
    words: OnceCell<Tensor<'g>>,
    places: Cell<usize>,
}

impl<'g> Random<'g> {
    /// Numbers that follow from the input `name`, `[4]` whole numbers from 0 to 2²⁴ − 1. The graph gets this input with the
    /// first request.
    pub fn new(graph: &'g Graph, name: &str) -> Random<'g> {
        let (name, words, places) = (name.to_owned(), OnceCell::new(), Cell::new(0));
        Random(Rc::new(Source { graph, name, words, places }))
    }

    /// Numbers that follow from `words`, `[4]` whole numbers from 0 to 2²⁴ − 1.
    pub fn of(words: Tensor<'g>) -> Random<'g> {
        let (graph, name, places) = (words.graph, String::new(), Cell::new(0));
        Random(Rc::new(Source { graph, name, words: OnceCell::from(words), places }))
    }

    /// Whether the graph has the words as an input.
    pub fn is_used(&self) -> bool {
        self.0.words.get().is_some()
    }

    /// Whole numbers from 0 to 2²⁴ − 1, all equally likely.
    pub fn whole(&self, shape: impl Into<Shape>) -> Tensor<'g> {
        let (shape, graph) = (shape.into(), self.0.graph);
        let words = self.0.words.get_or_init(|| graph.input(&self.0.name, [RANDOM_WORDS]));
        // The last axes count the elements of a place; each element of the other axes is a place of its own.
        let count = |first: usize| shape.dims()[first..].iter().product::<usize>();
        let split = (0..=shape.rank()).find(|&first| count(first) <= RANGE).expect("an empty product is 1");
        let first = self.0.places.get();
        let places: usize = shape.dims()[..split].iter().product();
        assert!(first + places <= RANGE, "a graph asks for random numbers at more than {RANGE} places");
        self.0.places.set(first + places);
        let place = numbered(graph, &shape, 0..split) + first as f64;
        let word = |number: usize| words.slice(0, number, number + 1).reshape(vec![1; shape.rank()]);
        let [high, key] = [0, 2].map(|pair| draw(place, word(pair), word(pair + 1)));
        draw(numbered(graph, &shape, split..shape.rank()), high, key).broadcast_to(shape)
    }

    /// 1/(1 − rate) with the probability 1 − rate, else 0: the factor of dropout. The rate is rounded to a multiple of 2⁻²⁴.
    pub fn factors(&self, rate: f64, shape: impl Into<Shape>) -> Tensor<'g> {
        assert!((0.0..1.0).contains(&rate), "dropout: expected a rate from 0 to below 1, found {rate}");
        let dropped = (rate * RANGE as f64).round().min(RANGE as f64 - 1.0); // at least one number in the range is kept
        let kept = self.0.graph.fill(dropped - 1.0, []).less(self.whole(shape)); // whole numbers from `dropped` on
        kept * (RANGE as f64 / (RANGE as f64 - dropped))
    }
}

/// The position of an element in the axes `axes` of a shape, last axis innermost; it does not depend on the other axes.
fn numbered<'g>(graph: &'g Graph, shape: &Shape, axes: std::ops::Range<usize>) -> Tensor<'g> {
    let mut stride = 1;
    let mut number = graph.fill(0.0, vec![1; shape.rank()]);
    for axis in axes.rev() {
        let extent = shape.dims()[axis];
        if extent > 1 {
            let places: Vec<f64> = (0..extent).map(|place| place as f64).collect();
            let mut dims = vec![1; shape.rank()];
            dims[axis] = extent;
            number = number + graph.constant_numbers(&places, dims) * stride as f64;
        }
        stride *= extent;
    }
    number
}

fn draw<'g>(index: Tensor<'g>, word: Tensor<'g>, key: Tensor<'g>) -> Tensor<'g> {
    let shapes = [index.shape(), word.shape(), key.shape()];
    let shape = shapes[0].broadcast(&shapes[1]).and_then(|shape| shape.broadcast(&shapes[2]));
    let shape = shape.expect("all three have the same rank and extents of 1 or of the numbers");
    let operands = [index, word, key].map(|operand| operand.broadcast_to(shape.clone()).node);
    index.graph.add(Op::Map(Map::Philox), &operands, shape)
}

impl<'g> Tensor<'g> {
    /// Each element is dropped, that is set to 0, with the probability `rate`; the others grow by 1/(1 − rate), so that the
    /// expectation stays the same. The gradient has the same factors. At rate 0 it is the tensor itself.
    pub fn dropout(self, rate: f64, random: &Random<'g>) -> Tensor<'g> {
        if rate == 0.0 { self } else { self * random.factors(rate, self.shape()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers that the authors of the generator publish with their code, upper 24 bits.
    #[test]
    fn the_numbers_are_those_of_philox() {
        assert_eq!(philox(0, 0, 0), 0xff_1dae);
        assert_eq!(philox(u32::MAX, u32::MAX, u32::MAX), 0x2c_3f62);
        assert_eq!(philox(0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e), 0xdd_7ce0);
    }
}
