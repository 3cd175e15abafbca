//! Tensors of a request: numbers in JSON, flat or nested, or little-endian bytes behind it.

use crate::failure::Failure;
use lamo::data::formats::Named;
use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The numbers of a tensor in JSON, whatever arrays they stand in.
#[derive(Debug, Default)]
pub(super) struct Numbers(pub(super) Vec<f64>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Numbers, D::Error> {
        let mut numbers = Vec::new();
        Nested(&mut numbers).deserialize(deserializer)?;
        Ok(Numbers(numbers))
    }
}

/// Adds a number, or all numbers of an array.
struct Nested<'a>(&'a mut Vec<f64>);

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("numbers, or arrays of numbers")
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.0.push(number);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.0.push(number as f64);
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.0.push(number as f64);
        Ok(())
    }

    fn visit_bool<E>(self, truth: bool) -> Result<(), E> {
        self.0.push(f64::from(u8::from(truth)));
        Ok(())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Err(E::custom("expected a number, found null; there is no NaN in JSON"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while sequence.next_element_seed(Nested(self.0))?.is_some() {}
        Ok(())
    }
}

/// Parameters of a tensor.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct TensorParameters {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) binary_data_size: Option<usize>,
    #[serde(default, skip_serializing)]
    pub(super) binary_data: Option<bool>,
}

/// A tensor of a request.
#[derive(Debug, Deserialize)]
pub(super) struct Input {
    name: String,
    #[serde(deserialize_with = "extents")]
    shape: Vec<usize>,
    datatype: String,
    #[serde(default)]
    parameters: Option<TensorParameters>,
    #[serde(default)]
    data: Option<Numbers>,
}

fn extents<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<usize>, D::Error> {
    let shape = Vec::<i64>::deserialize(deserializer)?;
    let extent = |extent: i64| {
        usize::try_from(extent).map_err(|_| D::Error::custom(format!("expected extents of at least 0, found {extent}")))
    };
    shape.into_iter().map(extent).collect()
}

/// Reads numbers of one type: the bytes of each, and its value.
type Reader = (usize, fn(&[u8]) -> f64);

macro_rules! reader {
    ($type:ty) => {
        (size_of::<$type>(), |bytes| {
            let mut number = [0; size_of::<$type>()];
            number.copy_from_slice(bytes);
            <$type>::from_le_bytes(number) as f64
        })
    };
}

/// The types that are taken.
const TYPES: &[(&str, Reader)] = &[
    ("FP32", reader!(f32)),
    ("FP64", reader!(f64)),
    ("INT8", reader!(i8)),
    ("INT16", reader!(i16)),
    ("INT32", reader!(i32)),
    ("INT64", reader!(i64)),
    ("UINT8", reader!(u8)),
    ("UINT16", reader!(u16)),
    ("UINT32", reader!(u32)),
    ("UINT64", reader!(u64)),
    ("BOOL", (1, |bytes| f64::from(bytes[0]))),
];

/// Where the bytes of binary tensors stand.
pub(super) struct Behind<'a>(pub(super) &'a [u8]);

impl Input {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The numbers in single precision, in the shape that the request gives them.
    pub(super) fn read(self, behind: &mut Behind) -> Result<Named, Failure> {
        let Input { name, shape, datatype, parameters, data } = self;
        let bad = |sentence: String| Failure::bad(format!("input `{name}`: {sentence}"));
        let Some((_, (bytes, number))) = TYPES.iter().find(|(known, _)| *known == datatype) else {
            let known: Vec<_> = TYPES.iter().map(|(known, _)| *known).collect();
            return Err(bad(format!("expected a datatype {}, found {datatype}", known.join(", "))));
        };
        let count = shape.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent));
        let expected = |found: usize| bad(format!("expected the numbers of shape {shape:?}, found {found} of them"));
        let numbers: Vec<f64> = match (data, parameters.and_then(|parameters| parameters.binary_data_size)) {
            (Some(Numbers(numbers)), None) => numbers,
            (None, Some(size)) => {
                let Some((own, rest)) = behind.0.split_at_checked(size) else {
                    return Err(bad(format!("expected {size} bytes behind the JSON, found {}", behind.0.len())));
                };
                behind.0 = rest;
                if count.and_then(|count| count.checked_mul(*bytes)) != Some(size) {
                    return Err(bad(format!("expected the bytes of shape {shape:?} of {datatype}, found {size}")));
                }
                own.chunks_exact(*bytes).map(number).collect()
            }
            (Some(_), Some(_)) => return Err(bad("expected data or binary_data_size, found both".into())),
            (None, None) => return Err(bad("expected data or the parameter binary_data_size, found neither".into())),
        };
        if count != Some(numbers.len()) {
            return Err(expected(numbers.len()));
        }
        // As a file of doubles would be refused.
        if let Some(beyond) = numbers.iter().find(|number| number.is_finite() && number.abs() > f64::from(f32::MAX)) {
            return Err(bad(format!("expected values up to 3.4e38, as float32 has, found {beyond:e}")));
        }
        let values = numbers.into_iter().map(|number| number as f32).collect();
        Ok(Named { name: name.clone(), shape, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, behind: &[u8]) -> Result<Vec<f32>, String> {
        let input: Input = serde_json::from_str(text).map_err(|error| error.to_string())?;
        input.read(&mut Behind(behind)).map(|array| array.values).map_err(|failure| failure.sentence)
    }

    #[test]
    fn numbers_are_read_flat_nested_and_from_bytes() {
        let flat = r#"{"name":"a","shape":[2,2],"datatype":"FP32","data":[1,2.5,-3,0.1]}"#;
        let nested = r#"{"name":"a","shape":[2,2],"datatype":"FP64","data":[[1,2.5],[-3,0.1]]}"#;
        assert_eq!(read(flat, &[]).unwrap(), [1.0, 2.5, -3.0, 0.1]);
        assert_eq!(read(nested, &[]).unwrap(), [1.0, 2.5, -3.0, 0.1]);
        let binary = r#"{"name":"a","shape":[2],"datatype":"INT16","parameters":{"binary_data_size":4}}"#;
        assert_eq!(read(binary, &[1, 0, 0xff, 0xff, 9]).unwrap(), [1.0, -1.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused_in_a_sentence() {
        for (text, behind, told) in [
            (r#"{"name":"a","shape":[3],"datatype":"FP32","data":[1,2]}"#, &[][..], "shape [3], found 2"),
            (r#"{"name":"a","shape":[1],"datatype":"BYTES","data":["x"]}"#, &[], "arrays of numbers"),
            (r#"{"name":"a","shape":[1],"datatype":"BF16","data":[1]}"#, &[], "found BF16"),
            (r#"{"name":"a","shape":[1],"datatype":"FP32","data":[null]}"#, &[], "NaN"),
            (r#"{"name":"a","shape":[-1],"datatype":"FP32","data":[1]}"#, &[], "found -1"),
            (r#"{"name":"a","shape":[1],"datatype":"FP32"}"#, &[], "found neither"),
            (r#"{"name":"a","shape":[1],"datatype":"FP64","data":[1e39]}"#, &[], "1e39"),
            (r#"{"name":"a","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}}"#, &[0; 7], "found 7"),
            (r#"{"name":"a","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":4}}"#, &[0; 8], "found 4"),
            (r#"{"name":"a","shape":[4294967296,4294967296],"datatype":"FP32","data":[1]}"#, &[], "found 1"),
        ] {
            let found = read(text, behind).unwrap_err();
            assert!(found.contains(told), "{found}");
        }
    }
}
