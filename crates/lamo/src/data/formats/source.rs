//! Where bytes come from: an open file, a section of it, a packed section. Nothing is held but a buffer.

use super::array::{Array, Layout, Tick, Wanted};
use super::error::Error;
use flate2::Crc;
use flate2::read::{DeflateDecoder, ZlibDecoder};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Deflate's best: 258 bytes from one bit of length and one bit of distance.
pub(super) const LARGEST_RATIO: u64 = 1032;

const BUFFER: usize = 1 << 16;

/// Bytes to hold of a part that has so many.
fn buffer(bytes: u64) -> usize {
    usize::try_from(bytes).map_or(BUFFER, |bytes| bytes.min(BUFFER))
}

/// A stream that can be passed over.
pub(super) trait Source: Read {
    fn skip(&mut self, bytes: u64) -> io::Result<()>;
}

/// A file that is open.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) size: u64,
}

impl Opened {
    pub(super) fn open(path: &Path) -> Result<Opened, Error> {
        let fails = |source: io::Error| match source.kind() {
            ErrorKind::NotFound => Error::NoSuchFile { path: path.to_owned() },
            _ => Error::Unreadable { path: path.to_owned(), source },
        };
        let what = fs::metadata(path).map_err(fails)?;
        if !what.is_file() {
            let found = if what.is_dir() { "a folder" } else { "a device or pipe" };
            return Err(Error::NotAFile { path: path.to_owned(), found });
        }
        let file = File::open(path).map_err(fails)?;
        Ok(Opened { path: path.to_owned(), file, size: what.len() })
    }

    /// The bytes from `start` on; one section at a time is in use.
    pub(super) fn section(&self, start: u64, bytes: u64) -> Result<Section<'_>, Error> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start)).map_err(|source| self.unreadable(source))?;
        Ok(Section { file: BufReader::with_capacity(buffer(bytes), file), left: bytes })
    }

    /// A part short enough to be held.
    pub(super) fn bytes(&self, start: u64, bytes: u64, part: &str) -> Result<Vec<u8>, Error> {
        let there = self.size.saturating_sub(start);
        if bytes > there {
            return Err(self.wrong_length(part, bytes, there));
        }
        let mut held = Vec::new();
        let read = self.section(start, bytes)?.read_to_end(&mut held).map_err(|source| self.unreadable(source))?;
        if (read as u64) < bytes { Err(self.wrong_length(part, bytes, read as u64)) } else { Ok(held) }
    }

    pub(super) fn unreadable(&self, source: io::Error) -> Error {
        Error::Unreadable { path: self.path.clone(), source }
    }

    pub(super) fn wrong_length(&self, part: &str, expected: u64, found: u64) -> Error {
        Error::WrongLength { path: self.path.clone(), part: part.to_owned(), expected, found }
    }

    pub(super) fn damaged(&self, expected: impl Into<String>, found: impl Into<String>) -> Error {
        Error::Damaged { path: self.path.clone(), expected: expected.into(), found: found.into() }
    }

    /// A stream that broke off or would not unpack; `part` names what was being read.
    pub(super) fn broken(&self, part: &str, source: io::Error) -> Error {
        match source.kind() {
            ErrorKind::UnexpectedEof => self.damaged(format!("the whole of {part}"), "an early end"),
            ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                self.damaged(format!("{part} intact"), source.to_string())
            }
            _ => self.unreadable(source),
        }
    }
}

/// Some bytes of a file.
pub(super) struct Section<'a> {
    file: BufReader<&'a File>,
    left: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.file.read(&mut buffer[..wanted])?;
        self.left -= read as u64;
        Ok(read)
    }
}

impl Source for Section<'_> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let distance = i64::try_from(bytes).ok().filter(|_| bytes <= self.left);
        self.file.seek_relative(distance.ok_or(ErrorKind::UnexpectedEof)?)?;
        self.left -= bytes;
        Ok(())
    }
}

/// A stream that can only be passed over by reading it.
struct Stream<R>(BufReader<R>);

impl<R: Read> Stream<R> {
    fn new(inner: R) -> Self {
        Stream(BufReader::with_capacity(BUFFER, inner))
    }
}

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<R: Read> Source for Stream<R> {
    fn skip(&mut self, mut bytes: u64) -> io::Result<()> {
        while bytes > 0 {
            let there = self.0.fill_buf()?.len();
            if there == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let step = there.min(usize::try_from(bytes).unwrap_or(usize::MAX));
            self.0.consume(step);
            bytes -= step as u64;
        }
        Ok(())
    }
}

/// A stream whose checksum is kept.
struct Summed<'a> {
    inner: Box<dyn Source + 'a>,
    sum: &'a mut Crc,
}

impl Read for Summed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.sum.update(&buffer[..read]);
        Ok(read)
    }
}

/// How a section is packed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Packing {
    Plain,
    Deflate,
    Zlib,
}

/// One array of a file, and where it lies.
pub(super) struct Entry {
    pub(super) name: String,
    /// What it is like, or what it holds instead of real numbers.
    pub(super) holds: Result<Layout, String>,
    /// The section it lies in.
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) packing: Packing,
    /// Bytes of the unpacked section before the first number.
    pub(super) before: u64,
    /// CRC-32 of the unpacked section.
    pub(super) sum: Option<u32>,
}

impl Entry {
    /// The section, unpacked.
    pub(super) fn source<'a>(&self, opened: &'a Opened) -> Result<Box<dyn Source + 'a>, Error> {
        let section = opened.section(self.start, self.bytes)?;
        Ok(match self.packing {
            Packing::Plain => Box::new(section),
            Packing::Deflate => Box::new(Stream::new(DeflateDecoder::new(section))),
            Packing::Zlib => Box::new(Stream::new(ZlibDecoder::new(section))),
        })
    }

    /// Holds what the header promises against the bytes there are; [`super::Contents`] asks before anything is read.
    pub(super) fn check(&self, opened: &Opened) -> Result<(), Error> {
        let there = opened.size.saturating_sub(self.start);
        if self.bytes > there {
            return Err(opened.wrong_length(&format!("the variable at byte {}", self.start), self.bytes, there));
        }
        let Ok(layout) = &self.holds else { return Ok(()) };
        let possible = match self.packing {
            Packing::Plain => self.bytes,
            Packing::Deflate | Packing::Zlib => self.bytes.saturating_mul(LARGEST_RATIO),
        };
        let promised = layout.bytes().and_then(|bytes| bytes.checked_add(self.before));
        if promised.is_none_or(|promised| promised > possible) {
            let (path, name, shape) = (opened.path.clone(), self.name.clone(), layout.shape.clone());
            return Err(Error::AbsurdShape { path, name, shape, found: self.bytes });
        }
        Ok(())
    }

    /// Reads a part of an array that has been checked; what is passed through whole is held against its checksum.
    pub(super) fn read(&self, opened: &Opened, layout: &Layout, wanted: &Wanted, tick: Tick) -> Result<Array, Error> {
        let fails = |source: io::Error| match source.kind() {
            ErrorKind::OutOfMemory => {
                let expected = layout.shape_of(wanted).iter().product();
                Error::Memory { path: opened.path.clone(), name: self.name.clone(), expected }
            }
            _ => opened.broken(&format!("array `{}`", self.name), source),
        };
        let height = layout.extent(wanted.order.first());
        let ends_early = wanted.rows.len() < height && layout.fastest_first().last() == wanted.order.first();
        if ends_early || self.packing == Packing::Plain && self.sum.is_none() {
            let mut inner = self.source(opened)?;
            inner.skip(self.before).map_err(fails)?;
            return layout.read(inner.as_mut(), wanted, tick).map_err(fails);
        }
        self.whole(opened, |source| layout.read(source, wanted, tick), fails)
    }

    /// Hands on all numbers of an array that has been checked, in the order of the file.
    pub(super) fn visit(&self, opened: &Opened, layout: &Layout, take: impl FnMut(&[f64])) -> Result<(), Error> {
        let fails = |source: io::Error| opened.broken(&format!("array `{}`", self.name), source);
        self.whole(opened, |source| layout.visit(source, take), fails)
    }

    /// Lets `read` pass through all numbers and compares the checksum.
    fn whole<T>(
        &self,
        opened: &Opened,
        read: impl FnOnce(&mut dyn Source) -> io::Result<T>,
        fails: impl Fn(io::Error) -> Error,
    ) -> Result<T, Error> {
        let mut sum = Crc::new();
        let mut summed = Stream::new(Summed { inner: self.source(opened)?, sum: &mut sum });
        summed.skip(self.before).map_err(&fails)?;
        let read = read(&mut summed).map_err(&fails)?;
        // the end has to be seen for zlib to compare its checksum; the bound is for streams that go on and on
        io::copy(&mut summed.take(BUFFER as u64), &mut io::sink()).map_err(&fails)?;
        match self.sum {
            Some(expected) if expected != sum.sum() => {
                let found = format!("{:08x}", sum.sum());
                Err(opened.damaged(format!("array `{}` with checksum {expected:08x}", self.name), found))
            }
            _ => Ok(read),
        }
    }
}
