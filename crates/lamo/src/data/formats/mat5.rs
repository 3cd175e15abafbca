//! MATLAB's MAT-file version 5 (also written by `save -v7`): a header of 128 bytes, then one element per variable.
//!
//! An element is a tag (type, bytes) and its contents. A variable is an element of type 14 whose parts are flags,
//! dimensions, name and numbers, first axis fastest; an element of type 15 is a zlib stream that holds an element of
//! type 14. The fields of a structure are such elements inside it. Numbers may be written in a smaller type than the variable has. ("MAT-File Format", The MathWorks, chapter
//! 1.)

pub(crate) mod write;

use super::array::{ElementKind, Layout};
use super::complex::Complex;
use super::entry::Entry;
use super::error::Error;
use super::section::{Packing, Section};
use super::source::{Opened, Source};
use std::io::{self, ErrorKind, Read};

const HEADER: u64 = 128;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// Flag of a variable of complex numbers.
const COMPLEX: u8 = 8;
/// Letters of a name at most; MATLAB allows 63.
const LONGEST_NAME: u32 = 1024;
/// Axes of an array at most.
const MOST_AXES: u32 = 64;
/// Class of a structure.
const STRUCTURE: u8 = 2;
/// Class of an object that is stored elsewhere.
const OBJECT: u8 = 17;
/// Structures inside structures at most.
const DEEPEST: usize = 8;
/// Fields of a structure at most.
const MOST_FIELDS: u32 = 1 << 12;

/// Whether version 1 stands at byte 124, and then `MI`, both in the byte order of the machine that wrote the file.
pub(super) fn sniff(start: &[u8], _size: u64) -> bool {
    matches!(start.get(124..128), Some([0, 1, b'I', b'M'] | [1, 0, b'M', b'I']))
}

/// All variables, with or without numbers.
pub(super) fn open(opened: &Opened) -> Result<Vec<Entry>, Error> {
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
        let section = Section { start: at + 8, bytes, packing, before: 0, sum: None };
        section.check_end(opened)?;
        let part = format!("the variable at byte {at}");
        let described = describe(section.source(opened)?, &section, big_endian);
        for Description { name, before, holds, imaginary } in described.map_err(|error| opened.broken(&part, error))? {
            if name.is_empty() {
                continue; // MATLAB's own variable about classes has no name
            }
            let section = Section { before, ..section };
            entries.push(match (holds, imaginary) {
                (Ok(real), Some((before, imaginary))) => {
                    let parts = [(section, real), (Section { before, ..section }, imaginary)];
                    Complex::entry(name, parts)
                }
                (holds, _) => Entry::new(name, holds, section),
            });
        }
        at += 8 + bytes;
    }
    Ok(entries)
}

/// A variable, or a field of one.
struct Description {
    name: String,
    /// Where its numbers begin.
    before: u64,
    /// The layout of its numbers, of the real parts where they are complex, or what it holds instead of numbers.
    holds: Result<Layout, String>,
    /// Where the imaginary parts begin, and their layout.
    imaginary: Option<(u64, Layout)>,
}

impl Description {
    fn other(name: String, found: &str) -> Description {
        Description { name, before: 0, holds: Err(found.to_owned()), imaginary: None }
    }
}

/// The variable in a section; of a structure also its fields, `NAME.FIELD`.
fn describe(source: Box<dyn Source + '_>, section: &Section, big_endian: bool) -> io::Result<Vec<Description>> {
    let mut parts = Parts { source, at: 0, big_endian };
    let mut end = section.bytes;
    if section.packing == Packing::Zlib {
        let (kind, bytes) = parts.tag()?;
        if kind != MATRIX {
            return Err(damage(format!("element type {kind} where a variable should be")));
        }
        end = 8 + u64::from(bytes);
    }
    let mut found = Vec::new();
    parts.variable(end, None, &mut found)?;
    Ok(found)
}

fn damage(found: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, found)
}

/// The type of a variable with this class and these flags, or what it is instead of real numbers.
fn element(class: u8, flags: u8) -> Result<ElementKind, &'static str> {
    const LOGICAL: u8 = 2;
    let kind = match class {
        1 => return Err("a cell array"),
        STRUCTURE => return Err("a structure"),
        3 => return Err("an object"),
        4 => return Err("text"),
        5 => return Err("a sparse matrix"),
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
        _ => return Err("a class that MATLAB added later"),
    };
    Ok(if flags & LOGICAL != 0 { ElementKind::Bool } else { kind })
}

/// The type in which the numbers of an element are written.
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

/// The parts of one variable, read one after another.
struct Parts<'a> {
    source: Box<dyn Source + 'a>,
    at: u64,
    big_endian: bool,
}

impl Parts<'_> {
    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn word(&mut self) -> io::Result<u32> {
        Ok(word(&self.bytes::<4>()?, self.big_endian))
    }

    /// Type and bytes of the next part. A part of at most four bytes has both in one word, followed by its contents.
    fn tag(&mut self) -> io::Result<(u32, u32)> {
        let kind = self.word()?;
        match kind >> 16 {
            0 => Ok((kind, self.word()?)),
            bytes @ 1..=4 => Ok((kind & 0xffff, bytes)),
            bytes => Err(damage(format!("a small element of {bytes} bytes"))),
        }
    }

    /// Skips the padding: each part begins at a multiple of eight bytes.
    fn pad(&mut self) -> io::Result<()> {
        while !self.at.is_multiple_of(8) {
            self.bytes::<1>()?;
        }
        Ok(())
    }

    /// Skips the rest of a part, and its padding.
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.source.skip(bytes)?;
        self.at += bytes;
        self.pad()
    }

    /// Class and flags of the variable.
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

    /// Appends the variable whose parts end at `end`, and the fields of a structure. `outer` is the name of a field, which has none of
    /// its own, and how many structures may be inside it.
    fn variable(&mut self, end: u64, outer: Option<(String, usize)>, found: &mut Vec<Description>) -> io::Result<()> {
        if end == self.at {
            return Ok(()); // an empty element
        }
        let (class, flags) = self.flags()?;
        let (kind, bytes) = self.tag()?;
        if class == OBJECT {
            let own = self.text(bytes)?; // an object has no dimensions
            found.push(Description::other(outer.map_or(own, |(name, _)| name), "an object"));
            return Ok(());
        }
        let shape = self.dimensions(kind, bytes)?;
        let (_, bytes) = self.tag()?;
        let own = self.text(bytes)?;
        let (name, depth) = outer.unwrap_or((own, DEEPEST));
        let kind = match element(class, flags) {
            Ok(kind) => kind,
            Err(other) => {
                found.push(Description::other(name.clone(), other));
                let single = class == STRUCTURE && shape.iter().all(|&extent| extent == 1);
                return if single && depth > 0 { self.fields(end, &name, depth - 1, found) } else { Ok(()) };
            }
        };
        let numbers = self.numbers(shape, kind, end)?;
        let before = self.at;
        let imaginary = match flags & COMPLEX != 0 {
            true => {
                self.skip(numbers.bytes().unwrap_or(0))?;
                let imaginary = self.numbers(numbers.shape.clone(), kind, end)?;
                Some((self.at, imaginary))
            }
            false => None,
        };
        found.push(Description { name, before, holds: Ok(numbers), imaginary });
        Ok(())
    }

    /// Appends the fields of a structure: the length of a name, the names one after another, then an element for each.
    fn fields(&mut self, end: u64, name: &str, depth: usize, found: &mut Vec<Description>) -> io::Result<()> {
        let (INT32, 4) = self.tag()? else { return Err(damage("a structure without the length of its names".into())) };
        let length = self.word()?;
        self.pad()?;
        let (_, bytes) = self.tag()?;
        if length == 0 || length > LONGEST_NAME || bytes / length > MOST_FIELDS {
            return Err(damage(format!("names of {length} letters in {bytes} bytes")));
        }
        let mut names = Vec::new();
        for _ in 0..bytes / length {
            let mut text = vec![0; length as usize];
            self.source.read_exact(&mut text)?;
            let letters = text.split(|&byte| byte == 0).next().unwrap_or_default();
            names.push(format!("{name}.{}", String::from_utf8_lossy(letters)));
        }
        self.at += u64::from(bytes / length * length);
        self.pad()?;
        for name in names {
            let (kind, bytes) = self.tag()?;
            let inner = self.at + u64::from(bytes);
            if kind != MATRIX || inner > end {
                return Err(damage(format!("a field of type {kind} in {bytes} bytes")));
            }
            self.variable(inner, Some((name, depth)), found)?;
            let rest = inner.checked_sub(self.at).ok_or_else(|| damage("a field longer than its bytes".into()))?;
            self.source.skip(rest)?;
            self.at = inner;
        }
        Ok(())
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

    /// Layout of the numbers; the source then stands at the first of them. All parts together have `whole` bytes.
    fn numbers(&mut self, shape: Vec<usize>, kind: ElementKind, whole: u64) -> io::Result<Layout> {
        let (stored, bytes) = self.tag()?;
        let stored = stored_as(stored).ok_or_else(|| damage(format!("numbers of type {stored}")))?;
        let layout = Layout { shape, kind, stored, big_endian: self.big_endian, column_major: true, pairs: false };
        let bytes = u64::from(bytes);
        if self.at + bytes > whole || layout.bytes().is_some_and(|needed| needed != bytes) {
            return Err(damage(format!("{bytes} bytes of numbers for shape {:?} in {whole} bytes", layout.shape)));
        }
        Ok(layout)
    }
}
