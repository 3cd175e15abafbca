//! The numbers of one `DataArray`: text, or bytes in base64 or plain, behind a header of sizes, packed by zlib or LZ4 or not.
//!
//! ```text
//! not packed   bytes | numbers
//! packed       blocks, bytes of a block, bytes of the last block or 0, packed bytes of each block | blocks
//! ```

use super::base64::Decoder;
use super::tree::{Document, Element};
use crate::data::formats::ElementKind;
use crate::data::mesh::input::{CUT, Input, Opened, broken, shortened};
use crate::data::mesh::mesh::{DataArray, short};
use crate::data::mesh::numbers::{ByteOrder, Numbers};
use crate::error::{Refusal, require};
use crate::files::memory;
use flate2::read::ZlibDecoder;
use std::io::Read;

/// How blocks of numbers are packed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Packer {
    Zlib,
    Lz4,
}

impl Packer {
    /// The most bytes that come from one: deflate has 258 bytes from one bit of length and one of distance, LZ4 255 from a byte of
    /// length.
    fn largest_ratio(self) -> u64 {
        match self {
            Packer::Zlib => 1032,
            Packer::Lz4 => 256,
        }
    }

    /// The `full` bytes of a packed block.
    fn unpack(self, packed: &[u8], full: usize) -> std::io::Result<Vec<u8>> {
        let mut block = match self {
            Packer::Zlib => memory::reserve(full)?,
            Packer::Lz4 => memory::filled(0, full)?,
        };
        match self {
            Packer::Zlib => {
                ZlibDecoder::new(packed).take(full as u64).read_to_end(&mut block)?;
            }
            Packer::Lz4 => {
                let wrong = |error| std::io::Error::new(std::io::ErrorKind::InvalidData, format!("LZ4: {error}"));
                let found = lz4_flex::block::decompress_into(packed, &mut block).map_err(wrong)?;
                block.truncate(found);
            }
        }
        if block.len() < full { Err(std::io::ErrorKind::UnexpectedEof.into()) } else { Ok(block) }
    }
}

/// How a file stores its arrays.
pub(super) struct Storage<'a> {
    opened: &'a Opened,
    document: &'a Document,
    order: ByteOrder,
    /// Bytes of a size in a header.
    size: usize,
    packed: Option<Packer>,
}

/// Where the numbers of an array are, and how many bytes the file has for them at most.
enum Stored<'a> {
    Text(Input<'a>, u64),
    Bytes(Box<dyn Read + 'a>, u64),
    Nothing,
}

/// What stands before the numbers of an array.
struct Header {
    /// Bytes of the numbers, unpacked.
    bytes: u64,
    /// Of packed ones: bytes of a block and of the last block when they are unpacked, and the packed bytes of each.
    packed: Option<(Packer, [u64; 2], Vec<u64>)>,
}

/// The type names of VTK.
pub(super) const TYPES: &[(&str, ElementKind)] = &[
    ("Float32", ElementKind::F32),
    ("Float64", ElementKind::F64),
    ("Int8", ElementKind::I8),
    ("Int16", ElementKind::I16),
    ("Int32", ElementKind::I32),
    ("Int64", ElementKind::I64),
    ("UInt8", ElementKind::U8),
    ("UInt16", ElementKind::U16),
    ("UInt32", ElementKind::U32),
    ("UInt64", ElementKind::U64),
];

impl<'a> Storage<'a> {
    pub(super) fn of(opened: &'a Opened, document: &'a Document) -> Result<Storage<'a>, Refusal> {
        let root = &document.root;
        let order = match root.attribute("byte_order") {
            Some("BigEndian") => ByteOrder::Big,
            Some("LittleEndian") | None => ByteOrder::Little,
            Some(other) => return Err(unknown("byte_order", "LittleEndian or BigEndian", other)),
        };
        let size = match root.attribute("header_type") {
            Some("UInt32") | None => 4,
            Some("UInt64") => 8,
            Some(other) => return Err(unknown("header_type", "UInt32 or UInt64", other)),
        };
        let packed = match root.attribute("compressor") {
            None | Some("") => None,
            Some("vtkZLibDataCompressor") => Some(Packer::Zlib),
            Some("vtkLZ4DataCompressor") => Some(Packer::Lz4),
            Some(other) => {
                let expected = "vtkZLibDataCompressor, vtkLZ4DataCompressor or none";
                return Err(unknown("compressor", expected, other));
            }
        };
        Ok(Storage { opened, document, order, size, packed })
    }

    /// The numbers of an array of any length, with its name; `None` for arrays of text.
    pub(super) fn read(&self, element: &Element) -> Result<Option<DataArray>, Refusal> {
        let name = element.attribute("Name").unwrap_or_default().to_owned();
        let within = |refusal: Refusal| refusal.within(title(&name));
        let kind = element.attribute("type").unwrap_or_default();
        if matches!(kind, "String" | "Bit") {
            return Ok(None);
        }
        let kind = TYPES.iter().find(|(known, _)| *known == kind).map(|row| row.1);
        let kind = kind.ok_or_else(|| {
            let expected: Vec<_> = TYPES.iter().map(|row| row.0).collect();
            let found = element.attribute("type").unwrap_or("none");
            within(Refusal::new("type", expected.join(", "), format!("`{}`", shortened(found))))
        })?;
        let components = element.number("NumberOfComponents").map_err(within)?.unwrap_or(1);
        let values = self.values(element, kind).map_err(within)?;
        Ok(Some(DataArray { name, components, values }))
    }

    /// An array of a known number of groups, in a part of the file that must have it.
    pub(super) fn read_sized(&self, element: &Element, groups: usize) -> Result<Option<DataArray>, Refusal> {
        let Some(array) = self.read(element)? else { return Ok(None) };
        let (components, found) = (array.components, array.values.len());
        require(components > 0 && groups.checked_mul(components) == Some(found), || {
            let expected = format!("{groups} times {components} numbers");
            Refusal::new(title(&array.name), expected, found.to_string())
        })?;
        Ok(Some(array))
    }

    fn values(&self, element: &Element, kind: ElementKind) -> Result<Numbers, Refusal> {
        match self.stored(element)? {
            Stored::Text(text, _) => words(text, kind),
            Stored::Nothing => Numbers::with_room(kind, 0).map_err(|reason| short(&reason)),
            Stored::Bytes(mut source, left) => {
                let header = self.header(&mut source, left)?;
                let Some((packer, [whole, last], packed)) = header.packed else {
                    return self.numbers(&mut source, header.bytes, kind);
                };
                let packed = packed.into_iter();
                let mut blocks = Blocks { source, packer, packed, whole, last, block: Vec::new(), place: 0 };
                self.numbers(&mut blocks, header.bytes, kind)
            }
        }
    }

    /// The bytes of an array when it is unpacked, as its header promises them; of text, the bytes of the text.
    pub(super) fn promised(&self, element: &Element) -> Result<u64, Refusal> {
        match self.stored(element)? {
            Stored::Text(_, bytes) => Ok(bytes),
            Stored::Nothing => Ok(0),
            Stored::Bytes(mut source, left) => Ok(self.header(&mut source, left)?.bytes),
        }
    }

    fn stored(&self, element: &Element) -> Result<Stored<'_>, Refusal> {
        let (start, end) = element.text;
        match element.attribute("format").unwrap_or("ascii") {
            "ascii" => Ok(Stored::Text(self.opened.part(start, end)?, end - start)),
            "binary" if start == end => Ok(Stored::Nothing), // no text, no numbers
            "binary" => Ok(Stored::Bytes(Box::new(Decoder::new(self.opened.part(start, end)?)), end - start)),
            "appended" => {
                let base = self.document.appended.ok_or_else(|| Refusal::new("", "AppendedData", "none"))?;
                let offset: u64 = element.number("offset")?.ok_or_else(|| Refusal::new("", "an offset", "none"))?;
                let start = base.saturating_add(offset);
                let left = self.opened.size.saturating_sub(start);
                let part = self.opened.part(start, self.opened.size)?;
                Ok(match self.document.appended_base64 {
                    true => Stored::Bytes(Box::new(Decoder::new(part)), left),
                    false => Stored::Bytes(Box::new(part), left),
                })
            }
            other => Err(Refusal::new("format", "ascii, binary or appended", format!("`{}`", shortened(other)))),
        }
    }

    /// The sizes before numbers that the file has at most `left` bytes for.
    fn header(&self, source: &mut dyn Read, left: u64) -> Result<Header, Refusal> {
        let Some(packer) = self.packed else {
            let bytes = self.sizes(source, 1)?[0];
            require(bytes <= left, || cut(bytes, left))?;
            return Ok(Header { bytes, packed: None });
        };
        let count = self.sizes(source, 1)?[0];
        require(count.saturating_mul(self.size as u64) <= left, || cut(count.saturating_mul(self.size as u64), left))?;
        let [whole, last] = self.sizes(source, 2)?[..] else { unreachable!("two sizes were read") };
        let packed = self.sizes(source, count as usize)?;
        let mut unpacked = 0_u64;
        for (number, &bytes) in packed.iter().enumerate() {
            let full = if number + 1 == packed.len() && last > 0 { last } else { whole };
            let most = bytes.saturating_mul(packer.largest_ratio());
            require(bytes <= left, || cut(bytes, left))?;
            require(full <= most, || {
                let expected = format!("at most {most} bytes from {bytes} packed ones");
                Refusal::new(format!("block {number}"), expected, format!("a promise of {full}")).advise(CUT)
            })?;
            unpacked = unpacked.saturating_add(full);
        }
        let in_file: u64 = packed.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes));
        require(in_file <= left, || cut(in_file, left))?;
        Ok(Header { bytes: unpacked, packed: Some((packer, [whole, last], packed)) })
    }

    fn numbers(&self, source: &mut dyn Read, bytes: u64, kind: ElementKind) -> Result<Numbers, Refusal> {
        let size = kind.bytes() as u64;
        require(bytes.is_multiple_of(size), || {
            Refusal::new("", format!("a multiple of {size} bytes"), format!("{bytes} bytes")).advise(CUT)
        })?;
        let count = usize::try_from(bytes / size).map_err(|_| cut(bytes, 0))?;
        Numbers::read(source, kind, count, self.order).map_err(|reason| broken(&reason))
    }

    /// Sizes of a header.
    fn sizes(&self, source: &mut dyn Read, count: usize) -> Result<Vec<u64>, Refusal> {
        let kind = if self.size == 4 { ElementKind::U32 } else { ElementKind::U64 };
        let sizes = Numbers::read(source, kind, count, self.order).map_err(|reason| broken(&reason))?;
        Ok(match sizes {
            Numbers::U32(sizes) => sizes.into_iter().map(u64::from).collect(),
            Numbers::U64(sizes) => sizes,
            _ => unreachable!("sizes are whole numbers"),
        })
    }
}

/// All numbers of a text.
fn words(mut text: Input, kind: ElementKind) -> Result<Numbers, Refusal> {
    let mut numbers = Numbers::with_room(kind, 0).map_err(|reason| short(&reason))?;
    while let Some(word) = text.word()? {
        if numbers.push_word(&word).is_none() {
            let (expected, place) = (format!("a number of type {kind}"), numbers.len());
            return Err(Refusal::new(format!("number {place}"), expected, format!("`{}`", shortened(&word))));
        }
    }
    Ok(numbers)
}

fn unknown(what: &str, expected: &str, found: &str) -> Refusal {
    let advice = if what == "compressor" { "save it with zlib, with LZ4 or without compression" } else { "" };
    Refusal::new(what, expected, format!("`{}`", shortened(found))).advise(advice)
}

fn cut(expected: u64, left: u64) -> Refusal {
    Refusal::new("", format!("{expected} bytes"), format!("{left} up to the end")).advise(CUT)
}

pub(super) fn title(name: &str) -> String {
    if name.is_empty() {
        "an array without a name".into()
    } else {
        format!("array `{}`", shortened(name).escape_debug())
    }
}

/// Packed blocks as one stream.
struct Blocks<R> {
    source: R,
    packer: Packer,
    packed: std::vec::IntoIter<u64>,
    whole: u64,
    last: u64,
    block: Vec<u8>,
    place: usize,
}

impl<R: Read> Blocks<R> {
    /// Unpacks the next block; false after the last one.
    fn advance(&mut self) -> std::io::Result<bool> {
        let Some(bytes) = self.packed.next() else { return Ok(false) };
        let is_last = self.packed.len() == 0;
        let full = if is_last && self.last > 0 { self.last } else { self.whole };
        let mut packed: Vec<u8> = memory::filled(0, bytes as usize)?;
        self.source.read_exact(&mut packed)?;
        self.block = self.packer.unpack(&packed, full as usize)?;
        self.place = 0;
        Ok(true)
    }
}

impl<R: Read> Read for Blocks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.place == self.block.len() {
            if !self.advance()? {
                return Ok(0);
            }
        }
        let count = buffer.len().min(self.block.len() - self.place);
        buffer[..count].copy_from_slice(&self.block[self.place..self.place + count]);
        self.place += count;
        Ok(count)
    }
}
