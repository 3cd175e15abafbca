//! A list of numbers in the type its file has: what is read from one file can be written to another without rounding.

use crate::data::formats::ElementKind;
use crate::files::memory;
use std::io::{self, Read};

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant one.
    Little,
    /// The most significant one.
    Big,
}

/// Numbers of one type.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the names say it
pub enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

/// The same expression for the vector of any type.
macro_rules! each {
    ($numbers:expr, $values:ident => $result:expr) => {
        match $numbers {
            Numbers::F32($values) => $result,
            Numbers::F64($values) => $result,
            Numbers::I8($values) => $result,
            Numbers::I16($values) => $result,
            Numbers::I32($values) => $result,
            Numbers::I64($values) => $result,
            Numbers::U8($values) => $result,
            Numbers::U16($values) => $result,
            Numbers::U32($values) => $result,
            Numbers::U64($values) => $result,
        }
    };
}

/// Reads numbers of one type, a buffer at a time.
macro_rules! read_numbers {
    ($type:ty, $source:expr, $count:expr, $order:expr) => {{
        const SIZE: usize = size_of::<$type>();
        let mut values: Vec<$type> = memory::reserve($count)?;
        let mut buffer = [0_u8; 8192];
        while values.len() < $count {
            let some = &mut buffer[..($count - values.len()).min(8192 / SIZE) * SIZE];
            $source.read_exact(some)?;
            values.extend(some.chunks_exact(SIZE).map(|bytes| {
                let mut number = [0; SIZE];
                number.copy_from_slice(bytes);
                if $order == ByteOrder::Little {
                    <$type>::from_le_bytes(number)
                } else {
                    <$type>::from_be_bytes(number)
                }
            }));
        }
        values
    }};
}

impl Numbers {
    /// An empty list with room for `count` numbers of a type.
    pub(super) fn with_room(kind: ElementKind, count: usize) -> io::Result<Numbers> {
        Ok(match kind {
            ElementKind::F32 => Numbers::F32(memory::reserve(count)?),
            ElementKind::I8 => Numbers::I8(memory::reserve(count)?),
            ElementKind::I16 => Numbers::I16(memory::reserve(count)?),
            ElementKind::I32 => Numbers::I32(memory::reserve(count)?),
            ElementKind::I64 => Numbers::I64(memory::reserve(count)?),
            ElementKind::U8 => Numbers::U8(memory::reserve(count)?),
            ElementKind::U16 => Numbers::U16(memory::reserve(count)?),
            ElementKind::U32 => Numbers::U32(memory::reserve(count)?),
            ElementKind::U64 => Numbers::U64(memory::reserve(count)?),
            _ => Numbers::F64(memory::reserve(count)?),
        })
    }

    /// `count` numbers from the bytes of a file.
    pub(super) fn read(
        source: &mut dyn Read,
        kind: ElementKind,
        count: usize,
        order: ByteOrder,
    ) -> io::Result<Numbers> {
        Ok(match kind {
            ElementKind::F32 => Numbers::F32(read_numbers!(f32, source, count, order)),
            ElementKind::I8 => Numbers::I8(read_numbers!(i8, source, count, order)),
            ElementKind::I16 => Numbers::I16(read_numbers!(i16, source, count, order)),
            ElementKind::I32 => Numbers::I32(read_numbers!(i32, source, count, order)),
            ElementKind::I64 => Numbers::I64(read_numbers!(i64, source, count, order)),
            ElementKind::U8 => Numbers::U8(read_numbers!(u8, source, count, order)),
            ElementKind::U16 => Numbers::U16(read_numbers!(u16, source, count, order)),
            ElementKind::U32 => Numbers::U32(read_numbers!(u32, source, count, order)),
            ElementKind::U64 => Numbers::U64(read_numbers!(u64, source, count, order)),
            _ => Numbers::F64(read_numbers!(f64, source, count, order)),
        })
    }

    /// Adds the number that a word spells; `None` where it spells none of this type.
    pub(super) fn push_word(&mut self, word: &str) -> Option<()> {
        each!(self, values => values.push(word.parse().ok()?));
        Some(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        each!(self, values => values.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their type.
    pub fn kind(&self) -> ElementKind {
        match self {
            Numbers::F32(_) => ElementKind::F32,
            Numbers::F64(_) => ElementKind::F64,
            Numbers::I8(_) => ElementKind::I8,
            Numbers::I16(_) => ElementKind::I16,
            Numbers::I32(_) => ElementKind::I32,
            Numbers::I64(_) => ElementKind::I64,
            Numbers::U8(_) => ElementKind::U8,
            Numbers::U16(_) => ElementKind::U16,
            Numbers::U32(_) => ElementKind::U32,
            Numbers::U64(_) => ElementKind::U64,
        }
    }

    /// One of them, rounded above 2⁵³.
    #[allow(clippy::unnecessary_cast)] // the same line for every type
    pub fn at(&self, index: usize) -> f64 {
        each!(self, values => values[index] as f64)
    }

    /// All of them, rounded above 2⁵³.
    #[allow(clippy::unnecessary_cast)]
    pub fn to_f64(&self) -> io::Result<Vec<f64>> {
        let mut all = memory::reserve(self.len())?;
        each!(self, values => all.extend(values.iter().map(|&value| value as f64)));
        Ok(all)
    }

    /// Whole numbers that are not negative; `None` where one is something else.
    #[allow(clippy::unnecessary_cast)]
    pub(super) fn to_counts(&self) -> Option<Vec<u64>> {
        let mut counts = memory::reserve(self.len()).ok()?;
        each!(self, values => for &value in values {
            let count = value as i128;
            (count >= 0 && count <= i128::from(u64::MAX) && count as f64 == value as f64).then_some(())?;
            counts.push(count as u64);
        });
        Some(counts)
    }

    /// Their bytes in a byte order.
    pub(super) fn bytes(&self, order: ByteOrder) -> io::Result<Vec<u8>> {
        let mut bytes = memory::reserve(self.len() * self.kind().bytes())?;
        each!(self, values => for value in values {
            match order {
                ByteOrder::Little => bytes.extend(value.to_le_bytes()),
                ByteOrder::Big => bytes.extend(value.to_be_bytes()),
            }
        });
        Ok(bytes)
    }

    /// One of them as text that reads back as the same number.
    pub(super) fn word(&self, index: usize) -> String {
        match self {
            Numbers::F32(values) => spelled(f64::from(values[index]), values[index].to_string()),
            Numbers::F64(values) => spelled(values[index], values[index].to_string()),
            other => each!(other, values => values[index].to_string()),
        }
    }

    /// The groups of `width` numbers with these indices.
    pub(super) fn select(&self, width: usize, indices: &[usize]) -> io::Result<Numbers> {
        let mut chosen = Numbers::with_room(self.kind(), width * indices.len())?;
        macro_rules! copy {
            ($($kind:ident),*) => {
                match (self, &mut chosen) {
                    $((Numbers::$kind(from), Numbers::$kind(to)) => {
                        for &index in indices {
                            to.extend_from_slice(&from[index * width..][..width]);
                        }
                    })*
                    _ => unreachable!("both lists have one type"),
                }
            };
        }
        copy!(F32, F64, I8, I16, I32, I64, U8, U16, U32, U64);
        Ok(chosen)
    }

    /// Adds the numbers of another list; `None` where it has another type.
    pub(super) fn append(&mut self, other: Numbers) -> Option<()> {
        macro_rules! join {
            ($($kind:ident),*) => {
                match (self, other) {
                    $((Numbers::$kind(to), Numbers::$kind(from)) => {
                        to.try_reserve(from.len()).ok()?;
                        to.extend(from);
                    })*
                    _ => return None,
                }
            };
        }
        join!(F32, F64, I8, I16, I32, I64, U8, U16, U32, U64);
        Some(())
    }
}

/// A decimal fraction of very many digits is written with an exponent.
fn spelled(value: f64, digits: String) -> String {
    if digits.len() > 24 { format!("{value:e}") } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_from_their_bytes_and_from_their_words() {
        let lists = [
            Numbers::F32(vec![0.1, -1e30, 1e-40, f32::MAX]),
            Numbers::F64(vec![0.1, -1e300, 5e-324, 1.0 / 3.0]),
            Numbers::I8(vec![-128, 127, 0, 1]),
            Numbers::I16(vec![-32768, 1, 2, 3]),
            Numbers::I32(vec![i32::MIN, i32::MAX, 0, -1]),
            Numbers::I64(vec![i64::MIN, i64::MAX, 0, -1]),
            Numbers::U8(vec![0, 255, 1, 2]),
            Numbers::U16(vec![0, 65535, 1, 2]),
            Numbers::U32(vec![0, u32::MAX, 1, 2]),
            Numbers::U64(vec![0, u64::MAX, 1, 2]),
        ];
        for list in lists {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let bytes = list.bytes(order).unwrap();
                assert_eq!(Numbers::read(&mut &bytes[..], list.kind(), 4, order).unwrap(), list);
                assert!(Numbers::read(&mut &bytes[1..], list.kind(), 4, order).is_err());
            }
            let mut back = Numbers::with_room(list.kind(), 4).unwrap();
            (0..4).for_each(|index| back.push_word(&list.word(index)).unwrap());
            assert_eq!(back, list);
            assert_eq!(list.select(2, &[1, 0]).unwrap().at(0), list.at(2));
        }
        assert_eq!(Numbers::I32(vec![3, -1]).to_counts(), None);
        assert_eq!(Numbers::F64(vec![3.0, 7.0]).to_counts(), Some(vec![3, 7]));
        assert_eq!(Numbers::F64(vec![f64::NAN]).to_counts(), None);
        assert_eq!(Numbers::U8(vec![]).push_word("256"), None);
    }
}
