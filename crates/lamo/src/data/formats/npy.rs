//! NumPy's npy format, versions 1 to 3 (NEP 1): magic, version, length of the header, a Python dictionary, the numbers.

use super::Named;
use super::array::{ElementKind, Layout};
use super::entry::Entry;
use super::error::Error;
use super::section::{Packing, Section};
use super::source::Opened;
use std::io::{self, ErrorKind, Read};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Bytes of the dictionary at most; NumPy writes a few hundred and reads at most 10 000.
const LONGEST_HEADER: usize = 1 << 16;

/// Whether the file begins with the magic bytes.
pub(super) fn sniff(start: &[u8], _size: u64) -> bool {
    start.starts_with(MAGIC)
}

/// The one array of an npy file.
pub(super) fn open(opened: &Opened) -> Result<Vec<Entry>, Error> {
    let mut file = opened.slice(0, opened.size)?;
    let (before, holds) = header(&mut file).map_err(|problem| problem.in_file(opened, "the npy header"))?;
    if let Ok(layout) = &holds {
        let found = opened.size - before;
        if let Some(expected) = layout.bytes().filter(|&expected| expected != found) {
            return Err(opened.wrong_length("the npy header", expected, found));
        }
    }
    let section = Section { start: 0, bytes: opened.size, packing: Packing::Plain, before, sum: None };
    Ok(vec![Entry::new(String::new(), holds, section)])
}

/// Why a header cannot be read.
pub(super) enum Problem {
    Stream(io::Error),
    Contents { expected: String, found: String },
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::Stream(error)
    }
}

impl Problem {
    fn new(expected: &str, found: impl Into<String>) -> Problem {
        Problem::Contents { expected: expected.to_owned(), found: found.into() }
    }

    pub(super) fn in_file(self, opened: &Opened, part: &str) -> Error {
        match self {
            Problem::Stream(error) if error.kind() == ErrorKind::UnexpectedEof => {
                opened.damaged(format!("the whole of {part}"), format!("an early end of {} bytes", opened.size))
            }
            Problem::Stream(error) => opened.broken(part, error),
            Problem::Contents { expected, found } => opened.damaged(format!("{expected} in {part}"), found),
        }
    }
}

/// Length of the header, and the layout of the array or what it holds instead of real numbers.
pub(super) fn header(source: &mut dyn Read) -> Result<(u64, Result<Layout, String>), Problem> {
    let mut start = [0; 8];
    source.read_exact(&mut start)?;
    if &start[..6] != MAGIC {
        return Err(Problem::new("the magic bytes 93 NUMPY", format!("{:02x?}", &start[..6])));
    }
    let width = match start[6..] {
        [1, 0] => 2,
        [2 | 3, 0] => 4,
        _ => return Err(Problem::new("version 1.0, 2.0 or 3.0", format!("{}.{}", start[6], start[7]))),
    };
    let mut length = [0; 4];
    source.read_exact(&mut length[..width])?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST_HEADER {
        return Err(Problem::new("at most 65536 bytes of dictionary", length.to_string()));
    }
    let mut text = vec![0; length];
    source.read_exact(&mut text)?;
    let text = String::from_utf8(text).map_err(|_| Problem::new("UTF-8 text", "bytes that are not UTF-8"))?;
    Ok(((8 + width + length) as u64, dictionary(&text)?))
}

/// `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`, each key once, in any order.
fn dictionary(text: &str) -> Result<Result<Layout, String>, Problem> {
    const KEYS: &str = "the keys descr, fortran_order and shape, once each";
    let (mut descr, mut fortran_order, mut shape, mut keys) = (None, None, None, Vec::new());
    let mut rest = Rest(text);
    rest.expect("{")?;
    while !rest.take("}") {
        let key = rest.string()?;
        rest.expect(":")?;
        let again = match key.as_str() {
            "descr" if rest.take("[") => return Ok(Err("records".to_owned())),
            "descr" => descr.replace(rest.string()?).is_some(),
            "fortran_order" => fortran_order.replace(rest.truth()?).is_some(),
            "shape" => shape.replace(rest.shape()?).is_some(),
            _ => true,
        };
        if again {
            return Err(Problem::new(KEYS, format!("{key:?}")));
        }
        keys.push(key);
        if !rest.take(",") && !rest.0.trim_start().starts_with('}') {
            return Err(rest.problem("a comma"));
        }
    }
    if !rest.0.trim().is_empty() {
        return Err(rest.problem("nothing after the dictionary"));
    }
    let (Some(descr), Some(column_major), Some(shape)) = (descr, fortran_order, shape) else {
        return Err(Problem::new(KEYS, format!("{keys:?}")));
    };
    Ok(match element(&descr) {
        Some((kind, big_endian)) if kind.is_complex() => {
            let stored = if kind == ElementKind::C64 { ElementKind::F32 } else { ElementKind::F64 };
            let shape = shape.into_iter().chain([2]).collect();
            Ok(Layout { shape, kind, stored, big_endian, column_major, pairs: true })
        }
        Some((kind, big_endian)) => Ok(Layout { shape, kind, stored: kind, big_endian, column_major, pairs: false }),
        None => Err(format!("elements of type {descr:?}")),
    })
}

/// Type and byte order of a NumPy type such as `<f8`.
fn element(descr: &str) -> Option<(ElementKind, bool)> {
    let (order, code) = descr.split_at_checked(1)?;
    let kind = match code {
        "f2" => ElementKind::F16,
        "f4" => ElementKind::F32,
        "f8" => ElementKind::F64,
        "i1" => ElementKind::I8,
        "i2" => ElementKind::I16,
        "i4" => ElementKind::I32,
        "i8" => ElementKind::I64,
        "u1" => ElementKind::U8,
        "u2" => ElementKind::U16,
        "u4" => ElementKind::U32,
        "u8" => ElementKind::U64,
        "b1" => ElementKind::Bool,
        "c8" => ElementKind::C64,
        "c16" => ElementKind::C128,
        _ => return None,
    };
    match order {
        "<" => Some((kind, false)),
        ">" => Some((kind, true)),
        "|" if kind.bytes() == 1 => Some((kind, false)),
        _ => None,
    }
}

/// The text that has not been read yet.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn problem(&self, expected: &str) -> Problem {
        Problem::new(expected, format!("{:?}", self.0.trim_start().chars().take(16).collect::<String>()))
    }

    fn take(&mut self, token: &str) -> bool {
        let Some(rest) = self.0.trim_start().strip_prefix(token) else { return false };
        self.0 = rest;
        true
    }

    fn expect(&mut self, token: &str) -> Result<(), Problem> {
        if self.take(token) { Ok(()) } else { Err(self.problem(&format!("`{token}`"))) }
    }

    fn string(&mut self) -> Result<String, Problem> {
        let quote = if self.take("'") {
            '\''
        } else if self.take("\"") {
            '"'
        } else {
            return Err(self.problem("a string"));
        };
        let Some((string, rest)) = self.0.split_once(quote) else { return Err(self.problem("a closing quote")) };
        self.0 = rest;
        Ok(string.to_owned())
    }

    fn truth(&mut self) -> Result<bool, Problem> {
        if self.take("True") { Ok(true) } else { self.expect("False").map(|()| false) }
    }

    /// `()`, `(3,)`, `(3, 4)`; Python 2 wrote `(3L, 4L)`.
    fn shape(&mut self) -> Result<Vec<usize>, Problem> {
        let mut shape = Vec::new();
        self.expect("(")?;
        while !self.take(")") {
            let text = self.0.trim_start();
            let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
            shape.push(text[..digits].parse().map_err(|_| self.problem("a length"))?);
            self.0 = &text[digits..];
            self.take("L");
            let may_end = shape.len() > 1 && self.0.trim_start().starts_with(')');
            if !self.take(",") && !may_end {
                return Err(self.problem("a comma"));
            }
        }
        if shape.len() <= 64 { Ok(shape) } else { Err(Problem::new("at most 64 axes", shape.len().to_string())) }
    }
}

/// NumPy's name of little-endian float32.
pub(crate) const FLOAT: &str = "<f4";
/// The magic bytes and version 1.0.
pub(crate) const FLOAT_MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// The values begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// The bytes before the values of a float32 array in C order, version 1.0.
pub(crate) fn float_header(shape: &[usize]) -> Vec<u8> {
    header_of(FLOAT, shape)
}

/// The bytes before the values of an array of little-endian numbers in C order, version 1.0.
pub(crate) fn header_of(kind: &str, shape: &[usize]) -> Vec<u8> {
    let axes: String = shape.iter().map(|length| format!("{length}, ")).collect();
    let axes = if shape.len() == 1 { axes.trim_end() } else { axes.trim_end_matches(", ") };
    let dictionary = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({axes}), }}");
    let text = (FLOAT_MAGIC.len() + 2 + dictionary.len() + 1).next_multiple_of(ALIGNMENT) - FLOAT_MAGIC.len() - 2;
    let length = (text as u16).to_le_bytes(); // a few axes: far below 65536
    [FLOAT_MAGIC, &length, format!("{dictionary:width$}\n", width = text - 1).as_bytes()].concat()
}

/// A file with the only array.
pub(super) fn write(arrays: &[Named]) -> Result<Vec<u8>, String> {
    match arrays {
        [only] => Ok(float_file(only)),
        _ => {
            let names: Vec<_> = arrays.iter().map(|array| array.name.as_str()).collect();
            let found = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Err(format!("an npy file holds one array, found {found}; use .npz, .mat or .safetensors"))
        }
    }
}

/// The bytes of an npy file.
pub(super) fn float_file(array: &Named) -> Vec<u8> {
    let mut bytes = float_header(&array.shape);
    bytes.reserve_exact(4 * array.values.len());
    bytes.extend(array.values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}
