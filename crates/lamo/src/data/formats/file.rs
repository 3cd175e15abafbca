//! An open array file: its header is read once, however many of its arrays are read.

use super::array::{Array, ArrayInfo, Found, Single, Tick, Values, Wanted};
use super::entry::{Entry, OpenArray};
use super::error::{Error, alternatives};
use super::foreign::looks_like;
use super::source::{Opened, Stamp};
use super::{FORMATS, Format, START, mesh, pytorch};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

/// Formats that are read from memory; the others need a file.
const IN_MEMORY: [&str; 2] = ["npy", "npz"];

/// An open file and its arrays.
pub struct ArrayFile {
    opened: Opened,
    entries: Vec<Entry>,
    /// Index in `entries` by name.
    places: HashMap<String, usize>,
    stamp: Stamp,
}

impl ArrayFile {
    /// Opens a file and reads the headers of its arrays.
    pub fn open(path: impl AsRef<Path>) -> Result<ArrayFile, Error> {
        ArrayFile::of(Opened::open(path.as_ref())?, &FORMATS.iter().collect::<Vec<_>>())
    }

    /// The same for the bytes of an npy or npz file; sentences call them by the name.
    pub fn in_memory(name: &str, bytes: Vec<u8>) -> Result<ArrayFile, Error> {
        let known: Vec<&Format> = FORMATS.iter().filter(|format| IN_MEMORY.contains(&format.name)).collect();
        ArrayFile::of(Opened::in_memory(name, bytes), &known)
    }

    fn of(opened: Opened, formats: &[&Format]) -> Result<ArrayFile, Error> {
        let stamp = opened.stamp()?;
        let start = opened.bytes(0, opened.size.min(START), "the file")?;
        if let Some(command) = pytorch::conversion(&start, &opened.path) {
            return Err(Error::PyTorch { path: opened.path.clone(), command });
        }
        let format = formats.iter().find(|format| (format.sniff)(&start, opened.size)).ok_or_else(|| {
            let expected = alternatives(formats.iter().map(|format| format.name));
            Error::UnknownFormat { path: opened.path.clone(), expected, found: looks_like(&start) }
        })?;
        let entries = (format.open)(&opened)?;
        let mut places = HashMap::new();
        for (place, entry) in entries.iter().enumerate() {
            entry.array(&opened).map_or(Ok(()), |array| array.numbers.check(&array))?;
            if places.insert(entry.name.clone(), place).is_some() {
                return Err(opened.damaged("each array once", format!("{:?} twice", entry.name)));
            }
        }
        Ok(ArrayFile { opened, entries, places, stamp })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.opened.path
    }

    /// The entries that lists show.
    fn shown(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.hidden)
    }

    /// The arrays of numbers.
    pub fn list(&self) -> Vec<ArrayInfo> {
        self.shown().filter_map(|entry| entry.array(&self.opened)).map(|array| array.info()).collect()
    }

    /// What the header says about the array called `name`, or about the only array.
    pub fn describe(&self, name: Option<&str>) -> Result<ArrayInfo, Error> {
        self.with(name, |array| Ok(array.info()))
    }

    /// A whole array in C order, as [`super::read`].
    pub fn read(&self, name: Option<&str>) -> Result<Array, Error> {
        self.read_part(name, None, None, &mut |_| {})
    }

    /// Some rows of the first axis, as [`super::read_rows`].
    pub fn read_rows(&self, name: Option<&str>, rows: Range<usize>) -> Result<Array, Error> {
        self.read_part(name, None, Some(rows), &mut |_| {})
    }

    /// Some rows, or all, with the axes in the order listed, or in that of the file.
    pub(super) fn read_part(
        &self,
        name: Option<&str>,
        order: Option<&[usize]>,
        rows: Option<Range<usize>>,
        tick: Tick,
    ) -> Result<Array, Error> {
        let (shape, found) = self.part(name, order, rows, false, tick)?;
        Ok(Array { shape, values: found.values })
    }

    /// The same in single precision; an array of doubles is never in memory as doubles.
    pub fn read_single(
        &self,
        name: Option<&str>,
        order: Option<&[usize]>,
        rows: Option<Range<usize>>,
        tick: Tick,
    ) -> Result<Single, Error> {
        let (shape, Found { values, beyond, rounding }) = self.part(name, order, rows, true, tick)?;
        let Values::F32(values) = values else { unreachable!("single precision was asked for") };
        Ok(Single { shape, values, beyond, rounding })
    }

    /// Calls `take` with all numbers of an array in the order of the file, a bounded number at a time.
    pub fn visit(&self, name: Option<&str>, mut take: impl FnMut(&[f64])) -> Result<(), Error> {
        self.with(name, |array| array.numbers.visit(array, &mut take))
    }

    /// Size, time of the last change and identity of the file when it was opened.
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The same as they are now; it is another stamp once the file has been written to or replaced.
    pub(crate) fn stamp_now(&self) -> Result<Stamp, Error> {
        self.opened.stamp_at_path()
    }

    /// Calls `take` with all bytes of the file from its start on, read through the handle that also reads the arrays.
    pub(crate) fn bytes(&self, take: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.opened.every_byte(take)
    }

    fn part(
        &self,
        name: Option<&str>,
        order: Option<&[usize]>,
        rows: Option<Range<usize>>,
        single: bool,
        tick: Tick,
    ) -> Result<(Vec<usize>, Found), Error> {
        self.with(name, |array| self.part_of(array, order, rows, single, tick))
    }

    fn part_of(
        &self,
        array: &OpenArray,
        order: Option<&[usize]>,
        rows: Option<Range<usize>>,
        single: bool,
        tick: Tick,
    ) -> Result<(Vec<usize>, Found), Error> {
        let (path, name) = (|| self.opened.path.clone(), || array.name.to_owned());
        let natural: Vec<_> = (0..array.layout.shape.len()).collect();
        // A number by itself may be read as a row of one.
        let order = order.filter(|order| !(natural.is_empty() && *order == [0])).unwrap_or(&natural);
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if sorted != natural {
            return Err(Error::AxesOutside { path: path(), name: name(), order: order.to_vec(), found: natural.len() });
        }
        let found = array.layout.extent(order.first());
        let rows = rows.unwrap_or(0..found);
        if rows.start > rows.end || rows.end > found {
            return Err(Error::RowsOutside { path: path(), name: name(), rows, found });
        }
        let wanted = Wanted { order, rows, single };
        Ok((array.layout.shape_of(&wanted), array.numbers.read(array, &wanted, tick)?))
    }

    /// Calls `use_array` with an array of the file, or with one that is derived from it and another file.
    fn with<T>(&self, name: Option<&str>, use_array: impl FnOnce(&OpenArray) -> Result<T, Error>) -> Result<T, Error> {
        let unknown = name.filter(|name| !self.places.contains_key(*name));
        let derived = unknown.and_then(|name| mesh::derive(&self.entries, name));
        match derived.as_ref().and_then(|entry| entry.array(&self.opened)) {
            Some(array) => use_array(&array),
            None => use_array(&self.find(name)?),
        }
    }

    fn find(&self, name: Option<&str>) -> Result<OpenArray<'_>, Error> {
        let path = || self.opened.path.clone();
        let real = || self.shown().filter(|entry| entry.holds.is_ok());
        let known = || real().map(|entry| entry.name.clone()).collect();
        let entry = match name {
            Some(name) => {
                let found = self.places.get(name).map(|&place| &self.entries[place]);
                found.ok_or_else(|| Error::Missing { path: path(), name: name.to_owned(), known: known() })?
            }
            None => match real().collect::<Vec<_>>()[..] {
                [only] => only,
                _ if self.entries.len() == 1 => &self.entries[0], // refused below: it holds no real numbers
                _ => return Err(Error::Unnamed { path: path(), known: known() }),
            },
        };
        entry.array(&self.opened).ok_or_else(|| {
            let found = entry.holds.as_ref().err().cloned().unwrap_or_default();
            Error::WrongType { path: path(), name: entry.name.clone(), found }
        })
    }
}

impl std::fmt::Debug for ArrayFile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ArrayFile({}, {} arrays)", self.opened.path.display(), self.entries.len())
    }
}
