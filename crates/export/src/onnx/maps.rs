//! Elementwise functions in standard operators.

use super::builder::Builder;
use super::schema::{BOOL, FLOAT};
use lamo::tensor::Map;
use std::f64::consts::{FRAC_PI_2, PI, SQRT_2};

/// The result's name; `None` where standard operators have no such function.
pub(crate) fn map(builder: &mut Builder, map: Map, operands: &[&str]) -> Option<String> {
    let first = operands[0];
    let plain = match map {
        Map::Copy => return Some(first.to_owned()),
        Map::Negate => "Neg",
        Map::Absolute => "Abs",
        Map::Sign => "Sign",
        Map::Exp => "Exp",
        Map::Log => "Log",
        Map::Sqrt => "Sqrt",
        Map::Reciprocal => "Reciprocal",
        Map::Tanh => "Tanh",
        Map::Erf => "Erf",
        Map::Sin => "Sin",
        Map::Cos => "Cos",
        Map::Sigmoid => "Sigmoid",
        Map::Softplus => "Softplus",
        Map::Add => "Add",
        Map::Subtract => "Sub",
        Map::Multiply => "Mul",
        Map::Divide => "Div",
        Map::Maximum => "Max",
        Map::Minimum => "Min",
        Map::Gelu => return Some(gelu(builder, first)),
        Map::Silu => {
            let gate = builder.op("Sigmoid", &[first], &[]);
            return Some(builder.op("Mul", &[first, &gate], &[]));
        }
        Map::Arctangent => return Some(arctangent(builder, first, operands[1])),
        Map::Less | Map::Equal => {
            let claim = builder.op(if map == Map::Less { "Less" } else { "Equal" }, operands, &[]);
            return Some(builder.cast(&claim, FLOAT));
        }
        Map::Select => {
            let claim = builder.cast(first, BOOL);
            return Some(builder.op("Where", &[&claim, operands[1], operands[2]], &[]));
        }
        Map::SoftplusDerivative | Map::GeluDerivative | Map::SiluDerivative | Map::Philox => return None,
    };
    Some(builder.op(plain, operands, &[]))
}

/// x (1 + erf(x/√2)) / 2, in the form that runtimes know as one operator.
fn gelu(builder: &mut Builder, value: &str) -> String {
    let [root, one, half] = [SQRT_2, 1.0, 0.5].map(|number| builder.number(number));
    let scaled = builder.op("Div", &[value, &root], &[]);
    let error = builder.op("Erf", &[&scaled], &[]);
    let sum = builder.op("Add", &[&error, &one], &[]);
    let product = builder.op("Mul", &[value, &sum], &[]);
    builder.op("Mul", &[&product, &half], &[])
}

/// The angle of (x, y) from the arctangent of y/x, by quadrants.
fn arctangent(builder: &mut Builder, y: &str, x: &str) -> String {
    let [zero, half, whole] = [0.0, FRAC_PI_2, PI].map(|number| builder.number(number));
    let ratio = builder.op("Div", &[y, x], &[]);
    let right = builder.op("Atan", &[&ratio], &[]);
    let below = builder.op("Less", &[y, &zero], &[]);
    let minus = builder.op("Neg", &[&whole], &[]);
    let turn = builder.op("Where", &[&below, &minus, &whole], &[]);
    let left = builder.op("Add", &[&right, &turn], &[]);
    let sign = builder.op("Sign", &[y], &[]);
    let upright = builder.op("Mul", &[&sign, &half], &[]);
    let is_left = builder.op("Less", &[x, &zero], &[]);
    let is_upright = builder.op("Equal", &[x, &zero], &[]);
    let angle = builder.op("Where", &[&is_left, &left, &right], &[]);
    builder.op("Where", &[&is_upright, &upright, &angle], &[])
}
