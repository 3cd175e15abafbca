//! Numbers of a tensor in JSON: in one array, row by row, or in arrays that are nested as the shape of the tensor.
//!
//! The shape may stand behind the data, so the nesting is recorded while the numbers are read and compared afterwards.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Characters of a text that a sentence quotes.
const QUOTED: usize = 40;

/// The numbers, and the arrays that they stand in.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    values: Vec<f64>,
    /// Extents of the first array at each depth, the outermost first.
    nesting: Vec<usize>,
    /// What differs from that nesting.
    uneven: Option<String>,
    /// The first boolean.
    truth: Option<bool>,
    /// The first value that is neither a number nor a boolean.
    other: Option<String>,
}

impl Numbers {
    /// The numbers of a shape, in the order of its axes.
    pub(super) fn fitting(self, shape: &[usize], booleans: bool) -> Result<Vec<f64>, String> {
        let Numbers { values, nesting, uneven, truth, other } = self;
        if let Some(other) = other {
            return Err(format!("expected numbers, found {other}; send finite numbers, there is no NaN in JSON"));
        }
        if let Some(truth) = truth.filter(|_| !booleans) {
            return Err(format!("expected numbers, found {truth}; send it as BOOL"));
        }
        let advice = "nest the data as the shape says, or send all numbers in one array";
        let nested = |found: String| format!("expected data nested as shape {shape:?}, found {found}; {advice}");
        if let Some(uneven) = uneven {
            return Err(nested(uneven));
        }
        if nesting.len() != 1 && nesting != shape {
            return Err(nested(if nesting.is_empty() { "one number".into() } else { format!("{nesting:?}") }));
        }
        let count = shape.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent));
        if count != Some(values.len()) {
            let found = values.len();
            return Err(format!(
                "expected the numbers of shape {shape:?}, found {found}; correct the shape or the data"
            ));
        }
        Ok(values)
    }

    fn add(&mut self, depth: usize, number: f64) {
        if depth != self.nesting.len() {
            self.mixed();
        }
        self.values.push(number);
    }

    fn mixed(&mut self) {
        self.uneven.get_or_insert_with(|| "numbers beside arrays".to_owned());
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Numbers, D::Error> {
        let mut numbers = Numbers::default();
        Nested { numbers: &mut numbers, depth: 0 }.deserialize(deserializer)?;
        Ok(numbers)
    }
}

/// Adds a number, or all numbers of an array.
struct Nested<'a> {
    numbers: &'a mut Numbers,
    /// Arrays that it stands in.
    depth: usize,
}

impl Nested<'_> {
    fn other(self, found: impl FnOnce() -> String) {
        self.numbers.other.get_or_insert_with(found);
    }
}

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
        self.numbers.add(self.depth, number);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        let near = number as f64;
        // Toward zero: the greatest INT64 and UINT64 would round up out of their range.
        let rounded_up = number >> f64::MANTISSA_DIGITS != 0 && near as u128 > u128::from(number);
        self.numbers.add(self.depth, if rounded_up { near.next_down() } else { near });
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.numbers.add(self.depth, number as f64);
        Ok(())
    }

    fn visit_bool<E>(self, truth: bool) -> Result<(), E> {
        self.numbers.truth.get_or_insert(truth);
        self.numbers.add(self.depth, f64::from(u8::from(truth)));
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.other(|| "null".to_owned());
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.other(|| format!("{:?}", text.chars().take(QUOTED).collect::<String>()));
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.other(|| "an object".to_owned());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        let Nested { numbers, depth } = self;
        let first = depth == numbers.nesting.len();
        if first {
            if !numbers.values.is_empty() {
                numbers.mixed(); // the numbers so far are less deep
            }
            numbers.nesting.push(0);
        }
        let mut extent = 0;
        while sequence.next_element_seed(Nested { numbers: &mut *numbers, depth: depth + 1 })?.is_some() {
            extent += 1;
        }
        let known = numbers.nesting[depth];
        if first {
            numbers.nesting[depth] = extent;
        } else if known != extent {
            let found = || format!("arrays of {known} and of {extent} elements at depth {}", depth + 1);
            numbers.uneven.get_or_insert_with(found);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitting(data: &str, shape: &[usize]) -> Result<Vec<f64>, String> {
        serde_json::from_str::<Numbers>(data).map_err(|error| error.to_string())?.fitting(shape, false)
    }

    #[test]
    fn data_are_flat_or_nested_as_their_shape() {
        for data in ["[1,2,3,4,5,6]", "[[1,2],[3,4],[5,6]]"] {
            assert_eq!(fitting(data, &[3, 2]).unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{data}");
        }
        assert_eq!(fitting("[[[1,2]]]", &[1, 1, 2]).unwrap(), [1.0, 2.0]);
        assert_eq!(fitting("7", &[]).unwrap(), [7.0]);
        assert!(fitting("[]", &[0, 3]).unwrap().is_empty());
    }

    #[test]
    fn data_that_are_nested_in_another_way_are_refused() {
        for (data, found) in [
            ("[[1,2,3],[4,5,6]]", "found [2, 3]"),
            ("[[[1,2],[3,4],[5,6]]]", "found [1, 3, 2]"),
            ("[[1],[2],[3],[4],[5],[6]]", "found [6, 1]"),
            ("[[1,2],[3,4],[5]]", "found arrays of 2 and of 1 elements at depth 2"),
            ("[[1,2],[3,4,5],[6]]", "found arrays of 2 and of 3 elements at depth 2"),
            ("[[1,2],3,4,5,6]", "found numbers beside arrays"),
            ("[1,2,[3,4],5,6]", "found numbers beside arrays"),
            ("[1,2,3,4,5,[6]]", "found numbers beside arrays"),
            ("[[],1,2,3,4,5,6]", "found numbers beside arrays"),
            ("[[1,2],[3,4],[[5],[6]]]", "found numbers beside arrays"),
            ("[[[]],[1]]", "found numbers beside arrays"),
            ("[1,2,3,4,5]", "found 5"),
            ("6", "found one number"),
            ("[[1,2],[3,4],[5,null]]", "found null"),
        ] {
            let told = fitting(data, &[3, 2]).unwrap_err();
            assert!(told.contains(found) && told.contains(';'), "{data}: {told}");
        }
    }
}
