//! An array in one section of its file, packed or not. This is how npy, npz, MAT v5 and safetensors store arrays.

use super::array::{Found, Tick, Wanted};
use super::entry::{Numbers, OpenArray};
use super::error::Error;
use super::source::{BUFFER, Opened, Source, Stream};
use flate2::Crc;
use flate2::read::{DeflateDecoder, ZlibDecoder};
use std::io::{self, ErrorKind, Read};

/// The largest ratio of deflate: 258 bytes from one bit of length and one bit of distance.
pub(super) const LARGEST_RATIO: u64 = 1032;

/// How a section is packed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Packing {
    Plain,
    Deflate,
    Zlib,
}

/// The bytes of a file that hold one array.
#[derive(Clone, Copy)]
pub(super) struct Section {
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) packing: Packing,
    /// Bytes of the unpacked section before the first number.
    pub(super) before: u64,
    /// CRC-32 of the unpacked section.
    pub(super) sum: Option<u32>,
}

impl Section {
    /// Refuses a section that ends beyond the end of the file.
    pub(super) fn check_end(&self, opened: &Opened) -> Result<(), Error> {
        let available = opened.size.saturating_sub(self.start);
        if self.bytes > available {
            return Err(opened.wrong_length(&format!("the variable at byte {}", self.start), self.bytes, available));
        }
        Ok(())
    }

    /// The section, unpacked.
    pub(super) fn source<'a>(&self, opened: &'a Opened) -> Result<Box<dyn Source + 'a>, Error> {
        let packed = opened.slice(self.start, self.bytes)?;
        Ok(match self.packing {
            Packing::Plain => Box::new(packed),
            Packing::Deflate => Box::new(Stream::new(DeflateDecoder::new(packed))),
            Packing::Zlib => Box::new(Stream::new(ZlibDecoder::new(packed))),
        })
    }

    /// Calls `read` at the first number, reads on to the end of the section and compares the checksum.
    fn read_whole<T>(
        &self,
        array: &OpenArray,
        read: impl FnOnce(&mut dyn Source) -> io::Result<T>,
        fails: impl Fn(io::Error) -> Error,
    ) -> Result<T, Error> {
        let mut sum = Crc::new();
        let mut summed = Stream::new(Summed { inner: self.source(array.opened)?, sum: &mut sum });
        summed.skip(self.before).map_err(&fails)?;
        let read = read(&mut summed).map_err(&fails)?;
        // zlib compares its own checksum at the end of the stream; the limit is for streams that do not end
        io::copy(&mut summed.take(BUFFER as u64), &mut io::sink()).map_err(&fails)?;
        match self.sum {
            Some(expected) if expected != sum.sum() => {
                let found = format!("{:08x}", sum.sum());
                Err(array.opened.damaged(format!("array `{}` with checksum {expected:08x}", array.name), found))
            }
            _ => Ok(read),
        }
    }
}

impl Numbers for Section {
    fn check(&self, array: &OpenArray) -> Result<(), Error> {
        self.check_end(array.opened)?;
        let unpacked = match self.packing {
            Packing::Plain => self.bytes,
            Packing::Deflate | Packing::Zlib => self.bytes.saturating_mul(LARGEST_RATIO),
        };
        array.check_size(self.before, self.bytes, unpacked)
    }

    /// The checksum is compared wherever the whole section has to be read.
    fn read(&self, array: &OpenArray, wanted: &Wanted, tick: Tick) -> Result<Found, Error> {
        let OpenArray { opened, name, layout, .. } = *array;
        let fails = |source: io::Error| match source.kind() {
            ErrorKind::OutOfMemory => array.too_large(wanted),
            _ => opened.broken(&format!("array `{name}`"), source),
        };
        let height = layout.extent(wanted.order.first());
        let ends_early = wanted.rows.len() < height && layout.fastest_first().last() == wanted.order.first();
        if ends_early || self.packing == Packing::Plain && self.sum.is_none() {
            let mut inner = self.source(opened)?;
            inner.skip(self.before).map_err(fails)?;
            return layout.read(inner.as_mut(), wanted, tick).map_err(fails);
        }
        self.read_whole(array, |source| layout.read(source, wanted, tick), fails)
    }

    fn visit(&self, array: &OpenArray, take: &mut dyn FnMut(&[f64])) -> Result<(), Error> {
        let fails = |source: io::Error| array.opened.broken(&format!("array `{}`", array.name), source);
        self.read_whole(array, |source| array.layout.visit(source, take), fails)
    }
}

/// A stream that computes the checksum of what is read from it.
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
