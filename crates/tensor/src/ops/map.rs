//! Maps: elementwise functions. Operands broadcast by NumPy's rule before the map sees them.
//!
//! GELU is the exact form x·Φ(x) with Φ the normal distribution function; softplus is log(1 + eˣ), x itself above 20.

use super::Op;
use super::random::philox;
use crate::graph::Tensor;
use crate::reference::Array;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An elementwise function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say it
pub enum Map {
    /// x itself; the compiler inserts it where a value must be copied.
    Copy,
    Negate,
    Absolute,
    /// −1, 0 or 1.
    Sign,
    Exp,
    Log,
    Sqrt,
    Reciprocal,
    Tanh,
    Erf,
    Sin,
    Cos,
    Sigmoid,
    Softplus,
    SoftplusDerivative,
    Gelu,
    GeluDerivative,
    Silu,
    SiluDerivative,
    Add,
    Subtract,
    Multiply,
    Divide,
    Maximum,
    Minimum,
    /// Angle of the point (second operand, first operand), in (−π, π].
    Arctangent,
    /// 1 where the first operand is smaller, else 0.
    Less,
    /// 1 where the operands are equal, else 0.
    Equal,
    /// The second operand where the first is not 0, else the third.
    Select,
    /// The random number of a counter and a key, three whole numbers below 2²⁴; see [`Random`](crate::Random).
    Philox,
}

impl Map {
    /// Number of operands.
    pub fn arity(self) -> usize {
        use Map::*;
        match self {
            Copy | Negate | Absolute | Sign | Exp | Log | Sqrt | Reciprocal | Tanh | Erf | Sin | Cos | Sigmoid
            | Softplus | SoftplusDerivative | Gelu | GeluDerivative | Silu | SiluDerivative => 1,
            Add | Subtract | Multiply | Divide | Maximum | Minimum | Arctangent | Less | Equal => 2,
            Select | Philox => 3,
        }
    }

    /// The function in f64; the operands beyond the arity are ignored.
    pub fn evaluate(self, a: f64, b: f64, c: f64) -> f64 {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let normal_distribution = |x: f64| 0.5 * libm::erfc(-x * FRAC_1_SQRT_2);
        let normal_density = |x: f64| (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
        let truth = |claim: bool| if claim { 1.0 } else { 0.0 };
        match self {
            Map::Copy => a,
            Map::Negate => -a,
            Map::Absolute => a.abs(),
            Map::Sign => truth(a > 0.0) - truth(a < 0.0),
            Map::Exp => a.exp(),
            Map::Log => a.ln(),
            Map::Sqrt => a.sqrt(),
            Map::Reciprocal => 1.0 / a,
            Map::Tanh => a.tanh(),
            Map::Erf => libm::erf(a),
            Map::Sin => a.sin(),
            Map::Cos => a.cos(),
            Map::Sigmoid => sigmoid(a),
            Map::Softplus if a > 20.0 => a,
            Map::Softplus => a.exp().ln_1p(),
            Map::SoftplusDerivative if a > 20.0 => 1.0,
            Map::SoftplusDerivative => sigmoid(a),
            Map::Gelu => a * normal_distribution(a),
            Map::GeluDerivative => normal_distribution(a) + a * normal_density(a),
            Map::Silu => a * sigmoid(a),
            Map::SiluDerivative => sigmoid(a) * (1.0 + a * (1.0 - sigmoid(a))),
            Map::Add => a + b,
            Map::Subtract => a - b,
            Map::Multiply => a * b,
            Map::Divide => a / b,
            Map::Maximum if a.is_nan() || b.is_nan() => f64::NAN,
            Map::Minimum if a.is_nan() || b.is_nan() => f64::NAN,
            Map::Maximum => a.max(b),
            Map::Minimum => a.min(b),
            Map::Arctangent => a.atan2(b),
            Map::Less => truth(a < b),
            Map::Equal => truth(a == b),
            Map::Select => {
                if a != 0.0 {
                    b
                } else {
                    c
                }
            }
            Map::Philox => f64::from(philox(a as u32, b as u32, c as u32)),
        }
    }
}

pub(crate) fn reference(map: Map, operands: &[&Array]) -> Vec<f64> {
    let value = |operand: usize, index: usize| operands.get(operand).map_or(0.0, |array| array.values[index]);
    (0..operands[0].values.len()).map(|i| map.evaluate(value(0, i), value(1, i), value(2, i))).collect()
}

/// The chain rule, f′ in terms of the same maps. Where two operands of a maximum are equal, the first gets the whole
/// gradient.
pub(crate) fn gradient<'g>(
    map: Map,
    operands: &[Tensor<'g>],
    result: Tensor<'g>,
    cotangent: Tensor<'g>,
    wanted: &[bool],
) -> Vec<Option<Tensor<'g>>> {
    let a = operands[0];
    let one = |derivative: Tensor<'g>| vec![Some(cotangent * derivative)];
    let both = |left: &dyn Fn() -> Tensor<'g>, right: &dyn Fn() -> Tensor<'g>| {
        vec![wanted[0].then(left), wanted[1].then(right)]
    };
    match map {
        Map::Copy => vec![Some(cotangent)],
        Map::Negate => vec![Some(-cotangent)],
        Map::Absolute => one(a.map(Map::Sign)),
        Map::Sign => vec![None],
        Map::Exp => one(result),
        Map::Log => vec![Some(cotangent / a)],
        Map::Sqrt => vec![Some(cotangent * 0.5 / result)],
        Map::Reciprocal => vec![Some(-(cotangent * result * result))],
        Map::Tanh => one(1.0 - result * result),
        Map::Erf => one((-(a * a)).exp() * FRAC_2_SQRT_PI),
        Map::Sin => one(a.cos()),
        Map::Cos => vec![Some(-(cotangent * a.sin()))],
        Map::Sigmoid => one(result * (1.0 - result)),
        Map::Softplus => one(a.map(Map::SoftplusDerivative)),
        Map::SoftplusDerivative => one(result * (1.0 - result)),
        Map::Gelu => one(a.map(Map::GeluDerivative)),
        Map::GeluDerivative => {
            let density = (a * a * -0.5).exp() * (1.0 / (2.0 * PI).sqrt());
            one(density * (2.0 - a * a))
        }
        Map::Silu => one(a.map(Map::SiluDerivative)),
        Map::SiluDerivative => {
            let s = a.sigmoid();
            one(s * (1.0 - s) * (2.0 + a * (1.0 - s * 2.0)))
        }
        Map::Add if a.node == operands[1].node => vec![Some(cotangent * 2.0), None],
        Map::Add => both(&|| cotangent, &|| cotangent),
        Map::Subtract => both(&|| cotangent, &|| -cotangent),
        Map::Multiply if a.node == operands[1].node => vec![Some(cotangent * 2.0 * a), None],
        Map::Multiply => both(&|| cotangent * operands[1], &|| cotangent * a),
        Map::Divide => both(&|| cotangent / operands[1], &|| -(cotangent * result / operands[1])),
        // Where the first operand is a number, the result tells as well which operand it is; the second need not be kept.
        Map::Maximum => {
            let second = a.less(if a.number().is_some() { result } else { operands[1] });
            both(&|| second.select(cotangent * 0.0, cotangent), &|| second.select(cotangent, cotangent * 0.0))
        }
        Map::Minimum => {
            let second = (if a.number().is_some() { result } else { operands[1] }).less(a);
            both(&|| second.select(cotangent * 0.0, cotangent), &|| second.select(cotangent, cotangent * 0.0))
        }
        Map::Arctangent => {
            let (b, square) = (operands[1], a * a + operands[1] * operands[1]);
            both(&|| cotangent * b / square, &|| -(cotangent * a / square))
        }
        Map::Less | Map::Equal => vec![None, None],
        Map::Philox => vec![None, None, None],
        Map::Select => {
            let zero = cotangent * 0.0;
            vec![None, Some(a.select(cotangent, zero)), Some(a.select(zero, cotangent))]
        }
    }
}

impl<'g> Tensor<'g> {
    /// Applies a map of one operand.
    pub fn map(self, map: Map) -> Tensor<'g> {
        assert_eq!(map.arity(), 1, "{map:?} takes {} operands", map.arity());
        self.graph.add(Op::Map(map), &[self.node], self.shape())
    }

    fn zip(self, map: Map, other: Tensor<'g>) -> Tensor<'g> {
        self.same_graph(&other);
        let (left, right) = (self.shape(), other.shape());
        let Some(shape) = left.broadcast(&right) else {
            panic!("{map:?}: shapes {left} and {right} do not broadcast");
        };
        if let Some(simpler) = self.simplified(map, other, &shape) {
            return simpler;
        }
        let operands = [self.broadcast_to(shape.clone()).node, other.broadcast_to(shape.clone()).node];
        self.graph.add(Op::Map(map), &operands, shape)
    }

    /// Simplifies x + 0, x − 0, x · 1, x / 1 and x · 0, which gradient rules produce.
    fn simplified(self, map: Map, other: Tensor<'g>, shape: &crate::Shape) -> Option<Tensor<'g>> {
        let right = other.number();
        let left = self.number();
        let keeps_left = match map {
            Map::Add | Map::Subtract => right == Some(0.0),
            Map::Multiply | Map::Divide => right == Some(1.0),
            _ => false,
        };
        let keeps_right = match map {
            Map::Add => left == Some(0.0),
            Map::Multiply => left == Some(1.0),
            _ => false,
        };
        let vanishes = map == Map::Multiply && (right == Some(0.0) || left == Some(0.0));
        if let (Some(a), Some(b)) = (left, right) {
            return Some(self.graph.fill(map.evaluate(a, b, 0.0), shape.clone()));
        }
        // 0·x is 0 here even for x = ∞: it comes from the gradient of select, where the other branch is not taken.
        match () {
            () if keeps_left => Some(self.broadcast_to(shape.clone())),
            () if keeps_right => Some(other.broadcast_to(shape.clone())),
            () if vanishes => Some(self.graph.fill(0.0, shape.clone())),
            () => None,
        }
    }

    /// The number that all elements of this tensor have, if the graph knows it.
    pub(crate) fn number(self) -> Option<f64> {
        let inner = self.graph.inner.borrow();
        let mut node = self.node;
        loop {
            match &inner.nodes[node].op {
                Op::Fill { bits } => return Some(f64::from_bits(*bits)),
                op if op.is_view() => node = inner.nodes[node].operands[0],
                _ => return None,
            }
        }
    }

    /// 1 where smaller than `other`, else 0.
    pub fn less(self, other: Tensor<'g>) -> Tensor<'g> {
        self.zip(Map::Less, other)
    }

    /// 1 where equal to `other`, else 0.
    pub fn equal(self, other: Tensor<'g>) -> Tensor<'g> {
        self.zip(Map::Equal, other)
    }

    /// The larger of the two; NaN if either is NaN.
    pub fn maximum(self, other: Tensor<'g>) -> Tensor<'g> {
        self.zip(Map::Maximum, other)
    }

    /// The smaller of the two; NaN if either is NaN.
    pub fn minimum(self, other: Tensor<'g>) -> Tensor<'g> {
        self.zip(Map::Minimum, other)
    }

    /// Angle of the point (`x`, self) in all quadrants; it has no gradient at the origin.
    pub fn arctangent(self, x: Tensor<'g>) -> Tensor<'g> {
        self.zip(Map::Arctangent, x)
    }

    /// Limited to `[low, high]`; the gradient is zero outside and unchanged at the bounds.
    pub fn clamp(self, low: f64, high: f64) -> Tensor<'g> {
        self.maximum(self.graph.fill(low, [1])).minimum(self.graph.fill(high, [1]))
    }

    /// `yes` where this tensor is not 0, else `no`.
    pub fn select(self, yes: Tensor<'g>, no: Tensor<'g>) -> Tensor<'g> {
        self.same_graph(&yes);
        self.same_graph(&no);
        let (condition, first, second) = (self.shape(), yes.shape(), no.shape());
        let shape = condition.broadcast(&first).and_then(|shape| shape.broadcast(&second));
        let Some(shape) = shape else {
            panic!("select: shapes {condition}, {first} and {second} do not broadcast");
        };
        let operands = [self, yes, no].map(|operand| operand.broadcast_to(shape.clone()).node);
        self.graph.add(Op::Map(Map::Select), &operands, shape)
    }

    /// x².
    pub fn square(self) -> Tensor<'g> {
        self * self
    }
}

macro_rules! unary {
    ($($(#[$meta:meta])* $name:ident => $map:ident;)*) => {
        impl<'g> Tensor<'g> {
            $($(#[$meta])* pub fn $name(self) -> Tensor<'g> { self.map(Map::$map) })*
        }
    };
}
unary! {
    /// |x|.
    abs => Absolute;
    /// eˣ.
    exp => Exp;
    /// Natural logarithm.
    log => Log;
    /// √x.
    sqrt => Sqrt;
    /// 1/x.
    reciprocal => Reciprocal;
    /// Hyperbolic tangent.
    tanh => Tanh;
    /// Error function.
    erf => Erf;
    /// Sine.
    sin => Sin;
    /// Cosine.
    cos => Cos;
    /// 1/(1 + e⁻ˣ).
    sigmoid => Sigmoid;
    /// log(1 + eˣ), x itself above 20.
    softplus => Softplus;
    /// x·Φ(x), the exact form.
    gelu => Gelu;
    /// x·sigmoid(x).
    silu => Silu;
}

impl<'g> Neg for Tensor<'g> {
    type Output = Tensor<'g>;
    fn neg(self) -> Tensor<'g> {
        self.map(Map::Negate)
    }
}

macro_rules! operator {
    ($($operator:ident $method:ident $map:ident;)*) => {$(
        impl<'g> $operator for Tensor<'g> {
            type Output = Tensor<'g>;
            fn $method(self, other: Tensor<'g>) -> Tensor<'g> { self.zip(Map::$map, other) }
        }
        impl<'g> $operator<f64> for Tensor<'g> {
            type Output = Tensor<'g>;
            fn $method(self, other: f64) -> Tensor<'g> { self.zip(Map::$map, self.graph.fill(other, [])) }
        }
        impl<'g> $operator<Tensor<'g>> for f64 {
            type Output = Tensor<'g>;
            fn $method(self, other: Tensor<'g>) -> Tensor<'g> { other.graph.fill(self, []).zip(Map::$map, other) }
        }
    )*};
}
operator! { Add add Add; Sub sub Subtract; Mul mul Multiply; Div div Divide; }
