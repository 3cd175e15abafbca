//! Writing MAT-files of version 5: plain variables of real numbers, which MATLAB, SciPy and Octave read.

use crate::data::formats::Named;
use std::io::{self, ErrorKind, Write};

const INT8: u32 = 1;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const SINGLE: u32 = 7;
const DOUBLE: u32 = 9;
const MATRIX: u32 = 14;
/// Bytes of a variable at most: MATLAB reads no larger ones from files of this version.
const LARGEST: usize = i32::MAX as usize;

/// The type of a variable's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Real {
    Single,
    Double,
}

impl Real {
    /// MATLAB's class, the type of the elements, and their bytes.
    fn codes(self) -> (u32, u32, usize) {
        match self {
            Real::Single => (7, SINGLE, 4),
            Real::Double => (6, DOUBLE, 8),
        }
    }
}

/// The first 128 bytes of a file: a text, version 1, and the order of bytes.
pub(crate) fn header() -> Vec<u8> {
    let text = format!("MATLAB 5.0 MAT-file, written by lamo {}", env!("CARGO_PKG_VERSION"));
    let mut bytes = text.into_bytes();
    bytes.resize(124, b' ');
    bytes.extend([0, 1, b'I', b'M']);
    bytes
}

/// Writes one variable. `values` are in the order of the file: the first axis runs fastest.
pub(crate) fn variable(
    out: &mut dyn Write,
    name: &str,
    shape: &[usize],
    real: Real,
    values: impl Iterator<Item = f64>,
) -> io::Result<()> {
    // MATLAB has no arrays of fewer than two axes.
    let shape = match *shape {
        [] => vec![1, 1],
        [length] => vec![1, length],
        _ => shape.to_vec(),
    };
    let (class, kind, size) = real.codes();
    let count = shape.iter().try_fold(1, |count: usize, &extent| count.checked_mul(extent));
    let bytes = count.and_then(|count| count.checked_mul(size)).filter(|&bytes| bytes <= LARGEST);
    let too_large = || {
        let sentence = format!("variable {name} of shape {shape:?} has more than the 2 GB that MAT v5 allows");
        io::Error::new(ErrorKind::InvalidInput, sentence)
    };
    let bytes = bytes.ok_or_else(too_large)?;
    let extents: Vec<u8> = shape.iter().flat_map(|&extent| (extent as i32).to_le_bytes()).collect();
    let parts = [
        part(UINT32, &[class.to_le_bytes(), [0; 4]].concat()),
        part(INT32, &extents),
        part(INT8, name.as_bytes()),
        tag(kind, bytes),
    ]
    .concat();
    let padding = bytes.next_multiple_of(8) - bytes;
    out.write_all(&tag(MATRIX, parts.len() + bytes + padding))?;
    out.write_all(&parts)?;
    for value in values {
        match real {
            Real::Single => out.write_all(&(value as f32).to_le_bytes())?,
            Real::Double => out.write_all(&value.to_le_bytes())?,
        }
    }
    out.write_all(&[0; 8][..padding])
}

fn tag(kind: u32, bytes: usize) -> Vec<u8> {
    [kind.to_le_bytes(), (bytes as u32).to_le_bytes()].concat()
}

/// A part of a variable, filled up to a multiple of 8 bytes.
fn part(kind: u32, bytes: &[u8]) -> Vec<u8> {
    let mut part = [tag(kind, bytes.len()), bytes.to_vec()].concat();
    part.resize(part.len().next_multiple_of(8), 0);
    part
}

/// A file of float32 arrays.
pub(in crate::data::formats) fn write(arrays: &[Named]) -> Result<Vec<u8>, String> {
    let mut bytes = header();
    for Named { name, shape, values } in arrays {
        let valid = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if !name.starts_with(|letter: char| letter.is_ascii_alphabetic()) || !name.chars().all(valid) || name.len() > 63
        {
            return Err(format!("MATLAB needs a name of letters, digits and underscores, found {name:?}"));
        }
        let in_order = (0..values.len()).map(|place| f64::from(values[c_order(place, shape)]));
        variable(&mut bytes, name, shape, Real::Single, in_order).map_err(|error| error.to_string())?;
    }
    Ok(bytes)
}

/// The place in C order of element number `place`, counted with the first axis fastest.
fn c_order(place: usize, shape: &[usize]) -> usize {
    let (mut rest, mut stride, mut found) = (place, shape.iter().product::<usize>(), 0);
    for &extent in shape {
        stride /= extent;
        found += rest % extent * stride;
        rest /= extent;
    }
    found
}
