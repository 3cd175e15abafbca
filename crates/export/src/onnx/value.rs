//! A value of the ONNX graph: its name, and the axes along which it is still to be repeated.
//!
//! ONNX operators broadcast as NumPy's do, so a repetition is written only where an operator needs all elements.

use super::builder::Builder;
use crate::plan::Extent;

/// `stored` is what the value of this name has; an axis of extent 1 there may be longer in `dims`.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) stored: Vec<Extent>,
    pub(crate) dims: Vec<Extent>,
}

impl Value {
    /// A value with all its elements.
    pub(crate) fn whole(name: String, dims: &[Extent]) -> Value {
        Value { name, stored: dims.to_vec(), dims: dims.to_vec() }
    }

    /// Whether an axis is still to be repeated.
    pub(crate) fn is_short(&self, axis: usize) -> bool {
        self.stored[axis] != self.dims[axis]
    }

    /// The result of an operator that broadcasts.
    pub(crate) fn broadcast(name: String, operands: &[&Value], dims: &[Extent]) -> Value {
        let stored = (0..dims.len()).map(|axis| {
            let longest = operands.iter().map(|operand| operand.stored[axis]).find(|&extent| extent != Extent::ONE);
            longest.unwrap_or(Extent::ONE)
        });
        Value { name, stored: stored.collect(), dims: dims.to_vec() }
    }
}

/// A shape with -1 for the axis that grows with the batch.
pub(crate) fn shape(dims: &[Extent]) -> Vec<i64> {
    let extent = |extent: &Extent| match *extent {
        Extent::Fixed(extent) => extent as i64,
        Extent::Samples(_) => -1,
    };
    dims.iter().map(extent).collect()
}

/// The name of the value with the elements of the axes for which `wanted` holds.
pub(crate) fn repeated(builder: &mut Builder, value: &Value, batch: &str, wanted: impl Fn(usize) -> bool) -> Value {
    let short: Vec<usize> = (0..value.dims.len()).filter(|&axis| value.is_short(axis) && wanted(axis)).collect();
    if short.is_empty() {
        return value.clone();
    }
    let mut parts: Vec<String> = Vec::new();
    let mut numbers: Vec<i64> = Vec::new();
    for (axis, extent) in value.dims.iter().enumerate() {
        match (short.contains(&axis), *extent) {
            (false, _) => numbers.push(1), // stays as it is
            (true, Extent::Fixed(extent)) => numbers.push(extent as i64),
            (true, Extent::Samples(times)) => {
                if !numbers.is_empty() {
                    parts.push(builder.ints(&std::mem::take(&mut numbers)));
                }
                let times = builder.ints(&[times as i64]);
                parts.push(builder.op("Mul", &[batch, &times], &[]));
            }
        }
    }
    if !numbers.is_empty() {
        parts.push(builder.ints(&numbers));
    }
    let target = match &parts[..] {
        [only] => only.clone(),
        parts => {
            let names: Vec<&str> = parts.iter().map(String::as_str).collect();
            builder.op("Concat", &names, &[super::schema::AttributeProto::int("axis", 0)])
        }
    };
    let name = builder.op("Expand", &[&value.name, &target], &[]);
    let stored =
        (0..value.dims.len()).map(|axis| if short.contains(&axis) { value.dims[axis] } else { value.stored[axis] });
    Value { name, stored: stored.collect(), dims: value.dims.clone() }
}
