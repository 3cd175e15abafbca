//! Tensors of a request: little-endian bytes behind the JSON, or numbers in it (see [`super::numbers`]).

use super::numbers::Numbers;
use crate::failure::Failure;
use lamo::data::formats::Named;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

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

/// A type of numbers.
struct Datatype {
    name: &'static str,
    /// Bytes of a number.
    bytes: usize,
    number: fn(&[u8]) -> f64,
    /// Of whole numbers: the least, and the first that is too large. Both are exact.
    range: Option<(f64, f64)>,
}

macro_rules! datatype {
    ($name:literal, $type:ty, $range:expr) => {
        Datatype {
            name: $name,
            bytes: size_of::<$type>(),
            number: |bytes| {
                let mut number = [0; size_of::<$type>()];
                number.copy_from_slice(bytes);
                <$type>::from_le_bytes(number) as f64
            },
            range: $range,
        }
    };
    ($name:literal, whole $type:ty) => {
        datatype!($name, $type, Some((<$type>::MIN as f64, <$type>::MAX as f64 + 1.0)))
    };
}

/// The types that are taken.
const TYPES: &[Datatype] = &[
    datatype!("FP32", f32, None),
    datatype!("FP64", f64, None),
    datatype!("INT8", whole i8),
    datatype!("INT16", whole i16),
    datatype!("INT32", whole i32),
    datatype!("INT64", whole i64),
    datatype!("UINT8", whole u8),
    datatype!("UINT16", whole u16),
    datatype!("UINT32", whole u32),
    datatype!("UINT64", whole u64),
    datatype!("BOOL", u8, Some((0.0, 2.0))),
];

const BOOL: &str = "BOOL";

/// Doubles from here on have no fraction.
const WHOLE: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;

impl Datatype {
    fn find(name: &str) -> Result<&'static Datatype, String> {
        TYPES.iter().find(|known| known.name == name).ok_or_else(|| {
            let known: Vec<_> = TYPES.iter().map(|known| known.name).collect();
            format!("expected a datatype {}, found {name}; convert it to FP32", known.join(", "))
        })
    }

    /// Refuses numbers that the type does not have.
    fn check(&self, numbers: &[f64]) -> Result<(), String> {
        let Some((least, beyond)) = self.range else { return Ok(()) };
        let whole = |number: f64| number as i64 as f64 == number || number.abs() >= WHOLE;
        let fits = |number: f64| least <= number && number < beyond && whole(number);
        let Some(other) = numbers.iter().find(|number| !fits(**number)) else { return Ok(()) };
        let name = self.name;
        let expected = match name {
            BOOL => "true or false".to_owned(),
            _ => format!("whole numbers from {} to {}", least as i128, beyond as i128 - 1),
        };
        Err(format!("expected {expected}, as {name} has, found {other}; send it as FP32"))
    }
}

/// Where the bytes of binary tensors stand.
pub(super) struct Behind<'a>(pub(super) &'a [u8]);

impl Input {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The numbers in single precision, in the shape that the request gives them.
    pub(super) fn read(self, behind: &mut Behind) -> Result<Named, Failure> {
        let name = self.name.clone();
        self.values(behind).map_err(|sentence| Failure::bad(format!("input `{name}`: {sentence}")))
    }

    fn values(self, behind: &mut Behind) -> Result<Named, String> {
        let Input { name, shape, datatype, parameters, data } = self;
        let datatype = Datatype::find(&datatype)?;
        let numbers = match (data, parameters.and_then(|parameters| parameters.binary_data_size)) {
            (Some(numbers), None) => {
                let numbers = numbers.fitting(&shape, datatype.name == BOOL)?;
                datatype.check(&numbers)?;
                numbers
            }
            (None, Some(size)) => behind.take(size, &shape, datatype)?,
            (Some(_), Some(_)) => return Err("expected data or binary_data_size, found both; send one of them".into()),
            (None, None) => {
                return Err("expected data or the parameter binary_data_size, found neither; send one of them".into());
            }
        };
        // As a file of doubles would be refused.
        if let Some(beyond) = numbers.iter().find(|number| number.is_finite() && number.abs() > f64::from(f32::MAX)) {
            let expected = "expected values up to 3.4e38, as float32 has";
            return Err(format!("{expected}, found {beyond:e}; give it in another unit"));
        }
        let values = numbers.into_iter().map(|number| number as f32).collect();
        Ok(Named { name, shape, values })
    }
}

impl Behind<'_> {
    /// The next numbers.
    fn take(&mut self, size: usize, shape: &[usize], datatype: &Datatype) -> Result<Vec<f64>, String> {
        let Some((own, rest)) = self.0.split_at_checked(size) else {
            let found = self.0.len();
            return Err(format!(
                "expected {size} bytes behind the JSON, found {found}; send as many as binary_data_size"
            ));
        };
        self.0 = rest;
        let expected = shape.iter().try_fold(datatype.bytes, |bytes, &extent| bytes.checked_mul(extent));
        if expected != Some(size) {
            let name = datatype.name;
            let expected = format!("expected the bytes of shape {shape:?} of {name}");
            return Err(format!("{expected}, found {size}; correct the shape, the datatype or binary_data_size"));
        }
        let numbers: Vec<f64> = own.chunks_exact(datatype.bytes).map(datatype.number).collect();
        if datatype.name == BOOL {
            datatype.check(&numbers)?; // all other bytes are numbers of their type
        }
        Ok(numbers)
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
            (r#"{"name":"a","shape":[1],"datatype":"BYTES","data":["x"]}"#, &[], "found BYTES"),
            (r#"{"name":"a","shape":[1],"datatype":"FP32","data":["x"]}"#, &[], r#"expected numbers, found "x""#),
            (r#"{"name":"a","shape":[1],"datatype":"FP32","data":[{"x":[1]}]}"#, &[], "found an object"),
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

    #[test]
    fn a_number_that_its_datatype_does_not_have_is_refused() {
        let told = |datatype: &str, data: &str| {
            read(&format!(r#"{{"data":[{data}],"name":"a","shape":[1],"datatype":"{datatype}"}}"#), &[])
        };
        for (datatype, least, most, below, above) in [
            ("INT8", "-128", "127", "-129", "128"),
            ("UINT8", "0", "255", "-1", "256"),
            ("INT16", "-32768", "32767.0", "-32769", "32768"),
            ("UINT16", "0", "65535", "-1", "65536"),
            ("INT32", "-2147483648", "2147483647", "-2147483649", "2147483648"),
            ("UINT32", "0", "4294967295", "-1", "4294967296"),
            ("INT64", "-9223372036854775808", "9223372036854775807", "-1e19", "9223372036854775808"),
            ("UINT64", "-0", "18446744073709551615", "-1", "18446744073709551616"),
            ("BOOL", "false", "true", "-1", "2"),
            ("BOOL", "0", "1", "-0.39", "1e39"),
        ] {
            for fine in [least, most] {
                assert!(told(datatype, fine).is_ok(), "{datatype} {fine}: {:?}", told(datatype, fine));
            }
            for other in [below, above, "0.5"] {
                let told = told(datatype, other).unwrap_err();
                assert!(
                    told.contains("expected whole") || told.contains("expected true"),
                    "{datatype} {other}: {told}"
                );
            }
        }
        assert_eq!(
            told("INT8", "1000").unwrap_err(),
            "input `a`: expected whole numbers from -128 to 127, as INT8 has, found 1000; send it as FP32"
        );
        assert_eq!(
            told("BOOL", "-0.39").unwrap_err(),
            "input `a`: expected true or false, as BOOL has, found -0.39; send it as FP32"
        );
        assert_eq!(told("FP32", "true").unwrap_err(), "input `a`: expected numbers, found true; send it as BOOL");
        assert!(told("INT64", "9223372036854775808").unwrap_err().contains("to 9223372036854775807"));
        let binary = r#"{"name":"a","shape":[2],"datatype":"BOOL","parameters":{"binary_data_size":2}}"#;
        assert_eq!(read(binary, &[0, 1]).unwrap(), [0.0, 1.0]);
        assert!(read(binary, &[0, 2]).unwrap_err().contains("found 2"));
    }
}
