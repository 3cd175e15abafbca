//! MATLAB's MAT-file version 5 (also written by `save -v7`): a header of 128 bytes, then one element per variable.
//!
//! An element is a tag (type, bytes) and its contents. A variable is an element of type 14 whose parts are flags,
//! dimensions, name and numbers, first axis fastest; an element of type 15 is a zlib stream that holds one of type 14.
//! Numbers may be written in a smaller type than the variable has. ("MAT-File Format", The MathWorks, chapter 1.)

use super::array::{ElementKind, Layout};
use super::error::Error;
use super::source::{Entry, Opened, Packing};
use std::io::{self, ErrorKind, Read};

const HEADER: u64 = 128;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// MATLAB allows 63 letters; a longer name than this is damage.
const LONGEST_NAME: u32 = 1024;
const MOST_AXES: u32 = 64;

/// Whether a file begins so: version 1 at byte 124, then `MI` as the writer's machine reads it.
pub(super) fn begins(start: &[u8]) -> bool {
    matches!(start.get(124..128), Some([0, 1, b'I', b'M'] | [1, 0, b'M', b'I']))
}

/// All variables; those without real numbers as what they are.
pub(super) fn entries(opened: &Opened) -> Result<Vec<Entry>, Error> {
    let start = opened.bytes(0, HEADER, "the MAT v5 header")?;
    let big_endian = start[126] == b'M';
    let mut entries = Vec::new();
    let mut at = HEADER;
    while at < opened.size {
        let tag = opened.bytes(at, 8, "the tag of a variable")?;
        let (kind, bytes) = (word(&tag[..4], big_endian), u64::from(word(&tag[4..], big_endian)));
        let packing = match kind {
            MATRIX => Packing::Plain,
            COMPRESSED => Packing::Zlib,
            other => return Err(opened.damaged(format!("a variable at byte {at}"), format!("element type {other}"))),
        };
        let (name, holds) = (String::new(), Err("nothing".to_owned()));
        let mut entry = Entry { name, holds, start: at + 8, bytes, packing, before: 0, sum: None };
        entry.check(opened)?;
        let part = format!("the variable at byte {at}");
        describe(opened, &mut entry, big_endian).map_err(|error| opened.broken(&part, error))?;
        at += 8 + bytes;
        if !entry.name.is_empty() {
            entries.push(entry); // without a name: MATLAB's own notes on classes
        }
    }
    Ok(entries)
}

/// Fills in what the variable's own parts say.
fn describe(opened: &Opened, entry: &mut Entry, big_endian: bool) -> io::Result<()> {
    let unpacked = entry.source(opened).map_err(io::Error::other)?;
    let mut parts = Parts { source: unpacked, at: 0, big_endian };
    let mut whole = entry.bytes;
    if entry.packing == Packing::Zlib {
        let (kind, bytes) = parts.tag()?;
        if kind != MATRIX {
            return Err(damage(format!("element type {kind} where a variable should be")));
        }
        whole = 8 + u64::from(bytes);
    }
    if whole == parts.at {
        return Ok(()); // an empty element
    }
    let (class, flags) = parts.flags()?;
    let (kind, bytes) = parts.tag()?;
    if class == 17 {
        entry.name = parts.text(bytes)?; // an object has no dimensions
        entry.holds = Err("an object".to_owned());
        return Ok(());
    }
    let shape = parts.dimensions(kind, bytes)?;
    let (_, bytes) = parts.tag()?;
    entry.name = parts.text(bytes)?;
    entry.holds = match element(class, flags) {
        Ok(kind) => Ok(parts.numbers(shape, kind, whole)?),
        Err(found) => Err(found.to_owned()),
    };
    entry.before = parts.at;
    Ok(())
}

fn damage(found: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, found)
}

/// The type of a variable by its class and flags.
fn element(class: u8, flags: u8) -> Result<ElementKind, &'static str> {
    const COMPLEX: u8 = 8;
    const LOGICAL: u8 = 2;
    let kind = match class {
        1 => return Err("a cell array"),
        2 => return Err("a structure"),
        3 => return Err("an object"),
        4 => return Err("text"),
        5 => return Err("a sparse matrix"),
        _ if flags & COMPLEX != 0 => return Err("complex numbers"),
        6 => ElementKind::F64,
        7 => ElementKind::F32,
        8 => ElementKind::I8,
        9 => ElementKind::U8,
        10 => ElementKind::I16,
        11 => ElementKind::U16,
        12 => ElementKind::I32,
        13 => ElementKind::U32,
        14 => ElementKind::I64,
        15 => ElementKind::U64,
        _ => return Err("a class of its own"),
    };
    Ok(if flags & LOGICAL != 0 { ElementKind::Bool } else { kind })
}

/// The type that the numbers of an element are written in.
fn stored_as(kind: u32) -> Option<ElementKind> {
    Some(match kind {
        1 => ElementKind::I8,
        2 => ElementKind::U8,
        3 => ElementKind::I16,
        4 => ElementKind::U16,
        INT32 => ElementKind::I32,
        UINT32 => ElementKind::U32,
        7 => ElementKind::F32,
        9 => ElementKind::F64,
        12 => ElementKind::I64,
        13 => ElementKind::U64,
        _ => return None,
    })
}

fn word(bytes: &[u8], big_endian: bool) -> u32 {
    let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// The parts of one variable, read in turn.
struct Parts<R> {
    source: R,
    at: u64,
    big_endian: bool,
}

impl<R: Read> Parts<R> {
    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn word(&mut self) -> io::Result<u32> {
        Ok(word(&self.bytes::<4>()?, self.big_endian))
    }

    /// Type and bytes of the next part. Of one with at most four bytes, both stand in one word, and then they follow.
    fn tag(&mut self) -> io::Result<(u32, u32)> {
        let kind = self.word()?;
        match kind >> 16 {
            0 => Ok((kind, self.word()?)),
            bytes @ 1..=4 => Ok((kind & 0xffff, bytes)),
            bytes => Err(damage(format!("a small element of {bytes} bytes"))),
        }
    }

    /// Parts are padded to eight bytes.
    fn pad(&mut self) -> io::Result<()> {
        while !self.at.is_multiple_of(8) {
            self.bytes::<1>()?;
        }
        Ok(())
    }

    /// Class and flags.
    fn flags(&mut self) -> io::Result<(u8, u8)> {
        match self.tag()? {
            (UINT32, 8) => {
                let [class_and_flags, _] = [self.word()?, self.word()?];
                let [class, flags, ..] = class_and_flags.to_le_bytes();
                Ok((class, flags))
            }
            (kind, bytes) => Err(damage(format!("flags of type {kind} in {bytes} bytes"))),
        }
    }

    fn dimensions(&mut self, kind: u32, bytes: u32) -> io::Result<Vec<usize>> {
        if !matches!(kind, INT32 | UINT32) || !bytes.is_multiple_of(4) || bytes / 4 > MOST_AXES {
            return Err(damage(format!("dimensions of type {kind} in {bytes} bytes")));
        }
        let mut shape = Vec::new();
        for _ in 0..bytes / 4 {
            let extent = self.word()?;
            shape.push(extent as usize);
            if extent > i32::MAX as u32 {
                return Err(damage(format!("the dimension {}", extent.cast_signed())));
            }
        }
        self.pad()?;
        Ok(shape)
    }

    fn text(&mut self, bytes: u32) -> io::Result<String> {
        if bytes > LONGEST_NAME {
            return Err(damage(format!("a name of {bytes} letters")));
        }
        let mut text = vec![0; bytes as usize];
        self.source.read_exact(&mut text)?;
        self.at += u64::from(bytes);
        self.pad()?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// How the numbers lie, which the source then stands at; the parts have `whole` bytes together.
    fn numbers(&mut self, shape: Vec<usize>, kind: ElementKind, whole: u64) -> io::Result<Layout> {
        let (stored, bytes) = self.tag()?;
        let stored = stored_as(stored).ok_or_else(|| damage(format!("numbers of type {stored}")))?;
        let layout = Layout { shape, kind, stored, big_endian: self.big_endian, column_major: true };
        let bytes = u64::from(bytes);
        if self.at + bytes > whole || layout.bytes().is_some_and(|needed| needed != bytes) {
            return Err(damage(format!("{bytes} bytes of numbers for shape {:?} in {whole} bytes", layout.shape)));
        }
        Ok(layout)
    }
}
