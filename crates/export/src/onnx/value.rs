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

/// Names of the numbers that a run decides, each of shape `[1]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Of samples.
    pub(crate) batch: String,
    /// Of points of a sample; empty where it is fixed.
    pub(crate) points: String,
}

impl Counts {
    /// The name of an extent, `[1]`.
    pub(crate) fn of(&self, builder: &mut Builder, extent: Extent) -> String {
        let (count, times) = match extent {
            Extent::Fixed(extent) => return builder.ints(&[extent as i64]),
            Extent::Samples(times) => (self.batch.clone(), times),
            Extent::Points(times) => (self.points.clone(), times),
            Extent::Both(times) => (builder.op("Mul", &[&self.batch, &self.points], &[]), times),
        };
        let times = builder.ints(&[times as i64]);
        builder.op("Mul", &[&count, &times], &[])
    }

    /// The name of a list of extents.
    pub(crate) fn list(&self, builder: &mut Builder, extents: &[Extent]) -> String {
        let is_fixed = |extent: &Extent| matches!(extent, Extent::Fixed(_));
        let groups = extents.chunk_by(|one, two| is_fixed(one) && is_fixed(two));
        let part = |group: &[Extent]| match group {
            [extent] => self.of(builder, *extent),
            fixed => builder.ints(&fixed.iter().map(|extent| extent.of_one() as i64).collect::<Vec<_>>()),
        };
        let parts: Vec<String> = groups.map(part).collect();
        match &parts[..] {
            [only] => only.clone(),
            parts => {
                let names: Vec<&str> = parts.iter().map(String::as_str).collect();
                builder.op("Concat", &names, &[super::schema::AttributeProto::int("axis", 0)])
            }
        }
    }

    /// The same elements under other extents.
    pub(crate) fn reshape(&self, builder: &mut Builder, value: &str, dims: &[Extent]) -> String {
        let is_free = |extent: &&Extent| !matches!(extent, Extent::Fixed(_));
        if dims.iter().filter(is_free).count() <= 1 {
            return builder.reshape(value, &shape(dims));
        }
        let target = self.list(builder, dims);
        builder.op("Reshape", &[value, &target], &[])
    }
}

/// A shape with -1 for the axis that a run decides.
pub(crate) fn shape(dims: &[Extent]) -> Vec<i64> {
    let extent = |extent: &Extent| match *extent {
        Extent::Fixed(extent) => extent as i64,
        _ => -1,
    };
    dims.iter().map(extent).collect()
}

/// The name of the value with the elements of the axes for which `wanted` holds.
pub(crate) fn repeated(builder: &mut Builder, value: &Value, counts: &Counts, wanted: impl Fn(usize) -> bool) -> Value {
    let short = |axis: usize| value.is_short(axis) && wanted(axis);
    let axes = 0..value.dims.len();
    if !axes.clone().any(short) {
        return value.clone();
    }
    let extents: Vec<Extent> =
        axes.clone().map(|axis| if short(axis) { value.dims[axis] } else { Extent::ONE }).collect(); // 1 stays as it is
    let target = counts.list(builder, &extents);
    let name = builder.op("Expand", &[&value.name, &target], &[]);
    let stored = axes.map(|axis| if short(axis) { value.dims[axis] } else { value.stored[axis] });
    Value { name, stored: stored.collect(), dims: value.dims.clone() }
}
