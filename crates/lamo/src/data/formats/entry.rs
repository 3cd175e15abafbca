//! One array of a file: what the header says about it, and how its numbers are read.

use super::array::{ArrayInfo, Found, Gathering, Layout, Tick, Wanted};
use super::error::Error;
use super::source::Opened;
use std::io;

/// One array of a file.
pub(super) struct Entry {
    pub(super) name: String,
    /// How its numbers are laid out, or what it holds instead of real numbers.
    pub(super) holds: Result<Layout, String>,
    /// It is found by its name and left out of lists: another entry holds its numbers, too.
    pub(super) hidden: bool,
    numbers: Box<dyn Numbers>,
}

impl Entry {
    pub(super) fn new(name: String, holds: Result<Layout, String>, numbers: impl Numbers + 'static) -> Entry {
        Entry { name, holds, hidden: false, numbers: Box::new(numbers) }
    }

    /// The same, left out of lists.
    pub(super) fn hide(self) -> Entry {
        Entry { hidden: true, ..self }
    }

    /// The array in its open file; `None` where it holds no real numbers.
    pub(super) fn array<'a>(&'a self, opened: &'a Opened) -> Option<OpenArray<'a>> {
        let layout = self.holds.as_ref().ok()?;
        Some(OpenArray { opened, name: &self.name, layout, numbers: self.numbers.as_ref() })
    }
}

/// An array of real numbers in an open file.
#[derive(Clone, Copy)]
pub(super) struct OpenArray<'a> {
    pub(super) opened: &'a Opened,
    pub(super) name: &'a str,
    pub(super) layout: &'a Layout,
    pub(super) numbers: &'a dyn Numbers,
}

impl OpenArray<'_> {
    pub(super) fn info(&self) -> ArrayInfo {
        ArrayInfo { name: self.name.to_owned(), shape: self.layout.shape.clone(), kind: self.layout.kind }
    }

    /// Refuses a shape that is too large for its bytes: `before` bytes and then the numbers are stored in `stored`
    /// bytes of the file, which unpack to `unpacked` bytes at most.
    pub(super) fn check_size(&self, before: u64, stored: u64, unpacked: u64) -> Result<(), Error> {
        let promised = self.layout.bytes().and_then(|bytes| bytes.checked_add(before));
        if promised.is_some_and(|promised| promised <= unpacked) {
            return Ok(());
        }
        let (path, name, shape) = (self.opened.path.clone(), self.name.to_owned(), self.layout.shape.clone());
        Err(Error::AbsurdShape { path, name, shape, found: stored })
    }
}

impl OpenArray<'_> {
    /// The machine has not enough memory for the wanted part.
    pub(super) fn too_large(&self, wanted: &Wanted) -> Error {
        let (path, name) = (self.opened.path.clone(), self.name.to_owned());
        Error::Memory { path, name, expected: self.layout.memory(wanted) }
    }
}

/// How the numbers of an array are read from its file.
pub(super) trait Numbers {
    /// Refuses a shape that the file is too short for. It is called once, before anything is read.
    fn check(&self, array: &OpenArray) -> Result<(), Error>;

    /// Reads a part of the array.
    fn read(&self, array: &OpenArray, wanted: &Wanted, tick: Tick) -> Result<Found, Error>;

    /// Calls `take` with all numbers in the order of the file, a bounded number at a time.
    fn visit(&self, array: &OpenArray, take: &mut dyn FnMut(&[f64])) -> Result<(), Error>;
}

/// A part of an array whose numbers are all in memory, in C order.
pub(super) fn of_values(array: &OpenArray, values: &[f64], wanted: &Wanted, tick: Tick) -> Result<Found, Error> {
    let gathering = Gathering { layout: array.layout, wanted, tick };
    let (shape, axis) = (&array.layout.shape, wanted.order.first().copied());
    let (extent, after) = match axis {
        Some(axis) => (shape[axis], shape[axis + 1..].iter().product::<usize>()),
        None => (1, 1),
    };
    let rows = if axis.is_some() { wanted.rows.clone() } else { 0..1 };
    let each = |take: &mut dyn FnMut(&[f64])| -> io::Result<()> {
        values.chunks((extent * after).max(1)).for_each(|block| take(&block[rows.start * after..rows.end * after]));
        Ok(())
    };
    let found = match (array.layout.kind.is_single(), wanted.single) {
        (true, _) => gathering.run::<f32, io::Error>(|take| {
            let mut narrow = Vec::new();
            each(&mut |block| {
                narrow.clear();
                narrow.extend(block.iter().map(|&value| value as f32));
                take(&narrow);
            })
        }),
        (false, true) => gathering.run_narrow(each),
        (false, false) => gathering.run::<f64, _>(each),
    };
    found.map_err(|_| array.too_large(wanted))
}
