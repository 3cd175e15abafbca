//! The bytes of a mesh file: parts of it, words of text, lines, and numbers between them. Memory holds one buffer.

use super::START;
use super::mesh::short;
use super::numbers::{ByteOrder, Numbers};
use crate::data::formats::ElementKind;
use crate::error::{Kind, Refusal, require};
use crate::files;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Letters of the longest word or line that is read.
const LONGEST: usize = 1 << 16;

/// Files at most that one file may name, with those that they name.
const MOST_PARTS: usize = 10_000;
/// Files that name each other at most, one inside the other; a list of files of blocks of parallel files has three.
const DEEPEST: usize = 8;

/// An open file.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    file: File,
    pub(super) size: u64,
    /// All files that were opened beside the first, and the first; their full paths.
    known: Rc<RefCell<HashSet<PathBuf>>>,
    /// Files between the first and this one.
    depth: usize,
}

impl Opened {
    pub(super) fn open(path: &Path) -> Result<Opened, Refusal> {
        let fails = |reason: io::Error| match reason.kind() {
            ErrorKind::NotFound => Refusal::new("", "a file", "nothing").advise("check the path").of(Kind::Missing),
            _ => Refusal::said(format!("cannot be read: {reason}")).of(Kind::of_io(&reason)),
        };
        let file = files::open(path).map_err(fails)?;
        let size = file.metadata().map_err(fails)?.len();
        let known = HashSet::from([path.canonicalize().unwrap_or_else(|_| path.to_owned())]);
        Ok(Opened { path: path.to_owned(), file, size, known: Rc::new(RefCell::new(known)), depth: 0 })
    }

    /// A file that this one names, relative to its folder. Each file may be named once.
    pub(super) fn beside(&self, name: &str) -> Result<Opened, Refusal> {
        let path = self.path.parent().unwrap_or(Path::new("")).join(name);
        let opened = Opened::open(&path)?;
        let mut known = self.known.borrow_mut();
        require(self.depth < DEEPEST, || {
            Refusal::new("", format!("at most {DEEPEST} files that name each other"), "more")
        })?;
        require(known.len() <= MOST_PARTS, || Refusal::new("", format!("at most {MOST_PARTS} files"), "more"))?;
        let new = known.insert(path.canonicalize().unwrap_or(path));
        require(new, || Refusal::new("", "each file once", "a file that is named twice"))?;
        Ok(Opened { known: self.known.clone(), depth: self.depth + 1, ..opened })
    }

    /// The first bytes, [`START`] at most.
    pub(super) fn start(&self) -> Result<Vec<u8>, Refusal> {
        let mut start = Vec::new();
        self.part(0, START)?.read_to_end(&mut start).map_err(|reason| broken(&reason))?;
        Ok(start)
    }

    /// The bytes from `start` to `end`. All parts share the position of the file: read one at a time.
    pub(super) fn part(&self, start: u64, end: u64) -> Result<Input<'_>, Refusal> {
        let (start, end) = (start.min(self.size), end.min(self.size));
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start)).map_err(|reason| broken(&reason))?;
        let left = end.saturating_sub(start);
        Ok(Input { reader: BufReader::with_capacity(1 << 16, file.take(left)), position: start, end, line: 1 })
    }

    pub(super) fn whole(&self) -> Result<Input<'_>, Refusal> {
        self.part(0, self.size)
    }
}

/// What a failed read says.
pub(super) fn broken(reason: &io::Error) -> Refusal {
    match reason.kind() {
        ErrorKind::UnexpectedEof => Refusal::new("", "more bytes", "the end of the file").advise(CUT),
        ErrorKind::OutOfMemory => short(reason),
        ErrorKind::InvalidData | ErrorKind::InvalidInput => {
            Refusal::new("", "intact bytes", reason.to_string()).advise(CUT)
        }
        _ => Refusal::said(format!("cannot be read: {reason}")).of(Kind::of_io(reason)),
    }
}

pub(super) const CUT: &str = "the file is cut short or damaged, write or copy it again";

/// A stream of bytes that knows its place in the file.
pub(super) struct Input<'a> {
    reader: BufReader<io::Take<&'a File>>,
    pub(super) position: u64,
    end: u64,
    /// Lines seen so far by the readers of text, from 1 on; 0 where the file has bytes that are not text.
    pub(super) line: usize,
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.reader.consume(count);
        self.position += count as u64;
    }
}

impl Input<'_> {
    /// Bytes not read yet.
    pub(super) fn left(&self) -> u64 {
        self.end.saturating_sub(self.position)
    }

    /// The next byte, which stays.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, Refusal> {
        let bytes = self.reader.fill_buf().map_err(|reason| broken(&reason))?;
        Ok(bytes.first().copied())
    }

    fn next(&mut self) -> Result<Option<u8>, Refusal> {
        let byte = self.peek()?;
        if let Some(byte) = byte {
            self.consume(1);
            self.line += usize::from(byte == b'\n' && self.line > 0);
        }
        Ok(byte)
    }

    /// Skips blanks and ends of lines.
    pub(super) fn skip_space(&mut self) -> Result<(), Refusal> {
        while self.peek()?.is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.next()?;
        }
        Ok(())
    }

    /// The next word, without the blank behind it; `None` at the end.
    pub(super) fn word(&mut self) -> Result<Option<String>, Refusal> {
        self.skip_space()?;
        let mut word = Vec::new();
        while let Some(byte) = self.peek()?.filter(|byte| !byte.is_ascii_whitespace()) {
            word.push(byte);
            self.consume(1);
            if word.len() > LONGEST {
                return Err(self.refuse("words of text", format!("one of more than {LONGEST} letters")));
            }
        }
        if word.is_empty() { Ok(None) } else { self.text(word).map(Some) }
    }

    /// The next word, which must be there; `what` names it in an error.
    pub(super) fn expect(&mut self, what: &str) -> Result<String, Refusal> {
        self.word()?.ok_or_else(|| Refusal::new("", what, "the end of the file").advise(CUT))
    }

    /// A number in a text.
    pub(super) fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, Refusal> {
        let word = self.expect(what)?;
        word.parse().map_err(|_| self.refuse(what, format!("`{}`", shortened(&word))))
    }

    /// The rest of the line, without its end; `None` at the end of the file.
    pub(super) fn rest_of_line(&mut self) -> Result<Option<String>, Refusal> {
        let mut line = Vec::new();
        if self.peek()?.is_none() {
            return Ok(None);
        }
        while let Some(byte) = self.next()?.filter(|&byte| byte != b'\n') {
            line.push(byte);
            if line.len() > LONGEST {
                return Err(self.refuse("lines of text", format!("one of more than {LONGEST} letters")));
            }
        }
        line.pop_if(|last| *last == b'\r');
        self.text(line).map(Some)
    }

    /// Files of old programs have letters that are not UTF-8, in comments and names.
    fn text(&self, bytes: Vec<u8>) -> Result<String, Refusal> {
        Ok(String::from_utf8(bytes).unwrap_or_else(|wrong| String::from_utf8_lossy(wrong.as_bytes()).into_owned()))
    }

    /// `count` numbers as words.
    pub(super) fn words(&mut self, kind: ElementKind, count: usize) -> Result<Numbers, Refusal> {
        self.require(count as u64, 1, &format!("{count} numbers"))?; // a digit each; the last may end the file
        let mut numbers = Numbers::with_room(kind, count).map_err(|reason| short(&reason))?;
        for _ in 0..count {
            let word = self.expect("a number")?;
            if numbers.push_word(&word).is_none() {
                return Err(self.refuse(&format!("a number of type {kind}"), format!("`{}`", shortened(&word))));
            }
        }
        Ok(numbers)
    }

    /// `count` numbers as bytes.
    pub(super) fn binary(&mut self, kind: ElementKind, count: usize, order: ByteOrder) -> Result<Numbers, Refusal> {
        self.require(count as u64, kind.bytes() as u64, &format!("{count} numbers of type {kind}"))?;
        Numbers::read(self, kind, count, order).map_err(|reason| broken(&reason))
    }

    /// Refuses `count` things of at least `bytes` bytes each that the rest of the file cannot hold.
    pub(super) fn require(&self, count: u64, bytes: u64, what: &str) -> Result<(), Refusal> {
        let needed = count.saturating_mul(bytes);
        if needed <= self.left() {
            return Ok(());
        }
        let expected = format!("{what} ({needed} bytes or more)");
        Err(Refusal::new("", expected, format!("{} bytes up to the end", self.left())).advise(CUT))
    }

    /// A refusal about the current line or byte.
    pub(super) fn refuse(&self, expected: &str, found: impl Into<String>) -> Refusal {
        let place = if self.line == 0 { format!("byte {}", self.position) } else { format!("line {}", self.line) };
        Refusal::new(place, expected, found)
    }
}

/// The first letters of a word.
pub(super) fn shortened(word: &str) -> String {
    let letters: String = word.chars().take(40).collect();
    if letters.len() < word.len() { format!("{letters}...") } else { letters }
}
