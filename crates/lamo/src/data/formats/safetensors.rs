//! The safetensors format: length of the header, a JSON object with type, shape and offsets of each array, numbers.

use super::Named;
use super::array::{ElementKind, Layout};
use super::entry::Entry;
use super::error::Error;
use super::section::{Packing, Section};
use super::source::Opened;
use crate::files::memory;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// Bytes of the header at most, as in the reference implementation.
const LONGEST_HEADER: u64 = 100_000_000;

#[derive(Deserialize)]
struct Description {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

/// Whether the file begins with the length of a header that fits into it, and then a JSON object.
pub(super) fn sniff(start: &[u8], size: u64) -> bool {
    let (Some(length), Some(b'{')) = (start.first_chunk(), start.get(8)) else { return false };
    u64::from_le_bytes(*length) <= size.saturating_sub(8)
}

/// All arrays in the order of the file.
pub(super) fn open(opened: &Opened) -> Result<Vec<Entry>, Error> {
    let length = opened.bytes(0, 8, "the safetensors header")?;
    let length = u64::from_le_bytes(*length.first_chunk().unwrap_or(&[0; 8]));
    if length > LONGEST_HEADER {
        return Err(opened.damaged("a safetensors header of at most 100 MB", format!("{length} bytes")));
    }
    let text = opened.bytes(8, length, "the safetensors header")?;
    let not_json = |error: serde_json::Error| opened.damaged("a safetensors header in JSON", error.to_string());
    let mut found: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&text).map_err(not_json)?;
    found.remove("__metadata__");
    let mut entries = Vec::new();
    for (name, description) in found {
        let description: Description = serde_json::from_value(description).map_err(not_json)?;
        entries.push((description.data_offsets, entry(opened, name, 8 + length, description)?));
    }
    entries.sort_by_key(|(offsets, _)| *offsets);
    if let Some(pair) = entries.windows(2).find(|pair| pair[0].0[1] > pair[1].0[0]) {
        let found = format!("{:?} and {:?} in the same bytes", pair[0].1.name, pair[1].1.name);
        return Err(opened.damaged("arrays one after another", found));
    }
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn entry(opened: &Opened, name: String, numbers: u64, description: Description) -> Result<Entry, Error> {
    let [from, to] = description.data_offsets;
    let available = opened.size - numbers;
    if from > to || to > available {
        return Err(opened.wrong_length(&format!("array `{name}`"), to, available));
    }
    let holds = match element(&description.dtype) {
        Some(kind) => Ok(Layout {
            shape: description.shape,
            kind,
            stored: kind,
            big_endian: false,
            column_major: false,
            pairs: false,
        }),
        None => Err(format!("elements of type {}", description.dtype)),
    };
    if let Some(expected) = holds.as_ref().ok().and_then(Layout::bytes).filter(|&bytes| bytes != to - from) {
        return Err(opened.wrong_length(&format!("the shape of `{name}`"), expected, to - from));
    }
    let section = Section { start: numbers + from, bytes: to - from, packing: Packing::Plain, before: 0, sum: None };
    Ok(Entry::new(name, holds, section))
}

fn element(dtype: &str) -> Option<ElementKind> {
    Some(match dtype {
        "F16" => ElementKind::F16,
        "BF16" => ElementKind::Bf16,
        "F32" => ElementKind::F32,
        "F64" => ElementKind::F64,
        "I8" => ElementKind::I8,
        "I16" => ElementKind::I16,
        "I32" => ElementKind::I32,
        "I64" => ElementKind::I64,
        "U8" => ElementKind::U8,
        "U16" => ElementKind::U16,
        "U32" => ElementKind::U32,
        "U64" => ElementKind::U64,
        "BOOL" => ElementKind::Bool,
        _ => return None,
    })
}

/// A file of float32 arrays.
pub(super) fn write(arrays: &[Named]) -> Result<Vec<u8>, String> {
    let mut end = 0;
    let tensors = arrays.iter().map(|array| {
        let start = end;
        end += array.values.len();
        (array.name.as_str(), array.shape.as_slice(), start..end)
    });
    let parts: Vec<&[f32]> = arrays.iter().map(|array| array.values.as_slice()).collect();
    serialise(tensors, &parts, &BTreeMap::new()).map_err(|error| error.to_string())
}

/// A file of float32 tensors: the name, the shape and the range of values of each, and all values in parts. The
/// `safetensors` crate sorts tensors by name; a state dict has them in the order in which the model declares them.
pub(crate) fn serialise<'a>(
    tensors: impl Iterator<Item = (&'a str, &'a [usize], Range<usize>)>,
    parts: &[&[f32]],
    metadata: &BTreeMap<String, String>,
) -> io::Result<Vec<u8>> {
    let tensors = tensors.map(|(name, shape, range)| (name, shape, "F32", 4 * range.start..4 * range.end));
    let mut bytes = begin(tensors, parts.iter().map(|part| size_of_val(*part)).sum(), metadata)?;
    parts.iter().for_each(|part| bytes.extend(part.iter().flat_map(|value| value.to_le_bytes())));
    Ok(bytes)
}

/// The beginning of a file, up to its first number, with room for `size` bytes of numbers: the name, the shape, the kind of
/// numbers and the range of bytes of each tensor.
pub(crate) fn begin<'a>(
    tensors: impl Iterator<Item = (&'a str, &'a [usize], &'a str, Range<usize>)>,
    size: usize,
    metadata: &BTreeMap<String, String>,
) -> io::Result<Vec<u8>> {
    let mut entries = Vec::new();
    if !metadata.is_empty() {
        entries.push(format!("\"__metadata__\":{}", serde_json::json!(metadata)));
    }
    for (name, shape, element, Range { start, end }) in tensors {
        let (name, shape) = (serde_json::json!(name), serde_json::json!(shape));
        entries.push(format!("{name}:{{\"dtype\":\"{element}\",\"shape\":{shape},\"data_offsets\":[{start},{end}]}}"));
    }
    let mut header = format!("{{{}}}", entries.join(","));
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len())); // the data begin at a multiple of 8 bytes
    let mut bytes = memory::reserve(8 + header.len() + size)?;
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(header.into_bytes());
    Ok(bytes)
}
