//! Where bytes come from: an open file or bytes in memory, a slice of them, an unpacked stream. Memory holds one buffer of each.

use super::error::Error;
use crate::files;
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes of a buffer.
pub(super) const BUFFER: usize = 1 << 16;

/// Size of the buffer for a slice of `bytes` bytes.
fn buffer(bytes: u64) -> usize {
    usize::try_from(bytes).map_or(BUFFER, |bytes| bytes.min(BUFFER))
}

/// A stream that can skip bytes.
pub(super) trait Source: Read {
    fn skip(&mut self, bytes: u64) -> io::Result<()>;
}

/// Size, time of the last change and identity of a file: two stamps differ if the file was written to in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    changed: Option<SystemTime>,
    /// Device and number of the file, where the system has them.
    identity: [u64; 2],
}

impl Stamp {
    fn of(found: &Metadata) -> Stamp {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            [found.dev(), found.ino()]
        };
        #[cfg(not(unix))]
        let identity = [0, 0];
        Stamp { size: found.len(), changed: found.modified().ok(), identity }
    }
}

/// Where the bytes of a file are.
enum Contents {
    File(File),
    Memory(Vec<u8>),
}

/// The bytes from a place on.
enum Handle<'a> {
    File(&'a File),
    Memory(Cursor<&'a [u8]>),
}

impl Read for Handle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Handle::File(file) => file.read(buffer),
            Handle::Memory(bytes) => bytes.read(buffer),
        }
    }
}

impl Seek for Handle<'_> {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        match self {
            Handle::File(file) => file.seek(place),
            Handle::Memory(bytes) => bytes.seek(place),
        }
    }
}

/// An open file, or one whose bytes are in memory.
pub(super) struct Opened {
    /// Its path, or its name in sentences.
    pub(super) path: PathBuf,
    contents: Contents,
    pub(super) size: u64,
}

impl Opened {
    pub(super) fn open(path: &Path) -> Result<Opened, Error> {
        let fails = |source: io::Error| match source.kind() {
            ErrorKind::NotFound => Error::NoSuchFile { path: path.to_owned() },
            _ => Error::Unreadable { path: path.to_owned(), source },
        };
        if let Some(found) = files::irregular(&fs::metadata(path).map_err(fails)?) {
            return Err(Error::NotAFile { path: path.to_owned(), found });
        }
        let file = files::open(path).map_err(fails)?;
        let size = file.metadata().map_err(fails)?.len();
        Ok(Opened { path: path.to_owned(), contents: Contents::File(file), size })
    }

    /// Bytes in memory; sentences call them by the name.
    pub(super) fn in_memory(name: &str, bytes: Vec<u8>) -> Opened {
        Opened { path: name.into(), size: bytes.len() as u64, contents: Contents::Memory(bytes) }
    }

    /// The file itself, for formats whose reader needs one.
    pub(super) fn file(&self) -> Result<&File, Error> {
        match &self.contents {
            Contents::File(file) => Ok(file),
            Contents::Memory(_) => Err(self.unreadable(ErrorKind::Unsupported.into())),
        }
    }

    pub(super) fn stamp(&self) -> Result<Stamp, Error> {
        match &self.contents {
            Contents::File(file) => Ok(Stamp::of(&file.metadata().map_err(|source| self.unreadable(source))?)),
            Contents::Memory(_) => Ok(Stamp { size: self.size, changed: None, identity: [0, 0] }),
        }
    }

    /// The stamp of the file that is at its path now, which may be another file: meshes are read by their paths.
    pub(super) fn stamp_at_path(&self) -> Result<Stamp, Error> {
        match &self.contents {
            Contents::File(_) => Ok(Stamp::of(&fs::metadata(&self.path).map_err(|source| self.unreadable(source))?)),
            Contents::Memory(_) => self.stamp(),
        }
    }

    fn handle(&self, start: u64) -> Result<Handle<'_>, Error> {
        let mut handle = match &self.contents {
            Contents::File(file) => Handle::File(file),
            Contents::Memory(bytes) => Handle::Memory(Cursor::new(bytes)),
        };
        handle.seek(SeekFrom::Start(start)).map_err(|source| self.unreadable(source))?;
        Ok(handle)
    }

    /// Calls `take` with all bytes of the file, also with those that were appended since it was opened.
    pub(super) fn every_byte(&self, take: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let mut file = self.handle(0)?;
        let mut block = files::memory::filled(0, files::BUFFER).map_err(|source| self.unreadable(source))?;
        loop {
            match file.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(count) => take(&block[..count]),
                Err(source) if source.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(self.unreadable(source)),
            }
        }
    }

    /// `bytes` bytes from `start` on. All slices share the position of the file: read one at a time.
    pub(super) fn slice(&self, start: u64, bytes: u64) -> Result<Slice<'_>, Error> {
        Ok(Slice { file: BufReader::with_capacity(buffer(bytes), self.handle(start)?), left: bytes })
    }

    /// A part that is short enough for memory; `part` names it in an error.
    pub(super) fn bytes(&self, start: u64, bytes: u64, part: &str) -> Result<Vec<u8>, Error> {
        let available = self.size.saturating_sub(start);
        if bytes > available {
            return Err(self.wrong_length(part, bytes, available));
        }
        let mut contents = Vec::new();
        let read = self.slice(start, bytes)?.read_to_end(&mut contents).map_err(|source| self.unreadable(source))?;
        if (read as u64) < bytes { Err(self.wrong_length(part, bytes, read as u64)) } else { Ok(contents) }
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

    /// The error of a stream that ended early or could not be unpacked; `part` names what was being read.
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

/// Consecutive bytes of a file.
pub(super) struct Slice<'a> {
    file: BufReader<Handle<'a>>,
    left: u64,
}

impl Read for Slice<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.file.read(&mut buffer[..wanted])?;
        self.left -= read as u64;
        Ok(read)
    }
}

impl Source for Slice<'_> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let distance = i64::try_from(bytes).ok().filter(|_| bytes <= self.left);
        self.file.seek_relative(distance.ok_or(ErrorKind::UnexpectedEof)?)?;
        self.left -= bytes;
        Ok(())
    }
}

/// A stream that skips bytes by reading them.
pub(super) struct Stream<R>(BufReader<R>);

impl<R: Read> Stream<R> {
    pub(super) fn new(inner: R) -> Self {
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
            let available = self.0.fill_buf()?.len();
            if available == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let step = available.min(usize::try_from(bytes).unwrap_or(usize::MAX));
            self.0.consume(step);
            bytes -= step as u64;
        }
        Ok(())
    }
}
